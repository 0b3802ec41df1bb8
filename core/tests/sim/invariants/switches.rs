//! Rows and times in which nothing automatic happens: INV-42 (what the person put away), INV-46, INV-48
//! and INV-55 (switches and the scan's own clock).

use super::{Change, Oracle};
use crate::clock::{Clock, MINUTE, SECOND};
use crate::report::Report;
use crate::store::Store;
use omniscio_core::id::{CliSessionId, SessionId};
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::{AskId, Command, Input, Question};
use omniscio_core::verdict::Actor;

/// The scan's ticks.
#[derive(Default)]
pub(super) struct Ticks {
    last: Option<u64>,
    /// The question of the last one, until it is answered.
    open: Option<AskId>,
    /// When that was.
    answered: u64,
}

/// A question that finds no answer is given up after this.
const ASK_MS: u64 = 5 * SECOND;

impl Oracle {
    /// INV-46 and INV-55: with recovery off no actor that it switches restarts anything, from the step on
    /// in which it was switched.
    pub(super) fn inv_46(&mut self, actor: Actor, id: SessionId) {
        if matches!(actor, Actor::AbortedScan | Actor::ReArm)
            && !self.policy.aborted_response_recovery()
        {
            self.fail("INV-46", format!("{actor:?} restarts {id} though recovery is off"));
        }
    }

    /// INV-42: what is put away is changed by nobody but the person. Its child may still end, and its
    /// open turn with it.
    pub(super) fn inv_42(&mut self, change: &Change<'_>) {
        let Some(before) = change.before else { return };
        let away = before.deleted_at.is_some()
            || matches!(before.status, Status::Paused | Status::Ended | Status::Archived);
        let names = matches!(change.actor, Actor::CrashRecovery | Actor::Relaunch);
        let resumes = names && self.book(before.id).resumes;
        let by_person = matches!(change.actor, Actor::User | Actor::RetryButton) || resumes;
        let facts = |row: &SessionRow| {
            let budget = (row.retry_attempts, row.retry_day, row.stop_reason, row.ladder);
            (row.status, row.pending, row.deleted_at, row.archive_reason, budget)
        };
        if away && !by_person && facts(before) != facts(change.after) {
            let text = format!("{:?} changes {before:?}", change.actor);
            self.fail("INV-42", text);
        }
    }

    /// A question of the scan. INV-48: the first one is 30 s after the start; with recovery off there is
    /// none (INV-46); SC-22: never two at once.
    pub(super) fn scans(&mut self, ask: AskId, clock: &Clock) {
        let (now, at) = (clock.now(), clock.at);
        let age = now.mono.since(self.booted.mono);
        if age < 30 * SECOND {
            self.fail("INV-48", format!("a scan {age} ms after the start"));
        }
        if !self.policy.aborted_response_recovery() {
            self.fail("INV-46", "a scan though recovery is off");
        }
        let last = self.ticks.last.replace(at);
        self.ticks.open = Some(ask);
        if last.is_some_and(|last| last == at) {
            self.fail("SC-22", "two scans at one moment");
        }
    }

    /// An answer comes, perhaps to the last tick.
    pub(super) fn tick_answered(&mut self, ask: AskId, at: u64) {
        if self.ticks.open.take_if(|open| *open == ask).is_some() {
            self.ticks.answered = at;
        }
    }

    /// INV-55, the other half: once recovery is on the scan comes within one tick, and again each minute.
    pub(super) fn inv_55(&mut self, at: u64) {
        if !self.policy.aborted_response_recovery() || self.quitting {
            return;
        }
        let begun = self.booted_at.max(self.switched_at).max(self.slept_at);
        let mut since = self.ticks.last.unwrap_or(0).max(begun);
        if since == self.slept_at {
            // the tick on waking is out of step: the next one may come while its question is open, and is
            // skipped (SC-22)
            let open_until = since + ASK_MS;
            let open = self.ticks.open.is_some();
            since = if open { open_until } else { self.ticks.answered.clamp(since, open_until) };
        }
        if at > since + MINUTE + SECOND {
            self.fail("INV-55", format!("recovery is on and no scan came for {} ms", at - since));
        }
    }

    /// INV-55: a change that was accepted is in force from that step on.
    pub(super) fn in_force(&mut self, accepted: bool) {
        let Some(wanted) = self.wanted.take() else { return };
        if accepted && wanted != self.policy.settings {
            self.fail("INV-55", "a setting was changed and is as before");
        }
    }

    /// Switches that a command turns, and what is put away in the middle of a recovery.
    pub(super) fn noted(&mut self, command: &Command, at: u64, report: &mut Report) {
        if let Command::SetSetting { change } = command {
            self.switched_at = at;
            let mut wanted = self.policy.settings.clone();
            wanted.apply(change.clone());
            self.wanted = Some(wanted);
        } else if let Command::Quit = command {
            self.quitting = true;
        } else if let Command::ForkHeld { session } = command {
            report.hit("a copy of a held conversation wanted");
            self.resumes(*session);
            let book = self.book(*session);
            (book.copy_wanted, book.takes_over) = (true, true);
        } else if let Command::TakeOver { session, .. } = command {
            self.resumes(*session);
            self.book(*session).takes_over = true;
        } else if let Command::Continue { session } = command {
            self.resumes(*session);
        } else if let Command::End { session }
        | Command::Archive { session }
        | Command::Delete { session } = command
        {
            let row = self.folded.get(session);
            if row.is_some_and(SessionRow::in_shape) {
                report.hit("put away while cut off");
            }
            let replays =
                |row: &SessionRow| row.turn.as_ref().is_some_and(|turn| turn.replay.is_some());
            if row.is_some_and(|row| row.status == Status::Starting || replays(row)) {
                report.hit("put away while it comes back");
            }
        }
    }

    /// The person brings back what the app's restart had suspended (CR-04).
    fn resumes(&mut self, id: SessionId) {
        let suspended = Some(PendingAction::AppRestartSuspended);
        let is = self.folded.get(&id).is_some_and(|row| row.pending == suspended);
        self.book(id).resumes |= is;
    }

    /// A question to the shell.
    pub(super) fn asks(
        &mut self,
        (ask, question): (AskId, &Question),
        (store, clock): (&Store, &Clock),
        report: &mut Report,
    ) {
        match question {
            Question::Handover { session } => {
                // the conversation is gone: the new one belongs to the same restart
                report.hit("conversation gone");
                self.book(*session).again = true;
                self.reads(ask, *session, clock.at);
            }
            Question::Transcript { folder, cli_session, uuids, .. } => {
                self.look_begins(ask, (folder, uuids), (store, clock.at));
                self.looks_at(*cli_session, store, report);
            }
            Question::Folder { .. } | Question::TakeOver { .. } | Question::Alive { .. } => {}
            Question::Headroom => self.asks_for_room(ask, clock.at),
            Question::Stamped => self.scans(ask, clock),
        }
    }

    /// A conversation is looked at for a launch: for the second time when the first look is too old.
    fn looks_at(&mut self, id: Option<CliSessionId>, store: &Store, report: &mut Report) {
        let mine = |row: &&SessionRow| row.cli_session_id == id && row.status == Status::Starting;
        let Some(row) = store.listed().find(mine).filter(|_| id.is_some()) else { return };
        if std::mem::replace(&mut self.book(row.id).looked, true) {
            report.hit("a look that is too old is taken again");
        }
    }
}

/// Whether an input is a command, and which.
pub(super) fn command_of(input: &Input) -> Option<&Command> {
    if let Input::Command { command, .. } = input { Some(command) } else { None }
}
