//! The hand-over: what a new conversation is told of an old one. Cut from our own blocks, not
//! written by a model. Serves a lost transcript (A-04 d) and Switch model alike.

use crate::block::{Block, BlockKind};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::Value;

/// The hand-over's length at most, in characters.
pub const HANDOVER_MAX_CHARS: usize = 12_000;
/// The last assistant text in it, in characters.
const LAST_TEXT_MAX_CHARS: usize = 2_000;
/// Each message in it, in characters.
const MESSAGE_MAX_CHARS: usize = 1_800;
/// Changed files named in it.
const FILES_MAX: usize = 60;

/// Cuts the hand-over from a conversation's blocks, oldest first. `last` is the message that is sent
/// after it and therefore not repeated in it.
pub fn handover(blocks: &[Block], last: Option<&str>, unknown_calls: &[String]) -> String {
    // rule: A-24
    let mut messages: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match &block.kind {
            BlockKind::Operator { text, .. } => Some(text.as_str()),
            BlockKind::Assistant { .. }
            | BlockKind::Thinking { .. }
            | BlockKind::Tool { .. }
            | BlockKind::Note { .. }
            | BlockKind::Boundary { .. }
            | BlockKind::Auto { .. }
            | BlockKind::Answered { .. }
            | BlockKind::Foot { .. } => None,
        })
        .collect();
    if last.is_some() && messages.last().copied() == last {
        messages.pop();
    }
    let mut parts = alloc::vec![
        "This conversation continues an earlier one whose history is not available. What is known of it:"
            .to_string()
    ];
    if let Some(first) = messages.first() {
        parts.push(format!("The first message was:\n{}", cut(first, MESSAGE_MAX_CHARS)));
    }
    let recent: Vec<_> = messages.iter().skip(1).rev().take(3).rev().collect();
    if !recent.is_empty() {
        let texts: Vec<_> = recent.iter().map(|text| cut(text, MESSAGE_MAX_CHARS)).collect();
        parts.push(format!("The latest messages were:\n{}", texts.join("\n\n")));
    }
    if let Some(text) = last_text(blocks) {
        parts.push(format!("The last reply was:\n{}", cut(text, LAST_TEXT_MAX_CHARS)));
    }
    let files = changed_files(blocks);
    if !files.is_empty() {
        parts.push(format!("Files changed so far:\n{}", files.join("\n")));
    }
    if !unknown_calls.is_empty() {
        let lines: Vec<_> = unknown_calls
            .iter()
            .map(|call| format!("- {call} (outcome unknown: check before running it again)"))
            .collect();
        parts.push(format!("These steps were started:\n{}", lines.join("\n")));
    }
    cut(&parts.join("\n\n"), HANDOVER_MAX_CHARS)
}

/// The last reply that came whole: what was cut off is not built upon (RP-05).
fn last_text(blocks: &[Block]) -> Option<&str> {
    // rule: RP-05
    let whole = blocks.iter().rev().filter(|block| !block.cut_off);
    whole.into_iter().find_map(|block| match &block.kind {
        BlockKind::Assistant { text } if !text.trim().is_empty() => Some(text.as_str()),
        BlockKind::Assistant { .. }
        | BlockKind::Operator { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    })
}

fn changed_files(blocks: &[Block]) -> Vec<String> {
    const EDITORS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
    let mut files: Vec<String> = Vec::new();
    for block in blocks {
        let BlockKind::Tool { name, input, failed: false, denied: false, result: Some(_), .. } =
            &block.kind
        else {
            continue;
        };
        if !EDITORS.contains(&name.as_str()) {
            continue;
        }
        let path = ["file_path", "notebook_path"]
            .iter()
            .find_map(|key| input.get(key).and_then(Value::as_str));
        if let Some(path) = path.filter(|path| !files.iter().any(|file| file == path)) {
            files.push(path.to_string());
        }
    }
    if files.len() > FILES_MAX {
        let more = files.len() - FILES_MAX;
        files.truncate(FILES_MAX);
        files.push(format!("and {more} more"));
    }
    files
}

fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_string();
    }
    text.chars().take(max - 1).chain(core::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::time::Wall;
    use serde_json::json;

    fn block(kind: BlockKind) -> Block {
        Block {
            seq: 1,
            turn: 1,
            at: Wall(0),
            kind,
            hidden: false,
            interruption: false,
            open: false,
            cut_off: false,
        }
    }

    fn said(text: &str) -> Block {
        block(BlockKind::Operator { message: Uuid(1), text: text.into() })
    }

    // proves: A-24, RP-05
    #[test]
    fn it_holds_the_first_the_last_three_the_last_reply_and_the_files() {
        let mut blocks: Vec<_> = (1..=6).map(|n| said(&format!("message {n}"))).collect();
        blocks.push(block(BlockKind::Assistant { text: "I changed it.".into() }));
        blocks.push(block(BlockKind::Tool {
            call: "t".into(),
            name: "Edit".into(),
            input: json!({"file_path": "/p/src/a.rs"}),
            result: Some("ok".into()),
            failed: false,
            denied: false,
            millis: 3,
            parent: None,
        }));
        blocks.push(said("the new one"));
        let mut torn = block(BlockKind::Assistant { text: "half a repl".into() });
        torn.cut_off = true;
        blocks.push(torn);
        let text = handover(&blocks, Some("the new one"), &["Bash: make deploy".to_string()]);
        for part in
            ["message 1", "message 4", "message 5", "message 6", "I changed it.", "/p/src/a.rs"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("half a repl"), "{text}");
        assert!(!text.contains("message 3") && !text.contains("the new one"));
        assert!(text.contains("make deploy (outcome unknown: check before running it again)"));
        let long: Vec<_> = (0..50).map(|_| said(&"é".repeat(20_000))).collect();
        assert!(handover(&long, None, &[]).chars().count() <= HANDOVER_MAX_CHARS);
    }
}
