//! Proves what the other tests rely on around the CLI: gates, kinds of requests, the end of the mock, the namespace.
//! Omniscio itself is not in it, so it proves no contract rule.

use crate::mock_selftest::{FIRST, SESSION, TURN, start, uuid};
use crate::support::mock_api::{Gate, Kind, MockApi, Reply};
use crate::support::namespace::in_namespace;
use crate::support::piped_cli::PipedCli;
use crate::support::real_cli::{wait_for, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::parent_id;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::{env, fs, process};

const OTHER_SESSION: &str = "22222222-2222-4333-8444-555555555555";

#[test]
fn two_clis_are_held_at_a_gate_and_told_apart() {
    in_namespace("ground_selftest::two_clis_are_held_at_a_gate_and_told_apart", || {
        let (api, home, mut one) = start(SESSION);
        let mut two = PipedCli::launch(&home, &["--session-id", OTHER_SESSION]);
        let gate = Gate::new();
        let held = gate.clone();
        api.script(move |request, _| {
            let name = request.session_id().unwrap_or_default().to_owned();
            Reply::new().text("held in the").hold(&held).text(&format!("middle of {name}")).pause(5)
        });
        one.send_text(FIRST, "one");
        two.send_text(FIRST, "two");
        wait_until(TURN, "both stand at the gate", || gate.arrivals() == 2);
        let delta = |line: &Value| line["event"]["delta"]["text"] == "the";
        one.wait("the delta before the gate", TURN, delta);
        assert!(one.seen_of("assistant", "").is_empty(), "the held block is not closed");
        gate.open();
        assert_eq!(one.result(TURN)["result"], format!("middle of {SESSION}"));
        assert_eq!(two.result(TURN)["result"], format!("middle of {OTHER_SESSION}"));
        wait_until(TURN, "each has its transcript", || home.transcripts().len() == 2);
        assert!(home.transcript(OTHER_SESSION).is_some());
    });
}

#[test]
fn requests_that_are_no_step_are_told_apart() {
    in_namespace("ground_selftest::requests_that_are_no_step_are_told_apart", || {
        let (api, _home, mut cli) = start(SESSION);
        api.push(Reply::new().text("a first answer"));
        cli.send_text(&uuid(0), "something to sum up");
        cli.result(TURN);
        cli.send(&json!({
            "type": "control_request", "request_id": "usage",
            "request": {"subtype": "get_context_usage", "detail": "full"},
        }));
        cli.wait("the context usage", TURN, |line| line["response"]["request_id"] == "usage");
        cli.send_text(&uuid(1), "/compact");
        let result = cli.result(TURN);
        assert_eq!(result["local_command"], "compact", "{result}");
        let count = |kind: Kind| api.requests().iter().filter(|r| r.kind == kind).count();
        assert!(count(Kind::CountTokens) > 0);
        assert_eq!((count(Kind::Main), count(Kind::Compact)), (1, 1));
        assert_eq!(count(Kind::Side) + count(Kind::Unknown), 0);

        let work = json!({
            "description": "look", "prompt": "look around", "subagent_type": "Explore",
            "run_in_background": false,
        });
        api.push(Reply::new().tool_use("Agent", work));
        api.push(Reply::new().text("The subagent is done."));
        api.script_side(|request, _| {
            assert_eq!(request.last_user_text().as_deref(), Some("look around"));
            Reply::new().text("I looked")
        });
        cli.send_text(&uuid(2), "send somebody");
        assert_eq!(cli.result(TURN)["result"], "The subagent is done.");
        assert_eq!((count(Kind::Main), count(Kind::Subagent)), (3, 1));
        let told = &api.main_requests()[2].tool_results()[0].text;
        assert!(told.contains("I looked"), "{told}");
        assert_eq!(api.unscripted(), 0);
    });
}

#[test]
fn dropping_the_mock_ends_what_hangs_and_tells_of_a_failed_script() {
    let api = MockApi::start();
    api.push(Reply::new().hang_before_headers());
    let body = json!({"tools": [{"name": "x"}], "stream": true});
    let client = send_post(&api, "/v1/messages", &body);
    wait_until(TURN, "the answer hangs", || api.hanging() == 1);
    drop(api);
    assert_eq!(rest_of(client), "");

    let api = MockApi::start();
    api.script(|_, _| panic!("an assertion in a script"));
    assert_eq!(post(&api, "/v1/messages", &body), "");
    let told = panic::catch_unwind(AssertUnwindSafe(|| drop(api)));
    assert!(told.is_err(), "the failure of a script fails the test");
}

#[test]
fn unknown_paths_are_not_found() {
    let api = MockApi::start();
    for method in ["GET", "HEAD"] {
        let mut client = TcpStream::connect(api.base_url().trim_start_matches("http://")).unwrap();
        write!(client, "{method} /api/hello HTTP/1.1\r\nauthorization: Bearer x\r\n\r\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let answer = rest_of(client);
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert_eq!(answer.ends_with("\r\n\r\n"), method == "HEAD", "{answer}");
    }
    assert!(api.requests().iter().all(|r| r.kind == Kind::Unknown && r.headers.is_empty()));
}

#[test]
fn what_a_test_leaves_in_its_namespace_is_ended() {
    let note = |outer: u32| env::temp_dir().join(format!("omniscio-left-behind-{outer}"));
    in_namespace("ground_selftest::what_a_test_leaves_in_its_namespace_is_ended", || {
        let mut shell = process::Command::new("sh");
        let left = shell.args(["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]).output().unwrap();
        fs::write(note(parent_id()), left.stdout).unwrap();
    });
    // only the outer half comes here with a note of its own
    let note = note(process::id());
    if let Ok(pid) = fs::read_to_string(&note) {
        fs::remove_file(&note).unwrap();
        let status = Path::new("/proc").join(pid.trim()).join("status");
        wait_for(TURN, "the process left behind ends", || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            (!text.contains("sleep") || text.contains("zombie")).then_some(())
        });
    }
}

#[test]
fn a_path_that_names_no_test_fails() {
    let failed =
        panic::catch_unwind(|| in_namespace("ground_selftest::there_is_no_such_test", || {}));
    assert!(failed.is_err());
}

fn send_post(api: &MockApi, path: &str, body: &Value) -> TcpStream {
    let mut client = TcpStream::connect(api.base_url().trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    write!(client, "POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    client
}

fn post(api: &MockApi, path: &str, body: &Value) -> String {
    let client = send_post(api, path, body);
    client.shutdown(Shutdown::Write).unwrap();
    rest_of(client)
}

fn rest_of(mut client: TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_request_without_a_scripted_reply_is_refused_and_counted() {
    let api = MockApi::start();
    let answer = post(&api, "/v1/messages?beta=true", &json!({"tools": [{"name": "x"}]}));
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("no reply"), "{answer}");
    assert_eq!(api.unscripted(), 1);
}
