//! What one turn has shown so far. Facts only; what they mean is decided at the turn's end
//! ([`crate::turn_end`]) or by the watchdog ([`crate::watchdog`]).

use crate::id::Uuid;
use crate::ipc::Activity;
use crate::limits::Limits;
use crate::message::Origin;
use crate::prompt;
use crate::stream::{
    AssistantLine, BlockStart, Content, Partial, PartialKind, RateLimit, StreamEvent, TaskPhase,
    UserEcho,
};
use crate::time::Mono;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::Value;

/// The last main-thread block of a turn (TE-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastBlock {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// A tool call.
    ToolUse,
    /// A tool's result.
    ToolResult,
}

/// Where the model's current message stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessagePhase {
    /// No message has begun in this turn.
    #[default]
    NotStarted,
    /// A text or tool-input block is open.
    OpenBlock,
    /// A thinking block is open.
    Thinking,
    /// A message is open, between two blocks.
    BetweenBlocks,
    /// The CLI dropped what it had streamed and retries without streaming.
    Abandoned,
    /// The message ended; the next one, a tool, or the result follows.
    Ended,
}

/// An error line of the CLI (`<synthetic>` assistant line with an `error`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLine {
    /// The coarse word.
    pub error: Option<String>,
    /// The finer word.
    pub api_error: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// `output_limit` or `context_window`.
    pub cut: Option<String>,
    /// Its words.
    pub text: String,
}

/// A tool that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTool {
    /// Its name.
    pub name: String,
    /// Its target in one short line.
    pub detail: String,
}

/// What a turn has shown.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnFacts {
    /// Its number in the session.
    pub number: u64,
    /// Who began it; `None` for a turn that started by itself.
    pub origin: Option<Origin>,
    /// The uuids that were written for it.
    pub sent: Vec<Uuid>,
    /// The CLI has taken one of them up.
    pub taken_up: bool,
    /// It began another turn before that.
    pub overtaken: bool,
    /// It carries one of the CLI's local commands.
    pub local_command: bool,
    /// When it began.
    pub began: Mono,
    /// Last sign of life.
    pub last_sign: Mono,
    /// Main-thread content was seen (OD-28).
    pub real_output: bool,
    /// Where the model's message stands.
    pub phase: MessagePhase,
    /// An announced retry ends here.
    pub retry_until: Option<Mono>,
    /// Attempt and maximum of the announced retry.
    pub retry: Option<(u32, u32)>,
    /// Main-thread tools that run, by call.
    pub tools: BTreeMap<String, RunningTool>,
    /// Sub-agents that live, by task.
    pub agents: BTreeSet<String>,
    /// The history is being compacted.
    pub compacting: bool,
    /// A question or permission is open.
    pub card_open: bool,
    /// The turn compacted the history (PR-08 turnHadCompactEvent).
    pub compacted: bool,
    /// A compaction failed, in the CLI's words.
    pub compact_failed: Option<String>,
    /// Main-thread text was said, since the last compaction if there was one (OD-42
    /// turnHadVisibleAnswer).
    pub visible_answer: bool,
    /// Text of the final assistant message, bounded: what follows its marker, if it has one.
    pub final_text: String,
    /// `final_text` follows a marker.
    pub marked: bool,
    /// The API message `final_text` belongs to.
    final_message: String,
    /// The final message marker was seen (FM-02).
    pub final_marker: bool,
    /// The last main-thread block.
    pub last_block: Option<LastBlock>,
    /// The last error line.
    pub error: Option<ErrorLine>,
    /// A rejecting rate-limit event with no output after it.
    pub rate_limit: Option<RateLimit>,
    /// The uuid of the last main-thread assistant line.
    pub last_assistant: Option<Uuid>,
    /// Why the last message stopped.
    pub stop_reason: Option<String>,
}

impl TurnFacts {
    /// A turn that begins now.
    pub fn new(number: u64, origin: Option<Origin>, now: Mono) -> Self {
        TurnFacts {
            number,
            origin,
            sent: Vec::new(),
            taken_up: false,
            overtaken: false,
            local_command: false,
            began: now,
            last_sign: now,
            real_output: false,
            phase: MessagePhase::NotStarted,
            retry_until: None,
            retry: None,
            tools: BTreeMap::new(),
            agents: BTreeSet::new(),
            compacting: false,
            card_open: false,
            compacted: false,
            compact_failed: None,
            visible_answer: false,
            final_text: String::new(),
            marked: false,
            final_message: String::new(),
            final_marker: false,
            last_block: None,
            error: None,
            rate_limit: None,
            last_assistant: None,
            stop_reason: None,
        }
    }

    /// Non-whitespace final text that is the agent's own, after the last marker and the last tool
    /// result (OD-29).
    pub fn delivered(&self) -> bool {
        !prompt::cut_markers(&self.final_text).trim().is_empty()
    }

    /// Takes one event in.
    pub fn observe(&mut self, event: &StreamEvent, now: Mono, limits: &Limits) {
        match event {
            StreamEvent::Partial(partial) => self.observe_partial(partial),
            StreamEvent::Assistant(line) => self.observe_assistant(line, limits),
            StreamEvent::User(echo) => self.observe_user(echo),
            StreamEvent::ApiRetry { attempt, max, delay_ms, .. } => {
                self.retry_until = Some(now.plus(*delay_ms));
                self.retry = Some((*attempt, *max));
            }
            StreamEvent::Status { status, compact_result, compact_error, .. } => {
                self.compacting = status.as_deref() == Some("compacting");
                if compact_result.as_deref() == Some("failed") {
                    self.compact_failed = Some(compact_error.clone().unwrap_or_default());
                }
            }
            StreamEvent::CompactBoundary { .. } => {
                self.compacted = true;
                self.visible_answer = false;
            }
            StreamEvent::RateLimit(limit) => {
                self.rate_limit = (limit.status == "rejected").then(|| limit.clone());
            }
            StreamEvent::Task(task) if task.is_agent => match task.phase {
                TaskPhase::Started => {
                    self.agents.insert(task.task.clone());
                }
                TaskPhase::Updated => {}
                TaskPhase::Ended => {
                    self.agents.remove(&task.task);
                }
            },
            StreamEvent::ThinkingTokens => self.real_output = true,
            StreamEvent::ToolProgress { .. } => {
                if self.phase == MessagePhase::Abandoned {
                    // the tool of the abandoned message does run
                    self.phase = MessagePhase::Ended;
                }
            }
            StreamEvent::KeepAlive
            | StreamEvent::Chatter(_)
            | StreamEvent::ControlResponse { .. }
            | StreamEvent::Unknown { .. } => return,
            StreamEvent::Init(_)
            | StreamEvent::SessionState(_)
            | StreamEvent::Lifecycle { .. }
            | StreamEvent::Task(_)
            | StreamEvent::BackgroundTasks(_)
            | StreamEvent::ModelFallback { .. }
            | StreamEvent::PermissionDenied { .. }
            | StreamEvent::Informational { .. }
            | StreamEvent::ConversationReset { .. }
            | StreamEvent::ControlRequest { .. }
            | StreamEvent::ControlCancel { .. }
            | StreamEvent::Result(_)
            | StreamEvent::Malformed { .. }
            | StreamEvent::Oversize { .. } => {}
        }
        self.last_sign = now;
    }

    fn observe_partial(&mut self, partial: &Partial) {
        if partial.parent.is_some() {
            return;
        }
        self.retry_until = None;
        self.retry = None;
        match &partial.kind {
            PartialKind::MessageStart { .. } => {
                // the next message follows every result: what is still open was abandoned
                self.tools.clear();
                self.phase = MessagePhase::BetweenBlocks;
                self.rate_limit = None;
            }
            PartialKind::BlockStart { block, .. } => {
                self.phase = match block {
                    BlockStart::Thinking => MessagePhase::Thinking,
                    BlockStart::Text | BlockStart::ToolUse { .. } | BlockStart::Other => {
                        MessagePhase::OpenBlock
                    }
                };
                self.real_output = true;
            }
            PartialKind::Text { .. }
            | PartialKind::Thinking { .. }
            | PartialKind::InputJson { .. } => {
                self.real_output = true;
            }
            PartialKind::BlockStop { .. } => self.phase = MessagePhase::BetweenBlocks,
            PartialKind::MessageDelta { stop_reason } => {
                if stop_reason.is_some() {
                    self.stop_reason.clone_from(stop_reason);
                }
            }
            PartialKind::MessageStop => self.phase = MessagePhase::Ended,
            PartialKind::Other => {}
        }
        if partial.abandoned {
            self.phase = MessagePhase::Abandoned;
        }
    }

    fn observe_assistant(&mut self, line: &AssistantLine, limits: &Limits) {
        if line.parent.is_some() {
            return;
        }
        if line.synthetic {
            self.observe_synthetic(line);
            return;
        }
        self.retry_until = None;
        self.retry = None;
        self.real_output = true;
        self.rate_limit = None;
        self.last_assistant = line.uuid.or(self.last_assistant);
        if line.stop_reason.is_some() {
            self.stop_reason.clone_from(&line.stop_reason);
        }
        if matches!(self.phase, MessagePhase::NotStarted | MessagePhase::Abandoned) {
            // a reply that was not streamed: the line is the whole message
            self.phase = MessagePhase::Ended;
        }
        if self.final_message != line.message {
            self.final_message.clone_from(&line.message);
            self.forget_text();
        }
        for content in &line.content {
            match content {
                Content::Text(text) => self.observe_text(text, limits),
                Content::Thinking(_) => self.last_block = Some(LastBlock::Thinking),
                Content::ToolUse { id, name, input } => {
                    self.last_block = Some(LastBlock::ToolUse);
                    self.forget_text();
                    let detail = tool_detail(input);
                    self.tools.insert(id.clone(), RunningTool { name: name.clone(), detail });
                }
                Content::Other => {}
            }
        }
    }

    fn observe_text(&mut self, text: &str, limits: &Limits) {
        let (marked, text) = match prompt::after_final_marker(text) {
            Some(after) => (true, after),
            None => (false, text),
        };
        if marked {
            self.forget_text();
            (self.final_marker, self.marked) = (true, true);
        }
        self.visible_answer |= !prompt::cut_markers(text).trim().is_empty();
        append_bounded(&mut self.final_text, text, limits.final_text_max_bytes);
        self.last_block = Some(LastBlock::Text);
    }

    /// What was said so far is not the final message.
    fn forget_text(&mut self) {
        self.final_text.clear();
        self.marked = false;
    }

    fn observe_synthetic(&mut self, line: &AssistantLine) {
        if line.error.is_none() && line.api_error.is_none() && line.status.is_none() {
            return;
        }
        // the message is cut off here; the turn may go on: a tool that stood complete already runs
        self.phase = MessagePhase::Ended;
        let text = line.content.iter().find_map(|content| match content {
            Content::Text(text) => Some(text.clone()),
            Content::Thinking(_) | Content::ToolUse { .. } | Content::Other => None,
        });
        self.error = Some(ErrorLine {
            error: line.error.clone(),
            api_error: line.api_error.clone(),
            status: line.status,
            cut: line.cut.clone(),
            text: text.unwrap_or_default(),
        });
    }

    fn observe_user(&mut self, echo: &UserEcho) {
        if echo.parent.is_some() {
            return;
        }
        for result in &echo.results {
            self.tools.remove(&result.tool_use);
            self.last_block = Some(LastBlock::ToolResult);
            self.forget_text();
        }
    }

    /// What the agent does right now, for the row.
    pub fn activity(&self) -> Activity {
        if self.compacting {
            return Activity::Compacting;
        }
        if let Some(count) = u32::try_from(self.agents.len()).ok().filter(|count| *count > 0) {
            return Activity::SubAgents(count);
        }
        if let Some(tool) = self.tools.values().next_back() {
            let what = if tool.detail.is_empty() { &tool.name } else { &tool.detail };
            return Activity::Tool(what.clone());
        }
        if let Some((attempt, max)) = self.retry {
            return Activity::Retrying { attempt, max };
        }
        match self.phase {
            MessagePhase::Thinking => Activity::Thinking,
            MessagePhase::NotStarted
            | MessagePhase::OpenBlock
            | MessagePhase::BetweenBlocks
            | MessagePhase::Abandoned
            | MessagePhase::Ended => Activity::Working,
        }
    }
}

fn append_bounded(text: &mut String, piece: &str, max: usize) {
    let room = max.saturating_sub(text.len());
    let mut end = piece.len().min(room);
    while !piece.is_char_boundary(end) {
        end -= 1;
    }
    text.push_str(piece.get(..end).unwrap_or_default());
}

/// The target of a tool call in one short line: its command, path, pattern or description.
pub fn tool_detail(input: &Value) -> String {
    const KEYS: [&str; 7] =
        ["command", "file_path", "path", "pattern", "url", "query", "description"];
    let found = KEYS.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    let line = found.unwrap_or_default().lines().next().unwrap_or_default().trim();
    if line.chars().count() <= 80 {
        return line.to_string();
    }
    format!("{}…", line.chars().take(79).collect::<String>())
}

#[cfg(test)]
mod tests;
