//! The spawn path at its limits: whatever it fails at, it tells the system's number and leaves nothing.

use super::alone::{User, alone};
use super::rig::{Shortage, children, limit_descriptors, open_descriptors, threads};
use crate::rig::{DRAIN, LONG, await_some, script};
use omniscio_lib::supervise::pty::{Child, LaunchLine, Signal, SpawnError, SpawnStep, spawn};
use std::collections::BTreeSet;
use std::env;

/// More than a start ever needs at once.
const ENOUGH: usize = 64;

fn line() -> LaunchLine {
    script(&env::temp_dir(), "exec sleep 600", &[])
}

fn start() -> Result<Child, SpawnError> {
    spawn(&line(), DRAIN, |_| {})
}

fn end(child: Child) {
    child.signal(Signal::Kill);
    assert!(child.wait(LONG).is_some(), "it does not end");
}

/// The steps at which a start failed, and how much it took for one that did not.
fn tried(wanted: i32, mut with: impl FnMut(usize) -> Result<Child, SpawnError>) -> Tried {
    let mut steps = BTreeSet::new();
    for left in 0..ENOUGH {
        match with(left) {
            Ok(child) => {
                end(child);
                return Tried { steps, needed: left };
            }
            Err(error) => {
                assert_eq!(error.errno, Some(wanted), "with {left} left: {error:?}");
                assert!(error.message.contains("os error"), "{error:?}");
                steps.insert(name(error.step));
            }
        }
        assert_eq!(children(), Vec::<String>::new(), "with {left} left");
    }
    panic!("no start succeeds");
}

struct Tried {
    steps: BTreeSet<&'static str>,
    needed: usize,
}

fn name(step: SpawnStep) -> &'static str {
    match step {
        SpawnStep::OpenPty => "terminal",
        SpawnStep::RawMode => "modes",
        SpawnStep::Folder => "folder",
        SpawnStep::Exec => "fork",
        SpawnStep::Thread => "threads",
    }
}

// proves: RS-06
#[test]
fn a_start_without_descriptors_is_emfile_wherever_it_fails() {
    alone(User::Same, || {
        limit_descriptors(100);
        let before = open_descriptors();
        let tried = tried(libc::EMFILE, |left| {
            let mut shortage = Shortage::of_descriptors();
            shortage.give_back(left);
            let started = start();
            drop(shortage);
            if started.is_err() {
                assert_eq!(open_descriptors(), before, "with {left} left");
            }
            started
        });
        // what attends to a child needs no more than the fork before it
        assert_eq!(tried.steps, BTreeSet::from(["fork", "terminal"]));
        end(start().unwrap());
    });
}

// proves: RS-06
#[test]
fn a_start_without_processes_is_eagain_wherever_it_fails() {
    alone(User::Unused, || {
        let before = threads();
        let tried = tried(libc::EAGAIN, |left| {
            let shortage = Shortage::of_processes(left as u64);
            let started = start();
            drop(shortage);
            if started.is_err() {
                // the threads that were made end by themselves
                await_some(|| (threads() == before).then_some(()));
            }
            started
        });
        assert_eq!(tried.steps, BTreeSet::from(["fork", "threads"]));
        // the process and its three threads
        assert_eq!(tried.needed, 4);
        end(start().unwrap());
    });
}
