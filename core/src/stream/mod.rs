//! The CLI's output: bytes to bounded lines to [`StreamEvent`]. Never fails.
//!
//! [`Decoder`] is all that a child's output needs: it is fed what a read returned, whatever that was, and
//! answers with events. It holds no clock and decides nothing about the turn.

mod conversation;
mod decode;
mod event;
mod line;
mod meaning;
mod message;
mod sniff;
mod soft;
pub mod stdin;
mod streamed;
mod wire;

#[cfg(test)]
pub(crate) mod captures_test;
#[cfg(test)]
mod garbage_test;
#[cfg(test)]
mod table_test;

pub use event::*;
pub use message::*;

use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of one child's stdout in, events out. One for each child.
#[derive(Debug)]
pub struct Decoder {
    lines: line::Splitter,
    model: Option<String>,
}

impl Decoder {
    /// A decoder whose lines may be `max_line` bytes long (A-01; `Limits::line_max_bytes`). It holds
    /// at most one such line in memory.
    pub fn new(max_line: usize) -> Self {
        Decoder { lines: line::Splitter::new(max_line), model: None }
    }

    /// The events that are complete after these bytes. How the bytes were cut into reads makes no
    /// difference to the events (INV-64).
    pub fn push(&mut self, bytes: &[u8]) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        self.push_into(bytes, &mut events);
        events
    }

    /// The same, appended to `events`: whoever has much to read keeps one list for all of it.
    pub fn push_into(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        // rule: PR-02, INV-64
        let model = &mut self.model;
        self.lines.push(bytes, |line| decode::line(line, model, events));
    }

    /// The output ended: what stands after the last newline is a line too.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        let model = &mut self.model;
        self.lines.finish(|line| decode::line(line, model, &mut events));
        events
    }
}
