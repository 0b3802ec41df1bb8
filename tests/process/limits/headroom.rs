//! The probe says what the system would really give, and a child is dead only when that is known.

use super::alone::{User, alone, unseen};
use super::rig::{Shortage, limit_descriptors};
use crate::rig::{LONG, Rig};
use omniscio_core::session::ChildMark;
use omniscio_lib::supervise::probes::{headroom, is_gone};
use omniscio_lib::supervise::pty::Signal;
use std::fs::File;
use std::{process, thread};

#[test]
fn headroom_knows_to_one_how_many_descriptors_are_left() {
    alone(User::Same, || {
        limit_descriptors(64);
        for left in [0, 1, 2, 7, 30] {
            let mut shortage = Shortage::of_descriptors();
            shortage.give_back(left);
            assert_eq!(headroom().descriptors, Some(left as u64));
            let opened: Vec<_> = (0..left).map(|_| File::open("/dev/null").unwrap()).collect();
            assert!(File::open("/dev/null").is_err(), "{} and one more", opened.len());
        }
    });
}

// proves: LV-01
#[test]
fn a_child_that_nobody_can_look_at_is_not_taken_for_dead() {
    alone(User::Same, || {
        limit_descriptors(64);
        let rig = Rig::start("exec sleep 600");
        let id = rig.id();
        let mark = ChildMark { pid: id.pid, start: id.start_time };
        assert!(!is_gone(mark));
        let held = Shortage::of_descriptors();
        assert!(!is_gone(mark), "it lives");
        drop(held);
        rig.child.signal(Signal::Kill);
        assert!(rig.child.wait(LONG).is_some());
        assert!(is_gone(mark));
        assert!(is_gone(ChildMark { pid: process::id(), start: 1 }), "another one of this number");
        assert!(!is_gone(ChildMark { start: 0, ..mark }), "nobody knows which one it was");
    });
}

#[test]
fn headroom_knows_to_one_how_many_processes_are_left() {
    alone(User::Unused, || {
        for left in [0, 1, 5] {
            let shortage = Shortage::of_processes(left);
            assert_eq!(headroom().processes, Some(left + unseen()));
            let started = (0..left).map(|_| thread::Builder::new().spawn(thread::park).unwrap());
            let started: Vec<_> = started.collect();
            let error = thread::Builder::new().spawn(|| ()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
            assert_eq!(headroom().processes, Some(unseen()));
            drop(shortage);
            for thread in started {
                thread.thread().unpark();
                thread.join().unwrap();
            }
        }
    });
}
