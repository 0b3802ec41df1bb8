//! The app as a process: one per data folder, its end by a signal, its end by itself.

use crate::ground::{APP, Ground, wait_for};
use rusqlite::Connection;
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

    terminate(&first);
    let (code, words) = end(first);
    assert_eq!(code, Some(0), "{words}");
}

// proves: A-31
#[tokio::test]
async fn a_start_while_the_app_quits_is_a_new_app() {
    let mut ground = Ground::new();
    // its child resists SIGTERM, so that quitting takes this long
    ground.limits.term_grace_ms = 3_000;
    ground.account("default", &["ignore-term; hang"; 5]);
    run_a_session(&ground).await;

    let bus = Bus::start();
    let first = app(&ground, &bus);
    wait_for("the session's child", || {
        (ground.launches().matches("-p --input-format").count() == 2).then_some(())
    });
    terminate(&first);
    wait_for("a line in the log", || {
        (ground.log().matches("the app quits").count() == 2).then_some(())
    });
    let second = app(&ground, &bus);
    let second_has_it = || (ground.app_process()? == second.id()).then_some(());
    wait_for("the second app", second_has_it);
    let (code, words) = end(first);
    assert_eq!(code, Some(0), "{words}");
    terminate(&second);
    let (code, words) = end(second);
    assert_eq!(code, Some(0), "{words}");
}

#[tokio::test]
async fn an_app_that_cannot_go_on_says_so() {
    let mut ground = Ground::new();
    ground.account("default", &["hang"; 5]);
    run_a_session(&ground).await;
    // no change of a session can be stored any more, and waiting does not mend that
    let store = Connection::open(ground.at("data/omniscio.db")).unwrap();
    let fault =
        "CREATE TRIGGER fault BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'no'); END";
    store.execute_batch(fault).unwrap();
    drop(store);

    let (code, words) = end(app(&ground, &Bus::start()));
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("Omniscio cannot go on and ends"), "{words}");
    assert!(ground.log().contains("the app ends: it cannot go on"), "{}", ground.log());
}

/// Leaves a session in the data folder that runs again at the app's next start.
async fn run_a_session(ground: &Ground) {
    let window = ground.open().await;
    window.start_session(&ground.project(), "Go on for ever").await;
    window.row("a running row", |row| row.label == "Running").await;
    window.quit(ground).await;
}

fn terminate(app: &Child) {
    let pid = Pid::from_raw(i32::try_from(app.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}
