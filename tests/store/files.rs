//! The files: private to their user, a write-ahead log, and one supervisor per data folder.

use crate::common::{commit, folder, insert, own_binary, plain};
use omniscio_lib::supervise::store::paths::{IDENTIFIER, LOCK_FILE, prepare};
use omniscio_lib::supervise::store::{LockError, Store, acquire, database_path};
use rusqlite::Connection;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// proves: DB-04
#[test]
fn the_database_runs_with_a_write_ahead_log() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&plain(1))]);
    let mode: String = Connection::open(&database)
        .unwrap()
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    assert!(database.with_extension("db-wal").exists());
}

#[test]
fn folder_and_files_are_private_and_a_loose_file_is_made_so() {
    let (folder, _) = folder();
    let data = folder.path().join("share").join(IDENTIFIER);
    let database = database_path(&data);
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&plain(1))]);
    let lock = acquire(&data).unwrap();
    assert_eq!(mode(&data), 0o700);
    let files: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{file:?}");
    }
    drop((store, lock));

    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&database, fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&database).unwrap());
    assert_eq!((mode(&data), mode(&database)), (0o700, 0o600));

    // a folder that somebody chose keeps its rights
    let chosen = folder.path().join("chosen");
    fs::create_dir(&chosen).unwrap();
    fs::set_permissions(&chosen, fs::Permissions::from_mode(0o755)).unwrap();
    prepare(&chosen).unwrap();
    assert_eq!(mode(&chosen), 0o755);
}

const HOLDER: &str = "OMNISCIO_LOCK_HOLDER";

/// The child's part: takes the lock and keeps it until it is killed.
#[test]
fn holder() {
    let Some(data) = std::env::var_os(HOLDER) else {
        return;
    };
    let _lock = acquire(Path::new(&data)).unwrap();
    println!("locked");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn one_process_holds_the_data_folder_and_its_death_frees_it() {
    let (folder, _) = folder();
    let mut command = own_binary("files::holder", HOLDER, folder.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let locked = lines.map_while(Result::ok).any(|line| line.ends_with("locked"));
    assert!(locked, "the child takes the lock");
    let error = acquire(folder.path()).unwrap_err();
    assert!(matches!(error, LockError::Held { pid } if pid == Some(child.id())), "{error:?}");
    assert!(error.to_string().contains(&child.id().to_string()), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();

    let lock = acquire(folder.path()).expect("the system freed it");
    assert!(matches!(acquire(folder.path()), Err(LockError::Held { .. })));
    drop(lock);
    assert!(folder.path().join(LOCK_FILE).exists());
    acquire(folder.path()).expect("it was let go");
}
