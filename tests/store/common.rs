//! What the store's tests share: folders, random rows, short writes, and this binary as a child.

use omniscio_core::card::{Card, CardKind};
use omniscio_core::context::ContextUsage;
use omniscio_core::id::{Rng, Uuid};
use omniscio_core::session::{
    AbortCause, ArchiveReason, CallState, ChildMark, ForkPoint, Gate, Ladder, OpenTurn,
    PendingAction, PermissionMode, ReplayMemory, SessionRow, Status, StopReason, ToolCall,
};
use omniscio_core::supervisor::Write;
use omniscio_core::time::{Day, Wall};
use omniscio_core::verdict::{Actor, Source};
use omniscio_core::waiting::{DeferredWork, TaskKind, WaitTask, Wake};
use omniscio_lib::supervise::store::{Committed, Store};
use rusqlite::Connection;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const NOW: Wall = Wall(1_790_000_000_000);

/// A data folder of its own, and the database's place in it.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("omniscio.db");
    (folder, database)
}

/// A plain row under this number.
pub(crate) fn plain(number: u128) -> SessionRow {
    let (folder, title) = (format!("/p/{number}"), format!("Session {number}"));
    SessionRow::new(Uuid(number), folder, title, "default".to_owned(), NOW)
}

pub(crate) fn insert(row: &SessionRow) -> Write {
    change(None, row)
}

pub(crate) fn change(before: Option<&SessionRow>, after: &SessionRow) -> Write {
    Write::Row {
        before: before.cloned().map(Box::new),
        after: Box::new(after.clone()),
        actor: Actor::App,
        reason: "test".to_owned(),
    }
}

/// Commits what must not be refused.
pub(crate) fn commit(store: &mut Store, writes: &[Write]) {
    assert_eq!(store.commit(writes, NOW).unwrap(), Committed::Done);
}

/// A row as the store keeps it: a deleted one without what quotes the conversation.
pub(crate) fn as_stored(row: &SessionRow) -> SessionRow {
    let mut row = row.clone();
    if row.deleted_at.is_some() {
        (row.title, row.replay) = Default::default();
        (row.card, row.words, row.answer_line) = Default::default();
        (row.launch_request, row.gates) = Default::default();
    }
    row
}

/// Every row of every table, in words: equal if and only if the contents are.
pub(crate) fn dump(database: &Path) -> Vec<String> {
    let connection = Connection::open(database).unwrap();
    dump_of(&connection)
}

pub(crate) fn dump_of(connection: &Connection) -> Vec<String> {
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut statement = connection.prepare(names).unwrap();
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut lines = Vec::new();
    for table in tables {
        lines.extend(table_lines(connection, &table));
    }
    lines
}

fn table_lines(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement =
        connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let values: Vec<_> =
            (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
        lines.push(format!("{table}: {}", values.join(", ")));
    }
    lines
}

/// SQLite's own check of the whole file, and of its references.
pub(crate) fn assert_sound(database: &Path) {
    let connection = Connection::open(database).unwrap();
    let word: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(word, "ok");
    let mut broken = connection.prepare("PRAGMA foreign_key_check").unwrap();
    assert!(!broken.exists([]).unwrap(), "a reference is broken");
}

/// The audit log alone gives the table.
pub(crate) fn assert_log_tells_all(store: &Store) {
    let rows = store.every_row().unwrap();
    let folded = store.fold_transitions().unwrap();
    for (row, folded) in rows.iter().zip(&folded) {
        assert_eq!(row, folded);
    }
    assert_eq!(rows.len(), folded.len());
}

/// This test binary, to run one test of its own in another process. The test finds `variable` set
/// and does the child's part; without it that test has nothing to do.
pub(crate) fn own_binary(test_path: &str, variable: &str, value: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test_path, "--nocapture", "--test-threads=1"]).env(variable, value);
    command
}

/// Random values that follow from a seed.
pub(crate) struct Chance(Rng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(Rng::new(seed))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(make(self)) } else { None }
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        self.0.uuid()
    }

    fn wall(&mut self) -> Wall {
        Wall(self.below(4_000_000_000_000) as i64 - 1_000_000_000_000)
    }

    /// Text with what breaks a careless writer.
    pub(crate) fn text(&mut self) -> String {
        let pieces =
            ["", "'; DROP TABLE sessions; --", "\"q\"", "ünï", "🦀", "\n", "\\", "%s", "a"];
        (0..self.below(6)).map(|_| self.pick(&pieces)).collect()
    }

    /// A row with every fact drawn anew.
    pub(crate) fn row(&mut self, id: Uuid) -> SessionRow {
        SessionRow {
            title: self.text(),
            folder: self.text(),
            created_at: self.wall(),
            account: self.text(),
            model: self.maybe(Self::text),
            permission_mode: self
                .maybe(|c| c.pick(&[PermissionMode::Plan, PermissionMode::DontAsk])),
            endpoint: self.maybe(Self::text),
            user_settings_only: self.coin(),
            status: self.pick(Status::ALL),
            pending: self.maybe(|c| c.pick(PendingAction::ALL)),
            status_changed_at: self.wall(),
            intent_running: self.coin(),
            cli_session_id: self.maybe(Self::uuid),
            cli_session_wanted: self.maybe(Self::uuid),
            cli_session_before: self.maybe(Self::uuid),
            fork_of: self.maybe(|c| ForkPoint { from: c.uuid(), at: c.maybe(Self::uuid) }),
            last_good_assistant: self.maybe(Self::uuid),
            ever_answered: self.coin(),
            delivered: self.coin(),
            turn_count: self.below(1 << 40),
            turn: self.maybe(Self::turn),
            turn_since: self.maybe(Self::wall),
            replay: self.replay(),
            hide_since: self.maybe(Self::wall),
            retry_attempts: self.below(256) as u8,
            retry_day: self.maybe(|c| Day(c.below(60_000) as i32 - 10_000)),
            last_restart_at: self.maybe(Self::wall),
            stop_reason: self.maybe(|c| c.pick(StopReason::ALL)),
            ladder: Ladder { rungs: self.below(256) as u8, due: self.maybe(Self::wall) },
            cannot_launch: true,
            abort_cause: self.maybe(|c| c.pick(AbortCause::ALL)),
            context_recover_count: self.below(256) as u8,
            context_gave_up: self.coin(),
            auto_continue_count: self.below(256) as u8,
            prints_markers: self.coin(),
            context: self
                .maybe(|c| ContextUsage { tokens: c.below(1 << 40), window: 1 + c.below(1 << 30) }),
            parent: self.maybe(Self::uuid),
            launch_request: self.maybe(Self::text),
            gates: (0..self.below(3)).map(|_| self.gate()).collect(),
            deferred_work: self.maybe(Self::deferred_work),
            card: self.maybe(Self::card),
            words: self.maybe(Self::text),
            resets_at: self.maybe(Self::wall),
            answer_line: self.maybe(Self::text),
            unread: self.coin(),
            cost_microdollars: self.0.next_u64(),
            archive_reason: self.maybe(|c| c.pick(ArchiveReason::ALL)),
            deleted_at: if self.below(8) == 0 { Some(self.wall()) } else { None },
            child: self
                .maybe(|c| ChildMark { pid: c.below(1 << 22) as u32, start: c.0.next_u64() }),
            id,
        }
    }

    fn deferred_work(&mut self) -> DeferredWork {
        let wake =
            Wake { key: self.text(), at: self.maybe(Self::wall), prompt: self.text(), cron: None };
        let kind = self.pick(&[TaskKind::Command, TaskKind::Monitor, TaskKind::Agent]);
        let task = WaitTask { id: self.text(), kind, name: self.text() };
        DeferredWork { wakes: [wake].into(), tasks: [task].into() }
    }

    fn gate(&mut self) -> Gate {
        Gate { name: self.text(), opened_at: self.wall() }
    }

    fn turn(&mut self) -> OpenTurn {
        let sources = [Source::ResponseAborted, Source::CrashResume, Source::ConversationGone];
        OpenTurn {
            number: self.below(1 << 40),
            since: self.wall(),
            replay: self.maybe(|c| c.pick(&sources)),
            real_output: self.coin(),
        }
    }

    fn replay(&mut self) -> ReplayMemory {
        let states = [CallState::Started, CallState::Asked, CallState::Denied, CallState::Finished];
        let call = |c: &mut Self| ToolCall {
            id: c.text(),
            name: c.text(),
            detail: c.text(),
            state: c.pick(&states),
        };
        ReplayMemory {
            message: self.maybe(Self::uuid),
            sent_as: (0..self.below(3)).map(|_| self.uuid()).collect(),
            continued_as: (0..self.below(2)).map(|_| self.uuid()).collect(),
            calls: (0..self.below(4)).map(|_| call(self)).collect(),
            carries_unanswered: self.coin(),
            answered: self.coin(),
            stopped: self.coin(),
        }
    }

    fn card(&mut self) -> Card {
        Card {
            request: self.text(),
            tool_use: self.text(),
            kind: self.pick(&[CardKind::Permission, CardKind::Question, CardKind::Plan]),
            tool: self.text(),
            input: json!({ self.text(): [null, true, -1, 2.5, self.text()] }),
            suggestions: vec![json!({"type": self.text()})],
            reason: self.maybe(Self::text),
            asked_at: self.wall(),
            orphaned: self.coin(),
        }
    }
}
