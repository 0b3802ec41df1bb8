//! The page as the tests read it: rows, pills, the dialog. The only file that knows its marks.

use crate::driver::{Window, key};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// A row of the list as a person sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Row {
    pub(crate) session: String,
    pub(crate) title: String,
    pub(crate) section: String,
    pub(crate) state: String,
    pub(crate) label: String,
    pub(crate) said: String,
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
}))";

/// The words of the transcript.
pub(crate) const TRANSCRIPT: &str =
    "return document.querySelector('[data-testid=transcript]')?.innerText ?? ''";

pub(crate) const LIST: &str = "[data-testid=list]";
pub(crate) const PILL: &str = "[data-testid=pill]";
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

    /// Waits until the only row is as wanted.
    pub(crate) async fn row(&self, what: &str, wanted: impl Fn(&Row) -> bool) -> Row {
        self.until(what, ROWS, |rows| only_row(rows).filter(|row| wanted(row)))
            .await
    }

    /// Waits until the transcript holds these words.
    pub(crate) async fn read(&self, words: &str) {
        self.until(words, TRANSCRIPT, |text| {
            text.as_str()?.contains(words).then_some(())
        })
        .await;
    }

    /// How many times the transcript holds these words now.
    pub(crate) async fn times(&self, words: &str) -> usize {
        let text = self.run(TRANSCRIPT).await;
        text.as_str().unwrap_or_default().matches(words).count()
    }

    /// Where the pictures of the documentation are asked for, this is one.
    pub(crate) async fn picture_for_docs(&self, name: &str) {
        if std::env::var_os("OMNISCIO_PICTURES").is_some_and(|on| on == "1") {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
            std::fs::create_dir_all(&folder).unwrap();
            self.picture(&folder.join(name)).await;
        }
    }

    /// From now on, the page itself notes every 100 ms, and at every change, what the row shows.
    pub(crate) async fn watch_row(&self) {
        let script = format!(
            "const rows = () => {{ {ROWS} }};
             const note = () => {{
                 for (const {{ section, state, label }} of rows()) {{
                     const pill = document.querySelector('{PILL}')?.textContent ?? '';
                     const strip = document.querySelector('[data-testid=strip]')?.textContent ?? '';
                     const seen = JSON.stringify({{ section, state, label, pill, strip }});
                     window.samples += 1;
                     if (window.seen.at(-1) !== seen) window.seen.push(seen);
                 }}
             }};
             window.seen = []; window.samples = 0;
             setInterval(note, 100);
             new MutationObserver(note).observe(document.body,
                 {{ subtree: true, childList: true, attributes: true, characterData: true }});"
        );
        self.run(&script).await;
    }

    /// What it noted: each state once, in order, and how often it looked.
    pub(crate) async fn watched(&self) -> (Vec<Value>, u64) {
        let seen = self.run("return window.seen.map(JSON.parse)").await;
        let samples = self.run("return window.samples").await;
        let Value::Array(seen) = seen else {
            panic!("{seen}")
        };
        (seen, samples.as_u64().unwrap())
    }

    /// The reasons in the audit log of the session, oldest first.
    pub(crate) async fn reasons(&self, session: &str) -> Vec<String> {
        let lines = self.invoke("audit", &json!({ "session": session })).await;
        let lines = lines.unwrap();
        let reason = |line: &Value| format!("{}: {}", line["reason"], line["outcome"]);
        lines.as_array().unwrap().iter().rev().map(reason).collect()
    }
}
