//! Who wakes a session, and what ends a wait.

use super::super::rig::Rig;
use super::*;
use crate::ipc::IpcCode;
use crate::launch::Conversation;
use crate::session::AbortCause;
use crate::supervisor::Command;

/// A session that waits for a wake-up in ten minutes.
pub(super) fn asleep() -> Rig {
    let mut rig = at_work();
    wake_in(&mut rig, 10 * MINUTE);
    rig.answer_turn("Waiting for CI.");
    assert_eq!(state_of(&rig), WAITING);
    rig
}

/// A session that waits for a task of this type.
pub(super) fn watching(kind: &str, tool: &str) -> Rig {
    let mut rig = at_work();
    begin(&mut rig, "t1", kind, tool);
    rig.answer_turn("Waiting for it.");
    assert_eq!(state_of(&rig), WAITING);
    rig
}

// proves: A-16, WD-01, WD-02
#[test]
fn each_kind_of_work_holds_a_turn_without_the_marker_and_none_with_it() {
    type Named = (&'static str, fn(&mut Rig));
    let set: [Named; 5] = [
        ("wake-up", |rig| wake_in(rig, MINUTE)),
        ("cron", |rig| cron_in(rig, MINUTE, "* * * * *", true)),
        ("command", |rig| begin(rig, "t1", "local_bash", "Bash")),
        ("monitor", |rig| begin(rig, "t1", "local_bash", "Monitor")),
        ("sub-agent", |rig| begin(rig, "t1", "local_agent", "Agent")),
    ];
    for (name, prepare) in set {
        for (text, expected) in [("Waiting.", WAITING), (MARKED, YOURS)] {
            let mut rig = at_work();
            prepare(&mut rig);
            rig.answer_turn(text);
            assert_eq!(state_of(&rig), expected, "{name}, {text}");
            assert_eq!(rig.notified, usize::from(expected == YOURS), "{name}");
            let task = usize::from(!matches!(name, "wake-up" | "cron"));
            let waits = expected == WAITING;
            let kept = (work(&rig).wakes.len(), work(&rig).tasks.len());
            assert_eq!(kept, (1 - task, task * usize::from(waits)), "{name}, {text}");
        }
    }
}

// proves: A-16
#[test]
fn a_marker_before_more_work_is_no_final_message() {
    let mut rig = at_work();
    rig.say(Content::Text(MARKED.into()));
    begin(&mut rig, "t1", "local_bash", "Bash");
    rig.answer_turn("Waiting for it.");
    assert_eq!(state_of(&rig), WAITING);
    let mut rig = at_work();
    begin(&mut rig, "t1", "local_bash", "Bash");
    rig.answer_turn("Text before it alone.\n<!-- omniscio:final-message -->\n");
    assert_eq!(state_of(&rig), WAITING, "nothing stands behind the marker");
}

// proves: A-16
#[test]
fn a_command_alone_holds_half_an_hour_and_a_monitor_for_good() {
    for (tool, after) in [("Bash", YOURS), ("Monitor", WAITING)] {
        let mut rig = watching("local_bash", tool);
        rig.pass(30 * MINUTE - 1);
        assert_eq!(state_of(&rig), WAITING, "{tool}");
        rig.pass(1);
        assert_eq!(state_of(&rig), after, "{tool}");
        rig.pass(600 * MINUTE);
        assert_eq!((state_of(&rig), rig.spawned), (after, 1), "{tool}");
    }
    // the monitor ends after the half hour, a command is left: it holds no longer
    let mut rig = at_work();
    begin(&mut rig, "m", "local_bash", "Monitor");
    tasks(&mut rig, &[("m", "local_bash"), ("dev server", "local_bash")]);
    rig.answer_turn("Waiting.");
    rig.pass(40 * MINUTE);
    assert_eq!(state_of(&rig), WAITING);
    tasks(&mut rig, &[("dev server", "local_bash")]);
    assert_eq!(state_of(&rig), YOURS);
}

// proves: A-09
#[test]
fn the_last_tasks_end_waits_a_moment_for_the_turn_that_follows() {
    let mut rig = watching("local_bash", "Bash");
    tasks(&mut rig, &[]);
    rig.pass(19_999);
    assert_eq!(state_of(&rig), WAITING);
    rig.begin_by_itself();
    assert_eq!((state_of(&rig), rig.row().deferred_work), ((Status::Running, None), None));
    let mut rig = watching("local_bash", "Bash");
    tasks(&mut rig, &[]);
    rig.pass(20_000);
    assert_eq!((state_of(&rig), rig.notified), (YOURS, 1), "no turn came");
}

// proves, WD-03
#[test]
fn a_dead_child_loses_its_task_and_keeps_its_wake_up() {
    let mut rig = at_work();
    begin(&mut rig, "t1", "local_bash", "Bash");
    wake_in(&mut rig, 10 * MINUTE);
    rig.answer_turn("Waiting for both.");
    rig.die();
    assert_eq!((state_of(&rig), work(&rig).tasks.len()), (WAITING, 0));
    assert_eq!(rig.notes(crate::prompt::NOTE_TASK_LOST), 1);
    rig.pass(10 * MINUTE);
    assert_eq!(rig.spawned, 2);
    assert!(matches!(rig.plan().conversation, Conversation::Resume { .. }));
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), wakeups(&rig).len()), ("check CI", 1));
    rig.answer_turn("Woke up.");
    assert_eq!((state_of(&rig), rig.row().deferred_work), (YOURS, None));
    rig.pass(600 * MINUTE);
    assert_eq!((rig.spawned, wakeups(&rig).len()), (2, 1), "once");
}

// proves: A-09, WD-03, A-31
#[test]
fn a_wake_up_survives_a_restart_of_the_app() {
    let mut rig = asleep();
    rig.pass(MINUTE);
    rig.crash();
    assert_eq!((state_of(&rig), rig.spawned), (WAITING, 1), "nothing is launched for it yet");
    rig.pass(9 * MINUTE - 1);
    assert_eq!(rig.spawned, 1);
    rig.pass(1);
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Starting, None)));
    // killed again between the queue and the child: it is in the queue, and in no other place
    rig.crash();
    assert_eq!(rig.row().deferred_work, None);
    rig.pass(2 * MINUTE);
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), wakeups(&rig).len()), ("check CI", 1));
    // one that came due while the app was away comes with the first scan
    let mut rig = asleep();
    rig.pass(0);
    rig.away(60 * MINUTE);
    assert_eq!((state_of(&rig), rig.spawned), (WAITING, 1));
    rig.pass(29_999);
    assert_eq!(rig.spawned, 1);
    rig.pass(1);
    assert_eq!(rig.spawned, 2);
}

// proves: A-16, WD-03
#[test]
fn a_task_does_not_survive_a_restart_of_the_app() {
    let mut rig = watching("local_agent", "Agent");
    rig.crash();
    assert_eq!((state_of(&rig), rig.notified), (STALLED, 1));
    assert_eq!(rig.row().words.as_deref(), Some("background task was lost"));
    let session = rig.id();
    assert!(rig.command(Command::Continue { session }).is_ok());
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "Please continue.");
}

// proves: A-09
#[test]
fn the_child_that_set_it_fires_it_and_nobody_else() {
    let mut rig = asleep();
    rig.pass(10 * MINUTE + 2_000);
    assert_eq!((state_of(&rig), wakeups(&rig).len(), rig.spawned), (WAITING, 0, 1));
    fires(&mut rig, "loop_wakeup");
    assert_eq!((state_of(&rig), rig.row().deferred_work), ((Status::Running, None), None));
    rig.answer_turn("Woke up.");
    // and dies after that: nothing is left to send
    rig.die();
    rig.pass(600 * MINUTE);
    assert_eq!((state_of(&rig), wakeups(&rig).len(), rig.spawned), (YOURS, 0, 1));
    // a child that never fires it: the row is the person's in the end, nothing is sent over it
    let mut rig = asleep();
    rig.pass(15 * MINUTE - 1);
    assert_eq!(state_of(&rig), WAITING);
    rig.pass(1);
    assert_eq!((state_of(&rig), wakeups(&rig).len()), (YOURS, 0));
}

// proves: A-09
#[test]
fn a_recurring_cron_is_the_resumed_clis_again() {
    let mut rig = at_work();
    cron_in(&mut rig, MINUTE, "* * * * *", true);
    rig.answer_turn("Watching.");
    rig.pass(30_000);
    rig.die();
    // due without a child: sent once
    rig.pass(30_000);
    assert_eq!(rig.spawned, 2);
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), wakeups(&rig).len()), ("tick", 1));
    rig.answer_turn("Looked.");
    assert_eq!(state_of(&rig), WAITING);
    // from now on the resumed child fires it
    for _ in 0..3 {
        rig.pass(MINUTE);
        assert_eq!(wakeups(&rig).len(), 1);
        fires(&mut rig, "schedule_wakeup");
        rig.answer_naming("Looked again.", None);
        assert_eq!(state_of(&rig), WAITING);
    }
    // and when that one is gone too, the app, from the next time on
    rig.die();
    rig.pass(2 * MINUTE);
    assert_eq!(rig.spawned, 3);
}

// proves: A-09
#[test]
fn a_cron_whose_next_time_only_the_cli_knows_ends_with_it() {
    let mut rig = at_work();
    cron_in(&mut rig, MINUTE, "0 9 * * 1-5", true);
    rig.answer_turn("Watching.");
    rig.pass(MINUTE);
    fires(&mut rig, "schedule_wakeup");
    rig.answer_naming("Looked.", None);
    assert_eq!((state_of(&rig), work(&rig).next_at()), (WAITING, None));
    rig.pass(600 * MINUTE);
    assert_eq!(state_of(&rig), WAITING);
    rig.die();
    assert_eq!(state_of(&rig), STALLED);
}

// proves: A-09
#[test]
fn a_cron_taken_back_wakes_nobody() {
    let mut rig = at_work();
    cron_in(&mut rig, MINUTE, "* * * * *", true);
    call(&mut rig, "call-d", "CronDelete", json!({"id": "c1"}));
    result(&mut rig, "call-d", None);
    rig.answer_turn("Stopped watching.");
    assert_eq!((state_of(&rig), rig.row().deferred_work), (YOURS, None));
}

#[test]
fn a_message_of_the_person_ends_the_wait() {
    let mut rig = asleep();
    rig.send("never mind CI");
    assert_eq!(state_of(&rig), (Status::Running, None));
    rig.answer_turn(MARKED);
    assert_eq!(state_of(&rig), YOURS);
    // the child lives and still has its wake-up: an ordinary turn when it fires
    fires(&mut rig, "loop_wakeup");
    assert_eq!((state_of(&rig), rig.row().deferred_work), ((Status::Running, None), None));
    // a wake-up that only the app would send ends with the message
    let mut rig = asleep();
    rig.die();
    rig.send("never mind CI");
    rig.spawn_and_shake();
    assert_eq!(rig.row().deferred_work, None);
    rig.answer_turn(MARKED);
    rig.pass(600 * MINUTE);
    assert_eq!((state_of(&rig), wakeups(&rig).len()), (YOURS, 0));
    // also when its time comes before the message is on its way
    let mut rig = asleep();
    rig.die();
    rig.send("never mind CI");
    rig.spawn();
    rig.pass(10 * MINUTE);
    assert_eq!(wakeups(&rig).len(), 0);
    assert_eq!(rig.view().live.queue.len(), 1, "the message, and no wake-up behind it");
}

// proves: WD-02
#[test]
fn stop_end_archive_and_delete_end_the_wait() {
    let session = asleep().id();
    for (command, expected) in [
        (Command::Stop { session }, (Status::NeedsYou, Some(PendingAction::Stopped))),
        (Command::End { session }, (Status::Ended, None)),
        (Command::Archive { session }, (Status::Archived, None)),
    ] {
        for dead in [false, true] {
            let mut rig = asleep();
            if dead {
                rig.die();
            }
            assert!(rig.command(command.clone()).is_ok(), "{command:?}");
            assert_eq!((state_of(&rig), rig.row().deferred_work), (expected, None));
            rig.pass(600 * MINUTE);
            assert_eq!((state_of(&rig), rig.spawned), (expected, 1), "{command:?}");
        }
    }
    let mut rig = asleep();
    rig.die();
    assert!(rig.command(Command::Delete { session }).is_ok());
    rig.pass(600 * MINUTE);
    assert_eq!(rig.spawned, 1);
}

// proves: RT-18
#[test]
fn a_waiting_row_offers_no_button() {
    let mut rig = asleep();
    let session = rig.id();
    for command in [Command::Continue { session }, Command::Retry { session }] {
        let refused = rig.command(command).map_err(|wrong| wrong.code);
        assert_eq!(refused, Err(IpcCode::NotEligible));
    }
    assert_eq!(state_of(&rig), WAITING);
}

// proves: AB-07, WD-02
#[test]
fn a_question_is_not_hidden_behind_a_wait() {
    let mut rig = at_work();
    wake_in(&mut rig, 10 * MINUTE);
    rig.ask_permission("call-2", "make deploy");
    rig.answer_turn("Waiting.");
    let asked = (Status::NeedsYou, Some(PendingAction::PermissionRequest));
    assert_eq!((state_of(&rig), work(&rig).wakes.len()), (asked, 1));
    rig.die();
    rig.pass(60 * MINUTE);
    assert_eq!((state_of(&rig), rig.spawned), (asked, 1), "the card goes first");
    let held: Vec<Origin> = rig.view().live.queue.iter().map(|queued| queued.origin).collect();
    assert_eq!(held, [Origin::Wakeup]);
}

// proves: PS-05
#[test]
fn a_wake_up_waits_behind_a_cut_off_reply() {
    let mut rig = at_work();
    wake_in(&mut rig, MINUTE);
    rig.folder = false;
    rig.die();
    assert_eq!(rig.row().abort_cause, Some(AbortCause::ProcessExit));
    rig.pass(5 * MINUTE);
    assert_eq!((rig.spawned, wakeups(&rig).len()), (1, 0));
    rig.folder = true;
    rig.pass(2 * MINUTE);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), crate::prompt::CONTINUE_CUT_OFF);
    rig.answer_turn("Went on.");
    assert_eq!((rig.last_text().as_str(), wakeups(&rig).len()), ("check CI", 1));
}

// proves: CT-06, A-09
#[test]
fn a_wake_up_resets_nothing_and_its_turn_is_nobodys_message() {
    let mut rig = asleep();
    rig.tamper(|row| row.retry_attempts = 2);
    rig.die();
    rig.pass(10 * MINUTE);
    rig.spawn_and_shake();
    assert_eq!(wakeups(&rig), [(Origin::Wakeup, false)]);
    let row = rig.row();
    assert_eq!((row.retry_attempts, row.replay.message), (2, None));
    // its turn dies: it goes on by the sentence, like any turn that began by itself
    rig.die();
    rig.tamper(|row| row.retry_attempts = 0);
    rig.pass(155_000);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), crate::prompt::CONTINUE_CUT_OFF);
}

// proves: INV-01
#[test]
fn a_wake_up_is_no_way_around_the_debounce() {
    let mut rig = asleep();
    rig.die();
    rig.pass(9 * MINUTE + 30_000);
    let restarted = rig.now().wall;
    rig.tamper(|row| row.last_restart_at = Some(restarted));
    rig.pass(89_999);
    assert_eq!(rig.spawned, 1);
    rig.pass(1);
    assert_eq!(rig.spawned, 2);
}
