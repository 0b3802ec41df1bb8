//! The real CLI that waits: for a command in the background and for a wake-up of its own, and one that is
//! killed meanwhile.

use crate::bench::{Bench, body};
use crate::support::mock_api::Reply;
use crate::support::namespace::in_namespace;
use crate::support::real_cli::{wait_for, wait_until};
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::message::Origin;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::waiting::TaskKind;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// A wake-up of the CLI is at least a minute away, and rounded up to a whole one.
const WAKE: Duration = Duration::from_secs(125);
const WAITING: (Status, Option<PendingAction>) = (Status::Waiting, None);

/// A bench whose CLI needs no consent for what it waits with.
fn bench() -> Bench {
    let mut bench = Bench::quiet();
    let allow = json!({"permissions": {"allow": ["Bash", "ScheduleWakeup"]}});
    fs::write(bench.home.config().join("settings.json"), allow.to_string()).expect("written");
    bench.start();
    bench
}

/// A session that waits for a wake-up that was just set.
fn asleep(bench: &Bench) -> SessionId {
    let input = json!({"delaySeconds": 60, "reason": "waiting for CI", "prompt": "look at CI"});
    bench.api.push(Reply::new().tool_use("ScheduleWakeup", input));
    bench.api.push(Reply::new().text("I wait for CI"));
    let session = bench.create("tell me when CI is done");
    let row = bench.wait_state(session, "the wait", WAITING);
    let work = row.deferred_work.expect("what it waits for");
    assert_eq!((work.wakes.len(), work.tasks.len()), (1, 0));
    assert_eq!(work.wakes[0].prompt, "look at CI");
    session
}

/// Whether the row called for the person before it was woken.
fn called(bench: &Bench, session: SessionId) -> bool {
    let told = bench.told(session);
    let woken = told.iter().rposition(|(_, view)| view.row.status != Status::NeedsYou).unwrap_or(0);
    told[..woken].iter().any(|(_, view)| view.row.status == Status::NeedsYou)
}

fn wake_ups(bench: &Bench, session: SessionId) -> usize {
    let is_one = |kind: &BlockKind| matches!(kind, BlockKind::Auto { origin: Origin::Wakeup, .. });
    bench.blocks(session).iter().filter(|block| is_one(&block.kind)).count()
}

// proves, WD-01
#[test]
fn a_command_in_the_background_holds_the_row_until_its_own_turn() {
    in_namespace("waits::a_command_in_the_background_holds_the_row_until_its_own_turn", || {
        let bench = bench();
        let input = json!({"command": "python3 -c 'import time; time.sleep(6)'",
            "description": "the build", "run_in_background": true});
        bench.api.push(Reply::new().tool_use("Bash", input));
        bench.api.push(Reply::new().text("I wait for the build"));
        bench.api.push(Reply::new().text("it is built"));
        let session = bench.create("build it");
        let row = bench.wait_state(session, "the wait", WAITING);
        let tasks = row.deferred_work.expect("what it waits for").tasks;
        let seen: Vec<_> = tasks.iter().map(|task| (task.kind, task.name.as_str())).collect();
        assert_eq!(seen, [(TaskKind::Command, "the build")]);
        bench.wait_answer(session, "it is built");
        assert_eq!(bench.row(session).deferred_work, None);
        assert!(!called(&bench, session));
        wait_until(WAKE, "the notification", || bench.notified(session) > 0);
        assert_eq!((bench.notified(session), wake_ups(&bench, session)), (1, 0));
    });
}

// proves, WD-01
#[test]
fn a_wake_up_is_fired_by_the_cli_that_set_it_and_by_nobody_else() {
    in_namespace("waits::a_wake_up_is_fired_by_the_cli_that_set_it_and_by_nobody_else", || {
        let bench = bench();
        let session = asleep(&bench);
        bench.api.push(Reply::new().text("CI is green"));
        let launched = bench.row(session).child;
        wait_until(WAKE, "its own turn", || {
            bench.answers(session).iter().any(|answer| answer.contains("CI is green"))
        });
        bench.wait_answer(session, "CI is green");
        assert_eq!(bench.row(session).child, launched, "the same process");
        assert_eq!((bench.row(session).deferred_work, wake_ups(&bench, session)), (None, 0));
        assert!(!called(&bench, session));
        bench.assert_never_twice("look at CI");
    });
}

// proves: A-09, WD-03
#[test]
fn a_wake_up_whose_cli_was_killed_is_sent_by_the_app() {
    in_namespace("waits::a_wake_up_whose_cli_was_killed_is_sent_by_the_app", || {
        let bench = bench();
        let session = asleep(&bench);
        let due = bench.row(session).deferred_work.and_then(|work| work.next_at());
        let due = due.expect("a time");
        bench.kill_cli(session);
        wait_until(WAKE, "its end", || bench.row(session).child.is_none());
        let row = bench.row(session);
        assert_eq!(((row.status, row.pending), row.abort_cause), (WAITING, None), "no abort");
        bench.api.push(Reply::new().text("CI is green"));
        let woken = wait_for(WAKE, "the launch", || {
            let told = bench.told(session);
            let starts = |row: &omniscio_core::session::SessionRow| {
                row.status == Status::Starting && row.turn_count > 0
            };
            told.into_iter().find(|(_, view)| starts(&view.row)).map(|(at, _)| at.wall)
        });
        assert!(woken >= due, "{woken:?} is before {due:?}");
        bench.wait_answer(session, "CI is green");
        let last = bench.api.main_requests().pop().expect("a request");
        assert_eq!(last.count_text_in_history("look at CI"), 1, "{}", body(&last));
        assert_eq!(last.count_text_in_history("tell me when CI is done"), 1, "{}", body(&last));
        assert_eq!((wake_ups(&bench, session), bench.bubbles(session)), (1, 1));
        assert_eq!((bench.replays(session), bench.row(session).deferred_work), (0, None));
        assert!(!called(&bench, session));
    });
}
