//! Workers: INV-43 (only one that never came to life is put away by the app), and what an agent may
//! have declared (INV-06).

use super::{Change, Oracle};
use crate::report::Report;
use crate::store::Store;
use omniscio_core::id::SessionId;
use omniscio_core::message::{LineText, MessageState, UserLine};
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::verdict::Actor;

impl Oracle {
    /// INV-43: the whole predicate, from the tests' own books.
    pub(super) fn inv_43(&mut self, change: &Change<'_>, store: &Store, report: &mut Report) {
        let Some(before) = change.before else { return };
        let archived = change.after.status == Status::Archived && before.status != Status::Archived;
        if !archived || change.actor == Actor::User {
            return;
        }
        report.hit("orphan retired");
        let nobodys = match before.pending {
            None | Some(PendingAction::ResponseAborted | PendingAction::RecoveryFailed) => true,
            Some(
                PendingAction::Question
                | PendingAction::PlanApproval
                | PendingAction::PermissionRequest
                | PendingAction::AuthRequired
                | PendingAction::ApiError
                | PendingAction::Stopped
                | PendingAction::AppRestartSuspended
                | PendingAction::RateLimited,
            ) => false,
        };
        let dead = matches!(before.status, Status::NeedsYou | Status::Error | Status::Stalled);
        let unborn = before.parent.is_some() && before.cli_session_id.is_none();
        let said = store.messages.values().any(|message| {
            message.session == before.id && message.state != MessageState::Withdrawn
        });
        let lives = self.window.get(&before.id).is_some_and(|view| view.live.child);
        let spoke = self.book(before.id).spoke;
        let off = self.policy.switches.preinit_orphan_retire;
        if !(nobodys && dead && unborn) || said || lives || spoke || off {
            let text = format!("{:?} puts {before:?} away", change.actor);
            self.fail("INV-43", text);
        }
    }

    /// INV-06: no automatic restart while a gate of the session runs.
    pub(super) fn inv_06(&mut self, actor: Actor, before: &SessionRow) {
        let automatic = matches!(actor, Actor::AbortedScan | Actor::ReArm | Actor::CrashRecovery);
        if automatic && !before.gates.is_empty() {
            self.fail("INV-06", format!("{actor:?} restarts {} in spite of its gate", before.id));
        }
    }

    /// A line of a parent: the task of a worker that has not begun it, or a report from the queue.
    pub(super) fn orchestrates(&mut self, id: SessionId, line: &UserLine, store: &Store) {
        match &line.text {
            LineText::Own(task) => {
                let stored = store.rows.get(&id).and_then(|row| row.launch_request.as_ref());
                if stored != Some(task) {
                    self.fail("INV-44", format!("a task of {id} is written and not stored"));
                }
            }
            LineText::Of(_) | LineText::HandoverThen { .. } => self.sends(line, store),
        }
    }
}
