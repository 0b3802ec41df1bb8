//! Finished lines: the agent's content blocks, the results of its calls, words of the CLI.

use super::streamed::{Part, PartKind, tool};
use super::text::bounded;
use super::{Builder, Call, Change};
use crate::block::{Block, BlockKind};
use crate::prompt;
use crate::stream::{AssistantLine, Content, ToolResult, UserEcho};
use crate::time::Now;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Around the output of a local command, in the conversation's user side.
const LOCAL_OUTPUT: [(&str, &str); 2] = [
    ("<local-command-stdout>", "</local-command-stdout>"),
    ("<local-command-stderr>", "</local-command-stderr>"),
];

impl Builder {
    /// A finished content block. A line of the CLI's own making is a note; of a sub-agent only the
    /// calls are shown.
    pub(super) fn assistant(
        &mut self,
        line: &AssistantLine,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        let main = line.parent.is_none();
        if main && !line.synthetic {
            // a reply that was fetched anew replaces what was streamed of another message
            self.abandon(|message| message != line.message);
        }
        for content in &line.content {
            match content {
                Content::Text(text) if main && is_failure(line) => {
                    self.hide_error(text, turn, now, out);
                }
                Content::Text(text) if main && line.synthetic => self.note(text, turn, now, out),
                Content::Text(text) if main => self.finish_text(line, text, turn, now, out),
                Content::Thinking(text) if main => self.finish_thinking(line, text, turn, now, out),
                Content::ToolUse { id, name, input } => {
                    let kind = tool(id, name, input.clone(), line.parent.clone());
                    self.finish_call(line, kind, turn, now, out);
                }
                Content::Text(_) | Content::Thinking(_) | Content::Other => {}
            }
        }
        if main {
            self.thinking_since = None;
        }
    }

    fn finish_text(
        &mut self,
        line: &AssistantLine,
        text: &str,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        let shown = self.take_part(&line.message, &PartKind::Text).and_then(Part::into_block);
        let text = prompt::cut_markers(text).trim().to_string();
        if text.is_empty() {
            let gone = shown.map(|block| Block { open: false, hidden: true, ..block });
            out.extend(gone.map(Change::Save));
            return;
        }
        let kind = BlockKind::Assistant { text };
        let block = self.settle(shown, kind, turn, now);
        let block = Block { cut_off: line.aborted, ..block };
        self.last_text = Some(block.clone());
        out.push(Change::Save(block));
    }

    fn finish_thinking(
        &mut self,
        line: &AssistantLine,
        text: &str,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        let part = self.take_part(&line.message, &PartKind::Thinking);
        let since = part.as_ref().map(|part| part.began).or(self.thinking_since);
        let millis = since.map(|since| now.mono.since(since)).unwrap_or_default();
        let shown = part.and_then(Part::into_block);
        let text = prompt::cut_markers(text).trim().to_string();
        if text.is_empty() && millis == 0 && shown.is_none() {
            return;
        }
        let kind = BlockKind::Thinking { text, millis };
        out.push(Change::Save(self.settle(shown, kind, turn, now)));
    }

    fn finish_call(
        &mut self,
        line: &AssistantLine,
        kind: BlockKind,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        let BlockKind::Tool { call, parent, .. } = &kind else {
            return;
        };
        let shown = match parent {
            Some(_) => None,
            None => self
                .take_part(&line.message, &PartKind::Tool(call.clone()))
                .and_then(Part::into_block),
        };
        let block = match (parent, shown) {
            // a sub-agent never takes the place of the main thread's text
            (Some(_), _) => self.push(kind, turn, now),
            (None, shown) => self.settle(shown, kind, turn, now),
        };
        let block = Block { open: true, ..block };
        self.calls.push(Call { block: block.clone(), began: now.mono });
        out.push(Change::Save(block));
    }

    /// The finished block, in the place where it was streamed.
    fn settle(&mut self, shown: Option<Block>, kind: BlockKind, turn: u64, now: Now) -> Block {
        let block = match shown {
            Some(block) => Block { kind, ..block },
            None => self.place(kind, turn, now),
        };
        Block { open: false, ..block }
    }

    /// The user's side: results close their calls, output of local commands is a note. Messages of
    /// the person are the caller's; nudges of the CLI are not shown.
    pub(super) fn user(&mut self, echo: &UserEcho, turn: u64, now: Now, out: &mut Vec<Change>) {
        for result in &echo.results {
            self.finish_tool(result, now, out);
        }
        if echo.parent.is_some() {
            return;
        }
        if !echo.results.is_empty() {
            self.drop_abandoned(out);
        }
        // right after a boundary the words say only that it happened
        let words = echo.text.as_deref().and_then(local_output);
        if let Some(words) = words.filter(|_| self.boundary == 0 || self.boundary != self.seq) {
            self.note(words, turn, now, out);
        }
    }

    fn finish_tool(&mut self, result: &ToolResult, now: Now, out: &mut Vec<Change>) {
        let of = |call: &Call| matches!(&call.block.kind, BlockKind::Tool { call, .. } if *call == result.tool_use);
        let Some(found) = self.calls.iter().position(of) else {
            return;
        };
        let Call { mut block, began } = self.calls.remove(found);
        block.open = false;
        if let BlockKind::Tool { result: text, failed, denied, millis, .. } = &mut block.kind {
            let whole: String = prompt::cut_markers(&result.text);
            *text = Some(bounded(&whole));
            *failed = result.failed;
            *denied = result.denied;
            *millis = now.mono.since(began);
        }
        out.push(Change::Save(block));
    }
}

/// What a local command printed.
fn local_output(text: &str) -> Option<&str> {
    LOCAL_OUTPUT.iter().find_map(|(begin, end)| {
        let inner = text.trim().strip_prefix(begin)?;
        Some(inner.strip_suffix(end).unwrap_or(inner))
    })
}

/// A line of the CLI's own that reports a failure.
fn is_failure(line: &AssistantLine) -> bool {
    line.synthetic && (line.error.is_some() || line.api_error.is_some() || line.status.is_some())
}
