//! Sessions from their first message to the end of the app.

use super::rig::{App, Deaf, Ground, LONG, config, marked};
use crate::rig::await_some;
use omniscio_core::block::BlockKind;
use omniscio_core::ipc::{Event, IpcCode, RowView};
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::supervisor::Command;
use omniscio_lib::supervise::store::database_path;
use omniscio_lib::supervise::supervisor::{StartError, Supervisor};
use rusqlite::Connection;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Stdio};

const HELLO: &str = "Say hello. [[fake: slow 50; say Hello there, whoever you are.]]";

#[test]
fn a_session_is_answered_and_its_conversation_is_kept() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, HELLO);
    let row = app.until_answered(session);
    assert_eq!(row.answer_line.as_deref(), Some("Hello there, whoever you are."));
    assert!(row.cli_session_id.is_some() && row.ever_answered);
    app.until("text as it grows", |told| {
        told.events.iter().find(|event| matches!(event, Event::Delta { .. })).map(drop)
    });

    let page = app.handle.page(session, None, 100).unwrap();
    let said: Vec<&str> = page
        .blocks
        .iter()
        .filter_map(|block| {
            let (BlockKind::Operator { text, .. } | BlockKind::Assistant { text }) = &block.kind
            else {
                return None;
            };
            Some(text.as_str())
        })
        .collect();
    assert_eq!(said, [HELLO, "Hello there, whoever you are."]);
    let snapshot = app.handle.snapshot().unwrap();
    assert_eq!(snapshot.rows.len(), 1);
    assert!(snapshot.fake && snapshot.recent_folders.len() == 1);
    app.handle.explain(session).unwrap();
}

// proves: SC-01, RP-01
#[test]
fn a_turn_that_dies_comes_back_by_itself() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, "Go. [[fake: fail-first 1 kill; say Done.]]");
    let row = app.until_row(session, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.row.turn.is_none()
    });
    assert_eq!((row.status, row.pending), (Status::NeedsYou, None));
    let reasons = app.reasons(session);
    let at = |wanted: &str| {
        let found = reasons.iter().position(|reason| reason.contains(wanted));
        found.unwrap_or_else(|| panic!("no {wanted}: {reasons:#?}"))
    };
    assert!(at("process_exit") < at("response-aborted"), "{reasons:#?}");
}

#[test]
fn after_two_replays_it_needs_a_person_and_retry_brings_it_back() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, "Go. [[fake: fail-first 3 kill; say Done.]]");
    let row = app.until_failed(session);
    assert_eq!(
        app.count(session, "response-aborted: attempt charged"),
        2,
        "{:#?}",
        app.reasons(session)
    );
    assert_eq!(row.stop_reason, None);
    app.until("badge", |told| (told.badge == 1).then_some(()));

    app.handle.command(Command::Retry { session }).unwrap();
    app.until_row(session, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.row.turn.is_none()
    });
}

// proves: A-31
#[test]
fn a_second_start_on_the_same_data_does_nothing() {
    let ground = Ground::new();
    let app = ground.start();
    match Supervisor::start(config(ground.home.path()), Deaf) {
        Err(StartError::AlreadyRuns { pid }) => assert_eq!(pid, Some(process::id())),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two supervisors on one database"),
    }
    let session = app.create(&ground, "Say hello.");
    app.until_answered(session);
    app.quit();
    ground.start();
}

// proves: A-31
#[test]
fn quitting_ends_every_process_and_the_next_start_goes_on() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, WORKS);
    app.until_row(session, "tool", |view| !view.row.replay.calls.is_empty());
    assert!(marked(ground.home.path()).len() >= 2, "the CLI and its tool");
    app.quit();
    assert_eq!(marked(ground.home.path()), Vec::<u32>::new());
    assert_eq!(app.handle.command(Command::Stop { session }).unwrap_err().code, IpcCode::Quitting);

    let app = ground.start();
    app.until_row(session, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.row.turn.is_none()
    });
}

/// Which home the process of [`the_app_that_is_killed`] works on.
const HOME: &str = "SUPERVISOR_TEST_HOME";
/// The first message of its session.
const TEXT: &str = "SUPERVISOR_TEST_TEXT";

/// A message whose first try runs a tool until it is ended.
const WORKS: &str = "Go. [[fake: fail-first 1 bash 600; say Done.]]";

/// Not a test by itself: the app that the next test kills. Without its variable it does nothing.
#[test]
fn the_app_that_is_killed() {
    let Some(home) = std::env::var_os(HOME) else {
        return;
    };
    let app = App::start(config(home.as_ref()));
    let folder = Path::new(&home).join("project").display().to_string();
    let command = Command::Create {
        folder,
        text: std::env::var(TEXT).unwrap(),
        model: None,
        permission_mode: None,
        account: None,
        endpoint: None,
        user_settings_only: false,
    };
    app.handle.command(command).unwrap();
    app.until("tool", |told| {
        told.events
            .iter()
            .find(|event| matches!(event, Event::Row(view) if !view.row.replay.calls.is_empty()))
            .map(drop)
    });
    println!("ready");
    app.handle.ended_within(LONG);
}

/// Starts the app on this home, kills it once its session runs a tool and so many `sleep` in all, and
/// gives what it left running.
pub(super) fn left_by_a_killed_app(home: &Path, text: &str, sleeps: usize) -> Vec<u32> {
    let mut first = process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervisor::life::the_app_that_is_killed", "--nocapture"])
        .env(HOME, home)
        .env(TEXT, text)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("ready")), "the first app did not get ready");
    // a call is told before its tool runs
    let is_sleep = |pid: &&u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
    };
    let left = await_some(|| {
        Some(marked(home)).filter(|left| left.iter().filter(is_sleep).count() == sleeps)
    });
    first.kill().unwrap();
    first.wait().unwrap();
    left
}

// proves: A-03
#[test]
fn what_a_killed_app_left_of_a_deleted_or_unreadable_session_is_ended_too() {
    for change in ["deleted_at = 1", "status = 'dancing'"] {
        let ground = Ground::new();
        let home = ground.home.path();
        let left = left_by_a_killed_app(home, WORKS, 1);
        let connection = Connection::open(database_path(&home.join("data"))).unwrap();
        assert_eq!(connection.execute(&format!("UPDATE sessions SET {change}"), []), Ok(1));
        let app = ground.start();
        let now = marked(home);
        assert!(left.iter().all(|pid| !now.contains(pid)), "{change}: {left:?} live: {now:?}");
        assert!(app.handle.snapshot().unwrap().rows.is_empty());
    }
}

// proves: A-03
#[test]
fn what_a_killed_app_left_is_ended_by_the_next_start_and_the_turn_comes_back() {
    let ground = Ground::new();
    let home = ground.home.path();
    let left = left_by_a_killed_app(home, WORKS, 1);

    let app = ground.start();
    let now = marked(home);
    assert!(left.iter().all(|pid| !now.contains(pid)), "{left:?} are not gone: {now:?}");
    let snapshot = app.handle.snapshot().unwrap();
    let [RowView { row, .. }] = &snapshot.rows[..] else { panic!("{snapshot:?}") };
    app.until_row(row.id, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.row.turn.is_none()
    });
    assert_eq!(app.count(row.id, "launch: launch"), 2, "{:#?}", app.reasons(row.id));
}

#[test]
fn without_a_cli_the_row_says_what_to_do() {
    let ground = Ground::new();
    let mut config = config(ground.home.path());
    let missing = ground.home.path().join("no/claude");
    config.cli = omniscio_lib::supervise::supervisor::Cli::Fixed {
        program: missing.clone(),
        args: Vec::new(),
    };
    let app = App::start(config);
    let session = app.create(&ground, "Hello.");
    let row = app.until_row(session, "error", |view| view.row.status == Status::Error);
    assert_eq!(row.pending, None::<PendingAction>);
    let words = row.words.unwrap();
    assert!(words.contains(missing.to_str().unwrap()) && words.contains("Install it"), "{words}");
}
