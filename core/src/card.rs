//! Cards: what the agent asks of the person, stored with the row and shown again after a restart.

use crate::time::Wall;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What kind of answer a card wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardKind {
    /// A tool wants to run.
    Permission,
    /// The agent asks (AskUserQuestion).
    Question,
    /// The agent presents a plan (ExitPlanMode).
    Plan,
}

/// One open request of the agent (`can_use_tool`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The CLI's request id.
    pub request: String,
    /// The tool call it belongs to.
    pub tool_use: String,
    /// What kind of answer it wants.
    pub kind: CardKind,
    /// The tool's name.
    pub tool: String,
    /// The tool's input, as sent.
    pub input: Value,
    /// What the CLI suggests to allow for the session, as sent.
    pub suggestions: Vec<Value>,
    /// The agent's reason, if it gave one.
    pub reason: Option<String>,
    /// When it was asked.
    pub asked_at: Wall,
    /// Its child is gone: the answer is sent as a message of the resumed session.
    pub orphaned: bool,
}

/// The person's answer to a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CardReply {
    /// Allow this once.
    Allow,
    /// Allow, with the CLI's own suggestions for the rest of the session.
    AllowSession,
    /// Deny, and the turn goes on; with words for the agent.
    Deny {
        /// What the agent is told.
        message: Option<String>,
    },
    /// Answers by question text.
    Answers {
        /// Answer by question.
        answers: BTreeMap<String, String>,
    },
    /// Approve the plan.
    ApprovePlan {
        /// Ask again for each edit.
        ask_each_edit: bool,
    },
    /// Keep planning, with words for the agent.
    KeepPlanning {
        /// What the agent is told.
        message: Option<String>,
    },
}

impl CardReply {
    /// Whether this answer fits the card.
    pub fn fits(&self, kind: CardKind) -> bool {
        match self {
            CardReply::Allow | CardReply::AllowSession => kind == CardKind::Permission,
            CardReply::Deny { .. } => matches!(kind, CardKind::Permission | CardKind::Question),
            CardReply::Answers { .. } => kind == CardKind::Question,
            CardReply::ApprovePlan { .. } | CardReply::KeepPlanning { .. } => {
                kind == CardKind::Plan
            }
        }
    }
}
