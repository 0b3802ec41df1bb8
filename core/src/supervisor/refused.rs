//! A launch that is not begun: its folder is missing, another program has its conversation, or nobody
//! could look. What each actor leaves behind.

use super::asks::LaunchFor;
use super::replaying::actor_of;
use super::{Answer, Cx, State};
use crate::id::SessionId;
use crate::prompt;
use crate::session::{PendingAction, Status};
use crate::time::Wall;
use crate::verdict::{Actor, Source};
use alloc::format;

/// Why a launch that was asked for is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The project folder is missing (INV 7).
    FolderMissing,
    /// Another program has the conversation open.
    Held,
}

impl State {
    /// No launch is begun: what each actor leaves behind.
    pub(super) fn launch_refused(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        purpose: LaunchFor,
        refusal: Refusal,
    ) {
        // rule: RT-23, A-12
        let (reason, words) = match refusal {
            Refusal::FolderMissing => ("folder missing", prompt::BANNER_FOLDER_MISSING),
            Refusal::Held => ("open in another program", prompt::HELD_ELSEWHERE),
        };
        match purpose {
            LaunchFor::Replay(Source::CrashResume) => {
                let to = (Status::Paused, Some(PendingAction::AppRestartSuspended));
                self.enter(cx, id, Actor::CrashRecovery, reason, to, |row| {
                    row.turn = None;
                });
            }
            LaunchFor::Replay(Source::RetryButton) if self.is_launching(id) => {
                self.decided(cx, id, Actor::RetryButton, format!("wait: {reason}"));
                self.retry_refused(cx, id, words);
            }
            LaunchFor::Replay(source) => {
                self.decided(cx, id, actor_of(source), format!("wait: {reason}"));
                self.back_to_rest(cx, id, source);
            }
            LaunchFor::Queue => {
                self.launch_failed(cx, id, words);
            }
        }
    }

    /// A Retry that had begun may not go on: the row is red as it was before the click. A cut-off reply
    /// is still brought back by itself.
    fn retry_refused(&mut self, cx: &mut Cx, id: SessionId, words: &str) {
        // rule: RT-23
        let row = self.sessions.get(&id).map(|session| &session.row);
        if row.is_none_or(|row| row.abort_cause.is_none() || !row.replay.is_open()) {
            self.launch_failed(cx, id, words);
            return;
        }
        // its hidden time was over before the click
        let over = Wall(cx.now.wall.0.saturating_sub_unsigned(self.limits.hide_max_ms));
        self.change(cx, id, Actor::RetryButton, "hide clock kept", |row| {
            row.hide_since = Some(over);
        });
        self.back_to_rest(cx, id, Source::RetryButton);
    }

    fn is_launching(&self, id: SessionId) -> bool {
        let row = self.sessions.get(&id).map(|session| &session.row);
        row.is_some_and(|row| (row.status, row.pending) == (Status::Starting, None))
    }

    /// Nobody could look at folder and transcript: automatic actors come back later, a person is told.
    pub(super) fn look_failed(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        purpose: LaunchFor,
        answer: &Answer,
    ) {
        const TRIES: u8 = 5;
        if let LaunchFor::Replay(source) = purpose
            && self.turn_is_open(id)
        {
            // a turn that runs is better than a restart that cannot begin
            self.decided(cx, id, actor_of(source), "wait: the folder could not be looked at");
            return;
        }
        if let Answer::Failed { words, .. } = answer
            && self.too_busy_to_look(answer)
        {
            // a machine that is too busy to look is too busy to launch
            self.relaunch_later(cx, id, purpose, words);
            return;
        }
        let again = cx.now.mono.plus(self.limits.ask_ms);
        match purpose {
            LaunchFor::Replay(Source::CrashResume) => {
                let Some(session) = self.session(id) else {
                    return;
                };
                session.live.resume_tries += 1;
                if session.live.resume_tries < TRIES {
                    session.live.resume_due = Some(again);
                } else {
                    self.launch_refused(cx, id, purpose, Refusal::FolderMissing);
                }
            }
            LaunchFor::Replay(
                source @ (Source::ResponseAborted | Source::ReArm | Source::ConversationGone),
            ) => {
                self.decided(cx, id, actor_of(source), "wait: the folder could not be looked at");
                self.back_to_rest(cx, id, source);
            }
            LaunchFor::Replay(Source::RetryButton) | LaunchFor::Queue => {
                let words = "The project folder could not be looked at in time.";
                self.launch_failed(cx, id, words);
            }
        }
    }
}
