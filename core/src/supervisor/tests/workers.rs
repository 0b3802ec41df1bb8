//! Workers, from the agent's call to their report; gates, and the app's own answer for its own tools.

mod flock;
mod orphans;

use super::*;
use crate::id::Uuid;
use crate::limits::Limits;
use crate::message::Origin;
use crate::session::SessionRow;
use crate::settings::KillSwitches;
use alloc::vec::Vec;
use flock::Flock;

const TASK: &str = "Make the parser's tests pass.\nReport what was wrong.";

fn state(row: &SessionRow) -> (Status, Option<PendingAction>) {
    (row.status, row.pending)
}

// proves
#[test]
fn a_worker_is_a_session_like_its_parent_and_is_launched_at_once() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    let (mother, row) = (flock.row(parent).clone(), flock.row(worker).clone());
    assert_eq!((row.parent, row.launch_request.as_deref()), (Some(parent), Some(TASK)));
    assert_eq!(row.title, "Make the parser's tests pass.");
    assert_eq!(
        (&row.folder, &row.account, &row.model, row.permission_mode, row.user_settings_only),
        (
            &mother.folder,
            &mother.account,
            &mother.model,
            mother.permission_mode,
            mother.user_settings_only
        )
    );
    assert!(row.user_settings_only && row.model.is_some() && row.permission_mode.is_some());
    assert_eq!(state(&row), (Status::Starting, None));
    assert_eq!(flock.spawns, [parent, worker]);
    assert!(matches!(flock.plans[&worker].conversation, Conversation::New { .. }));
}

// proves: A-27, DB-10
#[test]
fn the_task_becomes_a_message_with_the_first_init_and_not_before() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.shake(worker);
    let line = flock.lines_of(worker)[0].clone();
    assert_eq!((line.origin, &line.text), (Origin::Orchestrator, &LineText::Own(TASK.into())));
    let row = flock.row(worker);
    assert!(flock.messages_of(worker).is_empty() && row.replay.message.is_none());
    assert_eq!((row.launch_request.as_deref(), row.cli_session_id), (Some(TASK), None));
    flock.init(worker);
    // one transaction: the id that says it lives, and the message that makes it replayable
    let named = flock
        .last_writes
        .iter()
        .any(|write| matches!(write, Write::Row { after, .. } if after.cli_session_id.is_some()));
    let stored = flock.last_writes.iter().any(|write| matches!(write, Write::Message(_)));
    assert!(named && stored, "{:?}", flock.last_writes);
    let message = flock.messages_of(worker)[0];
    assert_eq!(
        (message.id, message.origin, message.text.as_str()),
        (line.uuid, Origin::Orchestrator, TASK)
    );
    let row = flock.row(worker);
    assert_eq!((row.launch_request.clone(), row.replay.message), (None, Some(line.uuid)));
    assert_eq!(flock.bubbles.last(), Some(&(worker, line.uuid, TASK.into())));
    // a later init makes nothing of it again
    flock.init(worker);
    assert_eq!(flock.messages_of(worker).len(), 1);
}

// proves: A-27, DB-09
#[test]
fn a_worker_that_began_is_replayed_like_any_session() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.begin(worker);
    flock.die(worker);
    flock.retire();
    assert_eq!(state(flock.row(worker)), SHAPE);
    flock.pass_to_spawn(worker);
    flock.begin(worker);
    let message = flock.row(worker).replay.message.expect("the task");
    assert_eq!(flock.lines_of(worker)[1].text, LineText::Of(message));
}

#[test]
fn a_task_cut_short_by_a_crash_of_the_app_is_begun_anew() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.shake(worker);
    let first = flock.plans[&worker].conversation;
    flock.crash();
    flock.pass(1);
    assert_eq!(state(flock.row(worker)), (Status::Starting, None));
    assert_ne!(flock.plans[&worker].conversation, first, "never a conversation twice");
    flock.begin(worker);
    assert_eq!(flock.lines_of(worker)[1].text, LineText::Own(TASK.into()));
    assert_eq!(flock.messages_of(worker).len(), 1);
}

#[test]
fn retry_starts_a_worker_whose_launch_failed_with_its_task() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.die(worker);
    assert_eq!(state(flock.row(worker)), (Status::Error, None));
    assert_eq!(flock.command(Command::Retry { session: worker }), Ok(Reply::Done));
    flock.begin(worker);
    assert_eq!(flock.lines_of(worker)[0].text, LineText::Own(TASK.into()));
    assert_eq!(state(flock.row(worker)), (Status::Running, None));
}

// proves: A-27
#[test]
fn a_report_waits_for_its_parent_and_is_sent_once() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.begin(worker);
    flock.answer(worker, "<!-- omniscio:final-message -->\nAll tests pass.");
    let report = flock.messages_of(parent)[1..].to_vec();
    let [report] = report[..] else { panic!("{report:?}") };
    let report = report.clone();
    assert_eq!(report.origin, Origin::Orchestrator);
    assert!(report.text.ends_with("\n\nAll tests pass."), "{}", report.text);
    assert!(report.text.contains("Make the parser's tests pass."), "{}", report.text);
    assert_eq!(flock.lines_of(parent).len(), 1, "the parent's turn is open");
    flock.answer(parent, "I wait for my worker.");
    let lines = flock.lines_of(parent);
    assert_eq!((lines.len(), &lines[1].text), (2, &LineText::Of(report.id)));
    flock.answer(parent, "Done.");
    flock.crash();
    flock.pass(600_000);
    assert_eq!((flock.messages_of(parent).len(), flock.lines_of(parent).len()), (2, 2));
}

// proves: A-27, CT-06
#[test]
fn a_report_is_held_while_its_parent_is_being_recovered_and_resets_nothing() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.begin(worker);
    flock.die(parent);
    flock.answer(worker, "All tests pass.");
    assert_eq!(state(flock.row(parent)), SHAPE);
    assert_eq!((flock.lines_of(parent).len(), flock.messages_of(parent).len()), (1, 2));
    flock.pass_to_spawn(parent);
    flock.begin(parent);
    assert_eq!(flock.row(parent).retry_attempts, 1);
    flock.answer(parent, "Back again.");
    assert_eq!(flock.lines_of(parent)[2].origin, Origin::Orchestrator);
    assert_eq!(flock.row(parent).retry_attempts, 1);
}

#[test]
fn a_turn_that_delivers_nothing_reports_nothing() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.begin(worker);
    flock.answer(worker, "");
    assert_eq!(flock.messages_of(parent).len(), 1);
    // what comes by itself while the task is cut off is no answer to it
    let worker = flock.worker(parent, TASK);
    flock.begin(worker);
    flock.fail(worker);
    assert_eq!(flock.row(worker).pending, SHAPE.1);
    flock.answer_unasked(worker, "The server in the background stopped.");
    assert_eq!(flock.messages_of(parent).len(), 1);
    // nor does a session of the person
    flock.answer(parent, "Done.");
    assert!(flock.messages.iter().all(|message| message.text != "Done."));
    assert_eq!(flock.messages_of(parent).len(), 1);
}

// proves: A-22
#[test]
fn what_an_agent_asks_for_is_checked_and_bounded() {
    let limits = Limits { workers_max: 3, task_max_bytes: 100, ..Limits::default() };
    let mut flock = Flock::with(limits, KillSwitches::default());
    let parent = flock.parent();
    for (task, words) in
        [("  \n", "empty"), ("/compact now", "command"), (&"x".repeat(101), "longer")]
    {
        let refused = flock.call(parent, "spawn_worker", json!({"task": task}));
        assert!(refused.as_ref().is_err_and(|said| said.contains(words)), "{refused:?}");
    }
    assert_eq!(flock.rows.len(), 1);
    let worker = flock.worker(parent, "one");
    flock.begin(worker);
    // a worker's workers count with it
    let deep = flock.worker(worker, "two");
    flock.worker(parent, "three");
    for caller in [parent, worker] {
        let full = flock.call(caller, "spawn_worker", json!({"task": "four"}));
        assert!(full.as_ref().is_err_and(|said| said.contains('3')), "{full:?}");
    }
    assert!(flock.command(Command::End { session: deep }).is_ok());
    let title = format!("{}\nsecond line", "t".repeat(80));
    let told = flock.call(parent, "spawn_worker", json!({"task": "four", "title": title}));
    let title = told.expect("room again")["title"].as_str().map(str::to_string);
    assert_eq!(title.map(|title| title.chars().count()), Some(60));
}

// proves
#[test]
fn a_gate_is_open_until_it_is_closed_or_its_child_is_gone() {
    let limits = Limits { gates_max: 2, ..Limits::default() };
    let mut flock = Flock::with(limits, KillSwitches::default());
    let id = flock.parent();
    let names = |flock: &Flock| {
        flock.row(id).gates.iter().map(|gate| gate.name.clone()).collect::<Vec<_>>()
    };
    let call = |flock: &mut Flock, tool: &str, name: &str| {
        flock.call(id, tool, json!({"name": name})).is_ok()
    };
    assert!(call(&mut flock, "open_gate", " build "));
    assert_eq!(flock.row(id).gates[0].opened_at, flock.now.wall);
    for name in ["build", "", "a\nb", &"x".repeat(101)] {
        assert!(!call(&mut flock, "open_gate", name), "{name:?}");
    }
    assert!(call(&mut flock, "open_gate", "tests") && !call(&mut flock, "open_gate", "third"));
    assert_eq!(names(&flock), ["build", "tests"]);
    assert!(call(&mut flock, "close_gate", "build") && !call(&mut flock, "close_gate", "build"));
    assert_eq!(names(&flock), ["tests"]);
    flock.die(id);
    assert!(names(&flock).is_empty(), "the process that ran the check is gone");

    let mut flock = Flock::new();
    let id = flock.parent();
    assert!(flock.call(id, "open_gate", json!({"name": "build"})).is_ok());
    flock.crash();
    assert!(flock.row(id).gates.is_empty(), "a start of the app finds no check running");
}

// proves: A-22
#[test]
fn the_app_consents_to_its_own_tools_itself_and_refuses_other_servers() {
    let mut flock = Flock::new();
    let id = flock.parent();
    let input = json!({"name": "build"});
    let answer = flock.ask(id, ControlAsk::UseOwnTool { input: input.clone() });
    assert_eq!(answer, json!({"behavior": "allow", "updatedInput": input}));
    assert_eq!((state(flock.row(id)), &flock.row(id).card), ((Status::Running, None), &None));
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let body = ControlAsk::Mcp { server: "other".into(), message: json!({}) };
    rig.stream(StreamEvent::ControlRequest { request: "m1".into(), body });
    assert!(rig.controls.iter().any(|control| matches!(
        control,
        Control::Refuse { request, .. } if request == "m1"
    )));
}

// proves: A-22
#[test]
fn the_same_tools_answer_a_command_while_the_cli_runs() {
    let mut flock = Flock::new();
    let session = flock.parent();
    let open = AgentTool::OpenGate { name: "build".into() };
    let told = flock.command(Command::Agent { session, tool: open.clone() });
    assert_eq!(told, Ok(Reply::Told(json!({"opened": "build"}).to_string())));
    flock.die(session);
    let refused = flock.command(Command::Agent { session, tool: open });
    assert_eq!(refused.map_err(|wrong| wrong.code), Err(crate::ipc::IpcCode::NotEligible));
    let unknown = Command::Agent { session: Uuid(1), tool: AgentTool::ListWorkers };
    assert!(flock.command(unknown).is_err());
}
