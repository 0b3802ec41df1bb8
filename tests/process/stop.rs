//! The stop recipe, and signals that must not be sent.

use super::rig::{LONG, Rig};
use omniscio_lib::supervise::children::{StopReport, StopTimings, alive, stop};
use omniscio_lib::supervise::pty::{Exit, Signal};
use std::time::Duration;

const QUICK: StopTimings = StopTimings { term_grace: Duration::from_millis(100), kill_wait: LONG };
const PATIENT: StopTimings = StopTimings { term_grace: LONG, kill_wait: LONG };

// proves: A-03
#[test]
fn sigterm_comes_first_and_its_answer_is_waited_for() {
    let rig = Rig::start("trap 'echo bye; exit 143' TERM; echo up; sleep 600 & wait");
    rig.until_output("up");
    let exit = Some(Exit { code: Some(143), signal: None });
    assert_eq!(stop(&rig.child, PATIENT), StopReport { exit, killed: false });
    assert_eq!(rig.rest().text(), "bye\n", "its last words are kept");
}

// proves: A-03, PR-05
#[test]
fn a_child_that_ignores_sigterm_is_killed_and_reaped() {
    let rig = Rig::start("trap '' TERM; echo up; exec sleep 600");
    rig.until_output("up");
    let exit = Some(Exit { code: None, signal: Some(libc::SIGKILL) });
    assert_eq!(stop(&rig.child, QUICK), StopReport { exit, killed: true });
    assert!(!alive(rig.id()));
}

// proves: A-03
#[test]
fn no_signal_goes_out_after_the_reaping() {
    let rig = Rig::start("exit 5");
    let exit = Exit { code: Some(5), signal: None };
    assert_eq!(rig.child.wait(LONG), Some(exit));
    assert!(!rig.child.signal(Signal::Term));
    assert!(!rig.child.signal(Signal::Kill));
    assert_eq!(stop(&rig.child, QUICK), StopReport { exit: Some(exit), killed: false });
}

#[test]
fn a_pid_alone_is_no_process() {
    let rig = Rig::start("exec sleep 600");
    let mut id = rig.id();
    assert!(alive(id));
    id.start_time += 1;
    assert!(!alive(id), "the same number, another process");
}
