//! The scripted CLI: one child with its conversation, and the transcripts that all of them share. It
//! plays its script beat by beat; it reads what it is sent as the real one does.

use crate::dice::Dice;
use crate::lines;
use crate::scripts::{self, Beat, Phase, Script};
use crate::troubles::{self, Ending, Trouble};
use crate::waits::Wait;
use omniscio_core::id::{CliSessionId, MessageId, SessionId, Uuid};
use omniscio_core::launch::Conversation;
use omniscio_core::stream::Decoder;
use omniscio_core::supervisor::LaunchId;
use std::collections::{BTreeMap, VecDeque};

/// What a user line of a transcript says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Message(MessageId),
    Handover(Option<MessageId>),
    Own,
}

/// One line of a transcript.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    User(Uuid, What),
    Assistant(Uuid),
    Call,
}

/// All transcripts of the config folder.
pub(crate) type Files = BTreeMap<CliSessionId, Vec<Entry>>;

/// What comes out of a child.
pub(crate) enum Out {
    Bytes(String, Phase),
    Torn(String),
    Wait(Wait),
    Stderr,
    Eof,
    Exit(i32),
}

/// How a start goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Sound,
    Hang,
    DieEarly,
    Refuse,
}

/// A message on its way into the child.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) uuid: Uuid,
    pub(crate) what: What,
    pub(crate) local: bool,
    /// The app makes it compact.
    pub(crate) compact: bool,
}

pub(crate) struct Child {
    pub(crate) session: SessionId,
    pub(crate) launch: LaunchId,
    conversation: Conversation,
    /// Whether its file was made or taken up.
    attached: bool,
    pub(crate) start: Start,
    /// Which state of the app had it made.
    pub(crate) questions: u64,
    /// The call that is to start it is under way.
    pub(crate) spawning: bool,
    /// The process exists.
    pub(crate) alive: bool,
    /// A spawn that was stopped before it was one.
    pub(crate) cancelled: bool,
    /// It went without a word, and when.
    pub(crate) vanished: Option<u64>,
    /// Looks at the children since then that came to nothing.
    pub(crate) bad_looks: u64,
    pub(crate) stopping: bool,
    pub(crate) ignores_term: bool,
    /// Tools that would outlive it.
    pub(crate) leftovers: u32,
    script: Script,
    /// Beats of an earlier script are not played.
    pub(crate) serial: u64,
    /// The script whose next beat is on its way.
    pub(crate) scheduled: Option<u64>,
    open: Vec<Uuid>,
    /// The turn under way is the model's answer to a line.
    answering: bool,
    /// A turn is under way.
    pub(crate) busy: bool,
    waiting: Option<String>,
    hung: bool,
    denied: bool,
    inbox: VecDeque<Sent>,
    pub(crate) eof: bool,
    /// What the app has read so far, and when: what its silence is measured by.
    pub(crate) phase: Phase,
    pub(crate) heard_at: u64,
    /// A line to it was lost: it is of no use any more.
    pub(crate) deaf: bool,
    /// How the turn ends that it plays, and how full its context is then.
    ending: Ending,
    /// How those ended whose results are on their way through the pipe.
    pub(crate) endings: VecDeque<Ending>,
    pub(crate) tokens: u64,
    /// The agent marks its final messages.
    pub(crate) marks: bool,
    /// When its turn began.
    pub(crate) began_at: u64,
    pub(crate) first_byte: bool,
    pub(crate) pipe_at: u64,
    pub(crate) decoder: Decoder,
    /// Gets every line whole: what any other cut must agree with (INV-64).
    pub(crate) reference: Decoder,
}

const LINE_MAX: usize = 1 << 20;

impl Child {
    pub(crate) fn new(
        session: SessionId,
        launch: LaunchId,
        conversation: Conversation,
        start: Start,
    ) -> Child {
        Child {
            session,
            launch,
            conversation,
            attached: false,
            start,
            questions: 0,
            spawning: true,
            alive: false,
            cancelled: false,
            vanished: None,
            bad_looks: 0,
            stopping: false,
            ignores_term: false,
            leftovers: 0,
            script: Script::new(),
            serial: 0,
            scheduled: None,
            open: Vec::new(),
            answering: false,
            busy: false,
            waiting: None,
            hung: false,
            denied: false,
            inbox: VecDeque::new(),
            eof: false,
            phase: Phase::Start,
            heard_at: 0,
            deaf: false,
            ending: Ending::Other,
            endings: VecDeque::new(),
            tokens: 0,
            marks: session.0.is_multiple_of(2),
            began_at: 0,
            first_byte: false,
            pipe_at: 0,
            decoder: Decoder::new(LINE_MAX),
            reference: Decoder::new(LINE_MAX),
        }
    }

    /// It is being started, or was and has not said a word.
    pub(crate) fn is_starting(&self) -> bool {
        (self.spawning || self.alive) && !self.first_byte && !self.stopping
    }

    /// The transcript it writes.
    pub(crate) fn file(&self) -> CliSessionId {
        self.conversation.id()
    }

    fn play(&mut self, script: Script) {
        self.script = script;
        self.hung = false;
        self.serial += 1;
    }

    /// How long until the next beat; `None` while it waits or hangs.
    pub(crate) fn next_beat(&self) -> Option<u64> {
        if !self.alive || self.hung || self.waiting.is_some() {
            return None;
        }
        self.script.front().map(|(after, _)| *after)
    }

    /// The launch handshake, and with it the start's own troubles.
    pub(crate) fn initialize(&mut self, request: &str, late: u64, files: &Files) {
        let answer = Beat::Line(lines::control_ok(request), Phase::Start);
        let lost = match self.conversation {
            Conversation::New { .. } => false,
            Conversation::Resume { id } => !files.contains_key(&id),
            Conversation::Fork { from, .. } => !files.contains_key(&from),
        };
        let script = match self.start {
            Start::Sound if lost => scripts::refused(None),
            Start::Sound => Script::from([(late, answer)]),
            Start::Hang => Script::from([(0, Beat::Hang)]),
            Start::DieEarly => {
                Script::from([(300, Beat::Chatter), (30, Beat::Eof), (20, Beat::Exit(1))])
            }
            Start::Refuse => scripts::refused(Some("session_held_by_background")),
        };
        self.play(script);
    }

    /// It has a line for the model that it has not answered yet. A turn of its own has none, and a
    /// command of its own says little that could be taken for an answer.
    pub(crate) fn has_line(&self) -> bool {
        self.busy && self.answering || self.inbox.iter().any(|sent| !sent.local)
    }

    pub(crate) fn send(&mut self, sent: Sent) {
        self.inbox.push_back(sent);
    }

    /// Takes the next message up, if it is free for one. `Err` says what must never be.
    pub(crate) fn take_up(
        &mut self,
        dice: &mut Dice,
        trouble: Option<Trouble>,
        files: &mut Files,
    ) -> Result<Option<Sent>, String> {
        if self.busy || !self.script.is_empty() || !self.alive {
            return Ok(None);
        }
        let Some(sent) = self.inbox.pop_front() else { return Ok(None) };
        let file = self.conversation.id();
        self.ending = Ending::Other;
        if sent.compact {
            let works = dice.chance(850);
            self.ending = if works { Ending::Other } else { Ending::Hopeless };
            self.tokens = 20_000;
            self.play(scripts::forced_compact(file, sent.uuid, works));
            self.begin(&[sent.uuid]);
            return Ok(Some(sent));
        }
        if sent.local {
            self.play(scripts::local_command(file, sent.uuid));
            self.begin(&[sent.uuid]);
            return Ok(Some(sent));
        }
        self.attach(files)?;
        let history = files.entry(file).or_default();
        history.push(Entry::User(sent.uuid, sent.what.clone()));
        self.begin(&[sent.uuid]);
        self.works(dice, &[sent.uuid], trouble);
        Ok(Some(sent))
    }

    /// Nothing is under way in it, and nothing waits.
    pub(crate) fn is_free(&self) -> bool {
        let free = self.alive && self.attached && !self.busy && self.script.is_empty();
        free && self.inbox.is_empty() && !self.stopping
    }

    /// A turn that nobody asked for.
    pub(crate) fn wake_up(&mut self, dice: &mut Dice, trouble: Option<Trouble>) -> bool {
        if self.is_free() {
            self.begin(&[]);
            self.works(dice, &[], trouble);
            return true;
        }
        false
    }

    fn works(&mut self, dice: &mut Dice, messages: &[Uuid], trouble: Option<Trouble>) {
        self.ending = troubles::ending(trouble);
        self.answering = !messages.is_empty();
        self.tokens = troubles::tokens(trouble);
        let of = (trouble, self.marks);
        self.play(scripts::turn(dice, self.conversation.id(), messages, of));
    }

    fn begin(&mut self, messages: &[Uuid]) {
        self.open = messages.to_vec();
        self.answering = false;
        self.busy = true;
        self.denied = false;
    }

    /// A conversation has a file from its first message on.
    fn attach(&mut self, files: &mut Files) -> Result<(), String> {
        if self.attached {
            return Ok(());
        }
        self.attached = true;
        match self.conversation {
            Conversation::New { id } if files.contains_key(&id) => {
                Err(format!("a new conversation under the id of an old one: {id}"))
            }
            Conversation::New { .. } | Conversation::Resume { .. } => Ok(()),
            Conversation::Fork { from, id, at } => {
                let mut kept = files.get(&from).cloned().unwrap_or_default();
                if let Some(at) = at {
                    let last = kept
                        .iter()
                        .position(|entry| matches!(entry, Entry::Assistant(uuid) if *uuid == at));
                    let gone = !files.contains_key(&from);
                    match last {
                        Some(last) => kept.truncate(last + 1),
                        None if gone => {}
                        None => return Err(format!("a cut at a line that is not there: {at}")),
                    }
                }
                files.insert(id, kept);
                Ok(())
            }
        }
    }

    /// Our interrupt: the turn ends, or nothing happens.
    pub(crate) fn interrupt(&mut self, obeys: bool) {
        if self.busy && obeys && !self.eof {
            let script = scripts::interrupted(&self.open, self.waiting.take());
            self.play(script);
        }
    }

    /// The answer to what it asked.
    pub(crate) fn answered(&mut self, request: &str, allowed: bool) {
        if self.waiting.as_deref() == Some(request) {
            self.waiting = None;
            self.denied = !allowed;
            self.serial += 1;
        }
    }

    /// Plays the next beat.
    pub(crate) fn beat(&mut self, files: &mut Files) -> Vec<Out> {
        let Some((_, beat)) = self.script.pop_front() else { return Vec::new() };
        let file = self.conversation.id();
        let mut keep = |entry| {
            if let Some(history) = files.get_mut(&file) {
                history.push(entry);
            }
        };
        match beat {
            Beat::Line(line, phase) => vec![Out::Bytes(line, phase)],
            Beat::Said(uuid, line) => {
                keep(Entry::Assistant(uuid));
                vec![Out::Bytes(line, Phase::Open)]
            }
            Beat::Call { uuid, line } => {
                keep(Entry::Assistant(uuid));
                keep(Entry::Call);
                vec![Out::Bytes(line, Phase::Open)]
            }
            Beat::Ask { request, line } => {
                self.waiting = Some(request);
                vec![Out::Bytes(line, Phase::Free)]
            }
            Beat::Run => {
                self.leftovers = u32::from(!self.denied);
                Vec::new()
            }
            Beat::Done { call } => {
                self.leftovers = 0;
                let denied = std::mem::take(&mut self.denied);
                let text = if denied { "The user denied this." } else { "ok" };
                vec![Out::Bytes(lines::tool_result(&call, text, denied), Phase::Between)]
            }
            Beat::Wait(wait) => vec![Out::Wait(wait)],
            Beat::Result(line) => {
                self.endings.push_back(self.ending);
                self.busy = false;
                self.leftovers = 0;
                vec![Out::Bytes(line, Phase::Free)]
            }
            Beat::Chatter => vec![Out::Stderr],
            Beat::Torn(half) => vec![Out::Torn(half)],
            Beat::Eof => {
                self.eof = true;
                vec![Out::Eof]
            }
            Beat::Exit(code) => {
                self.alive = false;
                let mut out = Vec::new();
                if !std::mem::replace(&mut self.eof, true) {
                    out.push(Out::Eof);
                }
                out.push(Out::Exit(code));
                out
            }
            Beat::Hang => {
                self.hung = true;
                Vec::new()
            }
        }
    }
}
