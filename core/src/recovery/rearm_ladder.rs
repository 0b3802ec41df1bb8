//! The re-arm ladder: background retries of a given-up session, with growing gaps, up to a hard cap
//! (RA). It is another actor than the scan: the scan never touches `recovery_failed`, the ladder
//! nothing else.

use super::guards::{RowFacts, debounce_left, hold};
use crate::limits::Limits;
use crate::session::{Ladder, PendingAction, SessionRow, Status, StopReason};
use crate::settings::Policy;
use crate::time::{Millis, Now};
use crate::verdict::{Verdict, Why};

/// What the ladder does when it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderAct {
    /// The folder and the transcript are asked about first; no rung is taken for that.
    Probe,
    /// The next rung is taken.
    Rearm,
}

/// The gap before rung `n` (from 1), after the entry or after the rung before it failed.
pub fn gap(n: u8, limits: &Limits) -> Millis {
    // rule: RA-02
    let doublings = u32::from(n.saturating_sub(1));
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    limits.ladder_first_ms.saturating_mul(factor).min(limits.ladder_max_ms)
}

/// The ladder of a row that has just been given up, or whose rung has just failed: when the next rung is
/// due, or the stop reason once the hard cap is reached.
pub fn after_failure(
    rungs: u8,
    stop: Option<StopReason>,
    limits: &Limits,
    now: Now,
) -> (Ladder, Option<StopReason>) {
    // rule: RA-03, RA-04, RA-05
    let stop = stop.or((rungs >= limits.ladder_rungs).then_some(StopReason::HardCap));
    let due = stop.is_none().then(|| now.wall.plus(gap(rungs.saturating_add(1), limits)));
    (Ladder { rungs, due }, stop)
}

/// Decides about one row whose rung's time may have come. Guards stand in the scan's order; a hold
/// takes no rung (RA-10).
pub fn decide(
    row: &SessionRow,
    facts: RowFacts,
    policy: &Policy,
    limits: &Limits,
    now: Now,
) -> Verdict<LadderAct> {
    if !policy.aborted_response_recovery() {
        // rule: RA-11
        return Verdict::NotMine(Why::RecoveryOff);
    }
    if row.is_gone() {
        return Verdict::NotMine(Why::Deliberate);
    }
    // rule: RA-01
    if row.pending != Some(PendingAction::RecoveryFailed) {
        return Verdict::NotMine(Why::WrongState);
    }
    match row.status {
        Status::NeedsYou | Status::Error | Status::Stalled => {}
        Status::Starting | Status::Running => return Verdict::NotMine(Why::TurnOpen),
        Status::Waiting | Status::Paused | Status::Ended | Status::Archived => {
            return Verdict::NotMine(Why::WrongState);
        }
    }
    // rule: RA-04, RA-05
    if row.stop_reason.is_some() {
        return Verdict::NotMine(Why::LadderStopped);
    }
    if row.ladder.rungs >= limits.ladder_rungs {
        return Verdict::GiveUp(Why::AttemptsUsed);
    }
    if facts.disposition_pending {
        return Verdict::Wait(Why::DispositionPending);
    }
    if facts.restart_under_way {
        return Verdict::Wait(Why::RestartUnderWay);
    }
    if !facts.replayable {
        return Verdict::GiveUp(Why::NothingToReplay);
    }
    // rule: RA-10
    if facts.folder_present.is_none() {
        return Verdict::Act(LadderAct::Probe);
    }
    if let Some(why) = hold(facts) {
        return Verdict::Wait(why);
    }
    if facts.heavy {
        return Verdict::Wait(Why::MachineBusy);
    }
    if let Some(until) = debounce_left(row, facts, limits, now) {
        return Verdict::Wait(Why::Debounced(until));
    }
    Verdict::Act(LadderAct::Rearm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::time::{Day, Mono, Wall};
    use alloc::string::String;
    use alloc::vec::Vec;

    fn now() -> Now {
        Now { wall: Wall(10_000_000), mono: Mono(500_000), day: Day(100) }
    }

    fn given_up() -> SessionRow {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        (row.status, row.pending) = (Status::Error, Some(PendingAction::RecoveryFailed));
        row.ladder.due = Some(now().wall);
        row
    }

    fn ready() -> RowFacts {
        RowFacts { folder_present: Some(true), replayable: true, ..RowFacts::default() }
    }

    fn run(row: &SessionRow, facts: RowFacts) -> Verdict<LadderAct> {
        decide(row, facts, &Policy::default(), &Limits::default(), now())
    }

    // proves: RA-02, RA-03, INV-13
    #[test]
    fn twelve_rungs_with_growing_gaps_over_three_and_a_half_hours() {
        let limits = Limits::default();
        let minutes: Vec<u64> = (1..=12).map(|n| gap(n, &limits) / 30_000).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60], "in half minutes");
        let total: u64 = (1..=limits.ladder_rungs).map(|n| gap(n, &limits)).sum();
        assert_eq!(total, 12_690_000, "211.5 minutes");
        assert_eq!(gap(255, &limits), limits.ladder_max_ms, "no overflow");
    }

    // proves: RA-03, RA-04, RA-05
    #[test]
    fn a_failure_sets_the_next_rung_or_the_stop() {
        let limits = Limits::default();
        let (ladder, stop) = after_failure(0, None, &limits, now());
        assert_eq!((ladder.due, stop), (Some(Wall(10_030_000)), None));
        let (ladder, stop) = after_failure(11, None, &limits, now());
        assert_eq!((ladder.rungs, ladder.due, stop), (11, Some(Wall(11_800_000)), None));
        let (ladder, stop) = after_failure(12, None, &limits, now());
        assert_eq!((ladder.due, stop), (None, Some(StopReason::HardCap)));
        let (ladder, stop) = after_failure(0, Some(StopReason::Billing), &limits, now());
        assert_eq!((ladder.rungs, ladder.due, stop), (0, None, Some(StopReason::Billing)));
    }

    // proves: RA-01, RA-04, RA-05, RA-11, INV-39
    #[test]
    fn only_a_given_up_row_whose_ladder_goes_on_is_served() {
        for status in Status::ALL {
            for pending in [None].into_iter().chain(PendingAction::ALL.iter().copied().map(Some)) {
                let mut row = given_up();
                (row.status, row.pending) = (*status, pending);
                let served = run(&row, ready()) == Verdict::Act(LadderAct::Rearm);
                let expected = matches!(status, Status::NeedsYou | Status::Error | Status::Stalled)
                    && pending == Some(PendingAction::RecoveryFailed);
                assert_eq!(served, expected, "{status:?} {pending:?}");
            }
        }
        for stop in StopReason::ALL {
            let mut row = given_up();
            row.stop_reason = Some(*stop);
            assert_eq!(run(&row, ready()), Verdict::NotMine(Why::LadderStopped), "{stop:?}");
        }
        let mut off = Policy::default();
        off.settings.aborted_response_recovery_enabled = false;
        assert_eq!(
            decide(&given_up(), ready(), &off, &Limits::default(), now()),
            Verdict::NotMine(Why::RecoveryOff)
        );
    }

    #[test]
    fn every_hold_postpones_the_rung() {
        let row = given_up();
        let unseen = RowFacts { folder_present: None, gate: true, heavy: true, ..ready() };
        assert_eq!(run(&row, unseen), Verdict::Act(LadderAct::Probe));
        let missing = RowFacts { folder_present: Some(false), gate: true, ..ready() };
        assert_eq!(run(&row, missing), Verdict::Wait(Why::FolderMissing));
        let held = RowFacts { held: true, gate: true, ..ready() };
        assert_eq!(run(&row, held), Verdict::Wait(Why::HeldElsewhere));
        let gate = RowFacts { gate: true, heavy: true, ..ready() };
        assert_eq!(run(&row, gate), Verdict::Wait(Why::GateOpen));
        let mut recent = given_up();
        recent.last_restart_at = Some(Wall(10_000_000 - 1));
        let heavy = RowFacts { heavy: true, ..ready() };
        assert_eq!(run(&recent, heavy), Verdict::Wait(Why::MachineBusy));
        assert!(matches!(run(&recent, ready()), Verdict::Wait(Why::Debounced(_))));
        assert_eq!(run(&row, ready()), Verdict::Act(LadderAct::Rearm));
    }
}
