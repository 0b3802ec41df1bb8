//! The first minutes of a newcomer: no CLI yet, or the rehearsal on the bundled stand-in.

use crate::driver::Window;
use crate::ground::{APP, Ground};

#[tokio::test]
async fn a_rehearsed_session_is_cut_off_and_recovers_while_one_watches() {
    let ground = Ground::new();
    let mut env = ground.env();
    // with its own limits, as a newcomer has them
    env.retain(|(name, _)| name != "OMNISCIO_LIMITS");
    let window = Window::open(APP, &["--fake".to_owned()], &env).await;
    window.ready().await;
    assert_eq!(window.text("[data-testid=fake]").await, "Rehearsal");
    window.start_session(&ground.project(), "Hello").await;
    let row = window.row("its end", |row| row.label == "Your turn").await;
    window.read("the answer is here anyway").await;
    let audit = window.audit(&row.session).await;
    assert!(audit.iter().any(|line| line.reason == "response-aborted"), "{audit:#?}");
    // the data of real sessions is not touched
    assert!(ground.at("data-rehearsal/omniscio.db").exists());
    assert!(!ground.at("data/omniscio.db").exists());
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
