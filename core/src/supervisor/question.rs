//! Facts a rule needs from outside in the middle of a decision, and their answers.

use crate::id::{CliSessionId, SessionId, Uuid};
use crate::session::{ChildMark, Holder};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A question to the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "question", rename_all = "snake_case")]
pub enum Question {
    /// Is the folder there?
    Folder {
        /// The folder.
        folder: String,
    },
    /// The folder, and what the CLI's transcript holds: asked before every replay.
    Transcript {
        /// The folder.
        folder: String,
        /// The account whose config folder holds it.
        account: String,
        /// The conversation to look for; `None` asks for the folder alone.
        cli_session: Option<CliSessionId>,
        /// The conversation it was copied from, to look for when the CLI has the first one not (a copy has
        /// no usable file before its first message).
        copied_from: Option<CliSessionId>,
        /// The uuids to look for.
        uuids: Vec<Uuid>,
    },
    /// End the foreign process that holds a conversation: only by the person's click, looked at again
    /// first, SIGTERM only.
    TakeOver {
        /// The conversation.
        cli_session: CliSessionId,
        /// The one it was copied from, which may be the one that is held.
        copied_from: Option<CliSessionId>,
        /// The process that was seen.
        holder: Holder,
    },
    /// Ids of all stamped rows, by one indexed query (SC-03).
    Stamped,
    /// What the machine has left for one more child: asked before every launch.
    Headroom,
    /// Which of these children are gone (LV-01).
    Alive {
        /// The children, with their sessions.
        children: Vec<(SessionId, ChildMark)>,
    },
    /// The hand-over of a session, cut from its blocks.
    Handover {
        /// The session.
        session: SessionId,
    },
}

/// An answer of the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Question::Folder`].
    Folder {
        /// It is there.
        present: bool,
    },
    /// To [`Question::Transcript`].
    Transcript {
        /// The folder is there.
        folder_present: bool,
        /// What was found.
        found: TranscriptFacts,
        /// Another program that has the conversation open right now.
        holder: Option<Holder>,
    },
    /// To [`Question::TakeOver`].
    TakenOver {
        /// It is gone, or has let the conversation go.
        gone: bool,
    },
    /// To [`Question::Stamped`].
    Stamped {
        /// The ids, oldest first.
        ids: Vec<SessionId>,
    },
    /// To [`Question::Headroom`].
    Headroom(Headroom),
    /// To [`Question::Alive`].
    Alive {
        /// Those whose process is gone: no process has the pid, or one with another start time.
        gone: Vec<SessionId>,
    },
    /// To [`Question::Handover`].
    Handover(Handover),
    /// The shell could not find out; the words are for the log.
    Failed {
        /// Why.
        words: String,
        /// The system's error number, where the machine was short of something to look with.
        errno: Option<i32>,
    },
}

impl Answer {
    /// What was said so far; the answer as it is where nobody could read it.
    pub(super) fn handover(self) -> Result<Handover, Answer> {
        match self {
            Answer::Handover(handover) => Ok(handover),
            Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::TakenOver { .. }
            | Answer::Stamped { .. }
            | Answer::Headroom(_)
            | Answer::Alive { .. }
            | Answer::Failed { .. } => Err(self),
        }
    }
}

/// What was said so far, for a conversation that begins anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// Its text.
    pub text: String,
    /// Text of the last operator message, if any.
    pub last_message: Option<String>,
    /// Text of the operator messages after the last one that was answered, if any.
    pub unanswered: Option<String>,
}

/// What is left on this machine for this app; `None` where nobody can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headroom {
    /// File descriptors this process may still open.
    pub descriptors: Option<u64>,
    /// Processes and threads this user may still start.
    pub processes: Option<u64>,
    /// Memory that is available, in mebibytes.
    pub memory_mib: Option<u64>,
}

/// What a transcript holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptFacts {
    /// A file of this conversation's name is there, whatever it holds.
    pub file: bool,
    /// The CLI has the conversation: the file holds at least one whole line of it.
    pub exists: bool,
    /// It is the one it was copied from that was found, not the copy.
    pub fell_back: bool,
    /// Those of the asked uuids that stand in it.
    pub present: Vec<Uuid>,
}
