//! The 60-second scan of cut-off replies: what it does with one row, guard by guard (SC-17).

use super::attempts::{self, Attempt};
use crate::limits::Limits;
use crate::session::{PendingAction, SessionRow, Status};
use crate::settings::Policy;
use crate::time::{Millis, Now};
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
    /// The cap is reached: `recovery_failed` (SC-13).
    Promote(Attempt),
}

/// What is known of the row beside its durable facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFacts {
    /// `Some` once the folder was probed in this tick.
    pub folder_present: Option<bool>,
    /// Another program has the conversation open.
    pub held: bool,
    /// There is a message to send again, or a turn that began by itself.
    pub replayable: bool,
    /// A restart of this session is already under way.
    pub restart_under_way: bool,
    /// A turn's end is still being decided.
    pub disposition_pending: bool,
    /// Milliseconds since this run of the app last restarted the session: true even if the wall clock
    /// was set meanwhile.
    pub since_restart: Option<Millis>,
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
/// pending action, status, delivered answer, folder, debounce, count. Guards of later work (orphan,
/// running gate, load) have their place between delivered answer and debounce.
pub fn decide(
    row: &SessionRow,
    facts: ScanFacts,
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
    // rule: PF-01, PF-02
    match facts.folder_present {
        None => return Verdict::Act(ScanAct::Probe),
        Some(false) => return Verdict::Wait(Why::FolderMissing),
        Some(true) => {}
    }
    // rule: A-12
    if facts.held {
        return Verdict::Wait(Why::HeldElsewhere);
    }
    // rule: SC-15, SC-16
    if let Some(until) = debounced_until(row, limits, now) {
        return Verdict::Wait(Why::Debounced(until));
    }
    // rule: INV-01
    let left = facts.since_restart.and_then(|age| limits.replay_debounce_ms.checked_sub(age));
    if let Some(left) = left.filter(|left| *left > 0) {
        return Verdict::Wait(Why::Debounced(now.wall.plus(left)));
    }
    // rule: SC-11, SC-13
    let attempt = attempts::next_attempt(row, now.day, limits.daily_attempt_cap);
    Verdict::Act(if attempt.exceeds_cap {
        ScanAct::Promote(attempt)
    } else {
        ScanAct::Replay(attempt)
    })
}

/// Until when an automatic restart of the row is refused; `None` when it is free (RP-07).
pub fn debounced_until(row: &SessionRow, limits: &Limits, now: Now) -> Option<crate::time::Wall> {
    // rule: RP-07
    let last = row.last_restart_at?;
    let age = now.wall.since(last);
    // a restart "in the future" is a clock that was stepped back: it holds no longer than the
    // debounce itself from now
    let debounce = i64::try_from(limits.replay_debounce_ms).unwrap_or(i64::MAX);
    (age < debounce && age > -debounce).then(|| last.plus(limits.replay_debounce_ms))
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

    fn ready() -> ScanFacts {
        ScanFacts { folder_present: Some(true), replayable: true, ..ScanFacts::default() }
    }

    fn run(row: &SessionRow, facts: ScanFacts) -> Verdict<ScanAct> {
        decide(row, facts, &Policy::default(), &Limits::default(), now())
    }

    // proves: SC-05, SC-06, SC-07, SC-08, SC-09, SC-10
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

    // proves: SC-17, SC-13, SC-16, PF-01, PF-02
    #[test]
    fn each_guard_ends_the_row_before_the_next_is_looked_at() {
        let mut row = stamped();
        row.delivered = true;
        assert_eq!(run(&row, ScanFacts::default()), Verdict::Act(ScanAct::ClearDelivered));
        let mut row = stamped();
        row.retry_day = Some(Day(100));
        row.last_restart_at = Some(Wall(10_000_000 - 89_999));
        let nothing = ScanFacts { replayable: false, ..ready() };
        assert_eq!(run(&row, nothing), Verdict::GiveUp(Why::NothingToReplay));
        let unprobed = ScanFacts { folder_present: None, ..ready() };
        assert_eq!(run(&row, unprobed), Verdict::Act(ScanAct::Probe));
        let missing = ScanFacts { folder_present: Some(false), ..ready() };
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
        let busy = ScanFacts { restart_under_way: true, ..ready() };
        assert_eq!(run(&row, busy), Verdict::Wait(Why::RestartUnderWay));
    }

    // proves: SC-24, SC-25
    #[test]
    fn either_switch_stops_the_scan() {
        let mut policy = Policy::default();
        policy.settings.aborted_response_recovery_enabled = false;
        let off = |p: &Policy| decide(&stamped(), ready(), p, &Limits::default(), now());
        assert_eq!(off(&policy), Verdict::NotMine(Why::RecoveryOff));
        policy = Policy::default();
        policy.switches.aborted_response_recovery = true;
        assert_eq!(off(&policy), Verdict::NotMine(Why::RecoveryOff));
    }

    // proves: RP-07, INV-01
    #[test]
    fn a_wall_clock_set_forward_does_not_end_the_debounce() {
        let mut row = stamped();
        // restarted 10 s ago, then two hours were added
        row.last_restart_at = Some(Wall(10_000_000 - 7_210_000));
        let held = ScanFacts { since_restart: Some(10_000), ..ready() };
        assert_eq!(run(&row, held), Verdict::Wait(Why::Debounced(Wall(10_080_000))));
        let over = ScanFacts { since_restart: Some(90_000), ..ready() };
        assert!(matches!(run(&row, over), Verdict::Act(ScanAct::Replay(_))));
    }

    // proves: RP-07
    #[test]
    fn the_debounce_ends_to_the_millisecond_and_survives_a_clock_step() {
        let limits = Limits::default();
        let mut row = stamped();
        assert_eq!(debounced_until(&row, &limits, now()), None);
        row.last_restart_at = Some(Wall(10_000_000 - 89_999));
        assert!(debounced_until(&row, &limits, now()).is_some());
        row.last_restart_at = Some(Wall(10_000_000 - 90_000));
        assert_eq!(debounced_until(&row, &limits, now()), None);
        // two hours back: the stored time lies in the future, the row is not held for two hours
        row.last_restart_at = Some(Wall(10_000_000 + 7_200_000));
        assert_eq!(debounced_until(&row, &limits, now()), None);
    }
}
