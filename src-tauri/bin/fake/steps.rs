//! What each step of a script does to the running turn. The table of the steps is in `script.rs`.

use crate::clock;
use crate::script::Step;
use crate::turn::{Cut, Turn};
use crate::{ids, limits, process, protocol};
use serde_json::{Value, json};
use std::time::Duration;

/// How the turn goes on after a step.
pub(crate) enum Flow {
    /// With the next step.
    Next,
    /// It is over; the step wrote a result that is no answer.
    Failed,
    /// It is over without a result.
    Silent,
}

impl Turn<'_> {
    /// Does one step.
    pub(crate) fn step(&mut self, step: &Step) -> Result<Flow, Cut> {
        match step {
            Step::Say(text) => self.say(text)?,
            Step::Partial(text) => self.stream_text(text)?,
            Step::Slow(ms) => self.pace = Duration::from_millis(*ms),
            Step::Pause(ms) => self.session.pause(Duration::from_millis(*ms))?,
            Step::Think(ms) => self.think(Duration::from_millis(*ms))?,
            Step::Tool { name, input, ask } => self.tool(name, input, *ask)?,
            Step::HostTool { name, input } => self.host_tool(name, input)?,
            Step::Question(input) => self.question(input)?,
            Step::Plan(text) => self.exit_plan(text)?,
            Step::Bash { seconds, ask } => self.bash(*seconds, *ask)?,
            Step::WakeUp { millis, answer } => self.wake_up(*millis, answer),
            Step::Background { seconds, answer } => self.background(*seconds, answer),
            Step::Daemon(seconds) => {
                if let Err(error) = process::spawn_daemon(*seconds, &self.session.id) {
                    eprintln!("omniscio-fake-claude: cannot start a daemon: {error}");
                }
            }
            Step::Retry { times, wait_ms } => self.retry(*times, *wait_ms)?,
            Step::Usage { tokens, window } => {
                self.session.context = *tokens;
                self.session.window = window.or(self.session.window);
            }
            Step::Compact(tokens) => self.compact(*tokens),
            Step::NoCompact(words) => self.session.compact_error = Some(words.clone()),
            Step::Stderr(text) => eprintln!("{text}"),
            Step::Garbage => self.session.out.raw(
                b"this is no JSON {\n\xff\xfe\x1b[?25h\n{\"type\":\"assistant\",\"mess\n[1,2]\n",
            ),
            Step::Long(length) => self.long_line(*length),
            Step::Split => self.session.out.split_next = true,
            Step::Raw(bytes) => self.session.out.raw(bytes),
            Step::Drip => self.session.out.drip = true,
            Step::Die(code) => {
                self.stream_before_cut()?;
                std::process::exit(*code)
            }
            Step::Kill => {
                self.stream_before_cut()?;
                process::kill_self()
            }
            Step::Eof => {
                self.stream_before_cut()?;
                process::close_stdout()
            }
            Step::Hang => self.fall_silent(true)?,
            Step::Freeze => self.fall_silent(false)?,
            Step::Drop => return self.drop_connection(),
            Step::ApiError { status, code, text } => {
                let text =
                    if text.is_empty() { format!("API Error: {code}") } else { text.clone() };
                return Ok(self.api_error(*status, code, None, &text, json!({})));
            }
            Step::Limit(seconds) => return Ok(self.limit(*seconds)),
            Step::Empty => return self.empty(),
            Step::NoResult => {
                self.close_message("end_turn");
                return Ok(Flow::Silent);
            }
            // these took effect before the turn began; an active `fail-first` was replaced by its step
            Step::IgnoreTerm | Step::Lost | Step::Forget { .. } | Step::FailFirst { .. } => {}
        }
        Ok(Flow::Next)
    }

    /// Nothing more is written. `served`: control requests are still answered, and an interrupt ends it.
    fn fall_silent(&mut self, served: bool) -> Result<(), Cut> {
        if !served {
            process::wait_for_parents_death();
        }
        let parent = process::parent();
        // when the parent dies, nobody is left who could end a silent stand-in
        while process::parent() == parent {
            self.session.pause(limits::PARENT_POLL)?;
        }
        self.session.leave(1)
    }

    fn retry(&mut self, times: u64, wait_ms: u64) -> Result<(), Cut> {
        for attempt in 1..=times {
            self.abandon_message();
            self.session.out.emit(json!({"type": "system", "subtype": "api_retry", "attempt": attempt,
                "max_retries": times.max(10), "retry_delay_ms": wait_ms, "error_status": null, "error": "unknown"}));
            self.session.pause(Duration::from_millis(wait_ms))?;
        }
        Ok(())
    }

    fn long_line(&mut self, length: usize) {
        let front = r#"{"type":"system","subtype":"informational","content":""#;
        let filler = length.min(limits::LONGEST_LINE).saturating_sub(front.len() + 2);
        let line = format!("{front}{}\"}}\n", "x".repeat(filler));
        self.session.out.raw(line.as_bytes());
    }

    fn drop_connection(&mut self) -> Result<Flow, Cut> {
        self.stream_before_cut()?;
        self.retry(1, 5)?;
        let text = "API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again.";
        Ok(self.api_error(None, "server_error", Some("connection_failed"), text, json!({})))
    }

    fn limit(&mut self, seconds: u64) -> Flow {
        let resets_at = clock::epoch_seconds() + seconds;
        let info = json!({"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour", "isUsingOverage": false});
        let mut wide = info.clone();
        wide["unifiedWindows"] =
            json!({"five_hour": {"utilization": 1, "resetsAt": resets_at, "status": "rejected"}});
        self.session.out.emit(json!({"type": "rate_limit_event", "rate_limit_info": wide}));
        let extra = json!({"api_error_params": {"rate_limit_info": info}});
        self.api_error(
            Some(429),
            "rate_limit",
            Some("usage_limit_reached"),
            "You've hit your 5-hour limit",
            extra,
        )
    }

    /// The synthetic `assistant` line and the result of a turn that the API failed (captures 52, 66, 74).
    fn api_error(
        &mut self,
        status: Option<u16>,
        error: &str,
        finer: Option<&str>,
        text: &str,
        extra: Value,
    ) -> Flow {
        self.abandon_message();
        let uuid = ids::uuid();
        let message = json!({"id": ids::uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
            "content": [{"type": "text", "text": text}], "stop_reason": "stop_sequence", "usage": protocol::usage(0, 0)});
        let mut fields = json!({"error": error, "is_api_error_message": true});
        let mut facts = json!({"subtype": "success", "is_error": true, "terminal_reason": "api_error",
            "api_error_status": status, "stop_reason": "stop_sequence", "num_turns": 1, "result": text,
            "usage": protocol::usage(0, 0)});
        if status.is_some() {
            fields["api_error_status"] = json!(status);
        }
        if let Some(finer) = finer {
            fields["api_error"] = finer.into();
            facts["api_error"] = finer.into();
        }
        let kept = json!({"isApiErrorMessage": true, "error": error});
        self.session.transcript.assistant(&uuid, &message, &kept);
        let line = json!({"type": "assistant", "message": message, "parent_tool_use_id": null, "uuid": uuid,
            "timestamp": clock::timestamp()});
        let line = protocol::with(line, fields.as_object().cloned().unwrap_or_default());
        let line = protocol::with(line, extra.as_object().cloned().unwrap_or_default());
        let line = self.named(line);
        self.session.out.emit(line);
        self.result(facts);
        Flow::Failed
    }

    /// Twice thinking without a word to the user: a "success" with an empty result (capture 80).
    fn empty(&mut self) -> Result<Flow, Cut> {
        const NUDGE: &str = "[Your previous response had no visible output. Please continue and produce a user-visible response.]";
        self.think(limits::SCRIPT_WORD)?;
        self.close_message("end_turn");
        self.note_user(
            &json!([{"type": "text", "text": NUDGE}]),
            true,
            json!({"isSynthetic": true}),
        );
        self.requesting();
        self.think(limits::SCRIPT_WORD)?;
        self.close_message("end_turn");
        let usage = self.usage();
        self.result(json!({"subtype": "success", "is_error": false, "terminal_reason": "completed",
            "api_error_status": null, "stop_reason": "end_turn", "num_turns": 2, "result": "", "usage": usage}));
        Ok(Flow::Failed)
    }
}
