//! The main job in the window: a turn that is cut off comes back unseen; one that cannot says so.

use crate::driver::key;
use crate::ground::Ground;
use crate::page::{COMPOSER, PILL};
use serde_json::Value;

// proves: HD-01
#[tokio::test]
async fn a_cut_off_turn_comes_back_and_nobody_sees_it() {
    let ground = Ground::new();
    let window = ground.open().await;
    window.ready().await;
    window.watch_row().await;
    let text = "Go [[fake: fail-first 1; say All of it is here.]]";
    window.start_session(&ground.project(), text).await;
    let row = window.row("its end", |row| row.label == "Your turn").await;
    window.read("All of it is here.").await;

    let reasons = window.reasons(&row.session).await;
    let cut_off = reasons.iter().any(|reason| reason.contains("process_exit"));
    let replayed = reasons
        .iter()
        .any(|reason| reason.contains("attempt charged"));
    assert!(cut_off && replayed, "{reasons:#?}");
    let (seen, samples) = window.watched().await;
    // the replay waits for its debounce: so long the row was hidden while it was looked at
    assert!(samples > 10, "{samples}");
    for row in &seen {
        let running = row["label"] == "Running" && row["section"] == "Running";
        let answered = row["label"] == "Your turn";
        assert!(running || answered, "{row}: {seen:#?}");
        assert_eq!(
            (&row["pill"], &row["strip"]),
            (&Value::from(""), &Value::from("")),
            "{seen:#?}"
        );
    }
    let states: Vec<&Value> = seen.iter().map(|row| &row["label"]).collect();
    assert!(
        states.windows(2).all(|two| two != ["Your turn", "Running"]),
        "{seen:#?}"
    );
}

// proves: RT-12, RT-13, RT-21
#[tokio::test]
async fn when_recovery_fails_the_row_is_red_and_retry_or_c_brings_it_back() {
    let ground = Ground::new();
    let window = ground.open().await;
    // the first try and two replays fail, then the Retry and its two replays, then C's own try works
    let text = "Go [[fake: fail-first 6; say All of it is here.]]";
    window.start_session(&ground.project(), text).await;
    let failed = |row: &crate::page::Row| row.label == "Recovery failed";
    let row = window.row("a red row", failed).await;
    assert_eq!(row.section, "Interrupted");
    assert_eq!(window.text(PILL).await, "Retry");
    window.picture_for_docs("recovery-failed.png").await;

    window.click(PILL).await;
    window
        .row("a running row", |row| row.label == "Running")
        .await;
    window.row("a red row again", failed).await;

    // in the composer a C is a letter
    window.type_into(COMPOSER, "c").await;
    let typed = window
        .run(&format!(
            "return document.querySelector('{COMPOSER}').value"
        ))
        .await;
    assert_eq!(typed, "c");
    assert_eq!(
        window.row("still red", |_| true).await.label,
        "Recovery failed"
    );

    // outside of it, it presses the pill
    window.press(&[key::ESCAPE]).await;
    window.press(&['c']).await;
    window.row("its end", |row| row.label == "Your turn").await;
    window.read("All of it is here.").await;
    let retries = window.reasons(&row.session).await;
    let by_person = retries
        .iter()
        .filter(|reason| reason.contains("force restart"))
        .count();
    assert_eq!(by_person, 2, "{retries:#?}");
}
