//! Reading: what the app loads at its start, and what it asks for later.
//!
//! Answers with facts of the tables; counts and labels are the core's.

use super::Store;
use super::error::StoreError;
use super::row;
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::ipc::TranscriptPage;
use omniscio_core::message::{Message, MessageState, Origin, Queued, is_local_command};
use omniscio_core::session::{ChildMark, SessionRow};
use omniscio_core::settings::Settings;
use omniscio_core::time::Wall;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Map, Value};

/// Folders that the new-session dialog offers.
const RECENT_FOLDERS: u32 = 20;

/// Characters of a queued message that the composer shows.
const PREVIEW_CHARS: usize = 200;

/// The scan's one query (SC-03), oldest first. The limit bounds a tick: what lies beyond it waits for a
/// tick in which those before it are brought back or given up.
pub const GET_RESPONSE_ABORTED_SESSION_IDS: &str = "\
    SELECT id FROM sessions
    WHERE pending_action = 'response_aborted' AND status IN ('needs_you', 'error')
      AND deleted_at IS NULL
    ORDER BY status_changed_at LIMIT 1000";

const MESSAGE: &str = "id, session, origin, text, created_at, state";

const BLOCK: &str = "seq, turn, at, hidden, interruption, open, cut_off, body";

/// What the app knows at its start.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Every row that is not deleted, oldest first.
    pub rows: Vec<SessionRow>,
    /// Queued messages by session, oldest first.
    pub queues: Vec<(SessionId, Vec<Queued>)>,
    /// The highest block number of each session that has blocks.
    pub block_counts: Vec<(SessionId, u64)>,
    /// Settings; a missing or ill-typed one has its default.
    pub settings: Settings,
    /// Folders used before, newest first.
    pub recent_folders: Vec<String>,
    /// Rows that do not read, in words for the log. They stay in the table, untouched.
    pub unreadable: Vec<String>,
}

impl Store {
    /// Everything the app starts with.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn load(&self) -> Result<Loaded, StoreError> {
        let sql = format!(
            "SELECT {} FROM sessions WHERE deleted_at IS NULL ORDER BY created_at, id",
            *row::NAMES
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = statement.query([])?;
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        while let Some(found) = found.next()? {
            match row::from_sql(found).and_then(row::from_facts) {
                Ok(row) => rows.push(row),
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        Ok(Loaded {
            rows,
            queues: self.queues()?,
            block_counts: self.block_counts()?,
            settings: self.settings()?,
            recent_folders: self.recent_folders()?,
            unreadable,
        })
    }

    /// The recorded child of every session that has one, deleted and unreadable rows included.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn children(&self) -> Result<Vec<(String, ChildMark)>, StoreError> {
        // rule: A-03
        let mut statement = self.connection.prepare(
            "SELECT id, json_extract(facts, '$.child') FROM sessions
             WHERE json_type(facts, '$.child') = 'object' ORDER BY id",
        )?;
        let mut rows = statement.query([])?;
        let mut children = Vec::new();
        while let Some(found) = rows.next()? {
            let (id, child): (String, String) = (found.get(0)?, found.get(1)?);
            match serde_json::from_str(&child) {
                Ok(child) => children.push((id, child)),
                Err(_) => tracing::error!(session = id, "the recorded child cannot be read"),
            }
        }
        Ok(children)
    }

    /// One row, deleted or not.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn row(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError> {
        let sql = format!("SELECT {} FROM sessions WHERE id = ?1", *row::NAMES);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query([id.to_string()])?;
        let facts = rows.next()?.map(row::from_sql).transpose()?;
        facts.map(row::from_facts).transpose()
    }

    /// Ids of all rows in the shape of a cut-off reply, oldest first: one indexed query.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn response_aborted_session_ids(&self) -> Result<Vec<SessionId>, StoreError> {
        // rule: SC-03, DB-07
        let mut statement = self.connection.prepare_cached(GET_RESPONSE_ABORTED_SESSION_IDS)?;
        let mut rows = statement.query([])?;
        let mut ids = Vec::new();
        while let Some(found) = rows.next()? {
            ids.push(row::id(&found.get::<_, String>(0)?)?);
        }
        Ok(ids)
    }

    /// The text of a message.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn message_text(&self, id: MessageId) -> Result<Option<String>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT text FROM messages WHERE id = ?1")?;
        Ok(statement.query_row([id.to_string()], |row| row.get(0)).optional()?)
    }

    /// The session of a message.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn message_session(&self, id: MessageId) -> Result<Option<SessionId>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT session FROM messages WHERE id = ?1")?;
        let found: Option<String> =
            statement.query_row([id.to_string()], |row| row.get(0)).optional()?;
        found.map(|text| row::id(&text)).transpose()
    }

    /// The newest message that a replay may take for the last operator turn: of a replayable
    /// origin, not withdrawn, and no local command of the CLI.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn last_operator_message(&self, session: SessionId) -> Result<Option<Message>, StoreError> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {MESSAGE} FROM messages WHERE session = ?1 ORDER BY place DESC"
        ))?;
        let mut rows = statement.query([session.to_string()])?;
        while let Some(found) = rows.next()? {
            let message = message(found)?;
            if message.origin.is_replayable()
                && message.state != MessageState::Withdrawn
                && !is_local_command(&message.text)
            {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// What the person said after the last message that was answered, oldest first, parted by an empty
    /// line; without what still waits in the queue. `None` where there is nothing.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn unanswered_messages(&self, session: SessionId) -> Result<Option<String>, StoreError> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {MESSAGE} FROM messages WHERE session = ?1 ORDER BY place DESC"
        ))?;
        let mut rows = statement.query([session.to_string()])?;
        let mut texts = Vec::new();
        while let Some(found) = rows.next()? {
            let message = message(found)?;
            if !message.origin.is_replayable() || is_local_command(&message.text) {
                continue;
            }
            match message.state {
                MessageState::Answered => break,
                // the pill's words are no task
                MessageState::Sent if message.origin != Origin::OperatorPill => {
                    texts.push(message.text);
                }
                MessageState::Sent | MessageState::Queued | MessageState::Withdrawn => {}
            }
        }
        texts.reverse();
        Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
    }

    /// The page of at most `limit` blocks that ends before `before_seq`, or at the end, ascending.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn blocks(
        &self,
        session: SessionId,
        before_seq: Option<u64>,
        limit: u32,
    ) -> Result<TranscriptPage, StoreError> {
        let before = before_seq.map_or(i64::MAX, |seq| i64::try_from(seq).unwrap_or(i64::MAX));
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {BLOCK} FROM blocks WHERE session = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"
        ))?;
        // one more than is wanted tells whether there are earlier ones
        let mut rows =
            statement.query(params![session.to_string(), before, i64::from(limit) + 1])?;
        let mut blocks = Vec::new();
        while let Some(found) = rows.next()? {
            blocks.push(block(found)?);
        }
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let earlier = blocks.len() > wanted;
        blocks.truncate(wanted);
        blocks.reverse();
        Ok(TranscriptPage { blocks, earlier })
    }

    /// The blocks that a hand-over is cut from: messages, texts and tool calls, ascending,
    /// without the tools' results.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn handover_source(&self, session: SessionId) -> Result<Vec<Block>, StoreError> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {BLOCK} FROM blocks
             WHERE session = ?1 AND kind IN ('operator', 'assistant', 'tool') ORDER BY seq"
        ))?;
        let mut rows = statement.query([session.to_string()])?;
        let mut blocks = Vec::new();
        while let Some(found) = rows.next()? {
            let mut block = block(found)?;
            if let BlockKind::Tool { result: Some(result), .. } = &mut block.kind {
                *result = String::new();
            }
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// Whether the folder may run what it brings; `None` if nobody was asked yet.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn trusted(&self, real_path: &str) -> Result<Option<bool>, StoreError> {
        let sql = "SELECT trusted FROM trusted_folders WHERE real_path = ?1";
        Ok(self.connection.query_row(sql, [real_path], |row| row.get(0)).optional()?)
    }

    /// Folders used before, newest first.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn recent_folders(&self) -> Result<Vec<String>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT folder FROM sessions WHERE deleted_at IS NULL
             GROUP BY folder ORDER BY max(created_at) DESC, folder LIMIT ?1",
        )?;
        let folders = statement.query_map([RECENT_FOLDERS], |row| row.get(0))?;
        Ok(folders.collect::<Result<_, _>>()?)
    }

    fn queues(&self) -> Result<Vec<(SessionId, Vec<Queued>)>, StoreError> {
        let mut statement = self.connection.prepare(&format!(
            "SELECT {MESSAGE} FROM messages WHERE state = 'queued'
               AND session IN (SELECT id FROM sessions WHERE deleted_at IS NULL)
             ORDER BY session, place"
        ))?;
        let mut rows = statement.query([])?;
        let mut queues: Vec<(SessionId, Vec<Queued>)> = Vec::new();
        while let Some(found) = rows.next()? {
            let message = message(found)?;
            let queued = queued(&message);
            match queues.last_mut().filter(|(session, _)| *session == message.session) {
                Some((_, queue)) => queue.push(queued),
                None => queues.push((message.session, vec![queued])),
            }
        }
        Ok(queues)
    }

    fn block_counts(&self) -> Result<Vec<(SessionId, u64)>, StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT id, (SELECT max(seq) FROM blocks WHERE session = sessions.id) AS last
             FROM sessions WHERE deleted_at IS NULL AND last IS NOT NULL",
        )?;
        let mut rows = statement.query([])?;
        let mut counts = Vec::new();
        while let Some(found) = rows.next()? {
            counts.push((row::id(&found.get::<_, String>(0)?)?, count(found, 1)?));
        }
        Ok(counts)
    }

    fn settings(&self) -> Result<Settings, StoreError> {
        let mut statement = self.connection.prepare("SELECT key, value FROM settings")?;
        let mut rows = statement.query([])?;
        let (mut settings, mut all) = (Settings::default(), Map::new());
        while let Some(found) = rows.next()? {
            let (key, text): (String, String) = (found.get(0)?, found.get(1)?);
            let value = serde_json::from_str(&text).unwrap_or(Value::Null);
            all.insert(key.clone(), value);
            match serde_json::from_value(Value::Object(all.clone())) {
                Ok(better) => settings = better,
                Err(error) => {
                    tracing::warn!(key, %error, "a stored setting is ill-typed: its default counts");
                    all.remove(&key);
                }
            }
        }
        Ok(settings)
    }
}

fn message(found: &Row<'_>) -> Result<Message, StoreError> {
    let word = |at| found.get::<_, String>(at);
    let (origin, state) = (word(2)?, word(5)?);
    Ok(Message {
        id: row::id(&word(0)?)?,
        session: row::id(&word(1)?)?,
        origin: Origin::parse(&origin).ok_or_else(|| StoreError::unreadable("origin", origin))?,
        text: word(3)?,
        created_at: Wall(found.get(4)?),
        state: MessageState::parse(&state)
            .ok_or_else(|| StoreError::unreadable("message state", state))?,
    })
}

fn queued(message: &Message) -> Queued {
    let first_line = message.text.trim().lines().next().unwrap_or_default();
    Queued {
        id: message.id,
        origin: message.origin,
        local_command: is_local_command(&message.text),
        preview: first_line.chars().take(PREVIEW_CHARS).collect(),
    }
}

fn block(found: &Row<'_>) -> Result<Block, StoreError> {
    let body: String = found.get(7)?;
    Ok(Block {
        seq: count(found, 0)?,
        turn: count(found, 1)?,
        at: Wall(found.get(2)?),
        hidden: found.get(3)?,
        interruption: found.get(4)?,
        open: found.get(5)?,
        cut_off: found.get(6)?,
        kind: serde_json::from_str(&body)
            .map_err(|error| StoreError::unreadable("block", error))?,
    })
}

fn count(found: &Row<'_>, at: usize) -> Result<u64, StoreError> {
    let number: i64 = found.get(at)?;
    u64::try_from(number).map_err(|error| StoreError::unreadable("number", error))
}
