//! A session from the dialog to its answer: streaming, a permission card, a restart of the app.

use crate::driver::{Window, key};
use crate::ground::Ground;
use crate::page::{self, CARD, COMPOSER, LIST, ROWS, TRANSCRIPT};
use serde_json::{Value, json};

#[tokio::test]
async fn the_window_is_not_blank() {
    let ground = Ground::new();
    let window = ground.open().await;
    window.find(LIST).await;
    let text = window.text("body").await;
    assert!(text.contains("Start your first session"), "{text}");
    assert!(!window.has("[data-testid=trouble]").await, "{text}");
    assert_eq!(window.title().await, "Omniscio");
    let version = "return document.body.innerText";
    window
        .until("the CLI's version", version, |text| {
            text.as_str()?.contains("Found claude 2.").then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_session_is_started_by_keys_and_its_answer_streams() {
    let ground = Ground::new();
    let window = ground.open().await;
    let text = "Greet me [[fake: slow 150; say One two three four five six seven eight nine ten.]]";
    window.start_session(&ground.project(), text).await;
    let row = window
        .row("a running row", |row| row.label == "Running")
        .await;
    assert_eq!(row.section, "Running");
    assert_eq!(window.title().await, format!("{} – Omniscio", row.title));
    // part of the answer is there before its end
    window
        .until("a growing answer", TRANSCRIPT, |text| {
            let text = text.as_str()?;
            (text.contains("One two") && !text.contains("ten.")).then_some(())
        })
        .await;
    window.read("nine ten.").await;
    window
        .row("its end", |row| {
            row.section == "Needs You" && row.label == "Your turn"
        })
        .await;
    assert_eq!(window.times("One two three").await, 1);

    // a second message, by the composer
    window
        .type_into(COMPOSER, "Again [[fake: say Second answer.]]")
        .await;
    window.press(&[key::ENTER]).await;
    window.read("Second answer.").await;
    window.row("its end", |row| row.label == "Your turn").await;
}

#[tokio::test]
async fn a_permission_is_asked_by_a_card_and_answered() {
    let ground = Ground::new();
    let window = ground.open().await;
    let ask = r#"Write it [[fake: tool Write {"file_path":"notes.txt","content":"x"} ask; say Written.]]"#;
    window.start_session(&ground.project(), ask).await;
    window
        .row("a permission", |row| row.label == "Permission")
        .await;
    let card = window.text(CARD).await;
    assert!(
        card.contains("notes.txt") && card.contains("Allow once"),
        "{card}"
    );
    window.picture_for_docs("permission.png").await;
    window.click("[data-testid=card-option-1]").await;
    window.read("Written.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    assert!(!window.has(CARD).await);
}

#[tokio::test]
async fn a_restart_finds_all_as_it_was() {
    let ground = Ground::new();
    let window = ground.open().await;
    let ask = r#"Write it [[fake: say First words.; tool Write {"file_path":"notes.txt","content":"x"} ask; say Written.]]"#;
    window.start_session(&ground.project(), ask).await;
    let before = window
        .row("a permission", |row| row.label == "Permission")
        .await;
    window.read("First words.").await;
    let process = ground.app_process().unwrap();
    window.press(&[key::CONTROL, 'q']).await;
    Ground::until_ended(process);
    drop(window);

    let window = ground.open().await;
    let after = window
        .row("the row", |row| row.session == before.session)
        .await;
    assert_eq!((&after.title, &after.label), (&before.title, &before.label));
    window.click("[data-testid=row]").await;
    window.read("First words.").await;
    assert_eq!(window.times("First words.").await, 1);
    let card = window.text(CARD).await;
    assert!(card.contains("notes.txt"), "{card}");
}

#[tokio::test]
async fn many_sessions_stand_in_their_sections() {
    let ground = Ground::new();
    let window = ground.open().await;
    for (folder, text) in SESSIONS {
        let folder = ground.at(folder);
        std::fs::create_dir_all(&folder).unwrap();
        window.create(&folder.display().to_string(), text).await;
    }
    let listed = |value: &Value| {
        let rows = page::rows(value);
        let label = |title: &str| {
            rows.iter()
                .find(|row| row.title.contains(title))
                .map(|row| row.label.clone())
        };
        let settled = label("token refresh")? == "Recovery failed"
            && label("sqlx")? == "Running"
            && label("docker")? == "Permission"
            && label("release notes")? == "Your turn";
        settled.then_some(rows)
    };
    let rows = window.until("four states", ROWS, listed).await;
    let sections: Vec<&str> = rows.iter().map(|row| row.section.as_str()).collect();
    assert_eq!(
        sections,
        ["Interrupted", "Needs You", "Needs You", "Running"]
    );
    let running = rows.iter().find(|row| row.label == "Running").unwrap();
    window
        .click(&format!(
            "[data-testid=row][data-session='{}']",
            running.session
        ))
        .await;
    window.read("migrate").await;
    window.picture_for_docs("main.png").await;
}

/// Project folder and first message of a day's work.
const SESSIONS: [(&str, &str); 4] = [
    (
        "billing-api",
        "Fix the token refresh race [[fake: fail-first 9 kill; say Done.]]",
    ),
    ("ledger", MIGRATE),
    (
        "images",
        r#"Build the docker image [[fake: tool Bash {"command":"docker buildx create --use","description":"Create a builder"} ask; say Done.]]"#,
    ),
    (
        "website",
        r"Write the release notes [[fake: say ## Release 1.4\n\n- faster start\n- **fixed**: lost messages]]",
    ),
];

const MIGRATE: &str = r#"Migrate the queries to sqlx 0.9 [[fake: think 200; say I will migrate the queries file by file, and run the tests after each.; tool Read {"file_path":"src/db/queries.rs"}; tool Edit {"file_path":"src/db/queries.rs","old_string":"query(","new_string":"query_as("}; say The first file is done. Next:\n\n1. `src/db/pool.rs`\n2. `src/jobs.rs`; bash 600]]"#;

impl Window {
    /// Makes a session as the dialog does, without its keys.
    async fn create(&self, folder: &str, text: &str) {
        let command = json!({ "command": "create", "folder": folder, "text": text, "model": null,
            "permission_mode": null, "account": null, "user_settings_only": false });
        self.invoke("command", &json!({ "command": command }))
            .await
            .unwrap();
    }
}
