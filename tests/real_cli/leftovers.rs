//! What a tool of the real CLI leaves running: ended before the recovery goes on, and nothing else is.

use crate::bench::{Bench, signal};
use crate::looks::{Written, lives, marked, pid_in};
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::cli_path;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
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

fn deaf_script(bench: &Bench) -> PathBuf {
    let script = bench.home.tmp().join("deaf.py");
    fs::write(&script, DEAF).expect("written");
    script
}

/// The shell command that starts it and comes back at once.
pub(crate) fn deaf(bench: &Bench, pid: &Path) -> String {
    let (script, pid) = (deaf_script(bench), pid.display());
    format!("python3 '{}' '{pid}' >/dev/null 2>&1 </dev/null", script.display())
}

/// Processes of somebody else that look more and more like what a session has left behind. They are no
/// children of this process, which plays the app.
pub(crate) struct Foreigners {
    pub(crate) pids: Vec<u32>,
}

impl Foreigners {
    /// Five of them: with nothing of the leftover's environment but its CLI's number, or with all of it
    /// but the data folder, or the session.
    pub(crate) fn like(bench: &Bench, leftover: u32) -> Foreigners {
        let script = deaf_script(bench);
        let environ = fs::read(format!("/proc/{leftover}/environ")).expect("an environment");
        let own = |name: &str| {
            let mut pairs = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let value =
                pairs.find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()));
            (name.to_owned(), value.unwrap_or_else(|| panic!("a leftover without {name}")))
        };
        let (session, data, cli) =
            (own("OMNISCIO_SESSION"), own("OMNISCIO_DATA"), own("CLAUDE_PID"));
        let elsewhere = ("OMNISCIO_DATA".to_owned(), format!("{}-of-another", data.1));
        let other = "5a1d0c1e-0000-4000-8000-000000000001".to_owned();
        let other = ("OMNISCIO_SESSION".to_owned(), other);
        let start = |name: &str, env: &[&(String, String)]| {
            let pid = bench.home.tmp().join(name);
            let mut command = Command::new("python3");
            // the leftover's own command line, and that of a CLI behind it
            command.arg(&script).arg(&pid).arg(cli_path()).args(["-p", "--resume", &session.1]);
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
            command.envs(env.iter().map(|(name, value)| (name, value)));
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(status.expect("python3 is there").success());
            pid_in(&pid)
        };
        let pids = vec![
            start("bare", &[]),
            start("of-the-cli", &[&cli]),
            start("without-data", &[&session, &cli]),
            start("other-data", &[&session, &elsewhere, &cli]),
            start("other-session", &[&other, &data, &cli]),
        ];
        Foreigners { pids }
    }

    pub(crate) fn all_live(&self) -> bool {
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
            let file = bench.home.project().join("pid");
            let gate = Gate::new();
            let input = json!({"command": deaf(&bench, &file), "description": "start a server"});
            bench.api.push(Reply::new().tool_use("Bash", input));
            bench.api.push(Reply::new().text("the server runs").hold_after(1, &gate));
            let session = bench.create("start the server");
            gate.wait_reached(LIMIT);
            bench.wait_on_disk(Written::Result);
            let leftover = pid_in(&file);
            assert!(lives(leftover) && marked(session).contains(&leftover));
            let foreigners = Foreigners::like(&bench, leftover);
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
