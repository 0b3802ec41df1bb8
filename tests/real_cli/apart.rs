//! The supervisor of a bench: in this process, or in one of its own in the same namespace, which can be
//! killed and given limits by the system. That one is asked over its stdin, a line of JSON each. It knows
//! nothing of what a test wants.

use crate::bench::{config, started};
use crate::seen::Seen;
use omniscio_core::block::Block;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{AuditLine, CliState, IpcError, Reply, RowView};
use omniscio_core::limits::Limits;
use omniscio_core::supervisor::Command;
use omniscio_lib::supervise::handle::Handle;
use omniscio_lib::supervise::supervisor::{Cli, Config};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

/// Tells the other process what it is to be, as JSON.
const JOB: &str = "OMNISCIO_TEST_SUPERVISOR";
/// Stands before each of its answers: the test harness prints lines of its own.
const MARK: &str = "answer: ";
/// Rows of one page of the store.
const PAGE: u32 = 200;

/// What a supervisor in a process of its own runs on.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) data: PathBuf,
    pub(crate) config_dir: PathBuf,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) limits: Limits,
    pub(crate) program: PathBuf,
}

/// What a bench asks of its supervisor.
#[derive(Serialize, Deserialize)]
enum Ask {
    Command(Command),
    Rows,
    Blocks(SessionId),
    Audit(Option<SessionId>),
    /// What is known of the CLI's program.
    Cli,
}

/// A running supervisor.
pub(crate) enum App {
    Here(Handle),
    Apart(Apart),
}

impl App {
    pub(crate) fn command(&self, command: Command) -> Result<Reply, IpcError> {
        match self {
            App::Here(handle) => handle.command(command),
            App::Apart(apart) => apart.ask(&Ask::Command(command)),
        }
    }

    pub(crate) fn rows(&self) -> Vec<RowView> {
        match self {
            App::Here(handle) => handle.snapshot().expect("a snapshot").rows,
            App::Apart(apart) => apart.ask(&Ask::Rows),
        }
    }

    pub(crate) fn cli(&self) -> CliState {
        match self {
            App::Here(handle) => handle.snapshot().expect("a snapshot").cli,
            App::Apart(apart) => apart.ask(&Ask::Cli),
        }
    }

    pub(crate) fn blocks(&self, session: SessionId) -> Vec<Block> {
        match self {
            App::Here(handle) => handle.page(session, None, PAGE).expect("a page").blocks,
            App::Apart(apart) => apart.ask(&Ask::Blocks(session)),
        }
    }

    /// The newest lines of the audit log, newest first.
    pub(crate) fn audit(&self, session: Option<SessionId>) -> Vec<AuditLine> {
        match self {
            App::Here(handle) => handle.audit(session, PAGE).expect("the audit log"),
            App::Apart(apart) => apart.ask(&Ask::Audit(session)),
        }
    }
}

/// A supervisor in a process of its own. It ends with its stdin.
pub(crate) struct Apart {
    process: Child,
    pipes: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
}

impl Apart {
    /// Starts it; `test_path` is that of the calling test, which begins with [`serve_if_asked`].
    pub(crate) fn start(job: &Job, test_path: &str) -> Apart {
        let me = std::env::current_exe().expect("this test");
        let mut process = std::process::Command::new(me)
            .args(["--exact", test_path, "--nocapture", "--test-threads=1"])
            .env(JOB, serde_json::to_string(job).expect("a job is JSON"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second process");
        let stdin = process.stdin.take().expect("stdin is a pipe");
        let stdout = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        Apart { process, pipes: Mutex::new((stdin, stdout.lines())) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL; returns when it is gone.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("SIGKILL");
        self.process.wait().expect("reaped");
    }

    fn ask<T: DeserializeOwned>(&self, ask: &Ask) -> T {
        let mut pipes = self.pipes.lock().expect("no panic while asking");
        let (stdin, lines) = &mut *pipes;
        writeln!(stdin, "{}", serde_json::to_string(ask).expect("a question is JSON"))
            .expect("the other process reads");
        let answers = lines.map_while(Result::ok).filter_map(|line| {
            let (_, answer) = line.split_once(MARK)?;
            Some(serde_json::from_str(answer).expect("an answer to what was asked"))
        });
        { answers }.next().expect("the other process lives")
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // both fail only when it was killed before
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// In the other process: runs the supervisor for as long as it is let live. Anywhere else: nothing.
pub(crate) fn serve_if_asked() {
    let Ok(job) = std::env::var(JOB) else { return };
    let job: Job = serde_json::from_str(&job).expect("a job");
    let common = config(&job.data, job.variables, job.config_dir);
    let cli = Cli::Fixed { program: job.program, args: Vec::new() };
    let config = Config { limits: job.limits, cli, ..common };
    let app = App::Here(started(&config, &Seen::default()));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let answer = match serde_json::from_str(&line).expect("a question") {
            Ask::Command(command) => serde_json::to_string(&app.command(command)),
            Ask::Rows => serde_json::to_string(&app.rows()),
            Ask::Blocks(session) => serde_json::to_string(&app.blocks(session)),
            Ask::Audit(session) => serde_json::to_string(&app.audit(session)),
            Ask::Cli => serde_json::to_string(&app.cli()),
        };
        println!("{MARK}{}", answer.expect("an answer is JSON"));
    }
    // whoever asked is gone
    std::process::exit(0);
}
