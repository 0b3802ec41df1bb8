//! Every recorded stream of the real CLI, built into blocks and seen as the window sees them.

extern crate std;

use super::{Builder, Change};
use crate::block::{Block, BlockKind};
use crate::limits::Limits;
use crate::stream::captures_test::{captures, events};
use crate::stream::{Content, StreamEvent};
use crate::time::{Mono, Now, Wall};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What the window knows: blocks replaced whole, deltas appended.
#[derive(Default)]
pub(super) struct Window(pub(super) BTreeMap<u64, Block>);

impl Window {
    pub(super) fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Save(block) | Change::Show(block) => {
                    self.0.insert(block.seq, block);
                }
                Change::Delta { seq, text } => {
                    let block = self.0.get_mut(&seq).expect("a delta follows its block");
                    assert!(block.open, "a delta for a closed block");
                    let (BlockKind::Assistant { text: shown }
                    | BlockKind::Thinking { text: shown, .. }) = &mut block.kind
                    else {
                        panic!("a delta for {:?}", block.kind);
                    };
                    shown.push_str(&text);
                }
            }
        }
    }

    /// What the default view shows, in order.
    pub(super) fn visible(&self) -> Vec<&Block> {
        self.0.values().filter(|block| !block.hidden).collect()
    }
}

pub(super) fn at(millis: u64) -> Now {
    Now { wall: Wall(millis as i64), mono: Mono(millis), ..Now::default() }
}

fn run(events: &[StreamEvent], name: &str) -> Window {
    let (mut builder, mut window) = (Builder::new(0), Window::default());
    let mut turn = 1;
    for (step, event) in events.iter().enumerate() {
        let now = at(step as u64 * 10);
        window.apply(builder.observe(event, turn, now, &Limits::default()));
        if let StreamEvent::Result(_) = event {
            window.apply(builder.end_turn(now));
            turn += 1;
            for block in window.visible() {
                let of_agent = matches!(&block.kind, BlockKind::Tool { parent: Some(_), .. });
                assert!(!block.open || of_agent, "{name}: open after its turn: {block:?}");
            }
        }
    }
    window
}

fn shown_texts(window: &Window) -> Vec<String> {
    let mut texts = Vec::new();
    for block in window.visible() {
        if let BlockKind::Assistant { text } = &block.kind {
            texts.push(text.clone());
        }
    }
    texts
}

/// The finished texts of the main thread, as the stream has them.
fn finished_texts(events: &[StreamEvent]) -> Vec<String> {
    let mut texts = Vec::new();
    for event in events {
        if let StreamEvent::Assistant(line) = event
            && line.parent.is_none()
            && !line.synthetic
        {
            for content in &line.content {
                if let Content::Text(text) = content {
                    texts.push(text.trim().into());
                }
            }
        }
    }
    texts
}

fn kinds(window: &Window) -> Vec<(BlockKind, bool)> {
    let timeless = |block: &Block| {
        let mut kind = block.kind.clone();
        if let BlockKind::Thinking { millis, .. } | BlockKind::Tool { millis, .. } = &mut kind {
            *millis = 0;
        }
        (kind, block.cut_off)
    };
    window.visible().into_iter().map(timeless).collect()
}

#[test]
fn the_shown_texts_are_exactly_the_finished_ones() {
    let mut texts = 0;
    for (name, bytes) in captures() {
        let events = events(&bytes, &[]);
        let finished = finished_texts(&events);
        let window = run(&events, &name);
        // streams that were recorded without their end keep what was being streamed
        let ended = matches!(events.last(), Some(StreamEvent::Result(_)));
        let shown = shown_texts(&window);
        if ended || shown.len() == finished.len() {
            assert_eq!(shown, finished, "{name}");
            texts += finished.len();
        }
    }
    assert!(texts > 100, "{texts} texts compared");
}

#[test]
fn without_partial_messages_the_blocks_are_the_same() {
    for (name, bytes) in captures() {
        let all = events(&bytes, &[]);
        if !matches!(all.last(), Some(StreamEvent::Result(_))) {
            continue;
        }
        let lines: Vec<StreamEvent> =
            all.iter().filter(|e| !matches!(e, StreamEvent::Partial(_))).cloned().collect();
        assert_eq!(kinds(&run(&all, &name)), kinds(&run(&lines, &name)), "{name}");
    }
}

#[test]
fn every_call_of_an_ended_turn_has_its_result() {
    let mut calls = 0;
    for (name, bytes) in captures() {
        let all = events(&bytes, &[]);
        let mut answered: Vec<&str> = Vec::new();
        for event in &all {
            if let StreamEvent::User(echo) = event {
                answered.extend(echo.results.iter().map(|result| result.tool_use.as_str()));
            }
        }
        for block in run(&all, &name).0.values() {
            if let BlockKind::Tool { call, result, input, .. } = &block.kind {
                assert_eq!(result.is_some(), answered.contains(&call.as_str()), "{name}: {call}");
                assert!(!input.is_null() || block.hidden || block.open, "{name}: {call}");
                calls += 1;
            }
        }
    }
    assert!(calls >= 40, "{calls} calls");
}
