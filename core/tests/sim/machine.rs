//! What the machine and other hands do to a world: folders and transcripts that go, clocks that are set,
//! sleep, deaths of the app and of children. And, once a minute, a look at everything.

use crate::bugs::Bug;
use crate::clock::{MINUTE, SECOND};
use crate::faults::{self, Blow};
use crate::scripts::Phase;
use crate::world::{Event, World};
use omniscio_core::id::SessionId;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::{Command, Input};

impl World {
    pub(crate) fn machine(&mut self) {
        if self.faults.machine_ms == 0 {
            return;
        }
        let mean = self.faults.machine_ms;
        let next = self.dice.between(mean / 10, mean * 2);
        self.after(next, Event::Machine);
        let blow = faults::blow(&mut self.dice);
        self.note(format!("{blow:?}"));
        match blow {
            Blow::FolderVanishes => self.folder_vanishes(),
            Blow::HolderAppears => self.holder_appears(),
            Blow::Outage(long) => self.outage(long),
            Blow::Agent => self.agent_wants(),
            Blow::TranscriptDeleted => {
                let written = |id| self.children.values().any(|child| child.file() == id);
                let ids: Vec<_> = self.files.keys().copied().filter(|id| !written(*id)).collect();
                if let Some(id) = self.dice.pick(&ids) {
                    self.files.remove(&id);
                }
            }
            Blow::ClockStep(by) => {
                let name = if by > 0 { "clock step forward" } else { "clock step back" };
                self.report.hit(name);
                self.step_clock(by);
            }
            Blow::Slew(by) => self.step_clock(by),
            Blow::Sleep(millis) => self.sleep(millis),
            Blow::Kill => self.kill_app(),
            Blow::MachineRestart => {
                self.report.hit("machine restart");
                self.kill_app();
                self.debris.clear();
                self.clock.reboot(20 * SECOND);
            }
            Blow::Panic => self.rebuild(),
            Blow::Quit => self.say(Command::Quit),
            Blow::TurnByItself => self.turn_by_itself(),
            Blow::Hand => self.outside_hand(),
            Blow::ChildKilled => self.child_killed(),
            Blow::Hiccup => self.hiccup(),
            Blow::Crowding => self.crowding(),
            Blow::Slowness => self.slowness(),
            Blow::Vanish => self.vanish(),
        }
    }

    pub(crate) fn folder_vanishes(&mut self) {
        let folders = ["/home/a/project", "/home/a/other"];
        let folder = self.dice.pick(&folders).unwrap_or_default().to_string();
        let back = self.dice.weighted(&[(3, 90 * SECOND), (3, 12 * MINUTE), (1, 90 * MINUTE)]);
        self.oracle.befalls("a folder vanishes", &mut self.report);
        if self.gone_folders.insert(folder.clone()) {
            self.oracle.folder(&folder, Some(self.clock.at));
        }
        self.after(back, Event::FolderBack(folder));
    }

    /// The API is down; often nobody looks meanwhile, after a last message to some.
    fn outage(&mut self, long: u64) {
        self.report.hit("outage");
        self.faults.outage_until = self.clock.at + long;
        if !self.dice.chance(850) {
            return;
        }
        self.report.hit("the person is away");
        self.faults.away_until = self.clock.at + long;
        let rows = self.store.listed().filter(|row| !row.is_gone());
        let ids: Vec<SessionId> = rows.map(|row| row.id).collect();
        for session in ids {
            if self.dice.chance(600) {
                let text = format!("message {}", self.dice.raw() % 100_000);
                self.say(Command::Send { session, text, now: false });
            }
        }
    }

    /// The API is down for longer than any ladder, and nobody comes: what is cut off climbs to its end.
    pub(crate) fn siege(&mut self, long: u64) {
        self.note("a siege begins");
        self.report.hit("siege");
        // no further blow but the app's own deaths, and those are rare
        (self.faults.siege, self.faults.machine_ms, self.faults.starts) = (true, 0, 10);
        self.faults.crashes = self.faults.crashes.min(100);
        for folder in std::mem::take(&mut self.gone_folders) {
            self.oracle.folder(&folder, None);
        }
        self.holders.clear();
        self.load.settle(false);
        self.outage(long);
        self.faults.away_until = self.clock.at + long;
    }

    pub(crate) fn step_clock(&mut self, by: i64) {
        self.oracle.befalls("the clock is set", &mut self.report);
        let before = self.clock.now();
        self.clock.step(by);
        let after = self.clock.now();
        self.oracle.stepped(before, after, self.state.as_ref(), self.clock.at);
    }

    pub(crate) fn sleep(&mut self, millis: u64) {
        self.report.hit("machine slept");
        self.oracle.befalls("the machine sleeps", &mut self.report);
        self.sleep_through(millis);
        let told = self.bug != Some(Bug::SleepCounts);
        self.feed(if told { Input::Slept { millis } } else { Input::Wake });
    }

    pub(crate) fn kill_app(&mut self) {
        if self.state.is_some() {
            let until = self.dice.weighted(&[(5, 3 * SECOND), (3, 50 * SECOND), (1, 40 * MINUTE)]);
            self.die(until);
            // an outside hand may stamp a finished row while no app runs (the triage script)
            if self.dice.chance(800) || self.bug == Some(Bug::DeliveredStamped) {
                self.stamp_finished();
            }
        }
    }

    /// A rule panicked: the state is built anew, the children live on and are handed over.
    fn rebuild(&mut self) {
        if self.state.is_some() {
            self.report.hit("state rebuilt after a panic");
            self.boot(false);
        }
    }

    pub(crate) fn turn_by_itself(&mut self) {
        let trouble = self.faults.of_turn(&mut self.dice, self.clock.at);
        let keys: Vec<u64> = self.children.keys().copied().collect();
        let Some(key) = self.dice.pick(&keys) else { return };
        if let Some(child) = self.children.get_mut(&key)
            && child.wake_up(&mut self.dice, trouble)
        {
            self.schedule(key);
        }
    }

    /// A second writer changes a row under the app's feet.
    fn outside_hand(&mut self) {
        if !self.dice.chance(self.faults.hand) {
            return;
        }
        let rows: Vec<SessionId> = self.store.listed().map(|row| row.id).collect();
        let Some(id) = self.dice.pick(&rows) else { return };
        let Some(row) = self.store.rows.get_mut(&id) else { return };
        if (row.status, row.pending) == (Status::NeedsYou, None) {
            row.status = Status::Ended;
            row.intent_running = false;
            let row = row.clone();
            self.oracle.overwritten(&row, self.clock.at);
        }
    }

    /// The triage script stamps what looks unanswered; a hand may stamp what was answered, too.
    fn stamp_finished(&mut self) {
        let planted = self.bug == Some(Bug::DeliveredStamped);
        let delivered = planted || self.dice.chance(500);
        let bare = |row: &SessionRow| {
            matches!(row.status, Status::NeedsYou | Status::Error) && row.pending.is_none()
        };
        let rows = self.store.rows.values_mut();
        let finished =
            rows.filter(|row| bare(row) && !row.is_gone()).find(|row| row.delivered == delivered);
        let Some(row) = finished else { return };
        row.pending = Some(PendingAction::ResponseAborted);
        if planted {
            row.delivered = false;
            row.replay.answered = false;
        }
        let row = row.clone();
        self.oracle.overwritten(&row, self.clock.at);
    }

    pub(crate) fn child_killed(&mut self) {
        let alive = self.children.iter().filter(|(_, child)| child.alive && !child.stopping);
        let keys: Vec<u64> = alive.map(|(key, _)| *key).collect();
        let Some(key) = self.dice.pick(&keys) else { return };
        let Some(child) = self.children.get_mut(&key) else { return };
        child.alive = false;
        child.eof = true;
        // what it had put out before is read first
        let rest = child.pipe_at.saturating_sub(self.clock.at);
        self.after(rest + 30, Event::PipeEnd(key));
        self.after(rest + 60, Event::Gone { child: key, code: 137 });
    }

    /// Whether the input is of a child that nobody stops.
    pub(crate) fn is_current(&self, input: &Input) -> bool {
        let Input::Stream { session, launch, .. } = input else { return true };
        let key = self.by_launch.get(&(*session, *launch));
        key.and_then(|key| self.children.get(key)).is_some_and(|child| !child.stopping)
    }

    /// What INV-09 must know of a child that is about to be stopped.
    pub(crate) fn watch_stop(&mut self, key: u64) {
        let at = self.clock.at;
        let Some(child) = self.children.get(&key) else { return };
        let silent = at.saturating_sub(child.heard_at.max(self.slept_at));
        let age = at.saturating_sub(child.began_at.max(self.slept_at));
        let starting = child.phase == Phase::Start && age >= 30 * MINUTE;
        let heavy = self.load.is_heavy(at);
        let limit = phase_limit(child.phase, heavy);
        let in_time = limit.is_none_or(|limit| silent < limit) && !starting;
        let hears = !child.eof && !child.deaf && !child.stopping;
        let healthy = child.alive && child.busy && hears && in_time;
        let session = child.session;
        let open = self.store.rows.get(&session).is_some_and(|row| row.turn.is_some());
        self.oracle.inv_09(session, healthy, open, at);
    }

    /// Once a virtual minute: every row, and every turn that is silent for too long (INV-53).
    pub(crate) fn minute(&mut self) {
        self.after(MINUTE, Event::Minute);
        let Some(state) = &self.state else { return };
        self.oracle.every_row(state, &self.store, &self.clock, &mut self.report);
        let at = self.clock.at;
        // a machine that was saturated a minute ago has had no step since then to notice the silence
        let heavy = self.load.is_heavy(at) || self.oracle.busy_lately(at);
        let open = |id: SessionId| self.store.rows.get(&id).is_some_and(|row| row.turn.is_some());
        let hung: Vec<SessionId> = self
            .children
            .values()
            .filter(|child| {
                let silent = at.saturating_sub(child.heard_at.max(self.slept_at));
                let limit = phase_limit(child.phase, heavy).unwrap_or(u64::MAX - MINUTE);
                child.busy && !child.stopping && open(child.session) && silent > limit + MINUTE
            })
            .map(|child| child.session)
            .collect();
        for session in hung {
            self.oracle.inv_53(session);
        }
        self.unnoticed(at);
    }

    /// INV-53, LV-01: a child that vanished is noticed by two good looks in a row.
    fn unnoticed(&mut self, at: u64) {
        let unnoticed = self.children.values().find(|child| {
            let looks = 2 + 2 * child.bad_looks;
            let since = child.vanished.map(|since| since.max(self.slept_at));
            !child.stopping && since.is_some_and(|since| at > since + looks * MINUTE + 10 * SECOND)
        });
        if let Some(child) = unnoticed {
            self.oracle.inv_53(child.session);
        }
    }

    /// A look at the children came to nothing.
    pub(crate) fn bad_look(&mut self) {
        for child in self.children.values_mut().filter(|child| child.vanished.is_some()) {
            child.bad_looks += 1;
        }
    }
}

/// How long a turn may be silent in this phase, by the contract (A-05, SW-02).
fn phase_limit(phase: Phase, heavy: bool) -> Option<u64> {
    match phase {
        Phase::Start if heavy => Some(6 * MINUTE),
        Phase::Start => Some(2 * MINUTE),
        Phase::Open => Some(3 * MINUTE),
        Phase::Between => Some(10 * MINUTE),
        Phase::Retry(delay) => Some(delay + 30 * SECOND),
        Phase::Free => None,
    }
}
