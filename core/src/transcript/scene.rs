//! For tests: a session under test, and the events it sees.

use super::captures_test::{Window, at};
use super::{Builder, Change};
use crate::block::{Block, BlockKind};
use crate::limits::Limits;
use crate::stream::{
    AssistantLine, BlockStart, Content, Partial, PartialKind, StreamEvent, ToolResult, UserEcho,
};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde_json::json;

/// A session under test: the builder, the window behind it, and a clock.
pub(super) struct Session {
    pub(super) builder: Builder,
    pub(super) window: Window,
    now: u64,
    pub(super) limits: Limits,
    pub(super) saves: usize,
}

impl Session {
    pub(super) fn new() -> Self {
        Session {
            builder: Builder::new(0),
            window: Window::default(),
            now: 0,
            limits: Limits::default(),
            saves: 0,
        }
    }

    fn take(&mut self, changes: Vec<Change>) {
        self.saves += changes.iter().filter(|c| matches!(c, Change::Save(_))).count();
        self.window.apply(changes);
    }

    pub(super) fn see(&mut self, event: StreamEvent) -> &mut Self {
        self.now += 10;
        let changes = self.builder.observe(&event, 1, at(self.now), &self.limits);
        self.take(changes);
        self
    }

    pub(super) fn cut_off(&mut self) {
        let changes = self.builder.cut_off(at(self.now));
        self.take(changes);
    }

    pub(super) fn end_turn(&mut self) {
        let changes = self.builder.end_turn(at(self.now));
        self.take(changes);
    }

    /// Kind and text of what is visible, `~` before what is open, `!` after what is cut off.
    pub(super) fn seen(&self) -> Vec<String> {
        let line = |block: &Block| {
            let text = match &block.kind {
                BlockKind::Assistant { text } => format!("text {text}"),
                BlockKind::Thinking { text, millis } => format!("thinking {text} {millis}"),
                BlockKind::Tool { call, result, .. } => {
                    format!("tool {call} {}", result.as_deref().unwrap_or("-"))
                }
                BlockKind::Note { text } => format!("note {text}"),
                BlockKind::Boundary { text } => format!("boundary {text}"),
                BlockKind::Operator { .. }
                | BlockKind::Auto { .. }
                | BlockKind::Answered { .. }
                | BlockKind::Foot { .. } => format!("{:?}", block.kind),
            };
            let (open, cut) =
                (if block.open { "~" } else { "" }, if block.cut_off { "!" } else { "" });
            format!("{open}{text}{cut}")
        };
        self.window.visible().into_iter().map(line).collect()
    }
}

pub(super) fn partial(message: &str, kind: PartialKind) -> StreamEvent {
    let message = Some(message.into());
    StreamEvent::Partial(Partial { message, parent: None, abandoned: false, kind })
}

pub(super) fn start(message: &str) -> StreamEvent {
    partial(message, PartialKind::MessageStart { context_tokens: 1 })
}

pub(super) fn begin(message: &str, index: u32, block: BlockStart) -> StreamEvent {
    partial(message, PartialKind::BlockStart { index, block })
}

pub(super) fn text(message: &str, index: u32, text: &str) -> StreamEvent {
    partial(message, PartialKind::Text { index, text: text.into() })
}

pub(super) fn abandoned(message: &str) -> StreamEvent {
    let message = Some(message.into());
    let kind = PartialKind::MessageStop;
    StreamEvent::Partial(Partial { message, parent: None, abandoned: true, kind })
}

pub(super) fn assistant(message: &str, content: Content) -> AssistantLine {
    AssistantLine {
        uuid: None,
        message: message.into(),
        synthetic: false,
        parent: None,
        content: vec![content],
        context_tokens: 0,
        stop_reason: None,
        error: None,
        api_error: None,
        status: None,
        cut: None,
        aborted: false,
    }
}

pub(super) fn said(message: &str, text: &str) -> StreamEvent {
    StreamEvent::from(assistant(message, Content::Text(text.into())))
}

pub(super) fn call(message: &str, id: &str, parent: Option<&str>) -> StreamEvent {
    let content =
        Content::ToolUse { id: id.into(), name: "Bash".into(), input: json!({"command": "x"}) };
    let parent = parent.map(Into::into);
    StreamEvent::from(AssistantLine { parent, ..assistant(message, content) })
}

pub(super) fn user(text: Option<&str>, results: Vec<ToolResult>) -> StreamEvent {
    StreamEvent::from(UserEcho {
        uuid: None,
        parent: None,
        synthetic: false,
        replay: true,
        text: text.map(Into::into),
        results,
        wakes: None,
    })
}

pub(super) fn answer(id: &str, text: &str) -> StreamEvent {
    let (tool_use, text) = (id.into(), text.into());
    user(None, vec![ToolResult { tool_use, text, failed: false, denied: false }])
}
