//! The lines this app writes to a child's stdin: one valid JSON object each, with its newline. A bad
//! line would kill the child (A-10), so nothing else writes any.

use crate::id::Uuid;
use crate::supervisor::{Control, mcp};
use alloc::string::{String, ToString};
use serde_json::{Value, json};

/// A message of the person or of the app, under the uuid that a `result` will name.
pub fn user_line(uuid: Uuid, text: &str) -> String {
    line(json!({
        "type": "user",
        "uuid": uuid.to_string(),
        "message": { "role": "user", "content": text },
    }))
}

/// A control request of ours, or the answer to one of the CLI.
pub fn control_line(control: &Control) -> String {
    // rule: A-10
    line(match control {
        // rule: A-22
        Control::Initialize { request } => json!({
            "type": "control_request",
            "request_id": request,
            "request": { "subtype": "initialize", "sdkMcpServers": [mcp::SERVER] },
        }),
        Control::Interrupt { request } => ask(request, "interrupt"),
        // rule: A-08
        // the full answer would ask the API to count
        Control::ContextUsage { request } => json!({
            "type": "control_request",
            "request_id": request,
            "request": { "subtype": "get_context_usage", "detail": "summary" },
        }),
        Control::Answer { request, response } => json!({
            "type": "control_response",
            "response": { "subtype": "success", "request_id": request, "response": response },
        }),
        Control::Refuse { request, error } => json!({
            "type": "control_response",
            "response": { "subtype": "error", "request_id": request, "error": error },
        }),
    })
}

fn ask(request: &str, subtype: &str) -> Value {
    json!({ "type": "control_request", "request_id": request, "request": { "subtype": subtype } })
}

fn line(value: Value) -> String {
    let mut text = value.to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Value {
        let (object, rest) = line.split_once('\n').expect("a newline");
        assert_eq!(rest, "", "one line");
        serde_json::from_str(object).expect("valid JSON")
    }

    // proves
    #[test]
    fn every_line_is_one_json_object() {
        let text = "a\nb\r\n\u{2028}\"\\ {\u{0}} ünï";
        let user = read(&user_line(Uuid(7), text));
        assert_eq!(user["type"], "user");
        assert_eq!(user["uuid"], "00000000-0000-0000-0000-000000000007");
        assert_eq!(user["message"], json!({"role": "user", "content": text}));
        for (control, expected) in [
            (
                Control::Initialize { request: "r1".into() },
                json!({"type":"control_request","request_id":"r1",
                    "request":{"subtype":"initialize","sdkMcpServers":["omniscio"]}}),
            ),
            (
                Control::Interrupt { request: "r2".into() },
                json!({"type":"control_request","request_id":"r2","request":{"subtype":"interrupt"}}),
            ),
            (
                Control::Answer { request: "c1".into(), response: json!({"behavior":"allow"}) },
                json!({"type":"control_response","response":
                    {"subtype":"success","request_id":"c1","response":{"behavior":"allow"}}}),
            ),
            (
                Control::Refuse { request: "c2".into(), error: "no\nsuch".into() },
                json!({"type":"control_response","response":
                    {"subtype":"error","request_id":"c2","error":"no\nsuch"}}),
            ),
        ] {
            assert_eq!(read(&control_line(&control)), expected);
        }
    }
}
