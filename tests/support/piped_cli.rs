//! Drives the real CLI directly over three pipes, with the launch line of the contract, for tests of the mock itself
//! and for sessions that Omniscio did not start. It supervises nothing: no recovery, no timers but the test's own.

use super::real_cli::{CliHome, cli_path};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A running CLI. Dropping it kills it.
pub struct PipedCli {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    seen: Vec<Value>,
}

impl PipedCli {
    /// Starts the pinned CLI in the project folder of `home`; `session` is `["--session-id", ID]`, `["--resume", ID]`
    /// and the like.
    pub fn launch(home: &CliHome, session: &[&str]) -> Self {
        let mut command = Command::new(cli_path());
        command.args([
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
        ]);
        command
            .args(["--include-partial-messages", "--permission-prompt-tool", "stdio"])
            .args(session);
        command.current_dir(home.project()).env_clear().envs(home.env());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
        command.env("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the pinned CLI starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let stderr = child.stderr.take().expect("stderr is a pipe");
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let value =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({"not_json": line}));
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || forward_chatter(stderr));
        Self { child, stdin, lines, seen: Vec::new() }
    }

    /// The CLI's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line.
    pub fn send(&mut self, line: &Value) {
        let stdin = self.stdin.as_mut().expect("stdin is still open");
        writeln!(stdin, "{line}").expect("the CLI reads its input");
    }

    /// Sends an operator's message.
    pub fn send_text(&mut self, uuid: &str, text: &str) {
        self.send(
            &json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}),
        );
    }

    /// The launch handshake; returns its answer.
    pub fn initialize(&mut self) -> Value {
        self.send(&json!({"type": "control_request", "request_id": "hello", "request": {"subtype": "initialize"}}));
        self.wait("the answer to initialize", Duration::from_secs(30), |line| {
            line["type"] == "control_response"
        })
    }

    /// Answers a `can_use_tool` request.
    pub fn answer(&mut self, request: &Value, response: &Value) {
        let id = &request["request_id"];
        self.send(&json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": response},
        }));
    }

    /// The next `result`.
    pub fn result(&mut self, timeout: Duration) -> Value {
        self.wait("a result", timeout, |line| line["type"] == "result")
    }

    /// Reads on until a line fits, and returns it. Every line read is kept in [`PipedCli::seen`].
    ///
    /// # Panics
    /// With the last lines, when none fits within `timeout` or the output ends.
    #[track_caller]
    pub fn wait(&mut self, what: &str, timeout: Duration, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if fits(&line) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited {timeout:?} for {what}; {}", self.tail())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the output ended before {what}; {}", self.tail())
                }
            }
        }
    }

    /// Every line read so far, oldest first.
    pub fn seen(&self) -> &[Value] {
        &self.seen
    }

    /// The lines read so far of one type, and of one subtype unless that is empty.
    pub fn seen_of(&self, kind: &str, subtype: &str) -> Vec<Value> {
        let mut lines = self.seen.clone();
        lines.retain(|line| {
            line["type"] == kind && (subtype.is_empty() || line["subtype"] == subtype)
        });
        lines
    }

    /// Closes stdin and waits for the end.
    pub fn finish(mut self) -> ExitStatus {
        self.stdin = None;
        super::real_cli::wait_for(
            Duration::from_secs(20),
            "the CLI's exit after the end of its input",
            || self.child.try_wait().expect("an own child can be waited for"),
        )
    }

    /// Kills the CLI with SIGKILL and reaps it.
    pub fn kill(&mut self) {
        // both fail only when it has ended already
        self.child.kill().ok();
        self.child.wait().ok();
    }

    fn tail(&self) -> String {
        let from = self.seen.len().saturating_sub(8);
        let lines = self.seen[from..]
            .iter()
            .map(|line| line.to_string().chars().take(300).collect::<String>());
        format!("its last lines:\n{}", lines.collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for PipedCli {
    fn drop(&mut self) {
        self.kill();
    }
}

fn forward_chatter(stderr: impl Read) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        eprintln!("claude: {line}");
    }
}
