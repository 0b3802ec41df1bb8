//! The app dies: its children are hung up by the kernel, and the next start ends what survived.
//!
//! The dying app is this test binary, started again with [`host`] as its only test.

use super::rig::{DRAIN, Stray, await_death, process_in, script, words_of};
use super::sweep::{TIMINGS, marker};
use omniscio_lib::supervise::children::{
    Marker, ProcessId, RecordedSession, StopTimings, alive, boot_sweep,
};
use omniscio_lib::supervise::pty::spawn;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use tempfile::TempDir;

const SCRIPT: &str = "OMNISCIO_TEST_HOST_SCRIPT";
const SPAWNS: &str = "OMNISCIO_TEST_HOST_SPAWNS";

/// Not a test: the app that dies. Without its variables it does nothing.
#[test]
fn host() {
    let Ok(text) = env::var(SCRIPT) else { return };
    let marker = Marker {
        session_id: env::var("HOST_SESSION").unwrap(),
        data: env::var("HOST_DATA").unwrap(),
    };
    let line = script(&env::current_dir().unwrap(), &text, &marker.variables());
    let many: usize = env::var(SPAWNS).unwrap().parse().unwrap();
    let mut children = Vec::new();
    for _ in 0..many {
        match spawn(&line, DRAIN, |_| {}) {
            Ok(child) => children.push(child),
            Err(error) => {
                let said = format!("{:?} {:?}\n", error.step, error.errno);
                fs::write("refused.tmp", said).unwrap();
                return fs::rename("refused.tmp", "refused").unwrap();
            }
        }
    }
    loop {
        thread::park();
    }
}

/// `before` runs in the shell that becomes the app.
fn start_host(home: &Path, marker: &Marker, text: &str, before: &str, spawns: usize) -> Host {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{before} exec \"$0\" --exact death::host --nocapture")]);
    shell.arg(env::current_exe().unwrap()).current_dir(home);
    shell.env(SCRIPT, text).env("HOST_SESSION", &marker.session_id).env("HOST_DATA", &marker.data);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.env(SPAWNS, spawns.to_string());
    Host(shell.spawn().unwrap())
}

struct Host(Child);

impl Host {
    fn die(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

// proves: A-01
#[test]
fn the_death_of_the_app_hangs_its_child_up() {
    // the second as under `nohup`: what the app ignores the child does not
    for before in ["", "trap '' HUP;"] {
        let home = tempfile::tempdir().unwrap();
        let text = "trap 'echo hung > up; exit' HUP; echo $$ > child; while :; do sleep 0.05; done";
        let host = start_host(home.path(), &marker("hang-up"), text, before, 1);
        let child = process_in(&home.path().join("child"));
        host.die();
        await_death(child.0);
        assert_eq!(words_of(&home.path().join("up")), ["hung"]);
    }
}

/// A child that survives the app's death, with a tool in a session of its own.
struct Survivor {
    _home: TempDir,
    cli: Stray,
    tool: Stray,
}

fn survivor(marker: &Marker) -> Survivor {
    let home = tempfile::tempdir().unwrap();
    let text = "trap '' HUP TERM; export CLAUDE_PID=$$; echo $$ > cli; \
         setsid sh -c 'echo $$ > tool; exec sleep 600' </dev/null >/dev/null 2>&1 & \
         while :; do sleep 600; done";
    let host = start_host(home.path(), marker, text, "", 1);
    let cli = process_in(&home.path().join("cli"));
    let tool = process_in(&home.path().join("tool"));
    host.die();
    Survivor { cli, tool, _home: home }
}

fn sweep_at_boot(marker: &Marker, parents: Vec<ProcessId>) -> Vec<ProcessId> {
    let stop = StopTimings { term_grace: TIMINGS.term_grace, kill_wait: TIMINGS.kill_wait };
    let session = RecordedSession { session_id: marker.session_id.clone(), parents };
    boot_sweep(&marker.data, &[session], stop, TIMINGS).iter().map(|swept| swept.id).collect()
}

// proves: A-03
#[test]
fn the_next_start_ends_a_child_that_survived_and_then_its_tools() {
    let marker = marker("survivor");
    let Survivor { cli, tool, _home } = survivor(&marker);
    assert!(cli.alive() && tool.alive());
    let swept = sweep_at_boot(&marker, vec![cli.0]);
    assert_eq!(swept[0], cli.0, "the CLI first");
    assert!(swept.contains(&tool.0), "{swept:?}");
    assert!(!cli.alive() && !tool.alive());
}

// proves: A-03
#[test]
fn the_next_start_touches_no_process_that_only_has_the_recorded_number() {
    let marker = marker("reused-number");
    let Survivor { cli, tool, _home } = survivor(&marker);
    let reused = ProcessId { start_time: cli.0.start_time + 1, ..cli.0 };
    let other = Marker { data: "another install".to_string(), ..marker.clone() };
    assert_eq!(sweep_at_boot(&other, vec![cli.0]), [], "not of this install");
    assert!(alive(cli.0) && tool.alive());
    assert!(!alive(reused));
    // ends what the survivor started meanwhile, too
    sweep_at_boot(&marker, vec![cli.0]);
}

// proves: A-01
#[test]
fn a_machine_without_descriptors_refuses_with_its_number() {
    let home = tempfile::tempdir().unwrap();
    let host = start_host(home.path(), &marker("emfile"), "exec sleep 600", "ulimit -n 40;", 100);
    let refused = words_of(&home.path().join("refused")).join(" ");
    assert!(refused.contains(&format!("Some({})", libc::EMFILE)), "{refused}");
    host.die();
}
