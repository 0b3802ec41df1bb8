//! A full context and a mid-task stop, from the result to the row.

use super::rig::Rig;
use super::*;
use crate::context::ContextUsage;
use crate::id::Rng;
use crate::message::Origin;
use crate::prompt;
use crate::settings::SettingChange;
use crate::stream::{Content, ControlAsk, StreamEvent, TurnResult};
use alloc::boxed::Box;

const FULL: Option<(u64, u64)> = Some((185_000, 200_000));
const NEEDS_YOU: (Status, Option<PendingAction>) = (Status::NeedsYou, None);

/// A session whose first turn runs, on an engine of this model.
fn running(model: Option<&str>) -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.tamper(|row| row.model = model.map(Into::into));
    rig.spawn_and_shake();
    rig
}

impl Rig {
    /// The turn ends with nothing said.
    pub(super) fn finish_empty(&mut self) {
        self.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            terminal_reason: Some("completed".into()),
            num_turns: 1,
            messages: self.lines.last().map(|line| line.uuid).into_iter().collect(),
            ..TurnResult::default()
        })));
    }

    fn compact(&mut self) {
        self.stream(StreamEvent::CompactBoundary { trigger: "auto".into() });
    }

    /// What was written to the child by the app itself.
    fn nudges(&self) -> Vec<String> {
        let own = |line: &&crate::message::UserLine| {
            matches!(line.origin, Origin::AutoNudge | Origin::AutoCommand)
        };
        let text = |line: &crate::message::UserLine| match &line.text {
            LineText::Own(text) => text.clone(),
            LineText::Of(_) | LineText::HandoverThen { .. } => String::new(),
        };
        self.lines.iter().filter(own).map(text).collect()
    }

    fn give_up_notes(&self) -> usize {
        self.notes(prompt::NOTE_FRESH_SESSION)
    }

    fn switch(&mut self, change: SettingChange) {
        assert!(self.command(Command::SetSetting { change }).is_ok());
    }
}

// proves: CS-01, CS-08, CS-12, CS-13, CS-21, CS-26, CS-27, CS-32, CS-37, RP-06
#[test]
fn a_full_turn_without_an_answer_goes_on_unseen_until_it_is_answered() {
    let mut rig = running(None);
    rig.context = FULL;
    rig.tamper(|row| (row.retry_attempts, row.retry_day) = (1, Some(crate::time::Day(100))));
    let since = rig.row().turn_since;
    rig.tool("t", "ls");
    rig.finish_empty();
    assert_eq!(rig.nudges(), [prompt::PLEASE_CONTINUE]);
    assert_eq!(rig.notes(prompt::NOTE_AUTO_RECOVERING), 1);
    let row = rig.row();
    assert_eq!((row.status, row.context_recover_count), (Status::Running, 1));
    assert_eq!((row.turn_since, row.retry_attempts, rig.notified), (since, 1, 0));

    rig.compact();
    rig.context = Some((30_000, 200_000));
    rig.answer_turn("here it is");
    assert_eq!((state_of(&rig), rig.row().delivered), (NEEDS_YOU, true));
    assert_eq!((rig.nudges().len(), rig.spawned, rig.stops), (1, 1, 0));
    // the message is answered by the answer to the nudge
    assert!(rig.row().replay.answered);
    assert_eq!(rig.view().live.context.map(|usage| usage.tokens), Some(30_000));

    rig.send("more");
    rig.answer_turn("more of it");
    assert_eq!(rig.row().context_recover_count, 0);
}

// proves: CS-14, CS-15, CS-16, CS-17, CS-20, CS-30, CS-36, INV-17, INV-62
#[test]
fn three_nudges_in_vain_are_told_once_and_a_message_of_the_person_begins_anew() {
    let mut rig = running(None);
    rig.context = FULL;
    for count in 1..=3_u8 {
        rig.finish_empty();
        assert_eq!((rig.row().context_recover_count, state_of(&rig).0), (count, Status::Running));
    }
    rig.finish_empty();
    assert_eq!((state_of(&rig), rig.notified), (NEEDS_YOU, 1));
    assert_eq!((rig.nudges().len(), rig.give_up_notes()), (3, 1));
    assert_eq!(rig.notes(prompt::NOTE_NO_RESPONSE), 0);
    assert_eq!(rig.row().words.as_deref(), Some("may need a fresh session"));
    // no hidden retry follows a give-up
    rig.pass(600_000);
    assert_eq!((rig.spawned, state_of(&rig)), (1, NEEDS_YOU));
    // a turn that begins by itself is not nudged and tells nobody again
    rig.begin_by_itself();
    rig.finish_empty();
    assert_eq!((rig.nudges().len(), rig.give_up_notes(), state_of(&rig)), (3, 1, NEEDS_YOU));

    rig.send("go on");
    assert_eq!((rig.row().context_recover_count, rig.row().context_gave_up), (0, false));
    rig.finish_empty();
    assert_eq!((rig.nudges().len(), rig.row().context_recover_count), (4, 1));
}

// proves: CS-03, CS-23, CS-38, CW-02
#[test]
fn a_compaction_that_answers_nothing_ends_after_three_nudges_at_any_percentage() {
    for context in [None, Some((80_000, 200_000))] {
        let mut rig = running(None);
        rig.context = context;
        for _ in 0..4 {
            rig.compact();
            if context.is_some() {
                // a message came after it: the percentage is known, and low
                rig.say(Content::Thinking("hm".into()));
            }
            rig.finish_empty();
            rig.pass(2_000);
        }
        assert_eq!((rig.nudges().len(), rig.give_up_notes()), (3, 1), "{context:?}");
        assert_eq!((state_of(&rig), rig.row().context_recover_count), (NEEDS_YOU, 3));
    }
}

// proves: CS-04
#[test]
fn an_unknown_reading_without_a_compaction_sends_nothing() {
    let mut rig = running(None);
    rig.context = None;
    rig.finish_empty();
    assert!(rig.row().turn.is_some(), "the answer is waited for");
    rig.pass(2_000);
    // the empty turn heals in its own way
    assert_eq!(state_of(&rig).1, Some(PendingAction::ResponseAborted));
    assert_eq!(rig.nudges(), [""; 0]);
}

// proves: CS-22
#[test]
fn a_session_that_touched_the_ceiling_starts_fresh_next_time() {
    let mut rig = running(None);
    rig.context = FULL;
    rig.finish_empty();
    rig.context = Some((80_000, 200_000));
    rig.answer_turn("done");
    rig.send("next");
    rig.context = FULL;
    rig.finish_empty();
    assert_eq!((rig.nudges().len(), rig.row().context_recover_count), (2, 1));
}

// proves: CS-05, CS-07, INV-23
#[test]
fn a_delivered_answer_at_its_limit_and_a_question_near_it_are_left_alone() {
    let mut rig = running(None);
    rig.context = Some((200_000, 200_000));
    rig.answer_turn("the whole answer");
    assert_eq!((state_of(&rig), rig.nudges().len()), (NEEDS_YOU, 0));

    let mut rig = running(None);
    rig.context = Some((190_000, 200_000));
    rig.ask_permission("t", "ls");
    rig.finish_empty();
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::PermissionRequest)));
    assert_eq!(rig.nudges().len(), 0);
}

// proves: CS-09, CS-11, CS-35, A-08, INV-61
#[test]
fn another_engine_is_made_to_compact_and_then_asked_to_finish_in_one_attempt() {
    let mut rig = running(Some("gpt-5.1"));
    rig.context = FULL;
    rig.finish_empty();
    assert_eq!(rig.nudges(), [prompt::COMPACT_COMMAND]);
    rig.compact();
    rig.local_result("compact", "");
    assert_eq!(rig.nudges(), [prompt::COMPACT_COMMAND, prompt::PLEASE_CONTINUE]);
    let row = rig.row();
    assert_eq!((row.status, row.context_recover_count), (Status::Running, 1));
    rig.context = Some((40_000, 200_000));
    rig.answer_turn("finished");
    assert_eq!((state_of(&rig), rig.row().delivered), (NEEDS_YOU, true));
    assert!(rig.row().replay.answered);
    assert_eq!((rig.notes(prompt::NOTE_AUTO_RECOVERING), rig.give_up_notes()), (1, 0));
}

// proves: A-08, INV-62
#[test]
fn a_compaction_that_fails_gives_up_at_once_in_its_own_words() {
    let mut rig = running(Some("grok-4"));
    rig.context = FULL;
    rig.finish_empty();
    rig.stream(StreamEvent::Status {
        status: None,
        permission_mode: None,
        compact_result: Some("failed".into()),
        compact_error: Some("not enough messages".into()),
    });
    rig.local_result("compact", "Error");
    assert_eq!((state_of(&rig), rig.give_up_notes()), (NEEDS_YOU, 1));
    assert_eq!(rig.nudges(), [prompt::COMPACT_COMMAND]);
    let words = rig.row().words;
    assert_eq!(words.as_deref(), Some("may need a fresh session: not enough messages"));
}

// proves: CS-24, INV-46
#[test]
fn switched_off_the_stalled_turn_lands_in_the_inbox_and_nothing_is_written() {
    let mut rig = running(None);
    rig.switch(SettingChange::ContextStallAutoRecoverEnabled(false));
    rig.context = FULL;
    rig.finish_empty();
    assert_eq!((state_of(&rig), rig.lines.len(), rig.give_up_notes()), (NEEDS_YOU, 1, 0));
    assert_eq!(rig.notes(prompt::NOTE_NO_RESPONSE), 1);
    assert_eq!(rig.row().words.as_deref(), Some("context is full; auto-recovery is off"));
}

// proves: AC-02, INV-17
#[test]
fn auto_continue_nudges_a_mid_task_stop_three_times_and_then_says_so() {
    let mut rig = running(None);
    rig.tamper(|row| row.prints_markers = true);
    rig.answer_turn("first I look around");
    assert_eq!((state_of(&rig), rig.notified), ((Status::Stalled, None), 1));
    assert_eq!(rig.nudges().len(), 0, "off by default");

    rig.switch(SettingChange::AutoContinueMidTaskEnabled(true));
    rig.send("go on");
    for count in 1..=3_u8 {
        rig.answer_turn("and then");
        assert_eq!((rig.row().auto_continue_count, state_of(&rig).0), (count, Status::Running));
    }
    rig.answer_turn("and then");
    assert_eq!((state_of(&rig), rig.notified), ((Status::Stalled, None), 2));
    assert_eq!(rig.nudges(), [prompt::PLEASE_CONTINUE; 3]);
    let session = rig.id();
    assert!(rig.command(Command::Continue { session }).is_ok());
    assert_eq!((rig.row().auto_continue_count, state_of(&rig).0), (0, Status::Running));
    rig.answer_turn("<!-- omniscio:final-message -->\nDone.");
    assert_eq!((state_of(&rig), rig.row().delivered), (NEEDS_YOU, true));
}

// proves: A-10, AC-05
#[test]
fn nothing_is_sent_into_a_turn_that_began_by_itself() {
    for (context, empty) in [(FULL, true), (Some((1_000, 200_000)), false)] {
        let mut rig = running(None);
        rig.switch(SettingChange::AutoContinueMidTaskEnabled(true));
        rig.tamper(|row| row.prints_markers = true);
        rig.context = None;
        // the meter knows it from the turn before
        rig.tamper(|row| {
            row.context = context.map(|(tokens, window)| ContextUsage { tokens, window })
        });
        if empty {
            rig.compact();
            rig.finish_empty();
        } else {
            rig.answer_turn("first I");
        }
        assert_eq!(rig.row().turn_count, 1);
        rig.begin_by_itself();
        assert_eq!((rig.nudges().len(), rig.row().turn_count), (0, 2));
        assert_eq!((state_of(&rig).0, rig.notified), (Status::Running, 0));
    }
}

// proves: CS-28, AB-01
#[test]
fn a_child_that_dies_at_a_full_context_is_cut_off_and_not_nudged() {
    let mut rig = running(None);
    rig.context = FULL;
    rig.tool("t", "ls");
    rig.die();
    assert_eq!(state_of(&rig), (Status::Error, Some(PendingAction::ResponseAborted)));
    assert_eq!((rig.nudges().len(), rig.row().context_recover_count), (0, 0));
}

// proves: AB-09
#[test]
fn what_the_person_stops_is_not_nudged() {
    let mut rig = running(None);
    rig.context = FULL;
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.finish_empty();
    assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::Stopped)));
    assert_eq!(rig.nudges().len(), 0);
}

// proves: A-17
#[test]
fn a_compact_that_the_person_types_runs_no_gate() {
    let mut rig = running(None);
    rig.answer_turn("done");
    rig.context = FULL;
    rig.tamper(|row| row.context_recover_count = 2);
    rig.send("/compact");
    rig.compact();
    rig.local_result("compact", "");
    let row = rig.row();
    assert_eq!((state_of(&rig), row.delivered, row.context_recover_count), (NEEDS_YOU, true, 2));
    assert_eq!(rig.nudges().len(), 0);
}

// proves: CW-01, A-08
#[test]
fn the_meter_and_the_decision_read_the_same_and_it_outlives_the_app() {
    let mut rig = running(None);
    rig.context = Some((150_000, 200_000));
    rig.answer_turn("done");
    // the answer to a turn that is finished comes after its end
    let view = rig.view();
    let full = view.live.context.map(|usage| (usage.tokens, usage.window));
    assert_eq!(full, Some((150_000, 200_000)));
    let asked = rig.controls.iter().filter(|c| matches!(c, Control::ContextUsage { .. })).count();
    assert_eq!(asked, 1);
    rig.send("more");
    rig.context = FULL;
    rig.finish_empty();
    assert_eq!(rig.row().context, rig.view().live.context);
    rig.crash();
    assert_eq!(rig.row().context, rig.view().live.context);
    assert!(rig.row().context.is_some_and(|usage| usage.at_least(90)));
}

#[test]
fn a_turn_that_ends_while_the_app_waits_for_the_reading_concludes_without_it() {
    let mut rig = running(None);
    rig.context = None;
    rig.finish_empty();
    rig.die();
    assert_eq!(state_of(&rig).1, Some(PendingAction::ResponseAborted));
    let mut rig = running(None);
    rig.context = None;
    rig.finish_empty();
    let body = ControlAsk::Unknown { subtype: "x".into() };
    rig.stream(StreamEvent::ControlRequest { request: "r".into(), body });
    assert!(rig.row().turn.is_some());
    rig.begin_by_itself();
    assert_eq!(rig.row().turn_count, 2, "the next turn's first event decides the one before it");
}

// proves: INV-37, INV-62
#[test]
fn a_rung_that_finds_the_context_full_leaves_the_row_given_up_and_tells_once() {
    let mut rig = Rig::new();
    rig.give_up();
    for _ in 0..2 {
        while rig.row().status != Status::Starting {
            rig.pass(60_000);
        }
        rig.spawn_and_shake();
        rig.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            is_error: true,
            terminal_reason: Some("rapid_refill_breaker".into()),
            num_turns: 1,
            text: "thrashing".into(),
            ..TurnResult::default()
        })));
        assert_eq!(state_of(&rig), (Status::NeedsYou, Some(PendingAction::RecoveryFailed)));
    }
    assert_eq!(rig.give_up_notes(), 1);
}

// proves: CS-10, INV-61
#[test]
fn claude_is_never_made_to_compact_whatever_its_turns_end_in() {
    let mut rig = running(None);
    let mut dice = Rng::new(61);
    for turn in 0..1_000_u32 {
        match state_of(&rig).0 {
            Status::Running => {}
            // what was empty with room left is brought back
            Status::Starting => rig.spawn_and_shake(),
            Status::Waiting
            | Status::NeedsYou
            | Status::Error
            | Status::Stalled
            | Status::Paused
            | Status::Ended
            | Status::Archived => rig.send("go on"),
        }
        let mut of = |sides: u64| dice.next_u64() % sides;
        rig.context = Some((of(210_000), 200_000)).filter(|_| of(8) > 0);
        if of(3) == 0 {
            rig.compact();
        }
        if of(2) == 0 {
            rig.tool(&alloc::format!("t{turn}"), "ls");
        }
        match of(3) {
            0 => rig.answer_turn("so far"),
            1 => rig.answer_turn("<!-- omniscio:final-message -->\nDone."),
            _ => rig.finish_empty(),
        }
        rig.pass(2_000);
    }
    let nudges = rig.nudges();
    assert!(nudges.len() > 50, "{}", nudges.len());
    assert!(nudges.iter().all(|text| text == prompt::PLEASE_CONTINUE));
}
