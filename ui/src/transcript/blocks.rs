//! The blocks of the open session as the window holds them: pages from the backend joined with live
//! news, in order and bounded. Values only: it draws nothing and decides nothing about sessions.

use omniscio_core::block::{Block, BlockKind};
use omniscio_core::ipc::TranscriptPage;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of one page, asked from the backend.
pub(crate) const PAGE: u32 = 200;
/// More blocks than this are not kept while the end is followed; older ones are fetched again.
const KEEP_MAX: usize = 800;
/// Trimming goes down to this, so that it does not happen at every new block.
const KEEP_AFTER_TRIM: usize = 500;
/// Text kept for a block that is not here yet, in bytes. What is beyond comes with the whole block.
const EARLY_TEXT_MAX: usize = 256 * 1024;

/// The blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    by_seq: BTreeMap<u64, Block>,
    /// Pieces that came before the page that holds their block.
    early: BTreeMap<u64, String>,
    loaded: bool,
    earlier: bool,
}

/// What one piece of news changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing that shows.
    Nothing,
    /// Which blocks there are, or how they group.
    Order,
    /// The content of this block alone.
    Content(u64),
}

/// One thing that is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// A block by itself.
    Single(u64),
    /// Consecutive tool calls, in one list.
    Tools(Vec<u64>),
}

impl Item {
    /// Stays the same while the item grows.
    pub(crate) fn key(&self) -> (bool, u64) {
        match self {
            Item::Single(seq) => (false, *seq),
            Item::Tools(calls) => (true, calls.first().copied().unwrap_or_default()),
        }
    }
}

impl Blocks {
    /// Whether a page has come.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Whether the backend has blocks before the first one here.
    pub(crate) fn has_earlier(&self) -> bool {
        self.earlier
    }

    /// The first block's number.
    pub(crate) fn first(&self) -> Option<u64> {
        self.by_seq.keys().next().copied()
    }

    /// One block.
    pub(crate) fn get(&self, seq: u64) -> Option<&Block> {
        self.by_seq.get(&seq)
    }

    /// The turn of the last block.
    pub(crate) fn last_turn(&self) -> u64 {
        self.by_seq.values().next_back().map_or(0, |block| block.turn)
    }

    /// Takes a page. A block that came live meanwhile is newer than the page's and stays.
    pub(crate) fn take_page(&mut self, page: TranscriptPage) {
        self.loaded = true;
        self.earlier = page.earlier;
        for mut block in page.blocks {
            let early = self.early.remove(&block.seq);
            if block.open {
                append_missing(&mut block, &early.unwrap_or_default());
            }
            self.by_seq.entry(block.seq).or_insert(block);
        }
    }

    /// Takes a block that is new or replaced.
    pub(crate) fn take_block(&mut self, block: Block) -> Change {
        self.early.remove(&block.seq);
        let seq = block.seq;
        let before_page = self.earlier && self.first().is_some_and(|first| seq < first);
        if before_page {
            // it stands in a page that is not fetched; it comes with that page
            return Change::Nothing;
        }
        let old = self.by_seq.insert(seq, block);
        let new = self.by_seq.get(&seq);
        match (old, new) {
            (Some(old), Some(new)) if groups_alike(&old, new) => Change::Content(seq),
            _ => Change::Order,
        }
    }

    /// Appends a piece of text to an open block.
    pub(crate) fn take_delta(&mut self, seq: u64, text: &str) -> Change {
        if let Some(block) = self.by_seq.get_mut(&seq) {
            let was_empty = is_empty(block);
            let Some(own) = text_of(block) else {
                return Change::Nothing;
            };
            own.push_str(text);
            let same_place = was_empty == is_empty(block);
            return if same_place { Change::Content(seq) } else { Change::Order };
        }
        if !self.loaded {
            let early = self.early.entry(seq).or_default();
            if early.len() + text.len() <= EARLY_TEXT_MAX {
                early.push_str(text);
            }
        }
        Change::Nothing
    }

    /// Lets go of the oldest blocks when there are too many. Returns whether any went.
    pub(crate) fn trim(&mut self) -> bool {
        if self.by_seq.len() <= KEEP_MAX {
            return false;
        }
        while self.by_seq.len() > KEEP_AFTER_TRIM {
            self.by_seq.pop_first();
        }
        self.earlier = true;
        true
    }

    /// What is drawn, in order. Hidden blocks are absent unless they are asked for (UI-22).
    pub(crate) fn items(&self, show_hidden: bool) -> Vec<Item> {
        // rule: UI-22
        let here: BTreeSet<&str> = self.by_seq.values().filter_map(call_of).collect();
        let mut items: Vec<Item> = Vec::new();
        for (seq, block) in &self.by_seq {
            if (block.hidden && !show_hidden) || is_empty(block) {
                continue;
            }
            if let BlockKind::Tool { parent, .. } = &block.kind {
                if parent.as_deref().is_some_and(|parent| here.contains(parent)) {
                    continue;
                }
                if let Some(Item::Tools(calls)) = items.last_mut() {
                    calls.push(*seq);
                    continue;
                }
                items.push(Item::Tools(vec![*seq]));
            } else {
                items.push(Item::Single(*seq));
            }
        }
        items
    }

    /// The calls of a sub-agent, in order.
    pub(crate) fn children(&self, of: &str) -> Vec<u64> {
        let child = |block: &Block| matches!(&block.kind, BlockKind::Tool { parent: Some(parent), .. } if parent == of);
        self.by_seq.iter().filter(|(_, block)| child(block)).map(|(seq, _)| *seq).collect()
    }

    /// Whether a reply or a message of the person stands after this block.
    pub(crate) fn is_followed(&self, seq: u64) -> bool {
        self.by_seq.range(seq + 1..).any(|(_, block)| {
            !block.hidden
                && matches!(block.kind, BlockKind::Assistant { .. } | BlockKind::Operator { .. })
        })
    }
}

/// Nothing to show yet: an open text without a letter.
fn is_empty(block: &Block) -> bool {
    match &block.kind {
        BlockKind::Assistant { text } => text.trim().is_empty(),
        BlockKind::Operator { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => false,
    }
}

fn call_of(block: &Block) -> Option<&str> {
    match &block.kind {
        BlockKind::Tool { call, .. } => Some(call),
        BlockKind::Operator { .. }
        | BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    }
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

/// Whether a replaced block stands where the old one stood.
fn groups_alike(old: &Block, new: &Block) -> bool {
    let place = |block: &Block| match &block.kind {
        BlockKind::Tool { parent, .. } => (1, parent.clone()),
        BlockKind::Operator { .. }
        | BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Auto { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => (0, None),
    };
    old.hidden == new.hidden && is_empty(old) == is_empty(new) && place(old) == place(new)
}

/// Appends the part of `early` that the block does not hold yet: the page was read at some moment
/// while these pieces came, so it ends with some beginning of them.
fn append_missing(block: &mut Block, early: &str) {
    let Some(text) = text_of(block) else { return };
    let cuts = early.char_indices().map(|(at, _)| at).chain([early.len()]);
    let held = cuts.filter(|cut| text.ends_with(&early[..*cut])).max().unwrap_or_default();
    text.push_str(&early[held..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::time::Wall;
    use serde_json::Value;

    fn block(seq: u64, kind: BlockKind) -> Block {
        Block {
            seq,
            turn: 1,
            at: Wall(0),
            kind,
            hidden: false,
            interruption: false,
            open: false,
            cut_off: false,
        }
    }

    fn say(seq: u64, text: &str) -> Block {
        block(seq, BlockKind::Assistant { text: text.into() })
    }

    fn tool(seq: u64, parent: Option<&str>) -> Block {
        let kind = BlockKind::Tool {
            call: format!("call-{seq}"),
            name: "Read".into(),
            input: Value::Null,
            result: None,
            failed: false,
            denied: false,
            millis: 0,
            parent: parent.map(String::from),
        };
        block(seq, kind)
    }

    fn page(blocks: Vec<Block>, earlier: bool) -> TranscriptPage {
        TranscriptPage { blocks, earlier }
    }

    fn text(blocks: &Blocks, seq: u64) -> String {
        let BlockKind::Assistant { text } = &blocks.get(seq).unwrap().kind else {
            panic!("{seq} is no reply");
        };
        text.clone()
    }

    // proves: UI-22
    #[test]
    fn hidden_rows_are_kept_and_absent_until_they_are_asked_for() {
        let mut blocks = Blocks::default();
        let mut note = block(2, BlockKind::Note { text: "cut off".into() });
        (note.hidden, note.interruption) = (true, true);
        blocks.take_page(page(vec![say(1, "a"), note, say(3, "b")], false));
        assert_eq!(blocks.items(false), [Item::Single(1), Item::Single(3)]);
        assert_eq!(blocks.items(true), [1, 2, 3].map(Item::Single));
    }

    #[test]
    fn tools_in_a_row_are_one_list_and_hidden_rows_do_not_part_them() {
        let mut blocks = Blocks::default();
        let mut nudge = block(3, BlockKind::Note { text: "n".into() });
        nudge.hidden = true;
        let all =
            vec![say(1, "a"), tool(2, None), nudge, tool(4, None), say(5, "b"), tool(6, None)];
        blocks.take_page(page(all, false));
        let tools = |calls: &[u64]| Item::Tools(calls.to_vec());
        assert_eq!(
            blocks.items(false),
            [Item::Single(1), tools(&[2, 4]), Item::Single(5), tools(&[6])]
        );
        assert_eq!(blocks.items(true).len(), 6, "a shown hidden row parts them");
    }

    #[test]
    fn calls_of_a_sub_agent_stand_under_its_call_or_alone_when_that_is_not_here() {
        let mut blocks = Blocks::default();
        blocks.take_page(page(vec![tool(1, None), tool(2, Some("call-1"))], false));
        assert_eq!(blocks.items(false), [Item::Tools(vec![1])]);
        assert_eq!(blocks.children("call-1"), [2]);
        blocks.take_block(tool(3, Some("long-gone")));
        assert_eq!(blocks.items(false), [Item::Tools(vec![1, 3])]);
    }

    #[test]
    fn pieces_append_and_a_whole_block_replaces() {
        let mut blocks = Blocks::default();
        blocks.take_page(page(vec![], false));
        assert_eq!(blocks.take_block(say(1, "")), Change::Order);
        assert_eq!(blocks.items(false), [], "nothing to show yet");
        assert_eq!(blocks.take_delta(1, "Hel"), Change::Order, "now there is");
        assert_eq!(blocks.take_delta(1, "lo"), Change::Content(1));
        assert_eq!(text(&blocks, 1), "Hello");
        assert_eq!(blocks.take_block(say(1, "Hello.")), Change::Content(1));
        assert_eq!(text(&blocks, 1), "Hello.");
        assert_eq!(blocks.take_delta(9, "lost"), Change::Nothing, "no such block");
    }

    #[test]
    fn pieces_that_race_a_page_are_neither_lost_nor_doubled() {
        for (in_page, wanted) in [
            ("One ", "One two three"),
            ("One two ", "One two three"),
            ("One two three", "One two three"),
        ] {
            let mut blocks = Blocks::default();
            blocks.take_delta(1, "two ");
            blocks.take_delta(1, "three");
            let mut open = say(1, in_page);
            open.open = true;
            blocks.take_page(page(vec![open], false));
            assert_eq!(text(&blocks, 1), wanted);
        }
        // a finished block is whole
        let mut blocks = Blocks::default();
        blocks.take_delta(1, "x");
        blocks.take_page(page(vec![say(1, "done")], false));
        assert_eq!(text(&blocks, 1), "done");
    }

    #[test]
    fn live_news_is_newer_than_a_page() {
        let mut blocks = Blocks::default();
        blocks.take_block(say(1, "new"));
        blocks.take_page(page(vec![say(1, "old")], true));
        assert_eq!(text(&blocks, 1), "new");
        assert!(blocks.has_earlier());
    }

    #[test]
    fn old_blocks_go_when_there_are_too_many_and_are_said_to_be_earlier() {
        let mut blocks = Blocks::default();
        blocks.take_page(page((1..=800).map(|seq| say(seq, "x")).collect(), false));
        assert!(!blocks.trim());
        blocks.take_block(say(801, "x"));
        assert!(blocks.trim());
        assert_eq!((blocks.first(), blocks.items(false).len()), (Some(302), 500));
        assert!(blocks.has_earlier());
        assert_eq!(blocks.take_block(say(5, "late")), Change::Nothing, "it comes with its page");
    }

    #[test]
    fn a_reply_is_followed_by_the_next_reply_or_message_only() {
        let mut blocks = Blocks::default();
        let mut hidden = say(2, "hidden");
        hidden.hidden = true;
        let note = block(3, BlockKind::Note { text: "n".into() });
        blocks.take_page(page(vec![say(1, "cut"), hidden, note], false));
        assert!(!blocks.is_followed(1));
        blocks.take_block(say(4, "again"));
        assert!(blocks.is_followed(1) && !blocks.is_followed(4));
    }
}
