//! T7: a request that fails, its two replays of the day, and what a day is.

use super::{MINUTE, Rig, SECOND, seen};
use crate::attention::{RowState, Section, Tone};
use crate::session::{PendingAction, Status};
use crate::time::{Day, Wall};

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;

// proves: HD-01, HD-05
#[test]
fn t07_a_failed_request_is_brought_back_once_within_a_minute_and_nobody_sees_it() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let before = seen(&rig, &rig.view());
    rig.fail_turn(529);
    assert_eq!(rig.row().pending, Some(PendingAction::ResponseAborted));
    assert_eq!(rig.row().status, Status::Error);
    let hidden = seen(&rig, &rig.view());
    assert_eq!(
        (hidden.state, hidden.section, hidden.tone),
        (before.state, before.section, before.tone)
    );
    assert!(!hidden.needs_person && hidden.pill.is_none());
    rig.pass(MINUTE);
    assert_eq!((rig.spawned, rig.row().retry_attempts), (2, 1));
    assert_eq!((seen(&rig, &rig.view()).state, rig.notified), (RowState::Running, 0));
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.pass(10 * MINUTE);
    // the one notice is that of the answer
    assert_eq!((rig.spawned, rig.notified, rig.row().status), (2, 1, Status::NeedsYou));
}

// proves: HD-09, HD-11
#[test]
fn t07_what_is_held_is_unseen_for_five_minutes_and_then_seen() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.folder = false;
    rig.fail_turn(529);
    rig.pass(5 * MINUTE - 1);
    assert!(!seen(&rig, &rig.view()).needs_person);
    rig.pass(1);
    let shown = seen(&rig, &rig.view());
    assert_eq!(
        (shown.section, shown.tone, shown.label),
        (Section::Interrupted, Tone::Red, "Paused")
    );
    assert!(shown.needs_person && shown.pill.is_some());
}

// proves: SC-13, CT-05, RF-07
#[test]
fn t07_the_third_failure_of_a_day_is_red_and_a_message_begins_the_count_anew() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    for attempt in 1..=2 {
        rig.fail_turn(529);
        rig.pass(155 * SECOND);
        assert_eq!((rig.spawned, rig.row().retry_attempts), (1 + attempt, attempt as u8));
        rig.spawn_and_shake();
    }
    rig.fail_turn(529);
    rig.pass(2 * MINUTE);
    assert_eq!(rig.row().pending, Some(PendingAction::RecoveryFailed));
    assert_eq!((rig.spawned, rig.notified), (3, 1));
    let red = seen(&rig, &rig.view());
    assert_eq!((red.section, red.tone), (Section::Interrupted, Tone::Red));

    rig.send("again, please");
    assert_eq!(rig.row().retry_attempts, 0);
    rig.spawn_and_shake();
    rig.fail_turn(529);
    rig.pass(155 * SECOND);
    assert_eq!((rig.row().status, rig.row().retry_attempts), (Status::Starting, 1));
}

// proves: CT-08
#[test]
fn t07_a_session_that_a_person_drives_is_never_silenced_by_the_cap() {
    let mut rig = Rig::new();
    rig.create("message 0");
    for message in 1..=20 {
        rig.spawn_and_shake();
        rig.fail_turn(529);
        let spawned = rig.spawned;
        rig.pass(155 * SECOND);
        assert_eq!(rig.spawned, spawned + 1, "message {message}");
        // by the scan, not by a rung of the ladder under a red row
        assert_eq!((rig.row().pending, rig.row().retry_attempts), (None, 1), "message {message}");
        rig.spawn_and_shake();
        rig.fail_turn(529);
        rig.send(&alloc::format!("message {message}"));
    }
}

/// A clock change: days from 1970-01-01, at 01:00 UTC.
fn change(date: &str) -> i64 {
    i64::from(day(date).0) * DAY_MS + HOUR_MS
}

fn day(date: &str) -> Day {
    Day::from_iso(date).expect("a date")
}

/// The local day in central Europe in 2026: two hours before UTC in summer, one in winter.
fn local(wall: Wall) -> Day {
    let summer = (change("2026-03-29")..change("2026-10-25")).contains(&wall.0);
    let offset = if summer { 2 } else { 1 };
    let days = (wall.0 + offset * HOUR_MS).div_euclid(DAY_MS);
    Day(i32::try_from(days).expect("a day"))
}

/// The first instant of a local day.
fn midnight(date: &str) -> Wall {
    let starts = [2, 1].map(|offset| Wall(i64::from(day(date).0) * DAY_MS - offset * HOUR_MS));
    let first = |wall: &Wall| local(*wall) == day(date) && local(Wall(wall.0 - 1)) != day(date);
    starts.into_iter().find(first).expect("a midnight")
}

/// A session that used up its replays in the first minutes of this local day, and works.
fn used_up(date: &str) -> Rig {
    let mut rig = Rig::new();
    rig.set_clock(midnight(date), day(date));
    rig.create("hello");
    rig.spawn_and_shake();
    for _ in 0..2 {
        rig.fail_turn(529);
        rig.pass_in(local, 155 * SECOND);
        rig.spawn_and_shake();
    }
    assert_eq!((rig.row().retry_attempts, rig.row().retry_day), (2, Some(day(date))));
    // a tool that runs for the rest of the day
    rig.tool("call-1", "make");
    rig
}

fn until(rig: &mut Rig, wall: Wall) {
    let left = wall.since(rig.now().wall);
    rig.pass_in(local, u64::try_from(left).expect("a time to come"));
    assert_eq!((rig.now().wall, rig.row().status), (wall, Status::Running));
}

// proves: CT-04
#[test]
fn t07_the_count_starts_over_at_local_midnight_also_on_days_of_23_and_25_hours() {
    for (date, next, hours) in [
        ("2026-06-10", "2026-06-11", 24),
        ("2026-03-29", "2026-03-30", 23),
        ("2026-10-25", "2026-10-26", 25),
    ] {
        let end = midnight(next);
        assert_eq!(end.since(midnight(date)), hours * HOUR_MS, "{date}");
        let mut rig = used_up(date);
        until(&mut rig, Wall(end.0 - 90_000));
        rig.die();
        rig.pass_in(local, 80 * SECOND);
        let red = Some(PendingAction::RecoveryFailed);
        assert_eq!((rig.row().pending, rig.spawned), (red, 3), "{date}: still the same day");

        let mut rig = used_up(date);
        until(&mut rig, Wall(end.0 + 1_000));
        rig.die();
        rig.pass_in(local, MINUTE);
        let row = rig.row();
        assert_eq!((row.status, rig.spawned), (Status::Starting, 4), "{next}: a new day");
        assert_eq!((row.retry_attempts, row.retry_day), (1, Some(day(next))));
    }
}
