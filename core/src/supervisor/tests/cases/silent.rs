//! T1, T2, T4, T22: silence that ends a turn, and silence that does not.

use super::{HOUR, MINUTE, One, Rig, SECOND, agent, piece, seen};
use crate::attention::{RowState, Section};
use crate::card::CardReply;
use crate::ipc::Activity;
use crate::session::{AbortCause, PendingAction, Status};
use crate::stream::{
    BlockStart, ControlAsk, PartialKind, StreamEvent, TaskPhase, ToolResult, UserEcho,
};
use crate::supervisor::Command;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use serde_json::json;

const RUNNING: (Status, Option<PendingAction>) = (Status::Running, None);
const CUT_OFF: (Status, Option<PendingAction>) =
    (Status::NeedsYou, Some(PendingAction::ResponseAborted));

fn state_of(rig: &Rig, one: One) -> (Status, Option<PendingAction>) {
    let row = rig.view_of(one).row;
    (row.status, row.pending)
}

fn delta() -> StreamEvent {
    piece(PartialKind::Text { index: 0, text: "word ".to_string() })
}

fn open_text(rig: &mut Rig, one: One) {
    rig.tell(one, piece(PartialKind::MessageStart { context_tokens: 10 }));
    rig.tell(one, piece(PartialKind::BlockStart { index: 0, block: BlockStart::Text }));
    for _ in 0..3 {
        rig.tell(one, delta());
    }
}

fn call(rig: &mut Rig, one: One) {
    rig.tell(one, Rig::tool_line("call-1", "make"));
}

fn tool_result() -> StreamEvent {
    StreamEvent::from(UserEcho {
        uuid: None,
        parent: None,
        synthetic: false,
        replay: false,
        text: None,
        results: vec![ToolResult {
            tool_use: "call-1".into(),
            text: "done".into(),
            failed: false,
            denied: false,
        }],
        wakes: None,
    })
}

// proves: SW-08, AB-03, SC-27, SW-07
#[test]
fn t01_silence_in_a_text_ends_that_turn_once_and_disturbs_no_other() {
    let mut rig = Rig::new();
    let all: Vec<One> = (0..10).map(|n| rig.another(&alloc::format!("message {n}"))).collect();
    let (silent, others) = all.split_first().expect("ten sessions");
    for one in &all {
        open_text(&mut rig, *one);
    }
    // the others write a word a minute
    for _ in 0..2 {
        rig.pass(MINUTE);
        others.iter().for_each(|one| rig.tell(*one, delta()));
    }
    rig.pass(MINUTE - 1);
    assert_eq!((state_of(&rig, *silent), rig.stops), (RUNNING, 0));
    rig.pass(1);
    assert_eq!((state_of(&rig, *silent), rig.stops), (CUT_OFF, 1));
    let view = rig.view_of(*silent);
    assert_eq!(view.row.abort_cause, Some(AbortCause::StallTimeout));
    assert_eq!(seen(&rig, &view).state, RowState::Running, "nobody sees it");

    others.iter().for_each(|one| rig.tell(*one, delta()));
    rig.pass(MINUTE);
    assert_eq!((rig.spawned, rig.notified), (11, 0), "the next scan brings it back");
    let again = rig.up(silent.session);
    rig.answer_of(again, "Done.");
    assert_eq!(state_of(&rig, again), (Status::NeedsYou, None));
    for _ in 0..10 {
        rig.pass(MINUTE);
        others.iter().for_each(|one| rig.tell(*one, delta()));
    }
    // the one notice is that of its answer
    assert_eq!((rig.stops, rig.spawned, rig.notified), (1, 11, 1), "once, and no other");
    assert!(others.iter().all(|one| state_of(&rig, *one) == RUNNING));
}

// proves: A-05
#[test]
fn t02_the_clock_starts_at_the_result_and_exactly_the_silent_two_come_back() {
    let mut rig = Rig::new();
    let all: Vec<One> = (0..6).map(|n| rig.another(&alloc::format!("message {n}"))).collect();
    let (silent, others) = all.split_at(2);
    all.iter().for_each(|one| call(&mut rig, *one));
    rig.pass(45 * MINUTE);
    assert_eq!(rig.stops, 0, "a tool may be silent");
    silent.iter().for_each(|one| rig.tell(*one, tool_result()));
    rig.pass(10 * MINUTE - 1);
    assert!(all.iter().all(|one| state_of(&rig, *one) == RUNNING));
    rig.pass(1);
    assert!(silent.iter().all(|one| state_of(&rig, *one) == CUT_OFF));
    assert_eq!(rig.stops, 2);
    rig.pass(MINUTE);
    // both were asked for in one scan: they are told apart by their rows
    assert_eq!(rig.spawned, 8);
    let starting = |one: &One| rig.view_of(*one).row.status == Status::Starting;
    assert!(silent.iter().all(starting));
    assert!(others.iter().all(|one| state_of(&rig, *one) == RUNNING));
}

// proves: A-02
#[test]
fn t04_a_start_that_prints_nothing_is_no_success_and_says_its_last_words() {
    let mut rig = Rig::new();
    rig.create("hello");
    for start in 1..=2 {
        rig.spawn();
        rig.chatter("Do you trust the files in this folder?");
        rig.pass(15 * SECOND - 1);
        let row = rig.row();
        assert_eq!((row.status, row.pending, rig.spawned), (Status::Starting, None, start));
        rig.pass(1);
    }
    let row = rig.row();
    assert_eq!((row.status, row.pending, rig.spawned), (Status::Error, None, 2));
    let words = row.words.expect("words");
    assert!(words.contains("never answered"), "{words}");
    assert!(words.ends_with("Do you trust the files in this folder?"), "{words}");
    assert_eq!(row.cli_session_id, None, "no conversation was named");
    // the person started it: it stays where the person sees it, and Retry sends the message
    rig.pass(40 * 24 * HOUR);
    assert_eq!((rig.row().status, rig.spawned), (Status::Error, 2));
    assert_eq!(seen(&rig, &rig.view()).section, Section::Interrupted);
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
}

// proves: SW-04
#[test]
fn t04_chatter_for_minutes_and_then_the_first_line_is_a_slow_start_and_no_dead_one() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.shake();
    for server in 0..16 {
        rig.pass(90 * SECOND);
        rig.chatter(&alloc::format!("connecting to MCP server {server}"));
        assert_eq!((rig.row().status, rig.stops), (Status::Running, 0), "server {server}");
    }
    rig.begin_by_itself();
    rig.answer_turn("Done.");
    assert_eq!((rig.row().status, rig.spawned), (Status::NeedsYou, 1));
}

// proves: A-05, SW-05
#[test]
fn t22_a_thought_may_take_ten_minutes_between_two_signs_of_it() {
    let mut rig = Rig::new();
    rig.create("think");
    rig.spawn_and_shake();
    rig.stream(piece(PartialKind::MessageStart { context_tokens: 10 }));
    rig.stream(piece(PartialKind::BlockStart { index: 0, block: BlockStart::Thinking }));
    for _ in 0..6 {
        rig.pass(589 * SECOND);
        assert_eq!((rig.row().status, rig.stops), (Status::Running, 0));
        assert_eq!(seen(&rig, &rig.view()).reason.words().as_deref(), Some("thinking"));
        assert_eq!(rig.next_by_itself(), Some(("stall_timeout".to_string(), 11 * SECOND)));
        rig.stream(StreamEvent::ThinkingTokens);
    }
    // what stderr says then is no thought
    rig.pass(599 * SECOND);
    rig.chatter("still here");
    rig.pass(SECOND);
    assert_eq!(rig.row().pending, Some(PendingAction::ResponseAborted));
}

#[test]
fn t22_a_silent_tool_a_sub_agent_and_a_compaction_have_no_limit_and_say_so() {
    let status = |word: Option<&str>| StreamEvent::Status {
        status: word.map(str::to_string),
        permission_mode: None,
        compact_result: None,
        compact_error: None,
    };
    let tool = Rig::tool_line("call-1", "cargo build --workspace");
    for (event, millis, activity, words) in [
        (
            tool,
            45 * MINUTE,
            Activity::Tool("cargo build --workspace".into()),
            "cargo build --workspace",
        ),
        (agent(TaskPhase::Started), 30 * MINUTE, Activity::SubAgents(1), "1 sub-agent"),
        (status(Some("compacting")), 30 * MINUTE, Activity::Compacting, "compacting"),
    ] {
        let mut rig = Rig::new();
        rig.create("work");
        rig.spawn_and_shake();
        rig.stream(event);
        rig.pass(millis);
        let view = rig.view();
        assert_eq!((view.row.status, rig.stops, rig.spawned), (Status::Running, 0, 1), "{words}");
        assert_eq!(view.live.activity, activity);
        assert_eq!(seen(&rig, &view).reason.words().as_deref(), Some(words));
        assert_eq!(rig.next_by_itself(), None, "nothing happens to it by itself");
    }
}

// proves: A-05
#[test]
fn t22_a_question_waits_three_days_and_can_still_be_answered() {
    let mut rig = Rig::new();
    rig.create("ask me");
    rig.spawn_and_shake();
    rig.tool("call-1", "");
    let input = json!({"questions": [{"question": "Which colour?", "options": []}]});
    let body = ControlAsk::CanUseTool {
        tool: "AskUserQuestion".into(),
        tool_use: "call-1".into(),
        input,
        suggestions: vec![],
        description: None,
    };
    rig.stream(StreamEvent::ControlRequest { request: "ask-1".into(), body });
    rig.pass(3 * 24 * HOUR);
    let asked = (Status::Running, Some(PendingAction::Question));
    assert_eq!((rig.row().status, rig.row().pending), asked);
    assert_eq!((rig.stops, rig.spawned), (0, 1));
    let shown = seen(&rig, &rig.view());
    assert_eq!(shown.section, Section::NeedsYou);
    assert_eq!(shown.reason.words().as_deref(), Some("Which colour?"));
    assert_eq!(rig.next_by_itself(), None);

    let answers = [("Which colour?".to_string(), "Green".to_string())].into();
    let reply = CardReply::Answers { answers };
    let session = rig.id();
    let answered = rig.command(Command::ReplyCard { session, request: "ask-1".into(), reply });
    assert!(answered.is_ok(), "{answered:?}");
    rig.pass(HOUR);
    assert_eq!((rig.row().status, rig.row().pending), RUNNING);
    assert_eq!((rig.stops, rig.spawned), (0, 1));
}

// proves: SW-04, SW-01
#[test]
fn t22_a_start_that_only_writes_to_stderr_lives_for_as_long_as_it_writes() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    for line in 0..5 {
        rig.pass(MINUTE);
        rig.chatter(&alloc::format!("starting server {line}"));
        assert_eq!((rig.row().status, rig.stops), (Status::Running, 0), "minute {line}");
        assert_eq!(rig.next_by_itself(), Some(("stall_timeout".to_string(), 2 * MINUTE)));
    }
    rig.pass(2 * MINUTE - 1);
    assert_eq!(rig.stops, 0);
    rig.pass(1);
    assert_eq!((rig.stops, rig.row().pending), (1, Some(PendingAction::ResponseAborted)));
}

// proves: SW-02, LD-12
#[test]
fn t22_a_busy_machine_may_take_minutes_to_the_first_output() {
    let mut rig = Rig::new();
    rig.busy = Some(950);
    rig.pass(MINUTE);
    rig.create("hello");
    rig.shake();
    rig.pass(359 * SECOND);
    assert_eq!((rig.row().status, rig.stops, rig.spawned), (Status::Running, 0, 1));
    assert_eq!(rig.next_by_itself(), Some(("stall_timeout".to_string(), SECOND)));
    assert_eq!(seen(&rig, &rig.view()).section, Section::Running);
    rig.begin_by_itself();
    rig.answer_turn("Done.");
    rig.pass(10 * MINUTE);
    assert_eq!((rig.row().status, rig.stops, rig.spawned), (Status::NeedsYou, 0, 1));
}
