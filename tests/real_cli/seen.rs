//! The window of these tests: it remembers what it was told of rows and notifications, and when.

use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Event, RowView};
use omniscio_core::time::{Day, Mono, Now, Wall};
use omniscio_lib::supervise::listener::Listener;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// What the window would have been told.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// With the time at which it was told.
    rows: Vec<(Now, RowView)>,
    notified: Vec<SessionId>,
}

impl Seen {
    /// Every row of the session, with the time of telling.
    pub(crate) fn rows(&self, session: SessionId) -> Vec<(Now, RowView)> {
        let told = self.0.lock().expect("no panic while told");
        told.rows.iter().filter(|(_, view)| view.row.id == session).cloned().collect()
    }

    /// Notifications about the session.
    pub(crate) fn notified(&self, session: SessionId) -> usize {
        let told = self.0.lock().expect("no panic while told");
        told.notified.iter().filter(|of| **of == session).count()
    }
}

/// The wall clock of this moment, for what the window works out of a row.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let wall = Wall(i64::try_from(since.as_millis()).expect("before the year 292,278,994"));
    Now { wall, mono: Mono(0), day: Day(0) }
}

impl Listener for Seen {
    fn events(&self, batch: Vec<Event>) {
        let rows = batch.into_iter().filter_map(|event| match event {
            Event::Row(row) => Some((now(), *row)),
            Event::Gone(_)
            | Event::Block { .. }
            | Event::Delta { .. }
            | Event::Settings(_)
            | Event::Cli(_)
            | Event::StoreTrouble(_)
            | Event::Load(_)
            | Event::Open(_)
            | Event::Sent(_) => None,
        });
        self.0.lock().expect("no panic while told").rows.extend(rows);
    }

    fn notify(&self, session: SessionId, _: &str, _: &str) {
        self.0.lock().expect("no panic while told").notified.push(session);
    }

    fn badge(&self, _: usize) {}

    fn exited(&self) {}
}
