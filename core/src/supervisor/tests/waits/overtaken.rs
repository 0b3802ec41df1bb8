//! A line of ours that is written while the CLI begins a turn of its own: that turn comes first.

use super::super::rig::Rig;
use super::woken::{asleep, watching};
use super::{YOURS, fires, state_of, tasks};
use crate::launch::Conversation;
use crate::message::{LineText, Origin};
use crate::session::{PendingAction, Status};
use crate::stream::{LifecycleState, StreamEvent};
use alloc::vec::Vec;

const RUNNING: (Status, Option<PendingAction>) = (Status::Running, None);

/// The CLI takes up the line that was written last.
fn takes_up(rig: &mut Rig) {
    let command = rig.lines.last().map(|line| line.uuid);
    rig.stream(StreamEvent::Lifecycle {
        command,
        state: LifecycleState::Started,
        wakeup_source: None,
        scheduled_for_ms: None,
    });
    rig.begin_by_itself();
}

/// A message is written to a session that waits for a wake-up, and the wake-up's turn has just begun.
fn overtaken() -> Rig {
    let mut rig = asleep();
    rig.send("two");
    fires(&mut rig, "loop_wakeup");
    rig
}

fn texts(rig: &Rig) -> Vec<LineText> {
    rig.lines.iter().map(|line| line.text.clone()).collect()
}

// proves
#[test]
fn a_turn_of_the_clis_own_that_comes_first_is_not_the_messages_turn() {
    let mut rig = overtaken();
    rig.send("three");
    rig.answer_naming("CI is green.", None);
    assert_eq!((state_of(&rig), rig.lines.len()), (RUNNING, 2), "the second is still to come");
    assert_eq!(rig.notified, 0);
    takes_up(&mut rig);
    rig.answer_turn("The second is done.");
    assert_eq!((state_of(&rig), rig.lines.len()), (RUNNING, 3), "now the third");
    takes_up(&mut rig);
    rig.answer_turn("The third is done.");
    assert_eq!((state_of(&rig), rig.lines.len(), rig.spawned), (YOURS, 3, 1));
}

// proves
#[test]
fn a_message_that_was_not_taken_up_is_sent_again_itself_whatever_ran_before_it() {
    for finished in [false, true] {
        let mut rig = overtaken();
        let two = rig.forget_last_line();
        rig.tool("call-own", "make all");
        if finished {
            rig.answer_naming("CI is green.", None);
        }
        rig.die();
        rig.pass(155_000);
        rig.shake();
        let again = rig.lines.last().expect("a line");
        assert_eq!(again.origin, Origin::Replay, "finished: {finished}");
        assert_eq!(Some(again.uuid), two, "finished: {finished}");
        assert!(matches!(again.text, LineText::Of(_)), "{:?}", texts(&rig));
        assert!(matches!(rig.plan().conversation, Conversation::Resume { .. }));
    }
}

// proves
#[test]
fn a_tasks_own_turn_comes_first_where_the_cli_names_the_lines_it_takes_up() {
    let mut rig = watching("local_bash", "Bash");
    rig.send("two");
    takes_up(&mut rig);
    rig.answer_turn("Done with two.");
    rig.send("three");
    tasks(&mut rig, &[]);
    // nothing names this turn
    rig.begin_by_itself();
    rig.answer_naming("The build is through.", None);
    assert_eq!(state_of(&rig), RUNNING, "the third is still to come");
    takes_up(&mut rig);
    rig.answer_turn("Done with three.");
    assert_eq!(state_of(&rig), YOURS);
}

// proves: A-10
#[test]
fn a_result_that_names_nothing_ends_a_turn_that_nothing_overtook() {
    let mut rig = asleep();
    rig.send("two");
    takes_up(&mut rig);
    rig.answer_naming("Done.", None);
    assert_ne!(state_of(&rig), RUNNING);
    let mut rig = overtaken();
    rig.stream(StreamEvent::Lifecycle {
        command: rig.lines.last().map(|line| line.uuid),
        state: LifecycleState::Started,
        wakeup_source: None,
        scheduled_for_ms: None,
    });
    rig.answer_naming("Done, with both.", None);
    assert_ne!(state_of(&rig), RUNNING, "it was folded into the turn");
}
