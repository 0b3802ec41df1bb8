//! Blocks of streams made by hand.

extern crate std;

use super::captures_test::{Window, at};
use super::scene::*;
use super::*;
use crate::stream::{AssistantLine, BlockStart, Content, PartialKind, TaskEvent, ToolResult};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn streamed_text_grows_and_the_finished_line_replaces_it() {
    let mut s = Session::new();
    s.see(start("m")).see(begin("m", 0, BlockStart::Text));
    assert!(s.seen().is_empty(), "nothing to show yet");
    s.see(text("m", 0, "Hel")).see(text("m", 0, "lo"));
    assert_eq!(s.seen(), ["~text Hello"]);
    s.see(said("m", "Hello!"));
    assert_eq!(s.seen(), ["text Hello!"]);
    s.see(partial("m", PartialKind::MessageStop)).end_turn();
    assert_eq!((s.seen(), s.saves), (vec!["text Hello!".to_string()], 1));
}

#[test]
fn a_retry_takes_the_place_of_the_abandoned_text() {
    let mut s = Session::new();
    s.see(start("m1")).see(begin("m1", 0, BlockStart::Text)).see(text("m1", 0, "first try"));
    s.see(abandoned("m1"));
    assert_eq!(s.seen(), ["~text first try"], "it stays until there is something better");
    s.see(start("m2")).see(begin("m2", 0, BlockStart::Text)).see(text("m2", 0, "second"));
    assert_eq!(s.seen(), ["~text second"]);
    s.see(said("m2", "second try")).end_turn();
    assert_eq!(s.seen(), ["text second try"]);
}

#[test]
fn a_fallback_line_or_a_shorter_retry_leaves_nothing_of_the_abandoned_try() {
    let two = |s: &mut Session| {
        s.see(start("m1"))
            .see(begin("m1", 0, BlockStart::Text))
            .see(text("m1", 0, "a"))
            .see(begin("m1", 1, BlockStart::ToolUse { id: "t0".into(), name: "Bash".into() }));
        assert_eq!(s.seen(), ["~text a", "~tool t0 -"]);
    };
    // a new message without a word about the old one, then the whole reply at once
    let mut s = Session::new();
    two(&mut s);
    s.see(said("m2", "all of it"));
    s.end_turn();
    assert_eq!(s.seen(), ["text all of it"]);
    // a streamed retry with one block less
    let mut s = Session::new();
    two(&mut s);
    s.see(start("m2")).see(begin("m2", 0, BlockStart::Text)).see(text("m2", 0, "b"));
    s.see(said("m2", "b")).see(partial("m2", PartialKind::MessageStop));
    assert_eq!(s.seen(), ["text b"]);
}

#[test]
fn marker_lines_are_never_shown_not_even_for_a_moment() {
    let mut s = Session::new();
    s.see(start("m")).see(begin("m", 0, BlockStart::Text));
    for piece in
        ["<!-- omni", "scio:final-message -->", "\nDone.\n<!-", "- omniscio:archive-me -->"]
    {
        s.see(text("m", 0, piece));
        assert!(s.seen().iter().all(|line| !line.contains("<!-")), "{:?}", s.seen());
    }
    assert_eq!(s.seen(), ["~text Done.\n"]);
    s.see(said("m", "<!-- omniscio:final-message -->\nDone.\n<!-- omniscio:archive-me -->"));
    assert_eq!(s.seen(), ["text Done."]);
    s.see(said("m", "<!-- omniscio:final-message -->"));
    assert_eq!(s.seen(), ["text Done."], "a marker alone is no text");
}

#[test]
fn thinking_has_its_duration_with_and_without_partial_messages() {
    let thought = || StreamEvent::from(assistant("m", Content::Thinking("hm".into())));
    let mut s = Session::new();
    let piece = PartialKind::Thinking { index: 0, text: "h".into() };
    s.see(start("m")).see(begin("m", 0, BlockStart::Thinking)).see(partial("m", piece));
    assert_eq!(s.seen(), ["~thinking h 0"]);
    s.see(thought());
    assert_eq!(s.seen(), ["thinking hm 20"]);
    let mut s = Session::new();
    s.see(StreamEvent::ThinkingTokens).see(StreamEvent::ThinkingTokens).see(thought());
    assert_eq!(s.seen(), ["thinking hm 20"]);
}

#[test]
fn a_call_is_open_until_its_result_which_is_bounded() {
    let mut s = Session::new();
    s.see(begin("m", 0, BlockStart::ToolUse { id: "t".into(), name: "Bash".into() }));
    s.see(call("m", "t", None));
    assert_eq!(s.seen(), ["~tool t -"]);
    s.see(answer("other", "?")).see(answer("t", "ok"));
    assert_eq!(s.seen(), ["tool t ok"]);
    let denied = ToolResult { tool_use: "u".into(), text: "no".into(), failed: true, denied: true };
    s.see(call("m", "u", None)).see(user(None, vec![denied]));
    let refused = BlockKind::Tool {
        call: "u".into(),
        name: "Bash".into(),
        input: json!({"command": "x"}),
        result: Some("no".into()),
        failed: true,
        denied: true,
        millis: 10,
        parent: None,
    };
    assert_eq!(s.window.0[&2].kind, refused);
    s.see(call("m", "v", None)).see(answer("v", &"z".repeat(1_000_000)));
    let line = s.seen().pop().expect("a block");
    assert!(line.contains(" characters left out "));
    assert!(line.len() <= text::RESULT_BYTES + "tool v ".len());
}

#[test]
fn of_a_sub_agent_only_its_calls_are_shown() {
    let mut s = Session::new();
    let words = assistant("n", Content::Text("inner".into()));
    s.see(call("m", "agent", None)).see(call("n", "inner", Some("agent")));
    s.see(StreamEvent::from(AssistantLine { parent: Some("agent".into()), ..words }));
    s.see(answer("agent", "launched"));
    s.end_turn();
    assert_eq!(s.seen(), ["tool agent launched", "~tool inner -"], "it goes on in the background");
    s.see(StreamEvent::Task(TaskEvent {
        task: "a".into(),
        tool_use: Some("agent".into()),
        phase: TaskPhase::Ended,
        is_agent: true,
        background: true,
        summary: None,
    }));
    assert_eq!(s.seen(), ["tool agent launched", "tool inner -"]);
    let of_agent = |block: &&&Block| matches!(&block.kind, BlockKind::Tool { parent: Some(p), .. } if p == "agent");
    assert_eq!(s.window.visible().iter().filter(of_agent).count(), 1);
}

#[test]
fn a_turn_that_dies_keeps_its_text_and_marks_where_it_ends() {
    let mut s = Session::new();
    s.see(said("m", "before")).see(call("m", "t", None)).see(start("m2"));
    s.see(begin("m2", 0, BlockStart::Text)).see(text("m2", 0, "half a sen\n<!-- omnis"));
    s.see(begin("m2", 1, BlockStart::ToolUse { id: "torn".into(), name: "Write".into() }));
    s.cut_off();
    assert_eq!(s.seen(), ["text before", "tool t -", "text half a sen\n!"]);
    assert!(s.builder.next_save(&s.limits).is_none());
    // in the middle of a tool the text before it is the end of the reply
    let mut s = Session::new();
    s.see(said("m", "before")).see(call("m", "t", None)).cut_off();
    assert_eq!(s.seen(), ["text before!", "tool t -"]);
    // the retry never came
    let mut s = Session::new();
    s.see(start("m")).see(begin("m", 0, BlockStart::Text)).see(text("m", 0, "partial"));
    s.see(abandoned("m")).cut_off();
    assert_eq!(s.seen(), ["text partial!"]);
    // nothing of an ended turn is marked
    let mut s = Session::new();
    s.see(said("m", "whole")).end_turn();
    s.cut_off();
    assert_eq!(s.seen(), ["text whole"]);
}

#[test]
fn words_of_the_cli_are_notes() {
    let mut s = Session::new();
    let error = assistant("x", Content::Text("API Error: 529".into()));
    s.see(StreamEvent::from(AssistantLine { synthetic: true, ..error }));
    s.see(StreamEvent::Informational { content: "fyi".into() });
    s.see(StreamEvent::Informational { content: " ".into() });
    s.see(user(Some("<local-command-stderr>it failed</local-command-stderr>"), vec![]));
    s.see(user(Some("a message of the person"), vec![]));
    s.see(StreamEvent::CompactBoundary { trigger: "manual".into() });
    s.see(user(Some("<local-command-stdout>Compacted </local-command-stdout>"), vec![]));
    s.cut_off();
    let notes =
        ["note API Error: 529", "note fyi", "note it failed", "boundary Conversation compacted"];
    assert_eq!(s.seen(), notes);
}

// proves: A-30
#[test]
fn an_open_block_is_saved_at_most_once_a_second() {
    let mut s = Session::new();
    s.see(start("m")).see(begin("m", 0, BlockStart::Text));
    assert_eq!(s.builder.next_save(&s.limits), None);
    for _ in 0..500 {
        s.see(text("m", 0, "x"));
    }
    assert_eq!(s.saves, 4, "5 s of text");
    let due = s.builder.next_save(&s.limits).expect("unsaved text");
    let early = at(due.0 - 1);
    assert!(s.builder.save_due(early, &s.limits).is_empty());
    assert_eq!(s.builder.save_due(at(due.0), &s.limits).len(), 1);
    assert_eq!(s.builder.next_save(&s.limits), None, "stored as shown");
    s.see(said("m", "end"));
    assert_eq!(s.saves, 5, "and when it ends");
}

// proves: UI-22
#[test]
fn pushed_blocks_are_numbered_and_hidden_ones_are_not_in_the_default_view() {
    let mut builder = Builder::new(7);
    let note = |text: &str| BlockKind::Note { text: text.into() };
    let shown = builder.push(note("a"), 3, at(5));
    let hidden = builder.push_hidden(note(prompt::NOTE_INTERRUPTED), 3, at(6), true);
    assert_eq!((shown.seq, shown.turn, shown.at.0, shown.hidden), (8, 3, 5, false));
    assert_eq!((hidden.seq, hidden.hidden, hidden.interruption), (9, true, true));
    let mut window = Window::default();
    window.apply(vec![Change::Save(shown.clone()), Change::Save(hidden)]);
    assert_eq!((window.0.len(), window.visible()), (2, vec![&shown]));
}

// proves: AB-13
#[test]
fn the_clis_words_for_a_failure_are_kept_out_of_sight() {
    let mut s = Session::new();
    let line = assistant("m", Content::Text("API Error: connection closed".into()));
    let error = Some("server_error".to_string());
    let failed = AssistantLine { synthetic: true, error, ..line.clone() };
    s.see(StreamEvent::from(failed));
    assert_eq!(s.seen(), [""; 0]);
    s.see(StreamEvent::from(AssistantLine { synthetic: true, ..line }));
    assert_eq!(s.seen(), ["note API Error: connection closed"], "what is no failure is shown");
}

#[test]
fn an_interrupted_reply_ends_where_it_was_interrupted() {
    let mut s = Session::new();
    let line = assistant("m", Content::Text("Hello this".into()));
    s.see(StreamEvent::from(AssistantLine { aborted: true, ..line }));
    s.see(StreamEvent::Result(Box::default())).end_turn();
    assert_eq!(s.seen(), ["text Hello this!"]);
}

proptest! {
    #[test]
    fn events_in_any_order_leave_a_sound_window(steps in proptest::collection::vec(0usize..19, 0..60)) {
        let tool = || BlockStart::ToolUse { id: "t".into(), name: "Bash".into() };
        let mut s = Session::new();
        for step in steps {
            match step {
                0 => s.see(start("m")),
                1 => s.see(start("n")),
                2 => s.see(begin("m", 0, BlockStart::Text)),
                3 => s.see(begin("m", 1, BlockStart::Thinking)),
                4 => s.see(begin("n", 0, tool())),
                5 => s.see(text("m", 0, " -->\na\n<!-- omniscio:x")),
                6 => s.see(text("m", 1, "b ")),
                7 => s.see(text("n", 0, "c")),
                8 => s.see(abandoned("m")),
                9 => s.see(abandoned("n")),
                10 => s.see(partial("m", PartialKind::MessageStop)),
                11 => s.see(said("m", "whole")),
                12 => s.see(said("n", "")),
                13 => s.see(call("n", "t", None)),
                14 => s.see(call("n", "u", Some("t"))),
                15 => s.see(answer("t", "ok")),
                16 => s.see(StreamEvent::ThinkingTokens),
                17 => {
                    s.end_turn();
                    let open = s.seen().into_iter().filter(|line| line.starts_with('~'));
                    prop_assert!(open.into_iter().all(|line| line.starts_with("~tool u")));
                    &mut s
                }
                _ => {
                    s.cut_off();
                    prop_assert!(s.seen().iter().all(|line| !line.starts_with('~')));
                    &mut s
                }
            };
            prop_assert!(s.seen().iter().all(|line| !line.contains("<!-")));
        }
        s.cut_off();
        prop_assert!(s.builder.next_save(&s.limits).is_none());
        let numbers: Vec<u64> = s.window.0.keys().copied().collect();
        prop_assert_eq!(numbers, (1..=s.window.0.len() as u64).collect::<Vec<_>>());
    }
}

// proves: A-30
#[test]
fn the_open_blocks_of_all_sessions_are_saved_together() {
    let limits = Limits::default();
    let saves = [3, 120, 249].map(|began| {
        let mut builder = Builder::new(0);
        for event in [start("m"), begin("m", 0, BlockStart::Text), text("m", 0, "x")] {
            builder.observe(&event, 1, at(began), &limits);
        }
        builder.next_save(&limits).expect("unsaved text")
    });
    assert_eq!(saves, [Mono(1_250); 3], "none before its second is over");
}
