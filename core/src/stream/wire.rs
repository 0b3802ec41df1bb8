//! The CLI's lines as they are written: one flat struct with every field this app reads, but for
//! those of [`super::streamed`] and [`super::conversation`].
//!
//! Each field is [`Soft`]: a field that is absent, null or of another type than expected reads as
//! `None` and spoils nothing else of its line. Fields that are not named here are skipped unread.

use super::soft::{Field, Soft};
use crate::id::Uuid;
use crate::supervisor::mcp;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Objects that are read as a whole: no field of theirs can fail.
macro_rules! objects {
    ($($name:ty),* $(,)?) => {$(
        impl<'de> Field<'de> for $name {
            fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
                Self::deserialize(MapAccessDeserializer::new(object)).map(Some)
            }
        }
    )*};
}

objects!(
    ApiErrorParams,
    ApiMessage,
    Block,
    BTreeMap<String, Soft<ModelUsage>>,
    CompactMetadata,
    McpServer,
    ModelUsage,
    PermissionDecision,
    RateLimitInfo,
    Request,
    Response,
    Task,
    TaskPatch,
    ToolResultMeta,
    ToolUseResult,
    Usage,
);

/// One line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    #[serde(rename = "type")]
    pub(super) kind: Soft<String>,
    pub(super) subtype: Soft<String>,
    pub(super) uuid: Soft<Uuid>,
    pub(super) session_id: Soft<Uuid>,
    pub(super) parent_tool_use_id: Soft<String>,
    pub(super) message: Soft<Message>,
    pub(super) content: Soft<String>,

    pub(super) model: Soft<String>,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: Soft<String>,
    #[serde(rename = "apiKeySource")]
    pub(super) api_key_source: Soft<String>,
    pub(super) claude_code_version: Soft<String>,

    pub(super) status: Soft<String>,
    pub(super) compact_result: Soft<String>,
    pub(super) compact_error: Soft<String>,
    pub(super) compact_metadata: Soft<Box<CompactMetadata>>,
    pub(super) state: Soft<String>,
    pub(super) command_uuid: Soft<Uuid>,
    pub(super) wakeup_source: Soft<String>,
    pub(super) scheduled_for: Soft<f64>,
    pub(super) original_model: Soft<String>,
    pub(super) fallback_model: Soft<String>,
    pub(super) new_conversation_id: Soft<Uuid>,
    pub(super) rate_limit_info: Soft<Box<RateLimitInfo>>,

    pub(super) attempt: Soft<f64>,
    pub(super) max_retries: Soft<f64>,
    pub(super) retry_delay_ms: Soft<f64>,
    pub(super) error_status: Soft<f64>,
    pub(super) error: Soft<String>,

    pub(super) tool_use_id: Soft<String>,
    pub(super) tool_name: Soft<String>,
    pub(super) elapsed_time_seconds: Soft<f64>,
    pub(super) heartbeat: Soft<bool>,

    pub(super) task_id: Soft<String>,
    pub(super) task_type: Soft<String>,
    pub(super) is_backgrounded: Soft<bool>,
    pub(super) description: Soft<String>,
    pub(super) summary: Soft<String>,
    pub(super) patch: Soft<Box<TaskPatch>>,
    pub(super) tasks: Soft<Vec<Soft<Task>>>,

    pub(super) request_id: Soft<String>,
    pub(super) request: Soft<Box<Request>>,
    pub(super) response: Soft<Box<Response>>,

    pub(super) is_error: Soft<bool>,
    pub(super) terminal_reason: Soft<String>,
    pub(super) api_error_status: Soft<f64>,
    pub(super) stop_reason: Soft<String>,
    pub(super) num_turns: Soft<f64>,
    pub(super) result: Soft<String>,
    pub(super) errors: Soft<Vec<Soft<String>>>,
    pub(super) local_command: Soft<String>,
    pub(super) startup_failure_reason: Soft<String>,
    pub(super) user_message_uuid: Soft<Uuid>,
    pub(super) user_message_uuids: Soft<Vec<Soft<Uuid>>>,
    pub(super) total_cost_usd: Soft<f64>,
    pub(super) duration_ms: Soft<f64>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Soft<BTreeMap<String, Soft<ModelUsage>>>,
}

/// `compact_metadata`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Soft<String>,
}

/// `rate_limit_info`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RateLimitInfo {
    pub(super) status: Soft<String>,
    pub(super) resets_at: Soft<f64>,
    pub(super) rate_limit_type: Soft<String>,
}

/// `patch` of `task_updated`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskPatch {
    pub(super) status: Soft<String>,
    pub(super) is_backgrounded: Soft<bool>,
}

/// One of `tasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    pub(super) task_id: Soft<String>,
    pub(super) task_type: Soft<String>,
    pub(super) description: Soft<String>,
}

/// A message of the API, or of the user.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiMessage {
    pub(super) id: Soft<String>,
    pub(super) model: Soft<String>,
    pub(super) content: Blocks,
    pub(super) usage: Soft<Box<Usage>>,
    pub(super) stop_reason: Soft<String>,
}

impl ApiMessage {
    /// All input tokens, both cache figures included; 0 where they are not told.
    pub(super) fn context_tokens(&self) -> u64 {
        self.usage.0.as_ref().map(|usage| usage.context_tokens()).unwrap_or_default()
    }
}

/// `message` of a line.
#[derive(Debug)]
pub(super) enum Message {
    /// Of the API, or of the user.
    Api(Box<ApiMessage>),
    /// Plain words, on `system/permission_denied`.
    Words(String),
}

impl<'de> Field<'de> for Message {
    fn text(text: &str) -> Option<Self> {
        Some(Message::Words(text.to_owned()))
    }

    fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        Ok(Box::object(object)?.map(Message::Api))
    }
}

impl Soft<Message> {
    /// The message, if it is one.
    pub(super) fn api(self) -> Option<Box<ApiMessage>> {
        match self.0? {
            Message::Api(message) => Some(message),
            Message::Words(_) => None,
        }
    }

    /// The words, if it is some.
    pub(super) fn words(self) -> Option<String> {
        match self.0? {
            Message::Words(words) => Some(words),
            Message::Api(_) => None,
        }
    }
}

/// `content`: plain text, or a list of blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks(pub(super) Vec<Block>);

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Soft::deserialize(deserializer).map(|blocks| blocks.0.unwrap_or_default())
    }
}

impl<'de> Field<'de> for Blocks {
    fn text(text: &str) -> Option<Self> {
        Some(Blocks(alloc::vec![Block::of_text(text)]))
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut blocks = Vec::new();
        while let Some(OneBlock(block)) = list.next_element()? {
            blocks.push(block);
        }
        Ok(Some(Blocks(blocks)))
    }
}

/// One of a list of blocks: plain text is one too, and what is none keeps its place as an empty one.
struct OneBlock(Block);

impl<'de> Deserialize<'de> for OneBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block: Soft<OneBlock> = Soft::deserialize(deserializer)?;
        Ok(block.0.unwrap_or_else(|| OneBlock(Block::default())))
    }
}

impl<'de> Field<'de> for OneBlock {
    fn text(text: &str) -> Option<Self> {
        Some(OneBlock(Block::of_text(text)))
    }

    fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        Ok(Block::object(object)?.map(OneBlock))
    }
}

/// A content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: Soft<String>,
    pub(super) text: Soft<String>,
    pub(super) thinking: Soft<String>,
    pub(super) id: Soft<String>,
    pub(super) name: Soft<String>,
    pub(super) input: Value,
    pub(super) tool_use_id: Soft<String>,
    pub(super) is_error: Soft<bool>,
    pub(super) content: Blocks,
}

impl Block {
    fn of_text(text: &str) -> Block {
        let soft = |text: &str| Soft(Some(text.to_owned()));
        Block { kind: soft("text"), text: soft(text), ..Block::default() }
    }
}

/// `usage` of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: Soft<f64>,
    cache_creation_input_tokens: Soft<f64>,
    cache_read_input_tokens: Soft<f64>,
}

impl Usage {
    fn context_tokens(&self) -> u64 {
        [&self.input_tokens, &self.cache_creation_input_tokens, &self.cache_read_input_tokens]
            .into_iter()
            .fold(0, |sum, tokens| sum.saturating_add(tokens.count()))
    }
}

/// One entry of `modelUsage`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    pub(super) context_window: Soft<f64>,
}

/// `api_error_params`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiErrorParams {
    pub(super) cut: Soft<String>,
}

/// `tool_use_result` of the tools that set an alarm.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolUseResult {
    pub(super) scheduled_for: Soft<f64>,
    pub(super) next_fire_at: Soft<f64>,
    pub(super) id: Soft<String>,
    pub(super) recurring: Soft<bool>,
}

/// One of `tool_result_meta`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolResultMeta {
    pub(super) id: Soft<String>,
    pub(super) permission_decision: Soft<PermissionDecision>,
}

/// Who decided about a tool call, and how.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PermissionDecision {
    pub(super) decision: Soft<String>,
    pub(super) source: Soft<String>,
}

/// `request` of a `control_request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Request {
    pub(super) subtype: Soft<String>,
    pub(super) tool_name: Soft<String>,
    pub(super) tool_use_id: Soft<String>,
    pub(super) input: Value,
    pub(super) permission_suggestions: Soft<Vec<Value>>,
    pub(super) description: Soft<String>,
    /// Which server the tool of a `can_use_tool` belongs to.
    pub(super) mcp_server: Soft<McpServer>,
    pub(super) server_name: Soft<String>,
    /// The JSON-RPC message of an `mcp_message`.
    pub(super) message: Value,
}

/// `mcp_server` of a `can_use_tool`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServer {
    pub(super) name: Soft<String>,
    pub(super) source: Soft<String>,
}

impl McpServer {
    /// Whether it is the app's own, served over this very stream, and not one of a configuration.
    pub(super) fn is_ours(&self) -> bool {
        let (name, source) = (self.name.0.as_deref(), self.source.0.as_deref());
        (name, source) == (Some(mcp::SERVER), Some("sdk"))
    }
}

/// `response` of a `control_response`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) subtype: Soft<String>,
    pub(super) request_id: Soft<String>,
    pub(super) response: Value,
    pub(super) error: Soft<String>,
}
