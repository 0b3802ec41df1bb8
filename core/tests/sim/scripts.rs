//! What the scripted CLI does in one turn: a list of beats, each with the time before it. Random, from
//! the world's die; knows nothing of the app.

use crate::clock::{MINUTE, SECOND};
use crate::dice::Dice;
use crate::lines;
use crate::troubles::{Trouble, tokens};
use crate::waits::{Wait, prompt};
use omniscio_core::id::Uuid;
use serde_json::json;
use std::collections::VecDeque;

/// What the turn is doing once a line is out: how long it may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing was put out.
    Start,
    /// A text or tool-input block is open.
    Open,
    /// Between blocks, thinking, or waiting for the model.
    Between,
    /// A tool, a card or a compaction: no limit.
    Free,
    /// An announced retry of this many milliseconds.
    Retry(u64),
}

/// One thing the CLI does.
#[derive(Clone, Debug)]
pub(crate) enum Beat {
    /// Prints a line.
    Line(String, Phase),
    /// Prints an assistant line, which stands in the transcript too.
    Said(Uuid, String),
    /// Prints a complete tool call, which stands in the transcript too.
    Call { uuid: Uuid, line: String },
    /// Asks for consent and waits.
    Ask { request: String, line: String },
    /// The tool runs.
    Run,
    /// The tool's result.
    Done { call: String },
    /// What the call has set or begun.
    Wait(Wait),
    /// The turn is over.
    Result(String),
    /// A line of stderr.
    Chatter,
    /// Half a line.
    Torn(String),
    /// The output ends, the process stays.
    Eof,
    /// The process is gone.
    Exit(i32),
    /// Nothing ever comes again.
    Hang,
}

pub(crate) type Script = VecDeque<(u64, Beat)>;

/// How an agent begins its final message that knows the marker.
const MARKER: &str = "<!-- omniscio:final-message -->\n";

/// A turn that answers the messages, with everything a good turn may hold on its way.
struct Writer<'a> {
    dice: &'a mut Dice,
    script: Script,
    messages: Vec<Uuid>,
    tokens: u64,
    /// The agent marks its final messages.
    marks: bool,
}

/// A whole turn. `messages`: the uuids it answers. `marks`: the agent marks its final messages.
pub(crate) fn turn(
    dice: &mut Dice,
    session: Uuid,
    messages: &[Uuid],
    (trouble, marks): (Option<Trouble>, bool),
) -> Script {
    let (script, tokens) = (Script::new(), tokens(trouble));
    let mut writer = Writer { dice, script, messages: messages.to_vec(), tokens, marks };
    writer.open(session);
    if writer.dice.chance(40) {
        writer.retry();
    }
    for _ in 0..writer.dice.weighted(&[(5, 0), (4, 1), (1, 3)]) {
        writer.tool();
    }
    if writer.dice.chance(20) {
        writer.add(200, Beat::Line(lines::compacting(true), Phase::Free));
        let long = writer.dice.between(5 * SECOND, 12 * MINUTE);
        let real = writer.script.len() > messages.len() + 2;
        let phase = if real { Phase::Between } else { Phase::Start };
        writer.add(long, Beat::Line(lines::compacting(false), phase));
    }
    match trouble {
        None => {
            if writer.dice.chance(120) {
                writer.wait();
            }
            writer.answer();
        }
        Some(trouble) => writer.go_wrong(trouble),
    }
    writer.script
}

/// One of the CLI's own commands.
pub(crate) fn local_command(session: Uuid, message: Uuid) -> Script {
    let result = lines::result(&[message], &json!({"local_command": "cost", "result": "$0.01"}));
    Script::from([(30, Beat::Line(lines::init(session), Phase::Start)), (80, Beat::Result(result))])
}

/// The `/compact` of the app.
pub(crate) fn forced_compact(session: Uuid, message: Uuid, works: bool) -> Script {
    let result = lines::result(&[message], &json!({"local_command": "compact"}));
    let mut script = Script::from([
        (30, Beat::Line(lines::init(session), Phase::Start)),
        (40, Beat::Line(lines::compacting(true), Phase::Free)),
        (9 * SECOND, Beat::Line(lines::compacted(works), Phase::Free)),
    ]);
    if works {
        script.push_back((20, Beat::Line(lines::compact_boundary(), Phase::Between)));
    }
    script.push_back((80, Beat::Result(result)));
    script
}

/// What follows an interrupt.
pub(crate) fn interrupted(messages: &[Uuid], cancel: Option<String>) -> Script {
    let mut script = Script::new();
    if let Some(request) = cancel {
        script.push_back((10, Beat::Line(lines::control_cancel(&request), Phase::Between)));
    }
    let more = json!({"subtype": "error_during_execution", "is_error": true,
        "terminal_reason": "aborted_streaming", "errors": ["[ede_diagnostic]"]});
    script.push_back((60, Beat::Result(lines::result(messages, &more))));
    script
}

/// A start that is refused with its reason on stdout.
pub(crate) fn refused(reason: Option<&str>) -> Script {
    let mut more = json!({"subtype": "error_during_execution", "is_error": true, "num_turns": 0,
        "terminal_reason": null, "errors": ["No conversation found"]});
    if let Some(reason) = reason {
        more["startup_failure_reason"] = json!(reason);
    }
    let line = lines::result(&[], &more);
    Script::from([(200, Beat::Result(line)), (20, Beat::Eof), (20, Beat::Exit(1))])
}

impl Writer<'_> {
    fn add(&mut self, after: u64, beat: Beat) {
        self.script.push_back((after, beat));
    }

    fn open(&mut self, session: Uuid) {
        for message in self.messages.clone() {
            self.add(20, Beat::Line(lines::started(message), Phase::Start));
        }
        self.add(40, Beat::Line(lines::init(session), Phase::Start));
    }

    fn retry(&mut self) {
        let delay = self.dice.between(2 * SECOND, 3 * MINUTE);
        self.add(900, Beat::Line(lines::api_retry(delay), Phase::Retry(delay)));
        self.add(delay, Beat::Line(lines::thinking_delta("again"), Phase::Between));
    }

    fn message(&mut self) -> Uuid {
        let message = self.dice.uuid();
        let wait = self.dice.weighted(&[(6, 2 * SECOND), (2, 20 * SECOND), (1, 100 * SECOND)]);
        self.add(wait, Beat::Line(lines::message_start(message, self.tokens), Phase::Between));
        message
    }

    fn tool(&mut self) {
        let message = self.message();
        let tool = self.dice.weighted(&[(12, "Bash"), (2, "AskUserQuestion"), (1, "ExitPlanMode")]);
        let uuid = self.dice.uuid();
        let call = format!("call-{}", self.dice.raw() % 1_000_000_007);
        let command = format!("make {call}");
        let line = lines::assistant(uuid, message, &lines::tool_use(&call, tool, &command));
        self.add(50, Beat::Line(lines::block_start("tool_use", &call), Phase::Open));
        self.add(400, Beat::Call { uuid, line });
        self.add(5, Beat::Line(lines::block_stop(), Phase::Between));
        self.add(5, Beat::Line(lines::message_stop(), Phase::Free));
        if tool != "Bash" || self.dice.chance(250) {
            let request = format!("ask-{call}");
            let line = lines::can_use_tool(&request, &call, tool, &command);
            self.add(30, Beat::Ask { request, line });
        }
        self.add(10, Beat::Run);
        let long = self.dice.weighted(&[(8, 3 * SECOND), (3, 2 * MINUTE), (1, 18 * MINUTE)]);
        self.add(long, Beat::Done { call });
    }

    /// Sets a wake-up, or begins a command in the background.
    fn wait(&mut self) {
        let message = self.message();
        let uuid = self.dice.uuid();
        let call = format!("call-{}", self.dice.raw() % 1_000_000_007);
        let task = self.dice.chance(400);
        let after = self.dice.between(20 * MINUTE, 50 * MINUTE);
        let line = lines::assistant(uuid, message, &lines::wait_use(&call, task, &prompt(&call)));
        self.add(400, Beat::Call { uuid, line });
        self.add(5, Beat::Line(lines::message_stop(), Phase::Free));
        self.add(10, Beat::Wait(Wait { call, after, task }));
    }

    fn think(&mut self) {
        self.add(30, Beat::Line(lines::block_start("thinking", ""), Phase::Between));
        let long = self.dice.weighted(&[(8, SECOND), (2, MINUTE), (1, 8 * MINUTE)]);
        self.add(long, Beat::Line(lines::thinking_delta("hm"), Phase::Between));
        self.add(10, Beat::Line(lines::block_stop(), Phase::Between));
    }

    fn text(&mut self, message: Uuid, text: &str) -> Uuid {
        if self.dice.chance(300) {
            self.think();
        }
        let uuid = self.dice.uuid();
        self.add(40, Beat::Line(lines::block_start("text", ""), Phase::Open));
        for _ in 0..self.dice.between(1, 4) {
            let pause = self.dice.weighted(&[(9, 300), (2, 8 * SECOND), (1, 80 * SECOND)]);
            self.add(pause, Beat::Line(lines::text_delta("Dønë. "), Phase::Open));
        }
        let content = json!({"type": "text", "text": text});
        self.add(20, Beat::Said(uuid, lines::assistant(uuid, message, &content)));
        self.add(5, Beat::Line(lines::block_stop(), Phase::Between));
        self.add(5, Beat::Line(lines::message_stop(), Phase::Between));
        uuid
    }

    fn answer(&mut self) {
        let message = self.message();
        let marker = if self.marks { MARKER } else { "" };
        self.text(message, &format!("{marker}Done, as you said."));
        let more = json!({"result": "Done, as you said."});
        let line = lines::result(&self.messages, &more);
        self.add(60, Beat::Result(line));
    }

    /// Cuts the good turn somewhere.
    fn cut(&mut self) {
        self.answer();
        let keep = self.dice.between(1, self.script.len() as u64 - 1) as usize;
        self.script.truncate(keep);
    }

    fn fail(&mut self, error: &str, status: Option<u16>, more: &serde_json::Value) {
        self.cut();
        self.add(500, Beat::Line(lines::error_line(error, status), Phase::Between));
        let mut all = json!({"is_error": true, "terminal_reason": "api_error",
            "api_error_status": status, "result": "API Error"});
        if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        let line = lines::result(&self.messages, &all);
        self.add(50, Beat::Result(line));
    }

    fn go_wrong(&mut self, trouble: Trouble) {
        let none = json!({});
        match trouble {
            Trouble::Hang => {
                self.cut();
                self.add(0, Beat::Hang);
            }
            Trouble::Exit | Trouble::EofThenExit | Trouble::EofOnly | Trouble::TornExit => {
                self.die(trouble);
            }
            Trouble::NoResult => {
                let message = self.message();
                self.text(message, "Done, as you said.");
                self.add(0, Beat::Hang);
            }
            Trouble::Empty => {
                self.message();
                self.think();
                self.add(10, Beat::Line(lines::message_stop(), Phase::Between));
                let line = lines::result(&self.messages, &none);
                self.add(50, Beat::Result(line));
            }
            Trouble::Overloaded => self.fail("overloaded", Some(529), &none),
            Trouble::Connection => self.fail("server_error", None, &none),
            Trouble::Unauthorized => self.fail("authentication_failed", Some(401), &none),
            Trouble::NoCredit => self.fail("billing_error", Some(400), &none),
            Trouble::Limited => {
                self.add(300, Beat::Line(lines::rate_limited(1_790_000_000), Phase::Between));
                let more = json!({"is_error": true, "terminal_reason": "api_error",
                    "api_error_status": 429, "result": "Limit reached"});
                let line = lines::result(&self.messages, &more);
                self.add(50, Beat::Result(line));
            }
            Trouble::BadRequest => self.fail("invalid_request", Some(400), &none),
            Trouble::Full => {
                self.fail(
                    "invalid_request",
                    Some(400),
                    &json!({"terminal_reason": "prompt_too_long"}),
                );
            }
            Trouble::Paused => {
                let message = self.message();
                self.text(message, "Done");
                let more = json!({"result": "Done", "stop_reason": "pause_turn"});
                let line = lines::result(&self.messages, &more);
                self.add(50, Beat::Result(line));
            }
            Trouble::Foreign => {
                self.cut();
                let last = interrupted(&self.messages, None);
                self.script.extend(last);
            }
            Trouble::Down => {
                self.add(
                    3 * SECOND,
                    Beat::Line(lines::error_line("server_error", None), Phase::Start),
                );
                let more = json!({"is_error": true, "terminal_reason": "api_error",
                    "result": "API Error: Connection error."});
                let line = lines::result(&self.messages, &more);
                self.add(50, Beat::Result(line));
            }
            Trouble::Stall | Trouble::CompactEmpty => {
                if trouble == Trouble::CompactEmpty {
                    self.add(200, Beat::Line(lines::compact_boundary(), Phase::Between));
                } else {
                    self.tool();
                    if self.dice.chance(200) {
                        self.wait();
                    }
                    self.message();
                }
                let line = lines::result(&self.messages, &none);
                self.add(50, Beat::Result(line));
            }
            Trouble::FullAnswer => self.answer(),
            Trouble::Refill => {
                let reason = json!({"terminal_reason": "rapid_refill_breaker"});
                self.fail("invalid_request", None, &reason);
            }
            Trouble::MidTask => {
                let message = self.message();
                self.text(message, "On my way.");
                let line = lines::result(&self.messages, &json!({"result": "On my way."}));
                self.add(50, Beat::Result(line));
            }
            Trouble::ChatterForever => {
                self.script.truncate(1);
                for _ in 0..45 {
                    self.add(50 * SECOND, Beat::Chatter);
                }
                self.add(0, Beat::Hang);
            }
        }
    }

    fn die(&mut self, trouble: Trouble) {
        self.cut();
        let code = self.dice.weighted(&[(2, 1), (1, 0), (1, 137)]);
        if trouble == Trouble::TornExit {
            let half = lines::text_delta("and then").chars().take(40).collect();
            self.add(100, Beat::Torn(half));
        }
        if trouble != Trouble::Exit {
            self.add(30, Beat::Eof);
        }
        if trouble == Trouble::EofOnly {
            self.add(0, Beat::Hang);
        } else {
            let late = self.dice.weighted(&[(3, 20), (1, 900), (1, 4 * SECOND)]);
            self.add(late, Beat::Exit(code));
        }
    }
}
