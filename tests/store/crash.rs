//! Killing the writer at any point: what was acknowledged is there, nothing stands half.

use crate::common::{Chance, NOW, assert_log_tells_all, assert_sound, change, commit, folder};
use crate::common::{insert, own_binary, plain};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::Uuid;
use omniscio_core::message::{Message, MessageState, Origin};
use omniscio_core::session::SessionRow;
use omniscio_core::supervisor::Write;
use omniscio_lib::supervise::store::Store;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

const WRITER: &str = "OMNISCIO_STORE_WRITER";
const SESSIONS: u64 = 4;

/// The child's part: steps without end. Each writes the same number into a row, a message and a
/// block, and is told on stdout once it is durable.
#[test]
fn writer() {
    let Some(database) = std::env::var_os(WRITER) else {
        return;
    };
    let mut store = Store::open(Path::new(&database)).unwrap();
    let mut rows: Vec<SessionRow> = store.every_row().unwrap();
    let mut chance = Chance::new(u64::from(std::process::id()));
    for step in rows.iter().map(|row| row.turn_count).max().unwrap_or_default() + 1.. {
        let at = chance.below(SESSIONS) as usize;
        let after = SessionRow { turn_count: step, deleted_at: None, ..chance.row(rows[at].id) };
        commit(&mut store, &writes(step, &rows[at], &after, &chance.text().repeat(500)));
        rows[at] = after;
        println!("committed {step}");
    }
}

fn writes(step: u64, before: &SessionRow, after: &SessionRow, text: &str) -> [Write; 3] {
    let message = Message {
        id: Uuid(u128::from(step)),
        session: after.id,
        origin: Origin::Operator,
        text: text.to_owned(),
        created_at: NOW,
        state: MessageState::Sent,
    };
    let block = Block {
        seq: step,
        turn: step,
        at: NOW,
        kind: BlockKind::Operator { message: message.id, text: text.to_owned() },
        hidden: false,
        interruption: false,
        open: false,
        cut_off: false,
    };
    [
        Write::Message(message),
        change(Some(before), after),
        Write::Block { session: after.id, block },
    ]
}

// proves: DB-03, INV-44, INV-65
#[test]
fn kill_9_in_the_middle_of_commits_leaves_whole_steps_and_loses_none_that_was_told() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    let rows: Vec<Write> = (1..=u128::from(SESSIONS)).map(|n| insert(&plain(n))).collect();
    commit(&mut store, &rows);
    drop(store);
    let mut chance = Chance::new(256);
    let mut last = 0;
    for round in 0..12 {
        let told = run_and_kill(&database, chance.below(40), chance.below(4_000));
        let store = Store::open(&database).unwrap();
        let steps = check(&store);
        assert!(steps >= told.max(last), "round {round}: {told} was told, {steps} stand");
        assert!(steps <= told.max(last) + 1, "round {round}: a step nobody made");
        last = steps;
        drop(store);
        assert_sound(&database);
    }
    assert!(last > 12, "the writer never came to write");
}

/// Starts the writer, kills it a moment after it told of `steps`, and returns the last it told.
fn run_and_kill(database: &Path, steps: u64, spins: u64) -> u64 {
    let mut command = own_binary("crash::writer", WRITER, database);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = |line: std::io::Result<String>| {
        line.ok().and_then(|line| line.strip_prefix("committed ").and_then(|n| n.parse().ok()))
    };
    let mut last = 0;
    for _ in 0..=steps {
        last = lines.by_ref().find_map(told).expect("the writer writes");
    }
    // a moment that is no fixed place in the writer's work
    (0..spins).for_each(|n| {
        std::hint::black_box(n);
    });
    child.kill().unwrap();
    child.wait().unwrap();
    lines.filter_map(told).last().unwrap_or(last)
}

/// Every step stands whole: row, message and block of the same number. Returns how many there are.
fn check(store: &Store) -> u64 {
    assert_log_tells_all(store);
    let rows = store.every_row().unwrap();
    let mut blocks = 0;
    for row in &rows {
        let page = store.blocks(row.id, None, u32::MAX).unwrap().blocks;
        assert_eq!(page.last().map_or(0, |block| block.seq), row.turn_count);
        for block in &page {
            let BlockKind::Operator { message, text } = &block.kind else { panic!("{block:?}") };
            assert_eq!(store.message_text(*message).unwrap().as_ref(), Some(text));
        }
        blocks += page.len() as u64;
    }
    let last = rows.iter().map(|row| row.turn_count).max().unwrap();
    assert_eq!(blocks, last, "no step is missing in between");
    assert!(store.message_text(Uuid(u128::from(last) + 1)).unwrap().is_none());
    last
}
