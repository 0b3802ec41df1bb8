//! Planted bugs: what a careless writer would have done, at the border between the reducer and the
//! world. Each must be caught by a named invariant within a bounded number of seeds.

use crate::clock::HOUR;
use crate::world::World;
use omniscio_core::limits::Limits;
use omniscio_core::settings::KillSwitches;

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
    /// Nobody looks whether another program has the conversation open.
    HeldResumed,
    /// After a sleep of the machine every silence counts as if it had been awake.
    SleepCounts,
    /// The switch of the environment is not read.
    SwitchUnread,
    /// The ladder has one rung more than its cap.
    CapOffByOne,
    /// A rung that is held is taken all the same.
    RungUnderHold,
    /// A forced replay counts as an attempt.
    ValveCharges,
    /// The escape valve opens six times a minute.
    ValveUnpaced,
    /// A row is given up while the machine is saturated.
    PromotionUnderLoad,
    /// A rung that failed without a word hides the row again.
    ReentryHides,
    /// The hide clock begins anew after a replay that showed nothing.
    HideClockRestarts,
    /// Whatever is given up counts as a worker that never came to life.
    OrphanWithContent,
    /// A launch that fails for good is told as one that passes.
    LastingRetried,
    /// The liveness watchdog is told that every child lives.
    VanishedUnseen,
}

impl Bug {
    pub(crate) fn limits(bug: Option<Bug>) -> Limits {
        let limits = Limits::default();
        let is = |other: Bug| bug == Some(other);
        if is(Bug::NoDebounce) {
            Limits { replay_debounce_ms: 0, ..limits }
        } else if is(Bug::NoCap) {
            Limits { daily_attempt_cap: 250, ..limits }
        } else if is(Bug::CapOffByOne) {
            Limits { ladder_rungs: 13, ..limits }
        } else if is(Bug::ValveUnpaced) {
            Limits { scan_interval_ms: 10_000, escape_valve_ticks: 60, ..limits }
        } else {
            limits
        }
    }

    pub(crate) fn switches(bug: Option<Bug>, switches: KillSwitches) -> KillSwitches {
        let unread = bug == Some(Bug::SwitchUnread);
        KillSwitches {
            aborted_response_recovery: switches.aborted_response_recovery && !unread,
            ..switches
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

#[test]
fn a_resume_of_a_conversation_open_elsewhere_is_caught() {
    caught(Bug::HeldResumed, &["A-12"]);
}

#[test]
fn a_sleep_without_a_fresh_grace_is_caught() {
    caught(Bug::SleepCounts, &["INV-09"]);
}

#[test]
fn a_switch_of_the_environment_that_is_not_read_is_caught() {
    caught(Bug::SwitchUnread, &["INV-46"]);
}

#[test]
fn a_thirteenth_rung_is_caught() {
    caught(Bug::CapOffByOne, &["INV-13", "INV-19"]);
}

#[test]
fn a_rung_that_is_taken_under_a_hold_is_caught() {
    caught(Bug::RungUnderHold, &["INV-15"]);
}

#[test]
fn a_valve_that_charges_is_caught() {
    caught(Bug::ValveCharges, &["INV-15"]);
}

#[test]
fn a_valve_without_a_pace_is_caught() {
    caught(Bug::ValveUnpaced, &["INV-18"]);
}

#[test]
fn a_promotion_under_load_is_caught() {
    caught(Bug::PromotionUnderLoad, &["INV-41"]);
}

#[test]
fn a_failed_rung_that_hides_the_row_is_caught() {
    caught(Bug::ReentryHides, &["INV-37"]);
}

#[test]
fn a_hide_clock_that_begins_anew_is_caught() {
    caught(Bug::HideClockRestarts, &["INV-27"]);
}

#[test]
fn an_orphan_with_content_that_is_put_away_is_caught() {
    caught(Bug::OrphanWithContent, &["INV-43"]);
}
