//! Transcript blocks: what the conversation shows, kept in the app's own tables.

use crate::id::MessageId;
use crate::time::Wall;
use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One block of a session's conversation. Blocks are replaced whole, by `seq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Position in the session, from 1.
    pub seq: u64,
    /// The turn it belongs to.
    pub turn: u64,
    /// When it began.
    pub at: Wall,
    /// What it is.
    pub kind: BlockKind,
    /// Absent from the default view (UI-22).
    pub hidden: bool,
    /// Tells of an interruption (FM-10).
    pub interruption: bool,
    /// Still growing.
    pub open: bool,
    /// The reply ends here because it was cut off.
    pub cut_off: bool,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BlockKind {
    /// The person's message.
    Operator {
        /// The message.
        message: MessageId,
        /// Its text.
        text: String,
    },
    /// The agent's text, Markdown.
    Assistant {
        /// The text, marker lines cut.
        text: String,
    },
    /// The agent's thinking.
    Thinking {
        /// The text.
        text: String,
        /// How long it took, in milliseconds; zero while open.
        millis: u64,
    },
    /// A tool call.
    Tool {
        /// The call's id.
        call: String,
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
        /// Its result as text, cut to a bound; `None` while it runs.
        result: Option<String>,
        /// The result is an error.
        failed: bool,
        /// The person refused it.
        denied: bool,
        /// How long it took, in milliseconds.
        millis: u64,
        /// The call of the sub-agent it belongs to, if any.
        parent: Option<String>,
    },
    /// A small system line.
    Note {
        /// Its text.
        text: String,
    },
    /// A centred line, such as "Conversation compacted".
    Boundary {
        /// Its text.
        text: String,
    },
    /// A hidden message of the app's own.
    Auto {
        /// Who sent it.
        origin: crate::message::Origin,
        /// Its text.
        text: String,
    },
    /// What became of a card, in one line.
    Answered {
        /// The line.
        text: String,
    },
    /// The foot of a turn.
    Foot {
        /// Duration in milliseconds.
        millis: u64,
        /// Cost of the turn in millionths of a dollar.
        cost_microdollars: u64,
    },
}
