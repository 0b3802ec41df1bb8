//! A machine that sleeps for eight hours: nobody was silent of their own accord.

use super::{HOUR, MINUTE, One, Rig, SECOND, piece};
use crate::session::{PendingAction, Status};
use crate::stream::{BlockStart, PartialKind};

/// Longer than every limit.
const NIGHT: u64 = 8 * HOUR;

fn running(rig: &Rig, one: One) -> bool {
    let row = rig.view_of(one).row;
    (row.status, row.pending) == (Status::Running, None)
}

// proves: A-05
#[test]
fn a_closed_lid_kills_nobody_and_gives_every_turn_its_whole_limit_again() {
    let mut rig = Rig::new();
    let [no_output, text, thought, tool] =
        ["one", "two", "three", "four"].map(|message| rig.another(message));
    for (one, block) in [(text, BlockStart::Text), (thought, BlockStart::Thinking)] {
        rig.tell(one, piece(PartialKind::MessageStart { context_tokens: 10 }));
        rig.tell(one, piece(PartialKind::BlockStart { index: 0, block }));
    }
    rig.tell(tool, Rig::tool_line("call-1", "make"));
    // what is cut off below stays so: the folder is away
    rig.folder = false;
    rig.pass(110 * SECOND);
    let scans = rig.scans;
    rig.sleep(NIGHT);
    assert_eq!((rig.scans - scans, rig.stops, rig.spawned), (1, 0, 4), "one scan, no kill");
    assert!([no_output, text, thought, tool].into_iter().all(|one| running(&rig, one)));
    let mut passed = 0;
    for (one, limit) in [(no_output, 2 * MINUTE), (text, 3 * MINUTE), (thought, 10 * MINUTE)] {
        let stops = rig.stops;
        rig.pass(limit - 1 - passed);
        assert!(running(&rig, one) && rig.stops == stops, "before {limit} ms");
        rig.pass(1);
        assert_eq!(
            rig.view_of(one).row.pending,
            Some(PendingAction::ResponseAborted),
            "at {limit} ms"
        );
        passed = limit;
    }
    assert!(running(&rig, tool));
    assert_eq!(rig.scans - scans, 1 + 10, "and then one a minute again");
}

// proves: A-02
#[test]
fn a_closed_lid_is_no_start_that_hangs() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn();
    rig.pass(14 * SECOND);
    rig.sleep(NIGHT);
    rig.pass(15 * SECOND - 1);
    assert_eq!((rig.spawned, rig.stops), (1, 0));
    rig.pass(1);
    assert_eq!((rig.spawned, rig.stops), (2, 1));
}

// proves: SC-01
#[test]
fn a_closed_lid_over_a_cut_off_reply_costs_one_replay() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    rig.sleep(NIGHT);
    assert_eq!((rig.scans, rig.spawned, rig.row().retry_attempts), (1, 2, 1));
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.pass(HOUR);
    assert_eq!((rig.spawned, rig.row().status), (2, Status::NeedsYou));
}
