//! Settings act at once and are kept.

use crate::driver::key;
use crate::ground::Ground;
use serde_json::json;

const RELAUNCH: &str = "[data-testid=setting-relentlessSessionRelaunch]";
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

// proves: ST-04, RS-25
#[tokio::test]
async fn the_switch_of_the_relaunch_stands_in_workflow_in_the_contracts_words() {
    let ground = Ground::new();
    let window = ground.open().await;
    window.ready().await;
    window.press(&[key::CONTROL, ',']).await;
    window.click("[data-testid=settings-page-workflow]").await;
    window.find(RELAUNCH).await;
    let read = format!(
        "const button = document.querySelector('{RELAUNCH}');
         const of = (name) => document.getElementById(button.getAttribute(name)).textContent;
         return [of('aria-labelledby'), of('aria-describedby'), button.ariaChecked];"
    );
    let helper = "When a session that was running fails to launch because the machine is \
        momentarily overloaded (a transient OS hiccup), keep retrying — with a growing gap between \
        tries — until it comes back, instead of giving up after a few attempts. Genuine errors \
        still stop and turn red.";
    let label = "Keep Relaunching a Session Until It's Back";
    assert_eq!(window.run(&read).await, json!([label, helper, "true"]));
    window.click(RELAUNCH).await;
    window.until("the change", &read, |read| (read[2] == "false").then_some(())).await;
    let stored = window.invoke("snapshot", &json!({})).await.unwrap();
    assert_eq!(stored["settings"]["relentlessSessionRelaunch"], json!(false));
}
