//! The 60-second scan: sole owner of its period, of the daily counter's charge and of the promotion
//! (SC-18). What it does with one row is decided in `recovery::aborted_scan`.

use super::asks::AskFor;
use super::ladder::GivenUp;
use super::looks::{Looked, facts_of};
use super::{Answer, AskId, Question, TranscriptFacts};
use super::{Cx, State};
use crate::id::SessionId;
use crate::recovery::aborted_scan::{ScanAct, decide};
use crate::recovery::attempts::{Attempt, increment_response_aborted_attempts};
use crate::recovery::guards::RowFacts;
use crate::session::{Status, StopReason};
use crate::time::{Mono, Wall};
use crate::verdict::{Actor, Source, Verdict, Why};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

/// The scan's own clock.
#[derive(Debug)]
pub(super) struct Scan {
    pub next_at: Mono,
    /// A tick that is not done yet; the next one is skipped (SC-22).
    pub open: Option<AskId>,
    /// Rows of this tick that load has deferred for too long.
    stranded: Vec<Stranded>,
    /// The escape valve opens for one of them then.
    pub valve_at: Option<Mono>,
    /// When it last opened.
    forced_at: Option<Mono>,
}

/// A row that load has deferred for more ticks than the valve's limit.
#[derive(Debug)]
struct Stranded {
    id: SessionId,
    streak: u32,
    since: Wall,
    looked: Looked,
}

impl Default for Scan {
    fn default() -> Self {
        Scan {
            next_at: Mono(u64::MAX),
            open: None,
            stranded: Vec::new(),
            valve_at: None,
            forced_at: None,
        }
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
        if self.quitting {
            return;
        }
        // before anything is asked about them: the worker that never came to life needs no folder
        self.retire_orphans(cx);
        let recovery_on = self.policy.aborted_response_recovery();
        if !recovery_on || !self.load.is_heavy(cx.now.mono, &self.limits) {
            self.end_streaks();
        }
        if !recovery_on {
            return;
        }
        if self.scan.open.is_some_and(|ask| self.asks.contains_key(&ask)) {
            cx.log(None, "scan: the tick before is not done, this one is skipped");
            return;
        }
        self.scan.stranded.clear();
        self.scan.valve_at = None;
        // rule: SC-03
        let wait = self.limits.ask_ms;
        self.scan.open = Some(self.ask(cx, AskFor::Scan, Question::Stamped, wait));
    }

    /// A tick that load defers for nobody, whatever becomes of its questions.
    fn end_streaks(&mut self) {
        // rule: LD-11
        self.sessions.awake_mut(|_, session| session.live.load_streak = 0);
    }

    /// The stamped rows are known: each is looked at for itself (SC-21).
    pub(super) fn scan_rows(&mut self, cx: &mut Cx, answer: Answer) {
        self.scan.open = None;
        let ids = match answer {
            Answer::Stamped { ids } => ids,
            Answer::Headroom(_)
            | Answer::Alive { .. }
            | Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::TakenOver { .. }
            | Answer::Handover(_)
            | Answer::Failed { .. } => return,
        };
        // rule: LD-11
        let stamped: BTreeSet<SessionId> = ids.iter().copied().collect();
        self.sessions.awake_mut(|id, session| {
            if !stamped.contains(&id) {
                session.live.load_streak = 0;
            }
        });
        for id in ids {
            self.scan_row(cx, id);
        }
    }

    /// What the guards of an automatic restart know of a row beside its durable facts.
    pub(super) fn row_facts(
        &self,
        now: Mono,
        id: SessionId,
        looked: Option<&Looked>,
    ) -> Option<RowFacts> {
        let session = self.sessions.get(&id)?;
        let row = &session.row;
        // rule: RP-09
        let settled = row.replay.answered || row.replay.stopped;
        let replayable = !settled && (row.replay.message.is_some() || row.turn_count > 0)
            || row.launch_request.is_some();
        let held = session.live.background.holds_restart(now, &self.limits);
        Some(RowFacts {
            folder_present: looked.map(|looked| looked.folder_present),
            held: looked.is_some_and(|looked| looked.holder.is_some()),
            // rule: RG-01
            gate: !session.row.gates.is_empty() || held,
            heavy: self.load.is_heavy(now, &self.limits),
            replayable,
            restart_under_way: session.live.restart_under_way(),
            disposition_pending: session.live.ending.is_some(),
            since_restart: session.live.restarted_at.map(|at| now.since(at)),
        })
    }

    pub(super) fn scan_row(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: SC-04, SC-17
        let Some(facts) = self.row_facts(cx.now.mono, id, None) else {
            return;
        };
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        match decide(&session.row, facts, false, &self.policy, &self.limits, cx.now) {
            Verdict::Act(ScanAct::Probe) => self.probe(cx, id, AskFor::ScanRow { session: id }),
            Verdict::Act(ScanAct::ClearDelivered) => self.clear_delivered(cx, id),
            // these need the transcript's answer and come with it
            Verdict::Act(ScanAct::Replay(_) | ScanAct::Force | ScanAct::Promote(_)) => {}
            Verdict::Wait(why) => self.not_scanned(cx, id, "wait", &why),
            Verdict::NotMine(why) => self.not_scanned(cx, id, "not mine", &why),
            Verdict::GiveUp(why) => {
                self.not_scanned(cx, id, "give up", &why);
                self.promote(cx, id, Some(StopReason::NothingToReplay));
            }
        }
    }

    /// The scan leaves a row for now, and says why. A tick that load has not deferred ends the streak.
    fn not_scanned(&mut self, cx: &mut Cx, id: SessionId, what: &str, why: &Why) {
        // rule: LD-11
        if let Some(session) = self.session(id) {
            session.live.load_streak = 0;
        }
        self.decided(cx, id, Actor::AbortedScan, format!("{what}: {why:?}"));
    }

    /// Folder and transcript of one row are known: the row is read again, then charged and replayed,
    /// or promoted, in one step.
    pub(super) fn scan_answered(&mut self, cx: &mut Cx, id: SessionId, answer: &Answer) {
        // rule: SC-11, SC-12, SC-14
        let Some(looked) = facts_of(answer) else {
            self.decided(cx, id, Actor::AbortedScan, "wait: the folder could not be looked at");
            return;
        };
        let Some(facts) = self.row_facts(cx.now.mono, id, Some(&looked)) else {
            return;
        };
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let verdict = decide(&session.row, facts, false, &self.policy, &self.limits, cx.now);
        if session.row.in_shape() {
            self.looked(cx, id, &looked);
        }
        match verdict {
            Verdict::Act(ScanAct::Replay(attempt)) => {
                self.charge(cx, id, attempt, "attempt charged");
                self.scan_replay(cx, id, true, &looked.found);
            }
            Verdict::Act(ScanAct::Promote(attempt)) => {
                self.charge(cx, id, attempt, "attempts used up");
                self.promote(cx, id, None);
            }
            Verdict::Act(ScanAct::ClearDelivered) => self.clear_delivered(cx, id),
            Verdict::Act(ScanAct::Probe | ScanAct::Force) => {}
            Verdict::Wait(Why::MachineBusy) => self.deferred_by_load(cx, id, looked),
            Verdict::Wait(why) | Verdict::NotMine(why) | Verdict::GiveUp(why) => {
                self.not_scanned(cx, id, "wait", &why);
            }
        }
    }

    /// The only charge of the daily counter, in the same guarded write step as what it is charged for.
    fn charge(&mut self, cx: &mut Cx, id: SessionId, attempt: Attempt, reason: &str) {
        // rule: SC-11, SC-18, CT-03
        self.change(cx, id, Actor::AbortedScan, reason, |row| {
            increment_response_aborted_attempts(row, attempt);
        });
    }

    fn scan_replay(&mut self, cx: &mut Cx, id: SessionId, charged: bool, found: &TranscriptFacts) {
        if let Some(session) = self.session(id) {
            session.live.charged = charged;
            session.live.load_streak = 0;
        }
        // rule: HD-14
        self.change(cx, id, Actor::AbortedScan, "hide clock kept", |row| {
            row.hide_since = Some(row.status_changed_at);
        });
        self.replay(cx, id, Source::ResponseAborted, found);
    }

    /// Load deferred the row in this tick: nothing is charged, but it is not forgotten.
    fn deferred_by_load(&mut self, cx: &mut Cx, id: SessionId, looked: Looked) {
        // rule: LD-04, LD-05, LD-07
        let limit = self.limits.escape_valve_ticks;
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.load_streak = session.live.load_streak.saturating_add(1);
        let (streak, since) = (session.live.load_streak, session.row.status_changed_at);
        if streak > limit {
            self.scan.stranded.push(Stranded { id, streak, since, looked });
        }
        self.decided(cx, id, Actor::AbortedScan, format!("wait: MachineBusy, tick {streak}"));
    }

    /// Once every row of the tick is known the valve may open, at most once a minute.
    pub(super) fn valve_if_known(&mut self, cx: &Cx) {
        // rule: LD-08
        let open = self.asks.values().any(|asked| match &asked.what {
            AskFor::Scan | AskFor::ScanRow { .. } => true,
            AskFor::Launch { .. }
            | AskFor::Respawn { .. }
            | AskFor::Headroom
            | AskFor::Alive { .. }
            | AskFor::Handover { .. }
            | AskFor::Rung { .. }
            | AskFor::TurnEnd { .. }
            | AskFor::Folder { .. }
            | AskFor::TakeOver { .. }
            | AskFor::SwitchModel { .. }
            | AskFor::Fork { .. } => false,
        });
        if !open && !self.scan.stranded.is_empty() {
            let interval = self.limits.scan_interval_ms;
            let paced = self.scan.forced_at.map(|at| at.plus(interval));
            self.scan.valve_at = Some(paced.map_or(cx.now.mono, |at| at.max(cx.now.mono)));
        }
    }

    /// The escape valve: one stranded row is replayed although the machine is saturated, the longest
    /// streak first, then the oldest. Nothing is charged and nothing promoted.
    pub(super) fn open_valve(&mut self, cx: &mut Cx) {
        // rule: LD-07, LD-08, LD-09, LD-10
        self.scan.valve_at = None;
        let mut stranded = core::mem::take(&mut self.scan.stranded);
        if self.quitting {
            return;
        }
        stranded.sort_by_key(|row| (core::cmp::Reverse(row.streak), row.since, row.id));
        for Stranded { id, streak, looked, .. } in stranded {
            let Some(facts) = self.row_facts(cx.now.mono, id, Some(&looked)) else {
                continue;
            };
            let Some(session) = self.sessions.get(&id) else {
                continue;
            };
            match decide(&session.row, facts, true, &self.policy, &self.limits, cx.now) {
                Verdict::Act(ScanAct::Force) => {
                    self.scan.forced_at = Some(cx.now.mono);
                    let text = format!("act: forced replay after {streak} busy ticks");
                    self.decided(cx, id, Actor::AbortedScan, text);
                    self.scan_replay(cx, id, false, &looked.found);
                    return;
                }
                // the load eased or the row changed: the next tick decides
                Verdict::Act(
                    ScanAct::Replay(_)
                    | ScanAct::Promote(_)
                    | ScanAct::Probe
                    | ScanAct::ClearDelivered,
                ) => {}
                Verdict::Wait(why) | Verdict::NotMine(why) | Verdict::GiveUp(why) => {
                    self.decided(cx, id, Actor::AbortedScan, format!("valve: {why:?}"));
                }
            }
        }
    }

    /// `setRecoveryFailedPendingAction`: the scan's promotion. Status is kept; a row that left the shape
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
        let status = session.row.status;
        if let Some(words) = session.row.words.clone() {
            // now that the row is red its transcript says what failed
            self.note(cx, id, &words);
        }
        self.give_up(cx, id, Actor::AbortedScan, "recovery failed", GivenUp { status, stop });
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
