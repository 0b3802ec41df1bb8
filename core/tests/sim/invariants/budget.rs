//! Budgets: invariants 11, 12 and 15. Counts charges by itself, with a day key of its own.

use super::{Change, Oracle};
use crate::clock::Clock;
use crate::report::Report;
use omniscio_core::session::{PendingAction, Status, StopReason};
use omniscio_core::supervisor::Write;
use omniscio_core::time::Day;
use omniscio_core::verdict::Actor;

impl Oracle {
    pub(super) fn charges(&mut self, change: &Change<'_>, clock: &Clock, report: &mut Report) {
        let now = clock.now();
        let after = change.after;
        self.inv_12(change);
        let Some(before) = change.before else { return };
        let count = |row: &omniscio_core::session::SessionRow| (row.retry_attempts, row.retry_day);
        let lowered = after.retry_attempts == 0 && after.retry_day.is_none();
        let by_person = matches!(change.actor, Actor::User | Actor::RetryButton);
        if lowered && by_person {
            self.book(after.id).charged = None;
        } else if lowered && count(before) != count(after) {
            let text = format!("{:?} begins the budget of {} anew", change.actor, after.id);
            self.fail("INV-16", text);
        }
        // a restart that could not go on is taken back, and its attempt with it
        let refunded = before.status == Status::Starting
            && after.in_shape()
            && after.retry_attempts + 1 == before.retry_attempts;
        if refunded && let Some((_, count)) = &mut self.book(after.id).charged {
            *count -= 1;
        } else if count(before) != count(after) && !lowered {
            self.inv_15(change);
            if change.reason == "attempt charged" {
                self.inv_11_charged(change, now.day, report);
            }
        }
        let promoted =
            after.pending == Some(PendingAction::RecoveryFailed) && before.pending != after.pending;
        if promoted {
            let stop = after.stop_reason.map_or("attempts used up", StopReason::as_str);
            let by_scan = change.actor == Actor::AbortedScan;
            // a local command leaves the row as it was before it
            let kind = match (by_scan, change.reason) {
                (true, _) => "promotion",
                (false, "local command") => "still given up",
                (false, _) => "terminal",
            };
            report.hit(&format!("{kind} {stop}"));
            if by_scan {
                self.inv_41(change, clock.at);
            }
            if by_scan && after.stop_reason.is_none() {
                self.inv_11_promoted(change, now.day);
            }
        }
    }

    /// INV-11: at most two charged replays in a local day, unless the person began a new budget.
    fn inv_11_charged(&mut self, change: &Change<'_>, today: Day, report: &mut Report) {
        let id = change.after.id;
        let book = self.book(id);
        let (day, count) = match book.charged {
            // a clock that was set back begins no new day
            Some((day, count)) if today <= day => (day, count + 1),
            Some(_) => {
                report.hit("a new day starts the budget over");
                (today, 1)
            }
            None => (today, 1),
        };
        book.charged = Some((day, count));
        if count > 2 {
            self.fail("INV-11", format!("replay {count} of {id} on one day"));
        }
    }

    /// INV-11, from its other side: nobody is given up before the budget is used.
    fn inv_11_promoted(&mut self, change: &Change<'_>, today: Day) {
        let id = change.after.id;
        let used =
            self.book(id).charged.map_or(0, |(day, count)| if today <= day { count } else { 0 });
        if used < 2 {
            self.fail("INV-11", format!("{id} is given up after {used} replays of its budget"));
        }
    }

    /// INV-12: the stored count never exceeds three.
    fn inv_12(&mut self, change: &Change<'_>) {
        if change.after.retry_attempts > 3 {
            self.fail("INV-12", format!("{} attempts are stored", change.after.retry_attempts));
        }
    }

    /// INV-15: whoever charges an attempt restarts or gives up in the same step; a held tick does not.
    fn inv_15(&mut self, change: &Change<'_>) {
        let id = change.after.id;
        let named = ["attempt charged", "attempts used up"].contains(&change.reason);
        if !named || self.heavy {
            let text = format!("{} changes the count of {id}, load {}", change.reason, self.heavy);
            self.fail("INV-15", text);
        }
        let acted = change.writes.iter().any(|write| match write {
            Write::Row { after, actor, .. } => {
                let restarts = after.status == Status::Starting;
                let gives_up = after.pending == Some(PendingAction::RecoveryFailed);
                after.id == id && *actor == Actor::AbortedScan && (restarts || gives_up)
            }
            Write::Message(_)
            | Write::MessageState { .. }
            | Write::Block { .. }
            | Write::Settings(_) => false,
        });
        if !acted || change.actor != Actor::AbortedScan {
            self.fail("INV-15", format!("an attempt of {id} is charged and nothing is done"));
        }
    }
}
