//! What goes wrong with a turn of the scripted CLI, and how such a turn ends. Names and weights only.

use crate::dice::Dice;

/// What goes wrong with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Hang,
    Exit,
    EofThenExit,
    EofOnly,
    TornExit,
    Empty,
    NoResult,
    Overloaded,
    Connection,
    Unauthorized,
    NoCredit,
    Limited,
    BadRequest,
    Full,
    Paused,
    Foreign,
    ChatterForever,
    /// The context is full, and the turn ends on a tool's result.
    Stall,
    /// The context is full, and the answer is there.
    FullAnswer,
    /// It compacts, and answers nothing.
    CompactEmpty,
    /// It compacted three times in a row.
    Refill,
    /// It stops with a step announced.
    MidTask,
    /// The API cannot be reached: not a word.
    Down,
}

const TROUBLES: [(u64, Trouble); 22] = [
    (9, Trouble::Hang),
    (12, Trouble::Exit),
    (4, Trouble::EofThenExit),
    (4, Trouble::EofOnly),
    (4, Trouble::TornExit),
    (6, Trouble::Empty),
    (3, Trouble::NoResult),
    (8, Trouble::Overloaded),
    (5, Trouble::Connection),
    (1, Trouble::Unauthorized),
    (1, Trouble::NoCredit),
    (2, Trouble::Limited),
    (1, Trouble::BadRequest),
    (1, Trouble::Full),
    (1, Trouble::Paused),
    (2, Trouble::Foreign),
    (1, Trouble::ChatterForever),
    (7, Trouble::Stall),
    (3, Trouble::FullAnswer),
    (3, Trouble::CompactEmpty),
    (1, Trouble::Refill),
    (5, Trouble::MidTask),
];

pub(crate) fn trouble(dice: &mut Dice) -> Trouble {
    dice.weighted(&TROUBLES)
}

/// How a turn ends, as the one knows who wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With its answer.
    Answered,
    /// Out of room, without an answer.
    OutOfRoom,
    /// Out of room, and no message helps.
    Hopeless,
    /// In the middle of its task.
    MidTask,
    /// In the middle of its reply.
    Paused,
    /// In another way, or not at all.
    #[default]
    Other,
}

impl Ending {
    /// How the app may take it. `marks`: it knows that the agent marks its answers; else any text is one.
    pub(crate) fn told(self, marks: bool) -> Ending {
        if self == Ending::MidTask && !marks { Ending::Answered } else { self }
    }
}

/// How the turn of this trouble ends.
pub(crate) fn ending(trouble: Option<Trouble>) -> Ending {
    match trouble {
        None | Some(Trouble::FullAnswer) => Ending::Answered,
        Some(Trouble::Stall | Trouble::CompactEmpty | Trouble::Full) => Ending::OutOfRoom,
        Some(Trouble::Refill) => Ending::Hopeless,
        Some(Trouble::MidTask) => Ending::MidTask,
        Some(Trouble::Paused) => Ending::Paused,
        Some(
            Trouble::Hang
            | Trouble::Exit
            | Trouble::EofThenExit
            | Trouble::EofOnly
            | Trouble::TornExit
            | Trouble::Empty
            | Trouble::NoResult
            | Trouble::Overloaded
            | Trouble::Connection
            | Trouble::Unauthorized
            | Trouble::NoCredit
            | Trouble::Limited
            | Trouble::BadRequest
            | Trouble::Foreign
            | Trouble::ChatterForever
            | Trouble::Down,
        ) => Ending::Other,
    }
}

/// Tokens in the context after the turn, of [`WINDOW`].
pub(crate) fn tokens(trouble: Option<Trouble>) -> u64 {
    if trouble == Some(Trouble::Stall) {
        185_000
    } else if trouble == Some(Trouble::FullAnswer) {
        199_000
    } else {
        30_000
    }
}

/// The model's window.
pub(crate) const WINDOW: u64 = 200_000;
