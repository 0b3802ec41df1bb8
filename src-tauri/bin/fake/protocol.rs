//! The lines on stdout: how one is written, and the recorded shapes that depend on no state.
//! Nothing here decides what happens in a turn.

use crate::{ids, limits};
use serde_json::{Map, Value, json};
use std::io::Write;

/// The CLI version whose recordings this stand-in follows.
pub(crate) const VERSION: &str = "2.1.332";
/// The model named when `--model` is absent.
pub(crate) const DEFAULT_MODEL: &str = "claude-opus-5-5";
/// Permission modes the CLI accepts.
pub(crate) const MODES: [&str; 7] =
    ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"];

/// The writing end of the stream. A reader that went away is no reason to die (field guide 0.9), so write
/// errors are dropped.
pub(crate) struct Out {
    session_id: String,
    /// The next line that holds a character of several bytes is cut inside it.
    pub(crate) split_next: bool,
    /// Every byte is a write of its own.
    pub(crate) drip: bool,
}

impl Out {
    /// An output whose lines carry `session_id`.
    pub(crate) fn new(session_id: &str) -> Self {
        Self { session_id: session_id.to_owned(), split_next: false, drip: false }
    }

    /// Writes one event with a fresh `uuid` and the session id added where they are missing.
    pub(crate) fn emit(&mut self, mut event: Value) {
        if let Some(fields) = event.as_object_mut() {
            fields.entry("uuid").or_insert_with(|| Value::String(ids::uuid()));
            fields.entry("session_id").or_insert_with(|| Value::String(self.session_id.clone()));
        }
        self.emit_bare(&event);
    }

    /// Writes one line as it is: control lines carry neither uuid nor session id.
    pub(crate) fn emit_bare(&mut self, event: &Value) {
        let mut bytes = ordered(event).into_bytes();
        bytes.push(b'\n');
        let inside = bytes.iter().position(|byte| *byte >= 0x80).map(|first| first + 1);
        match inside.filter(|_| self.split_next) {
            Some(cut) => {
                self.split_next = false;
                self.raw(&bytes[..cut]);
                std::thread::sleep(limits::SPLIT_PAUSE);
                self.raw(&bytes[cut..]);
            }
            None => self.raw(&bytes),
        }
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let piece = if self.drip { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(piece) {
            stdout.write_all(piece).and_then(|()| stdout.flush()).ok();
            if self.drip && piece.iter().any(|byte| *byte >= 0xc0) {
                // the reader comes by while the character is not whole
                std::thread::sleep(limits::DRIP_PAUSE);
            }
        }
    }
}

/// JSON text with `type` and `subtype` in front, as the real CLI writes its lines: a reader that meets an
/// oversize line finds them in the prefix.
fn ordered(event: &Value) -> String {
    let Some(fields) = event.as_object() else {
        return event.to_string();
    };
    let front = ["type", "subtype"].iter().filter_map(|key| fields.get_key_value(*key));
    let rest = fields.iter().filter(|(key, _)| *key != "type" && *key != "subtype");
    let members: Vec<String> = front
        .chain(rest)
        .map(|(key, value)| format!("{}:{value}", Value::String(key.clone())))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// `command_lifecycle` of one message.
pub(crate) fn lifecycle(uuid: &str, state: &str) -> Value {
    json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state})
}

/// The `system/init` of a turn.
pub(crate) fn init(cwd: &str, model: &str, mode: &str, asks_host: bool) -> Value {
    let mut tools = vec!["Task", "Bash", "Edit", "Read", "Write"];
    if asks_host {
        tools.extend(["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"]);
    }
    json!({
        "type": "system", "subtype": "init", "cwd": cwd, "original_cwd": cwd, "tools": tools, "mcp_servers": [],
        "model": model, "permissionMode": mode, "slash_commands": [], "apiKeySource": "none",
        "claude_code_version": VERSION,
        "capabilities": ["interrupt_receipt_v1", "interrupt_cancel_queued_v1"],
    })
}

/// The MCP server that the host may serve over the stream.
pub(crate) const HOST: &str = "omniscio";

/// The answer to `initialize`.
pub(crate) fn handshake(mode: &str, busy: bool) -> Value {
    let model = |value: &str, resolved: &str, name: &str| {
        json!({"value": value, "resolvedModel": resolved, "displayName": name,
               "description": "bundled stand-in, no model behind it"})
    };
    json!({
        "commands": [{"name": "compact", "description": "Clear history but keep a summary", "argumentHint": "", "builtin": true}],
        "agents": [{"name": "general-purpose", "description": "General-purpose agent"}],
        "output_style": "default", "available_output_styles": ["default"],
        "models": [model("default", DEFAULT_MODEL, "Default (recommended)"), model("opus", DEFAULT_MODEL, "Opus"),
                   model("sonnet", "claude-sonnet-5-5", "Sonnet")],
        "account": {"tokenSource": "none", "apiKeySource": "none", "apiProvider": "firstParty"},
        "pid": std::process::id(), "claude_code_version": VERSION, "current_permission_mode": mode,
        "session_state": if busy { "running" } else { "idle" },
        "capabilities": ["ui_surface_v1"],
    })
}

/// The answer to `get_context_usage`.
pub(crate) fn context_usage(model: &str, used: u64, window: u64) -> Value {
    let percentage = (used * 100 + window / 2) / window.max(1);
    json!({
        "categories": [{"id": "messages", "name": "Messages", "tokens": used, "kind": "used"},
                       {"id": "free_space", "name": "Free space", "tokens": window.saturating_sub(used), "kind": "free"}],
        "totalTokens": used, "maxTokens": window, "rawMaxTokens": window, "percentage": percentage, "model": model,
        "autoCompactThreshold": window.saturating_sub(33_000), "isAutoCompactEnabled": true,
        "apiUsage": {"input_tokens": used, "output_tokens": limits::OUTPUT_TOKENS,
                     "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    })
}

/// The context window of a model, in tokens; `CLAUDE_CODE_MAX_CONTEXT_TOKENS` wins.
pub(crate) fn context_window(model: &str) -> u64 {
    let asked =
        std::env::var("CLAUDE_CODE_MAX_CONTEXT_TOKENS").ok().and_then(|text| text.parse().ok());
    let by_name = if model.contains("sonnet-4-5") { 200_000 } else { limits::CONTEXT_WINDOW };
    asked.filter(|tokens| *tokens > 0).unwrap_or(by_name)
}

/// Token counts in the shape of the API.
pub(crate) fn usage(input: u64, output: u64) -> Value {
    json!({"input_tokens": input, "output_tokens": output,
           "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
}

/// The result of a start that the CLI refuses (capture B0).
pub(crate) fn startup_failure(why: &str) -> Value {
    json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "stop_reason": null,
        "num_turns": 0, "errors": [why], "duration_ms": 0, "duration_api_ms": 0, "total_cost_usd": 0,
        "permission_denials": [], "result_index": 0, "usage": usage(0, 0),
    })
}

/// Adds the fields of `more` to `event`.
pub(crate) fn with(mut event: Value, more: Map<String, Value>) -> Value {
    if let Some(fields) = event.as_object_mut() {
        fields.extend(more);
    }
    event
}
