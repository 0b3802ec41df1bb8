//! The wait hold as a table: every kind of work × marker × time, and every answer about a due wake-up.

use super::*;
use crate::id::Uuid;
use alloc::string::ToString;
use alloc::vec;
use serde_json::json;

const LIMIT: Millis = 30 * 60_000;

fn task(kind: TaskKind) -> WaitTask {
    WaitTask { id: "t".into(), kind, name: "CI".into() }
}

fn wake(cron: Option<Cron>) -> Wake {
    Wake { key: "w".into(), at: Some(Wall(1_000_000)), prompt: "go on".into(), cron }
}

fn every(every_ms: Option<Millis>) -> Wake {
    wake(Some(Cron { recurring: true, every_ms }))
}

// proves: A-16, WD-01
#[test]
fn what_holds_a_row_and_for_how_long() {
    let limits = Limits::default();
    assert_eq!(limits.wait_command_ms, LIMIT);
    let command = [task(TaskKind::Command)];
    let monitor = [task(TaskKind::Monitor)];
    let agent = [task(TaskKind::Agent)];
    let both = [task(TaskKind::Command), task(TaskKind::Agent)];
    let ahead = Some(HoldFor::AtMost(90_000));
    let only_the_cli_knows = Some(HoldFor::Open);
    let over = Verdict::NotMine(Why::HoldOver);
    let nothing = Verdict::NotMine(Why::NothingAwaited);
    let most = |left| Verdict::Act(HoldFor::AtMost(left));
    let open = Verdict::Act(HoldFor::Open);
    type Row<'a> = (&'a [WaitTask], Option<HoldFor>, Millis, Verdict<HoldFor>);
    let table: [Row<'_>; 15] = [
        (&[], None, 0, nothing),
        (&command, None, 0, most(LIMIT)),
        (&command, None, LIMIT - 1, most(1)),
        (&command, None, LIMIT, over.clone()),
        (&command, None, LIMIT * 9, over),
        (&monitor, None, 0, open.clone()),
        (&monitor, None, LIMIT * 9, open.clone()),
        (&agent, None, 0, open.clone()),
        (&agent, None, LIMIT * 9, open.clone()),
        (&both, None, LIMIT * 9, open.clone()),
        (&[], ahead, 0, most(90_000)),
        (&[], only_the_cli_knows, 0, open.clone()),
        (&command, ahead, LIMIT, most(90_000)),
        (&command, ahead, 0, most(LIMIT)),
        (&agent, ahead, LIMIT, open),
    ];
    for (tasks, wakes, since_end, expected) in table {
        let facts = HoldFacts { marked: false, wakes, tasks, since_end };
        assert_eq!(hold(facts, &limits), expected, "{facts:?}");
        // a final message behind the marker comes first, whatever runs
        let marked = HoldFacts { marked: true, ..facts };
        assert_eq!(hold(marked, &limits), Verdict::NotMine(Why::Delivered), "{facts:?}");
    }
}

// proves: A-09
#[test]
fn a_due_wake_up_is_sent_only_when_nobody_else_fires_it() {
    let row = SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
    let dead = WakeFacts::default();
    let up = WakeFacts { child_up: true, ..dead };
    let own = WakeFacts { owned: true, ..up };
    let single = wake(None);
    let once = wake(Some(Cron { recurring: false, every_ms: None }));
    let again = every(Some(60_000));
    let fires = Why::ChildFires;
    let queued = WakeFacts { wakeup_queued: true, ..dead };
    let until = Wall(5);
    let debounced = WakeFacts { debounced: Some(until), ..dead };
    let table = [
        (&single, dead, Verdict::Act(())),
        (&once, dead, Verdict::Act(())),
        (&again, dead, Verdict::Act(())),
        (&single, own, Verdict::Wait(fires.clone())),
        (&once, own, Verdict::Wait(fires.clone())),
        (&again, own, Verdict::Wait(fires.clone())),
        (&single, WakeFacts { late: true, ..own }, Verdict::GiveUp(fires.clone())),
        (&again, WakeFacts { late: true, ..own }, Verdict::GiveUp(fires.clone())),
        // a child of a later launch: the CLI loses a wake-up, and may have taken a cron over
        (&single, up, Verdict::Act(())),
        (&once, up, Verdict::Wait(fires.clone())),
        (&again, up, Verdict::Wait(fires)),
        (&once, WakeFacts { late: true, ..up }, Verdict::Act(())),
        (&single, WakeFacts { person_queued: true, ..dead }, Verdict::GiveUp(Why::UserFacing)),
        (&single, queued, Verdict::Wait(Why::WakeupQueued)),
        (&again, queued, Verdict::GiveUp(Why::WakeupQueued)),
        (
            &single,
            WakeFacts { restart_under_way: true, ..dead },
            Verdict::Wait(Why::RestartUnderWay),
        ),
        (&single, debounced, Verdict::Wait(Why::Debounced(until))),
        (&single, WakeFacts { child_up: true, ..debounced }, Verdict::Act(())),
    ];
    for (wake, facts, expected) in table {
        assert_eq!(wake_due(&row, wake, facts), expected, "{wake:?} {facts:?}");
    }
    for status in [Status::Paused, Status::Ended, Status::Archived] {
        let away = SessionRow { status, ..row.clone() };
        assert_eq!(wake_due(&away, &single, dead), Verdict::GiveUp(Why::Deliberate));
    }
}

// proves: A-09
#[test]
fn a_cron_goes_on_to_the_next_time_that_is_ahead() {
    let at = |wake: &Wake, now| wake.after_firing(Wall(now)).map(|next| next.at);
    let minutely = every(Some(60_000));
    assert_eq!(at(&minutely, 1_000_000), Some(Some(Wall(1_060_000))));
    assert_eq!(at(&minutely, 1_059_999), Some(Some(Wall(1_060_000))));
    assert_eq!(at(&minutely, 1_060_000), Some(Some(Wall(1_120_000))), "what was slept over is one");
    assert_eq!(at(&minutely, 0), Some(Some(Wall(1_060_000))), "fired a little early");
    assert_eq!(at(&every(None), 1_000_000), Some(None), "only the CLI knows");
    assert_eq!(at(&every(Some(0)), 1_000_000), Some(None));
    assert_eq!(at(&wake(None), 1_000_000), None);
    assert_eq!(at(&wake(Some(Cron { recurring: false, every_ms: Some(9) })), 1_000_000), None);
}

#[test]
fn the_period_is_told_only_for_rules_that_fire_evenly() {
    for (rule, minutes) in [
        ("* * * * *", Some(1)),
        ("*/5 * * * *", Some(5)),
        ("*/7 * * * *", None),
        ("*/0 * * * *", None),
        ("17 * * * *", Some(60)),
        ("61 * * * *", None),
        ("0 9 * * *", Some(24 * 60)),
        ("0 */6 * * *", Some(6 * 60)),
        ("0 */5 * * *", None),
        ("0 9 * * 1-5", None),
        ("0 9 1 * *", None),
        ("0,30 * * * *", None),
        ("0 9", None),
        ("", None),
    ] {
        assert_eq!(cron_period_ms(rule), minutes.map(|minutes: u64| minutes * 60_000), "{rule}");
    }
}

// proves: A-09
#[test]
fn calls_about_wake_ups_and_what_their_results_set() {
    let limits = Limits { wake_prompt_max_bytes: 5, ..Limits::default() };
    let read = |tool: &str, input: Value| AlarmCall::read(tool, &input, &limits);
    assert_eq!(read("Bash", json!({"prompt": "x"})), None);
    let wakeup = read("ScheduleWakeup", json!({"delaySeconds": 60, "prompt": "check CI"}));
    assert_eq!(wakeup, Some(AlarmCall::Wakeup { prompt: "check".into() }), "cut to its bound");
    let cut = read("ScheduleWakeup", json!({"prompt": "abcdé"}));
    assert_eq!(cut, Some(AlarmCall::Wakeup { prompt: "abcd".into() }), "never inside a letter");
    let cron = read("CronCreate", json!({"cron": "* * * * *", "prompt": "tick"}));
    let every_ms = Some(60_000);
    assert_eq!(cron, Some(AlarmCall::Cron { prompt: "tick".into(), every_ms }));
    let set = |cron: Option<&str>, recurring| WakeSet {
        at_ms: 7,
        cron: cron.map(ToString::to_string),
        recurring,
    };
    let call = AlarmCall::Wakeup { prompt: "p".into() };
    let single = Wake { key: "c".into(), at: Some(Wall(7)), prompt: "p".into(), cron: None };
    assert_eq!(alarm("c", call.clone(), Some(&set(None, false))), Alarm::Set(single));
    assert_eq!(alarm("c", call, None), Alarm::Unreadable);
    let call = AlarmCall::Cron { prompt: "p".into(), every_ms };
    let Alarm::Set(cron) = alarm("c", call, Some(&set(Some("id"), true))) else {
        panic!("a cron");
    };
    assert_eq!((cron.key.as_str(), cron.recurs()), ("id", true));
    let call = AlarmCall::CronDelete { id: "id".into() };
    assert_eq!(alarm("c", call, None), Alarm::TakenBack("id".into()));
}

#[test]
fn a_tasks_name_is_one_short_line() {
    assert_eq!(task_name(None), "");
    assert_eq!(task_name(Some("\n  long job \nmore")), "long job");
    assert_eq!(task_name(Some("<!-- omniscio:final-message -->")), "", "no marker reaches a row");
    assert_eq!(task_name(Some("a\u{1b}[31mb")), "a[31mb");
    let long = task_name(Some(&"x".repeat(100)));
    assert_eq!((long.chars().count(), long.ends_with('…')), (30, true));
}

#[test]
fn a_row_without_anything_left_to_wait_for_waits_for_nothing() {
    let mut row = SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
    edit(&mut row, |work| work.wakes = vec![wake(None), every(None)]);
    assert_eq!(row.deferred_work.as_ref().and_then(DeferredWork::next_at), Some(Wall(1_000_000)));
    edit(&mut row, |work| work.wakes.clear());
    assert_eq!(row.deferred_work, None);
}
