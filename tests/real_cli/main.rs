//! The real CLI against a Messages API on loopback, each test in a network namespace of its own.
//! It never uses a `claude`, a key or a configuration of the machine.

mod ground_selftest;
mod mock_selftest;
#[path = "../support/mod.rs"]
mod support;
