//! Whether a turn is finished: the one predicate that both nudges read, so that they cannot disagree
//! (CS-19, AC-03).

use super::Frozen;
use super::outcome::Outcome;

/// Why a turn counts as finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishedReason {
    /// A question, plan or permission is open.
    Asked,
    /// The agent marked its final message and wrote it.
    MarkerThenText,
    /// The agent wrote a final text, and its session knows no markers.
    PlainText,
}

/// `turnFinishedReason()`: why the turn is finished, or `None` for one that stopped before its end.
pub fn turn_finished_reason(frozen: &Frozen) -> Option<FinishedReason> {
    // rule: A-20, CS-19, AC-03
    if frozen.asked.is_some() {
        return Some(FinishedReason::Asked);
    }
    let cut = matches!(frozen.turn.stop_reason.as_deref(), Some("pause_turn" | "max_tokens"));
    if frozen.outcome != Outcome::Text || cut || !frozen.turn.delivered() {
        return None;
    }
    if frozen.turn.marked {
        return Some(FinishedReason::MarkerThenText);
    }
    (!frozen.standing.prints_markers).then_some(FinishedReason::PlainText)
}

/// A turn that stopped before its end with something said, and that asks nothing (OD-44).
pub fn is_mid_task_stop(frozen: &Frozen) -> bool {
    // rule: A-20
    let said = matches!(frozen.outcome, Outcome::Text | Outcome::Unfinished);
    said && turn_finished_reason(frozen).is_none() && !frozen.waits()
}
