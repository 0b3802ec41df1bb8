//! The start: the state is built from the rows, and crash recovery decides once about each (CR-01).

use super::lane::Lane;
use super::live::{Child, Live, Session};
use super::surface::Boot;
use super::{Cx, State};
use crate::context::ContextReading;
use crate::id::{Rng, SessionId};
use crate::load::Meter;
use crate::recovery::crash::{self, CrashVerdict};
use crate::session::{PendingAction, Status};
use crate::settings::Policy;
use crate::time::Wall;
use crate::verdict::Actor;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

impl State {
    pub(super) fn boot(&mut self, cx: &mut Cx, boot: Boot) {
        self.rng = Rng::new(boot.seed);
        self.policy = Policy { settings: boot.settings, switches: boot.switches };
        self.accounts = boot.accounts;
        self.os = boot.os;
        self.asks.clear();
        let mut queues: BTreeMap<SessionId, _> = boot.queues.into_iter().collect();
        let blocks: BTreeMap<SessionId, u64> = boot.block_counts.into_iter().collect();
        self.sessions = boot
            .rows
            .into_iter()
            .map(|row| {
                let id = row.id;
                let queue: VecDeque<_> = queues.remove(&id).unwrap_or_default().into();
                let last = blocks.get(&id).copied().unwrap_or_default();
                let since = row.turn_since.unwrap_or(row.status_changed_at);
                let mut live = Live::new(last, queue, since);
                live.context = ContextReading::remembered(row.context);
                (id, Session { row, live })
            })
            .collect();
        // children of a state that was lost to a panic are stopped before anything is launched
        for (id, launch) in boot.live {
            self.last_launch = self.last_launch.max(launch.0);
            if let Some(session) = self.session(id) {
                session.live.child = Child::Up { launch };
                self.stop_child(cx, id);
            }
        }
        // rule: SC-02
        self.scan.next_at = cx.now.mono.plus(self.limits.scan_boot_delay_ms);
        self.scan.open = None;
        self.load = Meter::default();
        self.lane = Lane::default();
        self.pulse_at = cx.now.mono.plus(self.limits.pulse_ms);
        self.liveness_at = cx.now.mono.plus(self.limits.liveness_ms);
        // they come back in the order in which they were made
        let mut ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        ids.sort_by_key(|id| (self.sessions.get(id).map(|session| session.row.created_at), *id));
        for id in ids {
            self.close_gates(cx, id, Actor::CrashRecovery);
            self.recover(cx, id);
            self.due_after_boot(cx, id);
            cx.touched.insert(id);
        }
    }

    /// A rung or a wake-up that is due already waits for the same moment as the first scan (SC-02).
    fn due_after_boot(&mut self, cx: &mut Cx, id: SessionId) {
        let first = self.scan.next_at;
        if let Some(session) = self.session(id) {
            let live = &mut session.live;
            for due in live.rung_at.iter_mut().chain(live.background.due.values_mut()) {
                *due = (*due).max(first);
            }
        }
        self.time_wait(cx.now, id, None);
    }

    /// Crash recovery brings it back in its turn, and not before its debounce is over.
    fn resume_later(&mut self, cx: &Cx, id: SessionId, not_before: Option<Wall>) {
        // rule: CR-05, CR-06
        let wait = not_before.map_or(0, |until| until.since(cx.now.wall).max(0));
        let free = cx.now.mono.plus(u64::try_from(wait).unwrap_or_default());
        let due = if wait == 0 {
            let turn = self.lane.next_resume(cx.now.mono, self.limits.spawn_gap_ms);
            self.take_place(cx.now.mono, id);
            turn
        } else {
            free
        };
        if let Some(session) = self.session(id) {
            session.live.resume_due = Some(due);
        }
    }

    pub(super) fn recover(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let queued = !session.live.queue.is_empty() || session.row.launch_request.is_some();
        let spoken = session.live.queue.front().is_some_and(|queued| !queued.local_command)
            || session.row.launch_request.is_some();
        let verdict = crash::decide(&session.row, queued, spoken, &self.limits, cx.now);
        self.wait_without_child(cx, id, Actor::CrashRecovery);
        match verdict {
            CrashVerdict::LeaveAlone => {
                self.change(cx, id, Actor::CrashRecovery, "closed", |row| {
                    row.turn = None;
                    row.child = None;
                    if let Some(card) = &mut row.card {
                        card.orphaned = true;
                    }
                });
                self.arm(cx, id);
            }
            CrashVerdict::StayStopped => {
                let at = self.sessions.get(&id).map(|session| session.row.status_changed_at);
                self.change(cx, id, Actor::CrashRecovery, "closed", |row| row.child = None);
                self.back_to_failed(cx, id, Status::NeedsYou, at.unwrap_or(cx.now.wall));
            }
            CrashVerdict::RungFailed => {
                self.change(cx, id, Actor::CrashRecovery, "closed", |row| row.child = None);
                self.rung_failed(cx, id, Status::NeedsYou, None, None);
            }
            CrashVerdict::KeepCard => {
                let pending = self.sessions.get(&id).and_then(|session| session.row.pending);
                let to = (Status::NeedsYou, pending);
                self.enter(cx, id, Actor::CrashRecovery, "the card stays", to, |row| {
                    row.turn = None;
                    row.child = None;
                    if let Some(card) = &mut row.card {
                        card.orphaned = true;
                    }
                });
            }
            CrashVerdict::Resume { not_before } => {
                let to = (Status::Starting, None);
                self.enter(cx, id, Actor::CrashRecovery, "crash-resume", to, |row| {
                    row.child = None;
                    row.card = None;
                    row.cannot_launch = false;
                });
                self.resume_later(cx, id, not_before);
            }
            CrashVerdict::Settle => {
                let to = (Status::NeedsYou, None);
                self.enter(cx, id, Actor::CrashRecovery, "the answer stands", to, |row| {
                    row.turn = None;
                    row.child = None;
                });
            }
            CrashVerdict::Suspend => {
                let to = (Status::Paused, Some(PendingAction::AppRestartSuspended));
                self.enter(cx, id, Actor::CrashRecovery, "nothing to resume", to, |row| {
                    row.turn = None;
                    row.child = None;
                    row.card = None;
                });
            }
        }
    }
}
