//! The app as a process: one per data folder, and its end by a signal.

use crate::ground::{APP, Ground, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// A session bus of its own.
struct Bus(Child, String);

impl Bus {
    fn start() -> Bus {
        let mut bus = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "dbus-daemon", "--session", "--nofork"])
            .args(["--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`setpriv` is missing: run `cargo xtask setup --test`");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(!address.is_empty(), "`dbus-daemon` does not start");
        Bus(bus, address.trim().to_owned())
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn app(ground: &Ground, bus: &Bus) -> Child {
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--", APP])
        .args(ground.args())
        .env_clear()
        .envs(ground.env())
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.1)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

// proves: A-31
#[test]
fn one_app_works_on_a_data_folder_and_a_signal_quits_it() {
    let ground = Ground::new();
    let (bus, other_bus) = (Bus::start(), Bus::start());
    let first = app(&ground, &bus);
    wait_for("the first app", || (ground.app_process()? == first.id()).then_some(()));

    // on the same bus it raises the first window and ends
    let (code, words) = end(app(&ground, &bus));
    assert_eq!(code, Some(0), "{words}");
    // where it cannot find the first one, the lock stops it, and it says so
    let (code, words) = end(app(&ground, &other_bus));
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("already runs with this data folder"), "{words}");
    assert_eq!(ground.app_process(), Some(first.id()));

    let pid = Pid::from_raw(i32::try_from(first.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (code, words) = end(first);
    assert_eq!(code, Some(0), "{words}");
}
