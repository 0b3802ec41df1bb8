//! What a person can want, checked against the row as it is.

use super::asks::{AskFor, LaunchFor};
use super::live::{Live, Session};
use super::sending::title_of;
use super::{Act, Command, Question, ReplyTo, Write};
use super::{Cx, State, change};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use crate::message::{MessageState, Origin, is_local_command};
use crate::session::{ArchiveReason, PendingAction, PermissionMode, SessionRow, Status};
use crate::verdict::Actor;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub(super) type Answered = Result<Reply, IpcError>;

/// A title may be this long, in characters.
const TITLE_MAX_CHARS: usize = 200;

/// What the new-session dialog asks for.
struct NewSession {
    folder: String,
    text: String,
    model: Option<String>,
    permission_mode: Option<PermissionMode>,
    account: Option<String>,
    endpoint: Option<String>,
    user_settings_only: bool,
}

impl State {
    pub(super) fn command(&mut self, cx: &mut Cx, to: ReplyTo, command: Command) {
        if self.quitting {
            let reply = Err(error(IpcCode::Quitting, "Omniscio is quitting."));
            cx.act(Act::Reply { to, reply });
            return;
        }
        if let Command::SwitchModel { session, model } = command {
            // its reply waits for the hand-over
            self.switch_model(cx, session, model, to);
            return;
        }
        if let Command::TakeOver { session, shown } = command {
            // its reply waits for the other program's end
            self.take_over(cx, session, shown, to);
            return;
        }
        if let Command::Fork { session } = command {
            // its reply waits for what the person said last
            self.fork(cx, session, to);
            return;
        }
        let reply = self.do_command(cx, command);
        cx.act(Act::Reply { to, reply });
    }

    fn do_command(&mut self, cx: &mut Cx, command: Command) -> Answered {
        match command {
            Command::Create {
                folder,
                text,
                model,
                permission_mode,
                account,
                endpoint,
                user_settings_only,
            } => {
                let new = NewSession {
                    folder,
                    text,
                    model,
                    permission_mode,
                    account,
                    endpoint,
                    user_settings_only,
                };
                self.create(cx, new)
            }
            Command::Send { session, text, now } => self.send(cx, session, text, now),
            Command::Unqueue { session, message } => self.unqueue(cx, session, message),
            Command::Stop { session } => self.stop(cx, session),
            Command::Retry { session } => self.force_restart(cx, session),
            Command::Continue { session } => self.continue_session(cx, session),
            Command::ReplyCard { session, request, reply } => {
                self.reply_card(cx, session, &request, &reply)
            }
            // answered above
            Command::SwitchModel { .. } | Command::TakeOver { .. } | Command::Fork { .. } => {
                Ok(Reply::Done)
            }
            Command::ForkHeld { session } => self.fork_held(cx, session),
            Command::End { session } => self.put_away(cx, session, Status::Ended, None),
            Command::Archive { session } => {
                self.put_away(cx, session, Status::Archived, Some(ArchiveReason::User))
            }
            Command::Unarchive { session } => self.unarchive(cx, session),
            Command::Delete { session } => self.delete(cx, session),
            Command::Rename { session, title } => self.rename(cx, session, &title),
            Command::MarkRead { session, read } => {
                self.known(session)?;
                self.change(cx, session, Actor::User, "seen", |row| row.unread = !read);
                Ok(Reply::Done)
            }
            Command::SetSetting { change } => {
                // rule: ST-07
                self.policy.settings.apply(change);
                self.settings_changed(cx);
                Ok(Reply::Done)
            }
            Command::SetEndpoint { endpoint } => self.set_endpoint(cx, &endpoint),
            Command::RemoveEndpoint { endpoint } => self.remove_endpoint(cx, &endpoint),
            Command::Agent { session, tool } => self.agent_tool(cx, session, tool).map(Reply::Told),
            Command::Explain { session } => {
                self.explain(session, cx.now).map(Reply::Explained).ok_or_else(not_found)
            }
            Command::Quit => {
                self.quit(cx);
                Ok(Reply::Done)
            }
        }
    }

    /// Keeps the settings as they are now, and shows them.
    pub(super) fn settings_changed(&mut self, cx: &mut Cx) {
        cx.write(Write::Settings(self.policy.settings.clone()));
        cx.act(Act::EmitSettings(self.policy.settings.clone()));
        // a setting may change who waits for a person
        self.sessions.wake_all();
        self.recount(cx);
    }

    pub(super) fn known(&self, id: SessionId) -> Result<&SessionRow, IpcError> {
        let session = self.sessions.get(&id).ok_or_else(not_found)?;
        if session.row.deleted_at.is_some() { Err(not_found()) } else { Ok(&session.row) }
    }

    fn checked_text(&self, text: &str) -> Result<(), IpcError> {
        if text.trim().is_empty() {
            return Err(error(IpcCode::Invalid, "The message is empty."));
        }
        if text.len() > self.limits.message_max_bytes {
            let limit = self.limits.message_max_bytes / (1024 * 1024);
            let message = format!("The message is longer than {limit} MB. Put it into a file.");
            return Err(error(IpcCode::Invalid, &message));
        }
        Ok(())
    }

    fn create(&mut self, cx: &mut Cx, new: NewSession) -> Answered {
        self.checked_text(&new.text)?;
        if !new.folder.starts_with('/') && !new.folder.contains(":\\") {
            return Err(error(IpcCode::Invalid, "Give the project folder's full path."));
        }
        let account = match new.account {
            Some(account) if self.accounts.iter().any(|known| known.id == account) => account,
            Some(_) => return Err(error(IpcCode::Invalid, "There is no such account.")),
            None => self.accounts.first().map(|first| first.id.clone()).unwrap_or_default(),
        };
        let model = new.model.filter(|model| !model.trim().is_empty());
        if let Some(endpoint) = &new.endpoint {
            self.check_choice(endpoint, model.as_deref())?;
        }
        let id = self.rng.uuid();
        let title = title_of(&new.text);
        let mut row = SessionRow::new(id, new.folder, title, account, cx.now.wall);
        row.model = model;
        row.endpoint = new.endpoint;
        row.permission_mode = new.permission_mode;
        row.user_settings_only = new.user_settings_only;
        self.add_session(cx, row, new.text)
    }

    fn add_session(&mut self, cx: &mut Cx, row: SessionRow, text: String) -> Answered {
        let id = row.id;
        let since = row.created_at;
        let session = Session { row, live: Live::new(0, VecDeque::new(), since) };
        change::insert(cx, &session, Actor::User, "created");
        self.sessions.insert(id, session);
        self.enqueue(cx, id, Origin::Operator, text, false);
        self.ask_launch(cx, id, LaunchFor::Queue);
        Ok(Reply::Created(id))
    }

    fn send(&mut self, cx: &mut Cx, id: SessionId, text: String, now: bool) -> Answered {
        // rule
        let row = self.known(id)?;
        if row.status == Status::Archived {
            return Err(error(
                IpcCode::NotEligible,
                "Bring the session back from the archive first.",
            ));
        }
        self.checked_text(&text)?;
        let (queue_max, full) =
            (self.limits.queue_max, "The queue is full. Take a message back first.");
        let Some(session) = self.session(id) else {
            return Err(not_found());
        };
        if session.live.queue.len() >= queue_max {
            return Err(error(IpcCode::Full, full));
        }
        let local = is_local_command(&text);
        let begun = matches!(session.row.status, Status::Starting | Status::Running);
        let in_flight = session.live.busy() || begun && session.live.restart_under_way();
        let takes_over =
            session.row.pending == Some(PendingAction::RecoveryFailed) && in_flight && !local;
        if takes_over {
            // rule: RF-07, A-26
            // what the person says takes over from a rung in flight
            self.let_go(cx, id);
            self.stop_child(cx, id);
            let message = self.enqueue(cx, id, Origin::Operator, text, true);
            self.send_next(cx, id);
            return Ok(Reply::Accepted(message));
        }
        let busy = session.live.busy();
        let turn_open = session.live.turn.is_some();
        // a launch that has begun keeps the order of the person's messages; a Retry that only looks is
        // overtaken, except by a command that brings nothing back
        let own_launch = session.live.asking.is_some() && (begun || local);
        let first = now || !(busy || own_launch);
        let message = self.enqueue(cx, id, Origin::Operator, text, first);
        if turn_open && now {
            self.interrupt(cx, id, true);
        } else if !busy && !own_launch {
            self.send_next(cx, id);
        }
        Ok(Reply::Accepted(message))
    }

    fn unqueue(&mut self, cx: &mut Cx, id: SessionId, message: crate::id::MessageId) -> Answered {
        self.known(id)?;
        self.keep_queue(cx, id);
        let taken = self.session(id).and_then(|session| session.live.take_queued(message));
        if taken.is_none() {
            return Err(error(IpcCode::NotFound, "The message was already sent."));
        }
        cx.write(Write::MessageState { id: message, state: MessageState::Withdrawn });
        cx.touched.insert(id);
        self.cancel_idle_launch(cx, id);
        Ok(Reply::Done)
    }

    fn stop(&mut self, cx: &mut Cx, id: SessionId) -> Answered {
        self.known(id)?;
        let Some(session) = self.session(id) else {
            return Err(not_found());
        };
        if session.live.turn.is_some() && session.live.child.is_up() {
            self.interrupt(cx, id, false);
            return Ok(Reply::Done);
        }
        let stoppable = match session.row.status {
            Status::Starting | Status::Running => true,
            Status::NeedsYou | Status::Error => session.row.in_shape(),
            Status::Waiting => session.row.pending.is_none(),
            Status::Stalled | Status::Paused | Status::Ended | Status::Archived => false,
        };
        if !stoppable {
            return Err(error(IpcCode::NotEligible, "There is nothing to stop."));
        }
        session.live.forget_launch();
        session.live.ending = None;
        self.finish_stop(cx, id);
        self.stop_child(cx, id);
        Ok(Reply::Done)
    }

    fn put_away(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        status: Status,
        archived: Option<ArchiveReason>,
    ) -> Answered {
        self.known(id)?;
        self.let_go(cx, id);
        // the archived row keeps its last pending action for the audit; an ended one has none
        let pending = self.sessions.get(&id).and_then(|session| session.row.pending);
        let pending = pending.filter(|_| status == Status::Archived);
        self.enter(cx, id, Actor::User, status.as_str(), (status, pending), |row| {
            row.archive_reason = archived;
            row.intent_running = false;
            row.replay.stopped = true;
            row.deferred_work = None;
            row.turn = None;
            row.card = None;
            row.hide_since = None;
        });
        self.stop_child(cx, id);
        Ok(Reply::Done)
    }

    /// Whatever was under way for the session is let go; its transcript keeps what was said.
    pub(super) fn let_go(&mut self, cx: &mut Cx, id: SessionId) {
        let now = cx.now;
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.forget_launch();
        session.live.ending = None;
        session.live.stop_asked = None;
        session.live.turn = None;
        session.live.before_local = None;
        session.live.stamped_before = None;
        session.live.cards_waiting.clear();
        let changes = session.live.builder.cut_off(now);
        self.show(cx, id, changes);
    }

    fn unarchive(&mut self, cx: &mut Cx, id: SessionId) -> Answered {
        let row = self.known(id)?;
        if row.status != Status::Archived {
            return Err(error(IpcCode::NotEligible, "The session is not in the archive."));
        }
        self.enter(cx, id, Actor::User, "unarchived", (Status::Ended, None), |row| {
            row.archive_reason = None;
        });
        Ok(Reply::Done)
    }

    fn delete(&mut self, cx: &mut Cx, id: SessionId) -> Answered {
        self.known(id)?;
        self.let_go(cx, id);
        let now = cx.now.wall;
        self.change(cx, id, Actor::User, "deleted", |row| {
            row.deleted_at = Some(now);
            row.intent_running = false;
            row.deferred_work = None;
            row.turn = None;
            row.card = None;
        });
        self.stop_child(cx, id);
        Ok(Reply::Done)
    }

    fn rename(&mut self, cx: &mut Cx, id: SessionId, title: &str) -> Answered {
        self.known(id)?;
        let title: String = title.trim().chars().take(TITLE_MAX_CHARS).collect();
        if title.is_empty() {
            return Err(error(IpcCode::Invalid, "The title is empty."));
        }
        self.change(cx, id, Actor::User, "renamed", |row| row.title = title);
        Ok(Reply::Done)
    }

    fn switch_model(&mut self, cx: &mut Cx, id: SessionId, model: Option<String>, to: ReplyTo) {
        if let Err(wrong) = self.known(id).map(|_| ()) {
            cx.act(Act::Reply { to, reply: Err(wrong) });
            return;
        }
        let wait = self.limits.ask_ms;
        let what = AskFor::SwitchModel { session: id, model, reply: to };
        self.ask(cx, what, Question::Handover { session: id }, wait);
    }

    /// The new session of Switch model: hand-over, then the last message.
    pub(super) fn create_switched(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        model: Option<String>,
        handover: String,
        last_message: Option<String>,
    ) -> Result<SessionId, IpcError> {
        // rule: RT-26
        let old = self.known(id)?.clone();
        let new_id = self.rng.uuid();
        let mut row = SessionRow::new(new_id, old.folder, old.title, old.account, cx.now.wall);
        row.model = model.filter(|model| !model.trim().is_empty());
        // an endpoint brings its model: another model is Claude's own
        row.endpoint = old.endpoint.filter(|_| row.model == old.model);
        row.permission_mode = old.permission_mode;
        row.user_settings_only = old.user_settings_only;
        let text = match last_message {
            Some(last) => format!("{handover}\n\n{last}"),
            None => handover,
        };
        self.add_session(cx, row, text)?;
        Ok(new_id)
    }

    /// Quit: children are stopped, rows keep what they are and what they intend.
    fn quit(&mut self, cx: &mut Cx) {
        // rule: A-31
        self.quitting = true;
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            if let Some(session) = self.session(id) {
                session.live.forget_launch();
            }
            self.stop_child(cx, id);
        }
        self.exit_when_done(cx);
    }
}

/// An error for the window.
pub(super) fn error(code: IpcCode, message: &str) -> IpcError {
    IpcError { code, message: message.to_string() }
}

pub(super) fn not_found() -> IpcError {
    error(IpcCode::NotFound, "There is no such session.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::PendingAction;

    #[test]
    fn a_pending_action_of_its_own_is_kept_only_in_the_archive() {
        assert!(crate::session::is_legal(Status::Archived, Some(PendingAction::RecoveryFailed)));
        assert!(!crate::session::is_legal(Status::Ended, Some(PendingAction::RecoveryFailed)));
    }
}
