//! Runs a test in a process and a network namespace of its own, where the loopback interface is all there is.
//! It never skips: a machine that refuses the namespace fails the test with a sentence. Processes that a test
//! leaves behind in its namespace are ended; no process outside it is ever touched.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Set inside the namespace; its value is the test's path.
const INSIDE: &str = "OMNISCIO_TEST_NS";

/// No test of the ring waits longer than 100 s; this leaves room for a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs `body` in a namespace of its own. `test_path` is the path that `cargo test -- --exact` takes, for example
/// `"mock_selftest::a_turn"`. Call it as the only statement of the test.
///
/// # Panics
/// When the body panics, when no namespace can be made, when `test_path` names no test or another one, and after
/// 180 s.
pub fn in_namespace(test_path: &str, body: impl FnOnce()) {
    match std::env::var(INSIDE) {
        Ok(inside) => {
            assert_eq!(inside, test_path, "in_namespace was given the path of another test");
            bring_up_loopback();
            assert_only_loopback();
            body();
        }
        Err(_) => run_inside(test_path),
    }
}

fn run_inside(test_path: &str) {
    let own_binary = std::env::current_exe().expect("a test binary knows its own path");
    let mut command = Command::new("unshare");
    command.arg("--net");
    if !is_root() {
        command.arg("--map-root-user");
    }
    // setpriv ties the test's life to this one; it stands behind unshare, which would clear the tie again
    command.args(["--", "setpriv", "--pdeathsig", "KILL", "--"]).arg(own_binary);
    command.args(["--exact", test_path, "--nocapture", "--test-threads=1"]);
    command.env(INSIDE, test_path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| {
        panic!("`unshare` cannot be started ({error}): install the package util-linux to run these tests")
    });
    let seen = follow(child);
    let found = seen.found.unwrap_or_else(|| {
        panic!(
            "this machine gives no network namespace to {test_path}: `unshare --net` ended with {}. \
             Run the tests as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1).",
            seen.status
        )
    });
    assert!(found == "running 1 test", "{test_path} names no test: {found}");
    assert!(!seen.timed_out, "{test_path} did not end within {LIMIT:?}");
    assert!(seen.status.success(), "{test_path} failed in its namespace: {}", seen.status);
}

struct Seen {
    /// What the test binary said it found by that path; `None` when it never came to run.
    found: Option<String>,
    timed_out: bool,
    status: ExitStatus,
}

/// Prints what the child prints until it ends, then ends what it left behind.
fn follow(mut child: Child) -> Seen {
    let (lines, received) = mpsc::channel();
    let readers = [
        child.stdout.take().map(|pipe| forward(pipe, lines.clone())),
        child.stderr.take().map(|pipe| forward(pipe, lines)),
    ];
    let deadline = Instant::now() + LIMIT;
    let (mut found, mut timed_out, mut namespace) = (None, false, None);
    let status = loop {
        match received.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => {
                found = found.or_else(|| line.starts_with("running ").then(|| line.clone()));
                // by its first line the child is where unshare put it
                namespace = namespace.or_else(|| network_of(child.id()));
                println!("  | {line}");
            }
            Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() > deadline && !timed_out {
            timed_out = true;
            child.kill().expect("an own child can be killed");
        }
        if let Some(status) = child.try_wait().expect("an own child can be waited for") {
            break status;
        }
    };
    // before the readers are joined: what is left behind may hold the pipes open
    if let Some(namespace) =
        namespace.filter(|own| network_of(std::process::id()).as_ref() != Some(own))
    {
        end_processes_in(&namespace);
    }
    for reader in readers.into_iter().flatten() {
        reader.join().expect("a reader only forwards lines");
    }
    for line in received.try_iter() {
        found = found.or_else(|| line.starts_with("running ").then(|| line.clone()));
        println!("  | {line}");
    }
    Seen { found, timed_out, status }
}

fn forward(pipe: impl Read + Send + 'static, to: mpsc::Sender<String>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if to.send(line).is_err() {
                return;
            }
        }
    })
}

/// The identity of a process's network namespace.
fn network_of(pid: u32) -> Option<std::path::PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

fn end_processes_in(namespace: &Path) {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    for pid in pids.filter(|pid| network_of(*pid).as_deref() == Some(namespace)) {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        println!("  | left behind by the test, ended: {pid} {}", name.trim());
        let killed =
            Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        // it may have ended by itself in the meantime, which is just as well
        drop(killed);
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn bring_up_loopback() {
    let status = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    let done = status.unwrap_or_else(|error| {
        panic!("`ip` cannot be started ({error}): install the package iproute2 to run these tests")
    });
    assert!(done.success(), "`ip link set lo up` failed in the namespace: {done}");
}

fn assert_only_loopback() {
    let table = fs::read_to_string("/proc/net/dev").expect("the kernel lists its interfaces");
    let names: Vec<&str> =
        table.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert_eq!(names, ["lo"], "the namespace reaches more than loopback");
}
