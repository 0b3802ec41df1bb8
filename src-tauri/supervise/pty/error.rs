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
    /// The process ran, but what attends to it could not be made; it was killed again.
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

/// The error of a terminal that was not opened.
pub(super) fn open_error(said: &str) -> SpawnError {
    let error = match errno_in_words(said) {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => io::Error::other(said.to_string()),
    };
    SpawnError::new(SpawnStep::OpenPty, "cannot open a terminal", &error)
}

/// portable-pty says the error number only inside its message: `Os { code: 24, …`.
fn errno_in_words(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("code: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What the way to a program or to a folder can be the reason of.
const PATH_TROUBLE: [i32; 9] = [
    libc::ENOENT,
    libc::EACCES,
    libc::ENOTDIR,
    libc::ELOOP,
    libc::EIO,
    libc::ESTALE,
    libc::ENOTCONN,
    libc::EHOSTDOWN,
    libc::ETIMEDOUT,
];

/// The system gives one number for "no such program" and "no such folder"; look which it was.
pub(super) fn exec_error(line: &LaunchLine, error: &io::Error) -> SpawnError {
    let raw = error.raw_os_error();
    if raw.is_some_and(|raw| PATH_TROUBLE.contains(&raw)) && !can_enter(&line.cwd) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_is_not_opened_tells_its_number() {
        let said = r#"failed to openpty: Os { code: 24, kind: Uncategorized, message: "x" }"#;
        let error = open_error(said);
        assert_eq!((error.errno, error.step), (Some(libc::EMFILE), SpawnStep::OpenPty));
        let words = "cannot open a terminal: Too many open files (os error 24)";
        assert_eq!(error.message, words);
        let error = open_error("who knows");
        assert_eq!((error.errno, &*error.message), (None, "cannot open a terminal: who knows"));
    }
}
