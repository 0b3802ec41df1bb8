//! What a person sees: invariants 26, 27 and 36, with the hide rule written down a second time.

use super::{Change, Oracle};
use crate::clock::{Clock, MINUTE};
use crate::report::Report;
use omniscio_core::attention::{Attention, Pill, RowState, Section, Tone, attention};
use omniscio_core::ipc::RowView;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::State;
use omniscio_core::time::Now;
use omniscio_core::verdict::Actor;

const CAP_MS: i64 = 300_000;
const FUTURE_MS: i64 = 60_000;

/// The one predicate, a second time (HD-08, HD-09, HD-22).
fn is_unseen(row: &SessionRow, recovery_on: bool, now: Now) -> bool {
    let age = now.wall.since(row.status_changed_at);
    row.in_shape() && !row.delivered && recovery_on && (-FUTURE_MS..CAP_MS).contains(&age)
}

impl Oracle {
    /// The shape is entered or left: its true clock.
    pub(super) fn shape(&mut self, change: &Change<'_>, at: u64, report: &mut Report) {
        let was = change.before.is_some_and(SessionRow::in_shape);
        let is = change.after.in_shape();
        let replay = change.before.and_then(|before| before.turn.as_ref()).is_some_and(|turn| {
            turn.replay.is_some_and(omniscio_core::verdict::Source::is_automatic)
        });
        let actor = change.actor;
        let moved = change.before.is_none_or(|before| {
            (before.status, before.pending) != (change.after.status, change.after.pending)
        });
        let book = self.book(change.after.id);
        book.entries += u64::from(moved);
        if is && !was {
            // a command of the CLI's own leaves the row as it was
            // and a restart of which no turn came takes it back to where it was
            let taken_back = change
                .before
                .is_some_and(|before| before.status == Status::Starting && before.turn.is_none());
            let same = taken_back || change.reason == "local command";
            let as_before = book.left_shape_at.filter(|_| same);
            book.in_shape_at = Some(as_before.unwrap_or(at));
            // a turn of its own between two ticks breaks no row of ticks
            let own_turn = actor == Actor::TurnEnd;
            book.deferred_from = book.deferred_from.filter(|_| own_turn).or(book.in_shape_at);
        } else if was && !is {
            book.left_shape_at = book.in_shape_at.take();
        }
        if is && !was {
            // a replay that showed nothing does not begin the unseen time anew (HD-14)
            let kept = book.shape_since.filter(|_| replay);
            book.shape_since = Some(kept.unwrap_or(at));
            book.surfaced = false;
        }
        // the person began anew, or the recovery ended somewhere else
        let on_its_way = matches!(change.after.status, Status::Starting | Status::Running);
        if !is && (!on_its_way || matches!(actor, Actor::User | Actor::RetryButton)) {
            book.shape_since = None;
        }
        if was && !is {
            book.unseen_since = None;
            let replayed = actor == Actor::AbortedScan && change.after.status == Status::Starting;
            if !replayed {
                book.shape_since = None;
            }
            if change.after.status == Status::Starting && !book.surfaced {
                report.hit("hidden until recovered");
            }
        }
    }

    /// One row as it is seen now.
    pub(super) fn seen(&mut self, view: &RowView, clock: &Clock, report: &mut Report) {
        let now = clock.now();
        let seen = attention(view, &self.policy, &self.limits, now);
        let unseen = is_unseen(&view.row, self.policy.aborted_response_recovery(), now);
        self.looks(view, &seen, unseen);
        self.inv_26(view, &seen, now);
        self.waits_quietly(&view.row, &seen, report);
        if view.row.in_shape() && !unseen {
            report.hit("surfaced past the cap");
            self.book(view.row.id).surfaced = true;
        }
        self.inv_27(&view.row, unseen, clock.at);
    }

    /// INV-26: hidden if and only if the one predicate says so; section, dot and pill follow it.
    fn inv_26(&mut self, view: &RowView, seen: &Attention, now: Now) {
        let row = &view.row;
        let recovery_on = self.policy.aborted_response_recovery();
        let sound = if row.is_gone() {
            seen.section == Section::Hidden
        } else if is_unseen(row, recovery_on, now) {
            seen.state == RowState::Running && !seen.needs_person && seen.pill.is_none()
        } else if row.in_shape() {
            seen.section == Section::Interrupted && seen.pill == Some(Pill::Retry)
        } else if row.pending == Some(PendingAction::RecoveryFailed) {
            seen.section == Section::Interrupted && seen.tone == Tone::Red
        } else {
            seen.section != Section::Hidden
        };
        if !sound || seen.needs_person != seen.section.needs_person() {
            self.fail("INV-26", format!("{seen:?} of {row:?}"));
        }
    }

    /// INV-26, the counts: the badge is the number of rows that need a person.
    pub(super) fn counts(&mut self, state: &State, now: Now) {
        let needing = state
            .views()
            .filter(|view| attention(view, &self.policy, &self.limits, now).needs_person)
            .count();
        if needing != self.badge {
            self.fail("INV-26", format!("the badge says {}, {needing} need a person", self.badge));
        }
    }

    /// INV-27: no row is in the shape, unseen, for more than five minutes and one pulse. While the
    /// clock was not touched, the time counts from the first cut of a recovery that showed nothing.
    fn inv_27(&mut self, row: &SessionRow, unseen: bool, at: u64) {
        let stepped_at = self.stepped_at;
        let book = self.book(row.id);
        if !unseen {
            book.unseen_since = None;
            return;
        }
        let since = *book.unseen_since.get_or_insert(at);
        let whole = book.shape_since.filter(|since| stepped_at < *since).unwrap_or(since);
        let age = at.saturating_sub(since.min(whole));
        if age > 6 * MINUTE {
            self.fail("INV-27", format!("{} is cut off and unseen for {age} ms", row.id));
        }
    }

    /// INV-36: a clock that is set back makes no unseen time longer than it was, but for the tolerance.
    pub(super) fn inv_36(&mut self, before: Now, after: Now, state: &State) {
        let recovery_on = self.policy.aborted_response_recovery();
        for view in state.views() {
            if !is_unseen(&view.row, recovery_on, before) {
                continue;
            }
            let left = CAP_MS - before.wall.since(view.row.status_changed_at) + FUTURE_MS;
            let wall = after.wall.plus(left.unsigned_abs());
            let then = attention(&view, &self.policy, &self.limits, Now { wall, ..after });
            let shows_now = attention(&view, &self.policy, &self.limits, after);
            if then.state == RowState::Running && shows_now.state == RowState::Running {
                self.fail("INV-36", format!("{} stays unseen for longer", view.row.id));
            }
        }
    }
}
