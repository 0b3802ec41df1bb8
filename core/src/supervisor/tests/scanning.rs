//! The scan from charge to promotion: one restart for each charge, one row apart from the other, one
//! tick at a time, and one function that replays for everybody.

use super::rig::Rig;
use super::*;
use crate::attention::Section;
use crate::id::{SessionId, Uuid};
use crate::session::SessionRow;
use crate::settings::{KillSwitches, Settings};
use crate::time::{Day, Wall};
use crate::verdict::{Actor, Source};
use alloc::boxed::Box;
use alloc::vec;

/// A session that was cut off and whose replays so far died without a word.
fn cut_off(attempts: u8) -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    for _ in 0..attempts {
        rig.pass(155_000);
        rig.spawn_and_shake();
        rig.die();
    }
    assert_eq!((state_of(&rig), rig.row().retry_attempts), (SHAPE, attempts));
    rig
}

fn stamped(id: u128) -> SessionRow {
    let mut row =
        SessionRow::new(Uuid(id), "/project".into(), "T".into(), "default".into(), Wall(0));
    (row.status, row.pending) = SHAPE;
    row.intent_running = false;
    row.cli_session_id = Some(Uuid(id + 100));
    row.turn_count = 1;
    row.replay.message = Some(Uuid(id + 200));
    row.replay.sent_as = vec![Uuid(id + 200)];
    row
}

/// A state without the rig: its questions are answered by hand.
struct Bare {
    state: State,
    now: Now,
}

impl Bare {
    fn new(limits: Limits, rows: Vec<SessionRow>) -> Bare {
        let now = Now { wall: Wall(1_000_000_000), mono: Mono(0), day: Day(100) };
        let mut bare = Bare { state: State::new(unpaced(limits)), now };
        let boot = Boot {
            seed: 7,
            os: Os::Linux,
            first: true,
            rows,
            queues: vec![],
            block_counts: vec![],
            live: vec![],
            settings: Settings::default(),
            switches: KillSwitches::default(),
            accounts: vec![],
        };
        bare.feed(Input::Boot(Box::new(boot)));
        bare
    }

    /// The machine has enough of everything.
    fn feed(&mut self, input: Input) -> Step {
        let mut all = step(&mut self.state, input, self.now);
        let room = |act: &Act| matches!(act, Act::Ask { question: Question::Headroom, .. });
        while let Some(at) = all.acts.iter().position(room) {
            if let Act::Ask { ask, .. } = all.acts.remove(at) {
                let answer = Answer::Headroom(Headroom::default());
                let more = step(&mut self.state, Input::Answer { ask, answer }, self.now);
                all.writes.extend(more.writes);
                all.acts.extend(more.acts);
            }
        }
        all
    }

    fn wake_at(&mut self, at: u64) -> Step {
        let passed = Mono(at).since(self.now.mono);
        self.now.mono = Mono(at);
        self.now.wall = self.now.wall.plus(passed);
        self.feed(Input::Wake)
    }
}

/// The questions of a step.
fn asked(step: &Step) -> Vec<(AskId, Question)> {
    let mut asked = Vec::new();
    for act in &step.acts {
        if let Act::Ask { ask, question } = act {
            asked.push((*ask, question.clone()));
        }
    }
    asked
}

fn scans(step: &Step) -> Vec<AskId> {
    let scans = asked(step).into_iter().filter(|(_, question)| *question == Question::Stamped);
    scans.map(|(ask, _)| ask).collect()
}

fn spawned(step: &Step) -> Vec<SessionId> {
    let mut spawned = Vec::new();
    for act in &step.acts {
        if let Act::Spawn { session, .. } = act {
            spawned.push(*session);
        }
    }
    spawned
}

fn found(present: Vec<Uuid>) -> Answer {
    let found = TranscriptFacts { file: true, fell_back: false, exists: true, present };
    Answer::Transcript { holder: None, folder_present: true, found }
}

// proves: SC-11
#[test]
fn two_looks_at_one_row_charge_once_and_restart_once() {
    let id = Uuid(1);
    let mut bare = Bare::new(Limits::default(), vec![stamped(1)]);
    let scan = scans(&bare.wake_at(30_000))[0];
    let answer = Answer::Stamped { ids: vec![id, id] };
    let looks = asked(&bare.feed(Input::Answer { ask: scan, answer }));
    assert!(!looks.is_empty());
    let mut restarts = 0;
    for (ask, _) in looks {
        let step = bare.feed(Input::Answer { ask, answer: found(vec![]) });
        let charges = step.writes.iter().filter(|write| match write {
            Write::Row { before: Some(before), after, actor, .. } => {
                let charged = after.retry_attempts == before.retry_attempts + 1;
                charged && *actor == Actor::AbortedScan && after.pending == before.pending
            }
            Write::Row { before: None, .. }
            | Write::Message(_)
            | Write::MessageState { .. }
            | Write::Block { .. }
            | Write::Settings(_) => false,
        });
        // writes are committed before acts: a spawn whose step holds no charge was not paid for
        assert_eq!(charges.count(), spawned(&step).len());
        restarts += spawned(&step).len();
    }
    let row = bare.state.view(id).expect("the row").row;
    assert_eq!((restarts, row.retry_attempts), (1, 1));
}

// proves: SC-21
#[test]
fn a_row_that_fails_holds_up_no_other() {
    let mut nothing = stamped(1);
    (nothing.replay, nothing.turn_count) = (Default::default(), 0);
    let rows = vec![nothing, stamped(2), stamped(3), stamped(4)];
    let mut bare = Bare::new(Limits::default(), rows);
    let scan = scans(&bare.wake_at(30_000))[0];
    // one that is unknown, one with nothing to replay, one whose folder cannot be looked at
    let ids = [9, 1, 2, 3, 4].map(Uuid).to_vec();
    let step = bare.feed(Input::Answer { ask: scan, answer: Answer::Stamped { ids } });
    let mut launched = spawned(&step);
    for (at, (ask, _)) in asked(&step).into_iter().enumerate() {
        let failed = Answer::Failed { words: "stat: input/output error".into(), errno: None };
        let answer = if at == 0 { failed } else { found(vec![]) };
        launched.extend(spawned(&bare.feed(Input::Answer { ask, answer })));
    }
    assert_eq!(launched, [Uuid(3), Uuid(4)]);
    let pending = |id| bare.state.view(id).expect("a row").row.pending;
    assert_eq!(pending(Uuid(1)), Some(PendingAction::RecoveryFailed));
    assert_eq!(pending(Uuid(2)), Some(PendingAction::ResponseAborted));
}

// proves: SC-22
#[test]
fn a_tick_that_takes_longer_than_the_interval_makes_the_next_one_skip() {
    let limits = Limits { ask_ms: 160_000, ..Limits::default() };
    let mut bare = Bare::new(limits, vec![stamped(1)]);
    let open = scans(&bare.wake_at(30_000));
    assert_eq!(open.len(), 1);
    for at in [90_000, 150_000] {
        assert_eq!(scans(&bare.wake_at(at)), [], "the tick of 30 s is not done at {at}");
    }
    bare.now.mono = Mono(180_000);
    bare.feed(Input::Answer { ask: open[0], answer: Answer::Stamped { ids: vec![] } });
    assert_eq!(scans(&bare.wake_at(209_999)), []);
    assert_eq!(scans(&bare.wake_at(210_000)).len(), 1);
    // a store that never answers does not end the scan for ever
    assert_eq!(scans(&bare.wake_at(390_000)).len(), 1);
}

// proves: SC-24
#[test]
fn while_recovery_is_off_a_tick_asks_for_nothing_and_the_first_one_after_that_replays() {
    let mut rig = cut_off(0);
    rig.recovery(false, false);
    let before = (rig.scans, rig.spawned);
    rig.pass(24 * 60 * 60_000);
    assert_eq!((rig.scans, rig.spawned), before);
    rig.recovery(true, false);
    rig.pass(60_000);
    assert_eq!(rig.spawned, before.1 + 1);
    assert!(rig.scans > before.0);
}

// proves: CT-08
#[test]
fn a_session_the_person_drives_is_brought_back_after_every_message_of_a_day() {
    let mut rig = Rig::new();
    rig.create("message 0");
    for message in 0..20 {
        rig.spawn_and_shake();
        rig.die();
        rig.pass(155_000);
        assert_eq!(state_of(&rig), (Status::Starting, None), "message {message}");
        rig.spawn_and_shake();
        assert_eq!(rig.row().turn.and_then(|turn| turn.replay), Some(Source::ResponseAborted));
        rig.answer_turn("Done.");
        // the child is released: the next message starts one
        rig.die();
        rig.send("the next message");
    }
    assert_eq!(rig.entered(Some(PendingAction::RecoveryFailed)), 0);
}

// proves: CT-10, CT-01
#[test]
fn the_days_count_survives_restarts_of_the_app() {
    let mut rig = cut_off(2);
    for _ in 0..3 {
        rig.crash();
    }
    assert_eq!((rig.row().retry_attempts, rig.row().retry_day), (2, Some(Day(100))));
    let spawned = rig.spawned;
    // the first tick after the debounce
    for _ in 0..120 {
        rig.pass(1_000);
        if rig.row().pending == Some(PendingAction::RecoveryFailed) {
            break;
        }
    }
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::RecoveryFailed)));
    assert_eq!(rig.spawned, spawned);
}

// proves: RF-06
#[test]
fn used_up_attempts_change_the_marker_and_never_clear_it() {
    let mut rig = cut_off(2);
    let before = rig.changes.len();
    rig.pass(125_000);
    assert_eq!(rig.row().pending, Some(PendingAction::RecoveryFailed));
    let pending: Vec<_> =
        rig.changes[before..].iter().map(|changed| changed.after.pending).collect();
    assert!(!pending.contains(&None), "{pending:?}");
}

// proves: RF-10, SC-04
#[test]
fn a_message_that_comes_during_the_last_look_wins_over_the_promotion() {
    let mut rig = cut_off(2);
    // the third tick after the last restart would promote it
    rig.pass(119_999);
    rig.hold_looks = true;
    let scans = rig.scans;
    rig.pass(1);
    assert_eq!((rig.scans, state_of(&rig)), (scans + 1, SHAPE));
    rig.send("try this instead");
    // the look of the scan arrives, then that of the launch
    rig.release_looks();
    rig.spawn_and_shake();
    assert_eq!(state_of(&rig), (Status::Running, None));
    assert_eq!(rig.last_text(), "try this instead");
    assert_eq!(rig.entered(Some(PendingAction::RecoveryFailed)), 0);
}

// proves: RF-11, HD-01
#[test]
fn what_fails_within_five_minutes_is_first_seen_as_given_up() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    let cut = rig.now().wall;
    let mut seen = Vec::new();
    for _ in 0..300 {
        rig.pass(1_000);
        if state_of(&rig) == (Status::Starting, None) {
            rig.spawn_and_shake();
            rig.die();
        }
        let section = rig.seen().section;
        if seen.last() != Some(&section) {
            seen.push(section);
        }
        if section == Section::Interrupted {
            break;
        }
    }
    assert_eq!(seen, [Section::Running, Section::Interrupted]);
    assert_eq!(rig.row().pending, Some(PendingAction::RecoveryFailed));
    assert!(rig.now().wall.since(cut) < 300_000, "the cap had no part in it");
    assert_eq!((rig.notified, rig.badge()), (1, Some(1)));
}

#[test]
fn fifty_rows_whose_hidden_time_ends_make_one_new_number_a_minute() {
    let rows = (0..50).map(|number| {
        let mut row = stamped(1_000 * (number + 1));
        let age = i64::try_from(number).expect("a small number") * 1_000;
        row.status_changed_at = Wall(1_000_000_000 - age);
        row
    });
    let mut bare = Bare::new(Limits::default(), rows.collect());
    let mut told = Vec::new();
    while let Some((at, _)) = bare.state.next_wakeup(bare.now).filter(|(at, _)| at.0 <= 420_000) {
        let mut steps = vec![bare.wake_at(at.0)];
        while let Some(step) = steps.pop() {
            told.extend(step.acts.iter().filter_map(|act| badge(act).map(|count| (at.0, count))));
            for (ask, question) in asked(&step) {
                let answer = if question == Question::Stamped {
                    Answer::Stamped { ids: bare.state.views().map(|view| view.row.id).collect() }
                } else {
                    // nothing is begun that could show or hide a row
                    let found = TranscriptFacts::default();
                    Answer::Transcript { holder: None, folder_present: false, found }
                };
                steps.push(bare.feed(Input::Answer { ask, answer }));
            }
        }
    }
    assert_eq!(told.last().map(|(_, count)| *count), Some(50), "{told:?}");
    assert!(told.iter().all(|(at, _)| *at <= 360_000), "{told:?}");
    assert!(told.windows(2).all(|two| two[1].0 - two[0].0 >= 60_000), "{told:?}");
}

fn badge(act: &Act) -> Option<usize> {
    if let Act::Badge(count) = act { Some(*count) } else { None }
}

/// Kind of launch, first line and source of the replay that is under way.
fn replayed(rig: &mut Rig) -> (String, String, Option<Source>) {
    rig.spawn_and_shake();
    let kind = match &rig.plan().conversation {
        Conversation::New { .. } => "new",
        Conversation::Resume { .. } => "resume",
        Conversation::Fork { at: None, .. } => "fork",
        Conversation::Fork { at: Some(_), .. } => "cut",
    };
    (kind.into(), rig.last_text(), rig.row().turn.and_then(|turn| turn.replay))
}

// proves: SC-14
#[test]
fn every_source_replays_in_the_same_way() {
    /// A session in its second turn, which got so far and died.
    fn torn(tool: bool, arrived: bool) -> Rig {
        let mut rig = Rig::new();
        rig.create("one");
        rig.spawn_and_shake();
        rig.answer_turn("Done.");
        rig.send("two");
        if tool {
            rig.tool("call-1", "make");
        }
        if !arrived {
            rig.forget_last_line();
        }
        rig
    }
    let told = "two".to_string();
    let cases = [
        (torn as fn(bool, bool) -> Rig, false, false, "resume", told.clone()),
        (torn, false, true, "cut", told),
        (torn, true, true, "fork", prompt::CONTINUE_CUT_OFF.to_string()),
    ];
    for (torn, tool, arrived, kind, text) in cases {
        let want = |source| (kind.to_string(), text.clone(), Some(source));
        let mut scan = torn(tool, arrived);
        scan.die();
        scan.pass(155_000);
        assert_eq!(replayed(&mut scan), want(Source::ResponseAborted));

        let mut retry = torn(tool, arrived);
        retry.recovery(false, false);
        retry.die();
        let session = retry.id();
        assert!(retry.command(Command::Retry { session }).is_ok());
        assert_eq!(replayed(&mut retry), want(Source::RetryButton));

        let mut crash = torn(tool, arrived);
        crash.crash();
        crash.pass(0);
        assert_eq!(replayed(&mut crash), want(Source::CrashResume));
    }
}

// proves: RP-06
#[test]
fn a_replay_resets_no_count() {
    // by the scan, and by a rung of the ladder
    for attempts in [1, 2] {
        let mut rig = cut_off(attempts);
        rig.pass(155_000);
        rig.alter(|row| row.ladder.rungs = 5);
        a_replay_keeps_the_counts(&mut rig);
    }
}

fn a_replay_keeps_the_counts(rig: &mut Rig) {
    let before = rig.row();
    assert!(before.retry_attempts >= 2 && before.status == Status::Starting);
    rig.spawn_and_shake();
    assert_eq!(rig.lines.last().map(|line| line.origin), Some(crate::message::Origin::Replay));
    let after = rig.row();
    assert_eq!(
        (after.retry_attempts, after.retry_day, after.ladder, after.last_restart_at),
        (before.retry_attempts, before.retry_day, before.ladder, before.last_restart_at)
    );
}
