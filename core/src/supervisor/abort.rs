//! The one emitter of aborted responses (AB-04): a turn that died becomes a stamped row, or one of the
//! states that stand above a stamp (AB-07).

use super::turn_end::close;
use super::{Cx, State};
use crate::id::SessionId;
use crate::prompt;
use crate::session::{AbortCause, PendingAction, Status};
use crate::verdict::Actor;
use alloc::string::String;

impl State {
    /// The one emitter of aborted responses: stamps the row, closes the turn, keeps what was said.
    pub(super) fn mark_aborted(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        status: Status,
        cause: AbortCause,
        words: Option<String>,
    ) {
        // rule: AB-04, AB-05, AB-10, AB-13
        let now = cx.now;
        let recovery_on = self.policy.aborted_response_recovery();
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.turn = None;
        session.live.stop_asked = None;
        session.live.cards_waiting.clear();
        // rule: LD-11
        session.live.load_streak = 0;
        let own = session.live.stamped_before.take();
        if session.live.before_local.is_some() {
            // a local command died with its child: there is no reply to bring back
            self.as_before(cx, id, None);
            return;
        }
        let changes = session.live.builder.cut_off(now);
        let row = &session.row;
        let (turn, pending, row_status) = (row.turn.clone(), row.pending, row.status);
        self.show(cx, id, changes);
        let Some(turn) = turn else { return };
        let deliberate = matches!(row_status, Status::Paused | Status::Ended | Status::Archived);
        if deliberate {
            // rule: AB-09
            self.change(cx, id, Actor::Abort, "closed", close);
            return;
        }
        if pending.is_some_and(PendingAction::is_user_facing) {
            // rule: AB-07
            let to = (Status::NeedsYou, pending);
            self.enter(cx, id, Actor::Abort, "cut off under a card", to, |row| {
                if let Some(card) = &mut row.card {
                    card.orphaned = true;
                }
                close(row);
            });
            return;
        }
        if let Some((status, PendingAction::RecoveryFailed, at)) = own {
            // a turn that nobody asked for brought nothing: the row is given up as before it
            self.back_to_failed(cx, id, status, at);
            return;
        }
        if pending == Some(PendingAction::RecoveryFailed) && !turn.real_output {
            self.rung_failed(cx, id, status, Some(cause), words);
            return;
        }
        // rule: HD-14
        let silent_replay =
            turn.replay.is_some_and(|source| source.is_automatic()) && !turn.real_output;
        let stamped_at = own.map(|(.., at)| at).filter(|_| !turn.real_output);
        let to = (status, Some(PendingAction::ResponseAborted));
        self.enter(cx, id, Actor::Abort, cause.as_str(), to, |row| {
            if let Some(since) = row.hide_since.take().filter(|_| silent_replay).or(stamped_at) {
                row.status_changed_at = since;
            }
            row.abort_cause = Some(cause);
            row.words = words;
            row.delivered = false;
            close(row);
        });
        if cause == AbortCause::EmptyTurn {
            // rule: TE-06
            let text = if recovery_on {
                prompt::NOTE_RESUMING
            } else {
                prompt::NOTE_STOPPED_BEFORE_ANSWER
            };
            self.note(cx, id, text);
        }
    }
}
