//! The recorded streams of waiting sessions, line by line at their own times.

extern crate std;

use super::super::rig::Rig;
use super::{MINUTE, STALLED, WAITING, YOURS, at_work, state_of, work};
use crate::message::Origin;
use crate::session::{PendingAction, Status};
use crate::stream::captures_test::{captures, events};
use crate::time::Wall;
use crate::waiting::TaskKind;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde_json::Value;

type State = (Status, Option<PendingAction>);

const RUNNING: State = (Status::Running, None);

/// What the row was, one after the other, while the capture was played from this time of day.
fn play(rig: &mut Rig, number: &str, wall: i64) -> Vec<State> {
    let (_, bytes) =
        captures().into_iter().find(|(name, _)| name.starts_with(number)).expect(number);
    rig.set_wall(Wall(wall));
    let began = rig.now().mono;
    let mut seen = vec![state_of(rig)];
    for line in String::from_utf8(bytes).expect("text").lines() {
        let json: Value = serde_json::from_str(line).expect("json");
        let at = (json["_t"].as_f64().expect("a time") * 1_000.0) as u64;
        rig.pass(at.saturating_sub(rig.now().mono.since(began)));
        for event in events(line.as_bytes(), &[]) {
            rig.stream(event);
            let now = state_of(rig);
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
    }
    seen
}

const SOMETIME: i64 = 1_796_035_850_000;

// proves, WD-01
#[test]
fn a_background_command_holds_the_row_until_its_own_turn() {
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "30-", SOMETIME), [RUNNING, WAITING, RUNNING, YOURS]);
    assert_eq!((rig.row().deferred_work, rig.view().live.background), (None, 0));
    assert_eq!(rig.notified, 1, "told once, when it was over");
}

// proves, WD-01
#[test]
fn a_wake_up_holds_the_row_until_the_cli_fires_it() {
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "31-", 1_796_035_858_830), [RUNNING, WAITING, RUNNING, YOURS]);
    assert_eq!(rig.row().deferred_work, None);
    rig.pass(60 * MINUTE);
    assert_eq!((rig.lines.len(), rig.spawned), (1, 1), "nobody sends it a second time");
}

// proves
#[test]
fn a_monitor_holds_the_row_between_its_batches() {
    let mut rig = at_work();
    let batch = [RUNNING, WAITING];
    let seen = play(&mut rig, "32-", SOMETIME);
    let expected = [batch, batch, batch, batch, [RUNNING, YOURS]].concat();
    assert_eq!(seen, expected);
}

// proves
#[test]
fn only_a_background_sub_agent_holds_the_row() {
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "33-", SOMETIME), [RUNNING, YOURS], "in the foreground");
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "34-", SOMETIME), [RUNNING, WAITING, RUNNING, YOURS]);
}

// proves
#[test]
fn a_cron_holds_the_row_until_the_cli_fires_it() {
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "35-", 1_796_035_934_550), [RUNNING, WAITING, RUNNING, YOURS]);
    assert_eq!(rig.row().deferred_work, None, "it was to fire once");
}

// proves
#[test]
fn a_command_that_was_moved_to_the_background_holds_the_row_for_half_an_hour() {
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "37-", SOMETIME), [RUNNING, WAITING]);
    let held = work(&rig).tasks;
    let [task] = held.as_slice() else { panic!("{held:?}") };
    assert_eq!((task.name.as_str(), task.kind), ("long", TaskKind::Command));
    rig.pass(30 * MINUTE - 1);
    assert_eq!((state_of(&rig), rig.notified), (WAITING, 0));
    rig.pass(1);
    assert_eq!((state_of(&rig), rig.notified), (YOURS, 1));
    assert_eq!((rig.row().deferred_work, rig.view().live.background), (None, 1), "it still runs");
}

// proves, WD-03
#[test]
fn a_wake_up_whose_cli_is_gone_is_sent_by_the_app() {
    let mut rig = at_work();
    assert_eq!(play(&mut rig, "38-", 1_796_036_905_779), [RUNNING, WAITING]);
    rig.die();
    assert_eq!(state_of(&rig), WAITING, "no abort");
    let left = 1_796_037_000_000 - rig.now().wall.0;
    rig.pass(u64::try_from(left).expect("ahead") - 1);
    assert_eq!((rig.spawned, state_of(&rig)), (1, WAITING));
    rig.pass(1);
    assert_eq!((rig.spawned, state_of(&rig)), (2, (Status::Starting, None)));
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), state_of(&rig)), ("check CI", RUNNING));
    assert_eq!(rig.lines.last().map(|line| line.origin), Some(Origin::Wakeup));
}

// proves: A-16, WD-03
#[test]
fn a_task_whose_cli_is_gone_is_lost() {
    let mut rig = at_work();
    play(&mut rig, "37-", SOMETIME);
    rig.die();
    assert_eq!(
        (state_of(&rig), rig.row().words.as_deref()),
        (STALLED, Some("background task was lost"))
    );
    assert_eq!((rig.row().deferred_work, rig.view().live.background), (None, 0));
}
