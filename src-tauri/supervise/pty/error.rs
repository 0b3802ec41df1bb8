//! Why a start or a write failed, as the system said it. Nothing is decided from it here.

use super::LaunchLine;
use std::io;
use std::path::Path;

/// Where a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnStep {
    /// No terminal could be had.
    OpenPty,
    /// The terminal could not be made raw.
    RawMode,
    /// The folder to run in is not there or not to be entered.
    Folder,
    /// Fork or exec.
    Exec,
    /// The process ran, but a thread for it could not be made; it was killed again.
    Thread,
}

/// Why a start failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpawnError {
    /// The system's error number.
    pub errno: Option<i32>,
    /// Where it happened.
    pub step: SpawnStep,
    /// A sentence for a person, with the system's own words.
    pub message: String,
}

impl SpawnError {
    pub(super) fn new(step: SpawnStep, what: &str, error: &io::Error) -> SpawnError {
        SpawnError { errno: error.raw_os_error(), step, message: format!("{what}: {error}") }
    }
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefused {
    /// Too many messages wait already.
    #[error("too many messages wait for this process")]
    Full,
    /// stdin was closed, or the child is dead.
    #[error("this process takes no more input")]
    Closed,
}

/// portable-pty says the error number only inside its message: `Os { code: 24, …`.
pub(super) fn errno_in_words(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("code: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The system gives one number for "no such program" and "no such folder"; look which it was.
pub(super) fn exec_error(line: &LaunchLine, error: &io::Error) -> SpawnError {
    let raw = error.raw_os_error();
    let path_trouble = [libc::ENOENT, libc::EACCES, libc::ENOTDIR].map(Some).contains(&raw);
    if path_trouble && !can_enter(&line.cwd) {
        let what = format!("cannot enter the folder {}", line.cwd.display());
        return SpawnError::new(SpawnStep::Folder, &what, error);
    }
    let what = format!("cannot start {}", line.program.display());
    SpawnError::new(SpawnStep::Exec, &what, error)
}

/// `folder/.` can be looked up only if the folder may be searched.
fn can_enter(folder: &Path) -> bool {
    let mut inside = folder.as_os_str().to_os_string();
    inside.push("/.");
    std::fs::metadata(inside).is_ok_and(|found| found.is_dir())
}
