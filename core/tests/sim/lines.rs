//! The lines the scripted CLI prints, as the real one writes them. Text only, no meaning.

use omniscio_core::id::Uuid;
use serde_json::{Value, json};

pub(crate) fn init(session: Uuid) -> String {
    json!({"type": "system", "subtype": "init", "session_id": session.to_string(), "model": "m",
        "permissionMode": "default", "apiKeySource": "none", "claude_code_version": "2"})
    .to_string()
}

pub(crate) fn event(body: &Value) -> String {
    json!({"type": "stream_event", "event": body}).to_string()
}

pub(crate) fn message_start(message: Uuid, tokens: u64) -> String {
    let usage = json!({"input_tokens": tokens - 100, "cache_read_input_tokens": 100});
    event(&json!({"type": "message_start", "message": {"id": message.to_string(), "usage": usage}}))
}

pub(crate) fn block_start(kind: &str, call: &str) -> String {
    let block = json!({"type": kind, "id": call, "name": "Bash"});
    event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

pub(crate) fn text_delta(text: &str) -> String {
    let delta = json!({"type": "text_delta", "text": text});
    event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

pub(crate) fn thinking_delta(text: &str) -> String {
    let delta = json!({"type": "thinking_delta", "thinking": text});
    event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

pub(crate) fn block_stop() -> String {
    event(&json!({"type": "content_block_stop", "index": 0}))
}

pub(crate) fn message_stop() -> String {
    event(&json!({"type": "message_stop"}))
}

pub(crate) fn assistant(uuid: Uuid, message: Uuid, content: &Value) -> String {
    let message = json!({"id": message.to_string(), "model": "m", "content": [content],
        "usage": {}});
    json!({"type": "assistant", "uuid": uuid.to_string(), "message": message}).to_string()
}

pub(crate) fn tool_use(call: &str, tool: &str, command: &str) -> Value {
    json!({"type": "tool_use", "id": call, "name": tool, "input": {"command": command}})
}

pub(crate) fn tool_result(call: &str, text: &str, denied: bool) -> String {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": text,
        "is_error": denied});
    let meta = json!([{"id": call,
        "permission_decision": {"decision": "reject", "source": "user_reject"}}]);
    let meta = if denied { meta } else { json!([]) };
    json!({"type": "user", "message": {"role": "user", "content": [block]},
        "tool_result_meta": meta})
    .to_string()
}

pub(crate) fn can_use_tool(request: &str, call: &str, tool: &str, command: &str) -> String {
    json!({"type": "control_request", "request_id": request, "request": {"subtype": "can_use_tool",
        "tool_name": tool, "tool_use_id": call, "input": {"command": command}}})
    .to_string()
}

pub(crate) fn control_ok(request: &str) -> String {
    json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": request, "response": {}}})
    .to_string()
}

pub(crate) fn control_cancel(request: &str) -> String {
    json!({"type": "control_cancel_request", "request_id": request}).to_string()
}

pub(crate) fn api_retry(delay_ms: u64) -> String {
    json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 3,
        "retry_delay_ms": delay_ms, "error_status": 529, "error": "overloaded"})
    .to_string()
}

pub(crate) fn compacting(on: bool) -> String {
    let status = if on { json!("compacting") } else { Value::Null };
    json!({"type": "system", "subtype": "status", "status": status}).to_string()
}

/// The end of a forced compaction.
pub(crate) fn compacted(works: bool) -> String {
    let result = if works { "success" } else { "failed" };
    let error = if works { Value::Null } else { json!("not enough messages") };
    json!({"type": "system", "subtype": "status", "status": null, "compact_result": result,
        "compact_error": error})
    .to_string()
}

pub(crate) fn compact_boundary() -> String {
    json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto"}})
        .to_string()
}

/// The answer to `get_context_usage`; `None` refuses.
pub(crate) fn context_usage(request: &str, usage: Option<(u64, u64)>) -> String {
    let response = match usage {
        Some((tokens, window)) => json!({"subtype": "success", "request_id": request,
            "response": {"totalTokens": tokens, "rawMaxTokens": window}}),
        None => json!({"subtype": "error", "request_id": request, "error": "unsupported"}),
    };
    json!({"type": "control_response", "response": response}).to_string()
}

pub(crate) fn rate_limited(resets_at_s: i64) -> String {
    let info = json!({"status": "rejected", "resetsAt": resets_at_s, "rateLimitType": "five_hour"});
    json!({"type": "rate_limit_event", "rate_limit_info": info}).to_string()
}

/// A line of the CLI's own making that says what went wrong.
pub(crate) fn error_line(error: &str, status: Option<u16>) -> String {
    let message = json!({"id": "synthetic", "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error"}]});
    json!({"type": "assistant", "message": message, "error": error, "api_error_status": status})
        .to_string()
}

pub(crate) fn started(command: Uuid) -> String {
    json!({"type": "command_lifecycle", "command_uuid": command.to_string(), "state": "started"})
        .to_string()
}

/// A call that sets a wake-up, or begins a command in the background.
pub(crate) fn wait_use(call: &str, task: bool, prompt: &str) -> Value {
    let (name, input) = if task {
        ("Bash", json!({"command": prompt, "run_in_background": true}))
    } else {
        ("ScheduleWakeup", json!({"delaySeconds": 60, "prompt": prompt}))
    };
    json!({"type": "tool_use", "id": call, "name": name, "input": input})
}

/// Its result, with the time of the wake-up.
pub(crate) fn wait_result(call: &str, at_ms: Option<i64>) -> String {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": "done"});
    let details = at_ms.map(|at| json!({"scheduledFor": at}));
    json!({"type": "user", "message": {"role": "user", "content": [block]},
        "tool_use_result": details})
    .to_string()
}

/// The whole set of tasks that run in the background.
pub(crate) fn tasks(ids: &[&str]) -> String {
    let tasks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"task_id": id, "task_type": "local_bash", "description": id}))
        .collect();
    json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks}).to_string()
}

/// The CLI fires a wake-up of its own.
pub(crate) fn fired() -> String {
    json!({"type": "command_lifecycle", "state": "started", "wakeup_source": "loop_wakeup"})
        .to_string()
}

/// A `result`: the base of every ending, with `more` laid over it.
pub(crate) fn result(messages: &[Uuid], more: &Value) -> String {
    let uuids: Vec<String> = messages.iter().map(Uuid::to_string).collect();
    let mut body = json!({"type": "result", "subtype": "success", "is_error": false,
        "terminal_reason": "completed", "num_turns": 1, "result": "", "duration_ms": 1200,
        "total_cost_usd": 0.01, "user_message_uuids": uuids});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        for (key, value) in more {
            body.insert(key.clone(), value.clone());
        }
    }
    body.to_string()
}
