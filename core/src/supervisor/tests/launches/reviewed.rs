//! What a hostile review of launches found: each was a defect once.

use super::port::{EAGAIN, ENOENT, Port};
use super::*;
use crate::session::Holder;

/// A rung of a given-up session runs and has shown nothing yet.
fn rung_in_flight() -> (Port, SessionId) {
    let mut port = Port::new(Limits::default());
    port.exists = true;
    let id = port.create();
    port.pass(MINUTE);
    port.give_up(id);
    let failed = Some(PendingAction::RecoveryFailed);
    while port.row(id).status != Status::Running {
        port.pass(1_000);
    }
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::Running, failed));
    (port, id)
}

// proves: RT-20
#[test]
fn a_retry_whose_look_fails_leaves_the_turn_that_answers_alone() {
    let (mut port, id) = rung_in_flight();
    port.deaf = true;
    port.command(Command::Retry { session: id });
    port.say(id);
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::Running, None));
    port.pass(6_000);
    assert_eq!(port.row(id).status, Status::Running, "the turn answers");
    assert!(port.row(id).turn.is_some());
}

// proves: RS-11, INV-28
#[test]
fn nothing_stays_starting_when_the_turn_that_a_retry_met_dies() {
    let (mut port, id) = rung_in_flight();
    port.deaf = true;
    port.command(Command::Retry { session: id });
    port.say(id);
    port.pass(5_100);
    // the relaunch finds that the turn answers
    port.deaf = false;
    port.pass(5_000);
    port.exit(id);
    let before = port.calls_of(id).len();
    port.pass(HOUR);
    assert!(port.calls_of(id).len() > before, "{:?}", port.row(id).status);
}

// proves: RS-09, RS-11
#[test]
fn a_spawn_call_that_hangs_for_a_session_that_was_put_away_frees_its_slot() {
    let mut port = Port::new(Limits::default());
    port.late_stops = true;
    port.spawn_takes_ms = 10 * HOUR;
    let stuck: Vec<_> = (0..4).map(|_| port.create()).collect();
    port.pass(2_000);
    assert_eq!(port.calls.len(), 4);
    for id in stuck {
        port.command(Command::Archive { session: id });
    }
    port.spawn_takes_ms = 5;
    let id = port.create();
    port.pass(HOUR);
    assert_eq!(port.row(id).status, Status::Running);
}

fn held_and_copied() -> (Port, SessionId) {
    let mut port = Port::new(Limits::default());
    port.exists = true;
    let id = port.create();
    port.pass(MINUTE);
    port.answer_turn(id);
    port.exit(id);
    port.holder = Some(Holder { pid: 300, start: 7, folder: "/elsewhere".into() });
    port.command(Command::Send { session: id, text: "more".into(), now: false });
    port.pass(1_000);
    assert_eq!(port.row(id).words.as_deref(), Some(prompt::HELD_ELSEWHERE));
    (port, id)
}

// proves: A-12, RS-15
#[test]
fn a_copy_that_the_person_chose_survives_a_relaunch() {
    let (mut port, id) = held_and_copied();
    port.fails.insert(id, (8, EAGAIN));
    port.statuses.clear();
    port.command(Command::ForkHeld { session: id });
    port.pass(2 * MINUTE);
    assert!(!port.was(id, Status::Error), "{:?}", port.row(id).words);
    assert_eq!(port.row(id).status, Status::Running);
    assert!(matches!(port.conversation(id), Conversation::Fork { .. }));
}

// proves: A-12
#[test]
fn a_copy_that_the_person_chose_survives_the_line() {
    let (mut port, id) = held_and_copied();
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    port.statuses.clear();
    port.command(Command::ForkHeld { session: id });
    port.pass(10_000);
    port.headroom = Headroom::default();
    port.pass(MINUTE);
    assert!(!port.was(id, Status::Error), "{:?}", port.row(id).words);
    assert_eq!(port.row(id).status, Status::Running);
}

// proves: A-15, CR-01
#[test]
fn a_retry_that_waits_for_a_launch_is_wanted_also_after_a_crash() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(MINUTE);
    port.fail_replay(id);
    port.blind = Some(EAGAIN);
    port.command(Command::Retry { session: id });
    port.pass(2 * MINUTE);
    assert_eq!(port.row(id).status, Status::Starting);
    assert!(port.row(id).intent_running);
    port.blind = None;
    port.crash();
    port.pass(5 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
}

// proves: RS-21, RS-13
#[test]
fn with_relaunch_off_a_short_blindness_at_the_start_loses_no_session() {
    let mut port = Port::new(Limits::default());
    port.settings.relentless_session_relaunch = false;
    port.crash();
    let id = port.create();
    port.pass(2 * MINUTE);
    port.blind = Some(EAGAIN);
    port.crash();
    port.pass(8_000);
    port.blind = None;
    port.pass(5 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
}

// proves: RS-21, CT-09
#[test]
fn with_relaunch_off_a_replay_that_cannot_look_is_put_off_and_not_red() {
    let mut port = Port::new(Limits::default());
    port.settings.relentless_session_relaunch = false;
    port.exists = true;
    port.crash();
    let id = port.create();
    port.pass(2 * MINUTE);
    // the child lives on: the replay stops it, then looks again
    port.refuse_turn(id);
    port.no_stops = true;
    while port.row(id).status != Status::Starting {
        port.pass(1_000);
    }
    port.statuses.clear();
    port.blind = Some(EAGAIN);
    port.no_stops = false;
    port.stopped(id);
    port.pass(3_000);
    let red = port.statuses.iter().any(|(_, status, pending)| {
        *status == Status::Error && *pending != Some(PendingAction::ResponseAborted)
    });
    assert!(!red, "{:?} {:?}", port.row(id).words, port.statuses);
}

// proves: A-02
#[test]
fn a_sleep_in_the_middle_of_many_starts_does_not_make_them_hang() {
    let mut port = Port::new(Limits::default());
    port.shake_takes_ms = Some(40_000);
    let ids: Vec<_> = (0..6).map(|_| port.create()).collect();
    port.pass(5_000);
    port.sleep(8 * HOUR);
    port.pass(3 * MINUTE);
    assert_eq!(port.calls.len(), ids.len(), "nobody was started twice");
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
}

// proves: RT-23, RT-25
#[test]
fn a_bare_retry_that_is_refused_in_the_line_stays_a_launch_error() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (1, ENOENT));
    port.pass(1_000);
    let message = port.queue(id)[0].id;
    port.command(Command::Unqueue { session: id, message });
    port.fails.insert(id, (8, EAGAIN));
    port.command(Command::Retry { session: id });
    port.pass(2_000);
    assert_eq!(port.row(id).status, Status::Starting);
    port.folder = false;
    port.statuses.clear();
    port.pass(10_000);
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::Error, None));
    assert_eq!(port.seen(id).state, RowState::LaunchError);
}

// proves: RT-23
#[test]
fn a_retry_that_is_refused_in_the_line_does_not_look_like_a_running_session() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(MINUTE);
    port.fail_replay(id);
    port.fails.insert(id, (8, EAGAIN));
    port.command(Command::Retry { session: id });
    port.pass(3_000);
    port.folder = false;
    port.pass(10_000);
    assert_eq!(port.seen(id).section, Section::Interrupted, "{:?}", port.seen(id).label);
}

// proves: OP-11
#[test]
fn explain_says_of_everybody_in_line_why_it_waits() {
    let mut port = Port::new(Limits::default());
    port.shake_takes_ms = None;
    let ids: Vec<_> = (0..12).map(|_| port.create()).collect();
    port.pass(10_000);
    for id in &ids[8..] {
        let said = port.state.explain(*id, port.now).expect("an explanation");
        let told = said.next.is_some()
            || said.decisions.iter().any(|decision| decision.text.starts_with("wait"));
        assert!(told, "{said:?}");
    }
}

// proves: UI-24
#[test]
fn a_conversation_that_is_gone_is_told_once_however_often_it_is_planned() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(MINUTE);
    port.answer_turn(id);
    port.exit(id);
    port.fails.insert(id, (10_000, EAGAIN));
    port.command(Command::Send { session: id, text: "more".into(), now: false });
    for _ in 0..5 {
        port.pass(MINUTE);
        port.blind = Some(EAGAIN);
        port.pass(MINUTE);
        port.blind = None;
    }
    let gone =
        port.notes_of(id).iter().filter(|note| **note == prompt::NOTE_CONVERSATION_GONE).count();
    assert_eq!(gone, 1);
}

// proves: RS-23
#[test]
fn a_launch_whose_only_message_was_taken_back_is_not_tried_for_ever() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(MINUTE);
    let message = port.queue(id)[0].id;
    port.command(Command::Unqueue { session: id, message });
    let before = port.calls_of(id).len();
    port.pass(15 * MINUTE);
    assert!(!port.row(id).cannot_launch, "red for nothing");
    assert!(port.calls_of(id).len() <= before + 1, "{}", port.calls_of(id).len() - before);
}

// proves: RS-26, RS-15
#[test]
fn a_machine_that_takes_minutes_to_start_a_process_is_busy_not_broken() {
    let mut port = Port::new(Limits::default());
    port.late_stops = true;
    port.spawn_takes_ms = 2 * MINUTE;
    let id = port.create();
    port.pass(HOUR);
    assert!(!port.was(id, Status::Error), "{:?}", port.row(id).words);
}

// proves: A-12
#[test]
fn a_copy_that_is_planned_anew_never_becomes_a_resume_of_what_is_held() {
    let (mut port, id) = held_and_copied();
    port.fails.insert(id, (8, EAGAIN));
    port.command(Command::ForkHeld { session: id });
    port.pass(6_000);
    port.blind = Some(EAGAIN);
    port.pass(MINUTE);
    port.blind = None;
    port.pass(2 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running, "{:?}", port.row(id).words);
    assert!(matches!(port.conversation(id), Conversation::Fork { .. }));
}

// proves: A-12
#[test]
fn a_copy_is_chosen_for_one_launch_only() {
    let (mut port, id) = held_and_copied();
    port.command(Command::ForkHeld { session: id });
    port.pass(MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
    // somebody has the copy open, too
    port.holder = Some(Holder { pid: 301, start: 8, folder: "/elsewhere".into() });
    port.exit(id);
    let before = port.calls_of(id).len();
    port.pass(7 * MINUTE);
    assert_eq!(port.seen(id).pill, Some(Pill::Retry));
    port.command(Command::Retry { session: id });
    port.pass(2 * MINUTE);
    assert_eq!(port.calls_of(id).len(), before, "{:?}", port.conversation(id));
}

// proves: RS-23
#[test]
fn a_message_taken_back_while_its_relaunch_stands_in_line_ends_the_relaunch() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(1_000);
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    port.pass(10_000);
    let message = port.queue(id)[0].id;
    port.command(Command::Unqueue { session: id, message });
    port.headroom = Headroom::default();
    port.pass(15 * MINUTE);
    assert!(!port.row(id).cannot_launch, "red for nothing");
}

// proves: A-04
#[test]
fn the_hand_over_of_a_queue_launch_survives_a_relaunch_that_could_not_look() {
    let mut port = Port::new(Limits::default());
    port.exists = true;
    let id = port.create();
    port.pass(MINUTE);
    port.exit(id);
    port.shake_takes_ms = None;
    port.command(Command::Send { session: id, text: "two".into(), now: false });
    port.pass(2_000);
    assert!(matches!(port.conversation(id), Conversation::Resume { .. }));
    // the CLI does not find it any more
    port.exists = false;
    port.shake_takes_ms = Some(500);
    port.fails.insert(id, (8, EAGAIN));
    port.exit(id);
    port.pass(6_000);
    assert_eq!(port.row(id).status, Status::Starting);
    port.blind = Some(EAGAIN);
    port.pass(MINUTE);
    port.blind = None;
    port.pass(2 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running, "{:?}", port.row(id).words);
    assert!(matches!(port.last_line(id), Some(LineText::HandoverThen { .. })));
}

// proves: RS-11, INV-52
#[test]
fn who_was_hurried_and_left_the_line_stands_in_it_like_any_other() {
    let mut port = Port::new(Limits::default());
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    let ids: Vec<_> = (0..30).map(|_| port.create()).collect();
    let hurried = ids[29];
    port.pass(11 * MINUTE);
    assert_eq!(port.seen(hurried).pill, Some(Pill::Retry));
    // it is looked at before its start, and the person thinks better of it
    port.deaf = true;
    port.command(Command::Retry { session: hurried });
    port.command(Command::Stop { session: hurried });
    port.deaf = false;
    port.command(Command::Send { session: hurried, text: "again".into(), now: false });
    port.pass(25_000);
    assert!(port.calls_of(hurried).is_empty(), "it jumped the line and the machine's shortage");
}

// proves: RT-05
#[test]
fn retry_on_a_rung_that_stands_in_the_line_makes_it_the_persons_own() {
    let mut port = Port::new(Limits::default());
    port.exists = true;
    let id = port.create();
    port.pass(MINUTE);
    port.give_up(id);
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    while port.row(id).status != Status::Starting {
        port.pass(1_000);
    }
    port.command(Command::Retry { session: id });
    assert_eq!((port.row(id).pending, port.row(id).ladder.rungs), (None, 0));
    port.pass(5_000);
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::Running, None));
}

// proves: RS-02, RS-15, INV-59
#[test]
fn a_hand_over_that_the_machine_is_too_busy_to_read_is_a_hiccup() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.pass(MINUTE);
    port.answer_turn(id);
    port.exit(id);
    port.unread = Some(EAGAIN);
    port.command(Command::Send { session: id, text: "more".into(), now: false });
    port.pass(MINUTE);
    assert_eq!(port.row(id).status, Status::Starting);
    assert_eq!(port.notes_of(id).last(), Some(&prompt::NOTE_LAUNCH_HICCUP));
    port.unread = None;
    port.pass(MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
    assert!(matches!(port.last_line(id), Some(LineText::HandoverThen { .. })));
    assert!(!port.was(id, Status::Error));
    // what fails for a reason of its own is an error at once (RS-08)
    port.answer_turn(id);
    port.exit(id);
    port.unread = Some(ENOENT);
    port.command(Command::Send { session: id, text: "and more".into(), now: false });
    port.pass(1_000);
    assert_eq!(port.row(id).status, Status::Error);
}
