//! What goes wrong inside: a rule that panics, a database that cannot be written, a row that somebody
//! else changed.

use super::rig::{App, Ground, config};
use omniscio_core::ipc::{Event, IpcCode};
use omniscio_core::supervisor::{Command, Input, ReplyTo, State, Step, step};
use omniscio_core::time::Now;
use omniscio_lib::supervise::store::database_path;
use rusqlite::Connection;

/// The title that makes the planted rule panic.
const PANIC: &str = "panic";

/// Is answered at once.
const HELLO: &str = "Hello. [[fake: say Hello.]]";

/// The rules, with one that panics.
fn with_a_panic(state: &mut State, input: Input, now: Now) -> Step {
    if let Input::Command { command: Command::Rename { title, .. }, .. } = &input {
        assert!(title != PANIC, "a planted panic");
    }
    step(state, input, now)
}

#[test]
fn a_panic_in_a_rule_costs_the_state_and_not_the_app() {
    let ground = Ground::new();
    let mut config = config(ground.home.path());
    config.rules = with_a_panic;
    let app = App::start(config);
    let done = app.create(&ground, "Say hello.");
    let before = app.until_answered(done);
    let running = app.create(&ground, "Go. [[fake: fail-first 1 bash 600; say Done.]]");
    app.until_row(running, "tool", |view| !view.row.replay.calls.is_empty());

    let rename = Command::Rename { session: done, title: PANIC.to_string() };
    assert_eq!(app.handle.command(rename).unwrap_err().code, IpcCode::Internal);

    // the open turn comes back as after a restart, and the other session is as it was
    app.until_row(running, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Done.") && view.row.turn.is_none()
    });
    let after = app.until_answered(done);
    assert_eq!((after.title, after.answer_line), (before.title, before.answer_line));
    let rename = Command::Rename { session: done, title: "calm".to_string() };
    app.handle.command(rename).unwrap();
    app.until_row(done, "title", |view| view.row.title == "calm");
}

#[test]
fn a_store_that_cannot_be_written_holds_acts_up_and_drops_none() {
    let ground = Ground::new();
    let app = ground.start();
    let other = Connection::open(database_path(&ground.home.path().join("data"))).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let session = std::thread::scope(|scope| {
        let creating = scope.spawn(|| app.create(&ground, "Say hello. [[fake: say Hello.]]"));
        let words = app.until("trouble", |told| {
            told.events.iter().find_map(|event| {
                let Event::StoreTrouble(words) = event else {
                    return None;
                };
                words.clone()
            })
        });
        assert!(words.contains("locked"), "{words}");
        let refused = app.handle.command(Command::Stop { session: Default::default() });
        assert_eq!(refused.unwrap_err().code, IpcCode::Store);
        other.execute_batch("COMMIT").unwrap();
        creating.join().unwrap()
    });
    app.until("the end of the trouble", |told| {
        told.events.iter().find(|event| **event == Event::StoreTrouble(None)).map(drop)
    });
    assert_eq!(app.handle.store_trouble(), None);
    app.until_answered(session);
}

// proves: DB-03
#[test]
fn a_row_that_somebody_else_changed_is_taken_over_and_nothing_is_done() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, "Say hello.");
    app.until_answered(session);
    let other = Connection::open(database_path(&ground.home.path().join("data"))).unwrap();
    let changed = other
        .execute("UPDATE sessions SET title = 'theirs' WHERE id = ?1", [session.to_string()])
        .unwrap();
    assert_eq!(changed, 1);
    app.handle.command(Command::Rename { session, title: "ours".to_string() }).ok();
    app.until_row(session, "title", |view| view.row.title != "Say hello.");
    let rename = Command::Rename { session, title: "mine".to_string() };
    app.handle.command(rename).unwrap();
    app.until_row(session, "title", |view| view.row.title == "mine");
}

/// The rules, with a step that touches two sessions: a new title of the form `ID: text` also sends the
/// text to the session of that id.
fn with_a_step_for_two(state: &mut State, input: Input, now: Now) -> Step {
    let mut other = None;
    if let Input::Command { command: Command::Rename { title, .. }, .. } = &input {
        other = title.split_once(": ");
    }
    let send = other.map(|(id, text)| Command::Send {
        session: id.parse().unwrap(),
        text: text.to_string(),
        now: false,
    });
    let mut both = step(state, input, now);
    if let Some(command) = send {
        let more = step(state, Input::Command { reply: ReplyTo(u64::MAX), command }, now);
        both.writes.extend(more.writes);
        both.acts.extend(more.acts);
    }
    both
}

// proves: DB-03
#[test]
fn a_row_that_somebody_else_changed_holds_no_other_session_up() {
    let ground = Ground::new();
    let mut config = config(ground.home.path());
    config.rules = with_a_step_for_two;
    let app = App::start(config);
    let (theirs, ours) = (app.create(&ground, HELLO), app.create(&ground, HELLO));
    app.until_answered(theirs);
    app.until_answered(ours);
    let other = Connection::open(database_path(&ground.home.path().join("data"))).unwrap();
    let sql = "UPDATE sessions SET aborted_response_retry_attempts = 2 WHERE id = ?1";
    assert_eq!(other.execute(sql, [theirs.to_string()]), Ok(1));

    let title = format!("{ours}: Go on. [[fake: say Gone on.]]");
    let reply = app.handle.command(Command::Rename { session: theirs, title });
    assert_eq!(
        reply.map_err(|error| error.code),
        Err(IpcCode::NotEligible),
        "{:#?}",
        app.reasons(theirs)
    );
    // the other session's message was sent in that step, and its child lived on
    app.until_row(ours, "answer", |view| {
        view.row.answer_line.as_deref() == Some("Gone on.") && view.row.turn.is_none()
    });
    assert_eq!(app.count(ours, "launch: launch"), 1, "{:#?}", app.reasons(ours));
    // and the refused one is known as it is
    app.until_row(theirs, "row", |view| view.row.retry_attempts == 2);
    assert_eq!(app.count(theirs, "user: renamed"), 0);
    app.handle.command(Command::Rename { session: theirs, title: "mine".to_string() }).unwrap();
}
