//! Messages on their way to a session: where they came from and how far they are.

use crate::id::{MessageId, SessionId, Uuid};
use crate::time::Wall;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Who a message comes from. Only the operator's origins reset counters (CT-06).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Typed or queued in the composer.
    Operator,
    /// A click on Continue, or its key.
    OperatorPill,
    /// From a parent session.
    Orchestrator,
    /// Sent again by a recovery.
    Replay,
    /// A hidden nudge of the app.
    AutoNudge,
    /// A forced `/compact`.
    AutoCommand,
    /// A request for the summary card.
    CardRequest,
    /// A kept wake-up.
    Wakeup,
    /// A line of the CLI's own making.
    CliSynthetic,
}

impl Origin {
    /// Every origin.
    pub const ALL: &[Origin] = &[
        Origin::Operator,
        Origin::OperatorPill,
        Origin::Orchestrator,
        Origin::Replay,
        Origin::AutoNudge,
        Origin::AutoCommand,
        Origin::CardRequest,
        Origin::Wakeup,
        Origin::CliSynthetic,
    ];

    /// A real user message: the only kind that resets counters (CT-05, CT-06).
    pub fn is_real_user(self) -> bool {
        // rule: CT-06
        match self {
            Origin::Operator | Origin::OperatorPill => true,
            Origin::Orchestrator
            | Origin::Replay
            | Origin::AutoNudge
            | Origin::AutoCommand
            | Origin::CardRequest
            | Origin::Wakeup
            | Origin::CliSynthetic => false,
        }
    }

    /// Whether a replay may take this message for the last operator turn (RP-03, DB-09).
    pub fn is_replayable(self) -> bool {
        // rule: DB-09
        match self {
            Origin::Operator | Origin::OperatorPill | Origin::Orchestrator => true,
            Origin::Replay
            | Origin::AutoNudge
            | Origin::AutoCommand
            | Origin::CardRequest
            | Origin::Wakeup
            | Origin::CliSynthetic => false,
        }
    }

    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Operator => "operator",
            Origin::OperatorPill => "operator_pill",
            Origin::Orchestrator => "orchestrator",
            Origin::Replay => "replay",
            Origin::AutoNudge => "auto_nudge",
            Origin::AutoCommand => "auto_command",
            Origin::CardRequest => "card_request",
            Origin::Wakeup => "wakeup",
            Origin::CliSynthetic => "cli_synthetic",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Origin> {
        Origin::ALL.iter().copied().find(|origin| origin.as_str() == text)
    }
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Waits in the session's queue.
    Queued,
    /// Handed to the child (persisted before the bytes are written).
    Sent,
    /// A `result` named it.
    Answered,
    /// Taken back by the person.
    Withdrawn,
}

impl MessageState {
    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageState::Queued => "queued",
            MessageState::Sent => "sent",
            MessageState::Answered => "answered",
            MessageState::Withdrawn => "withdrawn",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<MessageState> {
        [MessageState::Queued, MessageState::Sent, MessageState::Answered, MessageState::Withdrawn]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// One message, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id; also the uuid it is first sent under.
    pub id: MessageId,
    /// Its session.
    pub session: SessionId,
    /// Where it came from.
    pub origin: Origin,
    /// Its text.
    pub text: String,
    /// When it was written.
    pub created_at: Wall,
    /// How far it is.
    pub state: MessageState,
}

/// A queued message as the reducer holds it: without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The message.
    pub id: MessageId,
    /// Where it came from.
    pub origin: Origin,
    /// One of the CLI's own local commands.
    pub local_command: bool,
    /// Its first line, for the queue in the composer.
    pub preview: String,
}

/// Text of a line that is written to the child's stdin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineText {
    /// The stored text of a message.
    Of(MessageId),
    /// A stored message after the text of a hand-over.
    HandoverThen {
        /// The hand-over's text.
        handover: String,
        /// The message.
        message: MessageId,
    },
    /// Text of the app's own.
    Own(String),
}

/// One user line for the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserLine {
    /// The uuid it is sent under.
    pub uuid: Uuid,
    /// Who speaks.
    pub origin: Origin,
    /// What is said.
    pub text: LineText,
}

/// The CLI's own local commands: their result carries `local_command`, no model answers.
const LOCAL_COMMANDS: [&str; 8] =
    ["/compact", "/clear", "/cost", "/context", "/usage", "/status", "/help", "/autocompact"];

/// Whether the text is one of the CLI's local commands. A prompt command is not.
pub fn is_local_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    LOCAL_COMMANDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: CT-06, DB-09
    #[test]
    fn only_the_operator_resets_and_only_three_origins_are_replayed() {
        let reset: alloc::vec::Vec<_> = Origin::ALL.iter().filter(|o| o.is_real_user()).collect();
        assert_eq!(reset, [&Origin::Operator, &Origin::OperatorPill]);
        let replayed: alloc::vec::Vec<_> =
            Origin::ALL.iter().filter(|o| o.is_replayable()).collect();
        assert_eq!(replayed, [&Origin::Operator, &Origin::OperatorPill, &Origin::Orchestrator]);
        for origin in Origin::ALL {
            assert_eq!(Origin::parse(origin.as_str()), Some(*origin));
        }
    }

    #[test]
    fn local_commands_are_told_from_prompt_commands_and_paths() {
        assert!(is_local_command("/compact") && is_local_command("  /cost now"));
        assert!(
            !is_local_command("/review") && !is_local_command("/home/x") && !is_local_command("hi")
        );
    }
}
