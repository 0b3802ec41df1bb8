//! Launches that fail, wait in line, and come back: relentless relaunch over many sessions.

mod fuzz;
mod line;
mod port;
mod reviewed;
mod watch;

use super::*;
use crate::attention::{Pill, RowState, Section};
use crate::launch::classify::Os;
use crate::settings::SettingChange;
use port::{EAGAIN, ENOENT, Port};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn hiccup_and(attempts: &[u32]) -> Vec<String> {
    let still = attempts.iter().map(|n| prompt::note_still_relaunching(*n));
    [prompt::NOTE_LAUNCH_HICCUP.to_string()].into_iter().chain(still).collect()
}

// proves: RS-01, RS-12, RS-15, RS-16, RS-17, INV-51, INV-58, INV-59
#[test]
fn five_hundred_failures_and_it_still_comes_back() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (500, EAGAIN));
    port.pass(5 * HOUR);
    assert_eq!(port.row(id).status, Status::Running);
    assert!(!port.was(id, Status::Error));
    assert_eq!(port.calls_of(id).len(), 501);
    let tens: Vec<u32> = (1..=50).map(|n| n * 10).collect();
    assert_eq!(port.notes_of(id), hiccup_and(&tens));
    assert!(port.state.view(id).expect("a view").live.relaunch.is_none(), "success resets it");
}

// proves: RS-03, RS-04, INV-56
#[test]
fn tries_are_as_far_apart_as_the_schedule_less_a_fifth() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (12, EAGAIN));
    port.pass(10 * MINUTE);
    let calls = port.calls_of(id);
    let schedule = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000];
    for (pair, whole) in calls.windows(2).zip(schedule) {
        let gap = pair[1].since(pair[0]);
        // the spawn call itself takes five milliseconds, the line a quarter second at most
        let most = whole.max(250) + 5;
        assert!(gap >= whole * 4 / 5 && gap <= most, "{gap} of {whole}");
    }
}

// proves: RS-02, RP-10
#[test]
fn a_new_session_a_retry_a_replay_and_a_crash_resume_all_come_back() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (5, EAGAIN));
    port.pass(MINUTE);
    assert_eq!(port.row(id).status, Status::Running, "a new session");
    // its reply is cut off: the scan's replay
    port.exit(id);
    port.fails.insert(id, (5, EAGAIN));
    port.pass(4 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running, "a replay");
    assert_eq!(port.row(id).retry_attempts, 1, "charged once");
    // the app dies
    port.fails.insert(id, (5, EAGAIN));
    port.crash();
    port.pass(4 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running, "a crash resume");
    assert_eq!(port.row(id).retry_attempts, 1, "nothing more is charged");
    assert!(!port.statuses.iter().any(|(_, status, pending)| {
        *status == Status::Error && *pending != Some(PendingAction::ResponseAborted)
    }));
    // Retry on a launch error
    let other = port.create();
    port.fails.insert(other, (1, ENOENT));
    port.pass(1_000);
    assert_eq!((port.row(other).status, port.row(other).pending), (Status::Error, None));
    port.fails.insert(other, (5, EAGAIN));
    port.command(Command::Retry { session: other });
    port.pass(MINUTE);
    assert_eq!(port.row(other).status, Status::Running, "a retry");
    assert_eq!(port.notes_of(other), hiccup_and(&[]));
}

// proves: RS-07, RS-08, RT-25, INV-60
#[test]
fn a_genuine_error_is_red_at_once_even_after_hiccups() {
    for (hiccups, errno) in [(0, ENOENT), (3, ENOENT), (0, 13), (0, 8), (3, 12)] {
        let mut port = Port::new(Limits::default());
        let id = port.create();
        port.fails.insert(id, (hiccups, EAGAIN));
        if hiccups > 0 {
            // the third has failed, the fourth has not begun
            port.pass(1_500);
        }
        port.fails.insert(id, (1, errno));
        port.pass(HOUR);
        assert_eq!((port.row(id).status, port.row(id).pending), (Status::Error, None), "{errno}");
        assert_eq!(port.row(id).words, Some(format!("os error {errno}")));
        assert_eq!(port.calls_of(id).len(), hiccups as usize + 1, "no further spawn");
        assert_eq!(port.seen(id).pill, Some(Pill::Retry));
        // one click, one launch
        port.command(Command::Retry { session: id });
        port.pass(HOUR);
        assert_eq!(port.calls_of(id).len(), hiccups as usize + 2);
        assert_eq!(port.row(id).status, Status::Running);
    }
}

// proves: RS-13, RS-14, INV-58
#[test]
fn with_relaunch_off_it_is_three_short_retries_and_then_red() {
    for (setting, switch) in [(false, false), (true, true), (false, true)] {
        let mut port = Port::new(Limits::default());
        port.settings.relentless_session_relaunch = setting;
        port.switches.relentless_relaunch = switch;
        port.crash();
        let id = port.create();
        port.fails.insert(id, (100, EAGAIN));
        port.pass(HOUR);
        let calls = port.calls_of(id);
        assert_eq!(calls.len(), 4, "{setting} {switch}");
        assert!(calls[3].since(calls[0]) < 1_000, "in under a second");
        assert_eq!((port.row(id).status, port.row(id).pending), (Status::Error, None));
        assert!(port.notes.is_empty(), "{:?}", port.notes);
    }
}

// proves: RS-13
#[test]
fn with_relaunch_off_a_retry_that_finds_all_slots_taken_is_red() {
    let mut port = Port::new(Limits { spawn_gap_ms: 0, ..Limits::default() });
    port.command(Command::SetSetting { change: SettingChange::RelentlessSessionRelaunch(false) });
    let id = port.create();
    port.fails.insert(id, (1, EAGAIN));
    port.pass(10);
    port.spawn_takes_ms = 10_000;
    let others: Vec<_> = (0..4).map(|_| port.create()).collect();
    port.pass(1_000);
    assert_eq!(port.row(id).status, Status::Error);
    assert!(others.iter().all(|other| port.row(*other).status == Status::Starting));
    // the same with relaunch on: it holds its place
    port.command(Command::SetSetting { change: SettingChange::RelentlessSessionRelaunch(true) });
    port.pass(MINUTE);
    port.spawn_takes_ms = 5;
    let held = port.create();
    port.fails.insert(held, (1, EAGAIN));
    port.pass(10);
    port.spawn_takes_ms = 10_000;
    for _ in 0..4 {
        port.create();
    }
    port.pass(MINUTE);
    assert_eq!(port.row(held).status, Status::Running);
}

// proves: RS-19
#[test]
fn the_toggle_is_read_at_each_failure() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (1_000, EAGAIN));
    port.pass(5 * MINUTE);
    assert_eq!(port.row(id).status, Status::Starting);
    port.command(Command::SetSetting { change: SettingChange::RelentlessSessionRelaunch(false) });
    assert_eq!(port.row(id).status, Status::Starting, "not before the next failure");
    let before = port.calls_of(id).len();
    port.pass(MINUTE);
    assert_eq!((port.row(id).status, port.calls_of(id).len()), (Status::Error, before + 1));
}

// proves: RS-06, RS-26
#[test]
fn the_numbers_are_those_of_the_platform() {
    for (os, errno, back) in [
        (Os::Windows, -4094, true),
        (Os::Windows, 1450, true),
        (Os::Linux, -4094, false),
        (Os::Linux, 16, true),
        (Os::MacOs, 35, true),
        (Os::Linux, 35, false),
    ] {
        let mut port = Port::new(Limits::default());
        port.os = os;
        port.crash();
        let id = port.create();
        port.fails.insert(id, (5, errno));
        port.pass(MINUTE);
        assert_eq!(port.row(id).status == Status::Running, back, "{os:?} {errno}");
    }
}

// proves: RS-09, RS-11, RS-22, RS-24, INV-52, INV-57
#[test]
fn twenty_five_sessions_with_twenty_failures_each_all_come_back() {
    let mut port = Port::new(Limits::default());
    port.spawn_takes_ms = 400;
    let ids: Vec<_> = (0..25).map(|_| port.create()).collect();
    for id in &ids {
        port.fails.insert(*id, (20, EAGAIN));
    }
    port.pass(30 * MINUTE);
    assert!(port.calls_most <= 4, "{}", port.calls_most);
    for id in &ids {
        assert_eq!(port.row(*id).status, Status::Running);
        assert!(!port.was(*id, Status::Error));
        assert_eq!(port.notes_of(*id), hiccup_and(&[10, 20]));
        let own: Vec<usize> =
            (0..port.calls.len()).filter(|at| port.calls[*at].session == *id).collect();
        let most = own.windows(2).map(|pair| pair[1] - pair[0] - 1).max();
        // two rounds of the others fit into the longest gaps, but nobody is passed over in the line
        assert!(most <= Some(2 * ids.len()), "{most:?} others were served in between");
    }
}

// proves: RS-23
#[test]
fn whoever_puts_the_session_away_cancels_the_relaunch() {
    let commands: [fn(SessionId) -> Command; 4] = [
        |session| Command::Archive { session },
        |session| Command::End { session },
        |session| Command::Delete { session },
        |session| Command::Stop { session },
    ];
    for command in commands {
        for wait in [10_000, 40_000] {
            let mut port = Port::new(Limits::default());
            let id = port.create();
            port.fails.insert(id, (1_000, EAGAIN));
            port.pass(wait);
            let before = port.calls_of(id).len();
            port.command(command(id));
            port.pass(HOUR);
            assert_eq!(port.calls_of(id).len(), before, "{:?}", command(id));
            assert!(!port.row(id).cannot_launch);
        }
    }
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (1_000, EAGAIN));
    port.pass(10_000);
    let before = port.calls_of(id).len();
    port.command(Command::Quit);
    port.pass(HOUR);
    assert_eq!(port.calls_of(id).len(), before, "quit");
}

// proves: A-14, RT-25
#[test]
fn after_ten_minutes_a_person_is_told_and_it_goes_on() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(9 * MINUTE + 50_000);
    assert_eq!(
        (port.seen(id).state, port.seen(id).section),
        (RowState::ComingBack, Section::Running)
    );
    assert_eq!(port.badge, 0);
    port.pass(20_000);
    let seen = port.seen(id);
    assert_eq!((seen.state, seen.section), (RowState::CannotLaunch, Section::Interrupted));
    assert_eq!((seen.label, seen.pill), ("Can't launch yet", Some(Pill::Retry)));
    assert_eq!(port.row(id).words.as_deref(), Some("os error 11"));
    assert_eq!((port.row(id).status, port.badge, port.notified), (Status::Starting, 1, 0));
    // Retry launches at once
    let before = port.calls_of(id).len();
    port.command(Command::Retry { session: id });
    port.pass(300);
    assert_eq!(port.calls_of(id).len(), before + 1);
    assert_eq!(port.seen(id).state, RowState::CannotLaunch, "it stays until a launch succeeds");
    port.pass(HOUR);
    assert!(port.calls_of(id).len() > before + 100, "it goes on");
    assert_eq!(port.seen(id).tone, crate::attention::Tone::Red);
    port.fails.clear();
    port.pass(MINUTE);
    assert_eq!((port.seen(id).state, port.badge), (RowState::Running, 0));
    assert!(!port.row(id).cannot_launch);
    assert_eq!((port.row(id).words.clone(), port.notified), (None, 0));
}

// proves: A-14
#[test]
fn a_night_with_the_lid_closed_is_no_ten_minutes() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(MINUTE);
    port.now.mono = port.now.mono.plus(8 * HOUR);
    port.now.wall = port.now.wall.plus(8 * HOUR);
    port.feed(Input::Slept { millis: 8 * HOUR });
    port.pass(MINUTE);
    assert_eq!(port.seen(id).state, RowState::ComingBack);
}

// proves: A-14
#[test]
fn a_message_waits_behind_a_launch_that_does_not_come() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (10_000, EAGAIN));
    port.pass(11 * MINUTE);
    let before = port.calls_of(id).len();
    port.command(Command::Send { session: id, text: "and this".into(), now: false });
    assert_eq!(port.state.view(id).expect("a view").live.queue.len(), 2);
    port.pass(MINUTE);
    assert!(port.calls_of(id).len() <= before + 4, "the pace is kept");
    port.fails.clear();
    port.pass(MINUTE);
    port.answer_turn(id);
    assert_eq!(port.row(id).status, Status::Running, "the second message follows");
}

// proves: RS-02
#[test]
fn a_machine_that_cannot_even_look_is_tried_again() {
    let mut port = Port::new(Limits::default());
    port.blind = Some(EAGAIN);
    let id = port.create();
    port.pass(5 * MINUTE);
    assert_eq!((port.row(id).status, port.calls.len()), (Status::Starting, 0));
    assert!(!port.notes_of(id).is_empty());
    port.crash();
    port.pass(5 * MINUTE);
    assert_eq!(port.row(id).status, Status::Starting);
    port.blind = None;
    port.pass(MINUTE);
    assert_eq!((port.row(id).status, port.calls.len()), (Status::Running, 1));
}

// proves: PO-09
#[test]
fn a_worker_whose_launch_is_still_tried_is_no_orphan() {
    let mut port = Port::new(Limits::default());
    let parent = port.create();
    port.pass(MINUTE);
    let tool = AgentTool::SpawnWorker { task: "a part of it".into(), title: None };
    port.command(Command::Agent { session: parent, tool });
    let worker = *port.rows.keys().find(|id| **id != parent).expect("a worker");
    port.fails.insert(worker, (1_000, EAGAIN));
    port.pass(HOUR);
    assert_eq!(port.row(worker).status, Status::Starting);
    assert!(port.state.sessions[&worker].live.relaunch.is_some());
    port.fails.clear();
    port.pass(MINUTE);
    assert_eq!(port.row(worker).status, Status::Running);
}

// proves: RS-21, CR-03
#[test]
fn the_setting_changes_nothing_about_who_comes_back() {
    let outcome = |relentless| {
        let mut port = Port::new(Limits::default());
        port.settings.relentless_session_relaunch = relentless;
        port.crash();
        let ids: Vec<_> = (0..6).map(|_| port.create()).collect();
        port.pass(MINUTE);
        port.answer_turn(ids[1]);
        port.exit(ids[2]);
        port.command(Command::Stop { session: ids[3] });
        port.command(Command::End { session: ids[4] });
        port.pass(6_000);
        port.crash();
        port.pass(5 * MINUTE);
        let rows = ids.iter().map(|id| (port.row(*id).status, port.row(*id).pending));
        let attempts =
            ids.iter().map(|id| (port.row(*id).retry_attempts, port.calls_of(*id).len()));
        (rows.collect::<Vec<_>>(), attempts.collect::<Vec<_>>())
    };
    let (on, off) = (outcome(true), outcome(false));
    assert_eq!(on, off);
    let running = on.0.iter().filter(|(status, _)| *status == Status::Running).count();
    assert_eq!(running, 3, "{on:?}");
}
