//! The app's own share of a session's start: from the command to the child's exec, and from the
//! child's answer to the handshake to its first message. What the child takes in between is its own.

use crate::child::{Role, Times};
use crate::figure::Figure;
use crate::meter::{millis, percentile, shared_ns};
use crate::rig::{self, App};
use omniscio_core::session::Status;
use omniscio_core::supervisor::{Input, State, Step, Write, step};
use omniscio_core::time::{Now, Wall};
use omniscio_lib::supervise::pty::{ChildEvent, spawn};
use omniscio_lib::supervise::store::{Committed, Store, database_path};
use omniscio_lib::supervise::supervisor::Cli;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const STARTS: usize = 30;
/// Starts do not wait for one another's gap.
const APART: Duration = Duration::from_millis(600);
const GOAL_MS: f64 = 10.0;

/// What the rules saw, by [`shared_ns`].
static SEEN: Mutex<Seen> = Mutex::new(Seen { spawned: None, steps: Vec::new() });

struct Seen {
    /// The last child that came to life: its pid, and when the rules heard of it.
    spawned: Option<(u32, u64)>,
    /// What each step had to commit, in order, and when.
    steps: Vec<(u64, Vec<Write>)>,
}

/// One start.
struct Start {
    own_ms: f64,
    commits_ms: f64,
    commits: usize,
}

/// See the file.
pub(crate) fn measure() -> Vec<Figure> {
    let times = tempfile::tempdir().expect("a folder");
    let args = Role::Cli { folder: times.path() }.args().into_iter().map(Into::into).collect();
    let app = App::start(Cli::Fixed { program: rig::own_program(), args }, watched);
    let mut disk = Disk::beside(&app);
    let starts: Vec<Start> = (0..STARTS).map(|_| start(&app, times.path(), &mut disk)).collect();
    let ranked = |percent: usize, of: fn(&Start) -> f64| {
        percentile(&mut starts.iter().map(of).collect::<Vec<_>>(), percent)
    };
    let own = ranked(50, |start| start.own_ms);
    let commits = ranked(50, |start| start.commits_ms);
    let bare = bare_spawn_ms(times.path());
    let slow = ranked(95, |start| start.own_ms);
    let count = starts.iter().map(|start| start.commits).max().unwrap_or_default();
    vec![
        Figure::new(
            "own share of a session's start",
            format!("{own:.1} ms (p95 {slow:.1})"),
            format!("{bare:.1} ms for the bare spawn"),
            own / bare,
        )
        .goal("<= 10 ms", own <= GOAL_MS),
        Figure::new(
            format!("- of it {count} durable commits"),
            format!("{commits:.1} ms"),
            format!("{own:.1} ms in all"),
            commits / own,
        ),
    ]
}

/// The rules; notes what a start is made of.
fn watched(state: &mut State, input: Input, now: Now) -> Step {
    let at = shared_ns();
    let spawned =
        if let Input::Spawned { child, .. } = &input { Some((child.pid, at)) } else { None };
    let step = step(state, input, now);
    let mut seen = SEEN.lock().expect("no panic");
    seen.spawned = spawned.or(seen.spawned);
    if !step.writes.is_empty() {
        seen.steps.push((at, step.writes.clone()));
    }
    step
}

/// Starts one session and takes its times.
fn start(app: &App, times: &Path, disk: &mut Disk) -> Start {
    thread::sleep(APART);
    disk.commit(&take_steps());
    let commanded = shared_ns();
    let session = app.create("Go.");
    let (pid, told) =
        wait_for(|| SEEN.lock().expect("no panic").spawned.filter(|(_, at)| *at > commanded));
    let child = wait_for(|| Times::left_in(times, pid));
    app.until(&[session], Status::NeedsYou);
    let steps = take_steps();
    // what the answer brought is no part of the start
    let (steps, later) = steps.split_at(steps.partition_point(|(at, _)| *at <= child.message));
    let commits_ms = disk.commit(steps);
    disk.commit(later);
    let exec = told.min(child.began);
    let own = (exec - commanded) + (child.message - child.answered);
    Start { own_ms: millis(own), commits_ms, commits: steps.len() }
}

fn take_steps() -> Vec<(u64, Vec<Write>)> {
    std::mem::take(&mut SEEN.lock().expect("no panic").steps)
}

fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the start hangs");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A second database on the same disk, which takes the same steps: what a commit takes there is what it
/// takes in the app.
struct Disk {
    store: Store,
}

impl Disk {
    fn beside(app: &App) -> Disk {
        let store = Store::open(&database_path(&app.home().join("beside"))).expect("a store");
        Disk { store }
    }

    /// Commits the steps one by one; gives how long it took in milliseconds.
    fn commit(&mut self, steps: &[(u64, Vec<Write>)]) -> f64 {
        let before = Instant::now();
        for (_, writes) in steps {
            let done = self.store.commit(writes, Wall(0)).expect("a commit");
            assert_eq!(done, Committed::Done, "the same rows as in the app");
        }
        before.elapsed().as_secs_f64() * 1e3
    }
}

/// What the same program takes from the call to its first line of code, by the real spawn alone.
fn bare_spawn_ms(folder: &Path) -> f64 {
    let mut times: Vec<f64> = (0..STARTS)
        .map(|_| {
            let (told, heard) = channel();
            let line = rig::line(&Role::Silent, folder);
            let before = shared_ns();
            let child = spawn(&line, Duration::ZERO, move |event| drop(told.send(event)));
            let after = shared_ns();
            child.expect("a child").close_stdin();
            while !matches!(heard.recv(), Ok(ChildEvent::Exited { .. }) | Err(_)) {}
            millis(after - before)
        })
        .collect();
    percentile(&mut times, 50)
}
