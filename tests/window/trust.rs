//! The question about what a folder brings that runs by itself.

use crate::driver::key;
use crate::ground::{Ground, wait_for};
use crate::page::{START, TRUST};
use serde_json::json;
use std::fs;

const HOOK: &str = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo hook > hook-ran"}]}]}}"#;

fn with_hook(ground: &Ground) {
    fs::create_dir(ground.at("project/.claude")).unwrap();
    fs::write(ground.at("project/.claude/settings.json"), HOOK).unwrap();
}

// proves: A-23
#[tokio::test]
async fn a_folder_with_a_hook_is_asked_about_before_anything_runs() {
    let ground = Ground::new();
    with_hook(&ground);
    let window = ground.open().await;
    window.start_session(&ground.project(), "Go [[fake: say Started.]]").await;
    let question = window.text(TRUST).await;
    assert!(
        question.contains("This folder brings commands that run by themselves:")
            && question.contains("echo hook > hook-ran"),
        "{question}"
    );
    assert_eq!(ground.launches(), "", "nothing runs before the answer");

    window.click("[data-testid=trust-without]").await;
    window.read("Started.").await;
    let launches = ground.launches();
    assert!(launches.contains("--setting-sources user"), "{launches}");
    window.row("its end", |row| row.label == "Your turn").await;

    // remembered: the next session in this folder starts at once, and without them too
    window.press(&[key::ESCAPE]).await;
    window.start_session(&ground.project(), "Go on [[fake: say Started again.]]").await;
    window.read("Started again.").await;
    assert!(!window.has(TRUST).await);
    let launches = ground.launches();
    let without = launches.matches("--setting-sources user").count();
    assert_eq!(without, launches.lines().filter(|line| line.starts_with("-p ")).count());
}

// proves: A-23
#[tokio::test]
async fn a_trusted_folder_starts_with_what_it_brings() {
    let ground = Ground::new();
    with_hook(&ground);
    let window = ground.open().await;
    window.fill_dialog(&ground.project(), "Go [[fake: say Started.]]").await;
    window.click(START).await;
    window.click("[data-testid=trust-start]").await;
    window.read("Started.").await;
    assert!(!ground.launches().contains("--setting-sources"));
}

// proves: A-23
#[tokio::test]
async fn a_page_that_does_not_ask_cannot_start_what_a_folder_brings() {
    let ground = Ground::new();
    with_hook(&ground);
    let window = ground.open().await;
    let text = "Go [[fake: say Started.]]";
    let create = json!({ "command": { "command": "create", "folder": ground.project(),
        "text": text, "model": null, "permission_mode": null, "account": null,
        "user_settings_only": false } });
    let refused = window.invoke("command", &create).await.unwrap_err();
    assert_eq!(refused["code"], "invalid", "{refused}");
    let words = refused["message"].as_str().unwrap();
    assert!(words.contains("This folder brings commands"), "{words}");

    let without = json!({ "path": ground.project(), "trusted": false });
    window.invoke("folder_trust", &without).await.unwrap();
    window.invoke("command", &create).await.unwrap();
    let launches = wait_for("the launch", || {
        let launches = ground.launches();
        launches.contains("--session-id").then_some(launches)
    });
    assert!(launches.contains("--setting-sources user"), "{launches}");
    assert_eq!(launches.matches("--session-id").count(), 1, "the refused one never starts");
}
