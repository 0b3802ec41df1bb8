//! What frees a full context of the real CLI, and what no longer can: `/compact` for an engine that is not
//! Claude, or by the person's hand, and the ends that the CLI has for a context without room.

use crate::bench::{Bench, limits};
use crate::context::{CLAUDE, LIMIT, YOURS, empty, figures, is_compacted, said, too_long};
use crate::support::mock_api::{Gate, Kind, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::id::SessionId;
use omniscio_core::prompt;
use omniscio_core::session::Status;
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A proxy stands behind this one.
const PROXIED: &str = "gpt-5.1";
/// What an endpoint of another engine is launched with.
const ENDPOINT: [(&str, &str); 2] =
    [("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000"), ("DISABLE_AUTO_COMPACT", "1")];

/// A session with two answered turns.
fn answered_twice(bench: &Bench, model: &str) -> SessionId {
    bench.api.push(said("first answer", 60_000));
    let session = bench.create_on(model, "message number one");
    bench.wait_answer(session, "first answer");
    bench.api.push(said("second answer", 80_000));
    bench.send(session, "message number two");
    bench.wait_answer(session, "second answer");
    session
}

// proves: CS-09, CS-11, CS-34, CS-35, INV-61
#[test]
fn another_engine_is_made_to_compact_and_then_asked_to_finish() {
    in_namespace("compaction::another_engine_is_made_to_compact_and_then_asked_to_finish", || {
        let bench = Bench::with(limits(), &ENDPOINT);
        let session = answered_twice(&bench, PROXIED);
        bench.wait_notified(session, 2);
        let gate = Gate::new();
        let answer = said("here it is", 30_000).hold_before_headers(&gate);
        bench.api.script(
            move |request, _| {
                if is_compacted(request) { answer.clone() } else { empty(185_000) }
            },
        );
        bench.send(session, "message number three");
        gate.wait_reached(LIMIT);
        let row = bench.row(session);
        assert_eq!(
            (row.status, row.pending, row.context_recover_count),
            (Status::Running, None, 1)
        );
        assert_eq!(bench.notified(session), 2, "nobody is told of it");
        gate.open();
        bench.wait_answer(session, "here it is");
        assert!(bench.row(session).delivered);
        assert_eq!(bench.notes(session), [prompt::NOTE_AUTO_RECOVERING]);
        assert_eq!((bench.compactions(session), bench.bubbles(session)), (1, 3));
        let nudges = bench.nudges(session);
        assert_eq!(nudges, [prompt::COMPACT_COMMAND, prompt::PLEASE_CONTINUE]);
        let requests = bench.api.requests();
        let compact = requests.iter().position(|request| request.kind == Kind::Compact);
        let after: Vec<_> = requests.iter().skip(compact.expect("a summary") + 1).collect();
        assert_eq!(after.len(), 1, "one request, and it is the continuation");
        assert_eq!(after[0].last_user_text().as_deref(), Some(prompt::PLEASE_CONTINUE));
        bench.assert_sound(&["message number one", "message number three"]);
    });
}

// proves: CS-16, CS-17, INV-62, A-08
#[test]
fn a_forced_compaction_that_fails_is_given_up_in_its_words() {
    in_namespace("compaction::a_forced_compaction_that_fails_is_given_up_in_its_words", || {
        let bench = Bench::with(limits(), &ENDPOINT);
        let session = answered_twice(&bench, PROXIED);
        bench.api.script(|_, _| empty(185_000));
        bench.api.script_side(|_, _| too_long());
        bench.send(session, "message number three");
        wait_until(LIMIT, "the nudge", || bench.row(session).context_recover_count == 1);
        let row = bench.gave_up(session, "message number three", 1);
        let words = row.words.expect("words");
        assert!(words.contains("may need a fresh session: "), "{words}");
        assert!(words.contains("could not be reduced"), "{words}");
        assert_eq!(bench.nudges(session), [prompt::COMPACT_COMMAND]);
        assert_eq!(bench.asked(prompt::PLEASE_CONTINUE), 0);
        bench.assert_sound(&["message number one", "message number three"]);
    });
}

// proves: A-17
#[test]
fn a_compact_that_the_person_types_runs_no_gate() {
    in_namespace("compaction::a_compact_that_the_person_types_runs_no_gate", || {
        let bench = Bench::new();
        let session = answered_twice(&bench, CLAUDE);
        bench.api.push(said("third answer", 190_000));
        bench.send(session, "message number three");
        bench.wait_answer(session, "third answer");
        bench.wait_notified(session, 3);
        let before = bench.row(session);
        bench.send(session, "/compact");
        wait_until(LIMIT, "the compaction", || bench.compactions(session) == 1);
        let row = bench.wait_state(session, "the end of the command", YOURS);
        assert!(row.delivered && row.replay.answered);
        assert_eq!(row.context_recover_count, before.context_recover_count);
        assert_eq!(row.last_good_assistant, before.last_good_assistant);
        bench.stands_still(session, "message number three");
        assert_eq!((bench.nudges(session).len(), bench.notified(session)), (0, 3));
        assert_eq!(bench.summaries(), 1);

        // one that fails says why, and that is all
        bench.api.script_side(|_, _| too_long());
        bench.send(session, "/compact");
        wait_until(LIMIT, "its error", || !bench.notes(session).is_empty());
        bench.wait_state(session, "the end of the command", YOURS);
        let notes = bench.notes(session);
        assert!(notes.iter().any(|note| note.contains("ompact")), "{notes:?}");
        bench.stands_still(session, "message number three");
        assert_eq!(bench.nudges(session), [""; 0]);
        assert!(!bench.row(session).context_gave_up);
    });
}

// proves: A-08, CS-14, CS-16
#[test]
fn a_message_that_is_too_long_by_itself_is_given_up_after_three_nudges() {
    in_namespace(
        "compaction::a_message_that_is_too_long_by_itself_is_given_up_after_three_nudges",
        || {
            let bench = Bench::new();
            bench.api.script(|_, _| too_long());
            bench.api.script_side(|_, _| too_long());
            let session = bench.create_on(CLAUDE, "please answer this");
            let row = bench.gave_up(session, "please answer this", 3);
            let words = row.words.expect("words");
            assert!(words.contains("Prompt is too long"), "{words}");
            assert_eq!(bench.nudges(session), [prompt::PLEASE_CONTINUE; 3]);
            bench.assert_sound_for_claude(&["please answer this"]);
        },
    );
}

// proves: A-08, CS-14, CS-15, CS-16, CS-17, CS-20, INV-62
#[test]
fn neither_turns_nor_compactions_fit_and_the_person_is_told_once() {
    in_namespace(
        "compaction::neither_turns_nor_compactions_fit_and_the_person_is_told_once",
        || {
            let bench = Bench::new();
            let session = answered_twice(&bench, CLAUDE);
            bench.api.script(|_, _| too_long());
            bench.api.script_side(|_, _| too_long());
            bench.send(session, "message number three");
            wait_until(LIMIT, "the nudge", || bench.row(session).context_recover_count == 1);
            let row = bench.gave_up(session, "message number three", 3);
            assert!(row.words.is_some_and(|words| words.contains("Prompt is too long")));
            assert_eq!((bench.bubbles(session), bench.replays(session)), (3, 0));

            // it fits again, and the person says so
            bench.api.script(|_, _| said("here it is", 30_000));
            bench.send(session, "message number four");
            bench.wait_answer(session, "here it is");
            let row = bench.row(session);
            assert_eq!((row.context_recover_count, row.context_gave_up), (0, false));
            bench.assert_sound_for_claude(&["message number one", "message number three"]);
        },
    );
}

// proves: CS-23, INV-62
#[test]
fn compactions_that_answer_nothing_turn_after_turn_end_with_one_note() {
    in_namespace(
        "compaction::compactions_that_answer_nothing_turn_after_turn_end_with_one_note",
        || {
            let bench = Bench::new();
            let session = answered_twice(&bench, CLAUDE);
            // after each summary there is room for the empty answer and for the CLI's own second try
            let room = Arc::new(AtomicUsize::new(0));
            let left = Arc::clone(&room);
            bench.api.script(move |_, _| {
                let taken =
                    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
                if taken.is_ok() { empty(2_400) } else { too_long() }
            });
            bench.api.script_side(move |_, _| {
                room.store(2, Ordering::SeqCst);
                Reply::new().text("<summary>A summary by the mock.</summary>")
            });
            bench.send(session, "message number three");
            wait_until(LIMIT, "the nudge", || bench.row(session).context_recover_count == 1);
            bench.gave_up(session, "message number three", 3);
            // what is left after the second is one exchange, which the CLI does not compact
            assert_eq!((bench.summaries(), bench.compactions(session)), (2, 2));
            assert_eq!((bench.bubbles(session), bench.replays(session)), (3, 0));
            bench.assert_sound_for_claude(&["message number one", "message number three"]);
        },
    );
}

// proves: A-25
#[test]
fn a_blocking_limit_is_given_up_at_once() {
    in_namespace("compaction::a_blocking_limit_is_given_up_at_once", || {
        let bench = Bench::with(limits(), &[("DISABLE_AUTO_COMPACT", "1")]);
        bench.api.push(said("first answer", 199_000));
        let session = bench.create_on(CLAUDE, "message number one");
        bench.wait_answer(session, "first answer");
        bench.send(session, "message number two");
        wait_until(LIMIT, "the second turn", || bench.row(session).context_gave_up);
        let row = bench.gave_up(session, "message number one", 0);
        let words = row.words.expect("words");
        assert_eq!(words, "may need a fresh session: Prompt is too long");
        assert_eq!(bench.nudges(session), [""; 0]);
        assert_eq!(bench.requests_with("message number two"), 0, "the CLI asks nobody");
    });
}

// proves: A-08
#[test]
fn a_context_that_refills_at_once_is_given_up_at_once() {
    in_namespace("compaction::a_context_that_refills_at_once_is_given_up_at_once", || {
        let bench = Bench::with(limits(), &[("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")]);
        let file = bench.home.project().join("long.txt");
        fs::write(&file, "lorem ipsum\n".repeat(2_500)).expect("written");
        bench.api.push(said("first answer", 20_000));
        let session = bench.create_on(CLAUDE, "message number one");
        bench.wait_answer(session, "first answer");
        let read = Reply::new().tool_use("Read", json!({"file_path": file}));
        bench.api.script(move |_, _| figures(read.clone(), 95_000));
        bench.send(session, "message number two");
        wait_until(LIMIT, "the breaker", || bench.row(session).context_gave_up);
        let row = bench.gave_up(session, "message number one", 0);
        let words = row.words.expect("words");
        assert!(words.contains("Autocompact is thrashing"), "{words}");
        assert_eq!((bench.nudges(session).len(), bench.compactions(session)), (0, 3));
        bench.assert_sound_for_claude(&["message number one", "message number two"]);
    });
}
