//! One writer per conversation on the whole machine: a conversation that another program has
//! open is not resumed. The row says where it is open; the person may take it over or go on in a copy.

use super::asks::{AskFor, LaunchFor};
use super::commands::{error, not_found};
use super::{Act, Question, ReplyTo};
use super::{Cx, State, view};
use crate::attention::{Pill, attention};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use crate::launch::Conversation;
use crate::recovery::replay_plan::resume_id;
use crate::session::{ChildMark, Holder};
use crate::verdict::{Actor, Source};

impl State {
    /// What a look found of other programs on this conversation.
    pub(super) fn held_seen(&mut self, cx: &mut Cx, id: SessionId, holder: Option<Holder>) {
        // rule: A-12
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.held == holder {
            return;
        }
        session.live.held = holder;
        // a copy was chosen for the program that was seen then
        session.live.copy_held = false;
        cx.touched.insert(id);
    }

    /// Whether a launch must not go on: the conversation is held and the person chose no copy.
    pub(super) fn held_back(&self, id: SessionId) -> bool {
        self.sessions
            .get(&id)
            .is_some_and(|session| session.live.held.is_some() && !session.live.copy_held)
    }

    /// A resume of a held conversation becomes a copy of it, as the person chose.
    pub(super) fn copied_if_held(
        &mut self,
        id: SessionId,
        conversation: Conversation,
    ) -> Conversation {
        // the choice holds until the copy runs, however often its launch is tried
        let copy = self
            .session(id)
            .is_some_and(|session| session.live.copy_held && session.live.held.is_some());
        match conversation {
            Conversation::Resume { id: from } if copy => {
                Conversation::Fork { from, id: self.rng.uuid(), at: None }
            }
            Conversation::Resume { .. } | Conversation::New { .. } | Conversation::Fork { .. } => {
                conversation
            }
        }
    }

    pub(super) fn take_over(&mut self, cx: &mut Cx, id: SessionId, shown: ChildMark, to: ReplyTo) {
        let asked = self.held_by(id).and_then(|holder| {
            if holder.mark() != shown {
                let message = "Another program has it open by now. Look which one, then try again.";
                return Err(error(IpcCode::NotEligible, message));
            }
            let row = self.known(id)?;
            let cli_session = resume_id(row).ok_or_else(not_held)?;
            Ok(Question::TakeOver { cli_session, copied_from: row.cli_session_before, holder })
        });
        match asked {
            Ok(question) => {
                self.decided(cx, id, Actor::User, "take over");
                // the other program is given its grace before anybody gives up on it
                let wait = self.limits.term_grace_ms + self.limits.ask_ms;
                self.ask(cx, AskFor::TakeOver { session: id, reply: to }, question, wait);
            }
            Err(wrong) => cx.act(Act::Reply { to, reply: Err(wrong) }),
        }
    }

    pub(super) fn taken_over(&mut self, cx: &mut Cx, id: SessionId, to: ReplyTo, gone: bool) {
        let reply = if gone {
            self.held_seen(cx, id, None);
            self.go_on(cx, id)
        } else {
            let message = "The other program did not end. Close it there, or go on in a copy.";
            Err(error(IpcCode::NotEligible, message))
        };
        cx.act(Act::Reply { to, reply });
    }

    pub(super) fn fork_held(&mut self, cx: &mut Cx, id: SessionId) -> Result<Reply, IpcError> {
        self.held_by(id)?;
        if let Some(session) = self.session(id) {
            session.live.copy_held = true;
        }
        self.decided(cx, id, Actor::User, "go on in a copy");
        self.go_on(cx, id)
    }

    fn held_by(&self, id: SessionId) -> Result<Holder, IpcError> {
        self.known(id)?;
        let session = self.sessions.get(&id).ok_or_else(not_found)?;
        session.live.held.clone().ok_or_else(not_held)
    }

    /// The way is free: what the row's button does happens. A reply that comes back by itself comes
    /// back now, for the person has just said so.
    fn go_on(&mut self, cx: &mut Cx, id: SessionId) -> Result<Reply, IpcError> {
        self.known(id)?;
        let session = self.sessions.get(&id).ok_or_else(not_found)?;
        if self.quitting || session.live.restart_under_way() {
            return Ok(Reply::Done);
        }
        match attention(&view(session), &self.policy, &self.limits, cx.now).pill {
            Some(Pill::Continue) => self.continue_session(cx, id),
            Some(Pill::Retry) => self.force_restart(cx, id),
            None if session.row.in_shape() => {
                self.ask_launch(cx, id, LaunchFor::Replay(Source::RetryButton));
                Ok(Reply::Done)
            }
            None => Ok(Reply::Done),
        }
    }
}

fn not_held() -> IpcError {
    error(IpcCode::NotEligible, "No other program has this conversation open any more.")
}
