//! The store: one SQLite file that holds everything the app must not forget.
//!
//! It keeps facts and answers questions about them; it decides nothing, and no other module writes
//! SQL. `omniscio.db` runs with a write-ahead log, is readable by its user alone, and is changed
//! only through [`Store::commit`] (a step, all or nothing) beside the migrations and [`triage`].

mod audit;
mod commit;
mod error;
pub mod lock;
pub mod migrate;
pub mod paths;
mod read;
mod row;
#[cfg(unix)]
pub mod triage;

pub use commit::Committed;
pub use error::StoreError;
pub use lock::{Lock, LockError, acquire};
pub use paths::{data_dir, database_path};
pub use read::{GET_RESPONSE_ABORTED_SESSION_IDS, Loaded};

use rusqlite::{Connection, OpenFlags};
use std::fs::OpenOptions;
use std::path::Path;

/// Settings of the connection that hold for its whole life. The wait for another program's lock is
/// in milliseconds. FULL: with a write-ahead log, NORMAL would not sync a commit, and what was done
/// after it could outlive it when the power fails. What is deleted is overwritten.
// rule: DB-03
const CONNECTION: &str = "\
    PRAGMA busy_timeout = 5000;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    PRAGMA foreign_keys = ON;";

/// Prepared statements kept; there are fewer in the store.
const STATEMENTS: usize = 64;

/// The open database. One supervisor holds the [`Lock`] beside it and writes through this.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens or creates the database and brings it to the newest version.
    ///
    /// # Errors
    /// See [`StoreError`]. A newer or foreign database is not touched.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        if let Some(folder) = path.parent() {
            paths::prepare(folder)?;
        }
        create_private(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.execute_batch(CONNECTION)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        migrate::check(&connection, migrate::LATEST)?;
        use_write_ahead_log(&connection)?;
        migrate::run(&mut connection, migrate::MIGRATIONS, migrate::LATEST)?;
        Ok(Store { connection })
    }
}

/// Makes the file with mode 0600 before SQLite sees it: its log and index inherit the mode.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    paths::private(path, 0o600)?;
    Ok(())
}

fn use_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    // rule: DB-04
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::NoWriteAheadLog);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: DB-03
    #[test]
    fn each_commit_reaches_the_disk_and_what_is_deleted_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join(paths::DATABASE_FILE)).unwrap();
        let value = |name| {
            let value = store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            value.unwrap()
        };
        assert_eq!(value("synchronous"), 2, "2 is FULL");
        assert_eq!(value("secure_delete"), 1);
    }
}
