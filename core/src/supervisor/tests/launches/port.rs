//! A port from which many sessions are launched: spawn calls take their time and fail as they are told,
//! children answer the handshake late, the machine has this much left. It keeps rows and queues as the
//! store would and records what was done when.

mod child;
mod refusal;

use super::super::*;
use crate::block::BlockKind;
use crate::id::{SessionId, Uuid};
use crate::launch::LaunchPlan;
use crate::launch::classify::Os;
use crate::session::{ChildMark, SessionRow};
use crate::settings::{KillSwitches, Settings};
use crate::stream::Init;
use crate::time::{Day, Wall};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;

pub(super) const EAGAIN: i32 = 11;
pub(super) const ENOENT: i32 = 2;

/// Something that the machine answers later.
enum Later {
    Spawn { session: SessionId, launch: LaunchId },
    Shake { session: SessionId, launch: LaunchId, request: String },
}

/// One spawn call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub at: Mono,
    pub session: SessionId,
}

pub(super) struct Port {
    pub state: State,
    limits: Limits,
    pub now: Now,
    pub rows: BTreeMap<SessionId, SessionRow>,
    queues: BTreeMap<SessionId, Vec<Queued>>,
    later: Vec<(Mono, Later)>,
    plans: BTreeMap<SessionId, LaunchPlan>,
    lines: BTreeMap<SessionId, UserLineOf>,
    pub os: Os,
    pub settings: Settings,
    pub switches: KillSwitches,
    /// How many launches of a session still fail, and by which number.
    pub fails: BTreeMap<SessionId, (u32, i32)>,
    pub spawn_takes_ms: u64,
    /// `None`: no child ever answers.
    pub shake_takes_ms: Option<u64>,
    pub headroom: Headroom,
    pub folder: bool,
    /// The machine cannot even look.
    pub blind: Option<i32>,
    /// Nor read an earlier conversation.
    pub unread: Option<i32>,
    /// Looks are never answered.
    pub deaf: bool,
    /// Processes that are gone without a word.
    pub gone: Vec<SessionId>,
    /// The CLI has every conversation.
    pub exists: bool,
    /// Another program that has every conversation open.
    pub holder: Option<crate::session::Holder>,
    /// A start that has not come back is stopped when it does, as the shell does it.
    pub late_stops: bool,
    /// Stops are never reported.
    pub no_stops: bool,
    stops: Vec<LaunchId>,
    /// The next step that writes a row finds another one.
    pub refuse: bool,
    boots: u64,
    /// Launches that were asked for and have not ended, by session.
    pub alive: BTreeMap<SessionId, LaunchId>,
    /// Sessions that had two children at once.
    pub doubled: Vec<SessionId>,
    /// Messages that were written as new ones, each time.
    pub written: Vec<Uuid>,
    pub calls: Vec<Call>,
    pub calls_open: usize,
    pub calls_most: usize,
    pub starting: usize,
    pub starting_most: usize,
    pub looks: usize,
    pub notes: Vec<(SessionId, String)>,
    pub statuses: Vec<(SessionId, Status, Option<PendingAction>)>,
    pub notified: usize,
    pub badge: usize,
}

/// The last line that a child was sent.
type UserLineOf = crate::message::UserLine;

impl Port {
    /// Nobody's silence ends a turn here.
    pub(super) fn new(limits: Limits) -> Port {
        const LONG: u64 = 1_000 * 3_600_000;
        let limits = Limits {
            first_output_ms: LONG,
            first_output_load_ceiling_ms: LONG,
            startup_ceiling_ms: LONG,
            ..limits
        };
        let mut port = Port {
            state: State::new(limits.clone()),
            limits,
            now: Now { wall: Wall(1_000_000_000), mono: Mono(0), day: Day(100) },
            rows: BTreeMap::new(),
            queues: BTreeMap::new(),
            later: vec![],
            plans: BTreeMap::new(),
            lines: BTreeMap::new(),
            os: Os::Linux,
            settings: Settings::default(),
            switches: KillSwitches::default(),
            fails: BTreeMap::new(),
            spawn_takes_ms: 5,
            shake_takes_ms: Some(500),
            headroom: Headroom::default(),
            folder: true,
            blind: None,
            unread: None,
            deaf: false,
            gone: vec![],
            exists: false,
            holder: None,
            late_stops: false,
            no_stops: false,
            stops: vec![],
            refuse: false,
            boots: 0,
            alive: BTreeMap::new(),
            doubled: vec![],
            written: vec![],
            calls: vec![],
            calls_open: 0,
            calls_most: 0,
            starting: 0,
            starting_most: 0,
            looks: 0,
            notes: vec![],
            statuses: vec![],
            notified: 0,
            badge: 0,
        };
        port.boot();
        port
    }

    /// The app is killed and starts again on the same rows; its children die with it.
    pub(super) fn crash(&mut self) {
        self.state = State::new(self.limits.clone());
        self.later.clear();
        self.alive.clear();
        (self.calls_open, self.starting) = (0, 0);
        self.boot();
    }

    fn boot(&mut self) {
        self.boot_with(true, vec![]);
    }

    fn boot_with(&mut self, first: bool, live: Vec<(SessionId, LaunchId)>) {
        self.boots += 1;
        let boot = Boot {
            seed: 6 + self.boots,
            os: self.os,
            first,
            rows: self.rows.values().cloned().collect(),
            queues: self.queues.iter().map(|(id, queue)| (*id, queue.clone())).collect(),
            block_counts: vec![],
            live,
            settings: self.settings.clone(),
            switches: self.switches,
            accounts: vec![],
        };
        self.feed(Input::Boot(Box::new(boot)));
    }

    pub(super) fn create(&mut self) -> SessionId {
        let before: Vec<SessionId> = self.rows.keys().copied().collect();
        let command = Command::Create {
            folder: "/project".into(),
            text: "do it".into(),
            model: None,
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only: false,
        };
        self.command(command);
        // rows that are made at one instant come back in any order
        self.now.wall = self.now.wall.plus(1);
        self.now.mono = self.now.mono.plus(1);
        let made = self.rows.keys().find(|id| !before.contains(id));
        *made.expect("a row")
    }

    pub(super) fn command(&mut self, command: Command) {
        self.feed(Input::Command { reply: ReplyTo(1), command });
    }

    pub(super) fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut step = step(&mut self.state, input, self.now);
            inputs.extend(self.refused(&mut step));
            for write in step.writes {
                self.commit(write);
            }
            for act in step.acts {
                inputs.extend(self.perform(act));
            }
        }
    }

    /// A rule panicked: the state is built anew while the children live.
    pub(super) fn rebuild(&mut self) {
        self.state = State::new(self.limits.clone());
        let live = self.alive.iter().map(|(id, launch)| (*id, *launch)).collect();
        self.boot_with(false, live);
    }

    fn commit(&mut self, write: Write) {
        match write {
            Write::Row { before, after, .. } => {
                assert_eq!(self.rows.get(&after.id), before.as_deref(), "guarded");
                self.statuses.push((after.id, after.status, after.pending));
                self.rows.insert(after.id, *after);
            }
            Write::Message(message) => {
                let queued = Queued {
                    id: message.id,
                    origin: message.origin,
                    local_command: false,
                    preview: message.text,
                };
                self.queues.entry(message.session).or_default().push(queued);
            }
            Write::MessageState { id, .. } => {
                for queue in self.queues.values_mut() {
                    queue.retain(|queued| queued.id != id);
                }
            }
            Write::Block { session, block } => {
                if let BlockKind::Note { text } = block.kind {
                    self.notes.push((session, text));
                }
            }
            Write::Settings(_) => {}
        }
    }

    fn perform(&mut self, act: Act) -> Option<Input> {
        match act {
            Act::Spawn { session, launch, plan } => {
                self.calls.push(Call { at: self.now.mono, session });
                self.plans.insert(session, *plan);
                if self.alive.insert(session, launch).is_some() {
                    self.doubled.push(session);
                }
                self.calls_open += 1;
                self.starting += 1;
                self.calls_most = self.calls_most.max(self.calls_open);
                self.starting_most = self.starting_most.max(self.starting);
                let at = self.now.mono.plus(self.spawn_takes_ms);
                self.later.push((at, Later::Spawn { session, launch }));
                None
            }
            Act::Control { session, launch, control: Control::Initialize { request } } => {
                let takes = self.shake_takes_ms?;
                let at = self.now.mono.plus(takes);
                self.later.push((at, Later::Shake { session, launch, request }));
                None
            }
            Act::Write { session, line, .. } => {
                if line.origin != crate::message::Origin::Replay {
                    self.written.push(line.uuid);
                }
                self.lines.insert(session, line);
                None
            }
            Act::Stop { .. } if self.no_stops => None,
            Act::Stop { session, launch } if self.late_stops && self.is_spawning(session) => {
                self.stops.push(launch);
                None
            }
            Act::Stop { session, launch } => {
                if self.is_starting(session) {
                    self.starting = self.starting.saturating_sub(1);
                }
                self.later.retain(|(_, later)| match later {
                    Later::Shake { session: other, .. } => *other != session,
                    Later::Spawn { .. } => true,
                });
                self.ended(session, launch);
                Some(Input::Stopped { session, launch, leftovers: 0 })
            }
            Act::Ask { question: Question::Transcript { .. }, .. } if self.deaf => None,
            Act::Ask { ask, question } => {
                Some(Input::Answer { ask, answer: self.answer(&question) })
            }
            Act::Notify { .. } => {
                self.notified += 1;
                None
            }
            Act::Badge(count) => {
                self.badge = count;
                None
            }
            Act::Control { .. }
            | Act::ForgetSecret(_)
            | Act::Reply { .. }
            | Act::Exit
            | Act::Emit(_)
            | Act::EmitGone(_)
            | Act::EmitBlock { .. }
            | Act::EmitDelta { .. }
            | Act::EmitSettings(_)
            | Act::Log { .. } => None,
        }
    }

    fn is_spawning(&self, id: SessionId) -> bool {
        self.later.iter().any(|(_, later)| match later {
            Later::Spawn { session, .. } => *session == id,
            Later::Shake { .. } => false,
        })
    }

    fn is_starting(&self, id: SessionId) -> bool {
        self.later.iter().any(|(_, later)| match later {
            Later::Spawn { session, .. } | Later::Shake { session, .. } => *session == id,
        })
    }

    fn answer(&mut self, question: &Question) -> Answer {
        match question {
            Question::Transcript { .. } if self.blind.is_some() => {
                self.looks += 1;
                Answer::Failed { words: "no thread to look with".into(), errno: self.blind }
            }
            Question::Folder { .. } => Answer::Folder { present: self.folder },
            Question::Transcript { .. } => {
                self.looks += 1;
                Answer::Transcript {
                    folder_present: self.folder,
                    found: TranscriptFacts {
                        file: self.exists,
                        exists: self.exists,
                        ..TranscriptFacts::default()
                    },
                    holder: self.holder.clone(),
                }
            }
            Question::TakeOver { .. } => Answer::TakenOver { gone: true },
            Question::Stamped => {
                let stamped = self.rows.values().filter(|row| row.in_shape());
                Answer::Stamped { ids: stamped.map(|row| row.id).collect() }
            }
            Question::Headroom => Answer::Headroom(self.headroom),
            Question::Alive { children } => {
                let gone = children.iter().map(|(id, _)| *id).filter(|id| self.gone.contains(id));
                Answer::Alive { gone: gone.collect() }
            }
            Question::Handover { .. } if self.unread.is_some() => {
                Answer::Failed { words: "no thread to read with".into(), errno: self.unread }
            }
            Question::Handover { .. } => {
                Answer::Handover(Handover { text: "handover".into(), ..Handover::default() })
            }
        }
    }

    /// Lets time pass, waking the reducer exactly when it asked for it.
    pub(super) fn pass(&mut self, millis: u64) {
        let end = self.now.mono.plus(millis);
        let mut rounds = 0_u64;
        loop {
            rounds += 1;
            assert!(
                rounds < 20_000 + millis / 10,
                "it never sleeps: {:?}",
                self.state.next_wakeup(self.now)
            );
            let wake = self.state.next_wakeup(self.now).map(|(at, _)| at);
            let due = self.later.iter().map(|(at, _)| *at).min();
            let next = wake.into_iter().chain(due).min().unwrap_or(end);
            if next > end {
                self.to(end);
                return;
            }
            self.to(next);
            match self.later.iter().position(|(at, _)| *at <= self.now.mono) {
                Some(at) => {
                    let (_, later) = self.later.remove(at);
                    self.arrive(later);
                }
                None => self.feed(Input::Wake),
            }
        }
    }

    fn to(&mut self, mono: Mono) {
        let mono = mono.max(self.now.mono);
        self.now.wall = self.now.wall.plus(mono.since(self.now.mono));
        self.now.mono = mono;
    }

    fn arrive(&mut self, later: Later) {
        match later {
            Later::Spawn { session, launch } => {
                self.calls_open = self.calls_open.saturating_sub(1);
                if let Some((left, errno)) = self.fails.get_mut(&session).filter(|(n, _)| *n > 0) {
                    *left -= 1;
                    self.starting = self.starting.saturating_sub(1);
                    let (errno, words) = (Some(*errno), format!("os error {errno}"));
                    self.ended(session, launch);
                    self.feed(Input::SpawnFailed { session, launch, errno, words });
                } else {
                    let child = ChildMark { pid: 100, start: launch.0 };
                    self.feed(Input::Spawned { session, launch, child });
                    if self.stops.contains(&launch) {
                        self.ended(session, launch);
                        self.feed(Input::Stopped { session, launch, leftovers: 0 });
                    }
                }
            }
            Later::Shake { session, launch, request } => {
                self.starting = self.starting.saturating_sub(1);
                let answer = Ok(json!({}));
                let event = StreamEvent::ControlResponse { request, answer };
                self.feed(Input::Stream { session, launch, event });
                let init = StreamEvent::from(Init {
                    session_id: Some(self.plans[&session].conversation.id()),
                    model: "m".into(),
                    permission_mode: "default".into(),
                    api_key_source: "none".into(),
                    version: "2".into(),
                });
                self.feed(Input::Stream { session, launch, event: init });
            }
        }
    }
}
