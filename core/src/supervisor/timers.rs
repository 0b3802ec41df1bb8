//! Deadlines. The state keeps them, the shell sleeps until the earliest; after every input whatever
//! is due happens here, in a fixed order.

use super::live::{Child, Delivery, Session};

use super::{Act, AskId, Cx, State};
use crate::id::SessionId;
use crate::session::Status;
use crate::time::{Mono, Now};
use crate::verdict::{Actor, Source, Verdict};
use crate::watchdog::silence;
use alloc::format;
use alloc::vec::Vec;

/// What is due for one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Spawn,
    Handshake,
    StopReport,
    EndOfOutput,
    Interrupt,
    TurnEnd,
    Silence,
    Resume,
    Relaunch,
    CannotLaunch,
    Rung,
    Wait,
    Blocks,
}

impl State {
    /// When the state wants to be woken, and why. `None`: only an input changes anything.
    pub fn next_wakeup(&self, now: Now) -> Option<(Mono, &'static str)> {
        let mut earliest: Option<(Mono, &'static str)> = None;
        let mut offer = |at: Option<Mono>, why: &'static str| {
            if let Some(at) = at.filter(|at| earliest.is_none_or(|(known, _)| *at < known)) {
                earliest = Some((at, why));
            }
        };
        if !self.quitting {
            offer(Some(self.scan.next_at).filter(|at| *at < Mono(u64::MAX)), "scan");
        }
        offer(self.scan.valve_at, "escape valve");
        offer(Some(self.pulse_at).filter(|at| *at < Mono(u64::MAX)), "pulse");
        offer(Some(self.liveness_at).filter(|at| *at < Mono(u64::MAX)), "liveness");
        offer(self.lane.wake_at(), "launches");
        for asked in self.asks.values() {
            offer(Some(asked.deadline), "question");
        }
        let heavy = self.load.is_heavy(now.mono, &self.limits);
        self.debug_assert_rest(heavy);
        for (_, session) in self.sessions.awake() {
            for (at, due) in self.session_deadlines(session, heavy) {
                offer(Some(at), due.name());
            }
        }
        earliest
    }

    pub(super) fn session_deadlines(
        &self,
        session: &Session,
        heavy: bool,
    ) -> impl Iterator<Item = (Mono, Due)> + use<> {
        let live = &session.live;
        // rule: A-02
        let handshake = |since: Mono| {
            let busy = heavy || self.lane.was_crowded(since);
            if busy { self.limits.handshake_busy_ms } else { self.limits.handshake_ms }
        };
        let child = match &live.child {
            Child::Spawning { since, .. } => Some((since.plus(handshake(*since) * 2), Due::Spawn)),
            Child::Handshaking { since, .. } => {
                Some((since.plus(handshake(*since)), Due::Handshake))
            }
            Child::Stopping { deadline, .. } => Some((*deadline, Due::StopReport)),
            Child::None | Child::Up { .. } => None,
        };
        let stop = live.stop_asked.map(|asked| (asked.deadline, Due::Interrupt));
        let silence = live
            .turn
            .as_ref()
            .filter(|_| stop.is_none() && live.child.is_up())
            .and_then(|turn| silence::deadline(turn, &self.limits, heavy).ok())
            .map(|(at, _)| (at, Due::Silence));
        let relaunch = live.relaunch.as_ref();
        // rule: A-14
        let waits_since = relaunch.map(|relaunch| relaunch.since).or(live.placed_at);
        let telling = waits_since
            .filter(|_| !session.row.cannot_launch)
            .map(|since| (since.plus(self.limits.cannot_launch_ms), Due::CannotLaunch));
        [
            child,
            live.eof_deadline.map(|at| (at, Due::EndOfOutput)),
            stop,
            live.ending.as_ref().map(|ending| (ending.deadline, Due::TurnEnd)),
            silence,
            live.resume_due.map(|at| (at, Due::Resume)),
            relaunch.and_then(|relaunch| relaunch.due).map(|(at, _)| (at, Due::Relaunch)),
            telling,
            live.rung_at.map(|at| (at, Due::Rung)),
            live.background.look_at.map(|at| (at, Due::Wait)),
            live.builder.next_save(&self.limits).map(|at| (at, Due::Blocks)),
        ]
        .into_iter()
        .flatten()
    }

    /// Does what is due.
    pub(super) fn timers(&mut self, cx: &mut Cx) {
        let now = cx.now.mono;
        let overdue: Vec<AskId> = self
            .asks
            .iter()
            .filter(|(_, asked)| asked.deadline <= now)
            .map(|(ask, _)| *ask)
            .collect();
        for ask in overdue {
            self.ask_overdue(cx, ask);
        }
        let heavy = self.load.is_heavy(now, &self.limits);
        let due: Vec<(SessionId, Due)> = self
            .sessions
            .awake()
            .flat_map(|(id, session)| {
                self.session_deadlines(session, heavy)
                    .filter(|(at, _)| *at <= now)
                    .map(|(_, due)| (*id, due))
            })
            .collect();
        for (id, due) in due {
            self.do_due(cx, id, due);
        }
        if self.scan.next_at <= now {
            self.scan_tick(cx);
        }
        if self.scan.valve_at.is_some_and(|at| at <= now) {
            self.open_valve(cx);
        }
        if self.pulse_at <= now {
            self.pulse(cx);
        }
        if self.liveness_at <= now {
            self.liveness_tick(cx);
        }
        self.lay_down(cx.now, heavy);
    }

    fn do_due(&mut self, cx: &mut Cx, id: SessionId, due: Due) {
        match due {
            Due::Handshake => {
                let waiting = self
                    .sessions
                    .get(&id)
                    .is_some_and(|session| matches!(session.live.child, Child::Handshaking { .. }));
                if waiting {
                    self.handshake_overdue(cx, id);
                }
            }
            Due::Spawn => {
                let waiting = self
                    .sessions
                    .get(&id)
                    .is_some_and(|session| matches!(session.live.child, Child::Spawning { .. }));
                if waiting {
                    self.spawn_overdue(cx, id);
                }
            }
            Due::StopReport => self.stop_overdue(cx, id),
            Due::EndOfOutput => self.eof_overdue(cx, id),
            Due::Interrupt => self.interrupt_overdue(cx, id),
            Due::TurnEnd => self.conclude_pending(cx, id),
            Due::Silence => self.silence(cx, id),
            Due::Resume => self.resume_due(cx, id),
            Due::Relaunch => self.relaunch_due(cx, id),
            Due::CannotLaunch => self.cannot_launch(cx, id),
            Due::Rung => self.rung_due(cx, id),
            Due::Wait => self.wait_due(cx, id),
            Due::Blocks => {
                let (now, limits) = (cx.now, self.limits.clone());
                let Some(session) = self.session(id) else {
                    return;
                };
                let changes = session.live.builder.save_due(now, &limits);
                self.show(cx, id, changes);
            }
        }
    }

    /// The stop recipe did not report: it is asked for again. Nothing is spawned over a child that may
    /// still live; who waits for that is told.
    fn stop_overdue(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: RP-01
        let again = cx.now.mono.plus(self.limits.stop_report_ms);
        let quitting = self.quitting;
        let Some(session) = self.session(id) else {
            return;
        };
        let Child::Stopping { launch, deadline } = &mut session.live.child else {
            return;
        };
        let launch = *launch;
        *deadline = again;
        cx.log(Some(id), "the stop recipe did not report in time");
        if quitting {
            self.stopped(cx, id, launch, 0);
            return;
        }
        let live = &session.live;
        let waiting = live.delivery.is_some() || live.replay_after_stop.is_some();
        // who is relaunched waits on, and is told in its time
        let told = waiting && live.relaunch.is_none();
        cx.act(Act::Stop { session: id, launch });
        if told {
            session.live.replay_after_stop = None;
            self.launch_failed(cx, id, "The old CLI process does not end. Retry tries again.");
        }
    }

    /// The spawn was never answered: it is stopped, and the machine counts as too busy (RS-26).
    fn spawn_overdue(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: RS-26
        cx.log(Some(id), "the launch was not answered in time");
        let words = "The machine did not start the CLI in time.";
        let Some(session) = self.session(id) else {
            return;
        };
        let purpose = session.live.delivery.as_ref().map(Delivery::launch_for);
        self.stop_child(cx, id);
        match purpose {
            Some(purpose) => self.relaunch_later(cx, id, purpose, words),
            None => self.launch_failed(cx, id, words),
        }
    }

    /// The stall watchdog: the child goes, the row is stamped, nothing stays green (SW-07).
    fn silence(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: AB-03, SW-07
        let now = cx.now.mono;
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let Some(turn) = &session.live.turn else {
            return;
        };
        let silent = now.since(turn.last_sign);
        let heavy = self.load.is_heavy(now, &self.limits);
        match silence::verdict(turn, &self.limits, heavy, now) {
            Verdict::Act(cause) => {
                let text = format!("gave up after {silent} ms of silence");
                self.decided(cx, id, Actor::StallWatchdog, text);
                self.mark_aborted(cx, id, Status::NeedsYou, cause, None);
                self.stop_child(cx, id);
            }
            Verdict::Wait(_) | Verdict::NotMine(_) | Verdict::GiveUp(_) => {}
        }
    }

    fn resume_due(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.resume_due = None;
        let queue_only = !session.row.replay.is_open();
        let queued = !session.live.queue.is_empty();
        if queued && queue_only && session.row.turn.is_none() {
            self.note_restart(cx, id, Actor::CrashRecovery);
            self.ask_launch(cx, id, super::asks::LaunchFor::Queue);
        } else {
            self.ask_launch(cx, id, super::asks::LaunchFor::Replay(Source::CrashResume));
        }
    }

    /// Once a minute: counts that change by time alone, and the folders of rows that wait for theirs.
    fn pulse(&mut self, cx: &mut Cx) {
        // rule: NT-06, HD-17
        let pulse = self.limits.pulse_ms;
        while self.pulse_at <= cx.now.mono {
            self.pulse_at = self.pulse_at.plus(pulse);
        }
        self.recount(cx);
        let open = self.window.1;
        let asked: Vec<SessionId> = self
            .sessions
            .awake()
            .filter(|(id, session)| session.live.folder_missing && Some(**id) != open)
            .map(|(id, _)| *id)
            .chain(open.filter(|id| self.sessions.contains_key(id)))
            .collect();
        for id in asked {
            self.ask_folder(cx, id);
        }
    }

    /// The machine slept: nobody was silent of their own accord, every turn has its full time again.
    pub(super) fn slept(&mut self, cx: &mut Cx, millis: u64) {
        let now = cx.now.mono;
        cx.log(None, format!("the machine slept for {} s", millis / 1000));
        let interrupt = self.limits.interrupt_grace_ms;
        let stop_report = self.limits.stop_report_ms;
        for asked in self.asks.values_mut() {
            asked.deadline = asked.deadline.plus(millis);
        }
        self.lane.slept(now);
        let late: Vec<SessionId> = self.sessions.awake().map(|(id, _)| *id).collect();
        self.sessions.awake_mut(|_, session| {
            session.live.background.slept(now, millis);
            session.live.placed_at = session.live.placed_at.map(|at| at.plus(millis));
            if let Some(relaunch) = session.live.relaunch.as_mut() {
                relaunch.since = relaunch.since.plus(millis);
            }
            if let Some(turn) = session.live.turn.as_mut() {
                turn.last_sign = now;
                turn.began = now;
                // the CLI's own delay stood still too
                turn.retry_until = turn.retry_until.map(|at| at.plus(millis));
            }
            match &mut session.live.child {
                Child::Spawning { since, .. } | Child::Handshaking { since, .. } => *since = now,
                Child::Stopping { deadline, .. } => *deadline = now.plus(stop_report),
                Child::None | Child::Up { .. } => {}
            }
            if let Some(deadline) = session.live.eof_deadline.as_mut() {
                *deadline = deadline.plus(millis);
            }
            if let Some(ending) = session.live.ending.as_mut() {
                ending.deadline = ending.deadline.plus(millis);
            }
            if let Some(asked) = session.live.stop_asked.as_mut() {
                asked.deadline = now.plus(interrupt);
            }
        });
        for id in late {
            self.time_wait(cx.now, id, None);
        }
    }
}

impl Due {
    fn name(self) -> &'static str {
        match self {
            Due::Spawn => "spawn",
            Due::Handshake => "handshake",
            Due::StopReport => "stop report",
            Due::EndOfOutput => "end of output",
            Due::Interrupt => "interrupt",
            Due::TurnEnd => "turn end",
            Due::Silence => "silence",
            Due::Resume => "resume",
            Due::Relaunch => "relaunch",
            Due::CannotLaunch => "can't launch yet",
            Due::Rung => "re-arm",
            Due::Wait => "waiting hold",
            Due::Blocks => "blocks",
        }
    }
}
