//! Scenarios that a second review found: each was a defect once.

use super::rig::Rig;
use super::*;
use crate::stream::{Content, TurnResult};
use alloc::boxed::Box;

const GIVEN_UP: Option<PendingAction> = Some(PendingAction::RecoveryFailed);

/// A given-up session whose child lives on: the API refused all the time.
fn given_up_with_a_child() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.fail_turn(529);
    for _ in 0..2 {
        rig.pass(155_000);
        rig.spawn_and_shake();
        rig.fail_turn(529);
    }
    while rig.row().pending != GIVEN_UP {
        rig.pass(1_000);
    }
    rig
}

// proves: RA-01, INV-33
#[test]
fn a_given_up_row_keeps_its_ladder_through_a_turn_that_began_by_itself() {
    let mut rig = given_up_with_a_child();
    rig.begin_by_itself();
    rig.say(Content::Text("a task of mine ended".into()));
    // the rung's time comes while that turn is open
    rig.pass(100_000);
    let before = rig.spawned;
    rig.answer_naming("that was all", None);
    assert_eq!((state_of(&rig).1, rig.row().stop_reason), (GIVEN_UP, None));
    rig.pass(200_000);
    assert_eq!(rig.spawned, before + 1, "a row that says it is retried is retried");
}

// proves: RA-02, RA-09, INV-13
#[test]
fn a_retry_on_a_rung_that_cannot_begin_begins_the_ladder_anew() {
    let mut rig = given_up_with_a_child();
    // the rung waits for the old child's end, and the click is merged with it
    rig.hold_stops = true;
    while rig.row().status != Status::Starting {
        rig.pass(1_000);
    }
    let session = rig.id();
    assert_eq!(rig.command(Command::Retry { session }), Ok(Reply::Done));
    rig.pass(7_000);
    rig.blind = true;
    rig.release_stops();
    assert_eq!(state_of(&rig), (Status::NeedsYou, GIVEN_UP));
    let (ladder, first) = (rig.row().ladder, rig.now().wall.plus(30_000));
    assert_eq!((ladder.rungs, ladder.due), (0, Some(first)), "the whole gap before the first rung");
}

// proves: AB-09
#[test]
fn a_turn_that_fails_while_the_person_stops_it_is_stopped() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.fail_turn(529);
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::Stopped)));
    rig.pass(600_000);
    assert_eq!((rig.spawned, rig.row().retry_attempts), (1, 0));
}

#[test]
fn send_now_sends_also_when_the_turn_fails_before_it_is_interrupted() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    let session = rig.id();
    let sent = rig.command(Command::Send { session, text: "two".into(), now: true });
    assert!(sent.is_ok());
    rig.fail_turn(529);
    assert_eq!((rig.last_text().as_str(), state_of(&rig)), ("two", (Status::Running, None)));
}

// proves: RF-07
#[test]
fn a_message_takes_over_while_retry_still_looks_at_the_folder() {
    let mut rig = Rig::new();
    rig.give_up();
    rig.hold_looks = true;
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    rig.send("two");
    rig.release_looks();
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "two");
}

#[test]
fn a_message_takes_over_while_retry_of_a_refused_request_still_looks() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.fail_turn(403);
    rig.exit(1);
    rig.hold_looks = true;
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    rig.send("two");
    rig.release_looks();
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), rig.view().live.queue.len()), ("two", 0));
}

// proves: RF-07
#[test]
fn a_message_takes_over_from_a_rung_that_looks_again_behind_the_old_child() {
    let mut rig = given_up_with_a_child();
    // the old child goes first, then the transcript is looked at once more
    rig.pass(25_000);
    rig.hold_stops = true;
    while rig.row().status != Status::Starting {
        rig.pass(1_000);
    }
    rig.hold_looks = true;
    rig.report_stops();
    assert_eq!(state_of(&rig), (Status::Starting, GIVEN_UP));
    rig.send("two");
    rig.release_looks();
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "two");
}

// proves: AB-04
#[test]
fn a_message_after_a_refused_turn_of_its_own_is_stamped_when_it_is_cut_off() {
    let mut rig = given_up_with_a_child();
    rig.begin_by_itself();
    rig.fail_turn(403);
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::ApiError)));
    rig.send("two");
    rig.die();
    assert_eq!(state_of(&rig), SHAPE);
}

// proves: RP-09
#[test]
fn a_stopped_message_behind_a_turn_of_its_own_charges_nothing() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.stream(StreamEvent::Result(Box::new(TurnResult {
        is_error: true,
        terminal_reason: Some("aborted_streaming".into()),
        num_turns: 1,
        ..TurnResult::default()
    })));
    rig.begin_by_itself();
    rig.die();
    rig.pass(155_000);
    assert_eq!((rig.spawned, rig.row().retry_attempts), (1, 0));
}

// proves: AB-06
#[test]
fn a_message_taken_back_during_its_launch_leaves_the_stamp_of_the_one_before() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.die();
    rig.hold_looks = true;
    rig.send("two");
    let session = rig.id();
    let message = rig.view().live.queue[0].id;
    assert!(rig.command(Command::Unqueue { session, message }).is_ok());
    rig.release_looks();
    assert!(rig.row().in_shape(), "{:?}", state_of(&rig));
    rig.pass(155_000);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "one");
}

// proves: HD-14
#[test]
fn turns_of_the_clis_own_that_say_nothing_do_not_begin_the_hidden_time_anew() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.fail_turn(529);
    let stamped_at = rig.row().status_changed_at;
    rig.pass(5_000);
    rig.begin_by_itself();
    rig.fail_turn(529);
    assert_eq!((state_of(&rig), rig.row().status_changed_at), (SHAPE, stamped_at));
}

// proves: A-04
#[test]
fn what_was_looked_at_while_the_old_child_lived_is_looked_at_again() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.answer_turn("hi");
    rig.send("two");
    let line = rig.forget_last_line();
    rig.hold_stops = true;
    rig.die();
    rig.hold_looks = true;
    rig.pass(31_000);
    // it ends late, and has kept the message after all
    rig.keep_line(line);
    rig.report_stops();
    rig.release_looks();
    rig.pass(155_000);
    assert!(matches!(rig.plan().conversation, Conversation::Fork { .. }), "{:?}", rig.plan());
}

#[test]
fn a_start_that_refuses_for_another_reason_than_its_own_leaves_a_session_that_takes_messages() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("done");
    rig.exit(0);
    rig.send("two");
    rig.spawn();
    rig.hold_looks = true;
    rig.stream(StreamEvent::Result(Box::new(TurnResult {
        is_error: true,
        terminal_reason: Some("api_error".into()),
        status: Some(401),
        ..TurnResult::default()
    })));
    rig.exit(1);
    rig.release_looks();
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::AuthRequired)));
    rig.send("three");
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "three");
}
