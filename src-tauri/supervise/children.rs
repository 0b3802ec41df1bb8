//! Stops a child by the recipe and sweeps what a dead one left behind.
//!
//! Every function waits, so the caller gives it a thread of its own. It never decides that something
//! is to be stopped, and never signals a process that is not proven to be this app's: the marker of
//! this data folder and of the session in its environment, the same pid **and** start time, and a
//! recorded parent CLI that is dead.

pub(in crate::supervise) mod capture;
pub(in crate::supervise) mod table;

use super::clock::Deadline;
use super::pty::{Child, Exit, Signal};
use rustix::process::{Pid, kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;
use table::Environ;

/// Variable of the marker that holds the session's id.
pub const MARKER_SESSION: &str = "OMNISCIO_SESSION";
/// Variable of the marker that tells installs with different data folders apart.
pub const MARKER_DATA: &str = "OMNISCIO_DATA";
/// The CLI tells its tools its own pid here (field guide 1.4).
const CLI_PID: &str = "CLAUDE_PID";
/// What dies may start something new first; after so many looks the rest is reported as left.
const SWEEP_ROUNDS: usize = 5;

/// A process and no other that later gets its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// The process id.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks from boot to its start.
    pub start_time: u64,
}

impl ProcessId {
    /// The process that has this pid now. `None` if there is none, and where `/proc` is missing.
    pub fn of(pid: u32) -> Option<ProcessId> {
        table::stat(pid).map(|stat| ProcessId { pid, start_time: stat.start_time })
    }
}

/// What every child of a session carries in its environment, and hands on to its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The session's id.
    pub session_id: String,
    /// Names the data folder of this install.
    pub data: String,
}

impl Marker {
    /// The marker as variables for a child's environment.
    pub fn variables(&self) -> [(&'static str, &str); 2] {
        [(MARKER_SESSION, &self.session_id), (MARKER_DATA, &self.data)]
    }
}

/// A session and every CLI process that was started for it and may have left something behind.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    /// The session's id.
    pub session_id: String,
    /// Its CLI processes, the living one too.
    pub parents: Vec<ProcessId>,
}

/// The waits of the stop recipe.
#[derive(Clone, Copy, Debug)]
pub struct StopTimings {
    /// From SIGTERM to SIGKILL.
    pub term_grace: Duration,
    /// From SIGKILL to giving up on seeing the end.
    pub kill_wait: Duration,
}

/// What the stop recipe came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// How the child ended; `None` if it could not be ended (stuck inside the kernel).
    pub exit: Option<Exit>,
    /// SIGTERM was not enough.
    pub killed: bool,
}

/// SIGTERM, wait, SIGKILL, wait for the reaping.
// rule: A-03, PR-05
pub fn stop(child: &Child, timings: StopTimings) -> StopReport {
    child.signal(Signal::Term);
    if let Some(exit) = child.wait(timings.term_grace) {
        return StopReport { exit: Some(exit), killed: false };
    }
    let killed = child.signal(Signal::Kill);
    StopReport { exit: child.wait(timings.kill_wait), killed }
}

/// Whether this very process lives. A zombie is dead.
pub fn alive(id: ProcessId) -> bool {
    table::stat(id.pid).is_some_and(|stat| stat.start_time == id.start_time && !stat.dead)
}

/// Whether this very process is known to be dead. One that cannot be looked at may live.
pub(super) fn gone(id: ProcessId) -> bool {
    let lives = |stat: table::Stat| stat.start_time == id.start_time && !stat.dead;
    table::look(id.pid).is_ok_and(|stat| !stat.is_some_and(lives))
}

/// The waits of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepTimings {
    /// From SIGTERM to SIGKILL.
    pub term_grace: Duration,
    /// From SIGKILL to giving up on seeing the end.
    pub kill_wait: Duration,
    /// How often the processes are looked at meanwhile.
    pub poll: Duration,
}

/// A process that a sweep ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptProcess {
    /// Which process.
    pub id: ProcessId,
    /// The session it belonged to.
    pub session_id: String,
    /// The name of its program, as the kernel has it.
    pub program: String,
    /// SIGTERM was not enough.
    pub killed: bool,
    /// It is gone; false only for one that not even SIGKILL ended in time.
    pub gone: bool,
}

/// Ends what the dead CLI processes of one session left behind. `protect` names processes that are
/// never touched, nor anything below them.
// rule: A-03, PR-05
pub fn sweep(
    marker: &Marker,
    parents: &[ProcessId],
    protect: &[u32],
    timings: SweepTimings,
) -> Vec<SweptProcess> {
    let session =
        RecordedSession { session_id: marker.session_id.clone(), parents: parents.to_vec() };
    sweep_sessions(&marker.data, &[session], protect, timings)
}

/// After a crash of the app: ends the CLI processes that survived it (recorded pid and start time,
/// and the marker), then what they left behind.
// rule: A-03
pub fn boot_sweep(
    data: &str,
    sessions: &[RecordedSession],
    stop: StopTimings,
    sweep: SweepTimings,
) -> Vec<SweptProcess> {
    let mut survivors = Vec::new();
    for session in sessions {
        for &id in session.parents.iter().filter(|&&id| alive(id)) {
            let victim = Victim::new(id, &session.session_id);
            if victim.still_ours(data) {
                survivors.push(victim);
            }
        }
    }
    let patient = SweepTimings { term_grace: stop.term_grace, kill_wait: stop.kill_wait, ..sweep };
    let mut swept = end_all(data, survivors, patient);
    swept.extend(sweep_sessions(data, sessions, &[], sweep));
    swept
}

fn sweep_sessions(
    data: &str,
    sessions: &[RecordedSession],
    protect: &[u32],
    timings: SweepTimings,
) -> Vec<SweptProcess> {
    let look = || Snapshot::take(data, sessions, protect).leftovers(sessions);
    in_rounds(look, |victims| end_all(data, victims, timings))
}

/// Ends what a look finds until it finds nothing new: one that could not be ended is waited for once.
fn in_rounds(
    look: impl Fn() -> Vec<Victim>,
    mut end: impl FnMut(Vec<Victim>) -> Vec<SweptProcess>,
) -> Vec<SweptProcess> {
    let mut swept: Vec<SweptProcess> = Vec::new();
    for _ in 0..SWEEP_ROUNDS {
        let mut victims = look();
        victims.retain(|victim| !swept.iter().any(|old| old.id == victim.id));
        if victims.is_empty() {
            break;
        }
        swept.extend(end(victims));
    }
    swept
}

struct Victim {
    id: ProcessId,
    session_id: String,
    program: String,
}

impl Victim {
    fn new(id: ProcessId, session_id: &str) -> Victim {
        Victim { id, session_id: session_id.to_string(), program: table::program(id.pid) }
    }

    /// Start time before **and** after reading the environment: both are of the same process.
    fn still_ours(&self, data: &str) -> bool {
        alive(self.id)
            && Environ::of(self.id.pid).is_some_and(|environ| {
                environ.get(MARKER_DATA) == Some(data.as_bytes())
                    && environ.get(MARKER_SESSION) == Some(self.session_id.as_bytes())
            })
            && alive(self.id)
    }

    fn signal(&self, data: &str, signal: Signal) {
        signal_if(self.id, signal, || self.still_ours(data));
    }
}

/// Signals the process if `meant` still says so, and none that got its number after that.
pub(in crate::supervise) fn signal_if(id: ProcessId, signal: Signal, meant: impl FnOnce() -> bool) {
    let Some(pid) = i32::try_from(id.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let handle = Handle::open(pid);
    if meant() && alive(id) {
        // an error means that it is gone, which the wait sees, or another user's
        handle.signal(signal).ok();
    }
}

/// Whether a process is a child of this app, or descends from one of this data folder.
pub(in crate::supervise) fn is_ours(pid: u32, data: &str) -> bool {
    let own = std::process::id();
    let child = own != 1 && table::stat(pid).is_some_and(|stat| stat.parent == own);
    child || Environ::of(pid).is_some_and(|env| env.get(MARKER_DATA) == Some(data.as_bytes()))
}

/// Whether this app runs below that process, or is it.
pub(in crate::supervise) fn is_above(pid: u32) -> bool {
    // the table changes meanwhile: no line is longer than this
    const LINE_MAX: usize = 1_000;
    let parent = |pid: &u32| table::stat(*pid).map(|stat| stat.parent);
    std::iter::successors(Some(std::process::id()), parent).take(LINE_MAX).any(|above| above == pid)
}

/// What a signal goes to.
enum Handle {
    /// The process itself: its number may be reused meanwhile.
    #[cfg(target_os = "linux")]
    Process(OwnedFd),
    /// Whoever has the number when the signal is sent: where the system knows no handles (Linux before
    /// 5.3, a sandbox without the call) or has none to give.
    Number(Pid),
}

impl Handle {
    #[cfg(target_os = "linux")]
    fn open(pid: Pid) -> Handle {
        pidfd_open(pid, PidfdFlags::empty()).map_or(Handle::Number(pid), Handle::Process)
    }

    #[cfg(not(target_os = "linux"))]
    fn open(pid: Pid) -> Handle {
        Handle::Number(pid)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Handle::Process(process) => pidfd_send_signal(process, signal.into())?,
            Handle::Number(pid) => kill_process(*pid, signal.into())?,
        }
        Ok(())
    }
}

fn end_all(data: &str, victims: Vec<Victim>, timings: SweepTimings) -> Vec<SweptProcess> {
    for victim in &victims {
        victim.signal(data, Signal::Term);
    }
    wait_gone(&victims, timings.term_grace, timings.poll);
    let stubborn: BTreeSet<ProcessId> =
        victims.iter().map(|victim| victim.id).filter(|&id| alive(id)).collect();
    for victim in victims.iter().filter(|victim| stubborn.contains(&victim.id)) {
        victim.signal(data, Signal::Kill);
    }
    wait_gone(&victims, timings.kill_wait, timings.poll);
    let report = |Victim { id, session_id, program }| SweptProcess {
        id,
        session_id,
        program,
        killed: stubborn.contains(&id),
        gone: !alive(id),
    };
    victims.into_iter().map(report).collect()
}

fn wait_gone(victims: &[Victim], limit: Duration, poll: Duration) {
    let deadline = Deadline::after(limit);
    while victims.iter().any(|victim| alive(victim.id)) && !deadline.passed() {
        thread::sleep(poll.min(deadline.left()));
    }
}

/// One look at all processes that carry the marker of this data folder.
struct Snapshot {
    marked: Vec<Marked>,
    /// Pid → parent, of every process.
    parent_of: BTreeMap<u32, u32>,
    /// Never touched, nor anything below.
    sheltered: BTreeSet<u32>,
    /// Never touched.
    spared: BTreeSet<u32>,
}

struct Marked {
    id: ProcessId,
    session_id: String,
    cli: Option<u32>,
}

impl Snapshot {
    fn take(data: &str, sessions: &[RecordedSession], protect: &[u32]) -> Snapshot {
        let own = std::process::id();
        let mut found = Snapshot {
            marked: Vec::new(),
            parent_of: BTreeMap::new(),
            sheltered: protect.iter().copied().collect(),
            spared: BTreeSet::new(),
        };
        for pid in table::pids() {
            let Some(stat) = table::stat(pid) else {
                continue;
            };
            found.parent_of.insert(pid, stat.parent);
            if stat.parent == own && own != 1 {
                // a child of this app is stopped through its handle
                found.sheltered.insert(pid);
            }
            let id = ProcessId { pid, start_time: stat.start_time };
            found.marked.extend(Marked::read(id, data).filter(|_| alive(id)));
        }
        let recorded = sessions.iter().flat_map(|session| &session.parents);
        found.sheltered.extend(recorded.filter(|&&id| alive(id)).map(|id| id.pid));
        // this app and whatever it was started from
        found.spared.extend(found.line_of(own));
        found
    }

    /// A process and its ancestors.
    fn line_of(&self, pid: u32) -> Vec<u32> {
        let mut line = vec![pid];
        while let Some(&parent) = line.last().and_then(|pid| self.parent_of.get(pid)) {
            if line.contains(&parent) {
                break;
            }
            line.push(parent);
        }
        line
    }

    fn leftovers(&self, sessions: &[RecordedSession]) -> Vec<Victim> {
        let parents: BTreeMap<&str, &[ProcessId]> =
            sessions.iter().map(|s| (s.session_id.as_str(), s.parents.as_slice())).collect();
        let left_behind = |marked: &&Marked| {
            parents.get(marked.session_id.as_str()).is_some_and(|of| self.left_behind(marked, of))
        };
        let victim = |marked: &Marked| Victim::new(marked.id, &marked.session_id);
        self.marked.iter().filter(left_behind).map(victim).collect()
    }

    /// Whether the CLI that this process belongs to is recorded and dead. Where that cannot be
    /// told, it counts as living.
    fn left_behind(&self, marked: &Marked, parents: &[ProcessId]) -> bool {
        if self.spared.contains(&marked.id.pid)
            || self.line_of(marked.id.pid).iter().any(|pid| self.sheltered.contains(pid))
            || parents.is_empty()
        {
            return false;
        }
        let mut of_its_cli = parents.iter().filter(|id| Some(id.pid) == marked.cli).peekable();
        if of_its_cli.peek().is_some() {
            return !of_its_cli.any(|&id| alive(id));
        }
        // its CLI is unknown (an MCP server, a CLI inside a tool): the unknown one must be dead, and
        // every recorded one
        let unknown_lives = self.marked.iter().any(|other| Some(other.id.pid) == marked.cli);
        !unknown_lives && !parents.iter().any(|&id| alive(id))
    }
}

impl Marked {
    fn read(id: ProcessId, data: &str) -> Option<Marked> {
        let environ = Environ::of(id.pid)?;
        if environ.get(MARKER_DATA)? != data.as_bytes() {
            return None;
        }
        let text = |name| Some(std::str::from_utf8(environ.get(name)?).ok()?.to_string());
        let cli = text(CLI_PID).and_then(|pid| pid.parse().ok());
        Some(Marked { id, session_id: text(MARKER_SESSION)?, cli })
    }
}

#[cfg(test)]
mod tests;
