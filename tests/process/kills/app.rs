//! The app that is killed: this test binary, started again with the supervisor in it and nothing else.
//! It takes commands as lines and gives their replies as lines; it decides nothing.

use crate::supervisor::rig::{Deaf, config};
use omniscio_core::ipc::{IpcError, Reply};
use omniscio_core::limits::Limits;
use omniscio_core::supervisor::{Command, Input, State, Step, step};
use omniscio_core::time::Now;
use omniscio_lib::supervise::accounts::Account;
use omniscio_lib::supervise::supervisor::{Cli, Config, Supervisor};
use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::path::Path;
use std::process::{self, ChildStdin, ChildStdout, Stdio};

/// Which home the app works on.
const HOME: &str = "KILLS_TEST_HOME";
/// Its machine refuses every child for a while.
const REFUSING: &str = "KILLS_TEST_REFUSING";
/// How a line with a reply begins.
const REPLY: &str = "reply ";
const READY: &str = "ready";

/// What the commands of one life of the app came to: `None` where it died before the reply.
pub(super) type Replies = Vec<(Command, Option<Outcome>)>;
pub(super) type Outcome = Result<Reply, IpcError>;

/// Not a test by itself: the app. Without its variable it does nothing.
#[test]
fn the_app_that_is_killed() {
    let Some(home) = env::var_os(HOME) else {
        return;
    };
    let app = Supervisor::start(config_of(home.as_ref()), Deaf).unwrap();
    println!("\n{READY}");
    for line in stdin().lock().lines() {
        let command = serde_json::from_str(&line.unwrap()).unwrap();
        println!("{REPLY}{}", serde_json::to_string(&app.command(command)).unwrap());
    }
    app.quit().unwrap();
    assert!(app.ended_within(super::LONG));
}

/// Recovery within a second, two accounts: one with a key, one with a login.
fn config_of(home: &Path) -> Config {
    let base = config(home);
    let mut accounts = base.accounts.clone().unwrap();
    let login = Account {
        id: super::LOGIN.to_string(),
        label: "Login".to_string(),
        config_dir: Some(home.join("config-login")),
        api_key: false,
        ..accounts[0].clone()
    };
    accounts.push(login);
    let refusing = env::var_os(REFUSING).is_some();
    Config {
        limits: limits(base.limits.clone()),
        accounts: Some(accounts),
        cli: Cli::Fixed { program: home.join(super::CLI), args: Vec::new() },
        rules: if refusing { refused } else { step },
        ..base
    }
}

fn limits(base: Limits) -> Limits {
    Limits {
        scan_interval_ms: 250,
        scan_boot_delay_ms: 100,
        replay_debounce_ms: 300,
        ladder_first_ms: 400,
        ladder_max_ms: 1_000,
        drain_ms: 200,
        // a Stop that the CLI does not hear is still open when the app dies
        interrupt_grace_ms: 3_000,
        term_grace_ms: 150,
        relaunch_first_ms: 40,
        relaunch_max_ms: 300,
        // few at a time and one after the other, so that a kill finds some in line
        spawn_gap_ms: 15,
        starting_max: 4,
        // the machine that runs the test may be a small one
        headroom_descriptors: 8,
        headroom_processes: 8,
        headroom_memory_mib: 16,
        ..base
    }
}

/// The rules on a machine that has no process left for whom it is asked: its number instead of that of
/// the program, which the test has put away.
fn refused(state: &mut State, mut input: Input, now: Now) -> Step {
    if let Input::SpawnFailed { errno, .. } = &mut input {
        *errno = Some(libc::EAGAIN);
    }
    step(state, input, now)
}

/// A life of the app, from its start to the kill.
pub(super) struct App {
    process: process::Child,
    stdin: Option<ChildStdin>,
    said: Lines<BufReader<ChildStdout>>,
    told: Vec<Command>,
    replies: Vec<Outcome>,
}

impl App {
    pub(super) fn start(home: &Path, refusing: bool) -> App {
        let mut command = process::Command::new(env::current_exe().unwrap());
        command.args(["--exact", "kills::app::the_app_that_is_killed", "--nocapture"]);
        command.env(HOME, home).stdin(Stdio::piped()).stdout(Stdio::piped());
        if refusing {
            command.env(REFUSING, "1");
        }
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        App { stdin: process.stdin.take(), process, said, told: Vec::new(), replies: Vec::new() }
    }

    pub(super) fn until_ready(&mut self) {
        assert!(self.said.any(|line| line.unwrap() == READY), "the app did not start");
    }

    /// Hands it a command; nobody waits for the reply.
    pub(super) fn tell(&mut self, command: Command) {
        let line = serde_json::to_string(&command).unwrap();
        writeln!(self.stdin.as_ref().unwrap(), "{line}").unwrap();
        self.told.push(command);
    }

    /// How many commands it was handed.
    pub(super) fn told(&self) -> usize {
        self.told.len()
    }

    /// Waits until it has replied to so many.
    pub(super) fn until_replied(&mut self, many: usize) {
        while self.replies.len() < many {
            let line = self.said.next().expect("it replies").unwrap();
            self.replies.extend(reply_of(&line));
        }
    }

    /// Kills it; what it had replied until then was acknowledged.
    pub(super) fn kill(mut self) -> Replies {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.all_replies()
    }

    /// Lets it quit by itself.
    pub(super) fn quit(mut self) -> Replies {
        drop(self.stdin.take());
        let replies = self.all_replies();
        assert!(self.process.wait().unwrap().success(), "the app quits");
        replies
    }

    fn all_replies(&mut self) -> Replies {
        let rest = self.said.by_ref().map(Result::unwrap);
        self.replies.extend(rest.filter_map(|line| reply_of(&line)));
        let mut replies: Vec<_> = self.replies.drain(..).map(Some).collect();
        replies.resize_with(self.told.len(), || None);
        self.told.drain(..).zip(replies).collect()
    }
}

fn reply_of(line: &str) -> Option<Outcome> {
    Some(serde_json::from_str(line.strip_prefix(REPLY)?).unwrap())
}

impl Drop for App {
    fn drop(&mut self) {
        // a failed test leaves no app behind
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
