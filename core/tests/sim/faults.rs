//! How much goes wrong in a world, and what: the person, the machine and the app itself. Numbers only;
//! who plays them is in `world`.

use crate::clock::{HOUR, MINUTE, SECOND};
use crate::dice::Dice;
use crate::troubles::{self, Trouble};
use omniscio_core::settings::KillSwitches;

/// The weather of one world, in events of a thousand.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    /// Turns that go wrong.
    pub(crate) turns: u64,
    /// One trouble that this world is full of.
    pub(crate) mostly: Option<Trouble>,
    /// Starts that go wrong.
    pub(crate) starts: u64,
    /// Steps of the app in which it dies, of a hundred thousand.
    pub(crate) crashes: u64,
    /// Answers that are late or fail.
    pub(crate) answers: u64,
    /// Lines that cannot be written.
    pub(crate) writes: u64,
    /// Mean time between two deeds of the person.
    pub(crate) person_ms: u64,
    /// Mean time between two blows of the machine.
    pub(crate) machine_ms: u64,
    /// The outside hand.
    pub(crate) hand: u64,
    /// Until then the API answers nobody.
    pub(crate) outage_until: u64,
    /// In the outage no turn hangs either: each fails for itself.
    pub(crate) siege: bool,
    /// Until then the person is away.
    pub(crate) away_until: u64,
    /// The person acts on what is being launched.
    pub(crate) rush: bool,
}

impl Faults {
    pub(crate) fn random(dice: &mut Dice) -> Faults {
        let mostly = dice.chance(300).then(|| troubles::trouble(dice));
        Faults {
            turns: dice.weighted(&[(2, 150), (4, 450), (2, 800), (1, 1000)]),
            mostly,
            starts: dice.weighted(&[(3, 10), (3, 60), (1, 250)]),
            crashes: dice.weighted(&[(1, 0), (3, 100), (3, 500)]),
            answers: dice.weighted(&[(3, 5), (2, 40), (1, 150)]),
            writes: dice.weighted(&[(3, 2), (1, 30)]),
            person_ms: dice.weighted(&[(3, 90 * SECOND), (3, 10 * MINUTE), (1, 2 * HOUR)]),
            machine_ms: dice.weighted(&[(2, 20 * MINUTE), (2, 2 * HOUR), (1, 12 * HOUR)]),
            hand: dice.weighted(&[(3, 0), (2, 500)]),
            outage_until: 0,
            siege: false,
            away_until: 0,
            rush: false,
        }
    }

    /// The weather in which everything must settle.
    pub(crate) fn none() -> Faults {
        Faults {
            turns: 0,
            mostly: None,
            starts: 0,
            crashes: 0,
            answers: 0,
            writes: 0,
            person_ms: 0,
            machine_ms: 0,
            hand: 0,
            outage_until: 0,
            siege: false,
            away_until: 0,
            rush: false,
        }
    }

    /// Nothing goes wrong any more.
    pub(crate) fn is_calm(&self) -> bool {
        self.turns == 0
    }

    /// Whether the next turn goes wrong, and how.
    pub(crate) fn of_turn(&self, dice: &mut Dice, at: u64) -> Option<Trouble> {
        if at < self.outage_until {
            let hangs = if self.siege { 0 } else { 2 };
            return Some(dice.weighted(&[(12, Trouble::Down), (hangs, Trouble::Hang)]));
        }
        if !dice.chance(self.turns) {
            return None;
        }
        match self.mostly {
            Some(mostly) if dice.chance(700) => Some(mostly),
            Some(_) | None => Some(troubles::trouble(dice)),
        }
    }
}

/// The switches of the environment at a start of the app.
pub(crate) fn switches(dice: &mut Dice) -> KillSwitches {
    KillSwitches {
        thinking_only_endturn_recovery: dice.chance(50),
        aborted_response_recovery: dice.chance(60),
        preinit_orphan_retire: dice.chance(100),
        relentless_relaunch: dice.chance(150),
        ..KillSwitches::default()
    }
}

/// What the machine does to the app.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Blow {
    FolderVanishes,
    HolderAppears,
    Outage(u64),
    Agent,
    TranscriptDeleted,
    ClockStep(i64),
    Slew(i64),
    Sleep(u64),
    Kill,
    MachineRestart,
    Panic,
    Quit,
    TurnByItself,
    Hand,
    ChildKilled,
    Hiccup,
    Crowding,
    Slowness,
    Vanish,
}

pub(crate) fn blow(dice: &mut Dice) -> Blow {
    let two_hours = 2 * HOUR as i64;
    dice.weighted(&[
        (10, Blow::FolderVanishes),
        (12, Blow::HolderAppears),
        (12, Blow::Agent),
        (2, Blow::Outage(30 * MINUTE)),
        (8, Blow::Outage(6 * HOUR)),
        (14, Blow::TranscriptDeleted),
        (3, Blow::ClockStep(two_hours)),
        (3, Blow::ClockStep(-two_hours)),
        (2, Blow::Slew(-800)),
        (2, Blow::Slew(1_500)),
        (3, Blow::Sleep(8 * HOUR)),
        (3, Blow::Sleep(90 * SECOND)),
        (6, Blow::Kill),
        (2, Blow::MachineRestart),
        (3, Blow::Panic),
        (3, Blow::Quit),
        (5, Blow::TurnByItself),
        (14, Blow::Hand),
        (6, Blow::ChildKilled),
        (10, Blow::Hiccup),
        (5, Blow::Crowding),
        (4, Blow::Slowness),
        (5, Blow::Vanish),
    ])
}
