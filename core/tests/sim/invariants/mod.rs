//! What must hold after every step, whatever happens: one function for each invariant of the contract.
//!
//! The oracle keeps its own books from what goes in, what is committed and what is done. It reads the
//! contract's default limits, never those of the world, and never the reducer's inner state beyond the
//! rows it shows.
//!
//! - whole: 1 to 5, 7 to 15, 17 to 20, 23, 26 to 33, 35 to 37, 39, 41 to 44, 47 to 53, 55 to 62, 64, 65;
//! - as far as they are built: 6 (gates of an agent), 16 (the retry budget and the ladder), 34 (once per
//!   entry, never of what needs nobody), 38 (the scan, the turn's end), 40 (the scan never claims a row of
//!   the usage limit: 4), 46 (scan and ladder); 20 means results that reach the app, 26 no poll and no dock;
//! - no wake-up is fired twice; WD-01 and WD-02: a row that waits calls nobody and says for what;
//! - A-04 beside them: no tool twice, no message text twice in one history, hand-overs name what ran;
//! - no accepted message is lost or sent twice by the queue; A-12: one writer per conversation;
//! - who is told of a launch that does not come, and when; RS-13: the bounded mode; RS-23: nobody who
//!   was taken back is launched; the line's gap, its places and what the machine must have left.

mod audit;
mod book;
mod budget;
mod ending;
mod holds;
mod ladder;
mod line;
mod liveness;
mod looks;
mod messages;
mod nudges;
mod relaunch;
mod restarts;
mod switches;
mod valve;
mod visible;
mod waits;
mod workers;

use crate::clock::Clock;
use crate::report::Report;
use crate::store::Store;
use book::{Book, Claim};
use line::Line;
use liveness::Settling;
use looks::Pressed;
use omniscio_core::id::{CliSessionId, MessageId, SessionId};
use omniscio_core::ipc::RowView;
use omniscio_core::limits::Limits;
use omniscio_core::message::MessageState;
use omniscio_core::session::{SessionRow, Status};
use omniscio_core::settings::{Policy, Settings};
use omniscio_core::supervisor::{Act, Command, Input, State, Write};
use omniscio_core::time::Now;
use omniscio_core::verdict::Actor;
use relaunch::Failure;
use std::collections::{BTreeMap, BTreeSet};
use switches::{Ticks, command_of};

/// An invariant that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

pub(crate) struct Oracle {
    limits: Limits,
    pub(crate) policy: Policy,
    books: BTreeMap<SessionId, Book>,
    window: BTreeMap<SessionId, RowView>,
    badge: usize,
    touched: BTreeSet<SessionId>,
    written: BTreeSet<MessageId>,
    /// Wake-ups that were fired, by what they say.
    fired: BTreeSet<String>,
    /// The rows that the audit log gives.
    folded: BTreeMap<SessionId, SessionRow>,
    /// Conversations of which the app was told that they are open elsewhere.
    held: BTreeSet<CliSessionId>,
    ticks: Ticks,
    slept_at: u64,
    switched_at: u64,
    /// The machine counts as saturated, and since when it does or does not.
    heavy: bool,
    heavy_since: u64,
    /// Since when it is saturated at every tick.
    heavy_from: u64,
    /// When recovery was last switched, and since when it is on at every tick.
    recovery_at: u64,
    recovery_from: u64,
    forced_at: Option<u64>,
    /// Folders that are gone, and since when.
    gone: BTreeMap<String, u64>,
    quitting: bool,
    pressed: Option<Pressed>,
    /// The settings as a command wants them.
    wanted: Option<Settings>,
    settling: Option<Settling>,
    booted: Now,
    booted_at: u64,
    stepped_at: u64,
    retrying: Option<SessionId>,
    /// The step is a command of the person, or a start of the app.
    by_person: bool,
    /// Turns that the step closed, and whether the person had asked for it.
    closed: BTreeMap<SessionId, bool>,
    line: Line,
    /// The launch that the step is told has failed.
    failure: Option<Failure>,
    /// Lines about a relaunch that the step posts, and those that it must.
    posted: Vec<(SessionId, String)>,
    expected: Vec<(SessionId, String)>,
    pub(crate) broken: Option<Broken>,
}

impl Oracle {
    pub(crate) fn new() -> Oracle {
        Oracle {
            limits: Limits::default(),
            policy: Policy::default(),
            books: BTreeMap::new(),
            window: BTreeMap::new(),
            badge: 0,
            touched: BTreeSet::new(),
            written: BTreeSet::new(),
            fired: BTreeSet::new(),
            folded: BTreeMap::new(),
            held: BTreeSet::new(),
            ticks: Ticks::default(),
            slept_at: 0,
            switched_at: 0,
            heavy: false,
            heavy_since: 0,
            heavy_from: 0,
            recovery_at: 0,
            recovery_from: 0,
            forced_at: None,
            gone: BTreeMap::new(),
            quitting: false,
            pressed: None,
            wanted: None,
            settling: None,
            booted: Now::default(),
            booted_at: 0,
            stepped_at: 0,
            retrying: None,
            by_person: false,
            closed: BTreeMap::new(),
            line: Line::default(),
            failure: None,
            posted: Vec::new(),
            expected: Vec::new(),
            broken: None,
        }
    }

    /// Notes the first invariant that does not hold.
    pub(crate) fn fail(&mut self, name: &'static str, text: impl Into<String>) {
        if self.broken.is_none() {
            self.broken = Some(Broken { name, text: text.into() });
        }
    }

    fn book(&mut self, id: SessionId) -> &mut Book {
        self.books.entry(id).or_default()
    }

    /// The app starts, or its state is built anew.
    pub(crate) fn booted(&mut self, store: &Store, clock: &Clock, policy: Policy) {
        self.booted = clock.now();
        self.booted_at = clock.at;
        self.policy = policy;
        self.quitting = false;
        self.window.clear();
        self.badge = 0;
        self.line_begins();
        for row in store.listed() {
            let book = self.book(row.id);
            let relaunch = std::mem::take(&mut book.relaunch);
            book.died_waiting = relaunch.waiting;
            if relaunch.failures > 0 {
                // no child came of it: the debounce does not count it
                book.restarted = book.restarted_before;
            }
            book.click = None;
            book.rest = None;
            (book.foreign, book.commands) = (false, false);
            book.resumes = false;
            book.again = false;
            book.replay_due = false;
            book.died_stopping = std::mem::take(&mut book.stop_asked);
            let open = matches!(row.status, Status::Starting | Status::Running);
            let claim = Claim { actor: Actor::CrashRecovery, at: clock.at, by_person: false };
            book.claim = Some(claim).filter(|_| open && row.intent_running);
        }
    }

    /// An outside hand changed a row: the books follow.
    pub(crate) fn overwritten(&mut self, row: &SessionRow, at: u64) {
        let book = self.book(row.id);
        book.foreign = true;
        book.shape_since = row.in_shape().then_some(at);
        book.in_shape_at = book.shape_since;
        book.deferred_from = book.shape_since;
        book.unseen_since = None;
        book.entries += 1;
        self.refold(row);
    }

    /// The session's part of a step is not done: another hand changed its row.
    pub(crate) fn refused(&mut self, session: SessionId) {
        (self.pressed, self.wanted) = (None, None);
        self.no_failure(session);
        self.book(session).click = None;
    }

    /// Before an input goes in.
    pub(crate) fn before(
        &mut self,
        input: &Input,
        state: &State,
        clock: &Clock,
        report: &mut Report,
    ) {
        self.touched.clear();
        self.closed.clear();
        self.retrying = None;
        let agent = matches!(input, Input::Command { command: Command::Agent { .. }, .. });
        self.by_person = matches!(input, Input::Command { .. } | Input::Boot(_)) && !agent;
        (self.pressed, self.wanted) = (None, None);
        if let Some(command) = command_of(input) {
            self.noted(command, clock.at, report);
            self.presses(command, state, clock);
            self.in_the_wait(command, state, report);
        }
        if !matches!(input, Input::SpawnFailed { .. }) {
            self.failure = None;
        }
        self.posted.clear();
        self.expected.clear();
        self.looks_end(input, clock.at);
        match input {
            Input::Answer { ask, answer } => {
                self.tick_answered(*ask, clock.at);
                self.told_room(*ask, answer, report, clock.at);
            }
            Input::Command { command: Command::Retry { session }, .. } => {
                self.click(*session, state, clock.at, report);
            }
            Input::Command {
                command: Command::Stop { session } | Command::Send { session, now: true, .. },
                ..
            } => self.book(*session).stop_asked = true,
            Input::CommitRefused { session, .. } => self.book(*session).foreign = false,
            Input::Stopped { session, .. } | Input::SpawnFailed { session, .. } => {
                self.stop_ends(*session, clock.at);
            }
            Input::Boot(_)
            | Input::Wake
            | Input::Slept { .. }
            | Input::Spawned { .. }
            | Input::Stream { .. }
            | Input::Chatter { .. }
            | Input::OutputEnded { .. }
            | Input::Exited { .. }
            | Input::WriteFailed { .. }
            | Input::Load { .. }
            | Input::Window { .. }
            | Input::Cli { .. }
            | Input::Command { .. } => {}
        }
    }

    /// The writes of a step are durable. `current`: the input is of a child that nobody stops.
    pub(crate) fn committed(
        &mut self,
        (input, current): (&Input, bool),
        writes: &[Write],
        (store, clock): (&Store, &Clock),
        report: &mut Report,
    ) {
        if let Input::Stream { session, event, .. } = input
            && current
        {
            self.heard(*session, event);
            self.hears_waits(*session, event, clock.at);
        }
        self.read_results(writes, report);
        self.failed(writes, (store, clock.at), report);
        for write in writes {
            match write {
                Write::Row { before, after, actor, reason } => {
                    let change = Change {
                        before: before.as_deref(),
                        after,
                        actor: *actor,
                        reason,
                        input,
                        writes,
                    };
                    self.changed(&change, store, clock, report);
                }
                Write::Settings(settings) => self.settings(settings, clock.at),
                Write::MessageState { id, state: MessageState::Sent } => {
                    self.sent(*id, store, report)
                }
                Write::Message(_) | Write::MessageState { .. } | Write::Block { .. } => {}
            }
        }
    }

    fn changed(&mut self, change: &Change<'_>, store: &Store, clock: &Clock, report: &mut Report) {
        self.fold(change);
        self.legal(change.after);
        self.relaunches(change, clock.at, report);
        self.inv_42(change);
        self.inv_43(change, store, report);
        self.ladder(change, clock, report);
        self.claims(change, clock, report);
        self.charges(change, clock, report);
        self.waits_end(change, report);
        self.concludes(change, report);
        self.shape(change, clock.at, report);
        self.nudged(change, report);
    }

    /// An act is about to be done.
    pub(crate) fn act(&mut self, act: &Act, store: &Store, clock: &Clock, report: &mut Report) {
        match act {
            Act::Spawn { session, plan, .. } => {
                self.spawns(*session, plan, (store, clock.at), report);
            }
            Act::Write { session, line, .. } => self.writes(*session, line, store, report),
            Act::Ask { ask, question } => self.asks((*ask, question), (store, clock), report),
            Act::Notify { session, .. } => self.notified(*session, clock.now(), report),
            Act::Emit(view) => {
                self.touched.insert(view.row.id);
                self.window.insert(view.row.id, (**view).clone());
            }
            Act::EmitGone(id) => {
                self.touched.insert(*id);
                self.window.remove(id);
            }
            Act::Badge(count) => self.badge = *count,
            Act::Reply { reply, .. } => self.replied(reply.is_ok(), report),
            Act::Log { session, text } => self.logged(*session, text, report),
            Act::Stop { session, .. } => self.stop_begins(*session),
            Act::Control { .. }
            | Act::EmitBlock { .. }
            | Act::EmitDelta { .. }
            | Act::EmitSettings(_)
            | Act::ForgetSecret(_)
            | Act::Exit => {}
        }
    }

    /// After a step: the rows it touched, and what holds for all of them together.
    pub(crate) fn after(
        &mut self,
        state: &State,
        store: &Store,
        clock: &Clock,
        report: &mut Report,
    ) {
        let touched = std::mem::take(&mut self.touched);
        for id in &touched {
            self.row(*id, state, store, clock, report);
        }
        if !touched.is_empty() {
            self.counts(state, clock.now());
        }
        self.shows_failures(state, clock, report);
    }

    /// Once a virtual minute: every row.
    pub(crate) fn every_row(
        &mut self,
        state: &State,
        store: &Store,
        clock: &Clock,
        report: &mut Report,
    ) {
        let ids: Vec<SessionId> = store.listed().map(|row| row.id).collect();
        for id in ids {
            self.row(id, state, store, clock, report);
            self.queue(id, state, store);
            self.click_answered(id, clock.at);
        }
        for row in store.listed() {
            self.told_in_time(row, clock.at);
        }
        self.inv_55(clock.at);
        self.waits(store, clock.at, report);
    }

    /// The row as the reducer holds it, as the store has it and as the window shows it are one.
    fn row(
        &mut self,
        id: SessionId,
        state: &State,
        store: &Store,
        clock: &Clock,
        report: &mut Report,
    ) {
        let (Some(view), Some(stored)) = (state.view(id), store.rows.get(&id)) else { return };
        if self.book(id).foreign {
            return;
        }
        if view.live.held.is_some() {
            let book = self.book(id);
            book.takes_over |= book.click.take().is_some();
        }
        self.place(view.live.place, report);
        if view.row != *stored {
            let text = format!("state {:?}\nstore {stored:?}", view.row);
            self.fail("INV-44", text);
        }
        let shown = self.window.get(&id).map(|shown| &shown.row);
        if !view.row.is_gone() && shown != Some(&view.row) {
            self.fail("INV-26", format!("the window shows {shown:?}, the row is {:?}", view.row));
        }
        self.seen(&view, clock, report);
    }
}

/// One committed change of a row.
struct Change<'a> {
    before: Option<&'a SessionRow>,
    after: &'a SessionRow,
    actor: Actor,
    reason: &'a str,
    input: &'a Input,
    writes: &'a [Write],
}

/// Whether the writes close the session's open turn.
fn concludes(writes: &[Write], session: SessionId) -> bool {
    writes.iter().any(|write| match write {
        Write::Row { before: Some(before), after, .. } => {
            let number = |row: &SessionRow| row.turn.as_ref().map(|turn| turn.number);
            after.id == session && before.turn.is_some() && number(before) != number(after)
        }
        Write::Row { before: None, .. }
        | Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => false,
    })
}
