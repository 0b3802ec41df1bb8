//! The one reducer: `step(state, input, now)` gives durable writes and the acts that follow them.
//!
//! Everything that happens passes here in one total order. This module dispatches; thresholds and
//! meanings are in the rules it calls. Reading order: `surface` (what goes in and out), `live` (what
//! is not durable), `change` (how a row is changed), then one file per kind of event.

mod abort;
mod asks;
mod background;
mod boot;
mod cards;
mod change;
mod command;
mod commands;
mod context;
mod ending;
mod engines;
mod explain;
mod fork;
mod held;
mod ladder;
mod lane;
mod launching;
mod live;
mod liveness;
mod local;
mod looks;
pub(crate) mod mcp;
mod overtaken;
mod question;
mod refused;
mod relaunch;
mod remember;
mod replaying;
mod retry;
mod scan;
mod sending;
mod sessions;
mod stream;
mod surface;
mod timers;
mod turn_end;
mod waiting;
mod waking;
mod workers;

#[cfg(test)]
mod tests;

pub use command::*;
pub use question::*;
pub use surface::*;

use crate::id::{Rng, SessionId};
use crate::ipc::{AccountView, RowView};
use crate::launch::classify::Os;
use crate::limits::Limits;
use crate::load::Meter;
use crate::message::Queued;
use crate::settings::Policy;
use crate::time::{Mono, Now};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use asks::Asked;
use live::Session;
use sessions::Sessions;

/// All the reducer knows. Rebuilt from the rows at each start and after each caught panic.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    policy: Policy,
    accounts: Vec<AccountView>,
    rng: Rng,
    sessions: Sessions,
    asks: BTreeMap<AskId, Asked>,
    last_ask: u64,
    last_launch: u64,
    last_request: u64,
    scan: scan::Scan,
    load: Meter,
    lane: lane::Lane,
    os: Os,
    pulse_at: Mono,
    liveness_at: Mono,
    badge: Option<usize>,
    window: (bool, Option<SessionId>),
    cli_found: bool,
    quitting: bool,
    /// The queues as they were before the last step that changed any: a refused commit takes it back.
    queues_before: BTreeMap<SessionId, VecDeque<Queued>>,
    /// Sessions that the last step left deleted and without a child: forgotten once it is committed.
    deleted: Vec<SessionId>,
    exited: bool,
}

/// What one step gathers.
#[derive(Debug)]
struct Cx {
    now: Now,
    step: Step,
    touched: BTreeSet<SessionId>,
    /// What each changed row said of itself before the step.
    before: BTreeMap<SessionId, change::Alert>,
    /// Sessions whose queue the step changes.
    queues: BTreeSet<SessionId>,
}

impl State {
    /// A state that knows nothing yet: its first input is [`Input::Boot`].
    pub fn new(limits: Limits) -> State {
        State {
            limits,
            policy: Policy::default(),
            accounts: Vec::new(),
            rng: Rng::new(0),
            sessions: Sessions::default(),
            asks: BTreeMap::new(),
            last_ask: 0,
            last_launch: 0,
            last_request: 0,
            scan: scan::Scan::default(),
            load: Meter::default(),
            lane: lane::Lane::default(),
            os: Os::current(),
            pulse_at: Mono(u64::MAX),
            liveness_at: Mono(u64::MAX),
            badge: None,
            window: (false, None),
            cli_found: true,
            quitting: false,
            queues_before: BTreeMap::new(),
            deleted: Vec::new(),
            exited: false,
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the rules may read of settings and switches.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Every row that is not gone, as the window gets it.
    pub fn views(&self) -> impl Iterator<Item = RowView> + '_ {
        self.sessions.values().filter(|session| !session.row.is_gone()).map(view)
    }

    /// One row, if the state has it.
    pub fn view(&self, id: SessionId) -> Option<RowView> {
        self.sessions.get(&id).map(view)
    }

    fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    fn account_has_key(&self, account: &str) -> bool {
        self.accounts.iter().any(|known| known.id == account && known.api_key)
    }
}

fn view(session: &Session) -> RowView {
    RowView { row: session.row.clone(), live: session.live.view() }
}

/// Takes one input in. Never blocks, never fails; what it ignores it logs.
pub fn step(state: &mut State, input: Input, now: Now) -> Step {
    let mut cx = Cx {
        now,
        step: Step::default(),
        touched: BTreeSet::new(),
        before: BTreeMap::new(),
        queues: BTreeSet::new(),
    };
    if !matches!(input, Input::CommitRefused { .. }) {
        // the step before was committed, or there would have been a word of it
        state.forget_deleted();
    }
    state.dispatch(&mut cx, input);
    state.finish(&mut cx);
    if cx.queues.is_empty() && !cx.step.writes.is_empty() {
        // the step before was committed, or there would have been a word of it
        state.queues_before.clear();
    }
    // who gave a command finds its effect in place when the reply comes
    let mut step = cx.step;
    step.acts.sort_by_key(|act| matches!(act, Act::Reply { .. }));
    step
}

impl State {
    fn dispatch(&mut self, cx: &mut Cx, input: Input) {
        match input {
            Input::Boot(boot) => self.boot(cx, *boot),
            Input::Wake => {}
            Input::Slept { millis } => self.slept(cx, millis),
            Input::Spawned { session, launch, child } => self.spawned(cx, session, launch, child),
            Input::SpawnFailed { session, launch, errno, words } => {
                self.spawn_failed(cx, session, launch, errno, words);
            }
            Input::Stream { session, launch, event } => self.stream(cx, session, launch, event),
            Input::Chatter { session, launch, text } => self.chatter(cx, session, launch, text),
            Input::OutputEnded { session, launch } => self.output_ended(cx, session, launch),
            Input::Exited { session, launch, code, signal } => {
                self.exited(cx, session, launch, code, signal);
            }
            Input::Stopped { session, launch, leftovers } => {
                self.stopped(cx, session, launch, leftovers);
            }
            Input::WriteFailed { session, launch, words } => {
                self.write_failed(cx, session, launch, &words);
            }
            Input::CommitRefused { row, session } => {
                self.commit_refused(cx, session, row.map(|row| *row));
            }
            Input::Answer { ask, answer } => self.answer(cx, ask, answer),
            Input::Load { cores } => self.load.sample(cx.now.mono, &cores, &self.limits),
            Input::Window { focused, open } => self.window(cx, focused, open),
            Input::Cli { found } => self.cli_found = found.is_some(),
            Input::Command { reply, command } => self.command(cx, reply, command),
        }
        self.timers(cx);
        self.advance_line(cx);
    }

    /// Nothing of a deleted session is kept: an app that runs for weeks does not grow with them.
    fn forget_deleted(&mut self) {
        for id in core::mem::take(&mut self.deleted) {
            if self.sessions.get(&id).is_some_and(Session::is_over) {
                self.sessions.remove(&id);
            }
        }
    }

    fn window(&mut self, cx: &mut Cx, focused: bool, open: Option<SessionId>) {
        self.window = (focused, open);
        if let Some(id) = open {
            self.ask_folder(cx, id);
        }
    }

    /// A row was changed by another hand: the reducer takes it as it stands there.
    fn commit_refused(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        row: Option<crate::session::SessionRow>,
    ) {
        cx.log(Some(id), "a guarded write found another row; the stored one is taken over");
        match row {
            Some(row) => {
                // nothing of the refused step was done: the session is taken up as at a start
                let queue = self.queues_before.remove(&id);
                if let Some(session) = self.session(id) {
                    session.row = row;
                    if let Some(queue) = queue {
                        session.live.queue = queue;
                    }
                    cx.touched.insert(id);
                    self.badge = None;
                    self.let_go(cx, id);
                    self.stop_child(cx, id);
                    self.recover(cx, id);
                }
            }
            None => {
                self.let_go(cx, id);
                self.stop_child(cx, id);
                self.sessions.remove(&id);
                cx.act(Act::EmitGone(id));
            }
        }
    }

    /// Before a step changes a queue: it can be taken back if the commit is refused.
    fn keep_queue(&mut self, cx: &mut Cx, id: SessionId) {
        if cx.queues.is_empty() {
            self.queues_before.clear();
        }
        if cx.queues.insert(id)
            && let Some(session) = self.sessions.get(&id)
        {
            self.queues_before.insert(id, session.live.queue.clone());
        }
    }

    fn mint_request(&mut self) -> String {
        self.last_request += 1;
        format!("omniscio-{}", self.last_request)
    }

    fn mint_launch(&mut self) -> LaunchId {
        self.last_launch += 1;
        LaunchId(self.last_launch)
    }
}

impl Cx {
    fn act(&mut self, act: Act) {
        self.step.acts.push(act);
    }

    fn write(&mut self, write: Write) {
        self.step.writes.push(write);
    }

    fn log(&mut self, session: Option<SessionId>, text: impl Into<String>) {
        self.act(Act::Log { session, text: text.into() });
    }
}
