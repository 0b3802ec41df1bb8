//! Load: INV-18 (the escape valve's pace), LD-07 (its patience), and that load charges nothing.

use super::{Change, Oracle};
use crate::clock::{MINUTE, SECOND};
use crate::report::Report;
use omniscio_core::id::SessionId;
use omniscio_core::settings::Settings;
use omniscio_core::supervisor::Write;

impl Oracle {
    /// How busy the app must take the machine for, from the tests' own meter.
    pub(crate) fn load(&mut self, heavy: bool, at: u64) {
        if heavy != self.heavy {
            // a calm of less than a minute may fall between two ticks: then none of them sees it
            if heavy && at - self.heavy_since >= MINUTE {
                self.heavy_from = at;
            }
            self.heavy_since = at;
        }
        self.heavy = heavy;
    }

    /// Settings are stored; with recovery off no tick defers anybody.
    pub(super) fn settings(&mut self, settings: &Settings, at: u64) {
        let was = self.policy.aborted_response_recovery();
        self.policy.settings = settings.clone();
        let is = self.policy.aborted_response_recovery();
        if was != is {
            // as with a short calm
            if is && at - self.recovery_at >= MINUTE {
                self.recovery_from = at;
            }
            self.recovery_at = at;
        }
    }

    /// Whether the machine counted as saturated within the last minute.
    pub(crate) fn busy_lately(&self, at: u64) -> bool {
        self.heavy || at - self.heavy_since < MINUTE
    }

    /// The scan restarts a row: charged, or forced by the valve.
    pub(super) fn scan_restarts(&mut self, change: &Change<'_>, at: u64, report: &mut Report) {
        let id = change.after.id;
        if charged(change.writes, id) {
            if self.heavy {
                self.fail("INV-15", format!("an attempt of {id} is charged under load"));
            }
            self.inv_19(id, at);
            return;
        }
        report.hit("valve: forced replay");
        if !self.heavy {
            self.fail("LD-09", format!("{id} is replayed uncharged on a calm machine"));
        }
        let last = self.forced_at.replace(at);
        if last.is_some_and(|last| at - last < MINUTE) {
            self.fail("INV-18", format!("the second forced replay within a minute, of {id}"));
        }
        let sound_from = self.heavy_from.max(self.recovery_from);
        let since = self.book(id).deferred_from.unwrap_or(at).max(sound_from);
        // ten ticks in a row span nine minutes; the answers to the first and to the last of them may take
        // their whole time
        if at - since < 9 * MINUTE - 11 * SECOND {
            let text = format!("{id} is forced after {} ms of load", at - since);
            self.fail("LD-07", text);
        }
    }
}

fn charged(writes: &[Write], id: SessionId) -> bool {
    writes.iter().any(|write| match write {
        Write::Row { after, reason, .. } => after.id == id && reason == "attempt charged",
        Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => false,
    })
}
