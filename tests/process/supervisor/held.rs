//! A conversation that a foreign process has open, and the machine's load, through the whole supervisor.

use super::rig::{App, Ground, config};
use crate::rig::{Stray, orphan};
use omniscio_core::id::{CliSessionId, SessionId};
use omniscio_core::ipc::IpcCode;
use omniscio_core::prompt;
use omniscio_core::session::{Holder, PendingAction, Status};
use omniscio_core::supervisor::{Command, Input, State, Step, step};
use omniscio_core::time::Now;
use omniscio_lib::supervise::load::Sampler;
use omniscio_lib::supervise::supervisor::Config;
use std::cell::Cell;
use std::fs;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stand-in hangs in its first turn, and answers the message when it comes again.
const HANGS_ONCE: &str = "Go. [[fake: fail-first 1 hang; say Done.]]";

/// A holder is given this long to end.
fn quick(ground: &Ground) -> Config {
    let mut config = config(ground.home.path());
    config.limits.term_grace_ms = 200;
    config
}

/// The process has the conversation open, as its file says.
fn holds(ground: &Ground, program: &Stray, conversation: CliSessionId) {
    let folder = ground.home.path().join("config/sessions");
    fs::create_dir_all(&folder).unwrap();
    let (pid, start) = (program.0.pid, program.0.start_time.to_string());
    let told = serde_json::json!({
        "pid": pid, "sessionId": conversation.to_string(), "cwd": "/elsewhere", "procStart": start,
    });
    fs::write(folder.join(format!("{pid}.json")), told.to_string()).unwrap();
}

fn willing(ground: &Ground) -> Stray {
    let file = ground.home.path().join("willing");
    let tool = format!("echo $$ > '{}'; exec sleep 600", file.display());
    let text = "setsid sh -c \"$0\" </dev/null >/dev/null 2>&1 &";
    assert!(process::Command::new("/bin/sh").args(["-c", text, &tool]).status().unwrap().success());
    crate::rig::process_in(&file)
}

/// The person's click on what the row shows.
fn take_over(app: &App, session: SessionId) -> Command {
    let shown = Cell::new(None);
    app.until_row(session, "holder", |view| {
        shown.set(view.live.held.as_ref().map(Holder::mark));
        shown.get().is_some()
    });
    Command::TakeOver { session, shown: shown.get().unwrap() }
}

/// A session whose turn died while the program has its conversation open, once a scan has seen it.
fn cut_off_and_held(ground: &Ground, app: &App, program: &Stray) -> SessionId {
    let session = app.create(ground, HANGS_ONCE);
    let row = app.until_row(session, "turn", |view| {
        view.row.turn.is_some() && view.row.cli_session_id.is_some()
    });
    holds(ground, program, row.cli_session_id.unwrap());
    let child = row.child.unwrap().pid.to_string();
    assert!(process::Command::new("kill").args(["-9", &child]).status().unwrap().success());
    let row = app.until_row(session, "holder", |view| {
        view.live.held.as_ref().is_some_and(|holder| {
            (holder.pid, holder.folder.as_str()) == (program.0.pid, "/elsewhere")
        })
    });
    assert_eq!(row.pending, Some(PendingAction::ResponseAborted));
    session
}

// proves: A-12
#[test]
fn a_cut_off_reply_waits_for_the_foreign_program_and_comes_back_after_take_over() {
    let ground = Ground::new();
    let app = App::start(quick(&ground));
    let program = willing(&ground);
    let session = cut_off_and_held(&ground, &app, &program);
    assert_eq!(app.count(session, "response-aborted: attempt charged"), 0);
    assert!(program.alive(), "nobody touches it by himself");

    app.handle.command(take_over(&app, session)).unwrap();
    assert!(!program.alive());
    app.until_row(session, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.live.held.is_none()
    });
    assert_eq!(app.count(session, "response-aborted: attempt charged"), 0);
}

// proves: A-12
#[test]
fn a_foreign_program_that_does_not_end_keeps_it_and_a_copy_goes_on() {
    let ground = Ground::new();
    let app = App::start(quick(&ground));
    let program = orphan(ground.home.path(), &[]);
    let session = cut_off_and_held(&ground, &app, &program);
    let refused = app.handle.command(take_over(&app, session)).unwrap_err();
    assert_eq!(refused.code, IpcCode::NotEligible);
    assert!(program.alive());

    let held = app.until_row(session, "row", |_| true).cli_session_id;
    app.handle.command(Command::ForkHeld { session }).unwrap();
    let row = app.until_row(session, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.row.turn.is_none()
    });
    assert_ne!(row.cli_session_id, held);
    assert!(program.alive());
}

// proves: A-12
#[test]
fn a_message_waits_in_the_queue_while_a_foreign_program_has_the_conversation() {
    let ground = Ground::new();
    let app = App::start(quick(&ground));
    let session = app.create(&ground, "Say hello. [[fake: say Hello.]]");
    let row = app.until_answered(session);
    let program = willing(&ground);
    holds(&ground, &program, row.cli_session_id.unwrap());
    let child = row.child.unwrap().pid.to_string();
    assert!(process::Command::new("kill").args(["-9", &child]).status().unwrap().success());
    app.until_row(session, "end of the child", |view| !view.live.child);
    let text = "And now. [[fake: say Now.]]".to_string();
    app.handle.command(Command::Send { session, text, now: false }).unwrap();
    let row = app.until_row(session, "words", |view| {
        view.row.status == Status::Error && view.live.queue.len() == 1
    });
    assert_eq!((row.pending, row.words.as_deref()), (None, Some(prompt::HELD_ELSEWHERE)));

    app.handle.command(take_over(&app, session)).unwrap();
    app.until_row(session, "answer", |view| view.row.answer_line.as_deref() == Some("Now."));
    assert!(!program.alive());
}

/// Samples that reached the rules.
static SAMPLES: AtomicUsize = AtomicUsize::new(0);

fn counting(state: &mut State, input: Input, now: Now) -> Step {
    if let Input::Load { cores } = &input {
        assert_eq!(cores, &[950, 850]);
        SAMPLES.fetch_add(1, Ordering::SeqCst);
    }
    step(state, input, now)
}

#[test]
fn samples_of_the_load_reach_the_rules_until_the_app_ends() {
    let ground = Ground::new();
    let mut config = config(ground.home.path());
    config.limits.load_sample_ms = 5;
    config.rules = counting;
    config.sampler = Sampler::of(|| vec![950, 850]);
    let app = App::start(config);
    crate::rig::await_some(|| (SAMPLES.load(Ordering::SeqCst) >= 3).then_some(()));
    app.quit();
    let told = SAMPLES.load(Ordering::SeqCst);
    // a session of another app is answered meanwhile: time enough for a thread that goes on
    let (ground, before) = (Ground::new(), told);
    let app = ground.start();
    app.until_answered(app.create(&ground, "Say hello."));
    assert_eq!(SAMPLES.load(Ordering::SeqCst), before);
}
