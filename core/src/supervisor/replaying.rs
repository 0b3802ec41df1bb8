//! Replays: from the facts to the launch. One function for every source (RP-04).

use super::asks::{AskFor, LaunchFor};
use super::ladder::GivenUp;
use super::live::{Child, Delivery, Purpose};
use super::{Answer, Cx, Question, State, TranscriptFacts};
use crate::id::SessionId;
use crate::launch::Conversation;
use crate::message::{LineText, Origin, UserLine};
use crate::prompt;
use crate::recovery::fork::{first_copy, found_only_original};
use crate::recovery::replay_plan::{Minted, ReplayPlan, replay_plan, resume_id};
use crate::session::{AbortCause, PendingAction, Status, StopReason};
use crate::verdict::{Actor, Source};
use alloc::string::String;
use alloc::vec::Vec;

impl State {
    /// Whether the open turn has shown real output.
    pub(super) fn answers(&self, id: SessionId) -> bool {
        let turn = self.sessions.get(&id).and_then(|session| session.live.turn.as_ref());
        turn.is_some_and(|turn| turn.real_output)
    }

    pub(super) fn turn_is_open(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.live.turn.is_some())
    }

    /// A restart that had begun cannot go on: the row is where it was before it, nothing charged.
    pub(super) fn back_to_rest(&mut self, cx: &mut Cx, id: SessionId, source: Source) {
        // rule: PF-02, CT-09
        let Some(session) = self.session(id) else {
            return;
        };
        if session.row.pending == Some(PendingAction::RecoveryFailed) {
            if session.row.status == Status::Starting {
                self.rung_put_off(cx, id);
            } else {
                // Retry could not begin: the ladder it has reset begins anew
                self.arm(cx, id);
            }
            return;
        }
        if session.row.status != Status::Starting {
            return;
        }
        let charged = core::mem::take(&mut session.live.charged);
        let to = (Status::NeedsYou, Some(PendingAction::ResponseAborted));
        self.enter(cx, id, actor_of(source), "restart put off", to, |row| {
            if let Some(since) = row.hide_since.take() {
                row.status_changed_at = since;
            }
            if charged {
                row.retry_attempts = row.retry_attempts.saturating_sub(1);
            }
        });
    }

    pub(super) fn mint(&mut self) -> Minted {
        Minted { conversation: self.rng.uuid(), uuid: self.rng.uuid() }
    }

    /// Plans the replay and starts it. The row enters `starting` in the same step, with the restart's
    /// time: two actors can never both claim it.
    pub(super) fn replay(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        source: Source,
        found: &TranscriptFacts,
    ) {
        // rule: RP-04, RP-01
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.child != Child::None {
            // a child that lives may still write: it goes first, then the transcript is asked again
            session.live.replay_after_stop = Some(source);
            self.note_commands_end(cx, id);
            self.begin_restart(cx, id, source);
            self.stop_child(cx, id);
            return;
        }
        if self.has_task(id) {
            // a worker that has not begun its task has nothing to replay but that
            self.begin_restart(cx, id, source);
            self.launch_task(cx, id);
            return;
        }
        self.fall_back(cx, id, found);
        let minted = self.mint();
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let plan = replay_plan(&session.row, found, minted);
        let (conversation, uuid, text) = match plan {
            ReplayPlan::SendAgain { conversation, uuid, message }
            | ReplayPlan::Fresh { conversation, uuid, message } => {
                (conversation, uuid, LineText::Of(message))
            }
            ReplayPlan::Continue { conversation, uuid } => {
                (conversation, uuid, LineText::Own(prompt::CONTINUE_CUT_OFF.into()))
            }
            ReplayPlan::HandOver { unknown_calls, .. } => {
                self.begin_restart(cx, id, source);
                self.ask_handover(cx, id, LaunchFor::Replay(source), unknown_calls);
                return;
            }
            ReplayPlan::Nothing => {
                self.nothing_to_replay(cx, id, source, found);
                return;
            }
        };
        let conversation = self.copied_if_held(id, conversation);
        self.begin_restart(cx, id, source);
        let line = UserLine { uuid, origin: Origin::Replay, text };
        let purpose = Purpose::Replay { source, line };
        self.launch(cx, id, Delivery { conversation, purpose, hung: 0 });
    }

    /// A copy that never got a usable file is left behind: the conversation it was made from goes on.
    pub(super) fn fall_back(&mut self, cx: &mut Cx, id: SessionId, found: &TranscriptFacts) {
        // rule: A-15
        if found.fell_back {
            self.change(cx, id, Actor::Launch, "back to the copied conversation", |row| {
                row.cli_session_id = if found_only_original(row, found) {
                    // another session's conversation is copied again
                    None
                } else {
                    row.cli_session_before.take()
                };
            });
        }
    }

    /// The row leaves the shape: from here on it is coming back.
    fn begin_restart(&mut self, cx: &mut Cx, id: SessionId, source: Source) {
        // rule: SC-15, RA-16
        let to = (Status::Starting, still_failed(source));
        if let Some(session) = self.session(id) {
            session.live.turn = None;
            session.live.ending = None;
        }
        self.enter(cx, id, actor_of(source), source.as_str(), to, |row| {
            row.intent_running = true;
            row.turn = None;
            row.words = None;
        });
        self.note_restart(cx, id, actor_of(source));
    }

    /// Every restart leaves its time, whoever began it: the debounce counts from there (OD-15).
    pub(super) fn note_restart(&mut self, cx: &mut Cx, id: SessionId, actor: Actor) {
        // rule: RP-07
        let now = cx.now;
        if let Some(session) = self.session(id) {
            session.live.restarted_at = Some(now.mono);
        }
        self.change(cx, id, actor, "restart", |row| row.last_restart_at = Some(now.wall));
    }

    fn nothing_to_replay(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        source: Source,
        found: &TranscriptFacts,
    ) {
        // rule: RP-09
        match source {
            Source::RetryButton => {
                let Some(session) = self.sessions.get(&id) else {
                    return;
                };
                let row = &session.row;
                let new = self.rng.uuid();
                let copy = first_copy(row, found, new);
                let conversation = copy.unwrap_or(match resume_id(row) {
                    Some(id) if row.turn_count > 0 => Conversation::Resume { id },
                    Some(_) | None => Conversation::New { id: new },
                });
                let conversation = self.copied_if_held(id, conversation);
                self.begin_restart(cx, id, source);
                let purpose = Purpose::Bare;
                self.launch(cx, id, Delivery { conversation, purpose, hung: 0 });
            }
            Source::CrashResume => {
                let to = (Status::Paused, Some(PendingAction::AppRestartSuspended));
                self.enter(cx, id, Actor::CrashRecovery, "nothing to resume", to, |row| {
                    row.turn = None;
                });
            }
            Source::ReArm => {
                let status = Status::Error;
                let stop = Some(StopReason::NothingToReplay);
                let given_up = GivenUp { status, stop };
                self.give_up(cx, id, Actor::ReArm, "nothing to replay", given_up);
            }
            Source::ResponseAborted | Source::ConversationGone => {
                self.back_to_rest(cx, id, source);
                self.promote(cx, id, Some(StopReason::NothingToReplay));
                let begun = self
                    .sessions
                    .get(&id)
                    .is_some_and(|session| session.row.status == Status::Starting);
                if begun {
                    // the old child was stopped for a restart that cannot be
                    self.launch_failed(cx, id, "There is nothing to send again.");
                }
            }
        }
    }

    /// The CLI lost the conversation in the middle of our own resume: the hand-over follows at once,
    /// nothing is charged (contract 5.3, A-04 d).
    pub(super) fn conversation_gone(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.session(id) else {
            return;
        };
        let queue = session
            .live
            .delivery
            .as_ref()
            .is_some_and(|delivery| matches!(delivery.purpose, Purpose::Queue { .. }));
        let bare = session
            .live
            .delivery
            .take()
            .is_some_and(|delivery| matches!(delivery.purpose, Purpose::Bare));
        if bare {
            // nothing was to be sent: the next message brings the hand-over with it
            let to = (Status::NeedsYou, None);
            self.enter(cx, id, Actor::TurnEnd, "conversation gone", to, |row| row.turn = None);
            self.stop_child(cx, id);
            return;
        }
        self.note_restart(cx, id, Actor::TurnEnd);
        self.change(cx, id, Actor::TurnEnd, "conversation gone", |row| {
            row.abort_cause = Some(AbortCause::ConversationGone);
            row.turn = None;
        });
        self.stop_child(cx, id);
        let purpose =
            if queue { LaunchFor::Queue } else { LaunchFor::Replay(Source::ConversationGone) };
        let calls = match replay_plan_calls(self, id) {
            Some(calls) if !queue => calls,
            Some(_) | None => Vec::new(),
        };
        self.ask_handover(cx, id, purpose, calls);
    }

    pub(super) fn ask_handover(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        purpose: LaunchFor,
        calls: Vec<String>,
    ) {
        let wait = self.limits.ask_ms;
        let what = AskFor::Handover { session: id, purpose, calls };
        let ask = self.ask(cx, what, Question::Handover { session: id }, wait);
        if let Some(session) = self.session(id) {
            session.live.asking = Some(ask);
        }
    }

    /// Nobody could read the earlier conversation: a machine that is too busy for that is too busy to
    /// launch, anything else is an error.
    fn handover_failed(&mut self, cx: &mut Cx, id: SessionId, purpose: LaunchFor, answer: &Answer) {
        // rule: RS-02, RS-08, INV-59
        if let Answer::Failed { words, .. } = answer
            && self.too_busy_to_look(answer)
        {
            self.relaunch_later(cx, id, purpose, words);
            return;
        }
        self.launch_failed(cx, id, "The earlier conversation could not be read.");
    }

    pub(super) fn handover_answered(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        purpose: LaunchFor,
        calls: &[String],
        answer: Answer,
    ) {
        let handover = match answer.handover() {
            Ok(said) => with_calls(said.text, calls),
            Err(answer) => {
                self.handover_failed(cx, id, purpose, &answer);
                return;
            }
        };
        let minted = self.mint();
        let conversation = Conversation::New { id: minted.conversation };
        let row = self.sessions.get(&id).map(|session| &session.row);
        if row.is_some_and(|row| row.cli_session_id.or(row.cli_session_before).is_some()) {
            // told once, however often the launch is planned anew
            self.note(cx, id, prompt::NOTE_CONVERSATION_GONE);
        }
        self.change(cx, id, Actor::Launch, "a new conversation", |row| {
            row.cli_session_id = None;
            row.cli_session_before = None;
            row.fork_of = None;
            row.last_good_assistant = None;
        });
        match purpose {
            LaunchFor::Queue => self.launch_queue(cx, id, conversation, Some(handover)),
            LaunchFor::Replay(source) => {
                let Some(session) = self.sessions.get(&id) else {
                    return;
                };
                let text = match session.row.replay.message {
                    Some(message) => LineText::HandoverThen { handover, message },
                    None => LineText::Own(handover),
                };
                let line = UserLine { uuid: minted.uuid, origin: Origin::Replay, text };
                let purpose = Purpose::Replay { source, line };
                self.launch(cx, id, Delivery { conversation, purpose, hung: 0 });
            }
        }
    }
}

/// Started calls of the row's message, in words for the hand-over.
fn replay_plan_calls(state: &State, id: SessionId) -> Option<Vec<String>> {
    let row = &state.sessions.get(&id)?.row;
    Some(crate::recovery::replay_plan::unknown_calls(row))
}

fn with_calls(mut text: String, calls: &[String]) -> String {
    // rule: A-04
    if !calls.is_empty() {
        text.push_str("\n\nThese steps were started before the conversation was lost:\n");
        for call in calls {
            text.push_str(&alloc::format!(
                "- {call} (outcome unknown: check before running it again)\n"
            ));
        }
    }
    text
}

pub(super) fn actor_of(source: Source) -> Actor {
    match source {
        Source::ResponseAborted => Actor::AbortedScan,
        Source::RetryButton => Actor::RetryButton,
        Source::ReArm => Actor::ReArm,
        Source::CrashResume => Actor::CrashRecovery,
        Source::ConversationGone => Actor::TurnEnd,
    }
}

/// A rung leaves the row red until it has shown real output (RA-16); every other restart does not.
pub(super) fn still_failed(source: Source) -> Option<PendingAction> {
    match source {
        Source::ReArm => Some(PendingAction::RecoveryFailed),
        Source::ResponseAborted
        | Source::RetryButton
        | Source::CrashResume
        | Source::ConversationGone => None,
    }
}
