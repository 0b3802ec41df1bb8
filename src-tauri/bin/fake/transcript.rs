//! The session's transcript file, in the shape of the real one as far as it matters: found by session id over
//! all project folders, one JSON line per message, ordered by the `parentUuid` chain. Append-only.

use crate::{clock, ids, protocol};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder name the CLI gives to a working folder: every character outside `[A-Za-z0-9]` becomes `-`.
pub(crate) fn slug(cwd: &str) -> String {
    let plain: String =
        cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if plain.len() <= 200 {
        return plain;
    }
    let hash = cwd.bytes().fold(5381_u64, |hash, byte| hash.wrapping_mul(33) ^ u64::from(byte));
    format!("{}-{:06x}", &plain[..200], hash & 0xff_ffff)
}

/// The transcript of `session_id`, in whichever project folder it is. An empty file is none.
pub(crate) fn find(config: &Path, session_id: &str) -> Option<PathBuf> {
    let projects = fs::read_dir(config.join("projects")).ok()?;
    let files = projects.flatten().map(|folder| folder.path().join(format!("{session_id}.jsonl")));
    files.into_iter().find(|file| fs::metadata(file).is_ok_and(|facts| facts.len() > 0))
}

/// The conversation of one session: what is in the file, and what a fork still has to write into it.
pub(crate) struct Transcript {
    path: PathBuf,
    session_id: String,
    cwd: String,
    chain: Vec<Value>,
    /// Lines of the chain that are not in the file yet.
    unwritten: usize,
}

impl Transcript {
    /// An empty conversation; the file comes with the first message.
    pub(crate) fn new(config: &Path, session_id: &str, cwd: &str) -> Self {
        let path = config.join("projects").join(slug(cwd)).join(format!("{session_id}.jsonl"));
        Self {
            path,
            session_id: session_id.to_owned(),
            cwd: cwd.to_owned(),
            chain: Vec::new(),
            unwritten: 0,
        }
    }

    /// Takes the history of `source`, cut after the message `until`. `None` when that message is not there.
    /// A fork copies it into its own file; a plain resume goes on in `source`, whichever folder it is in.
    pub(crate) fn load(&mut self, source: &Path, until: Option<&str>, fork: bool) -> Option<()> {
        // a torn last line is tolerated, as by the real CLI
        let text = fs::read(source)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let lines: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let last = lines.iter().rev().find_map(|line: &Value| line["uuid"].as_str());
        let mut next = until.or(last).map(str::to_owned);
        while let Some(uuid) = next {
            let line = lines.iter().rev().find(|line| line["uuid"] == uuid.as_str());
            if line.is_none() && self.chain.is_empty() && until.is_some() {
                return None;
            }
            next = line.and_then(|line| line["parentUuid"].as_str()).map(str::to_owned);
            self.chain.extend(line.cloned());
            if self.chain.len() > lines.len() {
                break; // a chain in a circle
            }
        }
        self.chain.reverse();
        if !fork {
            source.clone_into(&mut self.path);
            return Some(());
        }
        for line in &mut self.chain {
            line["forkedFrom"] =
                json!({"sessionId": line["sessionId"], "messageUuid": line["uuid"]});
            line["sessionId"] = self.session_id.clone().into();
        }
        self.unwritten = self.chain.len();
        Some(())
    }

    /// Whether the session has a file.
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Adds a `user` line.
    pub(crate) fn user(&mut self, uuid: &str, content: &Value, synthetic: bool) {
        self.close_cut_off_calls(content);
        let message = json!({"role": "user", "content": content});
        self.append(json!({"type": "user", "uuid": uuid, "message": message, "isMeta": synthetic}));
    }

    /// Adds an `assistant` line, `extra` being the fields of an API error.
    pub(crate) fn assistant(&mut self, uuid: &str, message: &Value, extra: &Value) {
        let mut line = json!({"type": "assistant", "uuid": uuid, "message": message});
        if let (Some(fields), Some(extra)) = (line.as_object_mut(), extra.as_object()) {
            fields.extend(extra.clone());
        }
        self.append(line);
    }

    /// A tool call without a result gets one before the next message: nobody knows how it ended.
    fn close_cut_off_calls(&mut self, content: &Value) {
        let answered: HashSet<String> =
            self.chain.iter().flat_map(|line| parts(line, "tool_result", "tool_use_id")).collect();
        let open = self.chain.iter().flat_map(|line| parts(line, "tool_use", "id"));
        let open: Vec<String> = open.filter(|id| !answered.contains(id)).collect();
        let being_answered = content
            .as_array()
            .is_some_and(|parts| parts.iter().any(|p| p["type"] == "tool_result"));
        for id in open.into_iter().filter(|_| !being_answered) {
            let result = json!([{"type": "tool_result", "tool_use_id": id, "is_error": true,
                "content": "The tool call was interrupted and its outcome is unknown."}]);
            let message = json!({"role": "user", "content": result});
            self.append(
                json!({"type": "user", "uuid": ids::uuid(), "message": message, "isMeta": true}),
            );
        }
    }

    fn append(&mut self, mut line: Value) {
        line["parentUuid"] = self.chain.last().map_or(Value::Null, |last| last["uuid"].clone());
        line["sessionId"] = self.session_id.clone().into();
        line["cwd"] = self.cwd.clone().into();
        line["timestamp"] = clock::timestamp().into();
        line["version"] = protocol::VERSION.into();
        line["isSidechain"] = false.into();
        self.chain.push(line);
        self.unwritten += 1;
        // an unwritable folder is not reported, as by the real CLI (field guide 0.22)
        if self.flush().is_ok() {
            self.unwritten = 0;
        }
    }

    fn flush(&self) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut text = String::new();
        for line in &self.chain[self.chain.len() - self.unwritten..] {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(text.as_bytes())
    }

    /// How many messages the operator has sent in this conversation.
    pub(crate) fn operator_messages(&self) -> usize {
        self.chain.iter().filter(|line| is_operator(line)).count()
    }

    /// How many tool calls the conversation holds behind the operator's message `text` (or the last of the
    /// messages that were merged into it).
    pub(crate) fn calls_since(&self, text: &str) -> usize {
        let asked = |line: &Value| {
            is_operator(line) && text.contains(&text_of(&line["message"]["content"]))
        };
        let from = self.chain.iter().rposition(asked).unwrap_or(self.chain.len());
        self.chain[from..].iter().map(|line| parts(line, "tool_use", "id").count()).sum()
    }
}

/// A message the operator wrote: no tool result, nothing the CLI put in.
fn is_operator(line: &Value) -> bool {
    line["type"] == "user"
        && line["isMeta"] != true
        && parts(line, "tool_result", "tool_use_id").next().is_none()
}

/// The field `field` of every content part of the given kind.
fn parts<'a>(line: &'a Value, kind: &'a str, field: &'a str) -> impl Iterator<Item = String> + 'a {
    let content = line["message"]["content"].as_array().into_iter().flatten();
    content
        .filter(move |part| part["type"] == kind)
        .filter_map(move |part| part[field].as_str().map(str::to_owned))
}

/// The text of a message's content: a string, or its text parts joined.
pub(crate) fn text_of(content: &Value) -> String {
    match content.as_array() {
        Some(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        None => content.as_str().unwrap_or_default().to_owned(),
    }
}
