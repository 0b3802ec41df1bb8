//! Content that is still being streamed. Nothing here is final: it may be thrown away and replaced.

use super::{Builder, Change};
use crate::block::{Block, BlockKind};
use crate::limits::Limits;
use crate::prompt::MarkerCutter;
use crate::stream::{BlockStart, Partial, PartialKind};
use crate::time::{Mono, Now};
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

/// What a part will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Thinking,
    /// The input of the call with this id.
    Tool(String),
}

/// One content block of a streamed message.
#[derive(Clone, Debug)]
pub(super) struct Part {
    message: String,
    index: u32,
    kind: PartKind,
    cutter: MarkerCutter,
    /// Once there is something to show.
    block: Option<Block>,
    pub(super) began: Mono,
    /// When the block was saved, or first shown.
    saved: Mono,
    dirty: bool,
}

impl Part {
    /// What is shown of it.
    pub(super) fn into_block(self) -> Option<Block> {
        self.block
    }

    /// What is shown of it, closed as it is: what was held back is the beginning of a marker line
    /// and stays away. A tool's input that never became complete is no call:
    /// it is hidden.
    pub(super) fn into_closed(self, now: Now) -> Option<Block> {
        let began = self.began;
        let mut block = closed(self.block?);
        if let BlockKind::Thinking { millis, .. } = &mut block.kind {
            *millis = now.mono.since(began);
        }
        Some(block)
    }

    /// When it is saved next; `None` if the stored state is the shown one. Never sooner than it may
    /// be, and then together with those of all sessions: each commit waits for the disk.
    pub(super) fn save_at(&self, limits: &Limits) -> Option<Mono> {
        // rule: A-30
        let Mono(may) = self.saved.plus(limits.block_save_ms);
        let together = may.checked_next_multiple_of(limits.block_save_step_ms).unwrap_or(may);
        (self.dirty && self.block.is_some()).then_some(Mono(together))
    }

    /// The block to save now.
    pub(super) fn save(&mut self, now: Mono) -> Option<Block> {
        self.saved = now;
        self.dirty = false;
        self.block.clone()
    }
}

/// The block, closed. A tool without its input is hidden.
pub(super) fn closed(block: Block) -> Block {
    let torn = matches!(&block.kind, BlockKind::Tool { input: Value::Null, .. });
    Block { open: false, hidden: block.hidden || torn, ..block }
}

fn text_of(block: &mut Block) -> Option<&mut String> {
    match &mut block.kind {
        BlockKind::Assistant { text } | BlockKind::Thinking { text, .. } => Some(text),
        BlockKind::Operator { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    }
}

impl Builder {
    /// A piece of a message. What sub-agents stream is not shown.
    pub(super) fn partial(
        &mut self,
        partial: &Partial,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        if partial.parent.is_some() {
            return;
        }
        let message = partial.message.as_deref().unwrap_or_default();
        if partial.abandoned {
            self.abandon(|of| of == message);
        }
        match &partial.kind {
            // what the last message left without its final line was thrown away
            PartialKind::MessageStart { .. } => self.abandon(|_| true),
            PartialKind::BlockStart { index, block } => {
                self.begin(message, *index, block, turn, now, out);
            }
            PartialKind::Text { index, text } | PartialKind::Thinking { index, text } => {
                self.grow((message, *index), text, turn, now, out);
            }
            PartialKind::MessageStop if !partial.abandoned => self.drop_abandoned(out),
            PartialKind::MessageStop
            | PartialKind::InputJson { .. }
            | PartialKind::BlockStop { .. }
            | PartialKind::MessageDelta { .. }
            | PartialKind::Other => {}
        }
    }

    /// Parts of these messages will get no final line; what was shown of them waits for the retry.
    pub(super) fn abandon(&mut self, of: impl Fn(&str) -> bool) {
        let parts = core::mem::take(&mut self.parts);
        let (thrown, kept): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| of(&part.message));
        self.parts = kept;
        self.abandoned.extend(thrown.into_iter().filter_map(Part::into_block));
    }

    /// Takes the part that a final line replaces.
    pub(super) fn take_part(&mut self, message: &str, kind: &PartKind) -> Option<Part> {
        let found = self.parts.iter().position(|p| p.message == message && p.kind == *kind)?;
        Some(self.parts.remove(found))
    }

    fn begin(
        &mut self,
        message: &str,
        index: u32,
        start: &BlockStart,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        let mut block = None;
        let kind = match start {
            BlockStart::Text => PartKind::Text,
            BlockStart::Thinking => {
                self.thinking_since.get_or_insert(now.mono);
                PartKind::Thinking
            }
            BlockStart::ToolUse { id, name } => {
                let tool = tool(id, name, Value::Null, None);
                block = Some(self.place(tool, turn, now));
                PartKind::Tool(id.clone())
            }
            BlockStart::Other => return,
        };
        out.extend(block.clone().map(Change::Show));
        self.parts.push(Part {
            message: message.into(),
            index,
            kind,
            cutter: MarkerCutter::default(),
            block,
            began: now.mono,
            saved: now.mono,
            dirty: false,
        });
    }

    fn grow(
        &mut self,
        (message, index): (&str, u32),
        piece: &str,
        turn: u64,
        now: Now,
        out: &mut Vec<Change>,
    ) {
        let at = |part: &Part| part.message == message && part.index == index;
        let Some(found) = self.parts.iter().position(at) else {
            return;
        };
        let Some(part) = self.parts.get_mut(found) else {
            return;
        };
        let shown = part.cutter.push(piece);
        if let Some(block) = part.block.as_mut() {
            if let Some(text) = text_of(block).filter(|_| !shown.is_empty()) {
                text.push_str(&shown);
                out.push(Change::Delta { seq: block.seq, text: shown });
                part.dirty = true;
            }
            return;
        }
        let text: String = shown.trim_start().into();
        if text.is_empty() {
            return;
        }
        let kind = match part.kind {
            PartKind::Text => BlockKind::Assistant { text },
            PartKind::Thinking => BlockKind::Thinking { text, millis: 0 },
            PartKind::Tool(_) => return,
        };
        let block = self.place(kind, turn, now);
        out.push(Change::Show(block.clone()));
        if let Some(part) = self.parts.get_mut(found) {
            part.block = Some(block);
            part.saved = now.mono;
            part.dirty = true;
        }
    }
}

/// A call without a result.
pub(super) fn tool(id: &str, name: &str, input: Value, parent: Option<String>) -> BlockKind {
    BlockKind::Tool {
        call: id.into(),
        name: name.into(),
        input,
        result: None,
        failed: false,
        denied: false,
        millis: 0,
        parent,
    }
}
