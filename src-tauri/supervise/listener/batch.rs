//! Joins events that wait: what a newer one replaces is taken out, pieces of one text become one.
//!
//! It knows nothing of threads and time, and never changes what a listener ends up knowing.

use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Event;
use serde_json::Value;
use std::collections::BTreeMap;

/// Blocks and texts that may wait. The window of a session that is open shows some dozens; one
/// more drops the oldest: it is in the store, where the window reads pages from.
const BLOCKS_MAX: usize = 2048;
/// But a block may have some MiB: so much of them waits at most, and one that alone is longer.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// What an event is about: a newer one with the same key replaces the older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Row(SessionId),
    Block(SessionId, u64),
    Settings,
    Cli,
    StoreTrouble,
    Load,
    Open,
}

/// Events in order, none outdated.
#[derive(Default)]
pub(super) struct Batch {
    /// By their place in the order.
    events: BTreeMap<u64, Event>,
    /// The places of each key: for a block perhaps one of the block and one of a text after it.
    places: BTreeMap<Key, Vec<u64>>,
    next: u64,
    blocks: usize,
    /// What the waiting blocks and texts hold.
    bytes: usize,
}

impl Batch {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds an event; gives how many old blocks or texts were dropped for lack of room.
    pub(super) fn push(&mut self, event: Event) -> usize {
        let (key, replaces) = match &event {
            Event::Row(view) => (Some(Key::Row(view.row.id)), true),
            Event::Gone(session) => (Some(Key::Row(*session)), true),
            Event::Block { session, block } => (Some(Key::Block(*session, block.seq)), true),
            Event::Delta { session, seq, text } => {
                let key = Key::Block(*session, *seq);
                if self.append(key, text) {
                    return self.make_room();
                }
                // it adds to the block before it
                (Some(key), false)
            }
            Event::Settings(_) => (Some(Key::Settings), true),
            Event::Cli(_) => (Some(Key::Cli), true),
            Event::StoreTrouble(_) => (Some(Key::StoreTrouble), true),
            Event::Load(_) => (Some(Key::Load), true),
            Event::Open(_) => (Some(Key::Open), true),
            Event::Sent(_) => (None, false),
        };
        if let Some(key) = key.filter(|_| replaces) {
            self.forget(key);
        }
        self.add(key, event);
        self.make_room()
    }

    /// All that waits, in order.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(self).events.into_values().collect()
    }

    fn append(&mut self, key: Key, piece: &str) -> bool {
        let last = self.places.get(&key).and_then(|places| places.last());
        match last.and_then(|place| self.events.get_mut(place)) {
            Some(Event::Delta { text, .. }) => {
                text.push_str(piece);
                self.bytes += piece.len();
                true
            }
            Some(_) | None => false,
        }
    }

    fn add(&mut self, key: Option<Key>, event: Event) {
        if let Some(key) = key {
            self.places.entry(key).or_default().push(self.next);
            self.blocks += usize::from(matches!(key, Key::Block(..)));
        }
        self.bytes += bytes(&event);
        self.events.insert(self.next, event);
        self.next += 1;
    }

    fn forget(&mut self, key: Key) {
        for place in self.places.remove(&key).unwrap_or_default() {
            self.bytes -= self.events.remove(&place).as_ref().map_or(0, bytes);
            self.blocks -= usize::from(matches!(key, Key::Block(..)));
        }
    }

    fn make_room(&mut self) -> usize {
        let mut dropped = 0;
        while self.blocks > BLOCKS_MAX || (self.bytes > BYTES_MAX && self.blocks > 1) {
            let oldest = self.places.iter().filter(|(key, _)| matches!(key, Key::Block(..)));
            let Some((&key, places)) = oldest.min_by_key(|(_, places)| places.first().copied())
            else {
                break;
            };
            dropped += places.len();
            self.forget(key);
        }
        dropped
    }
}

/// What a block or a piece of text holds; nothing else grows with what is said.
fn bytes(event: &Event) -> usize {
    match event {
        Event::Block { block, .. } => bytes_of(&block.kind),
        Event::Delta { text, .. } => text.len(),
        Event::Row(_)
        | Event::Gone(_)
        | Event::Settings(_)
        | Event::Cli(_)
        | Event::StoreTrouble(_)
        | Event::Load(_)
        | Event::Open(_)
        | Event::Sent(_) => 0,
    }
}

fn bytes_of(kind: &BlockKind) -> usize {
    match kind {
        BlockKind::Operator { text, .. }
        | BlockKind::Assistant { text }
        | BlockKind::Thinking { text, .. }
        | BlockKind::Note { text }
        | BlockKind::Boundary { text }
        | BlockKind::Auto { text, .. }
        | BlockKind::Answered { text } => text.len(),
        BlockKind::Tool { input, result, .. } => {
            bytes_in(input) + result.as_ref().map_or(0, String::len)
        }
        BlockKind::Foot { .. } => 0,
    }
}

fn bytes_in(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(bytes_in).sum(),
        Value::Object(fields) => fields.iter().map(|(name, of)| name.len() + bytes_in(of)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::block::{Block, BlockKind};
    use omniscio_core::ipc::{LiveView, RowView};
    use omniscio_core::session::SessionRow;
    use omniscio_core::time::Wall;

    const A: SessionId = omniscio_core::id::Uuid(1);
    const B: SessionId = omniscio_core::id::Uuid(2);

    fn row(session: SessionId, title: &str) -> Event {
        let row = SessionRow::new(session, "/p".into(), title.into(), "default".into(), Wall(0));
        Event::Row(Box::new(RowView { row, live: LiveView::default() }))
    }

    fn block(session: SessionId, seq: u64, text: &str) -> Event {
        let kind = BlockKind::Assistant { text: text.into() };
        let block = Block {
            seq,
            turn: 1,
            at: Wall(0),
            kind,
            hidden: false,
            interruption: false,
            open: true,
            cut_off: false,
        };
        Event::Block { session, block }
    }

    fn of(event: Event) -> Block {
        let Event::Block { block, .. } = event else { panic!("{event:?}") };
        block
    }

    fn delta(session: SessionId, seq: u64, text: &str) -> Event {
        Event::Delta { session, seq, text: text.into() }
    }

    fn joined(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
        let mut batch = Batch::default();
        for event in events {
            assert_eq!(batch.push(event), 0);
        }
        batch.take()
    }

    #[test]
    fn only_the_last_state_of_a_row_is_told() {
        let events = [row(A, "1"), row(B, "1"), row(A, "2"), row(A, "3")];
        assert_eq!(joined(events), [row(B, "1"), row(A, "3")]);
        assert_eq!(joined([row(A, "1"), Event::Gone(A)]), [Event::Gone(A)]);
        assert_eq!(joined([Event::Gone(A), row(A, "1")]), [row(A, "1")]);
    }

    #[test]
    fn pieces_of_one_text_become_one_and_go_on_after_their_block() {
        let events = [
            delta(A, 1, "He"),
            delta(B, 1, "x"),
            delta(A, 1, "llo"),
            block(A, 2, "W"),
            delta(A, 2, "or"),
            delta(A, 2, "ld"),
        ];
        let wanted =
            [delta(A, 1, "Hello"), delta(B, 1, "x"), block(A, 2, "W"), delta(A, 2, "orld")];
        assert_eq!(joined(events), wanted);
    }

    #[test]
    fn a_block_replaces_itself_and_the_pieces_before_it() {
        let events = [block(A, 1, ""), delta(A, 1, "Hel"), block(A, 1, "Hello"), delta(A, 1, "!")];
        assert_eq!(joined(events), [block(A, 1, "Hello"), delta(A, 1, "!")]);
    }

    #[test]
    fn every_accepted_message_is_told() {
        let sent = [Event::Sent(A), Event::Sent(A), Event::Sent(B)];
        assert_eq!(joined(sent.clone()), sent);
    }

    #[test]
    fn far_behind_the_oldest_blocks_are_left_to_the_store() {
        let mut batch = Batch::default();
        let many = u64::try_from(BLOCKS_MAX).unwrap();
        let dropped: usize = (0..many + 3).map(|seq| batch.push(block(A, seq, "x"))).sum();
        batch.push(row(A, "kept"));
        let events = batch.take();
        assert_eq!((dropped, events.len()), (3, BLOCKS_MAX + 1));
        assert_eq!(events.first(), Some(&block(A, 3, "x")));
        assert!(batch.is_empty());
    }

    #[test]
    fn few_long_blocks_drop_the_oldest_too_and_the_last_one_always_waits() {
        let half = "x".repeat(BYTES_MAX / 2);
        let mut batch = Batch::default();
        assert_eq!(batch.push(block(A, 1, &half)) + batch.push(block(A, 2, &half)), 0);
        // one that replaces itself takes no more room
        assert_eq!(batch.push(block(A, 2, &half)), 0);
        assert_eq!(batch.push(delta(B, 1, "y")), 1, "the oldest block");
        assert_eq!(batch.push(delta(B, 1, &half)), 1, "a piece that grows");
        assert_eq!(batch.push(delta(B, 1, &half)), 0, "alone it may be longer");
        assert_eq!(batch.push(row(A, "kept")), 0);
        assert_eq!((batch.bytes, batch.blocks), (2 * half.len() + 1, 1));
        assert_eq!(batch.take(), [delta(B, 1, &format!("y{half}{half}")), row(A, "kept")]);
        assert_eq!(batch.bytes, 0);

        let tool = Block {
            kind: BlockKind::Tool {
                call: "c".into(),
                name: "Write".into(),
                input: serde_json::json!({"content": [&half, {"x": 1}]}),
                result: Some(half.clone()),
                failed: false,
                denied: false,
                millis: 0,
                parent: None,
            },
            ..of(block(A, 3, ""))
        };
        batch.push(block(A, 1, "x"));
        assert_eq!(batch.push(Event::Block { session: A, block: tool }), 1, "input and result");
    }
}
