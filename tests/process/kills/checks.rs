//! What must be true of a life of the app that is over: what it was told, what it stored, and what its CLIs
//! were sent.

use super::app::{Outcome, Replies};
use super::fates::Fate;
use super::look::{Look, Mail};
use super::record::Fact;
use super::run::Run;
use omniscio_core::id::{MessageId, SessionId, Uuid};
use omniscio_core::ipc::Reply;
use omniscio_core::message::MessageState;
use omniscio_core::prompt;
use omniscio_core::session::{SessionRow, Status};
use omniscio_core::supervisor::Command;
use std::collections::{BTreeMap, BTreeSet};

impl Run {
    /// The life is over: what it was told, what it stored and what its CLIs were sent fit together.
    pub(super) fn look_back(&mut self, replies: Replies, whole: bool) {
        self.record.read_on();
        let is = Look::dead(self.home(), self.was.last_entry, whole);
        let touched: BTreeSet<SessionId> =
            replies.iter().filter_map(|(command, _)| command.session()).collect();
        for session in is.rows.keys() {
            self.assert_lines(*session, &is);
            if !touched.contains(session) {
                self.assert_silence(*session);
            }
        }
        for fact in &self.record.facts {
            if let Fact::Start { session, pid, second: true } = fact {
                panic!("{pid} is a second living child of {session}");
            }
        }
        replies.into_iter().for_each(|(command, reply)| self.take(command, reply));
        self.assert_kept(&is);
        for entry in is.log.iter().filter(|entry| entry.is_restart()) {
            let resumed = entry.actor == "crash-resume";
            let figures = &mut self.figures;
            *(if resumed { &mut figures.resumed } else { &mut figures.replayed }) += 1;
        }
        self.was = is;
    }

    /// A line for each message that was to be sent and for each restart, none for what was over; each
    /// stored as sent before.
    fn assert_lines(&mut self, session: SessionId, is: &Look) {
        let lines: Vec<(Uuid, String)> =
            self.record.heard(session).map(|(uuid, text)| (uuid, text.to_string())).collect();
        let state = |look: &Look, id| look.mail(id).map(|mail| mail.state);
        let went = |state| matches!(state, Some(MessageState::Sent | MessageState::Answered));
        let ids = is.mail.iter().filter(|mail| mail.session == session).map(|mail| mail.id);
        let new = ids.filter(|id| went(state(is, *id)) && !went(state(&self.was, *id))).count();
        if is.is_deleted(session) {
            // with its messages
            return;
        }
        let restarts = is.restarts_of(session, None);
        assert!(
            lines.len() <= new + restarts,
            "{new} new, {restarts} restarts, but {lines:#?}\nwas {:#?}\nis {}",
            self.was.rows.get(&session),
            is.story(session)
        );
        for (uuid, text) in &lines {
            let Some(id) = self.addressed(is, session, *uuid, text) else { continue };
            assert!(went(state(is, id)), "sent before it was stored as sent: {text}");
            let over = state(&self.was, id) == Some(MessageState::Answered);
            assert!(!over, "answered before, and sent again: {text}");
            if !self.first_heard.contains(&id) {
                self.first_heard.push(id);
            }
        }
        self.figures.lines += lines.len();
        let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
        let known = self.was.mail.iter().filter(|mail| mail.session == session);
        let known = known.filter(|mail| mail.state == MessageState::Answered).count();
        for (answer, history) in self.record.answers(session) {
            assert!(history > known, "{known} were answered, the CLI knows of {history}: {answer}");
            if let Some(tag) = tag_of(answer) {
                *answers.entry(tag).or_default() += 1;
            }
        }
        for (tag, times) in answers {
            assert_eq!(times, 1, "answered so often in one life: {tag}");
            let front = format!("{tag} ");
            let mail = is.mail.iter().find(|mail| mail.text.starts_with(&front)).unwrap();
            self.figures.answers_lost += usize::from(mail.state != MessageState::Answered);
        }
    }

    /// The message that a line carries; `None` for the sentence that says how to go on.
    pub(super) fn addressed(
        &self,
        is: &Look,
        session: SessionId,
        uuid: Uuid,
        text: &str,
    ) -> Option<MessageId> {
        if text == prompt::CONTINUE_CUT_OFF {
            return None;
        }
        if is.mail(uuid).is_some() {
            return Some(uuid);
        }
        // sent again under another uuid; "Please continue." may stand there more than once
        let open = |mail: &&Mail| {
            self.was.mail(mail.id).is_none_or(|was| was.state != MessageState::Answered)
        };
        let mut mail = is.mail.iter().filter(|mail| mail.session == session);
        let found = mail.find(|mail| text.ends_with(mail.text.as_str()) && open(mail));
        Some(found.unwrap_or_else(|| panic!("a line nobody wrote: {text}")).id)
    }

    /// Nobody touched the session: what is not brought back was sent nothing.
    fn assert_silence(&self, session: SessionId) {
        let Some(row) = self.was.rows.get(&session) else { return };
        let heard = self.record.heard(session).count();
        let fate = Fate::of(row, self.was.queue(session).next().is_some());
        assert!(!fate.is_silent() || heard == 0, "{fate:?} and {heard} lines: {row:#?}");
        let put_down = self.put_down.contains(&session);
        assert!(!put_down || heard == 0, "stopped by the person, and {heard} lines: {row:#?}");
    }

    /// Remembers what was acknowledged, and what the person has put down.
    fn take(&mut self, command: Command, reply: Option<Outcome>) {
        let Some(session) = command.session() else {
            if let Some(Ok(Reply::Created(session))) = reply {
                self.created.push(session);
            }
            return;
        };
        let puts_down = matches!(
            command,
            Command::Stop { .. }
                | Command::End { .. }
                | Command::Archive { .. }
                | Command::Delete { .. }
        );
        match reply {
            Some(Ok(Reply::Done)) if puts_down => drop(self.put_down.insert(session)),
            Some(_) | None if puts_down => {}
            Some(_) | None => drop(self.put_down.remove(&session)),
        }
        match reply {
            Some(Ok(Reply::Accepted(id))) => {
                let text = if let Command::Send { text, .. } = command { Some(text) } else { None };
                self.acknowledged.push((id, session, text));
                self.figures.acknowledged += 1;
            }
            Some(Ok(_) | Err(_)) => {}
            None => self.figures.cut_off_commands += 1,
        }
    }

    /// What was acknowledged stands in the store, and no message of the person stands there twice.
    fn assert_kept(&self, is: &Look) {
        for session in &self.created {
            assert!(is.rows.contains_key(session), "a session is lost: {session}");
        }
        for (id, session, text) in &self.acknowledged {
            if is.is_deleted(*session) {
                continue;
            }
            let mail = is.mail(*id).unwrap_or_else(|| panic!("lost: {id} {text:?}"));
            assert_eq!(mail.session, *session);
            assert!(text.as_ref().is_none_or(|text| *text == mail.text), "{mail:?}");
        }
        let mut tags = BTreeSet::new();
        for mail in is.mail.iter().filter(|mail| mail.text.contains("[[fake:")) {
            assert!(tags.insert(&mail.text), "stands twice: {mail:?}");
        }
    }

    /// At the end nothing waits that the person does not hold up.
    pub(super) fn nothing_is_left_open(&self, row: &SessionRow, look: &Look) {
        if (row.status, row.pending) != (Status::NeedsYou, None) {
            return;
        }
        assert!(!row.replay.is_open(), "unanswered: {row:#?}");
        let waits = look.queue(row.id).count();
        assert!(waits == 0 || self.put_down.contains(&row.id), "{waits} wait: {row:#?}");
    }

    /// What waited in line went in line.
    pub(super) fn assert_order(&self) {
        let place = |id| self.first_heard.iter().position(|heard| *heard == id);
        for batch in self.stage.batches() {
            let ids = batch.iter().filter_map(|text| {
                self.was.mail.iter().find(|mail| mail.text == *text).map(|mail| mail.id)
            });
            let places: Vec<usize> = ids.filter_map(place).collect();
            assert!(places.is_sorted(), "out of line: {batch:?} {places:?}");
        }
    }
}

/// The tag of a whole answer.
fn tag_of(answer: &str) -> Option<&str> {
    let (_, rest) = answer.split_once("Answer ")?;
    rest.split_once('.').map(|(tag, _)| tag)
}
