//! Endpoints as a person sets them up and uses them: in Settings, by keys where there are keys, then
//! chosen for a session. The secret goes one way.

use crate::driver::{Window, key};
use crate::ground::Ground;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CANARY: &str = "canary-0123456789-of-the-window";
const DIALOG: &str = "[data-testid=endpoint-dialog]";
const LINES: &str = "[data-testid=endpoint]";
const SECRET: &str = "[data-testid=endpoint-secret-text]";
const SAVE: &str = "[data-testid=endpoint-save]";

async fn accounts_page(window: &Window) {
    window.press(&[key::CONTROL, ',']).await;
    window.click("[data-testid=settings-page-accounts]").await;
    window.find("[data-testid=endpoints]").await;
}

async fn fill(window: &Window, fields: &[(&str, &str)]) {
    for (field, text) in fields {
        let css = format!("[data-testid=endpoint-{field}]");
        window.clear(&css).await;
        window.type_into(&css, text).await;
    }
}

/// Chooses in a select as its menu does.
async fn choose(window: &Window, css: &str, value: &str) {
    window.find(css).await;
    window
        .run(&format!(
            "const select = document.querySelector('{css}');
             select.value = '{value}';
             select.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        ))
        .await;
}

/// The variables that a session's child was started with.
fn environment(view: &Value) -> BTreeMap<String, String> {
    let pid = &view["row"]["child"]["pid"];
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8(environ).unwrap();
    let pairs = environ.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn in_no_file(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            in_no_file(&entry.path());
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
            assert!(!found, "the secret is in {}", entry.path().display());
        }
    }
}

// proves: A-32, PR-10, CS-33, A-08
#[tokio::test]
async fn an_endpoint_is_set_up_chosen_and_launched_and_its_secret_is_seen_by_its_child_alone() {
    let mut ground = Ground::new();
    ground.with_keyring();
    ground.account("default", &["say Done."]);
    let window = ground.open().await;
    window.ready().await;
    accounts_page(&window).await;
    window.click("[data-testid=endpoint-add]").await;
    fill(
        &window,
        &[
            ("name", "GPT at work"),
            ("base-url", "http://proxy.example.com"),
            ("model", "gpt-5.1"),
            ("window", "272,000"),
        ],
    )
    .await;
    choose(&window, "[data-testid=endpoint-family]", "proxy_backed").await;
    window.click(SAVE).await;
    window
        .until_content(
            "#endpoint-base-url-error",
            "Use https://: over http:// anyone on the way could read the secret.",
        )
        .await;
    fill(&window, &[("base-url", "https://proxy.example.com/v1/")]).await;
    window.click(SAVE).await;
    window
        .until_content("#endpoint-secret-error", "Give the secret: it is kept for one address.")
        .await;
    let kind = format!("return document.querySelector('{SECRET}').type");
    assert_eq!(window.run(&kind).await, json!("password"));
    window.type_into(SECRET, CANARY).await;
    window.picture_for_docs("endpoint.png").await;
    window.press(&[key::ENTER]).await;
    window.until_content("[data-testid=endpoint-secret]", "Secret: stored").await;
    let line = window.content(LINES).await;
    assert!(line.contains("gpt-5.1 · proxy.example.com · 272,000 tokens"), "{line}");
    assert!(!window.has(DIALOG).await);
    window.picture_for_docs("endpoints.png").await;

    // what is stored can be kept and never read
    window.click("[data-testid=endpoint-edit]").await;
    let field = format!(
        "const field = document.querySelector('{SECRET}'); return [field?.placeholder, field?.value]"
    );
    let kept = json!(["Stored. Leave empty to keep it.", ""]);
    window.until("a stored secret", &field, |found| (*found == kept).then_some(())).await;
    window.click(SAVE).await;
    window.until_content(DIALOG, "").await;

    // the search finds it, with its controls
    window.type_into("[data-testid=settings-search]", "deepseek").await;
    window.until_content("[data-testid=settings-found]", "1 setting for “deepseek”").await;
    window.until_content("[data-testid=endpoints] h2", "Accounts · Endpoints").await;
    window.press(&[key::ESCAPE]).await;
    window.press(&[key::ESCAPE]).await;

    window.fill_dialog(&ground.project(), "Use the other engine").await;
    choose(&window, "[data-testid=dialog-endpoint]", "gpt-at-work").await;
    let model = "return document.querySelector('[data-testid=dialog-model]').offsetParent === null";
    window.until("no choice of a model", model, |gone| (*gone == true).then_some(())).await;
    window.press(&[key::CONTROL, key::ENTER]).await;
    window.read("Done.").await;
    let row = window.row("an answer", |row| row.label == "Your turn").await;
    let view = window.view(&row.session).await;
    assert_eq!(view["row"]["endpoint"], "gpt-at-work");
    let seen = environment(&view);
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", "https://proxy.example.com/v1"),
        ("ANTHROPIC_AUTH_TOKEN", CANARY),
        ("ANTHROPIC_MODEL", "gpt-5.1"),
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "272000"),
        ("DISABLE_AUTO_COMPACT", "1"),
    ] {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
    let launches = ground.launches();
    assert_eq!(launches.matches("--model gpt-5.1").count(), 1, "{launches}");

    // nowhere else: not in the page, what it can ask for, the data, the log
    let page = window.run("return document.documentElement.outerHTML").await.to_string();
    let snapshot = window.invoke("snapshot", &json!({})).await.unwrap().to_string();
    let audit = window.invoke("audit", &json!({ "session": null })).await.unwrap().to_string();
    assert!(![page, snapshot, audit, ground.log()].iter().any(|text| text.contains(CANARY)));
    let refused = json!({ "endpoint": "gpt-at-work", "secret": format!("{CANARY} {CANARY}") });
    let refused = window.invoke("endpoint_secret_set", &refused).await.unwrap_err().to_string();
    assert!(refused.contains("spaces") && !refused.contains(CANARY), "{refused}");
    in_no_file(&ground.at("data"));

    // removed, after a second word: nothing offers it any more
    accounts_page(&window).await;
    window.click("[data-testid=endpoint-remove]").await;
    window.until_content("[data-testid=endpoint-remove]", "Remove it").await;
    window.click("[data-testid=endpoint-remove]").await;
    window.until_content(LINES, "").await;
    window.press(&[key::ESCAPE]).await;
    window.fill_dialog(&ground.project(), "And now").await;
    assert!(!window.has("[data-testid=dialog-endpoint]").await);
    window.quit(&ground).await;
    in_no_file(&ground.at("data"));
}

// proves: A-32
#[tokio::test]
async fn without_a_store_only_a_variable_or_a_command_is_offered() {
    let ground = Ground::new();
    ground.without_keyring();
    let window = ground.open().await;
    window.ready().await;
    accounts_page(&window).await;
    window.click("[data-testid=endpoint-add]").await;
    window
        .until_content(
            "[data-testid=endpoint-no-store]",
            "The system’s secret store does not answer. Omniscio keeps secrets nowhere else.",
        )
        .await;
    let offered = "return [...document.querySelectorAll('[data-testid=endpoint-source] option')]
        .map((option) => option.value)";
    assert_eq!(window.run(offered).await, json!(["variable", "command"]));
    assert!(!window.has(SECRET).await);
    fill(
        &window,
        &[
            ("name", "Kimi"),
            ("base-url", "https://api.example.com"),
            ("model", "kimi-k2"),
            ("window", "262144"),
            ("variable", "HOME"),
        ],
    )
    .await;
    window.press(&[key::ENTER]).await;
    window.until_content("[data-testid=endpoint-secret]", "Secret: from the variable HOME").await;
}
