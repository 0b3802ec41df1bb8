//! The end of a turn that waits for a fact: bounded in time, and decided without it by whatever cannot
//! wait (principle 2).

use super::asks::AskFor;
use super::live::{Awaits, Delivery, PendingEnd, Purpose};
use super::replaying::actor_of;
use super::{AskId, Cx, Question, State};
use crate::id::{SessionId, Uuid};
use crate::launch::Conversation;
use crate::message::{LineText, Origin, UserLine};
use crate::prompt;
use crate::recovery::fork::copy_of;
use crate::recovery::replay_plan::{Minted, resume_id};
use crate::stream::TurnResult;
use crate::turn_end::Frozen;
use crate::turn_end::outcome::{Context, classify};
use alloc::boxed::Box;
use alloc::string::ToString;

impl State {
    /// A refused resume may mean that the CLI lost the conversation: the transcript tells.
    pub(super) fn ask_whether_gone(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        result: &TurnResult,
    ) -> bool {
        let Some(session) = self.sessions.get(&id) else {
            return false;
        };
        let delivery = session.live.delivery.as_ref();
        // of a copy its original is asked about: it has no file of its own yet
        let original = delivery.and_then(|delivery| match delivery.conversation {
            Conversation::Fork { from, .. } => Some(from),
            Conversation::New { .. } | Conversation::Resume { .. } => None,
        });
        let Some(cli_session) = original.or(resume_id(&session.row)) else {
            return false;
        };
        let question = Question::Transcript {
            folder: session.row.folder.clone(),
            account: session.row.account.clone(),
            cli_session: Some(cli_session),
            copied_from: None,
            uuids: self.cut_at(id).into_iter().collect(),
        };
        let wait = self.limits.turn_end_ask_ms;
        let ask = self.ask(cx, AskFor::TurnEnd { session: id }, question, wait);
        let deadline = cx.now.mono.plus(wait);
        if let Some(session) = self.session(id) {
            let (frozen, result) = (frozen.clone(), Box::new(result.clone()));
            let awaits = Awaits::Transcript(ask);
            session.live.ending = Some(PendingEnd { frozen, result, awaits, deadline });
        }
        true
    }

    /// The line after which the copy that is being launched is cut: a file that has lost it is, for
    /// this launch, a conversation that is gone.
    pub(super) fn cut_at(&self, id: SessionId) -> Option<Uuid> {
        // rule: A-04
        match self.sessions.get(&id)?.live.delivery.as_ref()?.conversation {
            Conversation::Fork { at, .. } => at,
            Conversation::New { .. } | Conversation::Resume { .. } => None,
        }
    }

    /// The answer to the question of a pending end about the transcript.
    pub(super) fn turn_end_answered(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        ask: AskId,
        exists: Option<bool>,
    ) {
        let Some(session) = self.session(id) else {
            return;
        };
        let ours = |ending: &mut PendingEnd| ending.awaits == Awaits::Transcript(ask);
        let Some(mut ending) = session.live.ending.take_if(ours) else {
            return;
        };
        self.asks.remove(&ask);
        if exists == Some(true) && self.cut_refused(cx, id, &ending.result) {
            return;
        }
        let Some(session) = self.session(id) else {
            return;
        };
        let context = Context {
            stop_asked: session.live.stop_asked.is_some(),
            fresh_resume: session.live.fresh_resume,
            transcript_exists: exists,
            ..Context::default()
        };
        let context = self.with_account(id, context);
        ending.frozen.outcome = classify(&ending.result, &ending.frozen.turn, context);
        self.conclude(cx, id, ending.frozen, &ending.result);
    }

    /// A conversation that was compacted since can no longer be cut at its last good turn: what was to begin
    /// there goes on without a cut. False where the CLI refused something else.
    fn cut_refused(&mut self, cx: &mut Cx, id: SessionId, result: &TurnResult) -> bool {
        // rule: A-04
        let Some(at) = self.cut_at(id) else {
            return false;
        };
        let Minted { conversation: new, uuid } = self.mint();
        let Some(session) = self.session(id) else {
            return false;
        };
        // the line that it cannot find is named as we named it
        let named = at.to_string();
        let named = result.errors.iter().any(|words| words.contains(&named));
        let Some(delivery) = session.live.delivery.take_if(|_| named) else {
            return false;
        };
        let original = session.row.fork_of.map(|point| copy_of(point, delivery.conversation.id()));
        if original == Some(delivery.conversation) {
            self.copy_uncut(cx, id, delivery);
            return true;
        }
        let (Conversation::Fork { from, .. }, Purpose::Replay { source, .. }) =
            (delivery.conversation, &delivery.purpose)
        else {
            session.live.delivery = Some(delivery);
            return false;
        };
        // the message stands in it: it is not sent again, now or later
        let source = *source;
        let actor = actor_of(source);
        self.change(cx, id, actor, "cannot be cut", |row| row.replay.carries_unanswered = true);
        let conversation = Conversation::Fork { from, id: new, at: None };
        let text = LineText::Own(prompt::CONTINUE_CUT_OFF.into());
        let line = UserLine { uuid, origin: Origin::Replay, text };
        let purpose = Purpose::Replay { source, line };
        self.launch(cx, id, Delivery { conversation, purpose, hung: 0 });
        true
    }

    /// Something came that cannot wait, or the time is over: a pending end is decided without its
    /// answer.
    pub(super) fn conclude_pending(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(ending) = session.live.ending.take() else {
            return;
        };
        if let Awaits::Transcript(ask) = ending.awaits {
            self.asks.remove(&ask);
        }
        self.conclude(cx, id, ending.frozen, &ending.result);
    }
}
