//! A full context: asked about at every turn's end, continued a few times, then left to the person
//! (CS). Here is also the other nudge, for a turn that stopped mid-task (AC): both write the same hidden
//! sentence.

use super::live::{Awaits, Live, PendingEnd};
use super::turn_end::close;
use super::{Act, Control, Cx, State};
use crate::block::BlockKind;
use crate::context::{CONTEXT_STALL_RECOVER_PERCENT, resolve_context_warning_usage};
use crate::engine::EngineFamily;
use crate::id::SessionId;
use crate::message::{LineText, Origin, UserLine};
use crate::prompt;
use crate::session::{AbortCause, PendingAction, SessionRow, Status};
use crate::stream::TurnResult;
use crate::turn_end::context_stall::stall_facts;
use crate::turn_end::finished_reason::turn_finished_reason;
use crate::turn_end::outcome::Outcome;
use crate::turn_end::{Frozen, Standing};
use crate::verdict::Actor;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use serde_json::Value;

impl State {
    /// What the session brings to the end of its turn. How full its context is follows at the
    /// conclusion.
    pub(super) fn standing(&self, id: SessionId) -> Standing {
        let family = self.family(id);
        let Some(session) = self.sessions.get(&id) else {
            return Standing::default();
        };
        Standing {
            family,
            usage: None,
            prints_markers: session.row.prints_markers,
            context_nudges: session.row.context_recover_count,
            gave_up: session.row.context_gave_up,
            auto_continued: session.row.auto_continue_count,
        }
    }

    /// Asks the CLI how full the context is. A turn that may be nudged waits for the answer; one that
    /// is finished concludes at once, and the answer is for the meter.
    pub(super) fn waits_for_context(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        result: &TurnResult,
    ) -> bool {
        // rule: A-08, CS-01
        let completed =
            matches!(frozen.outcome, Outcome::Text | Outcome::Dropped | Outcome::Unfinished);
        let request = self.mint_request();
        let deadline = cx.now.mono.plus(self.limits.turn_end_ask_ms);
        let Some(session) = self.session(id) else {
            return false;
        };
        let launch = session.live.child.launch().filter(|_| session.live.child.is_up());
        let (true, Some(launch)) = (completed, launch) else {
            return false;
        };
        session.live.context_asked = Some(request.clone());
        cx.act(Act::Control { session: id, launch, control: Control::ContextUsage { request } });
        let open = turn_finished_reason(frozen).is_none() && !frozen.waits();
        if !open || session.live.stop_asked.is_some() {
            return false;
        }
        let (frozen, result) = (frozen.clone(), Box::new(result.clone()));
        let awaits = Awaits::ContextUsage;
        session.live.ending = Some(PendingEnd { frozen, result, awaits, deadline });
        true
    }

    /// The CLI's answer; `None` where it refused.
    pub(super) fn context_answered(&mut self, cx: &mut Cx, id: SessionId, answer: Option<&Value>) {
        // rule: CW-01
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.context_asked = None;
        if let Some(answer) = answer {
            session.live.context.answered(answer);
            cx.touched.insert(id);
        }
        let waits = session.live.ending.as_ref();
        if waits.is_some_and(|ending| ending.awaits == Awaits::ContextUsage) {
            self.conclude_pending(cx, id);
        }
    }

    /// The reading goes to the turn that ends, and to the row. A turn that ended with room left begins
    /// the count of nudges anew.
    pub(super) fn read_context(&mut self, cx: &mut Cx, id: SessionId, frozen: &mut Frozen) {
        // rule: CW-01
        let window = self.window_of(id);
        let Some(session) = self.session(id) else {
            return;
        };
        session.live.context.set_window(window);
        let usage = resolve_context_warning_usage(&session.live.context);
        frozen.standing.usage = usage;
        let facts = stall_facts(frozen);
        let room = usage.is_some_and(|usage| !usage.at_least(CONTEXT_STALL_RECOVER_PERCENT));
        // rule: CS-21, CS-22
        let begins_anew = room && !facts.known_out_of_room && !facts.cut_off;
        let marked = frozen.turn.final_marker;
        self.change(cx, id, Actor::TurnEnd, "context read", |row| {
            row.context = usage;
            row.prints_markers |= marked;
            if begins_anew {
                (row.context_recover_count, row.context_gave_up) = (0, false);
            }
        });
        if begins_anew {
            (frozen.standing.context_nudges, frozen.standing.gave_up) = (0, false);
        }
    }

    /// Continues a turn that ran out of room: Claude compacts by itself when it is asked to go on, every
    /// other engine is made to.
    pub(super) fn recover_context(&mut self, cx: &mut Cx, id: SessionId, frozen: &Frozen) {
        // rule: CS-08, CS-09, CS-10, CS-12, CS-13, CS-26, CS-33, CS-37
        if self.sessions.get(&id).is_some_and(|session| session.live.goes_on) {
            self.leave_to_person(cx, id, (Status::NeedsYou, None), "goes on by itself", None);
            return;
        }
        if !self.takes_lines(id) {
            self.mark_aborted(cx, id, Status::Error, AbortCause::ProcessExit, None);
            return;
        }
        self.note(cx, id, prompt::NOTE_AUTO_RECOVERING);
        let (origin, text) = match frozen.standing.family {
            EngineFamily::Claude => (Origin::AutoNudge, prompt::PLEASE_CONTINUE),
            EngineFamily::AnthropicCompat | EngineFamily::ProxyBacked => {
                (Origin::AutoCommand, prompt::COMPACT_COMMAND)
            }
        };
        self.change(cx, id, Actor::ContextStall, "nudge", |row| {
            row.context_recover_count = row.context_recover_count.saturating_add(1);
        });
        self.nudge(cx, id, Actor::ContextStall, origin, text);
    }

    /// The second half of a forced `/compact`: the agent is asked to finish. It is the same attempt.
    pub(super) fn finish_after_compact(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: CS-35
        if !self.takes_lines(id) {
            self.mark_aborted(cx, id, Status::Error, AbortCause::ProcessExit, None);
            return;
        }
        let origin = Origin::AutoNudge;
        self.nudge(cx, id, Actor::ContextStall, origin, prompt::PLEASE_CONTINUE);
    }

    /// The context stays full: the person is told once, and has the session.
    pub(super) fn give_up_context(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        frozen: &Frozen,
        tell: bool,
    ) {
        // rule: CS-15, CS-16, CS-17
        let why = match &frozen.outcome {
            Outcome::OutOfRoomGiveUp { words } | Outcome::OutOfRoom { words } => Some(words),
            Outcome::ForcedCompact { failed } => failed.as_ref(),
            Outcome::LocalCommand { .. }
            | Outcome::Stopped
            | Outcome::ForeignInterrupt
            | Outcome::LaunchError { .. }
            | Outcome::ConversationGone
            | Outcome::RateLimited { .. }
            | Outcome::KnownTerminal { .. }
            | Outcome::AuthRequired { .. }
            | Outcome::Aborted { .. }
            | Outcome::ApiError { .. }
            | Outcome::Unfinished
            | Outcome::Dropped
            | Outcome::Text => None,
        };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let words = format!("{}{why}", prompt::MAY_NEED_FRESH_SESSION);
        self.leave_to_person(cx, id, (Status::NeedsYou, None), "context give-up", Some(words));
        if tell {
            self.gave_up_context(cx, id);
        }
    }

    /// No more nudges or notes until the reset; this one note is due.
    pub(super) fn gave_up_context(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: CS-16
        self.change(cx, id, Actor::ContextStall, "told", |row| row.context_gave_up = true);
        self.note(cx, id, prompt::NOTE_FRESH_SESSION);
    }

    /// The context is full, and the recovery is switched off.
    pub(super) fn left_full(&mut self, cx: &mut Cx, id: SessionId, words: Option<String>) {
        // rule: CS-24
        let why = words.map(|words| format!(": {words}")).unwrap_or_default();
        let words = Some(format!("context is full; auto-recovery is off{why}"));
        self.leave_to_person(cx, id, (Status::NeedsYou, None), "context is full", words);
    }

    /// Continues a turn that stopped mid-task.
    pub(super) fn auto_continue(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: AC-02
        if !self.takes_lines(id) {
            self.stalled(cx, id);
            return;
        }
        self.change(cx, id, Actor::AutoContinue, "nudge", |row| {
            row.auto_continue_count = row.auto_continue_count.saturating_add(1);
        });
        let origin = Origin::AutoNudge;
        self.nudge(cx, id, Actor::AutoContinue, origin, prompt::PLEASE_CONTINUE);
    }

    /// A mid-task stop that nobody continues.
    pub(super) fn stalled(&mut self, cx: &mut Cx, id: SessionId) {
        self.leave_to_person(cx, id, (Status::Stalled, None), "stopped mid-task", None);
    }

    /// The turn is over without its answer: the person goes on with the session.
    fn leave_to_person(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        to: (Status, Option<PendingAction>),
        reason: &str,
        words: Option<String>,
    ) {
        let (to, stamped_at) = self.after_own_turn(id, to);
        self.enter(cx, id, Actor::TurnEnd, reason, to, |row| {
            row.status_changed_at = stamped_at.unwrap_or(row.status_changed_at);
            row.delivered = false;
            row.words = words;
            close(row);
        });
    }

    /// While a pending end is decided by the next turn's first event: that turn is not ours to speak
    /// into.
    pub(super) fn set_goes_on(&mut self, id: SessionId, goes_on: bool) {
        if let Some(session) = self.session(id) {
            session.live.goes_on = goes_on;
        }
    }

    fn takes_lines(&self, id: SessionId) -> bool {
        let free = |live: &Live| live.child.is_up() && !live.goes_on;
        self.sessions.get(&id).is_some_and(|session| free(&session.live))
    }

    /// A hidden line of ours: the row goes on working, nobody is told.
    fn nudge(&mut self, cx: &mut Cx, id: SessionId, actor: Actor, origin: Origin, text: &str) {
        // rule: CS-27, CS-32, CS-36, PR-09
        let line = UserLine { uuid: self.rng.uuid(), origin, text: LineText::Own(text.into()) };
        self.decided(cx, id, actor, format!("act: {text}"));
        self.open_turn(cx, id, Some(&line), None, origin == Origin::AutoCommand);
        self.add_hidden(cx, id, BlockKind::Auto { origin, text: text.into() });
        self.write_line(cx, id, line);
    }
}

/// The counters of nudges start over: a real message of the person was written (CS-20).
pub(super) fn reset_nudges(row: &mut SessionRow) {
    // rule: CS-20, INV-16
    (row.context_recover_count, row.context_gave_up) = (0, false);
    row.auto_continue_count = 0;
}
