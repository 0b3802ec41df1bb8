//! Crash recovery: which rows come back when the app starts (CR-01, A-31). It follows the stored
//! intent and looks at no other row.

use super::guards::debounced_until;
use crate::limits::Limits;
use crate::session::{PendingAction, SessionRow, Status};
use crate::time::{Now, Wall};

/// What the start of the app does with one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashVerdict {
    /// It is left as it is.
    LeaveAlone,
    /// A rung of the ladder was in flight: it is given up again, its ladder goes on.
    RungFailed,
    /// Nothing that lifts a stop was under way: it stays given up.
    StayStopped,
    /// Its turn waits for an answer of the person: the card stays, the answer resumes it.
    KeepCard,
    /// It comes back, not before this time if one is given.
    Resume {
        /// The debounce of its last restart.
        not_before: Option<Wall>,
    },
    /// Its last answer stands and nothing else was under way: it waits for the person again.
    Settle,
    /// There is nothing to resume: `paused`, `app_restart_suspended`.
    Suspend,
}

/// Decides about one row at the start. `queued`: messages wait in its queue; `spoken`: the
/// first of them is no local command of the CLI.
pub fn decide(
    row: &SessionRow,
    queued: bool,
    spoken: bool,
    limits: &Limits,
    now: Now,
) -> CrashVerdict {
    // rule: CR-01, CR-02, CR-03, RS-21, A-15, A-31
    // no setting has a say in it
    if !row.is_at_work() {
        return CrashVerdict::LeaveAlone;
    }
    // rule: RA-07, RF-02, INV-14
    // a message of the person lifts the stop as it is written; a local command, or a turn that the CLI
    // began by itself, does not
    let stopped = row.stop_reason.is_some() && (row.status == Status::Running || !spoken);
    if stopped {
        return CrashVerdict::StayStopped;
    }
    if row.pending == Some(PendingAction::RecoveryFailed) {
        return CrashVerdict::RungFailed;
    }
    if row.pending.is_some_and(|pending| pending.is_card()) && row.card.is_some() {
        return CrashVerdict::KeepCard;
    }
    // rule: INV-20
    if row.delivered && !row.replay.is_open() && !queued {
        return CrashVerdict::Settle;
    }
    let replayable = row.replay.is_open() || row.turn.is_some();
    if !row.intent_running || !(replayable || queued) {
        return CrashVerdict::Suspend;
    }
    // rule: CR-06
    CrashVerdict::Resume { not_before: debounced_until(row, limits, now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::time::{Day, Mono};
    use alloc::string::String;

    fn now() -> Now {
        Now { wall: Wall(1_000_000), mono: Mono(0), day: Day(1) }
    }

    fn row(status: Status) -> SessionRow {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        row.status = status;
        row.replay.message = Some(Uuid(2));
        row
    }

    // proves: CR-01, CR-02, CR-06
    #[test]
    fn running_rows_come_back_and_no_others() {
        let limits = Limits::default();
        for status in Status::ALL {
            let back = matches!(
                decide(&row(*status), false, false, &limits, now()),
                CrashVerdict::Resume { not_before: None }
            );
            assert_eq!(back, matches!(status, Status::Running | Status::Starting), "{status:?}");
        }
        let mut recent = row(Status::Running);
        recent.last_restart_at = Some(Wall(1_000_000 - 30_000));
        assert_eq!(
            decide(&recent, false, false, &limits, now()),
            CrashVerdict::Resume { not_before: Some(Wall(1_060_000)) }
        );
        let mut empty = row(Status::Starting);
        empty.replay.message = None;
        assert_eq!(decide(&empty, false, false, &limits, now()), CrashVerdict::Suspend);
        assert!(matches!(decide(&empty, true, true, &limits, now()), CrashVerdict::Resume { .. }));
        let mut stopped = row(Status::Running);
        stopped.replay.stopped = true;
        assert_eq!(decide(&stopped, false, false, &limits, now()), CrashVerdict::Suspend);
        let mut answered = row(Status::Running);
        (answered.replay.answered, answered.delivered) = (true, true);
        assert_eq!(decide(&answered, false, false, &limits, now()), CrashVerdict::Settle);
        let mut rung = row(Status::Running);
        rung.pending = Some(PendingAction::RecoveryFailed);
        assert_eq!(decide(&rung, false, false, &limits, now()), CrashVerdict::RungFailed);
        let mut local = row(Status::Starting);
        local.stop_reason = Some(crate::session::StopReason::Billing);
        assert_eq!(decide(&local, true, false, &limits, now()), CrashVerdict::StayStopped);
        local.status = Status::Running;
        assert_eq!(decide(&local, true, true, &limits, now()), CrashVerdict::StayStopped);
        local.status = Status::Starting;
        assert!(matches!(decide(&local, true, true, &limits, now()), CrashVerdict::Resume { .. }));
        let mut deleted = row(Status::Running);
        deleted.deleted_at = Some(Wall(5));
        assert_eq!(decide(&deleted, false, false, &limits, now()), CrashVerdict::LeaveAlone);
    }

    #[test]
    fn an_open_card_stays_for_the_person() {
        let mut asked = row(Status::Running);
        asked.pending = Some(PendingAction::PermissionRequest);
        asked.card = Some(crate::card::Card {
            request: "r".into(),
            tool_use: "t".into(),
            kind: crate::card::CardKind::Permission,
            tool: "Bash".into(),
            input: serde_json::Value::Null,
            suggestions: alloc::vec::Vec::new(),
            reason: None,
            asked_at: Wall(0),
            orphaned: false,
        });
        assert_eq!(decide(&asked, false, false, &Limits::default(), now()), CrashVerdict::KeepCard);
    }
}
