//! How launches go on the machine of a world: the system's error numbers, spawn calls that take long,
//! what the machine has left. And each spawn call, from its beginning to the child or the error.

use crate::bugs::Bug;
use crate::cli::{Child, Start};
use crate::clock::{HOUR, MINUTE, SECOND};
use crate::dice::Dice;
use crate::world::{Event, World};
use omniscio_core::id::SessionId;
use omniscio_core::launch::LaunchPlan;
use omniscio_core::launch::classify::Os;
use omniscio_core::session::ChildMark;
use omniscio_core::supervisor::{Headroom, Input, LaunchId};

/// EAGAIN, ENFILE, EMFILE, EBUSY, and what Windows says instead (OD-48, a second time).
fn transient(os: Os) -> &'static [i32] {
    match os {
        Os::Linux => &[11, 23, 24, 16],
        Os::MacOs => &[35, 23, 24, 16],
        Os::Windows => &[-4094, -4094, -4066, -4082, 1450, 1455, 32],
    }
}

/// ENOENT, EACCES, ENOEXEC, and what Windows says instead.
fn lasting(os: Os) -> &'static [i32] {
    match os {
        Os::Linux | Os::MacOs => &[2, 13, 8],
        Os::Windows => &[2, 5, 193],
    }
}

/// Launches fail for a while.
#[derive(Clone, Copy, Debug)]
struct Hiccup {
    errno: i32,
    /// Of one session only, or of all.
    whom: Option<SessionId>,
    until: u64,
    /// So many of a thousand launches fail.
    share: u64,
}

/// What the machine says that it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Unknown,
    Ample,
    NoDescriptors,
    NoProcesses,
    NoMemory,
}

/// How launches go now.
pub(crate) struct Launches {
    pub(crate) os: Os,
    hiccup: Option<Hiccup>,
    slow_until: u64,
    room: Room,
    room_until: u64,
}

impl Launches {
    pub(crate) fn random(dice: &mut Dice) -> Launches {
        let os = dice.weighted(&[(7, Os::Linux), (1, Os::MacOs), (2, Os::Windows)]);
        Launches { os, hiccup: None, slow_until: 0, room: Room::Unknown, room_until: 0 }
    }

    /// From here on every launch succeeds.
    pub(crate) fn settle(&mut self) {
        (self.hiccup, self.slow_until, self.room_until) = (None, 0, 0);
    }

    /// All launches fail with one of the passing numbers until somebody releases them.
    pub(crate) fn fail_all(&mut self, dice: &mut Dice, until: u64) {
        let errno = dice.pick(transient(self.os)).unwrap_or_default();
        self.hiccup = Some(Hiccup { errno, whom: None, until, share: 1_000 });
    }

    /// Spawn calls take long until then.
    pub(crate) fn slow(&mut self, until: u64) {
        self.slow_until = until;
    }

    /// The machine is short of something until then.
    pub(crate) fn crowd(&mut self, dice: &mut Dice, until: u64) {
        let rooms = [Room::NoDescriptors, Room::NoProcesses, Room::NoMemory];
        (self.room, self.room_until) = (dice.pick(&rooms).unwrap_or(Room::NoMemory), until);
    }

    fn crowded(&self, at: u64) -> bool {
        at < self.room_until
    }

    /// What somebody who looks finds.
    pub(crate) fn headroom(&self, dice: &mut Dice, at: u64) -> Headroom {
        let room = match self.room {
            room if self.crowded(at) => room,
            Room::Unknown => Room::Unknown,
            Room::Ample | Room::NoDescriptors | Room::NoProcesses | Room::NoMemory => Room::Ample,
        };
        let ample = Headroom {
            descriptors: Some(dice.between(32, 1_000)),
            processes: Some(dice.between(64, 30_000)).filter(|_| dice.chance(700)),
            memory_mib: Some(dice.between(300, 60_000)),
        };
        match room {
            Room::Unknown => Headroom::default(),
            Room::Ample => ample,
            Room::NoDescriptors => Headroom { descriptors: Some(dice.below(32)), ..ample },
            Room::NoProcesses => Headroom { processes: Some(dice.below(64)), ..ample },
            Room::NoMemory => Headroom { memory_mib: Some(dice.below(300)), ..ample },
        }
    }

    /// The error number of the next launch of this session, if it fails. `stray`: launches of a thousand
    /// that fail for themselves.
    fn error(&self, dice: &mut Dice, session: SessionId, at: u64, stray: u64) -> Option<i32> {
        let hiccup = self.hiccup.filter(|hiccup| at < hiccup.until);
        let hit = hiccup.filter(|hiccup| hiccup.whom.is_none_or(|whom| whom == session));
        if let Some(hiccup) = hit.filter(|hiccup| dice.chance(hiccup.share)) {
            return Some(hiccup.errno);
        }
        // whoever launches on a machine that is short of something may be told so by the system
        let fails = dice.chance(if self.crowded(at) { 400 } else { stray });
        let lasts = !self.crowded(at) && dice.chance(300);
        let numbers = if lasts { lasting(self.os) } else { transient(self.os) };
        fails.then(|| dice.pick(numbers)).flatten()
    }

    /// How long a spawn call takes.
    fn takes(&self, dice: &mut Dice, at: u64) -> u64 {
        if at < self.slow_until {
            dice.weighted(&[(4, SECOND), (4, 6 * SECOND), (2, 25 * SECOND), (1, 40 * SECOND)])
        } else {
            dice.between(5, 250)
        }
    }
}

/// Whether an error number passes by itself.
fn passes(os: Os, errno: i32) -> bool {
    transient(os).contains(&errno)
}

impl World {
    /// Launches fail from here on, of all or of one, for a moment or for long; often something needs one.
    pub(crate) fn hiccup(&mut self) {
        self.report.hit("launches fail for a while");
        let rows: Vec<SessionId> = self.store.listed().map(|row| row.id).collect();
        let one = self.dice.pick(&rows).filter(|_| self.dice.chance(300));
        let lasts = one.is_none() && self.dice.chance(150);
        let os = self.launches.os;
        let numbers = if lasts { lasting(os) } else { transient(os) };
        let errno = self.dice.pick(numbers).unwrap_or_default();
        let long = self.dice.between(300, 9_000);
        let long = self.dice.weighted(&[
            (4, long),
            (4, 90 * SECOND),
            (4, 25 * MINUTE),
            (u64::from(one.is_some()) * 3, 8 * HOUR),
        ]);
        let until = self.clock.at + long;
        self.launches.hiccup = Some(Hiccup { errno, whom: one, until, share: 970 });
        self.somebody_launches();
    }

    /// The machine is short of something, for a while or for hours, or nobody can tell any more.
    pub(crate) fn crowding(&mut self) {
        self.report.hit("the machine is crowded");
        let long = self.dice.weighted(&[
            (4, 10 * SECOND),
            (4, 5 * MINUTE),
            (2, 50 * MINUTE),
            (1, 5 * HOUR),
        ]);
        let until = self.clock.at + long;
        self.launches.crowd(&mut self.dice, until);
        self.somebody_launches();
    }

    /// Spawn calls take long, or what the machine has left is told from here on.
    pub(crate) fn slowness(&mut self) {
        if self.dice.chance(200) {
            self.launches.room =
                self.dice.pick(&[Room::Unknown, Room::Ample]).unwrap_or(Room::Ample);
            return;
        }
        self.report.hit("spawn calls take long");
        self.launches.slow_until =
            self.clock.at + self.dice.weighted(&[(3, MINUTE), (1, 20 * MINUTE)]);
        self.somebody_launches();
    }

    /// Something that needs launches happens.
    fn somebody_launches(&mut self) {
        match self.dice.below(4) {
            0 => self.kill_app(),
            1 => self.child_killed(),
            2 => self.vanish(),
            _ => {}
        }
    }

    /// Why a question found no answer: now and then the machine is too busy for that, too.
    pub(crate) fn busy(&mut self) -> Option<i32> {
        let busy = self.dice.chance(400);
        self.dice.pick(transient(self.launches.os)).filter(|_| busy)
    }

    /// A child is gone and nobody tells.
    pub(crate) fn vanish(&mut self) {
        let alive = self.children.iter().filter(|(_, child)| child.alive && !child.stopping);
        let keys: Vec<u64> = alive.map(|(key, _)| *key).collect();
        let Some(key) = self.dice.pick(&keys) else { return };
        let at = self.clock.at;
        if let Some(child) = self.children.get_mut(&key) {
            (child.alive, child.vanished) = (false, Some(at));
            self.report.hit("a child vanishes");
        }
    }

    /// Of these children those that are gone. `bad`: the answer will be of no use.
    pub(crate) fn who_is_gone(&mut self, asked: &[(SessionId, ChildMark)]) -> Vec<SessionId> {
        let lives = |mark: &ChildMark| {
            let key = u64::from(mark.pid).checked_sub(PID_BASE);
            let child = key.and_then(|key| self.children.get(&key));
            child.is_some_and(|child| child.alive)
        };
        let unseen = self.bug == Some(Bug::VanishedUnseen);
        let gone = asked.iter().filter(|(_, mark)| !lives(mark) && !unseen);
        gone.map(|(session, _)| *session).collect()
    }

    pub(crate) fn spawn(&mut self, session: SessionId, launch: LaunchId, plan: &LaunchPlan) {
        self.children_made += 1;
        let (key, at) = (self.children_made, self.clock.at);
        // a worker's first start is the one that leaves an orphan
        let unborn = self.store.rows.get(&session).is_some_and(|row| row.launch_request.is_some());
        let bad = self.faults.starts * if unborn { 5 } else { 1 };
        let start = if self.dice.chance(bad) {
            self.dice.weighted(&[(3, Start::Hang), (2, Start::DieEarly), (1, Start::Refuse)])
        } else {
            Start::Sound
        };
        let mut child = Child::new(session, launch, plan.conversation, start);
        (child.questions, child.began_at) = (self.questions, at);
        child.ignores_term = self.dice.chance(80);
        // the agent of a copy goes on as it did in the original
        child.marks |= self.store.rows.get(&session).is_some_and(|row| row.prints_markers);
        self.children.insert(key, child);
        self.by_launch.insert((session, launch), key);
        let calls = self.calls(CALL_HANGS);
        let starting = self.children.values().filter(|child| child.is_starting()).count();
        self.oracle.call_begins(session, (calls, starting), at);
        let after = self.launches.takes(&mut self.dice, at);
        let stray = self.faults.starts / 4;
        let gone = self.gone_folders.contains(&plan.folder);
        let errno = if gone {
            // no child has a folder that is not there
            lasting(self.launches.os).first().copied()
        } else {
            self.launches.error(&mut self.dice, session, at, stray)
        };
        match errno {
            Some(errno) => self.after(after, Event::Unborn { child: key, errno }),
            None => self.after(after, Event::Born(key)),
        }
    }

    /// Spawn calls that the state at hand has made and that are under way, for less than so long.
    pub(crate) fn calls(&self, longest: u64) -> usize {
        let mine = |child: &&Child| child.spawning && child.questions == self.questions;
        let young = |child: &&Child| self.clock.at - child.began_at < longest;
        self.children.values().filter(mine).filter(young).count()
    }

    /// Whose spawn call takes so long that the machine counts as too busy.
    pub(crate) fn hung_calls(&self) -> Vec<SessionId> {
        let hangs = |child: &&Child| {
            child.spawning && !child.stopping && self.clock.at - child.began_at >= CALL_HANGS
        };
        self.children.values().filter(hangs).map(|child| child.session).collect()
    }

    pub(crate) fn born(&mut self, key: u64) {
        let Some(child) = self.children.get_mut(&key) else { return };
        (child.alive, child.spawning) = (true, false);
        let (session, launch, cancelled) = (child.session, child.launch, child.cancelled);
        let others = self.others(key, session, false);
        self.oracle.inv_02(session, others);
        let mark = ChildMark { pid: (PID_BASE + key) as u32, start: self.clock.at };
        self.feed(Input::Spawned { session, launch, child: mark });
        if cancelled {
            self.after(40, Event::Kill(key));
        }
    }

    pub(crate) fn unborn(&mut self, key: u64, errno: i32) {
        let Some(child) = self.children.remove(&key) else { return };
        self.by_launch.remove(&(child.session, child.launch));
        let (session, launch) = (child.session, child.launch);
        let passing = passes(self.launches.os, errno);
        self.oracle.launch_fails(session, (!child.stopping).then_some(passing));
        let told = if self.bug == Some(Bug::LastingRetried) && !passing {
            transient(self.launches.os)[0]
        } else {
            errno
        };
        let words = "The CLI could not be started.".to_string();
        self.feed(Input::SpawnFailed { session, launch, errno: Some(told), words });
        if child.cancelled {
            self.feed(Input::Stopped { session, launch, leftovers: 0 });
        }
    }
}

/// A spawn call that takes so long holds nobody up any more: two handshakes of a calm machine.
const CALL_HANGS: u64 = 30 * SECOND;

/// The process ids of children begin here.
const PID_BASE: u64 = 1_000;
