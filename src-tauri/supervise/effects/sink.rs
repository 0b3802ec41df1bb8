//! Where a child's events arrive, on its own threads: its output goes on without secrets, an exit is
//! told once everything that the child left behind is gone.

use super::ground::Ground;
use super::launches::{Key, write_failed};
use crate::supervise::children::{self, ProcessId};
use crate::supervise::driver::inbox::{Inbox, Message};
use crate::supervise::logs::redact;
use crate::supervise::pty::ChildEvent;
use crate::supervise::secrets::Cut;
use omniscio_core::id::SessionId;
use omniscio_core::stream::Decoder;
use omniscio_core::supervisor::Input;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The CLI processes of each session that may have left something behind, and the sweep of it.
pub(super) struct Parents {
    ground: Arc<Ground>,
    of: Mutex<BTreeMap<SessionId, Vec<ProcessId>>>,
}

impl Parents {
    pub(super) fn new(ground: Arc<Ground>) -> Parents {
        Parents { ground, of: Mutex::default() }
    }

    /// Remembers a CLI process.
    pub(super) fn record(&self, session: SessionId, id: Option<ProcessId>) {
        lock(&self.of).entry(session).or_default().extend(id);
    }

    /// Ends what the dead CLI processes of a session left behind; gives how many that were.
    // rule: A-03
    pub(super) fn sweep(&self, session: SessionId) -> u32 {
        let parents = lock(&self.of).get(&session).cloned().unwrap_or_default();
        let marker = self.ground.marker(session);
        let swept = children::sweep(&marker, &parents, &[], self.ground.sweep_timings());
        for process in &swept {
            let (pid, gone, program) = (process.id.pid, process.gone, &process.program);
            tracing::info!(%session, pid, gone, program, "swept");
        }
        if swept.iter().all(|process| process.gone) {
            self.forget_dead(session, &parents);
        }
        u32::try_from(swept.len()).unwrap_or(u32::MAX)
    }

    fn forget_dead(&self, session: SessionId, swept: &[ProcessId]) {
        let dead = |id: &ProcessId| swept.contains(id) && !children::alive(*id);
        let mut of = lock(&self.of);
        if let Some(parents) = of.get_mut(&session) {
            parents.retain(|id| !dead(id));
            if parents.is_empty() {
                of.remove(&session);
            }
        }
    }
}

/// The end of one child's three threads.
#[derive(Clone)]
pub(super) struct Sink {
    key: Key,
    inbox: Arc<Inbox>,
    parents: Arc<Parents>,
    /// Closed until the loop knows of the child.
    gate: Arc<Mutex<()>>,
    /// Cuts the endpoint's secret out: an agent may print its environment, a gateway quote what it got.
    cut: Option<Arc<Mutex<Cut>>>,
    decoder: Arc<Mutex<Decoder>>,
}

impl Sink {
    pub(super) fn new(
        key: Key,
        (inbox, parents, gate): (Arc<Inbox>, Arc<Parents>, Arc<Mutex<()>>),
        ground: &Ground,
        cut: Option<Cut>,
    ) -> Sink {
        let decoder = Arc::new(Mutex::new(Decoder::new(ground.limits.line_max_bytes)));
        let cut = cut.map(|cut| Arc::new(Mutex::new(cut)));
        Sink { key, inbox, parents, gate, cut, decoder }
    }

    /// Takes one event; waits while the loop has enough to do.
    pub(super) fn take(&self, event: ChildEvent) {
        drop(lock(&self.gate));
        let Key { session, launch } = self.key;
        match event {
            ChildEvent::Stdout(bytes) => {
                // rule: A-32
                let cut = self.cut.as_ref().map(|cut| lock(cut).pass(&bytes));
                self.output(cut.unwrap_or(bytes), false);
            }
            ChildEvent::Stderr(line) => {
                let text = redact(&String::from_utf8_lossy(&line)).into_owned();
                let bytes = text.len();
                let input = Input::Chatter { session, launch, text };
                self.inbox.push_sized(Message::Input(input), bytes);
            }
            ChildEvent::OutputEnded => {
                self.finish();
                self.push(Input::OutputEnded { session, launch });
            }
            ChildEvent::Exited { code, signal } => {
                // what ended without its end of output may have left the start of a line
                self.finish();
                self.parents.sweep(session);
                self.push(Input::Exited { session, launch, code, signal });
            }
            ChildEvent::Written { .. } => {}
            ChildEvent::WriteFailed { error, .. } => {
                self.inbox.push(write_failed(self.key, error));
            }
        }
    }

    fn finish(&self) {
        let held_back = self.cut.as_ref().map(|cut| lock(cut).finish());
        self.output(held_back.unwrap_or_default(), true);
    }

    fn output(&self, bytes: Vec<u8>, ended: bool) {
        let Key { session, launch } = self.key;
        let (size, decoder) = (bytes.len(), Arc::clone(&self.decoder));
        let output = Message::Output { session, launch, bytes, ended, decoder };
        self.inbox.push_output(output, size);
    }

    fn push(&self, input: Input) {
        self.inbox.push(Message::Input(input));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
