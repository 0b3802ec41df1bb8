//! The API cuts every reply: the two attempts of the day, then red, then the rungs of the re-arm ladder up
//! to its hard cap, then Retry.

use crate::bench::{Bench, limits};
use crate::support::mock_api::{Ending, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::attention::{Pill, RowState};
use omniscio_core::id::SessionId;
use omniscio_core::limits::Limits;
use omniscio_core::prompt;
use omniscio_core::session::{Ladder, PendingAction, SessionRow, Status, StopReason};
use omniscio_core::supervisor::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const RED: (Status, Option<PendingAction>) = (Status::Error, Some(PendingAction::RecoveryFailed));
const MESSAGE: &str = "please answer this";

/// Rungs within seconds.
fn short_ladder(rungs: u8) -> Limits {
    Limits { ladder_first_ms: 2_000, ladder_max_ms: 4_000, ladder_rungs: rungs, ..limits() }
}

/// A session with one good turn, whose second message is never answered whole.
fn never_whole(bench: &Bench) -> SessionId {
    bench.api.push(Reply::new().text("the first answer"));
    let session = bench.create("the first message");
    bench.wait_answer(session, "the first answer");
    wait_until(LIMIT, "the notification", || bench.notified(session) == 1);
    bench.api.script(|_, _| Reply::new().text("never whole").drop_after(1, Ending::Rst));
    bench.send(session, MESSAGE);
    session
}

/// The whole answer came, once, and every trace of the failure is gone from the row.
fn delivered(bench: &Bench, session: SessionId) {
    bench.wait_answer(session, "whole at last");
    let row = bench.row(session);
    assert!(row.delivered, "{row:#?}");
    assert_eq!((row.ladder, row.stop_reason), (Ladder::default(), None));
    assert_eq!(bench.answers(session), ["the first answer", "whole at last"]);
    assert_eq!(bench.bubbles(session), 2);
    let last = bench.api.main_requests().pop().expect("a request");
    assert_eq!(last.count_text_in_history("the first message"), 1, "the earlier turn is kept");
    bench.assert_never_twice(MESSAGE);
    bench.assert_never_twice_on_disk(MESSAGE);
}

fn rungs_taken(bench: &Bench, session: SessionId) -> usize {
    let audit = bench.audit(session);
    audit.iter().filter(|line| (&*line.actor, &*line.reason) == ("re-arm", "rung taken")).count()
}

fn wait_hard_cap(bench: &Bench, session: SessionId) -> SessionRow {
    wait_until(LIMIT, "the hard cap", || {
        bench.row(session).stop_reason == Some(StopReason::HardCap)
    });
    bench.wait_state(session, "the red row", RED)
}

// proves: SC-13, SC-10, SC-28, RF-01, A-04, RP-12
#[test]
fn t07_after_two_attempts_it_is_red_told_once_and_left_alone_by_the_scan() {
    in_namespace(
        "exhausted::t07_after_two_attempts_it_is_red_told_once_and_left_alone_by_the_scan",
        || {
            let bench = Bench::new();
            let session = never_whole(&bench);
            let row = bench.wait_state(session, "the red row", RED);
            assert_eq!(
                (bench.replays(session), row.retry_attempts),
                (2, 3),
                "the third is refused"
            );
            assert_eq!(bench.restarts(session, "response-aborted"), 2);
            wait_until(LIMIT, "the notification", || bench.notified(session) == 2);
            // it was seen running until it was red
            let seen = [
                RowState::ComingBack,
                RowState::Running,
                RowState::YourTurn,
                RowState::Running,
                RowState::RecoveryFailed,
            ];
            assert_eq!(bench.shown(session), seen);

            let asked = bench.requests_with(MESSAGE);
            bench.let_the_scan_pass();
            assert_eq!(bench.row(session), row, "the scan does not touch it any more");
            assert_eq!((bench.requests_with(MESSAGE), bench.notified(session)), (asked, 2));
            assert_eq!((bench.replays(session), bench.bubbles(session)), (2, 2));
            // in nothing that was sent or written down stands the message twice
            bench.assert_never_twice(MESSAGE);
            bench.assert_never_twice_on_disk(MESSAGE);
        },
    );
}

// proves: RA-01, RA-09, RA-14
#[test]
fn a_rung_of_the_ladder_brings_it_back_by_itself() {
    in_namespace("exhausted::a_rung_of_the_ladder_brings_it_back_by_itself", || {
        let bench = Bench::with(short_ladder(12), &[]);
        let session = never_whole(&bench);
        let row = bench.wait_state(session, "the red row", RED);
        assert_eq!((row.stop_reason, row.retry_attempts), (None, 3));
        bench.api.script(|_, _| Reply::new().text("whole at last"));
        delivered(&bench, session);
        // the ladder did it, nobody else: no click, no attempt of the day
        let rungs = rungs_taken(&bench, session);
        assert!(rungs >= 1);
        assert_eq!(bench.restarts(session, "re-arm"), rungs);
        assert_eq!((bench.restarts(session, "retry-button"), bench.replays(session)), (0, 2));
        assert_eq!(bench.row(session).retry_attempts, 3);
        // silent: the first answer, the red row, the second answer
        wait_until(LIMIT, "the notification", || bench.notified(session) >= 3);
        assert_eq!(bench.notified(session), 3);
    });
}

// proves: RA-04, RF-02, RT-07, RT-09, RT-10, CT-07
#[test]
fn after_the_hard_cap_nothing_happens_until_retry() {
    in_namespace("exhausted::after_the_hard_cap_nothing_happens_until_retry", || {
        let mut bench = Bench::with(short_ladder(2), &[]);
        let session = never_whole(&bench);
        bench.wait_state(session, "the red row", RED);
        let attention = bench.attention(session);
        assert_eq!(attention.pill, Some(Pill::Retry));
        assert_eq!(attention.pill_tooltip, Some(prompt::TOOLTIP_RETRY_BACKGROUND));
        let row = wait_hard_cap(&bench, session);
        assert_eq!((row.ladder, rungs_taken(&bench, session)), (Ladder { rungs: 2, due: None }, 2));
        let attention = bench.attention(session);
        assert_eq!(attention.pill, Some(Pill::Retry));
        assert_eq!(attention.pill_tooltip, Some(prompt::TOOLTIP_RETRY_STOPPED));
        let told = bench.notified(session);
        assert_eq!(told, 2, "rungs that fail are not told");

        // the API is well again and the app is started anew: nobody asks it
        bench.api.script(|_, _| Reply::new().text("whole at last"));
        let asked = bench.requests_with(MESSAGE);
        bench.quit();
        bench.start();
        let row = SessionRow { child: None, ..row };
        bench.let_the_scan_pass();
        assert_eq!(bench.row(session), row, "stopped for good");
        assert_eq!((bench.requests_with(MESSAGE), bench.notified(session)), (asked, told));

        bench.command(Command::Retry { session }).expect("a retry");
        delivered(&bench, session);
        assert_eq!(bench.restarts(session, "retry-button"), 1);
        assert_eq!((rungs_taken(&bench, session), bench.row(session).retry_attempts), (2, 0));
    });
}
