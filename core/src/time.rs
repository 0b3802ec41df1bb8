//! Time as values. No rule reads a clock: the shell reads one once per turn of its loop.

use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Wall time in milliseconds since 1970-01-01 UTC. It may jump; it is what survives a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Wall(pub i64);

/// Monotonic time in milliseconds that also counts while the machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Mono(pub u64);

/// A day of the machine's local calendar, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Day(pub i32);

/// One reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Now {
    /// Wall time.
    pub wall: Wall,
    /// Monotonic time.
    pub mono: Mono,
    /// The local calendar day.
    pub day: Day,
}

/// A length of time in milliseconds.
pub type Millis = u64;

impl Wall {
    /// Milliseconds from `earlier` to `self`; negative if the clock was stepped back.
    pub fn since(self, earlier: Wall) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This time plus `millis`.
    pub fn plus(self, millis: Millis) -> Wall {
        Wall(self.0.saturating_add_unsigned(millis))
    }
}

impl Mono {
    /// Milliseconds from `earlier` to `self`, zero if `earlier` is later.
    pub fn since(self, earlier: Mono) -> Millis {
        self.0.saturating_sub(earlier.0)
    }

    /// This time plus `millis`.
    pub fn plus(self, millis: Millis) -> Mono {
        Mono(self.0.saturating_add(millis))
    }
}

impl Day {
    /// The day as `YYYY-MM-DD` (the form stored beside the daily counter).
    pub fn to_iso(self) -> String {
        // days to civil date, after the well-known era arithmetic of the proleptic calendar
        let z = i64::from(self.0) + 719_468;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = doy - (153 * mp + 2) / 5 + 1;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + i64::from(month <= 2);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// Reads `YYYY-MM-DD`; `None` for anything else.
    pub fn from_iso(text: &str) -> Option<Day> {
        let mut parts = text.split('-');
        let year: i64 = parts.next()?.parse().ok()?;
        let month: i64 = parts.next()?.parse().ok()?;
        let day: i64 = parts.next()?.parse().ok()?;
        if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let y = if month <= 2 { year - 1 } else { year };
        let era = y.div_euclid(400);
        let yoe = y.rem_euclid(400);
        let mp = if month > 2 { month - 3 } else { month + 9 };
        let doy = (153 * mp + 2) / 5 + day - 1;
        let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
        let found = Day(i32::try_from(era * 146_097 + doe - 719_468).ok()?);
        (found.to_iso() == text).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_their_text_agree() {
        for (day, text) in
            [(0, "1970-01-01"), (-1, "1969-12-31"), (20_786, "2026-11-29"), (19_782, "2024-02-29")]
        {
            assert_eq!(Day(day).to_iso(), text);
            assert_eq!(Day::from_iso(text), Some(Day(day)));
        }
        assert!(
            (-719_000..800_000)
                .step_by(37)
                .all(|d| Day::from_iso(&Day(d).to_iso()) == Some(Day(d)))
        );
        for bad in ["", "2026-02-30", "2026-13-01", "26-1-1", "2026-11-29-1", "today"] {
            assert_eq!(Day::from_iso(bad), None, "{bad}");
        }
    }
}
