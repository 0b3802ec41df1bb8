//! The real CLI against a Messages API on loopback, each test in a network namespace of its own.
//! It never uses a `claude`, a key or a configuration of the machine.

mod apart;
mod app_death;
mod bench;
mod broken_replies;
mod broken_transcripts;
mod compaction;
mod context;
mod endpoints;
mod exhausted;
mod folder;
mod fork;
mod full_and_cut;
mod ground_selftest;
mod held;
mod kills;
mod launches;
mod leftovers;
mod looks;
mod mass;
mod mid_task;
mod mock_selftest;
mod recovery;
mod refused;
mod seen;
#[path = "../support/mod.rs"]
mod support;
mod turns;
mod waits;
mod workers;
