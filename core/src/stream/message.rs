//! What the CLI says of the conversation itself: pieces of a message, finished blocks, the user's
//! side. Values only.

use crate::id::Uuid;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The raw event inside a `stream_event`, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// The API message it belongs to.
    pub message: Option<String>,
    /// The sub-agent's call, for output that is not of the main thread.
    pub parent: Option<String>,
    /// The CLI threw away what it had streamed and tries again.
    pub abandoned: bool,
    /// What happened.
    pub kind: PartialKind,
}

/// What a `stream_event` carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartialKind {
    /// `message_start`.
    MessageStart {
        /// Input tokens including both cache figures.
        context_tokens: u64,
    },
    /// `content_block_start`.
    BlockStart {
        /// Index in the message.
        index: u32,
        /// What block begins.
        block: BlockStart,
    },
    /// `content_block_delta` with text.
    Text {
        /// Index in the message.
        index: u32,
        /// The piece.
        text: String,
    },
    /// `content_block_delta` with thinking.
    Thinking {
        /// Index in the message.
        index: u32,
        /// The piece.
        text: String,
    },
    /// `content_block_delta` with a piece of a tool's input.
    InputJson {
        /// Index in the message.
        index: u32,
    },
    /// `content_block_stop`.
    BlockStop {
        /// Index in the message.
        index: u32,
    },
    /// `message_delta`.
    MessageDelta {
        /// Why the message stopped.
        stop_reason: Option<String>,
    },
    /// `message_stop`.
    MessageStop,
    /// Anything else (signature, citations, ping).
    Other,
}

/// What a `content_block_start` begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockStart {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// A tool's input.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// Anything else.
    Other,
}

/// `assistant`: one finished content block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantLine {
    /// The line's uuid.
    pub uuid: Option<Uuid>,
    /// The API message.
    pub message: String,
    /// `<synthetic>` for lines of the CLI's own making.
    pub synthetic: bool,
    /// The sub-agent's call, for output that is not of the main thread.
    pub parent: Option<String>,
    /// Its blocks (in practice one).
    pub content: Vec<Content>,
    /// Input tokens including both cache figures.
    pub context_tokens: u64,
    /// Why the message stopped, where the line says it.
    pub stop_reason: Option<String>,
    /// `error`: the coarse word.
    pub error: Option<String>,
    /// `api_error`: the finer word.
    pub api_error: Option<String>,
    /// `api_error_status`.
    pub status: Option<u16>,
    /// `api_error_params.cut`.
    pub cut: Option<String>,
    /// The reply was interrupted here.
    pub aborted: bool,
}

/// One content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A complete tool call.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// Anything else.
    Other,
}

/// `user`: what stands in the conversation as the user's side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserEcho {
    /// The line's uuid.
    pub uuid: Option<Uuid>,
    /// The sub-agent's call, for output that is not of the main thread.
    pub parent: Option<String>,
    /// Made by the CLI itself.
    pub synthetic: bool,
    /// An echo of an accepted message.
    pub replay: bool,
    /// Plain text, if it carries any.
    pub text: Option<String>,
    /// Tool results.
    pub results: Vec<ToolResult>,
    /// The call set an alarm: the session will be woken.
    pub wakes: Option<WakeSet>,
}

/// An alarm that a tool set, as its result tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeSet {
    /// `scheduledFor` or `nextFireAt`, epoch milliseconds.
    pub at_ms: i64,
    /// The id of a cron; `None` for a single wake-up.
    pub cron: Option<String>,
    /// The cron fires again and again.
    pub recurring: bool,
}

/// One tool result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub tool_use: String,
    /// Its text.
    pub text: String,
    /// Whether it is an error.
    pub failed: bool,
    /// The person refused the call (`permission_decision` rejected by a user source).
    pub denied: bool,
}
