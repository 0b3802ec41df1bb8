//! T7: requests that the API or the network fails.

use super::{Ground, Status};
use omniscio_core::session::PendingAction;

const RED: (Status, Option<PendingAction>) = (Status::Error, Some(PendingAction::RecoveryFailed));

#[test]
fn t07_a_dropped_a_partial_and_an_overloaded_reply_come_back_once_each() {
    let ground = Ground::new();
    let app = ground.start();
    for failure in [
        "drop",
        "api-error - server_error API Error: Connection closed. Partial response received.",
        "api-error 529 overloaded_error Overloaded",
    ] {
        let session =
            app.create(&ground, &format!("Go. [[fake: fail-first 1 {failure}; say Done.]]"));
        let row = app.until_said(session, "Done.");
        assert_eq!((row.retry_attempts, app.charged(session)), (1, 1), "{failure}");
        assert_eq!(app.launches(session), 2, "{failure}: {:#?}", app.reasons(session));
        assert_eq!(app.bubbles(session).len(), 1, "{failure}");
    }
}

// proves: SC-13, CT-05, RF-07
#[test]
fn t07_the_third_failure_of_a_day_is_red_and_a_message_begins_the_count_anew() {
    let ground = Ground::new();
    let app = ground.start();
    let overloaded = "api-error 529 overloaded_error Overloaded";
    let session = app.create(&ground, &format!("Go. [[fake: fail-first 9 {overloaded}]]"));
    let row = app.until_failed(session);
    assert_eq!((row.status, row.pending), RED);
    assert_eq!((app.charged(session), app.launches(session)), (2, 3));
    app.until("badge", |told| (told.badge == 1).then_some(()));

    app.send(session, &format!("Again. [[fake: fail-first 2 {overloaded}; say Done.]]"));
    app.until_said(session, "Done.");
    assert_eq!(app.charged(session), 4, "two more: {:#?}", app.reasons(session));
}
