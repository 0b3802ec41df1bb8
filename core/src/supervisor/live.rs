//! What is known of a session only as long as the app lives: its child, its open turn, its timers.

use super::asks::LaunchFor;
use super::background::Background;
use super::relaunch::Relaunching;
use super::surface::{AskId, LaunchId};
use crate::card::Card;
use crate::context::{ContextReading, resolve_context_warning_usage};
use crate::id::MessageId;
use crate::ipc::{Activity, LiveView, RelaunchView};
use crate::launch::Conversation;
use crate::message::{Queued, UserLine};
use crate::session::{Holder, PendingAction, SessionRow, Status};
use crate::time::{Mono, Wall};
use crate::transcript::Builder;
use crate::turn::TurnFacts;
use crate::turn_end::Frozen;
use crate::verdict::{Decision, Source};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;

/// How many decisions of a session are kept for `explain`.
const DECISIONS_MAX: usize = 32;

/// The one child of a session, or its absence (RP-08).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// None lives.
    None,
    /// A spawn was asked for and not yet answered.
    Spawning { launch: LaunchId, since: Mono },
    /// It runs and has not yet answered the handshake.
    Handshaking { launch: LaunchId, request: String, since: Mono },
    /// It takes messages.
    Up { launch: LaunchId },
    /// The stop recipe runs; nothing is spawned before it is done (RP-01).
    Stopping { launch: LaunchId, deadline: Mono },
}

impl Child {
    pub(super) fn launch(&self) -> Option<LaunchId> {
        match self {
            Child::None => None,
            Child::Spawning { launch, .. }
            | Child::Handshaking { launch, .. }
            | Child::Up { launch }
            | Child::Stopping { launch, .. } => Some(*launch),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        match self {
            Child::Up { .. } => true,
            Child::None
            | Child::Spawning { .. }
            | Child::Handshaking { .. }
            | Child::Stopping { .. } => false,
        }
    }
}

/// What a launch is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The first message of the queue.
    Queue {
        /// The text that goes before it, when the conversation was lost.
        handover: Option<String>,
    },
    /// A replay of the last operator message, or its continuation.
    Replay { source: Source, line: UserLine },
    /// A bare resume: nothing is sent (Retry on a row with nothing to replay).
    Bare,
}

/// A launch that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub conversation: Conversation,
    pub purpose: Purpose,
    /// Starts that hung so far.
    pub hung: u8,
}

impl Delivery {
    /// What it is asked for again.
    pub(super) fn launch_for(&self) -> LaunchFor {
        match &self.purpose {
            Purpose::Queue { .. } => LaunchFor::Queue,
            Purpose::Replay { source, .. } => LaunchFor::Replay(*source),
            Purpose::Bare => LaunchFor::Replay(Source::RetryButton),
        }
    }
}

/// The operator's Stop or Send now, until the result or the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StopAsked {
    pub deadline: Mono,
    /// The queue goes on at once (Send now).
    pub send_now: bool,
}

/// What the end of a turn waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// Whether the CLI still has the conversation.
    Transcript(AskId),
    /// How full the context is.
    ContextUsage,
}

/// A turn whose end is being decided.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PendingEnd {
    pub frozen: Frozen,
    pub result: Box<crate::stream::TurnResult>,
    pub awaits: Awaits,
    pub deadline: Mono,
}

/// The live part of a session.
#[derive(Debug)]
pub(super) struct Live {
    pub child: Child,
    pub delivery: Option<Delivery>,
    /// Its number in the line of launches, while it waits there.
    pub ticket: Option<u64>,
    /// Since when it waits there.
    pub placed_at: Option<Mono>,
    /// How many stand in that line up to it, where a person is told.
    pub place: Option<u32>,
    /// The spawn call that is under way, and since when: it holds a slot, whatever becomes of its child.
    pub spawn_call: Option<(LaunchId, Mono)>,
    /// Folder and conversation were last looked at then.
    pub looked_at: Option<Mono>,
    /// A launch that failed transiently (RS-20).
    pub relaunch: Option<Relaunching>,
    /// A look found its process gone, and nothing has come from it since.
    pub gone_at: Option<Mono>,
    /// The question that stands before a launch.
    pub asking: Option<AskId>,
    /// A replay that waits for the old child to be gone: only then is the transcript complete.
    pub replay_after_stop: Option<Source>,
    /// The scan's question about this row: holds nobody else up.
    pub probing: Option<AskId>,
    pub turn: Option<TurnFacts>,
    pub ending: Option<PendingEnd>,
    pub builder: Builder,
    pub queue: VecDeque<Queued>,
    pub stop_asked: Option<StopAsked>,
    /// The output ended; the exit must follow before this.
    pub eof_deadline: Option<Mono>,
    /// Crash recovery brings the session back at this time.
    pub resume_due: Option<Mono>,
    /// When this run of the app last restarted the session.
    pub restarted_at: Option<Mono>,
    /// The next rung of the re-arm ladder is due.
    pub rung_at: Option<Mono>,
    /// Scans in a row that load has deferred for this row (LD-07).
    pub load_streak: u32,
    /// The restart under way was charged to the daily counter.
    pub charged: bool,
    /// Looks at folder and transcript that failed while crash recovery waits.
    pub resume_tries: u8,
    /// The stamp that stood when a turn began by itself, with its time: it comes back after that turn.
    pub stamped_before: Option<(Status, PendingAction, Wall)>,
    /// The row before a local command was written.
    pub before_local: Option<Box<SessionRow>>,
    /// The child was launched on an existing conversation and no turn of it has ended.
    pub fresh_resume: bool,
    pub chatter: VecDeque<String>,
    /// Requests of the agent that came while a card was open.
    pub cards_waiting: VecDeque<Card>,
    /// What the CLI had counted when this child's first turn began.
    pub cost_base: u64,
    pub cost_child: u64,
    /// This child has named a line that it took up: it names each.
    pub names_lines: bool,
    pub folder_missing: bool,
    /// Who else has the conversation open, as last seen.
    pub held: Option<Holder>,
    /// The person chose to go on in a copy of a conversation that is held.
    pub copy_held: bool,
    /// How full the model's context is, by all that was said of it.
    pub context: ContextReading,
    /// The next turn has begun by itself: nothing is sent into it.
    pub goes_on: bool,
    /// Our question about it that is open.
    pub context_asked: Option<String>,
    pub model: Option<String>,
    pub background: Background,
    pub activity: Activity,
    pub activity_since: Wall,
    pub decisions: VecDeque<Decision>,
}

impl Live {
    pub(super) fn new(last_block: u64, queue: VecDeque<Queued>, since: Wall) -> Self {
        Live {
            child: Child::None,
            delivery: None,
            ticket: None,
            placed_at: None,
            place: None,
            spawn_call: None,
            looked_at: None,
            relaunch: None,
            gone_at: None,
            asking: None,
            replay_after_stop: None,
            probing: None,
            turn: None,
            ending: None,
            builder: Builder::new(last_block),
            queue,
            stop_asked: None,
            eof_deadline: None,
            resume_due: None,
            restarted_at: None,
            rung_at: None,
            load_streak: 0,
            charged: false,
            resume_tries: 0,
            stamped_before: None,
            before_local: None,
            fresh_resume: false,
            chatter: VecDeque::new(),
            cards_waiting: VecDeque::new(),
            cost_base: 0,
            cost_child: 0,
            names_lines: false,
            folder_missing: false,
            held: None,
            copy_held: false,
            context: ContextReading::default(),
            goes_on: false,
            context_asked: None,
            model: None,
            background: Background::default(),
            activity: Activity::Working,
            activity_since: since,
            decisions: VecDeque::new(),
        }
    }

    /// What the session has cost with this result, and what of it is new.
    pub(super) fn spent(&mut self, before: u64, result: &crate::stream::TurnResult) -> (u64, u64) {
        self.cost_child = self.cost_child.max(result.cost_microdollars);
        let cost = self.cost_base + self.cost_child;
        (cost, cost.saturating_sub(before))
    }

    /// Something is under way that a new message must wait for.
    pub(super) fn busy(&self) -> bool {
        self.turn.is_some()
            || self.ending.is_some()
            || self.delivery.is_some()
            || self.relaunch.is_some()
            || self.resume_due.is_some()
            || self.replay_after_stop.is_some()
    }

    /// A restart was begun and has not ended: further clicks are merged (RT-19).
    pub(super) fn restart_under_way(&self) -> bool {
        self.asking.is_some()
            || self.delivery.is_some()
            || self.relaunch.is_some()
            || self.resume_due.is_some()
            || self.replay_after_stop.is_some()
    }

    /// No launch is under way any more, nor asked about: its late answers are ignored.
    pub(super) fn forget_launch(&mut self) {
        // rule: RS-23
        self.drop_launch();
        self.asking = None;
        self.probing = None;
        self.resume_due = None;
        self.replay_after_stop = None;
    }

    /// The launch that was planned is not made.
    pub(super) fn drop_launch(&mut self) {
        self.delivery = None;
        self.relaunch = None;
        self.leave_line();
    }

    /// It waits in the line no longer.
    pub(super) fn leave_line(&mut self) {
        self.ticket = None;
        self.placed_at = None;
        self.place = None;
    }

    pub(super) fn remember(&mut self, decision: Decision) {
        if self
            .decisions
            .back()
            .is_some_and(|last| last.actor == decision.actor && last.text == decision.text)
        {
            self.decisions.pop_back();
        }
        if self.decisions.len() >= DECISIONS_MAX {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision);
    }

    pub(super) fn take_queued(&mut self, id: MessageId) -> Option<Queued> {
        let at = self.queue.iter().position(|queued| queued.id == id)?;
        self.queue.remove(at)
    }

    pub(super) fn view(&self) -> LiveView {
        LiveView {
            activity: self.activity.clone(),
            activity_since: self.activity_since,
            child: self.child != Child::None,
            queue: self.queue.iter().cloned().collect(),
            folder_missing: self.folder_missing,
            held: self.held.clone(),
            restart_under_way: self.restart_under_way(),
            relaunch: self.relaunch.as_ref().map(|relaunch| RelaunchView {
                attempts: relaunch.failures,
                next: relaunch.due.map(|(_, wall)| wall),
                words: relaunch.words.clone(),
            }),
            place: self.place,
            context: resolve_context_warning_usage(&self.context),
            model: self.model.clone(),
            background: self.background.count,
        }
    }
}

/// One session of the state.
#[derive(Debug)]
pub(super) struct Session {
    pub row: SessionRow,
    pub live: Live,
}

impl Session {
    /// It is deleted and nothing of it runs any more.
    pub(super) fn is_over(&self) -> bool {
        self.row.deleted_at.is_some() && self.live.child == Child::None
    }
}
