//! Restarts and who may begin them: invariants 1, 2, 3, 4, 8, 9 and 46 to 48 as far as they speak of
//! restarts. Never changes anything but the oracle's books.

use super::relaunch::Relaunch;
use super::{Change, Claim, Oracle};
use crate::clock::SECOND;
use crate::report::Report;
use crate::store::Store;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::launch::LaunchPlan;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::stream::StreamEvent;
use omniscio_core::supervisor::State;
use omniscio_core::time::Now;
use omniscio_core::verdict::Actor;

impl Oracle {
    /// Somebody enters `starting`: a claim on the session.
    pub(super) fn claims(
        &mut self,
        change: &Change<'_>,
        clock: &crate::clock::Clock,
        report: &mut Report,
    ) {
        let id = change.after.id;
        // neither the books of a rung that failed nor a click that is merged begins a restart
        // nor does a look at the row, another name for it, or a wake-up that goes into the queue
        const BOOKS: [&str; 6] =
            ["rung failed", "budget reset", "seen", "renamed", "deleted", "wake-up fired"];
        let books = BOOKS.contains(&change.reason);
        if change.after.status != Status::Starting || books {
            return;
        }
        let actor = change.actor;
        let restarts = match actor {
            Actor::User
            | Actor::AbortedScan
            | Actor::RetryButton
            | Actor::ReArm
            | Actor::WaitingHold
            | Actor::CrashRecovery => true,
            // a worker is launched once by its parent
            Actor::App => change.before.is_none(),
            Actor::Stream
            | Actor::TurnEnd
            | Actor::Abort
            | Actor::Launch
            | Actor::Relaunch
            | Actor::LivenessWatchdog
            | Actor::StallWatchdog
            | Actor::ContextStall
            | Actor::AutoContinue => false,
        };
        if !restarts {
            return;
        }
        let same = |claim: Claim| claim.actor == actor;
        let goes_on = change.before.is_some_and(|before| before.status == Status::Starting)
            && self.book(id).claim.is_some_and(same);
        if goes_on {
            // the same restart, after the old child was stopped or a question was answered
            if actor == Actor::CrashRecovery {
                self.book(id).claim = Some(Claim { actor, at: clock.at, by_person: false });
            }
            return;
        }
        let waits = change.before.is_some_and(|before| before.status == Status::Starting);
        let pending = change.before.and_then(|before| before.pending);
        let book = self.book(id);
        let rest = book.rest.take();
        let same = (book.relaunch.waiting || book.again) && pending == change.after.pending;
        if waits && rest.is_none() && same {
            // looked at and planned anew: its launches are one restart (OD-15)
            return;
        }
        let by_person = std::mem::take(&mut book.resumes);
        if let Some(before) = rest.as_deref().or(change.before) {
            if !by_person {
                self.inv_04_allowed(actor, before, clock.now());
            }
            self.inv_06(actor, before);
            self.inv_46(actor, id);
        }
        self.inv_14(id, actor);
        let book = self.book(id);
        book.claim = Some(Claim { actor, at: clock.at, by_person });
        book.refused = false;
        let hurried = waits && actor == Actor::RetryButton;
        if rest.is_none() && !hurried {
            book.relaunch = Relaunch::default();
        }
        match actor {
            Actor::RetryButton => {
                if !hurried {
                    self.inv_08_clicked(id);
                }
                self.began_anew(id);
            }
            Actor::User => {
                let book = self.book(id);
                if change.before.is_some_and(SessionRow::in_shape) {
                    report.hit("a message takes a cut-off session over");
                }
                book.click = None;
            }
            Actor::AbortedScan => self.scan_restarts(change, clock.at, report),
            Actor::ReArm => self.inv_19(id, clock.at),
            Actor::CrashRecovery
            | Actor::WaitingHold
            | Actor::Stream
            | Actor::TurnEnd
            | Actor::Abort
            | Actor::Launch
            | Actor::Relaunch
            | Actor::LivenessWatchdog
            | Actor::StallWatchdog
            | Actor::ContextStall
            | Actor::AutoContinue
            | Actor::App => {}
        }
    }

    /// INV-04: the actor is one that may touch the session in this state (contract section 6).
    fn inv_04_allowed(&mut self, actor: Actor, before: &SessionRow, now: Now) {
        let age = now.wall.since(before.status_changed_at);
        let past_cap = !(-60_000..300_000).contains(&age);
        let failed = before.pending == Some(PendingAction::RecoveryFailed);
        // INV-39: the scan serves the shape, the ladder what was given up, and nothing else
        let wrong = match actor {
            Actor::AbortedScan => failed,
            Actor::ReArm => before.pending == Some(PendingAction::ResponseAborted),
            Actor::User
            | Actor::RetryButton
            | Actor::CrashRecovery
            | Actor::WaitingHold
            | Actor::Stream
            | Actor::TurnEnd
            | Actor::Abort
            | Actor::Launch
            | Actor::Relaunch
            | Actor::LivenessWatchdog
            | Actor::StallWatchdog
            | Actor::ContextStall
            | Actor::AutoContinue
            | Actor::App => false,
        };
        if wrong {
            self.fail("INV-39", format!("{actor:?} restarts {before:?}"));
        }
        let allowed = match actor {
            Actor::AbortedScan => before.in_shape(),
            Actor::ReArm => {
                failed
                    && before.stop_reason.is_none()
                    && matches!(before.status, Status::NeedsYou | Status::Error | Status::Stalled)
            }
            Actor::RetryButton => match before.pending {
                Some(PendingAction::ResponseAborted) => {
                    let takes_over = self.book(before.id).takes_over;
                    takes_over
                        || past_cap
                        || !self.policy.aborted_response_recovery()
                        || before.delivered
                }
                Some(PendingAction::RecoveryFailed | PendingAction::ApiError) => true,
                None => before.status == Status::Error,
                Some(
                    PendingAction::Question
                    | PendingAction::PlanApproval
                    | PendingAction::PermissionRequest
                    | PendingAction::AuthRequired
                    | PendingAction::Stopped
                    | PendingAction::AppRestartSuspended
                    | PendingAction::RateLimited,
                ) => false,
            },
            Actor::CrashRecovery => matches!(before.status, Status::Starting | Status::Running),
            Actor::WaitingHold => {
                before.pending.is_none()
                    && matches!(
                        before.status,
                        // the same launch again, planned anew
                        Status::Starting | Status::Waiting | Status::NeedsYou | Status::Stalled
                    )
            }
            Actor::User
            | Actor::Stream
            | Actor::TurnEnd
            | Actor::Abort
            | Actor::Launch
            | Actor::Relaunch
            | Actor::LivenessWatchdog
            | Actor::StallWatchdog
            | Actor::ContextStall
            | Actor::AutoContinue
            | Actor::App => before.status != Status::Archived,
        };
        if !allowed {
            let state = (before.status, before.pending);
            self.fail("INV-04", format!("{actor:?} restarts a session in {state:?}"));
        }
    }

    /// A child is about to be started.
    pub(super) fn spawns(
        &mut self,
        id: SessionId,
        plan: &LaunchPlan,
        (store, at): (&Store, u64),
        report: &mut Report,
    ) {
        self.tries(id, at, report);
        self.room_for(id, at, report);
        self.inv_52(id, store, at);
        let fork = store.rows.get(&id).and_then(|row| row.fork_of);
        self.one_writer(id, plan.conversation, fork.map(|point| point.from), report);
        self.inv_07(id, &plan.folder, at);
        if store.rows.get(&id).is_none_or(SessionRow::is_gone) {
            self.fail("INV-42", format!("a child of {id} is started, and the row is gone"));
        }
        let wanted = store.rows.get(&id).and_then(|row| row.cli_session_wanted);
        if wanted != Some(plan.conversation.id()) {
            self.fail("INV-44", format!("a child of {id} is started before its id is stored"));
        }
        let book = self.book(id);
        (book.looked, book.urgent) = (false, false);
        let Some(claim) = book.claim.take() else {
            if !std::mem::take(&mut book.again) {
                self.fail("INV-04", format!("a child of {id} is started and nobody restarted it"));
            }
            return;
        };
        book.again = false;
        if matches!(claim.actor, Actor::User | Actor::App) {
            return;
        }
        let last = book.restarted.replace(claim.at);
        book.restarted_before = last;
        book.replay_due = true;
        report.hit(&format!("restart {}", claim.actor.as_str()));
        if claim.actor != Actor::RetryButton && !claim.by_person {
            self.inv_01(id, claim, last);
        }
    }

    /// INV-01: no automatic restart within 90 s of the one before, across restarts of the app too. A
    /// wall clock that was set while no app ran cannot be seen through, and is left out.
    fn inv_01(&mut self, id: SessionId, claim: Claim, last: Option<u64>) {
        let Some(last) = last else { return };
        let blind = self.stepped_at >= last && self.booted_at >= last;
        let age = claim.at - last;
        if age < 90 * SECOND && !blind {
            let actor = claim.actor.as_str();
            self.fail("INV-01", format!("{actor} restarts {id} {age} ms after the last restart"));
        }
    }

    /// INV-02: never two live children of a session. `others`: those that live beside the new one.
    pub(crate) fn inv_02(&mut self, id: SessionId, others: usize) {
        if others > 0 {
            self.fail("INV-02", format!("{others} children of {id} live beside the new one"));
        }
    }

    /// INV-03: the old child and its tools are gone before the new one says a word.
    pub(crate) fn inv_03(&mut self, id: SessionId, others: usize) {
        if others > 0 {
            self.fail("INV-03", format!("{others} old processes of {id} live at the first byte"));
        }
    }

    /// A click on Retry.
    pub(super) fn click(&mut self, id: SessionId, state: &State, at: u64, report: &mut Report) {
        if state.view(id).is_some_and(|view| merges(&view)) {
            report.hit("retry merged");
            return;
        }
        let rung = state.view(id).is_some_and(|view| {
            let row = &view.row;
            row.turn.is_some() && row.pending == Some(PendingAction::RecoveryFailed)
        });
        if rung {
            report.hit("retry during a rung");
        }
        self.retrying = Some(id);
        let book = self.book(id);
        (book.click, book.clicked_at) = (Some(at), Some(at));
    }

    pub(super) fn replied(&mut self, accepted: bool, report: &mut Report) {
        self.pressed(accepted);
        self.in_force(accepted);
        let Some(id) = self.retrying.take() else { return };
        if accepted {
            report.hit("retry accepted");
        } else {
            report.hit("retry refused");
            self.book(id).click = None;
        }
    }

    /// INV-08, one half: a restart by Retry has a click of its own.
    fn inv_08_clicked(&mut self, id: SessionId) {
        let book = self.book(id);
        let took_over = std::mem::take(&mut book.takes_over);
        if book.click.take().is_none() && !took_over {
            self.fail("INV-08", format!("Retry restarts {id} without a click of its own"));
        }
    }

    /// INV-08, other half: an accepted click is answered within 30 s.
    pub(super) fn click_answered(&mut self, id: SessionId, at: u64) {
        let since = self.book(id).click;
        if since.is_some_and(|since| at > since + 30 * SECOND) {
            self.fail("INV-08", format!("an accepted click on Retry of {id} led to nothing"));
        }
    }

    pub(super) fn logged(&mut self, id: Option<SessionId>, text: &str, report: &mut Report) {
        const HOLDS: [&str; 6] = [
            "Debounced",
            "FolderMissing",
            "HeldElsewhere",
            "GateOpen",
            "MachineBusy",
            "RecoveryOff",
        ];
        for hold in HOLDS {
            for actor in ["response-aborted", "re-arm"] {
                if text.starts_with(&format!("{actor}: wait: {hold}")) {
                    report.hit(&format!("{actor} waits: {hold}"));
                }
            }
        }
        if text.starts_with("liveness-watchdog: act") {
            report.hit("liveness: a child is gone");
        }
        if text.contains("too late") || text.contains("was overtaken") {
            report.hit("late answer ignored");
        }
        let Some(id) = id else { return };
        if text.contains("one more start") {
            report.hit("handshake: one more start");
            self.book(id).again = true;
        }
        // the folder is gone, the question found no answer, or a rung answers already: the click leads
        // to no restart
        const NOTHING: [&str; 5] = [
            "folder missing",
            "launch failed",
            "rung failed",
            "retry-button: wait",
            "retry-button: not mine",
        ];
        if NOTHING.iter().any(|why| text.contains(why)) {
            self.book(id).click = None;
        }
    }

    /// INV-09: a running turn that is not silent beyond its phase's limit is stopped by nobody but the
    /// person. `healthy`: what the world knows of the child; `open`: its turn stays open even so.
    pub(crate) fn inv_09(&mut self, id: SessionId, healthy: bool, open: bool, at: u64) {
        // a click on Retry ends what runs, once its question is answered or its time is over
        let clicked = self.book(id).clicked_at.is_some_and(|click| at - click < 6 * SECOND);
        let closed_by_app = self.closed.get(&id).is_some_and(|by_person| !by_person);
        if healthy && !self.by_person && !clicked && (closed_by_app || open) {
            self.fail("INV-09", format!("a healthy running turn of {id} was stopped"));
        }
    }

    /// INV-53: a silent turn is over within its phase's limit and one step.
    pub(crate) fn inv_53(&mut self, id: SessionId) {
        self.fail("INV-53", format!("a silent turn of {id} stays open"));
    }

    /// The machine slept: what a click waits for had no time.
    pub(crate) fn slept(&mut self, millis: u64, at: u64) {
        self.slept_at = at;
        self.line_slept(millis);
        for book in self.books.values_mut() {
            book.click = book.click.map(|at| at + millis);
        }
    }

    /// INV-64: whatever the cut of the bytes, the events are the same.
    pub(crate) fn inv_64(&mut self, whole: &[StreamEvent], cut: &[StreamEvent]) {
        if whole != cut {
            self.fail("INV-64", format!("{whole:?} became {cut:?}"));
        }
    }

    /// The wall clock was set.
    pub(crate) fn stepped(&mut self, before: Now, after: Now, state: Option<&State>, at: u64) {
        self.stepped_at = at;
        if after.wall < before.wall
            && let Some(state) = state
        {
            self.inv_36(before, after, state);
        }
    }
}

/// Whether a restart is under way that a click on Retry is merged with.
pub(super) fn merges(view: &RowView) -> bool {
    let open = view.row.turn.is_some() && view.row.status != Status::Starting;
    view.live.restart_under_way && !open
}
