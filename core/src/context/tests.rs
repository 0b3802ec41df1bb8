//! The reading by every source, in every order.

use super::*;
use crate::id::Uuid;
use crate::stream::{AssistantLine, Content, Partial};
use alloc::vec;
use serde_json::json;

fn message(tokens: u64, parent: Option<&str>) -> StreamEvent {
    StreamEvent::Partial(Partial {
        message: Some("m".into()),
        parent: parent.map(Into::into),
        abandoned: false,
        kind: PartialKind::MessageStart { context_tokens: tokens },
    })
}

fn line(tokens: u64, synthetic: bool) -> StreamEvent {
    StreamEvent::from(AssistantLine {
        uuid: Some(Uuid(1)),
        message: "m".into(),
        synthetic,
        parent: None,
        content: vec![Content::Text("x".into())],
        context_tokens: tokens,
        stop_reason: None,
        error: None,
        api_error: None,
        status: None,
        cut: None,
        aborted: false,
    })
}

fn boundary() -> StreamEvent {
    StreamEvent::CompactBoundary { trigger: "auto".into() }
}

fn known(tokens: u64, window: u64) -> Option<ContextUsage> {
    Some(ContextUsage { tokens, window })
}

// proves: A-08, CW-01, CW-02
#[test]
fn the_larger_of_both_sources_counts_and_a_boundary_makes_it_unknown() {
    let mut reading = ContextReading::default();
    let read = |reading: &ContextReading| resolve_context_warning_usage(reading);
    assert_eq!(read(&reading), None, "nothing was read");
    reading.observe(&message(180_000, None));
    assert_eq!(read(&reading), None, "of an unknown window");
    reading.set_window(Some(200_000));
    assert_eq!(read(&reading), known(180_000, 200_000));
    // the rounded percentage is not used, and reads low after an empty finish
    reading.answered(&json!({"totalTokens": 185_000, "rawMaxTokens": 190_000, "percentage": 55}));
    assert_eq!(read(&reading), known(185_000, 190_000));
    reading.answered(&json!({"totalTokens": 20, "rawMaxTokens": 200_000}));
    assert_eq!(read(&reading), known(180_000, 200_000), "what was sent counts too");
    for nothing in
        [json!({"totalTokens": 1}), json!({"rawMaxTokens": 0, "totalTokens": 1}), json!(7)]
    {
        reading.answered(&nothing);
        assert_eq!(read(&reading), known(180_000, 200_000), "{nothing}");
    }
    reading.observe(&message(190_000, Some("agent")));
    reading.observe(&line(0, false));
    reading.observe(&line(3, true));
    assert_eq!(read(&reading), known(180_000, 200_000), "a sub-agent has a context of its own");

    reading.observe(&boundary());
    assert_eq!(read(&reading), None);
    reading.answered(&json!({"totalTokens": 9_000, "rawMaxTokens": 200_000}));
    assert_eq!(read(&reading), None, "no message has come since");
    reading.observe(&line(30_000, false));
    assert_eq!(read(&reading), known(30_000, 200_000));
    reading.observe(&StreamEvent::ConversationReset { new_id: None });
    assert_eq!(read(&reading), None);

    let mut remembered = ContextReading::remembered(known(5, 10));
    assert_eq!(read(&remembered), known(5, 10));
    remembered.forget();
    assert_eq!(read(&remembered), None);
    remembered.observe(&message(7, None));
    assert_eq!(read(&remembered), known(7, 10), "the window stays known");
}

// proves: CS-02, CW-03
#[test]
fn the_limits_are_exact_and_the_levels_follow_them() {
    for (tokens, percent, level) in [
        (0, 0, ContextLevel::Calm),
        (149_999, 74, ContextLevel::Calm),
        (150_000, 75, ContextLevel::Amber),
        (179_980, 89, ContextLevel::Amber),
        (179_999, 89, ContextLevel::Amber),
        (180_000, 90, ContextLevel::Red),
        (u64::MAX, 9_223_372_036_854_775, ContextLevel::Red),
    ] {
        let usage = ContextUsage { tokens, window: 200_000 };
        assert_eq!((usage.percent(), usage.level()), (percent, level), "{tokens}");
        assert_eq!(usage.at_least(CONTEXT_STALL_RECOVER_PERCENT), level == ContextLevel::Red);
    }
}
