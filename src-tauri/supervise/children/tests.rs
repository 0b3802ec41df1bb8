//! Which of the marked processes count as left behind, on made-up process tables. The one living
//! recorded CLI of these tables is this test process.

use super::*;
use std::cell::RefCell;

const DEAD: ProcessId = ProcessId { pid: 500, start_time: 0 };
const OTHER_DEAD: ProcessId = ProcessId { pid: 501, start_time: 0 };

fn living() -> ProcessId {
    ProcessId::of(std::process::id()).expect("this process lives")
}

fn marked(pid: u32, cli: Option<u32>) -> Marked {
    Marked { id: ProcessId { pid, start_time: 7 }, session_id: "s".to_string(), cli }
}

/// Whether process 900, an orphan whose environment names `cli`, is left behind.
fn left_behind(cli: Option<u32>, parents: &[ProcessId]) -> bool {
    let snapshot = Snapshot {
        marked: vec![marked(900, cli), marked(800, None)],
        parent_of: BTreeMap::from([(900, 1), (800, 1)]),
        sheltered: BTreeSet::new(),
        spared: BTreeSet::new(),
    };
    snapshot.left_behind(&marked(900, cli), parents)
}

// proves: A-03
#[test]
fn the_recorded_cli_must_be_dead() {
    let here = living();
    let reused = ProcessId { pid: here.pid, start_time: here.start_time + 1 };
    for (cli, parents, wanted) in [
        // its own CLI is recorded
        (Some(500), vec![DEAD], true),
        (Some(500), vec![DEAD, here], true),
        (Some(here.pid), vec![here], false),
        (Some(here.pid), vec![DEAD, here], false),
        // the number of its CLI was recorded twice: one of them lives
        (Some(here.pid), vec![reused, here], false),
        (Some(here.pid), vec![reused], true),
        // its own CLI is not known
        (None, vec![DEAD, OTHER_DEAD], true),
        (None, vec![DEAD, here], false),
        (Some(77), vec![DEAD], true),
        (Some(77), vec![DEAD, here], false),
        // an unrecorded CLI of this install that lives
        (Some(800), vec![DEAD], false),
        // nothing is recorded
        (None, vec![], false),
        (Some(500), vec![], false),
    ] {
        assert_eq!(left_behind(cli, &parents), wanted, "CLI {cli:?}, recorded {parents:?}");
    }
}

// proves: A-03
#[test]
fn what_is_below_a_sheltered_process_or_above_this_one_is_kept() {
    let below = |pid, sheltered: &[u32], spared: &[u32]| {
        let snapshot = Snapshot {
            marked: vec![],
            parent_of: BTreeMap::from([(900, 890), (890, 880), (880, 1)]),
            sheltered: sheltered.iter().copied().collect(),
            spared: spared.iter().copied().collect(),
        };
        !snapshot.left_behind(&marked(pid, None), &[DEAD])
    };
    assert!(!below(900, &[], &[]));
    assert!(below(900, &[880], &[]), "a grandparent");
    assert!(below(900, &[900], &[]));
    assert!(!below(880, &[890], &[]), "only what is below");
    assert!(below(880, &[], &[880]) && !below(900, &[], &[880]), "spared alone");
}

// proves: A-03
#[test]
fn one_that_cannot_be_ended_is_waited_for_once_and_holds_nothing_else_up() {
    let victim = |pid: u32| Victim {
        id: ProcessId { pid, start_time: 7 },
        session_id: "s".to_string(),
        program: String::new(),
    };
    let (stuck, late) = (900, 901);
    let rounds = RefCell::new(Vec::new());
    let look = || match rounds.borrow().len() {
        0 => vec![victim(stuck)],
        _ => vec![victim(stuck), victim(late)],
    };
    let swept = in_rounds(look, |victims| {
        rounds.borrow_mut().push(victims.iter().map(|victim| victim.id.pid).collect::<Vec<_>>());
        let report = |Victim { id, session_id, program }| {
            let gone = id.pid != stuck;
            SweptProcess { id, session_id, program, killed: true, gone }
        };
        victims.into_iter().map(report).collect()
    });
    assert_eq!(*rounds.borrow(), [[stuck], [late]]);
    assert_eq!(
        swept.iter().map(|s| (s.id.pid, s.gone)).collect::<Vec<_>>(),
        [(stuck, false), (late, true)]
    );
}

// proves: A-03
#[cfg(target_os = "linux")]
#[test]
fn a_signal_goes_to_the_process_that_was_looked_at_and_to_none_with_its_number() {
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = Pid::from_child(&child);
    let handle = Handle::open(pid);
    assert!(matches!(handle, Handle::Process(_)), "the system has handles");
    handle.signal(Signal::Kill).unwrap();
    child.wait().unwrap();
    // its number is free now: the handle still means the dead one
    assert!(handle.signal(Signal::Kill).is_err());
}
