//! The supervisor itself dies, or is started twice, while the real CLI works.

use crate::apart::serve_if_asked;
use crate::bench::Bench;
use crate::leftovers::{Foreigners, deaf};
use crate::looks::{Written, lives, marked, pid_in};
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_lib::supervise::supervisor::StartError;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;

const TURN: Duration = Duration::from_secs(60);
fn runs(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

// proves, CR-01, PR-05
#[test]
fn killed_while_the_cli_works_nothing_is_left_and_the_turn_comes_back() {
    const KILLED: &str =
        "app_death::killed_while_the_cli_works_nothing_is_left_and_the_turn_comes_back";
    in_namespace(KILLED, || {
        serve_if_asked();
        let mut bench = Bench::quiet();
        bench.start_apart(KILLED);
        let file = bench.home.project().join("count");
        // a tool that survives its CLI, and one behind it that no group or parent leads to: both deaf
        let daemon = bench.home.project().join("daemon");
        let command = format!(
            "{}; echo ran >> '{}'; trap '' TERM; python3 -c 'import time; time.sleep(600)'",
            deaf(&bench, &daemon),
            file.display()
        );
        let allow = json!({"permissions": {"allow": ["Bash"]}});
        fs::write(bench.home.config().join("settings.json"), allow.to_string()).expect("written");
        bench.api.push(Reply::new().tool_use("Bash", json!({"command": command})));
        let session = bench.create("run the tool");
        wait_until(TURN, "the tool", || runs(&file) == 1);
        bench.wait_on_disk(Written::Call("echo ran"));
        let daemon = pid_in(&daemon);
        let foreigners = Foreigners::like(&bench, daemon);
        bench.kill_app();
        bench.api.push(Reply::new().text("went on from there"));
        bench.start();
        bench.wait_answer(session, "went on from there");
        assert_eq!(runs(&file), 1, "the tool was not run again");
        let ours = bench.row(session).child.expect("a child").pid;
        let left: Vec<u32> = marked(session)
            .into_iter()
            .filter(|pid| *pid != ours && !foreigners.pids.contains(pid))
            .collect();
        assert_eq!(left, [0; 0], "nothing of the first app is left");
        assert!(!lives(daemon) && foreigners.all_live(), "{daemon} {:?}", foreigners.pids);
        assert_eq!(bench.bubbles(session), 1);
        bench.assert_never_twice("run the tool");
    });
}

// proves: A-31
#[test]
fn a_second_start_on_one_database_does_nothing() {
    in_namespace("app_death::a_second_start_on_one_database_does_nothing", || {
        let bench = Bench::new();
        let gate = Gate::new();
        bench.api.push(Reply::new().text("one answer").hold_after(1, &gate));
        let session = bench.create("a message");
        gate.wait_reached(TURN);
        let refused = bench.try_start();
        assert!(matches!(refused, Err(StartError::AlreadyRuns { .. })));
        gate.open();
        bench.wait_answer(session, "one answer");
        assert_eq!(bench.api.main_requests().len(), 1);
    });
}

// proves: A-31
#[test]
fn after_quit_the_running_turn_comes_back_at_the_next_start() {
    in_namespace("app_death::after_quit_the_running_turn_comes_back_at_the_next_start", || {
        let mut bench = Bench::new();
        let gate = Gate::new();
        bench.api.push(Reply::new().text("half of it").hold_after(1, &gate));
        let session = bench.create("a message");
        gate.wait_reached(TURN);
        bench.wait_on_disk(Written::Message("a message"));
        let child = bench.row(session).child.expect("a child").pid;
        bench.quit();
        assert!(!Path::new(&format!("/proc/{child}")).exists(), "the child is gone");
        bench.api.push(Reply::new().text("all of it"));
        bench.start();
        bench.wait_answer(session, "all of it");
        bench.assert_never_twice("a message");
    });
}
