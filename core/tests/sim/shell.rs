//! The shell of a world: does what the reducer says, and brings back what became of it. The order and
//! the delays are the die's; the facts are those of the children, the folders and the store.

use crate::bugs::Bug;
use crate::cli::{Entry, Out, Sent, What};
use crate::clock::SECOND;
use crate::lines;
use crate::scripts::Phase;
use crate::troubles;
use crate::world::{Event, Looked, World};
use omniscio_core::id::{SessionId, Uuid};
use omniscio_core::message::{LineText, Origin, UserLine};
use omniscio_core::session::PendingAction;
use omniscio_core::stream::{Content, StreamEvent};
use omniscio_core::supervisor::{
    Act, Answer, AskId, Control, Handover, Input, LaunchId, Question, TranscriptFacts,
};

impl World {
    pub(crate) fn act(&mut self, act: Act) {
        match act {
            Act::Spawn { session, launch, plan } => self.spawn(session, launch, &plan),
            Act::Write { session, launch, line } => self.write(session, launch, line),
            Act::Control { session, launch, control } => self.control(session, launch, control),
            Act::Stop { session, launch } => self.stop(session, launch),
            Act::Ask { ask, question } => self.ask(ask, question),
            Act::Exit => {
                self.report.hit("app quit");
                let until = self.dice.between(SECOND, 3_600 * SECOND);
                self.die(until);
            }
            Act::Emit(_)
            | Act::EmitGone(_)
            | Act::EmitBlock { .. }
            | Act::EmitDelta { .. }
            | Act::EmitSettings(_)
            | Act::Notify { .. }
            | Act::Badge(_)
            | Act::ForgetSecret(_)
            | Act::Reply { .. }
            | Act::Log { .. } => {}
        }
    }

    fn input(&mut self, after: u64, input: Input) {
        self.after(after, Event::Input(Box::new(input)));
    }

    fn key(&self, session: SessionId, launch: LaunchId) -> Option<u64> {
        self.by_launch.get(&(session, launch)).copied()
    }

    /// Processes of the session that live beside this child, tools included.
    pub(crate) fn others(&self, key: u64, session: SessionId, tools: bool) -> usize {
        let beside = self.children.iter().filter(|(other, child)| {
            let lives = child.alive || (tools && child.leftovers > 0);
            **other != key && child.session == session && lives
        });
        let debris = self.debris.get(&session).is_some_and(|left| *left > 0);
        beside.count() + usize::from(tools && debris)
    }

    fn write(&mut self, session: SessionId, launch: LaunchId, line: UserLine) {
        let Some(key) = self.key(session, launch) else { return };
        let fails = self.dice.chance(self.faults.writes);
        let Some(child) = self.children.get_mut(&key) else { return };
        if fails || !child.alive {
            child.deaf = true;
            let words = "Broken pipe".to_string();
            self.input(3, Input::WriteFailed { session, launch, words });
            return;
        }
        let (what, message) = match line.text {
            LineText::Of(message) => (What::Message(message), Some(message)),
            LineText::HandoverThen { message, .. } => {
                (What::Handover(Some(message)), Some(message))
            }
            LineText::Own(text) if text.starts_with("Your reply") || is_nudge(line.origin) => {
                (What::Own, None)
            }
            LineText::Own(_) => (What::Handover(None), None),
        };
        let compact = line.origin == Origin::AutoCommand;
        let text = message.and_then(|message| self.store.messages.get(&message));
        let local = text.is_some_and(|message| message.text.starts_with('/'));
        if local {
            self.report.hit("local command");
        }
        if child.has_line() {
            let text = format!(
                "{} of {session} is written while a line before it is not answered",
                line.uuid
            );
            self.oracle.fail("A-10", text);
        }
        child.send(Sent { uuid: line.uuid, what, local, compact });
        self.go_on(key);
    }

    fn control(&mut self, session: SessionId, launch: LaunchId, control: Control) {
        let Some(key) = self.key(session, launch) else { return };
        let late = self.dice.weighted(&[(8, 300), (2, 4 * SECOND), (1, 12 * SECOND)]);
        let obeys = self.dice.chance(800) || self.faults.turns == 0;
        let Some(child) = self.children.get_mut(&key) else { return };
        match control {
            Control::Initialize { request } => child.initialize(&request, late, &self.files),
            Control::ContextUsage { request } => self.tell_usage(key, &request),
            Control::Interrupt { .. } => {
                child.interrupt(obeys);
                if !obeys {
                    self.report.hit("stop escalated");
                }
            }
            Control::Answer { request, response } => {
                let allowed = response["behavior"] == "allow";
                child.answered(&request, allowed);
                if allowed {
                    self.oracle.allowed(session, request.trim_start_matches("ask-"));
                }
            }
            Control::Refuse { request, .. } => child.answered(&request, false),
        }
        self.schedule(key);
    }

    /// The answer to `get_context_usage`: mostly at once, sometimes never or a refusal.
    fn tell_usage(&mut self, key: u64, request: &str) {
        let knows = self.dice.weighted(&[(12, Some(true)), (1, Some(false)), (2, None)]);
        let Some(child) = self.children.get(&key).filter(|child| child.alive) else { return };
        let usage = (child.tokens, troubles::WINDOW);
        if let Some(knows) = knows.or(self.faults.is_calm().then_some(true)) {
            let line = lines::context_usage(request, knows.then_some(usage));
            self.put_out(key, Out::Bytes(line, Phase::Free));
        } else {
            self.report.hit("context: no answer");
        }
    }

    /// Takes a waiting message up, and plays on.
    fn go_on(&mut self, key: u64) {
        let Some(child) = self.children.get_mut(&key) else { return };
        let trouble = self.faults.of_turn(&mut self.dice, self.clock.at);
        match child.take_up(&mut self.dice, trouble, &mut self.files) {
            Ok(Some(sent)) => {
                child.began_at = self.clock.at;
                self.history(key, &sent);
            }
            Ok(None) => {}
            Err(never) => self.oracle.fail("A-04", never),
        }
        self.schedule(key);
    }

    /// no message text stands twice in one request's history.
    fn history(&mut self, key: u64, sent: &Sent) {
        let Some(child) = self.children.get(&key) else { return };
        let (What::Message(message) | What::Handover(Some(message))) = sent.what else { return };
        let Some(history) = self.files.get(&child.file()) else { return };
        let times = history
            .iter()
            .filter(|entry| match entry {
                Entry::User(_, What::Message(other) | What::Handover(Some(other))) => {
                    *other == message
                }
                Entry::User(_, What::Handover(None) | What::Own)
                | Entry::Assistant(_)
                | Entry::Call => false,
            })
            .count();
        if times > 1 {
            let text = format!("message {message} stands {times} times in one history");
            self.oracle.fail("A-04", text);
        }
    }

    /// The next beat of the script, if it is not on its way already.
    pub(crate) fn schedule(&mut self, key: u64) {
        let Some(child) = self.children.get_mut(&key) else { return };
        let Some(after) = child.next_beat() else { return };
        if child.scheduled == Some(child.serial) {
            return;
        }
        child.scheduled = Some(child.serial);
        let serial = child.serial;
        self.after(after, Event::Beat { child: key, serial });
    }

    pub(crate) fn beat(&mut self, key: u64, serial: u64) {
        let Some(child) = self.children.get_mut(&key) else { return };
        if child.serial != serial {
            return;
        }
        child.scheduled = None;
        if child.next_beat().is_none() {
            return;
        }
        for out in child.beat(&mut self.files) {
            if let Out::Wait(wait) = out {
                self.wait_begins(key, wait);
            } else {
                self.put_out(key, out);
            }
        }
        self.go_on(key);
    }

    /// Output on its way through the pipe: in order, with a delay of its own.
    pub(crate) fn put_out(&mut self, key: u64, out: Out) {
        let delay = self.dice.weighted(&[(20, 2), (3, 80), (1, 700)]);
        let Some(child) = self.children.get_mut(&key) else { return };
        let at = child.pipe_at.max(self.clock.at + delay);
        child.pipe_at = at;
        let after = at - self.clock.at;
        let event = match out {
            Out::Bytes(mut line, phase) => {
                line.push('\n');
                Event::Pipe { child: key, bytes: line.into_bytes(), phase }
            }
            Out::Torn(half) => {
                Event::Pipe { child: key, bytes: half.into_bytes(), phase: Phase::Between }
            }
            Out::Wait(wait) => Event::Woken { child: key, wait },
            Out::Stderr => Event::Stderr(key),
            Out::Eof => Event::PipeEnd(key),
            Out::Exit(code) => Event::Gone { child: key, code },
        };
        self.after(after, event);
    }

    pub(crate) fn pipe(&mut self, key: u64, bytes: &[u8], phase: Phase) {
        let at = self.clock.at;
        let Some(child) = self.children.get_mut(&key) else { return };
        let (session, launch) = (child.session, child.launch);
        child.heard_at = at;
        child.phase = phase;
        let first = !std::mem::replace(&mut child.first_byte, true);
        let whole = child.reference.push(bytes);
        let cut = self.dice.below(bytes.len() as u64 + 1) as usize;
        let mut events = child.decoder.push(&bytes[..cut]);
        events.extend(child.decoder.push(&bytes[cut..]));
        self.oracle.inv_64(&whole, &events);
        if self.bug == Some(Bug::AnswerUnread) && child.tokens > troubles::WINDOW * 9 / 10 {
            events.retain_mut(unread);
        }
        if first {
            let others = self.others(key, session, true);
            self.oracle.inv_03(session, others);
        }
        let over = whole.iter().any(|event| matches!(event, StreamEvent::Result(_)));
        if over
            && let Some(child) = self.children.get_mut(&key)
            && let Some(ending) = child.endings.pop_front()
        {
            let marks = self.store.rows.get(&session).is_some_and(|row| row.prints_markers);
            self.oracle.turn_over(session, ending.told(marks));
        }
        for event in events {
            self.feed(Input::Stream { session, launch, event });
        }
    }

    pub(crate) fn stderr(&mut self, key: u64) {
        let at = self.clock.at;
        let Some(child) = self.children.get_mut(&key) else { return };
        if child.phase == Phase::Start {
            child.heard_at = at;
        }
        let (session, launch) = (child.session, child.launch);
        self.feed(Input::Chatter { session, launch, text: "warming up".into() });
    }

    pub(crate) fn pipe_end(&mut self, key: u64) {
        let Some(child) = self.children.get_mut(&key) else { return };
        let (session, launch) = (child.session, child.launch);
        let rest = child.decoder.finish();
        for event in rest {
            self.feed(Input::Stream { session, launch, event });
        }
        self.feed(Input::OutputEnded { session, launch });
    }

    pub(crate) fn gone(&mut self, key: u64, code: i32) {
        let Some(child) = self.children.get_mut(&key) else { return };
        child.alive = false;
        let (session, launch) = (child.session, child.launch);
        self.feed(Input::Exited { session, launch, code: Some(code), signal: None });
    }

    /// The stop recipe: SIGTERM, SIGKILL after five seconds, the sweep, the report.
    fn stop(&mut self, session: SessionId, launch: LaunchId) {
        let Some(key) = self.key(session, launch) else {
            self.input(5, Input::Stopped { session, launch, leftovers: 0 });
            return;
        };
        self.watch_stop(key);
        let Some(child) = self.children.get_mut(&key) else { return };
        if std::mem::replace(&mut child.stopping, true) {
            return;
        }
        if child.spawning {
            // the call goes on; what comes of it is stopped
            child.cancelled = true;
            return;
        }
        let after = if child.alive && child.ignores_term { 5 * SECOND } else { 40 };
        self.after(after, Event::Kill(key));
    }

    pub(crate) fn kill(&mut self, key: u64) {
        let Some(child) = self.children.get_mut(&key) else { return };
        let (was_alive, launch, session) = (child.alive, child.launch, child.session);
        child.alive = false;
        if was_alive && self.dice.chance(500) {
            self.input(1, Input::Exited { session, launch, code: None, signal: Some(15) });
        }
        let after = self.dice.between(2, 60);
        self.after(after, Event::Swept(key));
    }

    pub(crate) fn swept(&mut self, key: u64) {
        let Some(mut child) = self.children.remove(&key) else { return };
        let leftovers = std::mem::take(&mut child.leftovers);
        if leftovers > 0 {
            self.report.hit("leftovers swept");
        }
        let (session, launch) = (child.session, child.launch);
        self.by_launch.remove(&(session, launch));
        // what it had still put out is read afterwards: stale events of an old launch
        if self.dice.chance(200) {
            self.report.hit("stale event");
            let event = StreamEvent::KeepAlive;
            self.input(4, Input::Stream { session, launch, event });
            self.input(9, Input::OutputEnded { session, launch });
            self.input(12, Input::Exited { session, launch, code: Some(0), signal: None });
        }
        if self.faults.turns > 0 && self.dice.chance(8) {
            self.report.hit("stop report lost");
            return;
        }
        self.feed(Input::Stopped { session, launch, leftovers });
    }

    fn ask(&mut self, ask: AskId, question: Question) {
        let bad = self.dice.chance(self.faults.answers);
        let (fails, late) = if bad { (self.dice.chance(400), true) } else { (false, false) };
        let looked = self.looked_at(&question).filter(|_| !fails);
        if bad && matches!(question, Question::Alive { .. }) {
            self.bad_look();
        }
        let answer = if fails {
            self.report.hit("failed answer");
            Answer::Failed { words: "it did not work".into(), errno: self.busy() }
        } else {
            self.find_out(question)
        };
        let after = if late && !fails {
            self.dice.between(3 * SECOND, 20 * SECOND)
        } else {
            self.dice.between(0, 150)
        };
        let questions = self.questions;
        let input = Box::new(Input::Answer { ask, answer });
        self.after(after, Event::Answer { questions, looked, input });
    }

    /// The conversations a question is about, and which is open elsewhere.
    fn looked_at(&self, question: &Question) -> Option<Looked> {
        let Question::Transcript { cli_session, copied_from, .. } = question else { return None };
        let own = (*cli_session)?;
        let original = copied_from.filter(|_| !self.files.contains_key(&own));
        let ids: Vec<_> = [Some(own), original].into_iter().flatten().collect();
        let held = ids.iter().copied().find(|id| self.holders.contains_key(id));
        Some(Looked { ids, held })
    }

    fn find_out(&mut self, question: Question) -> Answer {
        match question {
            Question::Folder { folder } => {
                Answer::Folder { present: !self.gone_folders.contains(&folder) }
            }
            Question::Transcript { folder, cli_session, copied_from, uuids, .. } => {
                let own = cli_session.and_then(|id| self.files.get(&id));
                let before = copied_from.and_then(|id| self.files.get(&id));
                let history = own.or(before);
                let holds = |uuid: &Uuid| {
                    history.is_some_and(|history| {
                        history
                            .iter()
                            .any(|entry| matches!(entry, Entry::User(id, _) | Entry::Assistant(id) if id == uuid))
                    })
                };
                let fell_back = own.is_none() && before.is_some();
                let holder = self.holder_of(cli_session, copied_from.filter(|_| fell_back));
                if holder.is_some() {
                    self.report.hit("held elsewhere");
                }
                Answer::Transcript {
                    holder: holder.filter(|_| self.bug != Some(Bug::HeldResumed)),
                    folder_present: !self.gone_folders.contains(&folder),
                    found: TranscriptFacts {
                        file: own.is_some(),
                        fell_back: own.is_none() && before.is_some(),
                        exists: history.is_some(),
                        present: uuids.into_iter().filter(holds).collect(),
                    },
                }
            }
            Question::TakeOver { holder, .. } => {
                Answer::TakenOver { gone: self.end_holder(&holder) }
            }
            Question::Headroom => {
                Answer::Headroom(self.launches.headroom(&mut self.dice, self.clock.at))
            }
            Question::Alive { children } => Answer::Alive { gone: self.who_is_gone(&children) },
            Question::Stamped => {
                let stamped = self
                    .store
                    .listed()
                    .filter(|row| row.pending == Some(PendingAction::ResponseAborted));
                Answer::Stamped { ids: stamped.map(|row| row.id).collect() }
            }
            Question::Handover { session } => {
                let last = self.store.messages.values().rfind(|message| message.session == session);
                let last_message = last.map(|message| message.text.clone());
                let (text, unanswered) = ("What was said before.".into(), last_message.clone());
                Answer::Handover(Handover { text, last_message, unanswered })
            }
        }
    }
}

fn is_nudge(origin: Origin) -> bool {
    matches!(origin, Origin::AutoNudge | Origin::AutoCommand)
}

/// A planted bug: the text of the answer is lost. False for a line that is lost whole.
fn unread(event: &mut StreamEvent) -> bool {
    if let StreamEvent::Result(result) = event {
        result.text.clear();
    }
    let text = |content: &Content| matches!(content, Content::Text(_));
    !matches!(event, StreamEvent::Assistant(line) if line.content.iter().any(text))
}
