//! The escape hatch of `triage-aborted-sessions`: which rows look like a lost reply and carry no mark,
//! and the same mark for them that migration 0256 gave (another version may have taken it off again).
//!
//! It works beside a running app. It creates no database, changes no schema, and touches no row outside
//! the migration's fingerprint.

use super::error::StoreError;
use super::{CONNECTION, migrate};
use omniscio_core::time::Wall;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The condition of migration 0256: stopped, asking nothing, not deleted, and no delivered answer on
/// record. A test compares it with the migration.
// rule: MG-11
pub const FINGERPRINT: &str = "status IN ('needs_you', 'error') AND pending_action IS NULL \
                               AND deleted_at IS NULL AND delivered = 0";

/// What a run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How many sessions there are that are not deleted.
    pub sessions: u32,
    /// Those of the fingerprint, longest stopped first.
    pub lost: Vec<LostReply>,
}

/// A session of the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostReply {
    /// Its id, as it is stored.
    pub id: String,
    /// Its status, as it is stored.
    pub status: String,
    /// Its title.
    pub title: String,
}

/// Why a run did nothing. The database is as before.
#[derive(Debug, thiserror::Error)]
pub enum TriageError {
    /// Nothing is at that path, or no file.
    #[error(
        "There is no such file. Start Omniscio once to create it, or name another with --db-path."
    )]
    Missing,
    /// A file of something else.
    #[error("This is not a database of Omniscio. Name the right file with --db-path.")]
    NotOurs,
    /// The migration has not run yet.
    #[error(
        "The database has version {found}, this program is for version {known}. Start Omniscio \
         once: it brings the database up to date and marks these sessions by itself."
    )]
    Older {
        /// Version of the file.
        found: u32,
        /// The version this program works on.
        known: u32,
    },
    /// The file cannot be opened for reading.
    #[error(
        "The database cannot be read. Check that it and its -wal and -shm files belong to you, or \
         copy all of them to a folder of your own and name the copy with --db-path."
    )]
    Closed,
    /// Anything else.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for TriageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotOurs => TriageError::NotOurs,
            StoreError::Full
            | StoreError::ReadOnly
            | StoreError::Corrupt(_)
            | StoreError::Newer { .. }
            | StoreError::Locked
            | StoreError::NoWriteAheadLog
            | StoreError::Io(_)
            | StoreError::Migration { .. }
            | StoreError::Unreadable { .. }
            | StoreError::Database(_) => TriageError::Store(error),
        }
    }
}

impl From<rusqlite::Error> for TriageError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
            return TriageError::NotOurs;
        }
        StoreError::from(error).into()
    }
}

/// Lists the rows of the fingerprint. Writes nothing, and leaves no file behind.
///
/// # Errors
/// See [`TriageError`].
pub fn look(database: &Path) -> Result<Found, TriageError> {
    // rule: MG-07, MG-10
    let read = || {
        let mut connection = open_for_reading(database)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
        find(&transaction)
    };
    read().map_err(|error: TriageError| {
        let no_rights = matches!(error, TriageError::Store(StoreError::ReadOnly));
        if no_rights { TriageError::Closed } else { error }
    })
}

/// Marks the rows of the fingerprint, each with its entry in the audit log, in one transaction. Returns
/// what was marked: nothing on a second run.
///
/// # Errors
/// See [`TriageError`].
pub fn stamp(database: &Path, now: Wall) -> Result<Found, TriageError> {
    // rule: MG-08, MG-11, MG-12
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = open(database, flags)?;
    // the lock comes first: what is listed is what is marked
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = find(&transaction)?;
    // rule: A-30
    transaction.execute(
        &format!(
            "INSERT INTO transitions (at, session, before, after, actor, reason, verdict)
             SELECT ?1, id, json_object('pending', NULL),
                 json_object('pending', 'response_aborted'),
                 'triage', 'by hand: no delivered answer on record',
                 status || ' -> ' || status || ' + response_aborted'
             FROM sessions WHERE {FINGERPRINT}"
        ),
        params![now.0],
    )?;
    transaction.execute(
        &format!("UPDATE sessions SET pending_action = 'response_aborted' WHERE {FINGERPRINT}"),
        [],
    )?;
    transaction.commit()?;
    Ok(found)
}

fn find(transaction: &Transaction<'_>) -> Result<Found, TriageError> {
    let known = migrate::LATEST;
    match migrate::check(transaction, known)? {
        0 => return Err(TriageError::NotOurs),
        found if found < known => return Err(TriageError::Older { found, known }),
        _ => {}
    }
    let count = "SELECT count(*) FROM sessions WHERE deleted_at IS NULL";
    let sessions = transaction.query_row(count, [], |row| row.get(0))?;
    let mut statement = transaction.prepare(&format!(
        "SELECT id, status, title FROM sessions WHERE {FINGERPRINT} ORDER BY status_changed_at, id"
    ))?;
    let lost = statement.query_map([], |row| {
        Ok(LostReply { id: row.get(0)?, status: row.get(1)?, title: row.get(2)? })
    })?;
    Ok(Found { sessions, lost: lost.collect::<Result<_, _>>()? })
}

/// While nobody has the database open it has no log, and the file alone is everything: it is read
/// without the log and index that SQLite would otherwise make beside it, and leave there.
fn open_for_reading(database: &Path) -> Result<Connection, TriageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    present(database)?;
    // the log is beside the file itself, not beside a link to it
    let database = database.canonicalize().map_err(StoreError::from)?;
    if beside(&database, "-wal").exists() || beside(&database, "-journal").exists() {
        return connect(&database, flags);
    }
    let mut uri = "file:".to_owned();
    for byte in database.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_') {
            uri.push(char::from(*byte));
        } else {
            // writing to a String cannot fail
            write!(uri, "%{byte:02X}").ok();
        }
    }
    uri.push_str("?immutable=1");
    connect(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI)
}

fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    PathBuf::from(name)
}

fn open(database: &Path, flags: OpenFlags) -> Result<Connection, TriageError> {
    present(database)?;
    connect(database, flags)
}

fn present(database: &Path) -> Result<(), TriageError> {
    // a folder that may not be looked into is told apart from one that holds no such file
    match database.metadata() {
        Ok(about) if about.is_file() => Ok(()),
        Ok(_) => Err(TriageError::Missing),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(TriageError::Missing),
        Err(error) => Err(StoreError::from(error).into()),
    }
}

fn connect(name: &Path, flags: OpenFlags) -> Result<Connection, TriageError> {
    let connection = Connection::open_with_flags(name, flags)?;
    connection.execute_batch(CONNECTION)?;
    Ok(connection)
}
