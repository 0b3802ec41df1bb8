//! A stand-in under test: its folders, its pipes, and a short way to write down the lines it sends.
//! It asserts nothing beyond "a line came in time".

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

pub(super) const FAKE: &str = env!("CARGO_BIN_EXE_omniscio-fake-claude");
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const FIRST: &str = "11111111-1111-4111-8111-111111111111";
pub(super) const SECOND: &str = "22222222-2222-4222-8222-222222222222";
pub(super) const THIRD: &str = "33333333-3333-4333-8333-333333333333";
pub(super) const CONTINUE: &str =
    "Your reply to my last message was cut off. Continue it from where it stopped.";

/// A project folder and a config folder of their own.
pub(super) struct Home(tempfile::TempDir);

impl Home {
    pub(super) fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.0.path().join("project")).unwrap();
        home
    }

    pub(super) fn config(&self) -> PathBuf {
        self.0.path().join("config")
    }

    pub(super) fn command(&self, session: &[&str]) -> Command {
        let mut command = Command::new(FAKE);
        let line = "-p --input-format stream-json --output-format stream-json --verbose \
                    --include-partial-messages --permission-prompt-tool stdio --append-system-prompt x";
        command.args(line.split_whitespace()).args(session);
        command.current_dir(self.0.path().join("project"));
        command.env("CLAUDE_CONFIG_DIR", self.config());
        command.env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
        command.env("OMNISCIO_FAKE_PACE_MS", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) fn start(&self, session: &[&str]) -> Peer {
        Peer::new(self.command(session).spawn().unwrap())
    }

    /// Starts, sends one message and reads to the end of the output.
    pub(super) fn ask(&self, session: &[&str], uuid: &str, text: &str) -> Vec<Value> {
        let mut peer = self.start(session);
        peer.say(uuid, text);
        peer.stdin = None;
        peer.rest()
    }

    pub(super) fn transcript(&self, session: &str) -> Vec<Value> {
        let files = fs::read_dir(self.config().join("projects")).unwrap();
        let name = format!("{session}.jsonl");
        let file = files.map(|entry| entry.unwrap().path().join(&name)).find(|file| file.exists());
        let text = fs::read_to_string(file.expect("the session has a transcript")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A running stand-in; it is killed when the test is over.
pub(super) struct Peer {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Peer {
    pub(super) fn new(mut child: Child) -> Self {
        let (send, lines) = mpsc::channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                let event =
                    serde_json::from_slice(&line).unwrap_or_else(|_| json!({"chatter": true}));
                if send.send(event).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self { stdin: child.stdin.take(), child, lines }
    }

    pub(super) fn send(&mut self, line: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn say(&mut self, uuid: &str, text: &str) {
        self.send(
            &json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}),
        );
    }

    pub(super) fn control(&mut self, request: Value) -> Value {
        self.send(&json!({"type": "control_request", "request_id": "r", "request": request}));
        self.until(|line| line["type"] == "control_response").pop().unwrap()["response"].clone()
    }

    pub(super) fn reply(&mut self, request: &Value, response: Value) {
        let id = &request["request_id"];
        self.send(&json!({"type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": response}}));
    }

    /// The lines up to the first that fits, that one included.
    #[track_caller]
    pub(super) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen: Vec<Value> = Vec::new();
        while !seen.last().is_some_and(&fits) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => seen.push(line),
                Err(why) => panic!("{why} after {:#?}", kinds(&seen)),
            }
        }
        seen
    }

    pub(super) fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result").pop().unwrap()
    }

    pub(super) fn question(&mut self) -> Value {
        self.until(|line| line["type"] == "control_request").pop().unwrap()
    }

    /// Everything up to the end of the output.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => seen.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return seen,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after {:#?}", kinds(&seen)),
            }
        }
    }

    pub(super) fn exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the process does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

/// The kind of each line, repeated ones once.
pub(super) fn kinds(lines: &[Value]) -> Vec<String> {
    let part = |value: &Value| value.as_str().map(|text| format!(" {text}")).unwrap_or_default();
    let kind = |line: &Value| {
        let event = &line["event"];
        let state = if line["type"] == "user" { &Value::Null } else { &line["state"] };
        let block = event["content_block"]["type"].as_str().or(event["delta"]["type"].as_str());
        let block = block.or(line["message"]["content"][0]["type"].as_str());
        let block = block.map(|text| format!(" {text}")).unwrap_or_default();
        let name = line["type"].as_str().unwrap_or("chatter");
        format!("{name}{}{}{}{block}", part(&line["subtype"]), part(state), part(&event["type"]))
    };
    let mut kinds: Vec<String> = lines.iter().map(kind).collect();
    kinds.dedup();
    kinds
}

pub(super) fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

pub(super) fn text_of(lines: &[Value]) -> Vec<&str> {
    of(lines, "result").iter().map(|line| line["result"].as_str().unwrap_or("(none)")).collect()
}

pub(super) fn run(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success());
}
