//! A commit that the store refuses, once: as the shell takes its part out of the step.

use super::super::super::*;
use super::Port;
use crate::id::Uuid;
use alloc::boxed::Box;

impl Port {
    /// Takes the part of one session out of a step, as the shell does when its row was changed.
    pub(super) fn refused(&mut self, step: &mut Step) -> Option<Input> {
        let session = step.writes.iter().find_map(|write| match write {
            Write::Row { before: Some(_), after, .. } if self.refuse => Some(after.id),
            Write::Row { .. }
            | Write::Message(_)
            | Write::MessageState { .. }
            | Write::Block { .. }
            | Write::Settings(_) => None,
        })?;
        self.refuse = false;
        let row = self.rows.get_mut(&session).expect("a row");
        row.title.push('x');
        let row = Some(Box::new(row.clone()));
        let queue = self.queues.get(&session).cloned().unwrap_or_default();
        let new: Vec<Uuid> = step
            .writes
            .iter()
            .filter_map(|write| match write {
                Write::Message(message) if message.session == session => Some(message.id),
                Write::Message(_)
                | Write::Row { .. }
                | Write::MessageState { .. }
                | Write::Block { .. }
                | Write::Settings(_) => None,
            })
            .collect();
        step.writes.retain(|write| match write {
            Write::Row { after, .. } => after.id != session,
            Write::Message(message) => message.session != session,
            Write::MessageState { id, .. } => {
                !new.contains(id) && !queue.iter().any(|queued| queued.id == *id)
            }
            Write::Block { session: of, .. } => *of != session,
            Write::Settings(_) => true,
        });
        step.acts.retain(|act| match act {
            Act::Spawn { session: of, .. }
            | Act::Write { session: of, .. }
            | Act::Control { session: of, .. } => *of != session,
            Act::Stop { .. }
            | Act::Ask { .. }
            | Act::Emit(_)
            | Act::EmitGone(_)
            | Act::EmitBlock { .. }
            | Act::EmitDelta { .. }
            | Act::EmitSettings(_)
            | Act::Notify { .. }
            | Act::Badge(_)
            | Act::ForgetSecret(_)
            | Act::Reply { .. }
            | Act::Exit
            | Act::Log { .. } => true,
        });
        Some(Input::CommitRefused { row, session })
    }
}
