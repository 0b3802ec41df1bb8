//! The app of a world: how it starts, takes one input after the other through the reducer, commits and
//! acts, and dies at any line of it. After every step the oracle looks.

use crate::bugs::{Bug, unstored_resets};
use crate::clock::{MINUTE, SECOND};
use crate::world::{Event, Told, World};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::AccountView;
use omniscio_core::settings::Policy;
use omniscio_core::supervisor::{Act, Boot, Input, State, Step, step};
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
        self.boot(true);
    }

    pub(crate) fn boot(&mut self, first: bool) {
        self.questions += 1;
        let limits = Bug::limits(self.bug);
        self.state = Some(State::new(limits));
        if first {
            for (id, (attempts, day)) in std::mem::take(&mut self.unstored) {
                if let Some(row) = self.store.rows.get_mut(&id) {
                    (row.retry_attempts, row.retry_day) = (attempts, day);
                }
            }
        }
        if self.bug == Some(Bug::DebounceInMemory) {
            self.store.rows.values_mut().for_each(|row| row.last_restart_at = None);
        }
        let live: Vec<_> = self.by_launch.keys().copied().filter(|_| !first).collect();
        let rows = self.store.listed().cloned().collect();
        let queues = self.store.listed().map(|row| (row.id, self.store.queue(row.id))).collect();
        let boot = Boot {
            seed: self.dice.raw(),
            first,
            rows,
            queues,
            block_counts: self.store.blocks.iter().map(|(id, count)| (*id, *count)).collect(),
            live,
            settings: self.store.settings.clone(),
            switches: self.switches,
            accounts: vec![AccountView {
                id: "default".into(),
                label: "Default".into(),
                api_key: self.dice.chance(300),
            }],
        };
        let policy = Policy { settings: boot.settings.clone(), switches: boot.switches };
        self.oracle.booted(&self.store, &self.clock, policy);
        self.feed(Input::Boot(Box::new(boot)));
    }

    /// The app is gone; its children go with their terminal.
    pub(crate) fn die(&mut self, until_start: u64) {
        self.state = None;
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
        self.tell(Told::Input(Rc::clone(&input)));
        let now = self.clock.now();
        let current = self.is_current(&input);
        self.oracle.before(&input, &state, &self.clock, &mut self.report);
        let stepped = catch_unwind(AssertUnwindSafe(|| step(&mut state, (*input).clone(), now)));
        let Ok(mut step) = stepped else {
            self.oracle.fail("panic", "the reducer panicked");
            return;
        };
        self.state = Some(state);
        let tampered = Bug::tamper(self.bug, &mut step, &self.oracle.policy);
        let death = self.death();
        if self.bug == Some(Bug::ActBeforeSave) {
            let acts = std::mem::take(&mut step.acts);
            self.perform(acts, None);
        }
        if death == Some(Death::BeforeCommit) {
            self.report.hit("app crash before the commit");
            self.die_sometime();
            return;
        }
        if let Err(session) = self.store.commit(&step.writes) {
            self.refused(session);
            return;
        }
        let facts = (&self.store, &self.clock);
        self.oracle.committed((&input, current), &step.writes, facts, &mut self.report);
        if self.bug == Some(Bug::NoReset) {
            self.unstored.extend(unstored_resets(&step.writes));
        }
        self.finish(step, death, tampered.is_empty());
        for session in tampered {
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

    /// A commit found another row than the reducer read: nothing of the step is done.
    fn refused(&mut self, session: SessionId) {
        self.report.hit("commit refused");
        let row = self.store.rows.get(&session).cloned().map(Box::new);
        self.feed(Input::CommitRefused { row, session });
    }

    fn die_sometime(&mut self) {
        let until = self.dice.weighted(&[(5, 2 * SECOND), (3, 40 * SECOND), (1, 20 * MINUTE)]);
        self.die(until);
    }

    fn perform(&mut self, acts: Vec<Act>, upto: Option<usize>) {
        for act in acts.into_iter().take(upto.unwrap_or(usize::MAX)) {
            self.oracle.act(&act, &self.store, &self.clock, &mut self.report);
            self.act(act);
            if self.state.is_none() {
                return;
            }
        }
    }
}
