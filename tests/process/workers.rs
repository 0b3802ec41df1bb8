//! Workers, gates and `omniscio ctl` under a whole supervisor on the bundled stand-in.

use crate::supervisor::rig::{App, Ground, LONG, config};
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::session::{SessionRow, Status};
use omniscio_lib::supervise::clock::Deadline;
use omniscio_lib::supervise::ctl::{SOCKET_VARIABLE, socket_path};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

/// The bubbles of a conversation, in order.
fn bubbles(app: &App, session: SessionId) -> Vec<String> {
    let page = app.handle.page(session, None, 100).expect("a page");
    let texts = page.blocks.into_iter().filter_map(|block| match block.kind {
        BlockKind::Operator { text, .. } => Some(text),
        BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    });
    texts.collect()
}

fn worker_of(app: &App, parent: SessionId) -> SessionRow {
    app.until("a worker", |_| {
        let rows = app.handle.snapshot().expect("a snapshot").rows;
        rows.into_iter().map(|view| view.row).find(|row| row.parent == Some(parent))
    })
}

/// What the session's child finds in its environment.
fn variable(row: &SessionRow, name: &str) -> Option<String> {
    let pid = row.child.expect("a child").pid;
    let environ = fs::read(format!("/proc/{pid}/environ")).expect("an environment");
    let mut pairs = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    pairs.find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

fn ctl(socket: &str, session: Option<SessionId>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omniscio"));
    command.env_clear().env(SOCKET_VARIABLE, socket).arg("ctl").args(args);
    command.envs(session.map(|session| ("OMNISCIO_SESSION", session.to_string())));
    command.output().expect("the program runs")
}

fn told(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

// proves: A-22, A-27
#[test]
fn an_agent_spawns_a_worker_and_gets_its_report() {
    let ground = Ground::new();
    let app = ground.start();
    let parent = app.create(
        &ground,
        r#"Go [[fake: host-tool spawn_worker {"task": "[[fake: say the worker's report]]"}; say spawned]]"#,
    );
    let worker = worker_of(&app, parent);
    assert_eq!(app.until_answered(worker.id).launch_request, None);
    let report = app.until("the report", |_| {
        bubbles(&app, parent).into_iter().find(|text| text.starts_with("Report of the worker"))
    });
    assert!(report.ends_with("the worker's report"), "{report}");
    let row = app.until_row(parent, "the parent's second answer", |view| {
        let RowView { row, live } = view;
        row.turn_count == 2 && row.turn.is_none() && live.queue.is_empty()
    });
    assert_eq!((row.status, row.card, bubbles(&app, parent).len()), (Status::NeedsYou, None, 2));
    assert_eq!(bubbles(&app, worker.id).len(), 1, "its task is its first operator turn");
}

// proves: A-22
#[test]
fn a_gate_is_open_while_its_child_lives_and_a_bad_call_is_told_to_the_agent() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(
        &ground,
        r#"Go [[fake: host-tool open_gate {"name": "tests"}; host-tool open_gate {"title": "x"}; say it said {answer}]]"#,
    );
    let row = app.until_answered(session);
    assert_eq!(row.gates.iter().map(|gate| gate.name.as_str()).collect::<Vec<_>>(), ["tests"]);
    let said = row.answer_line.unwrap_or_default();
    assert!(said.contains("do not fit"), "{said}");
    let end = omniscio_core::supervisor::Command::End { session };
    app.handle.command(end).expect("ended");
    app.until_row(session, "no gate", |view| view.row.gates.is_empty());
}

// proves: A-22
#[test]
fn the_socket_does_the_same_acts_for_the_session_of_the_marker() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, "Go [[fake: say ready]]");
    let row = app.until_answered(session);
    let socket = variable(&row, SOCKET_VARIABLE).expect("the socket's path");
    let mode = fs::metadata(&socket).expect("a socket").permissions().mode() & 0o777;
    assert_eq!((mode, variable(&row, "OMNISCIO_SESSION")), (0o600, Some(session.to_string())));

    assert_eq!(
        told(&ctl(&socket, Some(session), &["open-gate", "build"])),
        json!({"opened": "build"})
    );
    app.until_row(session, "a gate", |view| view.row.gates.len() == 1);
    told(&ctl(&socket, Some(session), &["close-gate", "build"]));
    let again = ctl(&socket, Some(session), &["close-gate", "build"]);
    assert!(!again.status.success());
    assert_eq!(
        String::from_utf8_lossy(&again.stderr).trim(),
        "omniscio: No gate of this name is open."
    );
    assert!(!ctl(&socket, None, &["list-workers"]).status.success(), "no session is named");

    let task = ["spawn-worker", "[[fake: say done]]", "--title", "By hand"];
    let worker = told(&ctl(&socket, Some(session), &task));
    assert_eq!(worker["title"], "By hand");
    let worker = worker_of(&app, session);
    app.until_answered(worker.id);
    let list = told(&ctl(&socket, Some(session), &["list-workers"]));
    assert_eq!(list["workers"][0]["id"], worker.id.to_string());

    // both wait for the person, or soon will
    let poll = app.until("both in the poll", |_| {
        let poll = told(&ctl(&socket, None, &["poll"]));
        (poll.as_array().map(Vec::len) == Some(2)).then_some(poll)
    });
    let mut keys: Vec<&String> = poll[0].as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(keys, ["id", "label", "section", "since", "title", "tone"]);
    assert_eq!((&poll[0]["label"], &poll[0]["tone"]), (&json!("Your turn"), &json!("amber-400")));
}

/// Sends these bytes and gives the answer.
fn raw(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("the app listens");
    // an app that refuses early does not read the rest
    stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write)).ok();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok();
    answer
}

// proves: A-22
#[test]
fn whatever_comes_over_the_socket_is_answered_and_its_end_is_the_apps() {
    let ground = Ground::new();
    let app = ground.start();
    let data = ground.home.path().join("data").canonicalize().expect("a folder");
    let socket = socket_path(&data);
    for bytes in [
        &b""[..],
        b"no JSON\n",
        b"{\"ask\":\"poll\"",
        b"{\"ask\":\"quit\"}\n",
        b"{\"ask\":\"agent\",\"session\":\"x\",\"call\":{\"tool\":\"list_workers\"}}\n",
        &vec![b'x'; 2 * 1024 * 1024],
    ] {
        let answer = raw(&socket, bytes);
        let head: Vec<u8> = bytes.iter().copied().take(60).collect();
        // a connection that was cut while it still sent may have lost the words
        assert!(
            answer.starts_with("{\"Err\":") || (bytes.len() > 60 && answer.is_empty()),
            "{:?}: {answer}",
            String::from_utf8_lossy(&head)
        );
    }
    // silent ones hold nobody up beyond the bound, and are let go
    let silent: Vec<_> = (0..16).map(|_| UnixStream::connect(&socket).expect("heard")).collect();
    let deadline = Deadline::after(LONG);
    while !raw(&socket, b"{\"ask\":\"poll\"}\n").contains("Too many") && !deadline.passed() {}
    drop(silent);
    while raw(&socket, b"{\"ask\":\"poll\"}\n") != "{\"Ok\":\"[]\"}\n" {
        assert!(!deadline.passed(), "never answered again");
    }
    app.quit();
    assert!(!socket.exists(), "nothing is left behind");
    let output = ctl(&socket.display().to_string(), None, &["poll"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Omniscio does not run"));
}

// proves: A-22, A-31
#[test]
fn a_second_app_never_takes_the_socket_and_a_later_one_replaces_a_stale_one() {
    let ground = Ground::new();
    let app = ground.start();
    let data = ground.home.path().join("data").canonicalize().expect("a folder");
    let socket = socket_path(&data);
    let second =
        omniscio_lib::supervise::supervisor::Supervisor::start(config(ground.home.path()), Nobody);
    assert!(second.is_err());
    assert!(raw(&socket, b"{\"ask\":\"poll\"}\n").starts_with("{\"Ok\":"), "the first one answers");
    app.quit();
    // what a killed app leaves behind
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("its place is free"));
    assert!(socket.exists());
    let app = ground.start();
    assert!(raw(&socket, b"{\"ask\":\"poll\"}\n").starts_with("{\"Ok\":"));
    app.quit();
}

#[test]
fn without_a_socket_the_app_does_all_the_rest() {
    let ground = Ground::new();
    let data = ground.home.path().join("data").canonicalize().expect("a folder");
    let socket = socket_path(&data);
    fs::create_dir_all(socket.parent().expect("a folder")).expect("a folder");
    fs::write(&socket, "in the way").expect("a file");
    let app = ground.start();
    let output = ctl(&socket.display().to_string(), None, &["poll"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("or has no socket"), "{output:?}");
    let session = app.create(&ground, "Go [[fake: say ready]]");
    app.until_answered(session);
    app.quit();
    assert_eq!(fs::read_to_string(&socket).expect("a file"), "in the way");
    fs::remove_file(&socket).expect("removed");
}

struct Nobody;

impl omniscio_lib::supervise::listener::Listener for Nobody {
    fn events(&self, _: Vec<omniscio_core::ipc::Event>) {}
    fn notify(&self, _: SessionId, _: &str, _: &str) {}
    fn badge(&self, _: usize) {}
    fn exited(&self) {}
}

// proves: PO-01, PO-03
#[test]
fn a_worker_that_dies_before_its_first_init_is_put_away() {
    let ground = Ground::new();
    // every start of a worker ends before it reads anything
    let app = ground.start();
    let parent = app.create(&ground, "Go [[fake: say ready]]");
    let row = app.until_answered(parent);
    let socket = variable(&row, SOCKET_VARIABLE).expect("the socket's path");
    fs::write(ground.home.path().join("config/fake-start"), "die 1\n").expect("a script");
    told(&ctl(&socket, Some(parent), &["spawn-worker", "never begun"]));
    let retired = app.until("a retired worker", |_| {
        let list = told(&ctl(&socket, Some(parent), &["list-workers"]));
        list["retired"].as_array().and_then(|all| all.first().cloned())
    });
    assert_eq!(retired["reason"], "orphan-preinit");
    let note = app.handle.page(parent, None, 100).expect("a page").blocks.into_iter().any(
        |block| matches!(block.kind, BlockKind::Note { text } if text.contains("never started")),
    );
    assert!(note, "the parent's conversation tells of it");
    assert_eq!(bubbles(&app, parent).len(), 1, "nothing is written to the parent");
}
