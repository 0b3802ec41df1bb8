//! Cards: what the agent asks through the CLI, and the person's answers.

use super::{Act, Control};
use super::{Cx, State};
use crate::block::BlockKind;
use crate::card::{Card, CardKind, CardReply};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use crate::message::Origin;
use crate::session::{CallState, PendingAction, Status};
use crate::stream::ControlAsk;
use crate::turn::tool_detail;
use crate::verdict::Actor;
use alloc::format;
use alloc::string::{String, ToString};
use serde_json::{Value, json};

/// Requests of the agent that may wait behind an open card.
const WAITING_MAX: usize = 32;

impl State {
    /// The CLI asks something.
    pub(super) fn asked(&mut self, cx: &mut Cx, id: SessionId, request: String, body: ControlAsk) {
        // rule: PR-11, A-10
        match body {
            ControlAsk::CanUseTool { tool, tool_use, input, suggestions, description } => {
                let card = Card {
                    request,
                    tool_use,
                    kind: kind_of(&tool),
                    tool,
                    input,
                    suggestions,
                    reason: description,
                    asked_at: cx.now.wall,
                    orphaned: false,
                };
                self.set_call(cx, id, &card.tool_use.clone(), |state| match state {
                    CallState::Started => CallState::Asked,
                    CallState::Asked | CallState::Denied | CallState::Finished => state,
                });
                self.offer(cx, id, card);
            }
            ControlAsk::UseOwnTool { input } => {
                // rule: A-22
                let response = json!({"behavior": "allow", "updatedInput": input});
                self.control(cx, id, Control::Answer { request, response });
            }
            ControlAsk::Mcp { server, message } => self.mcp(cx, id, request, &server, &message),
            ControlAsk::Unknown { subtype } => {
                let error = format!("unsupported_request: {subtype}");
                self.control(cx, id, Control::Refuse { request, error });
            }
        }
    }

    pub(super) fn control(&mut self, cx: &mut Cx, id: SessionId, control: Control) {
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(launch) = session.live.child.launch() else {
            return;
        };
        cx.act(Act::Control { session: id, launch, control });
    }

    fn offer(&mut self, cx: &mut Cx, id: SessionId, card: Card) {
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.turn.is_none() {
            // a question outside a turn belongs to one that was just stopped
            let error = "the turn is over".to_string();
            self.control(cx, id, Control::Refuse { request: card.request, error });
            return;
        }
        if session.row.card.is_some() {
            if session.live.cards_waiting.len() < WAITING_MAX {
                session.live.cards_waiting.push_back(card);
            } else {
                let error = "too many open requests".to_string();
                self.control(cx, id, Control::Refuse { request: card.request, error });
            }
            return;
        }
        if let Some(turn) = session.live.turn.as_mut() {
            turn.card_open = true;
        }
        let pending = pending_of(card.kind);
        let to = (Status::Running, Some(pending));
        self.enter(cx, id, Actor::Stream, pending.as_str(), to, |row| row.card = Some(card));
    }

    /// The CLI withdraws what it asked.
    pub(super) fn withdrawn(&mut self, cx: &mut Cx, id: SessionId, request: &str) {
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.cards_waiting.retain(|card| card.request != request);
        if session.row.card.as_ref().is_some_and(|card| card.request == request) {
            self.clear_card(cx, id, Actor::Stream, "the CLI withdrew its request");
        }
    }

    fn clear_card(&mut self, cx: &mut Cx, id: SessionId, actor: Actor, reason: &str) {
        let now = cx.now.mono;
        let Some(session) = self.session(id) else {
            return;
        };
        if let Some(turn) = session.live.turn.as_mut() {
            turn.card_open = false;
            turn.last_sign = now;
        }
        let status = session.row.status;
        let next = session.live.cards_waiting.pop_front();
        self.enter(cx, id, actor, reason, (status, None), |row| row.card = None);
        if let Some(next) = next {
            self.offer(cx, id, next);
        }
    }

    /// The person answers the open card.
    pub(super) fn reply_card(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        request: &str,
        reply: &CardReply,
    ) -> Result<Reply, IpcError> {
        self.known(id)?;
        let Some(session) = self.session(id) else {
            return Err(no_card());
        };
        let Some(card) = session.row.card.clone().filter(|card| card.request == request) else {
            return Err(no_card());
        };
        if !reply.fits(card.kind) {
            return Err(IpcError {
                code: IpcCode::Invalid,
                message: "This answer does not fit the question.".into(),
            });
        }
        self.add_block(cx, id, BlockKind::Answered { text: told(&card, reply) });
        if card.orphaned || !session_takes_answers(self, id) {
            return Ok(self.reply_as_message(cx, id, &card, reply));
        }
        let allowed = is_allowed(reply);
        self.set_call(cx, id, &card.tool_use, |state| match state {
            CallState::Asked | CallState::Started if allowed => CallState::Started,
            CallState::Asked | CallState::Started => CallState::Denied,
            CallState::Denied | CallState::Finished => state,
        });
        let response = response_of(&card, reply);
        self.control(cx, id, Control::Answer { request: card.request, response });
        self.clear_card(cx, id, Actor::User, "answered");
        Ok(Reply::Done)
    }

    /// The child behind the card is gone: the answer resumes the session as a message (OD-07).
    fn reply_as_message(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        card: &Card,
        reply: &CardReply,
    ) -> Reply {
        let text = message_of(card, reply);
        self.change(cx, id, Actor::User, "answered", |row| row.card = None);
        self.enter(cx, id, Actor::User, "answered", (Status::NeedsYou, None), |_| {});
        let message = self.enqueue(cx, id, Origin::Operator, text, true);
        self.send_next(cx, id);
        Reply::Accepted(message)
    }
}

fn session_takes_answers(state: &State, id: SessionId) -> bool {
    state.sessions.get(&id).is_some_and(|session| session.live.child.is_up())
}

fn no_card() -> IpcError {
    IpcError { code: IpcCode::NotFound, message: "This question is no longer open.".into() }
}

fn kind_of(tool: &str) -> CardKind {
    match tool {
        "AskUserQuestion" => CardKind::Question,
        "ExitPlanMode" => CardKind::Plan,
        _ => CardKind::Permission,
    }
}

fn pending_of(kind: CardKind) -> PendingAction {
    match kind {
        CardKind::Permission => PendingAction::PermissionRequest,
        CardKind::Question => PendingAction::Question,
        CardKind::Plan => PendingAction::PlanApproval,
    }
}

fn is_allowed(reply: &CardReply) -> bool {
    match reply {
        CardReply::Allow
        | CardReply::AllowSession
        | CardReply::Answers { .. }
        | CardReply::ApprovePlan { .. } => true,
        CardReply::Deny { .. } | CardReply::KeepPlanning { .. } => false,
    }
}

/// The body the CLI expects as the answer to `can_use_tool`.
fn response_of(card: &Card, reply: &CardReply) -> Value {
    let input = || card.input.clone();
    let denied = |message: &Option<String>, fallback: &str| {
        let message = message.clone().filter(|text| !text.trim().is_empty());
        json!({"behavior": "deny", "message": message.unwrap_or_else(|| fallback.to_string())})
    };
    match reply {
        CardReply::Allow | CardReply::ApprovePlan { ask_each_edit: true } => {
            json!({"behavior": "allow", "updatedInput": input()})
        }
        CardReply::AllowSession => json!({
            "behavior": "allow", "updatedInput": input(), "updatedPermissions": card.suggestions,
        }),
        CardReply::ApprovePlan { ask_each_edit: false } => json!({
            "behavior": "allow", "updatedInput": input(),
            "updatedPermissions": [
                {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
            ],
        }),
        CardReply::Deny { message } => denied(message, "The user denied this."),
        CardReply::KeepPlanning { message } => denied(message, "Keep planning."),
        CardReply::Answers { answers } => {
            let mut updated = input();
            if let Value::Object(fields) = &mut updated {
                fields.insert("answers".into(), json!(answers));
            }
            json!({"behavior": "allow", "updatedInput": updated})
        }
    }
}

/// The line that stands in the conversation instead of the card.
fn told(card: &Card, reply: &CardReply) -> String {
    let detail = tool_detail(&card.input);
    let what = if detail.is_empty() { card.tool.clone() } else { format!("`{detail}`") };
    match reply {
        CardReply::Allow => format!("You allowed {what} once"),
        CardReply::AllowSession => format!("You allowed {what} for this session"),
        CardReply::Deny { .. } => format!("You denied {what}"),
        CardReply::Answers { answers } => {
            let texts: alloc::vec::Vec<_> = answers.values().cloned().collect();
            format!("You answered: {}", texts.join(", "))
        }
        CardReply::ApprovePlan { .. } => "You approved the plan".to_string(),
        CardReply::KeepPlanning { .. } => "You asked to keep planning".to_string(),
    }
}

/// The same answer as a message of its own.
fn message_of(card: &Card, reply: &CardReply) -> String {
    let detail = tool_detail(&card.input);
    let what =
        if detail.is_empty() { card.tool.clone() } else { format!("{}: {detail}", card.tool) };
    let with = |message: &Option<String>| {
        message.as_deref().map(|text| format!(" {text}")).unwrap_or_default()
    };
    match reply {
        CardReply::Allow | CardReply::AllowSession => {
            format!("You asked for permission ({what}) before you were restarted: yes, go ahead.")
        }
        CardReply::Deny { message } => {
            format!("You asked ({what}) before you were restarted: no.{}", with(message))
        }
        CardReply::Answers { answers } => {
            let lines: alloc::vec::Vec<_> =
                answers.iter().map(|(question, answer)| format!("{question}\n{answer}")).collect();
            format!(
                "My answer to what you asked before you were restarted:\n{}",
                lines.join("\n\n")
            )
        }
        CardReply::ApprovePlan { .. } => "I approve your plan. Carry it out.".to_string(),
        CardReply::KeepPlanning { message } => {
            format!("I do not approve your plan yet. Keep planning.{}", with(message))
        }
    }
}
