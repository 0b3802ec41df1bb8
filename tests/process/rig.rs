//! A started shell script with its events, and processes that a test must not leave behind.

use omniscio_lib::supervise::children::{Marker, ProcessId, alive};
use omniscio_lib::supervise::clock::Deadline;
use omniscio_lib::supervise::pty::{Child, ChildEvent, LaunchLine, Signal, spawn};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Beyond this a test hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// For what a child leaves behind.
pub(crate) const DRAIN: Duration = Duration::from_millis(200);

pub(crate) fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    list.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A shell script as a child's launch line; its folder is `home`.
pub(crate) fn script(home: &Path, text: &str, env: &[(&str, &str)]) -> LaunchLine {
    let mut env = pairs(env);
    env.extend(pairs(&[("PATH", "/usr/bin:/bin")]));
    LaunchLine {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), text.into()],
        env,
        cwd: home.into(),
    }
}

/// A running script.
pub(crate) struct Rig {
    pub(crate) child: Child,
    pub(crate) home: TempDir,
    events: Receiver<ChildEvent>,
}

impl Rig {
    pub(crate) fn start(text: &str) -> Rig {
        Rig::with_env(text, &[])
    }

    pub(crate) fn marked(text: &str, marker: &Marker) -> Rig {
        Rig::with_env(text, &marker.variables())
    }

    pub(crate) fn with_env(text: &str, env: &[(&str, &str)]) -> Rig {
        Rig::drained_for(DRAIN, text, env)
    }

    /// The end of the output is waited for: what another test starts at this moment may hold this
    /// terminal, too, until its program is loaded.
    pub(crate) fn until_the_end(text: &str, env: &[(&str, &str)]) -> Rig {
        Rig::drained_for(LONG, text, env)
    }

    fn drained_for(drain: Duration, text: &str, env: &[(&str, &str)]) -> Rig {
        let home = tempfile::tempdir().unwrap();
        let (sender, events) = channel();
        let sink = move |event| drop(sender.send(event));
        let child = spawn(&script(home.path(), text, env), drain, sink).unwrap();
        Rig { child, home, events }
    }

    /// The reader goes on after an event only when the test takes the next one.
    pub(crate) fn with_slow_reader(text: &str, env: &[(&str, &str)]) -> Rig {
        let home = tempfile::tempdir().unwrap();
        let (sender, events) = sync_channel(0);
        let sink = move |event| drop(sender.send(event));
        let child = spawn(&script(home.path(), text, env), LONG, sink).unwrap();
        Rig { child, home, events }
    }

    pub(crate) fn next(&self) -> ChildEvent {
        self.events.recv_timeout(LONG).expect("an event in time")
    }

    /// Reads on until stdout has given `wanted`.
    pub(crate) fn until_output(&self, wanted: &str) {
        let mut all = Vec::new();
        while !String::from_utf8_lossy(&all).contains(wanted) {
            let event = self.next();
            let ChildEvent::Stdout(bytes) = event else {
                panic!("{event:?} before {wanted:?}; so far {all:?}")
            };
            all.extend(bytes);
        }
    }

    /// All events up to the exit.
    pub(crate) fn rest(&self) -> Seen {
        let mut seen = Seen::default();
        loop {
            let event = self.next();
            match &event {
                ChildEvent::Stdout(bytes) => {
                    assert!(!seen.ended, "output after its end");
                    seen.stdout.extend(bytes);
                }
                ChildEvent::Stderr(line) => seen.stderr.push(String::from_utf8_lossy(line).into()),
                ChildEvent::OutputEnded => {
                    assert!(!seen.ended, "two ends");
                    seen.ended = true;
                }
                ChildEvent::Written { token } => seen.written.push(*token),
                ChildEvent::WriteFailed { token, .. } => seen.failed.push(*token),
                ChildEvent::Exited { code, signal } => {
                    (seen.code, seen.signal) = (*code, *signal);
                    break;
                }
            }
        }
        assert_eq!(self.events.recv().ok(), None, "an event after the exit");
        seen
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.child.id().unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.child.signal(Signal::Kill);
    }
}

/// What came of a child.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<String>,
    pub(crate) ended: bool,
    pub(crate) written: Vec<u64>,
    pub(crate) failed: Vec<u64>,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into()
    }
}

/// Waits until `what` is there.
pub(crate) fn await_some<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::after(LONG);
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(!deadline.passed(), "it did not come");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The words of a file that ends with a line end, once it is there.
pub(crate) fn words_of(path: &Path) -> Vec<String> {
    await_some(|| {
        let text = fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))?;
        Some(text.split_whitespace().map(str::to_string).collect())
    })
}

/// The process whose pid stands in a file.
pub(crate) fn process_in(path: &Path) -> Stray {
    let pid = words_of(path)[0].parse().unwrap();
    Stray(ProcessId::of(pid).expect("it lives"))
}

pub(crate) fn await_death(id: ProcessId) {
    await_some(|| (!alive(id)).then_some(()));
}

/// A process that is no child of this one; ended when the test is over.
pub(crate) struct Stray(pub(crate) ProcessId);

impl Stray {
    pub(crate) fn alive(&self) -> bool {
        alive(self.0)
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        if self.alive() {
            let kill = format!("kill -9 {}", self.0.pid);
            assert!(Command::new("/bin/sh").args(["-c", &kill]).status().is_ok());
        }
    }
}

/// The script of a process of its own session that ignores SIGTERM and writes its pid to `file`.
pub(crate) fn stubborn(file: &str) -> String {
    format!("trap '' TERM; echo $$ > {file}; exec sleep 600")
}

/// Starts [`stubborn`] as an orphan with `env`, the way a tool lives on after its CLI.
pub(crate) fn orphan(home: &Path, env: &[(&str, &str)]) -> Stray {
    let file = format!("stray-{}", fs::read_dir(home).unwrap().count());
    let text = "setsid sh -c \"$0\" </dev/null >/dev/null 2>&1 &";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", text, &stubborn(&file)]).current_dir(home);
    assert!(shell.envs(env.iter().copied()).status().unwrap().success());
    process_in(&home.join(file))
}
