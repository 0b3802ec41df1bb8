//! Counts the attempts at a message across restarts, so that "fail twice, then work" spans relaunches.
//!
//! One small file per session in the folder `fake-state` of the config folder. A fork takes a copy of its
//! parent's. A replay of a first message comes as a new session: it takes over the file of a dead session of
//! the same folder that left the same message unanswered. It never looks at transcripts.

use crate::{process, script};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// How the sentence begins by which Omniscio continues a cut-off reply (A-04 c).
pub(crate) const CONTINUE: &str = "Your reply to my last message was cut off.";

/// One attempt at answering.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// The operator's message this attempt answers: of a continuation, the message it continues.
    pub(crate) text: String,
    /// 1 = the first attempt at this message.
    pub(crate) number: u32,
    /// The message was a continuation of a cut-off reply.
    pub(crate) continued: bool,
    /// How many attempts this session (with its forks) made before: the line of the script file.
    pub(crate) index: u64,
}

/// The counter of one session.
pub(crate) struct Attempts {
    folder: PathBuf,
    session_id: String,
    slug: String,
    made: u64,
    /// The message without a good answer, and the attempts at it.
    open: Option<(String, u32)>,
    /// The uuids of messages with a good answer: the CLI does not run them again.
    answered: Vec<String>,
    /// Some message, with or without a uuid, got a good answer.
    answered_any: bool,
    fresh: bool,
}

impl Attempts {
    /// The counter of `session_id`; where it has none, a copy of that of `parent`.
    pub(crate) fn load(config: &Path, session_id: &str, parent: Option<&str>, slug: &str) -> Self {
        let folder = config.join("fake-state");
        let stored = [Some(session_id), parent]
            .into_iter()
            .flatten()
            .find_map(|id| read(&file(&folder, id)));
        let fresh = stored.is_none();
        let stored = stored.unwrap_or_default();
        Self {
            session_id: session_id.to_owned(),
            slug: slug.to_owned(),
            made: stored["made"].as_u64().unwrap_or(0),
            open: open_of(&stored),
            answered: answered_of(&stored),
            answered_any: stored["answered_any"] == true,
            fresh,
            folder,
        }
    }

    /// What the next attempt at `text` is, without counting it.
    pub(crate) fn peek(&mut self, text: &str) -> Attempt {
        if self.fresh {
            self.adopt(text);
        }
        let (answered, tries, continued) = match &self.open {
            Some((open, tries)) if text.starts_with(CONTINUE) => (open.clone(), *tries, true),
            Some((open, tries)) if same(open, text) => (open.clone(), *tries, false),
            Some(_) | None => (text.to_owned(), 0, false),
        };
        Attempt { text: answered, number: tries + 1, continued, index: self.made }
    }

    /// Counts the attempt, on disk, before anything of it is shown.
    pub(crate) fn begin(&mut self, attempt: &Attempt) {
        self.made = attempt.index + 1;
        self.open = Some((attempt.text.clone(), attempt.number));
        self.fresh = false;
        self.save();
    }

    /// The message, sent under these uuids, has its good answer.
    pub(crate) fn settle(&mut self, uuids: &[String]) {
        self.answered.extend_from_slice(uuids);
        self.answered_any = true;
        self.drop_open();
    }

    /// The operator stopped the turn: what comes next is another message.
    pub(crate) fn drop_open(&mut self) {
        self.open = None;
        self.save();
    }

    /// The uuids of messages with a good answer.
    pub(crate) fn answered(&self) -> &[String] {
        &self.answered
    }

    /// Whether the session ever gave a good answer.
    pub(crate) fn answered_any(&self) -> bool {
        self.answered_any
    }

    fn adopt(&mut self, text: &str) {
        self.fresh = false;
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
        {
            let Some(stored) = read(&path) else { continue };
            let orphaned = stored["pid"].as_u64().is_none_or(|pid| !process::alive(pid));
            let open = open_of(&stored);
            let wanted = open.as_ref().is_some_and(|(open, _)| same(open, text));
            // the rename is the claim: of two sessions only one gets it
            if orphaned
                && wanted
                && stored["slug"] == *self.slug
                && fs::rename(&path, self.file()).is_ok()
            {
                self.made = stored["made"].as_u64().unwrap_or(0);
                self.open = open;
                self.answered = answered_of(&stored);
                self.answered_any = stored["answered_any"] == true;
                return;
            }
        }
    }

    fn file(&self) -> PathBuf {
        file(&self.folder, &self.session_id)
    }

    fn save(&self) {
        let open = self.open.as_ref().map(|(text, tries)| json!({"text": text, "tries": tries}));
        let state = json!({"slug": self.slug, "made": self.made, "open": open,
            "answered": self.answered, "answered_any": self.answered_any, "pid": std::process::id()});
        let part = self.file().with_extension("part");
        fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, state.to_string()))
            .and_then(|()| fs::rename(&part, self.file()))
            .unwrap_or_else(|error| {
                eprintln!("omniscio-fake-claude: cannot keep the attempt counter: {error}")
            });
    }
}

fn file(folder: &Path, session_id: &str) -> PathBuf {
    folder.join(format!("{session_id}.json"))
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

fn open_of(stored: &Value) -> Option<(String, u32)> {
    let open = &stored["open"];
    Some((open["text"].as_str()?.to_owned(), u32::try_from(open["tries"].as_u64()?).ok()?))
}

fn answered_of(stored: &Value) -> Vec<String> {
    let uuids = stored["answered"].as_array().into_iter().flatten();
    uuids.filter_map(|uuid| uuid.as_str().map(str::to_owned)).collect()
}

/// The same message again: as it was, or at the end of a hand-over, or by its directive.
fn same(open: &str, text: &str) -> bool {
    let tail = |of: &str| of.rfind(script::OPEN).map(|at| of[at..].trim().to_owned());
    text.trim().ends_with(open.trim()) || tail(open).is_some_and(|open| tail(text) == Some(open))
}
