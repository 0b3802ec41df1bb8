//! More than one session, a clock that can be set, and a local calendar: for scenarios about several
//! sessions or whole days. It answers nothing that the rig does not.

use super::Rig;
use super::talk::line;
use crate::id::SessionId;
use crate::ipc::{Reply, RowView};
use crate::session::ChildMark;
use crate::stream::{
    Content, Init, Partial, PartialKind, StreamEvent, TaskEvent, TaskPhase, TurnResult,
};
use crate::supervisor::*;
use crate::time::{Day, Wall};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use serde_json::json;

/// One of several sessions, and the launch of its child.
#[derive(Clone, Copy, Debug)]
pub(in crate::supervisor::tests) struct One {
    pub(in crate::supervisor::tests) session: SessionId,
    launch: LaunchId,
}

impl Rig {
    /// A further session. Its child runs and has begun its turn.
    pub(in crate::supervisor::tests) fn another(&mut self, text: &str) -> One {
        let made = self.command(Command::Create {
            folder: "/project".into(),
            text: text.into(),
            model: None,
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only: false,
        });
        let Ok(Reply::Created(session)) = made else { panic!("{made:?}") };
        self.up(session)
    }

    /// The child of the launch that was asked for last runs and begins the turn of this session.
    pub(in crate::supervisor::tests) fn up(&mut self, session: SessionId) -> One {
        let one = One { session, launch: self.launch };
        let (launch, child) = (one.launch, ChildMark { pid: 100, start: 1 });
        self.spawning = false;
        self.feed(Input::Spawned { session, launch, child });
        let request = self.controls.iter().rev().find_map(|control| match control {
            Control::Initialize { request } => Some(request.clone()),
            Control::Interrupt { .. }
            | Control::ContextUsage { .. }
            | Control::Answer { .. }
            | Control::Refuse { .. } => None,
        });
        let request = request.expect("a handshake");
        self.tell(one, StreamEvent::ControlResponse { request, answer: Ok(json!({})) });
        let session_id = Some(self.plan().conversation.id());
        self.tell(one, StreamEvent::from(init(session_id)));
        one
    }

    /// The child of this session writes a line.
    pub(in crate::supervisor::tests) fn tell(&mut self, one: One, event: StreamEvent) {
        let One { session, launch } = one;
        self.feed(Input::Stream { session, launch, event });
    }

    /// A whole answer, as the child of this session gives it.
    pub(in crate::supervisor::tests) fn answer_of(&mut self, one: One, text: &str) {
        let messages = self.lines.last().map(|line| line.uuid).into_iter().collect();
        self.tell(one, line(Content::Text(text.into())));
        self.tell(
            one,
            StreamEvent::Result(Box::new(TurnResult {
                subtype: "success".into(),
                terminal_reason: Some("completed".into()),
                num_turns: 1,
                text: text.into(),
                messages,
                ..TurnResult::default()
            })),
        );
    }

    /// A call of the Bash tool, complete.
    pub(in crate::supervisor::tests) fn tool_line(call: &str, command: &str) -> StreamEvent {
        let input = json!({"command": command});
        line(Content::ToolUse { id: call.into(), name: "Bash".into(), input })
    }

    /// The child of the rig's first session writes to stderr.
    pub(in crate::supervisor::tests) fn chatter(&mut self, text: &str) {
        let (session, launch) = (self.id(), self.launch);
        self.feed(Input::Chatter { session, launch, text: text.to_string() });
    }

    /// The CLI's transcript is gone from the disk.
    pub(in crate::supervisor::tests) fn lose_conversation(&mut self) {
        self.transcript.clear();
    }

    pub(in crate::supervisor::tests) fn view_of(&self, one: One) -> RowView {
        self.state.view(one.session).expect("a view")
    }

    /// What `explain` says happens next to the rig's first session by itself.
    pub(in crate::supervisor::tests) fn next_by_itself(&self) -> Option<(String, u64)> {
        self.state.explain(self.id(), self.now).expect("an explanation").next
    }

    /// The clock is set, as at the start of a scenario on a certain day.
    pub(in crate::supervisor::tests) fn set_clock(&mut self, wall: Wall, day: Day) {
        (self.now.wall, self.now.day) = (wall, day);
    }

    /// Time passes under a local calendar. Ends early as [`Rig::pass`] does.
    pub(in crate::supervisor::tests) fn pass_in(
        &mut self,
        calendar: impl Fn(Wall) -> Day,
        millis: u64,
    ) {
        let end = self.now.mono.plus(millis);
        while self.now.mono < end && !self.spawning {
            self.pass(end.since(self.now.mono).min(1_000));
            self.now.day = calendar(self.now.wall);
        }
    }
}

fn init(session_id: Option<crate::id::CliSessionId>) -> Init {
    Init {
        session_id,
        model: "m".into(),
        permission_mode: "default".into(),
        api_key_source: "none".into(),
        version: "2".into(),
    }
}

/// A piece of the main thread's message.
pub(in crate::supervisor::tests) fn piece(kind: PartialKind) -> StreamEvent {
    let message = Some("msg".to_string());
    StreamEvent::Partial(Partial { message, parent: None, abandoned: false, kind })
}

/// A sub-agent begins or ends.
pub(in crate::supervisor::tests) fn agent(phase: TaskPhase) -> StreamEvent {
    StreamEvent::Task(TaskEvent {
        task: "agent-1".into(),
        tool_use: None,
        phase,
        is_agent: true,
        background: false,
        summary: None,
    })
}
