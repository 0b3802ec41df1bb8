//! The loop: one input at a time into the rules, the clock read once for each or for some that came
//! together, what they say done before the next. Children's bytes become events here.
//!
//! It holds no rule. A panic inside a rule costs the state, not the app: the state is built anew from
//! the rows, the same way as at a start.

mod caught;
pub(super) mod inbox;

use super::board::Board;
use super::clock::Clock;
use super::ctl::Bound;
use super::effects::parts::Asked;
use super::effects::{Effects, Ran};
use super::listener::Outbox;
use super::store::Lock;
use super::supervisor::Rules;
use caught::caught;
use inbox::{Inbox, Message};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{AccountView, CliState, Event, IpcCode, LiveView, RowView};
use omniscio_core::limits::Limits;
use omniscio_core::settings::KillSwitches;
use omniscio_core::stream::{Decoder, StreamEvent};
use omniscio_core::supervisor::{Boot, Input, LaunchId, State};
use omniscio_core::time::{Day, Mono, Now, Wall};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::vec;

/// The loop looks at the clock at least this often, so that a sleep of the machine is noticed soon
/// after it: a wait does not count the time of a sleep.
const LOOK_UP_MS: u64 = 10_000;
/// While children are talkative their output gathers for so long, and is taken in one go.
const REST_MS: u64 = 8;
/// A wait that took this much longer than it was to take was a sleep of the machine, not a busy one.
const SLEPT_MIN_MS: u64 = 5_000;
/// So many rebuilt states within [`FAULT_SPAN_MS`] will not help any more: the app ends, and its next
/// start finds the rows as they are.
const FAULTS_MAX: usize = 8;
const FAULT_SPAN_MS: u64 = 60_000;

/// What does not change while the app runs.
pub(super) struct Fixed {
    pub(super) limits: Limits,
    pub(super) switches: KillSwitches,
    pub(super) accounts: Vec<AccountView>,
    /// Each new state gets this plus its generation.
    pub(super) seed: u64,
    pub(super) rules: Rules,
}

/// What is this app's alone on its data folder, in the order in which it is let go.
pub(super) type Held = (Option<Bound>, Lock);

/// The loop and all it works with.
pub(super) struct Driver {
    state: State,
    effects: Effects,
    fixed: Fixed,
    inbox: Arc<Inbox>,
    outbox: Outbox,
    board: Arc<Board>,
    clock: Clock,
    /// When states were rebuilt lately.
    faults: Vec<Mono>,
    /// The last input was a wake-up: one that changes nothing must not come again at once.
    woke: bool,
    /// What was taken from the inbox together.
    run: VecDeque<Message>,
    /// The piece of a child's output that is at work.
    piece: Option<Piece>,
    /// The time of what was taken together, until something is stored, which may take long.
    reading: Option<Now>,
    /// Output of children came since the loop last waited.
    output: bool,
    /// When it last waited after such output.
    output_at: Option<Mono>,
}

impl Driver {
    pub(super) fn new(
        effects: Effects,
        fixed: Fixed,
        inbox: Arc<Inbox>,
        outbox: Outbox,
        board: Arc<Board>,
    ) -> Driver {
        Driver {
            state: State::new(fixed.limits.clone()),
            effects,
            fixed,
            inbox,
            outbox,
            board,
            clock: Clock,
            faults: Vec::new(),
            woke: false,
            run: VecDeque::new(),
            piece: None,
            reading: None,
            output: false,
            output_at: None,
        }
    }

    /// Runs until the rules say that the app may end. `started` is called once the first rows are in.
    /// The lock of the data folder is let go at the very end.
    pub(super) fn run(mut self, started: impl FnOnce(), held: Held) {
        let ending = Ending {
            inbox: Arc::clone(&self.inbox),
            board: Arc::clone(&self.board),
            outbox: self.outbox.clone(),
        };
        let mut ran = self.boot(true);
        started();
        while ran != Ran::End {
            ran = match ran {
                Ran::Broken(why) => self.rebuild(&why),
                Ran::On | Ran::End => match self.next() {
                    Ok(Some(input)) => self.turn(input),
                    Ok(None) => Ran::On,
                    Err(ran) => ran,
                },
            };
        }
        tracing::info!("the loop ends");
        self.inbox.close();
        self.effects.end();
        drop(self.effects);
        drop(held);
        drop(ending);
    }

    /// One input through the rules, and what they say.
    fn turn(&mut self, input: Input) -> Ran {
        self.woke = matches!(input, Input::Wake);
        let (what, asked) = (name(&input), Asked::of(&input));
        let now = self.reading.take().unwrap_or_else(|| self.now());
        let (state, rules) = (&mut self.state, self.fixed.rules);
        // after a panic the state is thrown away
        match caught(|| rules(state, input, now)) {
            Ok(step) => {
                let more = self.piece.is_some() || !self.run.is_empty();
                self.reading = (step.writes.is_empty() && more).then_some(now);
                self.effects.run(step, asked, now.wall)
            }
            Err(panic) => Ran::Broken(format!("a rule panicked at {what}: {panic}")),
        }
    }

    /// Fills a new state from the rows.
    fn boot(&mut self, first: bool) -> Ran {
        let loaded = match self.effects.load() {
            Ok(loaded) => loaded,
            Err(ran) => return ran,
        };
        for words in &loaded.unreadable {
            tracing::error!(words, "a row cannot be read: it is left as it is and not shown");
        }
        for row in loaded.rows.iter().filter(|row| !row.is_gone()) {
            self.board.show(RowView { row: row.clone(), live: LiveView::default() });
        }
        self.board.set_settings(loaded.settings.clone());
        let boot = Boot {
            seed: self.fixed.seed.wrapping_add(self.effects.generation),
            os: omniscio_core::launch::classify::Os::current(),
            first,
            rows: loaded.rows,
            queues: loaded.queues,
            block_counts: loaded.block_counts,
            live: if first { Vec::new() } else { self.effects.live() },
            settings: loaded.settings,
            switches: self.fixed.switches,
            accounts: self.fixed.accounts.clone(),
        };
        match self.turn(Input::Boot(Box::new(boot))) {
            Ran::On => self.turn(Input::Cli { found: path(&self.board.cli()) }),
            ran @ (Ran::End | Ran::Broken(_)) => ran,
        }
    }

    /// Starts over from the rows, as after a restart of the app; the children are stopped first.
    fn rebuild(&mut self, why: &str) -> Ran {
        tracing::error!(why, "the state is rebuilt from the rows");
        let now = self.now().mono;
        self.faults.retain(|at| now.since(*at) < FAULT_SPAN_MS);
        self.faults.push(now);
        if self.faults.len() > FAULTS_MAX {
            tracing::error!("it does not help: the app ends");
            return Ran::End;
        }
        self.effects.generation += 1;
        self.effects.own.retain(|message| !matches!(message, Message::Answer { .. }));
        let message = "The app had to start over inside. Look at the session and try again.";
        self.board.fail_all(IpcCode::Internal, message);
        self.state = State::new(self.fixed.limits.clone());
        self.boot(false)
    }

    /// The next input; `None` if there was nothing for the rules.
    fn next(&mut self) -> Result<Option<Input>, Ran> {
        if let Some(message) = self.effects.own.pop_front() {
            return self.translate(message);
        }
        if let Some(line) = self.next_line() {
            return Ok(Some(line));
        }
        // the rules do what is due with every input: a wake-up is for when nothing comes
        if self.run.is_empty() {
            self.inbox.ready(&mut self.run);
            self.reading = None;
        }
        if let Some(message) = self.run.pop_front() {
            self.output |= matches!(message, Message::Output { .. });
            return self.translate(message);
        }
        let before = self.now();
        let state = &self.state;
        let wakeup = caught(|| state.next_wakeup(before))
            .map_err(|panic| Ran::Broken(format!("no next wake-up: {panic}")))?;
        let due = wakeup.map_or(LOOK_UP_MS, |(at, _)| at.since(before.mono));
        let limit = due.min(LOOK_UP_MS).max(u64::from(self.woke));
        let rest = if self.is_busy(before.mono) { limit.min(REST_MS) } else { 0 };
        self.inbox.rest(Duration::from_millis(rest));
        let message = self.inbox.next(Duration::from_millis(limit - rest));
        let after = self.now().mono;
        let millis = after.since(before.mono.plus(limit));
        if millis > SLEPT_MIN_MS {
            self.effects.own.extend(message);
            return Ok(Some(Input::Slept { millis }));
        }
        match (message, wakeup) {
            (Some(message), _) => self.translate(message),
            (None, Some((at, why))) if after >= at => {
                tracing::trace!(why, "wake");
                Ok(Some(Input::Wake))
            }
            (None, _) => Ok(None),
        }
    }

    /// Whether output of children came now and shortly before: what follows is taken together.
    fn is_busy(&mut self, now: Mono) -> bool {
        if !std::mem::take(&mut self.output) {
            return false;
        }
        let before = self.output_at.replace(now);
        before.is_some_and(|before| now.since(before) <= REST_MS)
    }

    /// The next line of the piece that is at work.
    fn next_line(&mut self) -> Option<Input> {
        let Piece { session, launch, events } = self.piece.as_mut()?;
        let (session, launch, event) = (*session, *launch, events.next());
        if events.as_slice().is_empty() {
            self.piece = None;
        }
        event.map(|event| Input::Stream { session, launch, event })
    }

    fn translate(&mut self, message: Message) -> Result<Option<Input>, Ran> {
        Ok(match message {
            Message::Input(input) => {
                if let Input::Exited { session, launch, .. } = &input {
                    self.effects.exited(*session, *launch);
                }
                Some(input)
            }
            Message::Output { session, launch, bytes, ended, decoder } => {
                let events = caught(|| decode(&decoder, &bytes, ended))
                    .map_err(|panic| Ran::Broken(format!("the decoder panicked: {panic}")))?;
                self.piece = Some(Piece { session, launch, events: events.into_iter() });
                self.next_line()
            }
            Message::Answer { generation, ask, answer } => {
                let current = generation == self.effects.generation;
                current.then_some(Input::Answer { ask, answer })
            }
            Message::Launched { session, launch, child } => {
                Some(self.effects.launched(session, launch, child))
            }
            Message::Cli(cli) => {
                let found = path(&cli);
                self.board.set_cli(cli.clone());
                self.outbox.event(Event::Cli(cli));
                Some(Input::Cli { found })
            }
        })
    }

    fn now(&self) -> Now {
        let sample = self.clock.now();
        let mono = sample.mono_ms.saturating_sub(self.effects.held_ms);
        Now { wall: Wall(sample.wall_ms), mono: Mono(mono), day: Day(sample.local_day) }
    }
}

/// What the lines of a piece of a child's output say that are still to come.
struct Piece {
    session: SessionId,
    launch: LaunchId,
    events: vec::IntoIter<StreamEvent>,
}

/// What the lines say that these bytes complete, and if nothing comes after them, what is left of one.
fn decode(decoder: &Mutex<Decoder>, bytes: &[u8], ended: bool) -> Vec<StreamEvent> {
    // after a panic the child is stopped: what its output still says is of no use
    let mut decoder = decoder.lock().unwrap_or_else(PoisonError::into_inner);
    let mut events = decoder.push(bytes);
    if ended {
        events.extend(decoder.finish());
    }
    events
}

/// Tells everybody that the loop has ended, also when it panicked outside of the rules: the app ends
/// then, the kernel hangs the children up, and the next start finds everything in the rows.
struct Ending {
    inbox: Arc<Inbox>,
    board: Arc<Board>,
    outbox: Outbox,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("the loop panicked: the app ends");
        }
        self.inbox.close();
        self.board.fail_all(IpcCode::Quitting, "The app is quitting.");
        self.board.end();
        self.outbox.close();
    }
}

fn path(cli: &CliState) -> Option<String> {
    match cli {
        CliState::Found { path, .. } => Some(path.clone()),
        CliState::Missing { .. } | CliState::Broken { .. } => None,
    }
}

/// The kind of an input, for the log: never what it holds.
fn name(input: &Input) -> &'static str {
    match input {
        Input::Boot(_) => "boot",
        Input::Wake => "wake",
        Input::Slept { .. } => "slept",
        Input::Spawned { .. } => "spawned",
        Input::SpawnFailed { .. } => "spawn-failed",
        Input::Stream { .. } => "stream",
        Input::Chatter { .. } => "chatter",
        Input::OutputEnded { .. } => "output-ended",
        Input::Exited { .. } => "exited",
        Input::Stopped { .. } => "stopped",
        Input::WriteFailed { .. } => "write-failed",
        Input::CommitRefused { .. } => "commit-refused",
        Input::Answer { .. } => "answer",
        Input::Load { .. } => "load",
        Input::Window { .. } => "window",
        Input::Cli { .. } => "cli",
        Input::Command { .. } => "command",
    }
}
