//! Deliberate waits: a row that waits calls nobody (WD-01) and says for what (WD-02), and no wake-up is
//! sent or fired twice.

use super::{Change, Oracle};
use crate::report::Report;
use crate::store::Store;
use crate::waits::{Wait, prompt};
use omniscio_core::attention::{Attention, Section};
use omniscio_core::id::SessionId;
use omniscio_core::message::{LineText, UserLine};
use omniscio_core::prompt::contains_final_marker;
use omniscio_core::session::{SessionRow, Status};
use omniscio_core::stream::{Content, StreamEvent};

fn waits(row: &SessionRow) -> bool {
    (row.status, row.pending) == (Status::Waiting, None)
}

impl Oracle {
    /// A turn sets or begins something that it waits for.
    pub(crate) fn wait_set(&mut self, id: SessionId, call: &str, task: bool) {
        self.book(id).waits_begun.insert(call.to_string(), task);
    }

    /// The CLI fires a wake-up of its own, or its task has ended. What the app never hears of before it
    /// dies, and the CLI with it, has not fired.
    pub(crate) fn wait_ends(&mut self, id: SessionId, wait: &Wait, report: &mut Report) {
        if wait.task {
            report.hit("waits: a task ends");
        } else {
            report.hit("waits: the child fires");
            self.book(id).firing = Some(prompt(&wait.call));
        }
    }

    /// The app sends a wake-up.
    pub(super) fn wakes(
        &mut self,
        id: SessionId,
        line: &UserLine,
        store: &Store,
        report: &mut Report,
    ) {
        report.hit("waits: the app fires");
        self.book(id).replay_due = false;
        self.sends(line, store);
        let message = match &line.text {
            LineText::Of(message) | LineText::HandoverThen { message, .. } => *message,
            LineText::Own(_) => return,
        };
        let text = store.messages.get(&message).map(|message| message.text.clone());
        self.fires(text.unwrap_or_default());
    }

    /// each wake-up is fired once, by its child or by the app.
    fn fires(&mut self, prompt: String) {
        if !self.fired.insert(prompt.clone()) {
            self.fail("A-09", format!("{prompt:?} is fired twice"));
        }
    }

    /// Commands run behind the turns of a child, or none does any more.
    pub(super) fn commands(&mut self, id: SessionId, run: bool, at: u64) {
        let book = self.book(id);
        if std::mem::replace(&mut book.commands, run) && !run {
            book.commands_ended = at;
        }
    }

    /// The app reads what was set within the turn that runs.
    pub(super) fn hears_waits(&mut self, id: SessionId, event: &StreamEvent, at: u64) {
        if let StreamEvent::BackgroundTasks(tasks) = event {
            self.commands(id, !tasks.is_empty(), at);
        }
        let book = self.book(id);
        if let StreamEvent::Init(_) = event {
            book.waits_heard = None;
        }
        let fired = matches!(event, StreamEvent::Lifecycle { wakeup_source: Some(_), .. });
        let fired = book.firing.take_if(|_| fired);
        if let StreamEvent::Assistant(line) = event {
            let marked = |content: &Content| matches!(content, Content::Text(text) if contains_final_marker(text));
            // a final message behind its marker comes first
            book.waits_heard.take_if(|_| line.content.iter().any(marked));
        }
        if let StreamEvent::User(echo) = event {
            let of_wait = |call: &String| book.waits_begun.contains_key(call);
            if echo.results.iter().any(|result| of_wait(&result.tool_use)) {
                book.waits_heard = Some(at);
            }
        }
        if let Some(prompt) = fired {
            self.fires(prompt);
        }
    }

    /// WD-01: a turn that ends behind something it waits for leaves the row waiting.
    pub(super) fn waits_end(&mut self, change: &Change<'_>, report: &mut Report) {
        let Some(before) = change.before else { return };
        let after = change.after;
        if waits(before) && after.status == Status::Stalled {
            report.hit("waits: a task is lost");
        }
        if waits(before) && after.status == Status::NeedsYou && after.pending.is_none() {
            report.hit("waits: over without a turn");
        }
        let ends = change.reason == "finished" && before.turn.is_some() && after.turn.is_none();
        let heard = ends && self.awaits(after.id);
        if ends {
            self.book(after.id).waits_heard = None;
        }
        if heard && after.pending.is_none() && !waits(after) {
            self.fail("WD-01", format!("{} waits and says {:?}", after.id, after.status));
        }
    }

    /// What the turn that runs has set or begun is still ahead.
    pub(super) fn awaits(&mut self, id: SessionId) -> bool {
        // a machine that slept meanwhile may have slept over it
        let slept_at = self.slept_at;
        self.book(id).waits_heard.is_some_and(|heard| heard > slept_at)
    }

    /// WD-01, WD-02: a waiting row calls nobody and says what it waits for.
    pub(super) fn waits_quietly(
        &mut self,
        row: &SessionRow,
        seen: &Attention,
        report: &mut Report,
    ) {
        if !waits(row) || row.is_gone() {
            return;
        }
        report.hit("waits: a row waits");
        if seen.needs_person || seen.section != Section::Running || seen.pill.is_some() {
            self.fail("WD-01", format!("{seen:?} of {row:?}"));
        }
        if row.deferred_work.is_none() {
            self.fail("WD-02", format!("{row:?} waits for nothing"));
        }
    }
}
