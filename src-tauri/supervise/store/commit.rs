//! Writing: all writes of a step in one transaction, each row guarded by what was read, each row
//! change with its entry in the audit log.
//!
//! Decides nothing: what a refused guard means is the reducer's business.

use super::Store;
use super::error::StoreError;
use super::row;
use omniscio_core::block::Block;
use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::message::{Message, MessageState};
use omniscio_core::session::SessionRow;
use omniscio_core::settings::Settings;
use omniscio_core::supervisor::Write;
use omniscio_core::time::Wall;
use omniscio_core::verdict::Actor;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};
use serde_json::Value;

/// What became of a step's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// All of them are durable.
    Done,
    /// A row is not as it was read: nothing of the step was written.
    Refused {
        /// Whose row.
        session: SessionId,
    },
}

impl Store {
    /// Writes a step: all of it or nothing.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing was written then.
    pub fn commit(&mut self, writes: &[Write], now: Wall) -> Result<Committed, StoreError> {
        // rule: DB-03
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for write in writes {
            match write {
                Write::Row { before, after, actor, reason } => {
                    let change = Change { after, actor: *actor, reason, now };
                    if !change.write(&transaction, before.as_deref())? {
                        return Ok(Committed::Refused { session: after.id });
                    }
                }
                Write::Message(message) => insert_message(&transaction, message)?,
                Write::MessageState { id, state } => move_message(&transaction, *id, *state)?,
                Write::Block { session, block } => upsert_block(&transaction, *session, block)?,
                Write::Settings(settings) => write_settings(&transaction, settings)?,
            }
        }
        transaction.commit()?;
        if writes.iter().any(is_deletion) {
            self.empty_log();
        }
        Ok(Committed::Done)
    }

    /// Moves the write-ahead log into the database and empties it: it still holds what was deleted.
    fn empty_log(&self) {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy = self.connection.query_row(sql, [], |row| row.get::<_, bool>(0));
        if busy != Ok(false) {
            // the step is durable all the same, and the log is overwritten in time
            tracing::warn!(?busy, "the log could not be emptied after a deletion");
        }
    }

    /// Remembers whether a folder may run what it brings, by its real path.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn set_trusted(&mut self, real_path: &str, yes: bool, now: Wall) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO trusted_folders (real_path, trusted, decided_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (real_path) DO UPDATE SET trusted = ?2, decided_at = ?3",
            params![real_path, yes, now.0],
        )?;
        Ok(())
    }

    /// Closes the blocks that were still growing when the app died, as cut off. To be called once
    /// at the start of the app. Returns how many there were.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn close_open_blocks(&mut self) -> Result<usize, StoreError> {
        let closed = self
            .connection
            .execute("UPDATE blocks SET open = 0, cut_off = 1 WHERE open = 1", [])?;
        Ok(closed)
    }
}

/// One change of one row.
struct Change<'a> {
    after: &'a SessionRow,
    actor: Actor,
    reason: &'a str,
    now: Wall,
}

impl Change<'_> {
    /// Writes the row and its audit entry; `false` if the row is not as it was read.
    fn write(&self, on: &Connection, read: Option<&SessionRow>) -> Result<bool, StoreError> {
        let mut after = row::facts(self.after)?;
        let deleted = self.after.deleted_at.is_some();
        if deleted {
            row::forget_said(&mut after)?;
        }
        let Some(read) = read else {
            if !insert_row(on, row::to_sql(after.clone())?)? {
                return Ok(false);
            }
            let verdict = format!("created: {}", state(self.after));
            self.record(on, None, Value::Object(after), &verdict)?;
            return Ok(true);
        };
        // the entry tells what changed in the table, not what the reducer believed
        let Some(before) = stored_facts(on, self.after.id)? else {
            return Ok(false);
        };
        if !update_row(on, row::to_sql(after.clone())?, read)? {
            return Ok(false);
        }
        let (mut was, is) = row::difference(&before, &after);
        if deleted {
            was.retain(|name, _| !row::is_said(name));
        }
        let verdict = format!("{} -> {}", state(read), state(self.after));
        self.record(on, Some(Value::Object(was)), Value::Object(is), &verdict)?;
        if deleted && read.deleted_at.is_none() {
            erase_conversation(on, self.after.id)?;
        }
        Ok(true)
    }

    fn record(
        &self,
        on: &Connection,
        before: Option<Value>,
        after: Value,
        verdict: &str,
    ) -> Result<(), StoreError> {
        // rule: A-30, INV-65
        on.prepare_cached(
            "INSERT INTO transitions (at, session, before, after, actor, reason, verdict)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            self.now.0,
            self.after.id.to_string(),
            before.map(|before| before.to_string()),
            after.to_string(),
            self.actor.as_str(),
            self.reason,
            verdict,
        ])?;
        Ok(())
    }
}

fn is_deletion(write: &Write) -> bool {
    match write {
        Write::Row { before, after, .. } => {
            let before = before.as_ref().and_then(|row| row.deleted_at);
            after.deleted_at.is_some() && before.is_none()
        }
        Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => false,
    }
}

/// Status and pending action in words, for the audit log.
fn state(row: &SessionRow) -> String {
    match row.pending {
        Some(pending) => format!("{} + {}", row.status.as_str(), pending.as_str()),
        None => row.status.as_str().to_owned(),
    }
}

fn stored_facts(on: &Connection, session: SessionId) -> Result<Option<row::Facts>, StoreError> {
    let sql = format!("SELECT {} FROM sessions WHERE id = ?1", *row::NAMES);
    let mut statement = on.prepare_cached(&sql)?;
    let mut rows = statement.query([session.to_string()])?;
    rows.next()?.map(row::from_sql).transpose()
}

fn insert_row(on: &Connection, values: Vec<Sql>) -> Result<bool, StoreError> {
    let sql = format!(
        "INSERT INTO sessions ({}) VALUES ({}) ON CONFLICT (id) DO NOTHING",
        *row::NAMES,
        *row::PLACES
    );
    Ok(on.prepare_cached(&sql)?.execute(params_from_iter(values))? == 1)
}

/// The compare-and-set: one atomic statement that changes the row only if it still is what the
/// reducer read, the daily counter included.
fn update_row(
    on: &Connection,
    mut values: Vec<Sql>,
    read: &SessionRow,
) -> Result<bool, StoreError> {
    // rule: CT-03
    let at = values.len();
    let sql = format!(
        "UPDATE sessions SET {} WHERE id = ?1 AND status = ?{} AND pending_action IS ?{}
         AND aborted_response_retry_attempts = ?{} AND deleted_at IS ?{}
         AND json_extract(facts, '$.turn.number') IS ?{}",
        *row::ASSIGNMENTS,
        at + 1,
        at + 2,
        at + 3,
        at + 4,
        at + 5,
    );
    let text = |word: &str| Sql::Text(word.to_owned());
    values.push(text(read.status.as_str()));
    values.push(read.pending.map(|pending| text(pending.as_str())).into());
    values.push(i64::from(read.retry_attempts).into());
    values.push(read.deleted_at.map(|at| at.0).into());
    values.push(read.turn.as_ref().map(|turn| whole(turn.number)).transpose()?.into());
    Ok(on.prepare_cached(&sql)?.execute(params_from_iter(values))? == 1)
}

/// A deleted session keeps its row without what quotes the conversation, and its audit entries: the
/// entry of the deletion quotes nothing, those before it stay as they were written. Messages and blocks
/// go in the same transaction.
fn erase_conversation(on: &Connection, session: SessionId) -> Result<(), StoreError> {
    let session = session.to_string();
    on.execute("DELETE FROM blocks WHERE session = ?1", [&session])?;
    on.execute("DELETE FROM messages WHERE session = ?1", [&session])?;
    Ok(())
}

fn insert_message(on: &Connection, message: &Message) -> Result<(), StoreError> {
    on.prepare_cached(
        "INSERT INTO messages (id, session, origin, text, created_at, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        message.id.to_string(),
        message.session.to_string(),
        message.origin.as_str(),
        message.text,
        message.created_at.0,
        message.state.as_str(),
    ])?;
    Ok(())
}

fn move_message(on: &Connection, id: MessageId, state: MessageState) -> Result<(), StoreError> {
    let moved = on
        .prepare_cached("UPDATE messages SET state = ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), state.as_str()])?;
    if moved == 0 {
        // its session was deleted in the meantime
        tracing::warn!(message = %id, state = state.as_str(), "no such message");
    }
    Ok(())
}

fn upsert_block(on: &Connection, session: SessionId, block: &Block) -> Result<(), StoreError> {
    let body = serde_json::to_value(&block.kind)
        .map_err(|error| StoreError::unreadable("block", error))?;
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stored = on
        .prepare_cached(
            "INSERT INTO blocks
                 (session, seq, turn, at, kind, hidden, interruption, open, cut_off, body)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
             WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = ?1 AND deleted_at IS NOT NULL)
             ON CONFLICT (session, seq) DO UPDATE SET
                 turn = ?3, at = ?4, kind = ?5, hidden = ?6, interruption = ?7, open = ?8,
                 cut_off = ?9, body = ?10",
        )?
        .execute(params![
            session.to_string(),
            whole(block.seq)?,
            whole(block.turn)?,
            block.at.0,
            kind,
            block.hidden,
            block.interruption,
            block.open,
            block.cut_off,
            body.to_string(),
        ])?;
    if stored == 0 {
        tracing::warn!(%session, seq = block.seq, "a block came for a deleted session");
    }
    Ok(())
}

fn write_settings(on: &Connection, settings: &Settings) -> Result<(), StoreError> {
    let all =
        serde_json::to_value(settings).map_err(|error| StoreError::unreadable("setting", error))?;
    let mut statement = on.prepare_cached(
        "INSERT INTO settings (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = ?2",
    )?;
    for (key, value) in all.as_object().into_iter().flatten() {
        statement.execute(params![key, value.to_string()])?;
    }
    Ok(())
}

/// A count as SQLite keeps it.
pub(super) fn whole(count: u64) -> Result<i64, StoreError> {
    i64::try_from(count).map_err(|error| StoreError::unreadable("number", error))
}
