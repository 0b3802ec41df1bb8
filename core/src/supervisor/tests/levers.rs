//! Retry, Continue and Switch model: what each passes over, what it refuses, and what it leaves alone.

use super::rig::Rig;
use super::{SHAPE, state_of};
use crate::attention::{Pill, Section};
use crate::ipc::{IpcCode, Reply};
use crate::session::{Gate, PendingAction, Status};
use crate::supervisor::Command;
use crate::verdict::Source;
use alloc::vec;

/// Past its cap a cut-off reply shows Retry while the folder holds the scan.
fn past_the_cap() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    rig.folder = false;
    rig.pass(300_000);
    rig.folder = true;
    assert_eq!((state_of(&rig), rig.seen().pill), (SHAPE, Some(Pill::Retry)));
    rig
}

fn given_up() -> Rig {
    let mut rig = Rig::new();
    rig.give_up();
    rig
}

/// A start that was refused by the system.
fn never_started() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn();
    rig.die();
    assert_eq!(state_of(&rig), (Status::Error, None));
    rig
}

/// The API refused the request.
fn refused() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.fail_turn(400);
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::ApiError)));
    rig
}

const RETRYABLE: [fn() -> Rig; 4] = [past_the_cap, given_up, never_started, refused];

fn retry(rig: &mut Rig) -> Result<Reply, IpcCode> {
    let session = rig.id();
    rig.command(Command::Retry { session }).map_err(|wrong| wrong.code)
}

#[test]
fn retry_waits_for_no_gate_no_load_and_no_debounce() {
    for stuck in [past_the_cap as fn() -> Rig, given_up] {
        let mut rig = stuck();
        let opened_at = rig.now().wall;
        rig.alter(|row| row.gates = vec![Gate { name: "checks".into(), opened_at }]);
        rig.busy = Some(990);
        rig.pass(120_000);
        assert!(rig.heavy(), "nothing automatic would restart it");
        rig.restarted_before(5_000);
        let spawned = rig.spawned;
        assert_eq!(retry(&mut rig), Ok(Reply::Done));
        assert_eq!(rig.spawned, spawned + 1, "at once");
        rig.spawn_and_shake();
        assert_eq!(rig.row().turn.and_then(|turn| turn.replay), Some(Source::RetryButton));
    }
}

// proves: RT-08
#[test]
fn retry_works_while_recovery_is_off() {
    for (setting, killed) in [(true, true), (false, false), (false, true)] {
        for stuck in RETRYABLE {
            let mut rig = stuck();
            rig.recovery(setting, killed);
            let spawned = rig.spawned;
            assert_eq!(retry(&mut rig), Ok(Reply::Done));
            // a child of the turn before is stopped first, and that is all
            assert_eq!(rig.spawned, spawned + 1, "{setting} {killed} {:?}", state_of(&rig));
        }
        // a row that was cut off while it is off shows Retry at once
        let mut rig = Rig::new();
        rig.create("hello");
        rig.spawn_and_shake();
        rig.recovery(setting, killed);
        rig.die();
        assert_eq!((rig.seen().pill, retry(&mut rig)), (Some(Pill::Retry), Ok(Reply::Done)));
        assert_eq!(rig.spawned, 2);
    }
}

// proves: RT-18, INV-32
#[test]
fn continue_says_nothing_to_a_session_that_shows_retry_nor_retry_to_one_that_shows_continue() {
    for stuck in RETRYABLE {
        let mut rig = stuck();
        assert_eq!(rig.seen().pill, Some(Pill::Retry));
        let (before, written) = (rig.row(), rig.lines.len());
        let session = rig.id();
        let code = rig.command(Command::Continue { session }).map_err(|wrong| wrong.code);
        assert_eq!(code, Err(IpcCode::NotEligible));
        assert_eq!((rig.row(), rig.lines.len()), (before, written));
        assert!(rig.view().live.queue.iter().all(|queued| queued.preview == "hello"));
    }
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.die();
    let (before, spawned) = (rig.row(), rig.spawned);
    assert_eq!(rig.seen().pill, Some(Pill::Continue));
    assert_eq!(retry(&mut rig), Err(IpcCode::NotEligible));
    assert_eq!((rig.row(), rig.spawned), (before, spawned));
    assert!(rig.command(Command::Continue { session }).is_ok());
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), crate::prompt::PLEASE_CONTINUE);
}

#[test]
fn a_start_that_the_system_refused_offers_retry_alone() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.refuse_spawn(2, "No such file or directory (os error 2)");
    assert_eq!((state_of(&rig), rig.seen().pill), ((Status::Error, None), Some(Pill::Retry)));
    rig.pass(600_000);
    assert_eq!(rig.spawned, 1, "nothing retries it by itself");
    assert_eq!(retry(&mut rig), Ok(Reply::Done));
    assert_eq!(retry(&mut rig), Ok(Reply::Done), "a second click is merged");
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Starting, None)));
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
}

// proves: RT-20
#[test]
fn a_retry_that_comes_too_late_leaves_the_running_turn_alone() {
    let mut rig = given_up();
    assert_eq!(retry(&mut rig), Ok(Reply::Done));
    rig.spawn_and_shake();
    rig.pass(10);
    let (before, spawned, stops) = (rig.row(), rig.spawned, rig.stops);
    let (lines, controls) = (rig.lines.len(), rig.controls.len());
    assert_eq!((before.status, before.child.is_some()), (Status::Running, true));
    assert_eq!(retry(&mut rig), Err(IpcCode::NotEligible));
    assert_eq!((rig.row(), rig.spawned, rig.stops), (before, spawned, stops));
    assert_eq!((rig.lines.len(), rig.controls.len()), (lines, controls));
}

// proves: RT-26
#[test]
fn switching_the_model_leaves_the_failed_session_as_it_was() {
    for stuck in [given_up as fn() -> Rig, past_the_cap] {
        let mut rig = stuck();
        let (session, before, spawned) = (rig.id(), rig.row(), rig.spawned);
        let model = Some("another".into());
        let made = rig.command(Command::SwitchModel { session, model });
        let Ok(Reply::Created(other)) = made else { panic!("{made:?}") };
        assert_eq!(rig.stored(session), before);
        let new = rig.stored(other);
        assert_eq!((new.model.as_deref(), new.retry_attempts), (Some("another"), 0));
        assert_eq!((new.folder, new.pending, rig.spawned), (before.folder, None, spawned + 1));
        // both are listed, the old one where it was
        let listed: vec::Vec<_> = rig.views().iter().map(|view| view.row.id).collect();
        assert!(listed.contains(&session) && listed.contains(&other), "{listed:?}");
    }
}

// proves: HD-20
#[test]
fn a_late_recovery_takes_the_row_out_of_every_count_by_itself() {
    let mut rig = past_the_cap();
    assert_eq!((rig.seen().section, rig.badge()), (Section::Interrupted, Some(1)));
    rig.pass(60_000);
    rig.spawn_and_shake();
    assert_eq!((rig.seen().section, rig.badge(), rig.notified), (Section::Running, Some(0), 0));
    rig.answer_turn("Here is all of it.");
    let seen = rig.seen();
    assert_eq!((seen.section, seen.pill, seen.label), (Section::NeedsYou, None, "Your turn"));
}

#[test]
fn nothing_of_a_deleted_session_is_held_once_its_child_is_gone() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.answer_turn("Here is all of it.");
    rig.hold_stops = true;
    let session = rig.id();
    assert!(rig.command(Command::Delete { session }).is_ok());
    rig.pass(1_000);
    assert_eq!(rig.held_sessions(), 1, "its child still runs");
    rig.hold_stops = false;
    rig.pass(60_000);
    assert_eq!(rig.held_sessions(), 0);
    assert_eq!(rig.command(Command::Retry { session }).unwrap_err().code, IpcCode::NotFound);
}
