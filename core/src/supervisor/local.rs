//! The end of one of the CLI's own commands, such as `/compact` or `/cost`: it is no turn, and the row
//! goes back to what it was.

use super::change::alert;
use super::{Cx, State};
use crate::id::SessionId;
use crate::session::{PendingAction, Status};
use crate::verdict::Actor;
use alloc::string::String;

impl State {
    /// A local command of the CLI changes nothing but what it says.
    pub(super) fn as_before(&mut self, cx: &mut Cx, id: SessionId, words: Option<String>) {
        // rule: A-17
        let Some(session) = self.session(id) else {
            return;
        };
        let before = session.live.before_local.take();
        if let Some(before) = &before {
            // what it goes back to was told when it was entered
            cx.before.insert(id, alert(before));
        }
        self.change(cx, id, Actor::TurnEnd, "local command", |row| {
            match &before {
                Some(before) => {
                    row.status = before.status;
                    row.pending = before.pending;
                    row.status_changed_at = before.status_changed_at;
                    row.words.clone_from(&before.words);
                    row.hide_since = before.hide_since;
                    row.abort_cause = before.abort_cause;
                    row.stop_reason = before.stop_reason;
                    row.card.clone_from(&before.card);
                }
                None => row.status = Status::NeedsYou,
            }
            if matches!(row.status, Status::Starting | Status::Running) {
                let failed = row.pending.filter(|p| *p == PendingAction::RecoveryFailed);
                (row.status, row.pending) = (Status::NeedsYou, failed);
            }
            row.turn = None;
        });
        self.arm(cx, id);
        // what the row waited for may have ended meanwhile
        self.look_whether_waiting(cx, id);
        self.time_wait(cx.now, id, None);
        if let Some(words) = words {
            self.note(cx, id, &words);
        }
    }
}
