//! The re-arm ladder's side of the reducer: entering `recovery_failed`, and each rung from its time to
//! its failure. What it does with one row is decided in `recovery::rearm_ladder`.

use super::asks::AskFor;
use super::looks::{Looked, facts_of};
use super::{Answer, Cx, State};
use crate::id::SessionId;
use crate::recovery::rearm_ladder::{LadderAct, after_failure, decide, gap};
use crate::session::{AbortCause, PendingAction, Status, StopReason};
use crate::time::{Mono, Now, Wall};
use crate::verdict::{Actor, Source, Verdict, Why};
use alloc::format;
use alloc::string::String;

/// A row that is given up: the status it keeps, and why nothing retries it, if so.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenUp {
    pub status: Status,
    pub stop: Option<StopReason>,
}

impl State {
    /// Enters `recovery_failed`, for the first time or again: the ladder goes on from where it stands
    /// or has stopped.
    pub(super) fn give_up(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        actor: Actor,
        reason: &str,
        GivenUp { status, stop }: GivenUp,
    ) {
        // rule: RF-01, RA-07, A-25
        let now = cx.now;
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        // what stopped it holds until a message, Retry or a concluded turn
        let stop = stop.or(session.row.stop_reason);
        let (ladder, stop) = after_failure(session.row.ladder.rungs, stop, &self.limits, now);
        let to = (status, Some(PendingAction::RecoveryFailed));
        self.enter(cx, id, actor, reason, to, |row| {
            row.ladder = ladder;
            row.stop_reason = stop;
            row.hide_since = None;
            row.intent_running = false;
            row.turn = None;
            row.card = None;
        });
        if let Some(stop) = stop {
            self.decided(cx, id, Actor::ReArm, format!("stopped: {}", stop.as_str()));
        }
        self.time_rung(now, id);
    }

    /// The rung's own timer follows the durable time. A wall clock that was stepped holds it no longer
    /// than the rung's own gap.
    pub(super) fn time_rung(&mut self, now: Now, id: SessionId) {
        // rule: RA-07
        let limits = &self.limits;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let row = &session.row;
        let given_up = row.pending == Some(PendingAction::RecoveryFailed);
        session.live.rung_at = row.ladder.due.filter(|_| given_up).map(|due| {
            let left = u64::try_from(due.since(now.wall)).unwrap_or_default();
            now.mono.plus(left.min(gap(row.ladder.rungs.saturating_add(1), limits)))
        });
    }

    /// A row that rests in `recovery_failed` without a stop and without a next rung gets one: after a
    /// Retry that could not begin, and for rows of an app that had no ladder.
    pub(super) fn arm(&mut self, cx: &mut Cx, id: SessionId) {
        let now = cx.now;
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let row = &session.row;
        let resting = match row.status {
            Status::NeedsYou | Status::Error | Status::Stalled => true,
            Status::Starting
            | Status::Running
            | Status::Waiting
            | Status::Paused
            | Status::Ended
            | Status::Archived => false,
        };
        let given_up = row.pending == Some(PendingAction::RecoveryFailed);
        if !resting || !given_up || row.stop_reason.is_some() {
            return;
        }
        if row.ladder.due.is_none() {
            let (ladder, stop) = after_failure(row.ladder.rungs, None, &self.limits, now);
            self.change(cx, id, Actor::ReArm, "armed", |row| {
                (row.ladder, row.stop_reason) = (ladder, stop);
            });
        }
        self.time_rung(now, id);
    }

    /// A rung's time has come.
    pub(super) fn rung_due(&mut self, cx: &mut Cx, id: SessionId) {
        if let Some(session) = self.session(id) {
            session.live.rung_at = None;
        }
        if self.quitting {
            return;
        }
        // rule: RA-12
        if !self.retire_pre_init_orphan(cx, id) {
            self.rung(cx, id, None);
        }
    }

    pub(super) fn rung_answered(&mut self, cx: &mut Cx, id: SessionId, answer: &Answer) {
        let Some(looked) = facts_of(answer) else {
            self.postpone(cx, id, &Why::AskPending);
            return;
        };
        self.looked(cx, id, &looked);
        self.rung(cx, id, Some(&looked));
    }

    fn rung(&mut self, cx: &mut Cx, id: SessionId, looked: Option<&Looked>) {
        let Some(facts) = self.row_facts(cx.now.mono, id, looked) else {
            return;
        };
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let status = session.row.status;
        match decide(&session.row, facts, &self.policy, &self.limits, cx.now) {
            Verdict::Act(LadderAct::Probe) => self.probe(cx, id, AskFor::Rung { session: id }),
            Verdict::Act(LadderAct::Rearm) => {
                if let Some(looked) = looked {
                    self.take_rung(cx, id, looked);
                }
            }
            Verdict::Wait(why) => self.postpone(cx, id, &why),
            // the switch may be turned on again within a tick
            Verdict::NotMine(why @ (Why::RecoveryOff | Why::TurnOpen)) => {
                self.postpone(cx, id, &why);
            }
            Verdict::NotMine(why) => {
                self.decided(cx, id, Actor::ReArm, format!("not mine: {why:?}"));
            }
            Verdict::GiveUp(why) => {
                // the hard cap follows from the rungs
                let stop = (why == Why::NothingToReplay).then_some(StopReason::NothingToReplay);
                self.give_up(cx, id, Actor::ReArm, "stopped", GivenUp { status, stop });
            }
        }
    }

    /// The rung is written down before anything is started: a crash cannot take it twice.
    fn take_rung(&mut self, cx: &mut Cx, id: SessionId, looked: &Looked) {
        // rule: RA-01, RA-14
        self.change(cx, id, Actor::ReArm, "rung taken", |row| {
            row.ladder.rungs = row.ladder.rungs.saturating_add(1);
            row.ladder.due = None;
        });
        let rungs = self.sessions.get(&id).map_or(0, |session| session.row.ladder.rungs);
        self.decided(cx, id, Actor::ReArm, format!("act: rung {rungs}"));
        self.replay(cx, id, Source::ReArm, &looked.found);
    }

    /// A due rung is held: it waits for the next service tick, or for the end of the debounce, and is
    /// not taken.
    fn postpone(&mut self, cx: &mut Cx, id: SessionId, why: &Why) {
        // rule: RA-10
        let now = cx.now;
        let at = if let Why::Debounced(until) = why {
            let left = u64::try_from(until.since(now.wall)).unwrap_or_default();
            now.mono.plus(left.clamp(1, self.limits.replay_debounce_ms))
        } else {
            self.next_tick(now.mono)
        };
        if let Some(session) = self.session(id) {
            session.live.rung_at = Some(at);
            cx.touched.insert(id);
        }
        self.decided(cx, id, Actor::ReArm, format!("wait: {why:?}"));
    }

    fn next_tick(&self, now: Mono) -> Mono {
        if self.scan.next_at > now && self.scan.next_at < Mono(u64::MAX) {
            self.scan.next_at
        } else {
            now.plus(self.limits.scan_interval_ms)
        }
    }

    /// A rung came to nothing before any real output: straight back to `recovery_failed`.
    pub(super) fn rung_failed(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        status: Status,
        cause: Option<AbortCause>,
        words: Option<String>,
    ) {
        // rule: RA-15
        self.change(cx, id, Actor::ReArm, "rung failed", |row| {
            row.abort_cause = cause.or(row.abort_cause);
            row.words = words;
            row.delivered = false;
        });
        let reason = cause.map_or("rung failed", AbortCause::as_str);
        self.give_up(cx, id, Actor::Abort, reason, GivenUp { status, stop: None });
    }

    /// A turn that began by itself on a given-up row was cut off: the row is as it was before that turn,
    /// its ladder and its stop untouched.
    pub(super) fn back_to_failed(&mut self, cx: &mut Cx, id: SessionId, status: Status, at: Wall) {
        // rule: INV-14
        let to = (status, Some(PendingAction::RecoveryFailed));
        // told when it was given up
        cx.before.insert(id, Some(to));
        self.enter(cx, id, Actor::Abort, "given up as before", to, |row| {
            row.status_changed_at = at;
            row.delivered = false;
            row.intent_running = false;
            row.turn = None;
        });
        self.arm(cx, id);
    }

    /// A rung could not begin after all: it is given back and waits for the next tick.
    pub(super) fn rung_put_off(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: RA-10
        let now = cx.now;
        let left = self.next_tick(now.mono).since(now.mono);
        let to = (Status::NeedsYou, Some(PendingAction::RecoveryFailed));
        self.enter(cx, id, Actor::ReArm, "rung put off", to, |row| {
            // none to give back: Retry has reset the ladder meanwhile, and it begins anew
            let given_back = row.ladder.rungs > 0;
            let due = Wall(now.wall.0.saturating_add_unsigned(left));
            row.ladder.rungs = row.ladder.rungs.saturating_sub(1);
            row.ladder.due = given_back.then_some(due);
            row.intent_running = false;
            row.turn = None;
        });
        self.arm(cx, id);
    }
}
