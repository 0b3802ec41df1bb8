//! Gate 4: a turn that completed out of room is continued, a few times, and then left to the person
//! (CS). It goes before the recovery of empty turns: replaying into a full context fails again.

use super::finished_reason::{is_mid_task_stop, turn_finished_reason};
use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::context::{CONTEXT_STALL_RECOVER_PERCENT, ContextUsage};
use crate::limits::Limits;
use crate::settings::Policy;
use alloc::string::String;

/// At most this many nudges in a row (CS-14).
pub const CONTEXT_STALL_RECOVER_MAX: u8 = 3;

/// All that the decision reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallFacts {
    /// How full the context is; `None` when unknown.
    pub usage: Option<ContextUsage>,
    /// The turn proved that there is no room: it compacted and answered nothing, or the API said so.
    pub known_out_of_room: bool,
    /// A nudge cannot help any more.
    pub hopeless: bool,
    /// The turn did not complete: it was stopped, cut off or refused.
    pub cut_off: bool,
    /// A question, plan or permission is open.
    pub asked: bool,
    /// The session waits on purpose.
    pub waits: bool,
    /// The turn delivered its final answer.
    pub finished: bool,
    /// Nudges since the last reset.
    pub nudges: u8,
    /// It was given up, and nothing has reset that.
    pub gave_up: bool,
}

/// What becomes of a turn that may have run out of room (CS-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallRecovery {
    /// It is continued.
    Recover,
    /// It is left to the person, who is told once.
    GiveUp,
    /// Nothing, and why.
    None(NoStall),
}

/// Why the recovery does not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStall {
    /// The turn is another recovery's business.
    CutOff,
    /// The agent asked something (CS-05).
    Asked,
    /// The agent waits on purpose (CS-06).
    Waits,
    /// The answer was delivered (CS-07).
    Finished,
    /// Nobody knows how full the context is (CS-04).
    Unknown,
    /// There is room.
    Room,
    /// It was given up already.
    GaveUp,
}

/// `decideContextStallRecovery`: pure and total (CS-18).
pub fn decide_context_stall_recovery(facts: &StallFacts, limits: &Limits) -> StallRecovery {
    // rule: CS-02, CS-03, CS-04, CS-05, CS-06, CS-07, CS-14, CS-15, CS-18, CS-23, CS-28, CS-31, CS-38
    let held = [
        (facts.asked, NoStall::Asked),
        (facts.waits, NoStall::Waits),
        (facts.finished, NoStall::Finished),
        (facts.cut_off, NoStall::CutOff),
    ];
    if let Some((_, why)) = held.into_iter().find(|(holds, _)| *holds) {
        return StallRecovery::None(why);
    }
    if !facts.known_out_of_room && !facts.hopeless {
        match facts.usage {
            None => return StallRecovery::None(NoStall::Unknown),
            Some(usage) if !usage.at_least(CONTEXT_STALL_RECOVER_PERCENT) => {
                return StallRecovery::None(NoStall::Room);
            }
            Some(_) => {}
        }
    }
    if facts.gave_up {
        return StallRecovery::None(NoStall::GaveUp);
    }
    if facts.hopeless || facts.nudges >= limits.context_stall_recover_max {
        return StallRecovery::GiveUp;
    }
    StallRecovery::Recover
}

/// The facts of a turn's end.
pub fn stall_facts(frozen: &Frozen) -> StallFacts {
    let standing = &frozen.standing;
    let (cut_off, hopeless, said_so) = match &frozen.outcome {
        Outcome::Text | Outcome::Dropped | Outcome::Unfinished => (false, false, false),
        Outcome::OutOfRoom { .. } => (false, false, true),
        Outcome::OutOfRoomGiveUp { .. } | Outcome::ForcedCompact { failed: Some(_) } => {
            (false, true, true)
        }
        Outcome::ForcedCompact { failed: None }
        | Outcome::LocalCommand { .. }
        | Outcome::Stopped
        | Outcome::ForeignInterrupt
        | Outcome::LaunchError { .. }
        | Outcome::ConversationGone
        | Outcome::RateLimited { .. }
        | Outcome::KnownTerminal { .. }
        | Outcome::AuthRequired { .. }
        | Outcome::Aborted { .. }
        | Outcome::ApiError { .. } => (true, false, false),
    };
    StallFacts {
        usage: standing.usage,
        known_out_of_room: said_so || (frozen.turn.compacted && !frozen.turn.visible_answer),
        hopeless,
        cut_off,
        asked: frozen.asked.is_some(),
        waits: frozen.waits(),
        finished: turn_finished_reason(frozen).is_some(),
        nudges: standing.context_nudges,
        gave_up: standing.gave_up,
    }
}

pub(super) fn gate(frozen: &Frozen, policy: &Policy, limits: &Limits) -> Option<Disposition> {
    // rule: CS-01, CS-24
    if frozen.outcome == (Outcome::ForcedCompact { failed: None }) {
        // rule: CS-35
        return Some(if policy.context_stall_recovery() {
            Disposition::FinishAfterCompact
        } else {
            left(false, None)
        });
    }
    let decided = decide_context_stall_recovery(&stall_facts(frozen), limits);
    match decided {
        // a give-up is not followed by a hidden retry
        StallRecovery::None(NoStall::GaveUp) => Some(Disposition::GiveUpContext { tell: false }),
        StallRecovery::None(_) => None,
        StallRecovery::Recover | StallRecovery::GiveUp if !policy.context_stall_recovery() => {
            switched_off(frozen, policy)
        }
        StallRecovery::Recover => Some(Disposition::RecoverContext),
        StallRecovery::GiveUp => Some(Disposition::GiveUpContext { tell: true }),
    }
}

/// The stalled turn lands in the inbox, unless the other nudge takes it (AC-04).
fn switched_off(frozen: &Frozen, policy: &Policy) -> Option<Disposition> {
    // rule: CS-24, AC-04
    match &frozen.outcome {
        Outcome::OutOfRoom { words } | Outcome::OutOfRoomGiveUp { words } => {
            Some(left(false, Some(words)))
        }
        Outcome::Text | Outcome::Unfinished
            if policy.auto_continue() && is_mid_task_stop(frozen) =>
        {
            None
        }
        Outcome::Text
        | Outcome::Unfinished
        | Outcome::Dropped
        | Outcome::ForcedCompact { .. }
        | Outcome::LocalCommand { .. }
        | Outcome::Stopped
        | Outcome::ForeignInterrupt
        | Outcome::LaunchError { .. }
        | Outcome::ConversationGone
        | Outcome::RateLimited { .. }
        | Outcome::KnownTerminal { .. }
        | Outcome::AuthRequired { .. }
        | Outcome::Aborted { .. }
        | Outcome::ApiError { .. } => Some(left(frozen.outcome == Outcome::Dropped, None)),
    }
}

fn left(nothing_said: bool, words: Option<&String>) -> Disposition {
    Disposition::LeftFull { nothing_said, words: words.cloned() }
}
