//! A session from the dialog to its answer: streaming, a permission card, a restart of the app.

use crate::driver::key;
use crate::ground::Ground;
use crate::page::{self, CARD, COMPOSER, LIST, REPLIES, ROWS};
use serde_json::Value;

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
    let text = "Greet me [[fake: slow 900; say One two three four five six seven eight nine ten.]]";
    window.start_session(&ground.project(), text).await;
    let row = window.row("a running row", |row| row.label == "Running").await;
    assert_eq!(row.section, "Running");
    assert_eq!(window.title().await, format!("{} – Omniscio", row.title));
    // part of the answer is there before its end
    window
        .until("a growing answer", REPLIES, |text| {
            let text = text.as_str()?;
            (text.contains("One two") && !text.contains("ten.")).then_some(())
        })
        .await;
    window.read("nine ten.").await;
    window.row("its end", |row| row.section == "Needs You" && row.label == "Your turn").await;
    assert_eq!(window.times("One two three").await, 1);

    // a second message, by the composer
    window.type_into(COMPOSER, "Again [[fake: say Second answer.]]").await;
    window.press(&[key::ENTER]).await;
    window.read("Second answer.").await;
    window.row("its end", |row| row.label == "Your turn").await;
}

#[tokio::test]
async fn a_permission_is_asked_by_a_card_and_answered() {
    let mut ground = Ground::new();
    ground.account("default", &[BUILD]);
    let window = ground.open().await;
    window.start_session(&ground.project(), "Build the arm64 image as well").await;
    window.row("a permission", |row| row.label == "Permission").await;
    let card = window.text(CARD).await;
    assert!(card.contains("docker buildx create --use") && card.contains("Allow once"), "{card}");
    window.picture_for_docs("permission.png").await;
    window.click("[data-testid=card-option-1]").await;
    window.read("The builder is there.").await;
    window.row("its end", |row| row.label == "Your turn").await;
    assert!(!window.has(CARD).await);
}

#[tokio::test]
async fn a_restart_finds_all_as_it_was() {
    let ground = Ground::new();
    let window = ground.open().await;
    let ask = r#"Write it [[fake: say First words.; tool Write {"file_path":"notes.txt","content":"x"} ask; say Written.]]"#;
    window.start_session(&ground.project(), ask).await;
    let before = window.row("a permission", |row| row.label == "Permission").await;
    window.read("First words.").await;
    window.quit(&ground).await;

    let window = ground.open().await;
    let after = window.row("the row", |row| row.session == before.session).await;
    assert_eq!((&after.title, &after.label), (&before.title, &before.label));
    window.click("[data-testid=row]").await;
    window.read("First words.").await;
    assert_eq!(window.times("First words.").await, 1);
    let card = window.text(CARD).await;
    assert!(card.contains("notes.txt"), "{card}");
}

#[tokio::test]
async fn many_sessions_stand_in_their_sections() {
    let mut ground = Ground::new();
    for (project, _, script) in SESSIONS {
        ground.account(project, script);
        std::fs::create_dir(ground.at(project)).unwrap();
    }
    let window = ground.open().await;
    window.ready().await;
    for (project, text, _) in SESSIONS {
        let folder = ground.at(project).display().to_string();
        window.create(&folder, project, text).await;
    }
    let settled = |value: &Value| {
        let rows = page::rows(value);
        let shown: Vec<(&str, &str)> =
            rows.iter().map(|row| (row.section.as_str(), row.label.as_str())).collect();
        (shown == SHOWN).then_some(rows)
    };
    let rows = window.until("four states", ROWS, settled).await;
    let running = rows.iter().find(|row| row.label == "Running").unwrap();
    let row = format!("[data-testid=row][data-session='{}']", running.session);
    window.click(&row).await;
    window.read("src/jobs.rs").await;
    window.click(COMPOSER).await;
    window.picture_for_docs("main.png").await;
}

/// The list as it is to be, top to bottom.
const SHOWN: [(&str, &str); 4] = [
    ("Interrupted", "Recovery failed"),
    ("Needs You", "Permission"),
    ("Needs You", "Your turn"),
    ("Running", "Running"),
];

/// A day's work: project and account, first message, what the stand-in does.
const SESSIONS: [(&str, &str, &[&str]); 4] = [
    ("billing-api", "Fix the token refresh race", &["lost", "lost", "lost", "lost"]),
    ("ledger", "Migrate the queries to sqlx 0.9", &[MIGRATE]),
    ("images", "Build the arm64 image as well", &[BUILD]),
    ("website", "Write the notes of release 1.4", &[NOTES]),
];

const BUILD: &str = r#"say The builder for arm64 does not exist yet, so I create it first.; tool Bash {"command":"docker buildx create --use --name arm64","description":"Create a builder for arm64"} ask; say The builder is there."#;
const NOTES: &str =
    r"pause 1500; say ## Release 1.4\n\n- starts in half the time\n- **fixed**: a lost message";
const MIGRATE: &str = r#"think 300; say I go through the queries file by file, and run the tests after each one.; tool Read {"file_path":"src/db/queries.rs"}; tool Edit {"file_path":"src/db/queries.rs","old_string":"query(","new_string":"query_as("}; say The first file is done. Two more use the old macro:\n\n1. `src/db/pool.rs`\n2. `src/jobs.rs`; bash 600"#;
