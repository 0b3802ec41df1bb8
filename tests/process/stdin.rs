//! What is written to a child arrives whole, and what cannot be written is said.

use super::rig::{LONG, Rig, process_in};
use omniscio_lib::supervise::pty::{Signal, WriteRefused};
use std::fs;

/// Every byte value, line ends and no period that a buffer size could hide.
fn odd_bytes(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

// proves: PR-06, A-01
#[test]
fn a_message_of_a_mebibyte_arrives_byte_for_byte() {
    let rig = Rig::start("cat > got");
    let message = odd_bytes(1024 * 1024);
    rig.child.write(7, message.clone()).unwrap();
    rig.child.close_stdin();
    assert_eq!(rig.child.write(8, Vec::new()), Err(WriteRefused::Closed));
    let seen = rig.rest();
    assert_eq!((seen.written, seen.code), (vec![7], Some(0)));
    assert!(fs::read(rig.home.path().join("got")).unwrap() == message);
    assert_eq!(seen.stdout, b"", "nothing is echoed");
}

// proves: PR-06
#[test]
fn messages_arrive_in_order() {
    let rig = Rig::start("cat");
    for token in 0..50 {
        rig.child.write(token, format!("{token}\n").into_bytes()).unwrap();
    }
    rig.child.close_stdin();
    let seen = rig.rest();
    assert_eq!(seen.written, (0..50).collect::<Vec<_>>());
    assert_eq!(seen.text(), (0..50).map(|n| format!("{n}\n")).collect::<String>());
}

#[test]
fn a_child_that_does_not_read_fills_the_queue_and_every_message_is_accounted_for() {
    let rig = Rig::start("exec sleep 600");
    let mut taken = Vec::new();
    let refused = loop {
        let token = taken.len() as u64;
        match rig.child.write(token, vec![b'x'; 1024 * 1024]) {
            Ok(()) => taken.push(token),
            Err(refused) => break refused,
        }
        assert!(taken.len() < 1_000, "the queue has a bound");
    };
    assert_eq!(refused, WriteRefused::Full);
    assert!(rig.child.signal(Signal::Kill));
    let seen = rig.rest();
    assert_eq!((seen.failed, seen.written), (taken, vec![]), "each failed, before the exit");
}

#[test]
fn a_pipe_that_something_else_keeps_open_does_not_hold_the_end_up() {
    let rig = Rig::start(
        "exec 3<&0; setsid sh -c 'echo $$ > left; exec sleep 600' <&3 >/dev/null 2>&1 & read go; exit 0",
    );
    let left = process_in(&rig.home.path().join("left"));
    rig.child.write(1, [b"go\n".to_vec(), vec![b'x'; 1024 * 1024]].concat()).unwrap();
    rig.child.wait(LONG).expect("the child exits");
    let seen = rig.rest();
    assert!(left.alive());
    assert_eq!((seen.failed, seen.written), (vec![1], vec![]));
}
