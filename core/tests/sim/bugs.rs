//! Planted bugs: what a careless writer would have done, at the border between the reducer and the
//! world. Each must be caught by a named invariant within a bounded number of seeds.

use crate::clock::HOUR;
use crate::world::World;
use omniscio_core::id::SessionId;
use omniscio_core::limits::Limits;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::settings::Policy;
use omniscio_core::supervisor::{Step, Write};
use omniscio_core::time::Day;
use omniscio_core::verdict::Actor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    NoDebounce,
    /// The time of the last restart is not stored.
    DebounceInMemory,
    NoCap,
    ActBeforeSave,
    /// A message of the person resets nothing in the store.
    NoReset,
    /// While no app runs, finished turns are stamped as cut off, their delivery forgotten.
    DeliveredStamped,
    /// With recovery off an abort leaves no mark.
    StampGated,
    /// The end of the output concludes a turn again that its result had concluded.
    ConcludedTwice,
}

impl Bug {
    pub(crate) fn limits(bug: Option<Bug>) -> Limits {
        let limits = Limits::default();
        match bug {
            Some(Bug::NoDebounce) => Limits { replay_debounce_ms: 0, ..limits },
            Some(Bug::NoCap) => Limits { daily_attempt_cap: 250, ..limits },
            Some(
                Bug::DebounceInMemory
                | Bug::ActBeforeSave
                | Bug::NoReset
                | Bug::DeliveredStamped
                | Bug::StampGated
                | Bug::ConcludedTwice,
            )
            | None => limits,
        }
    }

    /// Changes what a step writes. Names the sessions whose rows the reducer must be told of.
    pub(crate) fn tamper(bug: Option<Bug>, step: &mut Step, policy: &Policy) -> Vec<SessionId> {
        let Some(bug) = bug else { return Vec::new() };
        let mut told = Vec::new();
        for at in 0..step.writes.len() {
            let Write::Row { after, reason, .. } = &step.writes[at] else {
                continue;
            };
            let id = after.id;
            // the queue may go on in the same step: then the turn is not the last one
            let last = step.writes[at..].iter().all(|write| match write {
                Write::Row { after, .. } => after.id != id || after.status == Status::NeedsYou,
                Write::Message(_)
                | Write::MessageState { .. }
                | Write::Block { .. }
                | Write::Settings(_) => true,
            });
            let finished =
                reason == "finished" && after.delivered && after.pending.is_none() && last;
            let stamp = after.pending == Some(PendingAction::ResponseAborted);
            match bug {
                Bug::StampGated if stamp && !policy.aborted_response_recovery() => {
                    rewrite(step, at, id, |row| row.pending = None);
                }
                Bug::ConcludedTwice if finished => {
                    let before = after.clone();
                    let mut again = before.clone();
                    again.status = Status::Error;
                    again.pending = Some(PendingAction::ResponseAborted);
                    let reason = "process_exit".to_string();
                    step.writes.push(Write::Row {
                        before: Some(before),
                        after: again,
                        actor: Actor::Abort,
                        reason,
                    });
                }
                Bug::NoDebounce
                | Bug::DebounceInMemory
                | Bug::NoCap
                | Bug::ActBeforeSave
                | Bug::NoReset
                | Bug::DeliveredStamped
                | Bug::StampGated
                | Bug::ConcludedTwice => continue,
            }
            told.push(id);
            break;
        }
        told
    }
}

/// The reset of the budget that a message brings stays in memory: what the store had, by session.
pub(crate) fn unstored_resets(writes: &[Write]) -> Vec<(SessionId, (u8, Option<Day>))> {
    let lost = |write: &Write| match write {
        Write::Row { before: Some(before), after, reason, .. } => {
            let reset = reason == "message written" && before.retry_attempts > 0;
            reset.then_some((after.id, (before.retry_attempts, before.retry_day)))
        }
        Write::Row { before: None, .. }
        | Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => None,
    };
    writes.iter().filter_map(lost).collect()
}

/// Changes the row of one write, and the same row in every later one.
fn rewrite(step: &mut Step, from: usize, id: SessionId, change: impl Fn(&mut SessionRow)) {
    for (at, write) in step.writes.iter_mut().enumerate().skip(from) {
        if let Write::Row { before, after, .. } = write
            && after.id == id
        {
            if let Some(before) = before.as_mut().filter(|_| at > from) {
                change(before);
            }
            change(after);
        }
    }
}

/// Runs worlds with the bug until one of the invariants catches it.
fn caught(bug: Bug, names: &[&str]) {
    const SEEDS: u64 = 60;
    for seed in 1..=SEEDS {
        let mut world = World::new(seed, Some(bug));
        if let Err(broken) = world.live(30 * HOUR) {
            assert!(names.contains(&broken.name), "{bug:?}: {}", world.story(&broken));
            println!("{bug:?} is caught by {} in seed {seed}: {}", broken.name, broken.text);
            return;
        }
    }
    panic!("{bug:?} was not caught in {SEEDS} seeds");
}

#[test]
fn no_debounce_is_caught() {
    caught(Bug::NoDebounce, &["INV-01"]);
}

#[test]
fn a_debounce_in_memory_only_is_caught() {
    caught(Bug::DebounceInMemory, &["INV-01"]);
}

#[test]
fn no_daily_cap_is_caught() {
    caught(Bug::NoCap, &["INV-11"]);
}

#[test]
fn acts_before_the_commit_are_caught() {
    caught(Bug::ActBeforeSave, &["INV-44"]);
}

#[test]
fn a_message_that_resets_no_budget_is_caught() {
    caught(Bug::NoReset, &["INV-11"]);
}

#[test]
fn the_replay_of_a_delivered_answer_is_caught() {
    caught(Bug::DeliveredStamped, &["INV-20"]);
}

#[test]
fn a_stamp_gated_by_the_switch_is_caught() {
    caught(Bug::StampGated, &["INV-47"]);
}

#[test]
fn a_turn_concluded_twice_is_caught() {
    caught(Bug::ConcludedTwice, &["INV-10"]);
}
