//! A machine that has no more, and many sessions on it: they wait, are tried again, and come back when
//! it has; without relentless relaunch they are given up.

use super::alone::{User, alone};
use super::rig::{
    Shortage, assert_none_was_red, create, limit_descriptors, notes, until_watched, wanted_notes,
    was_told, watched, watched_config,
};
use crate::supervisor::rig::{App, Ground};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Event;
use omniscio_core::session::Status;
use omniscio_core::supervisor::Command;

/// As many as one bad morning had.
const MANY: usize = 25;
/// Children of 25 sessions and the app itself fit in so many descriptors.
const DESCRIPTORS: u64 = 400;

/// Holds `shortage` until every launch has failed often, then lets go of it.
fn all_come_back(wanted: i32, shortage: impl FnOnce() -> Shortage) {
    let ground = Ground::new();
    let app = App::start(watched_config(&ground));
    // from then on no thread of the app's own ends and makes room for half a child
    until_asked_for_its_version(&app);
    let held = shortage();
    let sessions = create(&app, &ground, MANY);
    let often = |of: &[Option<i32>]| of.len() >= 11;
    until_watched("eleven failures each", |watched| {
        watched.failed.len() == MANY && watched.failed.values().all(|failed| often(failed))
    });
    assert!(was_told(&app, |view| view.live.relaunch.is_some()));
    drop(held);

    for session in &sessions {
        let row = app.until_answered(*session);
        assert_eq!(row.answer_line.as_deref(), Some("Hello."));
    }
    assert_none_was_red(&app);
    let (most, failed) = watched(|watched| (watched.most, watched.failed.clone()));
    assert!((1..=4).contains(&most), "{most} spawn calls at once");
    for session in sessions {
        let failed = &failed[&session];
        assert!(failed.iter().all(|errno| *errno == Some(wanted)), "{failed:?}");
        assert_eq!(notes(&app, session), wanted_notes(failed.len()), "{failed:?}");
    }
}

// proves: RS-01, RS-06, RS-11, RS-16, RS-17, RS-22
#[test]
fn without_descriptors_no_session_turns_red_and_all_come_back() {
    alone(User::Same, || {
        limit_descriptors(DESCRIPTORS);
        all_come_back(libc::EMFILE, Shortage::of_descriptors);
    });
}

// proves: RS-01, RS-06, RS-11, RS-16, RS-17, RS-22
#[test]
fn without_processes_no_session_turns_red_and_all_come_back() {
    alone(User::Unused, || {
        all_come_back(libc::EAGAIN, || Shortage::of_processes(0));
    });
}

/// From then on no helper gives back descriptors or its thread.
fn until_asked_for_its_version(app: &App) {
    app.until("version", |told| {
        told.events.iter().find(|event| matches!(event, Event::Cli(_))).map(drop)
    });
}

// proves: RS-01, RS-02, RS-15
#[test]
fn a_conversation_that_cannot_be_looked_at_for_lack_of_descriptors_goes_on_later() {
    alone(User::Same, || {
        limit_descriptors(DESCRIPTORS);
        let ground = Ground::new();
        let app = App::start(watched_config(&ground));
        let sessions = create(&app, &ground, 3);
        for session in &sessions {
            app.until_answered(*session);
        }
        app.quit();

        let app = App::start(watched_config(&ground));
        until_asked_for_its_version(&app);
        let held = Shortage::of_descriptors();
        for session in sessions.iter().copied() {
            let text = "Go on. [[fake: say Gone on.]]".to_string();
            app.handle.command(Command::Send { session, text, now: false }).unwrap();
        }
        for session in &sessions {
            app.until_row(*session, "third attempt", |view| {
                view.live.relaunch.as_ref().is_some_and(|relaunch| {
                    relaunch.attempts >= 3 && relaunch.words.contains("(os error 24)")
                })
            });
        }
        assert_eq!(watched(|watched| watched.spawns.values().sum::<usize>()), sessions.len());
        drop(held);
        for session in sessions {
            app.until_row(session, "answer", |view| {
                view.row.answer_line.as_deref() == Some("Gone on.") && view.row.turn.is_none()
            });
        }
        assert_none_was_red(&app);
    });
}

/// Relentless relaunch is off, and nothing can be launched.
fn given_up(many: usize) -> (App, Ground, Vec<SessionId>) {
    limit_descriptors(DESCRIPTORS);
    let ground = Ground::new();
    let mut config = watched_config(&ground);
    config.switches.relentless_relaunch = true;
    config.limits.bounded_retry_ms = 20;
    let app = App::start(config);
    let held = Shortage::of_descriptors();
    let sessions = create(&app, &ground, many);
    for session in &sessions {
        let row = app.until_row(*session, "error", |view| view.row.status == Status::Error);
        assert_eq!(row.pending, None);
        let words = row.words.unwrap();
        assert!(words.contains("(os error 24)") && words.contains("ulimit -n"), "{words}");
        assert_eq!(notes(&app, *session), Vec::<String>::new());
    }
    drop(held);
    (app, ground, sessions)
}

// proves: RS-13, RS-14
#[test]
fn without_relentless_relaunch_a_launch_is_given_up_after_three_retries() {
    alone(User::Same, || {
        let (app, ground, sessions) = given_up(1);
        let session = sessions[0];
        assert_eq!(watched(|watched| watched.spawns[&session]), 4);
        assert_eq!(watched(|watched| watched.failed[&session].clone()), [Some(libc::EMFILE); 4]);
        // nothing holds a new one up
        let other = create(&app, &ground, 1)[0];
        app.until_answered(other);
        assert_eq!(watched(|watched| watched.spawns[&session]), 4);
    });
}

// proves: RS-13
#[test]
fn without_relentless_relaunch_many_are_given_up_and_never_retried_more_often() {
    alone(User::Same, || {
        let (_app, _ground, sessions) = given_up(MANY);
        watched(|watched| {
            assert!((1..=4).contains(&watched.most), "{} at once", watched.most);
            for session in sessions {
                // a full throttle at a retry ends it, too
                let failed = watched.failed[&session].len();
                assert!((1..=4).contains(&failed), "{failed} failures");
                assert_eq!(watched.spawns[&session], failed);
            }
        });
    });
}
