//! Ends of turns and what is stored of them: invariants 10, 35, 47 and the legal states.

use super::{Change, Oracle};
use crate::report::Report;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Input;
use omniscio_core::verdict::Actor;

impl Oracle {
    /// Contract 5.1, written down a second time: status and pending action stand together legally.
    pub(super) fn legal(&mut self, row: &SessionRow) {
        use PendingAction as P;
        use Status as S;
        let allowed: &[Status] = match row.pending {
            None => return,
            Some(P::Question | P::PlanApproval | P::PermissionRequest) => {
                &[S::Running, S::NeedsYou]
            }
            Some(P::AuthRequired | P::ApiError | P::ResponseAborted) => &[S::NeedsYou, S::Error],
            Some(P::Stopped) => &[S::NeedsYou, S::Paused],
            Some(P::AppRestartSuspended) => &[S::Paused],
            Some(P::RateLimited) => &[S::Waiting],
            Some(P::RecoveryFailed) => {
                &[S::Starting, S::Running, S::NeedsYou, S::Error, S::Stalled]
            }
        };
        if row.status != S::Archived && !allowed.contains(&row.status) {
            self.fail("INV-44", format!("{:?} stands beside {:?}", row.status, row.pending));
        }
    }

    pub(super) fn concludes(&mut self, change: &Change<'_>, report: &mut Report) {
        let Some(before) = change.before else { return };
        let after = change.after;
        let stamps = after.pending == Some(PendingAction::ResponseAborted)
            && before.pending != after.pending;
        if stamps {
            self.stamped(change, report);
        }
        self.note_ends(change, report);
        self.comes_back(change);
        let Some(turn) = &before.turn else { return };
        if after.turn.as_ref().is_some_and(|open| open.number == turn.number) {
            return;
        }
        self.inv_10(after, turn.number);
        let book = self.book(after.id);
        let (stopped, local) = (book.stop_asked, std::mem::take(&mut book.local));
        book.stop_asked = false;
        if stopped {
            // the person took it back: nobody waits for its answer
            book.message = None;
        }
        let by_click = change.actor == Actor::RetryButton;
        self.closed.insert(after.id, stopped || by_click);
        let restarts = matches!(after.status, Status::Starting | Status::Running);
        if !(restarts || stopped || local || by_person(change)) {
            self.inv_35(change, report);
        }
    }

    /// INV-10: a turn is concluded once, and only an open one is stamped.
    fn inv_10(&mut self, row: &SessionRow, number: u64) {
        let book = self.book(row.id);
        let last = std::mem::replace(&mut book.concluded, number);
        if number <= last {
            self.fail("INV-10", format!("turn {number} of {} is concluded again", row.id));
        }
    }

    /// CR-01, A-15: a turn that ran when the app died comes back; nothing suspends it.
    fn comes_back(&mut self, change: &Change<'_>) {
        let Some(before) = change.before else { return };
        let stopping = self.book(before.id).died_stopping;
        let ran = before.status == Status::Running && before.turn.is_some() && !stopping;
        let boot = matches!(change.input, Input::Boot(_));
        let waited = std::mem::take(&mut self.book(before.id).died_waiting);
        let rung = before.pending == Some(PendingAction::RecoveryFailed);
        if boot
            && waited
            && !rung
            && before.replay.is_open()
            && change.after.status != Status::Starting
        {
            self.fail("INV-44", format!("relaunched when the app died: {before:?} is suspended"));
        }
        if boot && ran && change.after.status == Status::Paused {
            self.fail("INV-44", format!("{} ran when the app died and is suspended", before.id));
        }
    }

    fn stamped(&mut self, change: &Change<'_>, report: &mut Report) {
        let after = change.after;
        let cause = after.abort_cause.map_or("", omniscio_core::session::AbortCause::as_str);
        report.hit(&format!("stamp {cause}"));
        if !self.policy.aborted_response_recovery() {
            report.hit("stamp while recovery is off");
        }
        // a restart that finds the folder gone takes the row back to where it was
        let back = change.before.is_some_and(|before| before.status == Status::Starting);
        if !back && change.before.is_some_and(|before| before.turn.is_none()) {
            self.fail("INV-10", format!("{} is stamped and no turn was open", after.id));
        }
    }

    /// INV-35, and INV-47 while recovery is off: a turn that ends without a good result leaves a
    /// pending action, whatever the switches say.
    fn inv_35(&mut self, change: &Change<'_>, report: &mut Report) {
        let after = change.after;
        let result = self.book(after.id).ended_by.take();
        let out_of_room = self.out_of_room(after.id);
        let empty_is_fine = !self.policy.thinking_only_recovery();
        let other_end = result.as_ref().is_some_and(|result| {
            let reason = result.terminal_reason.as_deref();
            let full = matches!(reason, Some("prompt_too_long" | "rapid_refill_breaker"));
            let empty_is_fine = empty_is_fine || out_of_room;
            !result.is_error && (empty_is_fine || !result.text.trim().is_empty()) || full
        });
        let other_end = other_end || change.reason == "context give-up";
        // a refused start is an error of its own, with words and Retry
        let refused = after.status == Status::Error && after.words.is_some();
        // TE-04: what deliberately waits may have said nothing
        let waits =
            after.status == Status::Waiting && result.as_ref().is_some_and(|end| !end.is_error);
        // what the person put away is closed and nothing else (AB-09)
        let away = matches!(after.status, Status::Paused | Status::Ended | Status::Archived);
        if other_end || away || waits || refused && after.pending.is_none() {
            return;
        }
        if after.pending.is_none() {
            let name = if self.policy.aborted_response_recovery() { "INV-35" } else { "INV-47" };
            self.fail(name, format!("an abort leaves {:?} without a pending action", after.status));
        }
        if after.pending.is_some_and(PendingAction::is_card) {
            report.hit("card kept over a dead child");
        }
    }

    fn note_ends(&mut self, change: &Change<'_>, report: &mut Report) {
        let Some(before) = change.before else { return };
        let after = change.after;
        let entered = (before.status, before.pending) != (after.status, after.pending);
        if !entered {
            return;
        }
        match after.pending {
            Some(
                pending @ (PendingAction::AuthRequired
                | PendingAction::ApiError
                | PendingAction::RateLimited),
            ) => report.hit(&format!("pending {}", pending.as_str())),
            Some(pending) if pending.is_card() && after.status == Status::Running => {
                report.hit("card asked");
            }
            Some(_) | None => {}
        }
        if after.status == Status::Stalled {
            report.hit("status stalled");
        }
        let named = [
            ("launch failed", "launch failed"),
            ("delivered: marker cleared", "marker cleared: delivered"),
            ("the card stays", "card kept over an app restart"),
            ("stopped by the person", "stopped by the person"),
            ("a turn began by itself", "turn by itself"),
        ];
        if let Some((_, name)) = named.iter().find(|(reason, _)| *reason == change.reason) {
            report.hit(name);
        }
        if change.reason == "a turn began by itself" {
            self.began_by_itself(after.id);
        }
        let clears_card =
            before.pending.is_some_and(PendingAction::is_card) && after.pending.is_none();
        if change.reason == "answered" && clears_card {
            report.hit("card answered");
        }
    }
}

fn by_person(change: &Change<'_>) -> bool {
    change.actor == Actor::User || matches!(change.input, Input::Command { .. } | Input::Boot(_))
}
