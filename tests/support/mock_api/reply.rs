//! What the mock answers to one request: content, figures and faults, put together by the test.
//! A value only: it opens no socket and knows nothing of the request that it will answer.

use super::gate::Gate;
use serde_json::Value;
use std::time::Duration;

/// How a connection ends before its answer is complete.
///
/// The CLI loses the deltas that it has not read when the end comes. The mock waits 100 ms before it cuts; a test
/// that needs them for sure puts a [`Gate`] before the cut (`.hold_after(n, &gate).drop_after(n, ..)`) and opens it
/// once they have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The connection is closed in an orderly way in the middle of the chunked body.
    Fin,
    /// The connection is reset.
    Rst,
    /// The body ends properly (terminating chunk), but its last events are missing.
    CleanEof,
}

#[derive(Clone, Debug)]
pub(super) enum Block {
    Text(String),
    Thinking(String),
    ToolUse { name: String, input: Value },
}

/// Something that happens when a number of deltas has been sent.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Hold(Gate),
    Hang,
    Drop(Ending),
    SseError { kind: String, message: String },
}

/// What happens before a single byte of the answer is written.
#[derive(Clone, Debug)]
pub(super) enum Before {
    Hold(Gate),
    Hang,
    Drop(Ending),
}

#[derive(Clone, Debug)]
pub(super) struct HttpError {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) cache_read: u64,
    pub(super) cache_creation: u64,
}

/// The answer to one request. Start with [`Reply::new`] and add; the order of the blocks is the order of the calls.
///
/// A delta is one word of a text or thinking block, or one half of a tool call's input. Numbers of deltas count over
/// all blocks of the reply; a number beyond the last delta means: after the last block, before the message's end.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) blocks: Vec<Block>,
    pub(super) usage: Usage,
    pub(super) stop_reason: Option<String>,
    pub(super) pause: Duration,
    pub(super) headers: Vec<(String, String)>,
    pub(super) before: Vec<Before>,
    pub(super) error: Option<HttpError>,
    pub(super) after_headers: bool,
    pub(super) events: Vec<(usize, Event)>,
}

impl Reply {
    /// An answer without content: 200, `end_turn`, 1,200 input tokens.
    pub fn new() -> Self {
        Self {
            blocks: Vec::new(),
            usage: Usage { input: 1200, cache_read: 0, cache_creation: 0 },
            stop_reason: None,
            pause: Duration::ZERO,
            headers: Vec::new(),
            before: Vec::new(),
            error: None,
            after_headers: false,
            events: Vec::new(),
        }
    }

    /// Adds a text block, streamed word by word.
    pub fn text(mut self, text: &str) -> Self {
        self.blocks.push(Block::Text(text.to_owned()));
        self
    }

    /// Adds a thinking block, streamed word by word.
    pub fn thinking(mut self, text: &str) -> Self {
        self.blocks.push(Block::Thinking(text.to_owned()));
        self
    }

    /// Adds a tool call; it gets an id of its own each time the reply is sent. The stop reason becomes `tool_use`.
    pub fn tool_use(mut self, name: &str, input: Value) -> Self {
        self.blocks.push(Block::ToolUse { name: name.to_owned(), input });
        self
    }

    /// Token figures of the message.
    pub fn usage(mut self, input: u64, cache_read: u64, cache_creation: u64) -> Self {
        self.usage = Usage { input, cache_read, cache_creation };
        self
    }

    /// Another stop reason than `end_turn` or `tool_use`.
    pub fn stop_reason(mut self, reason: &str) -> Self {
        self.stop_reason = Some(reason.to_owned());
        self
    }

    /// Time between two deltas, in milliseconds.
    pub fn pause(mut self, ms: u64) -> Self {
        self.pause = Duration::from_millis(ms);
        self
    }

    /// One more response header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// An API error instead of a message. `x-should-retry: false` by [`Reply::header`] forbids retries.
    pub fn error(mut self, status: u16, kind: &str, message: &str) -> Self {
        self.error = Some(HttpError { status, kind: kind.to_owned(), message: message.to_owned() });
        self
    }

    /// Never answers; ends when the client leaves or the mock is dropped.
    pub fn hang_before_headers(mut self) -> Self {
        self.before.push(Before::Hang);
        self
    }

    /// Sends the status line and headers, then nothing.
    pub fn hang_after_headers(mut self) -> Self {
        self.after_headers = true;
        self
    }

    /// Stops for good after `deltas` deltas. A request with `stream: false` gets nothing at all.
    pub fn hang_after(self, deltas: usize) -> Self {
        self.at(deltas, Event::Hang)
    }

    /// Ends the connection after `deltas` deltas. A request with `stream: false` gets nothing at all.
    pub fn drop_after(self, deltas: usize, ending: Ending) -> Self {
        self.at(deltas, Event::Drop(ending))
    }

    /// Ends the connection before the status line.
    pub fn drop_before_headers(mut self, ending: Ending) -> Self {
        self.before.push(Before::Drop(ending));
        self
    }

    /// Writes an SSE `error` event after `deltas` deltas and ends the stream.
    pub fn sse_error_after(self, deltas: usize, kind: &str, message: &str) -> Self {
        self.at(deltas, Event::SseError { kind: kind.to_owned(), message: message.to_owned() })
    }

    /// Waits for `gate` after everything added so far has been sent, before the last block is closed.
    pub fn hold(self, gate: &Gate) -> Self {
        let deltas = self.deltas();
        self.hold_after(deltas, gate)
    }

    /// Waits for `gate` after `deltas` deltas.
    pub fn hold_after(self, deltas: usize, gate: &Gate) -> Self {
        self.at(deltas, Event::Hold(gate.clone()))
    }

    /// Waits for `gate` before the status line.
    pub fn hold_before_headers(mut self, gate: &Gate) -> Self {
        self.before.push(Before::Hold(gate.clone()));
        self
    }

    /// How many deltas the blocks added so far make.
    pub fn deltas(&self) -> usize {
        self.blocks.iter().map(|block| block.deltas().len()).sum()
    }

    pub(super) fn stop_reason_sent(&self) -> &str {
        let calls = self.blocks.iter().any(|b| matches!(b, Block::ToolUse { .. }));
        let usual = if calls { "tool_use" } else { "end_turn" };
        self.stop_reason.as_deref().unwrap_or(usual)
    }

    fn at(mut self, deltas: usize, event: Event) -> Self {
        self.events.push((deltas, event));
        self
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::new()
    }
}

impl Block {
    /// The pieces in which the block is streamed; their sum is the block.
    pub(super) fn deltas(&self) -> Vec<String> {
        match self {
            Self::Text(text) | Self::Thinking(text) => {
                text.split_inclusive(' ').map(String::from).collect()
            }
            Self::ToolUse { input, .. } => {
                // a cut may fall inside the JSON: that is what a torn call looks like
                let json = input.to_string();
                let middle = (0..=json.len() / 2).rev().find(|i| json.is_char_boundary(*i));
                let (first, second) = json.split_at(middle.unwrap_or(0));
                vec![first.to_owned(), second.to_owned()]
            }
        }
    }
}
