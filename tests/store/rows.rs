//! Rows: what is written is read, for random rows and chains of changes, and the log tells it all.

use crate::common::{Chance, NOW, as_stored, assert_log_tells_all, change, commit, folder};
use crate::common::{insert, plain};
use omniscio_core::id::Uuid;
use omniscio_core::session::{ChildMark, PendingAction, SessionRow, Status};
use omniscio_core::settings::Settings;
use omniscio_core::supervisor::Write;
use omniscio_core::time::Wall;
use omniscio_core::verdict::Actor;
use omniscio_lib::supervise::store::Store;
use rusqlite::Connection;

#[test]
fn every_fact_of_random_rows_comes_back_through_a_new_start() {
    for seed in 0..4 {
        let mut chance = Chance::new(seed);
        let (_folder, database) = folder();
        let mut store = Store::open(&database).unwrap();
        let mut rows: Vec<SessionRow> = (1..60).map(|n| chance.row(Uuid(n))).collect();
        let writes: Vec<Write> = rows.iter().map(insert).collect();
        commit(&mut store, &writes);
        drop(store);
        let store = Store::open(&database).unwrap();
        for row in &rows {
            assert_eq!(store.row(row.id).unwrap(), Some(as_stored(row)), "seed {seed}");
        }
        let loaded = store.load().unwrap();
        rows.retain(|row| row.deleted_at.is_none());
        rows.sort_by_key(|row| (row.created_at, row.id));
        assert_eq!(loaded.rows, rows, "seed {seed}");
    }
}

// proves: INV-65, A-30
#[test]
fn the_audit_log_alone_gives_every_row_after_any_chain_of_changes() {
    for seed in 10..14 {
        let mut chance = Chance::new(seed);
        let (_folder, database) = folder();
        let mut store = Store::open(&database).unwrap();
        let mut rows: Vec<SessionRow> = (1..12).map(|n| chance.row(Uuid(n))).collect();
        commit(&mut store, &rows.iter().map(insert).collect::<Vec<_>>());
        for _ in 0..100 {
            let at = chance.below(rows.len() as u64) as usize;
            let (before, after) = (rows[at].clone(), chance.row(rows[at].id));
            commit(&mut store, &[change(Some(&before), &after)]);
            rows[at] = after;
        }
        let rows: Vec<SessionRow> = rows.iter().map(as_stored).collect();
        assert_eq!(store.every_row().unwrap(), rows, "seed {seed}");
        assert_log_tells_all(&store);
        assert_eq!(store.audit(None, 1_000).unwrap().len(), 11 + 100);

        // and the log cannot be bent afterwards
        drop(store);
        let connection = Connection::open(&database).unwrap();
        for bend in ["DELETE FROM transitions", "UPDATE transitions SET reason = ''"] {
            assert!(connection.execute(bend, []).unwrap_err().to_string().contains("append-only"));
        }
    }
}

// proves: OP-11
#[test]
fn the_audit_log_says_who_did_what_and_why_newest_first() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let row = plain(1);
    let mut stamped = row.clone();
    (stamped.status, stamped.pending) = (Status::NeedsYou, Some(PendingAction::ResponseAborted));
    commit(&mut store, &[insert(&row), insert(&plain(2))]);
    let stamp = Write::Row {
        before: Some(Box::new(row.clone())),
        after: Box::new(stamped),
        actor: Actor::Abort,
        reason: "the output ended".to_owned(),
    };
    let at = NOW.plus(5);
    store.commit(&[stamp], at).unwrap();
    let lines = store.audit(Some(row.id), 10).unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|l| (l.at, l.actor.as_str(), l.reason.as_str(), l.outcome.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (at, "abort", "the output ended", "starting -> needs_you + response_aborted"),
            (NOW, "app", "test", "created: starting"),
        ]
    );
    assert_eq!(lines[0].title, "Session 1");
    assert_eq!(store.audit(None, 2).unwrap().len(), 2);
}

#[test]
fn facts_that_an_older_app_did_not_write_read_as_a_new_rows() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&plain(1)), insert(&plain(2))]);
    let connection = Connection::open(&database).unwrap();
    connection.execute("UPDATE sessions SET facts = '{}'", []).unwrap();
    assert_eq!(store.load().unwrap().rows, [plain(1), plain(2)]);

    // a row that does not read is named, and hides no other
    let bad = "UPDATE sessions SET status = 'dancing' WHERE title = 'Session 2'";
    connection.execute(bad, []).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!(loaded.rows, [plain(1)]);
    assert!(loaded.unreadable[0].contains(&plain(2).id.to_string()), "{:?}", loaded.unreadable);
}

// proves: A-03
#[test]
fn the_children_of_deleted_and_unreadable_rows_are_known_too() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let of = |number: u128| {
        let pid = u32::try_from(number).unwrap();
        SessionRow { child: Some(ChildMark { pid, start: 7 }), ..plain(number) }
    };
    let deleted = SessionRow { deleted_at: Some(NOW), ..of(2) };
    commit(&mut store, &[insert(&of(1)), insert(&deleted), insert(&of(3)), insert(&plain(4))]);
    let connection = Connection::open(&database).unwrap();
    let bad = "UPDATE sessions SET status = 'dancing' WHERE title = 'Session 3'";
    connection.execute(bad, []).unwrap();
    assert_eq!(store.load().unwrap().rows.len(), 2);
    let wanted = [of(1), of(2), of(3)].map(|row| (row.id.to_string(), row.child.unwrap()));
    assert_eq!(store.children().unwrap(), wanted);
}

#[test]
fn settings_come_back_and_an_ill_typed_one_has_its_default() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    assert_eq!(store.load().unwrap().settings, Settings::default());
    let settings = Settings {
        aborted_response_recovery_enabled: false,
        claude_path: "/opt/claude".to_owned(),
        ..Settings::default()
    };
    commit(&mut store, &[Write::Settings(settings.clone())]);
    assert_eq!(store.load().unwrap().settings, settings);
    let connection = Connection::open(&database).unwrap();
    let bad = "UPDATE settings SET value = '7' WHERE key = 'abortedResponseRecoveryEnabled'";
    connection.execute(bad, []).unwrap();
    let mended = Settings { aborted_response_recovery_enabled: true, ..settings };
    assert_eq!(store.load().unwrap().settings, mended);
}

#[test]
fn folders_are_remembered_with_their_trust_and_newest_first() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    assert_eq!(store.trusted("/p/1").unwrap(), None);
    store.set_trusted("/p/1", true, NOW).unwrap();
    assert_eq!(store.trusted("/p/1").unwrap(), Some(true));
    store.set_trusted("/p/1", false, NOW).unwrap();
    assert_eq!(store.trusted("/p/1").unwrap(), Some(false));

    for (number, folder, at) in [(1, "/a", 10), (2, "/b", 20), (3, "/a", 30), (4, "/c", 25)] {
        let mut row = plain(number);
        (row.folder, row.created_at) = (folder.to_owned(), Wall(at));
        row.deleted_at = (number == 4).then_some(NOW);
        commit(&mut store, &[insert(&row)]);
    }
    assert_eq!(store.recent_folders().unwrap(), ["/a", "/b"]);
}
