//! The audit log: who changed which row, why, and the proof that the log tells the whole story.
//!
//! Reads only: entries are written with each row change and never changed.

use super::Store;
use super::error::StoreError;
use super::row::{self, Facts};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::AuditLine;
use omniscio_core::session::SessionRow;
use omniscio_core::time::Wall;
use rusqlite::params;
use std::collections::BTreeMap;

impl Store {
    /// The last `limit` entries, newest first, of one session or of all (OP-11).
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn audit(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<AuditLine>, StoreError> {
        // two statements: with "?1 IS NULL OR" the index on the session would not be used
        let which = if session.is_some() { "t.session = ?1" } else { "?1 IS NULL" };
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT t.at, t.session, s.title, t.actor, t.reason, t.verdict
             FROM transitions t JOIN sessions s ON s.id = t.session
             WHERE {which} ORDER BY t.id DESC LIMIT ?2"
        ))?;
        let mut rows = statement.query(params![session.map(|id| id.to_string()), limit])?;
        let mut lines = Vec::new();
        while let Some(found) = rows.next()? {
            lines.push(AuditLine {
                at: Wall(found.get(0)?),
                session: row::id(&found.get::<_, String>(1)?)?,
                title: found.get(2)?,
                actor: found.get(3)?,
                reason: found.get(4)?,
                outcome: found.get(5)?,
            });
        }
        Ok(lines)
    }

    /// Every row, deleted ones included, as the audit log alone tells it (INV-65): equal to
    /// [`Store::every_row`] at any time.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn fold_transitions(&self) -> Result<Vec<SessionRow>, StoreError> {
        let mut statement =
            self.connection.prepare("SELECT session, after FROM transitions ORDER BY id")?;
        let mut entries = statement.query([])?;
        let mut folded: BTreeMap<String, Facts> = BTreeMap::new();
        while let Some(entry) = entries.next()? {
            let after: Facts = serde_json::from_str(&entry.get::<_, String>(1)?)
                .map_err(|error| StoreError::unreadable("transition", error))?;
            folded.entry(entry.get(0)?).or_default().extend(after);
        }
        folded.into_values().map(row::from_facts).collect()
    }

    /// Every row, deleted ones included, by id.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn every_row(&self) -> Result<Vec<SessionRow>, StoreError> {
        let sql = format!("SELECT {} FROM sessions ORDER BY id", *row::NAMES);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(found) = rows.next()? {
            all.push(row::from_facts(row::from_sql(found)?)?);
        }
        Ok(all)
    }
}
