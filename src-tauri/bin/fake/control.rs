//! Input lines and control requests: answered while a turn runs as well as between turns. What a turn makes
//! of an interrupt or of an answer is not decided here.

use crate::clock::Stopwatch;
use crate::protocol;
use crate::session::{Incoming, Input, Session};
use crate::transcript::text_of;
use serde_json::{Value, json};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// What an input line means to a running turn.
pub(crate) enum Signal {
    /// The operator stopped the turn; the request is answered already.
    Interrupt,
    /// The host answered a question: the `response` object of its line.
    Answer(Value),
}

/// The turn was interrupted while text streamed or while it waited.
pub(crate) struct Interrupted;

impl Session {
    /// Waits `time` and serves the host meanwhile.
    pub(crate) fn pause(&mut self, time: Duration) -> Result<(), Interrupted> {
        let clock = Stopwatch::start();
        loop {
            match self.inbox.recv_timeout(clock.left_of(time)) {
                Ok(input) => match self.take(input) {
                    Some(Signal::Interrupt) => return Err(Interrupted),
                    // an answer to a question that was withdrawn
                    Some(Signal::Answer(_)) | None => {}
                },
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(clock.left_of(time));
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the host's next signal.
    pub(crate) fn wait(&mut self) -> Signal {
        loop {
            // nobody can answer any more
            let Ok(input) = self.inbox.recv() else { self.leave(1) };
            if let Some(signal) = self.take(input) {
                return signal;
            }
        }
    }

    /// Takes one piece of input.
    pub(crate) fn take(&mut self, input: Input) -> Option<Signal> {
        let line = match input {
            Input::Line(line) => line,
            Input::Eof => {
                self.eof = true;
                return None;
            }
        };
        if line.trim_ascii().is_empty() {
            return None;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line.trim_ascii()) else {
            eprintln!("Error parsing streaming input line: not valid JSON");
            self.leave(1)
        };
        match line["type"].as_str() {
            Some("user") => self.accept(&line),
            Some("control_request") => return self.control(&line),
            Some("control_response") => return Some(Signal::Answer(line["response"].clone())),
            Some(_) | None => {}
        }
        None
    }

    fn accept(&mut self, line: &Value) {
        if line["message"]["role"] != "user" {
            eprintln!("Error: Expected message role 'user', got '{}'", line["message"]["role"]);
            self.leave(1);
        }
        let uuid = line["uuid"].as_str().map(str::to_owned);
        // acknowledged, not run again (capture B4)
        let again = uuid.as_ref().is_some_and(|uuid| !self.seen.insert(uuid.clone()));
        self.record.heard(uuid.as_deref(), &text_of(&line["message"]["content"]), again);
        if let Some(uuid) = &uuid {
            self.out.emit(protocol::lifecycle(uuid, if again { "completed" } else { "queued" }));
        }
        if again {
            return;
        }
        self.queue.push_back(Incoming { uuid, content: line["message"]["content"].clone() });
    }

    fn control(&mut self, line: &Value) -> Option<Signal> {
        let request = &line["request"];
        let answer = match request["subtype"].as_str().unwrap_or_default() {
            "interrupt" => {
                self.interrupt(line);
                return self.busy.then_some(Signal::Interrupt);
            }
            "end_session" => {
                self.answer(line, json!({}));
                self.leave(0)
            }
            "set_permission_mode" => return self.set_mode(line),
            "initialize" => {
                self.hosted = request["sdkMcpServers"]
                    .as_array()
                    .is_some_and(|servers| servers.iter().any(|name| name == protocol::HOST));
                protocol::handshake(&self.mode, self.busy)
            }
            "set_model" => {
                self.model =
                    request["model"].as_str().unwrap_or(protocol::DEFAULT_MODEL).to_owned();
                json!({"model": self.model})
            }
            "get_context_usage" => {
                protocol::context_usage(&self.model, self.context, self.context_window())
            }
            "get_settings" => {
                json!({"effective": {}, "sources": [], "applied": {"model": self.model}})
            }
            "mcp_status" => json!({"mcpServers": []}),
            "get_binary_version" => json!({"version": protocol::VERSION}),
            "get_session_cost" => json!({"text": format!("Estimated cost: ${:.4}", self.cost())}),
            "get_usage" => json!({"session": {"total_cost_usd": self.cost()}, "rate_limits": null}),
            "set_max_thinking_tokens" | "stop_task" => json!({}),
            unknown => {
                let why = format!("Unsupported control request subtype: {unknown}");
                self.refuse(line, &why, "unsupported_request");
                return None;
            }
        };
        self.answer(line, answer);
        None
    }

    /// Withdraws an open question, drops the queue if asked to, then answers (captures 21, A0, A4).
    fn interrupt(&mut self, line: &Value) {
        if let Some(request_id) = self.pending.take() {
            self.out
                .emit_bare(&json!({"type": "control_cancel_request", "request_id": request_id}));
        }
        let queued: Vec<String> =
            self.queue.iter().filter_map(|message| message.uuid.clone()).collect();
        if line["request"]["cancel_queued"] == true {
            self.queue.clear();
            for uuid in &queued {
                self.out.emit(protocol::lifecycle(uuid, "cancelled"));
            }
            self.answer(line, json!({"still_queued": [], "cancelled": queued}));
        } else {
            self.answer(line, json!({"still_queued": queued}));
        }
    }

    fn set_mode(&mut self, line: &Value) -> Option<Signal> {
        let mode = line["request"]["mode"].as_str().unwrap_or_default().to_owned();
        if mode == "bypassPermissions"
            && self.args.permission_mode.as_deref() != Some("bypassPermissions")
        {
            let why = "Cannot set permission mode to bypassPermissions because the session was not launched \
                       with --dangerously-skip-permissions";
            self.refuse(line, why, "bypass_not_launched");
        } else if !protocol::MODES.contains(&mode.as_str()) || mode == "manual" {
            let why = "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, \
                       dontAsk, plan";
            self.refuse(line, why, "invalid_mode");
        } else {
            self.answer(line, json!({"mode": mode}));
            self.change_mode(&mode);
        }
        None
    }

    /// Changes the permission mode and says so.
    pub(crate) fn change_mode(&mut self, mode: &str) {
        mode.clone_into(&mut self.mode);
        self.out.emit(
            json!({"type": "system", "subtype": "status", "status": null, "permissionMode": mode}),
        );
    }

    fn answer(&mut self, line: &Value, response: Value) {
        self.out.emit_bare(&json!({"type": "control_response", "response":
            {"subtype": "success", "request_id": line["request_id"], "response": response}}));
    }

    fn refuse(&mut self, line: &Value, error: &str, code: &str) {
        self.out.emit_bare(&json!({"type": "control_response", "response":
            {"subtype": "error", "request_id": line["request_id"], "error": error, "error_code": code}}));
    }
}
