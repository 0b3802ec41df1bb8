//! Disks that fail: full, read-only, damaged, locked. Each is told apart, and nothing is lost.
//!
//! The full disk is a real one: a small tmpfs in a mount namespace of the child that uses it.

use crate::common::{NOW, own_binary, plain};
use crate::common::{assert_log_tells_all, assert_sound, change, commit, dump, folder, insert};
use omniscio_core::session::SessionRow;
use omniscio_lib::supervise::store::{Store, StoreError};
use rusqlite::Connection;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

const SMALL_DISK: &str = "OMNISCIO_SMALL_DISK";

/// The child's part, on a disk of 1 MiB.
#[test]
fn on_a_small_disk() {
    let Some(disk) = std::env::var_os(SMALL_DISK) else {
        return;
    };
    let disk = Path::new(&disk);
    let database = disk.join("omniscio.db");
    let mut store = Store::open(&database).unwrap();
    let mut row = plain(1);
    commit(&mut store, &[insert(&row)]);
    let filler = disk.join("filler");
    fill(&filler);

    // the log still has a little room; then the disk is full
    let error = loop {
        match grow(&mut store, &row) {
            Ok(after) => row = after,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full), "{error:?}");
    assert!(error.to_string().starts_with("The disk is full"), "{error}");
    assert!(matches!(grow(&mut store, &row), Err(StoreError::Full)), "and it stays full");
    assert_eq!(store.row(row.id).unwrap().as_ref(), Some(&row), "what was told stands");
    assert_log_tells_all(&store);

    fs::remove_file(&filler).unwrap();
    row = grow(&mut store, &row).expect("it works again once there is room");
    drop(store);
    assert_sound(&database);
    let store = Store::open(&database).unwrap();
    assert_eq!(store.row(row.id).unwrap().as_ref(), Some(&row));
    assert_log_tells_all(&store);
    drop(store);

    let remounted =
        Command::new("mount").args(["-o", "remount,bind,ro"]).arg(disk).status().unwrap();
    assert!(remounted.success());
    let error = Store::open(&database).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error:?}");
    println!("the small disk was used");
}

/// Takes all the room that is left.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}

/// One more step: the row with longer words.
fn grow(store: &mut Store, row: &SessionRow) -> Result<SessionRow, StoreError> {
    let mut after = row.clone();
    after.turn_count += 1;
    after.words = Some("w".repeat(9_000));
    store.commit(&[change(Some(row), &after)], NOW)?;
    Ok(after)
}

#[test]
fn a_full_disk_and_a_read_only_one_are_told_and_nothing_is_lost() {
    let (folder, _) = folder();
    let child = own_binary("disk::on_a_small_disk", SMALL_DISK, folder.path());
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        command.arg("--map-root-user");
    }
    let mount = "mount -t tmpfs -o size=1m none \"$OMNISCIO_SMALL_DISK\" && exec \"$0\" \"$@\"";
    command.args(["--", "sh", "-c", mount]).arg(child.get_program()).args(child.get_args());
    command.env(SMALL_DISK, folder.path());
    let output = command.output().unwrap_or_else(|error| {
        panic!("`unshare` cannot be started ({error}): install the package util-linux")
    });
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("the small disk was used"),
        "run the tests as root, or allow user namespaces, so that a small disk can be mounted, if \
         that is what is missing here:\n{told}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_damaged_database_is_told_and_not_replaced() {
    let (_folder, database) = folder();
    fs::write(&database, "this is a text and has never been a database".repeat(100)).unwrap();
    let before = fs::read(&database).unwrap();
    let error = Store::open(&database).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    assert_eq!(fs::read(&database).unwrap(), before);

    // a page in the middle went bad
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let rows: Vec<_> = (1..200).map(|number| insert(&plain(number))).collect();
    commit(&mut store, &rows);
    drop(store);
    let mut bytes = fs::read(&database).unwrap();
    let end = bytes.len();
    bytes[4096..end].fill(0xa5);
    fs::write(&database, bytes).unwrap();
    let loaded = Store::open(&database).and_then(|store| store.load().map(|_| ()));
    assert!(matches!(loaded, Err(StoreError::Corrupt(_))), "{loaded:?}");
}

#[test]
fn a_database_that_another_program_keeps_locked_is_told_and_used_once_it_is_free() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let other = Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = dump(&database);
    let error = store.commit(&[insert(&plain(1))], NOW).unwrap_err();
    assert!(matches!(error, StoreError::Locked), "{error:?}");
    assert_eq!(dump(&database), before);
    assert!(store.load().is_ok(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    commit(&mut store, &[insert(&plain(1))]);
}
