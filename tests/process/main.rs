//! The IO workers on real processes and real terminals, with small shell scripts as children.
//!
//! Nothing here is the real CLI. A wait has a bound only to make a hanging test fail; no assert
//! depends on how long something took.

mod cycles;
mod death;
mod endpoints;
mod fake_cli;
mod holders;
#[path = "../support/keyring.rs"]
mod keyring;
mod kills;
mod launch;
mod limits;
mod login;
mod output;
mod rig;
mod stdin;
mod stop;
mod supervisor;
mod sweep;
mod workers;
