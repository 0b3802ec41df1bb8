//! The probe says what the system would really give.

use super::alone::{User, alone, unseen};
use super::rig::{Shortage, limit_descriptors};
use omniscio_lib::supervise::probes::headroom;
use std::fs::File;
use std::thread;

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
