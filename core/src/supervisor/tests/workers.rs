//! Workers, from the agent's call to their report, and the retirement of those that never came to
//! life; gates, and the app's own answer for its own tools.

mod flock;

use super::*;
use crate::id::{Rng, SessionId, Uuid};
use crate::limits::Limits;
use crate::message::Origin;
use crate::session::{ArchiveReason, SessionRow, ToolCall, is_legal};
use crate::settings::KillSwitches;
use crate::time::Wall;
use alloc::vec;
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
    flock.pass_to_spawn();
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
    flock.pass_to_spawn();
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
    // nor does a session of the person
    flock.answer(parent, "Done.");
    assert_eq!(flock.messages.len(), 2);
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

// proves: PO-01, PO-03, PO-08, PO-10, A-27
#[test]
fn of_a_fan_out_exactly_those_that_never_came_to_life_are_retired() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let workers: Vec<SessionId> =
        (0..12).map(|n| flock.worker(parent, &format!("fix test {n}"))).collect();
    // one never starts, one takes its task and dies before it names its session
    for (n, worker) in workers.iter().enumerate() {
        match n {
            3 => flock.die(*worker),
            7 => {
                flock.shake(*worker);
                flock.die(*worker);
            }
            _ => flock.begin(*worker),
        }
    }
    flock.die(workers[5]);
    let (notified, lines, spawns) = (flock.notified, flock.lines.len(), flock.spawns.len());
    flock.retire();
    for (n, worker) in workers.iter().enumerate() {
        let row = flock.row(*worker);
        let retired = row.status == Status::Archived;
        assert_eq!(retired, matches!(n, 3 | 7), "{n}: {row:?}");
        assert_eq!(row.archive_reason, retired.then_some(ArchiveReason::OrphanPreinit));
    }
    assert_eq!(flock.notified, notified, "nobody is called");
    assert_eq!(flock.lines.len(), lines, "nothing is written to a child");
    let told = flock.notes.iter().filter(|(of, _)| *of == parent).count();
    assert_eq!(told, 2, "{:?}", flock.notes);
    let list = flock.call(parent, "list_workers", json!({})).expect("a list");
    let reasons: Vec<_> = list["retired"].as_array().expect("a list").iter().collect();
    assert_eq!(reasons.len(), 2);
    assert_eq!(reasons[0]["reason"], "orphan-preinit");
    assert_eq!(list["workers"].as_array().map(Vec::len), Some(10));
    assert!(list["workers"][0]["state"] == "running", "{list}");
    // a day of scans and restarts of the app spawns none of them again
    flock.crash();
    flock.pass(24 * 3_600_000);
    let again = &flock.spawns[spawns..];
    assert!(again.iter().all(|id| *id != workers[3] && *id != workers[7]), "{again:?}");
    flock.retire();
    assert_eq!(flock.notes.iter().filter(|(of, _)| *of == parent).count(), 2, "told once");
}

/// The app starts on a worker in this state, dead before it named its session.
fn orphan_in(status: Status, pending: Option<PendingAction>, switches: KillSwitches) -> Flock {
    let mut flock = Flock::with(Limits::default(), switches);
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.shake(worker);
    flock.die(worker);
    let row = flock.rows.get_mut(&worker).expect("the worker");
    (row.status, row.pending, row.intent_running) = (status, pending, false);
    flock.crash();
    flock
}

fn worker_of(flock: &Flock) -> SessionRow {
    flock.rows.values().find(|row| row.parent.is_some()).expect("a worker").clone()
}

// proves: PO-03, PO-04
#[test]
fn a_stalled_orphan_is_recorded_as_recovery_terminal() {
    for (status, reason) in [
        (Status::Stalled, ArchiveReason::RecoveryTerminal),
        (Status::Error, ArchiveReason::OrphanPreinit),
        (Status::NeedsYou, ArchiveReason::OrphanPreinit),
    ] {
        let mut flock = orphan_in(status, None, KillSwitches::default());
        flock.retire();
        let row = worker_of(&flock);
        assert_eq!((row.status, row.archive_reason), (Status::Archived, Some(reason)));
    }
}

// proves: PO-06
#[test]
fn with_the_switch_set_an_orphan_is_left_to_the_ordinary_recovery() {
    let off = KillSwitches { preinit_orphan_retire: true, ..KillSwitches::default() };
    let mut flock = orphan_in(SHAPE.0, SHAPE.1, off);
    flock.retire();
    assert_eq!(state(&worker_of(&flock)), SHAPE);
    let spawns = flock.spawns.len();
    flock.pass(155_000);
    let row = worker_of(&flock);
    assert!(flock.spawns[spawns..].contains(&row.id), "{row:?}");
    assert_eq!((row.retry_attempts, row.archive_reason), (1, None));
}

// proves: PO-06, A-27
#[test]
fn with_the_switch_set_a_worker_that_always_dies_climbs_the_ladder_to_its_hard_cap() {
    let off = KillSwitches { preinit_orphan_retire: true, ..KillSwitches::default() };
    let mut flock = orphan_in(SHAPE.0, SHAPE.1, off);
    let worker = worker_of(&flock).id;
    // two replays of the scan, then twelve rungs: each starts with the task and dies before it begins
    let starts = |flock: &Flock| flock.spawns.iter().filter(|id| **id == worker).count();
    for _ in 1..=14 {
        let before = starts(&flock);
        while starts(&flock) == before {
            flock.pass(1_000);
        }
        flock.shake(worker);
        let line = flock.lines_of(worker).last().map(|line| line.text.clone());
        assert_eq!(line, Some(LineText::Own(TASK.into())));
        flock.die(worker);
    }
    let row = worker_of(&flock);
    assert_eq!(row.stop_reason, Some(crate::session::StopReason::HardCap), "{row:?}");
    assert_eq!((row.launch_request.as_deref(), row.archive_reason), (Some(TASK), None));
    assert!(flock.messages_of(worker).is_empty());
}

/// A row as it may stand in the store: of any state, with or without a parent and content.
fn any_row(rng: &mut Rng, parent: SessionId) -> SessionRow {
    let pick = |rng: &mut Rng, of: usize| rng.next_u64() as usize % of;
    let mut row = SessionRow::new(
        rng.uuid(),
        "/project".into(),
        "title".into(),
        "".into(),
        Wall(1_000_000_000),
    );
    row.status = Status::ALL[pick(rng, Status::ALL.len())];
    let pending = PendingAction::ALL.get(pick(rng, PendingAction::ALL.len() + 4)).copied();
    row.pending = pending.filter(|pending| is_legal(row.status, Some(*pending)));
    let mut now_and_then = |of: usize| pick(rng, of) == 0;
    row.parent = (!now_and_then(4)).then_some(parent);
    row.launch_request = now_and_then(2).then(|| TASK.into());
    row.cli_session_id = now_and_then(4).then_some(Uuid(5));
    row.replay.message = now_and_then(4).then_some(Uuid(6));
    row.ever_answered = now_and_then(6);
    if now_and_then(6) {
        row.replay.calls = vec![ToolCall {
            id: "t".into(),
            name: "Bash".into(),
            detail: "make".into(),
            state: crate::session::CallState::Finished,
        }];
    }
    row.intent_running = false;
    row
}

// proves: PO-05, INV-43
#[test]
fn no_session_of_the_person_and_none_with_content_is_ever_retired() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let mut rng = Rng::new(43);
    for _ in 0..2_000 {
        let row = any_row(&mut rng, parent);
        flock.rows.insert(row.id, row);
    }
    flock.crash();
    let before = flock.rows.clone();
    flock.retire();
    let mut retired = 0;
    for (id, row) in &flock.rows {
        let was = &before[id];
        let content = was.cli_session_id.is_some()
            || was.replay.message.is_some()
            || was.ever_answered
            || !was.replay.calls.is_empty();
        let dead = matches!(was.status, Status::NeedsYou | Status::Error | Status::Stalled);
        let nobodys = matches!(
            was.pending,
            None | Some(PendingAction::ResponseAborted | PendingAction::RecoveryFailed)
        );
        let orphan = was.parent.is_some() && !content && dead && nobodys;
        assert_eq!(row != was, orphan, "{was:?} became {row:?}");
        if orphan {
            assert!(row.status == Status::Archived && row.archive_reason.is_some());
            retired += 1;
        }
    }
    assert!(retired > 50, "{retired} say little");
}
