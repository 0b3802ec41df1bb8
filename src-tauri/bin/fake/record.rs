//! What the stand-ins of a config folder were sent and what they answered, for tests that kill and look
//! afterwards: one line of JSON for each fact in `fake-record/lines`, while the folder `fake-record` is
//! there. It is only appended to, and changes nothing of what the stand-in does.

use crate::process;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The record of one process.
pub(crate) struct Record {
    lines: Option<File>,
    /// The app's session that this process was started for.
    session: String,
    /// Held as long as the process lives.
    _alone: Option<File>,
}

impl Record {
    /// Notes the start, and whether another process of the same session of the app still lives.
    pub(crate) fn open(config: &Path, cli_session: &str) -> Self {
        let folder = config.join("fake-record");
        let session = std::env::var("OMNISCIO_SESSION").unwrap_or_default();
        let to_append =
            |name: &str| OpenOptions::new().append(true).create(true).open(folder.join(name));
        let Ok(lines) = to_append("lines") else {
            return Self { lines: None, session, _alone: None };
        };
        // the system lets go of the lock when its holder is dead, and not before
        let alone = to_append(&format!("{session}.lock")).ok();
        let second = alone.as_ref().is_some_and(|lock| lock.try_lock().is_err());
        let record = Self { lines: Some(lines), session, _alone: alone };
        record.note(json!({"what": "start", "cli_session": cli_session, "second": second}));
        record
    }

    /// A line of the operator's came; `again`: it was answered before and is not run.
    pub(crate) fn heard(&self, uuid: Option<&str>, text: &str, again: bool) {
        self.note(json!({"what": "heard", "uuid": uuid, "text": text, "again": again}));
    }

    /// The messages with these uuids have their whole answer, the conversation holding so many of the
    /// operator's; the result is not written yet.
    pub(crate) fn answered(&self, uuids: &[String], text: &str, history: usize) {
        self.note(json!({"what": "answered", "uuids": uuids, "text": text, "history": history}));
    }

    fn note(&self, mut fact: Value) {
        let Some(mut lines) = self.lines.as_ref() else { return };
        fact["session"] = self.session.as_str().into();
        fact["pid"] = std::process::id().into();
        fact["start"] = process::start_ticks().into();
        // one write: a kill leaves a whole line or none
        if let Err(error) = lines.write_all(format!("{fact}\n").as_bytes()) {
            eprintln!("omniscio-fake-claude: cannot keep the record: {error}");
        }
    }
}
