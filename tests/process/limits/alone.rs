//! A test in a process of its own: this test binary, started again with that one test.
//!
//! Only the process that is told so runs the test's body. The test itself passes when that process has
//! come to the body's end and says so; nothing passes because it had nothing to do.

use omniscio_lib::supervise::clock::Deadline;
use std::any::type_name;
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Set in the process of its own: the test's path.
const INSIDE: &str = "OMNISCIO_TEST_ALONE";
/// Set there: the stand-in, where the user of that process may run it.
const CLI: &str = "OMNISCIO_TEST_ALONE_CLI";
/// Set there: how many processes count with it that it cannot see.
const UNSEEN: &str = "OMNISCIO_TEST_ALONE_UNSEEN";
/// Beyond this a test hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// Between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// From here on users are looked for that have no process.
const FIRST_UNUSED_USER: u32 = 64_321;

/// Who runs the test's process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// Who runs the tests.
    Same,
    /// A user without any other process: root is bound by no limit of processes, and processes of the
    /// same user elsewhere would count.
    Unused,
}

/// Runs `body` in a process of its own. Call it as the only statement of the test.
pub(super) fn alone<B: FnOnce()>(user: User, body: B) {
    let test = test_of::<B>();
    match env::var(INSIDE) {
        Ok(inside) => {
            assert_eq!(inside, test, "this process is another test's");
            body();
            fs::write(done(&env::temp_dir()), test).unwrap();
        }
        Err(_) => judge(user, test),
    }
}

/// The stand-in, where this process may run it.
pub(super) fn stand_in() -> PathBuf {
    env::var_os(CLI).expect("only a process of its own asks").into()
}

/// How many processes count for the limits of this process and do not show in its `/proc`.
pub(super) fn unseen() -> u64 {
    env::var(UNSEEN).map_or(0, |unseen| unseen.parse().unwrap())
}

/// `process::limits::spawn::a_test::{{closure}}` is `limits::spawn::a_test` to the test binary.
fn test_of<B>() -> &'static str {
    let (_, path) = type_name::<B>().split_once("::").unwrap();
    path.trim_end_matches("::{{closure}}")
}

/// The file by which the body's end is known.
fn done(home: &Path) -> PathBuf {
    home.join("done")
}

fn judge(user: User, test: &str) {
    let home = tempfile::Builder::new().prefix("omniscio-limits-").tempdir().unwrap();
    let home = home.path();
    let cli = home.join("stand-in");
    // by another process: a handle open for writing that a fork of another test inherits would make
    // every start of it fail
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_omniscio-fake-claude")).arg(&cli);
    assert!(copy.status().unwrap().success());

    let said = home.join("said");
    let out = File::create(&said).unwrap();
    let mut command = program(user, home);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).current_dir(home);
    command.env(INSIDE, test).env(CLI, &cli).env("TMPDIR", home);
    command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
    let mut process = Alone(command.spawn().unwrap());
    let deadline = Deadline::after(LIMIT);
    let status = loop {
        let ended = process.0.try_wait().unwrap();
        if ended.is_some() || deadline.passed() {
            break ended;
        }
        thread::sleep(PAUSE);
    };
    let said = fs::read_to_string(&said).unwrap_or_default();
    let said = said.lines().map(|line| format!("  | {line}\n")).collect::<String>();
    let Some(status) = status else { panic!("{test} does not end:\n{said}") };
    assert!(status.success(), "{test} failed in its own process ({status}):\n{said}");
    let end = fs::read_to_string(done(home)).unwrap_or_default();
    assert_eq!(end, test, "its process did not run it:\n{said}");
}

/// This test binary, run by that user. A path leads to it that needs no right on its folders.
fn program(user: User, home: &Path) -> Command {
    const SELF: &str = "/proc/self/exe";
    if user == User::Same {
        return Command::new(SELF);
    }
    if rustix::process::geteuid().is_root() {
        let user = unused_user();
        chown(home, Some(user), Some(user)).unwrap();
        let mut command = Command::new(SELF);
        command.uid(user).gid(user);
        return command;
    }
    // the limits of a user namespace of its own count only what is in it: this process and `unshare`
    let mut command = Command::new("unshare");
    command.env(UNSEEN, "1");
    command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "--"]).arg(env::current_exe().unwrap());
    command
}

/// A user that no process has, for nobody else in this run.
fn unused_user() -> u32 {
    static GIVEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap();
    let mut used = given.clone();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let status = fs::read_to_string(process.path().join("status")).unwrap_or_default();
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
        used.extend(users.split_whitespace().filter_map(|user| user.parse::<u32>().ok()));
    }
    let user = (FIRST_UNUSED_USER..).find(|user| !used.contains(user)).unwrap();
    given.insert(user);
    user
}

struct Alone(Child);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
