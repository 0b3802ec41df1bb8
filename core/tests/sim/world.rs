//! A world: the store, the clock, the children, the person and the machine around one reducer. It jumps
//! from event to event; every input is one step, and after every step the oracle looks.
//!
//! It decides nothing about sessions: that is what is under test.

use crate::bugs::Bug;
use crate::cli::{Child, Files};
use crate::clock::{Clock, HOUR, MINUTE, SECOND};
use crate::dice::Dice;
use crate::faults::{self, Faults};
use crate::invariants::{Broken, Oracle};
use crate::launches::Launches;
use crate::load::Load;
use crate::mass::MASS_MS;
use crate::report::Report;
use crate::scripts::Phase;
use crate::store::Store;
use crate::waits::Wait;
use omniscio_core::id::{CliSessionId, SessionId};
use omniscio_core::launch::LaunchPlan;
use omniscio_core::session::Holder;
use omniscio_core::settings::KillSwitches;
use omniscio_core::supervisor::{Act, AgentTool, Input, LaunchId, State};
use omniscio_core::time::Day;
use omniscio_core::waiting::DeferredWork;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// How many inputs are kept to be printed.
const TRACE: usize = 60;

/// Something that will happen.
pub(crate) enum Event {
    Input(Box<Input>),
    Answer { questions: u64, looked: Option<Looked>, input: Box<Input> },
    Born(u64),
    Unborn { child: u64, errno: i32 },
    Beat { child: u64, serial: u64 },
    Pipe { child: u64, bytes: Vec<u8>, phase: Phase },
    Stderr(u64),
    Woken { child: u64, wait: Wait },
    PipeEnd(u64),
    Gone { child: u64, code: i32 },
    Kill(u64),
    Swept(u64),
    Start,
    Person,
    Machine,
    Minute,
    FolderBack(String),
    HolderGone(CliSessionId),
    Sample,
    Agent { session: SessionId, tool: AgentTool },
    LetGo,
    Away(u64),
}

/// A ladder's 211.5 minutes, and the time in which a session comes to stand on it.
const SIEGE_MS: u64 = 6 * HOUR;

/// Conversations that were looked at, and which of them another program had open then.
pub(crate) struct Looked {
    pub(crate) ids: Vec<CliSessionId>,
    pub(crate) held: Option<CliSessionId>,
}

/// One line of the story.
pub(crate) enum Told {
    Text(String),
    Input(Rc<Input>),
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    /// `None` while the app is not running.
    pub(crate) state: Option<State>,
    events: BTreeMap<(u64, u64), (u64, Event)>,
    events_seen: u64,
    pub(crate) children: BTreeMap<u64, Child>,
    pub(crate) by_launch: BTreeMap<(SessionId, LaunchId), u64>,
    pub(crate) children_made: u64,
    /// Tools that outlived an app, until the next start sweeps them.
    pub(crate) debris: BTreeMap<SessionId, u32>,
    pub(crate) files: Files,
    pub(crate) gone_folders: BTreeSet<String>,
    /// Other programs, by the conversation they have open.
    pub(crate) holders: BTreeMap<CliSessionId, Holder>,
    pub(crate) load: Load,
    pub(crate) launches: Launches,
    pub(crate) faults: Faults,
    pub(crate) oracle: Oracle,
    pub(crate) report: Report,
    pub(crate) bug: Option<Bug>,
    /// What the next start finds in place of a reset that was not stored.
    pub(crate) unstored: BTreeMap<SessionId, (u8, Option<Day>)>,
    /// Wake-ups that a planted bug keeps after they fired.
    pub(crate) kept_wakes: BTreeMap<SessionId, Option<DeferredWork>>,
    /// Launches that a planted bug holds back, and those that it repeats.
    pub(crate) held_back: Vec<(u64, Act)>,
    pub(crate) plans: BTreeMap<SessionId, Box<LaunchPlan>>,
    pub(crate) switches: KillSwitches,
    /// Which start of the app this is.
    pub(crate) run: u64,
    /// Answers to questions of an earlier state are not delivered.
    pub(crate) questions: u64,
    trace: VecDeque<(u64, Told)>,
    pub(crate) trace_max: usize,
    wakes: (u64, u32),
    pub(crate) replies: u64,
    pub(crate) slept_at: u64,
    pub(crate) steps: u64,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>) -> World {
        let mut dice = Dice::new(seed);
        let clock = Clock::new(dice.chance(500), dice.between(1, 40));
        let faults = Faults::random(&mut dice);
        let load = Load::random(&mut dice);
        let launches = Launches::random(&mut dice);
        let switches = faults::switches(&mut dice);
        let mut world = World {
            seed,
            dice,
            clock,
            store: Store::default(),
            state: None,
            events: BTreeMap::new(),
            events_seen: 0,
            children: BTreeMap::new(),
            by_launch: BTreeMap::new(),
            children_made: 0,
            debris: BTreeMap::new(),
            files: Files::new(),
            gone_folders: BTreeSet::new(),
            holders: BTreeMap::new(),
            load,
            launches,
            faults,
            oracle: Oracle::new(),
            report: Report::default(),
            bug,
            unstored: BTreeMap::new(),
            kept_wakes: BTreeMap::new(),
            held_back: Vec::new(),
            plans: BTreeMap::new(),
            switches,
            run: 0,
            questions: 0,
            trace: VecDeque::new(),
            trace_max: TRACE,
            wakes: (0, 0),
            replies: 0,
            slept_at: 0,
            steps: 0,
        };
        world.after(0, Event::Start);
        world.after(SECOND, Event::Person);
        world.after(MINUTE, Event::Machine);
        world.after(MINUTE, Event::Minute);
        world.after(SECOND, Event::Sample);
        world
    }

    /// Runs for so long in bad weather, then until everything has settled.
    pub(crate) fn live(&mut self, millis: u64) -> Result<(), Broken> {
        let siege = if self.seed.is_multiple_of(2) { SIEGE_MS } else { 0 };
        let mass = if self.seed % 4 == 1 { MASS_MS } else { 0 };
        let end = self.clock.at + millis.saturating_sub(siege + mass);
        self.run_until(end);
        if mass > 0 {
            self.mass_start();
        }
        if siege > 0 {
            self.siege(siege);
            self.run_until(end + 20 * MINUTE);
            for _ in 0..3 {
                self.turn_by_itself();
            }
            self.run_until(end + siege);
        }
        if let Some(broken) = &self.oracle.broken {
            return Err(broken.clone());
        }
        self.calm_down();
        let end = self.clock.at + 180 * MINUTE;
        self.run_until(end);
        self.check_settled();
        self.oracle.broken.clone().map_or(Ok(()), Err)
    }

    fn check_settled(&mut self) {
        let rows: Vec<_> = self.store.listed().cloned().collect();
        for row in rows {
            // a tool may run for as long as it likes
            let tool = self.children.values().any(|child| {
                child.session == row.id && child.alive && child.busy && child.phase == Phase::Free
            });
            if !tool {
                self.oracle.settled(&row);
            }
            self.oracle.no_message_is_lost(&row, &self.store);
        }
        self.oracle.inv_65(&self.store);
    }

    pub(crate) fn run_until(&mut self, end: u64) {
        while self.oracle.broken.is_none() {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let now = self.clock.now();
            let wake = self.state.as_ref().and_then(|state| state.next_wakeup(now));
            let wake = wake.map(|(at, _)| self.clock.true_at(at).max(self.clock.at));
            let next = match (event, wake) {
                (Some(event), Some(wake)) => event.min(wake),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => return,
            };
            if next > end {
                self.clock.at = self.clock.at.max(end);
                return;
            }
            self.pass_to(next);
            if event == Some(next) {
                if let Some((_, (run, event))) = self.events.pop_first() {
                    self.happen(run, event);
                }
            } else {
                self.wake();
            }
        }
    }

    fn pass_to(&mut self, at: u64) {
        let before = self.clock.summer();
        self.clock.at = self.clock.at.max(at);
        if self.clock.summer() != before {
            self.report.hit("summer time change");
        }
    }

    fn wake(&mut self) {
        let at = self.clock.at;
        self.wakes = if self.wakes.0 == at { (at, self.wakes.1 + 1) } else { (at, 1) };
        if self.wakes.1 > 100 {
            let why = self.state.as_ref().and_then(|state| state.next_wakeup(self.clock.now()));
            self.oracle.fail("spin", format!("woken a hundred times in one millisecond: {why:?}"));
        }
        self.feed(Input::Wake);
    }

    /// Nobody does anything for so long: what was to happen happens later.
    pub(crate) fn sleep_through(&mut self, millis: u64) {
        let events = std::mem::take(&mut self.events);
        self.events =
            events.into_iter().map(|((at, n), event)| ((at + millis, n), event)).collect();
        for child in self.children.values_mut() {
            child.pipe_at += millis;
        }
        let at = self.clock.at + millis;
        self.pass_to(at);
        self.slept_at = at;
        self.oracle.slept(millis, at);
    }

    /// Something happens in so many milliseconds.
    pub(crate) fn after(&mut self, millis: u64, event: Event) {
        self.events_seen += 1;
        let at = self.clock.at + millis;
        self.events.insert((at, self.events_seen), (self.run, event));
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.tell(Told::Text(text.into()));
    }

    pub(crate) fn tell(&mut self, told: Told) {
        if self.oracle.broken.is_some() {
            // the story ends where the invariant broke
            return;
        }
        if self.trace.len() >= self.trace_max {
            self.trace.pop_front();
        }
        self.trace.push_back((self.clock.at, told));
    }

    /// What is printed when an invariant does not hold.
    pub(crate) fn story(&self, broken: &Broken) -> String {
        let mut text =
            format!("seed {}: {} does not hold: {}\n", self.seed, broken.name, broken.text);
        for (at, what) in &self.trace {
            let what = match what {
                Told::Text(text) => text.clone(),
                Told::Input(input) => told(input),
            };
            text.push_str(&format!("  {:>12.3} s  {what}\n", *at as f64 / 1000.0));
        }
        text.push_str(&format!("see all of it with OMNISCIO_SIM_SEED={}\n", self.seed));
        text
    }

    fn happen(&mut self, run: u64, event: Event) {
        match event {
            Event::Input(input) if run == self.run => self.feed(*input),
            Event::Answer { questions, looked, input }
                if run == self.run && questions == self.questions =>
            {
                self.oracle.looked(looked);
                self.feed(*input);
            }
            Event::Input(_) | Event::Answer { .. } => {}
            Event::Start => self.start(),
            Event::Person => self.person(),
            Event::Machine => self.machine(),
            Event::Minute => self.minute(),
            Event::FolderBack(folder) => {
                self.gone_folders.remove(&folder);
                self.oracle.folder(&folder, None);
            }
            Event::HolderGone(id) => {
                self.holders.remove(&id);
            }
            Event::Sample => self.sample(),
            Event::LetGo => self.let_go(),
            Event::Away(until) => self.faults.away_until = until,
            Event::Agent { session, tool } => self.agent(session, tool),
            Event::Born(child) => self.born(child),
            Event::Unborn { child, errno } => self.unborn(child, errno),
            Event::Beat { child, serial } => self.beat(child, serial),
            Event::Pipe { child, bytes, phase } => self.pipe(child, &bytes, phase),
            Event::Stderr(child) => self.stderr(child),
            Event::Woken { child, wait } => self.woken(child, wait),
            Event::PipeEnd(child) => self.pipe_end(child),
            Event::Gone { child, code } => self.gone(child, code),
            Event::Kill(child) => self.kill(child),
            Event::Swept(child) => self.swept(child),
        }
    }
}

/// An input in one line of the story.
fn told(input: &Input) -> String {
    if let Input::Boot(boot) = input {
        return format!("Boot first: {}, {} rows", boot.first, boot.rows.len());
    }
    format!("{input:?}").chars().take(260).collect()
}
