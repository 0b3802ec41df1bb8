//! What a child writes arrives whole, in order and apart, and its end is told from its exit.

use super::rig::{LONG, Rig};
use omniscio_lib::supervise::pty::{ChildEvent, Signal};
use std::time::Duration;

// proves: A-01
#[test]
fn no_byte_is_changed_on_the_way() {
    let text = Rig::start(r"printf 'a\nb\r\nc\rd\003\004\021\023\032\377\000e\t'").rest();
    assert_eq!(text.stdout, b"a\nb\r\nc\rd\x03\x04\x11\x13\x1a\xff\0e\t");
}

// proves: PR-02
#[test]
fn a_character_cut_in_two_keeps_both_halves() {
    let rig = Rig::start(r"printf '\303'; read go; printf '\244'");
    assert_eq!(rig.next(), ChildEvent::Stdout(b"\xc3".to_vec()));
    rig.child.write(1, b"go\n".to_vec()).unwrap();
    assert_eq!(rig.rest().stdout, b"\xa4");
}

// proves: A-01, PR-04
#[test]
fn stderr_comes_apart_line_by_line_and_bounded() {
    let long = "x".repeat(9_000);
    let rig =
        Rig::with_env(r#"echo out; printf 'one\r\n\n%s\ntwo' "$LONG" >&2"#, &[("LONG", &long)]);
    let seen = rig.rest();
    assert_eq!(seen.text(), "out\n");
    assert_eq!(seen.stderr, ["one", "", &long[..8 * 1024], "two"]);
}

// proves: PR-03
#[test]
fn a_burst_before_the_exit_arrives_whole_two_hundred_times() {
    let big = "x".repeat(20_000);
    let wanted = format!("{big}\n{{\"type\":\"result\"}}\n");
    for round in 0..200 {
        let rig = Rig::until_the_end(
            r#"printf '%s\n%s\n' "$BIG" '{"type":"result"}'; exit 7"#,
            &[("BIG", &big)],
        );
        let seen = rig.rest();
        assert!(seen.text() == wanted, "round {round}: {} bytes", seen.stdout.len());
        assert!(seen.ended, "round {round}: the end of the output comes before the exit");
        assert_eq!((seen.code, seen.signal), (Some(7), None), "round {round}");
    }
}

// proves: PR-03
#[test]
fn what_a_dead_child_wrote_waits_for_a_slow_reader() {
    // what a terminal holds back without a reader
    let big = "x".repeat(8_000);
    // the pause lets the reader take `b` and be held with it before the burst comes
    let rig = Rig::with_slow_reader(
        r#"printf a; until [ -e go ]; do sleep 0.01; done; printf b; sleep 0.1; printf "$BIG"; exit 0"#,
        &[("BIG", &big)],
    );
    rig.until_output("a");
    std::fs::write(rig.home.path().join("go"), "").unwrap();
    // nobody takes an event: the child is dead before the reader reads on
    rig.child.wait(LONG).expect("the child exits");
    let seen = rig.rest();
    assert_eq!(seen.stdout.len(), 1 + big.len());
    assert!(seen.ended);
}

// proves: PR-03
#[test]
fn the_end_of_the_output_is_seen_while_the_child_lives() {
    let rig = Rig::start("printf last; exec >/dev/null; exec sleep 600");
    rig.until_output("last");
    assert_eq!(rig.next(), ChildEvent::OutputEnded);
    assert_eq!(rig.child.wait(Duration::ZERO), None, "it lives");
    assert!(rig.child.signal(Signal::Term));
    let last = ChildEvent::Exited { code: None, signal: Some(libc::SIGTERM) };
    assert_eq!(rig.next(), last);
}

// proves: PR-03
#[test]
fn an_exit_is_told_though_something_else_keeps_the_terminal_open() {
    let rig = Rig::start(
        "setsid sh -c 'echo $$ > left; exec sleep 600' & \
         while [ ! -s left ]; do :; done; echo hi; exit 3",
    );
    let seen = rig.rest();
    let left = super::rig::process_in(&rig.home.path().join("left"));
    assert!(left.alive(), "it holds the terminal still");
    assert_eq!((seen.text().as_str(), seen.code), ("hi\n", Some(3)));
    assert!(!seen.ended, "the output has not ended");
}
