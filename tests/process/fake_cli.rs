//! The bundled stand-in speaks as the recordings do: over pipes, without the supervisor.
//! Nothing here proves a rule of the contract; it proves that the peer of the other tests is a fair one.

mod cards;
mod compaction;
mod faults;
mod peer;
mod replays;
mod turns;
