//! `assistant` and `user` lines, the finished ones of the conversation itself: the agent's blocks, the
//! user's side. Their fields, and what they mean.
//! `None` is a line whose fields are not as expected.

use super::soft::Soft;
use super::wire::{
    ApiErrorParams, Block, Message, PermissionDecision, ToolResultMeta, ToolUseResult,
};
use super::{AssistantLine, Content, StreamEvent, ToolResult, UserEcho, WakeSet};
use crate::id::Uuid;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;

/// The type of the agent's lines.
pub(super) const ASSISTANT: &str = "assistant";
/// The type of the lines of the user's side.
pub(super) const USER: &str = "user";

/// One line of either type. Whoever reads it knows which.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spoken {
    uuid: Soft<Uuid>,
    parent_tool_use_id: Soft<String>,
    agent_id: Soft<String>,
    message: Soft<Message>,

    error: Soft<String>,
    api_error: Soft<String>,
    api_error_status: Soft<f64>,
    api_error_params: Soft<Box<ApiErrorParams>>,
    aborted: Soft<bool>,

    #[serde(rename = "isSynthetic")]
    is_synthetic: Soft<bool>,
    #[serde(rename = "isReplay")]
    is_replay: Soft<bool>,
    /// Anything; an object of the tools that set an alarm has these fields.
    tool_use_result: Soft<Box<ToolUseResult>>,
    tool_result_meta: Soft<Vec<Soft<ToolResultMeta>>>,
}

/// The sub-agent's call; output of the main thread has none.
fn parent(line: &mut Spoken) -> Option<String> {
    line.parent_tool_use_id.0.take().or_else(|| line.agent_id.0.take())
}

pub(super) fn assistant(mut line: Spoken) -> Option<StreamEvent> {
    let parent = parent(&mut line);
    let message = line.message.api()?;
    Some(StreamEvent::from(AssistantLine {
        uuid: line.uuid.0,
        synthetic: message.model.0.as_deref() == Some("<synthetic>"),
        parent,
        context_tokens: message.context_tokens(),
        message: message.id.text(),
        content: message.content.0.into_iter().map(content).collect(),
        stop_reason: message.stop_reason.0,
        error: line.error.0,
        api_error: line.api_error.0,
        status: line.api_error_status.status(),
        cut: line.api_error_params.0.and_then(|params| params.cut.0),
        aborted: line.aborted.0 == Some(true),
    }))
}

fn content(block: Block) -> Content {
    match block.kind.text().as_str() {
        "text" => Content::Text(block.text.text()),
        "thinking" => Content::Thinking(block.thinking.text()),
        "tool_use" => {
            Content::ToolUse { id: block.id.text(), name: block.name.text(), input: block.input }
        }
        _ => Content::Other,
    }
}

pub(super) fn user(mut line: Spoken) -> Option<StreamEvent> {
    let parent = parent(&mut line);
    let message = line.message.api()?;
    let meta = line.tool_result_meta.0.unwrap_or_default();
    // refused by the person, not by a mode or a rule
    let denied = |call: &str| {
        meta.iter().filter_map(|meta| meta.0.as_ref()).any(|meta| {
            let by_user = |decision: &PermissionDecision| {
                decision.decision.0.as_deref() == Some("reject")
                    && decision.source.0.as_deref().is_some_and(|source| source.starts_with("user"))
            };
            meta.id.0.as_deref() == Some(call)
                && meta.permission_decision.0.as_ref().is_some_and(by_user)
        })
    };
    let (mut texts, mut results) = (Vec::new(), Vec::new());
    for block in message.content.0 {
        match block.kind.0.as_deref() {
            Some("text") => texts.push(block.text.text()),
            Some("tool_result") => {
                let tool_use = block.tool_use_id.text();
                results.push(ToolResult {
                    denied: denied(&tool_use),
                    tool_use,
                    failed: block.is_error.0 == Some(true),
                    text: result_text(block.content.0),
                });
            }
            Some(_) | None => {}
        }
    }
    Some(StreamEvent::from(UserEcho {
        uuid: line.uuid.0,
        parent,
        synthetic: line.is_synthetic.0 == Some(true),
        replay: line.is_replay.0 == Some(true),
        text: (!texts.is_empty()).then(|| texts.join("\n")),
        results,
        wakes: line.tool_use_result.0.and_then(|result| wake_set(*result)),
    }))
}

/// The alarm that a result tells of, if it does.
fn wake_set(result: ToolUseResult) -> Option<WakeSet> {
    if let Some(at_ms) = result.scheduled_for.stamp() {
        return Some(WakeSet { at_ms, cron: None, recurring: false });
    }
    let at_ms = result.next_fire_at.stamp()?;
    let recurring = result.recurring.0 == Some(true);
    Some(WakeSet { at_ms, cron: Some(result.id.text()), recurring })
}

fn result_text(blocks: Vec<Block>) -> String {
    let words = blocks.into_iter().map(|block| match block.kind.0.as_deref() {
        Some("text") => block.text.text(),
        Some(other) => alloc::format!("[{other}]"),
        None => String::new(),
    });
    words.collect::<Vec<_>>().join("\n")
}
