//! The two buttons of a row, of which it has at most one: Retry drives recovery now, Continue merely
//! messages the session (RT-14, RT-18).

use super::asks::LaunchFor;
use super::commands::{Answered, error, not_found};
use super::sending::reset_budget;
use super::{Cx, State, view};
use crate::attention::{Pill, attention};
use crate::id::SessionId;
use crate::ipc::{IpcCode, Reply};
use crate::message::Origin;
use crate::prompt;
use crate::session::{PendingAction, Status};
use crate::verdict::{Actor, Source};
use alloc::string::ToString;

impl State {
    /// `forceRestart`: resets the budget and drives recovery now (RT-05). Bypasses debounce and
    /// switches, never a missing folder.
    pub(super) fn force_restart(&mut self, cx: &mut Cx, id: SessionId) -> Answered {
        // rule: RT-05, RT-07, RT-08, RT-19, RT-20
        self.known(id)?;
        let Some(session) = self.sessions.get(&id) else {
            return Err(not_found());
        };
        let seen = attention(&view(session), &self.policy, &self.limits, cx.now);
        let merged = session.live.restart_under_way() && session.live.turn.is_none();
        let launch_error = (session.row.status, session.row.pending) == (Status::Error, None);
        // a message that was cut off goes before what waits behind it
        let queued = !session.live.queue.is_empty() && !session.row.replay.is_open();
        if seen.pill == Some(Pill::Retry) && self.hurry_relaunch(cx, id) {
            self.change(cx, id, Actor::RetryButton, "budget reset", reset_budget);
            return Ok(Reply::Done);
        }
        if merged {
            // one restart for all clicks; what a rung in flight brings counts from here
            self.change(cx, id, Actor::RetryButton, "budget reset", |row| {
                if row.pending == Some(PendingAction::RecoveryFailed) {
                    reset_budget(row);
                }
            });
            return Ok(Reply::Done);
        }
        if seen.pill != Some(Pill::Retry) {
            return Err(error(
                IpcCode::NotEligible,
                "The session is no longer waiting for a retry.",
            ));
        }
        self.change(cx, id, Actor::RetryButton, "budget reset", reset_budget);
        self.decided(cx, id, Actor::RetryButton, "act: retry");
        if launch_error && queued {
            self.enter(
                cx,
                id,
                Actor::RetryButton,
                "retry-button",
                (Status::Starting, None),
                |row| {
                    row.words = None;
                    row.intent_running = true;
                },
            );
            self.note_restart(cx, id, Actor::RetryButton);
            self.ask_launch(cx, id, LaunchFor::Queue);
        } else {
            self.ask_launch(cx, id, LaunchFor::Replay(Source::RetryButton));
        }
        Ok(Reply::Done)
    }

    pub(super) fn continue_session(&mut self, cx: &mut Cx, id: SessionId) -> Answered {
        // rule: RT-18
        self.known(id)?;
        let Some(session) = self.sessions.get(&id) else {
            return Err(not_found());
        };
        let seen = attention(&view(session), &self.policy, &self.limits, cx.now);
        if seen.pill != Some(Pill::Continue) {
            return Err(error(IpcCode::NotEligible, "The session is not waiting to be continued."));
        }
        // rule: CR-04
        let suspended = session.row.pending == Some(PendingAction::AppRestartSuspended);
        if suspended && session.row.replay.is_open() {
            // its message may never have reached the CLI: it goes on with that, not with a new one
            self.decided(cx, id, Actor::User, "act: continue with the open message");
            self.ask_launch(cx, id, LaunchFor::Replay(Source::CrashResume));
            return Ok(Reply::Done);
        }
        let text = prompt::PLEASE_CONTINUE.to_string();
        let message = self.enqueue(cx, id, Origin::OperatorPill, text, true);
        self.send_next(cx, id);
        Ok(Reply::Accepted(message))
    }
}
