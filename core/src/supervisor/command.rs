//! What a person can want of the reducer.

use crate::card::CardReply;
use crate::endpoint::Endpoint;
use crate::id::{MessageId, SessionId};
use crate::session::{ChildMark, PermissionMode};
use crate::settings::SettingChange;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// What a session's agent can want of the app: the same over the session's own stream and over
/// `omniscio ctl`. Hostile input until the reducer has looked at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", rename_all = "snake_case", deny_unknown_fields)]
pub enum AgentTool {
    /// A new session that does one task and reports.
    SpawnWorker {
        /// What it is to do: its first message.
        task: String,
        /// What the list calls it; the task's first line if there is none.
        #[serde(default)]
        title: Option<String>,
    },
    /// The session's workers and what became of them.
    ListWorkers,
    /// A check runs: nothing restarts the session by itself before it is closed (OD-32).
    OpenGate {
        /// What the agent calls it.
        name: String,
    },
    /// The check is over.
    CloseGate {
        /// What it was called.
        name: String,
    },
}

/// What a person can want.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// A new session with its first message.
    Create {
        /// Project folder, absolute.
        folder: String,
        /// First message.
        text: String,
        /// Model, if chosen.
        model: Option<String>,
        /// Permission mode, if chosen.
        permission_mode: Option<PermissionMode>,
        /// Account, if chosen.
        account: Option<String>,
        /// Endpoint, if chosen: it brings its model.
        endpoint: Option<String>,
        /// Leave out what the folder brings.
        user_settings_only: bool,
    },
    /// A message for a session. While a turn runs it is queued, unless `now`.
    Send {
        /// The session.
        session: SessionId,
        /// The text.
        text: String,
        /// Interrupt and send at once.
        now: bool,
    },
    /// Take a queued message back.
    Unqueue {
        /// The session.
        session: SessionId,
        /// The message.
        message: MessageId,
    },
    /// Stop the open turn.
    Stop {
        /// The session.
        session: SessionId,
    },
    /// `SESSION_RETRY_ABORTED_RESPONSE`: force a restart (RT-12).
    Retry {
        /// The session.
        session: SessionId,
    },
    /// "Please continue." as the person's own message.
    Continue {
        /// The session.
        session: SessionId,
    },
    /// Answer the open card.
    ReplyCard {
        /// The session.
        session: SessionId,
        /// The card's request.
        request: String,
        /// The answer.
        reply: CardReply,
    },
    /// Start over in another model with a hand-over; the old session stays (RT-26).
    SwitchModel {
        /// The session.
        session: SessionId,
        /// The model.
        model: Option<String>,
    },
    /// End the foreign process that holds the conversation, then go on.
    TakeOver {
        /// The session.
        session: SessionId,
        /// The program that the person was shown: no other is ended.
        shown: ChildMark,
    },
    /// Go on in a copy of a conversation that another program holds.
    ForkHeld {
        /// The session.
        session: SessionId,
    },
    /// A new session that is a copy of the conversation as the last good turn left it; the old session
    /// stays as it is. For a session that was given up at a full context.
    Fork {
        /// The session.
        session: SessionId,
    },
    /// End the session.
    End {
        /// The session.
        session: SessionId,
    },
    /// Archive the session.
    Archive {
        /// The session.
        session: SessionId,
    },
    /// Bring it back from the archive.
    Unarchive {
        /// The session.
        session: SessionId,
    },
    /// Delete the session and its conversation from the app.
    Delete {
        /// The session.
        session: SessionId,
    },
    /// Give it another title.
    Rename {
        /// The session.
        session: SessionId,
        /// The title.
        title: String,
    },
    /// The person has seen it, or wants it unread.
    MarkRead {
        /// The session.
        session: SessionId,
        /// Read or unread.
        read: bool,
    },
    /// Change a setting.
    SetSetting {
        /// The change.
        change: SettingChange,
    },
    /// Set up an endpoint, or change the one with its id. The secret is not part of it.
    SetEndpoint {
        /// The endpoint; without an id it is a new one.
        endpoint: Endpoint,
    },
    /// Remove an endpoint and its stored secret. Sessions that use it say so at their next launch.
    RemoveEndpoint {
        /// Its id.
        endpoint: String,
    },
    /// One of the app's own tools, called by the session's agent from outside of its stream.
    Agent {
        /// The session that calls.
        session: SessionId,
        /// The call.
        tool: AgentTool,
    },
    /// Why is this row as it is?
    Explain {
        /// The session.
        session: SessionId,
    },
    /// Stop all children and end; running rows keep their intent.
    Quit,
}

impl Command {
    /// The session it is about; `None` where it makes one, or is about all.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Command::Send { session, .. }
            | Command::Unqueue { session, .. }
            | Command::Stop { session }
            | Command::Retry { session }
            | Command::Continue { session }
            | Command::ReplyCard { session, .. }
            | Command::SwitchModel { session, .. }
            | Command::TakeOver { session, .. }
            | Command::ForkHeld { session }
            | Command::Fork { session }
            | Command::End { session }
            | Command::Archive { session }
            | Command::Unarchive { session }
            | Command::Delete { session }
            | Command::Rename { session, .. }
            | Command::MarkRead { session, .. }
            | Command::Agent { session, .. }
            | Command::Explain { session } => Some(*session),
            Command::Create { .. }
            | Command::SetSetting { .. }
            | Command::SetEndpoint { .. }
            | Command::RemoveEndpoint { .. }
            | Command::Quit => None,
        }
    }
}
