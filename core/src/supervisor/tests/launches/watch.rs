//! The liveness watchdog and crash recovery over several sessions.

use super::port::{EAGAIN, Port};
use super::*;

// proves: LV-01
#[test]
fn a_child_that_is_gone_without_a_word_is_noticed_at_the_second_look() {
    let mut port = Port::new(Limits::default());
    let (lost, well) = (port.create(), port.create());
    port.pass(10_000);
    port.gone.push(lost);
    port.pass(50_000);
    assert_eq!(port.row(lost).status, Status::Running, "an exit may be on its way");
    port.pass(20_000);
    assert_eq!(port.row(lost).abort_cause, Some(AbortCause::ProcessExit));
    assert!(port.was(lost, Status::Error));
    assert_eq!((port.row(well).status, port.calls_of(well).len()), (Status::Running, 1));
    port.gone.clear();
    port.pass(3 * MINUTE);
    assert_eq!((port.row(lost).status, port.calls_of(lost).len()), (Status::Running, 2));
}

// proves: LV-01, RS-20
#[test]
fn a_long_wait_for_a_launch_is_never_flipped() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.gone.push(id);
    port.pass(HOUR);
    assert_eq!(port.row(id).status, Status::Starting);
    assert!(!port.was(id, Status::Error));
}

// proves: LV-02
#[test]
fn a_child_that_goes_while_its_turn_is_wrapped_up_is_no_error() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(10_000);
    port.gone.push(id);
    port.pass(MINUTE);
    // the result is in, and nothing reports the exit
    port.answer_turn(id);
    port.pass(HOUR);
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::NeedsYou, None));
    assert!(port.row(id).delivered && !port.was(id, Status::Error));
    assert_eq!(port.calls_of(id).len(), 1, "a session at rest needs no child");
}

// proves: CR-01, CR-02, CR-04, A-31
#[test]
fn the_start_brings_back_what_ran_and_nothing_else() {
    let mut port = Port::new(Limits::default());
    let ids: Vec<_> = (0..7).map(|_| port.create()).collect();
    port.pass(2 * MINUTE);
    let [running, answered, ended, stopped, cut_off, archived, lost] = ids[..] else { panic!() };
    port.answer_turn(answered);
    port.command(Command::End { session: ended });
    port.command(Command::Stop { session: stopped });
    port.command(Command::Archive { session: archived });
    port.pass(6_000);
    port.exit(cut_off);
    // its message is gone from the store: there is nothing to resume
    let row = port.rows.get_mut(&lost).expect("a row");
    row.replay = crate::session::ReplayMemory::default();
    row.turn = None;
    let before: Vec<_> = ids.iter().map(|id| port.row(*id).clone()).collect();
    port.calls.clear();
    port.crash();
    port.pass(20_000);
    let calls: Vec<_> = port.calls.iter().map(|call| call.session).collect();
    assert_eq!(calls, [running]);
    for (row, id) in before.iter().zip(&ids) {
        if ![running, lost].contains(id) {
            let now = port.row(*id);
            assert_eq!((now.status, now.pending), (row.status, row.pending), "{id}");
        }
    }
    let suspended = (Status::Paused, Some(PendingAction::AppRestartSuspended));
    assert_eq!((port.row(lost).status, port.row(lost).pending), suspended);
    assert_eq!(port.seen(lost).pill, Some(Pill::Continue));
    assert_eq!(port.seen(lost).label, "Suspended");
}

// proves: CR-06
#[test]
fn what_crash_recovery_resumed_is_not_replayed_within_the_debounce() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(2 * MINUTE);
    port.calls.clear();
    port.crash();
    port.pass(10_000);
    port.exit(id);
    port.pass(5 * MINUTE);
    let calls = port.calls_of(id);
    assert_eq!(calls.len(), 2);
    assert!(calls[1].since(calls[0]) >= 90_000, "{calls:?}");
}

// proves: CR-06
#[test]
fn a_second_crash_at_once_waits_for_the_debounce() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(2 * MINUTE);
    port.crash();
    port.pass(10_000);
    port.crash();
    port.calls.clear();
    let restarted = port.now.mono;
    port.pass(5 * MINUTE);
    assert_eq!(port.calls_of(id).len(), 1);
    assert!(port.calls_of(id)[0].since(restarted) >= 79_000);
}

// proves: A-14, CR-01
#[test]
fn a_start_of_the_app_tries_anew_what_could_not_be_launched() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(11 * MINUTE);
    assert!(port.row(id).cannot_launch);
    port.crash();
    assert!(!port.row(id).cannot_launch);
    assert_eq!(port.seen(id).state, RowState::ComingBack);
    port.fails.clear();
    port.pass(3 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
}

// proves: CR-04
#[test]
fn continue_on_a_suspended_session_loses_no_message() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(2 * MINUTE);
    port.folder = false;
    port.crash();
    port.pass(MINUTE);
    let suspended = (Status::Paused, Some(PendingAction::AppRestartSuspended));
    assert_eq!((port.row(id).status, port.row(id).pending), suspended);
    let message = port.row(id).replay.message;
    let before = port.calls_of(id).len();
    // the folder is still away: nothing is started, nothing is lost
    port.command(Command::Continue { session: id });
    port.pass(MINUTE);
    assert_eq!((port.row(id).status, port.row(id).pending), suspended);
    port.folder = true;
    port.command(Command::Continue { session: id });
    port.command(Command::Continue { session: id });
    port.pass(MINUTE);
    assert_eq!((port.row(id).status, port.calls_of(id).len()), (Status::Running, before + 1));
    assert_eq!(port.row(id).replay.message, message);
    assert_eq!(port.last_line(id), Some(LineText::Of(message.expect("a message"))));
}

// proves: RP-07, CR-06
#[test]
fn a_restart_that_came_about_late_is_debounced_from_then() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(2 * MINUTE);
    port.fails.insert(id, (12, EAGAIN));
    port.crash();
    port.pass(5 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
    let up = *port.calls_of(id).last().expect("a call");
    port.exit(id);
    port.pass(5 * MINUTE);
    let next = *port.calls_of(id).last().expect("a call");
    assert!(next.since(up) >= 90_000, "{up:?} {next:?}");
}

// proves: RP-10
#[test]
fn a_rung_that_cannot_be_launched_stays_red_and_retry_hurries_it() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(MINUTE);
    port.give_up(id);
    let failed = Some(PendingAction::RecoveryFailed);
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(HOUR);
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::Starting, failed));
    assert_eq!(port.row(id).ladder.rungs, 1, "no second rung is taken meanwhile");
    assert_eq!(port.seen(id).state, RowState::RecoveryFailed);
    port.fails.clear();
    port.command(Command::Retry { session: id });
    port.pass(1_000);
    assert_eq!(port.row(id).status, Status::Running);
    assert_eq!((port.row(id).retry_attempts, port.row(id).ladder.rungs), (0, 0));
}

// proves: RP-07, INV-01
#[test]
fn a_retry_that_takes_a_rung_over_is_a_restart_of_its_own() {
    let mut port = Port::new(Limits::default());
    port.exists = true;
    let id = port.create();
    port.pass(MINUTE);
    port.give_up(id);
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    while port.row(id).status != Status::Starting {
        port.pass(1_000);
    }
    port.pass(20_000);
    port.command(Command::Retry { session: id });
    assert_eq!(port.row(id).last_restart_at, Some(port.now.wall));
    let retried = port.now.mono;
    port.headroom = Headroom::default();
    port.pass(2_000);
    port.exit(id);
    port.pass(5 * MINUTE);
    let next = *port.calls_of(id).last().expect("a call");
    assert!(next.since(retried) >= 90_000, "{retried:?} {next:?}");
}
