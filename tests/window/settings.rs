//! Settings act at once and are kept.

use crate::driver::key;
use crate::ground::Ground;
use serde_json::json;

const RECOVERY: &str = "[data-testid=setting-abortedResponseRecoveryEnabled]";

#[tokio::test]
async fn a_toggle_is_stored_and_found_again() {
    let ground = Ground::new();
    let window = ground.open().await;
    window.ready().await;
    window.press(&[key::CONTROL, ',']).await;
    let state =
        format!("return document.querySelector('{RECOVERY}')?.getAttribute('aria-checked')");
    window.until("the toggle", &state, |on| (on == "true").then_some(())).await;
    window.picture_for_docs("settings.png").await;
    window.click(RECOVERY).await;
    window.until("the change", &state, |on| (on == "false").then_some(())).await;
    let stored = window.invoke("snapshot", &json!({})).await.unwrap();
    assert_eq!(stored["settings"]["abortedResponseRecoveryEnabled"], json!(false));
    window.quit(&ground).await;
    // the window's place is kept with the rest of the data
    let place = std::fs::read_to_string(ground.at("data/window.json")).unwrap();
    assert!(place.contains("\"width\": 1280"), "{place}");
    assert!(!ground.at("config/dev.omniscio.Omniscio/.window-state.json").exists());

    let window = ground.open().await;
    window.ready().await;
    window.press(&[key::CONTROL, ',']).await;
    window.until("the toggle", &state, |on| (on == "false").then_some(())).await;
}
