//! A context that fills up, and the ways in which the CLI shortens it. Compared with captures 90 to 94.

use super::peer::{FIRST, Home, Peer, SECOND, THIRD, kinds};
use serde_json::{Value, json};

/// Tokens and window, as the stand-in tells them.
fn usage(peer: &mut Peer) -> (Value, Value) {
    let told = peer.control(json!({"subtype": "get_context_usage", "detail": "summary"}));
    let response = &told["response"];
    assert_eq!(response["rawMaxTokens"], response["maxTokens"]);
    (response["totalTokens"].clone(), response["rawMaxTokens"].clone())
}

fn to_idle(peer: &mut Peer) -> Vec<Value> {
    peer.until(|line| line["state"] == "idle")
}

fn one<'a>(lines: &'a [Value], subtype: &str) -> &'a Value {
    let found: Vec<&Value> = lines.iter().filter(|line| line["subtype"] == subtype).collect();
    let [one] = found[..] else { panic!("{subtype}: {found:#?}") };
    one
}

#[test]
fn the_script_says_how_full_the_context_is_and_of_how_much() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    assert_eq!(usage(&mut peer), (json!(1200), json!(1_000_000)));
    peer.say(SECOND, "[[fake: usage 185000 of 200000; empty]]");
    let lines = to_idle(&mut peer);
    let start = lines.iter().find(|line| line["event"]["type"] == "message_start").unwrap();
    assert_eq!(start["event"]["message"]["usage"]["input_tokens"], 185_000);
    let result = lines.iter().find(|line| line["type"] == "result").unwrap();
    assert_eq!((&result["result"], &result["is_error"]), (&json!(""), &json!(false)));
    assert_eq!(result["modelUsage"]["claude-opus-5-5"]["contextWindow"], 200_000);
    assert_eq!(usage(&mut peer), (json!(185_000), json!(200_000)));
    // a new figure keeps the window
    peer.say(THIRD, "[[fake: usage 20000; say done]]");
    to_idle(&mut peer);
    assert_eq!(usage(&mut peer), (json!(20_000), json!(200_000)));
}

#[test]
fn the_cli_compacts_by_itself_within_a_turn_that_goes_on() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(SECOND, "[[fake: usage 92000 of 200000; compact 2700; say after it]]");
    let lines = to_idle(&mut peer);
    // capture 93, from the compaction on
    let from = lines.iter().position(|line| line["status"] == "compacting").unwrap();
    let expected = [
        "system status",
        "system compact_boundary",
        "user text",
        "system status",
        "stream_event message_start",
        "stream_event content_block_start text",
        "stream_event content_block_delta text_delta",
        "assistant text",
        "stream_event content_block_stop",
        "stream_event message_delta",
        "stream_event message_stop",
        "result success",
        "command_lifecycle completed",
        "system session_state_changed idle",
    ];
    assert_eq!(kinds(&lines[from..]), expected);
    assert_eq!(lines[from + 1]["compact_result"], "success");
    let facts = &one(&lines, "compact_boundary")["compact_metadata"];
    assert_eq!(
        (&facts["trigger"], &facts["pre_tokens"], &facts["post_tokens"]),
        (&json!("auto"), &json!(92_000), &json!(2700))
    );
    let summary = &lines[from + 3];
    assert_eq!((&summary["isSynthetic"], &summary["isReplay"]), (&json!(true), &json!(null)));
    assert_eq!(one(&lines, "success")["result"], "after it");
    assert_eq!(usage(&mut peer).0, json!(2700));
}

#[test]
fn the_message_compact_is_the_clis_own_command_and_no_attempt() {
    let home = Home::new();
    std::fs::create_dir_all(home.config()).unwrap();
    let script = "usage 80675 of 200000; say one\nsay two";
    std::fs::write(home.config().join("fake-script"), script).unwrap();
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(FIRST, "first");
    to_idle(&mut peer);
    peer.say(SECOND, "/compact");
    let lines = to_idle(&mut peer);
    // capture 90, with the lifecycle and state lines of the field guide
    let expected = [
        "command_lifecycle queued",
        "command_lifecycle started",
        "system session_state_changed running",
        "system status",
        "system init",
        "system compact_boundary",
        "user",
        "result success",
        "command_lifecycle completed",
        "system session_state_changed idle",
    ];
    assert_eq!(kinds(&lines), expected);
    let result = one(&lines, "success");
    assert_eq!(
        (&result["local_command"], &result["num_turns"], &result["result"]),
        (&json!("compact"), &json!(0), &json!(""))
    );
    assert_eq!(result.get("terminal_reason"), None);
    assert_eq!(one(&lines, "compact_boundary")["compact_metadata"]["trigger"], "manual");
    assert_eq!(usage(&mut peer).0, json!(2600));
    // the script goes on where it was
    peer.say(THIRD, "third");
    assert_eq!(peer.result()["result"], "two");
}

#[test]
fn a_compaction_that_fails_says_why_and_leaves_the_context_full() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(SECOND, "[[fake: usage 190000 of 200000; no-compact no room for it; say one]]");
    to_idle(&mut peer);
    peer.say(THIRD, "/compact");
    let lines = to_idle(&mut peer);
    // capture 94
    let expected = [
        "command_lifecycle queued",
        "command_lifecycle started",
        "system session_state_changed running",
        "system status",
        "system init",
        "assistant text",
        "result success",
        "command_lifecycle completed",
        "system session_state_changed idle",
    ];
    assert_eq!(kinds(&lines), expected);
    let status = lines.iter().find(|line| line["compact_result"] == "failed").unwrap();
    assert_eq!(
        (&status["status"], &status["compact_error"]),
        (&json!(null), &json!("no room for it"))
    );
    let result = one(&lines, "success");
    assert_eq!((&result["is_error"], &result["result"]), (&json!(false), &json!("no room for it")));
    assert_eq!(usage(&mut peer), (json!(190_000), json!(200_000)));
}
