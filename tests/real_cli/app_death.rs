//! The supervisor itself dies, or is started twice, while the real CLI works.

use crate::bench::{Bench, config};
use crate::leftovers::{Foreigners, deaf};
use crate::looks::{lives, marked, pid_in};
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::{wait_for, wait_until};
use omniscio_core::supervisor::Command;
use omniscio_lib::supervise::supervisor::{StartError, Supervisor};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const TURN: Duration = Duration::from_secs(60);
/// The job of a supervisor in a process of its own, as JSON.
const JOB: &str = "OMNISCIO_TEST_SUPERVISOR";

/// Runs a supervisor in this process for as long as it is let live.
fn supervise(job: &str) -> ! {
    let job: serde_json::Value = serde_json::from_str(job).expect("a job");
    let path = |name: &str| PathBuf::from(job[name].as_str().expect("a path"));
    let variables: Vec<(String, String)> =
        serde_json::from_value(job["variables"].clone()).expect("variables");
    let config = config(&path("data"), variables, path("config"));
    let handle = Supervisor::start(config, crate::bench::Seen::default()).expect("a supervisor");
    let made = handle.command(Command::Create {
        folder: path("folder").display().to_string(),
        text: job["text"].as_str().expect("a text").into(),
        model: None,
        permission_mode: None,
        account: None,
        user_settings_only: false,
    });
    made.expect("a session");
    loop {
        std::thread::park();
    }
}

/// Starts a supervisor with one session in a process of its own, in the same namespace.
fn start_apart(bench: &Bench, text: &str) -> Child {
    let job = json!({
        "data": bench.data(), "config": bench.home.config(), "folder": bench.home.project(),
        "variables": bench.variables(), "text": text,
    });
    let me = std::env::current_exe().expect("this test");
    std::process::Command::new(me)
        .args([
            "--exact",
            "app_death::killed_while_the_cli_works_nothing_is_left_and_the_turn_comes_back",
        ])
        .args(["--nocapture", "--test-threads=1"])
        .env(JOB, job.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("a second process")
}

fn runs(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

// proves, CR-01, PR-05
#[test]
fn killed_while_the_cli_works_nothing_is_left_and_the_turn_comes_back() {
    in_namespace(
        "app_death::killed_while_the_cli_works_nothing_is_left_and_the_turn_comes_back",
        || {
            if let Ok(job) = std::env::var(JOB) {
                supervise(&job);
            }
            let mut bench = Bench::new();
            bench.quit();
            let file = bench.home.project().join("count");
            // a tool that survives its CLI, and one behind it that no group or parent leads to: both deaf
            let daemon = bench.home.project().join("daemon");
            let command = format!(
                "{}; echo ran >> '{}'; trap '' TERM; python3 -c 'import time; time.sleep(600)'",
                deaf(&bench, &daemon),
                file.display()
            );
            let allow = json!({"permissions": {"allow": ["Bash"]}});
            fs::write(bench.home.config().join("settings.json"), allow.to_string())
                .expect("written");
            bench.api.push(Reply::new().tool_use("Bash", json!({"command": command})));
            let mut apart = start_apart(&bench, "run the tool");
            wait_until(TURN, "the tool", || runs(&file) == 1);
            let daemon = pid_in(&daemon);
            let foreigners = Foreigners::like(&bench, daemon);
            apart.kill().expect("SIGKILL");
            apart.wait().expect("reaped");
            bench.api.push(Reply::new().text("went on from there"));
            bench.start();
            let session = wait_for(TURN, "the session", || {
                let rows = bench.handle().snapshot().ok()?.rows;
                rows.first().map(|view| view.row.id)
            });
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
        },
    );
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
        let child = bench.row(session).child.expect("a child").pid;
        bench.quit();
        assert!(!Path::new(&format!("/proc/{child}")).exists(), "the child is gone");
        bench.api.push(Reply::new().text("all of it"));
        bench.start();
        bench.wait_answer(session, "all of it");
        bench.assert_never_twice("a message");
    });
}
