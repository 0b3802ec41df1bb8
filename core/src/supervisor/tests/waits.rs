//! Rows that wait: what the recorded streams make of a row, and who wakes it.

mod befallen;
mod overtaken;
mod replayed;
mod woken;

use super::rig::Rig;
use super::state_of;
use crate::message::Origin;
use crate::session::{PendingAction, Status};
use crate::stream::{
    BackgroundTask, Content, LifecycleState, StreamEvent, TaskEvent, TaskPhase, ToolResult,
    UserEcho, WakeSet,
};
use crate::waiting::DeferredWork;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use serde_json::{Value, json};

const WAITING: (Status, Option<PendingAction>) = (Status::Waiting, None);
const YOURS: (Status, Option<PendingAction>) = (Status::NeedsYou, None);
const STALLED: (Status, Option<PendingAction>) = (Status::Stalled, None);
const MINUTE: u64 = 60_000;
const MARKED: &str = "<!-- omniscio:final-message -->\nDone.";

/// A session in the middle of its first turn.
fn at_work() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig
}

fn work(rig: &Rig) -> DeferredWork {
    rig.row().deferred_work.unwrap_or_default()
}

/// The whole set of live tasks: id, type.
fn tasks(rig: &mut Rig, tasks: &[(&str, &str)]) {
    let set = tasks.iter().map(|(id, kind)| BackgroundTask {
        task: id.to_string(),
        kind: kind.to_string(),
        summary: Some(id.to_string()),
    });
    rig.stream(StreamEvent::BackgroundTasks(set.collect()));
}

fn call(rig: &mut Rig, call: &str, name: &str, input: Value) {
    rig.say(Content::ToolUse { id: call.into(), name: name.into(), input });
}

fn result(rig: &mut Rig, call: &str, wakes: Option<WakeSet>) {
    rig.stream(StreamEvent::from(UserEcho {
        uuid: None,
        parent: None,
        synthetic: false,
        replay: false,
        text: None,
        results: vec![ToolResult {
            tool_use: call.into(),
            text: "done".into(),
            failed: false,
            denied: false,
        }],
        wakes,
    }));
}

/// A background task of this type begins.
fn begin(rig: &mut Rig, id: &str, kind: &str, tool: &str) {
    call(rig, "call-1", tool, json!({"command": "make", "run_in_background": true}));
    tasks(rig, &[(id, kind)]);
    rig.stream(StreamEvent::Task(TaskEvent {
        task: id.into(),
        tool_use: Some("call-1".into()),
        phase: TaskPhase::Started,
        is_agent: kind == "local_agent",
        background: true,
        summary: None,
    }));
    result(rig, "call-1", None);
}

/// A wake-up in so many milliseconds.
fn wake_in(rig: &mut Rig, millis: u64) {
    call(rig, "call-w", "ScheduleWakeup", json!({"delaySeconds": 60, "prompt": "check CI"}));
    let at_ms = rig.now().wall.plus(millis).0;
    result(rig, "call-w", Some(WakeSet { at_ms, cron: None, recurring: false }));
}

/// A cron that fires first in so many milliseconds.
fn cron_in(rig: &mut Rig, millis: u64, rule: &str, recurring: bool) {
    call(rig, "call-c", "CronCreate", json!({"cron": rule, "prompt": "tick"}));
    let at_ms = rig.now().wall.plus(millis).0;
    result(rig, "call-c", Some(WakeSet { at_ms, cron: Some("c1".into()), recurring }));
}

/// The CLI fires a wake-up of its own.
fn fires(rig: &mut Rig, source: &str) {
    rig.stream(StreamEvent::Lifecycle {
        command: None,
        state: LifecycleState::Started,
        wakeup_source: Some(source.into()),
        scheduled_for_ms: None,
    });
    rig.begin_by_itself();
}

fn wakeups(rig: &Rig) -> Vec<(Origin, bool)> {
    let sent = rig.lines.iter().filter(|line| line.origin == Origin::Wakeup);
    sent.map(|line| (line.origin, line.origin.is_real_user())).collect()
}
