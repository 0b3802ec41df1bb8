//! The daily counter and the ladder as they stand in the file: counted by many at once, kept through
//! restarts. The rules of the count are the core's; here they meet the guarded write.

use crate::common::{NOW, assert_log_tells_all, change, commit, folder, insert, plain};
use omniscio_core::id::Uuid;
use omniscio_core::limits::Limits;
use omniscio_core::recovery::attempts::{
    increment_response_aborted_attempts, next_attempt, reset_response_aborted_attempts,
};
use omniscio_core::session::{Ladder, PendingAction, SessionRow, Status, StopReason};
use omniscio_core::time::Day;
use omniscio_lib::supervise::store::{Committed, Store, StoreError};
use rusqlite::Connection;
use std::path::Path;
use std::thread;

const TODAY: Day = Day(20_000);

fn stamped(number: u128) -> SessionRow {
    let pending = Some(PendingAction::ResponseAborted);
    SessionRow { status: Status::NeedsYou, pending, ..plain(number) }
}

/// Counter and day as the columns hold them.
fn columns(database: &Path) -> (i64, Option<String>) {
    let sql = "SELECT aborted_response_retry_attempts, aborted_response_retry_day FROM sessions";
    let connection = Connection::open(database).unwrap();
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

/// Changes the row as it stands until nobody was faster; what the change told of the one that counted.
fn persist<T>(store: &mut Store, change_it: impl Fn(&mut SessionRow) -> T) -> T {
    loop {
        let read = store.row(Uuid(1)).unwrap().unwrap();
        let mut after = read.clone();
        let told = change_it(&mut after);
        match store.commit(&[change(Some(&read), &after)], NOW) {
            Ok(Committed::Done) => return told,
            // another was faster, or so many were that the wait ran out: nothing was written
            Ok(Committed::Refused { .. }) | Err(StoreError::Locked) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The same from a hundred threads at once.
fn from_a_hundred_threads<T: Send>(
    database: &Path,
    change_it: impl Fn(&mut SessionRow) -> T + Sync,
) -> Vec<T> {
    let stores: Vec<Store> = (0..100).map(|_| Store::open(database).unwrap()).collect();
    thread::scope(|scope| {
        let change_it = &change_it;
        let threads: Vec<_> = stores
            .into_iter()
            .map(|mut store| scope.spawn(move || persist(&mut store, change_it)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

// proves: CT-03
#[test]
fn a_hundred_threads_that_count_at_once_lose_no_count() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&stamped(1))]);
    from_a_hundred_threads(&database, |row| row.retry_attempts += 1);
    assert_eq!(columns(&database).0, 100);
    assert_log_tells_all(&store);
}

// proves: CT-03, SC-11, DB-06
#[test]
fn of_a_hundred_attempts_at_once_two_are_free_and_the_count_stays_at_three() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&stamped(1))]);
    let cap = Limits::default().daily_attempt_cap;
    let attempts = from_a_hundred_threads(&database, |row| {
        let attempt = next_attempt(row, TODAY, cap);
        increment_response_aborted_attempts(row, attempt);
        attempt
    });
    let free = attempts.iter().filter(|attempt| !attempt.exceeds_cap);
    assert_eq!(free.count(), usize::from(cap), "each count was somebody's own");
    assert_eq!(columns(&database), (3, Some(TODAY.to_iso())));
    assert_log_tells_all(&store);
}

// proves: DB-06
#[test]
fn a_reset_frees_the_day_and_a_reset_of_a_count_that_moved_on_is_refused() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let charged = SessionRow { retry_attempts: 2, retry_day: Some(TODAY), ..stamped(1) };
    commit(&mut store, &[insert(&charged)]);
    let mut free = charged.clone();
    reset_response_aborted_attempts(&mut free);
    let stale = SessionRow { retry_attempts: 1, ..charged.clone() };
    let refused = Committed::Refused { session: Uuid(1) };
    assert_eq!(store.commit(&[change(Some(&stale), &free)], NOW).unwrap(), refused);
    assert_eq!(columns(&database), (2, Some(TODAY.to_iso())));
    commit(&mut store, &[change(Some(&charged), &free)]);
    assert_eq!(columns(&database), (0, None));
}

// proves: DB-06
#[test]
fn the_marker_is_cleared_only_where_it_stands() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&stamped(1))]);
    assert_eq!(store.response_aborted_session_ids().unwrap(), [Uuid(1)]);
    let clear = |row: &SessionRow| SessionRow { pending: None, ..row.clone() };
    let red = SessionRow { pending: Some(PendingAction::RecoveryFailed), ..stamped(1) };
    let stale = [change(Some(&red), &clear(&red))];
    assert_ne!(store.commit(&stale, NOW).unwrap(), Committed::Done);
    assert_eq!(store.response_aborted_session_ids().unwrap(), [Uuid(1)]);
    commit(&mut store, &[change(Some(&stamped(1)), &clear(&stamped(1)))]);
    assert_eq!(store.response_aborted_session_ids().unwrap(), [Uuid(0); 0]);
}

// proves: CT-10
#[test]
fn a_count_of_today_is_still_todays_after_a_restart() {
    let (_folder, database) = folder();
    commit(&mut Store::open(&database).unwrap(), &[insert(&stamped(1))]);
    let cap = Limits::default().daily_attempt_cap;
    for wanted in [(1, false), (2, false), (3, true)] {
        // each round is an app of its own
        let mut store = Store::open(&database).unwrap();
        let [row] = &store.load().unwrap().rows[..] else { panic!("one row") };
        let attempt = next_attempt(row, TODAY, cap);
        assert_eq!((attempt.count, attempt.exceeds_cap), wanted);
        let mut after = row.clone();
        increment_response_aborted_attempts(&mut after, attempt);
        commit(&mut store, &[change(Some(row), &after)]);
    }
    let row = Store::open(&database).unwrap().row(Uuid(1)).unwrap().unwrap();
    assert_eq!(next_attempt(&row, Day(TODAY.0 + 1), cap).count, 1, "the day is kept with it");
}

// proves: RF-02, RA-07, DB-08
#[test]
fn a_given_up_row_keeps_its_rung_its_time_and_its_reason_through_restarts() {
    let (_folder, database) = folder();
    let red = |number: u128, ladder: Ladder, stop_reason: Option<StopReason>| SessionRow {
        pending: Some(PendingAction::RecoveryFailed),
        ladder,
        stop_reason,
        ..stamped(number)
    };
    let due = Some(NOW.plus(30 * 60_000));
    let mut rows = vec![red(1, Ladder { rungs: 5, due }, None)];
    for (number, reason) in (2..).zip(StopReason::ALL) {
        rows.push(red(number, Ladder { rungs: 12, due: None }, Some(*reason)));
    }
    let writes: Vec<_> = rows.iter().map(insert).collect();
    commit(&mut Store::open(&database).unwrap(), &writes);
    for restart in 1..=3 {
        assert_eq!(Store::open(&database).unwrap().load().unwrap().rows, rows, "{restart}");
    }
    // the reason is a column of its own: one source for every query
    let connection = Connection::open(&database).unwrap();
    for (number, reason) in (2..).zip(StopReason::ALL) {
        let sql = "SELECT stop_reason FROM sessions WHERE title = ?1";
        let title = format!("Session {number}");
        let stored: String = connection.query_row(sql, [title], |row| row.get(0)).unwrap();
        assert_eq!(stored, reason.as_str());
    }
}
