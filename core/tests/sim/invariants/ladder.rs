//! The re-arm ladder and the durable give-up: invariants 13, 14, 16, 19, 37, 38 and 41, with the gaps
//! written down a second time.

use super::{Change, Oracle};
use crate::clock::{Clock, DAY, MINUTE, SECOND};
use crate::report::Report;
use omniscio_core::id::SessionId;
use omniscio_core::session::{PendingAction, SessionRow, Status, StopReason};
use omniscio_core::supervisor::Write;
use omniscio_core::verdict::Actor;

const RUNGS: u8 = 12;
const RUNGS_MS: i64 = 211 * 60_000 + 30_000;

/// One episode of the ladder: since the person or a finished turn began it.
#[derive(Default)]
pub(super) struct Episode {
    rungs: u8,
    /// The gaps of the rungs that were taken, together.
    gaps: i64,
    /// When the next rung was scheduled, and its gap.
    armed: Option<(u64, i64)>,
    /// Nothing automatic may happen until the person wants it.
    pub(super) stopped: bool,
    /// Charged replays and rungs since the person or a finished turn, less those that were put off before
    /// a turn came of them, and since when.
    autos: (u64, u64),
}

/// The gap before a rung, from 1.
fn gap(rung: u8) -> u64 {
    let doublings = u32::from(rung.saturating_sub(1)).min(16);
    (30 * SECOND * 2_u64.pow(doublings)).min(30 * MINUTE)
}

fn failed(row: &SessionRow) -> bool {
    row.pending == Some(PendingAction::RecoveryFailed)
}

impl Oracle {
    pub(super) fn ladder(&mut self, change: &Change<'_>, clock: &Clock, report: &mut Report) {
        let Some(before) = change.before else { return };
        self.inv_37_and_38(before, change);
        self.rungs(before, change, clock, report);
        self.scheduled(before, change, clock);
        self.stops(change, report);
    }

    /// INV-37 and INV-38: who enters and who leaves `recovery_failed`.
    fn inv_37_and_38(&mut self, before: &SessionRow, change: &Change<'_>) {
        let (after, actor) = (change.after, change.actor);
        let book = self.book(before.id);
        // a click whose look came to nothing
        let clicked = actor == Actor::Relaunch && (book.click.is_some() || book.takes_over);
        let by_person = matches!(actor, Actor::User | Actor::RetryButton) || clicked;
        let in_a_turn =
            before.status == Status::Running && matches!(actor, Actor::Stream | Actor::TurnEnd);
        if failed(before) && !failed(after) && !by_person && !in_a_turn {
            self.fail("INV-37", format!("{actor:?} ({}) leaves {before:?}", change.reason));
        }
        let from_shape = actor == Actor::AbortedScan && before.in_shape();
        // a turn that began by itself leaves the row as given up as it was, however it ends
        let as_before = actor == Actor::TurnEnd || change.reason == "given up as before";
        if !failed(before) && failed(after) && !from_shape && !as_before {
            self.fail("INV-38", format!("{actor:?} ({}) gives up {before:?}", change.reason));
        }
    }

    /// INV-13 and INV-15: a rung is taken where a restart begins, never more than twelve, never before
    /// its time; and the episode begins anew only with the person or a finished turn (INV-16).
    fn rungs(
        &mut self,
        before: &SessionRow,
        change: &Change<'_>,
        clock: &Clock,
        report: &mut Report,
    ) {
        let (id, at) = (change.after.id, clock.at);
        let (was, is) = (before.ladder.rungs, change.after.ladder.rungs);
        let blind = self.stepped_at;
        if is == was {
            return;
        }
        if is == 0 && change.reason != "rung put off" {
            let finished = change.actor == Actor::TurnEnd && change.reason == "finished";
            let allowed = finished || matches!(change.actor, Actor::User | Actor::RetryButton);
            if !allowed {
                self.fail("INV-16", format!("{:?} resets the ladder of {id}", change.actor));
            }
            report.hit(&format!("ladder reset by {}", change.actor.as_str()));
            self.book(id).ladder = Episode::default();
            return;
        }
        if is + 1 == was && change.reason == "rung put off" {
            report.hit("rung put off");
            let episode = &mut self.book(id).ladder;
            episode.rungs = episode.rungs.saturating_sub(1);
            episode.gaps -= episode.armed.map_or(0, |(_, gap)| gap);
            if before.turn.is_none() {
                // no turn came of it
                episode.autos.0 = episode.autos.0.saturating_sub(1);
            }
            return;
        }
        report.hit(&format!("rung {is}"));
        if !restarted(change) || is != was + 1 {
            self.fail("INV-15", format!("a rung of {id} is taken and nothing is done"));
        }
        let episode = &mut self.book(id).ladder;
        episode.rungs += 1;
        episode.gaps += episode.armed.map_or(0, |(_, gap)| gap);
        let (rungs, armed) = (episode.rungs, episode.armed);
        if rungs > RUNGS || rungs != is {
            self.fail("INV-13", format!("rung {rungs} of {id}, stored as {is}"));
        }
        let early = armed.is_none_or(|(since, _)| blind < since && at - since < gap(is));
        if early {
            self.fail("INV-13", format!("rung {is} of {id} too early: {armed:?} at {at}"));
        }
    }

    /// INV-13: the next rung is scheduled after the ladder's own gap.
    fn scheduled(&mut self, before: &SessionRow, change: &Change<'_>, clock: &Clock) {
        let (ladder, id) = (change.after.ladder, change.after.id);
        let Some(due) = ladder.due.filter(|_| before.ladder.due != ladder.due) else { return };
        if change.reason == "rung put off" {
            return;
        }
        let wanted = due.since(clock.now().wall);
        if wanted != gap(ladder.rungs + 1) as i64 {
            let rung = ladder.rungs + 1;
            self.fail("INV-13", format!("rung {rung} of {id} is scheduled in {wanted} ms"));
        }
        self.book(id).ladder.armed = Some((clock.at, wanted));
    }

    /// INV-13 and INV-14: what stops the ladder, and that it has stopped.
    fn stops(&mut self, change: &Change<'_>, report: &mut Report) {
        let after = change.after;
        let lifted = change.before.is_some_and(|before| before.stop_reason.is_some())
            && after.stop_reason.is_none();
        if lifted {
            let finished = change.actor == Actor::TurnEnd && change.reason == "finished";
            if !finished && !matches!(change.actor, Actor::User | Actor::RetryButton) {
                self.fail("INV-14", format!("{:?} lifts the stop of {after:?}", change.actor));
            }
            self.book(after.id).ladder.stopped = false;
        }
        let entered = change
            .before
            .is_none_or(|before| !failed(before) || before.stop_reason != after.stop_reason);
        let Some(stop) = after.stop_reason.filter(|_| failed(after) && entered) else { return };
        report.hit(&format!("ladder stopped {}", stop.as_str()));
        let episode = &mut self.book(after.id).ladder;
        episode.stopped = true;
        let (rungs, gaps) = (episode.rungs, episode.gaps);
        if stop == StopReason::HardCap && (rungs, gaps) != (RUNGS, RUNGS_MS) {
            let text = format!("the hard cap of {} after {rungs} rungs, {gaps} ms", after.id);
            self.fail("INV-13", text);
        }
        if after.ladder.due.is_some() {
            self.fail("INV-14", format!("a stopped ladder goes on: {after:?}"));
        }
    }

    /// INV-14: after the stop nothing automatic restarts the session; the person does.
    pub(super) fn inv_14(&mut self, id: SessionId, actor: Actor) {
        if matches!(actor, Actor::User | Actor::RetryButton) {
            self.book(id).ladder.stopped = false;
        } else if self.book(id).ladder.stopped {
            self.fail("INV-14", format!("{actor:?} restarts {id} after its ladder has stopped"));
        }
    }

    /// INV-19: a session that always fails and that nobody touches makes a bounded number of turns.
    pub(super) fn inv_19(&mut self, id: SessionId, at: u64) {
        let (autos, since) = &mut self.book(id).ladder.autos;
        if *autos == 0 {
            *since = at;
        }
        *autos += 1;
        let (autos, days) = (*autos, (at - *since) / DAY + 2);
        if autos > 2 * days + 12 + 3 {
            self.fail("INV-19", format!("{autos} automatic turns of {id} in {days} days"));
        }
    }

    /// The person, or a good answer: the count of INV-19 begins anew.
    pub(super) fn began_anew(&mut self, id: SessionId) {
        self.book(id).ladder.autos = (0, 0);
    }

    /// INV-41: nobody is given up while the machine is saturated, the folder is missing or a gate runs.
    /// What can never be sent again is another thing (OD-16).
    pub(super) fn inv_41(&mut self, change: &Change<'_>, at: u64) {
        let row = change.after;
        if row.stop_reason == Some(StopReason::NothingToReplay) {
            return;
        }
        let missing = self.gone_for(&row.folder, at).is_some_and(|age| age > 6 * SECOND);
        let why = [(self.heavy, "the machine is busy"), (missing, "the folder is missing")];
        let gates = change.before.is_some_and(|before| !before.gates.is_empty());
        let why = why.into_iter().chain([(gates, "a gate runs")]);
        for (_, why) in why.filter(|(holds, _)| *holds) {
            self.fail("INV-41", format!("{} is given up while {why}", row.id));
        }
    }
}

/// Whether the same step restarts the row by the ladder.
fn restarted(change: &Change<'_>) -> bool {
    let id = change.after.id;
    change.writes.iter().any(|write| match write {
        Write::Row { after, actor, .. } => {
            after.id == id && *actor == Actor::ReArm && after.status == Status::Starting
        }
        Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => false,
    }) && change.actor == Actor::ReArm
}
