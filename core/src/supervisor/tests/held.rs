//! A conversation that another program has open: nobody resumes it, the row says so, and the
//! person takes it over or goes on in a copy.

use super::rig::Rig;
use super::*;
use crate::ipc::{IpcCode, IpcError};
use crate::session::{ChildMark, Holder};

fn holder(pid: u32) -> Option<Holder> {
    Some(Holder { pid, start: 7, folder: "/elsewhere".into() })
}

/// A session whose second turn died while another program has its conversation open.
fn cut_off_and_held() -> Rig {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.send("two");
    rig.tool("call-1", "make");
    rig.die();
    rig.holder = holder(300);
    rig
}

fn take_over(rig: &mut Rig) -> Result<Reply, IpcError> {
    let session = rig.id();
    let shown = rig.view().live.held.map_or(ChildMark { pid: 1, start: 1 }, |held| held.mark());
    rig.command(Command::TakeOver { session, shown })
}

fn go_on_in_a_copy(rig: &mut Rig) -> Result<Reply, IpcError> {
    let session = rig.id();
    rig.command(Command::ForkHeld { session })
}

// proves: A-12
#[test]
fn the_scan_leaves_a_held_conversation_alone_charges_nothing_and_the_row_says_who_has_it() {
    let mut rig = cut_off_and_held();
    assert_eq!(rig.view().live.held, None, "nobody has looked yet");
    let spawned = rig.spawned;
    rig.pass(900_000);
    assert_eq!((rig.spawned, state_of(&rig)), (spawned, SHAPE));
    assert_eq!((rig.row().retry_attempts, rig.row().last_restart_at), (0, None));
    assert_eq!(rig.view().live.held, holder(300));
}

// proves: A-12
#[test]
fn a_holder_that_goes_by_itself_lets_the_next_tick_replay() {
    let mut rig = cut_off_and_held();
    rig.pass(300_000);
    let spawned = rig.spawned;
    rig.holder = None;
    rig.pass(60_000);
    assert_eq!((rig.spawned, rig.row().retry_attempts), (spawned + 1, 1));
    assert_eq!(rig.view().live.held, None);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), prompt::CONTINUE_CUT_OFF);
}

// proves: A-12
#[test]
fn only_the_program_that_was_shown_is_ended() {
    let mut rig = cut_off_and_held();
    rig.pass(120_000);
    let session = rig.id();
    let shown = ChildMark { pid: 301, start: 1 };
    let refused = rig.command(Command::TakeOver { session, shown }).unwrap_err();
    assert_eq!(refused.code, IpcCode::NotEligible);
    assert_eq!((rig.view().live.held, state_of(&rig)), (holder(300), SHAPE));
}

// proves: A-12
#[test]
fn after_take_over_the_reply_goes_on_at_once() {
    let mut rig = cut_off_and_held();
    rig.pass(120_000);
    let spawned = rig.spawned;
    assert_eq!(take_over(&mut rig), Ok(Reply::Done));
    assert_eq!((rig.view().live.held, state_of(&rig)), (None, (Status::Starting, None)));
    rig.spawn_and_shake();
    assert_eq!((rig.spawned, rig.last_text().as_str()), (spawned + 1, prompt::CONTINUE_CUT_OFF));
    // a second click finds nothing to take over, and begins nothing
    assert_eq!(take_over(&mut rig).unwrap_err().code, IpcCode::NotEligible);
    assert_eq!(rig.spawned, spawned + 1);
}

// proves: A-12
#[test]
fn a_holder_that_does_not_end_keeps_the_conversation() {
    let mut rig = cut_off_and_held();
    rig.pass(120_000);
    let spawned = rig.spawned;
    rig.stubborn = true;
    let refused = take_over(&mut rig).unwrap_err();
    assert_eq!(refused.code, IpcCode::NotEligible);
    assert!(refused.message.contains("did not end"), "{refused:?}");
    assert_eq!((rig.view().live.held, state_of(&rig)), (holder(300), SHAPE));
    rig.pass(600_000);
    assert_eq!(rig.spawned, spawned, "nor does anybody else resume it");
}

// proves: A-12
#[test]
fn a_message_into_a_held_conversation_is_refused_in_words_and_sent_after_take_over() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    rig.holder = holder(300);
    let written = rig.lines.len();
    rig.send("two");
    assert_eq!(state_of(&rig), (Status::Error, None));
    assert_eq!(rig.row().words.as_deref(), Some(prompt::HELD_ELSEWHERE));
    assert_eq!((rig.spawned, rig.lines.len()), (1, written));
    assert_eq!(rig.view().live.queue.len(), 1, "the message is not lost");
    // Retry looks again, and is refused again
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    assert_eq!((rig.spawned, state_of(&rig)), (1, (Status::Error, None)));

    assert_eq!(take_over(&mut rig), Ok(Reply::Done));
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), state_of(&rig)), ("two", (Status::Running, None)));
}

// proves: A-12
#[test]
fn what_a_crash_left_is_not_resumed_while_it_is_held() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.holder = holder(300);
    rig.crash();
    rig.pass(600_000);
    let suspended = (Status::Paused, Some(PendingAction::AppRestartSuspended));
    assert_eq!((rig.spawned, state_of(&rig)), (1, suspended));
    assert_eq!(rig.view().live.held, holder(300));
    assert!(take_over(&mut rig).is_ok());
    rig.spawn_and_shake();
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Running, None)));
}

// proves: A-12
#[test]
fn a_copy_leaves_the_other_program_its_conversation() {
    let mut rig = cut_off_and_held();
    rig.pass(120_000);
    let (held, spawned) = (rig.row().cli_session_id, rig.spawned);
    assert_eq!(go_on_in_a_copy(&mut rig), Ok(Reply::Done));
    assert_eq!(rig.spawned, spawned + 1);
    let Conversation::Fork { from, id, at } = rig.plan().conversation else {
        panic!("{:?}", rig.plan());
    };
    assert!(Some(from) == held && Some(id) != held && at.is_none());
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), prompt::CONTINUE_CUT_OFF);
    assert_eq!(rig.view().live.held, None, "the copy is nobody else's");
}

// proves: A-12
#[test]
fn a_message_goes_into_a_copy_too() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    rig.holder = holder(300);
    rig.send("two");
    assert!(go_on_in_a_copy(&mut rig).is_ok());
    assert!(matches!(rig.plan().conversation, Conversation::Fork { at: None, .. }));
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "two");
}

// proves: A-12
#[test]
fn a_copy_that_was_chosen_for_one_holder_is_not_made_for_another() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    rig.holder = holder(300);
    rig.send("two");
    rig.holder = holder(400);
    assert!(go_on_in_a_copy(&mut rig).is_ok());
    assert_eq!((rig.spawned, rig.view().live.held), (1, holder(400)));
    // and one that is gone needs none
    rig.holder = None;
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    assert!(matches!(rig.plan().conversation, Conversation::Resume { .. }));
}

#[test]
fn a_session_that_was_put_away_meanwhile_does_not_go_on() {
    for put_away in [
        |session| Command::Delete { session },
        |session| Command::Archive { session },
        |_| Command::Quit,
    ] {
        let mut rig = cut_off_and_held();
        rig.pass(120_000);
        let (session, spawned) = (rig.id(), rig.spawned);
        assert!(rig.command(put_away(session)).is_ok());
        // the answer comes after it
        let _refused_or_done = take_over(&mut rig);
        assert_eq!(rig.spawned, spawned);
    }
}

// proves: A-12
#[test]
fn without_a_holder_there_is_nothing_to_take_over_or_to_copy() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    for refused in [take_over(&mut rig), go_on_in_a_copy(&mut rig)] {
        assert_eq!(refused.unwrap_err().code, IpcCode::NotEligible);
    }
}
