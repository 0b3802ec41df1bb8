//! The window's clock: a signal that ticks once a minute and at the next instant at which a row
//! changes by time alone. It never drives animation.

use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::*;
use omniscio_core::limits::Limits;
use omniscio_core::time::{Day, Millis, Mono, Now, Wall};
use std::time::Duration;

/// News brings the clock forward only when its last reading is older than this: every reading makes
/// every row look at itself again.
const FRESH_MILLIS: i64 = 5_000;

/// Flips bring it forward no more often than this, however many rows count their seconds.
const FLIPS_APART: Millis = 250;

/// The clock, copied around freely.
#[derive(Clone, Copy)]
pub struct Clock {
    now: RwSignal<Now>,
    pulse: RwSignal<Wall>,
}

impl Clock {
    /// A clock that follows `next_flip`, the earliest instant at which any row changes by itself.
    pub fn start(next_flip: impl Fn(Now) -> Option<Wall> + Send + Sync + 'static) -> Clock {
        // rule: HD-16, NT-06
        let now = read();
        let clock = Clock { now: RwSignal::new(now), pulse: RwSignal::new(now.wall) };
        let apart = Limits::default().pulse_ms;
        let pending = StoredValue::new(None::<TimeoutHandle>);
        Effect::new(move |_| {
            let last = clock.now.get();
            let flip = next_flip(last).map(|flip| flip.max(last.wall.plus(FLIPS_APART)));
            let wait = next_look(clock.pulse.get(), flip, read().wall, apart);
            pending.update_value(|old| {
                if let Some(old) = old.take() {
                    old.clear();
                }
                let wait = Duration::from_millis(wait);
                *old = set_timeout_with_handle(move || clock.tick(), wait).ok();
            });
        });
        clock
    }

    /// The time the rules look at, tracked: at most a pulse old.
    pub fn get(self) -> Now {
        self.now.get()
    }

    /// The time of the last pulse, tracked: what ages are counted to.
    pub fn pulse(self) -> Wall {
        self.pulse.get()
    }

    /// Reads the clock: at a pulse, at a flip, and when the window is looked at again.
    pub fn tick(self) {
        let now = read();
        self.now.set(now);
        self.pulse.set(now.wall);
    }

    /// News is here: the rules must not look at it with an old time.
    pub fn news(self) {
        let now = read();
        if now.wall.since(self.now.get_untracked().wall).abs() >= FRESH_MILLIS {
            self.now.set(now);
        }
    }
}

/// How many milliseconds from now the clock is looked at again: a pulse after the last one, or at the
/// next flip if that is sooner; never later than a pulse from now, whatever the clock was set to.
fn next_look(pulse: Wall, flip: Option<Wall>, now: Wall, apart: Millis) -> Millis {
    let due = pulse.plus(apart);
    let due = flip.map_or(due, |flip| flip.min(due));
    due.since(now).max(1).unsigned_abs().min(apart)
}

/// One reading of the system's clock.
pub fn read() -> Now {
    let date = js_sys::Date::new_0();
    let wall = date.get_time();
    let local = wall - date.get_timezone_offset() * 60_000.0;
    Now {
        wall: Wall(wall as i64),
        mono: Mono::default(),
        day: Day((local / 86_400_000.0).floor() as i32),
    }
}

/// The age of something in a row: now, 4m, 3h, 2d, 5w.
pub fn age(since: Wall, now: Wall) -> String {
    let minutes = now.since(since).max(0) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes}m"),
        60..1_440 => format!("{}h", minutes / 60),
        1_440..10_080 => format!("{}d", minutes / 1_440),
        _ => format!("{}w", minutes / 10_080),
    }
}

/// The same in words, for speech.
pub fn spoken_age(since: Wall, now: Wall) -> String {
    let minutes = now.since(since).max(0) / 60_000;
    let count = |n: i64, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    match minutes {
        0 => "just now".into(),
        1..60 => count(minutes, "minute"),
        60..1_440 => count(minutes / 60, "hour"),
        1_440..10_080 => count(minutes / 1_440, "day"),
        _ => count(minutes / 10_080, "week"),
    }
}

/// A length of time: 48 s, 4 min 12 s, 1 h 12 min.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// A time of day in the system's own format.
pub fn clock_time(at: Wall) -> String {
    let date = js_sys::Date::new(&(at.0 as f64).into());
    let hours = js_sys::Object::new();
    let set = |key: &str, value: &str| js_sys::Reflect::set(&hours, &key.into(), &value.into());
    if set("hour", "2-digit").is_err() || set("minute", "2-digit").is_err() {
        return String::new();
    }
    String::from(date.to_locale_time_string_with_options("default", &hours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::attention::{Section, attention, next_flip};
    use omniscio_core::ipc::{LiveView, RowView};
    use omniscio_core::session::{PendingAction, SessionRow, Status};
    use omniscio_core::settings::Policy;

    fn apart() -> Millis {
        Limits::default().pulse_ms
    }

    /// A reply that was cut off at this time.
    fn cut_off(at: Wall) -> RowView {
        let mut row = SessionRow::new(Default::default(), "/p".into(), "T".into(), "a".into(), at);
        (row.status, row.pending) = (Status::Error, Some(PendingAction::ResponseAborted));
        RowView { row, live: LiveView::default() }
    }

    /// When the row is first drawn as interrupted by a window that hears nothing, its clock last read at
    /// `read`.
    fn shown_at(view: &RowView, read: Wall, flip: fn(&RowView, Now) -> Option<Wall>) -> Wall {
        let (policy, limits) = (Policy::default(), Limits::default());
        let mut now = Now { wall: read, ..Now::default() };
        for _ in 0..100 {
            if attention(view, &policy, &limits, now).section == Section::Interrupted {
                return now.wall;
            }
            now.wall = now.wall.plus(next_look(now.wall, flip(view, now), now.wall, apart()));
        }
        panic!("the row is never shown");
    }

    // proves: HD-16
    #[test]
    fn a_window_that_hears_nothing_shows_the_row_when_its_hidden_time_is_over() {
        let at = Wall(1_000_000_000);
        for read in [0, 1, 30_000, 59_999, 299_999] {
            let view = cut_off(at);
            // the pulse alone finds it within a minute
            let pulse = shown_at(&view, at.plus(read), |_, _| None).since(at);
            assert!((300_000..=360_000).contains(&pulse), "{pulse}");
            // the flip finds it at once
            let flip =
                |view: &RowView, now| next_flip(view, &Policy::default(), &Limits::default(), now);
            assert_eq!(shown_at(&view, at.plus(read), flip).since(at), 300_000);
        }
    }

    #[test]
    fn the_next_look_is_at_most_a_pulse_away() {
        let look = |pulse, flip: Option<i64>, now| {
            next_look(Wall(pulse), flip.map(Wall), Wall(now), apart())
        };
        assert_eq!(look(0, None, 0), 60_000);
        assert_eq!(look(0, None, 45_000), 15_000);
        assert_eq!(look(0, Some(50_000), 45_000), 5_000);
        assert_eq!(look(0, Some(70_000), 45_000), 15_000);
        assert_eq!(look(0, None, 90_000), 1, "overdue");
        assert_eq!(look(0, None, -7_200_000), 60_000, "a clock that was set back");
    }

    #[test]
    fn ages_and_durations_read_as_the_design_writes_them() {
        let at = |minutes: i64| age(Wall(0), Wall(minutes * 60_000 + 59_999));
        assert_eq!(
            [0, 1, 59, 60, 1_439, 1_440, 10_079, 10_080, 50_400].map(at),
            ["now", "1m", "59m", "1h", "23h", "1d", "6d", "1w", "5w"]
        );
        assert_eq!(age(Wall(60_000), Wall(0)), "now", "a clock stepped back");
        assert_eq!(
            [0, 48_000, 252_000, 240_000, 4_320_000, 7_200_000].map(duration),
            ["0 s", "48 s", "4 min 12 s", "4 min", "1 h 12 min", "2 h"]
        );
        assert_eq!(spoken_age(Wall(0), Wall(60_000)), "1 minute");
        assert_eq!(spoken_age(Wall(0), Wall(10_800_000)), "3 hours");
    }
}
