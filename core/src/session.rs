//! One session: the durable facts that a database row holds.
//!
//! Whatever must survive the app is a field here; what lives only as long as a child process is in
//! `supervisor::live`. Legal combinations of status and pending action are contract section 5.1.

use crate::card::Card;
use crate::context::ContextUsage;
use crate::id::{CliSessionId, MessageId, SessionId, Uuid};
use crate::time::{Day, Wall};
use crate::verdict::Source;
use crate::waiting::DeferredWork;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

mod words;

pub use words::*;

/// What is known of one tool call of the current message's tries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id in the stream.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its target in one short line (a command, a path).
    pub detail: String,
    /// How far it came.
    pub state: CallState,
}

/// How far a tool call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The call stands complete in the stream: it counts as started.
    Started,
    /// Its permission was asked and not yet answered with allow: it has not started.
    Asked,
    /// Permission was refused: it never started.
    Denied,
    /// Its result is in.
    Finished,
}

/// What the replay of the last operator message needs to know, across restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayMemory {
    /// The operator message of the turn; `None` for a turn that started by itself.
    pub message: Option<MessageId>,
    /// Every uuid it was ever sent under.
    pub sent_as: Vec<Uuid>,
    /// The uuid of the latest continuation sentence that was sent for it, if any.
    pub continued_as: Vec<Uuid>,
    /// The tool calls of every try.
    pub calls: Vec<ToolCall>,
    /// An earlier message was taken over unanswered: only a plain fork keeps it.
    pub carries_unanswered: bool,
    /// A `result` has named the message.
    pub answered: bool,
    /// The person stopped its turn, or put the session away: nothing sends it again by itself.
    pub stopped: bool,
}

impl ReplayMemory {
    /// Whether the message still waits for its answer and nobody took it back.
    pub fn is_open(&self) -> bool {
        self.message.is_some() && !self.answered && !self.stopped
    }

    /// Remembers a call of the running try. At most `max` are kept: the oldest finished one goes first,
    /// and one always stays, for it decides how the message is replayed.
    pub fn add_call(&mut self, call: ToolCall, max: usize) {
        if self.calls.iter().any(|known| known.id == call.id) {
            return;
        }
        if self.calls.len() >= max {
            let finished = self.calls.iter().position(|known| known.state == CallState::Finished);
            self.calls.remove(finished.unwrap_or(0));
        }
        self.calls.push(call);
    }

    /// Whether any tool call of any try counts as started.
    pub fn tool_started(&self) -> bool {
        self.calls.iter().any(|call| match call.state {
            CallState::Started | CallState::Finished => true,
            CallState::Asked | CallState::Denied => false,
        })
    }
}

/// The turn that is open, as far as a restart must know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// Sequence number of the turn in its session; concluding it is a compare-and-set on this.
    pub number: u64,
    /// When the turn began for the person: kept through hidden replays.
    pub since: Wall,
    /// Which automatic actor began this try; `None` when the person's own message did.
    pub replay: Option<Source>,
    /// Whether this try has shown real output.
    pub real_output: bool,
}

/// Where a given-up session stands on the re-arm ladder (RA-07).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ladder {
    /// Rungs taken in this episode: since the last message of the person, Retry or concluded turn.
    pub rungs: u8,
    /// When the next rung is due; `None` while one is in flight, and once the ladder stopped.
    pub due: Option<Wall>,
}

/// A check that holds every automatic restart of its session (RG): declared by the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// What the agent calls it.
    pub name: String,
    /// Since when it runs.
    pub opened_at: Wall,
}

/// Where in another session's conversation a session begins as a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The other conversation. It is only ever copied.
    pub from: CliSessionId,
    /// The last line that is kept; `None` keeps all of it.
    pub at: Option<Uuid>,
}

/// A permission profile that a new session starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// The CLI's own default.
    Default,
    /// Edits need no consent.
    AcceptEdits,
    /// Plan first.
    Plan,
    /// Everything is denied that would be asked.
    DontAsk,
}

impl PermissionMode {
    /// The word of the CLI's flag.
    pub fn as_flag(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "acceptEdits",
            PermissionMode::Plan => "plan",
            PermissionMode::DontAsk => "dontAsk",
        }
    }
}

/// The durable facts of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The app's id.
    pub id: SessionId,
    /// What the list calls it.
    pub title: String,
    /// Project folder, absolute.
    pub folder: String,
    /// When it was created.
    pub created_at: Wall,
    /// The account it runs under (its id).
    pub account: String,
    /// Model the user chose, if any.
    pub model: Option<String>,
    /// The endpoint that answers it (its id), chosen when it was made; `None` is Claude's own.
    pub endpoint: Option<String>,
    /// Permission mode the user chose, if any.
    pub permission_mode: Option<PermissionMode>,
    /// Start without what the folder brings.
    pub user_settings_only: bool,

    /// Status.
    pub status: Status,
    /// Pending action.
    pub pending: Option<PendingAction>,
    /// When this state was entered (AB-11); the hide clock of a stamped row (HD-10).
    pub status_changed_at: Wall,
    /// The session should be running: what a crash restores.
    pub intent_running: bool,

    /// The CLI's id, once `system/init` named it.
    pub cli_session_id: Option<CliSessionId>,
    /// The id minted for the launch that is under way.
    pub cli_session_wanted: Option<CliSessionId>,
    /// The conversation the current one was copied from, until a turn of the copy has ended well.
    pub cli_session_before: Option<CliSessionId>,
    /// Where it begins as a copy of another session's conversation, until a turn of its own has ended
    /// well.
    #[serde(default)]
    pub fork_of: Option<ForkPoint>,
    /// The last assistant line of the last good turn (A-04 b).
    pub last_good_assistant: Option<Uuid>,
    /// Whether any turn was ever answered.
    pub ever_answered: bool,
    /// Whether the last turn delivered its answer (FM-17).
    pub delivered: bool,
    /// Number of turns opened so far.
    pub turn_count: u64,
    /// The turn that is open.
    pub turn: Option<OpenTurn>,
    /// When the last turn began for the person: what a hidden recovery goes on counting from.
    pub turn_since: Option<Wall>,
    /// What a replay needs.
    pub replay: ReplayMemory,
    /// The shape's clock, kept through a replay that has shown nothing yet (HD-14).
    pub hide_since: Option<Wall>,

    /// Automatic replays charged on `retry_day` (CT-01).
    pub retry_attempts: u8,
    /// The local day of that count (CT-04).
    pub retry_day: Option<Day>,
    /// When any actor last restarted it (RP-07).
    pub last_restart_at: Option<Wall>,
    /// Why nothing retries it any more (DB-08).
    pub stop_reason: Option<StopReason>,
    /// Background retries of a given-up session (RA).
    pub ladder: Ladder,
    /// No launch has succeeded for so long that a person is told; it goes on being tried.
    pub cannot_launch: bool,
    /// Why the last turn died.
    pub abort_cause: Option<AbortCause>,
    /// `contextRecoverCount`: nudges for a full context since the last reset (CS-13).
    pub context_recover_count: u8,
    /// The full context was given up: no more nudges or notes until the reset (OD-42).
    pub context_gave_up: bool,
    /// Nudges for a mid-task stop since the last message of the person (OD-44).
    pub auto_continue_count: u8,
    /// The agent printed a marker in some turn.
    pub prints_markers: bool,
    /// How full the context was when the last turn ended; `None` when unknown (CW-01).
    pub context: Option<ContextUsage>,

    /// The session that spawned it as a worker (OD-60).
    pub parent: Option<SessionId>,
    /// A worker's opening task, until its first `system/init` makes it a message.
    pub launch_request: Option<String>,
    /// Checks that run for it (OD-32).
    pub gates: Vec<Gate>,
    /// What it waits for by itself (WD-02).
    #[serde(default)]
    pub deferred_work: Option<DeferredWork>,

    /// The question, plan or permission that is open.
    pub card: Option<Card>,
    /// The system's or the API's own words, or what the row says of its state, without secrets.
    pub words: Option<String>,
    /// When the usage limit resets, if the stream said so.
    pub resets_at: Option<Wall>,
    /// First sentence of the last answer.
    pub answer_line: Option<String>,
    /// Something the person has not seen.
    pub unread: bool,
    /// Total cost in millionths of a dollar, as the CLI counts it.
    pub cost_microdollars: u64,
    /// Why it was archived.
    pub archive_reason: Option<ArchiveReason>,
    /// When it was deleted.
    pub deleted_at: Option<Wall>,
    /// Children of this session that may have survived: pid and start time.
    pub child: Option<ChildMark>,
}

/// A process, named so that no other can be meant: pid and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildMark {
    /// Process id.
    pub pid: u32,
    /// Start time as field 22 of `/proc/PID/stat`.
    pub start: u64,
}

/// A live process of somebody else that has a conversation open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its start time, field 22 of `/proc/PID/stat`.
    pub start: u64,
    /// The folder it works in, as it says itself.
    pub folder: String,
}

impl Holder {
    /// The process, named so that no other can be meant.
    pub fn mark(&self) -> ChildMark {
        ChildMark { pid: self.pid, start: self.start }
    }
}

impl SessionRow {
    /// A row as it is created: starting, intended to run.
    pub fn new(id: SessionId, folder: String, title: String, account: String, at: Wall) -> Self {
        SessionRow {
            id,
            title,
            folder,
            created_at: at,
            account,
            model: None,
            endpoint: None,
            permission_mode: None,
            user_settings_only: false,
            status: Status::Starting,
            pending: None,
            status_changed_at: at,
            intent_running: true,
            cli_session_id: None,
            cli_session_wanted: None,
            cli_session_before: None,
            fork_of: None,
            last_good_assistant: None,
            ever_answered: false,
            delivered: false,
            turn_count: 0,
            turn: None,
            turn_since: None,
            replay: ReplayMemory::default(),
            hide_since: None,
            retry_attempts: 0,
            retry_day: None,
            last_restart_at: None,
            stop_reason: None,
            ladder: Ladder::default(),
            cannot_launch: false,
            abort_cause: None,
            context_recover_count: 0,
            context_gave_up: false,
            auto_continue_count: 0,
            prints_markers: false,
            context: None,
            parent: None,
            launch_request: None,
            gates: Vec::new(),
            deferred_work: None,
            card: None,
            words: None,
            resets_at: None,
            answer_line: None,
            unread: false,
            cost_microdollars: 0,
            archive_reason: None,
            deleted_at: None,
            child: None,
        }
    }

    /// Whether the row is in the shape of a cut-off reply: `needs_you` or `error` with
    /// `response_aborted`.
    pub fn in_shape(&self) -> bool {
        self.pending == Some(PendingAction::ResponseAborted)
            && matches!(self.status, Status::NeedsYou | Status::Error)
    }

    /// Whether the row says that a child works for it, or is on its way.
    pub fn is_at_work(&self) -> bool {
        !self.is_gone() && matches!(self.status, Status::Starting | Status::Running)
    }

    /// Whether the row is gone from every list.
    pub fn is_gone(&self) -> bool {
        self.deleted_at.is_some() || self.status == Status::Archived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: DB-01, DB-02
    #[test]
    fn words_are_the_stored_form_of_every_value() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(*status));
            let json = serde_json::to_string(status).expect("json");
            assert_eq!(serde_json::from_str::<Status>(&json).ok(), Some(*status));
        }
        for action in PendingAction::ALL {
            assert_eq!(PendingAction::parse(action.as_str()), Some(*action));
        }
        assert_eq!(Status::parse("Running"), None);
        assert_eq!((Status::ALL.len(), PendingAction::ALL.len()), (9, 10));
    }

    #[test]
    fn the_table_of_legal_combinations_is_the_contracts() {
        let legal = |p: PendingAction| {
            Status::ALL
                .iter()
                .filter(|s| is_legal(**s, Some(p)))
                .map(|s| s.as_str())
                .collect::<Vec<_>>()
        };
        use PendingAction as P;
        for card in [P::Question, P::PlanApproval, P::PermissionRequest] {
            assert_eq!(legal(card), ["running", "needs_you", "archived"]);
        }
        for failed in [P::AuthRequired, P::ApiError, P::ResponseAborted] {
            assert_eq!(legal(failed), ["needs_you", "error", "archived"]);
        }
        assert_eq!(legal(P::Stopped), ["needs_you", "paused", "archived"]);
        assert_eq!(legal(P::AppRestartSuspended), ["paused", "archived"]);
        assert_eq!(legal(P::RateLimited), ["waiting", "archived"]);
        assert_eq!(
            legal(P::RecoveryFailed),
            ["starting", "running", "needs_you", "error", "stalled", "archived"]
        );
        assert!(Status::ALL.iter().all(|s| is_legal(*s, None)));
    }
}
