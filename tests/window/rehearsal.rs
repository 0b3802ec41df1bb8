//! The first minutes of a newcomer: no CLI yet, or the rehearsal on the bundled stand-in.

use crate::driver::{Window, key};
use crate::ground::{APP, Ground};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[tokio::test]
async fn a_rehearsed_session_is_cut_off_and_recovers_while_one_watches() {
    let ground = Ground::new();
    let mut env = ground.env();
    // with its own limits, as a newcomer has them
    env.retain(|(name, _)| name != "OMNISCIO_LIMITS");
    let window = Window::open(APP, &["--fake".to_owned()], &env).await;
    window.ready().await;
    assert_eq!(window.text("[data-testid=fake]").await, "Rehearsal");
    // it begins by itself
    let row = window.row("its end", |row| row.label == "Your turn").await;
    window.click("[data-testid=row]").await;
    window.read("the answer is here anyway").await;
    let audit = window.audit(&row.session).await;
    assert!(audit.iter().any(|line| line.reason == "response-aborted"), "{audit:#?}");
    // the data of real sessions is not touched
    assert!(ground.at("data-rehearsal/omniscio.db").exists());
    assert!(!ground.at("data/omniscio.db").exists());
}

#[tokio::test]
async fn the_rehearsal_leaves_the_usual_folders_and_the_real_cli_alone() {
    let ground = Ground::new();
    // what a search would find
    let real = ground.at(".local/bin/claude");
    fs::create_dir_all(real.parent().unwrap()).unwrap();
    fs::copy(ground.at("cli"), &real).unwrap();
    let data = ground.at("rehearsal");
    let args = ["--fake".to_owned(), "--data-dir".to_owned(), data.display().to_string()];
    let window = Window::open(APP, &args, &ground.env()).await;
    window.ready().await;
    let none = json!({});
    let known = window.invoke("snapshot", &none).await.unwrap()["cli"].clone();
    assert!(known["path"].as_str().unwrap().ends_with("omniscio-fake-claude"), "{known}");
    let found = window.invoke("look_for_cli", &none).await.unwrap();
    assert_eq!(found["path"], known["path"]);
    window.press(&[key::CONTROL, ',']).await;
    window.click("[data-testid=settings-page-general]").await;
    window.find("[data-testid=setting-cli]").await;
    assert!(!window.has("[data-testid=setting-cli] button").await);

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data.join("webview")), 0o700);
    let lock = fs::read_to_string(data.join("omniscio.lock")).unwrap();
    window.find("[data-testid=quit]").await;
    window.run("document.querySelector('[data-testid=quit]').focus()").await;
    window.press_and_go(&[key::ENTER]).await;
    Ground::until_ended(lock.trim().parse().unwrap());
    for usual in ["share", "config", "cache"] {
        let left = ground.at(usual).join("dev.omniscio.Omniscio");
        assert!(!left.exists(), "{}", left.display());
    }
}

#[tokio::test]
async fn a_cli_that_does_not_run_opens_the_first_page() {
    let ground = Ground::new();
    let missing = ground.at("nowhere/claude").display().to_string();
    let args = ["--claude".to_owned(), missing.clone()];
    let window = Window::open(APP, &args, &ground.env()).await;
    let page = window.text("[data-testid=first-run]").await;
    assert!(page.contains("Look again") && page.contains("npm install"), "{page}");
    window.click("[data-testid=first-run] .where").await;
    let looked = window.text("[data-testid=looked]").await;
    assert!(looked.contains(&missing), "{looked}");
}
