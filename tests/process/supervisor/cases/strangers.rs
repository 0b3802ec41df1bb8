//! T21: what a CLI leaves behind, among processes that look like ours. Only what is proven ours ends.

use super::{App, Ground, is_program, tree};
use crate::rig::await_some;
use crate::rig::{Stray, process_in};
use crate::supervisor::life::left_by_a_killed_app;
use omniscio_core::id::SessionId;
use omniscio_lib::supervise::children::{MARKER_DATA, MARKER_SESSION, ProcessId, alive};
use omniscio_lib::supervise::store::database_path;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A program that is called `claude` and waits. Its command line is all it has in common with the CLI.
const LOOK_ALIKE: &str =
    "#!/bin/sh\ntrap '' TERM HUP\necho $$ > \"$PID_FILE\"\nread line < \"$HOLD\"\n";

/// Starts processes with the command line `claude --resume ID` that are no children of this one.
struct Crowd<'a> {
    home: &'a Path,
    started: usize,
}

impl Crowd<'_> {
    fn new(home: &Path) -> Crowd<'_> {
        fs::write(home.join("claude"), LOOK_ALIKE).unwrap();
        fs::set_permissions(home.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Command::new("mkfifo").arg(home.join("hold")).status().unwrap().success());
        Crowd { home, started: 0 }
    }

    fn add(&mut self, conversation: &str, env: &[(&str, &str)]) -> Stray {
        self.started += 1;
        let pid_file = self.home.join(format!("look-alike-{}", self.started));
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "setsid \"$0\" --resume \"$1\" </dev/null >/dev/null 2>&1 &"]);
        shell.arg(self.home.join("claude")).arg(conversation);
        shell.env("PID_FILE", &pid_file).env("HOLD", self.home.join("hold"));
        assert!(shell.envs(env.iter().copied()).status().unwrap().success());
        process_in(&pid_file)
    }

    /// Seventeen strangers: without a marker, with another install's, with half of ours.
    fn strangers(&mut self, conversation: &str, session: &str, data: &str) -> Vec<Stray> {
        let session = (MARKER_SESSION, session);
        let mut all: Vec<Stray> = (0..8).map(|_| self.add(conversation, &[])).collect();
        all.extend((0..3).map(|_| self.add(conversation, &[session, (MARKER_DATA, "/elsewhere")])));
        all.extend((0..3).map(|_| self.add(conversation, &[session])));
        all.extend((0..3).map(|_| {
            let other = (MARKER_SESSION, "00000000-0000-4000-8000-000000000000");
            self.add(conversation, &[other, (MARKER_DATA, data)])
        }));
        all
    }
}

fn data_of(ground: &Ground) -> String {
    ground.home.path().join("data").canonicalize().unwrap().display().to_string()
}

/// Records a process as the session's child, as an app did that was killed before it could forget it.
fn record(ground: &Ground, session: SessionId, child: ProcessId) {
    let database = database_path(&ground.home.path().join("data"));
    let changed = Connection::open(database).unwrap().execute(
        "UPDATE sessions SET facts = json_set(facts, '$.child', json(?1)) WHERE id = ?2",
        [
            format!("{{\"pid\": {}, \"start\": {}}}", child.pid, child.start_time),
            session.to_string(),
        ],
    );
    assert_eq!(changed, Ok(1));
}

fn all_alive(strays: &[Stray]) -> bool {
    strays.iter().all(Stray::alive)
}

// proves: A-03
#[test]
fn t21_of_twenty_look_alikes_a_start_ends_the_three_that_were_recorded() {
    let ground = Ground::new();
    let app = ground.start();
    let text = "Hello. [[fake: say Hello.]]";
    let sessions: Vec<SessionId> = (0..5).map(|_| app.create(&ground, text)).collect();
    let rows: Vec<_> = sessions.iter().map(|session| app.until_said(*session, "Hello.")).collect();
    app.quit();
    drop(app);
    let conversation = rows[0].cli_session_id.unwrap().to_string();
    let data = data_of(&ground);
    let mut crowd = Crowd::new(ground.home.path());
    let ours: Vec<Stray> = sessions[..3]
        .iter()
        .map(|session| {
            let session = session.to_string();
            crowd.add(&conversation, &[(MARKER_SESSION, &session), (MARKER_DATA, &data)])
        })
        .collect();
    let strangers = crowd.strangers(&conversation, &sessions[3].to_string(), &data);
    assert_eq!(ours.len() + strangers.len(), 20);
    for (session, stray) in sessions.iter().zip(&ours) {
        record(&ground, *session, stray.0);
    }
    // a number that somebody else has now, and one whose start time is another's
    record(&ground, sessions[3], strangers[0].0);
    let earlier = strangers[8].0;
    record(&ground, sessions[4], ProcessId { start_time: earlier.start_time - 1, ..earlier });

    let app = ground.start();
    assert!(!ours.iter().any(Stray::alive), "ours");
    assert!(all_alive(&strangers), "at the start");
    app.until_the_scan_came_by(&ground);
    app.quit();
    assert!(all_alive(&strangers), "at the end");
}

/// Leaves a daemon and a tool behind, both deaf to the signals that end a terminal.
const LEAVES: &str = "Go. [[fake: fail-first 1 daemon 600; fail-first 1 bash 600; say Done.]]";

/// The daemon and the tool of a session.
fn sleeps(session: SessionId) -> Vec<ProcessId> {
    let all = |tree: Vec<ProcessId>| -> Vec<ProcessId> {
        tree.into_iter().filter(|id| is_program(id, "sleep")).collect()
    };
    await_some(|| Some(all(tree(session))).filter(|found| found.len() == 2))
}

// proves
#[test]
fn t21_quitting_ends_a_daemon_that_left_the_group_and_no_stranger() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, LEAVES);
    let row = app.until_tool_runs(session);
    sleeps(session);
    let tree = tree(session);
    let conversation = row.cli_session_id.unwrap().to_string();
    let mut crowd = Crowd::new(ground.home.path());
    let strangers = crowd.strangers(&conversation, &session.to_string(), &data_of(&ground));
    app.quit();
    assert!(!tree.iter().any(|id| alive(*id)), "{tree:?}");
    assert!(all_alive(&strangers));
}

// proves: A-03
#[test]
fn t21_after_the_app_was_killed_the_next_start_ends_what_is_left_and_no_stranger() {
    let ground = Ground::new();
    let home = ground.home.path();
    left_by_a_killed_app(home, LEAVES, 2);
    let database = database_path(&home.join("data"));
    let session: String = Connection::open(database)
        .unwrap()
        .query_row("SELECT id FROM sessions", [], |row| row.get(0))
        .unwrap();
    let session: SessionId = session.parse().unwrap();
    let left = sleeps(session);
    let mut crowd = Crowd::new(home);
    let strangers = crowd.strangers(
        "5a1d0c1e-0000-4000-8000-000000000001",
        &session.to_string(),
        &data_of(&ground),
    );

    let app: App = ground.start();
    assert!(!left.iter().any(|id| alive(*id)), "{left:?}");
    assert!(all_alive(&strangers));
    app.until_said(session, "Done.");
    assert!(all_alive(&strangers));
}
