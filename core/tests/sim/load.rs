//! How busy the machine of a world is: calm, in swings, or pinned for hours; what its sampler says of
//! that, and a meter of the tests' own. Knows nothing of sessions.

use crate::clock::{HOUR, MINUTE, SECOND};
use crate::dice::Dice;
use crate::world::{Event, World};
use omniscio_core::supervisor::Input;
use std::collections::VecDeque;

/// The machine counts as saturated from 85.0 % of all cores, as the mean of one minute (OD-25).
const HEAVY_PERMILLE: u64 = 850;
const WINDOW: u64 = MINUTE;
const SAMPLES_MIN: usize = 3;

/// How the load of a world goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Calm,
    Swings,
    Pinned,
}

/// The machine's load, and what the app that runs has been told of it.
pub(crate) struct Load {
    weather: Weather,
    busy: bool,
    until: u64,
    /// When the spell began.
    since: u64,
    /// The sampler fails until then.
    blind_until: u64,
    /// When, thousandths of all cores together, number of cores.
    samples: VecDeque<(u64, u64, u64)>,
}

impl Load {
    pub(crate) fn random(dice: &mut Dice) -> Load {
        let weather =
            dice.weighted(&[(3, Weather::Calm), (3, Weather::Swings), (2, Weather::Pinned)]);
        Load::of(weather)
    }

    fn of(weather: Weather) -> Load {
        let samples = VecDeque::new();
        Load { weather, busy: false, until: 0, since: 0, blind_until: 0, samples }
    }

    /// From here on the machine is calm, or saturated for good.
    pub(crate) fn settle(&mut self, pinned: bool) {
        self.weather = if pinned { Weather::Pinned } else { Weather::Calm };
        (self.busy, self.until, self.blind_until) = (pinned, u64::MAX, 0);
    }

    /// Another spell begins, if it is time.
    fn turn(&mut self, dice: &mut Dice, at: u64) {
        if at < self.until {
            return;
        }
        self.since = at;
        self.busy = !self.busy && self.weather != Weather::Calm;
        let long = match (self.weather, self.busy) {
            (Weather::Calm, _) => u64::MAX / 2,
            (Weather::Swings, true) => dice.between(30 * SECOND, 25 * MINUTE),
            (Weather::Swings, false) => dice.between(MINUTE, HOUR),
            (Weather::Pinned, true) => dice.between(HOUR, 5 * HOUR),
            (Weather::Pinned, false) => dice.between(30 * MINUTE, 6 * HOUR),
        };
        self.until = at + long;
        if dice.chance(30) {
            self.blind_until = at + 2 * MINUTE;
        }
    }

    /// What the sampler says of each core; nothing when it fails.
    fn cores(&self, dice: &mut Dice, at: u64) -> Vec<u16> {
        if at < self.blind_until {
            return Vec::new();
        }
        let level = if self.busy {
            dice.weighted(&[(6, 990), (1, 851), (1, 850)])
        } else {
            dice.weighted(&[(6, 150), (1, 700), (1, 849)])
        };
        // one core alone says nothing of the machine
        let skew = dice.weighted(&[(3, 0), (1, 10)]);
        vec![level + skew, level - skew, level, level]
    }

    fn take(&mut self, at: u64, cores: &[u16]) {
        if cores.is_empty() {
            self.samples.clear();
            return;
        }
        let sum = cores.iter().map(|core| u64::from(*core)).sum();
        self.samples.push_back((at, sum, cores.len() as u64));
        self.samples.retain(|(then, ..)| at - then < WINDOW);
    }

    /// The app that was told is gone.
    pub(crate) fn forget(&mut self) {
        self.samples.clear();
    }

    /// Whether the app must count the machine as saturated now (LD-02, a second time).
    pub(crate) fn is_heavy(&self, at: u64) -> bool {
        let young = || self.samples.iter().filter(|(then, ..)| at - then < WINDOW);
        let sum: u64 = young().map(|(_, sum, _)| sum).sum();
        let cores: u64 = young().map(|(_, _, cores)| cores).sum();
        young().count() >= SAMPLES_MIN && sum >= HEAVY_PERMILLE * cores
    }

    /// The next sample: every five seconds, less often while there is nothing to tell.
    fn next(&self, at: u64) -> u64 {
        let idle = !self.busy && at > self.since + 2 * WINDOW;
        if idle { 15 * SECOND } else { 5 * SECOND }
    }
}

impl World {
    /// The sampler looks at all cores.
    pub(crate) fn sample(&mut self) {
        let at = self.clock.at;
        self.load.turn(&mut self.dice, at);
        let next = self.load.next(at);
        self.after(next, Event::Sample);
        if self.state.is_none() {
            return;
        }
        let was = self.load.is_heavy(at);
        let cores = self.load.cores(&mut self.dice, at);
        self.load.take(at, &cores);
        let is = self.load.is_heavy(at);
        if is != was {
            let name = if is { "load: saturated" } else { "load: eased" };
            self.report.hit(name);
            self.note(name);
        }
        self.feed(Input::Load { cores });
    }
}
