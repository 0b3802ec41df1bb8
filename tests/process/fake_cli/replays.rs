//! Attempts are counted across restarts, new sessions and forks, and a continuation repeats nothing.

use super::peer::{CONTINUE, FIRST, Home, SECOND, THIRD, kinds, of, text_of};
use serde_json::{Value, json};
use std::fs;

#[test]
fn fails_twice_then_works_across_new_sessions_and_forks() {
    let home = Home::new();
    let text = "[[fake: fail-first 2; say The whole long answer is here and it is good.]] please";
    let cut = home.ask(&["--session-id", FIRST], SECOND, text);
    assert!(
        of(&cut, "result").is_empty()
            && kinds(&cut).iter().any(|kind| kind.ends_with("text_delta"))
    );
    // a first message is replayed in a new session
    assert!(of(&home.ask(&["--session-id", SECOND], FIRST, text), "result").is_empty());
    let good = home.ask(&["--session-id", THIRD], FIRST, text);
    assert_eq!(text_of(&good), ["The whole long answer is here and it is good."]);
    let last_good = of(&good, "assistant").last().unwrap()["uuid"].as_str().unwrap().to_owned();

    // a later message is replayed in a fork that is cut after the last good answer
    let resume = ["--resume", THIRD];
    assert!(of(&home.ask(&resume, SECOND, "[[fake: fail-first 1]] next"), "result").is_empty());
    let new = "44444444-4444-4444-8444-444444444444";
    let fork = [
        "--resume",
        THIRD,
        "--fork-session",
        "--session-id",
        new,
        "--resume-session-at",
        &last_good,
    ];
    let answered =
        home.ask(&fork, "55555555-5555-4555-8555-555555555555", "[[fake: fail-first 1]] next");
    assert_eq!(text_of(&answered), ["This is the whole answer to: next"]);
    let questions = home.transcript(new).into_iter().filter(|line| line["type"] == "user").count();
    assert_eq!(questions, 2, "the cut-off try is not in the fork");
}

#[test]
fn a_continuation_does_not_repeat_tools_and_keeps_the_cut_off_call() {
    let home = Home::new();
    let text = "[[fake: tool Edit {\"file_path\": \"a\"}; fail-first 1; tool Edit {\"file_path\": \"b\"}; say both]]";
    assert!(of(&home.ask(&["--session-id", FIRST], SECOND, text), "result").is_empty());
    let fork = ["--resume", FIRST, "--fork-session", "--session-id", SECOND];
    let lines = home.ask(&fork, THIRD, CONTINUE);
    assert_eq!(text_of(&lines), ["both"]);
    let calls: Vec<&Value> = of(&lines, "assistant")
        .into_iter()
        .filter(|line| line["message"]["content"][0]["type"] == "tool_use")
        .collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["message"]["content"][0]["input"]["file_path"], "b");

    let mut peer = home.start(&["--session-id", THIRD]);
    peer.say(FIRST, "[[fake: tool Write {} ask; say x]]");
    peer.question();
    peer.child.kill().unwrap();
    let fork = ["--resume", THIRD, "--fork-session"];
    let lines = home.ask(&fork, SECOND, "[[fake: say new]]");
    let new = lines[0]["session_id"].as_str().unwrap();
    let kept = home.transcript(new).iter().map(Value::to_string).collect::<String>();
    assert!(kept.contains("outcome is unknown"), "{kept}");
}

#[test]
fn a_script_file_has_one_line_per_attempt() {
    let home = Home::new();
    fs::create_dir_all(home.config()).unwrap();
    fs::write(home.config().join("fake-script"), "# a script\nkill\n\nlost\nsay third\n").unwrap();
    assert!(of(&home.ask(&["--session-id", FIRST], FIRST, "hello"), "result").is_empty());
    let fork = ["--resume", FIRST, "--fork-session", "--session-id", SECOND];
    let lost = home.ask(&fork, SECOND, CONTINUE);
    assert_eq!(kinds(&lost), ["command_lifecycle queued", "command_lifecycle started"]);
    let kept = home.transcript(FIRST).len();
    assert_eq!(kept, 1, "the lost message reached no transcript");
    // the fork has no file, so the same fork is made again
    assert_eq!(text_of(&home.ask(&fork, SECOND, CONTINUE)), ["third"]);
}

#[test]
fn without_a_directive_the_first_message_is_cut_off_once_and_then_answered() {
    let home = Home::new();
    let cut = home.ask(&["--session-id", FIRST], FIRST, "What is this?");
    assert!(of(&cut, "result").is_empty() && of(&cut, "assistant").is_empty());
    let answer = home.ask(&["--session-id", SECOND], SECOND, "What is this?");
    let text = text_of(&answer)[0].to_owned();
    assert!(
        text.contains("stand-in") && text.contains("no model") && text.contains("What is this?"),
        "{text}"
    );
    let mut peer = home.start(&["--resume", SECOND]);
    peer.say(THIRD, "Please show me a permission card");
    let asked = peer.question();
    peer.reply(&asked, json!({"behavior": "deny", "message": "no thanks"}));
    let text = peer.result()["result"].as_str().unwrap().to_owned();
    assert!(text.contains("no thanks") && text.contains("seen 1 message"), "{text}");
}
