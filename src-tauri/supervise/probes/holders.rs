//! Which other program has a conversation open (A-12): every CLI tells its own in a file of its config
//! folder (field guide 6.4). It also asks such a program to end, when the person wants that.
//!
//! A file is believed only as far as the kernel agrees: the process lives and began when the file says.
//! What cannot be read is passed over, but for the session's own account: without its answer nothing is
//! known. Nothing is written, and nothing is ever killed by force.

use super::{FolderState, folder_ok};
use crate::supervise::children::{self, ProcessId, alive};
use crate::supervise::clock::Deadline;
use crate::supervise::pty::Signal;
use omniscio_core::id::CliSessionId;
use omniscio_core::session::Holder;
use serde::Deserialize;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Below a config folder.
const SESSIONS: &str = "sessions";
/// A file has less than a KiB; a longer one is none of the CLI's.
const FILE_MAX_BYTES: u64 = 64 * 1024;
/// The folder a program says it works in is told as far as this.
const FOLDER_MAX_CHARS: usize = 1_024;

/// Where to look, and for what.
pub struct Holders<'a> {
    /// The config folders of all accounts.
    pub config_folders: &'a [PathBuf],
    /// The one of them in which the conversations are.
    pub own: Option<&'a Path>,
    /// A folder that does not answer within this is passed over, but for the own one.
    pub limit: Duration,
    /// Holding one of these counts.
    pub conversations: &'a [CliSessionId],
    /// Names the data folder of this install: what carries it is no stranger.
    pub data: &'a str,
}

impl Holders<'_> {
    /// The program that has one of the conversations open; of several the one that runs longest.
    ///
    /// # Errors
    /// The own config folder does not answer: somebody may have it open.
    pub fn first(&self) -> Result<Option<Holder>, String> {
        // rule: A-12
        let (told, silent) = self.told();
        if self.own.is_some_and(|own| silent.contains(&own)) {
            return Err("nobody can tell who has the conversation open".to_string());
        }
        let strangers = told.iter().filter(|told| !children::is_ours(told.id.pid, self.data));
        let oldest = strangers.min_by_key(|told| (told.id.start_time, told.id.pid));
        Ok(oldest.map(|oldest| Holder {
            pid: oldest.id.pid,
            start: oldest.id.start_time,
            folder: oldest.folder.chars().take(FOLDER_MAX_CHARS).collect(),
        }))
    }

    /// Asks the holder to end, if it still is one, and waits at most `grace`. True once it is none.
    pub fn end(&self, holder: &Holder, grace: Duration, poll: Duration) -> bool {
        // rule: A-12
        let id = ProcessId { pid: holder.pid, start_time: holder.start };
        let among = |told: &[Told]| {
            told.iter().any(|told| told.id == id) && !children::is_ours(id.pid, self.data)
        };
        let (told, silent) = self.told();
        if !among(&told) {
            // it may still be told in a folder that does not answer
            let gone = silent.is_empty();
            tracing::info!(pid = id.pid, gone, "nothing tells of this holder any more");
            return gone;
        }
        if children::is_above(id.pid) {
            tracing::warn!(pid = id.pid, "the app runs below the holder: it is left alone");
            return false;
        }
        children::signal_if(id, Signal::Term, || among(&self.told().0));
        let deadline = Deadline::after(grace);
        while alive(id) && !deadline.passed() {
            thread::sleep(poll.min(deadline.left()));
        }
        let gone = !alive(id);
        tracing::info!(pid = id.pid, gone, "a holder was asked to end");
        gone
    }

    /// The living programs that name one of the conversations as theirs, and the config folders that
    /// did not answer.
    fn told(&self) -> (Vec<Told>, Vec<&Path>) {
        let (mut all, mut silent) = (Vec::new(), Vec::new());
        for config in self.config_folders {
            let folder = config.join(SESSIONS);
            let state = folder_ok(&folder, self.limit);
            if !state.answered() {
                silent.push(config.as_path());
            }
            if state != FolderState::Present {
                continue;
            }
            let files = fs::read_dir(folder).into_iter().flatten().flatten();
            let told = files.filter_map(|file| Told::read(&file.path()));
            let held = |told: &Told| self.conversations.contains(&told.conversation);
            all.extend(told.filter(|told| held(told) && alive(told.id)));
        }
        (all, silent)
    }
}

/// What one program tells.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    id: ProcessId,
    conversation: CliSessionId,
    folder: String,
}

/// The part of the file that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pid: u32,
    session_id: String,
    proc_start: Value,
    #[serde(default)]
    cwd: String,
}

impl Told {
    fn read(path: &Path) -> Option<Told> {
        // most files are of programs that are gone: they need not be opened
        let pid: u32 = path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()?;
        ProcessId::of(pid)?;
        // a pipe of that name must not hold the look up, nor a link lead it elsewhere
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= FILE_MAX_BYTES);
        if fits { Told::parse(&bytes).filter(|told| told.id.pid == pid) } else { None }
    }

    fn parse(bytes: &[u8]) -> Option<Told> {
        let entry: Entry = serde_json::from_slice(bytes).ok()?;
        let told = &entry.proc_start;
        let start_time = told.as_str().map_or(told.as_u64(), |text| text.parse().ok())?;
        Some(Told {
            id: ProcessId { pid: entry.pid, start_time },
            conversation: entry.session_id.parse().ok()?,
            folder: entry.cwd,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the CLI writes it (2.1.332), without what is not read.
    const REAL: &str = r#"{"pid":27851,"sessionId":"5a1d0c1e-0000-4000-8000-000000000001",
        "cwd":"/p","startedAt":1796064070383,"procStart":"1198434","version":"2.1.332",
        "peerProtocol":1,"peerFeatures":["notify_idle"],"kind":"interactive","entrypoint":"sdk-cli",
        "asksForConvertedSkills":null,"name":"p-24","status":"idle","updatedAt":1796064070359}"#;

    #[test]
    fn the_real_file_is_read_and_no_prefix_of_it() {
        let told = Told {
            id: ProcessId { pid: 27851, start_time: 1_198_434 },
            conversation: "5a1d0c1e-0000-4000-8000-000000000001".parse().unwrap(),
            folder: "/p".to_string(),
        };
        assert_eq!(Told::parse(REAL.as_bytes()), Some(told));
        for cut in 0..REAL.len() {
            assert_eq!(Told::parse(&REAL.as_bytes()[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_of_this_form_names_nobody() {
        let number = REAL.replace("\"1198434\"", "1198434");
        assert!(Told::parse(number.as_bytes()).is_some(), "the number itself would do");
        for (part, other) in [
            ("27851", "-1"),
            ("27851", "\"27851\""),
            ("27851", "4294967296"),
            ("\"1198434\"", "\"soon\""),
            ("\"1198434\"", "null"),
            ("\"1198434\"", "-5"),
            ("\"procStart\":", "\"x\":"),
            ("\"sessionId\":", "\"x\":"),
            ("5a1d0c1e-0000", "5a1d0c1e"),
            ("\"/p\"", "7"),
        ] {
            assert_eq!(Told::parse(REAL.replace(part, other).as_bytes()), None, "{other}");
        }
        for garbage in [&b""[..], b"[]", b"null", b"\xff\xfe", b"{\"pid\":{\"pid\":{}}}"] {
            assert_eq!(Told::parse(garbage), None);
        }
    }

    #[test]
    fn nobody_is_no_answer_where_the_own_folder_does_not_answer() {
        let home = tempfile::tempdir().unwrap();
        let folders = ["own", "other"].map(|name| home.path().join(name));
        let hangs = |config: &Path| super::super::folder::hangs(&config.join(SESSIONS));
        let holders = Holders {
            config_folders: &folders,
            own: Some(&folders[0]),
            limit: Duration::from_secs(60),
            conversations: &[],
            data: "",
        };
        assert_eq!(holders.first(), Ok(None), "that there is none is an answer");
        hangs(&folders[1]);
        assert_eq!(holders.first(), Ok(None), "another account's is passed over");
        hangs(&folders[0]);
        assert!(holders.first().is_err());
        let holder = Holder { pid: std::process::id(), start: 0, folder: String::new() };
        assert!(!holders.end(&holder, Duration::ZERO, Duration::ZERO), "it may be there");
    }

    #[test]
    fn what_the_app_runs_below_is_above_it_and_what_it_started_is_not() {
        use std::process::{Command, id};
        assert!(
            children::is_above(id()) && children::is_above(std::os::unix::process::parent_id())
        );
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let above = children::is_above(child.id());
        child.kill().and_then(|()| child.wait()).unwrap();
        assert!(!above);
    }
}
