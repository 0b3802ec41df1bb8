//! Messages and blocks: order, paging, the last operator turn, and what a deletion takes along.

use crate::common::{NOW, as_stored, assert_log_tells_all, change, commit, folder, insert, plain};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::card::{Card, CardKind};
use omniscio_core::id::Uuid;
use omniscio_core::message::{Message, MessageState, Origin};
use omniscio_core::session::SessionRow;
use omniscio_core::supervisor::Write;
use omniscio_core::time::Wall;
use omniscio_lib::supervise::store::Store;
use rusqlite::Connection;
use serde_json::json;

const SESSION: Uuid = Uuid(1);

fn message(number: u128, origin: Origin, state: MessageState, text: &str) -> Message {
    // the clock goes backwards: the order is that of writing
    let created_at = Wall(NOW.0 - i64::try_from(number).unwrap());
    Message { id: Uuid(number), session: SESSION, origin, text: text.to_owned(), created_at, state }
}

fn block(seq: u64, kind: BlockKind) -> Block {
    let at = Wall(NOW.0 + i64::try_from(seq).unwrap());
    Block {
        seq,
        turn: 1,
        at,
        kind,
        hidden: false,
        interruption: false,
        open: false,
        cut_off: false,
    }
}

fn text(seq: u64, text: &str) -> Block {
    block(seq, BlockKind::Assistant { text: text.to_owned() })
}

fn store_of(block: Block) -> Write {
    Write::Block { session: SESSION, block }
}

fn with_session() -> (tempfile::TempDir, std::path::PathBuf, Store) {
    let (folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&plain(1))]);
    (folder, database, store)
}

// proves: DB-09
#[test]
fn the_last_operator_turn_is_the_newest_of_the_three_origins_that_was_not_taken_back() {
    let (_folder, _database, mut store) = with_session();
    assert_eq!(store.last_operator_message(SESSION).unwrap(), None);
    let mut number = 0;
    for origin in [Origin::Orchestrator, Origin::OperatorPill, Origin::Operator] {
        number += 1;
        let wanted = message(number, origin, MessageState::Answered, "wanted");
        commit(&mut store, &[Write::Message(wanted.clone())]);
        for other in Origin::ALL.iter().filter(|origin| !origin.is_replayable()) {
            number += 1;
            let other = message(number, *other, MessageState::Sent, "automatic");
            commit(&mut store, &[Write::Message(other)]);
        }
        number += 1;
        let taken_back = message(number, Origin::Operator, MessageState::Queued, "no, wait");
        let withdraw = Write::MessageState { id: taken_back.id, state: MessageState::Withdrawn };
        commit(&mut store, &[Write::Message(taken_back), withdraw]);
        number += 1;
        let local = message(number, Origin::Operator, MessageState::Answered, "/compact");
        commit(&mut store, &[Write::Message(local)]);
        assert_eq!(store.last_operator_message(SESSION).unwrap(), Some(wanted));
    }
    assert_eq!(store.message_text(Uuid(1)).unwrap().as_deref(), Some("wanted"));
    assert_eq!(store.message_text(Uuid(999)).unwrap(), None);
}

#[test]
fn what_was_said_since_the_last_answer_is_told_without_commands_and_what_waits() {
    let (_folder, _database, mut store) = with_session();
    assert_eq!(store.unanswered_messages(SESSION).unwrap(), None);
    let mut number = 0;
    let mut say = |origin, state, text: &str| {
        number += 1;
        commit(&mut store, &[Write::Message(message(number, origin, state, text))]);
        store.unanswered_messages(SESSION).unwrap()
    };
    assert!(say(Origin::Operator, MessageState::Sent, "stopped long ago").is_some());
    for origin in [Origin::OperatorPill, Origin::Orchestrator, Origin::Operator] {
        assert_eq!(say(origin, MessageState::Answered, "answered"), None, "{origin:?}");
    }
    let first = Some("first".to_owned());
    assert_eq!(say(Origin::Operator, MessageState::Sent, "first"), first);
    for other in Origin::ALL.iter().filter(|origin| !origin.is_replayable()) {
        assert_eq!(say(*other, MessageState::Answered, "automatic"), first, "{other:?}");
    }
    for state in [MessageState::Sent, MessageState::Answered] {
        assert_eq!(say(Origin::Operator, state, "/compact"), first);
    }
    for state in [MessageState::Queued, MessageState::Withdrawn] {
        assert_eq!(say(Origin::Operator, state, "not sent"), first);
    }
    assert_eq!(say(Origin::OperatorPill, MessageState::Sent, "Please continue."), first);
    let both = Some("first\n\nand a report".to_owned());
    assert_eq!(say(Origin::Orchestrator, MessageState::Sent, "and a report"), both);
}

#[test]
fn queues_come_back_oldest_first_without_what_was_sent() {
    let (_folder, database, mut store) = with_session();
    let queue = [
        message(1, Origin::Operator, MessageState::Sent, "sent"),
        message(2, Origin::Operator, MessageState::Queued, "  first line\nsecond"),
        message(3, Origin::OperatorPill, MessageState::Queued, "/compact"),
        message(4, Origin::Operator, MessageState::Withdrawn, "gone"),
    ];
    commit(&mut store, &queue.map(Write::Message));
    drop(store);
    let queues = Store::open(&database).unwrap().load().unwrap().queues;
    assert_eq!(queues.len(), 1);
    let told: Vec<_> =
        queues[0].1.iter().map(|q| (q.id, q.preview.as_str(), q.local_command)).collect();
    assert_eq!(queues[0].0, SESSION);
    assert_eq!(told, [(Uuid(2), "first line", false), (Uuid(3), "/compact", true)]);
}

#[test]
fn every_kind_of_block_comes_back_and_is_replaced_whole() {
    let (_folder, _database, mut store) = with_session();
    let kinds = [
        BlockKind::Operator { message: Uuid(9), text: "ask ünï".to_owned() },
        BlockKind::Thinking { text: "hm".to_owned(), millis: 12 },
        BlockKind::Tool {
            call: "c".to_owned(),
            name: "Bash".to_owned(),
            input: json!({"command": "ls", "n": [1, null]}),
            result: Some("out".to_owned()),
            failed: true,
            denied: false,
            millis: 3,
            parent: Some("p".to_owned()),
        },
        BlockKind::Note { text: "note".to_owned() },
        BlockKind::Boundary { text: "compacted".to_owned() },
        BlockKind::Auto { origin: Origin::Replay, text: "again".to_owned() },
        BlockKind::Answered { text: "allowed".to_owned() },
        BlockKind::Foot { millis: 9, cost_microdollars: 1 },
        BlockKind::Assistant { text: "answer".to_owned() },
    ];
    let mut blocks: Vec<Block> = (1..).zip(kinds).map(|(seq, kind)| block(seq, kind)).collect();
    (blocks[1].hidden, blocks[3].interruption) = (true, true);
    (blocks[8].open, blocks[6].cut_off) = (true, true);
    commit(&mut store, &blocks.iter().cloned().map(store_of).collect::<Vec<_>>());
    let page = store.blocks(SESSION, None, 100).unwrap();
    assert_eq!((&page.blocks, page.earlier), (&blocks, false));
    assert_eq!(store.load().unwrap().block_counts, [(SESSION, 9)]);

    let source: Vec<_> = store.handover_source(SESSION).unwrap();
    assert_eq!(source.iter().map(|block| block.seq).collect::<Vec<_>>(), [1, 3, 9]);
    assert!(matches!(&source[1].kind, BlockKind::Tool { result: Some(r), .. } if r.is_empty()));

    blocks[8] = text(9, "answer, longer");
    commit(&mut store, &[store_of(blocks[8].clone())]);
    assert_eq!(store.blocks(SESSION, None, 100).unwrap().blocks, blocks);
}

#[test]
fn pages_go_backwards_without_a_gap_and_say_whether_more_is_before() {
    let (_folder, _database, mut store) = with_session();
    let all: Vec<Block> = (1..=25).map(|seq| text(seq, &format!("b{seq}"))).collect();
    commit(&mut store, &all.iter().cloned().map(store_of).collect::<Vec<_>>());
    let (mut seen, mut before, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.blocks(SESSION, before, 10).unwrap();
        before = page.blocks.first().map(|block| block.seq);
        seen.splice(0..0, page.blocks);
        pages += 1;
        if !page.earlier {
            break;
        }
    }
    assert_eq!((seen, pages), (all, 3));
    assert!(!store.blocks(SESSION, None, 25).unwrap().earlier);
    assert_eq!(store.blocks(Uuid(2), None, 5).unwrap().blocks, []);
}

#[test]
fn blocks_that_were_open_when_the_app_died_are_closed_as_cut_off() {
    let (_folder, _database, mut store) = with_session();
    let open = Block { open: true, ..text(2, "half") };
    commit(&mut store, &[store_of(text(1, "whole")), store_of(open.clone())]);
    assert_eq!(store.close_open_blocks().unwrap(), 1);
    let closed = Block { open: false, cut_off: true, ..open };
    assert_eq!(store.blocks(SESSION, None, 9).unwrap().blocks, [text(1, "whole"), closed]);
    assert_eq!(store.close_open_blocks().unwrap(), 0);
}

#[test]
fn a_deletion_leaves_no_quotes_in_its_row_and_its_entry_and_nothing_on_the_disk() {
    let (_folder, database, mut store) = with_session();
    let said = message(1, Origin::Operator, MessageState::Queued, "a secret plan");
    commit(&mut store, &[Write::Message(said), store_of(text(1, "a secret plan"))]);
    let quoting = SessionRow {
        title: "quoted".to_owned(),
        words: Some("quoted".to_owned()),
        answer_line: Some("quoted".to_owned()),
        card: Some(Card {
            request: "r".to_owned(),
            tool_use: "t".to_owned(),
            kind: CardKind::Permission,
            tool: "Bash".to_owned(),
            input: json!({"command": "quoted"}),
            suggestions: Vec::new(),
            reason: None,
            asked_at: NOW,
            orphaned: false,
        }),
        ..plain(1)
    };
    commit(&mut store, &[change(Some(&plain(1)), &quoting)]);
    let on_disk = |words: &str| {
        let files = ["omniscio.db", "omniscio.db-wal"].map(|name| database.with_file_name(name));
        files.iter().any(|file| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(words.len()).any(|part| part == words.as_bytes())
        })
    };
    assert!(on_disk("a secret plan"));

    // the reducer's own row still has them, also in what it writes later
    let deleted = SessionRow { deleted_at: Some(NOW), ..quoting.clone() };
    let later = SessionRow { unread: true, ..deleted.clone() };
    commit(&mut store, &[change(Some(&quoting), &deleted)]);
    commit(&mut store, &[change(Some(&deleted), &later)]);
    assert!(!on_disk("a secret plan"), "it is still on the disk");
    assert_eq!(store.row(SESSION).unwrap(), Some(as_stored(&later)));
    assert_log_tells_all(&store);
    let connection = Connection::open(&database).unwrap();
    let sql = "SELECT ifnull(before, '') || after FROM transitions ORDER BY id DESC LIMIT 2";
    let mut entries = connection.prepare(sql).unwrap();
    let entries = entries.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert!(entries.map(Result::unwrap).all(|entry| !entry.contains("quoted")));
}

// proves: DB-07
#[test]
fn a_deletion_takes_the_conversation_along_and_keeps_the_audit_log() {
    let (_folder, database, mut store) = with_session();
    let said = message(1, Origin::Operator, MessageState::Queued, "a secret plan");
    commit(&mut store, &[Write::Message(said), store_of(text(1, "a secret plan"))]);
    let mut deleted = plain(1);
    deleted.deleted_at = Some(NOW);
    // what still arrives of a deleted session is not kept either
    commit(
        &mut store,
        &[
            change(Some(&plain(1)), &deleted),
            store_of(text(2, "a secret plan")),
            Write::MessageState { id: Uuid(1), state: MessageState::Answered },
        ],
    );
    let loaded = store.load().unwrap();
    assert!(loaded.rows.is_empty() && loaded.queues.is_empty() && loaded.block_counts.is_empty());
    assert_eq!(store.blocks(SESSION, None, 9).unwrap().blocks, []);
    assert_eq!(store.audit(Some(SESSION), 9).unwrap().len(), 2);
    let connection = Connection::open(&database).unwrap();
    for table in ["messages", "blocks"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}
