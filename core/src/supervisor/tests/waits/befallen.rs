//! What befalls a session while it waits: commands, the queue, the lid, the clock.

use super::woken::{asleep, watching};
use super::*;
use crate::waiting::TaskKind;

// proves: A-17
#[test]
fn a_local_command_does_not_end_a_wait() {
    let mut rig = asleep();
    rig.send("/cost");
    rig.local_result("cost", "$0.01");
    assert_eq!((state_of(&rig), work(&rig).wakes.len()), (WAITING, 1));
}

// proves
#[test]
fn a_wake_up_that_comes_due_behind_a_local_command_is_sent_after_it() {
    let mut rig = asleep();
    rig.die();
    rig.pass(10 * MINUTE - 1_000);
    rig.send("/cost");
    rig.spawn_and_shake();
    rig.pass(2_000);
    assert_eq!(wakeups(&rig).len(), 0, "one after the other");
    rig.local_result("cost", "$0.01");
    rig.pass(1_000);
    assert_eq!(wakeups(&rig).len(), 1);
    rig.answer_turn("<!-- omniscio:final-message -->\nCI is green.");
    assert_eq!(state_of(&rig), YOURS);
}

// proves
#[test]
fn a_local_command_goes_back_to_no_wait_that_has_ended_meanwhile() {
    let mut rig = watching("local_bash", "Bash");
    rig.send("/cost");
    rig.pass(31 * MINUTE);
    rig.local_result("cost", "$0.01");
    assert_eq!((state_of(&rig), rig.row().deferred_work), (YOURS, None));
}

// proves: CS-06, CS-31, WD-02
#[test]
fn a_full_context_is_left_alone_while_the_agent_waits() {
    let mut rig = at_work();
    rig.context = Some((200_000, 200_000));
    wake_in(&mut rig, 10 * MINUTE);
    rig.answer_turn("Waiting for CI.");
    assert_eq!((state_of(&rig), rig.lines.len()), (WAITING, 1));
}

// proves: A-10
#[test]
fn what_waits_in_the_queue_goes_before_a_wait() {
    let mut rig = at_work();
    rig.send("and then this");
    wake_in(&mut rig, 10 * MINUTE);
    rig.answer_turn("Waiting.");
    assert_eq!(
        (state_of(&rig), rig.last_text().as_str()),
        ((Status::Running, None), "and then this")
    );
}

// proves: A-09
#[test]
fn a_closed_lid_leaves_the_cli_its_time_to_fire() {
    let mut rig = asleep();
    rig.pass(MINUTE);
    rig.sleep(480 * MINUTE);
    assert_eq!(state_of(&rig), WAITING);
    rig.pass(5 * MINUTE - 1);
    assert_eq!(state_of(&rig), WAITING);
    rig.pass(1);
    assert_eq!((state_of(&rig), wakeups(&rig).len()), (YOURS, 0));
    // without a child it comes as soon as the lid is open
    let mut rig = asleep();
    rig.die();
    rig.sleep(480 * MINUTE);
    assert_eq!(rig.spawned, 2);
}

// proves: A-09
#[test]
fn a_clock_that_is_set_moves_no_wake_up() {
    for step in [-7_200_000, 7_200_000] {
        let mut rig = asleep();
        rig.die();
        let wall = rig.now().wall.0 + step;
        rig.set_wall(crate::time::Wall(wall));
        rig.pass(10 * MINUTE - 1);
        assert_eq!(rig.spawned, 1, "{step}");
        rig.pass(1);
        assert_eq!(rig.spawned, 2, "{step}");
    }
}

// proves: A-16, RG-01
#[test]
fn a_sub_agent_holds_a_restart_and_a_command_for_half_an_hour() {
    for (kind, tool, after) in [("local_agent", "Agent", 1), ("local_bash", "Bash", 2)] {
        let mut rig = at_work();
        begin(&mut rig, "dev server", kind, tool);
        rig.fail_turn(500);
        assert_eq!(rig.row().pending, Some(PendingAction::ResponseAborted), "{tool}");
        rig.pass(29 * MINUTE);
        assert_eq!((rig.spawned, rig.row().retry_attempts), (1, 0), "{tool}");
        rig.pass(2 * MINUTE);
        assert_eq!(rig.spawned, after, "{tool}");
        let note = crate::prompt::note_commands_ended("dev server");
        assert_eq!(rig.notes(&note), after - 1, "{tool}");
    }
}

#[test]
fn hostile_alarms_stay_within_their_bounds() {
    let mut rig = at_work();
    for at in 0..200 {
        let id = alloc::format!("c{at}");
        call(&mut rig, &id, "CronCreate", json!({"cron": "x", "prompt": "p".repeat(100_000)}));
        let at_ms = if at % 2 == 0 { i64::MAX } else { i64::MIN + at };
        result(&mut rig, &id, Some(WakeSet { at_ms, cron: Some(id.clone()), recurring: true }));
    }
    let kept = work(&rig).wakes;
    assert!(kept.len() <= 32 && kept.iter().all(|wake| wake.prompt.len() <= 16 * 1024));
    let many: Vec<(&str, &str)> = (0..500).map(|_| ("t", "local_bash")).collect();
    tasks(&mut rig, &many);
    rig.answer_turn("Waiting.");
    let held = work(&rig).tasks;
    assert_eq!((state_of(&rig), held.len()), (WAITING, 32));
    assert!(held.iter().all(|task| task.kind == TaskKind::Command));
}
