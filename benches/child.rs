//! What this program does as a child: it writes recorded lines as fast as they are read, bursts and
//! exits, or is a CLI that notes when it was spoken to.
//!
//! It reads no environment and touches no file but the one that it is told.

use crate::meter::shared_ns;
use rustix::stdio::stdout;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// The first argument of a child.
pub(crate) const FLAG: &str = "--child";

/// What a child is to do.
pub(crate) enum Role<'a> {
    /// Writes the lines of a file so many times over, each with one write, as the CLI does.
    Lines { file: &'a Path, times: usize },
    /// Writes the lines of a file over and over, with a pause before each.
    Paced { file: &'a Path, pause: Duration },
    /// Writes a file with as few writes as the terminal takes, and exits at once.
    Burst { file: &'a Path },
    /// Says nothing and waits for the end of its input.
    Silent,
    /// Shakes hands and answers a message at once; leaves its times in a folder.
    Cli { folder: &'a Path },
    /// Shakes hands and answers a message with the lines of a file, as `Lines` does.
    Talker { file: &'a Path, times: usize },
}

impl Role<'_> {
    /// The arguments that make this program that child.
    pub(crate) fn args(&self) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let words = match self {
            Role::Lines { file, times } => vec!["lines".into(), path(file), times.to_string()],
            Role::Paced { file, pause } => {
                vec!["paced".into(), path(file), pause.as_millis().to_string()]
            }
            Role::Burst { file } => vec!["burst".into(), path(file)],
            Role::Silent => vec!["silent".into()],
            Role::Cli { folder } => vec!["cli".into(), path(folder)],
            Role::Talker { file, times } => vec!["talker".into(), path(file), times.to_string()],
        };
        [vec![FLAG.to_owned()], words].concat()
    }
}

/// When a CLI came to life, and when it was spoken to, by [`shared_ns`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Its first line of code.
    pub(crate) began: u64,
    /// Just before it answered the handshake.
    pub(crate) answered: u64,
    /// Its first message was read.
    pub(crate) message: u64,
}

impl Times {
    /// What a CLI left; `None` before its first message.
    pub(crate) fn left_in(folder: &Path, pid: u32) -> Option<Times> {
        let text = fs::read_to_string(times_file(folder, pid)).ok()?;
        let text = text.strip_suffix('\n')?;
        let mut numbers = text.split(' ').map(|number| number.parse().expect("a time"));
        let mut next = || numbers.next().expect("three times");
        Some(Times { began: next(), answered: next(), message: next() })
    }
}

fn times_file(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("times-{pid}"))
}

/// Does what [`Role::args`] say, behind the flag.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let began = shared_ns();
    match args {
        ["lines", file, times] => {
            let times = times.parse().expect("how often");
            lines(file, |lines| repeat(lines, times));
        }
        ["paced", file, pause] => {
            let pause = Duration::from_millis(pause.parse().expect("a pause"));
            lines(file, |lines| pace(lines, pause));
        }
        ["burst", file] => write_all(&fs::read(file).expect("the burst")),
        ["silent"] => drop(stdin().read_to_end(&mut Vec::new())),
        // the app's own arguments follow
        ["cli", folder, rest @ ..] => cli(rest, |answered, message| {
            leave_times(Path::new(folder), Times { began, answered, message });
            say(&json!({"type": "assistant", "message": {"id": "msg_1", "role": "assistant",
                "content": [{"type": "text", "text": "Done."}]}}));
        }),
        ["talker", file, times, rest @ ..] => {
            let times = times.parse().expect("how often");
            lines(file, |lines| cli(rest, |_, _| repeat(lines, times)));
        }
        unknown => panic!("no such child: {unknown:?}"),
    }
    ExitCode::SUCCESS
}

fn lines(file: &str, write: impl FnOnce(&[&[u8]])) {
    let text = fs::read(file).expect("the lines");
    write(&text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
}

fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(stdout(), bytes));
        bytes = &bytes[written.expect("somebody reads")..];
    }
}

fn repeat(lines: &[&[u8]], times: usize) {
    (0..times).for_each(|_| lines.iter().for_each(|line| write_all(line)));
}

fn pace(lines: &[&[u8]], pause: Duration) -> ! {
    loop {
        for line in lines {
            thread::sleep(pause);
            write_all(line);
        }
    }
}

/// As much of the CLI as a start and answers need. `answer` gets the times of the handshake's answer
/// and of the message, and writes what stands between the begin and the end of a turn.
fn cli(args: &[&str], answer: impl Fn(u64, u64)) {
    let session = args.windows(2).find(|pair| pair[0] == "--session-id").map(|pair| pair[1]);
    let mut answered = 0;
    for line in stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("a line of JSON");
        if line["type"] == "control_request" {
            let response = json!({"subtype": "success", "request_id": line["request_id"]});
            let response = json!({"type": "control_response", "response": response});
            answered = shared_ns();
            say(&response);
        } else if line["type"] == "user" {
            let message = shared_ns();
            say(&json!({"type": "system", "subtype": "init", "session_id": session}));
            answer(answered, message);
            say(&json!({"type": "result", "subtype": "success", "is_error": false,
                "num_turns": 1, "result": "Done.", "user_message_uuids": [line["uuid"]]}));
        }
    }
}

fn leave_times(folder: &Path, Times { began, answered, message }: Times) {
    let part = folder.join(format!("part-{}", std::process::id()));
    fs::write(&part, format!("{began} {answered} {message}\n")).expect("the times");
    fs::rename(&part, times_file(folder, std::process::id())).expect("the times");
}

fn say(value: &Value) {
    write_all(format!("{value}\n").as_bytes());
}
