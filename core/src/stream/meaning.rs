//! What a parsed line means: [`wire::Line`] to [`StreamEvent`]. Reads fields, never prose.

use super::soft::Soft;
use super::wire::{Line, Request, Response};
use super::{
    BackgroundTask, ControlAsk, Init, LifecycleState, RateLimit, SessionState, StreamEvent,
    TaskEvent, TaskPhase, TurnResult, conversation, streamed,
};
use crate::id::Uuid;
use crate::supervisor::mcp;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Types this version knows.
const KNOWN: [&str; 13] = [
    "system",
    streamed::KIND,
    conversation::ASSISTANT,
    conversation::USER,
    "result",
    "command_lifecycle",
    "tool_progress",
    "rate_limit_event",
    "conversation_reset",
    "control_request",
    "control_cancel_request",
    "control_response",
    "keep_alive",
];

/// Whether this version knows the type.
pub(super) fn is_known(kind: &str) -> bool {
    KNOWN.contains(&kind)
}

/// The event of a line; `None` if the object has no type and so is no protocol.
pub(super) fn event(mut line: Line, model: &mut Option<String>) -> Option<StreamEvent> {
    let kind = line.kind.0.take()?;
    let event = match kind.as_str() {
        "system" => return Some(system(line, model)),
        "result" => result(line, model.as_deref()),
        "command_lifecycle" => Some(lifecycle(line)),
        "tool_progress" => Some(tool_progress(line)),
        "rate_limit_event" => line.rate_limit_info.0.map(|info| {
            StreamEvent::RateLimit(RateLimit {
                status: info.status.text(),
                resets_at_s: info.resets_at.stamp(),
                limit: info.rate_limit_type.0,
            })
        }),
        "conversation_reset" => {
            Some(StreamEvent::ConversationReset { new_id: line.new_conversation_id.0 })
        }
        "control_request" => line.request_id.0.map(|request| StreamEvent::ControlRequest {
            request,
            body: control_ask(*line.request.0.unwrap_or_default()),
        }),
        "control_cancel_request" => {
            line.request_id.0.map(|request| StreamEvent::ControlCancel { request })
        }
        "control_response" => line.response.0.and_then(|response| control_response(*response)),
        "keep_alive" => Some(StreamEvent::KeepAlive),
        _ => {
            return Some(StreamEvent::Unknown { kind, subtype: line.subtype.0 });
        }
    };
    Some(event.unwrap_or(StreamEvent::Malformed { kind }))
}

fn system(mut line: Line, model: &mut Option<String>) -> StreamEvent {
    let subtype = line.subtype.0.take().unwrap_or_default();
    match subtype.as_str() {
        "init" => {
            model.clone_from(&line.model.0);
            StreamEvent::from(Init {
                session_id: line.session_id.0,
                model: line.model.text(),
                permission_mode: line.permission_mode.text(),
                api_key_source: line.api_key_source.text(),
                version: line.claude_code_version.text(),
            })
        }
        "status" => StreamEvent::Status {
            status: line.status.0,
            permission_mode: line.permission_mode.0,
            compact_result: line.compact_result.0,
            compact_error: line.compact_error.0,
        },
        "session_state_changed" => StreamEvent::SessionState(match line.state.text().as_str() {
            "running" => SessionState::Running,
            "idle" => SessionState::Idle,
            "requires_action" => SessionState::RequiresAction,
            _ => SessionState::Other,
        }),
        "task_started" | "task_updated" | "task_notification" => task(line, &subtype),
        "background_tasks_changed" => {
            let tasks = line.tasks.0.unwrap_or_default().into_iter().filter_map(|task| task.0);
            StreamEvent::BackgroundTasks(
                tasks
                    .map(|task| BackgroundTask {
                        task: task.task_id.text(),
                        kind: task.task_type.text(),
                        summary: task.description.0,
                    })
                    .collect(),
            )
        }
        "api_retry" => StreamEvent::ApiRetry {
            attempt: small(&line.attempt),
            max: small(&line.max_retries),
            delay_ms: line.retry_delay_ms.count(),
            status: line.error_status.status(),
            error: line.error.text(),
        },
        "model_fallback" => StreamEvent::ModelFallback {
            from: line.original_model.text(),
            to: line.fallback_model.text(),
        },
        "compact_boundary" => StreamEvent::CompactBoundary {
            trigger: line.compact_metadata.0.unwrap_or_default().trigger.text(),
        },
        "permission_denied" => StreamEvent::PermissionDenied {
            tool_use: line.tool_use_id.0,
            tool: line.tool_name.text(),
            message: line.message.words().unwrap_or_default(),
        },
        "informational" | "model_refusal_no_fallback" | "local_command_output" => {
            StreamEvent::Informational { content: line.content.text() }
        }
        _ => StreamEvent::Unknown {
            kind: "system".into(),
            subtype: Some(subtype).filter(|name| !name.is_empty()),
        },
    }
}

/// The number as a small count.
pub(super) fn small(number: &Soft<f64>) -> u32 {
    u32::try_from(number.count()).unwrap_or(u32::MAX)
}

fn task(line: Line, subtype: &str) -> StreamEvent {
    let patch = line.patch.0.unwrap_or_default();
    let ended =
        |word: &str| matches!(word, "completed" | "failed" | "stopped" | "killed" | "error");
    let phase = match subtype {
        "task_started" => TaskPhase::Started,
        "task_notification" => TaskPhase::Ended,
        _ if patch.status.0.as_deref().is_some_and(ended) => TaskPhase::Ended,
        _ => TaskPhase::Updated,
    };
    StreamEvent::Task(TaskEvent {
        task: line.task_id.text(),
        tool_use: line.tool_use_id.0,
        phase,
        is_agent: line.task_type.0.as_deref() == Some("local_agent"),
        background: line.is_backgrounded.0.or(patch.is_backgrounded.0).unwrap_or_default(),
        summary: line.summary.0.or(line.description.0),
    })
}

fn lifecycle(line: Line) -> StreamEvent {
    StreamEvent::Lifecycle {
        command: line.command_uuid.0,
        state: match line.state.text().as_str() {
            "queued" => LifecycleState::Queued,
            "started" => LifecycleState::Started,
            "completed" => LifecycleState::Completed,
            "cancelled" => LifecycleState::Cancelled,
            _ => LifecycleState::Other,
        },
        wakeup_source: line.wakeup_source.0,
        scheduled_for_ms: line.scheduled_for.stamp(),
    }
}

/// A heartbeat has an id of its own and names the running call as its parent.
fn tool_progress(line: Line) -> StreamEvent {
    let beat = line.heartbeat.0 == Some(true) && line.parent_tool_use_id.0.is_some();
    let call = if beat { line.parent_tool_use_id } else { line.tool_use_id };
    StreamEvent::ToolProgress {
        tool_use: call.0,
        tool: line.tool_name.text(),
        elapsed_s: line.elapsed_time_seconds.count(),
    }
}

/// What cannot be read is still a request: it is refused, never left open.
fn control_ask(request: Request) -> ControlAsk {
    let subtype = request.subtype.text();
    if subtype == "mcp_message" {
        let (server, message) = (request.server_name.text(), request.message);
        return ControlAsk::Mcp { server, message };
    }
    let ours = request.mcp_server.0.is_some_and(|server| server.is_ours());
    match request.tool_name.0 {
        Some(tool) if subtype == "can_use_tool" && ours && mcp::is_own_tool(&tool) => {
            ControlAsk::UseOwnTool { input: request.input }
        }
        Some(tool) if subtype == "can_use_tool" => ControlAsk::CanUseTool {
            tool,
            tool_use: request.tool_use_id.text(),
            input: request.input,
            suggestions: request.permission_suggestions.0.unwrap_or_default(),
            description: request.description.0,
        },
        Some(_) | None => ControlAsk::Unknown { subtype },
    }
}

fn control_response(response: Response) -> Option<StreamEvent> {
    let answer = match response.subtype.0.as_deref() {
        Some("success") => Ok(response.response),
        Some(_) | None => Err(response.error.text()),
    };
    response.request_id.0.map(|request| StreamEvent::ControlResponse { request, answer })
}

fn result(line: Line, model: Option<&str>) -> Option<StreamEvent> {
    let is_error = line.is_error.0?;
    let named = line.user_message_uuids.0.unwrap_or_default();
    let mut messages: Vec<Uuid> = named.into_iter().filter_map(|uuid| uuid.0).collect();
    if let (true, Some(one)) = (messages.is_empty(), line.user_message_uuid.0) {
        messages.push(one);
    }
    let usage = line.model_usage.0.unwrap_or_default();
    // keyed by the requested model; a turn may also have used others
    let of_model = model.and_then(|name| usage.get(name));
    let only = usage.values().next().filter(|_| usage.len() == 1);
    let window = of_model.or(only).and_then(|usage| usage.0.as_ref()?.context_window.0);
    Some(StreamEvent::Result(Box::new(TurnResult {
        uuid: line.uuid.0,
        session_id: line.session_id.0,
        subtype: line.subtype.text(),
        is_error,
        terminal_reason: line.terminal_reason.0,
        status: line.api_error_status.status(),
        stop_reason: line.stop_reason.0,
        num_turns: line.num_turns.count(),
        text: line.result.text(),
        errors: line.errors.0.unwrap_or_default().into_iter().filter_map(|error| error.0).collect(),
        local_command: line.local_command.0,
        startup_failure: line.startup_failure_reason.0,
        messages,
        // half a millionth more, because the cast cuts
        cost_microdollars: (line.total_cost_usd.0.unwrap_or_default() * 1e6 + 0.5) as u64,
        duration_ms: line.duration_ms.count(),
        context_window: window.map(|tokens| tokens as u64),
    })))
}
