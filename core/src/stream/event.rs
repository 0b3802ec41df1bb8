//! What one line of the CLI's output says.
//!
//! Decoding never fails: what is unknown is [`StreamEvent::Unknown`], what is no protocol is
//! [`StreamEvent::Chatter`], what is too long is [`StreamEvent::Oversize`].

use super::{AssistantLine, Partial, UserEcho};
use crate::id::{CliSessionId, Uuid};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of the stream. It is handed from place to place on its way to the rules, so what is large
/// and seldom is boxed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StreamEvent {
    /// `system/init`: a turn begins (at every turn).
    Init(Box<Init>),
    /// `system/status`.
    Status {
        /// `requesting`, `compacting`, or `None` for cleared.
        status: Option<String>,
        /// A changed permission mode.
        permission_mode: Option<String>,
        /// `success` or `failed` after a compaction.
        compact_result: Option<String>,
        /// The words of a failed compaction.
        compact_error: Option<String>,
    },
    /// `system/session_state_changed`.
    SessionState(SessionState),
    /// `command_lifecycle`.
    Lifecycle {
        /// The uuid of the command.
        command: Option<Uuid>,
        /// Where it is.
        state: LifecycleState,
        /// Set when the CLI started the turn by itself.
        wakeup_source: Option<String>,
        /// The time the wake-up was set for, epoch milliseconds.
        scheduled_for_ms: Option<i64>,
    },
    /// `system/thinking_tokens`.
    ThinkingTokens,
    /// `stream_event`.
    Partial(Partial),
    /// `assistant`: one finished content block.
    Assistant(Box<AssistantLine>),
    /// `user`: tool results, synthetic nudges, interrupt notes, replays.
    User(Box<UserEcho>),
    /// `tool_progress`: heartbeat of a running tool.
    ToolProgress {
        /// The call.
        tool_use: Option<String>,
        /// The tool.
        tool: String,
        /// How long it has run, in seconds.
        elapsed_s: u64,
    },
    /// `system/task_started`, `task_updated`, `task_notification`.
    Task(TaskEvent),
    /// `system/background_tasks_changed`: the whole set of live background tasks.
    BackgroundTasks(Vec<BackgroundTask>),
    /// `system/api_retry`.
    ApiRetry {
        /// Which attempt follows.
        attempt: u32,
        /// Of how many.
        max: u32,
        /// Announced delay in milliseconds.
        delay_ms: u64,
        /// HTTP status, if any.
        status: Option<u16>,
        /// The CLI's word for the error.
        error: String,
    },
    /// `system/model_fallback`.
    ModelFallback {
        /// From this model.
        from: String,
        /// To this one.
        to: String,
    },
    /// `system/compact_boundary`: the history was replaced.
    CompactBoundary {
        /// `manual` or `auto`.
        trigger: String,
    },
    /// `system/permission_denied`: a tool was refused without asking.
    PermissionDenied {
        /// The call.
        tool_use: Option<String>,
        /// The tool.
        tool: String,
        /// The words.
        message: String,
    },
    /// `system/informational` and its like: words for the person.
    Informational {
        /// The words.
        content: String,
    },
    /// `rate_limit_event`.
    RateLimit(RateLimit),
    /// `conversation_reset`: `/clear` changed the id.
    ConversationReset {
        /// The new id.
        new_id: Option<CliSessionId>,
    },
    /// `control_request`: the CLI asks.
    ControlRequest {
        /// Its id.
        request: String,
        /// What it asks.
        body: ControlAsk,
    },
    /// `control_cancel_request`: the CLI withdraws what it asked.
    ControlCancel {
        /// The id of what it asked.
        request: String,
    },
    /// `control_response`: the answer to a request of ours.
    ControlResponse {
        /// The id of our request.
        request: String,
        /// The answer, or the words of the refusal.
        answer: Result<Value, String>,
    },
    /// `result`: the turn is over.
    Result(Box<TurnResult>),
    /// `keep_alive` and other lines that carry nothing.
    KeepAlive,
    /// A protocol line of a kind this version does not know.
    Unknown {
        /// Its type.
        kind: String,
        /// Its subtype.
        subtype: Option<String>,
    },
    /// A protocol line of a known kind whose fields are not as expected.
    Malformed {
        /// Its type.
        kind: String,
    },
    /// A line longer than the limit; the stream goes on after it.
    Oversize {
        /// The type, if it could be read from the beginning.
        kind: Option<String>,
        /// The subtype, likewise.
        subtype: Option<String>,
        /// Its beginning, at most 200 characters.
        prefix: String,
    },
    /// Not protocol: startup chatter, never response (PR-04).
    Chatter(String),
}

/// The three that are boxed and made in more than one place.
macro_rules! boxed {
    ($($name:ident: $from:ty),*) => {$(
        impl From<$from> for StreamEvent {
            fn from(line: $from) -> Self {
                StreamEvent::$name(Box::new(line))
            }
        }
    )*};
}

boxed!(Init: Init, Assistant: AssistantLine, User: UserEcho);

/// `system/init`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Init {
    /// The conversation's id.
    pub session_id: Option<CliSessionId>,
    /// The model.
    pub model: String,
    /// The permission mode.
    pub permission_mode: String,
    /// Where the key comes from; `none` for a login.
    pub api_key_source: String,
    /// The CLI's version.
    pub version: String,
}

/// `session_state_changed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionState {
    /// A turn runs.
    Running,
    /// No turn runs.
    Idle,
    /// Something is asked.
    RequiresAction,
    /// A word this version does not know.
    Other,
}

/// State of a `command_lifecycle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LifecycleState {
    /// Accepted.
    Queued,
    /// Its turn began.
    Started,
    /// Acknowledged; no proof of an answer.
    Completed,
    /// Dropped.
    Cancelled,
    /// A word this version does not know.
    Other,
}

/// A task of the CLI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEvent {
    /// Its id.
    pub task: String,
    /// The call that began it.
    pub tool_use: Option<String>,
    /// What happened.
    pub phase: TaskPhase,
    /// It is a sub-agent (`local_agent`).
    pub is_agent: bool,
    /// It runs in the background.
    pub background: bool,
    /// What it says of itself.
    pub summary: Option<String>,
}

/// Phase of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskPhase {
    /// Began.
    Started,
    /// Changed.
    Updated,
    /// Ended, one way or the other.
    Ended,
}

/// A live background task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Its id.
    pub task: String,
    /// Its type.
    pub kind: String,
    /// What it says of itself.
    pub summary: Option<String>,
}

/// `rate_limit_event`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// `rejected`, `allowed_warning`, `allowed`.
    pub status: String,
    /// When the limit resets, epoch **seconds**.
    pub resets_at_s: Option<i64>,
    /// Which limit.
    pub limit: Option<String>,
}

/// What a `control_request` of the CLI asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ControlAsk {
    /// `can_use_tool`.
    CanUseTool {
        /// The tool's name.
        tool: String,
        /// The call.
        tool_use: String,
        /// Its input.
        input: Value,
        /// What could be allowed for the session.
        suggestions: Vec<Value>,
        /// The agent's reason, if it gave one.
        description: Option<String>,
    },
    /// `can_use_tool` for a tool that the CLI got from this app: by its name and by its source,
    /// so that no server of the user's own, whatever it is called, passes for it.
    UseOwnTool {
        /// Its input.
        input: Value,
    },
    /// `mcp_message`: a JSON-RPC message to a server of ours.
    Mcp {
        /// The server's name.
        server: String,
        /// The message.
        message: Value,
    },
    /// A kind we do not know: answered with an error, never left open.
    Unknown {
        /// Its subtype.
        subtype: String,
    },
}

/// `result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnResult {
    /// The line's uuid.
    pub uuid: Option<Uuid>,
    /// The conversation's id.
    pub session_id: Option<CliSessionId>,
    /// `subtype`; proves nothing.
    pub subtype: String,
    /// `is_error`.
    pub is_error: bool,
    /// `terminal_reason`.
    pub terminal_reason: Option<String>,
    /// `api_error_status`.
    pub status: Option<u16>,
    /// `stop_reason`.
    pub stop_reason: Option<String>,
    /// `num_turns`.
    pub num_turns: u64,
    /// `result`: the text of the last assistant message.
    pub text: String,
    /// `errors`.
    pub errors: Vec<String>,
    /// `local_command`.
    pub local_command: Option<String>,
    /// `startup_failure_reason`.
    pub startup_failure: Option<String>,
    /// `user_message_uuids`.
    pub messages: Vec<Uuid>,
    /// `total_cost_usd` in millionths of a dollar, cumulative for the process.
    pub cost_microdollars: u64,
    /// `duration_ms`.
    pub duration_ms: u64,
    /// `contextWindow` of the model, if named.
    pub context_window: Option<u64>,
}

impl TurnResult {
    /// What a CLI that ended before its first turn would have said, with these words.
    pub fn refused_start(words: String) -> Self {
        TurnResult {
            subtype: "error_during_execution".into(),
            is_error: true,
            errors: alloc::vec![words],
            ..TurnResult::default()
        }
    }
}
