//! Shortages of this very process, and a supervisor in it whose launches are counted.

use super::alone::{stand_in, unseen};
use crate::supervisor::rig::{App, Ground, LONG, Told, config};
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Event, RowView};
use omniscio_core::limits::Limits;
use omniscio_core::session::Status;
use omniscio_core::supervisor::{Act, Input, LaunchId, State, Step, step};
use omniscio_core::time::Now;
use omniscio_lib::supervise::clock::Deadline;
use omniscio_lib::supervise::supervisor::{Cli, Config};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Gives this process so many descriptors for good.
pub(super) fn limit_descriptors(many: u64) {
    let limit = Rlimit { current: Some(many), maximum: Some(many) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Descriptors that this process has open.
pub(super) fn open_descriptors() -> u64 {
    // one of them is this look's own
    fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1
}

/// Threads of this process.
pub(super) fn threads() -> u64 {
    fs::read_dir("/proc/self/task").unwrap().count() as u64
}

/// Children of this process that nobody waited for yet.
pub(super) fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
    let all: Vec<String> = tasks.map(of).map(Result::unwrap_or_default).collect();
    all.iter().flat_map(|some| some.split_whitespace()).map(str::to_string).collect()
}

/// Something that this process has no more of, until it is dropped.
pub(super) enum Shortage {
    /// No descriptor but these can be opened.
    Descriptors(Vec<File>),
    /// No process and no thread can be started; the limit as it was.
    Processes(Rlimit),
}

impl Shortage {
    /// Takes every descriptor that is left.
    pub(super) fn of_descriptors() -> Shortage {
        let mut held = Vec::new();
        let error = loop {
            match File::open("/dev/null") {
                Ok(file) => held.push(file),
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        Shortage::Descriptors(held)
    }

    /// Takes so many descriptors.
    pub(super) fn of_some_descriptors(many: usize) -> Shortage {
        let held = (0..many).map(|_| File::open("/dev/null").unwrap());
        Shortage::Descriptors(held.collect())
    }

    /// So many descriptors can be opened again.
    pub(super) fn give_back(&mut self, many: usize) {
        match self {
            Shortage::Descriptors(held) => held.truncate(held.len() - many),
            Shortage::Processes(_) => panic!("it holds no descriptors"),
        }
    }

    /// Allows this many tasks beyond those that there are.
    pub(super) fn of_processes(left: u64) -> Shortage {
        let before = getrlimit(Resource::Nproc);
        let current = Some(threads() + children().len() as u64 + unseen() + left);
        setrlimit(Resource::Nproc, Rlimit { current, ..before }).unwrap();
        Shortage::Processes(before)
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        match self {
            Shortage::Descriptors(held) => held.clear(),
            Shortage::Processes(before) => setrlimit(Resource::Nproc, *before).unwrap(),
        }
    }
}

/// What came of the launches of this process's only supervisor.
#[derive(Default)]
pub(super) struct Watched {
    /// Spawn calls that are under way, and the most of them at once.
    under_way: BTreeSet<(SessionId, LaunchId)>,
    pub(super) most: usize,
    /// Spawn calls of each session.
    pub(super) spawns: BTreeMap<SessionId, usize>,
    /// The numbers of those that failed.
    pub(super) failed: BTreeMap<SessionId, Vec<Option<i32>>>,
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

pub(super) fn watched<T>(look: impl FnOnce(&mut Watched) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<Watched>> = WATCHED.lock().unwrap();
    look(guard.get_or_insert_default())
}

/// The rules as they are, looked at.
fn rules(state: &mut State, input: Input, now: Now) -> Step {
    watched(|watched| match &input {
        Input::Spawned { session, launch, .. } => {
            watched.under_way.remove(&(*session, *launch));
        }
        Input::SpawnFailed { session, launch, errno, .. } => {
            watched.under_way.remove(&(*session, *launch));
            watched.failed.entry(*session).or_default().push(*errno);
        }
        Input::Boot(_)
        | Input::Wake
        | Input::Slept { .. }
        | Input::Stream { .. }
        | Input::Chatter { .. }
        | Input::OutputEnded { .. }
        | Input::Exited { .. }
        | Input::Stopped { .. }
        | Input::WriteFailed { .. }
        | Input::CommitRefused { .. }
        | Input::Answer { .. }
        | Input::Load { .. }
        | Input::Window { .. }
        | Input::Cli { .. }
        | Input::Command { .. } => {}
    });
    let step = step(state, input, now);
    watched(|watched| {
        for act in &step.acts {
            if let Act::Spawn { session, launch, .. } = act {
                watched.under_way.insert((*session, *launch));
                watched.most = watched.most.max(watched.under_way.len());
                *watched.spawns.entry(*session).or_default() += 1;
            }
        }
    });
    step
}

/// The stand-in under watched rules; a launch is tried again soon, and nothing holds it back.
pub(super) fn watched_config(ground: &Ground) -> Config {
    let config = config(ground.home.path());
    Config {
        limits: Limits {
            relaunch_first_ms: 10,
            relaunch_max_ms: 40,
            // spawn calls meet: nothing but their slots keeps them apart
            spawn_gap_ms: 0,
            starting_max: 1_000,
            // no second look fails in the place of a launch
            look_fresh_ms: 3_600_000,
            headroom_descriptors: 0,
            headroom_processes: 0,
            headroom_memory_mib: 0,
            // a machine that is busy with other tests
            handshake_ms: 60_000,
            ..config.limits
        },
        cli: Cli::Fixed { program: stand_in(), args: Vec::new() },
        rules,
        ..config
    }
}

/// A message that is answered at once.
pub(super) const HELLO: &str = "Hello. [[fake: say Hello.]]";

/// So many new sessions, each with its first message.
pub(super) fn create(app: &App, ground: &Ground, many: usize) -> Vec<SessionId> {
    (0..many).map(|_| app.create(ground, HELLO)).collect()
}

/// Waits until what was watched is like this.
pub(super) fn until_watched(what: &str, like: impl Fn(&Watched) -> bool) {
    let deadline = Deadline::after(LONG);
    while !watched(|watched| like(watched)) {
        let failed = watched(|watched| watched.failed.clone());
        assert!(!deadline.passed(), "no {what} in time: {failed:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a row was ever told that is like this.
pub(super) fn was_told(app: &App, like: impl Fn(&RowView) -> bool) -> bool {
    app.until("look", |told| Some(holds(told, &like)))
}

/// Waits until a row was told that has this place in line.
pub(super) fn until_place(app: &App, place: u32) {
    let like = |view: &RowView| view.live.place == Some(place);
    app.until("place in line", |told| holds(told, like).then_some(()));
}

fn holds(told: &Told, like: impl Fn(&RowView) -> bool) -> bool {
    told.events.iter().any(|event| matches!(event, Event::Row(view) if like(view)))
}

/// No session was ever red.
pub(super) fn assert_none_was_red(app: &App) {
    assert!(!was_told(app, |view| view.row.status == Status::Error), "a session was red");
}

/// The small system lines of a session.
pub(super) fn notes(app: &App, session: SessionId) -> Vec<String> {
    let page = app.handle.page(session, None, 200).unwrap();
    let text = |block: omniscio_core::block::Block| match block.kind {
        BlockKind::Note { text } => Some(text),
        BlockKind::Operator { .. }
        | BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    };
    page.blocks.into_iter().filter_map(text).collect()
}

/// The lines that so many failed launches bring: one for the first, then one for every tenth.
pub(super) fn wanted_notes(failures: usize) -> Vec<String> {
    let hiccup =
        "Launch hiccup — the machine looks busy. Keeping at it until this session is back…";
    let first = (failures > 0).then(|| hiccup.to_string());
    let later = (1..=failures).filter(|attempt| attempt % 10 == 0);
    let later = later.map(|n| format!("Still relaunching this session… (attempt {n})"));
    first.into_iter().chain(later).collect()
}
