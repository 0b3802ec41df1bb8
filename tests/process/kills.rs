//! The app killed at any point, again and again, over sessions in every state (case T24): after each
//! start each session is back where it belongs exactly once, what was acknowledged is not lost, nothing
//! is doubled, and no process is left behind.
//!
//! The app is a process of its own (`kills/app.rs`). Half of what is checked is written down in
//! `kills/fates.rs`: where a row belongs after a start. The other half is in `kills/checks.rs`.
//!
//! 25 kills of 10 sessions; `OMNISCIO_LONG=1` makes it 200 of 30 (`cargo xtask test --long` sets
//! it). The seed is chance and printed; `OMNISCIO_KILLS_SEED=N` takes another. The moments of the kills
//! are the machine's, so a seed repeats what is done and not what comes of it. The waits have a bound
//! only to make a hanging test fail.

mod app;
mod checks;
mod fates;
mod look;
mod marked;
mod record;
mod run;
mod scenes;

pub(crate) use crate::supervisor::rig::LONG;
use run::Run;
use std::env;

/// The account with a login; the other one has a key.
const LOGIN: &str = "login";
/// The CLI's name in the home.
const CLI: &str = "claude";

// proves: CR-01, CR-02, A-15, A-31, INV-44, RP-08
#[test]
fn killed_at_any_point_each_session_is_back_in_its_place_exactly_once() {
    let (kills, sessions) = match env::var_os("OMNISCIO_LONG") {
        Some(_) => (200, 30),
        None => (25, 10),
    };
    let seed = env::var("OMNISCIO_KILLS_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = seed.unwrap_or_else(|| getrandom::u64().unwrap());
    println!("OMNISCIO_KILLS_SEED={seed}");
    let mut run = Run::new(seed, sessions);
    while run.kills() < kills || !run.unseen().is_empty() {
        assert!(run.kills() < 4 * kills, "never killed in: {:?}", run.unseen());
        run.one_life();
    }
    run.finish();
}
