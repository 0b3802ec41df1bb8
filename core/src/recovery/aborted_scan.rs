//! The 60-second scan of cut-off replies: what it does with one row, guard by guard (SC-17).

use super::attempts::{self, Attempt};
use super::guards::{RowFacts, debounce_left, hold};
use crate::limits::Limits;
use crate::session::{PendingAction, SessionRow, Status};
use crate::settings::Policy;
use crate::time::Now;
use crate::verdict::{Verdict, Why};

/// What the scan does when it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanAct {
    /// The folder and the transcript are asked about first; nothing is charged for that.
    Probe,
    /// The marker is cleared: the last answer was delivered (T14).
    ClearDelivered,
    /// Replay, charged (SC-12).
    Replay(Attempt),
    /// Replay, uncharged: the machine has been saturated for too long (LD-08).
    Force,
    /// The cap is reached: `recovery_failed` (SC-13).
    Promote(Attempt),
}

/// Whether the pending action belongs to aborted-response recovery
/// (`isResponseAbortedRecoveryEligible`).
pub fn is_response_aborted_recovery_eligible(pending: Option<PendingAction>) -> Result<(), Why> {
    // rule: SC-07, SC-09, SC-10
    let Some(pending) = pending else {
        return Err(Why::WrongState);
    };
    match pending {
        PendingAction::ResponseAborted => Ok(()),
        PendingAction::Question
        | PendingAction::PlanApproval
        | PendingAction::PermissionRequest
        | PendingAction::AuthRequired
        | PendingAction::ApiError
        | PendingAction::Stopped => Err(Why::UserFacing),
        PendingAction::RateLimited => Err(Why::OtherEngine),
        PendingAction::AppRestartSuspended => Err(Why::Deliberate),
        PendingAction::RecoveryFailed => Err(Why::AttemptsUsed),
    }
}

/// Whether the status is one the scan serves.
pub fn is_eligible_status(status: Status) -> Result<(), Why> {
    // rule: SC-05, SC-06, SC-08
    match status {
        Status::NeedsYou | Status::Error => Ok(()),
        Status::Running | Status::Starting => Err(Why::TurnOpen),
        Status::Waiting | Status::Stalled => Err(Why::WrongState),
        Status::Paused | Status::Ended | Status::Archived => Err(Why::Deliberate),
    }
}

/// Decides about one row, in the order of SC-17: re-read (the caller passes the row as it is now),
/// pending action, status, delivered answer, orphan (the caller's), folder, running gate, load, debounce,
/// count. `forced`: the escape valve opens for this row; load no longer holds it, and nothing is charged.
pub fn decide(
    row: &SessionRow,
    facts: RowFacts,
    forced: bool,
    policy: &Policy,
    limits: &Limits,
    now: Now,
) -> Verdict<ScanAct> {
    // rule: SC-17, SC-04, SC-24, SC-25
    if !policy.aborted_response_recovery() {
        return Verdict::NotMine(Why::RecoveryOff);
    }
    if row.deleted_at.is_some() {
        return Verdict::NotMine(Why::Deliberate);
    }
    if let Err(why) = is_response_aborted_recovery_eligible(row.pending) {
        return Verdict::NotMine(why);
    }
    if let Err(why) = is_eligible_status(row.status) {
        return Verdict::NotMine(why);
    }
    if facts.disposition_pending {
        return Verdict::Wait(Why::DispositionPending);
    }
    if facts.restart_under_way {
        return Verdict::Wait(Why::RestartUnderWay);
    }
    // rule: FM-17, INV-20
    if row.delivered {
        return Verdict::Act(ScanAct::ClearDelivered);
    }
    if !facts.replayable {
        return Verdict::GiveUp(Why::NothingToReplay);
    }
    // rule: PF-01, PF-02, CT-09
    if facts.folder_present.is_none() {
        return Verdict::Act(ScanAct::Probe);
    }
    if let Some(why) = hold(facts) {
        return Verdict::Wait(why);
    }
    // rule: LD-03, LD-04, LD-05, INV-41
    if facts.heavy && !forced {
        return Verdict::Wait(Why::MachineBusy);
    }
    // rule: SC-15, SC-16
    if let Some(until) = debounce_left(row, facts, limits, now) {
        return Verdict::Wait(Why::Debounced(until));
    }
    if facts.heavy {
        // rule: LD-09
        return Verdict::Act(ScanAct::Force);
    }
    // rule: SC-11, SC-13
    let attempt = attempts::next_attempt(row, now.day, limits.daily_attempt_cap);
    Verdict::Act(if attempt.exceeds_cap {
        ScanAct::Promote(attempt)
    } else {
        ScanAct::Replay(attempt)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::time::{Day, Mono, Wall};
    use alloc::string::String;

    fn now() -> Now {
        Now { wall: Wall(10_000_000), mono: Mono(500_000), day: Day(100) }
    }

    fn stamped() -> SessionRow {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        row.status = Status::NeedsYou;
        row.pending = Some(PendingAction::ResponseAborted);
        row
    }

    fn ready() -> RowFacts {
        RowFacts { folder_present: Some(true), replayable: true, ..RowFacts::default() }
    }

    fn run(row: &SessionRow, facts: RowFacts) -> Verdict<ScanAct> {
        decide(row, facts, false, &Policy::default(), &Limits::default(), now())
    }

    // proves: SC-05, SC-06, SC-07, SC-08, SC-10
    #[test]
    fn only_stamped_rows_that_wait_are_served() {
        for status in Status::ALL {
            for pending in [None].into_iter().chain(PendingAction::ALL.iter().copied().map(Some)) {
                let mut row = stamped();
                (row.status, row.pending) = (*status, pending);
                let served = matches!(run(&row, ready()), Verdict::Act(_));
                let expected = matches!(status, Status::NeedsYou | Status::Error)
                    && pending == Some(PendingAction::ResponseAborted);
                assert_eq!(served, expected, "{status:?} {pending:?}");
            }
        }
    }

    // proves: SC-13, SC-16, PF-01, PF-02, LD-04, LD-05, LD-09
    #[test]
    fn each_guard_ends_the_row_before_the_next_is_looked_at() {
        let mut row = stamped();
        row.delivered = true;
        assert_eq!(run(&row, RowFacts::default()), Verdict::Act(ScanAct::ClearDelivered));
        let mut row = stamped();
        row.retry_day = Some(Day(100));
        row.last_restart_at = Some(Wall(10_000_000 - 89_999));
        let nothing = RowFacts { replayable: false, ..ready() };
        assert_eq!(run(&row, nothing), Verdict::GiveUp(Why::NothingToReplay));
        let unprobed = RowFacts { folder_present: None, ..ready() };
        assert_eq!(run(&row, unprobed), Verdict::Act(ScanAct::Probe));
        let missing = RowFacts { folder_present: Some(false), ..ready() };
        assert_eq!(run(&row, missing), Verdict::Wait(Why::FolderMissing));
        assert_eq!(run(&row, ready()), Verdict::Wait(Why::Debounced(Wall(10_000_001))));
        row.last_restart_at = Some(Wall(10_000_000 - 90_000));
        assert!(matches!(
            run(&row, ready()),
            Verdict::Act(ScanAct::Replay(Attempt { count: 1, .. }))
        ));
        row.retry_attempts = 2;
        assert!(matches!(
            run(&row, ready()),
            Verdict::Act(ScanAct::Promote(Attempt { count: 3, .. }))
        ));
        // rows that were stamped while the machine was saturated are never charged nor promoted
        let heavy = RowFacts { heavy: true, ..ready() };
        assert_eq!(run(&row, heavy), Verdict::Wait(Why::MachineBusy));
        let force =
            |facts| decide(&row, facts, true, &Policy::default(), &Limits::default(), now());
        assert_eq!(force(heavy), Verdict::Act(ScanAct::Force));
        let gate = RowFacts { gate: true, ..heavy };
        assert_eq!(run(&row, gate), Verdict::Wait(Why::GateOpen));
        assert_eq!(force(gate), Verdict::Wait(Why::GateOpen));
        let recent = RowFacts { since_restart: Some(0), ..heavy };
        assert!(matches!(force(recent), Verdict::Wait(Why::Debounced(_))));
        let busy = RowFacts { restart_under_way: true, ..ready() };
        assert_eq!(run(&row, busy), Verdict::Wait(Why::RestartUnderWay));
    }

    // proves: SC-24, SC-25
    #[test]
    fn either_switch_stops_the_scan() {
        let mut policy = Policy::default();
        policy.settings.aborted_response_recovery_enabled = false;
        let off = |p: &Policy| decide(&stamped(), ready(), false, p, &Limits::default(), now());
        assert_eq!(off(&policy), Verdict::NotMine(Why::RecoveryOff));
        policy = Policy::default();
        policy.switches.aborted_response_recovery = true;
        assert_eq!(off(&policy), Verdict::NotMine(Why::RecoveryOff));
    }
}
