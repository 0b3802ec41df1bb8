//! Turns that fail, noise on the stream, ends that are no ends. Nothing here waits for the supervisor.

use super::peer::{FIRST, Home, PATIENCE, Peer, SECOND, THIRD, of, run, text_of};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn turns_that_fail_do_it_as_recorded() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    let facts = |result: &Value| {
        (
            result["is_error"].clone(),
            result["terminal_reason"].clone(),
            result["api_error_status"].clone(),
            result["api_error"].clone(),
        )
    };
    let mut number = 0;
    let mut ask = |peer: &mut Peer, steps: &str| {
        number += 1;
        peer.say(&format!("00000000-0000-4000-8000-{number:012}"), &format!("[[fake: {steps}]]"));
    };
    ask(&mut peer, "drop");
    let lines = peer.until(|line| line["type"] == "result");
    assert_eq!(
        facts(lines.last().unwrap()),
        (json!(true), json!("api_error"), json!(null), json!("connection_failed"))
    );
    assert!(lines.iter().any(|line| line["abandoned_blocks"]["from_block_index"] == 0));
    assert_eq!(of(&lines, "assistant")[0]["message"]["model"], "<synthetic>");
    ask(&mut peer, "api-error 529 server_error Overloaded");
    assert_eq!(facts(&peer.result()), (json!(true), json!("api_error"), json!(529), json!(null)));
    ask(&mut peer, "limit 3600");
    let lines = peer.until(|line| line["type"] == "result");
    assert!(
        of(&lines, "rate_limit_event")[0]["rate_limit_info"]["resetsAt"]
            .as_u64()
            .is_some_and(|at| at > 3600)
    );
    assert_eq!(facts(lines.last().unwrap()).3, json!("usage_limit_reached"));
    ask(&mut peer, "empty");
    let result = peer.result();
    assert_eq!(
        (&result["is_error"], &result["result"], &result["num_turns"]),
        (&json!(false), &json!(""), &json!(2))
    );
    ask(&mut peer, "say all of it; no-result");
    peer.until(|line| line["event"]["type"] == "message_stop");
    ask(&mut peer, "fail-first 1 api-error 500 server_error; say works");
    assert_eq!(peer.result()["is_error"], true);
    ask(&mut peer, "fail-first 1 api-error 500 server_error; say works");
    assert_eq!(peer.result()["result"], "works");
    peer.stdin.as_mut().unwrap().write_all(b"{no json\n").unwrap();
    assert_eq!(peer.exit().code(), Some(1));
}

#[test]
fn noise_reaches_the_reader_and_the_turn_survives_it() {
    let home = Home::new();
    let lines = home.ask(
        &["--session-id", FIRST],
        SECOND,
        "[[fake: garbage; split; say grün; long 300000; usage 500000; say äh]]",
    );
    assert_eq!(text_of(&lines), ["äh"]);
    assert!(lines.iter().filter(|line| line["chatter"] == true).count() >= 2);
    let long = lines.iter().find(|line| line["subtype"] == "informational").unwrap();
    assert_eq!(
        long.to_string().len() - long["content"].as_str().unwrap().len(),
        r#"{"content":"","subtype":"informational","type":"system"}"#.len()
    );
    assert!(long["content"].as_str().unwrap().len() > 299_000);
}

#[test]
fn an_end_of_output_is_no_end_of_the_process() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    peer.say(SECOND, "[[fake: eof; say Hello this is never said]]");
    assert!(of(&peer.rest(), "result").is_empty());
    assert!(peer.is_alive());
    peer.stdin = None;
    peer.exit();
}

#[test]
#[cfg(target_os = "linux")]
fn sigterm_can_be_ignored_and_a_tool_outlives_a_kill() {
    let home = Home::new();
    let mut peer = home.start(&["--session-id", FIRST]);
    let pid = peer.child.id();
    peer.say(SECOND, "[[fake: ignore-term; bash 600; say x]]");
    peer.until(|line| line["message"]["content"][0]["name"] == "Bash");
    let tool = wait_for_tool(FIRST, pid);
    let stat = fs::read_to_string(format!("/proc/{tool}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(
        (fields[2], fields[3]),
        (&*tool.to_string(), &*tool.to_string()),
        "a group and a session of its own"
    );
    run("kill", &["-TERM", &pid.to_string()]);
    assert!(
        peer.control(json!({"subtype": "initialize"}))["response"]["pid"] == pid,
        "it still serves"
    );
    peer.child.kill().unwrap();
    peer.exit();
    assert!(Path::new(&format!("/proc/{tool}")).exists());
    run("kill", &["-KILL", &tool.to_string()]);
}

#[test]
fn a_start_file_befalls_every_start() {
    let home = Home::new();
    home.ask(&["--session-id", FIRST], SECOND, "[[fake: say Hello.]]");
    let befalls = home.config().join("fake-start");
    fs::write(&befalls, "stderr not today; pause 1; die 3").unwrap();
    assert_eq!(home.start(&["--resume", FIRST]).exit().code(), Some(3));
    fs::write(&befalls, "freeze").unwrap();
    let mut frozen = home.start(&["--resume", FIRST]);
    frozen.stdin = None;
    assert!(frozen.is_alive(), "it does not see the end of its input");
    drop(frozen);
    fs::write(&befalls, "forget").unwrap();
    let mut peer = home.start(&["--resume", FIRST]);
    let lines = peer.rest();
    assert_eq!(lines[0]["errors"][0], format!("No conversation found with session ID: {FIRST}"));
    assert_eq!(peer.exit().code(), Some(1));
    fs::write(&befalls, "forget quiet").unwrap();
    let mut peer = home.start(&["--resume", FIRST]);
    assert_eq!((peer.rest(), peer.exit().code()), (vec![], Some(1)));
    // a conversation that is not resumed is not touched
    let answered = home.ask(&["--session-id", THIRD], SECOND, "[[fake: say Hello.]]");
    assert_eq!(text_of(&answered), ["Hello."]);
}

/// The process that carries the marks of a Bash tool of this session.
#[cfg(target_os = "linux")]
fn wait_for_tool(session: &str, cli: u32) -> u32 {
    let start = Instant::now();
    let marks = [format!("CLAUDE_CODE_SESSION_ID={session}"), format!("CLAUDE_PID={cli}")];
    loop {
        let ids = fs::read_dir("/proc").unwrap().flatten();
        let mut ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let marked = |id: &u32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let is_sleep =
                fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name == "sleep\n");
            is_sleep && marks.iter().all(|mark| environment.split('\0').any(|entry| entry == mark))
        };
        if let Some(id) = ids.find(marked) {
            return id;
        }
        assert!(start.elapsed() < PATIENCE, "no tool came");
        std::thread::sleep(Duration::from_millis(10));
    }
}
