//! The line of launches: order, pace, the machine's headroom, looks that have grown old.

use super::port::{EAGAIN, Port};
use super::*;
use crate::launch::headroom::Shortage;

/// Sixty sessions whose turns are open, and the app is killed.
fn killed_with_sixty() -> (Port, Vec<SessionId>) {
    let mut port = Port::new(Limits::default());
    port.shake_takes_ms = Some(10);
    let ids: Vec<_> = (0..60).map(|_| port.create()).collect();
    port.pass(2 * MINUTE);
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
    // the debounce of the first launches is over: every one comes back at once
    port.calls.clear();
    port.statuses.clear();
    (port.calls_most, port.starting_most) = (0, 0);
    port.shake_takes_ms = Some(4_000);
    port.crash();
    (port, ids)
}

// proves: CR-01, CR-05, RS-09, RS-10, INV-57
#[test]
fn sixty_sessions_come_back_in_order_a_few_at_a_time() {
    let (mut port, ids) = killed_with_sixty();
    port.pass(3_000);
    let reason = port.seen(ids[59]).reason.words().expect("a reason");
    assert!(reason.starts_with("starting soon, ") && reason.ends_with(" in line"), "{reason}");
    port.pass(2 * MINUTE);
    let order: Vec<_> = port.calls.iter().map(|call| call.session).collect();
    assert_eq!(order, ids, "in the order in which they were made, each once");
    let gaps = port.calls.windows(2).map(|pair| pair[1].at.since(pair[0].at));
    assert!(gaps.min() >= Some(250));
    assert!(port.calls_most <= 4 && port.starting_most == 8, "{}", port.starting_most);
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
    assert!(!port.statuses.iter().any(|(_, status, _)| *status == Status::Error));
}

// proves: CR-05, INV-57
#[test]
fn a_mass_resume_on_a_busy_machine_is_paced_like_any_launch() {
    let (mut port, ids) = killed_with_sixty();
    port.spawn_takes_ms = 2_000;
    for id in &ids[..12] {
        port.fails.insert(*id, (3, EAGAIN));
    }
    port.pass(10 * MINUTE);
    assert_eq!(port.calls_most, 4);
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
}

#[test]
fn places_are_told_while_one_waits_and_no_longer() {
    let mut port = Port::new(Limits::default());
    let alone = port.create();
    assert_eq!(port.state.view(alone).expect("a view").live.place, None, "nobody is before it");
    port.pass(MINUTE);
    port.shake_takes_ms = None;
    let ids: Vec<_> = (0..12).map(|_| port.create()).collect();
    port.pass(10_000);
    let places: Vec<_> =
        ids.iter().map(|id| port.state.view(*id).expect("a view").live.place).collect();
    let waiting: Vec<_> = (1..=4).map(Some).collect();
    assert_eq!((&places[..8], &places[8..]), (&[None; 8][..], &waiting[..]));
    assert_eq!(port.seen(ids[10]).reason.words().as_deref(), Some("starting soon, 3rd in line"));
    // who leaves the line makes room
    port.command(Command::Archive { session: ids[8] });
    assert_eq!(port.state.view(ids[10]).expect("a view").live.place, Some(2));
    // a hung start is given up at its limit and the line goes on
    port.pass(3 * MINUTE);
    assert!(ids[9..].iter().all(|id| !port.calls_of(*id).is_empty()));
}

#[test]
fn a_machine_that_is_short_is_waited_for_and_nothing_fails() {
    let short: [(Headroom, Shortage); 3] = [
        (Headroom { descriptors: Some(3), ..Headroom::default() }, Shortage::Descriptors),
        (Headroom { processes: Some(3), ..Headroom::default() }, Shortage::Processes),
        (Headroom { memory_mib: Some(3), ..Headroom::default() }, Shortage::Memory),
    ];
    for (headroom, what) in short {
        let mut port = Port::new(Limits::default());
        port.headroom = headroom;
        let ids = [port.create(), port.create()];
        port.pass(20_000);
        assert!(port.calls.is_empty(), "{what:?}");
        assert_eq!(port.seen(ids[0]).reason.words().as_deref(), Some("starting soon, 1st in line"));
        let said = port.state.explain(ids[0], port.now).expect("an explanation").decisions;
        let text = format!("wait: the machine is short of {}", what.as_str());
        assert!(said.iter().any(|decision| decision.text == text), "{said:?}");
        port.headroom = Headroom::default();
        port.pass(10_000);
        assert_eq!(port.calls.len(), 2);
        assert!(port.notes.is_empty());
    }
}

// proves: RS-11
#[test]
fn a_machine_that_stays_short_still_lets_one_launch_be_tried_now_and_then() {
    let mut port = Port::new(Limits::default());
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    let ids: Vec<_> = (0..5).map(|_| port.create()).collect();
    port.pass(4 * MINUTE);
    let gaps: Vec<u64> = port.calls.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    assert!(gaps.iter().all(|gap| (30_000..35_000).contains(gap)), "{gaps:?}");
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
}

// proves: PF-02
#[test]
fn a_folder_that_vanishes_while_a_launch_waits_is_noticed_before_the_spawn() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (1_000, EAGAIN));
    port.pass(2 * MINUTE);
    port.folder = false;
    let before = port.calls_of(id).len();
    port.pass(MINUTE);
    assert_eq!(port.calls_of(id).len(), before);
    assert_eq!((port.row(id).status, port.row(id).pending), (Status::Error, None));
    assert_eq!(port.row(id).words.as_deref(), Some(prompt::BANNER_FOLDER_MISSING));
}

// proves: A-02
#[test]
fn the_second_start_after_one_that_hung_looks_again() {
    let mut port = Port::new(Limits::default());
    port.shake_takes_ms = None;
    let id = port.create();
    port.pass(14_000);
    let looks = port.looks;
    port.pass(2_000);
    assert_eq!((port.calls_of(id).len(), port.looks), (2, looks + 1));
    port.folder = false;
    let again = port.create();
    port.folder = true;
    port.command(Command::Retry { session: again });
    port.pass(10_000);
    port.folder = false;
    port.pass(10_000);
    assert_eq!(port.calls_of(again).len(), 1, "the folder went while the first start hung");
    assert_eq!(port.row(again).words.as_deref(), Some(prompt::BANNER_FOLDER_MISSING));
}

// proves: A-02
#[test]
fn starts_that_slow_each_other_down_are_not_taken_for_hung() {
    let mut port = Port::new(Limits::default());
    port.shake_takes_ms = Some(40_000);
    let ids: Vec<_> = (0..6).map(|_| port.create()).collect();
    port.pass(2 * MINUTE);
    assert_eq!(port.calls.len(), ids.len(), "nobody was started twice");
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
    let alone = port.create();
    port.pass(MINUTE);
    assert_eq!(port.calls_of(alone).len(), 2, "alone it hangs");
}

// proves: RS-09, RS-26
#[test]
fn spawn_calls_that_never_return_hold_others_up_for_their_limit_only_and_turn_nobody_red() {
    let mut port = Port::new(Limits::default());
    port.spawn_takes_ms = 10 * HOUR;
    let stuck: Vec<_> = (0..4).map(|_| port.create()).collect();
    port.pass(5 * MINUTE);
    assert!(stuck.iter().all(|id| port.row(*id).status == Status::Starting));
    assert!(stuck.iter().all(|id| port.notes_of(*id)[0] == prompt::NOTE_LAUNCH_HICCUP));
    port.spawn_takes_ms = 5;
    let id = port.create();
    port.pass(3 * MINUTE);
    assert_eq!(port.row(id).status, Status::Running);
    port.pass(MINUTE);
    assert!(stuck.iter().all(|id| port.row(*id).status == Status::Running));
}

// proves: RS-11, RS-15, INV-59
#[test]
fn a_look_that_is_never_answered_is_a_hiccup() {
    let mut port = Port::new(Limits::default());
    let id = port.create();
    port.fails.insert(id, (6, EAGAIN));
    port.pass(2_000);
    port.deaf = true;
    port.pass(2 * MINUTE);
    assert_eq!(port.row(id).status, Status::Starting);
    let fresh = port.create();
    port.pass(MINUTE);
    assert_eq!(port.row(fresh).status, Status::Starting);
    assert_eq!(port.notes_of(fresh)[0], prompt::NOTE_LAUNCH_HICCUP);
    port.deaf = false;
    port.pass(2 * MINUTE);
    assert!([id, fresh].iter().all(|id| port.row(*id).status == Status::Running));
    assert!(!port.was(id, Status::Error) && !port.was(fresh, Status::Error));
}

// proves: A-14
#[test]
fn who_waits_for_ten_minutes_in_the_line_is_told_and_retry_goes_first() {
    let mut port = Port::new(Limits::default());
    port.headroom = Headroom { memory_mib: Some(3), ..Headroom::default() };
    let ids: Vec<_> = (0..30).map(|_| port.create()).collect();
    port.pass(9 * MINUTE);
    let last = ids[29];
    assert_eq!(port.seen(last).state, RowState::ComingBack);
    port.pass(2 * MINUTE);
    let seen = port.seen(last);
    assert_eq!((seen.state, seen.pill), (RowState::CannotLaunch, Some(Pill::Retry)));
    assert_eq!(port.row(last).words.as_deref(), Some("The machine is short of memory."));
    assert!(port.calls_of(last).is_empty());
    port.command(Command::Retry { session: last });
    port.pass(1_000);
    assert_eq!(port.row(last).status, Status::Running);
    assert!(port.calls_of(ids[28]).is_empty(), "the others keep their order");
    port.pass(10 * MINUTE);
    assert!(ids.iter().all(|id| port.row(*id).status == Status::Running));
}

// proves: RS-23
#[test]
fn a_launch_whose_only_message_is_taken_back_ends() {
    for wait in [1_000, 11 * MINUTE] {
        let mut port = Port::new(Limits::default());
        let id = port.create();
        port.fails.insert(id, (10_000, EAGAIN));
        port.pass(wait);
        let message = port.state.view(id).expect("a view").live.queue[0].id;
        port.command(Command::Unqueue { session: id, message });
        let before = port.calls_of(id).len();
        port.pass(HOUR);
        assert_eq!((port.row(id).status, port.calls_of(id).len()), (Status::NeedsYou, before));
    }
}
