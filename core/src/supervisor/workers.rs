//! Workers: sessions that another session's agent spawned (A-22, A-27, OD-60). Their task, their
//! reports, their bound, and the retirement of one that never came to life.
//!
//! What an agent asks for is hostile input: it is checked and bounded here, whichever way it came.
//! Nothing here spawns a worker a second time for its parent (PO-08), and nothing of a retirement is
//! ever written to a child.

use super::asks::LaunchFor;
use super::commands::error;
use super::live::{Child, Live, Session};
use super::sending::{reset_budget, title_of};
use super::{AgentTool, Cx, State, Write, change, view};
use crate::attention::attention;
use crate::block::BlockKind;
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError};
use crate::launch::Conversation;
use crate::message::{LineText, Message, MessageState, Origin, UserLine, is_local_command};
use crate::prompt;
use crate::recovery::orphan::{OrphanFacts, is_pre_init_dead_child};
use crate::session::{ArchiveReason, Gate, SessionRow, Status};
use crate::verdict::Actor;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::{Value, json};

/// A gate's name may be this long, in characters.
const GATE_NAME_MAX_CHARS: usize = 100;
/// So many of the newest workers are listed.
const LISTED_MAX: usize = 100;

/// What a tool says, as JSON text.
type Told = Result<String, IpcError>;

impl State {
    /// One of the app's own tools, called by the agent of this session.
    pub(super) fn agent_tool(&mut self, cx: &mut Cx, id: SessionId, tool: AgentTool) -> Told {
        // rule: A-22
        self.known(id)?;
        if self.quitting {
            return Err(error(IpcCode::Quitting, "Omniscio is quitting."));
        }
        // a process that outlived its CLI acts for nobody
        if !self.sessions.get(&id).is_some_and(|session| session.live.child.is_up()) {
            return Err(error(IpcCode::NotEligible, "The CLI of this session does not run."));
        }
        match tool {
            AgentTool::SpawnWorker { task, title } => self.spawn_worker(cx, id, &task, title),
            AgentTool::ListWorkers => Ok(self.list_workers(cx, id)),
            AgentTool::OpenGate { name } => self.open_gate(cx, id, &name),
            AgentTool::CloseGate { name } => self.close_gate(cx, id, &name),
        }
    }

    fn spawn_worker(
        &mut self,
        cx: &mut Cx,
        parent: SessionId,
        task: &str,
        title: Option<String>,
    ) -> Told {
        // rule
        let task = self.checked_task(task)?;
        let max = self.limits.workers_max;
        if self.family_at_work(parent) >= max {
            let message = format!(
                "{max} workers are at work or still open. Wait for their reports, or ask the user \
                 to end or archive some."
            );
            return Err(error(IpcCode::Full, &message));
        }
        let id = self.rng.uuid();
        let from = self.known(parent)?;
        let title = title.map(|title| title_of(&title)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| title_of(&task));
        let (folder, account) = (from.folder.clone(), from.account.clone());
        let mut row = SessionRow::new(id, folder, title.clone(), account, cx.now.wall);
        row.model.clone_from(&from.model);
        row.endpoint.clone_from(&from.endpoint);
        row.permission_mode = from.permission_mode;
        row.user_settings_only = from.user_settings_only;
        row.parent = Some(parent);
        row.launch_request = Some(task);
        let session = Session { row, live: Live::new(0, VecDeque::new(), cx.now.wall) };
        change::insert(cx, &session, Actor::App, "spawned by its parent");
        self.sessions.insert(id, session);
        self.ask_launch(cx, id, LaunchFor::Queue);
        Ok(json!({ "worker": id, "title": title }).to_string())
    }

    fn checked_task(&self, task: &str) -> Result<String, IpcError> {
        let task = task.trim();
        let max = self.limits.task_max_bytes;
        if task.is_empty() {
            return Err(error(IpcCode::Invalid, "The task is empty."));
        }
        if task.len() > max {
            let message = format!("The task is longer than {} KB. Put it into a file.", max / 1024);
            return Err(error(IpcCode::Invalid, &message));
        }
        if is_local_command(task) {
            // no turn would begin and no report would come
            return Err(error(IpcCode::Invalid, "A command of the CLI is no task."));
        }
        Ok(task.to_string())
    }

    /// Workers of the whole family that are not done: workers of workers count with them, so that no
    /// agent multiplies without end.
    fn family_at_work(&self, of: SessionId) -> usize {
        let root = self.root_of(of);
        let at_work = |(id, session): &(&SessionId, &Session)| {
            let row = &session.row;
            let open = !row.is_gone() && row.status != Status::Ended;
            let done = (row.status, row.pending) == (Status::NeedsYou, None)
                && session.live.child == Child::None;
            row.parent.is_some() && open && !done && self.root_of(**id) == root
        };
        self.sessions.iter().filter(at_work).count()
    }

    fn root_of(&self, id: SessionId) -> SessionId {
        let mut at = id;
        // as many steps as there are sessions: rows that name each other end it too
        for _ in 0..self.sessions.len() {
            let parent = self.sessions.get(&at).and_then(|session| session.row.parent);
            match parent.filter(|parent| self.sessions.contains_key(parent)) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    fn list_workers(&self, cx: &Cx, parent: SessionId) -> String {
        let mut workers: Vec<&Session> = self.sessions.values().collect();
        workers.retain(|session| {
            session.row.parent == Some(parent) && session.row.deleted_at.is_none()
        });
        workers.sort_by_key(|session| (session.row.created_at, session.row.id));
        let (retired, open): (Vec<&Session>, Vec<&Session>) =
            workers.into_iter().partition(|session| session.row.is_gone());
        let open = newest(&open).map(|session| {
            let seen = attention(&view(session), &self.policy, &self.limits, cx.now);
            let row = &session.row;
            json!({ "id": row.id, "title": row.title, "state": seen.state.as_str() })
        });
        let retired = newest(&retired).map(|session| {
            let row = &session.row;
            let reason = row.archive_reason.map(ArchiveReason::as_str);
            json!({ "id": row.id, "title": row.title, "reason": reason })
        });
        let (open, retired) = (open.collect::<Vec<Value>>(), retired.collect::<Vec<Value>>());
        json!({ "workers": open, "retired": retired }).to_string()
    }

    fn open_gate(&mut self, cx: &mut Cx, id: SessionId, name: &str) -> Told {
        // rule: A-16
        let name = checked_name(name)?;
        let row = self.known(id)?;
        if row.gates.iter().any(|gate| gate.name == name) {
            return Err(error(IpcCode::Invalid, "A gate of this name is open already."));
        }
        let max = self.limits.gates_max;
        if row.gates.len() >= max {
            let message = format!("{max} gates are open. Close one first.");
            return Err(error(IpcCode::Full, &message));
        }
        let told = json!({ "opened": name }).to_string();
        let gate = Gate { name, opened_at: cx.now.wall };
        self.change(cx, id, Actor::Stream, "gate opened", |row| row.gates.push(gate));
        Ok(told)
    }

    fn close_gate(&mut self, cx: &mut Cx, id: SessionId, name: &str) -> Told {
        let name = checked_name(name)?;
        if !self.known(id)?.gates.iter().any(|gate| gate.name == name) {
            return Err(error(IpcCode::NotFound, "No gate of this name is open."));
        }
        let told = json!({ "closed": name }).to_string();
        self.change(cx, id, Actor::Stream, "gate closed", |row| {
            row.gates.retain(|gate| gate.name != name);
        });
        Ok(told)
    }

    /// What an agent declared ends with its process.
    pub(super) fn close_gates(&mut self, cx: &mut Cx, id: SessionId, actor: Actor) {
        self.change(cx, id, actor, "gates closed", |row| row.gates.clear());
    }

    /// Whether the session is a worker whose task has not begun.
    pub(super) fn has_task(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.row.launch_request.is_some())
    }

    /// The launch of a worker whose task has not begun: always in a conversation of its own.
    pub(super) fn launch_task(&mut self, cx: &mut Cx, id: SessionId) {
        let conversation = Conversation::New { id: self.mint().conversation };
        self.launch_queue(cx, id, conversation, None);
    }

    /// Writes the task of a worker that has not begun it: the first line of its child, before anything
    /// that was queued for it meanwhile.
    pub(super) fn write_task(&mut self, cx: &mut Cx, id: SessionId) -> bool {
        // rule: A-27
        let task = self.sessions.get(&id).and_then(|session| session.row.launch_request.clone());
        let Some(task) = task else {
            return false;
        };
        let uuid = self.rng.uuid();
        let line = UserLine { uuid, origin: Origin::Orchestrator, text: LineText::Own(task) };
        self.open_turn(cx, id, Some(&line), None, false);
        let queue = self.sessions.get(&id).map(|session| &session.live.queue);
        if queue.is_some_and(|queue| queue.iter().any(|queued| queued.origin.is_real_user())) {
            // rule: CT-05
            // the person has spoken: the task goes first, but it is their message that starts it
            self.change(cx, id, Actor::User, "message behind the task", reset_budget);
        }
        self.write_line(cx, id, line);
        true
    }

    /// The CLI's first `system/init`: from here on the worker has come to life, and its task is its
    /// first operator turn, a message like any other.
    pub(super) fn task_begun(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: A-27, DB-10
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let sent = session.live.turn.as_ref().and_then(|turn| turn.sent.first().copied());
        let (Some(uuid), Some(text)) = (sent, session.row.launch_request.clone()) else {
            return;
        };
        cx.write(Write::Message(Message {
            id: uuid,
            session: id,
            origin: Origin::Orchestrator,
            text: text.clone(),
            created_at: cx.now.wall,
            state: MessageState::Sent,
        }));
        self.change(cx, id, Actor::Stream, "the worker began its task", |row| {
            row.launch_request = None;
            row.replay.message = Some(uuid);
        });
        self.add_block(cx, id, BlockKind::Operator { message: uuid, text });
    }

    /// A worker's turn is over: what it delivered goes to its parent, which gets it when it is free.
    pub(super) fn report(&mut self, cx: &mut Cx, id: SessionId, delivered: bool, text: &str) {
        // rule: A-27
        let Some(session) = self.sessions.get(&id).filter(|_| delivered) else {
            return;
        };
        let row = &session.row;
        let Some(parent) = row.parent.filter(|parent| self.known(*parent).is_ok()) else {
            return;
        };
        let text = prompt::worker_report(&row.title, id, prompt::cut_markers(text).trim());
        self.enqueue(cx, parent, Origin::Orchestrator, text, false);
        self.send_if_free(cx, parent);
    }

    /// Retires the session if it is a worker that never came to life; tells whether it was one. Quiet:
    /// nobody is notified, nothing is written to a child, nothing is spawned in its place.
    pub(super) fn retire_pre_init_orphan(&mut self, cx: &mut Cx, id: SessionId) -> bool {
        // rule: PO-01, PO-03, PO-04, PO-06, PO-08
        if self.policy.switches.preinit_orphan_retire {
            return false;
        }
        let Some(session) = self.sessions.get(&id) else {
            return false;
        };
        if session.row.is_gone() || !is_pre_init_dead_child(&facts_of(session)) {
            return false;
        }
        let row = &session.row;
        let reason = match row.status {
            Status::Stalled => ArchiveReason::RecoveryTerminal,
            Status::Starting
            | Status::Running
            | Status::Waiting
            | Status::NeedsYou
            | Status::Error
            | Status::Paused
            | Status::Ended
            | Status::Archived => ArchiveReason::OrphanPreinit,
        };
        let (parent, note) = (row.parent, prompt::note_worker_retired(&row.title));
        let to = (Status::Archived, row.pending);
        self.enter(cx, id, Actor::App, reason.as_str(), to, |row| {
            row.archive_reason = Some(reason);
            row.intent_running = false;
            row.turn = None;
            row.card = None;
            row.hide_since = None;
        });
        if let Some(parent) = parent.filter(|parent| self.known(*parent).is_ok()) {
            self.note(cx, parent, &note);
        }
        true
    }

    /// The same for every session that another one spawned.
    pub(super) fn retire_orphans(&mut self, cx: &mut Cx) {
        // rule: PO-01, PO-10
        let spawned = self.sessions.awake().filter(|(_, session)| session.row.parent.is_some());
        let ids: Vec<SessionId> = spawned.map(|(id, _)| *id).collect();
        for id in ids {
            self.retire_pre_init_orphan(cx, id);
        }
    }
}

/// What the predicate asks.
fn facts_of(session: &Session) -> OrphanFacts {
    let (row, live) = (&session.row, &session.live);
    let queued = live.queue.iter().any(|queued| queued.origin.is_replayable());
    let shown = row.turn.as_ref().is_some_and(|turn| turn.real_output);
    OrphanFacts {
        spawned: row.parent.is_some(),
        cli_session: row.cli_session_id.is_some(),
        message_saved: row.replay.message.is_some() || queued,
        real_output: row.ever_answered || !row.replay.calls.is_empty() || shown,
        live_child: live.child != Child::None || live.restart_under_way(),
        // rule: PO-09
        launch_retry_pending: live.relaunch.is_some(),
        status: row.status,
        pending: row.pending,
    }
}

fn newest<'a>(sessions: &'a [&'a Session]) -> impl Iterator<Item = &'a Session> {
    sessions.iter().skip(sessions.len().saturating_sub(LISTED_MAX)).copied()
}

fn checked_name(name: &str) -> Result<String, IpcError> {
    let name = name.trim();
    let fits = !name.is_empty() && name.chars().count() <= GATE_NAME_MAX_CHARS;
    if !fits || name.chars().any(char::is_control) {
        let message =
            format!("A gate's name is one line of at most {GATE_NAME_MAX_CHARS} characters.");
        return Err(error(IpcCode::Invalid, &message));
    }
    Ok(name.to_string())
}
