//! Load in the reducer: the scan waits, nothing is charged, the escape valve opens at the eleventh tick,
//! and the stall watchdog reads the same signal.

use super::rig::Rig;
use super::{SHAPE, state_of};
use crate::session::{AbortCause, Gate, PendingAction, Status};

const MINUTE: u64 = 60_000;

fn stamped_under_load() -> Rig {
    let mut rig = Rig::new();
    rig.busy = Some(990);
    rig.pass(MINUTE);
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    assert_eq!(state_of(&rig), SHAPE);
    rig
}

// proves: LD-03, LD-04, LD-05, LD-06, LD-12
#[test]
fn a_saturated_machine_defers_the_scan_and_nothing_is_charged() {
    let mut rig = stamped_under_load();
    rig.pass(9 * MINUTE);
    assert_eq!((rig.spawned, rig.row().retry_attempts), (1, 0));
    assert_eq!(state_of(&rig), SHAPE);
    rig.busy = Some(100);
    let eased = rig.now().mono;
    rig.pass(5 * MINUTE);
    assert_eq!((rig.spawned, rig.row().retry_attempts), (2, 1));
    // the mean over a minute falls below the limit within seconds, the next tick acts
    assert!(rig.now().mono.since(eased) <= MINUTE + 15_000);
}

// proves: LD-07, LD-08, LD-09, LD-10, HD-14, INV-15, INV-18
#[test]
fn the_valve_opens_at_the_eleventh_tick_and_charges_nothing() {
    let mut rig = stamped_under_load();
    let (stamped, scans) = (rig.row().status_changed_at, rig.scans);
    for _ in 0..16 {
        rig.pass(20 * MINUTE);
        assert_eq!(rig.row().retry_attempts, 0);
        if rig.spawned == 2 {
            assert_eq!(rig.scans - scans, 11);
        }
        rig.spawn_and_shake();
        rig.die();
        assert_eq!(state_of(&rig), SHAPE, "never promoted under load");
        assert_eq!(rig.row().status_changed_at, stamped, "and never hidden anew");
    }
    assert_eq!(rig.spawned, 17);
}

// proves: LD-11
#[test]
fn a_tick_that_something_else_held_ends_the_streak() {
    let mut rig = stamped_under_load();
    let scans = rig.scans;
    while rig.scans < scans + 9 {
        rig.pass(1_000);
    }
    rig.set_gates(&[Gate { name: "ci".into(), opened_at: rig.now().wall }]);
    while rig.scans < scans + 10 {
        rig.pass(1_000);
    }
    rig.set_gates(&[]);
    while rig.scans < scans + 19 {
        rig.pass(1_000);
    }
    assert_eq!(rig.spawned, 1, "the valve stays shut");
    rig.pass(3 * MINUTE);
    assert_eq!(rig.spawned, 2);
}

// proves: LD-11
#[test]
fn a_row_that_left_the_shape_between_two_ticks_begins_a_new_streak() {
    let mut rig = stamped_under_load();
    let scans = rig.scans;
    while rig.scans < scans + 9 {
        rig.pass(1_000);
    }
    rig.send("try this");
    rig.spawn_and_shake();
    rig.die();
    assert_eq!(state_of(&rig), SHAPE);
    let (scans, spawned) = (rig.scans, rig.spawned);
    rig.pass(20 * MINUTE);
    assert_eq!((rig.spawned, rig.scans - scans), (spawned + 1, 11));
}

// proves: LD-11
#[test]
fn ticks_that_load_does_not_defer_end_the_streak_also_when_nothing_is_looked_at() {
    for calm in [false, true] {
        let mut rig = stamped_under_load();
        let scans = rig.scans;
        while rig.scans < scans + 9 {
            rig.pass(1_000);
        }
        // two ticks with recovery off, or calm ones at which nobody can tell what is stamped
        (rig.blind, rig.busy) = (calm, Some(if calm { 100 } else { 990 }));
        rig.recovery(calm, false);
        rig.pass(2 * MINUTE);
        (rig.blind, rig.busy) = (false, Some(990));
        rig.recovery(true, false);
        let mut ticks = 0;
        while rig.spawned == 1 {
            let scans = rig.scans;
            rig.pass(1_000);
            ticks += rig.scans - scans;
        }
        assert_eq!((ticks, rig.row().retry_attempts), (11, 0), "calm: {calm}");
    }
}

// proves: SW-01, SW-02, SW-03, LD-03, LD-12
#[test]
fn the_wait_for_the_first_output_is_longer_while_the_machine_is_busy() {
    let silent_for = |busy: u16| {
        let mut rig = Rig::new();
        rig.busy = Some(busy);
        rig.pass(MINUTE);
        rig.create("hello");
        rig.spawn_and_shake();
        let from = rig.now().mono;
        while state_of(&rig) == (Status::Running, None) {
            rig.pass(1_000);
        }
        let row = rig.row();
        assert_eq!(row.abort_cause, Some(AbortCause::StallTimeout));
        assert_eq!(
            (row.status, row.pending),
            (Status::NeedsYou, Some(PendingAction::ResponseAborted))
        );
        rig.now().mono.since(from)
    };
    assert_eq!(silent_for(100), 120_000);
    assert_eq!(silent_for(990), 360_000);

    // the load falls after 200 s: the next look ends it
    let mut rig = Rig::new();
    rig.busy = Some(990);
    rig.pass(MINUTE);
    rig.create("hello");
    rig.spawn_and_shake();
    let from = rig.now().mono;
    rig.pass(200_000);
    assert_eq!(state_of(&rig), (Status::Running, None));
    rig.busy = Some(0);
    while state_of(&rig) == (Status::Running, None) {
        rig.pass(1_000);
    }
    assert!(rig.now().mono.since(from) < 260_000);
}

// proves: A-02
#[test]
fn the_handshake_may_take_a_minute_on_a_busy_machine() {
    let tried_again = |busy: u16| {
        let mut rig = Rig::new();
        rig.busy = Some(busy);
        rig.pass(MINUTE);
        rig.create("hello");
        rig.spawn();
        let (from, stops) = (rig.now().mono, rig.stops);
        while rig.stops == stops {
            rig.pass(1_000);
        }
        rig.now().mono.since(from)
    };
    assert_eq!(tried_again(100), 15_000);
    assert_eq!(tried_again(990), 60_000);
}
