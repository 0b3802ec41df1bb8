//! A small shell for sessions that spawn sessions: rows, messages and notes as the store would keep
//! them, one child for each session, questions answered at once. It knows no rule.

use super::super::unpaced;
use crate::block::BlockKind;
use crate::id::{MessageId, SessionId, Uuid};
use crate::ipc::{IpcError, Reply};
use crate::launch::LaunchPlan;
use crate::launch::classify::Os;
use crate::limits::Limits;
use crate::message::{Message, MessageState, Queued, UserLine};
use crate::session::{ChildMark, PendingAction, PermissionMode, SessionRow};
use crate::settings::{KillSwitches, Settings};
use crate::stream::{AssistantLine, Content, ControlAsk, Init, StreamEvent, TurnResult};
use crate::supervisor::*;
use crate::time::{Day, Wall};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use serde_json::{Value, json};

pub(super) struct Flock {
    pub(super) state: State,
    pub(super) now: Now,
    limits: Limits,
    switches: KillSwitches,
    pub(super) rows: BTreeMap<SessionId, SessionRow>,
    pub(super) messages: Vec<Message>,
    pub(super) notes: Vec<(SessionId, String)>,
    pub(super) bubbles: Vec<(SessionId, MessageId, String)>,
    pub(super) lines: Vec<(SessionId, UserLine)>,
    pub(super) spawns: Vec<SessionId>,
    pub(super) plans: BTreeMap<SessionId, LaunchPlan>,
    launches: BTreeMap<SessionId, LaunchId>,
    controls: Vec<(SessionId, Control)>,
    replies: Vec<Result<Reply, IpcError>>,
    pub(super) notified: usize,
    /// What the transcripts hold.
    present: Vec<Uuid>,
    /// The writes of the last step that had any.
    pub(super) last_writes: Vec<Write>,
}

impl Flock {
    pub(super) fn new() -> Flock {
        Flock::with(Limits::default(), KillSwitches::default())
    }

    pub(super) fn with(limits: Limits, switches: KillSwitches) -> Flock {
        let now = Now { wall: Wall(1_000_000_000), mono: Mono(0), day: Day(100) };
        let mut flock = Flock {
            state: State::new(unpaced(limits.clone())),
            now,
            limits,
            switches,
            rows: BTreeMap::new(),
            messages: vec![],
            notes: vec![],
            bubbles: vec![],
            lines: vec![],
            spawns: vec![],
            plans: BTreeMap::new(),
            launches: BTreeMap::new(),
            controls: vec![],
            replies: vec![],
            notified: 0,
            present: vec![],
            last_writes: vec![],
        };
        flock.boot();
        flock
    }

    fn boot(&mut self) {
        let queue = |of: SessionId| {
            let waiting =
                |message: &&Message| message.session == of && message.state == MessageState::Queued;
            let queued = |message: &Message| Queued {
                id: message.id,
                origin: message.origin,
                local_command: false,
                preview: message.text.clone(),
            };
            self.messages.iter().filter(waiting).map(queued).collect::<Vec<_>>()
        };
        let boot = Boot {
            seed: 7 + self.now.wall.0 as u64,
            os: Os::Linux,
            first: true,
            rows: self.rows.values().cloned().collect(),
            queues: self.rows.keys().map(|id| (*id, queue(*id))).collect(),
            block_counts: vec![],
            live: vec![],
            settings: Settings::default(),
            switches: self.switches,
            accounts: vec![],
        };
        self.feed(Input::Boot(Box::new(boot)));
    }

    /// The app is killed, and starts on these rows.
    pub(super) fn crash(&mut self) {
        self.state = State::new(unpaced(self.limits.clone()));
        (self.now.mono, self.now.wall) = (Mono(0), self.now.wall.plus(1));
        self.boot();
    }

    pub(super) fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let step = step(&mut self.state, input, self.now);
            inputs.extend(self.take(step));
        }
    }

    /// What a tick of the scan does about orphans.
    pub(super) fn retire(&mut self) {
        let mut cx = Cx {
            now: self.now,
            step: Step::default(),
            touched: BTreeSet::new(),
            before: BTreeMap::new(),
            queues: BTreeSet::new(),
        };
        self.state.retire_orphans(&mut cx);
        self.state.finish(&mut cx);
        let answers = self.take(cx.step);
        assert!(answers.is_empty(), "a retirement asks nothing and stops nothing");
    }

    fn take(&mut self, step: Step) -> Vec<Input> {
        if !step.writes.is_empty() {
            self.last_writes.clone_from(&step.writes);
        }
        step.writes.into_iter().for_each(|write| self.commit(write));
        step.acts.into_iter().filter_map(|act| self.perform(act)).collect()
    }

    fn commit(&mut self, write: Write) {
        match write {
            Write::Row { before, after, .. } => {
                assert_eq!(self.rows.get(&after.id), before.as_deref(), "a guarded write");
                self.rows.insert(after.id, *after);
            }
            Write::Message(message) => {
                let known = self.messages.iter().any(|known| known.id == message.id);
                assert!(!known, "a message is stored once");
                self.messages.push(message);
            }
            Write::MessageState { id, state } => {
                let stored = self.messages.iter_mut().find(|message| message.id == id);
                stored.expect("a stored message").state = state;
            }
            Write::Block { session, block } => match block.kind {
                BlockKind::Note { text } => self.notes.push((session, text)),
                BlockKind::Operator { message, text } => {
                    self.bubbles.push((session, message, text));
                }
                BlockKind::Assistant { .. }
                | BlockKind::Thinking { .. }
                | BlockKind::Tool { .. }
                | BlockKind::Boundary { .. }
                | BlockKind::Auto { .. }
                | BlockKind::Answered { .. }
                | BlockKind::Foot { .. } => {}
            },
            Write::Settings(_) => {}
        }
    }

    fn perform(&mut self, act: Act) -> Option<Input> {
        match act {
            Act::Spawn { session, launch, plan } => {
                self.spawns.push(session);
                self.launches.insert(session, launch);
                self.plans.insert(session, *plan);
            }
            Act::Write { session, line, .. } => {
                self.present.push(line.uuid);
                self.lines.push((session, line));
            }
            Act::Control { session, control, .. } => self.controls.push((session, control)),
            Act::Stop { session, launch } => {
                return Some(Input::Stopped { session, launch, leftovers: 0 });
            }
            Act::Ask { ask, question } => {
                let answer = self.answer_to(&question);
                return Some(Input::Answer { ask, answer });
            }
            Act::Reply { reply, .. } => self.replies.push(reply),
            Act::Notify { .. } => self.notified += 1,
            Act::Emit(_)
            | Act::EmitGone(_)
            | Act::EmitBlock { .. }
            | Act::EmitDelta { .. }
            | Act::EmitSettings(_)
            | Act::ForgetSecret(_)
            | Act::Badge(_)
            | Act::Exit
            | Act::Log { .. } => {}
        }
        None
    }

    fn answer_to(&self, question: &Question) -> Answer {
        match question {
            Question::Folder { .. } => Answer::Folder { present: true },
            Question::TakeOver { .. } => Answer::TakenOver { gone: true },
            Question::Transcript { uuids, .. } => {
                let known = |uuid: &Uuid| self.present.contains(uuid);
                let present: Vec<Uuid> = uuids.iter().copied().filter(known).collect();
                let there = !present.is_empty();
                let found =
                    TranscriptFacts { file: there, exists: there, fell_back: false, present };
                Answer::Transcript { folder_present: true, found, holder: None }
            }
            Question::Headroom => Answer::Headroom(Headroom::default()),
            Question::Alive { .. } => Answer::Alive { gone: vec![] },
            Question::Stamped => {
                let stamped = self
                    .rows
                    .values()
                    .filter(|row| row.pending == Some(PendingAction::ResponseAborted));
                Answer::Stamped { ids: stamped.map(|row| row.id).collect() }
            }
            Question::Handover { .. } => {
                Answer::Handover(Handover { text: "handover".into(), ..Handover::default() })
            }
        }
    }

    /// Lets time pass until a child of the session is asked for, which comes within a day.
    pub(super) fn pass_to_spawn(&mut self, of: SessionId) {
        let end = self.now.mono.plus(24 * 3_600_000);
        let known = self.spawns.len();
        while !self.spawns[known..].contains(&of) {
            assert!(self.now.mono < end, "{of} is not started");
            self.pass(1_000);
        }
    }

    /// Lets time pass, waking the reducer when it asked for it.
    pub(super) fn pass(&mut self, millis: u64) {
        let end = self.now.mono.plus(millis);
        while self.now.mono < end {
            let next = self.state.next_wakeup(self.now).map_or(end, |(at, _)| at.min(end));
            let step = next.since(self.now.mono);
            self.now.mono = self.now.mono.max(next);
            self.now.wall = self.now.wall.plus(step);
            self.feed(Input::Wake);
        }
    }

    pub(super) fn command(&mut self, command: Command) -> Result<Reply, IpcError> {
        self.feed(Input::Command { reply: ReplyTo(1), command });
        self.replies.pop().expect("a reply")
    }

    /// A session of the person whose first turn is open.
    pub(super) fn parent(&mut self) -> SessionId {
        let made = self.command(Command::Create {
            folder: "/project".into(),
            text: "fix all failing tests".into(),
            model: Some("opus".into()),
            permission_mode: Some(PermissionMode::AcceptEdits),
            account: None,
            endpoint: None,
            user_settings_only: true,
        });
        let Ok(Reply::Created(id)) = made else { panic!("{made:?}") };
        self.begin(id);
        id
    }

    /// A worker of this session, as its agent spawns it. Its child is asked for and does not run.
    pub(super) fn worker(&mut self, parent: SessionId, task: &str) -> SessionId {
        let told = self.call(parent, "spawn_worker", json!({"task": task})).expect("a worker");
        told["worker"].as_str().and_then(|id| id.parse().ok()).expect("its id")
    }

    /// Calls a tool over the session's own stream: what it says, or the words of its error.
    pub(super) fn call(
        &mut self,
        id: SessionId,
        name: &str,
        input: Value,
    ) -> Result<Value, String> {
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": name, "arguments": input}});
        let body = ControlAsk::Mcp { server: "omniscio".into(), message };
        let answer = self.ask(id, body)["mcp_response"].clone();
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text").to_string();
        if answer["result"]["isError"] == true {
            return Err(text);
        }
        Ok(serde_json::from_str(&text).expect("JSON"))
    }

    /// The answer to a control request of the CLI.
    pub(super) fn ask(&mut self, id: SessionId, body: ControlAsk) -> Value {
        let request = format!("cli-{}", self.controls.len());
        self.tell(id, StreamEvent::ControlRequest { request: request.clone(), body });
        match self.controls.pop() {
            Some((session, Control::Answer { request: answered, response })) => {
                assert_eq!((session, answered), (id, request));
                response
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn tell(&mut self, session: SessionId, event: StreamEvent) {
        let launch = self.launches[&session];
        self.feed(Input::Stream { session, launch, event });
    }

    /// The child runs and answers the handshake.
    pub(super) fn shake(&mut self, session: SessionId) {
        let (launch, child) = (self.launches[&session], ChildMark { pid: 100, start: 1 });
        self.feed(Input::Spawned { session, launch, child });
        let request = self.controls.iter().rev().find_map(|(of, control)| match control {
            Control::Initialize { request } if *of == session => Some(request.clone()),
            Control::Initialize { .. }
            | Control::Interrupt { .. }
            | Control::ContextUsage { .. }
            | Control::Answer { .. }
            | Control::Refuse { .. } => None,
        });
        let request = request.expect("a handshake");
        self.tell(session, StreamEvent::ControlResponse { request, answer: Ok(json!({})) });
    }

    /// The CLI names its session.
    pub(super) fn init(&mut self, session: SessionId) {
        let session_id = Some(self.plans[&session].conversation.id());
        self.tell(
            session,
            StreamEvent::from(Init {
                session_id,
                model: "m".into(),
                permission_mode: "default".into(),
                api_key_source: "none".into(),
                version: "2".into(),
            }),
        );
    }

    /// The child runs and begins its turn.
    pub(super) fn begin(&mut self, session: SessionId) {
        self.shake(session);
        self.init(session);
    }

    /// A whole answer to the last line that was written to the session.
    pub(super) fn answer(&mut self, session: SessionId, text: &str) {
        let named = self.lines_of(session).last().map(|line| line.uuid);
        self.say(session, text, named);
    }

    /// A turn that the CLI begins by itself, with this answer.
    pub(super) fn answer_unasked(&mut self, session: SessionId, text: &str) {
        self.init(session);
        self.say(session, text, None);
    }

    fn say(&mut self, session: SessionId, text: &str, named: Option<Uuid>) {
        let content = if text.is_empty() { vec![] } else { vec![Content::Text(text.into())] };
        self.tell(
            session,
            StreamEvent::from(AssistantLine {
                uuid: Some(Uuid(0x600d)),
                message: "msg".into(),
                synthetic: false,
                parent: None,
                content,
                context_tokens: 100,
                stop_reason: None,
                error: None,
                api_error: None,
                status: None,
                cut: None,
                aborted: false,
            }),
        );
        self.tell(
            session,
            StreamEvent::Result(Box::new(TurnResult {
                subtype: "success".into(),
                terminal_reason: Some("completed".into()),
                num_turns: 1,
                text: text.into(),
                messages: named.into_iter().collect(),
                ..TurnResult::default()
            })),
        );
    }

    /// The API fails; the child lives on.
    pub(super) fn fail(&mut self, session: SessionId) {
        self.tell(
            session,
            StreamEvent::Result(Box::new(TurnResult {
                subtype: "success".into(),
                is_error: true,
                terminal_reason: Some("api_error".into()),
                status: Some(529),
                num_turns: 1,
                text: "API Error".into(),
                ..TurnResult::default()
            })),
        );
    }

    /// The child exits without a result.
    pub(super) fn die(&mut self, session: SessionId) {
        let launch = self.launches[&session];
        self.feed(Input::Exited { session, launch, code: Some(1), signal: None });
    }

    pub(super) fn row(&self, id: SessionId) -> &SessionRow {
        &self.rows[&id]
    }

    pub(super) fn lines_of(&self, id: SessionId) -> Vec<&UserLine> {
        self.lines.iter().filter(|(of, _)| *of == id).map(|(_, line)| line).collect()
    }

    pub(super) fn messages_of(&self, id: SessionId) -> Vec<&Message> {
        self.messages.iter().filter(|message| message.session == id).collect()
    }
}
