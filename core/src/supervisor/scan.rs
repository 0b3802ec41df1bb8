//! The 60-second scan: sole owner of its period, of the daily counter's charge and of the promotion
//! (SC-18). What it does with one row is decided in `recovery::aborted_scan`.

use super::asks::{AskFor, Looked};
use super::replaying::actor_of;
use super::{Answer, AskId, Question};
use super::{Cx, State};
use crate::id::SessionId;
use crate::recovery::aborted_scan::{ScanAct, ScanFacts, decide};
use crate::session::{PendingAction, Status, StopReason};
use crate::time::Mono;
use crate::verdict::{Actor, Source, Verdict};
use alloc::format;

/// The scan's own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    pub next_at: Mono,
    /// A tick that is not done yet; the next one is skipped (SC-22).
    pub open: Option<AskId>,
}

impl Default for Scan {
    fn default() -> Self {
        Scan { next_at: Mono(u64::MAX), open: None }
    }
}

impl State {
    /// One tick. With recovery off it does nothing, not even ask (SC-24).
    pub(super) fn scan_tick(&mut self, cx: &mut Cx) {
        // rule: SC-01, SC-22, SC-24
        let interval = self.limits.scan_interval_ms;
        while self.scan.next_at <= cx.now.mono {
            self.scan.next_at = self.scan.next_at.plus(interval);
        }
        if !self.policy.aborted_response_recovery() || self.quitting {
            return;
        }
        if self.scan.open.is_some_and(|ask| self.asks.contains_key(&ask)) {
            cx.log(None, "scan: the tick before is not done, this one is skipped");
            return;
        }
        // rule: SC-03
        let wait = self.limits.ask_ms;
        self.scan.open = Some(self.ask(cx, AskFor::Scan, Question::Stamped, wait));
    }

    /// The stamped rows are known: each is looked at for itself (SC-21).
    pub(super) fn scan_rows(&mut self, cx: &mut Cx, answer: Answer) {
        self.scan.open = None;
        let ids = match answer {
            Answer::Stamped { ids } => ids,
            Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::TakenOver { .. }
            | Answer::Handover { .. }
            | Answer::Failed { .. } => return,
        };
        for id in ids {
            self.scan_row(cx, id);
        }
    }

    fn scan_facts(&self, now: Mono, id: SessionId, looked: Option<&Looked>) -> Option<ScanFacts> {
        let session = self.sessions.get(&id)?;
        let replayable = session.row.replay.message.is_some() || session.row.turn_count > 0;
        Some(ScanFacts {
            folder_present: looked.map(|looked| looked.folder_present),
            held: looked.is_some_and(|looked| looked.holder.is_some()),
            replayable,
            restart_under_way: session.live.restart_under_way(),
            disposition_pending: session.live.ending.is_some(),
            since_restart: session.live.restarted_at.map(|at| now.since(at)),
        })
    }

    fn scan_row(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: SC-04, SC-17
        let Some(facts) = self.scan_facts(cx.now.mono, id, None) else {
            return;
        };
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        match decide(&session.row, facts, &self.policy, &self.limits, cx.now) {
            Verdict::Act(ScanAct::Probe) => {
                let Some(question) = self.transcript_question(id) else {
                    return;
                };
                let wait = self.limits.ask_ms;
                let ask = self.ask(cx, AskFor::ScanRow { session: id }, question, wait);
                if let Some(session) = self.session(id) {
                    session.live.probing = Some(ask);
                }
            }
            Verdict::Act(ScanAct::ClearDelivered) => self.clear_delivered(cx, id),
            // both need the transcript's answer and come with it
            Verdict::Act(ScanAct::Replay(_) | ScanAct::Promote(_)) => {}
            Verdict::Wait(why) => {
                self.decided(cx, id, Actor::AbortedScan, format!("wait: {why:?}"));
            }
            Verdict::NotMine(why) => {
                self.decided(cx, id, Actor::AbortedScan, format!("not mine: {why:?}"));
            }
            Verdict::GiveUp(why) => {
                self.decided(cx, id, Actor::AbortedScan, format!("give up: {why:?}"));
                self.promote(cx, id, Some(StopReason::NothingToReplay));
            }
        }
    }

    /// Folder and transcript of one row are known: the row is read again, then charged and replayed,
    /// or promoted, in one step.
    pub(super) fn scan_answered(&mut self, cx: &mut Cx, id: SessionId, answer: &Answer) {
        // rule: SC-11, SC-12, SC-14
        let Some(looked) = Self::facts_of(answer) else {
            self.decided(cx, id, Actor::AbortedScan, "wait: the folder could not be looked at");
            return;
        };
        let Some(facts) = self.scan_facts(cx.now.mono, id, Some(&looked)) else {
            return;
        };
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let verdict = decide(&session.row, facts, &self.policy, &self.limits, cx.now);
        let stamped = session.row.in_shape();
        if stamped {
            self.folder_seen(cx, id, looked.folder_present);
            self.held_seen(cx, id, looked.holder.clone());
        }
        match verdict {
            Verdict::Act(ScanAct::Replay(attempt)) => {
                self.change(cx, id, Actor::AbortedScan, "attempt charged", |row| {
                    row.retry_attempts = attempt.count;
                    row.retry_day = Some(attempt.day);
                    // rule: HD-14
                    row.hide_since = Some(row.status_changed_at);
                });
                self.replay(cx, id, Source::ResponseAborted, &looked.found);
            }
            Verdict::Act(ScanAct::Promote(attempt)) => {
                self.change(cx, id, Actor::AbortedScan, "attempts used up", |row| {
                    row.retry_attempts = attempt.count;
                    row.retry_day = Some(attempt.day);
                });
                self.promote(cx, id, None);
            }
            Verdict::Act(ScanAct::ClearDelivered) => self.clear_delivered(cx, id),
            Verdict::Act(ScanAct::Probe) => {}
            Verdict::Wait(why) | Verdict::NotMine(why) | Verdict::GiveUp(why) => {
                self.decided(cx, id, Actor::AbortedScan, format!("wait: {why:?}"));
            }
        }
    }

    /// `setRecoveryFailedPendingAction`: the only promotion. Status is kept; a row that left the shape
    /// is left alone (RF-10).
    pub(super) fn promote(&mut self, cx: &mut Cx, id: SessionId, stop: Option<StopReason>) {
        // rule: RF-01, RF-06, RF-10, DB-05
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        if !session.row.in_shape() {
            self.decided(cx, id, Actor::AbortedScan, "not promoted: the row left the shape");
            return;
        }
        let to = (session.row.status, Some(PendingAction::RecoveryFailed));
        if let Some(words) = session.row.words.clone() {
            // now that the row is red its transcript says what failed
            self.note(cx, id, &words);
        }
        self.enter(cx, id, actor_of(Source::ResponseAborted), "recovery failed", to, |row| {
            row.stop_reason = stop;
            row.hide_since = None;
            row.intent_running = false;
        });
    }

    /// `clearResponseAbortedPendingAction`: the last answer was delivered, it is never run again.
    fn clear_delivered(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: FM-17
        let to = (Status::NeedsYou, None);
        self.enter(cx, id, Actor::AbortedScan, "delivered: marker cleared", to, |row| {
            row.hide_since = None;
        });
    }
}
