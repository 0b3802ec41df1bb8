//! Proves that the mock API and the pinned CLI behave together as the other tests of this target assume: turns, tools
//! and faults. It drives the CLI directly over pipes; Omniscio itself is not in it, so it proves no contract rule.

use crate::support::mock_api::{Ending, Gate, Kind, MockApi, Reply};
use crate::support::namespace::in_namespace;
use crate::support::piped_cli::PipedCli;
use crate::support::real_cli::{CliHome, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";
pub(crate) const FIRST: &str = "aaaaaaaa-2222-4333-8444-555555555555";
pub(crate) const TURN: Duration = Duration::from_secs(60);

pub(crate) fn uuid(n: usize) -> String {
    format!("cccccccc-2222-4333-8444-{n:012}")
}

/// A mock, a home, and a CLI that has answered the handshake.
pub(crate) fn start(session: &str) -> (MockApi, CliHome, PipedCli) {
    let api = MockApi::start();
    let home = CliHome::new(&api);
    let mut cli = PipedCli::launch(&home, &["--session-id", session]);
    let hello = cli.initialize();
    assert_eq!(hello["response"]["subtype"], "success", "{hello}");
    (api, home, cli)
}

/// The text of all deltas the CLI passed on.
fn streamed_text(cli: &PipedCli) -> String {
    let events = cli.seen_of("stream_event", "");
    events.iter().filter_map(|e| e["event"]["delta"]["text"].as_str()).collect()
}

fn can_use_tool(line: &Value) -> bool {
    line["type"] == "control_request" && line["request"]["subtype"] == "can_use_tool"
}

#[test]
fn a_streamed_turn() {
    in_namespace("mock_selftest::a_streamed_turn", || {
        let (api, home, mut cli) = start(SESSION);
        let reply = Reply::new().thinking("let me see").text("Hello from the mock");
        api.push(reply.usage(50, 20, 10));
        cli.send_text(FIRST, "the first message");
        let result = cli.result(TURN);
        assert_eq!(result["result"], "Hello from the mock");
        assert_eq!(result["is_error"], false);
        assert_eq!(result["user_message_uuids"], json!([FIRST]));
        assert_eq!(result["usage"]["input_tokens"], 50);
        assert_eq!(result["usage"]["cache_read_input_tokens"], 20);
        assert_eq!(result["usage"]["cache_creation_input_tokens"], 10);
        assert_eq!(streamed_text(&cli), "Hello from the mock");

        let requests = api.requests();
        assert_eq!(requests.len(), 1, "no warm-up and no title call");
        let request = &requests[0];
        assert_eq!((request.kind, request.main_index), (Kind::Main, Some(0)));
        assert_eq!(request.path, "/v1/messages?beta=true");
        assert_eq!(request.session_id(), Some(SESSION));
        assert_eq!(request.header("x-api-key"), None, "credentials are not kept");
        assert_eq!(request.last_user_text().as_deref(), Some("the first message"));
        assert_eq!(request.count_text_in_history("the first message"), 1);

        // the CLI writes its transcript a little behind its output
        let holds_uuid = |line: &Value| line["uuid"] == FIRST;
        wait_until(TURN, "the transcript holds the message", || {
            home.transcript_lines(SESSION).iter().any(holds_uuid)
        });
        assert!(cli.finish().success());
    });
}

#[test]
fn a_tool_call_is_asked_for_allowed_and_denied() {
    in_namespace("mock_selftest::a_tool_call_is_asked_for_allowed_and_denied", || {
        let (api, home, mut cli) = start(SESSION);
        let bash =
            |file: &str| json!({"command": format!("echo ran > {file}"), "description": "x"});
        api.push(Reply::new().text("I run it.").tool_use("Bash", bash("allowed.txt")));
        api.push(Reply::new().tool_use("Bash", bash("denied.txt")));
        api.push(Reply::new().text("Both are done."));
        cli.send_text(FIRST, "run them");

        let ask = cli.wait("the first question", TURN, can_use_tool);
        assert_eq!(ask["request"]["input"], bash("allowed.txt"));
        cli.answer(&ask, &json!({"behavior": "allow", "updatedInput": ask["request"]["input"]}));
        let ask = cli.wait("the second question", TURN, can_use_tool);
        cli.answer(&ask, &json!({"behavior": "deny", "message": "not this one"}));
        assert_eq!(cli.result(TURN)["result"], "Both are done.");

        assert!(home.project().join("allowed.txt").exists());
        assert!(!home.project().join("denied.txt").exists());
        let main = api.main_requests();
        assert_eq!(main.len(), 3);
        let ids = main[2].tool_use_ids();
        let results = main[2].tool_results();
        assert_eq!(ids.len(), 2);
        assert_ne!(ids[0], ids[1]);
        assert_eq!(results.iter().map(|r| r.tool_use_id.clone()).collect::<Vec<_>>(), ids);
        assert_eq!((results[0].is_error, results[1].is_error), (false, true));
        assert!(results[1].text.contains("not this one"), "{}", results[1].text);
    });
}

#[test]
fn a_dropped_stream_heals_by_a_retry() {
    in_namespace("mock_selftest::a_dropped_stream_heals_by_a_retry", || {
        let (api, _home, mut cli) = start(SESSION);
        let endings = [Ending::Fin, Ending::Rst, Ending::CleanEof];
        for (n, ending) in endings.into_iter().enumerate() {
            let text = format!("message number {n} is dropped");
            let gate = Gate::new();
            let lost = Reply::new().text("lost words come and go");
            api.push(lost.hold_after(3, &gate).drop_after(3, ending));
            api.push(Reply::new().text("healed"));
            cli.send_text(&uuid(n), &text);
            // read before the end of the connection comes, which drops what is not
            let third = |line: &Value| line["event"]["delta"]["text"] == "come ";
            cli.wait("the third word", TURN, third);
            gate.open();
            let result = cli.result(TURN);
            assert_eq!(result["result"], "healed", "{ending:?}: {result}");
            assert_eq!(cli.seen_of("system", "api_retry").len(), n + 1, "{ending:?}");
            let main = api.main_requests();
            assert_eq!(main.len(), 2 * (n + 1), "{ending:?}");
            assert!(main.iter().all(|request| request.stream()), "{ending:?}");
            let deltas = streamed_text(&cli);
            let before_the_cut = deltas.matches("lost words come").count();
            assert_eq!(before_the_cut, n + 1, "{ending:?}: {deltas}");
            assert_eq!(main[2 * n + 1].count_text_in_history(&text), 1, "{ending:?}");
        }
    });
}

#[test]
fn a_reset_before_the_headers_and_a_stream_error_end_as_scripted() {
    in_namespace(
        "mock_selftest::a_reset_before_the_headers_and_a_stream_error_end_as_scripted",
        || {
            let (api, _home, mut cli) = start(SESSION);
            api.script(|_, _| Reply::new().drop_before_headers(Ending::Rst));
            cli.send_text(&uuid(0), "nobody answers");
            let result = cli.result(TURN);
            assert_eq!(
                (&result["is_error"], &result["api_error_status"]),
                (&json!(true), &Value::Null)
            );
            assert_eq!(api.main_requests().len(), 2, "one try and one retry");

            // the fallback of a stream error is a request with `stream: false`
            api.script(|request, _| {
                let reply = Reply::new().text("whole again");
                if request.stream() { reply.sse_error_after(1, "api_error", "mock") } else { reply }
            });
            cli.send_text(&uuid(1), "once more");
            assert_eq!(cli.result(TURN)["result"], "whole again");
            let streams: Vec<bool> = api.main_requests()[2..].iter().map(|r| r.stream()).collect();
            assert_eq!(streams, [true, false]);
        },
    );
}

#[test]
fn a_hang_mid_stream_with_its_fallback_hanging_too() {
    in_namespace("mock_selftest::a_hang_mid_stream_with_its_fallback_hanging_too", || {
        let (api, _home, mut cli) = start(SESSION);
        api.script(|_, _| Reply::new().text("these words come but not these").hang_after(3));
        cli.send_text(FIRST, "hang, please");
        wait_until(TURN, "the stream hangs", || api.hanging() == 1);
        let result = cli.result(Duration::from_secs(60));
        assert_eq!(result["is_error"], true, "{result}");
        let streams: Vec<bool> = api.main_requests().iter().map(|r| r.stream()).collect();
        assert_eq!(streams, [true, false], "idle timer, then the fallback");
        wait_until(TURN, "every hanging answer ends with its client", || api.hanging() == 0);

        api.script(|_, _| Reply::new().text("healthy"));
        cli.send_text(&uuid(1), "and now");
        assert_eq!(cli.result(TURN)["result"], "healthy");
    });
}

#[test]
fn hangs_before_and_after_the_headers() {
    in_namespace("mock_selftest::hangs_before_and_after_the_headers", || {
        let (api, _home, mut cli) = start(SESSION);
        api.push(Reply::new().hang_before_headers());
        api.push(Reply::new().hang_after_headers());
        api.push(Reply::new().text("at last"));
        cli.send_text(FIRST, "take your time");
        assert_eq!(cli.result(Duration::from_secs(60))["result"], "at last");
        assert_eq!(cli.seen_of("system", "api_retry").len(), 1, "only the first hang is a timeout");
        assert_eq!(api.main_requests().len(), 3);
    });
}

#[test]
fn an_http_error_reaches_the_result() {
    in_namespace("mock_selftest::an_http_error_reaches_the_result", || {
        let (api, _home, mut cli) = start(SESSION);
        api.script(|_, _| Reply::new().error(401, "authentication_error", "invalid x-api-key"));
        cli.send_text(&uuid(0), "who am I");
        let result = cli.result(TURN);
        assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(401)));
        assert_eq!(api.main_requests().len(), 2, "one try and one retry");

        let once = Reply::new().error(529, "overloaded_error", "busy");
        api.push(once.header("x-should-retry", "false"));
        cli.send_text(&uuid(1), "again");
        assert_eq!(cli.result(TURN)["api_error_status"], 529);
        assert_eq!(api.main_requests().len(), 3, "the header forbids the retry");
    });
}

#[test]
fn a_message_of_200_kb_arrives_once_and_whole() {
    in_namespace("mock_selftest::a_message_of_200_kb_arrives_once_and_whole", || {
        let (api, _home, mut cli) = start(SESSION);
        let text: String = (0..20_000).map(|n| format!("word{n:05} ")).collect();
        assert_eq!(text.len(), 200_000);
        api.push(Reply::new().text("long"));
        cli.send_text(FIRST, &text);
        assert_eq!(cli.result(TURN)["result"], "long");
        let main = api.main_requests();
        assert_eq!(main.len(), 1);
        assert_eq!(main[0].last_user_text().as_deref(), Some(text.as_str()));
        assert_eq!(main[0].count_text_in_history(&text), 1);
    });
}

/// The CLI runs a tool as soon as its call is whole, long before the message ends; a cut after that is no retry but a
/// notice in the middle of a turn that goes on and ends well.
#[test]
fn a_cut_behind_a_whole_tool_call_does_not_end_the_turn() {
    in_namespace("mock_selftest::a_cut_behind_a_whole_tool_call_does_not_end_the_turn", || {
        let (api, home, mut cli) = start(SESSION);
        let bash = json!({"command": "echo ran >> ran.txt", "description": "x"});
        let gate = Gate::new();
        let call = Reply::new().text("I run it.").tool_use("Bash", bash);
        let at_the_end = usize::MAX;
        api.push(call.hold_after(at_the_end, &gate).drop_after(at_the_end, Ending::Fin));
        api.push(Reply::new().text("It ran."));
        cli.send_text(FIRST, "run it");
        let ask = cli.wait("the question", TURN, can_use_tool);
        cli.answer(&ask, &json!({"behavior": "allow", "updatedInput": ask["request"]["input"]}));
        gate.open();
        let result = cli.result(TURN);
        assert_eq!((&result["is_error"], &result["result"]), (&json!(false), &json!("It ran.")));
        assert!(cli.seen_of("system", "api_retry").is_empty());
        let lines = cli.seen_of("assistant", "");
        let notices = lines.iter().filter(|line| line["api_error"] == "connection_failed");
        assert_eq!(notices.count(), 1);
        assert_eq!(fs::read_to_string(home.project().join("ran.txt")).unwrap(), "ran\n");
        assert_eq!(api.main_requests()[1].tool_use_ids().len(), 1);
    });
}
