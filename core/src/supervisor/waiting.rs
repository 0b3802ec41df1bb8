//! The waiting hold's side of the reducer: what the stream shows of background work, a row that waits
//! and how that ends. What holds a row is decided in [`crate::waiting`].

use super::turn_end::Ended;
use super::{Cx, State};
use crate::id::SessionId;
use crate::prompt;
use crate::session::Status;
use crate::stream::{
    AssistantLine, BackgroundTask, Content, LifecycleState, StreamEvent, UserEcho,
};
use crate::time::{Mono, Now};
use crate::turn_end::Frozen;
use crate::turn_end::finished_reason::{FinishedReason, turn_finished_reason};
use crate::verdict::{Actor, Verdict, Why};
use crate::waiting::{self, Alarm, AlarmCall, DeferredWork, HoldFacts, HoldFor, hold};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl State {
    /// Takes in what an event says of background work.
    pub(super) fn observe_background(&mut self, cx: &mut Cx, id: SessionId, event: &StreamEvent) {
        // rule: A-09
        match event {
            StreamEvent::BackgroundTasks(tasks) => self.tasks_changed(cx, id, tasks),
            StreamEvent::Task(task) => {
                let Some(session) = self.session(id) else {
                    return;
                };
                let call = task.tool_use.as_ref().zip(session.live.turn.as_ref());
                let tool = call.and_then(|(call, turn)| turn.tools.get(call));
                let monitor = tool.is_some_and(|tool| tool.name == "Monitor");
                if monitor && session.live.background.is_monitor(&task.task) {
                    self.tasks_told(cx, id);
                }
            }
            StreamEvent::Assistant(line) => self.alarms_called(id, line),
            StreamEvent::User(echo) => self.alarms_answered(cx, id, echo),
            StreamEvent::Lifecycle {
                state: LifecycleState::Started,
                wakeup_source: Some(source),
                ..
            } => self.fired_by_child(cx, id, source),
            StreamEvent::Init(_)
            | StreamEvent::Status { .. }
            | StreamEvent::SessionState(_)
            | StreamEvent::Lifecycle { .. }
            | StreamEvent::ThinkingTokens
            | StreamEvent::Partial(_)
            | StreamEvent::ToolProgress { .. }
            | StreamEvent::ApiRetry { .. }
            | StreamEvent::ModelFallback { .. }
            | StreamEvent::CompactBoundary { .. }
            | StreamEvent::PermissionDenied { .. }
            | StreamEvent::Informational { .. }
            | StreamEvent::RateLimit(_)
            | StreamEvent::ConversationReset { .. }
            | StreamEvent::ControlRequest { .. }
            | StreamEvent::ControlCancel { .. }
            | StreamEvent::ControlResponse { .. }
            | StreamEvent::Result(_)
            | StreamEvent::KeepAlive
            | StreamEvent::Unknown { .. }
            | StreamEvent::Malformed { .. }
            | StreamEvent::Oversize { .. }
            | StreamEvent::Chatter(_) => {}
        }
    }

    fn tasks_changed(&mut self, cx: &mut Cx, id: SessionId, tasks: &[BackgroundTask]) {
        let max = self.limits.wait_tasks_max;
        let ends = cx.now.mono.plus(self.limits.wait_end_grace_ms);
        if let Some(session) = self.session(id) {
            session.live.background.replace(tasks, max);
            // its end begins a turn in a moment
            let empty = session.live.background.tasks.is_empty();
            session.live.background.ends_at = empty.then_some(ends);
            cx.touched.insert(id);
        }
        self.tasks_told(cx, id);
        // what is left may hold no longer
        self.look_whether_waiting(cx, id);
    }

    /// A row that waits says what runs now; what has just ended stays until its turn begins.
    fn tasks_told(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let tasks = session.live.background.tasks.clone();
        if self.is_waiting(id) && !tasks.is_empty() {
            self.change(cx, id, Actor::Stream, "background tasks", |row| {
                waiting::edit(row, |work| work.tasks = tasks);
            });
        }
        self.time_wait(cx.now, id, None);
    }

    fn alarms_called(&mut self, id: SessionId, line: &AssistantLine) {
        if line.parent.is_some() || line.synthetic {
            return;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        for content in &line.content {
            let Content::ToolUse { id: call, name, input } = content else {
                continue;
            };
            if let Some(alarm) = AlarmCall::read(name, input, &self.limits) {
                session.live.background.called(call, alarm, self.limits.wakes_max);
            }
        }
    }

    fn alarms_answered(&mut self, cx: &mut Cx, id: SessionId, echo: &UserEcho) {
        if echo.parent.is_some() {
            return;
        }
        for result in &echo.results {
            let Some(session) = self.session(id) else {
                return;
            };
            let call = session.live.background.calls.remove(&result.tool_use);
            let Some(call) = call.filter(|_| !result.failed) else {
                continue;
            };
            match waiting::alarm(&result.tool_use, call, echo.wakes.as_ref()) {
                Alarm::Set(wake) => self.keep_wake(cx, id, wake),
                Alarm::TakenBack(key) => {
                    self.change(cx, id, Actor::Stream, "cron taken back", |row| {
                        waiting::edit(row, |work| work.wakes.retain(|wake| wake.key != key));
                    });
                }
                Alarm::Unreadable => cx.log(Some(id), "an alarm without a time"),
            }
        }
        self.time_wait(cx.now, id, None);
    }

    pub(super) fn is_waiting(&self, id: SessionId) -> bool {
        let row = self.sessions.get(&id).map(|session| &session.row);
        row.is_some_and(|row| (row.status, row.pending) == (Status::Waiting, None))
    }

    /// What the agent deliberately waits for at the end of this turn, if it does (gate 2). `frozen` knows
    /// of no wait yet.
    pub(super) fn wait_at_end(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
    ) -> Option<DeferredWork> {
        // rule: WD-01, WD-02, A-16
        let now = cx.now.mono;
        self.time_wait(cx.now, id, None);
        let session = self.session(id)?;
        session.live.background.ended_at = Some(now);
        let background = &session.live.background;
        let wakes = session.row.deferred_work.as_ref().map(|work| work.wakes.clone());
        let work =
            DeferredWork { wakes: wakes.unwrap_or_default(), tasks: background.tasks.clone() };
        let delivered = turn_finished_reason(frozen) == Some(FinishedReason::MarkerThenText);
        match self.hold_of(now, id, delivered) {
            Verdict::Act(_) => Some(work),
            // the ordinary end of a turn
            Verdict::NotMine(Why::NothingAwaited) => None,
            Verdict::NotMine(why) | Verdict::Wait(why) | Verdict::GiveUp(why) => {
                if !work.is_empty() {
                    self.decided(cx, id, Actor::WaitingHold, format!("not mine: {why:?}"));
                }
                None
            }
        }
    }

    /// The turn is over and the agent waits: finished, and not the person's turn.
    pub(super) fn begin_wait(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        ended: Ended<'_>,
        work: DeferredWork,
    ) {
        // rule: WD-01, WD-02
        let delivered = frozen.turn.delivered();
        let delivered = self.finished(cx, id, frozen, ended, delivered, (Status::Waiting, None));
        if !self.is_waiting(id) {
            return;
        }
        self.change(cx, id, Actor::WaitingHold, "deliberate wait", |row| {
            row.deferred_work = Some(work);
        });
        if delivered {
            self.keep_report(id, &frozen.turn.final_text);
        }
        self.time_wait(cx.now, id, None);
    }

    fn hold_of(&self, now: Mono, id: SessionId, marked: bool) -> Verdict<HoldFor> {
        let Some(session) = self.sessions.get(&id) else {
            return Verdict::NotMine(Why::RowChanged);
        };
        let background = &session.live.background;
        let facts = HoldFacts {
            marked,
            wakes: background.wakes_hold(&session.row, now, &self.limits),
            tasks: &background.tasks,
            since_end: background.ended_at.map_or(0, |ended| now.since(ended)),
        };
        hold(facts, &self.limits)
    }

    /// When the wait is looked at again.
    pub(super) fn time_wait(&mut self, now: Now, id: SessionId, again: Option<Mono>) {
        let waits = self.is_waiting(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.live.background.time(&session.row, waits, now, again, &self.limits);
        }
    }

    /// The time of a wake-up has come, or the time to look whether the row still waits.
    pub(super) fn wait_due(&mut self, cx: &mut Cx, id: SessionId) {
        if let Some(session) = self.session(id) {
            session.live.background.look_at = None;
        }
        if self.quitting {
            return;
        }
        let again = self.wakes_due(cx, id);
        self.look_whether_waiting(cx, id);
        self.time_wait(cx.now, id, again);
    }

    /// A row that waits for nothing any more is the person's.
    pub(super) fn look_whether_waiting(&mut self, cx: &mut Cx, id: SessionId) {
        let now = cx.now.mono;
        let ending = self.sessions.get(&id).and_then(|session| session.live.background.ends_at);
        if !self.is_waiting(id) || ending.is_some_and(|at| at > now) {
            return;
        }
        match self.hold_of(now, id, false) {
            Verdict::Act(_) => {}
            Verdict::NotMine(why) | Verdict::Wait(why) | Verdict::GiveUp(why) => {
                self.wait_over(cx, id, &format!("the wait is over: {why:?}"));
            }
        }
    }

    fn wait_over(&mut self, cx: &mut Cx, id: SessionId, reason: &str) {
        // rule: A-16
        let to = (Status::NeedsYou, None);
        self.enter(cx, id, Actor::WaitingHold, reason, to, |row| {
            waiting::edit(row, |work| work.tasks.clear());
        });
        let Some(session) = self.session(id) else {
            return;
        };
        let unreported = session.live.background.unreported.take();
        if let Some(text) = unreported {
            self.report(cx, id, true, &text);
        }
        self.send_if_free(cx, id);
    }

    /// A turn begins. Wake-ups that nobody but the app would fire end with a message of the person.
    pub(super) fn wait_ends_with_turn(&mut self, cx: &mut Cx, id: SessionId, person: bool) {
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.background.unreported = None;
        let own = session.live.background.own.clone();
        self.change(cx, id, Actor::WaitingHold, "the wait ends", |row| {
            waiting::edit(row, |work| {
                work.tasks.clear();
                work.wakes.retain(|wake| !person || own.contains(&wake.key));
            });
        });
        self.time_wait(cx.now, id, None);
    }

    /// The child is gone outside a turn: its tasks are lost, a wake-up whose time is known is not.
    pub(super) fn wait_without_child(&mut self, cx: &mut Cx, id: SessionId, actor: Actor) {
        // rule: A-16, WD-03
        self.change(cx, id, actor, "what only the child knew is gone", |row| {
            waiting::edit(row, |work| work.wakes.retain(|wake| wake.at.is_some()));
        });
        if self.is_waiting(id) {
            let row = self.sessions.get(&id).map(|session| &session.row);
            let work = row.and_then(|row| row.deferred_work.clone()).unwrap_or_default();
            if work.wakes.is_empty() {
                let to = (Status::Stalled, None);
                self.enter(cx, id, actor, prompt::TASK_LOST, to, |row| {
                    row.words = Some(prompt::TASK_LOST.to_string());
                    row.deferred_work = None;
                });
            } else if !work.tasks.is_empty() {
                self.note(cx, id, prompt::NOTE_TASK_LOST);
                self.change(cx, id, actor, prompt::TASK_LOST, |row| {
                    waiting::edit(row, |work| work.tasks.clear());
                });
                self.decided(cx, id, actor, "the wake-up is kept");
            }
        }
        self.time_wait(cx.now, id, None);
    }

    /// Keeps what a waiting worker said: its parent gets it if no turn follows.
    pub(super) fn keep_report(&mut self, id: SessionId, text: &str) {
        if let Some(session) = self.session(id) {
            session.live.background.unreported = Some(String::from(text));
        }
    }

    /// A restart is about to end what runs in the background: the transcript names it.
    pub(super) fn note_commands_end(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: A-16
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let names: Vec<&str> =
            session.live.background.tasks.iter().map(|task| task.name.as_str()).collect();
        if !names.is_empty() {
            let note = prompt::note_commands_ended(&names.join(", "));
            self.note(cx, id, &note);
        }
    }
}
