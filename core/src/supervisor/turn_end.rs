//! The end of a turn: facts are frozen, the gates run once, and the row follows. Here is also the one
//! emitter of aborted responses (AB-04).

use super::Write;
use super::ladder::GivenUp;
use super::live::{Child, Session};
use super::{Cx, State};
use crate::block::BlockKind;
use crate::engine::EngineFamily;
use crate::id::SessionId;
use crate::message::MessageState;
use crate::prompt;
use crate::session::{Ladder, PendingAction, Status};
use crate::stream::TurnResult;
use crate::time::Wall;
use crate::turn::TurnFacts;
use crate::turn_end::outcome::{Context, Outcome, classify, unknown_values};
use crate::turn_end::{Disposition, Frozen, dispose};
use crate::verdict::Actor;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

/// Status and pending action of a row.
type RowState = (Status, Option<PendingAction>);

/// A turn's result, and what the turn cost in millionths of a dollar.
#[derive(Clone, Copy)]
pub(super) struct Ended<'a> {
    result: &'a TurnResult,
    spent: u64,
}

impl State {
    /// A `result` was read.
    pub(super) fn result(&mut self, cx: &mut Cx, id: SessionId, result: Box<TurnResult>) {
        let Some(session) = self.session(id) else {
            return;
        };
        let launching = matches!(session.live.child, Child::Handshaking { .. });
        if session.live.turn.is_none() && !launching {
            cx.log(Some(id), "a result without an open turn");
            return;
        }
        if self.ended_before_ours(cx, id, &result) {
            return;
        }
        let Some(session) = self.session(id) else {
            return;
        };
        let number = session.row.turn_count;
        let turn = match session.live.turn.take() {
            Some(turn) => turn,
            None => TurnFacts::new(number, None, cx.now.mono),
        };
        let asked = session.row.pending.filter(|pending| pending.is_card());
        let context = Context {
            stop_asked: session.live.stop_asked.is_some(),
            fresh_resume: session.live.fresh_resume,
            transcript_exists: None,
            ..Context::default()
        };
        let context = self.with_account(id, context);
        let outcome = classify(&result, &turn, context);
        // rule: A-06
        if let Some(words) = unknown_values(&result, &turn, &outcome) {
            cx.log(Some(id), words);
        }
        let standing = self.standing(id);
        let mut frozen = Frozen { turn, outcome, asked, standing, wait: None };
        frozen.wait = self.wait_at_end(cx, id, &frozen);
        let maybe_gone = context.fresh_resume && result.is_error && result.num_turns == 0;
        if maybe_gone && self.ask_whether_gone(cx, id, &frozen, &result) {
            return;
        }
        if self.waits_for_context(cx, id, &frozen, &result) {
            return;
        }
        self.conclude(cx, id, frozen, &result);
    }

    /// What account and engine add to the facts.
    pub(super) fn with_account(&self, id: SessionId, context: Context) -> Context {
        let key = |session: &Session| self.account_has_key(&session.row.account);
        let custom_endpoint = match self.family(id) {
            EngineFamily::Claude => false,
            EngineFamily::AnthropicCompat | EngineFamily::ProxyBacked => true,
        };
        Context { api_key: self.sessions.get(&id).is_some_and(key), custom_endpoint, ..context }
    }

    /// Runs the gates once and lets the row follow.
    pub(super) fn conclude(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        mut frozen: Frozen,
        result: &TurnResult,
    ) {
        if let Some(session) = self.session(id) {
            session.live.context.set_window(result.context_window);
        }
        self.read_context(cx, id, &mut frozen);
        let (gate, disposition) = dispose(&frozen, &self.policy, &self.limits);
        self.decided(cx, id, Actor::TurnEnd, format!("turn {}: {gate}", frozen.turn.number));
        let now = cx.now;
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.fresh_resume = false;
        let (cost, spent) = session.live.spent(session.row.cost_microdollars, result);
        let cut = matches!(disposition, Disposition::Abort { .. } | Disposition::Stopped);
        let settles = matches!(
            disposition,
            Disposition::Finished { nothing_said: false, .. }
                | Disposition::Wait { .. }
                | Disposition::AsBefore
        );
        let changes = if cut {
            session.live.builder.cut_off(now)
        } else {
            session.live.builder.end_turn(now)
        };
        self.show(cx, id, changes);
        self.settle_message(cx, id, result, cost, settles);
        self.follow(cx, id, &frozen, Ended { result, spent }, disposition);
    }

    /// An operator message counts as answered only when a result names it (A-04), and only when that
    /// result finishes the turn: not when it was cut off, refused or left unfinished.
    fn settle_message(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        result: &TurnResult,
        cost: u64,
        settles: bool,
    ) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let memory = &session.row.replay;
        let named = |uuid| memory.sent_as.contains(uuid) || memory.continued_as.contains(uuid);
        let answered = settles && !result.is_error && result.messages.iter().any(named);
        let message = memory.message.filter(|_| answered && !memory.answered);
        if let Some(message) = message {
            cx.write(Write::MessageState { id: message, state: MessageState::Answered });
        }
        self.change(cx, id, Actor::TurnEnd, "turn accounted", |row| {
            row.cost_microdollars = cost;
            row.replay.answered |= answered;
        });
    }

    fn follow(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        ended: Ended<'_>,
        disposition: Disposition,
    ) {
        if self.ended_at_its_start(cx, id, &disposition)
            || self.rung_brought_nothing(cx, id, frozen, &disposition)
        {
            return;
        }
        match disposition {
            Disposition::AsBefore => {
                let said = if let Outcome::LocalCommand { words } = &frozen.outcome {
                    words.clone()
                } else {
                    None
                };
                self.as_before(cx, id, said);
            }
            // rule: AB-09
            // it failed before the person's Stop or Send now reached it: it was stopped all the same, and
            // nothing goes on by itself what the person stopped
            Disposition::Abort { .. }
            | Disposition::RecoverContext
            | Disposition::FinishAfterCompact
            | Disposition::AutoContinue
            | Disposition::Wait { .. }
                if self.stop_asked(id) =>
            {
                self.finish_stop(cx, id);
                self.send_after_stop(cx, id);
                return;
            }
            Disposition::Stopped => {
                self.finish_stop(cx, id);
                self.send_after_stop(cx, id);
                return;
            }
            Disposition::Abort { status, cause, words } => {
                self.mark_aborted(cx, id, status, cause, words);
            }
            Disposition::LaunchError { words } => self.launch_failed(cx, id, &words),
            Disposition::ConversationGone => self.conversation_gone(cx, id),
            Disposition::Terminal { stop, words } => {
                // rule: RA-05
                self.note(cx, id, &words);
                self.change(cx, id, Actor::TurnEnd, stop.as_str(), |row| row.words = Some(words));
                let given_up = GivenUp { status: Status::Error, stop: Some(stop) };
                self.give_up(cx, id, Actor::TurnEnd, stop.as_str(), given_up);
            }
            Disposition::Row { status, pending, words, until } => {
                let reason = pending.map_or(status.as_str(), PendingAction::as_str);
                if let (Some(words), true) = (&words, pending.is_some()) {
                    self.note(cx, id, words);
                }
                self.enter(cx, id, Actor::TurnEnd, reason, (status, pending), |row| {
                    row.words = words;
                    row.resets_at = until;
                    close(row);
                });
            }
            Disposition::RecoverContext => self.recover_context(cx, id, frozen),
            Disposition::FinishAfterCompact => self.finish_after_compact(cx, id),
            Disposition::GiveUpContext { tell } => self.give_up_context(cx, id, frozen, tell),
            Disposition::LeftFull { nothing_said, words } => {
                self.left_full(cx, id, words);
                if nothing_said {
                    // rule: UI-25
                    self.note(cx, id, prompt::NOTE_NO_RESPONSE);
                }
            }
            Disposition::AutoContinue => self.auto_continue(cx, id),
            Disposition::Stalled => self.stalled(cx, id),
            Disposition::Wait { work } => self.begin_wait(cx, id, frozen, ended, work),
            Disposition::Finished { delivered, asked, nothing_said } => {
                let delivered =
                    self.finished(cx, id, frozen, ended, delivered, (Status::NeedsYou, asked));
                self.report(cx, id, delivered, &frozen.turn.final_text);
                if nothing_said {
                    // rule: UI-25
                    self.note(cx, id, prompt::NOTE_NO_RESPONSE);
                }
            }
        }
        let asked = self.session(id).and_then(|session| session.live.stop_asked.take());
        // the turn ended by itself before a Stop reached it: the queue waits all the same
        if asked.is_none_or(|asked| asked.send_now) {
            self.send_if_free(cx, id);
        }
    }

    /// A start that ends with a turn's failure delivers nothing any more: whoever comes next must not
    /// wait for it. Tells whether nothing else is to be said.
    fn ended_at_its_start(&mut self, cx: &mut Cx, id: SessionId, how: &Disposition) -> bool {
        // rule: A-02
        let launching =
            self.sessions.get(&id).is_some_and(|session| session.live.delivery.is_some());
        if let (true, Disposition::Abort { words, .. }) = (launching, how) {
            let words = words.as_deref().unwrap_or("The CLI failed at its start.");
            self.launch_failed(cx, id, words);
            return true;
        }
        if launching && matches!(how, Disposition::Row { .. } | Disposition::Terminal { .. }) {
            if let Some(session) = self.session(id) {
                session.live.delivery = None;
            }
            self.stop_child(cx, id);
        }
        false
    }

    /// A rung whose turn ended without any output, and without an error of its own, is a rung that failed:
    /// a given-up row is left by output only (RA-16).
    fn rung_brought_nothing(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        how: &Disposition,
    ) -> bool {
        // rule: RA-16, INV-37
        let failed = Some(PendingAction::RecoveryFailed);
        let of_rung = self.sessions.get(&id).is_some_and(|session| {
            session.row.pending == failed && session.live.stamped_before.is_none()
        });
        let nothing = match how {
            Disposition::GiveUpContext { .. }
            | Disposition::LeftFull { .. }
            | Disposition::Stalled
            | Disposition::Finished { delivered: false, asked: None, .. }
            | Disposition::Row { pending: None, .. } => true,
            Disposition::AsBefore
            | Disposition::Wait { .. }
            | Disposition::Stopped
            | Disposition::Abort { .. }
            | Disposition::LaunchError { .. }
            | Disposition::ConversationGone
            | Disposition::Terminal { .. }
            | Disposition::Row { pending: Some(_), .. }
            | Disposition::RecoverContext
            | Disposition::FinishAfterCompact
            | Disposition::AutoContinue
            | Disposition::Finished { .. } => false,
        };
        if !(of_rung && nothing) || frozen.turn.real_output || self.stop_asked(id) {
            return false;
        }
        if *how == (Disposition::GiveUpContext { tell: true }) {
            self.gave_up_context(cx, id);
        }
        self.rung_failed(cx, id, Status::NeedsYou, None, None);
        true
    }

    fn stop_asked(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.live.stop_asked.is_some())
    }

    /// The queue goes on after a turn that left nothing open (A-10); what waits for a recovery or for
    /// the person is held (OD-65).
    pub(super) fn send_if_free(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let free = matches!(session.row.status, Status::NeedsYou | Status::Waiting);
        if free && session.row.pending.is_none() {
            self.send_next(cx, id);
        }
    }

    /// Tells whether an answer was delivered.
    pub(super) fn finished(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        ended: Ended<'_>,
        delivered: bool,
        to: RowState,
    ) -> bool {
        // rule: PR-12
        let line = first_sentence(&prompt::cut_markers(&frozen.turn.final_text));
        let last = frozen.turn.last_assistant;
        let Ended { result, spent } = ended;
        let (to, stamped_at) = self.after_own_turn(id, to);
        if stamped_at.is_some() {
            // told when it was stamped or given up
            cx.before.insert(id, Some(to));
        }
        // what came by itself is no answer to the message that was cut off before it
        let delivered = delivered && stamped_at.is_none();
        self.enter(cx, id, Actor::TurnEnd, "finished", to, |row| {
            row.status_changed_at = stamped_at.unwrap_or(row.status_changed_at);
            row.delivered = delivered;
            row.words = None;
            if stamped_at.is_none() {
                // rule: RA-09
                row.stop_reason = None;
                row.ladder = Ladder::default();
            }
            if !line.is_empty() {
                row.answer_line = Some(line);
            }
            if last.is_some() && !result.is_error {
                // rule: A-04
                row.last_good_assistant = last;
                row.ever_answered = true;
                (row.cli_session_before, row.fork_of) = (None, None);
            }
            close(row);
        });
        if stamped_at.is_some() {
            // a rung that came due while the turn was open went by
            self.arm(cx, id);
        }
        let kind = BlockKind::Foot { millis: result.duration_ms, cost_microdollars: spent };
        self.add_block(cx, id, kind);
        delivered
    }

    /// Where the row goes after a turn that nobody asked for: a stamp that stood before it comes back,
    /// the cut-off message is still to be answered (AB-08).
    pub(super) fn after_own_turn(
        &mut self,
        id: SessionId,
        to: RowState,
    ) -> (RowState, Option<Wall>) {
        // rule: AB-08
        let stamped = self.session(id).and_then(|session| {
            let stamped = session.live.stamped_before.take();
            stamped.filter(|_| session.row.replay.is_open() && to.1.is_none())
        });
        match stamped {
            Some((status, pending, at)) => ((status, Some(pending)), Some(at)),
            None => (to, None),
        }
    }
}

/// A turn is over: what only an open one has is gone.
pub(super) fn close(row: &mut crate::session::SessionRow) {
    row.turn = None;
}

fn first_sentence(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("```"))
        .unwrap_or_default();
    let line = line.trim_start_matches(['#', '*', '-', '>', ' ']);
    // the list shows words, not Markdown
    let line: String = line.replace("**", "").replace('`', "");
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    let sentence = line.get(..end).unwrap_or(&line);
    if sentence.chars().count() <= 160 {
        return sentence.to_string();
    }
    sentence.chars().take(159).chain(core::iter::once('…')).collect()
}
