//! Switch model: on a failed session beside Retry; it starts another one and leaves the old as it is.

use crate::driver::{Window, key};
use crate::ground::Ground;
use crate::page::{COMPOSER, PILL, ROWS, SWITCH_BANNER, rows};
use serde_json::json;

const DIALOG: &str = "[data-testid=switch-model-dialog]";
const SWITCH: &str = "[data-testid=switch-model]";
const TASK: &str = "Find the race in the token refresh";

/// Red at once: nobody gets further with this account.
const NO_CREDIT: &str =
    "say I look for the lock first.; api-error 400 billing_error Credit balance is too low";

// proves: RT-17, RT-26, UI-20
#[tokio::test]
async fn another_model_starts_over_and_the_failed_session_stays_as_it_is() {
    let mut ground = Ground::new();
    ground.account("default", &[NO_CREDIT]);
    let window = ground.open().await;
    window.start_session(&ground.project(), TASK).await;
    let failed = window.row("a red row", |row| row.label == "Recovery failed").await;
    window.until_content(PILL, "Retry").await;
    window.until_content(SWITCH, "Switch model").await;
    let place = format!(
        "const [header, banner, transcript] = ['.panel-header', '{SWITCH_BANNER}', '[role=log]']
            .map((css) => document.querySelector(css));
         const before = (a, b) => (a.compareDocumentPosition(b) & 4) !== 0;
         return before(header, banner) && before(banner, transcript);"
    );
    assert_eq!(window.run(&place).await, json!(true));
    window.picture_for_docs("switch-model-banner.png").await;

    // M opens it, but in the composer it is a letter; Escape closes it
    window.type_into(COMPOSER, "m").await;
    assert!(!window.has(DIALOG).await);
    window.clear(COMPOSER).await;
    window.press(&[key::ESCAPE]).await;
    window.press(&['m']).await;
    window.find(DIALOG).await;
    window.press(&[key::ESCAPE]).await;
    window.until_content(DIALOG, "").await;
    let before = window.read_view(&failed.session).await;
    let entries = window.audit(&failed.session).await.len();

    // by keys alone: the second model of the list, then Enter
    window.click(SWITCH).await;
    let dialog = window.text(DIALOG).await;
    assert!(dialog.contains("Sonnet") && !dialog.contains("Opus"), "without its own: {dialog}");
    window.picture_for_docs("switch-model.png").await;
    window.run("document.getElementById('switch-model-first').focus()").await;
    window.press(&[key::DOWN]).await;
    ground.account("default", &["say A fresh start with the same task."]);
    window.press(&[key::ENTER]).await;
    window.read("A fresh start with the same task.").await;
    window.until_content(DIALOG, "").await;
    assert!(!window.has(SWITCH_BANNER).await, "the new session has not failed");

    let shown = rows(&window.run(ROWS).await);
    assert_eq!(shown.len(), 2, "{shown:#?}");
    let open =
        window.run("return document.querySelector('[data-testid=panel]').dataset.session").await;
    assert_ne!(open, json!(failed.session));
    let launches = ground.launches();
    assert_eq!(launches.matches("--model haiku").count(), 1, "{launches}");
    let first = window.content("[data-testid=operator]").await;
    assert!(first.contains(TASK), "{first}");

    // the old one: every fact as it was, nothing written about it
    assert_eq!(window.view(&failed.session).await["row"], before["row"]);
    assert_eq!(window.audit(&failed.session).await.len(), entries);
}

impl Window {
    /// The facts of the session once the person has seen it.
    async fn read_view(&self, session: &str) -> serde_json::Value {
        loop {
            let view = self.view(session).await;
            if view["row"]["unread"] == json!(false) {
                return view;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}
