//! What a person sees of a launch: its place in line, its failures, and when they are told of them.

use super::*;
use crate::ipc::RelaunchView;

/// A session whose launches fail: so many so far, the next one due at an age.
fn relaunching(attempts: u32, next: Option<i64>) -> RowView {
    let mut view = view(Status::Starting, None);
    let words = "Too many open files (os error 24)".into();
    let next = next.map(|age| Wall(T + age));
    view.live.relaunch = Some(RelaunchView { attempts, next, words });
    view
}

const WAITS: &str = "Running | green-400 | RingPulsing | starting | Coming back… | - | Launching; the machine looks busy, attempt 23 | - | - | - | - | person false open true";
const IN_LINE: &str = "Running | green-400 | RingPulsing | starting | Coming back… | starting soon, 3rd in line | Starting soon, 3rd in line | - | - | - | - | person false open true";
const CANNOT: &str = "Interrupted | red-400 | Triangle | cannot_launch | Can't launch yet | Too many open files | Too many open files (os error 24); attempt 23, next in 30 s | 0 | Retry | It keeps being relaunched in the background — Retry tries again immediately. | Too many open files (os error 24); next try in 30 s. | person true open true";

// proves: A-14, RS-15, UI-11
#[test]
fn a_launch_that_fails_is_coming_back_until_a_person_is_told() {
    let mut waits = relaunching(23, Some(30_000));
    // however long, whatever the policy: time alone turns nothing red
    for (age, on) in [(0, true), (599_999, true), (86_400_000, true), (0, false)] {
        assert_eq!(line(&look_at(&waits, age, on)), WAITS, "{age}");
    }
    waits.row.cannot_launch = true;
    for on in [true, false] {
        assert_eq!(line(&look_at(&waits, 0, on)), CANNOT);
    }
    let badge = |row: &SessionRow| badge_count([row], &policy(true), &Limits::default(), now_at(0));
    assert_eq!(badge(&waits.row), 1);
    // back at work it is no different from any other; a rung stays what it was
    waits.row.status = Status::Running;
    assert_eq!(line(&look_at(&waits, 0, true)), RUNNING);
    assert_eq!(badge(&waits.row), 0);
    (waits.row.status, waits.row.pending) = (Status::Starting, Some(PendingAction::RecoveryFailed));
    assert_eq!(line(&look_at(&waits, 0, true)), FAILED_NOW);
}

// proves: A-14
#[test]
fn the_seconds_to_the_next_launch_count_down_by_themselves() {
    let mut view = relaunching(23, Some(2_500));
    view.row.cannot_launch = true;
    let said = |view: &RowView, age| {
        let found = look_at(view, age, true);
        let strip = found.strip.expect("a strip").text;
        let cut = |text: &str| text.split_once("; ").expect("a second half").1.to_string();
        (cut(&found.row_tooltip.expect("a tooltip")), cut(&strip))
    };
    let flip =
        |view: &RowView, age| next_flip(view, &policy(true), &Limits::default(), now_at(age));
    for (age, tooltip, strip, next) in [
        (0, "attempt 23, next in 3 s", "next try in 3 s.", Some(500)),
        (499, "attempt 23, next in 3 s", "next try in 3 s.", Some(500)),
        (500, "attempt 23, next in 2 s", "next try in 2 s.", Some(1_500)),
        (1_500, "attempt 23, next in 1 s", "next try in 1 s.", Some(2_500)),
        (2_500, "attempt 23, trying again now", "trying again now.", None),
    ] {
        assert_eq!(said(&view, age), (tooltip.into(), strip.into()), "{age}");
        assert_eq!(flip(&view, age), next.map(|at| Wall(T + at)), "{age}");
    }
    view.live.place = Some(2);
    let waits = "starting soon, 2nd in line";
    assert_eq!(said(&view, 2_500), (format!("attempt 23, {waits}"), format!("{waits}.")));
    // while it is unseen to a person, it does not count
    view.row.cannot_launch = false;
    assert_eq!(flip(&view, 0), None);
    // a start of the app forgets the attempts, not the state
    view.row.cannot_launch = true;
    view.live = LiveView::default();
    let found = look_at(&view, 0, true);
    assert_eq!(found.reason.words().as_deref(), Some("it could not be launched"));
    assert_eq!(found.strip, Some(Strip { text: "It could not be launched.".into() }));
}

#[test]
fn advice_of_the_system_stands_behind_the_next_try() {
    let mut waits = relaunching(23, Some(30_000));
    waits.row.cannot_launch = true;
    let words = "Cannot open a terminal: Too many open files (os error 24). End some sessions.";
    waits.live.relaunch.as_mut().expect("a relaunch").words = words.into();
    let found = look_at(&waits, 0, true);
    assert_eq!(found.reason.words().as_deref(), Some("Too many open files"));
    let error = "Cannot open a terminal: Too many open files (os error 24)";
    let strip = format!("{error}; next try in 30 s. End some sessions.");
    assert_eq!(found.strip, Some(Strip { text: strip }));
    let tooltip = format!("{error}; attempt 23, next in 30 s. End some sessions.");
    assert_eq!(found.row_tooltip, Some(tooltip));
}

#[test]
fn a_launch_that_waits_says_its_place_in_line() {
    let mut waits = view(Status::Starting, None);
    waits.live.place = Some(3);
    assert_eq!(line(&look_at(&waits, 0, true)), IN_LINE);
    let said = |place| {
        let mut waits = relaunching(1, None);
        waits.live.place = Some(place);
        let reason = look_at(&waits, 0, true).reason.words().expect("a reason");
        reason["starting soon, ".len()..].replace(" in line", "")
    };
    for place in
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "101st", "111th"]
    {
        let number = place.trim_end_matches(char::is_alphabetic).parse().expect("a number");
        assert_eq!(said(number), place);
    }
}

// proves: HD-01, A-14
#[test]
fn an_unseen_replay_whose_launch_waits_or_fails_looks_like_a_running_row_until_its_cap() {
    let ordinary = look_at(&view(Status::Running, None), 1_000, true);
    let mut replay = relaunching(7, Some(2_000));
    replay.row.hide_since = Some(Wall(T));
    let flip =
        |view: &RowView, age| next_flip(view, &policy(true), &Limits::default(), now_at(age));
    for (place, cannot) in [(None, false), (Some(2), false), (None, true), (Some(2), true)] {
        (replay.live.place, replay.row.cannot_launch) = (place, cannot);
        for age in [0, 1_999, 299_999] {
            assert_eq!(look_at(&replay, age, true), ordinary, "{place:?} {cannot} {age}");
            assert_eq!(flip(&replay, age), Some(Wall(T + 300_000)), "no countdown ticks");
        }
        let counted =
            badge_count([&replay.row], &policy(true), &Limits::default(), now_at(299_999));
        assert_eq!(counted, 0);
        let shown = look_at(&replay, 300_000, true).state;
        assert_eq!(shown == RowState::CannotLaunch, cannot);
        assert_eq!(shown == RowState::ComingBack, !cannot);
    }
}

// proves: RT-25
#[test]
fn what_cannot_be_launched_has_retry_and_what_rests_has_continue() {
    let pills = |status, pending| {
        let found = look_at(&view(status, pending), 0, true);
        (found.pill, found.pill_tooltip)
    };
    assert_eq!(
        pills(Status::Error, None),
        (Some(Pill::Retry), Some("Launch failed — Retry tries again now."))
    );
    for (status, pending) in [
        (Status::Paused, None),
        (Status::Ended, None),
        (Status::Stalled, None),
        (Status::NeedsYou, Some(PendingAction::Stopped)),
        (Status::Paused, Some(PendingAction::Stopped)),
        (Status::Paused, Some(PendingAction::AppRestartSuspended)),
    ] {
        let continued = (Some(Pill::Continue), Some("Sends “Please continue.”"));
        assert_eq!(pills(status, pending), continued, "{status:?} {pending:?}");
    }
}
