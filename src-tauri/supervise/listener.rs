//! Who listens to the supervisor: the window, or a test. A slow listener only gets events joined
//! together; it never holds up the loop.

mod batch;

use batch::Batch;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Event;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Events that come within one frame of a display go out together.
const BATCH_MS: u64 = 16;
/// Notices that may wait for a listener; the oldest is dropped then, with a line in the log: the
/// rows they speak of are red in the window all the same.
const NOTICES_MAX: usize = 64;

/// Is told what happens, on a thread of its own that may wait.
pub trait Listener: Send + Sync + 'static {
    /// What changed, in order; at most one call in 16 ms.
    fn events(&self, batch: Vec<Event>);
    /// The person is to be told, once: session, its title, and label with reason.
    fn notify(&self, session: SessionId, title: &str, body: &str);
    /// So many sessions need a person.
    fn badge(&self, count: usize);
    /// All children are gone and the store is closed: the app may end.
    fn exited(&self);
}

/// One notice.
struct Notice {
    session: SessionId,
    title: String,
    body: String,
}

#[derive(Default)]
struct Pending {
    batch: Batch,
    notices: Vec<Notice>,
    badge: Option<usize>,
    closed: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.notices.is_empty() && self.badge.is_none()
    }
}

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    came: Condvar,
}

/// Where the loop leaves what the listener is to be told. Never waits.
#[derive(Clone)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
}

impl Outbox {
    /// An outbox and the thread that empties it.
    pub(super) fn start(listener: Arc<dyn Listener>) -> io::Result<Outbox> {
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        thread::Builder::new()
            .name("listener".to_string())
            .spawn(move || deliver(&inner, listener.as_ref()))?;
        Ok(Outbox { shared })
    }

    /// Adds an event.
    pub(super) fn event(&self, event: Event) {
        let dropped = self.add(|pending| pending.batch.push(event));
        if dropped > 0 {
            tracing::warn!(dropped, "the window is far behind: it reads these blocks itself");
        }
    }

    /// Adds a notice.
    pub(super) fn notify(&self, session: SessionId, title: String, body: String) {
        self.add(|pending| {
            if pending.notices.len() >= NOTICES_MAX {
                tracing::warn!(%session, "a notice is dropped: too many wait");
                pending.notices.remove(0);
            }
            pending.notices.push(Notice { session, title, body });
        });
    }

    /// Sets the badge.
    pub(super) fn badge(&self, count: usize) {
        self.add(|pending| pending.badge = Some(count));
    }

    /// Tells the rest, then `exited`.
    pub(super) fn close(&self) {
        self.add(|pending| pending.closed = true);
    }

    fn add<T>(&self, change: impl FnOnce(&mut Pending) -> T) -> T {
        let changed = change(&mut lock(&self.shared.pending));
        self.shared.came.notify_all();
        changed
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deliver(shared: &Shared, listener: &dyn Listener) {
    loop {
        let idle = |pending: &mut Pending| pending.is_empty() && !pending.closed;
        drop(shared.came.wait_while(lock(&shared.pending), idle));
        // what belongs together comes together
        thread::sleep(Duration::from_millis(BATCH_MS));
        let mut pending = lock(&shared.pending);
        let closed = pending.closed;
        let batch = pending.batch.take();
        let notices = std::mem::take(&mut pending.notices);
        let badge = pending.badge.take();
        drop(pending);

        if !batch.is_empty() {
            listener.events(batch);
        }
        for Notice { session, title, body } in notices {
            listener.notify(session, &title, &body);
        }
        if let Some(count) = badge {
            listener.badge(count);
        }
        if closed {
            listener.exited();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    enum Told {
        Events(Vec<Event>),
        Notice(String),
        Badge(usize),
        Exited,
    }

    struct Slow {
        told: Sender<Told>,
        go: Mutex<Receiver<()>>,
    }

    impl Listener for Slow {
        fn events(&self, batch: Vec<Event>) {
            self.told.send(Told::Events(batch)).unwrap();
            self.go.lock().unwrap().recv().unwrap();
        }
        fn notify(&self, _: SessionId, title: &str, body: &str) {
            self.told.send(Told::Notice(format!("{title}: {body}"))).unwrap();
        }
        fn badge(&self, count: usize) {
            self.told.send(Told::Badge(count)).unwrap();
        }
        fn exited(&self) {
            self.told.send(Told::Exited).unwrap();
        }
    }

    #[test]
    fn a_listener_that_waits_gets_the_rest_joined_and_the_loop_goes_on() {
        let (told, heard) = channel();
        let (go, gate) = channel();
        let outbox = Outbox::start(Arc::new(Slow { told, go: Mutex::new(gate) })).unwrap();
        outbox.event(Event::Load(Some(1)));
        assert!(
            matches!(heard.recv().unwrap(), Told::Events(batch) if batch == [Event::Load(Some(1))])
        );

        // the listener now waits inside its call
        (2..=100).for_each(|n| outbox.event(Event::Load(Some(n))));
        outbox.badge(3);
        outbox.badge(4);
        outbox.notify(SessionId::default(), "a".to_string(), "b".to_string());
        outbox.close();
        (0..2).for_each(|_| go.send(()).unwrap());
        assert!(
            matches!(heard.recv().unwrap(), Told::Events(batch) if batch == [Event::Load(Some(100))])
        );
        assert!(matches!(heard.recv().unwrap(), Told::Notice(text) if text == "a: b"));
        assert!(matches!(heard.recv().unwrap(), Told::Badge(4)));
        assert!(matches!(heard.recv().unwrap(), Told::Exited));
    }
}
