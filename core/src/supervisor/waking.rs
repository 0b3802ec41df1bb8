//! Wake-ups: kept when they are set, let go when the CLI fires them, sent by the app when the child
//! that would have done it is gone. Who fires one is decided in [`crate::waiting`].

use super::live::Child;
use super::{Cx, State};
use crate::block::BlockKind;
use crate::id::SessionId;
use crate::message::{Origin, Queued};
use crate::prompt;
use crate::recovery::guards::{RowFacts, debounce_left};
use crate::session::Status;
use crate::time::{Mono, Now};
use crate::verdict::{Actor, Verdict, Why};
use crate::waiting::{self, Wake, WakeFacts, wake_due};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl State {
    /// A wake-up was set: its time is kept, whatever becomes of the child.
    pub(super) fn keep_wake(&mut self, cx: &mut Cx, id: SessionId, wake: Wake) {
        let ahead = wake.at.map_or(0, |at| at.since(cx.now.wall));
        let (limit, max) = (self.limits.wake_max_ms, self.limits.wakes_max);
        if u64::try_from(ahead).is_ok_and(|ahead| ahead > limit) {
            cx.log(Some(id), "a wake-up too far away is no wait");
            return;
        }
        if let Some(session) = self.session(id) {
            let background = &mut session.live.background;
            background.due.remove(&wake.key);
            background.own.insert(wake.key.clone());
        }
        self.change(cx, id, Actor::Stream, "wake-up set", |row| {
            waiting::edit(row, |work| {
                // one wake-up at a time; crons stand beside each other
                let single = wake.cron.is_none();
                work.wakes
                    .retain(|known| known.key != wake.key && !(single && known.cron.is_none()));
                if work.wakes.len() < max {
                    work.wakes.push(wake);
                }
            });
        });
    }

    /// The CLI began a turn for a wake-up that was due: nobody else sends it.
    pub(super) fn fired_by_child(&mut self, cx: &mut Cx, id: SessionId, source: &str) {
        // rule: A-09
        let now = cx.now;
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let near = now.mono.plus(self.limits.wake_early_ms);
        let cron = source != "loop_wakeup";
        let due = |wake: &&Wake| session.live.background.due.get(&wake.key).copied();
        let work = session.row.deferred_work.iter().flat_map(|work| work.wakes.iter());
        let kind: Vec<&Wake> = work.filter(|wake| wake.cron.is_some() == cron).collect();
        // the one whose time it is; else one whose time only the CLI knows
        let timely = kind.iter().filter(|wake| due(wake).is_some_and(|at| at <= near));
        let timely = timely.min_by_key(|wake| due(wake));
        // a single wake-up is the only one of its kind
        let other = kind.iter().find(|wake| wake.at.is_none() || wake.cron.is_none());
        let fired = timely.or(other);
        let Some(key) = fired.map(|wake| wake.key.clone()) else {
            return;
        };
        self.decided(cx, id, Actor::WaitingHold, "the CLI fires the wake-up");
        self.fired(cx, id, &key, now);
    }

    /// A wake-up has fired: a cron goes on to its next time, everything else is done.
    fn fired(&mut self, cx: &mut Cx, id: SessionId, key: &str, now: Now) {
        if let Some(session) = self.session(id) {
            session.live.background.due.remove(key);
        }
        self.change(cx, id, Actor::WaitingHold, "wake-up fired", |row| {
            waiting::edit(row, |work| {
                let fired = work.wakes.iter().position(|wake| wake.key == key);
                if let Some(at) = fired {
                    let next = work.wakes.remove(at).after_firing(now.wall);
                    work.wakes.extend(next);
                }
            });
        });
        self.time_wait(now, id, None);
    }

    /// Sends the wake-ups that are due and that no child fires. Tells when the others are looked at
    /// again.
    pub(super) fn wakes_due(&mut self, cx: &mut Cx, id: SessionId) -> Option<Mono> {
        // rule: A-09
        let now = cx.now;
        let mut again: Option<Mono> = None;
        let mut look = |at: Mono| again = Some(again.map_or(at, |known| known.min(at)));
        for wake in self.due_wakes(now.mono, id) {
            let Some((facts, late_at)) = self.wake_facts(now, id, &wake) else {
                continue;
            };
            let Some(session) = self.sessions.get(&id) else {
                continue;
            };
            match wake_due(&session.row, &wake, facts) {
                Verdict::Act(()) => self.send_wakeup(cx, id, &wake),
                Verdict::Wait(why) => {
                    look(if why == Why::ChildFires {
                        late_at
                    } else if let Why::Debounced(until) = why {
                        let left = u64::try_from(until.since(now.wall)).unwrap_or_default();
                        now.mono.plus(left.clamp(1, self.limits.replay_debounce_ms))
                    } else {
                        now.mono.plus(self.limits.ask_ms)
                    });
                    self.decided(cx, id, Actor::WaitingHold, format!("wait: {why:?}"));
                }
                Verdict::GiveUp(why) | Verdict::NotMine(why) => {
                    self.decided(cx, id, Actor::WaitingHold, format!("let go: {why:?}"));
                    self.fired(cx, id, &wake.key, now);
                }
            }
        }
        again
    }

    fn due_wakes(&self, now: Mono, id: SessionId) -> Vec<Wake> {
        let Some(session) = self.sessions.get(&id) else {
            return Vec::new();
        };
        let due = &session.live.background.due;
        let work = session.row.deferred_work.iter().flat_map(|work| work.wakes.iter());
        let is_due = |wake: &&Wake| due.get(&wake.key).is_some_and(|at| *at <= now);
        work.filter(is_due).cloned().collect()
    }

    /// What the decision about a due wake-up asks, and from when on it is late.
    fn wake_facts(&self, now: Now, id: SessionId, wake: &Wake) -> Option<(WakeFacts, Mono)> {
        let session = self.sessions.get(&id)?;
        let live = &session.live;
        let late_at = live.background.due.get(&wake.key)?.plus(self.limits.wake_late_ms);
        let queue = || live.queue.iter();
        // a command of the CLI's own takes nothing over
        let spoken = queue().any(|one| one.origin.is_real_user() && !one.local_command);
        let waiting = queue().any(|one| one.origin == Origin::Wakeup);
        let between = match live.child {
            Child::None => live.restart_under_way(),
            Child::Up { .. } => false,
            Child::Spawning { .. } | Child::Handshaking { .. } | Child::Stopping { .. } => true,
        };
        let since_restart = live.restarted_at.map(|at| now.mono.since(at));
        let restarted = RowFacts { since_restart, ..RowFacts::default() };
        let facts = WakeFacts {
            child_up: live.child.is_up(),
            owned: live.background.own.contains(&wake.key),
            late: late_at <= now.mono,
            person_queued: spoken,
            wakeup_queued: waiting,
            restart_under_way: between,
            debounced: debounce_left(&session.row, restarted, &self.limits, now),
        };
        Some((facts, late_at))
    }

    /// The app sends a wake-up itself: taken from the row and put into the queue in one step, so that
    /// no crash sends it twice. What holds messages holds it too (OD-65).
    fn send_wakeup(&mut self, cx: &mut Cx, id: SessionId, wake: &Wake) {
        // rule: A-09
        self.decided(cx, id, Actor::WaitingHold, "act: the wake-up is sent");
        self.fired(cx, id, &wake.key, cx.now);
        let text = prompt::wakeup_text(&wake.prompt);
        self.enqueue(cx, id, Origin::Wakeup, text, false);
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let row = &session.row;
        let free = row.pending.is_none()
            && matches!(row.status, Status::Waiting | Status::NeedsYou | Status::Stalled);
        if !free || session.live.busy() {
            self.decided(cx, id, Actor::WaitingHold, "the wake-up waits in the queue");
            return;
        }
        if !session.live.child.is_up() {
            self.note_restart(cx, id, Actor::WaitingHold);
        }
        self.send_next(cx, id);
    }

    /// What the transcript shows of a message that is sent: a wake-up is nobody's, and hidden.
    pub(super) fn show_sent(&mut self, cx: &mut Cx, id: SessionId, queued: Queued) {
        if queued.origin == Origin::Wakeup {
            let kind = BlockKind::Auto { origin: Origin::Wakeup, text: queued.preview };
            self.add_hidden(cx, id, kind);
            return;
        }
        // the store fills the text in: the reducer does not hold it
        let kind = BlockKind::Operator { message: queued.id, text: String::new() };
        self.add_block(cx, id, kind);
    }

    /// A child goes on with a conversation: the CLI brings its recurring crons back by itself.
    pub(super) fn crons_taken_over(&mut self, id: SessionId) {
        if let Some(session) = self.session(id) {
            let work = session.row.deferred_work.iter().flat_map(|work| work.wakes.iter());
            let recurring = work.filter(|wake| wake.recurs()).map(|wake| wake.key.clone());
            session.live.background.own = recurring.collect();
        }
    }
}
