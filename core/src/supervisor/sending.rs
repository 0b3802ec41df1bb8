//! Messages on their way to the child. The app queues, not the CLI, and every line is stored
//! as sent before its bytes are written.

use super::context::reset_nudges;
use super::live::{Child, Delivery, Purpose, StopAsked};
use super::remember::remember;
use super::replaying::{actor_of, still_failed};
use super::{Act, Control, Write};
use super::{Cx, State};
use crate::block::BlockKind;
use crate::id::{MessageId, SessionId};
use crate::message::{LineText, Message, MessageState, Origin, Queued, UserLine, is_local_command};
use crate::prompt;
use crate::recovery::attempts::reset_response_aborted_attempts;
use crate::session::{Ladder, OpenTurn, PendingAction, SessionRow, Status};
use crate::turn::TurnFacts;
use crate::verdict::{Actor, Source};
use alloc::boxed::Box;
use alloc::string::{String, ToString};

impl State {
    /// Stores a message and puts it into the queue: at its end while something is under way, before
    /// what is held otherwise.
    pub(super) fn enqueue(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        origin: Origin,
        text: String,
        first: bool,
    ) -> MessageId {
        let message = self.rng.uuid();
        let queued = Queued {
            id: message,
            origin,
            local_command: is_local_command(&text),
            preview: preview(&text),
        };
        cx.write(Write::Message(Message {
            id: message,
            session: id,
            origin,
            text,
            created_at: cx.now.wall,
            state: MessageState::Queued,
        }));
        self.keep_queue(cx, id);
        if let Some(session) = self.session(id) {
            if first {
                session.live.queue.push_front(queued);
            } else {
                session.live.queue.push_back(queued);
            }
        }
        cx.touched.insert(id);
        message
    }

    /// Sends the first message of the queue: at once if the child takes messages, else by a launch.
    pub(super) fn send_next(&mut self, cx: &mut Cx, id: SessionId) {
        if self.quitting {
            return;
        }
        let Some(session) = self.session(id) else {
            return;
        };
        if session.row.is_gone() || session.live.queue.is_empty() || session.live.busy() {
            return;
        }
        // a question that stood before another launch is overtaken by the message
        session.live.forget_launch();
        if session.live.child.is_up() {
            self.write_queued(cx, id, None);
            return;
        }
        self.keep_before_local(id);
        self.enter_starting(cx, id);
        self.ask_launch(cx, id, super::asks::LaunchFor::Queue);
    }

    /// Before a local command changes anything: what the row goes back to after it. Any other
    /// message goes back to nothing.
    fn keep_before_local(&mut self, id: SessionId) {
        // rule: A-17
        let Some(session) = self.session(id) else {
            return;
        };
        if !session.live.queue.front().is_some_and(|first| first.local_command) {
            session.live.before_local = None;
        } else if session.live.before_local.is_none() {
            session.live.before_local = Some(Box::new(session.row.clone()));
        }
    }

    fn enter_starting(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: RF-07
        let first = self.sessions.get(&id).and_then(|session| session.live.queue.front());
        let woken = first.is_some_and(|first| first.origin == Origin::Wakeup);
        let (actor, reason) = if woken {
            (Actor::WaitingHold, "the wake-up starts it")
        } else {
            (Actor::User, "a message starts it")
        };
        self.enter(cx, id, actor, reason, (Status::Starting, None), |row| {
            row.card = None;
            row.words = None;
            row.hide_since = None;
            row.intent_running = true;
            row.turn = None;
        });
    }

    /// Writes the first message of the queue to a child that takes messages.
    pub(super) fn write_queued(&mut self, cx: &mut Cx, id: SessionId, handover: Option<String>) {
        if self.write_task(cx, id) {
            return;
        }
        self.keep_before_local(id);
        self.keep_queue(cx, id);
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(queued) = session.live.queue.pop_front() else {
            self.nothing_to_send(cx, id);
            return;
        };
        let text = match handover {
            Some(handover) => LineText::HandoverThen { handover, message: queued.id },
            None => LineText::Of(queued.id),
        };
        let line = UserLine { uuid: queued.id, origin: queued.origin, text };
        cx.write(Write::MessageState { id: queued.id, state: MessageState::Sent });
        self.open_turn(cx, id, Some(&line), None, queued.local_command);
        self.show_sent(cx, id, queued);
        self.write_line(cx, id, line);
    }

    /// A launch that is relaunched, and whose only message was taken back, is for nothing. True if it was.
    pub(super) fn cancel_idle_launch(&mut self, cx: &mut Cx, id: SessionId) -> bool {
        // rule: RS-23
        let has_task = self.has_task(id);
        let Some(session) = self.session(id) else {
            return false;
        };
        let live = &mut session.live;
        let queue = live
            .relaunch
            .as_ref()
            .is_some_and(|relaunch| relaunch.purpose == super::asks::LaunchFor::Queue);
        let idle = queue && live.queue.is_empty() && live.child == Child::None && !has_task;
        if idle {
            live.forget_launch();
            self.nothing_to_send(cx, id);
        }
        idle
    }

    /// The message a launch was for was taken back: the session waits for another.
    pub(super) fn nothing_to_send(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.session(id) else {
            return;
        };
        // rule: LD-11
        session.live.load_streak = 0;
        // rule: AB-06
        // the message before it was cut off and is still to be brought back
        let cut_off = session.row.replay.is_open() && session.row.abort_cause.is_some();
        let to = (Status::NeedsYou, cut_off.then_some(PendingAction::ResponseAborted));
        self.enter(cx, id, Actor::User, "taken back", to, |row| row.intent_running = false);
    }

    /// Writes a replay: no second bubble, one hidden row (RP-12).
    pub(super) fn write_replay(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        source: Source,
        line: UserLine,
    ) {
        // rule: RP-06, RP-12
        if let Some(session) = self.session(id) {
            session.live.before_local = None;
        }
        let text = match &line.text {
            LineText::Own(text) => text.clone(),
            LineText::Of(_) => "The last message was sent again.".to_string(),
            LineText::HandoverThen { handover, .. } => handover.clone(),
        };
        self.open_turn(cx, id, Some(&line), Some(source), false);
        self.add_hidden(cx, id, BlockKind::Auto { origin: Origin::Replay, text });
        self.write_line(cx, id, line);
    }

    pub(super) fn write_line(&mut self, cx: &mut Cx, id: SessionId, line: UserLine) {
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(launch) = session.live.child.launch() else {
            return;
        };
        cx.act(Act::Write { session: id, launch, line });
    }

    /// A turn begins: by a line of ours, or by itself (`line` is `None`).
    pub(super) fn open_turn(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        line: Option<&UserLine>,
        replay: Option<Source>,
        local_command: bool,
    ) {
        let now = cx.now;
        let number = self.sessions.get(&id).map_or(0, |session| session.row.turn_count + 1);
        let origin = line.map(|line| line.origin);
        // a nudge goes on with the turn before it
        let nudge = matches!(origin, Some(Origin::AutoNudge | Origin::AutoCommand));
        let actor = match (origin, replay) {
            (_, Some(source)) => actor_of(source),
            (Some(origin), None) if origin.is_real_user() => Actor::User,
            (Some(_), None) if nudge => Actor::TurnEnd,
            (Some(_), None) => Actor::App,
            (None, None) => Actor::Stream,
        };
        let reason = match (origin, replay) {
            (_, Some(source)) => source.as_str(),
            (Some(_), None) => "message written",
            (None, None) => "a turn began by itself",
        };
        if !local_command {
            self.wait_ends_with_turn(cx, id, origin.is_some_and(Origin::is_real_user));
        }
        // a worker's task is nobody's message yet
        let by_itself = line.is_none() || nudge || self.has_task(id);
        let to = (Status::Running, self.failed_until_output(id, by_itself, replay));
        self.enter(cx, id, actor, reason, to, |row| {
            row.turn_count = number;
            // rule: A-15
            row.intent_running = true;
            row.turn = Some(OpenTurn { number, since: now.wall, replay, real_output: false });
            // a hidden recovery goes on counting from the turn's own start
            if (replay.is_none() && !nudge) || row.turn_since.is_none() {
                row.turn_since = Some(now.wall);
            }
            row.words = None;
            row.card = None;
            row.abort_cause = None;
            if local_command {
                return;
            }
            row.delivered = false;
            if origin.is_some_and(Origin::is_real_user) {
                // rule: CT-05
                reset_budget(row);
                reset_nudges(row);
            }
            remember(row, line, replay.is_some());
        });
        let Some(session) = self.session(id) else {
            return;
        };
        if line.is_some() && !nudge {
            // what stood before a turn of the CLI's own ends with the next line
            session.live.stamped_before = None;
        }
        let mut turn = TurnFacts::new(number, origin, now.mono);
        turn.local_command = local_command;
        turn.sent.extend(line.map(|line| line.uuid));
        session.live.turn = Some(turn);
        session.live.activity_since = now.wall;
        cx.touched.insert(id);
    }

    /// A given-up row stays red through a rung, and through a turn that begins by itself, until real
    /// output is there (RA-16).
    fn failed_until_output(
        &self,
        id: SessionId,
        by_itself: bool,
        replay: Option<Source>,
    ) -> Option<PendingAction> {
        let failed = Some(PendingAction::RecoveryFailed);
        let is_failed = self.sessions.get(&id).is_some_and(|session| session.row.pending == failed);
        match replay {
            // the conversation was lost in the middle of a rung: the same rung goes on
            Some(Source::ConversationGone) if is_failed => failed,
            Some(source) => still_failed(source),
            None if by_itself && is_failed => failed,
            None => None,
        }
    }

    /// The operator's Stop or Send now: interrupt, and the recipe if no result comes.
    pub(super) fn interrupt(&mut self, cx: &mut Cx, id: SessionId, send_now: bool) {
        let request = self.mint_request();
        let deadline = cx.now.mono.plus(self.limits.interrupt_grace_ms);
        let Some(session) = self.session(id) else {
            return;
        };
        if let Some(asked) = &mut session.live.stop_asked {
            asked.send_now |= send_now;
            return;
        }
        session.live.stop_asked = Some(StopAsked { deadline, send_now });
        if !send_now {
            // a crash before the result must not bring back what the person stopped
            self.change(cx, id, Actor::User, "stop", |row| {
                row.intent_running = false;
                row.replay.stopped = true;
            });
        }
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(launch) = session.live.child.launch() else {
            return;
        };
        cx.act(Act::Control { session: id, launch, control: Control::Interrupt { request } });
    }

    /// No result came after an interrupt: the child is stopped, the turn counts as stopped.
    pub(super) fn interrupt_overdue(&mut self, cx: &mut Cx, id: SessionId) {
        self.conclude_pending(cx, id);
        let open = self.sessions.get(&id).is_some_and(|session| session.live.turn.is_some());
        if open {
            self.finish_stop(cx, id);
            self.stop_child(cx, id);
        }
        self.send_after_stop(cx, id);
    }

    /// Closes an open turn as stopped by the person.
    pub(super) fn finish_stop(&mut self, cx: &mut Cx, id: SessionId) {
        let now = cx.now;
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.turn = None;
        session.live.before_local = None;
        session.live.stamped_before = None;
        session.live.cards_waiting.clear();
        let changes = session.live.builder.cut_off(now);
        self.show(cx, id, changes);
        let to = (Status::NeedsYou, Some(PendingAction::Stopped));
        self.enter(cx, id, Actor::User, "stopped by the person", to, |row| {
            row.turn = None;
            row.card = None;
            row.hide_since = None;
            row.intent_running = false;
            row.replay.stopped = true;
            row.deferred_work = None;
            row.words = None;
        });
    }

    /// After Send now the queue goes on; after Stop it waits for the person.
    pub(super) fn send_after_stop(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.session(id) else {
            return;
        };
        let asked = session.live.stop_asked.take();
        if asked.is_some_and(|asked| asked.send_now) {
            self.send_next(cx, id);
        }
    }

    /// A launch for the queue, into this conversation.
    pub(super) fn launch_queue(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        conversation: crate::launch::Conversation,
        handover: Option<String>,
    ) {
        let purpose = Purpose::Queue { handover };
        self.launch(cx, id, Delivery { conversation, purpose, hung: 0 });
    }
}

/// The retry budget starts over: a real message of the person, or Retry (CT-05, CT-07).
pub(super) fn reset_budget(row: &mut SessionRow) {
    // rule: CT-05, CT-07
    reset_response_aborted_attempts(row);
    // rule: RA-09
    row.ladder = Ladder::default();
    row.stop_reason = None;
    row.hide_since = None;
}

fn preview(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    prompt::cut_markers(line).chars().take(160).collect()
}

/// What a list calls a new session: the first line of its first message.
pub(super) fn title_of(text: &str) -> String {
    let line = preview(text);
    if line.chars().count() <= 60 {
        return line;
    }
    line.chars().take(59).chain(core::iter::once('…')).collect()
}
