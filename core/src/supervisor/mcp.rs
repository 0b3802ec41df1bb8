//! The app's own tools for the agent, served over the session's own stream: an MCP server whose
//! messages travel in `mcp_message` control requests. The caller is known by construction.
//!
//! Speaks JSON-RPC and nothing else: what a tool does is in `workers`. Every message is answered, a
//! notification too: the CLI waits for each.

use super::{AgentTool, Control, Cx, State};
use crate::id::SessionId;
use alloc::format;
use alloc::string::{String, ToString};
use serde_json::{Value, json};

/// The server's name; its tools appear as `mcp__omniscio__…`.
pub(crate) const SERVER: &str = "omniscio";

const PREFIX: &str = "mcp__omniscio__";
/// The tools, in the order in which the agent sees them.
const TOOLS: [&str; 4] = ["spawn_worker", "list_workers", "open_gate", "close_gate"];
/// Spoken when the CLI names no version of the protocol.
const PROTOCOL: &str = "2025-06-18";
/// No version is named longer, in bytes.
const VERSION_MAX: usize = 32;

const INSTRUCTIONS: &str = "Omniscio supervises this session. spawn_worker starts another session \
    in this folder that does one task on its own; its final message comes to you as a message, so do \
    not wait or poll for it. open_gate declares a check that must not be interrupted by a restart; \
    close it when it is over.";

/// JSON-RPC's own error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
}

/// What a message of the CLI asks of the server.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    /// The answer needs nobody else.
    Answered(Value),
    /// A tool is called; a call that cannot be understood carries the words for the agent.
    Call { id: Value, tool: Result<AgentTool, String> },
}

/// Whether this is the full name of one of the app's own tools.
pub(crate) fn is_own_tool(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|tool| TOOLS.contains(&tool))
}

impl State {
    /// A JSON-RPC message for a server of ours came over the session's stream.
    pub(super) fn mcp(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        request: String,
        server: &str,
        message: &Value,
    ) {
        // rule: A-22
        if server != SERVER {
            let error = format!("there is no server {SERVER:?} of that name here");
            self.control(cx, id, Control::Refuse { request, error });
            return;
        }
        let answer = match read(message) {
            Asked::Answered(answer) => answer,
            Asked::Call { id: call, tool } => {
                let told = match tool {
                    Ok(tool) => self.agent_tool(cx, id, tool).map_err(|wrong| wrong.message),
                    Err(words) => Err(words),
                };
                called(&call, told)
            }
        };
        let response = json!({ "mcp_response": answer });
        self.control(cx, id, Control::Answer { request, response });
    }
}

fn read(message: &Value) -> Asked {
    let id = message.get("id").cloned().unwrap_or_default();
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return Asked::Answered(fault(&id, Fault::InvalidRequest, "this is no request"));
    };
    let params = message.get("params").unwrap_or(&Value::Null);
    match method {
        // what the CLI expects behind a notification
        _ if id.is_null() => Asked::Answered(result(&json!(0), json!({}))),
        "initialize" => Asked::Answered(result(&id, greeting(params))),
        "ping" => Asked::Answered(result(&id, json!({}))),
        "tools/list" => Asked::Answered(result(&id, json!({ "tools": TOOLS.map(described) }))),
        "tools/call" => match params.get("name").and_then(Value::as_str) {
            Some(name) if TOOLS.contains(&name) => {
                Asked::Call { id, tool: tool(name, params.get("arguments")) }
            }
            Some(_) | None => {
                Asked::Answered(fault(&id, Fault::InvalidParams, "there is no such tool"))
            }
        },
        _ => Asked::Answered(fault(&id, Fault::MethodNotFound, "there is no such method")),
    }
}

fn greeting(params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = wanted.filter(|version| version.len() <= VERSION_MAX).unwrap_or(PROTOCOL);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": SERVER, "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

/// A tool as `tools/list` shows it. It is always in the agent's prompt: one that must be searched for
/// first is called without its schema.
fn described(name: &str) -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let gate = || json!({ "name": text("What you call the check, in a few words") });
    let (description, properties, required) = match name {
        "spawn_worker" => (
            "Start a worker: a new session in this folder that does one task on its own, without \
             this conversation. Its final message is sent to you when it is done.",
            json!({
                "task": text("The whole task, with everything the worker must know"),
                "title": text("A short title for the list; without it the task's first line"),
            }),
            json!(["task"]),
        ),
        "open_gate" => (
            "Declare that a check of yours is running, such as a build or a test pipeline: while it \
             is open, nothing restarts this session by itself.",
            gate(),
            json!(["name"]),
        ),
        "close_gate" => ("Declare that the check of this name is over.", gate(), json!(["name"])),
        _ => (
            "List your workers: id, title, state; and those that were put away, with why.",
            json!({}),
            json!([]),
        ),
    };
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        "_meta": { "anthropic/alwaysLoad": true },
    })
}

/// A call by its name and arguments, or the words for the agent.
fn tool(name: &str, arguments: Option<&Value>) -> Result<AgentTool, String> {
    let mut fields = match arguments {
        None | Some(Value::Null) => serde_json::Map::new(),
        Some(Value::Object(fields)) => fields.clone(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err("The arguments are no object.".to_string());
        }
    };
    fields.insert("tool".into(), name.into());
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| format!("The arguments do not fit: {error}."))
}

/// What a tool said, or why it did not do it: both are results to the agent, not faults of the
/// protocol.
fn called(id: &Value, told: Result<String, String>) -> Value {
    let (text, is_error) = match told {
        Ok(text) => (text, false),
        Err(words) => (words, true),
    };
    result(id, json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn fault(id: &Value, fault: Fault, words: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": fault as i32, "message": words } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(message: Value) -> Value {
        match read(&message) {
            Asked::Answered(answer) => answer,
            Asked::Call { id, tool } => called(&id, tool.map(|tool| format!("{tool:?}"))),
        }
    }

    fn call(name: &str, arguments: Value) -> Value {
        ask(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}}))
    }

    // proves: A-22
    #[test]
    fn the_server_greets_lists_four_tools_and_answers_a_notification() {
        let hello = ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25"}}));
        assert_eq!(hello["id"], 0);
        assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(hello["result"]["serverInfo"]["name"], "omniscio");
        let list = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
        let names: alloc::vec::Vec<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, TOOLS.map(Some));
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["task"]));
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(ask(note), json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    }

    // proves: A-22
    #[test]
    fn a_call_is_read_by_its_schema_and_what_does_not_fit_is_told_to_the_agent() {
        let read = |name: &str, arguments: Value| tool(name, Some(&arguments));
        let spawn = AgentTool::SpawnWorker { task: "do x".into(), title: None };
        assert_eq!(read("spawn_worker", json!({"task": "do x"})), Ok(spawn.clone()));
        assert_eq!(read("spawn_worker", json!({"task": "do x", "title": null})), Ok(spawn.clone()));
        // the name is the one that was called, whatever the arguments say
        assert_eq!(read("spawn_worker", json!({"task": "do x", "tool": "open_gate"})), Ok(spawn));
        assert_eq!(tool("list_workers", None), Ok(AgentTool::ListWorkers));
        for (name, arguments) in [
            ("spawn_worker", json!({})),
            ("spawn_worker", json!({"task": 5})),
            ("spawn_worker", json!({"task": "x", "model": "opus"})),
            ("open_gate", json!({"title": "x"})),
            ("close_gate", json!(["x"])),
            ("open_gate", json!("x")),
        ] {
            let answer = call(name, arguments);
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(answer["id"], 7);
        }
    }

    // proves: A-22
    #[test]
    fn what_is_unknown_is_a_fault_of_the_protocol_and_still_answered() {
        for (message, code) in [
            (json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}), -32601),
            (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}), -32602),
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}),
                -32602,
            ),
            (json!({"jsonrpc": "2.0", "id": 1}), -32600),
            (json!([1, 2]), -32600),
            (Value::Null, -32600),
        ] {
            assert_eq!(ask(message.clone())["error"]["code"], code, "{message}");
        }
    }
}
