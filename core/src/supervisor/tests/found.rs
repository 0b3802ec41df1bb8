//! Scenarios that the simulation found: each was a defect once.

use super::rig::Rig;
use super::{SHAPE, state_of};
use crate::session::{PendingAction, Status};
use crate::stream::{StreamEvent, TurnResult};
use crate::supervisor::Command;
use alloc::boxed::Box;

// proves: A-15, CR-01
#[test]
fn a_message_after_a_stop_comes_back_after_a_crash_of_the_app() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.stream(StreamEvent::Result(Box::new(TurnResult {
        is_error: true,
        terminal_reason: Some("aborted_streaming".into()),
        ..TurnResult::default()
    })));
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::Stopped)));
    rig.send("two");
    assert!(rig.row().intent_running, "the child lived on, and so nothing was launched");
    rig.crash();
    assert_eq!(state_of(&rig), (Status::Starting, None));
    rig.pass(0);
    rig.spawn_and_shake();
    assert_eq!(state_of(&rig), (Status::Running, None));
}

// proves: A-17
#[test]
fn a_local_command_that_must_start_the_cli_leaves_a_red_row_red() {
    let mut rig = Rig::new();
    rig.give_up();
    rig.send("/cost");
    rig.spawn_and_shake();
    rig.local_result("cost", "$0.01");
    let failed = (Status::Error, Some(PendingAction::RecoveryFailed));
    assert_eq!(state_of(&rig), failed);
    assert_eq!(rig.row().stop_reason, None);
}

// proves: A-17
#[test]
fn a_local_command_leaves_a_cut_off_reply_to_the_scan() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    rig.send("/cost");
    rig.spawn_and_shake();
    rig.local_result("cost", "$0.01");
    assert_eq!(state_of(&rig), SHAPE);
    rig.pass(95_000);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
}

// proves: INV-20
#[test]
fn retry_after_the_message_was_taken_back_does_not_send_the_answered_one() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    rig.send("two");
    rig.spawn();
    rig.die();
    assert_eq!(state_of(&rig), (Status::Error, None), "the start failed");
    let session = rig.id();
    let message = rig.view().live.queue[0].id;
    assert!(rig.command(Command::Unqueue { session, message }).is_ok());
    let written = rig.lines.len();
    assert!(rig.command(Command::Retry { session }).is_ok());
    rig.spawn();
    rig.shake();
    assert_eq!((rig.lines.len(), state_of(&rig)), (written, (Status::NeedsYou, None)));
}

// proves: A-10
#[test]
fn the_queue_goes_on_after_a_local_command_that_died_with_its_child() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.send("/cost");
    rig.send("two");
    rig.die();
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "two");
}
