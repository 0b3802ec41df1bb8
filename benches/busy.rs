//! What sessions cost whose agents all talk at once, with a listener that does what the window's does.

use crate::child::Role;
use crate::figure::Figure;
use crate::flow;
use crate::idle::SESSIONS;
use crate::meter::during;
use crate::rig::{self, App, stand_in};
use omniscio_core::id::SessionId;
use omniscio_core::session::Status;
use omniscio_core::supervisor::{Input, State, Step, step};
use omniscio_core::time::Now;
use omniscio_lib::supervise::pty::{Child, Signal, spawn};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Lines that each session writes in a second.
const RATE: u64 = 25;
const WATCHED: Duration = Duration::from_secs(20);
/// The slowest start of all is over by then, and nobody has come to an end.
const SETTLED: Duration = Duration::from_secs(2);
/// More words than are spoken until everything has been measured.
const WORDS: usize = 25 * 60;
const GOAL_CORES: f64 = 0.05;

/// Lines of all children so far.
static LINES: AtomicU64 = AtomicU64::new(0);

/// See the file.
pub(crate) fn measure() -> Vec<Figure> {
    let thrown_away = thrown_away();
    let app = App::start(stand_in(), counting);
    let words = "word ".repeat(WORDS);
    let text = format!("[[fake: slow {}; say {words}]]", 1_000 / RATE);
    let sessions: Vec<SessionId> = (0..SESSIONS).map(|_| app.create(&text)).collect();
    app.until(&sessions, Status::Running);
    thread::sleep(SETTLED);
    let before = LINES.load(Ordering::Relaxed);
    let used = during(WATCHED);
    let lines = LINES.load(Ordering::Relaxed) - before;
    app.until(&sessions, Status::Running);
    let rate = lines as f64 / WATCHED.as_secs_f64();
    let per_line = used.cores / rate * 1e6;
    vec![
        Figure::new(
            format!("{SESSIONS} sessions that talk, {rate:.0} lines a second"),
            format!("{:.1} % of a core, {per_line:.0} us a line", used.cores * 100.0),
            format!("{:.1} % with as many lines thrown away", thrown_away * 100.0),
            used.cores / thrown_away,
        )
        .goal("<= 5 % of a core", used.cores <= GOAL_CORES),
    ]
}

/// The share of a core that it takes to read as many lines of as many children and to throw them away.
fn thrown_away() -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines");
    fs::write(&file, flow::recorded()).expect("the lines");
    let pause = Duration::from_millis(1_000 / RATE);
    let line = rig::line(&Role::Paced { file: &file, pause }, folder.path());
    let children: Vec<Child> =
        (0..SESSIONS).map(|_| spawn(&line, Duration::ZERO, drop).expect("a child")).collect();
    thread::sleep(SETTLED);
    let used = during(WATCHED);
    for child in children {
        child.signal(Signal::Kill);
        child.wait(SETTLED).expect("its end");
    }
    used.cores
}

/// The rules; counts what the children say.
fn counting(state: &mut State, input: Input, now: Now) -> Step {
    if matches!(input, Input::Stream { .. }) {
        LINES.fetch_add(1, Ordering::Relaxed);
    }
    step(state, input, now)
}
