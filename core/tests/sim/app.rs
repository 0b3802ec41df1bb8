//! The app of a world: how it starts, takes one input after the other through the reducer, commits and
//! acts, and dies at any line of it. After every step the oracle looks.

use crate::bugs::Bug;
use crate::clock::{MINUTE, SECOND};
use crate::faults;
use crate::tamper::{fired_wakes, forget_stops, miswritten, taken_back, tamper, unstored_resets};
use crate::world::{Event, Told, World};
use omniscio_core::ipc::AccountView;
use omniscio_core::settings::Policy;
use omniscio_core::supervisor::{Act, Boot, Input, LaunchId, State, Step, step};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Where in a step the app dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    BeforeCommit,
    BeforeActs,
    BetweenActs,
}

impl World {
    /// The app starts: what the one before left behind is swept, the state is built from the rows.
    pub(crate) fn start(&mut self) {
        if self.state.is_some() {
            return;
        }
        self.debris.clear();
        if self.faults.machine_ms > 0 && self.dice.chance(150) {
            self.switches = faults::switches(&mut self.dice);
            self.report.hit("started with other switches");
        }
        self.boot(true);
    }

    pub(crate) fn boot(&mut self, first: bool) {
        self.questions += 1;
        self.load.forget();
        let limits = Bug::limits(self.bug);
        self.state = Some(State::new(limits));
        if first {
            for (id, (attempts, day)) in std::mem::take(&mut self.unstored) {
                if let Some(row) = self.store.rows.get_mut(&id) {
                    (row.retry_attempts, row.retry_day) = (attempts, day);
                    self.oracle.refold(row);
                }
            }
        }
        for (id, work) in std::mem::take(&mut self.kept_wakes) {
            if let Some(row) = self.store.rows.get_mut(&id).filter(|row| !row.is_gone()) {
                row.deferred_work = work;
                self.oracle.refold(row);
            }
        }
        if self.bug == Some(Bug::DebounceInMemory) {
            for row in self.store.rows.values_mut() {
                row.last_restart_at = None;
                self.oracle.refold(row);
            }
        }
        if self.bug == Some(Bug::StopForgotten) {
            for row in forget_stops(&mut self.store) {
                self.oracle.refold(&row);
            }
        }
        let live: Vec<_> = self.by_launch.keys().copied().filter(|_| !first).collect();
        let rows = self.store.listed().cloned().collect();
        let queues = self.store.listed().map(|row| (row.id, self.store.queue(row.id))).collect();
        let boot = Boot {
            seed: self.dice.raw(),
            os: self.launches.os,
            first,
            rows,
            queues,
            block_counts: self.store.blocks.iter().map(|(id, count)| (*id, *count)).collect(),
            live,
            settings: self.store.settings.clone(),
            switches: Bug::switches(self.bug, self.switches),
            accounts: vec![AccountView {
                id: "default".into(),
                label: "Default".into(),
                api_key: self.dice.chance(300),
            }],
        };
        let policy = Policy { settings: boot.settings.clone(), switches: self.switches };
        self.oracle.booted(&self.store, &self.clock, policy);
        self.feed(Input::Boot(Box::new(boot)));
    }

    /// The app is gone; its children go with their terminal.
    pub(crate) fn die(&mut self, until_start: u64) {
        self.oracle.befalls("the app dies", &mut self.report);
        self.state = None;
        self.held_back.clear();
        self.run += 1;
        for (_, child) in std::mem::take(&mut self.children) {
            if child.alive {
                *self.debris.entry(child.session).or_default() += child.leftovers;
            }
        }
        self.by_launch.clear();
        self.note("the app is gone");
        self.after(until_start, Event::Start);
    }

    /// One input through the reducer: step, commit, acts, and a look at everything.
    pub(crate) fn feed(&mut self, input: Input) {
        let Some(mut state) = self.state.take() else { return };
        self.steps += 1;
        let input = Rc::new(input);
        if !matches!(*input, Input::Load { .. }) {
            self.tell(Told::Input(Rc::clone(&input)));
        }
        let now = self.clock.now();
        let current = self.is_current(&input);
        let calls = self.calls(u64::MAX) + self.held_back.len();
        self.oracle.calls(calls, self.hung_calls());
        self.oracle.load(self.load.is_heavy(self.clock.at), self.clock.at);
        self.oracle.before(&input, &state, &self.clock, &mut self.report);
        let stepped = catch_unwind(AssertUnwindSafe(|| step(&mut state, (*input).clone(), now)));
        let Ok(mut step) = stepped else {
            self.oracle.fail("panic", "the reducer panicked");
            return;
        };
        self.state = Some(state);
        let tampered = tamper(self.bug, &mut step, &self.oracle.policy, &self.store);
        if self.bug == Some(Bug::CancelledLaunched) {
            self.launch_cancelled(&mut step);
        }
        // a crash where nothing happens is none
        let idle = step.writes.is_empty() && step.acts.is_empty();
        let death = if idle { None } else { self.death() };
        if self.bug == Some(Bug::ActBeforeSave) {
            let acts = std::mem::take(&mut step.acts);
            self.perform(acts, None);
        }
        if death == Some(Death::BeforeCommit) {
            self.report.hit("app crash before the commit");
            self.die_sometime();
            return;
        }
        let mut refused = Vec::new();
        while let Err(session) = self.store.commit(&step.writes) {
            self.report.hit("commit refused");
            self.oracle.refused(session);
            self.store.take_out(&mut step, session);
            refused.push(session);
        }
        let launches = step.acts.iter().filter(|act| matches!(act, Act::Spawn { .. })).count();
        self.oracle.launches(launches);
        let facts = (&self.store, &self.clock);
        self.oracle.committed((&input, current), &step.writes, facts, &mut self.report);
        if self.bug == Some(Bug::WakeKept) {
            self.kept_wakes.extend(fired_wakes(&step.writes));
        }
        if self.bug == Some(Bug::NoReset) {
            self.unstored.extend(unstored_resets(&step.writes));
        }
        refused.extend(tampered);
        self.finish(step, death, refused.is_empty());
        for session in refused {
            let row = self.store.rows.get(&session).cloned().map(Box::new);
            self.feed(Input::CommitRefused { row, session });
        }
    }

    fn finish(&mut self, step: Step, death: Option<Death>, look: bool) {
        if death == Some(Death::BeforeActs) {
            self.report.hit("app crash before the acts");
            self.die_sometime();
            return;
        }
        let upto = (death == Some(Death::BetweenActs))
            .then(|| self.dice.below(step.acts.len() as u64) as usize);
        if let Some(undone) = upto.and_then(|upto| step.acts.get(upto)) {
            self.report.hit(died_before(undone));
        }
        self.perform(step.acts, upto);
        if upto.is_some() {
            self.report.hit("app crash between acts");
            self.die_sometime();
            return;
        }
        if let Some(state) = self.state.as_ref().filter(|_| look) {
            self.oracle.after(state, &self.store, &self.clock, &mut self.report);
        }
    }

    fn death(&mut self) -> Option<Death> {
        let dies = self.dice.below(100_000) < self.faults.crashes;
        dies.then(|| {
            self.dice.weighted(&[
                (1, Death::BeforeCommit),
                (2, Death::BeforeActs),
                (2, Death::BetweenActs),
            ])
        })
    }

    fn die_sometime(&mut self) {
        let until = self.dice.weighted(&[(5, 2 * SECOND), (3, 40 * SECOND), (1, 20 * MINUTE)]);
        self.die(until);
    }

    fn perform(&mut self, acts: Vec<Act>, upto: Option<usize>) {
        for mut act in acts.into_iter().take(upto.unwrap_or(usize::MAX)) {
            miswritten(self.bug, &mut act);
            let Some(act) = self.in_order(act) else { continue };
            self.oracle.act(&act, &self.store, &self.clock, &mut self.report);
            self.act(act);
            if self.state.is_none() {
                return;
            }
        }
    }
}

impl World {
    /// A planted bug: who lines up last is launched first, and the others wait until nobody new comes.
    fn in_order(&mut self, act: Act) -> Option<Act> {
        if self.bug != Some(Bug::LastComeFirst) {
            return Some(act);
        }
        if let Act::Stop { session, launch } = &act {
            let stopped = (*session, *launch);
            self.held_back.retain(|(_, held)| {
                !matches!(held, Act::Spawn { session, launch, .. } if (*session, *launch) == stopped)
            });
        }
        if !matches!(act, Act::Spawn { .. }) {
            return Some(act);
        }
        if self.held_back.is_empty() {
            self.after(SECOND, Event::LetGo);
        }
        self.held_back.push((self.clock.at, act));
        None
    }

    /// The last one that was held back is launched.
    pub(crate) fn let_go(&mut self) {
        // none so long that its call would count as hung
        let late = |(since, _): &(u64, Act)| self.clock.at > since + 25 * SECOND;
        let first = self.held_back.first().is_some_and(late);
        let at = if first { 0 } else { self.held_back.len().saturating_sub(1) };
        if self.state.is_none() || self.held_back.is_empty() {
            return;
        }
        let (since, act) = self.held_back.remove(at);
        if !self.held_back.is_empty() {
            self.after(SECOND, Event::LetGo);
        }
        self.oracle.asked_before();
        self.oracle.act(&act, &self.store, &self.clock, &mut self.report);
        self.act(act);
        if let Some(child) = self.children.get_mut(&self.children_made) {
            child.began_at = since;
        }
    }

    /// A planted bug: whom the person takes back is launched once more.
    fn launch_cancelled(&mut self, step: &mut Step) {
        for act in &step.acts {
            if let Act::Spawn { session, plan, .. } = act {
                self.plans.insert(*session, plan.clone());
            }
        }
        for session in taken_back(&step.writes) {
            if self.oracle.is_waiting(session)
                && let Some(plan) = self.plans.get(&session)
            {
                let launch = LaunchId(u64::MAX / 2);
                step.acts.push(Act::Spawn { session, launch, plan: plan.clone() });
            }
        }
    }
}

/// What the app died before, for the report.
fn died_before(act: &Act) -> &'static str {
    match act {
        Act::Spawn { .. } => "app crash before a spawn",
        Act::Write { .. } | Act::Control { .. } => "app crash before a line to a child",
        Act::Stop { .. } => "app crash before a stop",
        Act::Ask { .. } => "app crash before a question",
        Act::Emit(_)
        | Act::EmitGone(_)
        | Act::EmitBlock { .. }
        | Act::EmitDelta { .. }
        | Act::EmitSettings(_)
        | Act::Notify { .. }
        | Act::Badge(_)
        | Act::ForgetSecret(_)
        | Act::Reply { .. }
        | Act::Exit
        | Act::Log { .. } => "app crash before the window is told",
    }
}
