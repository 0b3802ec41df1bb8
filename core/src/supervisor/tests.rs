//! Scenarios of the reducer: one small shell that answers its questions, whole rows compared.

mod aborts;
mod cases;
mod context;
mod engines;
mod fork;
mod found;
mod held;
mod ladder;
mod launches;
mod levers;
mod load;
mod reviewed;
mod reviewed2;
mod rig;
mod scanning;
mod standing;
mod waits;
mod workers;

use super::*;
use crate::card::CardReply;
use crate::ipc::Reply;
use crate::launch::Conversation;
use crate::message::LineText;
use crate::prompt;
use crate::session::{AbortCause, PendingAction, Status};
use crate::stream::{ControlAsk, StreamEvent};
use alloc::string::ToString;
use rig::Rig;
use serde_json::json;

/// Launches start as they come: their pace has tests of its own.
fn unpaced(limits: Limits) -> Limits {
    Limits { spawn_gap_ms: 0, ..limits }
}

fn state_of(rig: &Rig) -> (Status, Option<PendingAction>) {
    let row = rig.row();
    (row.status, row.pending)
}

const SHAPE: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

// proves: PR-12, A-02
#[test]
fn a_message_is_launched_answered_and_waits_for_the_person() {
    let mut rig = Rig::new();
    rig.create("hello");
    assert_eq!(state_of(&rig), (Status::Starting, None));
    assert!(matches!(rig.plan().conversation, Conversation::New { .. }));
    rig.spawn_and_shake();
    assert_eq!(state_of(&rig), (Status::Running, None));
    rig.answer_turn("Hello **there**. And more.");
    let row = rig.row();
    assert_eq!((row.status, row.pending, row.delivered), (Status::NeedsYou, None, true));
    assert_eq!(row.answer_line.as_deref(), Some("Hello there."));
    assert!(row.replay.answered && row.ever_answered && row.last_good_assistant.is_some());
}

// proves: AB-01, AB-04, AB-10, SC-13, SC-16, RF-01, INV-10
#[test]
fn a_turn_that_dies_is_replayed_twice_and_then_given_up() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    assert_eq!(state_of(&rig), SHAPE);
    assert_eq!(rig.row().abort_cause, Some(AbortCause::ProcessExit));
    let entered = rig.row().status_changed_at;
    for attempt in 1..=2 {
        rig.pass(155_000);
        assert_eq!(state_of(&rig), (Status::Starting, None), "attempt {attempt}");
        assert_eq!(rig.row().retry_attempts, attempt);
        rig.spawn_and_shake();
        rig.die();
        assert_eq!(state_of(&rig), SHAPE);
        // no output: the hide clock is not started again
        assert_eq!(rig.row().status_changed_at, entered);
    }
    assert_eq!(rig.spawned, 3);
    while rig.row().pending != Some(PendingAction::RecoveryFailed) {
        rig.pass(1_000);
    }
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::RecoveryFailed)));
    assert_eq!((rig.row().stop_reason, rig.row().retry_attempts), (None, 3));
    assert_eq!((rig.spawned, rig.notified), (3, 1));
}

// proves: SC-02, INV-48
#[test]
fn the_first_scan_is_thirty_seconds_after_the_start() {
    let mut rig = Rig::new();
    rig.pass(29_999);
    assert_eq!(rig.scans, 0);
    rig.pass(1);
    assert_eq!(rig.scans, 1);
    rig.pass(600_000);
    assert_eq!(rig.scans, 11);
}

// proves: RT-05, RT-07, RT-19, CT-07
#[test]
fn retry_resets_the_budget_and_restarts_once() {
    let mut rig = Rig::new();
    rig.give_up();
    let spawned = rig.spawned;
    let retry = Command::Retry { session: rig.id() };
    assert_eq!(rig.command(retry.clone()), Ok(Reply::Done));
    assert_eq!(rig.command(retry.clone()), Ok(Reply::Done), "a second click is merged");
    let row = rig.row();
    assert_eq!((row.retry_attempts, row.stop_reason), (0, None));
    rig.spawn_and_shake();
    assert_eq!(rig.spawned, spawned + 1);
    assert_eq!(state_of(&rig), (Status::Running, None));
    let code = rig.command(retry).map_err(|wrong| wrong.code);
    assert_eq!(code, Err(crate::ipc::IpcCode::NotEligible));
}

// proves: RF-07, CT-05
#[test]
fn a_message_takes_a_given_up_session_back() {
    let mut rig = Rig::new();
    rig.give_up();
    rig.send("try this instead");
    rig.spawn_and_shake();
    let row = rig.row();
    assert_eq!((row.status, row.pending, row.retry_attempts), (Status::Running, None, 0));
    assert!(row.replay.carries_unanswered);
}

// proves: A-26, SC-04
#[test]
fn what_is_sent_after_the_stamp_takes_over_at_once() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.send("queued before the stamp");
    rig.die();
    assert_eq!(state_of(&rig), SHAPE);
    assert_eq!(rig.view().live.queue.len(), 1);
    rig.send("after the stamp");
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "after the stamp");
    assert_eq!(rig.view().live.queue.len(), 1, "what was queued before is held");
    rig.answer_turn("done");
    assert_eq!(rig.last_text(), "queued before the stamp");
}

// proves: PR-11
#[test]
fn a_card_stays_when_its_child_dies_and_its_answer_resumes_the_session() {
    let mut rig = Rig::new();
    rig.create("do it");
    rig.spawn_and_shake();
    rig.ask_permission("call-1", "make deploy");
    let asked = (Status::Running, Some(PendingAction::PermissionRequest));
    assert_eq!(state_of(&rig), asked);
    rig.die();
    let kept = (Status::NeedsYou, Some(PendingAction::PermissionRequest));
    assert_eq!(state_of(&rig), kept);
    let request = rig.row().card.map(|card| card.request).unwrap_or_default();
    let reply = CardReply::Allow;
    let session = rig.id();
    assert!(rig.command(Command::ReplyCard { session, request, reply }).is_ok());
    rig.spawn_and_shake();
    assert!(rig.last_text().contains("make deploy"), "{}", rig.last_text());
}

// proves: A-04
#[test]
fn a_started_tool_makes_every_later_replay_a_continuation() {
    let mut rig = Rig::new();
    rig.create("build");
    rig.spawn_and_shake();
    rig.tool("call-1", "make");
    rig.die();
    rig.pass(155_000);
    let Conversation::Fork { at: None, .. } = rig.plan().conversation else {
        panic!("{:?}", rig.plan());
    };
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), prompt::CONTINUE_CUT_OFF);
    // cut off a second time, before any tool of its own
    rig.die();
    rig.pass(155_000);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), prompt::CONTINUE_CUT_OFF);
}

// proves: SW-01, SW-07, AB-03
#[test]
fn silence_before_the_first_output_ends_the_turn_after_two_minutes() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.pass(119_999);
    assert_eq!(state_of(&rig), (Status::Running, None));
    rig.pass(1);
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::ResponseAborted)));
    assert_eq!(rig.stops, 1);
    assert_eq!(rig.row().abort_cause, Some(AbortCause::StallTimeout));
}

// proves: A-02
#[test]
fn a_start_that_never_answers_is_tried_once_more_and_then_red() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn();
    rig.pass(15_000);
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Starting, None)));
    rig.spawn();
    rig.pass(15_000);
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Error, None)));
    // the message was never lost: Retry sends it
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
}

// proves: AB-09
#[test]
fn a_turn_the_person_stopped_is_not_stamped() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.die();
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::Stopped)));
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Archive { session }).is_ok());
    rig.pass(600_000);
    assert_eq!(state_of(&rig), (Status::Archived, None));
    assert_eq!(rig.spawned, 1);
}

// proves: CR-01, A-15, A-31
#[test]
fn a_crash_of_the_app_brings_running_rows_back_and_keeps_their_intent() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.crash();
    assert_eq!(state_of(&rig), (Status::Starting, None));
    rig.pass(0);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
    assert_eq!(rig.row().last_restart_at, Some(rig.now().wall));
    // a second crash within the debounce waits for its end
    rig.crash();
    rig.pass(80_000);
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Starting, None)));
    rig.pass(10_000);
    assert_eq!(rig.spawned, 3);
}

// proves: A-17
#[test]
fn a_local_command_leaves_the_row_as_it_was() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.answer_turn("Hi.");
    assert_eq!(rig.notified, 1);
    let session = rig.id();
    assert!(rig.command(Command::MarkRead { session, read: true }).is_ok());
    let before = rig.row();
    rig.send("/cost");
    rig.local_result("cost", "$0.01");
    let after = rig.row();
    assert_eq!((after.unread, rig.notified), (false, 1), "it was told of this state");
    assert_eq!((after.status, after.pending), (before.status, before.pending));
    assert_eq!((after.delivered, after.replay), (before.delivered, before.replay));
    assert_eq!(after.status_changed_at, before.status_changed_at);
}

// proves: PF-02, PF-04, PF-05, RT-23
#[test]
fn a_missing_folder_holds_recovery_without_charging_it() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    rig.folder = false;
    rig.pass(6 * 3_600_000);
    assert_eq!((rig.spawned, state_of(&rig)), (1, SHAPE));
    assert_eq!((rig.row().retry_attempts, rig.notes(prompt::NOTE_FOLDER_MISSING)), (0, 1));
    assert!(rig.view().live.folder_missing);
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    assert_eq!(rig.spawned, 1);
    rig.folder = true;
    rig.pass(60_000);
    assert_eq!(rig.spawned, 2);
    assert!(!rig.view().live.folder_missing);
}

// proves: A-10
#[test]
fn an_unknown_control_request_is_refused_and_never_left_open() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let body = ControlAsk::Unknown { subtype: "elicitation".into() };
    rig.stream(StreamEvent::ControlRequest { request: "r9".into(), body });
    assert!(rig.controls.iter().any(|control| matches!(
        control,
        Control::Refuse { request, .. } if request == "r9"
    )));
}

#[test]
fn a_permission_is_allowed_with_its_own_input() {
    let mut rig = Rig::new();
    rig.create("do it");
    rig.spawn_and_shake();
    rig.ask_permission("call-1", "make deploy");
    let session = rig.id();
    let request = "ask-call-1".to_string();
    let wrong = CardReply::ApprovePlan { ask_each_edit: false };
    let refused =
        rig.command(Command::ReplyCard { session, request: request.clone(), reply: wrong });
    assert!(refused.is_err());
    let reply = CardReply::Allow;
    assert!(rig.command(Command::ReplyCard { session, request, reply }).is_ok());
    assert_eq!(state_of(&rig), (Status::Running, None));
    let answer = json!({"behavior": "allow", "updatedInput": {"command": "make deploy"}});
    assert!(
        rig.controls.iter().any(
            |control| matches!(control, Control::Answer { response, .. } if *response == answer)
        )
    );
}

// proves: A-31
#[test]
fn quit_stops_the_children_and_leaves_the_rows_to_come_back() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    assert!(rig.command(Command::Quit).is_ok());
    assert!(rig.exited);
    let row = rig.row();
    assert_eq!((row.status, row.intent_running), (Status::Running, true));
    rig.crash();
    rig.pass(0);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
}

#[test]
fn replay_lines_are_the_stored_message_or_the_sentence() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    rig.pass(155_000);
    rig.spawn_and_shake();
    let line = rig.lines.last().expect("a line");
    assert!(matches!(line.text, LineText::Of(_)));
    assert_ne!(line.uuid, rig.lines[0].uuid, "in the transcript: sent under a new uuid");
}
