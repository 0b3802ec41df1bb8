//! What the rig's CLI says, and what befalls it.

use super::Rig;
use crate::id::Uuid;
use crate::session::{Gate, PendingAction, ReplayMemory};
use crate::stream::{AssistantLine, Content, ControlAsk, Init, StreamEvent, TurnResult};
use crate::supervisor::*;
use crate::time::Wall;
use alloc::boxed::Box;
use alloc::vec;
use serde_json::json;

fn said(content: Content) -> AssistantLine {
    AssistantLine {
        uuid: Some(Uuid(0x600d)),
        message: "msg".into(),
        synthetic: false,
        parent: None,
        content: vec![content],
        context_tokens: 100,
        stop_reason: None,
        error: None,
        api_error: None,
        status: None,
        cut: None,
        aborted: false,
    }
}

impl Rig {
    pub(in crate::supervisor::tests) fn stream(&mut self, event: StreamEvent) {
        let (session, launch) = (self.id(), self.launch);
        self.feed(Input::Stream { session, launch, event });
    }

    pub(in crate::supervisor::tests) fn say(&mut self, content: Content) {
        self.stream(line(content));
    }

    pub(in crate::supervisor::tests) fn tool(&mut self, call: &str, command: &str) {
        let input = json!({"command": command});
        self.say(Content::ToolUse { id: call.into(), name: "Bash".into(), input });
    }

    pub(in crate::supervisor::tests) fn ask_permission(&mut self, call: &str, command: &str) {
        self.tool(call, command);
        let body = ControlAsk::CanUseTool {
            tool: "Bash".into(),
            tool_use: call.into(),
            input: json!({"command": command}),
            suggestions: vec![],
            description: None,
        };
        let request = alloc::format!("ask-{call}");
        self.stream(StreamEvent::ControlRequest { request, body });
    }

    pub(in crate::supervisor::tests) fn answer_turn(&mut self, text: &str) {
        let uuid = self.lines.last().map(|line| line.uuid);
        self.answer_naming(text, uuid);
    }

    /// An answer whose result names this message, or none.
    pub(in crate::supervisor::tests) fn answer_naming(&mut self, text: &str, uuid: Option<Uuid>) {
        self.say(Content::Text(text.into()));
        self.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            terminal_reason: Some("completed".into()),
            num_turns: 1,
            text: text.into(),
            messages: uuid.into_iter().collect(),
            ..TurnResult::default()
        })));
    }

    /// The answer to a question about the context.
    pub(super) fn context_answer(&self, control: &Control) -> Option<StreamEvent> {
        let Control::ContextUsage { request } = control else {
            return None;
        };
        let (tokens, window) = self.context?;
        let answer = Ok(json!({"totalTokens": tokens, "rawMaxTokens": window}));
        Some(StreamEvent::ControlResponse { request: request.clone(), answer })
    }

    pub(in crate::supervisor::tests) fn local_result(&mut self, command: &str, text: &str) {
        self.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            text: text.into(),
            local_command: Some(command.into()),
            ..TurnResult::default()
        })));
    }

    /// The held stops report at last.
    pub(in crate::supervisor::tests) fn release_stops(&mut self) {
        self.hold_stops = false;
        for stopped in core::mem::take(&mut self.held) {
            self.feed(stopped);
        }
    }

    /// The held stops report; looks stay held.
    pub(in crate::supervisor::tests) fn report_stops(&mut self) {
        self.hold_stops = false;
        let (stops, looks) = core::mem::take(&mut self.held)
            .into_iter()
            .partition(|input| matches!(input, Input::Stopped { .. }));
        self.held = looks;
        let stops: Vec<Input> = stops;
        for stopped in stops {
            self.feed(stopped);
        }
    }

    /// The wall clock is set.
    pub(in crate::supervisor::tests) fn set_wall(&mut self, wall: Wall) {
        self.now.wall = wall;
    }

    /// The app is killed and starts again so much later.
    pub(in crate::supervisor::tests) fn away(&mut self, millis: u64) {
        self.now.wall = self.now.wall.plus(millis);
        self.crash();
    }

    /// The machine sleeps.
    pub(in crate::supervisor::tests) fn sleep(&mut self, millis: u64) {
        self.now.mono = self.now.mono.plus(millis);
        self.now.wall = self.now.wall.plus(millis);
        self.feed(Input::Slept { millis });
    }

    /// The last line was written and never reached the transcript.
    pub(in crate::supervisor::tests) fn forget_last_line(&mut self) -> Option<Uuid> {
        self.transcript.pop()
    }

    /// It reached the transcript late.
    pub(in crate::supervisor::tests) fn keep_line(&mut self, line: Option<Uuid>) {
        self.transcript.extend(line);
    }

    /// The API failed: the child lives on.
    pub(in crate::supervisor::tests) fn fail_turn(&mut self, status: u16) {
        self.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            is_error: true,
            terminal_reason: Some("api_error".into()),
            status: Some(status),
            num_turns: 1,
            text: "API Error".into(),
            ..TurnResult::default()
        })));
    }

    /// The account is out of credit.
    pub(in crate::supervisor::tests) fn bill_turn(&mut self) {
        let mut line = AssistantLine {
            synthetic: true,
            ..said(Content::Text("Credit balance is too low".into()))
        };
        line.error = Some("billing_error".into());
        self.stream(StreamEvent::from(line));
        self.fail_turn(400);
    }

    /// Checks of the session, as the agent would declare them.
    pub(in crate::supervisor::tests) fn set_gates(&mut self, gates: &[Gate]) {
        self.tamper(|row| row.gates = gates.to_vec());
    }

    /// The row forgets what it was asked, as one of another app would.
    pub(in crate::supervisor::tests) fn forget_message(&mut self) {
        self.tamper(|row| {
            row.replay = ReplayMemory::default();
            row.turn_count = 0;
        });
    }

    /// A background task of the CLI begins a turn.
    pub(in crate::supervisor::tests) fn begin_by_itself(&mut self) {
        let session_id = self.row().cli_session_id;
        self.stream(StreamEvent::from(Init {
            session_id,
            model: "m".into(),
            permission_mode: "default".into(),
            api_key_source: "none".into(),
            version: "2".into(),
        }));
    }

    /// The child exits without a result.
    pub(in crate::supervisor::tests) fn die(&mut self) {
        let (session, launch) = (self.id(), self.launch);
        self.feed(Input::OutputEnded { session, launch });
        self.feed(Input::Exited { session, launch, code: Some(1), signal: None });
    }

    /// A session whose replays are used up.
    pub(in crate::supervisor::tests) fn give_up(&mut self) {
        self.create("hello");
        self.spawn_and_shake();
        self.die();
        for _ in 0..2 {
            self.pass(155_000);
            self.spawn_and_shake();
            self.die();
        }
        while self.row().pending != Some(PendingAction::RecoveryFailed) {
            self.pass(1_000);
        }
    }
}

/// One finished block of the main thread.
pub(in crate::supervisor::tests) fn line(content: Content) -> StreamEvent {
    StreamEvent::from(said(content))
}
