//! What can go wrong with the store, each with words that say what is so and what to do.
//!
//! Holds no message text, title or path of a conversation: the words may be shown and logged.

use rusqlite::ErrorCode;
use std::io;

/// Why the store could not do what was asked. After any of these the database is as before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space is left.
    #[error("The disk is full. Free some space; what was saved before is safe.")]
    Full,
    /// The file, its folder or the file system may not be written.
    #[error(
        "The database may not be written. Check that its folder and its files belong to you and \
         that the disk is not mounted read-only."
    )]
    ReadOnly,
    /// The file is damaged.
    #[error(
        "The database is damaged ({0}). Quit, move omniscio.db and its -wal and -shm files aside, \
         then restore a backup or start with an empty database."
    )]
    Corrupt(String),
    /// The file was written by a newer version of the app.
    #[error(
        "The database has version {found}, this app knows versions up to {known}. It was left \
         untouched. Install the newer app again."
    )]
    Newer {
        /// Version of the file.
        found: u32,
        /// The newest version this app knows.
        known: u32,
    },
    /// The file is a database, but another program's.
    #[error("The file is a database of another program. Choose another data folder.")]
    NotOurs,
    /// Another program kept the database locked for longer than the wait.
    #[error("Another program keeps the database locked. Close it and try again.")]
    Locked,
    /// The file system cannot hold a write-ahead log.
    #[error(
        "This file system does not support the database's write-ahead log. Choose a data folder \
         on a local disk."
    )]
    NoWriteAheadLog,
    /// The disk or the file system reported an error.
    #[error("The disk reported an error ({0}). Check the disk and the data folder's file system.")]
    Io(String),
    /// A migration failed and was undone as a whole.
    #[error("The database could not be brought to version {to}; it is unchanged. {source}")]
    Migration {
        /// The version it was to reach.
        to: u32,
        /// Why.
        source: Box<StoreError>,
    },
    /// A stored value does not read as what it must be.
    #[error("A stored {what} cannot be read: {words}")]
    Unreadable {
        /// What kind of value.
        what: &'static str,
        /// Which one, and why.
        words: String,
    },
    /// Anything else the database says.
    #[error("The database refused: {0}")]
    Database(rusqlite::Error),
}

impl StoreError {
    pub(super) fn unreadable(what: &'static str, words: impl ToString) -> Self {
        StoreError::Unreadable { what, words: words.to_string() }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(failure, words) = &error else {
            return StoreError::Database(error);
        };
        let words = words.clone().unwrap_or_else(|| failure.to_string());
        #[expect(clippy::wildcard_enum_match_arm, reason = "the codes are SQLite's and open-ended")]
        match failure.code {
            ErrorCode::DiskFull => StoreError::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                StoreError::ReadOnly
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(words),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked,
            ErrorCode::SystemIoFailure => StoreError::Io(words),
            _ => StoreError::Database(error),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds are std's and open-ended")]
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StoreError::ReadOnly
            }
            _ => StoreError::Io(error.to_string()),
        }
    }
}
