//! What a finished turn means: one ordered list of gates over frozen facts; the first that claims
//! the turn wins.
//!
//! The order is the contract's turn-end order (section 6). Steps whose rules come with later work
//! (deliberate waits, context recovery, gate reports, Auto-Continue, the summary card) have no
//! entry yet; their place is between the ones that stand here.

pub mod outcome;

mod api_error;
mod empty;
mod finish;
mod question;
mod rate_limit;

use crate::limits::Limits;
use crate::session::{AbortCause, PendingAction, Status, StopReason};
use crate::settings::Policy;
use crate::time::Wall;
use crate::turn::TurnFacts;
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
pub const GATES: [(&str, Gate); 5] = [
    ("rate-limit", rate_limit::gate),
    ("question", question::gate),
    ("api-error", api_error::gate),
    ("thinking-only-endturn-recovery", empty::gate),
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
