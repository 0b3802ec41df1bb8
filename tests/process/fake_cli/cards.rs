//! Permission, question and plan: asked over the stream, answered both ways.

use super::peer::{FIRST, Home, SECOND, THIRD, kinds, of, text_of};
use serde_json::json;

#[test]
fn permission_is_asked_and_both_answers_are_heard() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    let text = "[[fake: tool Write {\"file_path\": \"/p/a.txt\", \"content\": \"hello\"} ask; say it was {answer}]]";
    peer.say(SECOND, text);
    let asked = peer.question();
    assert_eq!(asked["request"]["subtype"], "can_use_tool");
    assert_eq!(
        (&asked["request"]["tool_name"], &asked["request"]["description"]),
        (&json!("Write"), &json!("a.txt"))
    );
    peer.reply(&asked, json!({"behavior": "allow", "updatedInput": asked["request"]["input"]}));
    let result = peer.result();
    assert_eq!(
        (&result["result"], &result["permission_denials"]),
        (&json!("it was allowed"), &json!([]))
    );

    peer.say(THIRD, text);
    let asked = peer.question();
    peer.reply(&asked, json!({"behavior": "deny", "message": "operator said no"}));
    let lines = peer.until(|line| line["type"] == "result");
    let refused = &of(&lines, "user")[0]["message"]["content"][0];
    assert_eq!(
        (&refused["is_error"], &refused["content"]),
        (&json!(true), &json!("operator said no"))
    );
    assert_eq!(of(&lines, "result")[0]["permission_denials"][0]["tool_name"], "Write");

    peer.say(FIRST, text);
    let asked = peer.question();
    peer.send(
        &json!({"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}}),
    );
    let lines = peer.until(|line| line["type"] == "result");
    let order = [
        "control_cancel_request",
        "control_response",
        "user tool_result",
        "user text",
        "result error_during_execution",
    ];
    let order: Vec<String> = order.map(str::to_owned).to_vec();
    let seen: Vec<String> = kinds(&lines).into_iter().filter(|kind| order.contains(kind)).collect();
    assert_eq!(seen, order);
    assert_eq!(
        (&lines[0]["request_id"], &lines.last().unwrap()["terminal_reason"]),
        (&asked["request_id"], &json!("aborted_tools"))
    );
}

#[test]
fn questions_and_plans_are_cards_of_their_own() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST, "--permission-mode", "plan"]);
    peer.say(SECOND, "[[fake: ask-question {}; say you like {answer}]]");
    let asked = peer.question();
    assert_eq!(asked["request"]["requires_user_interaction"], true);
    let question = asked["request"]["input"]["questions"][0]["question"].as_str().unwrap();
    let questions = asked["request"]["input"]["questions"].clone();
    peer.reply(&asked, json!({"behavior": "allow", "updatedInput": {"questions": questions, "answers": {(question): "Blue"}}}));
    assert_eq!(peer.result()["result"], "you like Blue");
    peer.say(THIRD, "[[fake: plan 1. do this; say {answer}]]");
    let asked = peer.question();
    assert_eq!(
        (&asked["request"]["tool_name"], &asked["request"]["input"]["plan"]),
        (&json!("ExitPlanMode"), &json!("1. do this"))
    );
    peer.reply(&asked, json!({"behavior": "allow"}));
    let lines = peer.until(|line| line["type"] == "result");
    assert!(lines.iter().any(|line| line["permissionMode"] == "default"));
    assert_eq!(text_of(&lines), ["approved"]);
}
