//! The virtual clock: true time, a wall clock that may be stepped, a local calendar with summer time.
//! It never looks at the machine's own clock.

use omniscio_core::time::{Day, Mono, Now, Wall};

pub(crate) const SECOND: u64 = 1_000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

/// The last Sundays of March and October 2026, 01:00 UTC: the local offset changes between 1 h and 2 h.
const SUMMER_BEGINS: i64 = 1_774_746_000_000;
const SUMMER_ENDS: i64 = 1_792_890_000_000;
const HOUR_I: i64 = HOUR as i64;

/// What a world takes for time.
pub(crate) struct Clock {
    /// Milliseconds since the world began; the only time that is true.
    pub(crate) at: u64,
    wall_zero: i64,
    mono_zero: u64,
}

impl Clock {
    /// A clock that begins some hours before summer time begins or ends.
    pub(crate) fn new(autumn: bool, hours_before: u64) -> Clock {
        let change = if autumn { SUMMER_ENDS } else { SUMMER_BEGINS };
        let wall_zero = change - (hours_before * HOUR) as i64;
        Clock { at: 0, wall_zero, mono_zero: 5 * MINUTE }
    }

    pub(crate) fn now(&self) -> Now {
        let wall = self.wall_zero + self.at as i64;
        let local = wall + if self.summer() { 2 * HOUR_I } else { HOUR_I };
        let day = Day(local.div_euclid(DAY as i64) as i32);
        Now { wall: Wall(wall), mono: Mono(self.at + self.mono_zero), day }
    }

    /// Summer time, by the wall clock.
    pub(crate) fn summer(&self) -> bool {
        (SUMMER_BEGINS..SUMMER_ENDS).contains(&(self.wall_zero + self.at as i64))
    }

    /// The true time of a monotonic one.
    pub(crate) fn true_at(&self, mono: Mono) -> u64 {
        mono.0.saturating_sub(self.mono_zero)
    }

    /// Somebody sets the wall clock.
    pub(crate) fn step(&mut self, by: i64) {
        self.wall_zero += by;
    }

    /// The machine was started again: the monotonic clock begins anew.
    pub(crate) fn reboot(&mut self, uptime: u64) {
        self.mono_zero = (uptime + 10 * DAY).saturating_sub(self.at);
    }
}
