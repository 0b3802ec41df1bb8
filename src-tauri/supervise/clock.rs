//! The one clock of the app: wall time, time that also counts while the machine sleeps, local day.
//!
//! Nothing else reads a clock. It never decides what a time means: the rules get a [`Sample`] as an
//! argument. [`Deadline`] bounds the waits of IO workers and is not known to the rules.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime};

/// One reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Wall time, milliseconds since 1970-01-01 UTC. May jump.
    pub wall_ms: i64,
    /// Milliseconds since some fixed moment; never goes back and counts while the machine sleeps.
    pub mono_ms: u64,
    /// Day of the local calendar, counted from 1970-01-01.
    pub local_day: i32,
}

/// Reads the machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// What all clocks say now. The time zone is asked for each time, so a journey changes the day.
    pub fn now(&self) -> Sample {
        sample(wall_ms(), mono_ms(), &TimeZone::system())
    }

    /// [`Sample::mono_ms`] alone, which takes a tenth of the time.
    pub fn mono_ms(&self) -> u64 {
        mono_ms()
    }
}

/// Joins one wall time, one monotonic time and the local time zone into a [`Sample`].
pub fn sample(wall_ms: i64, mono_ms: u64, zone: &TimeZone) -> Sample {
    Sample { wall_ms, mono_ms, local_day: local_day(wall_ms, zone) }
}

/// Times outside of what a calendar can name fall on day 0.
fn local_day(wall_ms: i64, zone: &TimeZone) -> i32 {
    let epoch = Date::constant(1970, 1, 1);
    Timestamp::from_millisecond(wall_ms)
        .and_then(|at| epoch.until((Unit::Day, at.to_zoned(zone.clone()).date())))
        .map_or(0, |span| span.get_days())
}

fn wall_ms() -> i64 {
    let millis = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => millis(after),
        Err(before) => -millis(before.duration()),
    }
}

fn mono_ms() -> u64 {
    // Linux stops CLOCK_MONOTONIC during sleep; elsewhere it is the one that goes on
    #[cfg(target_os = "linux")]
    const COUNTS_SLEEP: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const COUNTS_SLEEP: ClockId = ClockId::Monotonic;
    let now = clock_gettime(COUNTS_SLEEP);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let millis = u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0);
    seconds * 1_000 + millis
}

/// A moment after which an IO worker stops waiting. Sleep of the machine does not count.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    started: Instant,
    limit: Duration,
}

impl Deadline {
    /// The moment `limit` from now.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { started: Instant::now(), limit }
    }

    /// What is left; zero once it has passed.
    pub fn left(&self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }

    /// Whether nothing is left.
    pub fn passed(&self) -> bool {
        self.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::Offset;

    #[test]
    fn the_day_is_the_local_one() {
        let utc = TimeZone::UTC;
        let east = TimeZone::fixed(Offset::constant(9));
        let west = TimeZone::fixed(Offset::constant(-8));
        let midnight = 20_000 * 86_400_000;
        for (wall, zone, day) in [
            (0, &utc, 0),
            (-1, &utc, -1),
            (midnight - 1, &utc, 19_999),
            (midnight, &utc, 20_000),
            (midnight - 9 * 3_600_000, &east, 20_000),
            (midnight - 9 * 3_600_000 - 1, &east, 19_999),
            (midnight + 8 * 3_600_000 - 1, &west, 19_999),
            (midnight + 8 * 3_600_000, &west, 20_000),
            (i64::MAX, &utc, 0),
        ] {
            assert_eq!(sample(wall, 7, zone), Sample { wall_ms: wall, mono_ms: 7, local_day: day });
        }
    }

    #[test]
    fn readings_never_go_back() {
        let (first, second) = (Clock.now(), Clock.now());
        assert!(second.mono_ms >= first.mono_ms);
        assert!(first.wall_ms > 1_700_000_000_000, "the wall clock is in milliseconds");
        assert!((first.local_day - i32::try_from(first.wall_ms / 86_400_000).unwrap()).abs() <= 1);
    }

    #[test]
    fn a_deadline_runs_out() {
        assert!(Deadline::after(Duration::ZERO).passed());
        assert!(!Deadline::after(Duration::from_secs(3600)).passed());
    }
}
