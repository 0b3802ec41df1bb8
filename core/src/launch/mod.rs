//! Starting a child: its command line, its environment, and what a failure to start means.

pub mod child_env;
pub mod classify;
pub mod headroom;
pub mod line;
pub mod relaunch;

use crate::endpoint::Endpoint;
use crate::id::{CliSessionId, SessionId};
use crate::session::PermissionMode;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Which conversation the child continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "conversation", rename_all = "snake_case")]
pub enum Conversation {
    /// A new one under this id.
    New {
        /// The id.
        id: CliSessionId,
    },
    /// This one goes on.
    Resume {
        /// The id.
        id: CliSessionId,
    },
    /// A copy of one, under a new id, cut after an assistant line where `at` names one.
    Fork {
        /// The original.
        from: CliSessionId,
        /// The copy.
        id: CliSessionId,
        /// The last line that is kept.
        at: Option<crate::id::Uuid>,
    },
}

impl Conversation {
    /// The id under which the child will speak.
    pub fn id(self) -> CliSessionId {
        match self {
            Conversation::New { id }
            | Conversation::Resume { id }
            | Conversation::Fork { id, .. } => id,
        }
    }
}

/// How a child is to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// For this session; also the value of the app's marker variable.
    pub session: SessionId,
    /// Where it works.
    pub folder: String,
    /// Under which account.
    pub account: String,
    /// Which conversation.
    pub conversation: Conversation,
    /// The endpoint that answers, if not Claude's own.
    pub endpoint: Option<Endpoint>,
    /// Model, if chosen.
    pub model: Option<String>,
    /// Permission mode, if chosen.
    pub permission_mode: Option<PermissionMode>,
    /// Leave out what the folder brings.
    pub user_settings_only: bool,
    /// Ask for summary cards.
    pub plain_speak: bool,
    /// The CLI's own byte-idle timer, in milliseconds.
    pub byte_idle_ms: u64,
}
