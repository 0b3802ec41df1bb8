//! Launches wait for their turn before the machine is at its end: nothing fails, and a row says its place.

use super::alone::{User, alone};
use super::rig::{
    Shortage, assert_none_was_red, create, limit_descriptors, notes, until_place, watched,
    watched_config,
};
use crate::supervisor::rig::{App, Ground};
use omniscio_core::id::SessionId;
use omniscio_core::limits::Limits;
use omniscio_lib::supervise::store::database_path;
use omniscio_lib::supervise::supervisor::Config;
use rusqlite::Connection;

/// As a user runs it, but looked at again soon, and never tried in spite of a shortage.
fn holding(ground: &Ground) -> Config {
    let config = watched_config(ground);
    let usual = Limits::default();
    Config {
        limits: Limits {
            headroom_descriptors: usual.headroom_descriptors,
            headroom_processes: usual.headroom_processes,
            headroom_again_ms: 20,
            headroom_patience_ms: 3_600_000,
            ..config.limits
        },
        ..config
    }
}

/// All have answered, and no launch has ever failed.
fn assert_all_well(app: &App, sessions: &[SessionId]) {
    for session in sessions {
        app.until_answered(*session);
        assert_eq!(notes(app, *session), Vec::<String>::new());
        assert_eq!(watched(|watched| watched.spawns[session]), 1);
    }
    assert_none_was_red(app);
    watched(|watched| assert!(watched.failed.is_empty(), "{:?}", watched.failed));
}

fn wait_and_go(shortage: impl FnOnce() -> Shortage) {
    let ground = Ground::new();
    let app = App::start(holding(&ground));
    let held = shortage();
    let sessions = create(&app, &ground, 5);
    for place in 1..=5 {
        until_place(&app, place);
    }
    assert!(watched(|watched| watched.spawns.is_empty()), "a launch was begun");
    drop(held);
    assert_all_well(&app, &sessions);
}

// proves: RS-10
#[test]
fn before_the_last_descriptors_go_launches_wait_in_line() {
    alone(User::Same, || {
        limit_descriptors(200);
        wait_and_go(|| {
            let mut shortage = Shortage::of_descriptors();
            shortage.give_back(20);
            shortage
        });
    });
}

// proves: RS-10
#[test]
fn before_the_last_processes_go_launches_wait_in_line() {
    alone(User::Unused, || wait_and_go(|| Shortage::of_processes(40)));
}

/// Case T19.
#[test]
fn forty_sessions_get_through_a_limit_of_256_descriptors_of_which_200_are_held() {
    alone(User::Same, || {
        limit_descriptors(256);
        let ground = Ground::new();
        let app = App::start(holding(&ground));
        let held = Shortage::of_some_descriptors(200);
        let sessions = create(&app, &ground, 40);
        until_place(&app, 30);
        let begun = watched(|watched| watched.spawns.len());
        assert!(begun < 10, "{begun} launches in 56 descriptors");
        drop(held);
        assert_all_well(&app, &sessions);

        app.quit();
        let store = Connection::open(database_path(&ground.home.path().join("data"))).unwrap();
        let check = store.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(check.unwrap(), "ok");
    });
}
