//! A mass start: many sessions are at work, the app dies under all of them, and the machine bears few
//! launches when it comes back. The person does not wait patiently. Decides nothing.

use crate::clock::{HOUR, MINUTE, SECOND};
use crate::invariants::Broken;
use crate::world::{Event, World};
use omniscio_core::supervisor::Command;

/// How long a mass start is watched.
pub(crate) const MASS_MS: u64 = 70 * MINUTE;

/// What the machine is like when the app comes back.
#[derive(Clone, Copy, Debug)]
enum Morning {
    Fails(u64),
    Crowded(u64),
    Slow,
    /// Slow and failing, and nothing relentless about it.
    Throttled,
    Fine,
}

impl World {
    /// Nothing but one such morning.
    pub(crate) fn live_a_morning(&mut self) -> Result<(), Broken> {
        self.run_until(20 * MINUTE);
        self.mass_start();
        self.oracle.broken.clone().map_or(Ok(()), Err)
    }

    /// Many sessions, a kill, a bad morning.
    pub(crate) fn mass_start(&mut self) {
        self.note("a mass start begins");
        self.report.hit("mass start");
        let end = self.clock.at + MASS_MS;
        (self.faults.machine_ms, self.faults.rush) = (0, true);
        self.faults.crashes = self.faults.crashes.min(8);
        self.faults.turns = self.faults.turns.min(150);
        self.faults.person_ms = 20 * SECOND;
        let many = self.dice.weighted(&[(5, 12), (3, 25), (2, 60)]);
        for _ in 0..many {
            let text = format!("message {}", self.dice.raw() % 100_000);
            let folder = ["/home/a/project", "/home/a/other", "/srv/third"];
            let folder = self.dice.pick(&folder).unwrap_or_default().to_string();
            self.say(Command::Create {
                folder,
                text,
                model: None,
                permission_mode: None,
                account: None,
                endpoint: None,
                user_settings_only: false,
            });
        }
        let until = self.clock.at + self.dice.between(2 * SECOND, 50 * SECOND);
        self.run_until(until);
        let morning = self.dice.weighted(&[
            (3, Morning::Fails(10 * SECOND)),
            (3, Morning::Fails(4 * MINUTE)),
            (4, Morning::Fails(30 * MINUTE)),
            (9, Morning::Fails(1_000 * HOUR)),
            (2, Morning::Crowded(5 * MINUTE)),
            (1, Morning::Crowded(1_000 * HOUR)),
            (2, Morning::Slow),
            (4, Morning::Throttled),
            (1, Morning::Fine),
        ]);
        self.note(format!("{morning:?}"));
        let at = self.clock.at;
        match morning {
            Morning::Fails(long) => self.launches.fail_all(&mut self.dice, at + long),
            Morning::Crowded(long) => self.launches.crowd(&mut self.dice, at + long),
            Morning::Slow => self.launches.slow(at + 5 * MINUTE),
            Morning::Throttled => {
                self.launches.fail_all(&mut self.dice, at + 4 * MINUTE);
                self.launches.slow(at + 4 * MINUTE);
                self.store.settings.relentless_session_relaunch = false;
            }
            Morning::Fine => {}
        }
        if self.state.is_some() {
            self.die(2 * SECOND);
        }
        self.after(10 * SECOND, Event::Person);
        if self.dice.chance(800) {
            // or leaves it all alone after a while
            let patience = self.dice.between(MINUTE, 6 * MINUTE);
            self.after(patience, Event::Away(end));
        }
        for _ in 0..3 {
            let next = self.clock.at + self.dice.between(10 * SECOND, 5 * MINUTE);
            self.run_until(next);
            self.misfortune();
        }
        self.run_until(end);
    }

    /// And one thing more.
    fn misfortune(&mut self) {
        if self.oracle.broken.is_some() {
            return;
        }
        match self.dice.below(5) {
            0 if self.state.is_some() => self.die(2 * SECOND),
            1 => {
                let by = if self.dice.chance(500) { 7_200_000 } else { -7_200_000 };
                self.step_clock(by);
            }
            2 => self.sleep(90 * SECOND),
            3 => self.folder_vanishes(),
            _ => {}
        }
    }
}
