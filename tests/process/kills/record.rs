//! What the stand-ins say of themselves: which lines each was sent, what it answered, and whether two of
//! one session ever lived side by side.

use omniscio_core::id::{SessionId, Uuid};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// One fact of the record.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum Fact {
    /// A process began; `second`: another one of this session lived.
    Start { session: SessionId, pid: u32, second: bool },
    /// It was sent a line; `again`: one that it had answered before.
    Heard { session: SessionId, uuid: Uuid, text: String, again: bool },
    /// It gave a whole answer, in a conversation with so many messages of the operator.
    Answered { session: SessionId, text: String, history: usize },
}

/// The record of a home, read as it grows.
pub(super) struct Record {
    file: PathBuf,
    read: usize,
    /// The facts of this life of the app.
    pub(super) facts: Vec<Fact>,
}

impl Record {
    /// Makes the folder in which the stand-ins keep it, for both accounts.
    pub(super) fn prepare(home: &Path) -> Record {
        let folder = home.join("config/fake-record");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, home.join("config-login/fake-record")).unwrap();
        Record { file: folder.join("lines"), read: 0, facts: Vec::new() }
    }

    /// Forgets what was read: another life of the app begins.
    pub(super) fn turn_the_page(&mut self) {
        self.facts.clear();
    }

    /// Reads what has come since.
    pub(super) fn read_on(&mut self) {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let new = &text[self.read..];
        let whole = new.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole;
        let lines = new[..whole].lines();
        self.facts.extend(lines.map(|line| serde_json::from_str::<Fact>(line).unwrap()));
    }

    /// The lines that this session's stand-ins were sent and ran: uuid and text.
    pub(super) fn heard(&self, of: SessionId) -> impl Iterator<Item = (Uuid, &str)> {
        self.facts.iter().filter_map(move |fact| match fact {
            Fact::Heard { session, uuid, text, again: false, .. } if *session == of => {
                Some((*uuid, text.as_str()))
            }
            Fact::Heard { .. } | Fact::Start { .. } | Fact::Answered { .. } => None,
        })
    }

    /// The whole answers that this session's stand-ins gave, and the length of their conversations.
    pub(super) fn answers(&self, of: SessionId) -> impl Iterator<Item = (&str, usize)> {
        self.facts.iter().filter_map(move |fact| match fact {
            Fact::Answered { session, text, history } if *session == of => {
                Some((text.as_str(), *history))
            }
            Fact::Answered { .. } | Fact::Heard { .. } | Fact::Start { .. } => None,
        })
    }
}
