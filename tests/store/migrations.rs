//! Migrations from every older fixture: all or nothing, once, and the retro-fill exactly.
//!
//! A fixture is SQL named by the version it is for; it is laid into a database that the runner
//! brought up to that version.

use crate::common::{NOW, assert_log_tells_all, assert_sound, dump_of, folder};
use omniscio_core::id::Uuid;
use omniscio_core::limits::Limits;
use omniscio_core::settings::{KillSwitches, Settings};
use omniscio_core::supervisor::{self, Act, Answer, AskId, Boot, Input, Question, State, Step};
use omniscio_core::time::{Day, Mono, Now};
use omniscio_lib::supervise::store::migrate::{LATEST, MIGRATIONS, Migration, run};
use omniscio_lib::supervise::store::{Store, StoreError};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every fixture with its version.
fn fixtures() -> Vec<(u32, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/db");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        found.push((name.split('_').next().unwrap().parse().unwrap(), path));
    }
    assert!(found.iter().any(|(version, _)| *version == 255), "no fixture of the baseline");
    found
}

/// A database as the fixture's version left it.
fn old_database(version: u32, fixture: &Path, database: &Path) -> Connection {
    let mut connection = Connection::open(database).unwrap();
    run(&mut connection, MIGRATIONS, version).unwrap();
    connection.execute_batch(&fs::read_to_string(fixture).unwrap()).unwrap();
    connection
}

/// The newest database before the retro-fill: every combination of what it looks at.
pub(crate) fn baseline(database: &Path) -> Connection {
    let (version, fixture) = fixtures().into_iter().find(|(version, _)| *version == 255).unwrap();
    old_database(version, &fixture, database)
}

fn version(connection: &Connection) -> u32 {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// The columns of a session in 0255.
const COLUMNS: [&str; 16] = [
    "id",
    "title",
    "folder",
    "created_at",
    "account",
    "status",
    "pending_action",
    "status_changed_at",
    "intent_running",
    "cli_session_id",
    "cli_session_wanted",
    "delivered",
    "last_restart_at",
    "stop_reason",
    "deleted_at",
    "facts",
];

/// Every session by id: the values of [`COLUMNS`], as SQL writes them.
fn sessions(connection: &Connection) -> BTreeMap<String, Vec<String>> {
    let quoted = COLUMNS.map(|column| format!("quote({column})")).join(", ");
    let mut statement = connection.prepare(&format!("SELECT {quoted} FROM sessions")).unwrap();
    let rows = statement.query_map([], |row| {
        let values: Vec<String> = (0..COLUMNS.len()).map(|at| row.get(at).unwrap()).collect();
        Ok((values[0].trim_matches('\'').to_owned(), values))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Where a column stands in [`COLUMNS`].
fn at(column: &str) -> usize {
    COLUMNS.iter().position(|name| *name == column).unwrap()
}

/// Stopped, asking nothing, not deleted, and no delivered answer on record.
fn is_fingerprint(row: &[String]) -> bool {
    ["'needs_you'", "'error'"].contains(&row[at("status")].as_str())
        && row[at("pending_action")] == "NULL"
        && row[at("deleted_at")] == "NULL"
        && row[at("delivered")] == "0"
}

/// The ids of the rows that the retro-fill is for, by the contract's words.
pub(crate) fn fingerprint_ids(connection: &Connection) -> Vec<Uuid> {
    let rows = sessions(connection).into_iter().filter(|(_, row)| is_fingerprint(row));
    rows.map(|(id, _)| id.parse().unwrap()).collect()
}

/// What stands in the other tables.
fn others(connection: &Connection) -> Vec<String> {
    let changed = ["sessions: ", "transitions: ", "sqlite_"];
    let lines = dump_of(connection).into_iter();
    lines.filter(|line| !changed.iter().any(|table| line.starts_with(table))).collect()
}

#[test]
fn every_older_database_comes_up_sound_and_is_read() {
    for (old, fixture) in fixtures() {
        let (_folder, database) = folder();
        let before = sessions(&old_database(old, &fixture, &database)).len();
        let store = Store::open(&database).unwrap();
        let loaded = store.load().unwrap();
        assert_eq!(loaded.unreadable, [""; 0], "{fixture:?}");
        assert!(before > 0 && store.every_row().unwrap().len() == before);
        assert_log_tells_all(&store);
        drop(store);
        assert_sound(&database);
        assert_eq!(version(&Connection::open(&database).unwrap()), LATEST);
    }
}

// proves: CT-01, MG-01
#[test]
fn version_256_adds_the_counter_with_default_zero_and_its_day() {
    let (_folder, database) = folder();
    let mut connection = baseline(&database);
    run(&mut connection, MIGRATIONS, 256).unwrap();
    assert_eq!(version(&connection), 256);
    let column = |name: &str| {
        let sql = "SELECT type, \"notnull\", dflt_value FROM pragma_table_info('sessions') \
                   WHERE name = ?1";
        connection
            .query_row(sql, [name], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, bool>(1)?,
                    row.get::<_, Option<String>>(2)?,
                ))
            })
            .unwrap()
    };
    let counter = ("INTEGER".to_owned(), true, Some("0".to_owned()));
    assert_eq!(column("aborted_response_retry_attempts"), counter);
    assert_eq!(column("aborted_response_retry_day"), ("TEXT".to_owned(), false, None));
}

// proves: MG-02, MG-05, DB-07, INV-45
#[test]
fn the_retro_fill_stamps_exactly_the_fingerprint_and_leaves_the_rest_byte_for_byte() {
    let (_folder, database) = folder();
    let mut connection = baseline(&database);
    let (before, other) = (sessions(&connection), others(&connection));
    assert_eq!(before.len(), 9 * 11 * 2 * 2);
    run(&mut connection, MIGRATIONS, 256).unwrap();
    let after = sessions(&connection);
    assert_eq!(other, others(&connection));

    let mut stamped = Vec::new();
    for (id, mut row) in before {
        if is_fingerprint(&row) {
            // the one column that changes; the hide clock beside it stays
            row[at("pending_action")] = "'response_aborted'".to_owned();
            stamped.push(id.parse::<Uuid>().unwrap());
        }
        assert_eq!(row, after[&id], "{id}");
    }
    assert_eq!(stamped.len(), 2, "one needs_you and one error row have the fingerprint");

    drop(connection);
    let store = Store::open(&database).unwrap();
    let scanned = store.response_aborted_session_ids().unwrap();
    assert!(stamped.iter().all(|id| scanned.contains(id)));
    let told =
        store.audit(None, 10_000).unwrap().into_iter().filter(|line| line.actor == "migration");
    let mut told: Vec<Uuid> = told.map(|line| line.session).collect();
    told.sort();
    assert_eq!(told, stamped);
}

/// Every question of a step, with its number.
fn asked(step: &Step) -> Vec<(AskId, Question)> {
    let mut asked = Vec::new();
    for act in &step.acts {
        if let Act::Ask { ask, question } = act {
            asked.push((*ask, question.clone()));
        }
    }
    asked
}

// proves: MG-03, SC-02
#[test]
fn the_first_scan_after_the_upgrade_looks_at_every_row_that_was_stamped() {
    let (_folder, database) = folder();
    let old = baseline(&database);
    let ids = fingerprint_ids(&old);
    drop(old);
    let store = Store::open(&database).unwrap();
    let loaded = store.load().unwrap();
    let boot = Boot {
        seed: 1,
        os: omniscio_core::launch::classify::Os::Linux,
        first: true,
        rows: loaded.rows.clone(),
        queues: loaded.queues,
        block_counts: loaded.block_counts,
        live: Vec::new(),
        // the fixture's person turned recovery off; the rule is about one who did not
        settings: Settings::default(),
        switches: KillSwitches::default(),
        accounts: Vec::new(),
    };
    let at = |ms: u64| Now { wall: NOW.plus(ms), mono: Mono(ms), day: Day(20_000) };
    let mut app = State::new(Limits::default());
    supervisor::step(&mut app, Input::Boot(Box::new(boot)), at(0));
    let too_early = supervisor::step(&mut app, Input::Wake, at(29_999));
    assert!(!asked(&too_early).iter().any(|(_, question)| *question == Question::Stamped));
    let first = supervisor::step(&mut app, Input::Wake, at(30_000));
    let (ask, _) = asked(&first)
        .into_iter()
        .find(|(_, question)| *question == Question::Stamped)
        .expect("the first scan is 30 s after the start");

    let stamped = store.response_aborted_session_ids().unwrap();
    let answer = Answer::Stamped { ids: stamped };
    let looked = asked(&supervisor::step(&mut app, Input::Answer { ask, answer }, at(30_001)));
    for id in ids {
        let row = loaded.rows.iter().find(|row| row.id == id).unwrap();
        let conversation = row.cli_session_id;
        assert!(
            looked.iter().any(|(_, question)| matches!(question,
                Question::Transcript { cli_session, .. } if *cli_session == conversation)),
            "{id} is on its way to a replay"
        );
    }
}

// proves: MG-04, INV-45
#[test]
fn running_it_again_changes_nothing_even_with_new_bare_rows() {
    let (_folder, database) = folder();
    let mut connection = baseline(&database);
    run(&mut connection, MIGRATIONS, 256).unwrap();
    let bare = "UPDATE sessions SET pending_action = NULL
                WHERE status = 'needs_you' AND delivered = 0 AND deleted_at IS NULL";
    assert!(connection.execute(bare, []).unwrap() > 1);
    let schema = |connection: &Connection| -> Vec<String> {
        let mut statement =
            connection.prepare("SELECT coalesce(sql, name) FROM sqlite_schema").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let (contents, objects) = (dump_of(&connection), schema(&connection));
    let changes = connection.total_changes();
    run(&mut connection, MIGRATIONS, 256).unwrap();
    assert_eq!(connection.total_changes(), changes);
    assert_eq!((dump_of(&connection), schema(&connection)), (contents, objects));
}

#[test]
fn a_migration_that_fails_midway_leaves_no_trace() {
    let (_folder, database) = folder();
    let mut connection = baseline(&database);
    let before = dump_of(&connection);
    let broken: &str =
        Box::leak(format!("{}\nINSERT INTO nowhere VALUES (1);", MIGRATIONS[1].sql).into());
    let migrations = [MIGRATIONS[0], Migration { version: 256, sql: broken }];
    let error = run(&mut connection, &migrations, 256).unwrap_err();
    assert!(matches!(error, StoreError::Migration { to: 256, .. }), "{error}");
    assert!(error.to_string().contains("it is unchanged"), "{error}");
    assert_eq!((version(&connection), dump_of(&connection)), (255, before));
    run(&mut connection, MIGRATIONS, 256).unwrap();
    assert_eq!(version(&connection), 256);
}

/// Commits that a write-ahead log holds: frames that carry the size of the database after them.
fn commits_in(log: &[u8]) -> usize {
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    log[32..].chunks(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
}

// proves: INV-44
#[test]
fn a_migration_and_its_version_are_one_commit() {
    let (_folder, database) = folder();
    let mut connection = baseline(&database);
    let log_on = connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()));
    log_on.unwrap();
    run(&mut connection, MIGRATIONS, 256).unwrap();
    let log = fs::read(database.with_extension("db-wal")).unwrap();
    assert_eq!(commits_in(&log), 1, "a kill between two commits would leave half a migration");
}

#[test]
fn a_newer_database_and_another_programs_are_refused_untouched() {
    let (_folder, database) = folder();
    drop(Store::open(&database).unwrap());
    let connection = Connection::open(&database).unwrap();
    connection.pragma_update(None, "user_version", LATEST + 1).unwrap();
    drop(connection);
    let before = fs::read(&database).unwrap();
    let error = Store::open(&database).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found, known } if (found, known) == (LATEST + 1, LATEST)),
        "{error}"
    );
    assert_eq!(fs::read(&database).unwrap(), before);

    let (_folder, foreign) = folder();
    let connection = Connection::open(&foreign).unwrap();
    connection
        .execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine');")
        .unwrap();
    drop(connection);
    let before = fs::read(&foreign).unwrap();
    assert!(matches!(Store::open(&foreign), Err(StoreError::NotOurs)));
    assert_eq!(fs::read(&foreign).unwrap(), before);
}
