//! The retirement of workers that never came to life: which, how quietly, and which never.

use super::flock::Flock;
use super::*;
use crate::id::{Rng, SessionId};
use crate::session::{ArchiveReason, ToolCall, is_legal};
use crate::time::Wall;
use alloc::vec;

// proves: PO-01, PO-03, PO-08, PO-10, A-27
#[test]
fn of_a_fan_out_exactly_those_that_never_came_to_life_are_retired() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let workers: Vec<SessionId> =
        (0..12).map(|n| flock.worker(parent, &format!("fix test {n}"))).collect();
    // one never starts, one takes its task and dies before it names its session
    for (n, worker) in workers.iter().enumerate() {
        match n {
            3 => flock.die(*worker),
            7 => {
                flock.shake(*worker);
                flock.die(*worker);
            }
            _ => flock.begin(*worker),
        }
    }
    flock.die(workers[5]);
    let (notified, lines, spawns) = (flock.notified, flock.lines.len(), flock.spawns.len());
    flock.retire();
    for (n, worker) in workers.iter().enumerate() {
        let row = flock.row(*worker);
        let retired = row.status == Status::Archived;
        assert_eq!(retired, matches!(n, 3 | 7), "{n}: {row:?}");
        assert_eq!(row.archive_reason, retired.then_some(ArchiveReason::OrphanPreinit));
    }
    assert_eq!(flock.notified, notified, "nobody is called");
    assert_eq!(flock.lines.len(), lines, "nothing is written to a child");
    let told = |flock: &Flock| {
        let retired = |text: &str| text.ends_with("never started and was put away.");
        flock.notes.iter().filter(|(of, text)| *of == parent && retired(text)).count()
    };
    assert_eq!(told(&flock), 2, "{:?}", flock.notes);
    let list = flock.call(parent, "list_workers", json!({})).expect("a list");
    let reasons: Vec<_> = list["retired"].as_array().expect("a list").iter().collect();
    assert_eq!(reasons.len(), 2);
    assert_eq!(reasons[0]["reason"], "orphan-preinit");
    assert_eq!(list["workers"].as_array().map(Vec::len), Some(10));
    assert!(list["workers"][0]["state"] == "running", "{list}");
    // a day of scans and restarts of the app spawns none of them again
    flock.crash();
    flock.pass(24 * 3_600_000);
    let again = &flock.spawns[spawns..];
    assert!(again.iter().all(|id| *id != workers[3] && *id != workers[7]), "{again:?}");
    flock.retire();
    assert_eq!(told(&flock), 2, "told once");
}

/// The app starts on a worker in this state, dead before it named its session.
fn orphan_in(status: Status, pending: Option<PendingAction>, switches: KillSwitches) -> Flock {
    let mut flock = Flock::with(Limits::default(), switches);
    let parent = flock.parent();
    let worker = flock.worker(parent, TASK);
    flock.shake(worker);
    flock.die(worker);
    let row = flock.rows.get_mut(&worker).expect("the worker");
    (row.status, row.pending, row.intent_running) = (status, pending, false);
    flock.crash();
    flock
}

fn worker_of(flock: &Flock) -> SessionRow {
    flock.rows.values().find(|row| row.parent.is_some()).expect("a worker").clone()
}

// proves: PO-03, PO-04
#[test]
fn a_stalled_orphan_is_recorded_as_recovery_terminal() {
    for (status, reason) in [
        (Status::Stalled, ArchiveReason::RecoveryTerminal),
        (Status::Error, ArchiveReason::OrphanPreinit),
        (Status::NeedsYou, ArchiveReason::OrphanPreinit),
    ] {
        let mut flock = orphan_in(status, None, KillSwitches::default());
        flock.retire();
        let row = worker_of(&flock);
        assert_eq!((row.status, row.archive_reason), (Status::Archived, Some(reason)));
    }
}

// proves: PO-06
#[test]
fn with_the_switch_set_an_orphan_is_left_to_the_ordinary_recovery() {
    let off = KillSwitches { preinit_orphan_retire: true, ..KillSwitches::default() };
    let mut flock = orphan_in(SHAPE.0, SHAPE.1, off);
    flock.retire();
    assert_eq!(state(&worker_of(&flock)), SHAPE);
    let spawns = flock.spawns.len();
    flock.pass(155_000);
    let row = worker_of(&flock);
    assert!(flock.spawns[spawns..].contains(&row.id), "{row:?}");
    assert_eq!((row.retry_attempts, row.archive_reason), (1, None));
}

// proves: PO-06, A-27
#[test]
fn with_the_switch_set_a_worker_that_always_dies_climbs_the_ladder_to_its_hard_cap() {
    let off = KillSwitches { preinit_orphan_retire: true, ..KillSwitches::default() };
    let mut flock = orphan_in(SHAPE.0, SHAPE.1, off);
    let worker = worker_of(&flock).id;
    // two replays of the scan, then twelve rungs: each starts with the task and dies before it begins
    for _ in 1..=14 {
        flock.pass_to_spawn(worker);
        flock.shake(worker);
        let line = flock.lines_of(worker).last().map(|line| line.text.clone());
        assert_eq!(line, Some(LineText::Own(TASK.into())));
        flock.die(worker);
    }
    let row = worker_of(&flock);
    assert_eq!(row.stop_reason, Some(crate::session::StopReason::HardCap), "{row:?}");
    assert_eq!((row.launch_request.as_deref(), row.archive_reason), (Some(TASK), None));
    assert!(flock.messages_of(worker).is_empty());
}

/// A row as it may stand in the store: of any state, with or without a parent and content.
fn any_row(rng: &mut Rng, parent: SessionId) -> SessionRow {
    let pick = |rng: &mut Rng, of: usize| rng.next_u64() as usize % of;
    let mut row = SessionRow::new(
        rng.uuid(),
        "/project".into(),
        "title".into(),
        "".into(),
        Wall(1_000_000_000),
    );
    row.status = Status::ALL[pick(rng, Status::ALL.len())];
    let pending = PendingAction::ALL.get(pick(rng, PendingAction::ALL.len() + 4)).copied();
    row.pending = pending.filter(|pending| is_legal(row.status, Some(*pending)));
    let mut now_and_then = |of: usize| pick(rng, of) == 0;
    row.parent = (!now_and_then(4)).then_some(parent);
    row.launch_request = now_and_then(2).then(|| TASK.into());
    row.cli_session_id = now_and_then(4).then_some(Uuid(5));
    row.replay.message = now_and_then(4).then_some(Uuid(6));
    row.ever_answered = now_and_then(6);
    if now_and_then(6) {
        row.replay.calls = vec![ToolCall {
            id: "t".into(),
            name: "Bash".into(),
            detail: "make".into(),
            state: crate::session::CallState::Finished,
        }];
    }
    row.intent_running = false;
    row
}

// proves: PO-05, RF-12, INV-43
#[test]
fn no_session_of_the_person_and_none_with_content_is_ever_retired() {
    let mut flock = Flock::new();
    let parent = flock.parent();
    let mut rng = Rng::new(43);
    for _ in 0..2_000 {
        let row = any_row(&mut rng, parent);
        flock.rows.insert(row.id, row);
    }
    flock.crash();
    let before = flock.rows.clone();
    flock.retire();
    let mut retired = 0;
    for (id, row) in &flock.rows {
        let was = &before[id];
        let content = was.cli_session_id.is_some()
            || was.replay.message.is_some()
            || was.ever_answered
            || !was.replay.calls.is_empty();
        let dead = matches!(was.status, Status::NeedsYou | Status::Error | Status::Stalled);
        let nobodys = matches!(
            was.pending,
            None | Some(PendingAction::ResponseAborted | PendingAction::RecoveryFailed)
        );
        let orphan = was.parent.is_some() && !content && dead && nobodys;
        assert_eq!(row != was, orphan, "{was:?} became {row:?}");
        if orphan {
            assert!(row.status == Status::Archived && row.archive_reason.is_some());
            retired += 1;
        }
    }
    assert!(retired > 50, "{retired} say little");
}
