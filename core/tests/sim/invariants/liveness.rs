//! What must happen in the end: INV-49 (the CLI works again), INV-50 (it works, and the machine is
//! saturated for good), INV-51 (launches succeed again).

use super::Oracle;
use crate::clock::{MINUTE, SECOND};
use crate::report::Report;
use crate::store::Store;
use omniscio_core::id::SessionId;

/// A scan and the debounce; then the questions and an old child that must be killed.
const CALM_LIMIT: u64 = 60 * SECOND + 90 * SECOND + 15 * SECOND;

/// A command behind the turn holds a restart for at most so long.
const HOLD: u64 = 30 * MINUTE;

/// From when on nothing goes wrong, and whether the machine stays saturated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling {
    at: u64,
    pinned: bool,
}

impl Oracle {
    /// Nothing goes wrong from here on.
    pub(crate) fn settling(&mut self, at: u64, pinned: bool) {
        self.settling = Some(Settling { at, pinned });
    }

    /// The machine stays saturated: the ladder waits.
    pub(super) fn pinned(&self) -> bool {
        self.settling.is_some_and(|settling| settling.pinned)
    }

    /// Until when commands behind its last turn held a row that was cut off then.
    fn held_until(&mut self, id: SessionId, cut_at: u64, at: u64) -> u64 {
        let book = self.book(id);
        let until = if book.commands { at } else { book.commands_ended };
        until.min(cut_at + HOLD)
    }

    /// Once a minute: no row waits for longer than it must.
    pub(super) fn waits(&mut self, store: &Store, at: u64, report: &mut Report) {
        let Some(Settling { at: calm_at, pinned }) = self.settling else { return };
        self.inv_51(store, (calm_at, at));
        // the load of the last minute still counts; the first scan is 30 s after a start
        let from = (calm_at + MINUTE).max(self.booted_at + 30 * SECOND);
        let cut_off = || store.listed().filter(|row| row.in_shape());
        for row in cut_off().filter(|row| !row.gates.is_empty()) {
            // what waits for its own gate does not wait for us
            self.book(row.id).in_shape_at = Some(at);
        }
        let rows: Vec<_> = cut_off().map(|row| row.id).collect();
        let limit = if pinned {
            (11 + store.listed().count() as u64) * MINUTE + CALM_LIMIT
        } else {
            CALM_LIMIT
        };
        for id in rows {
            let cut_at = self.book(id).in_shape_at.unwrap_or(from);
            let since = self.held_until(id, cut_at, at).max(cut_at).max(from);
            let waited = at.saturating_sub(since);
            if waited > MINUTE {
                report.hit(if pinned { "waits under load" } else { "waits for the scan" });
            }
            if waited > limit {
                let name = if pinned { "INV-50" } else { "INV-49" };
                self.fail(name, format!("{id} is cut off for {waited} ms and nobody comes"));
            }
        }
    }
}
