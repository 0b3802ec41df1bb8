//! Verdicts: what an engine decided about a session, and why. "Say why not" is a value here.

use crate::time::{Mono, Wall};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Who acts on a session. Written with every transition and shown in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// The person.
    User,
    /// The stream of the CLI.
    Stream,
    /// The end of a turn.
    TurnEnd,
    /// The emit site of aborted responses.
    Abort,
    /// The 60-second scan.
    AbortedScan,
    /// The Retry button.
    RetryButton,
    /// The re-arm ladder.
    ReArm,
    /// Crash recovery at the start of the app.
    CrashRecovery,
    /// The launch of a child.
    Launch,
    /// The relaunch engine: launches that failed transiently.
    Relaunch,
    /// The stall watchdog.
    StallWatchdog,
    /// The liveness watchdog: children that are gone.
    LivenessWatchdog,
    /// The recovery of turns that ran out of room.
    ContextStall,
    /// Auto-Continue Mid-Task.
    AutoContinue,
    /// The waiting hold: deliberate waits and kept wake-ups.
    WaitingHold,
    /// The app itself (settings, migration, boot).
    App,
}

impl Actor {
    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Actor::User => "user",
            Actor::Stream => "stream",
            Actor::TurnEnd => "turn-end",
            Actor::Abort => "abort",
            Actor::AbortedScan => "response-aborted",
            Actor::RetryButton => "retry-button",
            Actor::ReArm => "re-arm",
            Actor::CrashRecovery => "crash-resume",
            Actor::Launch => "launch",
            Actor::Relaunch => "relaunch",
            Actor::StallWatchdog => "stall-watchdog",
            Actor::LivenessWatchdog => "liveness-watchdog",
            Actor::ContextStall => "context-stall",
            Actor::AutoContinue => "auto-continue",
            Actor::WaitingHold => "waiting-hold",
            Actor::App => "app",
        }
    }
}

/// What set a replay off (RP-04). The words are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The 60-second scan (SC-14).
    ResponseAborted,
    /// The Retry button.
    RetryButton,
    /// The re-arm ladder (RA-01).
    ReArm,
    /// Crash recovery.
    CrashResume,
    /// The CLI lost the conversation: replayed at once with a hand-over, nothing charged.
    ConversationGone,
}

impl Source {
    /// The contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::ResponseAborted => "response-aborted",
            Source::RetryButton => "retry-button",
            Source::ReArm => "re-arm",
            Source::CrashResume => "crash-resume",
            Source::ConversationGone => "conversation-gone",
        }
    }

    /// Whether nobody pressed anything: such a restart obeys the debounce (RP-07).
    pub fn is_automatic(self) -> bool {
        match self {
            Source::ResponseAborted
            | Source::ReArm
            | Source::CrashResume
            | Source::ConversationGone => true,
            Source::RetryButton => false,
        }
    }
}

/// Why an engine did not act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", content = "until", rename_all = "snake_case")]
pub enum Why {
    /// The row is not in the state this engine serves.
    WrongState,
    /// A person is asked something; it goes first.
    UserFacing,
    /// Another engine owns this pending action.
    OtherEngine,
    /// A turn is open: the signal is stale.
    TurnOpen,
    /// The person paused, ended or archived it.
    Deliberate,
    /// The last answer was delivered.
    Delivered,
    /// Recovery is switched off by setting or environment.
    RecoveryOff,
    /// Restarted less than the debounce ago.
    Debounced(Wall),
    /// The project folder is missing.
    FolderMissing,
    /// A check of the session runs.
    GateOpen,
    /// The machine is saturated.
    MachineBusy,
    /// The re-arm ladder has stopped.
    LadderStopped,
    /// Another program has the conversation open.
    HeldElsewhere,
    /// There is no message to send again.
    NothingToReplay,
    /// The day's attempts are used up.
    AttemptsUsed,
    /// The old child is not gone yet.
    ChildStopping,
    /// A restart is already under way.
    RestartUnderWay,
    /// A fact was asked for and has not come.
    AskPending,
    /// The app is quitting.
    Quitting,
    /// The turn still waits to be concluded.
    DispositionPending,
    /// The row changed while a fact was asked for.
    RowChanged,
    /// Nothing runs or is set that it could wait for.
    NothingAwaited,
    /// What it waits for may not hold it any longer.
    HoldOver,
    /// The child fires the wake-up itself.
    ChildFires,
    /// A wake-up waits to be sent already.
    WakeupQueued,
    /// Not due before this monotonic time.
    NotDue(Mono),
    /// Something is open that may be silent for as long as it likes.
    SilenceAllowed(Silent),
}

/// What may be silent without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silent {
    /// A tool runs.
    Tool,
    /// A sub-agent lives.
    SubAgent,
    /// The history is being compacted.
    Compaction,
    /// A question or permission is open.
    Card,
}

/// What an engine decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "of", rename_all = "snake_case")]
pub enum Verdict<A> {
    /// It acts.
    Act(A),
    /// It would act, but not now.
    Wait(Why),
    /// The row is not its business.
    NotMine(Why),
    /// It gives the row up.
    GiveUp(Why),
}

/// One decision kept for `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub at: Wall,
    /// Who.
    pub actor: Actor,
    /// What, in short fixed words (for example "act: replay", "wait: debounced").
    pub text: String,
}
