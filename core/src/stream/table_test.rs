//! Lines made by hand, and exactly the events they give.

use super::captures_test::events;
use super::*;
use crate::id::Uuid;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use serde_json::{Value, json};

fn decode(text: &str) -> Vec<StreamEvent> {
    events(text.as_bytes(), &[])
}

fn chatter(text: &str) -> StreamEvent {
    StreamEvent::Chatter(text.into())
}

fn state(state: SessionState) -> StreamEvent {
    StreamEvent::SessionState(state)
}

const IDLE: &str = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;
const KEEP: &str = r#"{"type":"keep_alive"}"#;
const ID: &str = "0f3a1b2c-4d5e-4f60-8a9b-0c1d2e3f4a5b";

fn id() -> Uuid {
    ID.parse().expect("a UUID")
}

// proves: PR-04
#[test]
fn what_is_no_protocol_is_chatter() {
    let long = "x".repeat(5_000);
    for (text, expected) in [
        ("Welcome to the shell\n", vec![chatter("Welcome to the shell")]),
        ("[1,2]\n\"type\"\nnull\n", vec![chatter("[1,2]"), chatter("\"type\""), chatter("null")]),
        ("{not json\n", vec![chatter("{not json")]),
        ("{\"a\":1}\n", vec![chatter("{\"a\":1}")]),
        ("{\"type\":7}\n", vec![chatter("{\"type\":7}")]),
        ("\n  \n\r\n\t\n", vec![]),
        (long.as_str(), vec![chatter(&long[..2_000])]),
    ] {
        assert_eq!(decode(text), expected, "{text:.40}");
    }
}

// proves: PR-02, PR-04
#[test]
fn noise_around_a_line_costs_nothing_of_it() {
    let idle = || state(SessionState::Idle);
    for (text, expected) in [
        (format!("{IDLE}{KEEP}\n"), vec![idle(), StreamEvent::KeepAlive]),
        (format!("{IDLE} {KEEP}{IDLE}"), vec![idle(), StreamEvent::KeepAlive, idle()]),
        (format!("banner {IDLE} tail\n"), vec![chatter("banner"), idle(), chatter("tail")]),
        (format!("\u{1b}[?25l\u{1b}[2K{IDLE}\u{1b}[0m\n"), vec![idle()]),
        (format!("\u{1b}]0;title\u{7}{IDLE}\u{1b}]8;;\u{1b}\\\n"), vec![idle()]),
        (format!("\u{feff}{IDLE}\r\n\0\0{KEEP}\0\n"), vec![idle(), StreamEvent::KeepAlive]),
        (format!("{IDLE}\n\u{1b}[?25h"), vec![idle()]),
        (
            format!("{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"text\"}}{IDLE}\n"),
            vec![StreamEvent::Malformed { kind: "user".into() }, idle()],
        ),
    ] {
        assert_eq!(decode(&text), expected, "{text}");
    }
}

// proves: PR-02
#[test]
fn a_line_longer_than_64_kib_comes_whole_however_it_is_read() {
    let content = "x".repeat(100_000);
    let line = format!(
        "{{\"type\":\"system\",\"subtype\":\"informational\",\"content\":\"{content}\"}}\r\n"
    );
    let whole = [StreamEvent::Informational { content }];
    for step in [1, 4_096, 65_536, line.len()] {
        let cuts: Vec<usize> = (step..line.len()).step_by(step).collect();
        assert_eq!(events(line.as_bytes(), &cuts), whole, "reads of {step} bytes");
    }
}

#[test]
fn bad_utf8_stays_in_its_line() {
    let mut bytes = br#"{"type":"system","subtype":"informational","content":"a"#.to_vec();
    bytes.extend_from_slice(b"\xff\xc3b\"}\n");
    bytes.extend_from_slice(KEEP.as_bytes());
    assert_eq!(
        events(&bytes, &[]),
        [
            StreamEvent::Informational { content: "a\u{fffd}\u{fffd}b".into() },
            StreamEvent::KeepAlive
        ]
    );
}

// proves: A-01
#[test]
fn a_line_over_the_limit_is_named_and_the_stream_goes_on() {
    let pad = "y".repeat(10_000);
    let huge =
        format!(r#"{{"type":"user","message":{{"type":"no"}},"subtype":"s","pad":"{pad}"}}"#);
    let mut decoder = Decoder::new(8_000);
    let mut got = Vec::new();
    for piece in format!("{huge}\n{pad}\n{KEEP}\n").as_bytes().chunks(997) {
        got.extend(decoder.push(piece));
    }
    let prefix = huge[..200].to_string();
    let kind = Some("user".to_string());
    assert_eq!(
        got,
        [
            StreamEvent::Oversize { kind, subtype: Some("s".into()), prefix },
            StreamEvent::Oversize { kind: None, subtype: None, prefix: pad[..200].into() },
            StreamEvent::KeepAlive,
        ]
    );
}

#[test]
fn unknown_and_malformed_lines_are_named() {
    let unknown = |kind: &str, subtype: Option<&str>| StreamEvent::Unknown {
        kind: kind.into(),
        subtype: subtype.map(Into::into),
    };
    let malformed = |kind: &str| StreamEvent::Malformed { kind: kind.into() };
    let deep = format!(r#"{{"type":"user","message":{}"#, "[".repeat(500));
    for (text, expected) in [
        (r#"{"type":"news"}"#, unknown("news", None)),
        (r#"{"type":"news","subtype":"today"}"#, unknown("news", Some("today"))),
        (r#"{"type":"system","subtype":"hook_started"}"#, unknown("system", Some("hook_started"))),
        (r#"{"type":"system"}"#, unknown("system", None)),
        (r#"{"type":"assistant","message":"words"}"#, malformed("assistant")),
        (r#"{"type":"stream_event"}"#, malformed("stream_event")),
        (r#"{"type":"system","subtype":"thinking_tokens","n"#, malformed("system")),
        (r#"{"type":"result","is_error":"no"}"#, malformed("result")),
        (r#"{"type":"control_request","request":{}}"#, malformed("control_request")),
        (r#"{"type":"result","subtype":"success","is_er"#, malformed("result")),
        (deep.as_str(), malformed("user")),
    ] {
        assert_eq!(decode(text), [expected], "{text:.60}");
    }
}

#[test]
fn odd_fields_spoil_nothing_else_of_their_line() {
    let text = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":"3","result":"ok",
        "errors":[1,"e"],"usage":null,"total_cost_usd":0.0052,"duration_ms":12.9,"uuid":"UUID-4",
        "session_id":"{ID}","user_message_uuids":["{ID}",7],"stop_reason":null}}"#
    )
    .replace('\n', "");
    let expected = TurnResult {
        session_id: Some(id()),
        subtype: "success".into(),
        text: "ok".into(),
        errors: vec!["e".into()],
        messages: vec![id()],
        cost_microdollars: 5_200,
        duration_ms: 12,
        ..TurnResult::default()
    };
    assert_eq!(decode(&text), [StreamEvent::Result(Box::new(expected))]);
}

#[test]
fn the_context_window_is_that_of_the_models_init_named() {
    let result = r#"{"type":"result","is_error":false,"modelUsage":{"big":{"contextWindow":1000},"small":{"contextWindow":20}}}"#;
    let window = |text: &str| match decode(text).pop() {
        Some(StreamEvent::Result(result)) => result.context_window,
        other => panic!("{other:?}"),
    };
    assert_eq!(window(result), None);
    let init = r#"{"type":"system","subtype":"init","model":"small"}"#;
    assert_eq!(window(&format!("{init}\n{result}")), Some(20));
    let alone = r#"{"type":"result","is_error":true,"modelUsage":{"x":{"contextWindow":5}}}"#;
    assert_eq!(window(&format!("{init}\n{alone}")), Some(5));
}

#[test]
fn lines_mean_exactly_this() {
    let partial = |kind| {
        StreamEvent::Partial(Partial {
            message: Some("m".into()),
            parent: None,
            abandoned: false,
            kind,
        })
    };
    let delta = |body: Value| {
        json!({"type":"stream_event","api_message_id":"m","event":
            {"type":"content_block_delta","index":2,"delta":body}})
    };
    for (line, expected) in [
        (
            json!({"type":"command_lifecycle","command_uuid":ID,"state":"started",
                "wakeup_source":"loop_wakeup","scheduled_for":1796035920000i64}),
            StreamEvent::Lifecycle {
                command: Some(id()),
                state: LifecycleState::Started,
                wakeup_source: Some("loop_wakeup".into()),
                scheduled_for_ms: Some(1_796_035_920_000),
            },
        ),
        (
            json!({"type":"stream_event","event":{"type":"message_start","message":{"id":"m",
                "usage":{"input_tokens":10,"cache_read_input_tokens":20,
                    "cache_creation_input_tokens":3,"output_tokens":900}}}}),
            partial(PartialKind::MessageStart { context_tokens: 33 }),
        ),
        (
            delta(json!({"type":"text_delta","text":"a"})),
            partial(PartialKind::Text { index: 2, text: "a".into() }),
        ),
        (
            delta(json!({"type":"thinking_delta","thinking":"t"})),
            partial(PartialKind::Thinking { index: 2, text: "t".into() }),
        ),
        (
            delta(json!({"type":"input_json_delta","partial_json":"{"})),
            partial(PartialKind::InputJson { index: 2 }),
        ),
        (delta(json!({"type":"signature_delta"})), partial(PartialKind::Other)),
        (
            json!({"type":"stream_event","api_message_id":"m","parent_tool_use_id":"t",
                "abandoned_blocks":{"from_block_index":0},"event":{"type":"message_stop"}}),
            StreamEvent::Partial(Partial {
                message: Some("m".into()),
                parent: Some("t".into()),
                abandoned: true,
                kind: PartialKind::MessageStop,
            }),
        ),
        (
            json!({"type":"tool_progress","tool_use_id":"t-heartbeat-0","tool_name":"Bash",
                "parent_tool_use_id":"t","elapsed_time_seconds":30,"heartbeat":true}),
            StreamEvent::ToolProgress {
                tool_use: Some("t".into()),
                tool: "Bash".into(),
                elapsed_s: 30,
            },
        ),
        (
            json!({"type":"system","subtype":"permission_denied","tool_name":"Write",
                "tool_use_id":"t","message":"not allowed"}),
            StreamEvent::PermissionDenied {
                tool_use: Some("t".into()),
                tool: "Write".into(),
                message: "not allowed".into(),
            },
        ),
        (
            json!({"type":"control_request","request_id":"r","request":{"subtype":"elicitation"}}),
            StreamEvent::ControlRequest {
                request: "r".into(),
                body: ControlAsk::Unknown { subtype: "elicitation".into() },
            },
        ),
        (
            json!({"type":"control_request","request_id":"r","request":{"subtype":"mcp_message",
                "server_name":"omniscio","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}),
            StreamEvent::ControlRequest {
                request: "r".into(),
                body: ControlAsk::Mcp {
                    server: "omniscio".into(),
                    message: json!({"jsonrpc":"2.0","id":1,"method":"tools/list"}),
                },
            },
        ),
        (
            json!({"type":"control_response","response":{"subtype":"error","request_id":"r",
                "error":"no","error_code":"x"}}),
            StreamEvent::ControlResponse { request: "r".into(), answer: Err("no".into()) },
        ),
        (
            json!({"type":"control_response","response":{"subtype":"success","request_id":"r"}}),
            StreamEvent::ControlResponse { request: "r".into(), answer: Ok(Value::Null) },
        ),
        (
            json!({"type":"rate_limit_event","rate_limit_info":{"status":"rejected",
                "resetsAt":1796049000,"rateLimitType":"five_hour"}}),
            StreamEvent::RateLimit(RateLimit {
                status: "rejected".into(),
                resets_at_s: Some(1_796_049_000),
                limit: Some("five_hour".into()),
            }),
        ),
        (
            json!({"type":"system","subtype":"task_updated","task_id":"b",
                "patch":{"is_backgrounded":true}}),
            StreamEvent::Task(TaskEvent {
                task: "b".into(),
                tool_use: None,
                phase: TaskPhase::Updated,
                is_agent: false,
                background: true,
                summary: None,
            }),
        ),
    ] {
        assert_eq!(decode(&line.to_string()), [expected], "{line}");
    }
}

// proves: A-22
#[test]
fn a_tool_is_the_apps_own_by_its_name_and_by_where_it_came_from() {
    let ask = |tool: &str, server: Value| {
        let line = json!({"type":"control_request","request_id":"r","request":{
            "subtype":"can_use_tool","tool_name":tool,"tool_use_id":"t","input":{"name":"g"},
            "mcp_server":server}});
        match decode(&line.to_string()).pop() {
            Some(StreamEvent::ControlRequest { body, .. }) => body,
            other => panic!("{other:?}"),
        }
    };
    let sdk = || json!({"name":"omniscio","source":"sdk"});
    for tool in ["spawn_worker", "list_workers", "open_gate", "close_gate"] {
        let ours = ask(&alloc::format!("mcp__omniscio__{tool}"), sdk());
        assert_eq!(ours, ControlAsk::UseOwnTool { input: json!({"name":"g"}) }, "{tool}");
    }
    for (tool, server) in [
        ("mcp__omniscio__format_disk", sdk()),
        ("mcp__omniscio__", sdk()),
        ("open_gate", sdk()),
        ("mcp__other__open_gate", sdk()),
        ("mcp__omniscio__open_gate", json!({"name":"omniscio","source":"project"})),
        ("mcp__omniscio__open_gate", json!({"name":"other","source":"sdk"})),
        ("mcp__omniscio__open_gate", Value::Null),
    ] {
        let asked = ask(tool, server);
        assert!(matches!(asked, ControlAsk::CanUseTool { .. }), "{asked:?}");
    }
}

#[test]
fn tool_results_say_who_refused() {
    let line = json!({"type":"user","message":{"content":[
            {"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"},
            {"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"},{"type":"image"}]},
            {"type":"text","text":"note"}]},
        "isSynthetic":true,"tool_use_result":{"nextFireAt":1796035980000i64,"id":"c1","recurring":true},
        "tool_result_meta":[
            {"id":"a","permission_decision":{"decision":"reject","source":"user_reject"}},
            {"id":"b","permission_decision":{"decision":"reject","source":"config"}}]});
    let expected = UserEcho {
        uuid: None,
        parent: None,
        synthetic: true,
        replay: false,
        text: Some("note".into()),
        results: vec![
            ToolResult { tool_use: "a".into(), text: "no".into(), failed: true, denied: true },
            ToolResult {
                tool_use: "b".into(),
                text: "x\n[image]".into(),
                failed: false,
                denied: false,
            },
        ],
        wakes: Some(WakeSet { at_ms: 1_796_035_980_000, cron: Some("c1".into()), recurring: true }),
    };
    assert_eq!(decode(&line.to_string()), [StreamEvent::from(expected)]);
}
