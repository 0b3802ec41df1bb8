//! The page as the tests read it: rows, pills, the dialog. The only file that knows its marks.

use crate::driver::{LONG, Window, key};
use crate::ground::Ground;
use omniscio_core::ipc::AuditLine;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// A row of the list as a person sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Row {
    pub(crate) session: String,
    pub(crate) title: String,
    pub(crate) section: String,
    pub(crate) state: String,
    pub(crate) label: String,
    pub(crate) said: String,
    pub(crate) tip: String,
}

/// What the row showed at one moment (milliseconds since 1970).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Seen {
    pub(crate) at: i64,
    pub(crate) section: String,
    pub(crate) state: String,
    pub(crate) label: String,
    pub(crate) pill: String,
    pub(crate) strip: String,
}

/// Reads all rows, top to bottom.
pub(crate) const ROWS: &str =
    "return [...document.querySelectorAll('[data-testid=row]')].map((row) => ({
    session: row.dataset.session,
    title: row.querySelector('.title').textContent,
    section: row.closest('[data-testid=section]').dataset.section,
    state: row.dataset.state,
    label: row.querySelector('[data-testid=label]').textContent,
    said: row.getAttribute('aria-label'),
    tip: row.title,
}))";

/// The agent's words in the open session.
pub(crate) const REPLIES: &str = "return [...document.querySelectorAll('[data-testid=reply]')]
    .map((reply) => reply.innerText).join('\\n')";

/// The lines of the app's own in the open session, top to bottom.
pub(crate) const NOTES: &str =
    "return [...document.querySelectorAll('[data-testid=note]')].map((note) => note.textContent)";

pub(crate) const LIST: &str = "[data-testid=list]";
pub(crate) const PILL: &str = "[data-testid=pill]";
pub(crate) const PILL_TIP: &str = "[data-testid=pill-tooltip]";
pub(crate) const STRIP: &str = "[data-testid=strip]";
pub(crate) const FOLDER_BANNER: &str = "[data-testid=folder-banner]";
pub(crate) const SWITCH_BANNER: &str = "[data-testid=switch-banner]";
pub(crate) const CARD: &str = "[data-testid=card]";
pub(crate) const COMPOSER: &str = "#composer-text";
pub(crate) const FOLDER: &str = "[data-testid=dialog-folder]";
pub(crate) const TEXT: &str = "[data-testid=dialog-text]";
pub(crate) const START: &str = "[data-testid=dialog-start]";
pub(crate) const TRUST: &str = "[data-testid=trust-question]";

/// The rows in a value of [`ROWS`].
pub(crate) fn rows(value: &Value) -> Vec<Row> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The only row in a value of [`ROWS`], if it is there.
pub(crate) fn only_row(value: &Value) -> Option<Row> {
    let rows = rows(value);
    assert!(rows.len() < 2, "{rows:#?}");
    rows.into_iter().next()
}

impl Window {
    /// Waits for the first picture of the list.
    pub(crate) async fn ready(&self) {
        self.find(LIST).await;
    }

    /// Fills the new-session dialog as a person does, by keys, and does not start yet.
    pub(crate) async fn fill_dialog(&self, folder: &str, text: &str) {
        self.ready().await;
        self.press(&[key::CONTROL, 'n']).await;
        self.clear(FOLDER).await;
        self.type_into(FOLDER, folder).await;
        self.type_into(TEXT, text).await;
    }

    /// Starts a session by the dialog.
    pub(crate) async fn start_session(&self, folder: &str, text: &str) {
        self.fill_dialog(folder, text).await;
        self.press(&[key::CONTROL, key::ENTER]).await;
    }

    /// Makes a session as the dialog does, without its keys.
    pub(crate) async fn create(&self, folder: &str, account: &str, text: &str) {
        let command = json!({ "command": "create", "folder": folder, "text": text, "model": null,
            "permission_mode": null, "account": account, "user_settings_only": false });
        self.invoke("command", &json!({ "command": command })).await.unwrap();
    }

    /// Waits until the rows, top to bottom, are as wanted.
    pub(crate) async fn rows(&self, what: &str, wanted: impl Fn(&[Row]) -> bool) -> Vec<Row> {
        self.until(what, ROWS, |found| Some(rows(found)).filter(|found| wanted(found))).await
    }

    /// Waits until the only row is as wanted.
    pub(crate) async fn row(&self, what: &str, wanted: impl Fn(&Row) -> bool) -> Row {
        self.until(what, ROWS, |rows| only_row(rows).filter(|row| wanted(row))).await
    }

    /// Waits until the agent has said these words.
    pub(crate) async fn read(&self, words: &str) {
        self.until(words, REPLIES, |text| text.as_str()?.contains(words).then_some(())).await;
    }

    /// How many times the agent has said these words by now.
    pub(crate) async fn times(&self, words: &str) -> usize {
        let text = self.run(REPLIES).await;
        text.as_str().unwrap_or_default().matches(words).count()
    }

    /// The text of an element as it is in the page, shown or not; empty when it is not there.
    pub(crate) async fn content(&self, css: &str) -> String {
        let text = format!("return document.querySelector('{css}')?.textContent ?? ''");
        self.run(&text).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element's text, shown or not, is this; the empty text is that of none.
    pub(crate) async fn until_content(&self, css: &str, wanted: &str) {
        let text = format!("return document.querySelector('{css}')?.textContent ?? ''");
        self.until(wanted, &text, |text| (text == wanted).then_some(())).await;
    }

    /// Holds the pointer over the pill until its tooltip shows.
    pub(crate) async fn show_tip(&self) {
        self.hover(PILL).await;
        let seen = format!(
            "return getComputedStyle(document.querySelector('{PILL_TIP}')).visibility === 'visible'"
        );
        self.until("the tooltip", &seen, |seen| seen.as_bool()?.then_some(())).await;
    }

    /// Waits until the audit log of the session has so many entries with this reason and outcome.
    pub(crate) async fn until_audited(
        &self,
        session: &str,
        (reason, outcome): (&str, &str),
        times: usize,
    ) -> Vec<AuditLine> {
        let until = Instant::now() + LONG;
        loop {
            let mut lines = self.audit(session).await;
            lines.retain(|line| line.reason == reason && line.outcome.contains(outcome));
            if lines.len() >= times {
                return lines;
            }
            assert!(Instant::now() < until, "{reason}, {outcome}: {lines:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Where the pictures of the documentation are asked for, this is one.
    pub(crate) async fn picture_for_docs(&self, name: &str) {
        if std::env::var_os("OMNISCIO_PICTURES").is_some_and(|on| on == "1") {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
            std::fs::create_dir_all(&folder).unwrap();
            self.picture(&folder.join(name)).await;
        }
    }

    /// From now on the page itself notes every 50 ms, and at every change, what the only row shows.
    pub(crate) async fn watch_row(&self) {
        let script = format!(
            "const rows = () => {{ {ROWS} }};
             const text = (css) => document.querySelector(css)?.textContent ?? '';
             const note = () => {{
                 for (const {{ section, state, label }} of rows()) {{
                     const [pill, strip] = [text('{PILL}'), text('[data-testid=strip]')];
                     window.seen.push({{ at: Date.now(), section, state, label, pill, strip }});
                 }}
             }};
             window.seen = [];
             setInterval(note, 50);
             new MutationObserver(note).observe(document.body,
                 {{ subtree: true, childList: true, attributes: true, characterData: true }});"
        );
        self.run(&script).await;
    }

    /// What it noted, in order.
    pub(crate) async fn watched(&self) -> Vec<Seen> {
        serde_json::from_value(self.run("return window.seen").await).unwrap()
    }

    /// The facts of the session as the window gets them.
    pub(crate) async fn view(&self, session: &str) -> Value {
        let snapshot = self.invoke("snapshot", &json!({})).await.unwrap();
        let views = snapshot["rows"].as_array().unwrap();
        views.iter().find(|view| view["row"]["id"] == session).unwrap().clone()
    }

    /// The audit log of the session, oldest entry first.
    pub(crate) async fn audit(&self, session: &str) -> Vec<AuditLine> {
        let lines = self.invoke("audit", &json!({ "session": session })).await;
        let mut lines: Vec<AuditLine> = serde_json::from_value(lines.unwrap()).unwrap();
        lines.reverse();
        lines
    }

    /// Quits by the key and waits for the app's end.
    pub(crate) async fn quit(self, ground: &Ground) {
        let process = ground.app_process().unwrap();
        self.press_and_go(&[key::CONTROL, 'q']).await;
        Ground::until_ended(process);
    }
}
