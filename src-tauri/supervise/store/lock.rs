//! One supervisor per database: an exclusive lock on a file beside it.
//!
//! The system lets go of the lock when its process ends, however it ends: nothing is ever stale. The
//! file stays; its text is the holder's process id and is only for the words of an error.

use super::paths::LOCK_FILE;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// Held for as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another supervisor works on this data folder.
    #[error("Omniscio already runs with this data folder{}.", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Held {
        /// Its process id, if it has written it yet.
        pid: Option<u32>,
    },
    /// The file system said no.
    #[error("The data folder cannot be locked: {0}")]
    Io(#[from] io::Error),
}

/// Takes the lock of an existing data folder without waiting.
///
/// # Errors
/// [`LockError::Held`] while another process, or another call in this one, has it.
pub fn acquire(data_dir: &Path) -> Result<Lock, LockError> {
    // rule: A-31
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(data_dir.join(LOCK_FILE))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(LockError::Held { pid: written_pid(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Lock { _file: file })
}

/// The process that works on this data folder, as far as it can be told: `Some` if one does, with its
/// id if it has written it. Makes no file and changes none.
pub fn holder(data_dir: &Path) -> Option<Option<u32>> {
    let mut file = File::open(data_dir.join(LOCK_FILE)).ok()?;
    // held for this look only, and shared: two looks do not take each other for the app
    match file.try_lock_shared() {
        Ok(()) | Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => Some(written_pid(&mut file)),
    }
}

fn written_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
