//! Sessions that come and go leave nothing behind in the app: its descriptors, threads and memory stay
//! flat, whether the child was stopped, died by itself, or never started.
//!
//! The app that is measured is this test binary, started again for this one test, so that nothing is
//! counted that another test opened. With [`HOME`] set the test is that app, without it the judge.

use super::rig::{LONG, await_some};
use super::supervisor::rig::{Deaf, Ground, config, create, marked};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::session::Status;
use omniscio_core::supervisor::Command;
use omniscio_lib::supervise::clock::Deadline;
use omniscio_lib::supervise::handle::Handle;
use omniscio_lib::supervise::supervisor::{Cli, Config, Supervisor};
use std::env;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

/// Which home the measured app works on.
const HOME: &str = "CYCLES_TEST_HOME";
/// How many cycles it measures.
const CYCLES: &str = "CYCLES_TEST_CYCLES";

/// Cycles before the first that is measured: what is made once is made by then.
const WARM_UP: usize = 10;
/// More bytes than the database keeps in memory for one connection.
const CACHED_MAX: usize = 3 * 1024 * 1024;
/// What the app may grow by between the first third of the cycles and the last, in KiB: the 2,000 that
/// the database keeps for the connection that only reads fill over some hundred cycles.
const GROWTH_MAX_KIB: u64 = 2_560;
/// How often the app is looked at before what it holds counts as kept: a thread may end a little later
/// than it tells.
const LOOKS_MAX: usize = 100;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    descriptors: u64,
    threads: u64,
    memory_kib: u64,
}

impl Held {
    fn now() -> Held {
        let count = |folder| fs::read_dir(folder).unwrap().count() as u64;
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let memory_kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
        Held { descriptors: count("/proc/self/fd"), threads: count("/proc/self/task"), memory_kib }
    }

    fn least(self, other: Held) -> Held {
        Held {
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
            memory_kib: self.memory_kib.min(other.memory_kib),
        }
    }

    /// The least that is seen, once it is no more than `before` or was looked at for long enough.
    fn settled(before: Held) -> Held {
        let mut least = Held::now();
        for _ in 0..LOOKS_MAX {
            if least.descriptors <= before.descriptors && least.threads <= before.threads {
                break;
            }
            thread::sleep(PAUSE);
            least = least.least(Held::now());
        }
        least
    }
}

/// The measured app, and the link by which it finds its CLI.
struct App {
    handle: Handle,
    home: PathBuf,
    link: PathBuf,
}

impl App {
    fn start(home: &Path) -> App {
        let link = home.join("claude");
        symlink(env!("CARGO_BIN_EXE_omniscio-fake-claude"), &link).unwrap();
        let mut config: Config = config(home);
        config.cli = Cli::Fixed { program: link.clone(), args: Vec::new() };
        // a recovery at once
        config.limits.scan_interval_ms = 20;
        config.limits.replay_debounce_ms = 30;
        config.limits.spawn_gap_ms = 1;
        App { handle: Supervisor::start(config, Deaf).unwrap(), home: home.to_path_buf(), link }
    }

    fn row(&self, session: SessionId) -> Option<RowView> {
        let rows = self.handle.snapshot().unwrap().rows;
        rows.into_iter().find(|view| view.row.id == session)
    }

    fn until(&self, session: SessionId, like: impl Fn(&RowView) -> bool) {
        let deadline = Deadline::after(LONG);
        while !self.row(session).is_some_and(|view| like(&view)) {
            if deadline.passed() {
                let why = self.handle.explain(session);
                panic!("it did not come: {:#?}, {why:#?}", self.row(session));
            }
            thread::sleep(PAUSE);
        }
    }

    fn create(&self, text: &str) -> SessionId {
        create(&self.handle, &self.home, text)
    }

    fn answered(&self, session: SessionId, answer: &str) {
        self.until(session, |view| {
            view.row.answer_line.as_deref() == Some(answer) && view.row.turn.is_none()
        });
    }

    /// The database keeps so many of its pages in memory: here are more, written and read.
    fn fill_caches(&self) {
        let session =
            self.create(&format!("Hello. [[fake: say Hello.]]{}", ".".repeat(CACHED_MAX)));
        self.answered(session, "Hello.");
        self.handle.page(session, None, 10).unwrap();
        self.delete(session);
    }

    fn delete(&self, session: SessionId) {
        self.handle.command(Command::Delete { session }).unwrap();
        await_some(|| self.row(session).is_none().then_some(()));
    }

    /// One session that is answered and ended, one whose child dies and which comes back, one that
    /// finds no CLI.
    fn cycle(&self) {
        let ended = self.create("Say hello. [[fake: say Hello.]]");
        self.answered(ended, "Hello.");
        self.handle.command(Command::End { session: ended }).unwrap();
        self.until(ended, |view| !view.live.child);
        self.delete(ended);

        let dies = self.create("Go. [[fake: fail-first 1 kill; say Done.]]");
        self.answered(dies, "Done.");
        self.handle.command(Command::Archive { session: dies }).unwrap();
        self.delete(dies);

        fs::remove_file(&self.link).unwrap();
        let fails = self.create("Hello.");
        self.until(fails, |view| view.row.status == Status::Error);
        self.delete(fails);
        symlink(env!("CARGO_BIN_EXE_omniscio-fake-claude"), &self.link).unwrap();
    }
}

/// The app: writes what it holds after each cycle to `held` in its home.
fn measured(home: &Path) {
    let cycles: usize = env::var(CYCLES).unwrap().parse().unwrap();
    let app = App::start(home);
    app.fill_caches();
    let mut held = Held::now();
    let mut file = fs::File::create(home.join("held")).unwrap();
    for cycle in 0..WARM_UP + cycles {
        app.cycle();
        held = Held::settled(held);
        if cycle >= WARM_UP {
            let Held { descriptors, threads, memory_kib } = held;
            writeln!(file, "{descriptors} {threads} {memory_kib}").unwrap();
        }
    }
    app.handle.quit().unwrap();
    await_some(|| app.handle.ended_within(PAUSE).then_some(()));
}

/// Starts the measured app and gives what it held after each cycle.
fn measure(cycles: usize) -> Vec<Held> {
    let ground = Ground::new();
    let home = ground.home.path();
    let mut app = process::Command::new(env::current_exe().unwrap());
    app.args(["--exact", "cycles::sessions_that_come_and_go_leave_nothing_behind", "--nocapture"]);
    app.env(HOME, home).env(CYCLES, cycles.to_string());
    // one heap that gives back what is free at its end: what stays is what is held
    app.env("MALLOC_ARENA_MAX", "1").env("MALLOC_TRIM_THRESHOLD_", "65536");
    app.env("MALLOC_MMAP_THRESHOLD_", "65536");
    assert!(app.status().unwrap().success(), "the measured app fails");
    assert_eq!(marked(home), Vec::<u32>::new(), "a child is left");

    let text = fs::read_to_string(home.join("held")).unwrap();
    let held = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        Held { descriptors: numbers[0], threads: numbers[1], memory_kib: numbers[2] }
    };
    text.lines().map(held).collect()
}

fn median(all: &[Held], what: fn(&Held) -> u64) -> u64 {
    let mut numbers: Vec<u64> = all.iter().map(what).collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

/// What the app kept of its sessions: the medians of the first and the last third tell, one cycle that
/// is measured too early does not.
fn grown(all: &[Held]) -> Vec<String> {
    let third = all.len() / 3;
    let (first, last) = (&all[..third], &all[all.len() - third..]);
    let mut grown = Vec::new();
    let mut look = |name: &str, what: fn(&Held) -> u64, allowed: u64| {
        let (before, after) = (median(first, what), median(last, what));
        println!("{} cycles: {name} {before}, then {after}", all.len());
        if after > before + allowed {
            grown.push(format!("{name}: {before}, then {after}"));
        }
    };
    look("descriptors", |held| held.descriptors, 0);
    look("threads", |held| held.threads, 0);
    look("KiB of memory", |held| held.memory_kib, GROWTH_MAX_KIB);
    grown
}

#[test]
fn sessions_that_come_and_go_leave_nothing_behind() {
    if let Some(home) = env::var_os(HOME) {
        return measured(home.as_ref());
    }
    let cycles = if env::var_os("OMNISCIO_LONG").is_some() { 1_000 } else { 100 };
    let all = measure(cycles);
    assert_eq!(all.len(), cycles);
    assert_eq!(grown(&all), Vec::<String>::new(), "{all:?}");
}

#[test]
fn whatever_is_kept_of_a_cycle_is_told() {
    let flat = Held { descriptors: 13, threads: 7, memory_kib: 17_000 };
    // seen too early now and then
    let mut early = vec![flat; 100];
    early[10].threads = 9;
    early[95].descriptors = 20;
    assert_eq!(grown(&early), Vec::<String>::new());
    let leaks: [fn(u64) -> Held; 3] = [
        |n| Held { descriptors: 13 + n / 50, threads: 7, memory_kib: 17_000 },
        |n| Held { descriptors: 13, threads: 7 + n / 50, memory_kib: 17_000 },
        |n| Held { descriptors: 13, threads: 7, memory_kib: 17_000 + 48 * n },
    ];
    for leak in leaks {
        assert_eq!(grown(&(0..100).map(leak).collect::<Vec<_>>()).len(), 1);
    }
}
