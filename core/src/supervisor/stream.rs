//! The CLI's events: each goes to the turn's facts and to the transcript; a few change the row.

use super::live::Child;
use super::surface::LaunchId;
use super::{Cx, State};
use crate::context::resolve_context_warning_usage;
use crate::id::SessionId;
use crate::session::{CallState, PendingAction, Status, ToolCall};
use crate::stream::{AssistantLine, Content, Init, LifecycleState, StreamEvent, UserEcho};
use crate::turn::tool_detail;
use crate::verdict::Actor;
use serde_json::Value;

impl State {
    pub(super) fn stream(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        launch: LaunchId,
        event: StreamEvent,
    ) {
        let Some(session) = self.session(id) else {
            return;
        };
        match &session.live.child {
            Child::Handshaking { launch: l, .. } | Child::Up { launch: l } if *l == launch => {}
            Child::None
            | Child::Spawning { .. }
            | Child::Handshaking { .. }
            | Child::Up { .. }
            | Child::Stopping { .. } => return,
        }
        if begins_turn(&event) {
            // the next turn's first event decides a pending end (principle 2)
            self.set_goes_on(id, true);
            self.conclude_pending(cx, id);
            self.set_goes_on(id, false);
            self.begin_by_itself(cx, id, &event);
        }
        // before the turn forgets a call with its result
        self.observe_background(cx, id, &event);
        self.observe_turns(cx, id, &event);
        self.observe(cx, id, &event);
        match event {
            StreamEvent::Init(init) => self.init(cx, id, *init),
            StreamEvent::ConversationReset { new_id: Some(new) } => {
                self.change(cx, id, Actor::Stream, "conversation reset", |row| {
                    row.cli_session_id = Some(new);
                    row.last_good_assistant = None;
                    if row.fork_of.take().is_some() {
                        // what it was a copy of is another session's, and no way back any more
                        row.cli_session_before = None;
                    }
                });
            }
            StreamEvent::Assistant(line) => self.assistant(cx, id, &line),
            StreamEvent::User(echo) => self.user_echo(cx, id, &echo),
            StreamEvent::ControlRequest { request, body } => self.asked(cx, id, request, body),
            StreamEvent::ControlCancel { request } => self.withdrawn(cx, id, &request),
            StreamEvent::ControlResponse { request, answer } => {
                self.control_answer(cx, id, launch, &request, answer);
            }
            StreamEvent::Result(result) => self.result(cx, id, result),
            StreamEvent::Unknown { kind, subtype } => {
                let subtype = subtype.unwrap_or_default();
                cx.log(Some(id), alloc::format!("unknown event {kind} {subtype}"));
            }
            StreamEvent::Malformed { kind } => {
                cx.log(Some(id), alloc::format!("malformed event {kind}"));
            }
            StreamEvent::Oversize { kind, prefix, .. } => {
                let kind = kind.unwrap_or_default();
                let head: alloc::string::String = prefix.chars().take(40).collect();
                cx.log(
                    Some(id),
                    alloc::format!("an oversized line of kind {kind} was left out: {head}"),
                );
            }
            StreamEvent::Chatter(text) => self.chatter(cx, id, launch, text),
            StreamEvent::ConversationReset { new_id: None }
            | StreamEvent::Status { .. }
            | StreamEvent::SessionState(_)
            | StreamEvent::Lifecycle { .. }
            | StreamEvent::ThinkingTokens
            | StreamEvent::Partial(_)
            | StreamEvent::ToolProgress { .. }
            | StreamEvent::Task(_)
            | StreamEvent::BackgroundTasks(_)
            | StreamEvent::ApiRetry { .. }
            | StreamEvent::ModelFallback { .. }
            | StreamEvent::CompactBoundary { .. }
            | StreamEvent::PermissionDenied { .. }
            | StreamEvent::Informational { .. }
            | StreamEvent::RateLimit(_)
            | StreamEvent::KeepAlive => {}
        }
    }

    /// A turn that nobody asked for: a background task, a monitor, a wake-up.
    fn begin_by_itself(&mut self, cx: &mut Cx, id: SessionId, event: &StreamEvent) {
        let Some(session) = self.session(id) else {
            return;
        };
        // a wake-up names itself a moment before its `init`
        let woken = matches!(event, StreamEvent::Lifecycle { wakeup_source: Some(_), .. });
        let begins = woken || matches!(event, StreamEvent::Init(_));
        let by_itself = begins && session.live.turn.is_none();
        if !by_itself || !session.live.child.is_up() || session.live.stop_asked.is_some() {
            return;
        }
        let deliberate = match session.row.status {
            Status::Paused | Status::Ended | Status::Archived => true,
            Status::Starting
            | Status::Running
            | Status::Waiting
            | Status::NeedsYou
            | Status::Error
            | Status::Stalled => false,
        };
        if deliberate {
            return;
        }
        let row = &session.row;
        let stamp = row
            .pending
            .filter(|pending| row.in_shape() || *pending == PendingAction::RecoveryFailed);
        session.live.stamped_before =
            stamp.map(|pending| (row.status, pending, row.status_changed_at));
        self.open_turn(cx, id, None, None, false);
    }

    fn observe(&mut self, cx: &mut Cx, id: SessionId, event: &StreamEvent) {
        let (now, limits) = (cx.now, &self.limits);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let full = resolve_context_warning_usage(&session.live.context);
        session.live.context.observe(event);
        if resolve_context_warning_usage(&session.live.context) != full {
            cx.touched.insert(id);
        }
        let Some(turn) = session.live.turn.as_mut() else {
            return;
        };
        turn.observe(event, now.mono, limits);
        let (number, real_output) = (turn.number, turn.real_output);
        let activity = turn.activity();
        let changes = session.live.builder.observe(event, number, now, limits);
        if session.live.activity != activity {
            session.live.activity = activity;
            session.live.activity_since = now.wall;
            cx.touched.insert(id);
        }
        let seen = session.row.turn.as_ref().is_some_and(|turn| turn.real_output);
        self.show(cx, id, changes);
        if real_output && !seen {
            self.first_output(cx, id);
        }
    }

    /// Real output: the try is alive, the hide clock of the shape before it is over.
    fn first_output(&mut self, cx: &mut Cx, id: SessionId) {
        self.change(cx, id, Actor::Stream, "first output", |row| {
            if let Some(turn) = &mut row.turn {
                turn.real_output = true;
            }
            row.hide_since = None;
            if row.pending == Some(PendingAction::RecoveryFailed) {
                row.pending = None;
            }
        });
    }

    fn init(&mut self, cx: &mut Cx, id: SessionId, init: Init) {
        // rule: PR-07, A-15
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.model.as_ref() != Some(&init.model) {
            session.live.model = Some(init.model);
            cx.touched.insert(id);
        }
        if init.session_id.is_some() && session.row.cli_session_id != init.session_id {
            self.change(cx, id, Actor::Stream, "the CLI named its session", |row| {
                row.cli_session_id = init.session_id;
            });
        }
        self.task_begun(cx, id);
    }

    fn assistant(&mut self, cx: &mut Cx, id: SessionId, line: &AssistantLine) {
        // rule: A-04
        if line.parent.is_some() || line.synthetic {
            return;
        }
        let uses = line.content.iter().filter_map(|content| match content {
            Content::ToolUse { id, name, input } => Some((id, name, input)),
            Content::Text(_) | Content::Thinking(_) | Content::Other => None,
        });
        let max = self.limits.calls_max;
        for (call, name, input) in uses {
            let call = ToolCall {
                id: call.clone(),
                name: name.clone(),
                detail: tool_detail(input),
                state: CallState::Started,
            };
            self.change(cx, id, Actor::Stream, "tool call", |row| row.replay.add_call(call, max));
        }
    }

    fn user_echo(&mut self, cx: &mut Cx, id: SessionId, echo: &UserEcho) {
        if echo.parent.is_some() {
            return;
        }
        for result in &echo.results {
            let ran = !result.failed && !result.denied;
            self.set_call(cx, id, &result.tool_use, |state| match state {
                CallState::Started => CallState::Finished,
                // allowed by another way than our card: it ran all the same
                CallState::Asked if ran => CallState::Finished,
                CallState::Asked | CallState::Denied | CallState::Finished => state,
            });
        }
    }

    pub(super) fn set_call(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        call: &str,
        to: impl Fn(CallState) -> CallState,
    ) {
        self.change(cx, id, Actor::Stream, "tool call", |row| {
            if let Some(known) = row.replay.calls.iter_mut().find(|known| known.id == call) {
                known.state = to(known.state);
            }
        });
    }

    fn control_answer(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        launch: LaunchId,
        request: &str,
        answer: Result<Value, alloc::string::String>,
    ) {
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.context_asked.as_deref() == Some(request) {
            self.context_answered(cx, id, answer.ok().as_ref());
            return;
        }
        let ok = answer.is_ok();
        let handshake = match &session.live.child {
            Child::Handshaking { request: ours, .. } => ours == request,
            Child::None | Child::Spawning { .. } | Child::Up { .. } | Child::Stopping { .. } => {
                false
            }
        };
        if handshake && ok {
            self.handshaken(cx, id, launch);
        } else if handshake {
            let words = self.last_words(id, "The CLI refused the handshake.");
            self.launch_failed(cx, id, &words);
        }
    }
}

/// The first event of a turn: each decides a pending end of the turn before.
fn begins_turn(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::Init(_) => true,
        StreamEvent::Lifecycle { state, .. } => *state == LifecycleState::Started,
        StreamEvent::Status { .. }
        | StreamEvent::SessionState(_)
        | StreamEvent::ThinkingTokens
        | StreamEvent::Partial(_)
        | StreamEvent::Assistant(_)
        | StreamEvent::User(_)
        | StreamEvent::ToolProgress { .. }
        | StreamEvent::Task(_)
        | StreamEvent::BackgroundTasks(_)
        | StreamEvent::ApiRetry { .. }
        | StreamEvent::ModelFallback { .. }
        | StreamEvent::CompactBoundary { .. }
        | StreamEvent::PermissionDenied { .. }
        | StreamEvent::Informational { .. }
        | StreamEvent::RateLimit(_)
        | StreamEvent::ConversationReset { .. }
        | StreamEvent::ControlRequest { .. }
        | StreamEvent::ControlCancel { .. }
        | StreamEvent::ControlResponse { .. }
        | StreamEvent::Result(_)
        | StreamEvent::KeepAlive
        | StreamEvent::Unknown { .. }
        | StreamEvent::Malformed { .. }
        | StreamEvent::Oversize { .. }
        | StreamEvent::Chatter(_) => false,
    }
}
