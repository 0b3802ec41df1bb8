//! What holds a restart whoever wants it: INV-07 (the folder), A-12 (another program has the
//! conversation open).

use super::Oracle;
use crate::clock::SECOND;
use crate::report::Report;
use crate::world::Looked;
use omniscio_core::id::{CliSessionId, SessionId};
use omniscio_core::launch::Conversation;

/// A look is at most so old when it is used: its question's own limit and that of a fresh one; then the
/// question about the machine.
const LOOK_AGE: u64 = 16 * SECOND;

impl Oracle {
    /// The app is told of a conversation that was looked at.
    pub(crate) fn looked(&mut self, looked: Option<Looked>) {
        let Some(Looked { ids, held }) = looked else { return };
        for id in ids {
            self.held.remove(&id);
        }
        self.held.extend(held);
    }

    /// a conversation that is open elsewhere is not resumed, nor copied but by the person's wish.
    /// what another session's copy is made of is copied as often as it takes, and never gone on with.
    pub(super) fn one_writer(
        &mut self,
        id: SessionId,
        conversation: Conversation,
        original: Option<CliSessionId>,
        report: &mut Report,
    ) {
        let book = self.book(id);
        // one more start of a launch that hung is the same copy
        let again = book.claim.is_none() && book.copied;
        let copy = std::mem::take(&mut book.copy_wanted) || again;
        book.copied = copy;
        let held = match conversation {
            Conversation::New { .. } => false,
            Conversation::Resume { id } => self.held.contains(&id),
            Conversation::Fork { from, .. } if original == Some(from) => {
                report.hit("a copy of a given-up session begins");
                false
            }
            Conversation::Fork { from, .. } => self.held.contains(&from) && !copy,
        };
        if original.is_some_and(|original| original == conversation.id()) {
            self.fail("A-15", format!("{id} goes on in what it is a copy of: {conversation:?}"));
        }
        if held {
            self.fail("A-12", format!("{id} goes on in {conversation:?}, open elsewhere"));
        }
    }

    /// A folder goes, or comes back.
    pub(crate) fn folder(&mut self, folder: &str, gone_since: Option<u64>) {
        match gone_since {
            Some(since) => {
                self.gone.insert(folder.into(), since);
            }
            None => {
                self.gone.remove(folder);
            }
        }
    }

    pub(super) fn gone_for(&self, folder: &str, at: u64) -> Option<u64> {
        self.gone.get(folder).map(|since| at - since)
    }

    /// INV-07: no spawn while the folder is missing.
    pub(super) fn inv_07(&mut self, id: SessionId, folder: &str, at: u64) {
        // one more start of a launch that hung comes to nothing by itself: no child has a folder then
        let first = self.book(id).claim.is_some();
        if first && self.gone_for(folder, at).is_some_and(|age| age > LOOK_AGE) {
            self.fail("INV-07", format!("a child of {id} is started without its folder"));
        }
    }
}
