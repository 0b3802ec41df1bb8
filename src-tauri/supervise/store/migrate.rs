//! The migrations, embedded in order, and their runner.
//!
//! Each migration and its version number are one transaction: all or nothing. A database that is
//! newer than this app, or another program's, is refused before anything is written to it.

use super::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The value of `user_version` once it has run.
    pub version: u32,
    /// Its statements.
    pub sql: &'static str,
}

/// Every migration, oldest first. Append only.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 255, sql: include_str!("../../../migrations/0255_baseline.sql") },
    Migration { version: 256, sql: include_str!("../../../migrations/0256_aborted_response.sql") },
];

/// The newest version this app knows.
pub const LATEST: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// 'OMNI', set by the baseline.
const APPLICATION_ID: i64 = 0x4f4d_4e49;

/// Refuses what this app must not write to. Writes nothing itself.
///
/// # Errors
/// [`StoreError::Newer`], [`StoreError::NotOurs`], or what reading the file gives.
pub fn check(connection: &Connection, known: u32) -> Result<u32, StoreError> {
    let found = version(connection)?;
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let empty = found == 0 && objects == 0;
    if !empty && pragma("application_id")? != APPLICATION_ID {
        return Err(StoreError::NotOurs);
    }
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    Ok(found)
}

/// Brings the database up to version `up_to` with `migrations` (oldest first). Running it again is
/// a no-op.
///
/// # Errors
/// What [`check`] refuses, and [`StoreError::Migration`]; the failed migration leaves no trace.
pub fn run(
    connection: &mut Connection,
    migrations: &[Migration],
    up_to: u32,
) -> Result<(), StoreError> {
    let known = migrations.last().map_or(0, |last| last.version);
    check(connection, known)?;
    for migration in migrations.iter().filter(|migration| migration.version <= up_to) {
        apply(connection, migration).map_err(|error| StoreError::Migration {
            to: migration.version,
            source: Box::new(error.into()),
        })?;
    }
    Ok(())
}

/// Runs one migration if the database is older than it.
fn apply(connection: &mut Connection, migration: &Migration) -> Result<(), rusqlite::Error> {
    // rule: MG-01, MG-04, INV-45
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // read inside the transaction: another process may have run it since
    if version(&transaction)? >= migration.version {
        return Ok(());
    }
    transaction.execute_batch(migration.sql)?;
    transaction.pragma_update(None, "user_version", migration.version)?;
    transaction.commit()
}

/// The version of the schema as it stands in the file; 0 for an empty one.
fn version(connection: &Connection) -> Result<u32, rusqlite::Error> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
