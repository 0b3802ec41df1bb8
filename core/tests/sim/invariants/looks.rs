//! What a row looks like and what its buttons do: INV-28 to INV-32, INV-34.

use super::Oracle;
use super::restarts::merges;
use crate::clock::Clock;
use crate::report::Report;
use omniscio_core::attention::{Attention, Pill, Section, Tone, attention};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::supervisor::{Command, State};
use omniscio_core::time::Now;

const RETRY_GOES_ON: &str =
    "Auto-recovery keeps retrying in the background — Retry tries again immediately.";
const RETRY_STOPPED: &str =
    "Auto-retry stopped after repeated failures — Retry resets the limit and tries again now.";
const RETRY_RECOVERY_OFF: &str = "Auto-recovery is off — Retry tries again now.";

/// A button that was pressed, and whether it was there to be pressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pressed {
    session: SessionId,
    pill: Pill,
    shown: bool,
}

impl Oracle {
    /// INV-28: green is a row that lives, is being launched, or is cut off and unseen. INV-29: what was
    /// given up is red. INV-30: what only waits for the person is amber. INV-31: it is in a section.
    pub(super) fn looks(&mut self, view: &RowView, seen: &Attention, unseen: bool) {
        let row = &view.row;
        if row.is_gone() {
            return;
        }
        let alive = view.live.child || view.live.restart_under_way || unseen;
        if seen.tone == Tone::Green && !alive && !self.quitting {
            self.fail("INV-28", format!("green, and nothing lives: {row:?}"));
        }
        let failed = row.pending == Some(PendingAction::RecoveryFailed);
        if failed && (seen.tone, seen.section) != (Tone::Red, Section::Interrupted) {
            self.fail("INV-29", format!("given up, and shown {seen:?}"));
        }
        self.inv_33(view, seen);
        let waits = (row.status, row.pending) == (Status::NeedsYou, None);
        if waits && seen.tone != Tone::Amber {
            self.fail("INV-30", format!("waits for the person, and shown {seen:?}"));
        }
        if seen.section == Section::Hidden {
            self.fail("INV-31", format!("in no section: {row:?}"));
        }
    }

    /// INV-33: the tooltip says what the ladder does; what it promises is on its way.
    fn inv_33(&mut self, view: &RowView, seen: &Attention) {
        let row = &view.row;
        if seen.pill != Some(Pill::Retry) {
            return;
        }
        let failed = row.pending == Some(PendingAction::RecoveryFailed);
        let stopped = failed && self.book(row.id).ladder.stopped;
        let wanted = if stopped {
            RETRY_STOPPED
        } else if !failed && !row.in_shape() {
            return;
        } else if self.policy.aborted_response_recovery() {
            RETRY_GOES_ON
        } else {
            RETRY_RECOVERY_OFF
        };
        let on_its_way =
            matches!(row.status, Status::Starting | Status::Running) || view.live.restart_under_way;
        let empty = failed && !stopped && !on_its_way && row.ladder.due.is_none();
        if seen.pill_tooltip != Some(wanted) || empty {
            self.fail("INV-33", format!("{:?} of {row:?}", seen.pill_tooltip));
        }
    }

    /// Retry or Continue is pressed, whether it is shown or not.
    pub(super) fn presses(&mut self, command: &Command, state: &State, clock: &Clock) {
        let (session, pill) = if let Command::Retry { session } = command {
            (*session, Pill::Retry)
        } else if let Command::Continue { session } = command {
            (*session, Pill::Continue)
        } else {
            return;
        };
        let Some(view) = state.view(session) else { return };
        let merged = merges(&view);
        let shown = attention(&view, &self.policy, &self.limits, clock.now()).pill == Some(pill);
        self.pressed =
            Some(Pressed { session, pill, shown: shown || merged && pill == Pill::Retry });
    }

    /// INV-32: the button that is shown works, and the one that is not does nothing.
    pub(super) fn pressed(&mut self, accepted: bool) {
        let Some(Pressed { session, pill, shown }) = self.pressed.take() else { return };
        if accepted != shown && !self.quitting {
            let text = format!("{pill:?} of {session}: shown {shown}, accepted {accepted}");
            self.fail("INV-32", text);
        }
    }

    /// INV-34: the person is told once of each entry, and only of what needs them.
    pub(super) fn notified(&mut self, id: SessionId, now: Now, report: &mut Report) {
        report.hit("notified");
        let Some(view) = self.window.get(&id) else { return };
        let needs = attention(view, &self.policy, &self.limits, now).needs_person;
        let text = format!("{:?}", view.row);
        let book = self.book(id);
        if std::mem::replace(&mut book.notified, book.entries) == book.entries {
            self.fail("INV-34", format!("told twice of {text}"));
        }
        if !needs {
            self.fail("INV-34", format!("told of a row that needs nobody: {text}"));
        }
    }
}
