//! The scan's query: right rows, oldest first, and by its index among ten thousand.

use crate::common::{NOW, commit, folder, insert, plain};
use omniscio_core::id::Uuid;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::supervisor::Write;
use omniscio_core::time::Wall;
use omniscio_lib::supervise::store::{GET_RESPONSE_ABORTED_SESSION_IDS, Store};
use rusqlite::Connection;

// proves: SC-03, DB-07
#[test]
fn among_ten_thousand_rows_the_index_finds_the_three_that_are_stamped() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let mut writes: Vec<Write> = Vec::new();
    for number in 1..=10_000_u64 {
        let mut row = plain(u128::from(number));
        row.status = Status::ALL[(number % 9) as usize];
        row.status_changed_at = Wall(1_000_000 - i64::try_from(number).unwrap());
        match number {
            // in the shape
            500 | 5_000 => row.status = Status::NeedsYou,
            9_000 => row.status = Status::Error,
            // stamped, but deleted, or of a status that the scan leaves alone
            600 => (row.status, row.deleted_at) = (Status::NeedsYou, Some(NOW)),
            700 => row.status = Status::Archived,
            number if number % 50 == 0 => row.pending = Some(PendingAction::RecoveryFailed),
            _ => {}
        }
        if matches!(number, 500 | 600 | 700 | 5_000 | 9_000) {
            row.pending = Some(PendingAction::ResponseAborted);
        }
        writes.push(insert(&row));
    }
    commit(&mut store, &writes);
    let ids = store.response_aborted_session_ids().unwrap();
    assert_eq!(ids, [Uuid(9_000), Uuid(5_000), Uuid(500)]);

    let connection = Connection::open(&database).unwrap();
    let plan = format!("EXPLAIN QUERY PLAN {GET_RESPONSE_ABORTED_SESSION_IDS}");
    let mut statement = connection.prepare(&plan).unwrap();
    let steps: Vec<String> =
        statement.query_map([], |row| row.get("detail")).unwrap().map(Result::unwrap).collect();
    let by_index = "SEARCH sessions USING INDEX sessions_pending_action (pending_action=?)";
    assert_eq!(steps, [by_index], "one search, no scan and no sorting");
}
