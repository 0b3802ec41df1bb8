//! The re-arm ladder in the reducer: twelve rungs to the hard cap, what resets it, what holds it, and
//! that a rung leaves the row red until something real was said.

use super::rig::Rig;
use super::{SHAPE, state_of};
use crate::attention::{Section, attention};
use crate::ipc::Reply;
use crate::limits::Limits;
use crate::session::{Gate, Holder, PendingAction, Status, StopReason};
use crate::settings::{Policy, SettingChange};
use crate::supervisor::Command;
use crate::verdict::Source;
use alloc::vec::Vec;

const MINUTE: u64 = 60_000;

fn failed(rig: &Rig) -> bool {
    rig.row().pending == Some(PendingAction::RecoveryFailed)
}

/// Lets the next rung come, and says how long it took.
fn next_rung(rig: &mut Rig) -> u64 {
    let (from, spawned) = (rig.now().mono, rig.spawned);
    rig.pass(40 * MINUTE);
    assert_eq!(rig.spawned, spawned + 1, "a rung");
    rig.now().mono.since(from)
}

// proves: RA-01, RA-02, RA-03, RA-04, RA-14, RA-15, RA-16, A-25, SC-10, SC-28, INV-13, INV-14
#[test]
fn a_session_that_always_fails_takes_twelve_rungs_and_then_rests_for_good() {
    let mut rig = Rig::new();
    rig.give_up();
    let entered = rig.row().status_changed_at;
    let mut gaps = Vec::new();
    for rung in 1..=12 {
        gaps.push(next_rung(&mut rig));
        assert_eq!(rig.row().ladder.rungs, rung);
        assert_eq!(state_of(&rig), (Status::Starting, Some(PendingAction::RecoveryFailed)));
        rig.spawn_and_shake();
        // red all the while: no real output yet
        assert_eq!(state_of(&rig), (Status::Running, Some(PendingAction::RecoveryFailed)));
        let turn = rig.row().turn.expect("a turn");
        assert_eq!(turn.replay, Some(Source::ReArm));
        let seen = attention(&rig.view(), &Policy::default(), &Limits::default(), rig.now());
        assert_eq!((seen.section, seen.label), (Section::Interrupted, "Recovery failed"));
        rig.die();
        assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::RecoveryFailed)));
    }
    let half_minutes: Vec<u64> = gaps.iter().map(|gap| gap / 30_000).collect();
    // the debounce of the last replay may hold the first rungs
    assert!(half_minutes[2..].iter().eq([4, 8, 16, 32, 60, 60, 60, 60, 60, 60].iter()), "{gaps:?}");
    let row = rig.row();
    assert_eq!((row.stop_reason, row.ladder.due), (Some(StopReason::HardCap), None));
    assert_eq!((row.retry_attempts, row.status_changed_at), (3, entered));
    assert_eq!(rig.notified, 1, "told once in the whole episode");
    let spawned = rig.spawned;
    rig.pass(30 * 24 * 60 * MINUTE);
    assert_eq!(rig.spawned, spawned, "nothing retries it any more");
}

// proves: RA-13, RF-12, RF-02
#[test]
fn a_row_that_another_writer_gave_up_climbs_the_same_ladder_and_is_never_put_away() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.answer_turn("Here you are.");
    rig.send("and now?");
    rig.die();
    // written straight into the row, with nothing of the ladder
    rig.tamper(|row| {
        (row.status, row.pending) = (Status::Error, Some(PendingAction::RecoveryFailed));
        row.turn = None;
    });
    rig.crash();
    let spawned = rig.spawned;
    for rung in 1..=12 {
        next_rung(&mut rig);
        assert_eq!(rig.row().ladder.rungs, rung);
        rig.spawn_and_shake();
        rig.die();
    }
    assert_eq!(rig.row().stop_reason, Some(StopReason::HardCap));
    for _ in 0..3 {
        rig.crash();
        rig.pass(10 * 24 * 60 * MINUTE);
    }
    let row = rig.row();
    assert_eq!((row.status, row.pending), (Status::Error, Some(PendingAction::RecoveryFailed)));
    assert_eq!((rig.spawned, row.archive_reason), (spawned + 12, None));
}

// proves: RA-09, RA-16
#[test]
fn the_first_real_output_of_a_rung_makes_the_row_an_ordinary_running_one() {
    let mut rig = Rig::new();
    rig.give_up();
    next_rung(&mut rig);
    rig.spawn_and_shake();
    rig.tool("t1", "make");
    assert_eq!(state_of(&rig), (Status::Running, None));
    rig.answer_turn("Done after all.");
    let row = rig.row();
    assert_eq!((row.status, row.pending, row.delivered), (Status::NeedsYou, None, true));
    assert_eq!((row.ladder.rungs, row.ladder.due, row.stop_reason), (0, None, None));
    assert_eq!(rig.notified, 2, "the answer is news");
}

// proves: A-25, RA-15, RF-01
#[test]
fn output_and_then_an_abort_is_an_ordinary_cut_off_whose_ladder_goes_on() {
    let mut rig = Rig::new();
    rig.give_up();
    next_rung(&mut rig);
    rig.spawn_and_shake();
    rig.tool("t1", "make");
    rig.die();
    assert_eq!(state_of(&rig), SHAPE);
    while !failed(&rig) {
        rig.pass(1_000);
    }
    assert_eq!(rig.row().ladder.rungs, 1, "the position is kept");
    assert_eq!(rig.notified, 1, "no turn was concluded in between");
    next_rung(&mut rig);
    assert_eq!(rig.row().ladder.rungs, 2);
}

// proves: RA-09, RT-05, RT-07, RF-07
#[test]
fn retry_and_a_message_begin_the_ladder_anew() {
    for by_message in [false, true] {
        let mut rig = Rig::new();
        rig.give_up();
        for _ in 0..12 {
            next_rung(&mut rig);
            rig.spawn_and_shake();
            rig.die();
        }
        assert_eq!(rig.row().stop_reason, Some(StopReason::HardCap));
        let spawned = rig.spawned;
        if by_message {
            rig.send("try again");
        } else {
            let retry = Command::Retry { session: rig.id() };
            assert_eq!(rig.command(retry), Ok(Reply::Done));
        }
        rig.spawn_and_shake();
        let row = rig.row();
        assert_eq!((row.status, row.pending), (Status::Running, None));
        assert_eq!((row.ladder.rungs, row.stop_reason, row.retry_attempts), (0, None, 0));
        assert_eq!(rig.spawned, spawned + 1);
        rig.die();
        assert_eq!(state_of(&rig), SHAPE, "and the scan has its two attempts again");
    }
}

// proves: RF-07, A-26
#[test]
fn a_message_takes_over_from_a_rung_in_flight() {
    let mut rig = Rig::new();
    rig.give_up();
    next_rung(&mut rig);
    rig.spawn_and_shake();
    rig.send("leave that");
    rig.spawn_and_shake();
    assert_eq!(state_of(&rig), (Status::Running, None));
    assert_eq!((rig.last_text().as_str(), rig.row().ladder.rungs), ("leave that", 0));
    rig.answer_turn("All right.");
    assert_eq!(state_of(&rig), (Status::NeedsYou, None));
}

// proves: RT-20
#[test]
fn a_rung_that_answers_before_the_retry_has_looked_goes_on() {
    let mut rig = Rig::new();
    rig.give_up();
    next_rung(&mut rig);
    rig.spawn_and_shake();
    let (spawned, stops) = (rig.spawned, rig.stops);
    rig.hold_looks = true;
    let retry = Command::Retry { session: rig.id() };
    assert_eq!(rig.command(retry), Ok(Reply::Done));
    rig.tool("t1", "make");
    rig.release_looks();
    rig.answer_turn("Done after all.");
    assert_eq!((rig.spawned, rig.stops), (spawned, stops));
    assert_eq!(state_of(&rig), (Status::NeedsYou, None));
}

#[test]
fn a_retry_that_cannot_look_leaves_a_rung_that_runs_alone() {
    let mut rig = Rig::new();
    rig.give_up();
    next_rung(&mut rig);
    rig.spawn_and_shake();
    let (spawned, stops) = (rig.spawned, rig.stops);
    rig.blind = true;
    let retry = Command::Retry { session: rig.id() };
    assert_eq!(rig.command(retry), Ok(Reply::Done));
    rig.pass(10_000);
    assert_eq!((rig.spawned, rig.stops), (spawned, stops));
    rig.answer_turn("Done after all.");
    assert_eq!(state_of(&rig), (Status::NeedsYou, None));
}

// proves: RA-07, RF-02
#[test]
fn the_ladder_survives_restarts_of_the_app() {
    let mut rig = Rig::new();
    rig.give_up();
    for _ in 0..5 {
        next_rung(&mut rig);
        rig.spawn_and_shake();
        rig.die();
    }
    let due = rig.row().ladder.due.expect("a next rung");
    rig.pass(MINUTE);
    rig.crash();
    assert_eq!(rig.row().ladder.due, Some(due));
    rig.pass(40 * MINUTE);
    assert_eq!((rig.now().wall, rig.row().ladder.rungs), (due, 6), "at its time, not at once");
    // killed in the middle of the rung: it counts, and the next has its own gap
    rig.crash();
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::RecoveryFailed)));
    let row = rig.row();
    assert_eq!((row.ladder.rungs, row.ladder.due), (6, Some(rig.now().wall.plus(30 * MINUTE))));
}

// proves: RA-12
#[test]
fn a_hold_postpones_the_rung_and_takes_none() {
    for hold in 0..4 {
        let mut rig = Rig::new();
        rig.give_up();
        match hold {
            0 => rig.folder = false,
            1 => rig.holder = Some(Holder { pid: 9, start: 9, folder: "/x".into() }),
            2 => rig.busy = Some(990),
            _ => rig.set_gates(&[Gate { name: "ci".into(), opened_at: rig.now().wall }]),
        }
        let spawned = rig.spawned;
        rig.pass(6 * 60 * MINUTE);
        let row = rig.row();
        assert_eq!((rig.spawned, row.ladder.rungs, row.retry_attempts), (spawned, 0, 3), "{hold}");
        assert_eq!(row.pending, Some(PendingAction::RecoveryFailed), "{hold}");
        rig.folder = true;
        rig.holder = None;
        rig.busy = rig.busy.map(|_| 100);
        rig.set_gates(&[]);
        let eased = rig.now().mono;
        rig.pass(5 * MINUTE);
        // the mean of the last minute must fall first
        let limit = if hold == 2 { 2 * MINUTE } else { MINUTE };
        assert!(rig.now().mono.since(eased) <= limit, "{hold}");
        assert_eq!((rig.spawned, rig.row().ladder.rungs), (spawned + 1, 1), "{hold}");
    }
}

// proves: RA-11, RT-08, RT-24
#[test]
fn with_recovery_off_no_rung_is_taken_until_it_is_on_again() {
    let mut rig = Rig::new();
    rig.give_up();
    let toggle =
        |on| Command::SetSetting { change: SettingChange::AbortedResponseRecoveryEnabled(on) };
    rig.command(toggle(false)).expect("off");
    let spawned = rig.spawned;
    rig.pass(4 * 60 * MINUTE);
    assert_eq!((rig.spawned, rig.row().ladder.rungs), (spawned, 0));
    rig.command(toggle(true)).expect("on");
    let on_again = rig.now().mono;
    rig.pass(5 * MINUTE);
    assert!(rig.now().mono.since(on_again) <= MINUTE);
    assert_eq!(rig.spawned, spawned + 1);
}

// proves: RT-23, PF-02
#[test]
fn retry_with_the_folder_gone_resets_and_spawns_nothing_and_the_ladder_begins_anew() {
    let mut rig = Rig::new();
    rig.give_up();
    next_rung(&mut rig);
    rig.spawn_and_shake();
    rig.die();
    rig.folder = false;
    let spawned = rig.spawned;
    let retry = Command::Retry { session: rig.id() };
    assert_eq!(rig.command(retry), Ok(Reply::Done));
    let row = rig.row();
    assert_eq!((rig.spawned, row.retry_attempts, row.ladder.rungs), (spawned, 0, 0));
    assert!(failed(&rig) && rig.view().live.folder_missing);
    rig.pass(10 * MINUTE);
    assert_eq!(rig.spawned, spawned);
    rig.folder = true;
    rig.pass(MINUTE);
    assert_eq!((rig.spawned, rig.row().ladder.rungs), (spawned + 1, 1));
}

// proves: RA-05, INV-14
#[test]
fn a_known_terminal_error_stops_at_once_and_takes_no_rung() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.bill_turn();
    let row = rig.row();
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::RecoveryFailed)));
    assert_eq!((row.stop_reason, row.ladder.due), (Some(StopReason::Billing), None));
    assert_eq!((row.retry_attempts, rig.notified), (0, 1));
    rig.pass(24 * 60 * MINUTE);
    assert_eq!((rig.spawned, rig.row().ladder.rungs), (1, 0));
}

// proves: INV-14
#[test]
fn a_turn_that_begins_by_itself_and_fails_does_not_lift_the_stop() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.bill_turn();
    let given_up = rig.row();
    rig.begin_by_itself();
    rig.tool("t1", "make");
    rig.fail_turn(529);
    let row = rig.row();
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::RecoveryFailed)));
    assert_eq!(row.stop_reason, Some(StopReason::Billing));
    assert_eq!(row.status_changed_at, given_up.status_changed_at);
    rig.pass(24 * 60 * MINUTE);
    assert_eq!((rig.spawned, rig.notified), (1, 1));
}

// proves: RP-09
#[test]
fn a_rung_with_nothing_to_send_stops_the_ladder() {
    let mut rig = Rig::new();
    rig.give_up();
    rig.forget_message();
    rig.pass(MINUTE * 3);
    assert_eq!(rig.row().stop_reason, Some(StopReason::NothingToReplay));
    assert!(failed(&rig));
}
