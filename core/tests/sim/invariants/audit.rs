//! The audit log, INV-65: every change of a row carries the row before it and after it, and folded from
//! the first one on they give the rows as they stand.

use super::{Change, Oracle};
use crate::store::Store;
use omniscio_core::session::SessionRow;

impl Oracle {
    pub(super) fn fold(&mut self, change: &Change<'_>) {
        let id = change.after.id;
        let known = self.folded.get(&id);
        if known != change.before {
            let text =
                format!("{}: the log knows {known:?}, not {:?}", change.reason, change.before);
            self.fail("INV-65", text);
        }
        self.refold(change.after);
    }

    /// Somebody else changed the row, and the log with it.
    pub(crate) fn refold(&mut self, row: &SessionRow) {
        self.folded.insert(row.id, row.clone());
    }

    /// At the end: the folded log is the store.
    pub(crate) fn inv_65(&mut self, store: &Store) {
        if self.folded != store.rows {
            self.fail("INV-65", "the folded log is not the store");
        }
    }
}
