//! What a finished turn means: one ordered list of gates over frozen facts; the first that claims
//! the turn wins.
//!
//! The order is the contract's turn-end order (section 6). A question is recorded when it is asked
//! and stops the gates that would act on the turn; it is shown by the gate that stands for it. Steps
//! whose rules come with later work (gate reports, the summary card) have no entry yet; their place is
//! between the ones that stand here.

pub mod auto_continue;
pub mod context_stall;
pub mod finished_reason;
pub mod outcome;

mod api_error;
mod empty;
mod finish;
mod question;
mod rate_limit;
mod wait;

use crate::context::ContextUsage;
use crate::engine::EngineFamily;
use crate::limits::Limits;
use crate::session::{AbortCause, PendingAction, Status, StopReason};
use crate::settings::Policy;
use crate::time::Wall;
use crate::turn::TurnFacts;
use crate::waiting::DeferredWork;
use alloc::string::String;
use outcome::Outcome;

/// The facts of a finished turn, frozen when its `result` was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Frozen {
    /// What the turn showed.
    pub turn: TurnFacts,
    /// What its end is.
    pub outcome: Outcome,
    /// The pending action that stood when the result came, if it asks something of a person.
    pub asked: Option<PendingAction>,
    /// What its session brings along.
    pub standing: Standing,
    /// What the agent deliberately waits for, if it does (WD-02).
    pub wait: Option<DeferredWork>,
}

impl Frozen {
    /// The session waits on purpose (WD-02).
    pub fn waits(&self) -> bool {
        self.wait.is_some()
    }
}

/// What a session brings to the end of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its engine.
    pub family: EngineFamily,
    /// How full its context is, once that is known.
    pub usage: Option<ContextUsage>,
    /// Its agent printed a marker in an earlier turn.
    pub prints_markers: bool,
    /// Nudges for a full context since the last reset.
    pub context_nudges: u8,
    /// Its full context was given up, and nothing has reset that.
    pub gave_up: bool,
    /// Nudges for a mid-task stop since the last message of the person.
    pub auto_continued: u8,
}

impl Default for Standing {
    fn default() -> Self {
        Standing {
            family: EngineFamily::Claude,
            usage: None,
            prints_markers: false,
            context_nudges: 0,
            gave_up: false,
            auto_continued: 0,
        }
    }
}

/// What becomes of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// A local command: the row goes back to what it was.
    AsBefore,
    /// The person stopped it.
    Stopped,
    /// The reply was cut off: stamped by the one emitter.
    Abort {
        /// Status of the stamped row.
        status: Status,
        /// Why.
        cause: AbortCause,
        /// The API's words, if any.
        words: Option<String>,
    },
    /// The child refused to start.
    LaunchError {
        /// Its words.
        words: String,
    },
    /// The CLI lost the conversation: replayed with a hand-over, nothing charged.
    ConversationGone,
    /// A known-terminal error.
    Terminal {
        /// Which.
        stop: StopReason,
        /// The API's words.
        words: String,
    },
    /// Another state of the row.
    Row {
        /// Status.
        status: Status,
        /// Pending action.
        pending: Option<PendingAction>,
        /// What the row says.
        words: Option<String>,
        /// Resumes at this time, if one is known.
        until: Option<Wall>,
    },
    /// Its context is full: it is continued (CS-08, CS-09).
    RecoverContext,
    /// The context was compacted for it: now it is asked to finish (CS-35).
    FinishAfterCompact,
    /// Its context stays full: the person has it (CS-15).
    GiveUpContext {
        /// The person is told: once until the next reset.
        tell: bool,
    },
    /// Its context is full and nobody continues it: that is switched off (CS-24).
    LeftFull {
        /// The line "This turn ended without a response" is due.
        nothing_said: bool,
        /// The API's words, if any.
        words: Option<String>,
    },
    /// It stopped mid-task and is nudged on (AC-02).
    AutoContinue,
    /// It stopped mid-task and nobody continues it (OD-45).
    Stalled,
    /// The agent waits: for a time, or for a background task.
    Wait {
        /// For what.
        work: DeferredWork,
    },
    /// The turn is finished.
    Finished {
        /// Its answer reached the person.
        delivered: bool,
        /// What is asked of the person, if anything.
        asked: Option<PendingAction>,
        /// The line "This turn ended without a response" is due.
        nothing_said: bool,
    },
}

/// One gate: claims the turn or lets it pass.
type Gate = fn(&Frozen, &Policy, &Limits) -> Option<Disposition>;

/// The gates in their order (contract section 6, turn-end order), with their names for the log.
pub const GATES: [(&str, Gate); 8] = [
    ("rate-limit", rate_limit::gate),
    ("wait", wait::gate),
    ("context-stall", context_stall::gate),
    ("question", question::gate),
    ("api-error", api_error::gate),
    ("thinking-only-endturn-recovery", empty::gate),
    ("auto-continue", auto_continue::gate),
    ("finish", finish::gate),
];

/// Runs the gates once. Returns the name of the gate that claimed the turn, and the row's future.
pub fn dispose(frozen: &Frozen, policy: &Policy, limits: &Limits) -> (&'static str, Disposition) {
    for (name, gate) in GATES {
        if let Some(disposition) = gate(frozen, policy, limits) {
            return (name, disposition);
        }
    }
    // the last gate claims every turn; this line keeps the function total
    ("finish", finish::finished(frozen))
}

#[cfg(test)]
mod tests;
