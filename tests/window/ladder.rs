//! A session that is given up, as a person sees it: while the ladder goes on, and once nothing does.

use crate::driver::Window;
use crate::ground::Ground;
use crate::page::{PILL, PILL_TIP, Row, STRIP, SWITCH_BANNER};

const GOES_ON: &str =
    "Auto-recovery keeps retrying in the background — Retry tries again immediately.";
const STOPPED: &str =
    "Auto-retry stopped after repeated failures — Retry resets the limit and tries again now.";

const DIES: &str = "say The test fails as expected: both callers refresh.; partial The expiry check runs before the mutex is taken, so the check has to move inside the lock and; kill";
const TRIES: [&str; 3] = [
    r#"say I start with where the token is read and who holds the lock.; tool Read {"file_path":"src/auth/session.rs"}; tool Grep {"pattern":"refresh_token","path":"src"}; partial Both callers refresh at the same time, and the second one presents a token that the server has already retired. The expiry check in `ensure_fresh` runs before the; kill"#,
    "partial The expiry check in `ensure_fresh` runs before the mutex is taken, so two; kill",
    "partial The expiry check runs before the mutex is taken, so the check has to move inside the lock and; kill",
];
const TASK: &str = "Find the race in the token refresh and fix it, with a test that fails first.";
const FAILED: &str = "Recovery failed";

// proves: RT-01, RT-09, RT-17
#[tokio::test]
async fn while_the_ladder_goes_on_the_row_says_when_it_tries_next() {
    let mut ground = Ground::new();
    ground.limits.ladder_first_ms = 360_000;
    ground.account("default", &TRIES);
    let window = ground.open().await;
    window.start_session(&ground.project(), TASK).await;
    let next = |row: &Row| row.said.contains("Recovery failed, next try in 6 minutes. ");
    let row = window.row("when it tries next", next).await;
    assert_eq!((row.section.as_str(), row.label.as_str()), ("Interrupted", FAILED));
    let strip = window.content(STRIP).await;
    let sentence = "Could not finish a reply; retrying in the background. Next try in 6 min.";
    assert!(strip.contains(sentence), "{strip}");
    window.until_content(PILL, "Retry").await;
    assert_eq!(window.content(PILL_TIP).await, GOES_ON);
    assert!(window.has(SWITCH_BANNER).await);
    window.show_tip().await;
    window.picture_for_docs("recovery-failed.png").await;
}

// proves: RA-06, RT-10, RT-11
#[tokio::test]
async fn an_open_tooltip_says_at_once_when_the_ladder_stops_and_when_it_begins_anew() {
    let mut ground = Ground::new();
    ground.limits.ladder_rungs = 1;
    ground.limits.ladder_first_ms = 4_000;
    ground.account("default", &[DIES; 12]);
    let window = ground.open().await;
    window.start_session(&ground.project(), TASK).await;
    window.row("a red row", |row| row.label == FAILED).await;
    window.until_content(PILL_TIP, GOES_ON).await;
    window.note_tips().await;
    // from here on nobody touches anything
    window.until_content(PILL_TIP, STOPPED).await;
    let row = window.row("a red row", |row| row.label == FAILED).await;
    assert!(row.said.contains("Recovery failed, auto-retry stopped. "), "{}", row.said);
    assert!(window.content(STRIP).await.contains("Could not finish a reply; auto-retry stopped."));
    window.show_tip().await;
    window.picture_for_docs("auto-retry-stopped.png").await;

    // Retry resets it: the same panel goes through both texts once more
    window.click(PILL).await;
    let tips = "return window.tips";
    window
        .until("both texts twice", tips, |tips| {
            let tips: Vec<&str> = tips.as_array()?.iter().filter_map(|tip| tip.as_str()).collect();
            (tips == [GOES_ON, STOPPED, GOES_ON, STOPPED]).then_some(())
        })
        .await;
}

// proves: RT-10
#[tokio::test]
async fn an_account_without_credit_stops_at_once_with_the_words_of_the_api() {
    let mut ground = Ground::new();
    ground.account("default", &[NO_CREDIT]);
    let window = ground.open().await;
    window.start_session(&ground.project(), TASK).await;
    let row = window.row("a red row", |row| row.label == FAILED).await;
    let strip = window.content(STRIP).await;
    for words in ["auto-retry stopped", "Credit balance is too low"] {
        assert!(strip.contains(words), "{strip}");
    }
    assert!(row.said.contains("auto-retry stopped"), "{}", row.said);
    assert_eq!(window.content(PILL_TIP).await, STOPPED);
    assert_eq!(ground.launches().matches("-p --input-format").count(), 1, "no rung is spent");
    window.picture_for_docs("out-of-credit.png").await;
}

const NO_CREDIT: &str = "say I start with where the token is read and who holds the lock.; api-error 400 billing_error Credit balance is too low";

impl Window {
    /// From now on the page itself notes each new text of the pill's tooltip.
    async fn note_tips(&self) {
        let script = format!(
            "window.tips = [];
             const note = () => {{
                 const tip = document.querySelector('{PILL_TIP}')?.textContent;
                 if (tip && tip !== window.tips.at(-1)) window.tips.push(tip);
             }};
             note();
             new MutationObserver(note).observe(document.body,
                 {{ subtree: true, childList: true, characterData: true }});"
        );
        self.run(&script).await;
    }
}
