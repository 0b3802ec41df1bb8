//! Who else has a conversation open, and the end of such a program, on real processes.

use super::rig::{LONG, Rig, Stray, await_death, orphan, process_in};
use super::sweep::marker;
use omniscio_core::id::{CliSessionId, Uuid};
use omniscio_core::session::Holder;
use omniscio_lib::supervise::children::ProcessId;
use omniscio_lib::supervise::probes::Holders;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const HELD: CliSessionId = Uuid(0x5a1d);
const OTHER: CliSessionId = Uuid(0x5a1e);
const POLL: Duration = Duration::from_millis(5);
/// How long a stubborn program is waited for.
const SHORT: Duration = Duration::from_millis(100);

/// Two accounts' config folders.
struct Accounts {
    home: TempDir,
    folders: Vec<PathBuf>,
    data: String,
}

impl Accounts {
    fn new(test: &str) -> Accounts {
        let home = tempfile::tempdir().unwrap();
        let folders = ["missing", "one", "two"].map(|name| home.path().join(name)).to_vec();
        folders[1..].iter().for_each(|folder| fs::create_dir_all(folder.join("sessions")).unwrap());
        Accounts { home, folders, data: marker(test).data }
    }

    fn holders<'a>(&'a self, conversations: &'a [CliSessionId]) -> Holders<'a> {
        let config_folders = &self.folders;
        let own = self.folders.get(1).map(PathBuf::as_path);
        Holders { config_folders, own, limit: LONG, conversations, data: &self.data }
    }

    fn first(&self) -> Option<Holder> {
        self.holders(&[HELD]).first().unwrap()
    }

    fn file(&self, account: &str, pid: u32) -> PathBuf {
        self.home.path().join(account).join("sessions").join(format!("{pid}.json"))
    }

    /// The file that this program would write.
    fn tell(&self, account: &str, of: ProcessId, conversation: CliSessionId) {
        fs::write(self.file(account, of.pid), text(of, conversation)).unwrap();
    }
}

fn text(of: ProcessId, conversation: CliSessionId) -> String {
    let (pid, start) = (of.pid, of.start_time.to_string());
    let told = serde_json::json!({
        "pid": pid, "sessionId": conversation.to_string(), "cwd": "/p", "procStart": start,
        "version": "2.1.332", "kind": "interactive", "status": "idle",
    });
    told.to_string()
}

fn holder(of: ProcessId) -> Holder {
    Holder { pid: of.pid, start: of.start_time, folder: "/p".to_string() }
}

/// A program of somebody else that ends when it is asked to.
fn willing(home: &Path) -> Stray {
    let file = home.join(format!("willing-{}", fs::read_dir(home).unwrap().count()));
    let tool = format!("echo $$ > '{}'; exec sleep 600", file.display());
    let text = "setsid sh -c \"$0\" </dev/null >/dev/null 2>&1 &";
    assert!(Command::new("/bin/sh").args(["-c", text, &tool]).status().unwrap().success());
    process_in(&file)
}

// proves: A-12
#[test]
fn a_living_program_that_names_the_conversation_holds_it_in_whichever_account() {
    let accounts = Accounts::new("names");
    assert_eq!(accounts.first(), None);
    let program = willing(accounts.home.path());
    accounts.tell("two", program.0, OTHER);
    assert_eq!(accounts.first(), None, "it has another one open");
    assert_eq!(accounts.holders(&[HELD, OTHER]).first(), Ok(Some(holder(program.0))));
    accounts.tell("two", program.0, HELD);
    assert_eq!(accounts.first(), Some(holder(program.0)));
    // of two the one that runs longest, whatever the order of the files
    let second = willing(accounts.home.path());
    accounts.tell("one", second.0, HELD);
    let oldest = [program.0, second.0].into_iter().min_by_key(|id| (id.start_time, id.pid));
    assert_eq!(accounts.first(), oldest.map(holder));
}

// proves: A-12
#[test]
fn a_file_that_its_program_left_behind_names_nobody() {
    let accounts = Accounts::new("left-behind");
    let program = willing(accounts.home.path());
    // somebody else has the number by now
    let before = ProcessId { start_time: program.0.start_time - 1, ..program.0 };
    accounts.tell("one", before, HELD);
    assert_eq!(accounts.first(), None);
    accounts.tell("one", program.0, HELD);
    assert_eq!(accounts.first(), Some(holder(program.0)));
    assert!(Command::new("kill").args(["-9", &program.0.pid.to_string()]).status().is_ok());
    await_death(program.0);
    assert_eq!(accounts.first(), None);
}

// proves: A-12
#[test]
fn what_cannot_be_read_is_passed_over_and_the_rest_is_read() {
    let accounts = Accounts::new("garbage");
    let living = std::process::id();
    let fifo = accounts.file("one", living);
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    assert_eq!(accounts.first(), None, "a pipe that nobody writes to does not hold the look up");

    let programs: Vec<Stray> = (0..6).map(|_| willing(accounts.home.path())).collect();
    let of = |n: usize| programs[n].0;
    fs::write(accounts.file("one", of(0).pid), "{\"pid\":").unwrap();
    let huge = format!("{}{}", text(of(1), HELD), " ".repeat(64 * 1024));
    fs::write(accounts.file("one", of(1).pid), huge).unwrap();
    fs::create_dir(accounts.file("one", of(2).pid)).unwrap();
    let elsewhere = accounts.home.path().join("elsewhere");
    fs::write(&elsewhere, text(of(3), HELD)).unwrap();
    symlink(&elsewhere, accounts.file("one", of(3).pid)).unwrap();
    // a file that speaks of another program than its name
    fs::write(accounts.file("one", of(4).pid), text(of(5), HELD)).unwrap();
    fs::write(accounts.home.path().join("one/sessions/x.json"), text(of(5), HELD)).unwrap();
    assert_eq!(accounts.first(), None);
    accounts.tell("two", of(5), HELD);
    assert_eq!(accounts.first(), Some(holder(of(5))));
}

// proves: A-12
#[test]
fn what_is_this_apps_own_is_no_stranger() {
    let accounts = Accounts::new("own");
    let child = Rig::with_env("exec sleep 600", &[]);
    accounts.tell("one", child.id(), HELD);
    assert_eq!(accounts.first(), None, "a child");
    let data = accounts.data.clone();
    let below = orphan(accounts.home.path(), &[("OMNISCIO_DATA", &data)]);
    accounts.tell("one", below.0, HELD);
    assert_eq!(accounts.first(), None, "what a child started");
    assert!(accounts.holders(&[HELD]).end(&holder(below.0), SHORT, POLL));
    assert!(below.alive(), "and it is not asked to end");
    let of_another_install = orphan(accounts.home.path(), &[("OMNISCIO_DATA", "another")]);
    accounts.tell("one", of_another_install.0, HELD);
    assert_eq!(accounts.first(), Some(holder(of_another_install.0)));
}

// proves: A-12
#[test]
fn the_holder_alone_is_asked_to_end() {
    let accounts = Accounts::new("take-over");
    let program = willing(accounts.home.path());
    // the same program with the same arguments, and one with a file of its own
    let (alike, other) = (willing(accounts.home.path()), willing(accounts.home.path()));
    accounts.tell("one", program.0, HELD);
    accounts.tell("one", other.0, OTHER);
    assert!(accounts.holders(&[OTHER, HELD]).end(&holder(program.0), LONG, POLL));
    assert!(!program.alive() && alike.alive() && other.alive());
    assert!(accounts.holders(&[HELD]).end(&holder(program.0), LONG, POLL), "it is gone already");
}

// proves: A-12
#[test]
fn a_holder_that_ignores_sigterm_is_not_killed() {
    let accounts = Accounts::new("stubborn");
    let program = orphan(accounts.home.path(), &[]);
    accounts.tell("one", program.0, HELD);
    assert!(!accounts.holders(&[HELD]).end(&holder(program.0), SHORT, POLL));
    assert!(program.alive());
    assert_eq!(accounts.first(), Some(holder(program.0)), "it holds it as before");
}

// proves: A-12
#[test]
fn who_is_no_holder_any_more_is_not_touched() {
    let accounts = Accounts::new("let-go");
    let program = willing(accounts.home.path());
    let end = || accounts.holders(&[HELD]).end(&holder(program.0), LONG, POLL);
    assert!(end() && program.alive(), "it has no file");
    accounts.tell("one", program.0, OTHER);
    assert!(end() && program.alive(), "it has gone on to another conversation");
    let before = ProcessId { start_time: program.0.start_time - 1, ..program.0 };
    accounts.tell("one", program.0, HELD);
    assert!(accounts.holders(&[HELD]).end(&holder(before), LONG, POLL));
    assert!(program.alive(), "the one that was seen is gone: this one only has its number");
}
