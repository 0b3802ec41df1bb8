//! Launch, handshake, the order of a turn, interrupt and queue. Compared with the recordings, not with the supervisor.

use super::peer::{FAKE, FIRST, Home, SECOND, THIRD, kinds, of};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::process::Command;

#[test]
fn refuses_a_terminal_on_stdin_and_names_its_version() {
    let pair = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).unwrap();
    let mut command = portable_pty::CommandBuilder::new(FAKE);
    command.args("-p --input-format stream-json --output-format stream-json --verbose".split(' '));
    let mut child = pair.slave.spawn_command(command).unwrap();
    assert_eq!(child.wait().unwrap().exit_code(), 1);
    let version = Command::new(FAKE).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&version.stdout), "2.1.332 (fake)\n");
}

#[test]
fn says_nothing_before_it_is_spoken_to_and_answers_the_handshake() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    let hello = peer.control(json!({"subtype": "initialize"}));
    assert_eq!(hello["response"]["pid"], peer.child.id());
    assert!(hello["response"]["models"].as_array().is_some_and(|models| !models.is_empty()));
    let status = home.config().join("sessions").join(format!("{}.json", peer.child.id()));
    let status: Value = serde_json::from_str(&fs::read_to_string(status).unwrap()).unwrap();
    assert_eq!(
        (status["sessionId"].as_str(), status["status"].as_str()),
        (Some(FIRST), Some("idle"))
    );
    assert_eq!(
        peer.control(json!({"subtype": "set_model", "model": "m"}))["response"]["model"],
        "m"
    );
    assert_eq!(
        peer.control(json!({"subtype": "get_context_usage"}))["response"]["totalTokens"],
        1200
    );
    assert_eq!(peer.control(json!({"subtype": "no_such"}))["error_code"], "unsupported_request");
    let mode = peer.control(json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}));
    assert_eq!(mode["error_code"], "bypass_not_launched");
    peer.stdin = None;
    assert!(peer.exit().success());
    assert_eq!(kinds(&peer.rest()), Vec::<String>::new());
}

#[test]
fn a_turn_comes_in_the_recorded_order() {
    let home = Home::new();
    let text = "[[fake: think 4; say Hello this is a streamed answer; tool Bash {\"command\": \"echo hi\"}; say done.]]";
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(SECOND, text);
    let lines = peer.until(|line| line["state"] == "idle");
    // capture 01, its two turns as one, with the lifecycle and state lines of the field guide
    let expected = [
        "command_lifecycle queued",
        "command_lifecycle started",
        "system session_state_changed running",
        "system init",
        "system status",
        "stream_event message_start",
        "stream_event content_block_start thinking",
        "system thinking_tokens",
        "stream_event content_block_delta thinking_delta",
        "assistant thinking",
        "stream_event content_block_stop",
        "stream_event content_block_start text",
        "stream_event content_block_delta text_delta",
        "assistant text",
        "stream_event content_block_stop",
        "stream_event content_block_start tool_use",
        "stream_event content_block_delta input_json_delta",
        "assistant tool_use",
        "stream_event content_block_stop",
        "stream_event message_delta",
        "stream_event message_stop",
        "user tool_result",
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
    let mut seen = kinds(&lines);
    // thinking alternates between its two kinds of line
    while let Some(at) = seen
        .windows(3)
        .position(|three| three[0] == three[2] && three[0].ends_with("thinking_tokens"))
    {
        seen.drain(at..at + 2);
    }
    assert_eq!(seen, expected);
    let result = of(&lines, "result")[0];
    assert_eq!(result["user_message_uuids"], json!([SECOND]));
    assert_eq!((result["result"].as_str(), result["num_turns"].as_u64()), (Some("done."), Some(2)));
    assert_eq!(result["modelUsage"]["claude-opus-5-5"]["contextWindow"], 1_000_000);
    let kept = home.transcript(FIRST);
    let roles: Vec<&str> = kept.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "assistant", "assistant", "user", "assistant"]);
    assert_eq!(kept[0]["uuid"], SECOND);
    assert!(kept.windows(2).all(|two| two[1]["parentUuid"] == two[0]["uuid"]));
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_process() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(SECOND, "[[fake: partial Hello this is; hang]]");
    peer.until(|line| line["event"]["delta"]["text"] == "is");
    peer.send(
        &json!({"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}}),
    );
    let lines = peer.until(|line| line["state"] == "idle");
    let expected = [
        "control_response",
        "assistant text",
        "user text",
        "stream_event content_block_stop",
        "stream_event message_delta",
        "stream_event message_stop",
        "result error_during_execution",
        "command_lifecycle cancelled",
        "system session_state_changed idle",
    ];
    assert_eq!(kinds(&lines), expected);
    assert_eq!(
        (&lines[1]["aborted"], &lines[6]["terminal_reason"]),
        (&json!(true), &json!("aborted_streaming"))
    );
    peer.say(THIRD, "[[fake: say next ok]]");
    assert_eq!(peer.result()["result"], "next ok");
}

#[test]
fn messages_sent_meanwhile_make_one_turn_and_a_repeated_uuid_none() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(FIRST, "[[fake: tool Write {} ask; say one]]");
    let asked = peer.question();
    peer.say(SECOND, "two");
    peer.say(THIRD, "[[fake: say both]] three");
    peer.say(THIRD, "[[fake: say both]] three");
    peer.reply(&asked, json!({"behavior": "allow"}));
    let first = peer.result();
    assert_eq!(
        (&first["user_message_uuids"], &first["queued_turn_count"]),
        (&json!([FIRST]), &json!(2))
    );
    let second = peer.result();
    assert_eq!(
        (&second["result"], &second["user_message_uuids"]),
        (&json!("both"), &json!([SECOND, THIRD]))
    );
    peer.stdin = None;
    assert_eq!(of(&peer.rest(), "result").len(), 0);
    // an answered message is not run again after a restart either
    assert_eq!(
        kinds(&home.ask(&["--resume", FIRST], SECOND, "two")),
        ["command_lifecycle completed"]
    );
}

#[test]
fn refuses_unknown_and_taken_sessions() {
    let home = Home::new();
    let mut peer = home.start(&["--resume", FIRST]);
    let lines = peer.rest();
    assert_eq!(kinds(&lines), ["result error_during_execution"]);
    assert_eq!(
        (lines[0]["num_turns"].as_u64(), lines[0]["is_error"].as_bool()),
        (Some(0), Some(true))
    );
    assert_eq!(peer.exit().code(), Some(1));
    home.ask(&["--session-id", FIRST], SECOND, "[[fake: say x]]");
    let mut peer = home.start(&["--session-id", FIRST]);
    assert_eq!(peer.exit().code(), Some(1));
    let mut chatter = String::new();
    peer.child.stderr.take().unwrap().read_to_string(&mut chatter).unwrap();
    assert!(chatter.contains("already in use"), "{chatter}");
    assert!(peer.rest().is_empty());
}
