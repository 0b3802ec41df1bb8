//! `triage-aborted-sessions` as a program: what it lists, what it marks, what it leaves alone, and what
//! it says of a file that it cannot work on.

use crate::common::{
    NOW, assert_log_tells_all, assert_sound, change, commit, dump, folder, insert, plain,
};
use crate::migrations::{baseline, fingerprint_ids};
use omniscio_core::id::Uuid;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Write;
use omniscio_lib::supervise::store::migrate::{LATEST, MIGRATIONS, run};
use omniscio_lib::supervise::store::{Store, acquire, triage};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_triage-aborted-sessions");

/// The program without a display, and with no data of its own but what is named.
fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("XDG_DATA_HOME", "/nowhere");
    command
}

fn on(database: &Path, more: &[&str]) -> Output {
    program().arg("--db-path").arg(database).args(more).output().unwrap()
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The words of a run that failed with this code and told nothing on stdout.
fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(output.stdout, b"", "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The ids that a run lists.
fn listed(text: &str) -> Vec<Uuid> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
    let mut ids: Vec<Uuid> = lines.map(|line| line[..36].parse().unwrap()).collect();
    ids.sort();
    ids
}

/// Every file of a folder but the log's index, which each reader writes its place into.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let kept = paths.filter(|path| !path.to_string_lossy().ends_with("-shm"));
    kept.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A migrated database whose marks an older app took off again (MG-12), and the ids that had them.
fn unmarked(database: &Path) -> Vec<Uuid> {
    let mut connection = baseline(database);
    let ids = fingerprint_ids(&connection);
    run(&mut connection, MIGRATIONS, LATEST).unwrap();
    drop(connection);
    let mut store = Store::open(database).unwrap();
    for id in &ids {
        let row = store.row(*id).unwrap().unwrap();
        let bare = SessionRow { pending: None, ..row.clone() };
        commit(&mut store, &[change(Some(&row), &bare)]);
    }
    ids
}

/// A row of the fingerprint.
fn lost(number: u128) -> SessionRow {
    SessionRow { status: Status::NeedsYou, ..plain(number) }
}

// proves: MG-11
#[test]
fn the_condition_is_the_migrations_word_for_word() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let migration = MIGRATIONS.iter().find(|migration| migration.version == 256).unwrap();
    let code: Vec<&str> =
        migration.sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let code = words(&code.join("\n"));
    let conditions: Vec<&str> =
        code.split("WHERE ").skip(1).map(|rest| rest.split(';').next().unwrap()).collect();
    let wanted = words(triage::FINGERPRINT);
    assert_eq!(conditions, [wanted.as_str(); 2]);
}

// proves: MG-06, MG-07, MG-12
#[test]
fn a_dry_run_lists_the_rows_that_lost_their_mark_and_writes_nothing() {
    let (folder, database) = folder();
    let ids = unmarked(&database);
    assert_eq!(ids.len(), 2);
    let before = files(folder.path());
    let text = said(&on(&database, &[]));
    assert_eq!(listed(&text), ids);
    assert!(text.contains("found 2 of 198 sessions"), "{text}");
    assert!(text.contains("Nothing was written. --execute marks them."), "{text}");
    assert_eq!(files(folder.path()), before);
    assert!(!folder.path().join("omniscio.db-shm").exists(), "the folder is as it was");

    // the same with a log that holds what the file does not: an app that runs, or was killed
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&lost(1))]);
    let before = files(folder.path());
    assert!(before.keys().any(|path| path.to_string_lossy().ends_with("-wal")));
    assert!(said(&on(&database, &[])).contains("found 3 of 199 sessions"));
    assert_eq!(files(folder.path()), before);
}

// proves: MG-08, MG-11, INV-45, INV-65, A-30
#[test]
fn execute_marks_what_the_migration_marks_and_the_second_run_nothing() {
    let (_folder, database) = folder();
    let ids = unmarked(&database);
    let store = Store::open(&database).unwrap();
    let mut wanted = store.every_row().unwrap();
    for row in wanted.iter_mut().filter(|row| ids.contains(&row.id)) {
        row.pending = Some(PendingAction::ResponseAborted);
    }
    drop(store);
    let text = said(&on(&database, &["--execute"]));
    assert_eq!(listed(&text), ids);
    assert!(text.contains("marked 2 of 198 sessions"), "{text}");

    let store = Store::open(&database).unwrap();
    assert_eq!(store.every_row().unwrap(), wanted, "one fact of these rows changed, no other");
    assert!(ids.iter().all(|id| store.response_aborted_session_ids().unwrap().contains(id)));
    assert_log_tells_all(&store);
    let told = store.audit(Some(ids[0]), 1).unwrap();
    assert_eq!((told[0].actor.as_str(), told[0].session), ("triage", ids[0]));
    assert!(told[0].outcome.ends_with(" + response_aborted"), "{told:?}");
    drop(store);

    let marked = dump(&database);
    for again in [&["--execute"][..], &[]] {
        let text = said(&on(&database, again));
        assert!(text.contains(" 0 of 198 sessions") && !text.contains("--execute"), "{text}");
    }
    assert_eq!(dump(&database), marked);
    assert_sound(&database);
}

// proves: MG-09, A-31
#[test]
fn the_path_goes_before_the_apps_own_database_which_is_the_default() {
    let (own, database) = folder();
    let (_other, elsewhere) = folder();
    commit(&mut Store::open(&database).unwrap(), &[insert(&lost(1))]);
    commit(&mut Store::open(&elsewhere).unwrap(), &[insert(&lost(2))]);
    let before = files(own.path());
    let at_home = |args: &[&str]| {
        let mut command = program();
        command.env("OMNISCIO_DATA_DIR", own.path()).args(args).output().unwrap()
    };
    let named = elsewhere.to_str().unwrap();
    assert_eq!(listed(&said(&at_home(&["--execute", "--db-path", named]))), [Uuid(2)]);
    assert_eq!(files(own.path()), before, "only the named file was opened");
    assert_eq!(listed(&said(&at_home(&[]))), [Uuid(1)]);
    // a name that a URI would read otherwise
    let odd = own.path().join("a?b#c%41 ü.db");
    fs::copy(&database, &odd).unwrap();
    assert_eq!(listed(&said(&on(&odd, &[]))), [Uuid(1)]);
}

// proves: MG-10, MG-11
#[test]
fn an_app_that_writes_all_the_while_is_never_made_to_fail() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let mut busy = SessionRow { status: Status::Running, ..plain(1) };
    commit(&mut store, &[insert(&busy)]);
    let app = thread::spawn(move || {
        for number in 0..150 {
            let after = SessionRow { turn_count: number + 1, ..busy.clone() };
            let new = insert(&lost(u128::from(number) + 10));
            // a step that the other program got in the way of would end this thread with words
            commit(&mut store, &[change(Some(&busy), &after), new]);
            busy = after;
            thread::sleep(Duration::from_millis(10));
        }
    });
    while !app.is_finished() {
        said(&on(&database, &[]));
        said(&on(&database, &["--execute"]));
    }
    app.join().unwrap();
    said(&on(&database, &["--execute"]));
    let store = Store::open(&database).unwrap();
    let rows = store.every_row().unwrap();
    assert_eq!(store.response_aborted_session_ids().unwrap().len(), rows.len() - 1);
    assert_log_tells_all(&store);
    drop(store);
    assert_sound(&database);
}

// proves: MG-11
#[test]
fn a_marked_row_refuses_the_write_of_an_app_that_has_not_seen_the_mark() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&lost(1))]);
    said(&on(&database, &["--execute"]));
    let after = SessionRow { status: Status::Starting, ..lost(1) };
    let stale: [Write; 1] = [change(Some(&lost(1)), &after)];
    assert!(store.commit(&stale, NOW).unwrap() != omniscio_lib::supervise::store::Committed::Done);
    let marked = store.row(Uuid(1)).unwrap().unwrap();
    assert_eq!(marked.pending, Some(PendingAction::ResponseAborted));
}

#[test]
fn it_says_that_the_app_runs() {
    let (folder, database) = folder();
    commit(&mut Store::open(&database).unwrap(), &[insert(&lost(1))]);
    let lock = acquire(folder.path()).unwrap();
    let running = format!("Omniscio is running (process {})", std::process::id());
    assert!(said(&on(&database, &[])).contains(&running));
    assert!(said(&on(&database, &["--execute"])).contains(&running));
    drop(lock);
    commit(&mut Store::open(&database).unwrap(), &[insert(&lost(2))]);
    assert!(!said(&on(&database, &[])).contains("is running"), "the lock file alone says nothing");
}

#[test]
fn a_link_leads_to_the_log_and_the_lock_of_the_file_itself() {
    let (folder, database) = folder();
    let (elsewhere, _) = crate::common::folder();
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&database, &link).unwrap();
    // the app runs, and its log holds what the file does not
    let _lock = acquire(folder.path()).unwrap();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&lost(1))]);
    let text = said(&on(&link, &[]));
    assert_eq!(listed(&text), [Uuid(1)]);
    assert!(text.contains("Omniscio is running"), "{text}");
}

#[test]
fn titles_are_short_and_do_nothing_to_the_terminal() {
    let (_folder, database) = folder();
    let title = format!("\u{1b}[2J\n{}", "ü".repeat(100));
    let row = SessionRow { title, ..lost(1) };
    commit(&mut Store::open(&database).unwrap(), &[insert(&row)]);
    let text = said(&on(&database, &[]));
    assert!(text.contains(&format!("  [2J {}…\n", "ü".repeat(55))), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_command_line_that_makes_no_sense_is_told_apart_from_a_database_that_does_not() {
    for wrong in [&["--force"][..], &["--db-path"], &["somewhere.db"]] {
        let output = program().args(wrong).output().unwrap();
        assert!(refused(&output, 2).contains("try '--help'"), "{output:?}");
    }
    let help = said(&program().arg("--help").output().unwrap());
    assert!(help.contains("--execute") && help.contains("--db-path"), "{help}");
}

#[test]
fn a_file_it_cannot_work_on_is_named_with_what_to_do_and_left_alone() {
    let (folder, database) = folder();
    let place = |name: &str| folder.path().join(name);
    drop(Store::open(&database).unwrap());
    let versioned = |name: &str, version: u32| {
        fs::copy(&database, place(name)).unwrap();
        let connection = Connection::open(place(name)).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    versioned("older.db", 255);
    versioned("newer.db", LATEST + 1);
    fs::write(place("text.db"), "this is no database\n".repeat(500)).unwrap();
    fs::write(place("empty.db"), "").unwrap();
    fs::create_dir(place("folder.db")).unwrap();
    let foreign = Connection::open(place("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE sessions (id); PRAGMA user_version = 256;").unwrap();
    drop(foreign);
    let mut torn = fs::read(&database).unwrap();
    torn[4096..].fill(0x5a);
    fs::write(place("torn.db"), torn).unwrap();
    let contents = || {
        let names = ["older", "newer", "text", "empty", "foreign", "torn"];
        names.map(|name| fs::read(place(&format!("{name}.db"))).unwrap())
    };
    let before = contents();
    for (name, words) in [
        ("missing.db", "There is no such file. Start Omniscio once"),
        ("folder.db", "There is no such file."),
        ("empty.db", "This is not a database of Omniscio. Name the right file"),
        ("text.db", "This is not a database of Omniscio."),
        ("foreign.db", "This is not a database of Omniscio."),
        ("older.db", "version 255, this program is for version 256. Start Omniscio once"),
        ("newer.db", "version 257, this app knows versions up to 256. It was left untouched."),
        ("torn.db", "The database is damaged"),
    ] {
        for args in [&[][..], &["--execute"]] {
            let told = refused(&on(&place(name), args), 1);
            assert!(told.contains(words) && told.contains(name), "{name}: {told}");
        }
    }
    assert_eq!(contents(), before);
    assert!(!place("missing.db").exists());
}

#[test]
fn without_rights_it_says_whose_the_files_must_be() {
    let (folder, database) = folder();
    commit(&mut Store::open(&database).unwrap(), &[insert(&lost(1))]);
    // who may everything becomes somebody who may not
    let program = folder.path().join("triage");
    fs::copy(PROGRAM, &program).unwrap();
    let rights = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    rights(&program, 0o755);
    rights(folder.path(), 0o755);
    let as_nobody = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.env_clear().arg("--db-path").arg(&database).args(args);
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    rights(&database, 0o000);
    assert!(refused(&as_nobody(&[]), 1).contains("belong to you"));
    assert!(refused(&as_nobody(&["--execute"]), 1).contains("belong to you"));
    // to read a file that nobody has open, reading it is enough
    rights(&database, 0o444);
    assert_eq!(listed(&said(&as_nobody(&[]))), [Uuid(1)]);
    assert!(refused(&as_nobody(&["--execute"]), 1).contains("may not be written"));
}

// proves: MG-10
#[test]
fn behind_a_writer_that_does_not_end_reading_works_and_marking_gives_up_with_words() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&lost(1))]);
    let writer = Connection::open(&database).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE sessions SET title = 'half';").unwrap();
    let text = said(&on(&database, &[]));
    assert!(text.contains("Session 1"), "{text}");
    let told = refused(&on(&database, &["--execute"]), 1);
    assert!(told.contains("keeps the database locked. Close it and try again."), "{told}");
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(listed(&said(&on(&database, &["--execute"]))), [Uuid(1)]);
}
