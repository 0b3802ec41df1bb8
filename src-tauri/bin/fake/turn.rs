//! One turn: the order of its lines, from `started` to `idle`, and its result. The single steps are in
//! `steps.rs`, the pieces of an API message in `message.rs`, tool calls in `tools.rs`.

use crate::attempts::Attempt;
use crate::clock::Stopwatch;
use crate::message::Message;
use crate::script::{self, Step};
use crate::session::{Incoming, Session};
use crate::steps::Flow;
use crate::transcript::text_of;
use crate::{compact, ids, limits, persona, process, protocol};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The state of the turn that runs.
pub(crate) struct Turn<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) uuids: Vec<String>,
    pub(crate) attempt: Attempt,
    /// Pause between two streamed words.
    pub(crate) pace: Duration,
    /// What is streamed before a scripted cut.
    pub(crate) before_cut: String,
    /// The API message that is being streamed.
    pub(crate) message: Option<Message>,
    /// API calls of this turn.
    pub(crate) calls: u64,
    /// The text of the last message.
    pub(crate) text: String,
    /// How the operator answered the last question; `{answer}` in a text stands for it.
    pub(crate) heard: String,
    pub(crate) denials: Vec<Value>,
    /// Tool calls that the history already holds: a continuation does not repeat them.
    pub(crate) done_calls: usize,
    pub(crate) clock: Stopwatch,
}

/// How a turn was interrupted.
pub(crate) enum Cut {
    /// While text streamed, or while the API was waited for.
    Streaming,
    /// Within a tool, or by an answer to its question.
    Tools,
}

impl From<crate::control::Interrupted> for Cut {
    fn from(_: crate::control::Interrupted) -> Self {
        Cut::Streaming
    }
}

/// What the attempt does.
struct Plan {
    steps: Vec<Step>,
    pace: Duration,
    before_cut: usize,
}

/// Runs one turn for the messages in `batch`.
pub(crate) fn run(session: &mut Session, batch: Vec<Incoming>) {
    if compact::is_command(&batch) {
        batch.into_iter().for_each(|message| session.compact_on_command(message));
        return;
    }
    let text = batch.iter().map(|message| text_of(&message.content)).collect::<Vec<_>>().join("\n");
    let attempt = session.attempts.peek(&text);
    let plan = plan(session, &attempt);
    let active = |wanted: &Step| {
        plan.steps.iter().any(|step| step.at_attempt(attempt.number) == Some(wanted))
    };
    if active(&Step::IgnoreTerm) && !session.term_ignored {
        session.restart_ignoring_term(batch);
    }
    let uuids: Vec<String> = batch.iter().filter_map(|message| message.uuid.clone()).collect();
    for uuid in &uuids {
        session.out.emit(protocol::lifecycle(uuid, "started"));
    }
    session.attempts.begin(&attempt);
    if active(&Step::Lost) {
        process::kill_self();
    }
    session.busy = true;
    session.state("running");
    let done_calls =
        if attempt.continued { session.transcript.calls_since(&attempt.text) } else { 0 };
    record(session, &batch);
    session.out.emit(protocol::init(
        &session.cwd,
        &session.model,
        &session.mode,
        session.args.asks_host,
    ));
    let before_cut = opening(&plan);
    let heard =
        if done_calls > 0 { "answered before I was cut off".to_owned() } else { String::new() };
    let turn = Turn {
        session,
        uuids,
        attempt,
        pace: plan.pace,
        before_cut,
        message: None,
        calls: 0,
        text: String::new(),
        heard,
        denials: Vec::new(),
        done_calls,
        clock: Stopwatch::start(),
    };
    turn.perform(&plan.steps);
}

/// Puts the messages into the transcript before anything is asked of the API.
fn record(session: &mut Session, batch: &[Incoming]) {
    for message in batch {
        let uuid = message.uuid.clone().unwrap_or_else(ids::uuid);
        session.transcript.user(&uuid, &message.content, false);
        if session.args.replay {
            session.out.emit(
                json!({"type": "user", "message": {"role": "user", "content": message.content},
                "uuid": uuid, "parent_tool_use_id": null, "isReplay": true}),
            );
        }
    }
}

/// Pause between two words: `OMNISCIO_FAKE_PACE_MS`, else what the kind of turn takes.
fn pace(usual: Duration) -> Duration {
    let asked = std::env::var("OMNISCIO_FAKE_PACE_MS").ok().and_then(|text| text.parse().ok());
    asked.map_or(usual, Duration::from_millis)
}

/// The steps of an attempt: the message's own directives, else the script file's line, else the personality.
fn plan(session: &Session, attempt: &Attempt) -> Plan {
    let scripted = script::extract(&attempt.text)
        .or_else(|| session.scripted(attempt.index).map(|steps| (steps, attempt.text.clone())));
    let Some((steps, rest)) = scripted else {
        let first = !session.attempts.answered_any();
        let steps = persona::steps(
            &attempt.text,
            attempt.number,
            first,
            session.transcript.operator_messages(),
        );
        return Plan {
            steps,
            pace: pace(limits::PERSONA_WORD),
            before_cut: persona::WORDS_BEFORE_CUT,
        };
    };
    let mut steps = steps.unwrap_or_else(|why| {
        // a test with a typing error must not pass by accident
        eprintln!("{why}");
        session.leave(64)
    });
    if !steps.iter().any(Step::is_answer) {
        steps.push(Step::Say(if rest.is_empty() {
            "Done.".to_owned()
        } else {
            format!("This is the whole answer to: {rest}")
        }));
    }
    Plan { steps, pace: pace(limits::SCRIPT_WORD), before_cut: limits::WORDS_BEFORE_CUT }
}

/// The beginning of the planned answer, broken off inside it.
fn opening(plan: &Plan) -> String {
    let say = |step: &Step| {
        if let Step::Say(text) = step { Some(text.clone()) } else { None }
    };
    let answer = plan.steps.iter().find_map(say).unwrap_or_default();
    let words: Vec<&str> = answer.split_inclusive(char::is_whitespace).collect();
    let shown = plan.before_cut.min(words.len().div_ceil(2));
    words[..shown].concat()
}

impl Turn<'_> {
    fn perform(mut self, steps: &[Step]) {
        match self.play(steps) {
            Ok(Flow::Next) => {
                self.close_message("end_turn");
                self.finish_well();
            }
            Ok(Flow::Failed) => self.end("completed"),
            Ok(Flow::Silent) => self.session.busy = false,
            Err(cut) => self.finish_interrupted(&cut),
        }
    }

    fn play(&mut self, steps: &[Step]) -> Result<Flow, Cut> {
        self.session.pause(Duration::ZERO)?;
        self.requesting();
        let attempt = self.attempt.number;
        for step in steps.iter().filter_map(|step| step.at_attempt(attempt)) {
            if step.is_tool() && self.done_calls > 0 {
                self.done_calls -= 1;
                continue;
            }
            match self.step(step)? {
                Flow::Next => {}
                ended @ (Flow::Failed | Flow::Silent) => return Ok(ended),
            }
        }
        Ok(Flow::Next)
    }

    /// Adds the names of the messages that this turn answers.
    pub(crate) fn named(&self, event: Value) -> Value {
        let mut names = Map::new();
        if let Some(last) = self.uuids.last() {
            names.insert("user_message_uuid".into(), json!(last));
            names.insert("user_message_uuids".into(), json!(self.uuids));
        }
        protocol::with(event, names)
    }

    fn finish_well(&mut self) {
        self.session.attempts.settle(&self.uuids);
        let history = self.session.transcript.operator_messages();
        self.session.record.answered(&self.uuids, &self.text, history);
        let (text, usage) = (self.text.clone(), self.usage());
        self.result(json!({"subtype": "success", "is_error": false, "terminal_reason": "completed",
            "api_error_status": null, "stop_reason": "end_turn", "num_turns": self.calls.max(1), "result": text,
            "usage": usage}));
        self.end("completed");
    }

    /// What the API counted in this turn.
    pub(crate) fn usage(&self) -> Value {
        protocol::usage(self.session.context * self.calls, limits::OUTPUT_TOKENS * self.calls)
    }

    fn finish_interrupted(&mut self, cut: &Cut) {
        let (reason, stop) = match cut {
            Cut::Streaming => {
                self.abort_message();
                ("aborted_streaming", Value::Null)
            }
            Cut::Tools => {
                self.note_user(&json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]), true, json!({}));
                ("aborted_tools", "tool_use".into())
            }
        };
        let diagnostic = format!(
            "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={}",
            stop.as_str().unwrap_or("null")
        );
        self.result(json!({"subtype": "error_during_execution", "is_error": true, "terminal_reason": reason,
            "stop_reason": stop, "num_turns": self.calls + 1, "errors": [diagnostic], "usage": protocol::usage(0, 0)}));
        self.session.attempts.drop_open();
        self.end("cancelled");
    }

    /// Writes the turn's result; `facts` are the fields that differ from turn to turn.
    pub(crate) fn result(&mut self, facts: Value) {
        let session = &mut *self.session;
        let (model, cost) = (session.model.clone(), session.cost());
        let window = session.context_window();
        session.last_failed = facts["is_error"] == true;
        let common = json!({
            "type": "result", "duration_ms": self.clock.millis(), "duration_api_ms": self.clock.millis(),
            "total_cost_usd": cost, "permission_denials": self.denials, "queued_turn_count": session.queue.len(),
            "result_index": session.totals.results,
            "modelUsage": {(model.clone()): {
                "inputTokens": session.totals.input, "outputTokens": session.totals.calls * limits::OUTPUT_TOKENS,
                "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
                "contextWindow": window, "maxOutputTokens": 128_000, "costUSD": cost}},
        });
        session.totals.results += 1;
        let whole = protocol::with(common, facts.as_object().cloned().unwrap_or_default());
        let whole = self.named(whole);
        self.session.out.emit(whole);
    }

    fn end(&mut self, state: &str) {
        for uuid in &self.uuids {
            self.session.out.emit(protocol::lifecycle(uuid, state));
        }
        self.session.busy = false;
        self.session.state("idle");
    }
}

impl Session {
    /// Dollars so far, as if calls had a price.
    pub(crate) fn cost(&self) -> f64 {
        self.totals.calls as f64 * limits::COST_PER_CALL
    }

    /// How many tokens the context holds.
    pub(crate) fn context_window(&self) -> u64 {
        self.window.unwrap_or_else(|| protocol::context_window(&self.model))
    }
}
