//! Fork: a session that was given up at a full context goes on in a new one, a copy of its conversation as
//! the last good turn left it. Nothing is sent and nothing started before the person says something there.

use super::asks::{AskFor, unreadable};
use super::commands::{error, not_found};
use super::live::{Delivery, Live, Session};
use super::{Act, Answer, Cx, Question, ReplyTo, State, change, view};
use crate::attention::{RowState, attention};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use crate::prompt;
use crate::recovery::fork::{copy_of, fork_point, forked};
use crate::session::{ForkPoint, SessionRow};
use crate::time::Now;
use crate::verdict::Actor;
use alloc::collections::VecDeque;

impl State {
    pub(super) fn fork(&mut self, cx: &mut Cx, id: SessionId, to: ReplyTo) {
        if let Err(wrong) = self.may_fork(id, cx.now) {
            cx.act(Act::Reply { to, reply: Err(wrong) });
            return;
        }
        let wait = self.limits.ask_ms;
        let what = AskFor::Fork { session: id, reply: to };
        self.ask(cx, what, Question::Handover { session: id }, wait);
    }

    pub(super) fn fork_answered(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        to: ReplyTo,
        answer: Answer,
    ) {
        let made = answer.handover().map_err(unreadable).and_then(|said| {
            let made = self.create_fork(cx, id);
            made.map(|session| Reply::Forked { session, draft: said.unanswered })
        });
        cx.act(Act::Reply { to, reply: made });
    }

    fn create_fork(&mut self, cx: &mut Cx, id: SessionId) -> Result<SessionId, IpcError> {
        // rule: CS-15
        let (old, point) = self.may_fork(id, cx.now).map(|(old, point)| (old.clone(), point))?;
        let ids = (self.rng.uuid(), self.rng.uuid());
        let row = forked(&old, point, ids, cx.now.wall);
        let (id, since, called) = (row.id, row.created_at, change::alert(&row));
        let session = Session { row, live: Live::new(0, VecDeque::new(), since) };
        change::insert(cx, &session, Actor::User, "forked");
        // the person has just asked for it: nobody is called to it
        cx.before.insert(id, called);
        self.sessions.insert(id, session);
        self.note(cx, id, &prompt::note_copy(&old.title));
        Ok(id)
    }

    /// The CLI cannot cut the original where the copy begins: the copy holds all of it.
    pub(super) fn copy_uncut(&mut self, cx: &mut Cx, id: SessionId, delivery: Delivery) {
        let new = self.rng.uuid();
        let point = self.sessions.get(&id).and_then(|session| session.row.fork_of);
        let Some(ForkPoint { from, .. }) = point else {
            return;
        };
        let point = ForkPoint { from, at: None };
        self.change(cx, id, Actor::Launch, "a copy without a cut", |row| {
            (row.fork_of, row.last_good_assistant) = (Some(point), None);
        });
        self.note(cx, id, prompt::NOTE_COPY_UNCUT);
        let conversation = copy_of(point, new);
        self.launch(cx, id, Delivery { conversation, hung: 0, ..delivery });
    }

    fn may_fork(&self, id: SessionId, now: Now) -> Result<(&SessionRow, ForkPoint), IpcError> {
        self.known(id)?;
        let session = self.sessions.get(&id).ok_or_else(not_found)?;
        let seen = attention(&view(session), &self.policy, &self.limits, now);
        if seen.state != RowState::ContextGivenUp {
            let message = "The session does not wait at a full context any more.";
            return Err(error(IpcCode::NotEligible, message));
        }
        let point = fork_point(&session.row).ok_or_else(|| {
            let message = "No turn of this session was ever answered, so there is nothing to \
                           copy. Start a fresh session.";
            error(IpcCode::NotEligible, message)
        })?;
        Ok((&session.row, point))
    }
}
