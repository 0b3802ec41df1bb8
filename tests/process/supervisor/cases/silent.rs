//! T1, T2, T4: a CLI that says nothing any more, or nothing at all.

use super::{App, Ground, SILENCE_MS, config, impatient, tree_with_sleep};
use omniscio_core::session::Status;
use omniscio_lib::supervise::children::alive;
use std::fs;

/// Streams a word every 200 ms, for much longer than the silence that ends a turn.
fn writing() -> String {
    format!("Write. [[fake: slow 200; say {}End.]]", "word ".repeat(50))
}

// proves: SW-07, SW-08, AB-03, RP-01, A-03
#[test]
fn t01_a_reply_that_falls_silent_goes_with_its_tree_and_comes_back_once() {
    let ground = Ground::new();
    let app = App::start(impatient(ground.home.path()));
    let answered: Vec<_> =
        (0..3).map(|_| app.create(&ground, "Hello. [[fake: say Hello.]]")).collect();
    answered.iter().for_each(|session| drop(app.until_said(*session, "Hello.")));
    let tools: Vec<_> =
        (0..3).map(|_| app.create(&ground, "Work. [[fake: bash 600; say Done.]]")).collect();
    tools.iter().for_each(|session| drop(app.until_tool_runs(*session)));
    let writers: Vec<_> = (0..3).map(|_| app.create(&ground, &writing())).collect();
    let text = "Go. [[fake: fail-first 1 daemon 600; fail-first 1 partial one two three; \
                fail-first 1 freeze; say Done.]]";
    let silent = app.create(&ground, text);
    let tree = tree_with_sleep(silent);
    assert!(tree.len() >= 2, "the CLI and what it left: {tree:?}");

    let row = app.until_said(silent, "Done.");
    assert!(!tree.iter().any(|id| alive(*id)), "{tree:?}");
    let reasons = app.reasons(silent);
    assert_eq!(app.count(silent, "abort: stall_timeout"), 1, "{reasons:#?}");
    assert_eq!((app.charged(silent), app.launches(silent)), (1, 2), "{reasons:#?}");
    assert_eq!(row.retry_attempts, 1);
    let kept = [("one two three".to_string(), true), ("Done.".to_string(), false)];
    assert_eq!(app.replies(silent), kept);
    assert_eq!(app.bubbles(silent), [text]);

    let whole = |session: &_| app.until_row(*session, "the end", |view| view.row.delivered);
    writers.iter().for_each(|session| drop(whole(session)));
    for session in [answered, tools.clone(), writers].concat() {
        assert_eq!(app.launches(session), 1, "{:#?}", app.reasons(session));
        assert_eq!(app.count(session, "abort: stall_timeout"), 0);
    }
    for session in tools {
        let row = app.until_tool_runs(session);
        assert_eq!((row.status, row.pending), (Status::Running, None));
    }
}

// proves: A-05
#[test]
fn t02_of_six_with_tools_exactly_the_two_that_fall_silent_after_a_result_come_back() {
    let ground = Ground::new();
    let app = App::start(impatient(ground.home.path()));
    let go = |text: &str| app.create(&ground, text);
    let call = "tool Read {\"file_path\": \"a.txt\"}";
    let quiet = format!("Go. [[fake: {call}; fail-first 1 hang; say Done.]]");
    let silent = [go(&quiet), go(&quiet)];
    // a tool that is silent for longer than a message may be, and replies that go on
    let slow = "Go. [[fake: bash 7; say Done.]]";
    let steady = format!("Go. [[fake: {call}; slow 200; say {}Done.]]", "word ".repeat(40));
    let others = [go(slow), go(slow), go(&steady), go(&steady)];
    for session in silent.iter().chain(&others) {
        app.until_row(*session, "the end", |view| view.row.delivered && view.row.turn.is_none());
    }
    for session in silent {
        let reasons = app.reasons(session);
        assert_eq!(app.count(session, "abort: stall_timeout"), 1, "{reasons:#?}");
        assert_eq!((app.charged(session), app.launches(session)), (1, 2), "{reasons:#?}");
        assert_eq!(app.bubbles(session), [quiet.as_str()]);
    }
    for session in others {
        let reasons = app.reasons(session);
        assert_eq!((app.charged(session), app.launches(session)), (0, 1), "{reasons:#?}");
        assert_eq!(app.count(session, "abort: stall_timeout"), 0, "{reasons:#?}");
    }
}

// proves: A-02
#[test]
fn t04_a_start_that_prints_nothing_is_no_launch_and_says_its_last_words() {
    let ground = Ground::new();
    let mut config = config(ground.home.path());
    config.limits.handshake_ms = 3_000;
    config.limits.secret_command_ms = 3_000;
    let app = App::start(config);
    let befalls = ground.home.path().join("config/fake-start");
    let asks = "Do you trust the files in this folder?";
    fs::write(&befalls, format!("stderr Claude Code; stderr {asks}; freeze")).unwrap();
    let session = app.create(&ground, "Hello. [[fake: say Hello.]]");
    let row = app.until_row(session, "failed start", |view| view.row.status == Status::Error);
    let words = row.words.unwrap();
    assert!(words.contains("never answered") && words.ends_with(asks), "{words}");
    assert_eq!((row.pending, row.turn_count, row.ever_answered), (None, 0, false));
    let states = app.rows(session);
    assert!(
        states.iter().all(|row| matches!(row.status, Status::Starting | Status::Error)),
        "nothing reported it as launched: {:?}",
        states.iter().map(|row| row.status).collect::<Vec<_>>()
    );
    assert_eq!(app.launches(session), 2, "one more try");

    fs::remove_file(&befalls).unwrap();
    app.until_the_scan_came_by(&ground);
    let row = app.until_row(session, "the same state", |_| true);
    assert_eq!((row.status, row.pending), (Status::Error, None), "neither archived nor retried");
    app.retry(session);
    app.until_said(session, "Hello.");
}

// proves: SW-04
#[test]
fn t04_chatter_before_the_first_line_is_a_slow_start_and_no_dead_one() {
    let ground = Ground::new();
    let mut config = impatient(ground.home.path());
    config.limits.first_output_ms = SILENCE_MS;
    let app = App::start(config);
    let chat = |from: u32| (from..from + 8).map(|n| format!("stderr MCP server {n}; pause 1000"));
    let befalls = ground.home.path().join("config/fake-start");
    fs::write(&befalls, chat(0).collect::<Vec<_>>().join("; ")).unwrap();
    let chat: Vec<_> = chat(8).collect();
    let session = app.create(&ground, &format!("Go. [[fake: {}; say Done.]]", chat.join("; ")));
    app.until_said(session, "Done.");
    assert_eq!(app.launches(session), 1, "{:#?}", app.reasons(session));
    assert_eq!(app.charged(session), 0);
}

// proves: AB-02
#[test]
fn t01_a_reply_whose_output_ends_is_cut_off_though_its_process_stays() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, "Go. [[fake: fail-first 1 eof; say Hello there, friend.]]");
    let first = app.until_row(session, "child", |view| view.row.child.is_some());
    app.until_said(session, "Hello there, friend.");
    assert_eq!(app.count(session, "abort: stream_end"), 1, "{:#?}", app.reasons(session));
    assert_eq!((app.charged(session), app.launches(session)), (1, 2));
    let child = first.child.unwrap();
    let id =
        omniscio_lib::supervise::children::ProcessId { pid: child.pid, start_time: child.start };
    assert!(!alive(id), "it was ended");
}
