//! What a tool of the real CLI leaves running: ended before the recovery goes on, and nothing else is.

use crate::bench::{Bench, signal};
use crate::looks::{lives, marked, pid_in};
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::cli_path;
use omniscio_core::id::SessionId;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Forks twice into a session of its own, is deaf to SIGTERM, and leaves its number in the file.
const DEAF: &str = "\
import os, signal, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with open(sys.argv[1], 'w') as file: file.write(f'{os.getpid()}\\n')
time.sleep(600)
";

/// The shell command that starts it and comes back at once.
fn deaf(script: &Path, pid: &Path) -> String {
    let (script, pid) = (script.display(), pid.display());
    format!("python3 '{script}' '{pid}' >/dev/null 2>&1 </dev/null")
}

/// Starts it as a process of somebody else: no child of this one, which plays the app.
fn foreign(bench: &Bench, script: &Path, name: &str, env: &[(&str, String)]) -> u32 {
    let pid = bench.home.tmp().join(name);
    let mut command = Command::new("python3");
    // the command line of the agent's own leftover, and that of a CLI behind it
    command.arg(script).arg(&pid).arg(cli_path()).args(["-p", "--resume", name]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(env.iter().map(|(name, value)| (*name, value)));
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("python3 is there").success());
    pid_in(&pid)
}

/// The variables by which this app knows what its session left behind, as they stand in a process.
fn markers(pid: u32) -> Vec<(String, String)> {
    let environ = fs::read(format!("/proc/{pid}/environ")).expect("an environment");
    let pairs = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let pairs = pairs.filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.into(), v.into())));
    pairs.filter(|(name, _): &(String, String)| name.starts_with("OMNISCIO_")).collect()
}

struct Foreigners {
    pids: Vec<u32>,
}

impl Foreigners {
    /// Five that look more and more like the leftover of the session, and are none.
    fn start(bench: &Bench, script: &Path, session: SessionId, leftover: u32) -> Foreigners {
        let own = markers(leftover);
        let of = |name: &str| {
            let found = own.iter().find(|(known, _)| known == name);
            found.expect("the leftover carries the marker").1.clone()
        };
        let (data, cli) = (of("OMNISCIO_DATA"), bench.row(session).child.expect("a child").pid);
        let elsewhere = bench.home.home().join("data").display().to_string();
        let session = session.to_string();
        let other = "5a1d0c1e-0000-4000-8000-000000000001".to_owned();
        let cli = ("CLAUDE_PID", cli.to_string());
        let pids = vec![
            foreign(bench, script, "bare", &[]),
            foreign(bench, script, "of-a-cli", std::slice::from_ref(&cli)),
            foreign(
                bench,
                script,
                "no-data",
                &[("OMNISCIO_SESSION", session.clone()), cli.clone()],
            ),
            foreign(
                bench,
                script,
                "other-data",
                &[("OMNISCIO_SESSION", session), ("OMNISCIO_DATA", elsewhere), cli.clone()],
            ),
            foreign(
                bench,
                script,
                "other-session",
                &[("OMNISCIO_SESSION", other), ("OMNISCIO_DATA", data), cli],
            ),
        ];
        Foreigners { pids }
    }

    fn all_live(&self) -> bool {
        self.pids.iter().all(|pid| lives(*pid))
    }
}

impl Drop for Foreigners {
    fn drop(&mut self) {
        for pid in self.pids.iter().filter(|pid| lives(**pid)) {
            signal(*pid, "KILL");
        }
    }
}

// proves: A-03, RP-01, PR-05
#[test]
fn t21_a_deaf_grandchild_is_gone_before_the_replay_and_foreigners_are_untouched() {
    in_namespace(
        "leftovers::t21_a_deaf_grandchild_is_gone_before_the_replay_and_foreigners_are_untouched",
        || {
            let mut bench = Bench::new();
            let allow = json!({"permissions": {"allow": ["Bash"]}});
            let settings = bench.home.config().join("settings.json");
            fs::write(settings, allow.to_string()).expect("written");
            let script = bench.home.tmp().join("deaf.py");
            fs::write(&script, DEAF).expect("written");
            let file = bench.home.project().join("pid");
            let gate = Gate::new();
            let input = json!({"command": deaf(&script, &file), "description": "start a server"});
            bench.api.push(Reply::new().tool_use("Bash", input));
            bench.api.push(Reply::new().text("the server runs").hold_after(1, &gate));
            let session = bench.create("start the server");
            gate.wait_reached(LIMIT);
            let leftover = pid_in(&file);
            assert!(lives(leftover) && marked(session).contains(&leftover));
            let foreigners = Foreigners::start(&bench, &script, session, leftover);
            assert!(foreigners.all_live());

            let old = bench.row(session).child.expect("a child").pid;
            // asked by the new CLI: by then the old tree is gone
            bench.api.script(move |_, _| {
                assert!(!lives(old) && !lives(leftover), "the old tree lives beside the new CLI");
                Reply::new().text("it was started before")
            });
            bench.kill_cli(session);
            bench.wait_answer(session, "it was started before");
            assert!(!lives(leftover));
            let new = bench.row(session).child.expect("a child").pid;
            // of what carries this session's id only the new CLI is this app's
            let left: Vec<u32> = marked(session)
                .into_iter()
                .filter(|pid| *pid != new && !foreigners.pids.contains(pid))
                .collect();
            assert_eq!(left, [0; 0], "nothing of the first CLI is left");
            assert!(foreigners.all_live(), "{:?}", foreigners.pids);
            assert_eq!(bench.replays(session), 1);
            bench.quit();
            assert!(foreigners.all_live(), "Quit ends nobody else's");
        },
    );
}
