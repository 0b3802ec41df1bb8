//! A turn of the real CLI that dies in each of its ways, and comes back by itself.

use crate::bench::{Bench, body, limits, signal};
use crate::looks::Written;
use crate::support::mock_api::{Ending, Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::block::BlockKind;
use omniscio_core::limits::Limits;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::supervisor::Command;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TURN: Duration = Duration::from_secs(60);
const SHAPE: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

// proves: PR-01, PR-12, A-01, A-02, A-18
#[test]
fn a_normal_turn_and_a_second_one() {
    in_namespace("recovery::a_normal_turn_and_a_second_one", || {
        let bench = Bench::new();
        bench.api.push(Reply::new().thinking("let me see").text("Hello from the mock"));
        let session = bench.create("the first message");
        bench.wait_answer(session, "Hello from the mock");
        let row = bench.row(session);
        assert!(row.cli_session_id.is_some() && row.last_good_assistant.is_some());
        assert!(row.delivered && row.replay.answered);
        bench.api.push(Reply::new().text("And again"));
        bench.send(session, "the second message");
        bench.wait_answer(session, "And again");
        assert_eq!(bench.api.main_requests().len(), 2);
        let system = bench.api.main_requests()[0].system_text();
        assert!(system.contains(prompt::FINAL_MARKER), "{system}");
        bench.assert_never_twice("the first message");
        assert_eq!((bench.bubbles(session), bench.replays(session)), (2, 0));
    });
}

// proves: SC-27, NT-01
#[test]
fn a_stream_dropped_on_every_try_is_replayed_and_answered() {
    in_namespace("recovery::a_stream_dropped_on_every_try_is_replayed_and_answered", || {
        let bench = Bench::new();
        let healed = Arc::new(AtomicBool::new(false));
        let is_healed = Arc::clone(&healed);
        bench.api.script(move |_, _| {
            let reply = Reply::new().text("an answer that comes through");
            let healed = is_healed.load(Ordering::SeqCst);
            if healed { reply } else { reply.drop_after(2, Ending::Fin) }
        });
        let session = bench.create("please answer this");
        // the CLI gives up after its own tries, Omniscio does not
        wait_until(TURN, "the stamp", || bench.states(session).contains(&SHAPE));
        healed.store(true, Ordering::SeqCst);
        bench.wait_answer(session, "an answer that comes through");
        assert_eq!(bench.replays(session), 1);
        assert!(bench.states(session).contains(&SHAPE), "{:?}", bench.states(session));
        bench.assert_never_twice("please answer this");
        assert_eq!(bench.bubbles(session), 1);
        // told once: that the answer is there
        wait_until(TURN, "the notification", || bench.notified(session) > 0);
        assert_eq!(bench.notified(session), 1);
    });
}

// proves: A-04, RP-02, RP-03, RP-05, RP-12
#[test]
fn killed_before_any_tool_the_message_is_sent_into_a_fresh_transcript() {
    in_namespace(
        "recovery::killed_before_any_tool_the_message_is_sent_into_a_fresh_transcript",
        || {
            let bench = Bench::new();
            bench.api.push(Reply::new().text("first answer"));
            let session = bench.create("the first message");
            bench.wait_answer(session, "first answer");
            let before = bench.row(session).cli_session_id;
            let gate = Gate::new();
            bench.api.push(Reply::new().text("half an answer").hold_after(2, &gate));
            bench.send(session, "the second message");
            gate.wait_reached(TURN);
            wait_until(TURN, "the first words", || {
                bench.row(session).turn.is_some_and(|turn| turn.real_output)
            });
            bench.wait_on_disk(Written::Message("the second message"));
            bench.api.push(Reply::new().text("the whole answer"));
            bench.kill_cli(session);
            bench.wait_answer(session, "the whole answer");
            let last = bench.api.main_requests().pop().expect("a request");
            assert_eq!(last.count_text_in_history("the second message"), 1, "{}", body(&last));
            assert_eq!(last.count_text_in_history("the first message"), 1, "{}", body(&last));
            assert!(!body(&last).contains("half an"), "{}", body(&last));
            assert_ne!(bench.row(session).cli_session_id, before);
            assert_eq!(bench.bubbles(session), 2);
            bench.assert_never_twice("the second message");
        },
    );
}

/// A Bash call that leaves one line in a file each time it runs.
fn counting(file: &Path, seconds: u32) -> serde_json::Value {
    let command = format!(
        "echo ran >> '{}'; python3 -c 'import time; time.sleep({seconds})'",
        file.display()
    );
    serde_json::json!({"command": command, "description": "count"})
}

fn runs(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

fn allow(bench: &Bench, session: omniscio_core::id::SessionId) {
    let asked = (Status::Running, Some(PendingAction::PermissionRequest));
    let row = bench.wait_state(session, "the permission card", asked);
    let request = row.card.expect("a card").request;
    let reply = omniscio_core::card::CardReply::Allow;
    bench.command(Command::ReplyCard { session, request, reply }).expect("answered");
}

// proves
#[test]
fn killed_inside_its_tool_the_work_is_kept_and_not_run_again() {
    in_namespace("recovery::killed_inside_its_tool_the_work_is_kept_and_not_run_again", || {
        let bench = Bench::new();
        let file = bench.home.project().join("count");
        bench.api.push(Reply::new().tool_use("Bash", counting(&file, 600)));
        let session = bench.create("run the tool");
        allow(&bench, session);
        wait_until(TURN, "the tool", || runs(&file) == 1);
        // The transcript lags: a tool can run before its call is written down.
        bench.wait_on_disk(Written::Call("echo ran"));
        bench.api.push(Reply::new().text("went on from there"));
        bench.kill_cli(session);
        bench.wait_answer(session, "went on from there");
        assert_eq!(runs(&file), 1, "the tool was not run again");
        let last = bench.api.main_requests().pop().expect("a request");
        assert_eq!(last.tool_use_ids().len(), 1, "{}", body(&last));
        assert_eq!(last.count_text_in_history("run the tool"), 1, "{}", body(&last));
        assert_eq!(last.count_text_in_history(prompt::CONTINUE_CUT_OFF), 1, "{}", body(&last));
        bench.assert_never_twice("run the tool");
        assert_eq!(bench.bubbles(session), 1);
    });
}

// proves: A-04
#[test]
fn killed_after_a_finished_tool_its_result_is_kept() {
    in_namespace("recovery::killed_after_a_finished_tool_its_result_is_kept", || {
        let bench = Bench::new();
        let file = bench.home.project().join("count");
        let gate = Gate::new();
        bench.api.push(Reply::new().tool_use("Bash", counting(&file, 0)));
        bench.api.push(Reply::new().text("now I would say").hold_after(1, &gate));
        let session = bench.create("run the tool");
        allow(&bench, session);
        gate.wait_reached(TURN);
        bench.wait_on_disk(Written::Result);
        bench.api.push(Reply::new().text("said it all"));
        bench.kill_cli(session);
        bench.wait_answer(session, "said it all");
        let last = bench.api.main_requests().pop().expect("a request");
        assert_eq!((last.tool_use_ids().len(), last.tool_results().len()), (1, 1));
        assert!(!last.tool_results()[0].is_error, "{}", body(&last));
        assert_eq!(runs(&file), 1);
        bench.assert_never_twice("run the tool");
    });
}

// proves: A-04
#[test]
fn cut_off_twice_the_tool_of_the_first_try_is_not_run_again() {
    in_namespace("recovery::cut_off_twice_the_tool_of_the_first_try_is_not_run_again", || {
        let bench = Bench::new();
        let file = bench.home.project().join("count");
        let (first, second) = (Gate::new(), Gate::new());
        bench.api.push(Reply::new().tool_use("Bash", counting(&file, 0)));
        bench.api.push(Reply::new().text("now I would say").hold_after(1, &first));
        let session = bench.create("run the tool");
        allow(&bench, session);
        first.wait_reached(TURN);
        bench.wait_on_disk(Written::Result);
        bench.api.push(Reply::new().text("once more from here").hold_after(1, &second));
        bench.kill_cli(session);
        // the second time in the continuation, before any tool of its own
        second.wait_reached(TURN);
        bench.wait_on_disk(Written::Message(prompt::CONTINUE_CUT_OFF));
        bench.api.push(Reply::new().text("said it all"));
        bench.kill_cli(session);
        bench.wait_answer(session, "said it all");
        assert_eq!((runs(&file), bench.replays(session)), (1, 2));
        let last = bench.api.main_requests().pop().expect("a request");
        assert_eq!(last.tool_use_ids().len(), 1, "{}", body(&last));
        assert_eq!(last.count_text_in_history("run the tool"), 1, "{}", body(&last));
        bench.assert_never_twice("run the tool");
    });
}

// proves: A-04
#[test]
fn a_message_that_never_reached_the_transcript_is_sent_again_under_its_own_uuid() {
    in_namespace(
        "recovery::a_message_that_never_reached_the_transcript_is_sent_again_under_its_own_uuid",
        || {
            let bench = Bench::new();
            bench.api.push(Reply::new().text("first answer"));
            let session = bench.create("the first message");
            bench.wait_answer(session, "first answer");
            // the first turn is in the transcript before the child stops writing
            bench.wait_on_disk(Written::Said("first answer"));
            let before = bench.row(session);
            let child = before.child.expect("a child");
            // the child takes no input any more: the message stays in the pipe
            signal(child.pid, "STOP");
            bench.send(session, "the second message");
            wait_until(TURN, "the message written", || bench.row(session).turn_count == 2);
            let sent = bench.row(session).replay.sent_as;
            bench.api.push(Reply::new().text("second answer"));
            bench.kill_cli(session);
            bench.wait_answer(session, "second answer");
            let after = bench.row(session);
            assert_eq!(after.cli_session_id, before.cli_session_id, "a plain resume");
            assert_eq!(after.replay.sent_as, sent, "the same uuid");
            let last = bench.api.main_requests().pop().expect("a request");
            assert_eq!(last.count_text_in_history("the second message"), 1, "{}", body(&last));
            assert_eq!(bench.api.main_requests().len(), 2);
        },
    );
}

// proves
#[test]
fn a_deleted_transcript_is_replaced_by_a_hand_over() {
    in_namespace("recovery::a_deleted_transcript_is_replaced_by_a_hand_over", || {
        let bench = Bench::new();
        bench.api.push(Reply::new().text("first answer"));
        let session = bench.create("the first message");
        bench.wait_answer(session, "first answer");
        let old = bench.row(session).cli_session_id.expect("an id");
        let gate = Gate::new();
        bench.api.push(Reply::new().text("half an answer").hold_after(1, &gate));
        bench.send(session, "the second message");
        gate.wait_reached(TURN);
        bench.api.push(Reply::new().text("the whole answer"));
        // it still has lines to write, and would make the file anew
        signal(bench.row(session).child.expect("a child").pid, "STOP");
        for transcript in bench.home.transcripts() {
            fs::remove_file(transcript).expect("deleted");
        }
        bench.kill_cli(session);
        bench.wait_answer(session, "the whole answer");
        let last = bench.api.main_requests().pop().expect("a request");
        let text = last.last_user_text().expect("a text");
        assert!(text.contains("The first message was:\nthe first message"), "{text}");
        assert!(text.contains("first answer") && text.ends_with("the second message"), "{text}");
        assert_ne!(bench.row(session).cli_session_id, Some(old));
        bench.assert_never_twice("the second message");
    });
}

// proves: A-05
#[test]
fn a_hang_whose_fallback_hangs_too_is_replayed() {
    in_namespace("recovery::a_hang_whose_fallback_hangs_too_is_replayed", || {
        // the CLI's own timers end the hangs
        let timers = [("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", "10000"), ("API_TIMEOUT_MS", "5000")];
        let bench = Bench::with(limits(), &timers);
        bench.api.script(|_, n| {
            let reply = Reply::new().text("an answer after all");
            match n {
                0 => reply.hang_after(2),
                1..=2 => reply.hang_before_headers(),
                _ => reply,
            }
        });
        let session = bench.create("please answer this");
        bench.wait_answer(session, "an answer after all");
        assert!(bench.replays(session) >= 1);
        assert!(bench.states(session).contains(&SHAPE), "{:?}", bench.states(session));
        bench.assert_never_twice("please answer this");
    });
}

// proves: A-04
#[test]
fn a_first_message_that_died_is_sent_in_a_new_conversation() {
    in_namespace("recovery::a_first_message_that_died_is_sent_in_a_new_conversation", || {
        let bench = Bench::new();
        let gate = Gate::new();
        bench.api.push(Reply::new().text("half an answer").hold_after(2, &gate));
        let session = bench.create("the only message");
        gate.wait_reached(TURN);
        bench.wait_on_disk(Written::Message("the only message"));
        wait_until(TURN, "the CLI's id", || bench.row(session).cli_session_id.is_some());
        let before = bench.row(session).cli_session_id;
        bench.api.push(Reply::new().text("the whole answer"));
        bench.kill_cli(session);
        bench.wait_answer(session, "the whole answer");
        assert_ne!(bench.row(session).cli_session_id, before);
        let last = bench.api.main_requests().pop().expect("a request");
        assert!(!body(&last).contains("half an"), "{}", body(&last));
        bench.assert_never_twice("the only message");
    });
}

// proves: AB-03, SW-07, SW-08
#[test]
fn a_reply_that_falls_silent_is_given_up_by_the_watchdog_and_replayed() {
    in_namespace(
        "recovery::a_reply_that_falls_silent_is_given_up_by_the_watchdog_and_replayed",
        || {
            let limits = Limits { silence_open_block_ms: 12_000, ..limits() };
            // the CLI's own timer is out of reach: nobody but our watchdog ends this turn
            let bench = Bench::with(limits, &[]);
            bench.api.push(Reply::new().text("and then it fell silent").hang_after(2));
            bench.api.push(Reply::new().text("an answer after all"));
            let session = bench.create("please answer this");
            bench.wait_answer(session, "an answer after all");
            let stamped = (Status::NeedsYou, Some(PendingAction::ResponseAborted));
            assert!(bench.states(session).contains(&stamped), "{:?}", bench.states(session));
            assert_eq!((bench.replays(session), bench.bubbles(session)), (1, 1));
            // what had been said stays in view
            let said = bench.blocks(session).into_iter().any(|block| {
                let text =
                    matches!(block.kind, BlockKind::Assistant { text } if text.contains("and"));
                block.cut_off && text
            });
            assert!(said, "{:?}", bench.blocks(session));
            bench.assert_never_twice("please answer this");
        },
    );
}

// proves: RF-01, RF-07, RT-05, RT-07
#[test]
fn exhausted_it_is_red_and_retry_brings_it_back() {
    in_namespace("recovery::exhausted_it_is_red_and_retry_brings_it_back", || {
        let bench = Bench::new();
        bench.api.script(|_, _| Reply::new().text("never whole").drop_after(1, Ending::Rst));
        let session = bench.create("please answer this");
        let failed = (Status::Error, Some(PendingAction::RecoveryFailed));
        bench.wait_state(session, "the red row", failed);
        assert_eq!(bench.replays(session), 2);
        bench.api.script(|_, _| Reply::new().text("whole at last"));
        bench.command(Command::Retry { session }).expect("a retry");
        bench.wait_answer(session, "whole at last");
        assert_eq!(bench.row(session).retry_attempts, 0);
        bench.assert_never_twice("please answer this");
    });
}
