//! A reply that was cut off, as a person sees it: unseen at first, then red; with recovery switched off;
//! with its project folder gone. Every state comes from a child that really died.

use crate::driver::{Window, key};
use crate::ground::{APP, Ground};
use crate::page::{COMPOSER, FOLDER_BANNER, PILL, PILL_TIP, Row, STRIP, SWITCH_BANNER};
use serde_json::json;
use std::fs;

const GOES_ON: &str =
    "Auto-recovery keeps retrying in the background — Retry tries again immediately.";
const OFF: &str = "Auto-recovery is off — Retry tries again now.";
const CUT_OFF: (&str, &str) = ("process_exit", "response_aborted");

/// Dies in the middle of its answer, on every attempt.
const DIES: &str = r#"say I start with where the token is read and who holds the lock.; tool Read {"file_path":"src/auth/session.rs"}; tool Grep {"pattern":"refresh_token","path":"src"}; partial Both callers refresh at the same time, and the second one presents a token that the server has already retired. The expiry check in `ensure_fresh` runs before the; kill"#;
const TASK: &str = "Find the race in the token refresh and fix it, with a test that fails first.";

/// One replay at once, then none for ten minutes: the row keeps its shape, and nothing happens to it.
fn ground_of_a_cut_off_turn(hide_max_ms: u64) -> Ground {
    let mut ground = Ground::new();
    ground.limits.replay_debounce_ms = 600_000;
    ground.limits.wake_late_ms = 700_000;
    ground.limits.hide_max_ms = hide_max_ms;
    ground.account("default", &[DIES; 4]);
    ground
}

async fn cut_off_twice(window: &Window, ground: &Ground) -> String {
    window.start_session(&ground.project(), TASK).await;
    let row = window.row("the row", |_| true).await;
    window.until_audited(&row.session, CUT_OFF, 2).await;
    row.session
}

// proves: HD-01, RT-03
#[tokio::test]
async fn a_recovery_under_way_shows_a_running_session_and_nothing_else() {
    let ground = ground_of_a_cut_off_turn(600_000);
    let window = ground.open().await;
    let session = cut_off_twice(&window, &ground).await;
    let view = window.view(&session).await;
    assert_eq!(view["row"]["pending"], "response_aborted");
    let row = window.row("the row", |_| true).await;
    assert_eq!((row.section.as_str(), row.label.as_str()), ("Running", "Running"));
    assert!(row.said.contains("Running, working. Project project."), "{}", row.said);
    assert_eq!(window.text("[data-testid=panel-label]").await, "Running");
    for loud in [PILL, STRIP, SWITCH_BANNER, FOLDER_BANNER] {
        assert!(!window.has(loud).await, "{loud}");
    }
    window.picture_for_docs("hidden-recovery.png").await;
}

// proves: HD-09, HD-11, HD-12, HD-16, RT-02, RT-09, RT-17
#[tokio::test]
async fn past_its_cap_it_turns_red_by_time_alone() {
    let ground = ground_of_a_cut_off_turn(6_000);
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    window.run(HEAR_OF_ROWS).await;
    let session = cut_off_twice(&window, &ground).await;
    let row = window.row("a red row", |row| row.label == "Paused").await;
    assert_eq!(row.section, "Interrupted");
    window.until_content(PILL, "Retry").await;
    assert_eq!(window.content(PILL_TIP).await, GOES_ON);
    assert!(window.content(STRIP).await.contains("Reply was cut off; retrying."));
    assert!(window.has(SWITCH_BANNER).await, "beside Retry");

    // not a moment earlier than the cap, counted from the last cut-off
    let cap = window.until_audited(&session, CUT_OFF, 2).await[1].at.0 + 6_000;
    let seen = window.watched().await;
    let red = seen.iter().find(|seen| seen.label == "Paused").unwrap();
    assert!(red.at >= cap, "{cap}: {red:?}");
    let early = seen.iter().find(|seen| seen.at < cap && !seen.pill.is_empty());
    assert_eq!(early, None);
    // and nobody told the window
    let heard: Vec<i64> = serde_json::from_value(window.run("return window.heard").await).unwrap();
    let told = heard.iter().find(|at| (cap - 3_000..=red.at).contains(*at));
    assert!(told.is_none() && !heard.is_empty(), "{heard:?} from {cap} to {red:?}");
    // the row is as it was when it was cut off
    let view = window.view(&session).await;
    assert_eq!(
        (&view["row"]["pending"], &view["row"]["retry_attempts"]),
        (&json!("response_aborted"), &json!(1))
    );
    window.show_tip().await;
    window.picture_for_docs("paused.png").await;
}

// proves: RT-24, HD-21
#[tokio::test]
async fn with_recovery_off_it_is_red_at_once_and_says_so() {
    let ground = ground_of_a_cut_off_turn(600_000);
    let window = ground.open().await;
    window.ready().await;
    set_recovery(&window, false).await;
    window.start_session(&ground.project(), TASK).await;
    let row = window.row("a red row", |row| row.label == "Paused").await;
    assert_eq!(row.section, "Interrupted");
    assert!(row.said.contains("reply was cut off; auto-recovery is off"), "{}", row.said);
    window.until_content(PILL_TIP, OFF).await;
    assert!(window.content(STRIP).await.contains("Reply was cut off; auto-recovery is off."));
    window.show_tip().await;
    window.picture_for_docs("recovery-off.png").await;

    // one cut-off, no replay; switched on, it is brought back unseen again
    let cut_off = window.until_audited(&row.session, CUT_OFF, 1).await;
    assert_eq!(cut_off.len(), 1);
    set_recovery(&window, true).await;
    window.row("a running row", |row| row.label == "Running").await;
    window.until_audited(&row.session, CUT_OFF, 2).await;
}

// proves: PF-03, UI-18
#[tokio::test]
async fn a_missing_folder_is_said_over_the_composer_until_it_is_back() {
    let mut ground = ground_of_a_cut_off_turn(6_000);
    ground.limits.folder_recheck_ms = 500;
    let window = ground.open().await;
    let session = cut_off_twice(&window, &ground).await;
    fs::rename(ground.project(), ground.at("elsewhere")).unwrap();
    window.find(FOLDER_BANNER).await;
    let banner = window.content(FOLDER_BANNER).await;
    assert!(
        banner.contains("Project folder is missing") && banner.ends_with("~/project"),
        "{banner}"
    );
    let full = format!("return document.querySelector('{FOLDER_BANNER} .path').title");
    assert_eq!(window.run(&full).await, json!(ground.project()));
    // Retry stays
    window.row("a red row", |row| row.label == "Paused").await;
    window.until_content(PILL, "Retry").await;
    let order = format!(
        "const [banner, strip, composer] = ['{FOLDER_BANNER}', '{STRIP}', '{COMPOSER}']
            .map((css) => document.querySelector(css));
         const before = (a, b) => (a.compareDocumentPosition(b) & 4) !== 0;
         return before(banner, strip) && before(strip, composer)
            && banner.closest('[data-testid=status]') !== null;"
    );
    assert_eq!(window.run(&order).await, json!(true));
    window.picture_for_docs("folder-missing.png").await;

    // it goes by itself
    fs::rename(ground.at("elsewhere"), ground.project()).unwrap();
    window.until_content(FOLDER_BANNER, "").await;
    let row = window.row("the row", |_| true).await;
    assert_eq!((row.session, row.label.as_str()), (session, "Paused"));
}

// proves: RT-08
#[tokio::test]
async fn the_environment_holds_recovery_off_and_retry_works_all_the_same() {
    let mut ground = ground_of_a_cut_off_turn(600_000);
    ground.account("default", &[DIES, "say The check now runs inside the lock."]);
    let mut env = ground.env();
    env.push(("AMC_DISABLE_ABORTED_RESPONSE_RECOVERY".to_owned(), "1".to_owned()));
    let window = Window::open(APP, &ground.args(), &env).await;
    window.ready().await;
    window.press(&[key::CONTROL, ',']).await;
    window.type_into("[data-testid=settings-search]", "recover").await;
    let switch = "[data-testid=setting-abortedResponseRecoveryEnabled]";
    let page = window.text("[data-testid=settings]").await;
    for words in ["Disabled by environment", "AMC_DISABLE_ABORTED_RESPONSE_RECOVERY=1"] {
        assert!(page.contains(words), "{page}");
    }
    let state = format!(
        "const of = (name) => document.querySelector('{switch}').getAttribute(name);
         return [of('aria-checked'), of('aria-disabled'), of('tabindex')];"
    );
    assert_eq!(window.run(&state).await, json!(["false", "true", "0"]));
    window.picture_for_docs("disabled-by-environment.png").await;
    window.click(switch).await;
    assert_eq!(window.run(&state).await, json!(["false", "true", "0"]));
    let stored = window.invoke("snapshot", &json!({})).await.unwrap();
    assert_eq!(stored["settings"]["abortedResponseRecoveryEnabled"], json!(true));

    window.press(&[key::ESCAPE]).await;
    window.press(&[key::ESCAPE]).await;
    window.start_session(&ground.project(), TASK).await;
    let row = window.row("a red row", |row: &Row| row.label == "Paused").await;
    window.until_content(PILL_TIP, OFF).await;
    assert_eq!(window.until_audited(&row.session, CUT_OFF, 1).await.len(), 1);
    window.click(PILL).await;
    window.read("inside the lock").await;
    window.row("its end", |row| row.label == "Your turn").await;
}

/// From now on the page notes when the backend tells it of a row: each batch is read through this.
const HEAR_OF_ROWS: &str = "const stringify = JSON.stringify;
    window.heard = [];
    JSON.stringify = (value, ...rest) => {
        const ofRow = Array.isArray(value) && value.some((event) => event?.event === 'row');
        if (ofRow) window.heard.push(Date.now());
        return stringify(value, ...rest);
    };";

async fn set_recovery(window: &Window, on: bool) {
    let change = json!({ "key": "abortedResponseRecoveryEnabled", "value": on });
    let set = json!({ "command": { "command": "set_setting", "change": change } });
    window.invoke("command", &set).await.unwrap();
}
