//! The children: started on a thread of their own, fed, stopped by the recipe, swept.
//!
//! The loop never waits here. Whether a child is started, fed or stopped is the rules' business; this
//! does it and tells what came of it, in the order in which it happened.

use super::ground::Ground;
use super::sink::{Parents, Sink};
use super::words;
use crate::supervise::children;
use crate::supervise::driver::inbox::{Failed, Inbox, Message};
use crate::supervise::logs::redact;
use crate::supervise::pty::{self, Child, Signal};
use crate::supervise::secrets::Cut;
use omniscio_core::id::SessionId;
use omniscio_core::launch::LaunchPlan;
use omniscio_core::session::ChildMark;
use omniscio_core::supervisor::{Input, LaunchId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// One start of one session's child.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) session: SessionId,
    pub(super) launch: LaunchId,
}

/// All children.
pub(super) struct Launches {
    ground: Arc<Ground>,
    inbox: Arc<Inbox>,
    parents: Arc<Parents>,
    launches: BTreeMap<Key, Launch>,
    /// Ended without a thread that could tell of it: their exit tells.
    unwatched: BTreeSet<Key>,
    written: u64,
}

enum Launch {
    /// Its thread has not come back; `stop` if it is to be stopped as soon as it runs.
    Starting {
        stop: bool,
    },
    Running(Child),
}

impl Launches {
    /// No children yet.
    pub(super) fn new(ground: Arc<Ground>, inbox: Arc<Inbox>) -> Launches {
        let parents = Arc::new(Parents::new(Arc::clone(&ground)));
        Launches {
            ground,
            inbox,
            parents,
            launches: BTreeMap::new(),
            unwatched: BTreeSet::new(),
            written: 0,
        }
    }

    /// Starts a child; `Launched` follows, before anything that the child says.
    pub(super) fn spawn(&mut self, key: Key, plan: LaunchPlan, own: &mut VecDeque<Message>) {
        self.launches.insert(key, Launch::Starting { stop: false });
        let (ground, inbox) = (Arc::clone(&self.ground), Arc::clone(&self.inbox));
        let parents = Arc::clone(&self.parents);
        let started = worker("launch", move || launch(key, &plan, &ground, &inbox, parents));
        if let Err(error) = started {
            let child = Err(words::no_thread(&error));
            own.push_back(Message::Launched { session: key.session, launch: key.launch, child });
        }
    }

    /// Takes what became of a start; gives what the rules are to know.
    pub(super) fn launched(
        &mut self,
        key: Key,
        child: Result<Child, Failed>,
        own: &mut VecDeque<Message>,
    ) -> Input {
        let Key { session, launch } = key;
        let stop = matches!(self.launches.get(&key), Some(Launch::Starting { stop: true }));
        match child {
            Ok(child) => {
                // a start time that is unknown never matches a process: such a child is not swept
                let start = child.start_time().unwrap_or_default();
                let mark = ChildMark { pid: child.pid(), start };
                self.launches.insert(key, Launch::Running(child));
                if stop {
                    self.stop(key, own);
                }
                Input::Spawned { session, launch, child: mark }
            }
            Err(Failed { errno, words }) => {
                self.launches.remove(&key);
                if stop {
                    own.push_back(stopped(key, 0));
                }
                let words = redact(&words).into_owned();
                Input::SpawnFailed { session, launch, errno, words }
            }
        }
    }

    /// Writes a line to a child's stdin; only a failure is told.
    pub(super) fn write(&mut self, key: Key, line: String, own: &mut VecDeque<Message>) {
        self.written += 1;
        let refused = match self.launches.get(&key) {
            Some(Launch::Running(child)) => {
                child.write(self.written, line.into_bytes()).err().map(|error| error.to_string())
            }
            Some(Launch::Starting { .. }) | None => Some("the process does not run".to_string()),
        };
        if let Some(words) = refused {
            own.push_back(write_failed(key, words));
        }
    }

    /// Stops a child and sweeps what it leaves; `Stopped` follows.
    pub(super) fn stop(&mut self, key: Key, own: &mut VecDeque<Message>) {
        match self.launches.get_mut(&key) {
            None => own.push_back(stopped(key, 0)),
            Some(Launch::Starting { stop }) => *stop = true,
            Some(Launch::Running(child)) => {
                let child = child.clone();
                if self.stop_child(key, child).is_none() {
                    self.unwatched.insert(key);
                }
            }
        }
    }

    /// The child's exit reached the rules: it was swept before.
    pub(super) fn exited(&mut self, key: Key, own: &mut VecDeque<Message>) {
        self.launches.remove(&key);
        if self.unwatched.remove(&key) {
            own.push_back(stopped(key, 0));
        }
    }

    /// The starts that are under way or run.
    pub(super) fn live(&self) -> Vec<(SessionId, LaunchId)> {
        self.launches.keys().map(|key| (key.session, key.launch)).collect()
    }

    /// Stops whatever still runs and waits for it. For the end of the loop only.
    pub(super) fn stop_all(&mut self) {
        let mut stops = Vec::new();
        for (key, launch) in std::mem::take(&mut self.launches) {
            match launch {
                Launch::Running(child) => stops.extend(self.stop_child(key, child)),
                // it ends with the app: the kernel hangs its terminal up
                Launch::Starting { .. } => {}
            }
        }
        for stop in stops {
            // an error is a panic of that thread, which has been logged
            stop.join().ok();
        }
    }

    // rule: A-03
    fn stop_child(&self, key: Key, child: Child) -> Option<JoinHandle<()>> {
        let (ground, inbox) = (Arc::clone(&self.ground), Arc::clone(&self.inbox));
        let parents = Arc::clone(&self.parents);
        let stopping = child.clone();
        let started = worker("stop", move || {
            let report = children::stop(&stopping, ground.stop_timings());
            let leftovers = parents.sweep(key.session);
            match report.exit {
                Some(_) => inbox.push(stopped(key, leftovers)),
                // the rules go on without this report after their own limit
                None => tracing::error!(session = %key.session, "a child does not die"),
            }
        });
        match started {
            Ok(handle) => Some(handle),
            Err(error) => {
                // nobody could wait for a grace
                tracing::error!(session = %key.session, %error, "no thread to stop a child with");
                child.signal(Signal::Kill);
                None
            }
        }
    }
}

fn stopped(key: Key, leftovers: u32) -> Message {
    Message::Input(Input::Stopped { session: key.session, launch: key.launch, leftovers })
}

/// What the rules get to know of a line that was not written.
pub(super) fn write_failed(key: Key, words: String) -> Message {
    let words = redact(&words).into_owned();
    Message::Input(Input::WriteFailed { session: key.session, launch: key.launch, words })
}

/// A thread that nobody waits for unless they want to.
pub(super) fn worker<F>(name: &str, work: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    thread::Builder::new().name(name.to_string()).spawn(work)
}

/// The whole start, on its own thread.
fn launch(
    key: Key,
    plan: &LaunchPlan,
    ground: &Arc<Ground>,
    inbox: &Arc<Inbox>,
    parents: Arc<Parents>,
) {
    let gate = Arc::new(Mutex::new(()));
    // held until the loop has been told: only then the child's own events may come
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let child = ground.line(plan).and_then(|(line, secret)| {
        let cut = secret.as_ref().and_then(Cut::of);
        let parts = (Arc::clone(inbox), Arc::clone(&parents), Arc::clone(&gate));
        let sink = Sink::new(key, parts, ground, cut);
        let drain = Duration::from_millis(ground.limits.drain_ms);
        let child = pty::spawn(&line, drain, move |event| sink.take(event))
            .map_err(|error| words::refused(&line, &error))?;
        parents.record(key.session, child.id());
        Ok(child)
    });
    inbox.push(Message::Launched { session: key.session, launch: key.launch, child });
    drop(closed);
}
