//! The database at one moment: as the living app has it, or as a dead one left it. A dead app's files are
//! looked at in a copy, so that the next start is the first to open them.

use omniscio_core::block::BlockKind;
use omniscio_core::id::{MessageId, SessionId, Uuid};
use omniscio_core::message::MessageState;
use omniscio_core::prompt;
use omniscio_core::session::SessionRow;
use omniscio_lib::supervise::store::{Store, database_path};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// One message of the store.
#[derive(Clone, Debug)]
pub(super) struct Mail {
    pub(super) id: MessageId,
    pub(super) session: SessionId,
    pub(super) text: String,
    pub(super) state: MessageState,
}

/// One entry of the audit log.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    session: SessionId,
    pub(super) actor: String,
    reason: String,
    verdict: String,
}

impl Entry {
    /// Whether somebody brings the session back.
    pub(super) fn is_restart(&self) -> bool {
        self.reason == "restart"
    }
}

/// What stands in the database.
#[derive(Default)]
pub(super) struct Look {
    pub(super) rows: BTreeMap<SessionId, SessionRow>,
    /// In the order of the store.
    pub(super) mail: Vec<Mail>,
    /// The audit log since the end of the last life.
    pub(super) log: Vec<Entry>,
    /// Sessions whose conversation ends with the note that their launch has failed.
    pub(super) relaunching: BTreeSet<SessionId>,
    /// The newest entry of the audit log.
    pub(super) last_entry: i64,
}

impl Look {
    /// What the living app has stored; `since` is the entry of the audit log to begin after.
    pub(super) fn alive(home: &Path, since: i64) -> Look {
        read(&database_path(&home.join("data")), since)
    }

    /// What a dead app left, read without touching it. `whole`: everything is checked, blocks and
    /// audit log too.
    pub(super) fn dead(home: &Path, since: i64, whole: bool) -> Look {
        let copy = tempfile::tempdir().unwrap();
        let (from, to) = (database_path(&home.join("data")), database_path(copy.path()));
        for end in ["", "-wal"] {
            let name = |path: &Path| format!("{}{end}", path.display());
            if Path::new(&name(&from)).exists() {
                fs::copy(name(&from), name(&to)).unwrap();
            }
        }
        let look = read(&to, since);
        if whole {
            look.check_whole(&to);
        }
        look
    }

    pub(super) fn queue(&self, of: SessionId) -> impl Iterator<Item = &Mail> {
        let queued = MessageState::Queued;
        self.mail.iter().filter(move |mail| mail.session == of && mail.state == queued)
    }

    pub(super) fn mail(&self, id: MessageId) -> Option<&Mail> {
        self.mail.iter().find(|mail| mail.id == id)
    }

    pub(super) fn restarts_of(&self, of: SessionId, by: Option<&str>) -> usize {
        let ours = |entry: &&Entry| entry.session == of && entry.is_restart();
        self.log.iter().filter(ours).filter(|entry| by.is_none_or(|by| entry.actor == by)).count()
    }

    /// What befell a session since the end of the last life, for the words of a failure.
    pub(super) fn story(&self, of: SessionId) -> String {
        let entries = self.log.iter().filter(|entry| entry.session == of);
        let line = |entry: &Entry| {
            let Entry { actor, reason, verdict, .. } = entry;
            format!("{actor}: {reason} ({verdict})\n")
        };
        format!("{:#?}\n{}", self.rows.get(&of), entries.map(line).collect::<String>())
    }

    /// The file is sound, the audit log alone gives the rows, and a person sees each message that was
    /// sent once and no other.
    fn check_whole(&self, database: &Path) {
        let connection = Connection::open(database).unwrap();
        let word: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(word, "ok");
        let store = Store::open(database).unwrap();
        let folded = store.fold_transitions().unwrap();
        assert!(folded.iter().eq(self.rows.values()), "the audit log tells another story");
        let mut bubbles: BTreeMap<MessageId, usize> = BTreeMap::new();
        for session in self.rows.keys() {
            for block in store.blocks(*session, None, u32::MAX).unwrap().blocks {
                if let BlockKind::Operator { message, .. } = block.kind {
                    *bubbles.entry(message).or_default() += 1;
                }
            }
        }
        for mail in self.mail.iter().filter(|mail| !self.is_deleted(mail.session)) {
            let shown = bubbles.get(&mail.id).copied().unwrap_or_default();
            let sent = matches!(mail.state, MessageState::Sent | MessageState::Answered);
            assert_eq!(shown, usize::from(sent), "bubbles of {mail:?}");
        }
    }

    pub(super) fn is_deleted(&self, session: SessionId) -> bool {
        self.rows.get(&session).is_none_or(|row| row.deleted_at.is_some())
    }
}

fn read(database: &Path, since: i64) -> Look {
    let store = Store::open(database).unwrap();
    let rows = store.every_row().unwrap().into_iter().map(|row| (row.id, row)).collect();
    let connection = Connection::open(database).unwrap();
    let id = |text: String| text.parse::<Uuid>().unwrap();
    let mut mail =
        connection.prepare("SELECT id, session, text, state FROM messages ORDER BY place").unwrap();
    let mail = mail.query_map([], |row| {
        let state = MessageState::parse(&row.get::<_, String>(3)?).unwrap();
        Ok(Mail { id: id(row.get(0)?), session: id(row.get(1)?), text: row.get(2)?, state })
    });
    let mail = mail.unwrap().map(Result::unwrap).collect();
    let log = "SELECT session, actor, reason, verdict FROM transitions WHERE id > ?1 ORDER BY id";
    let mut log = connection.prepare(log).unwrap();
    let log = log.query_map([since], |row| {
        let (actor, reason) = (row.get(1)?, row.get(2)?);
        Ok(Entry { session: id(row.get(0)?), actor, reason, verdict: row.get(3)? })
    });
    let log = log.unwrap().map(Result::unwrap).collect();
    let noted = "SELECT session FROM blocks AS newest WHERE kind = 'note'
         AND seq = (SELECT max(seq) FROM blocks WHERE session = newest.session)
         AND json_extract(body, '$.text') = ?1";
    let mut noted = connection.prepare(noted).unwrap();
    let noted = noted.query_map([prompt::NOTE_LAUNCH_HICCUP], |row| Ok(id(row.get(0)?)));
    let relaunching = noted.unwrap().map(Result::unwrap).collect();
    let last = "SELECT coalesce(max(id), 0) FROM transitions";
    let last_entry = connection.query_row(last, [], |row| row.get(0)).unwrap();
    Look { rows, mail, log, relaunching, last_entry }
}
