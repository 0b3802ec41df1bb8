//! A child from spawn to death: handshake, refusal, exit, and the stop recipe that stands
//! before every new child of the same session (RP-01, RP-08).

use super::asks::LaunchFor;
use super::live::{Child, Delivery, Purpose};
use super::{Act, Control, LaunchId};
use super::{Cx, State};
use crate::id::SessionId;
use crate::launch::Conversation;
use crate::launch::classify::is_transient_spawn_error;
use crate::session::{AbortCause, ChildMark, PendingAction, Status};
use crate::stream::TurnResult;
use crate::turn_end::outcome::shorten;
use crate::verdict::Actor;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

impl State {
    /// Starts a child for this delivery; an old child is stopped and swept first.
    pub(super) fn launch(&mut self, cx: &mut Cx, id: SessionId, delivery: Delivery) {
        // rule: RP-01, RP-08
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.delivery = Some(delivery);
        session.live.resume_due = None;
        match session.live.child {
            Child::None => self.take_place(cx.now.mono, id),
            Child::Stopping { .. } => {}
            Child::Spawning { .. } | Child::Handshaking { .. } | Child::Up { .. } => {
                self.stop_child(cx, id);
            }
        }
    }

    pub(super) fn spawned(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        launch: LaunchId,
        child: ChildMark,
    ) {
        self.spawn_call_over(id, launch);
        let request = self.mint_request();
        let since = cx.now.mono;
        let current = self.session(id).map(|session| session.live.child.clone());
        match current {
            Some(Child::Spawning { launch: wanted, .. }) if wanted == launch => {}
            Some(Child::Stopping { launch: wanted, .. }) if wanted == launch => {
                self.change(cx, id, Actor::Launch, "child", |row| row.child = Some(child));
                return;
            }
            Some(
                Child::None
                | Child::Spawning { .. }
                | Child::Handshaking { .. }
                | Child::Up { .. }
                | Child::Stopping { .. },
            )
            | None => {
                cx.log(Some(id), format!("launch {} is no longer wanted: stopped", launch.0));
                cx.act(Act::Stop { session: id, launch });
                return;
            }
        }
        let mut relaunched = false;
        if let Some(session) = self.session(id) {
            session.live.child = Child::Handshaking { launch, request: request.clone(), since };
            relaunched = session.live.relaunch.is_some() && session.row.last_restart_at.is_some();
        }
        self.mark_crowd(since);
        self.change(cx, id, Actor::Launch, "child", |row| row.child = Some(child));
        if relaunched {
            // the debounce counts from when the restart came about, not from when it was first tried
            self.note_restart(cx, id, Actor::Relaunch);
        }
        cx.act(Act::Control { session: id, launch, control: Control::Initialize { request } });
    }

    pub(super) fn spawn_failed(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        launch: LaunchId,
        errno: Option<i32>,
        words: String,
    ) {
        self.spawn_call_over(id, launch);
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.child.launch() != Some(launch) {
            cx.log(Some(id), "a failed launch that is no longer wanted");
            return;
        }
        let stopping = matches!(session.live.child, Child::Stopping { .. });
        session.live.child = Child::None;
        if stopping {
            // it was to be stopped and never ran: go on as after the stop
            self.after_stop(cx, id);
            return;
        }
        let number = errno.map(|errno| format!(" (error {errno})")).unwrap_or_default();
        cx.log(Some(id), format!("launch failed{number}"));
        let purpose = session.live.delivery.as_ref().map(Delivery::launch_for);
        // rule: RS-07, RS-08, INV-60
        match purpose.filter(|_| is_transient_spawn_error(self.os, errno)) {
            Some(purpose) => self.relaunch_later(cx, id, purpose, &words),
            None => self.launch_failed(cx, id, &words),
        }
    }

    /// The spawn call came back: its slot is free.
    fn spawn_call_over(&mut self, id: SessionId, launch: LaunchId) {
        if let Some(session) = self.session(id) {
            session.live.spawn_call.take_if(|(call, _)| *call == launch);
        }
    }

    /// A launch that cannot succeed by itself: red, with the system's words (RS-07).
    pub(super) fn launch_failed(&mut self, cx: &mut Cx, id: SessionId, words: &str) {
        // rule: RS-07, UI-12
        let words = shorten(words);
        let mut rung = false;
        if let Some(session) = self.session(id) {
            session.live.drop_launch();
            // a copy is chosen for one launch: the next one asks again
            session.live.copy_held = false;
            rung = session.row.pending == Some(PendingAction::RecoveryFailed);
        }
        if rung {
            // the row stays red and its ladder goes on
            self.rung_failed(cx, id, Status::Error, None, Some(words));
            self.stop_child(cx, id);
            return;
        }
        self.enter(cx, id, Actor::Launch, "launch failed", (Status::Error, None), |row| {
            row.words = Some(words);
            row.intent_running = false;
            row.turn = None;
            row.hide_since = None;
        });
        self.stop_child(cx, id);
    }

    /// The handshake was answered: the launch has succeeded.
    pub(super) fn handshaken(&mut self, cx: &mut Cx, id: SessionId, launch: LaunchId) {
        // rule: A-02
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.child = Child::Up { launch };
        session.live.relaunch = None;
        if session.live.copy_held {
            // the copy runs: nobody else has it open
            (session.live.copy_held, session.live.held) = (false, None);
        }
        let Some(delivery) = session.live.delivery.take() else {
            return;
        };
        if let Conversation::Resume { .. } = delivery.conversation {
            self.crons_taken_over(id);
        }
        match delivery.purpose {
            Purpose::Queue { handover } => self.write_queued(cx, id, handover),
            Purpose::Replay { source, line } => self.write_replay(cx, id, source, line),
            Purpose::Bare => {
                let to = (Status::NeedsYou, None);
                self.enter(cx, id, Actor::RetryButton, "resumed without a message", to, |row| {
                    row.words = None;
                });
                self.send_if_free(cx, id);
            }
        }
    }

    /// A start that hangs is stopped and tried once more, then it is an error with its last words.
    pub(super) fn handshake_overdue(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: A-02
        let tries = self.limits.handshake_tries;
        let Some(session) = self.session(id) else {
            return;
        };
        let hung = match &mut session.live.delivery {
            Some(delivery) => {
                delivery.hung += 1;
                delivery.hung
            }
            None => tries,
        };
        if hung < tries {
            self.decided(cx, id, Actor::Launch, "no answer to the handshake: one more start");
            self.stop_child(cx, id);
            return;
        }
        let words = self.last_words(id, "The CLI started but never answered.");
        self.launch_failed(cx, id, &words);
    }

    pub(super) fn last_words(&self, id: SessionId, fallback: &str) -> String {
        let said = self.sessions.get(&id).and_then(|session| session.live.chatter.back());
        said.map_or_else(|| fallback.to_string(), |line| format!("{fallback} It said: {line}"))
    }

    pub(super) fn stop_child(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: A-03
        let deadline = cx.now.mono.plus(self.limits.stop_report_ms);
        let Some(session) = self.session(id) else {
            return;
        };
        let launch = match &session.live.child {
            Child::None | Child::Stopping { .. } => return,
            Child::Spawning { launch, .. }
            | Child::Handshaking { launch, .. }
            | Child::Up { launch } => *launch,
        };
        session.live.child = Child::Stopping { launch, deadline };
        session.live.eof_deadline = None;
        session.live.background.child_gone();
        cx.touched.insert(id);
        cx.act(Act::Stop { session: id, launch });
    }

    pub(super) fn stopped(&mut self, cx: &mut Cx, id: SessionId, launch: LaunchId, leftovers: u32) {
        let Some(session) = self.session(id) else {
            self.exit_when_done(cx);
            return;
        };
        session.live.spawn_call.take_if(|(call, _)| *call == launch);
        match session.live.child {
            Child::Stopping { launch: stopping, .. } if stopping == launch => {}
            Child::None
            | Child::Spawning { .. }
            | Child::Handshaking { .. }
            | Child::Up { .. }
            | Child::Stopping { .. } => {
                cx.log(Some(id), "a stop that is no longer waited for");
                return;
            }
        }
        if leftovers > 0 {
            cx.log(Some(id), format!("the sweep ended {leftovers} processes left behind"));
        }
        session.live.child = Child::None;
        self.change(cx, id, Actor::Launch, "child gone", |row| row.child = None);
        self.close_gates(cx, id, Actor::Launch);
        cx.touched.insert(id);
        self.after_stop(cx, id);
    }

    fn after_stop(&mut self, cx: &mut Cx, id: SessionId) {
        if self.quitting {
            self.exit_when_done(cx);
            return;
        }
        let Some(session) = self.session(id) else {
            return;
        };
        if let Some(source) = session.live.replay_after_stop.take() {
            self.ask_launch(cx, id, LaunchFor::Replay(source));
        } else if session.live.relaunch.as_ref().is_some_and(|relaunch| relaunch.due.is_some()) {
            // it lines up when its wait is over
        } else if session.live.delivery.is_some() && session.live.ending.is_none() {
            // a refused start whose reason is still being looked into starts nothing
            self.take_place(cx.now.mono, id);
        } else {
            self.look_again(cx, id);
            // a local command that died with its child leaves the rest of the queue free to go on
            self.send_if_free(cx, id);
        }
    }

    /// While quitting: once no child is left, the app may end.
    pub(super) fn exit_when_done(&mut self, cx: &mut Cx) {
        let gone = self.sessions.awake().all(|(_, session)| session.live.child == Child::None);
        if self.quitting && gone && !self.exited {
            self.exited = true;
            cx.act(Act::Exit);
        }
    }

    pub(super) fn chatter(&mut self, cx: &mut Cx, id: SessionId, launch: LaunchId, text: String) {
        // rule: A-01, SW-04, SW-05
        let max = self.limits.chatter_lines_max;
        let now = cx.now.mono;
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.child.launch() != Some(launch) {
            return;
        }
        if let Some(turn) = session.live.turn.as_mut().filter(|turn| !turn.real_output) {
            turn.last_sign = now;
        }
        if session.live.chatter.len() >= max {
            session.live.chatter.pop_front();
        }
        session.live.chatter.push_back(text);
    }

    pub(super) fn output_ended(&mut self, cx: &mut Cx, id: SessionId, launch: LaunchId) {
        let deadline = cx.now.mono.plus(self.limits.drain_ms);
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.child.launch() == Some(launch) {
            // the exit says more than the end of output: it is waited for a moment (AB-10)
            session.live.eof_deadline = Some(deadline);
        }
    }

    /// The output ended and the process stays (AB-02).
    pub(super) fn eof_overdue(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: AB-02
        if let Some(session) = self.session(id) {
            session.live.eof_deadline = None;
        }
        self.child_lost(cx, id, AbortCause::StreamEnd, "its output ended");
    }

    pub(super) fn exited(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        launch: LaunchId,
        code: Option<i32>,
        signal: Option<i32>,
    ) {
        let Some(session) = self.session(id) else {
            return;
        };
        match session.live.child {
            Child::Spawning { launch: l, .. }
            | Child::Handshaking { launch: l, .. }
            | Child::Up { launch: l }
                if l == launch => {}
            Child::None
            | Child::Spawning { .. }
            | Child::Handshaking { .. }
            | Child::Up { .. }
            | Child::Stopping { .. } => return,
        }
        let how = match (code, signal) {
            (_, Some(signal)) => format!("exited by signal {signal}"),
            (Some(code), None) => format!("exited with code {code}"),
            (None, None) => "exited".to_string(),
        };
        cx.log(Some(id), how.clone());
        self.child_lost(cx, id, AbortCause::ProcessExit, &how);
    }

    /// The child is of no use any more. An open turn is announced as aborted; a launch that was under
    /// way has failed; what the child left behind is swept.
    pub(super) fn child_lost(&mut self, cx: &mut Cx, id: SessionId, cause: AbortCause, how: &str) {
        // rule: AB-01
        if self.quitting {
            self.stop_child(cx, id);
            return;
        }
        let Some(session) = self.session(id) else {
            return;
        };
        let launching = match session.live.child {
            Child::Spawning { .. } | Child::Handshaking { .. } => true,
            Child::None | Child::Up { .. } | Child::Stopping { .. } => false,
        };
        let handshaking = matches!(session.live.child, Child::Handshaking { .. });
        let resumes = handshaking && session.live.fresh_resume;
        if launching && session.live.ending.is_some() {
            // a refused start has said why; its question is answered or runs out by itself
            self.stop_child(cx, id);
            return;
        }
        if launching {
            let words = self.last_words(id, &format!("The CLI {how} at its start."));
            if resumes {
                // refused without a result: the transcript tells whether the conversation is lost
                self.result(cx, id, Box::new(TurnResult::refused_start(words)));
                self.stop_child(cx, id);
                return;
            }
            self.launch_failed(cx, id, &words);
            return;
        }
        // a result was read: its own decision comes first
        self.conclude_pending(cx, id);
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.stop_asked.is_some() && session.live.turn.is_some() {
            // rule: AB-09
            self.finish_stop(cx, id);
            self.stop_child(cx, id);
            self.send_after_stop(cx, id);
            return;
        }
        if session.live.turn.is_some() {
            self.mark_aborted(cx, id, Status::Error, cause, None);
        }
        self.stop_child(cx, id);
        self.lose_waiting(cx, id);
    }

    /// What waits for the CLI outside a turn ends with the child.
    fn lose_waiting(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.cards_waiting.clear();
        let row = &session.row;
        let asked = row.pending.is_some_and(PendingAction::is_card);
        if asked && row.card.as_ref().is_some_and(|card| !card.orphaned) {
            self.change(cx, id, Actor::Launch, "the child behind the card is gone", |row| {
                if let Some(card) = &mut row.card {
                    card.orphaned = true;
                }
            });
        }
        self.wait_without_child(cx, id, Actor::Launch);
    }

    pub(super) fn write_failed(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        launch: LaunchId,
        words: &str,
    ) {
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.child.launch() != Some(launch) {
            return;
        }
        cx.log(Some(id), format!("a line could not be written: {}", shorten(words)));
        self.child_lost(cx, id, AbortCause::WriteFailed, "took no input");
    }
}
