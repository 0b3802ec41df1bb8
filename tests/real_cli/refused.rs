//! What the API refuses for good: no key, no credit, no login. The real CLI says it once, nothing is tried
//! again by itself, and the row says it in the API's words.

use crate::bench::Bench;
use crate::support::mock_api::Reply;
use crate::support::namespace::in_namespace;
use omniscio_core::attention::Pill;
use omniscio_core::id::SessionId;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, Status, StopReason};
use omniscio_core::supervisor::Command;

const RED: (Status, Option<PendingAction>) = (Status::Error, Some(PendingAction::RecoveryFailed));

fn invalid_key() -> Reply {
    Reply::new().error(401, "authentication_error", "invalid x-api-key")
}

fn no_credit() -> Reply {
    let words = "Your credit balance is too low to access the Anthropic API. \
                 Please go to Plans & Billing to upgrade or purchase credits.";
    Reply::new().error(400, "invalid_request_error", words)
}

/// The session is red at once, says why, and stays so while the scan serves another one.
fn stands_still(bench: &Bench, session: SessionId, stop: StopReason, words: &str) {
    let row = bench.wait_state(session, "the red row", RED);
    assert_eq!(row.stop_reason, Some(stop));
    assert!(row.words.as_deref().is_some_and(|said| said.contains(words)), "{:?}", row.words);
    let notes = bench.notes(session);
    assert!(notes.iter().any(|note| note.contains(words)), "{notes:?}");
    let strip = bench.attention(session).strip.expect("a strip").text;
    assert!(strip.contains(words), "{strip}");
    let asked = bench.requests_with("please answer this");
    bench.let_the_scan_pass();
    assert_eq!(bench.row(session), row, "nothing was done about it");
    assert_eq!(bench.requests_with("please answer this"), asked);
    assert_eq!((bench.replays(session), bench.row(session).retry_attempts), (0, 0));
    assert_eq!(bench.row(session).ladder, omniscio_core::session::Ladder::default());
    // rule of the tooltip: it does not claim retries that nobody makes
    let attention = bench.attention(session);
    assert_eq!(attention.pill, Some(Pill::Retry));
    assert_eq!(attention.pill_tooltip, Some(prompt::TOOLTIP_RETRY_STOPPED));
}

/// Once the account is good again, one click brings the answer.
fn retry_brings_it_back(bench: &Bench, session: SessionId) {
    bench.api.push(Reply::new().text("here you are"));
    bench.command(Command::Retry { session }).expect("a retry");
    bench.wait_answer(session, "here you are");
    assert_eq!(bench.restarts(session, "retry-button"), 1);
    assert_eq!(bench.row(session).stop_reason, None);
    assert_eq!(bench.bubbles(session), 1);
    bench.assert_never_twice("please answer this");
}

// proves: RA-05, RA-08, RT-10
#[test]
fn an_invalid_key_stops_at_once_and_says_so() {
    in_namespace("refused::an_invalid_key_stops_at_once_and_says_so", || {
        let bench = Bench::new();
        bench.api.script(|_, _| invalid_key());
        let session = bench.create("please answer this");
        stands_still(&bench, session, StopReason::InvalidKey, "Invalid API key");
        retry_brings_it_back(&bench, session);
    });
}

// proves: RA-05, RA-08, RT-10
#[test]
fn no_credit_stops_at_once_and_says_so() {
    in_namespace("refused::no_credit_stops_at_once_and_says_so", || {
        let bench = Bench::new();
        bench.api.script(|_, _| no_credit());
        let session = bench.create("please answer this");
        stands_still(&bench, session, StopReason::Billing, "Credit balance is too low");
        retry_brings_it_back(&bench, session);
    });
}

// proves: RA-05, RA-08
#[test]
fn a_key_that_dies_during_a_recovery_stops_it_with_an_attempt_left() {
    in_namespace(
        "refused::a_key_that_dies_during_a_recovery_stops_it_with_an_attempt_left",
        || {
            let bench = Bench::new();
            let gate = crate::support::mock_api::Gate::new();
            bench.api.push(Reply::new().text("half an answer").hold_after(1, &gate));
            bench.api.script(|_, _| invalid_key());
            let session = bench.create("please answer this");
            gate.wait_reached(std::time::Duration::from_secs(60));
            bench.kill_cli(session);
            let row = bench.wait_state(session, "the red row", RED);
            assert_eq!(row.stop_reason, Some(StopReason::InvalidKey));
            assert_eq!((row.retry_attempts, bench.replays(session)), (1, 1));
            bench.let_the_scan_pass();
            assert_eq!(bench.row(session), row, "the second attempt is not spent on it");
        },
    );
}

// proves: A-06
#[test]
fn a_login_that_expired_asks_for_the_person() {
    in_namespace("refused::a_login_that_expired_asks_for_the_person", || {
        let bench = Bench::with_login();
        bench.api.script(|_, _| {
            Reply::new().error(401, "authentication_error", "OAuth token has expired.")
        });
        let session = bench.create("please answer this");
        let asks = (Status::NeedsYou, Some(PendingAction::AuthRequired));
        let row = bench.wait_state(session, "the sign-in", asks);
        let words = row.words.clone().unwrap_or_default();
        assert!(words.contains("401") && words.contains("OAuth token has expired"), "{words}");
        assert_eq!(row.stop_reason, None);
        let asked = bench.requests_with("please answer this");
        // the clock is under the same login, which works again for it
        bench.let_the_scan_pass();
        assert_eq!(bench.row(session), row, "nothing was done about it");
        assert_eq!(bench.requests_with("please answer this"), asked);
        assert_eq!((bench.replays(session), bench.restarts(session, "re-arm")), (0, 0));
    });
}
