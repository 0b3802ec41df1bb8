//! The durable store: rows with the guards of the real one, messages, settings. All of a step or
//! nothing of it. Decides nothing.

use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::message::{Message, MessageState, Queued, is_local_command};
use omniscio_core::session::SessionRow;
use omniscio_core::settings::Settings;
use omniscio_core::supervisor::{Act, Step, Write};
use std::collections::BTreeMap;

/// What survives the app.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) rows: BTreeMap<SessionId, SessionRow>,
    pub(crate) messages: BTreeMap<MessageId, Message>,
    order: Vec<MessageId>,
    pub(crate) blocks: BTreeMap<SessionId, u64>,
    pub(crate) settings: Settings,
}

/// The guard of the real store: what a careless second writer would have changed.
fn guard_holds(stored: &SessionRow, read: &SessionRow) -> bool {
    let turn = |row: &SessionRow| row.turn.as_ref().map(|turn| turn.number);
    (stored.status, stored.pending) == (read.status, read.pending)
        && stored.retry_attempts == read.retry_attempts
        && stored.deleted_at == read.deleted_at
        && turn(stored) == turn(read)
}

impl Store {
    /// Writes a step, or says whose row was not as read.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> Result<(), SessionId> {
        let mut staged: BTreeMap<SessionId, &SessionRow> = BTreeMap::new();
        for write in writes {
            let Write::Row { before, after, .. } = write else { continue };
            let stored = staged.get(&after.id).copied().or_else(|| self.rows.get(&after.id));
            let sound = match (before, stored) {
                (None, None) => true,
                (Some(read), Some(stored)) => guard_holds(stored, read),
                (None, Some(_)) | (Some(_), None) => false,
            };
            if !sound {
                return Err(after.id);
            }
            staged.insert(after.id, after);
        }
        for write in writes {
            self.apply(write);
        }
        Ok(())
    }

    /// Takes the part of one session out of a step, as the real shell does: the rest is committed. Its
    /// child is stopped all the same.
    pub(crate) fn take_out(&self, step: &mut Step, session: SessionId) {
        let made: Vec<MessageId> = step
            .writes
            .iter()
            .filter_map(|write| match write {
                Write::Message(message) => Some(message.id).filter(|_| message.session == session),
                Write::Row { .. }
                | Write::MessageState { .. }
                | Write::Block { .. }
                | Write::Settings(_) => None,
            })
            .collect();
        let its = |id: &MessageId| {
            let stored = self.messages.get(id).map(|message| message.session);
            made.contains(id) || stored == Some(session)
        };
        step.writes.retain(|write| match write {
            Write::Row { after, .. } => after.id != session,
            Write::Message(message) => message.session != session,
            Write::MessageState { id, .. } => !its(id),
            Write::Block { session: of, .. } => *of != session,
            Write::Settings(_) => true,
        });
        step.acts.retain(|act| match act {
            Act::Spawn { session: of, .. }
            | Act::Write { session: of, .. }
            | Act::Control { session: of, .. }
            | Act::EmitGone(of)
            | Act::EmitBlock { session: of, .. }
            | Act::EmitDelta { session: of, .. }
            | Act::Notify { session: of, .. } => *of != session,
            Act::Emit(view) => view.row.id != session,
            // its good reply becomes an error: nobody relies on it
            Act::Reply { .. } => false,
            Act::Stop { .. }
            | Act::Ask { .. }
            | Act::EmitSettings(_)
            | Act::ForgetSecret(_)
            | Act::Badge(_)
            | Act::Exit
            | Act::Log { .. } => true,
        });
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Row { after, .. } => {
                if after.deleted_at.is_some() {
                    self.messages.retain(|_, message| message.session != after.id);
                }
                self.rows.insert(after.id, (**after).clone());
            }
            Write::Message(message) => {
                self.order.push(message.id);
                self.messages.insert(message.id, message.clone());
            }
            Write::MessageState { id, state } => {
                if let Some(message) = self.messages.get_mut(id) {
                    message.state = *state;
                }
            }
            Write::Block { session, block } => {
                let last = self.blocks.entry(*session).or_default();
                *last = (*last).max(block.seq);
            }
            Write::Settings(settings) => self.settings = settings.clone(),
        }
    }

    /// Waiting messages of one session, oldest first.
    pub(crate) fn queue(&self, session: SessionId) -> Vec<Queued> {
        self.order
            .iter()
            .filter_map(|id| self.messages.get(id))
            .filter(|message| message.session == session && message.state == MessageState::Queued)
            .map(|message| Queued {
                id: message.id,
                origin: message.origin,
                local_command: is_local_command(&message.text),
                preview: message.text.clone(),
            })
            .collect()
    }

    /// Every row that is not deleted.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &SessionRow> {
        self.rows.values().filter(|row| row.deleted_at.is_none())
    }
}
