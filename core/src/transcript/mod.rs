//! Stream events to conversation blocks: what the person sees of a session.
//!
//! One [`Builder`] for each session, in memory. It stores nothing and decides nothing about the
//! turn; the caller stores and shows the [`Change`]s it returns. Text that is streamed is shown as
//! it comes; only the finished `assistant` line is final and replaces it.

mod finished;
mod streamed;
mod text;

#[cfg(test)]
mod captures_test;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;

use crate::block::{Block, BlockKind};
use crate::limits::Limits;
use crate::prompt;
use crate::stream::{StreamEvent, TaskPhase};
use crate::time::{Mono, Now};
use alloc::string::String;
use alloc::vec::Vec;
use streamed::Part;

/// What became of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Store the block, and show it.
    Save(Block),
    /// Show it only.
    Show(Block),
    /// Text is appended to a block that was shown and is open.
    Delta {
        /// The block.
        seq: u64,
        /// The piece.
        text: String,
    },
}

/// A tool call without its result.
#[derive(Clone, Debug)]
struct Call {
    block: Block,
    began: Mono,
}

/// Builds the blocks of one session.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    /// The highest number given.
    seq: u64,
    /// Content blocks of the main thread that are being streamed.
    parts: Vec<Part>,
    /// Blocks of streamed text that the CLI threw away: the retry's blocks take their places.
    abandoned: Vec<Block>,
    calls: Vec<Call>,
    /// The last text of the open turn.
    last_text: Option<Block>,
    thinking_since: Option<Mono>,
    /// The number of the last boundary.
    boundary: u64,
}

impl Builder {
    /// A builder for a session whose highest stored block number is `last_seq`.
    pub fn new(last_seq: u64) -> Self {
        Builder { seq: last_seq, ..Builder::default() }
    }

    /// What the event changes. `turn` is the turn that new blocks belong to.
    pub fn observe(
        &mut self,
        event: &StreamEvent,
        turn: u64,
        now: Now,
        limits: &Limits,
    ) -> Vec<Change> {
        let mut out = Vec::new();
        match event {
            StreamEvent::Partial(partial) => self.partial(partial, turn, now, &mut out),
            StreamEvent::Assistant(line) => self.assistant(line, turn, now, &mut out),
            StreamEvent::User(echo) => self.user(echo, turn, now, &mut out),
            StreamEvent::ThinkingTokens => {
                self.thinking_since.get_or_insert(now.mono);
            }
            StreamEvent::Informational { content } => self.note(content, turn, now, &mut out),
            StreamEvent::CompactBoundary { .. } => {
                let text = prompt::NOTE_COMPACTED.into();
                out.push(Change::Save(self.push(BlockKind::Boundary { text }, turn, now)));
                self.boundary = self.seq;
            }
            StreamEvent::Task(task) if task.phase == TaskPhase::Ended => {
                // what a sub-agent left without a result will never get one
                if let Some(agent) = &task.tool_use {
                    self.close_calls(now, |parent| parent == Some(agent), &mut out);
                }
            }
            // the state of the turn, not words of the conversation
            StreamEvent::Task(_)
            | StreamEvent::Init(_)
            | StreamEvent::Status { .. }
            | StreamEvent::SessionState(_)
            | StreamEvent::Lifecycle { .. }
            | StreamEvent::ToolProgress { .. }
            | StreamEvent::BackgroundTasks(_)
            | StreamEvent::ApiRetry { .. }
            | StreamEvent::ModelFallback { .. }
            | StreamEvent::PermissionDenied { .. }
            | StreamEvent::RateLimit(_)
            | StreamEvent::ConversationReset { .. }
            | StreamEvent::ControlRequest { .. }
            | StreamEvent::ControlCancel { .. }
            | StreamEvent::ControlResponse { .. }
            | StreamEvent::Result(_)
            | StreamEvent::KeepAlive
            // for the log
            | StreamEvent::Unknown { .. }
            | StreamEvent::Malformed { .. }
            | StreamEvent::Oversize { .. }
            | StreamEvent::Chatter(_) => {}
        }
        out.extend(self.save_due(now, limits));
        out
    }

    /// Appends a visible block; the caller stores it.
    pub fn push(&mut self, kind: BlockKind, turn: u64, now: Now) -> Block {
        self.seq += 1;
        Block {
            seq: self.seq,
            turn,
            at: now.wall,
            kind,
            hidden: false,
            interruption: false,
            open: false,
            cut_off: false,
        }
    }

    /// Appends a block that the default view does not show (UI-22); the caller stores it.
    pub fn push_hidden(
        &mut self,
        kind: BlockKind,
        turn: u64,
        now: Now,
        interruption: bool,
    ) -> Block {
        // rule: UI-22
        Block { hidden: true, interruption, ..self.push(kind, turn, now) }
    }

    /// The turn died. Everything open is closed as it is, and the turn's last text is marked as cut
    /// off. Also right when a child exits between turns: then nothing is marked.
    pub fn cut_off(&mut self, now: Now) -> Vec<Change> {
        let mut closed: Vec<Block> = Vec::new();
        for part in core::mem::take(&mut self.parts) {
            closed.extend(part.into_closed(now));
        }
        // the retry never came: the text of the abandoned try is all there is
        closed.extend(core::mem::take(&mut self.abandoned).into_iter().map(streamed::closed));
        closed.extend(self.last_text.take());
        let texts = closed.iter().filter(|block| is_text(block) && !block.hidden);
        let cut = texts.map(|block| block.seq).max();
        for block in closed.iter_mut().filter(|block| Some(block.seq) == cut) {
            block.cut_off = true;
        }
        let mut out: Vec<Change> = closed.into_iter().map(Change::Save).collect();
        self.close_calls(now, |_| true, &mut out);
        self.thinking_since = None;
        out
    }

    /// The turn ended by a `result`. What is still open of the main thread is closed; calls of
    /// sub-agents that go on in the background stay open.
    pub fn end_turn(&mut self, now: Now) -> Vec<Change> {
        let mut out = Vec::new();
        for part in core::mem::take(&mut self.parts) {
            out.extend(part.into_closed(now).map(Change::Save));
        }
        self.drop_abandoned(&mut out);
        self.close_calls(now, |parent| parent.is_none(), &mut out);
        self.last_text = None;
        self.thinking_since = None;
        out
    }

    /// Open blocks whose stored state is old enough to be replaced: at most once in
    /// `block_save_ms` each.
    pub fn save_due(&mut self, now: Now, limits: &Limits) -> Vec<Change> {
        // rule: A-30
        let due = self
            .parts
            .iter_mut()
            .filter(|part| part.save_at(limits).is_some_and(|at| at <= now.mono));
        due.filter_map(|part| part.save(now.mono)).map(Change::Save).collect()
    }

    /// When [`Builder::save_due`] next has something to save.
    pub fn next_save(&self, limits: &Limits) -> Option<Mono> {
        self.parts.iter().filter_map(|part| part.save_at(limits)).min()
    }

    /// The CLI's words for a failure are kept and not shown: while a recovery is unseen nothing tells
    /// of it (AB-13). A row that does turn red shows them itself.
    fn hide_error(&mut self, words: &str, turn: u64, now: Now, out: &mut Vec<Change>) {
        // rule: AB-13
        let text = prompt::cut_markers(words).trim().into();
        out.push(Change::Save(self.push_hidden(BlockKind::Note { text }, turn, now, true)));
    }

    fn note(&mut self, words: &str, turn: u64, now: Now, out: &mut Vec<Change>) {
        let text = prompt::cut_markers(words).trim().into();
        if !String::is_empty(&text) {
            out.push(Change::Save(self.push(BlockKind::Note { text }, turn, now)));
        }
    }

    /// A place for new content: that of an abandoned block, else a new one. The block is open.
    fn place(&mut self, kind: BlockKind, turn: u64, now: Now) -> Block {
        if self.abandoned.is_empty() {
            return Block { open: true, ..self.push(kind, turn, now) };
        }
        Block { kind, open: true, hidden: false, ..self.abandoned.remove(0) }
    }

    /// Takes the abandoned blocks that no retry replaced out of sight.
    fn drop_abandoned(&mut self, out: &mut Vec<Change>) {
        for block in core::mem::take(&mut self.abandoned) {
            out.push(Change::Save(Block { hidden: true, open: false, ..block }));
        }
    }

    /// Closes the calls of the given parents without a result.
    fn close_calls(
        &mut self,
        now: Now,
        of: impl Fn(Option<&String>) -> bool,
        out: &mut Vec<Change>,
    ) {
        self.calls.retain(|call| {
            let ours =
                matches!(&call.block.kind, BlockKind::Tool { parent, .. } if of(parent.as_ref()));
            if ours {
                let mut block = Block { open: false, ..call.block.clone() };
                if let BlockKind::Tool { millis, .. } = &mut block.kind {
                    *millis = now.mono.since(call.began);
                }
                out.push(Change::Save(block));
            }
            !ours
        });
    }
}

fn is_text(block: &Block) -> bool {
    matches!(block.kind, BlockKind::Assistant { .. })
}
