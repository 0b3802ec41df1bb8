//! What the children of the port do, and what is seen of their sessions.

use super::super::super::rig::line;
use super::super::super::*;
use super::Port;
use crate::id::{SessionId, Uuid};
use crate::launch::Conversation;
use crate::session::SessionRow;
use crate::stream::{Content, TurnResult};
use alloc::boxed::Box;

impl Port {
    fn launch_of(&self, id: SessionId) -> LaunchId {
        self.state.sessions[&id].live.child.launch().expect("a child")
    }

    /// The machine sleeps; what it was doing goes on after it.
    pub(in crate::supervisor::tests::launches) fn sleep(&mut self, millis: u64) {
        self.now.mono = self.now.mono.plus(millis);
        self.now.wall = self.now.wall.plus(millis);
        for (at, _) in &mut self.later {
            *at = at.plus(millis);
        }
        self.feed(Input::Slept { millis });
    }

    /// Its stop is reported at last.
    pub(in crate::supervisor::tests::launches) fn stopped(&mut self, session: SessionId) {
        let launch = self.launch_of(session);
        self.feed(Input::Stopped { session, launch, leftovers: 0 });
    }

    /// The child says something in its turn.
    pub(in crate::supervisor::tests::launches) fn say(&mut self, session: SessionId) {
        let launch = self.launch_of(session);
        let event = line(Content::Text("so far".into()));
        self.feed(Input::Stream { session, launch, event });
    }

    /// The API refused: the child lives on.
    pub(in crate::supervisor::tests::launches) fn refuse_turn(&mut self, session: SessionId) {
        let launch = self.launch_of(session);
        let event = StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            is_error: true,
            terminal_reason: Some("api_error".into()),
            status: Some(529),
            num_turns: 1,
            text: "API Error".into(),
            ..TurnResult::default()
        }));
        self.feed(Input::Stream { session, launch, event });
    }

    /// How the last launch of a session was to begin.
    pub(in crate::supervisor::tests::launches) fn conversation(
        &self,
        id: SessionId,
    ) -> Conversation {
        self.plans[&id].conversation
    }

    pub(in crate::supervisor::tests::launches) fn queue(&self, id: SessionId) -> Vec<Queued> {
        self.queues.get(&id).cloned().unwrap_or_default()
    }

    pub(in crate::supervisor::tests::launches) fn ended(
        &mut self,
        session: SessionId,
        launch: LaunchId,
    ) {
        if self.alive.get(&session) == Some(&launch) {
            self.alive.remove(&session);
        }
    }

    /// The child exits in the middle of its turn.
    pub(in crate::supervisor::tests::launches) fn exit(&mut self, session: SessionId) {
        let launch = self.launch_of(session);
        self.ended(session, launch);
        self.feed(Input::Exited { session, launch, code: None, signal: Some(9) });
    }

    /// The child answers its turn.
    pub(in crate::supervisor::tests::launches) fn answer_turn(&mut self, session: SessionId) {
        let launch = self.launch_of(session);
        let messages: Vec<Uuid> =
            self.lines.get(&session).map(|line| line.uuid).into_iter().collect();
        let text = line(Content::Text("done".into()));
        self.feed(Input::Stream { session, launch, event: text });
        let event = StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            terminal_reason: Some("completed".into()),
            num_turns: 1,
            text: "done".into(),
            messages,
            ..TurnResult::default()
        }));
        self.feed(Input::Stream { session, launch, event });
    }

    /// Its child dies as often as it is brought back, until it is given up.
    pub(in crate::supervisor::tests::launches) fn give_up(&mut self, id: SessionId) {
        while self.row(id).pending != Some(PendingAction::RecoveryFailed) {
            if self.row(id).status == Status::Running {
                self.exit(id);
            }
            self.pass(10_000);
        }
    }

    /// Its reply is cut off, and the replay cannot be launched for a lasting reason.
    pub(in crate::supervisor::tests::launches) fn fail_replay(&mut self, id: SessionId) {
        self.exit(id);
        self.fails.insert(id, (1, super::ENOENT));
        while self.row(id).pending.is_some() || self.row(id).status != Status::Error {
            self.pass(1_000);
        }
    }

    /// What its child was sent last.
    pub(in crate::supervisor::tests::launches) fn last_line(
        &self,
        id: SessionId,
    ) -> Option<LineText> {
        self.lines.get(&id).map(|line| line.text.clone())
    }

    pub(in crate::supervisor::tests::launches) fn row(&self, id: SessionId) -> &SessionRow {
        &self.rows[&id]
    }

    pub(in crate::supervisor::tests::launches) fn seen(
        &self,
        id: SessionId,
    ) -> crate::attention::Attention {
        let view = self.state.view(id).expect("a view");
        crate::attention::attention(&view, self.state.policy(), self.state.limits(), self.now)
    }

    pub(in crate::supervisor::tests::launches) fn notes_of(&self, id: SessionId) -> Vec<&str> {
        self.notes.iter().filter(|(of, _)| *of == id).map(|(_, text)| text.as_str()).collect()
    }

    /// Whether the row was ever in this status.
    pub(in crate::supervisor::tests::launches) fn was(
        &self,
        id: SessionId,
        status: Status,
    ) -> bool {
        self.statuses.iter().any(|(of, was, _)| *of == id && *was == status)
    }

    pub(in crate::supervisor::tests::launches) fn calls_of(&self, id: SessionId) -> Vec<Mono> {
        self.calls.iter().filter(|call| call.session == id).map(|call| call.at).collect()
    }
}
