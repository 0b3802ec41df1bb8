//! Does what a step says: commits its writes first, then its acts in order.
//!
//! No act runs before its writes are durable, none is dropped for a disk that is full: the step waits
//! until it can be committed. Decides nothing about a session.

mod asks;
mod fill;
pub(super) mod ground;
mod launches;
pub(super) mod parts;
mod pool;
mod sink;
mod words;

use super::board::Board;
use super::clock::Clock;
use super::driver::inbox::{Failed, Inbox, Message};
use super::listener::Outbox;
use super::logs::redact;
use super::pty::Child;
use super::store::{Committed, Loaded, Store, StoreError};
use asks::{Asks, Look};
use ground::Ground;
use launches::{Key, Launches};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Event;
use omniscio_core::message::{LineText, UserLine};
use omniscio_core::recovery::handover::handover;
use omniscio_core::stream::stdin::{control_line, user_line};
use omniscio_core::supervisor::{
    Act, Answer, AskId, Handover, Input, LaunchId, Question, Step, Write,
};
use omniscio_core::time::Wall;
use parts::Asked;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A disk that could not be written is tried again after this.
const STORE_RETRY_MS: u64 = 1_000;

/// A store that took longer than this held the loop up: the rules' deadlines do not count that time.
const HELD_MIN_MS: u64 = 250;

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// The loop goes on.
    On,
    /// The loop is to end.
    End,
    /// The store cannot take the step, now or ever: the state is to be rebuilt from the rows.
    Broken(String),
}

/// See the file.
pub(super) struct Effects {
    store: Store,
    inbox: Arc<Inbox>,
    outbox: Outbox,
    board: Arc<Board>,
    ground: Arc<Ground>,
    launches: Launches,
    asks: Asks,
    /// What the effects themselves have to tell the rules, before anything that waits outside.
    pub(super) own: VecDeque<Message>,
    /// Counts the states since the start of the app: answers to an older one are thrown away.
    pub(super) generation: u64,
    /// How long the store has held the loop up so far, in milliseconds. No output was read meanwhile
    /// and no act was done: for the rules it did not pass.
    pub(super) held_ms: u64,
}

impl Effects {
    /// Effects on this store.
    pub(super) fn new(
        store: Store,
        ground: &Arc<Ground>,
        inbox: &Arc<Inbox>,
        outbox: Outbox,
        board: Arc<Board>,
    ) -> Effects {
        Effects {
            store,
            inbox: Arc::clone(inbox),
            outbox,
            board,
            ground: Arc::clone(ground),
            launches: Launches::new(Arc::clone(ground), Arc::clone(inbox)),
            asks: Asks::new(Arc::clone(ground), Arc::clone(inbox)),
            own: VecDeque::new(),
            generation: 0,
            held_ms: 0,
        }
    }

    /// Commits, then acts. A session whose row is not as the rules knew it costs its own part of the
    /// step; the rules get to know the row as it is before anything else.
    pub(super) fn run(&mut self, mut step: Step, asked: Option<Asked>, now: Wall) -> Ran {
        if step.writes.is_empty() && !step.acts.iter().any(fill::is_block) {
            return self.act(step.acts);
        }
        // rule: DB-03
        let filled = self.patiently(|store| fill::fill(&mut step, |id| store.message_text(id)));
        if let Err(ran) = filled {
            return ran;
        }
        let mut refused = Vec::new();
        loop {
            match self.commit(&step.writes, now) {
                Ok(Committed::Done) => break,
                Ok(Committed::Refused { session }) => {
                    tracing::warn!(%session, "a row was changed by somebody else");
                    if let Err(ran) = self.take_out(&mut step, session, asked) {
                        return ran;
                    }
                    refused.push(session);
                }
                Err(ran) => return ran,
            }
        }
        let mut ran = self.act(step.acts);
        for session in refused {
            match self.patiently(|store| store.row(session)) {
                Ok(row) => {
                    let row = row.map(Box::new);
                    let refused = Input::CommitRefused { row, session };
                    self.own.push_front(Message::Input(refused));
                }
                Err(worse) => ran = worse,
            }
        }
        ran
    }

    /// Everything the rules start from; waits for a store that cannot be read now. `None` if the
    /// app is to quit meanwhile, or the store never will.
    pub(super) fn load(&mut self) -> Result<Loaded, Ran> {
        self.patiently(|store| store.load())
    }

    /// A start came to its end.
    pub(super) fn launched(
        &mut self,
        session: SessionId,
        launch: LaunchId,
        child: Result<Child, Failed>,
    ) -> Input {
        self.launches.launched(Key { session, launch }, child, &mut self.own)
    }

    /// The rules are about to learn of this exit.
    pub(super) fn exited(&mut self, session: SessionId, launch: LaunchId) {
        self.launches.exited(Key { session, launch }, &mut self.own);
    }

    /// The children that live or are being started.
    pub(super) fn live(&self) -> Vec<(SessionId, LaunchId)> {
        self.launches.live()
    }

    /// Ends what still runs. The last thing that is done.
    pub(super) fn end(&mut self) {
        self.launches.stop_all();
    }

    fn commit(&mut self, writes: &[Write], now: Wall) -> Result<Committed, Ran> {
        if writes.is_empty() {
            return Ok(Committed::Done);
        }
        self.patiently(|store| store.commit(writes, now))
    }

    /// Does something with the store, again and again while its disk is the trouble.
    fn patiently<T>(
        &mut self,
        what: impl FnMut(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, Ran> {
        let before = Clock.mono_ms();
        let done = self.until_done(what);
        let took = Clock.mono_ms().saturating_sub(before);
        if took >= HELD_MIN_MS {
            tracing::warn!(took, "the store held the loop up");
            self.held_ms = self.held_ms.saturating_add(took);
        }
        done
    }

    fn until_done<T>(
        &mut self,
        mut what: impl FnMut(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, Ran> {
        let mut troubled = false;
        loop {
            match what(&mut self.store) {
                Ok(done) => {
                    if troubled {
                        tracing::info!("the store works again");
                        self.tell_trouble(None);
                    }
                    return Ok(done);
                }
                Err(error) if mends_itself(&error) => {
                    if !troubled {
                        tracing::error!(%error, "the store cannot be used: waiting");
                        self.tell_trouble(Some(error.to_string()));
                    }
                    troubled = true;
                    if self.inbox.quits_within(Duration::from_millis(STORE_RETRY_MS)) {
                        return Err(Ran::End);
                    }
                }
                Err(error) => return Err(Ran::Broken(error.to_string())),
            }
        }
    }

    fn tell_trouble(&self, words: Option<String>) {
        self.board.set_trouble(words.clone());
        self.outbox.event(Event::StoreTrouble(words));
    }

    fn take_out(
        &mut self,
        step: &mut Step,
        session: SessionId,
        asked: Option<Asked>,
    ) -> Result<(), Ran> {
        let mut owners = BTreeMap::new();
        for write in &step.writes {
            if let Write::MessageState { id, .. } = write {
                let owner = self.patiently(|store| store.message_session(*id))?;
                owners.extend(owner.map(|owner| (*id, owner)));
            }
        }
        for write in &step.writes {
            if let Write::Message(message) = write {
                owners.insert(message.id, message.session);
            }
        }
        parts::take_out(step, session, asked, |id| owners.get(&id).copied());
        Ok(())
    }

    fn act(&mut self, acts: Vec<Act>) -> Ran {
        let mut ran = Ran::On;
        for act in acts {
            match act {
                Act::Spawn { session, launch, plan } => {
                    self.launches.spawn(Key { session, launch }, *plan, &mut self.own);
                }
                Act::Write { session, launch, line } => self.write(Key { session, launch }, line),
                Act::Control { session, launch, control } => {
                    let line = control_line(&control);
                    self.launches.write(Key { session, launch }, line, &mut self.own);
                }
                Act::Stop { session, launch } => {
                    self.launches.stop(Key { session, launch }, &mut self.own);
                }
                Act::Ask { ask, question } => self.ask(ask, question),
                Act::Emit(view) => {
                    self.board.show((*view).clone());
                    self.outbox.event(Event::Row(view));
                }
                Act::EmitGone(session) => {
                    self.board.hide(session);
                    self.outbox.event(Event::Gone(session));
                }
                Act::EmitBlock { session, block } => {
                    self.outbox.event(Event::Block { session, block });
                }
                Act::EmitDelta { session, seq, text } => {
                    self.outbox.event(Event::Delta { session, seq, text });
                }
                Act::EmitSettings(settings) => {
                    self.board.set_settings(settings.clone());
                    self.outbox.event(Event::Settings(settings));
                }
                Act::ForgetSecret(endpoint) => self.ground.secrets.vault.forget(endpoint),
                Act::Notify { session, title, body } => self.outbox.notify(session, title, body),
                Act::Badge(count) => self.outbox.badge(count),
                Act::Reply { to, reply } => self.board.reply(to, reply),
                Act::Exit => ran = Ran::End,
                Act::Log { session, text } => log(session, &text),
            }
        }
        ran
    }

    fn write(&mut self, key: Key, line: UserLine) {
        match self.text(line.text) {
            Ok(text) => self.launches.write(key, user_line(line.uuid, &text), &mut self.own),
            Err(words) => self.own.push_back(launches::write_failed(key, words)),
        }
    }

    fn text(&self, text: LineText) -> Result<String, String> {
        let stored = |id| match self.store.message_text(id) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err("the message is not in the store".to_string()),
            Err(error) => Err(error.to_string()),
        };
        match text {
            LineText::Of(id) => stored(id),
            LineText::HandoverThen { handover, message } => {
                Ok(format!("{handover}\n\n{}", stored(message)?))
            }
            LineText::Own(text) => Ok(text),
        }
    }

    fn ask(&mut self, ask: AskId, question: Question) {
        let at_once = match question {
            Question::Folder { folder } => {
                self.asks.look(self.generation, ask, Look::Folder { folder })
            }
            Question::Transcript { folder, account, cli_session, copied_from, uuids } => {
                let look = Look::Transcript { folder, account, cli_session, copied_from, uuids };
                self.asks.look(self.generation, ask, look)
            }
            Question::TakeOver { cli_session, copied_from, holder } => {
                let look = Look::TakeOver { cli_session, copied_from, holder };
                self.asks.look(self.generation, ask, look)
            }
            Question::Headroom => self.asks.look(self.generation, ask, Look::Headroom),
            Question::Alive { children } => {
                self.asks.look(self.generation, ask, Look::Alive { children })
            }
            Question::Stamped => Some(or_failed(self.stamped())),
            Question::Handover { session } => Some(or_failed(self.handover(session))),
        };
        if let Some(answer) = at_once {
            let generation = self.generation;
            self.own.push_back(Message::Answer { generation, ask, answer });
        }
    }

    fn stamped(&self) -> Result<Answer, StoreError> {
        // rule: SC-03
        Ok(Answer::Stamped { ids: self.store.response_aborted_session_ids()? })
    }

    fn handover(&self, session: SessionId) -> Result<Answer, StoreError> {
        // rule: A-24
        let blocks = self.store.handover_source(session)?;
        let last_message = self.store.last_operator_message(session)?.map(|message| message.text);
        let text = handover(&blocks, last_message.as_deref(), &[]);
        let unanswered = self.store.unanswered_messages(session)?;
        Ok(Answer::Handover(Handover { text, last_message, unanswered }))
    }
}

fn or_failed(answer: Result<Answer, StoreError>) -> Answer {
    answer.unwrap_or_else(|error| asks::failed(&error.to_string()))
}

/// Whether a person or time can mend it while the app waits. What is left is a fault of the app's
/// own, which waiting would never mend.
fn mends_itself(error: &StoreError) -> bool {
    match error {
        StoreError::Full
        | StoreError::ReadOnly
        | StoreError::Corrupt(_)
        | StoreError::Locked
        | StoreError::Io(_) => true,
        StoreError::Newer { .. }
        | StoreError::NotOurs
        | StoreError::NoWriteAheadLog
        | StoreError::Migration { .. }
        | StoreError::Unreadable { .. }
        | StoreError::Database(_) => false,
    }
}

fn log(session: Option<SessionId>, text: &str) {
    let text = redact(text);
    match session {
        Some(session) => tracing::info!(%session, "{text}"),
        None => tracing::info!("{text}"),
    }
}
