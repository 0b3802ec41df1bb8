//! The built app in its window: under a display of its own, driven as a person drives it, on the
//! bundled stand-in with short limits. Whatever a machine lacks fails a test; nothing is skipped.

mod context;
#[path = "../support/display.rs"]
mod display;
#[path = "../support/driver.rs"]
mod driver;
mod endpoints;
mod ground;
mod held;
mod interrupted;
#[path = "../support/keyring.rs"]
mod keyring;
mod ladder;
mod launching;
mod life;
mod page;
mod real_cli;
mod recovery;
mod rehearsal;
mod sessions;
mod settings;
mod switch_model;
mod trust;
