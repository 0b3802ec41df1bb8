//! A full context of the real CLI beside the other recoveries: each turn's end has one of them (CS-28).

use crate::bench::Bench;
use crate::context::{CLAUDE, LIMIT, empty, figures, is_compacted, said, too_long};
use crate::looks::Written;
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SHAPE: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

// proves: CS-02
#[test]
fn an_empty_turn_with_one_token_of_room_is_replayed_and_not_nudged() {
    in_namespace(
        "full_and_cut::an_empty_turn_with_one_token_of_room_is_replayed_and_not_nudged",
        || {
            let bench = Bench::new();
            // the CLI itself asks once more before it ends the turn
            bench.api.push(empty(179_999));
            bench.api.push(empty(179_999));
            bench.api.script(|_, _| said("an answer after all", 30_000));
            let session = bench.create_on(CLAUDE, "please answer this");
            bench.wait_answer(session, "an answer after all");
            assert_eq!((bench.replays(session), bench.nudges(session).len()), (1, 0));
            assert!(!bench.notes(session).iter().any(|note| note == prompt::NOTE_AUTO_RECOVERING));
            bench.assert_sound_for_claude(&["please answer this"]);
        },
    );
}

// proves: CS-28
#[test]
fn a_child_that_dies_at_a_full_context_is_replayed_and_not_nudged() {
    in_namespace(
        "full_and_cut::a_child_that_dies_at_a_full_context_is_replayed_and_not_nudged",
        || {
            let bench = Bench::new();
            bench.api.push(said("first answer", 80_000));
            let session = bench.create_on(CLAUDE, "message number one");
            bench.wait_answer(session, "first answer");
            let gate = Gate::new();
            bench.api.push(said("half an answer", 199_000).hold_after(2, &gate));
            bench.send(session, "message number two");
            gate.wait_reached(LIMIT);
            bench.wait_on_disk(Written::Message("message number two"));
            bench.api.push(said("the whole answer", 81_000));
            bench.kill_cli(session);
            bench.wait_answer(session, "the whole answer");
            assert!(bench.states(session).contains(&SHAPE), "{:?}", bench.states(session));
            assert_eq!((bench.replays(session), bench.nudges(session).len()), (1, 0));
            assert_eq!(bench.row(session).context_recover_count, 0);
            bench.assert_sound_for_claude(&["message number one", "message number two"]);
        },
    );
}

// proves: A-04
#[test]
fn killed_in_the_nudged_turn_the_work_of_the_whole_turn_is_kept() {
    in_namespace(
        "full_and_cut::killed_in_the_nudged_turn_the_work_of_the_whole_turn_is_kept",
        || {
            let bench = Bench::new();
            bench.api.push(said("first answer", 80_000));
            let session = bench.create_on(CLAUDE, "message number one");
            bench.wait_answer(session, "first answer");
            bench.api.push(figures(bench.reads(), 110_000));
            let gate = Gate::new();
            let half = said("half an answer", 186_000).hold_after(2, &gate);
            bench.api.script(move |request, _| {
                let said_in = |text| request.count_text_in_history(text) > 0;
                if is_compacted(request) {
                    said("the whole answer", 30_000)
                } else if said_in(prompt::CONTINUE_CUT_OFF) {
                    too_long()
                } else if said_in(prompt::PLEASE_CONTINUE) {
                    half.clone()
                } else {
                    empty(185_000)
                }
            });
            bench.send(session, "message number two");
            gate.wait_reached(LIMIT);
            bench.wait_on_disk(Written::Message(prompt::PLEASE_CONTINUE));
            bench.kill_cli(session);
            bench.wait_answer(session, "the whole answer");
            assert!(bench.states(session).contains(&SHAPE), "{:?}", bench.states(session));
            assert_eq!((bench.replays(session), bench.bubbles(session)), (1, 2));
            let row = bench.row(session);
            assert!(row.delivered && row.replay.answered);
            assert_eq!((row.context_recover_count, row.retry_attempts), (0, 1));
            let nudges = [prompt::PLEASE_CONTINUE];
            assert_eq!(bench.nudges(session), nudges);
            let messages = ["message number one", "message number two", prompt::CONTINUE_CUT_OFF];
            bench.assert_sound_for_claude(&messages);
            bench.assert_sound(&nudges);
        },
    );
}

// proves: A-04
#[test]
fn killed_after_two_compactions_the_message_goes_on_though_the_cut_is_refused() {
    in_namespace(
        "full_and_cut::killed_after_two_compactions_the_message_goes_on_though_the_cut_is_refused",
        || {
            let bench = Bench::new();
            bench.api.push(said("first answer", 80_000));
            let session = bench.create_on(CLAUDE, "message number one");
            bench.wait_answer(session, "first answer");
            let gate = Gate::new();
            let half = said("half an answer", 9_000).hold_after(2, &gate);
            // room for the empty answer and for the CLI's own second try
            let room = Arc::new(AtomicUsize::new(0));
            let made = Arc::new(AtomicUsize::new(0));
            let (left, summaries) = (Arc::clone(&room), Arc::clone(&made));
            bench.api.script(move |request, _| {
                if request.count_text_in_history(prompt::CONTINUE_CUT_OFF) > 0 {
                    return said("the whole answer", 9_000);
                }
                let taken =
                    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
                match (summaries.load(Ordering::SeqCst), taken) {
                    (1, Ok(_)) => empty(2_400),
                    (2, _) => half.clone(),
                    (_, _) => too_long(),
                }
            });
            bench.api.script_side(move |_, _| {
                made.fetch_add(1, Ordering::SeqCst);
                room.store(2, Ordering::SeqCst);
                Reply::new().text("<summary>A summary by the mock.</summary>")
            });
            bench.send(session, "message number two");
            gate.wait_reached(LIMIT);
            // the app reads it after the mock has sent more
            wait_until(LIMIT, "both compactions", || bench.compactions(session) == 2);
            bench.wait_on_disk(Written::Message(prompt::PLEASE_CONTINUE));
            bench.kill_cli(session);
            bench.wait_answer(session, "the whole answer");
            assert_eq!((bench.replays(session), bench.bubbles(session)), (1, 2));
            let row = bench.row(session);
            assert!(row.delivered && row.replay.answered);
            assert_eq!(row.retry_attempts, 1);
            bench.assert_sound(&["message number two", prompt::CONTINUE_CUT_OFF]);
        },
    );
}

// proves: A-08
#[test]
fn an_answer_that_the_window_cuts_off_is_continued() {
    in_namespace("full_and_cut::an_answer_that_the_window_cuts_off_is_continued", || {
        let bench = Bench::new();
        let cut = said("so far", 199_000).stop_reason("model_context_window_exceeded");
        bench.api.script(move |request, _| {
            let nudged = request.count_text_in_history(prompt::PLEASE_CONTINUE) > 0;
            if nudged { said("and to the end", 30_000) } else { cut.clone() }
        });
        let session = bench.create_on(CLAUDE, "please answer this");
        bench.wait_answer(session, "and to the end");
        assert!(bench.row(session).delivered);
        assert_eq!(bench.nudges(session), [prompt::PLEASE_CONTINUE]);
        assert_eq!((bench.replays(session), bench.bubbles(session)), (0, 1));
        bench.assert_sound_for_claude(&["please answer this"]);
        bench.assert_sound(&[prompt::PLEASE_CONTINUE]);
    });
}
