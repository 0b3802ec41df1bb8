//! What the loop shows to the threads of the window: the rows as last told, who waits for a reply,
//! whether the disk is in trouble. The loop writes it and never waits for it.

use omniscio_core::id::SessionId;
use omniscio_core::ipc::{CliState, IpcCode, IpcError, Reply, RowView};
use omniscio_core::settings::Settings;
use omniscio_core::supervisor::ReplyTo;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a command comes to.
pub(super) type Outcome = Result<Reply, IpcError>;

/// The facts, behind one lock.
pub(super) struct Board {
    facts: Mutex<Facts>,
    changed: Condvar,
}

struct Facts {
    rows: BTreeMap<SessionId, RowView>,
    settings: Settings,
    cli: CliState,
    trouble: Option<String>,
    waiting: BTreeMap<u64, SyncSender<Outcome>>,
    next_reply: u64,
    ended: bool,
}

impl Board {
    /// A board that shows nothing yet but these.
    pub(super) fn new(settings: Settings, cli: CliState) -> Board {
        let facts = Facts {
            rows: BTreeMap::new(),
            settings,
            cli,
            trouble: None,
            waiting: BTreeMap::new(),
            next_reply: 0,
            ended: false,
        };
        Board { facts: Mutex::new(facts), changed: Condvar::new() }
    }

    /// Shows a row.
    pub(super) fn show(&self, view: RowView) {
        self.lock().rows.insert(view.row.id, view);
    }

    /// Shows a row no more.
    pub(super) fn hide(&self, session: SessionId) {
        self.lock().rows.remove(&session);
    }

    /// The rows, oldest session first.
    pub(super) fn rows(&self) -> Vec<RowView> {
        let mut rows: Vec<RowView> = self.lock().rows.values().cloned().collect();
        rows.sort_by_key(|view| (view.row.created_at, view.row.id));
        rows
    }

    /// Shows the settings.
    pub(super) fn set_settings(&self, settings: Settings) {
        self.lock().settings = settings;
    }

    /// The settings.
    pub(super) fn settings(&self) -> Settings {
        self.lock().settings.clone()
    }

    /// Shows what became of the CLI.
    pub(super) fn set_cli(&self, cli: CliState) {
        self.lock().cli = cli;
    }

    /// What became of the CLI.
    pub(super) fn cli(&self) -> CliState {
        self.lock().cli.clone()
    }

    /// Shows that the store cannot write, and why; or that it can again.
    pub(super) fn set_trouble(&self, words: Option<String>) {
        self.lock().trouble = words;
    }

    /// Why the store cannot write, if it cannot.
    pub(super) fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    /// A place for one reply, and where it will come.
    pub(super) fn expect(&self) -> (ReplyTo, Receiver<Outcome>) {
        let (sender, receiver) = sync_channel(1);
        let mut facts = self.lock();
        let to = facts.next_reply;
        facts.next_reply += 1;
        facts.waiting.insert(to, sender);
        (ReplyTo(to), receiver)
    }

    /// Nobody waits for this reply any more.
    pub(super) fn forget(&self, to: ReplyTo) {
        self.lock().waiting.remove(&to.0);
    }

    /// Gives a reply to who waits for it, if anybody still does.
    pub(super) fn reply(&self, to: ReplyTo, outcome: Outcome) {
        if let Some(sender) = self.lock().waiting.remove(&to.0) {
            // there is room for one; an error means that the waiting was given up
            sender.try_send(outcome).ok();
        }
    }

    /// Gives everybody who waits this error.
    pub(super) fn fail_all(&self, code: IpcCode, message: &str) {
        for sender in std::mem::take(&mut self.lock().waiting).into_values() {
            sender.try_send(Err(IpcError { code, message: message.to_string() })).ok();
        }
    }

    /// The loop has ended.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for the end of the loop; false if it did not come within `limit`.
    pub(super) fn ended_within(&self, limit: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |facts| !facts.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
