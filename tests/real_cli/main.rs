//! The real CLI against a Messages API on loopback, each test in a network namespace of its own.
//! It never uses a `claude`, a key or a configuration of the machine.

mod app_death;
mod bench;
mod ground_selftest;
mod mock_selftest;
mod recovery;
#[path = "../support/mod.rs"]
mod support;
mod turns;
