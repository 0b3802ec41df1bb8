//! The main job in the window: a turn that is cut off comes back unseen; one that cannot says so.

use crate::driver::{Window, key};
use crate::ground::Ground;
use crate::page::{COMPOSER, PILL, Row, Seen};
use serde_json::json;

// proves: HD-01
#[tokio::test]
async fn a_cut_off_turn_comes_back_and_nobody_sees_it() {
    let mut ground = Ground::new();
    // long enough hidden to be looked at often
    ground.limits.scan_interval_ms = 3_000;
    ground.limits.replay_debounce_ms = 5_000;
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    let text = "Go [[fake: fail-first 2; say All of it is here.]]";
    window.start_session(&ground.project(), text).await;
    let row = window.row("its end", |row| row.label == "Your turn").await;
    window.read("All of it is here.").await;

    let audit = window.audit(&row.session).await;
    let times = |reason: &str, outcome: &str| -> Vec<i64> {
        let found =
            audit.iter().filter(|line| line.reason == reason && line.outcome.contains(outcome));
        found.map(|line| line.at.0).collect()
    };
    let (cut_off, replayed) =
        (times("process_exit", "response_aborted"), times("response-aborted", "-> starting"));
    assert_eq!((cut_off.len(), replayed.len()), (2, 2), "{audit:#?}");

    let mut seen = window.watched().await;
    // the launch by the person is shown as one; what counts is all after it
    let first = seen.iter().position(|seen| seen.label == "Running");
    seen.drain(..first.unwrap());
    let in_hidden_time = |seen: &&Seen| {
        let mut times = cut_off.iter().zip(&replayed);
        times.any(|(from, to)| (*from..*to).contains(&seen.at))
    };
    let hidden = seen.iter().filter(in_hidden_time).count();
    assert!(hidden >= 10, "looked {hidden} times in the hidden time: {cut_off:?} to {replayed:?}");
    // a row moves to its section a moment after its label changed, so labels and sections apart
    let mut labels: Vec<&str> = seen.iter().map(|seen| &*seen.label).collect();
    labels.dedup();
    assert_eq!(labels, ["Running", "Your turn"]);
    let mut sections: Vec<&str> = seen.iter().map(|seen| &*seen.section).collect();
    sections.dedup();
    assert_eq!(sections, ["Running", "Needs You"]);
    let loud = seen.iter().find(|seen| !seen.pill.is_empty() || !seen.strip.is_empty());
    assert_eq!(loud, None);
}

// proves: RT-04, RT-12, RT-13, RT-18, RT-21, RT-22
#[tokio::test]
async fn when_recovery_fails_the_row_is_red_and_retry_or_c_brings_it_back() {
    let mut ground = Ground::new();
    ground.account("default", &ATTEMPTS);
    let window = ground.open().await;
    let text = "Find the race in the token refresh and fix it, with a test that fails first.";
    window.start_session(&ground.project(), text).await;
    let failed = |row: &Row| row.label == "Recovery failed";
    let row = window.row("a red row", failed).await;
    assert_eq!(row.section, "Interrupted");
    assert_eq!(window.text(PILL).await, "Retry");
    assert_eq!(window.run(RED_IN_THE_STATUS_REGION).await, json!([true, true]));

    // pressed in haste it is one restart: after the first press it is inert
    let hasty = format!(
        "const pill = document.querySelector('{PILL}');
         window.inert = [];
         new MutationObserver(() => window.inert.push(pill.getAttribute('aria-disabled')))
             .observe(pill, {{ attributes: true }});
         for (let n = 0; n < 5; n++) pill.click();"
    );
    window.run(&hasty).await;
    window.row("a running row", |row| row.label == "Running").await;
    assert_eq!(window.run("return window.inert[0]").await, json!("true"));
    window.row("a red row again", failed).await;

    // in the composer a C is a letter
    window.type_into(COMPOSER, "c").await;
    let typed = window.run(&format!("return document.querySelector('{COMPOSER}').value")).await;
    assert_eq!(typed, "c");
    assert_eq!(window.row("still red", |_| true).await.label, "Recovery failed");

    // outside of it, it presses the pill
    window.press(&[key::ESCAPE]).await;
    window.press(&['c']).await;
    window.row("its end", |row| row.label == "Your turn").await;
    window.read("the test passes.").await;
    let audit = window.audit(&row.session).await;
    let by_person = audit.iter().filter(|line| {
        line.reason == "retry-button" && line.outcome.contains("recovery_failed -> starting")
    });
    assert_eq!(by_person.count(), 2, "{audit:#?}");
    assert_eq!(ground.messages(CONTINUE), 0, "Retry never messages the session");
}

// proves: RT-15, RT-18
#[tokio::test]
async fn c_presses_the_button_that_shows_and_nothing_without_one() {
    let ground = Ground::new();
    let window = ground.open().await;
    window.start_session(&ground.project(), "Go [[fake: hang]]").await;
    let row = window.row("a running row", |row| row.label == "Running").await;
    window.press(&[key::ESCAPE]).await;
    let before = window.audit(&row.session).await.len();
    window.press(&['c']).await;
    window.nothing_refused().await;
    window.press(&['s']).await;
    window.press(&['s']).await;
    window.row("a stopped row", |row| row.label == "Stopped").await;
    let audit = window.audit(&row.session).await;
    let other = audit[before..].iter().find(|line| line.reason.contains("retry"));
    assert!(other.is_none() && ground.messages(CONTINUE) == 0, "{audit:#?}");

    window.until_content(PILL, "Continue").await;
    window.press(&['c']).await;
    window.row("its end", |row| row.label == "Your turn").await;
    assert_eq!(ground.messages(CONTINUE), 1);
    window.until_content(PILL, "").await;
    window.press(&['c']).await;
    window.nothing_refused().await;
    window.type_into(COMPOSER, "More [[fake: say The last words.]]").await;
    window.press(&[key::ENTER]).await;
    window.read("The last words.").await;
    assert_eq!(ground.messages(CONTINUE), 1);
}

const CONTINUE: &str = "Please continue.";

impl Window {
    /// A command that the rules refused is told by a toast; whatever was given before is answered by now.
    pub(crate) async fn nothing_refused(&self) {
        self.invoke("snapshot", &json!({})).await.unwrap();
        assert_eq!(self.content("[data-testid=toast] .toast-text").await, "");
    }
}

/// Whether the pill has the red of failures, and whether it stands with the composer.
const RED_IN_THE_STATUS_REGION: &str = "const pill = document.querySelector('[data-testid=pill]');
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.background = 'var(--red-fill)';
    const colour = (of) => getComputedStyle(of).backgroundColor;
    const red = colour(pill) === colour(probe);
    probe.remove();
    const foot = pill.closest('[data-testid=status]')?.closest('.panel-foot');
    return [red, foot?.querySelector('#composer-text') != null];";

/// The first try and two replays are cut off, then the Retry and its two, then C's try works.
const ATTEMPTS: [&str; 7] = [
    r#"say I start with where the token is read and who holds the lock.; tool Read {"file_path":"src/auth/session.rs"}; tool Grep {"pattern":"refresh_token","path":"src"}; partial Both callers refresh at the same time, and the second one presents a token that the server has already retired. The expiry check in `ensure_fresh` runs before the; kill"#,
    "partial The expiry check in `ensure_fresh` runs before the mutex is taken, so two; kill",
    "partial The expiry check runs before the mutex is taken, so the check has to move inside the lock and; kill",
    "partial The check has; kill",
    "partial The check has; kill",
    "partial The check has; kill",
    "say The check now runs inside the lock, and the test passes.",
];
