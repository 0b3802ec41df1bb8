//! Planted bugs: what a careless writer would have done, at the border between the reducer and the
//! world. Each must be caught by a named invariant within a bounded number of seeds.

use crate::clock::HOUR;
use crate::invariants::Broken;
use crate::troubles::Trouble;
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
    /// One spawn call more than there are slots.
    FifthSlot,
    /// A launch that failed for a moment turns its row red.
    HiccupRed,
    /// Every fifth failure is told.
    EveryFifthTold,
    /// The gap between two launches never grows.
    BackoffAnew,
    /// Of those who wait for their launch the last one comes first.
    LastComeFirst,
    /// The launch of a session that was taken back is made all the same.
    CancelledLaunched,
    /// What the person had stopped is found as running after a crash.
    StopForgotten,
    /// The switch of the environment for relentless relaunch is not read.
    RelaunchSwitchUnread,
    /// Nobody looks what the machine has left.
    RoomUnread,
    /// All launches are made at once.
    NoGap,
    /// A person is told of a launch after half a minute.
    ToldTooSoon,
    /// One nudge more for a full context.
    FourthNudge,
    /// One nudge more for a mid-task stop.
    FourthContinue,
    /// Claude is made to compact.
    ClaudeCompacted,
    /// Another engine is asked to go on, and never made to compact.
    NeverCompacted,
    /// That it gave up is told twice.
    ToldTwice,
    /// The answer of a turn that filled the context is not seen.
    AnswerUnread,
    /// A turn that deliberately waits is told as the person's.
    WaitCalls,
    /// A wake-up that has fired is kept.
    WakeKept,
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
        } else if is(Bug::FifthSlot) {
            Limits { spawn_slots: 5, ..limits }
        } else if is(Bug::EveryFifthTold) {
            Limits { relaunch_note_every: 5, ..limits }
        } else if is(Bug::BackoffAnew) {
            Limits { relaunch_max_ms: limits.relaunch_first_ms, ..limits }
        } else if is(Bug::RoomUnread) {
            let (headroom_descriptors, headroom_processes, headroom_memory_mib) = (0, 0, 0);
            Limits { headroom_descriptors, headroom_processes, headroom_memory_mib, ..limits }
        } else if is(Bug::NoGap) {
            Limits { spawn_gap_ms: 0, ..limits }
        } else if is(Bug::FourthNudge) {
            Limits { context_stall_recover_max: 4, ..limits }
        } else if is(Bug::FourthContinue) {
            Limits { auto_continue_max: 4, ..limits }
        } else if is(Bug::ToldTooSoon) {
            Limits { cannot_launch_ms: 31_000, ..limits }
        } else {
            limits
        }
    }

    pub(crate) fn switches(bug: Option<Bug>, switches: KillSwitches) -> KillSwitches {
        let read = |on: bool, unread: Bug| on && bug != Some(unread);
        KillSwitches {
            aborted_response_recovery: read(switches.aborted_response_recovery, Bug::SwitchUnread),
            relentless_relaunch: read(switches.relentless_relaunch, Bug::RelaunchSwitchUnread),
            ..switches
        }
    }
}

/// Runs worlds with the bug until one of the invariants catches it.
fn caught(bug: Bug, names: &[&str]) {
    caught_in(bug, names, |world| world.live(30 * HOUR));
}

/// The same in mornings on which many sessions are launched.
fn caught_at_launch(bug: Bug, names: &[&str]) {
    caught_in(bug, names, World::live_a_morning);
}

fn caught_in(bug: Bug, names: &[&str], live: impl Fn(&mut World) -> Result<(), Broken>) {
    const SEEDS: u64 = 60;
    for seed in 1..=SEEDS {
        let mut world = World::new(seed, Some(bug));
        if let Err(broken) = live(&mut world) {
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
    // the wait for the next launch is out of step, too
    caught(Bug::SleepCounts, &["INV-09", "INV-56"]);
}

#[test]
fn a_switch_of_the_environment_that_is_not_read_is_caught() {
    // a switch that is not read hides what the person should see, too
    caught(Bug::SwitchUnread, &["INV-46", "INV-26"]);
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

#[test]
fn a_lasting_error_that_is_retried_is_caught() {
    caught_at_launch(Bug::LastingRetried, &["INV-60"]);
}

#[test]
fn a_vanished_child_that_nobody_sees_is_caught() {
    caught(Bug::VanishedUnseen, &["INV-53"]);
}

#[test]
fn a_fifth_slot_is_caught() {
    caught_at_launch(Bug::FifthSlot, &["INV-57"]);
}

#[test]
fn a_hiccup_that_turns_its_row_red_is_caught() {
    caught_at_launch(Bug::HiccupRed, &["INV-59"]);
}

#[test]
fn a_line_at_every_fifth_failure_is_caught() {
    caught_at_launch(Bug::EveryFifthTold, &["INV-58"]);
}

#[test]
fn a_backoff_that_begins_anew_is_caught() {
    caught_at_launch(Bug::BackoffAnew, &["INV-56"]);
}

#[test]
fn a_line_in_which_the_last_come_first_is_caught() {
    caught_at_launch(Bug::LastComeFirst, &["INV-52"]);
}

#[test]
fn a_cancelled_relaunch_that_is_launched_is_caught() {
    caught_at_launch(Bug::CancelledLaunched, &["RS-23"]);
}

#[test]
fn a_stopped_session_that_a_crash_brings_back_is_caught() {
    caught(Bug::StopForgotten, &["INV-44"]);
}

#[test]
fn a_switch_for_relaunch_that_is_not_read_is_caught() {
    caught_at_launch(Bug::RelaunchSwitchUnread, &["INV-56", "INV-58"]);
}

#[test]
fn a_launch_on_a_machine_without_room_is_caught() {
    caught_at_launch(Bug::RoomUnread, &["headroom"]);
}

#[test]
fn launches_without_a_gap_are_caught() {
    caught_at_launch(Bug::NoGap, &["OD-61"]);
}

#[test]
fn a_person_told_too_soon_is_caught() {
    caught_at_launch(Bug::ToldTooSoon, &["A-14"]);
}

#[test]
fn a_fourth_nudge_is_caught() {
    caught(Bug::FourthNudge, &["INV-17"]);
}

#[test]
fn a_fourth_auto_continue_is_caught() {
    caught_in(Bug::FourthContinue, &["INV-17"], |world| {
        world.store.settings.auto_continue_mid_task_enabled = true;
        world.faults.mostly = Some(Trouble::MidTask);
        world.live(30 * HOUR)
    });
}

#[test]
fn a_claude_that_is_made_to_compact_is_caught() {
    caught(Bug::ClaudeCompacted, &["INV-61"]);
}

#[test]
fn another_engine_that_is_never_made_to_compact_is_caught() {
    caught(Bug::NeverCompacted, &["INV-61"]);
}

#[test]
fn a_give_up_that_is_told_twice_is_caught() {
    caught(Bug::ToldTwice, &["INV-62"]);
}

#[test]
fn a_nudge_after_a_delivered_answer_is_caught() {
    caught(Bug::AnswerUnread, &["INV-23"]);
}

#[test]
fn a_wait_that_calls_the_person_is_caught() {
    caught(Bug::WaitCalls, &["WD-01"]);
}

#[test]
fn a_wake_up_that_is_kept_after_it_fired_is_caught() {
    caught(Bug::WakeKept, &["A-09"]);
}
