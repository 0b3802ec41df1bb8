//! What a turn shows, event by event.

use super::*;
use alloc::vec;
use serde_json::json;

fn line(message: &str, content: Content) -> StreamEvent {
    StreamEvent::from(AssistantLine {
        uuid: Some(Uuid(9)),
        message: message.to_string(),
        synthetic: false,
        parent: None,
        content: vec![content],
        context_tokens: 1200,
        stop_reason: None,
        error: None,
        api_error: None,
        status: None,
        cut: None,
        aborted: false,
    })
}

fn observe(facts: &mut TurnFacts, events: &[StreamEvent]) {
    for event in events {
        facts.observe(event, Mono(5), &Limits::default());
    }
}

fn tool_use() -> StreamEvent {
    let input = json!({"command": "cargo test\nmore"});
    line("m1", Content::ToolUse { id: "t1".into(), name: "Bash".into(), input })
}

fn tool_result() -> StreamEvent {
    StreamEvent::from(UserEcho {
        uuid: None,
        parent: None,
        synthetic: false,
        replay: false,
        text: None,
        results: vec![crate::stream::ToolResult {
            tool_use: "t1".into(),
            text: "ok".into(),
            failed: false,
            denied: false,
        }],
        wakes: None,
    })
}

// proves: PR-08
#[test]
fn delivered_is_text_of_the_final_message_after_the_last_tool_result() {
    let mut facts = TurnFacts::new(1, Some(Origin::Operator), Mono(0));
    observe(&mut facts, &[line("m1", Content::Text("let me see".into())), tool_use()]);
    assert!(!facts.delivered(), "text before a tool is no answer");
    assert_eq!(facts.activity(), Activity::Tool("cargo test".into()));
    observe(&mut facts, &[tool_result()]);
    assert!(!facts.delivered() && facts.tools.is_empty());
    observe(&mut facts, &[line("m2", Content::Thinking("hm".into()))]);
    assert!(!facts.delivered());
    observe(&mut facts, &[line("m3", Content::Text("  done ".into()))]);
    assert!(facts.delivered());
    assert_eq!(facts.last_block, Some(LastBlock::Text));
}

#[test]
fn a_marker_without_text_after_it_delivers_nothing() {
    let mut facts = TurnFacts::new(1, None, Mono(0));
    observe(&mut facts, &[line("m1", Content::Text("<!-- omniscio:final-message -->\n".into()))]);
    assert!(facts.final_marker && !facts.delivered());
}

#[test]
fn details_are_one_short_line() {
    assert_eq!(tool_detail(&json!({"file_path": "/a/b.rs"})), "/a/b.rs");
    assert_eq!(tool_detail(&json!({})), "");
    let long = tool_detail(&json!({"command": "x".repeat(200)}));
    assert_eq!(long.chars().count(), 80);
}
