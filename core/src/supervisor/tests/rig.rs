//! A small shell for the scenarios: keeps the rows as the store would, answers questions at once,
//! stops children at once, and counts what was done.

mod alter;
pub(super) mod many;
mod talk;

pub(super) use talk::line;

use super::*;
use crate::id::{SessionId, Uuid};
use crate::ipc::{IpcError, RowView};
use crate::launch::LaunchPlan;
use crate::message::UserLine;
use crate::session::{ChildMark, SessionRow};
use crate::settings::{KillSwitches, Settings};
use crate::stream::Init;
use crate::time::{Day, Wall};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;

pub(super) struct Rig {
    /// The session that everything is about; the first one, if none is named.
    pub(super) open: Option<SessionId>,
    state: State,
    now: Now,
    rows: BTreeMap<SessionId, SessionRow>,
    texts: BTreeMap<Uuid, String>,
    queued: BTreeMap<Uuid, Queued>,
    transcript: Vec<Uuid>,
    plan: Option<LaunchPlan>,
    launch: LaunchId,
    /// A spawn was asked for and not yet answered.
    spawning: bool,
    pub(super) lines: Vec<UserLine>,
    pub(super) controls: Vec<Control>,
    notes: Vec<String>,
    replies: Vec<Result<Reply, IpcError>>,
    pub(super) folder: bool,
    /// Another program that has the conversation open.
    pub(super) holder: Option<crate::session::Holder>,
    /// It does not end when it is asked to.
    pub(super) stubborn: bool,
    /// How busy the machine is, in thousandths: sampled every five seconds while time passes.
    pub(super) busy: Option<u16>,
    sampled: Mono,
    /// Settings at the next start.
    pub(super) settings: Settings,
    /// Switches of the environment at the next start.
    pub(super) switches: KillSwitches,
    /// What the CLI says of its context: tokens and window; `None` answers nothing.
    pub(super) context: Option<(u64, u64)>,
    /// What the person has said since the last good turn, as the store has it.
    pub(super) said_last: Option<String>,
    /// The shell can tell nothing.
    pub(super) blind: bool,
    /// Stops are asked for and never reported.
    pub(super) hold_stops: bool,
    /// Only this conversation has a file, if one is named.
    pub(super) only: Option<crate::id::CliSessionId>,
    /// What was looked at last: a conversation, and the one it was copied from.
    pub(super) looked_at: [Option<crate::id::CliSessionId>; 2],
    /// Looks at folder and transcript are answered later, with what was there when they were asked.
    pub(super) hold_looks: bool,
    held: Vec<Input>,
    /// Every change of a row.
    pub(super) changes: Vec<alter::Changed>,
    pub(super) spawned: usize,
    pub(super) stops: usize,
    pub(super) scans: usize,
    pub(super) notified: usize,
    /// Endpoints whose stored secret is to go.
    pub(super) forgotten: Vec<String>,
    pub(super) exited: bool,
}

impl Rig {
    pub(super) fn new() -> Rig {
        let now = Now { wall: Wall(1_000_000_000), mono: Mono(0), day: Day(100) };
        let mut rig = Rig {
            open: None,
            state: State::new(unpaced(Limits::default())),
            now,
            rows: BTreeMap::new(),
            texts: BTreeMap::new(),
            queued: BTreeMap::new(),
            transcript: Vec::new(),
            plan: None,
            launch: LaunchId(0),
            spawning: false,
            lines: Vec::new(),
            controls: Vec::new(),
            notes: Vec::new(),
            replies: Vec::new(),
            folder: true,
            holder: None,
            stubborn: false,
            busy: None,
            sampled: Mono(0),
            settings: Settings::default(),
            switches: KillSwitches::default(),
            context: Some((1_000, 200_000)),
            said_last: None,
            blind: false,
            hold_stops: false,
            only: None,
            looked_at: [None; 2],
            hold_looks: false,
            held: Vec::new(),
            changes: Vec::new(),
            spawned: 0,
            stops: 0,
            scans: 0,
            notified: 0,
            forgotten: Vec::new(),
            exited: false,
        };
        rig.boot(true);
        rig
    }

    fn boot(&mut self, first: bool) {
        let queued = self.queued.values().cloned().collect::<Vec<_>>();
        let boot = Boot {
            seed: 7,
            os: Os::Linux,
            first,
            rows: self.rows.values().cloned().collect(),
            queues: self.rows.keys().map(|id| (*id, queued.clone())).collect(),
            block_counts: vec![],
            live: vec![],
            settings: self.settings.clone(),
            switches: self.switches,
            accounts: vec![],
        };
        self.feed(Input::Boot(Box::new(boot)));
    }

    /// The app is killed and starts again on the same rows.
    pub(super) fn crash(&mut self) {
        self.state = State::new(unpaced(Limits::default()));
        self.now.mono = Mono(0);
        self.sampled = Mono(0);
        self.plan = None;
        self.spawning = false;
        self.boot(true);
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn now(&self) -> Now {
        self.now
    }

    pub(super) fn id(&self) -> SessionId {
        self.open.or(self.rows.keys().next().copied()).expect("a row")
    }

    /// The row as the store has it: it must be what the reducer holds.
    pub(super) fn row(&self) -> SessionRow {
        let stored = self.rows[&self.id()].clone();
        assert_eq!(Some(&stored), self.state.view(self.id()).map(|view| view.row).as_ref());
        stored
    }

    /// How many sessions the reducer holds.
    pub(super) fn held_sessions(&self) -> usize {
        self.state.sessions.len()
    }

    pub(super) fn view(&self) -> RowView {
        self.state.view(self.id()).expect("a view")
    }

    pub(super) fn plan(&self) -> &LaunchPlan {
        self.plan.as_ref().expect("a launch")
    }

    pub(super) fn last_text(&self) -> String {
        match &self.lines.last().expect("a line").text {
            LineText::Of(id) | LineText::HandoverThen { message: id, .. } => self.texts[id].clone(),
            LineText::Own(text) => text.clone(),
        }
    }

    pub(super) fn notes(&self, text: &str) -> usize {
        self.notes.iter().filter(|note| *note == text).count()
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let step = step(&mut self.state, input, self.now);
            for write in step.writes {
                self.commit(write);
            }
            for act in step.acts {
                inputs.extend(self.perform(act));
            }
        }
    }

    fn commit(&mut self, write: Write) {
        match write {
            Write::Row { before, after, .. } => {
                let stored = self.rows.get(&after.id);
                assert_eq!(stored, before.as_deref(), "a write is guarded by what stands there");
                self.rows.insert(after.id, (*after).clone());
                self.changes.push(alter::Changed { before, after });
            }
            Write::Message(message) => {
                self.texts.insert(message.id, message.text.clone());
                let queued = Queued {
                    id: message.id,
                    origin: message.origin,
                    local_command: false,
                    preview: message.text,
                };
                self.queued.insert(message.id, queued);
            }
            Write::MessageState { id, .. } => {
                self.queued.remove(&id);
            }
            Write::Block { block, .. } => {
                if let crate::block::BlockKind::Note { text } = block.kind {
                    self.notes.push(text);
                }
            }
            Write::Settings(_) => {}
        }
    }

    fn perform(&mut self, act: Act) -> Option<Input> {
        match act {
            Act::Spawn { launch, plan, .. } => {
                self.spawned += 1;
                self.spawning = true;
                self.launch = launch;
                self.plan = Some(*plan);
                None
            }
            Act::Write { line, .. } => {
                self.transcript.push(line.uuid);
                self.lines.push(line);
                None
            }
            Act::Control { session, launch, control } => {
                let answer = self.context_answer(&control);
                self.controls.push(control);
                let event = answer?;
                Some(Input::Stream { session, launch, event })
            }
            Act::Stop { session, launch } => {
                self.stops += 1;
                let stopped = Input::Stopped { session, launch, leftovers: 0 };
                if self.hold_stops {
                    self.held.push(stopped);
                    return None;
                }
                Some(stopped)
            }
            Act::Ask { ask, question } => {
                let answer = Input::Answer { ask, answer: self.answer(&question) };
                if self.hold_looks && matches!(question, Question::Transcript { .. }) {
                    self.held.push(answer);
                    return None;
                }
                Some(answer)
            }
            Act::Reply { reply, .. } => {
                self.replies.push(reply);
                None
            }
            Act::Notify { .. } => {
                self.notified += 1;
                None
            }
            Act::ForgetSecret(endpoint) => {
                self.forgotten.push(endpoint);
                None
            }
            Act::Exit => {
                self.exited = true;
                None
            }
            Act::Emit(_)
            | Act::EmitGone(_)
            | Act::EmitBlock { .. }
            | Act::EmitDelta { .. }
            | Act::EmitSettings(_)
            | Act::Badge(_)
            | Act::Log { .. } => None,
        }
    }

    fn answer(&mut self, question: &Question) -> Answer {
        if self.blind {
            return Answer::Failed { words: "blind".into(), errno: None };
        }
        match question {
            Question::Folder { .. } => Answer::Folder { present: self.folder },
            Question::TakeOver { .. } => {
                self.holder = self.holder.take().filter(|_| self.stubborn);
                Answer::TakenOver { gone: self.holder.is_none() }
            }
            Question::Transcript { uuids, cli_session, copied_from, .. } => {
                self.looked_at = [*cli_session, *copied_from];
                let is = |id: Option<_>| self.only.is_none_or(|only| id == Some(only));
                let exists = !self.transcript.is_empty();
                let (own, original) = (exists && is(*cli_session), exists && is(*copied_from));
                let there = |uuid: &Uuid| self.transcript.contains(uuid);
                Answer::Transcript {
                    holder: self.holder.clone(),
                    folder_present: self.folder,
                    found: TranscriptFacts {
                        file: own,
                        fell_back: !own && original,
                        exists: own || original,
                        present: uuids.iter().copied().filter(there).collect(),
                    },
                }
            }
            Question::Headroom => Answer::Headroom(Headroom::default()),
            Question::Alive { .. } => Answer::Alive { gone: vec![] },
            Question::Stamped => {
                self.scans += 1;
                let stamped = self
                    .rows
                    .values()
                    .filter(|row| row.pending == Some(PendingAction::ResponseAborted));
                Answer::Stamped { ids: stamped.map(|row| row.id).collect() }
            }
            Question::Handover { .. } => {
                let unanswered = self.said_last.clone();
                Answer::Handover(Handover {
                    text: "handover".into(),
                    last_message: None,
                    unanswered,
                })
            }
        }
    }

    /// Lets time pass, waking the reducer exactly when it asked for it. Ends early when a child is to be
    /// started: the machine answers that at once.
    pub(super) fn pass(&mut self, millis: u64) {
        let started = self.now.mono;
        let end = started.plus(millis);
        loop {
            let next = self.state.next_wakeup(self.now).map_or(end, |(at, _)| at.min(end));
            let next = if self.busy.is_some() { next.min(self.sampled.plus(5_000)) } else { next };
            let step = next.since(self.now.mono);
            self.now.mono = self.now.mono.max(next);
            self.now.wall = self.now.wall.plus(step);
            match self.busy.filter(|_| self.now.mono >= self.sampled.plus(5_000)) {
                Some(busy) => {
                    self.sampled = self.now.mono;
                    self.feed(Input::Load { cores: vec![busy, busy] });
                }
                None => self.feed(Input::Wake),
            }
            if self.spawning && self.now.mono > started {
                return;
            }
            if self.now.mono >= end
                && self.state.next_wakeup(self.now).is_none_or(|(at, _)| at > end)
            {
                return;
            }
        }
    }

    /// Changes the row behind the reducer's back, in the store and in the state alike.
    pub(super) fn tamper(&mut self, change: impl Fn(&mut SessionRow)) {
        let id = self.id();
        for row in [
            self.rows.get_mut(&id),
            self.state.sessions.get_mut(&id).map(|session| &mut session.row),
        ] {
            change(row.expect("a row"));
        }
    }

    pub(super) fn command(&mut self, command: Command) -> Result<Reply, IpcError> {
        self.feed(Input::Command { reply: ReplyTo(1), command });
        self.replies.pop().expect("a reply")
    }

    pub(super) fn create(&mut self, text: &str) {
        let made = self.command(Command::Create {
            folder: "/project".into(),
            text: text.into(),
            model: None,
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only: false,
        });
        assert!(matches!(made, Ok(Reply::Created(_))), "{made:?}");
    }

    pub(super) fn send(&mut self, text: &str) {
        let (session, text) = (self.id(), text.into());
        let sent = self.command(Command::Send { session, text, now: false });
        assert!(matches!(sent, Ok(Reply::Accepted(_))), "{sent:?}");
    }

    pub(super) fn spawn(&mut self) {
        let child = ChildMark { pid: 100, start: 1 };
        self.spawning = false;
        let (session, launch) = (self.id(), self.launch);
        self.feed(Input::Spawned { session, launch, child });
    }

    /// The child runs and answers the handshake.
    pub(super) fn shake(&mut self) {
        self.spawn();
        let request = self.controls.iter().rev().find_map(|control| match control {
            Control::Initialize { request } => Some(request.clone()),
            Control::Interrupt { .. }
            | Control::ContextUsage { .. }
            | Control::Answer { .. }
            | Control::Refuse { .. } => None,
        });
        let request = request.expect("a handshake");
        self.stream(StreamEvent::ControlResponse { request, answer: Ok(json!({})) });
    }

    /// The child runs, answers the handshake, and begins its turn.
    pub(super) fn spawn_and_shake(&mut self) {
        self.shake();
        let session_id = Some(self.plan().conversation.id());
        self.stream(StreamEvent::from(Init {
            session_id,
            model: "m".into(),
            permission_mode: "default".into(),
            api_key_source: "none".into(),
            version: "2".into(),
        }));
    }
}
