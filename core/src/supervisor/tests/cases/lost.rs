//! T14: a resume that the CLI refuses because it no longer has the conversation.

use super::Rig;
use crate::launch::Conversation;
use crate::prompt::NOTE_CONVERSATION_GONE;
use crate::session::Status;
use crate::stream::{StreamEvent, TurnResult};
use alloc::boxed::Box;

/// A session with one answer, whose next message is being taken into its conversation.
fn resuming() -> Rig {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    rig.send("two");
    assert!(matches!(rig.plan().conversation, Conversation::Resume { .. }));
    rig.spawn();
    rig.chatter("No conversation found with session ID: x");
    rig
}

// proves
#[test]
fn t14_a_refused_resume_is_handed_over_whether_a_result_or_the_exit_says_so() {
    for said in [true, false] {
        let mut rig = resuming();
        let dead = rig.plan().conversation.id();
        rig.lose_conversation();
        if said {
            // the next child is asked for in the same step, the exit behind it is nobody's any more
            let refused = TurnResult::refused_start("No conversation found".into());
            rig.stream(StreamEvent::Result(Box::new(refused)));
        } else {
            rig.die();
        }
        assert_eq!((rig.row().status, rig.spawned), (Status::Starting, 3), "said: {said}");
        let Conversation::New { id } = rig.plan().conversation else { panic!("{:?}", rig.plan()) };
        assert_ne!(id, dead);
        assert_eq!(rig.notes(NOTE_CONVERSATION_GONE), 1, "said aloud");
        rig.spawn_and_shake();
        assert_eq!(rig.last_text(), "two");
        let row = rig.row();
        assert_eq!((row.cli_session_id, row.cli_session_wanted), (Some(id), Some(id)));
        assert_eq!((row.cli_session_before, row.retry_attempts), (None, 0));
    }
}

// proves: A-04
#[test]
fn t14_a_start_that_dies_while_the_conversation_is_there_is_an_error_with_its_words() {
    let mut rig = resuming();
    rig.die();
    let row = rig.row();
    assert_eq!((row.status, row.pending, rig.spawned), (Status::Error, None, 2));
    let words = row.words.expect("words");
    assert!(words.ends_with("No conversation found with session ID: x"), "{words}");
    assert_eq!(rig.notes(NOTE_CONVERSATION_GONE), 0);
}
