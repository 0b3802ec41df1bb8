//! What the CLI's own transcript of a conversation holds (field guide 7.1), read line by line in
//! bounded memory. It never writes to it, and takes no line for more than it says.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A longer line is passed over: it counts as [`TailKind::Other`] and its uuid is not seen.
const LINE_MAX_BYTES: usize = 32 * 1024 * 1024;

/// What the last line of the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailKind {
    /// There is no conversation line.
    Nothing,
    /// A user's message, not answered yet.
    UserMessage,
    /// Results of tools, not answered yet.
    ToolResult,
    /// An assistant's block that calls a tool.
    ToolCall,
    /// Any other block of the assistant.
    Assistant,
    /// A line of the conversation that is none of these.
    Other,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptFacts {
    /// A file of this name is there, whatever it holds.
    pub file: bool,
    /// The CLI can resume this conversation: the file holds at least one whole line of it.
    pub exists: bool,
    /// Length of the file.
    pub bytes: u64,
    /// Those of the asked uuids that stand in it as user messages or lines of the model, in the order asked.
    pub present: Vec<String>,
    /// uuid of the last assistant line that a model wrote on the main thread.
    pub last_assistant_uuid: Option<String>,
    /// What the last conversation line of the main thread is.
    pub tail: TailKind,
}

/// Looks for the transcript of `session_id` in every project of `config_dir` and reads which of
/// `message_uuids` it holds. An error means that this cannot be known now.
pub fn transcript(
    config_dir: &Path,
    session_id: &str,
    message_uuids: &[String],
) -> io::Result<TranscriptFacts> {
    let mut facts = TranscriptFacts {
        file: false,
        exists: false,
        bytes: 0,
        present: Vec::new(),
        last_assistant_uuid: None,
        tail: TailKind::Nothing,
    };
    let Some((path, bytes)) = newest(config_dir, session_id)? else {
        return Ok(facts);
    };
    (facts.file, facts.bytes) = (true, bytes);
    let mut seen = BTreeSet::new();
    each_line(BufReader::new(File::open(path)?), LINE_MAX_BYTES, |line| {
        read_line(line, message_uuids, &mut seen, &mut facts);
    })?;
    facts.present = message_uuids.iter().filter(|uuid| seen.contains(*uuid)).cloned().collect();
    Ok(facts)
}

/// Project folders collide and move: the id tells the file. Of several, one that is not empty, and
/// of those the one written last.
fn newest(config_dir: &Path, session_id: &str) -> io::Result<Option<(PathBuf, u64)>> {
    // an id is no path
    if session_id.is_empty() || session_id.contains(['/', '\0']) {
        return Ok(None);
    }
    let projects = match fs::read_dir(config_dir.join("projects")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        projects => projects?,
    };
    let mut best: Option<((bool, SystemTime), PathBuf, u64)> = None;
    for project in projects {
        let path = project?.path().join(format!("{session_id}.jsonl"));
        let found = match fs::metadata(&path) {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                continue;
            }
            found => found?,
        };
        let rank = (found.len() > 0, found.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        if best.as_ref().is_none_or(|(other, ..)| rank > *other) {
            best = Some((rank, path, found.len()));
        }
    }
    Ok(best.map(|(_, path, bytes)| (path, bytes)))
}

/// Gives every line without its end; an empty one stands for a line longer than `max`.
fn each_line(mut from: impl BufRead, max: usize, mut give: impl FnMut(&[u8])) -> io::Result<()> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let piece = match from.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        let end = piece.iter().position(|&byte| byte == b'\n');
        let text = &piece[..end.unwrap_or(piece.len())];
        too_long |= line.len() + text.len() > max;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(text);
        }
        let used = end.map_or(piece.len(), |end| end + 1);
        if end.is_some() || (used == 0 && (too_long || !line.is_empty())) {
            give(&line);
            line.clear();
            too_long = false;
        }
        if used == 0 {
            return Ok(());
        }
        from.consume(used);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
}

fn read_line(
    line: &[u8],
    wanted: &[String],
    seen: &mut BTreeSet<String>,
    facts: &mut TranscriptFacts,
) {
    // a torn last line and what we do not know are no part of the conversation
    let Ok(entry) = serde_json::from_slice::<Entry>(line) else {
        return;
    };
    if entry.is_sidechain {
        return;
    }
    let message = entry.message.and_then(|raw| serde_json::from_str::<Message>(raw.get()).ok());
    let last_block = message.as_ref().and_then(|message| last_block(message.content?));
    match entry.kind.as_str() {
        "user" => {
            facts.exists |= entry.uuid.is_some();
            facts.tail = match last_block.as_deref() {
                Some("tool_result") => TailKind::ToolResult,
                Some(_) => TailKind::UserMessage,
                None => TailKind::Other,
            };
            seen.extend(entry.uuid.filter(|uuid| wanted.contains(uuid)));
        }
        "assistant" => {
            facts.exists |= entry.uuid.is_some();
            facts.tail = match last_block.as_deref() {
                Some("tool_use") => TailKind::ToolCall,
                Some(_) | None => TailKind::Assistant,
            };
            let synthetic = message.is_some_and(|m| m.model.as_deref() == Some("<synthetic>"));
            if let Some(uuid) = entry.uuid.filter(|_| !synthetic) {
                seen.extend(Some(uuid.clone()).filter(|uuid| wanted.contains(uuid)));
                facts.last_assistant_uuid = Some(uuid);
            }
        }
        _ => {}
    }
}

/// The type of the last content block; plain text counts as a block of text.
fn last_block(content: &RawValue) -> Option<String> {
    if content.get().starts_with('"') {
        return Some("text".to_string());
    }
    serde_json::from_str::<Vec<Block>>(content.get()).ok()?.pop().map(|block| block.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SID: &str = "5a1d0c1e-0000-4000-8000-000000000001";

    fn config(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (project, text) in files {
            let folder = home.path().join("projects").join(project);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{SID}.jsonl")), text).unwrap();
        }
        home
    }

    fn ask(files: &[(&str, &str)]) -> TranscriptFacts {
        let asked = ["u1", "u2", "u3"].map(str::to_string);
        transcript(config(files).path(), SID, &asked).unwrap()
    }

    const USER: &str = r#"{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}"#;
    const TEXT: &str = r#"{"type":"assistant","uuid":"a1","message":{"model":"m","content":[{"type":"text","text":"x"}]}}"#;
    const CALL: &str = r#"{"type":"assistant","uuid":"a2","message":{"model":"m","content":[{"type":"tool_use","id":"t"}]}}"#;
    const DONE: &str = r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","content":"u3"}]}}"#;
    const ERROR: &str = r#"{"type":"assistant","uuid":"a3","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}"#;
    const SIDE: &str =
        r#"{"type":"user","uuid":"u2","isSidechain":true,"message":{"content":"sub"}}"#;
    const QUEUE: &str = r#"{"type":"queue-operation","uuid":"u2","content":"u2"}"#;

    // proves: A-04
    #[test]
    fn uuids_are_those_of_user_lines_of_the_main_thread() {
        let facts = ask(&[("p", &[QUEUE, USER, TEXT, SIDE, CALL, DONE, ERROR].join("\n"))]);
        assert!(facts.exists);
        assert_eq!(facts.present, ["u1"]);
        assert_eq!(facts.last_assistant_uuid.as_deref(), Some("a2"));
        assert_eq!(facts.tail, TailKind::Assistant);
    }

    #[test]
    fn the_tail_is_the_last_conversation_line() {
        for (lines, tail) in [
            (vec![QUEUE], TailKind::Nothing),
            (vec![TEXT, USER], TailKind::UserMessage),
            (vec![USER, TEXT, QUEUE], TailKind::Assistant),
            (vec![USER, CALL], TailKind::ToolCall),
            (vec![USER, CALL, DONE, SIDE], TailKind::ToolResult),
            (vec![USER, r#"{"type":"user","message":7}"#], TailKind::Other),
        ] {
            assert_eq!(ask(&[("p", &lines.join("\n"))]).tail, tail, "{lines:?}");
        }
    }

    #[test]
    fn a_line_torn_anywhere_is_no_line() {
        for cut in 0..USER.len() {
            let facts = ask(&[("p", &format!("{TEXT}\n{}", &USER[..cut]))]);
            assert_eq!((facts.present.len(), facts.tail), (0, TailKind::Assistant), "cut at {cut}");
        }
        assert_eq!(
            ask(&[("p", &format!("{TEXT}\n{USER}"))]).present,
            ["u1"],
            "whole, without its end"
        );
    }

    #[test]
    fn the_conversation_is_found_by_its_id_alone() {
        assert!(!ask(&[]).exists);
        let empty = ask(&[("p", "")]);
        assert_eq!(
            (empty.exists, empty.bytes),
            (false, 0),
            "the CLI does not resume an empty file"
        );
        for files in [[("a", ""), ("b", USER)], [("a", USER), ("b", "")]] {
            assert_eq!(ask(&files).present, ["u1"]);
        }
        let home = config(&[("p", USER)]);
        for id in ["", "../p", "other"] {
            assert!(!transcript(home.path(), id, &[]).unwrap().exists, "{id}");
        }
    }

    #[test]
    fn a_line_beyond_the_bound_is_passed_over_and_the_next_one_read() {
        let mut lines = Vec::new();
        let text = format!("short\n{}\nnext\n\nlast", "x".repeat(100));
        let tiny = BufReader::with_capacity(3, text.as_bytes());
        each_line(tiny, 10, |line| lines.push(String::from_utf8_lossy(line).into_owned())).unwrap();
        assert_eq!(lines, ["short", "", "next", "", "last"]);
    }
}
