//! The line that all launches stand in: invariants 51, 52 and 57, the gap between two spawns (OD-61), how
//! many start at once, and what the machine must have left. Counts spawn calls by itself.

use super::Oracle;
use crate::clock::SECOND;
use crate::report::Report;
use crate::store::Store;
use omniscio_core::id::{SessionId, Uuid};
use omniscio_core::session::{SessionRow, Status};
use omniscio_core::supervisor::{Answer, AskId, Headroom, Input};
use std::collections::{BTreeMap, BTreeSet};

const SLOTS: usize = 4;
const STARTING: usize = 8;
const GAP: u64 = 250;
/// So long the line waits for a machine that is short of something.
const PATIENCE: u64 = 30 * SECOND;
/// An answer that comes later than this is not used.
const ANSWERED: u64 = 5 * SECOND;
/// A start that hangs, the second one, and the stop between them; then each start's own time.
const OLD_STARTS: u64 = 75 * SECOND;
const START: u64 = 14 * SECOND;

/// The line as the world sees it.
#[derive(Default)]
pub(super) struct Line {
    /// Spawn calls under way.
    pub(super) calls: usize,
    /// Launches of the step at hand.
    pub(super) launches: usize,
    spawned_at: Option<u64>,
    /// The machine was asked for what it has left, since the last spawn.
    asked: bool,
    /// The last such question, and when it was asked; `None` once it is answered.
    asking: Option<(AskId, u64)>,
    short_since: Option<u64>,
    /// Looks at folder and conversation that are not answered: when they were asked for, and for whom.
    looks: BTreeMap<AskId, (u64, Vec<SessionId>)>,
    /// Whose old child is being stopped: nothing can be started over it (RP-01).
    stopping: BTreeSet<SessionId>,
    /// Whose spawn call takes too long: the machine counts as too busy.
    hung: Vec<SessionId>,
    /// For whom a look, or such a call, came to nothing in this step.
    pub(super) failed_looks: BTreeSet<SessionId>,
}

fn is_short(room: &Headroom) -> bool {
    let below = |left: Option<u64>, needed| left.is_some_and(|left| left < needed);
    below(room.descriptors, 32) || below(room.processes, 64) || below(room.memory_mib, 300)
}

impl Oracle {
    /// A spawn call begins; so many are under way with it, and so many start.
    pub(crate) fn call_begins(
        &mut self,
        id: SessionId,
        (calls, starting): (usize, usize),
        at: u64,
    ) {
        self.line.calls = calls;
        if calls > SLOTS {
            self.fail("INV-57", format!("{calls} spawn calls are under way with that of {id}"));
        }
        if starting > STARTING {
            self.fail("INV-57", format!("{starting} children start at once with that of {id}"));
        }
        let last = self.line.spawned_at.replace(at);
        if let Some(age) = last.map(|last| at - last).filter(|age| *age < GAP) {
            self.fail("OD-61", format!("{id} is spawned {age} ms after the last one"));
        }
    }

    /// So many spawn calls are under way now, and these take too long.
    pub(crate) fn calls(&mut self, calls: usize, hung: Vec<SessionId>) {
        (self.line.calls, self.line.hung) = (calls, hung);
    }

    /// A child is being stopped.
    pub(super) fn stop_begins(&mut self, session: SessionId) {
        self.line.stopping.insert(session);
    }

    /// A stop is reported, or there was nothing to stop.
    pub(super) fn stop_ends(&mut self, session: SessionId, at: u64) {
        self.line.stopping.remove(&session);
        self.commands(session, false, at);
    }

    /// The step at hand makes so many launches.
    pub(crate) fn launches(&mut self, launches: usize) {
        self.line.launches = launches;
    }

    /// A new state: nobody was launched by it.
    pub(super) fn line_begins(&mut self) {
        self.line = Line { calls: self.line.calls, ..Line::default() };
    }

    /// Folder and conversation are looked at. Those who share both cannot be told apart.
    pub(super) fn look_begins(
        &mut self,
        ask: AskId,
        (folder, uuids): (&str, &[Uuid]),
        (store, at): (&Store, u64),
    ) {
        let asked = |row: &&SessionRow| {
            let sent = row.replay.sent_as.iter().chain(&row.replay.continued_as);
            row.folder == folder && sent.eq(uuids)
        };
        let whom = store.listed().filter(asked).map(|row| row.id).collect();
        self.line.looks.insert(ask, (at, whom));
    }

    /// An earlier conversation is read: a look like any other, and of one session alone.
    pub(super) fn reads(&mut self, ask: AskId, session: SessionId, at: u64) {
        self.line.looks.insert(ask, (at, vec![session]));
    }

    /// Looks that the step answers, or that it is too late for.
    pub(super) fn looks_end(&mut self, input: &Input, at: u64) {
        let looks = &mut self.line.looks;
        let mut failed = BTreeSet::new();
        if let Input::Answer { ask, answer } = input
            && let Some((asked_at, whom)) = looks.remove(ask)
            && (matches!(answer, Answer::Failed { .. }) || at >= asked_at + ANSWERED)
        {
            failed.extend(whom);
        }
        looks.retain(|_, (asked_at, whom)| {
            let open = at < *asked_at + ANSWERED;
            if !open {
                failed.extend(whom.iter().copied());
            }
            open
        });
        failed.extend(self.line.hung.drain(..));
        self.line.failed_looks = failed;
    }

    /// The launch at hand was asked for when it lined up.
    pub(crate) fn asked_before(&mut self) {
        (self.line.asked, self.line.short_since) = (true, None);
    }

    /// The machine slept: what it said before counts no more, and nobody was late with an answer.
    pub(super) fn line_slept(&mut self, millis: u64) {
        self.line.short_since = None;
        let asked = self.line.asking.iter_mut().map(|(_, asked_at)| asked_at);
        let looks = self.line.looks.values_mut().map(|(asked_at, _)| asked_at);
        for asked_at in asked.chain(looks) {
            *asked_at += millis;
        }
    }

    /// What the machine has left is asked for.
    pub(super) fn asks_for_room(&mut self, ask: AskId, at: u64) {
        (self.line.asked, self.line.asking) = (true, Some((ask, at)));
    }

    /// An answer, perhaps to that.
    pub(super) fn told_room(&mut self, ask: AskId, answer: &Answer, report: &mut Report, at: u64) {
        let Some((_, asked_at)) = self.line.asking.take_if(|(asking, _)| *asking == ask) else {
            return;
        };
        let room = if let Answer::Headroom(room) = answer { Some(room) } else { None };
        if room.is_some_and(is_short) && at <= asked_at + ANSWERED {
            report.hit("headroom: the line is held");
            self.line.short_since.get_or_insert(at);
        } else {
            self.line.short_since = None;
        }
    }

    /// A launch is about to be made: the machine was asked, and it was not short, or for too long.
    pub(super) fn room_for(&mut self, id: SessionId, at: u64, report: &mut Report) {
        if !std::mem::take(&mut self.line.asked) {
            self.fail("headroom", format!("nobody asked what is left before {id} is launched"));
        }
        if self.line.asking.is_some() {
            // nobody answered in time: what nobody can tell holds nobody
            self.line.short_since = None;
        }
        let Some(since) = self.line.short_since else { return };
        if self.book(id).urgent {
            // the person wants this one now, whatever the machine is short of
            return;
        }
        if at - since < PATIENCE {
            self.fail("headroom", format!("{id} is launched on a machine that is short of room"));
        }
        report.hit("headroom: the patience is over");
        self.line.short_since = Some(at);
    }

    /// INV-52: since a session's launch is due, no more launches of others were made than stood in the
    /// line with it.
    pub(super) fn inv_52(&mut self, launched: SessionId, store: &Store, at: u64) {
        if self.book(launched).urgent {
            return;
        }
        let starting = |row: &&_| -> bool {
            let row: &SessionRow = row;
            row.status == Status::Starting
        };
        let beside = store.listed().filter(starting).count() as u64;
        let looking = |id: &SessionId| self.line.looks.values().any(|(_, whom)| whom.contains(id));
        let mut starved = None;
        for (id, book) in &mut self.books {
            let relaunch = &mut book.relaunch;
            // what is being looked at for it is its try, and comes to something within the look's limit;
            // and its last try is not over before its child is gone
            let tried = looking(id) || self.line.stopping.contains(id);
            if *id == launched || !relaunch.waiting || relaunch.due > at || tried {
                continue;
            }
            relaunch.passed += 1;
            relaunch.beside = relaunch.beside.max(beside);
            if relaunch.passed > relaunch.beside {
                starved = Some((*id, *relaunch));
            }
        }
        if let Some((id, relaunch)) = starved {
            self.fail("INV-52", format!("{id} is passed over: {relaunch:?}"));
        }
    }

    /// INV-51: once launches succeed, whoever waits is launched within half a minute and the line's own
    /// time. `calm`: since when nothing goes wrong.
    pub(super) fn inv_51(&mut self, store: &Store, (calm, at): (u64, u64)) {
        let rows = store.listed().filter(|row| row.status == Status::Starting);
        let ids: Vec<SessionId> = rows.map(|row| row.id).collect();
        let many = ids.len() as u64;
        let line = many * GAP + many.div_ceil(STARTING as u64) * START + OLD_STARTS;
        let from = calm.max(self.booted_at).max(self.slept_at);
        for id in ids {
            if !self.book(id).relaunch.waiting {
                continue;
            }
            if at > from + 30 * SECOND + line {
                self.fail("INV-51", format!("{id} waits for its launch since {from}"));
            }
        }
    }

    /// The place in the line that is shown.
    pub(super) fn place(&mut self, place: Option<u32>, report: &mut Report) {
        match place {
            Some(0) => self.fail("INV-52", "a place in the line before the first"),
            Some(1 | 2) => report.hit("line: first or second"),
            Some(_) => report.hit("line: third or later"),
            None => {}
        }
    }
}
