//! The compare-and-set: a step whose rows are not as they were read writes nothing at all.

use crate::common::{NOW, assert_log_tells_all, change, commit, dump, folder, insert, plain};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::Uuid;
use omniscio_core::message::{Message, MessageState, Origin};
use omniscio_core::session::{OpenTurn, PendingAction, SessionRow, Status};
use omniscio_core::settings::Settings;
use omniscio_core::supervisor::Write;
use omniscio_lib::supervise::store::{Committed, Store};

fn turn(number: u64) -> OpenTurn {
    OpenTurn { number, since: NOW, replay: None, real_output: false }
}

/// One way in which a row can differ from what was read.
type Difference = fn(&mut SessionRow);

const DIFFERENCES: [(&str, Difference); 7] = [
    ("status", |row| row.status = Status::Error),
    ("pending action", |row| row.pending = Some(PendingAction::Question)),
    ("no pending action", |row| row.pending = None),
    ("counter", |row| row.retry_attempts = 2),
    ("turn", |row| row.turn = Some(turn(8))),
    ("no turn", |row| row.turn = None),
    ("deleted", |row| row.deleted_at = Some(NOW)),
];

// proves: DB-03, AB-04, INV-44
#[test]
fn a_step_with_one_row_that_changed_since_writes_nothing() {
    for (what, differ) in DIFFERENCES {
        let (_folder, database) = folder();
        let mut store = Store::open(&database).unwrap();
        let mut read = plain(1);
        (read.status, read.pending) = (Status::NeedsYou, Some(PendingAction::ResponseAborted));
        (read.retry_attempts, read.turn) = (1, Some(turn(7)));
        let mut stands = read.clone();
        differ(&mut stands);
        commit(&mut store, &[insert(&stands), insert(&plain(2))]);
        let before = dump(&database);

        let mut after = read.clone();
        after.status = Status::Starting;
        let mut other = plain(2);
        other.title = "changed".to_owned();
        let message = Message {
            id: Uuid(77),
            session: Uuid(2),
            origin: Origin::Operator,
            text: "text".to_owned(),
            created_at: NOW,
            state: MessageState::Queued,
        };
        let block = Block {
            seq: 1,
            turn: 1,
            at: NOW,
            kind: BlockKind::Note { text: "note".to_owned() },
            hidden: false,
            interruption: false,
            open: false,
            cut_off: false,
        };
        let step = [
            Write::Message(message),
            Write::Block { session: Uuid(2), block },
            Write::Settings(Settings::default()),
            insert(&plain(3)),
            change(Some(&plain(2)), &other),
            change(Some(&read), &after),
        ];
        let refused = Committed::Refused { session: Uuid(1) };
        assert_eq!(store.commit(&step, NOW).unwrap(), refused, "{what}");
        assert_eq!(dump(&database), before, "{what}");

        // the same step goes through once the row is read again
        let [.., last] = &step[..] else { panic!() };
        let mut again = step[..5].to_vec();
        again.push(change(Some(&stands), &after));
        assert_ne!(&again[5], last);
        commit(&mut store, &again);
        assert_log_tells_all(&store);
    }
}

#[test]
fn a_new_row_does_not_replace_one_that_is_there_and_a_missing_one_is_not_changed() {
    let (_folder, database) = folder();
    let mut store = Store::open(&database).unwrap();
    commit(&mut store, &[insert(&plain(1))]);
    let before = dump(&database);
    for write in [insert(&plain(1)), change(Some(&plain(2)), &plain(2))] {
        assert!(matches!(store.commit(&[write], NOW), Ok(Committed::Refused { .. })));
    }
    assert_eq!(dump(&database), before);
}
