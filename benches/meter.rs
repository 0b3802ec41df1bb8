//! What this process has used so far: processor time, wake-ups, memory; and the clock that it shares
//! with its children.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// What this process had used at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    cpu_ns: u64,
    /// Voluntary context switches of all threads that live.
    wakeups: u64,
    /// Resident memory.
    pub(crate) rss_bytes: u64,
}

/// What it used between two moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    /// Processor time as a share of one core.
    pub(crate) cores: f64,
    /// Wake-ups a second.
    pub(crate) wakeups: f64,
}

impl Reading {
    pub(crate) fn now() -> Reading {
        Reading {
            at: Instant::now(),
            cpu_ns: nanos(ClockId::ProcessCPUTime),
            wakeups: wakeups(),
            rss_bytes: rss_bytes(),
        }
    }

    pub(crate) fn until(self, later: Reading) -> Use {
        let passed = later.at.duration_since(self.at).as_secs_f64();
        Use {
            cores: (later.cpu_ns - self.cpu_ns) as f64 / 1e9 / passed,
            wakeups: later.wakeups.saturating_sub(self.wakeups) as f64 / passed,
        }
    }
}

/// What this process uses while `span` passes; this thread sleeps.
pub(crate) fn during(span: Duration) -> Use {
    let before = Reading::now();
    thread::sleep(span);
    before.until(Reading::now())
}

/// Nanoseconds of a clock that all processes share.
pub(crate) fn shared_ns() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Processor time that `work` takes on this thread, in milliseconds: what other programs do on the
/// machine is not in it.
pub(crate) fn processor_ms<T>(work: impl FnOnce() -> T) -> f64 {
    let before = nanos(ClockId::ThreadCPUTime);
    std::hint::black_box(work());
    millis(nanos(ClockId::ThreadCPUTime) - before)
}

/// Processor time that all programs of the machine and its kernel took while `work` went on, in
/// milliseconds, and what `work` gives.
pub(crate) fn machine_ms<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = machine_ticks();
    let given = work();
    let ticks = machine_ticks() - before;
    (given, ticks as f64 * 1e3 / TICKS_PER_S)
}

/// Of `/proc/stat`, on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// The busy ticks of all cores since the machine started.
fn machine_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("facts of the machine");
    let fields = stat.lines().next().and_then(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> = fields
        .expect("the sum of all cores")
        .split_whitespace()
        .map(|number| number.parse().expect("a number that the kernel tells"))
        .collect();
    // user, nice, system, idle, waits for a disk, interrupts of both kinds
    [0, 1, 2, 5, 6].iter().map(|field| ticks[*field]).sum()
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).expect("after 1970") * 1_000_000_000
        + u64::try_from(time.tv_nsec).expect("a part of a second")
}

fn wakeups() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("a table of threads").flatten();
    // a thread may end meanwhile
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    texts.map(|text| field(&text, "voluntary_ctxt_switches:")).sum()
}

fn rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("facts of this process");
    field(&status, "VmRSS:") * 1024
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).expect("a number that the kernel tells")
}

/// The value below which so many of a hundred lie.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    assert!(!values.is_empty(), "there is something to rank");
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent).div_ceil(100).saturating_sub(1)]
}

/// Milliseconds in so many nanoseconds.
pub(crate) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
