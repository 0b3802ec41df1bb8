//! Messages: invariants 5, 20, 44 (persist before act), the tool rule of A-04, and the queue of A-10.

use super::{Book, Oracle, concludes};
use crate::report::Report;
use crate::store::Store;
use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::message::{LineText, MessageState, Origin, UserLine};
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::stream::{Content, ControlAsk, PartialKind, StreamEvent};
use omniscio_core::supervisor::{State, Write};
use std::collections::BTreeSet;

impl Oracle {
    /// A line is about to be written to a child.
    pub(super) fn writes(
        &mut self,
        id: SessionId,
        line: &UserLine,
        store: &Store,
        report: &mut Report,
    ) {
        let running = store.rows.get(&id).is_some_and(|row| row.status == Status::Running);
        if !running {
            self.fail("INV-44", format!("a line of {id} is written before its turn is stored"));
        }
        match line.origin {
            Origin::Replay => self.replays(id, line, report),
            Origin::Operator | Origin::OperatorPill => self.sends(line, store),
            Origin::Orchestrator => self.orchestrates(id, line, store),
            Origin::Wakeup => self.wakes(id, line, store, report),
            Origin::AutoNudge | Origin::AutoCommand => {
                let model = store.rows.get(&id).and_then(|row| row.model.clone());
                self.nudges(id, line, model.as_deref(), report);
            }
            Origin::CardRequest | Origin::CliSynthetic => {
                self.fail("INV-05", format!("a line of origin {:?} is written", line.origin));
            }
        }
    }

    fn replays(&mut self, id: SessionId, line: &UserLine, report: &mut Report) {
        self.inv_05(id);
        self.inv_20(id);
        self.tools_once(id, line);
        let plan = match &line.text {
            LineText::Of(message) if *message == line.uuid => "replay a: again under its own uuid",
            LineText::Of(_) => "replay b: fresh under a new uuid",
            LineText::HandoverThen { .. } => "replay d: hand-over",
            LineText::Own(text) if text.starts_with("Your reply") => "replay c: the sentence",
            LineText::Own(_) => "replay d: hand-over",
        };
        report.hit(plan);
        let book = self.book(id);
        book.replayed = true;
        book.by_itself = false;
        book.ahead = Some(line.uuid);
    }

    /// INV-05: an automatic line is written by a restart, once, and never in between.
    fn inv_05(&mut self, id: SessionId) {
        if !std::mem::take(&mut self.book(id).replay_due) {
            self.fail("INV-05", format!("an automatic line of {id} belongs to no restart"));
        }
    }

    /// INV-20: a delivered answer is never run again.
    fn inv_20(&mut self, id: SessionId) {
        if self.book(id).delivered {
            self.fail("INV-20", format!("{id} runs its delivered answer again"));
        }
    }

    /// once a tool of the message was started, its text is not sent again, and a hand-over names
    /// what was started.
    fn tools_once(&mut self, id: SessionId, line: &UserLine) {
        let started: Vec<String> = self
            .book(id)
            .calls
            .values()
            .filter(|(_, started)| *started)
            .map(|(detail, _)| detail.clone())
            .collect();
        let named = match &line.text {
            LineText::Of(_) => started.is_empty(),
            LineText::HandoverThen { handover: text, .. } => {
                started.iter().all(|detail| text.contains(detail))
            }
            // the sentence, which keeps the work, or a hand-over of its own
            LineText::Own(text) => {
                text.starts_with("Your reply") || started.iter().all(|detail| text.contains(detail))
            }
        };
        if !named {
            self.fail("A-04", format!("{id} would run its started tools again: {started:?}"));
        }
    }

    pub(super) fn sends(&mut self, line: &UserLine, store: &Store) {
        let message = match &line.text {
            LineText::Of(message) | LineText::HandoverThen { message, .. } => *message,
            LineText::Own(_) => {
                self.fail("A-10", "an operator's line without an operator's message");
                return;
            }
        };
        let stored = store.messages.get(&message);
        if stored.is_none_or(|stored| stored.state != MessageState::Sent) {
            self.fail(
                "INV-44",
                format!("message {message} is written before it is stored as sent"),
            );
        }
        if !self.written.insert(message) {
            self.fail("A-10", format!("message {message} is written twice by the queue"));
        }
    }

    /// An operator's message is stored as sent: it begins a turn, a budget and a replay memory of its
    /// own, but for the CLI's own commands.
    pub(super) fn sent(&mut self, message: MessageId, store: &Store, report: &mut Report) {
        let Some(stored) = store.messages.get(&message) else { return };
        let local = stored.text.starts_with('/');
        let by_person = stored.origin.is_real_user();
        let id = stored.session;
        let book = self.book(stored.session);
        book.local = local;
        if stored.origin == Origin::Wakeup {
            // a turn that is nobody's message
            self.began_by_itself(id);
            return;
        }
        if book.held.remove(&message) {
            report.hit("queue held, then sent");
        }
        if local {
            return;
        }
        book.replayed = false;
        book.by_itself = false;
        book.delivered = false;
        book.message = Some(message);
        book.ahead = Some(message);
        book.calls.clear();
        book.stop_asked = false;
        if by_person {
            self.nudges_begin_anew(id);
            let book = self.book(id);
            book.charged = None;
            self.began_anew(id);
        }
    }

    /// The app reads an event: tools that start, and what ends the unseen time.
    pub(super) fn heard(&mut self, id: SessionId, event: &StreamEvent) {
        let book = self.book(id);
        // while a line is ahead, a result that does not name it is another turn's
        if let StreamEvent::Result(result) = event
            && book.ahead.is_none_or(|ahead| result.messages.contains(&ahead))
        {
            book.result = Some(result.clone());
        }
        if let StreamEvent::Lifecycle { command: Some(command), .. } = event {
            book.ahead.take_if(|ahead| *ahead == *command);
        }
        if let StreamEvent::Assistant(line) = event
            && !line.synthetic
        {
            book.shape_since = None;
            book.spoke = true;
            for content in &line.content {
                if let Content::ToolUse { id, input, .. } = content
                    && book.ahead.is_none()
                {
                    let detail = input["command"].as_str().unwrap_or_default().to_string();
                    book.calls.insert(id.clone(), (detail, true));
                }
            }
        }
        if let StreamEvent::Partial(partial) = event {
            match &partial.kind {
                PartialKind::BlockStart { .. }
                | PartialKind::Text { .. }
                | PartialKind::Thinking { .. }
                | PartialKind::InputJson { .. } => book.shape_since = None,
                PartialKind::MessageStart { .. }
                | PartialKind::BlockStop { .. }
                | PartialKind::MessageDelta { .. }
                | PartialKind::MessageStop
                | PartialKind::Other => {}
            }
        }
        if let StreamEvent::ControlRequest { body, .. } = event
            && let ControlAsk::CanUseTool { tool_use, .. } = body
        {
            set_started(book, tool_use, false);
        }
    }

    /// The person allowed a call: from here on it runs.
    pub(crate) fn allowed(&mut self, id: SessionId, call: &str) {
        set_started(self.book(id), call, true);
    }

    /// Results whose turns these writes conclude.
    pub(super) fn read_results(&mut self, writes: &[Write], report: &mut Report) {
        let read = self.books.iter().filter(|(_, book)| book.result.is_some());
        let read: Vec<SessionId> = read.map(|(id, _)| *id).collect();
        for id in read.into_iter().filter(|id| concludes(writes, *id)) {
            self.answered(id, report);
        }
    }

    /// A `result` is read and stored.
    pub(super) fn answered(&mut self, id: SessionId, report: &mut Report) {
        let Some(result) = self.book(id).result.take() else { return };
        let good = !result.is_error
            && !result.text.trim().is_empty()
            && result.local_command.is_none()
            && result.stop_reason.is_none()
            && result.text.starts_with("Done");
        if result.local_command.is_none() {
            self.turn_concluded(id, result.is_error, report);
        }
        let unhealed = !self.policy.thinking_only_recovery();
        let book = self.book(id);
        if result.local_command.is_none() {
            // a command of the CLI's own leaves the turn before it as it was
            book.told_nothing = unhealed && !result.is_error && result.text.trim().is_empty();
        }
        book.ended_by = Some(result);
        if good {
            self.began_anew(id);
            let book = self.book(id);
            book.delivered = !book.by_itself;
            if std::mem::take(&mut book.replayed) {
                report.hit("answer delivered after a replay");
                if std::mem::take(&mut book.surfaced) {
                    report.hit("answer after the cap");
                }
            }
        }
    }

    /// A turn that the CLI began by itself: nothing delivered stands behind it, and the agent has gone
    /// on after whatever was said before.
    pub(crate) fn began_by_itself(&mut self, id: SessionId) {
        let book = self.book(id);
        (book.message, book.ahead) = (None, None);
        book.by_itself = true;
        book.delivered = false;
        book.calls.clear();
    }

    /// what waits in the store waits in the app, and nothing else.
    pub(super) fn queue(&mut self, id: SessionId, state: &State, store: &Store) {
        let Some(view) = state.view(id) else { return };
        let ids = |queue: &[omniscio_core::message::Queued]| -> BTreeSet<MessageId> {
            queue.iter().map(|queued| queued.id).collect()
        };
        let (known, stored) = (ids(&view.live.queue), ids(&store.queue(id)));
        if view.row.in_shape() {
            self.book(id).held.clone_from(&stored);
        }
        if known != stored {
            let text = format!("{id}: the app knows {known:?} waiting, the store {stored:?}");
            self.fail("A-10", text);
        }
    }

    /// At the end: every message is answered, waits, was taken back, or the row says what became of it.
    pub(crate) fn no_message_is_lost(&mut self, row: &SessionRow, store: &Store) {
        let last = self.book(row.id).message;
        let Some(message) = last.and_then(|id| store.messages.get(&id)) else { return };
        let open = message.state == MessageState::Sent;
        let says_nothing =
            (row.status, row.pending) == (Status::NeedsYou, None) && row.words.is_none();
        // with the kill switch of empty turns a line in the conversation says that nothing was said
        let line_says_so = self.book(row.id).told_nothing && !row.delivered;
        if open && says_nothing && !line_says_so {
            self.fail("A-10", format!("message {} of {} is lost: {row:?}", message.id, row.id));
        }
        let free = (row.status, row.pending) == (Status::NeedsYou, None);
        if free && row.words.is_none() && !store.queue(row.id).is_empty() {
            self.fail("A-10", format!("messages of {} wait for nothing", row.id));
        }
    }

    /// At the end: nothing is cut off, under way or hung.
    pub(crate) fn settled(&mut self, row: &SessionRow) {
        let asks = row.pending.is_some_and(PendingAction::is_card);
        let under_way = matches!(row.status, Status::Starting | Status::Running) && !asks;
        let climbs = row.pending == Some(PendingAction::RecoveryFailed)
            && row.stop_reason.is_none()
            && !row.is_gone()
            && !self.pinned();
        if row.in_shape() || under_way || climbs || (row.turn.is_some() && !asks) {
            self.fail("settle", format!("{:?} {:?} stays: {row:?}", row.status, row.pending));
        }
    }
}

fn set_started(book: &mut Book, call: &str, started: bool) {
    if let Some(known) = book.calls.get_mut(call) {
        known.1 = started;
    }
}
