//! The liveness watchdog's side of the reducer: once a minute one question about all children. What
//! counts as lost is decided in `watchdog::liveness`.

use super::asks::AskFor;
use super::live::{Child, Session};
use super::{Answer, Cx, Question, State};
use crate::id::SessionId;
use crate::session::{AbortCause, ChildMark, Status};
use crate::verdict::{Actor, Verdict};
use crate::watchdog::liveness::{LivenessFacts, verdict};
use alloc::format;
use alloc::vec::Vec;

impl State {
    /// One look: at every child by its process, at once at sessions that work without one.
    pub(super) fn liveness_tick(&mut self, cx: &mut Cx) {
        // rule: LV-01
        while self.liveness_at <= cx.now.mono {
            self.liveness_at = self.liveness_at.plus(self.limits.liveness_ms);
        }
        if self.quitting {
            return;
        }
        let children: Vec<(SessionId, ChildMark)> = self
            .sessions
            .awake()
            .filter(|(_, session)| runs(session))
            .filter_map(|(id, session)| Some((*id, session.row.child?)))
            .collect();
        if !children.is_empty() {
            let what = AskFor::Alive { children: children.clone() };
            let wait = self.limits.ask_ms;
            self.ask(cx, what, Question::Alive { children }, wait);
        }
        let childless: Vec<SessionId> = self
            .sessions
            .awake()
            .filter(|(_, session)| session.live.child == Child::None)
            .map(|(id, _)| *id)
            .collect();
        for id in childless {
            let gone = self.sessions.get(&id).is_some_and(|session| session.row.is_at_work());
            self.seen_gone(cx, id, gone);
        }
    }

    pub(super) fn alive_answered(
        &mut self,
        cx: &mut Cx,
        children: &[(SessionId, ChildMark)],
        answer: &Answer,
    ) {
        let gone = match answer {
            Answer::Alive { gone } => gone,
            Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::TakenOver { .. }
            | Answer::Stamped { .. }
            | Answer::Headroom(_)
            | Answer::Handover(_)
            | Answer::Failed { .. } => return,
        };
        if !gone.is_empty() {
            // an exit that is on its way has come by then
            let again = cx.now.mono.plus(self.limits.liveness_again_ms);
            self.liveness_at = self.liveness_at.min(again);
        }
        for (id, child) in children {
            let same = self
                .sessions
                .get(id)
                .is_some_and(|session| runs(session) && session.row.child == Some(*child));
            if same {
                self.seen_gone(cx, *id, gone.contains(id));
            }
        }
    }

    /// What one look found of one session.
    fn seen_gone(&mut self, cx: &mut Cx, id: SessionId, gone: bool) {
        // rule: LV-01, LV-02
        let now = cx.now.mono;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let live = &mut session.live;
        // what it wrote before it went may still be on its way
        let spoke = live.turn.as_ref().map(|turn| turn.last_sign);
        let before = live.gone_at.filter(|at| spoke.is_none_or(|spoke| spoke <= *at));
        live.gone_at = gone.then(|| before.unwrap_or(now));
        let facts = LivenessFacts {
            gone,
            gone_before: before.is_some(),
            spawn_retry_pending: live.relaunch.is_some(),
            launch_under_way: live.child == Child::None && live.restart_under_way(),
            disposition_pending: live.ending.is_some(),
            stopping: matches!(live.child, Child::Stopping { .. }),
        };
        match verdict(facts) {
            Verdict::Act(()) => self.lost(cx, id),
            Verdict::Wait(why) => {
                self.decided(cx, id, Actor::LivenessWatchdog, format!("wait: {why:?}"));
            }
            // the ordinary case, once a minute for every session
            Verdict::NotMine(_) | Verdict::GiveUp(_) => {}
        }
    }

    fn lost(&mut self, cx: &mut Cx, id: SessionId) {
        self.decided(cx, id, Actor::LivenessWatchdog, "act: its process is gone");
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.live.gone_at = None;
        if session.live.child != Child::None {
            self.child_lost(cx, id, AbortCause::ProcessExit, "is gone");
        } else if session.live.turn.is_some() {
            self.mark_aborted(cx, id, Status::Error, AbortCause::ProcessExit, None);
        } else {
            self.launch_failed(cx, id, "The CLI of this session is gone.");
        }
    }
}

/// A child is there that answers for itself.
fn runs(session: &Session) -> bool {
    match session.live.child {
        Child::Handshaking { .. } | Child::Up { .. } => true,
        Child::None | Child::Spawning { .. } | Child::Stopping { .. } => false,
    }
}
