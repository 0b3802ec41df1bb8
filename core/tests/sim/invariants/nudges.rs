//! The hidden lines that go on with a turn: invariants 17, 23, 61, 62 and the halves of 46 and 63 that a
//! running app shows. How a turn ended is told by the one who wrote its script.

use super::{Change, Oracle};
use crate::report::Report;
use crate::troubles::Ending;
use omniscio_core::block::BlockKind;
use omniscio_core::engine::{EngineFamily, engine_family};
use omniscio_core::id::SessionId;
use omniscio_core::message::{LineText, Origin, UserLine};
use omniscio_core::prompt;
use omniscio_core::session::PendingAction;
use omniscio_core::supervisor::Write;
use omniscio_core::verdict::Actor;

/// The line that a nudge owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Due {
    #[default]
    Nothing,
    Continue,
    Compact,
}

/// What is known of a session's nudges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nudges {
    /// How the last turn whose result was read ended.
    ending: Ending,
    due: Due,
    /// A forced compaction is under way.
    compacting: bool,
    /// In a row, since the person wrote or a turn was answered.
    context: u8,
    auto: u8,
    gave_up: bool,
}

/// At most so many in a row, of each kind.
const NUDGES_MAX: u8 = 3;

impl Oracle {
    /// A result came through the pipe.
    pub(crate) fn turn_over(&mut self, id: SessionId, ending: Ending) {
        let nudges = &mut self.book(id).nudges;
        nudges.ending = ending;
    }

    /// A turn was concluded by its result: one that ended with room begins the count anew.
    pub(super) fn turn_concluded(&mut self, id: SessionId, failed: bool, report: &mut Report) {
        let nudges = &mut self.book(id).nudges;
        if failed || matches!(nudges.ending, Ending::OutOfRoom | Ending::Hopeless) {
            return;
        }
        if nudges.ending == Ending::Answered && nudges.context > 0 {
            report.hit("context: answered after a nudge");
        }
        (nudges.context, nudges.gave_up) = (0, false);
    }

    /// Its last turn ended because there was no room.
    pub(super) fn out_of_room(&mut self, id: SessionId) -> bool {
        matches!(self.book(id).nudges.ending, Ending::OutOfRoom | Ending::Hopeless)
    }

    /// The person wrote.
    pub(super) fn nudges_begin_anew(&mut self, id: SessionId) {
        let nudges = &mut self.book(id).nudges;
        (nudges.context, nudges.auto, nudges.gave_up) = (0, 0, false);
    }

    /// A change of a row by one of the two that nudge.
    pub(super) fn nudged(&mut self, change: &Change<'_>, report: &mut Report) {
        let id = change.after.id;
        match (change.actor, change.reason) {
            (Actor::ContextStall, "nudge") => self.context_nudge(change, report),
            (Actor::AutoContinue, "nudge") => self.auto_nudge(id, report),
            (Actor::ContextStall, "told") => self.gives_up(change, report),
            _ => {}
        }
    }

    fn context_nudge(&mut self, change: &Change<'_>, report: &mut Report) {
        let id = change.after.id;
        if !self.policy.context_stall_recovery() {
            self.fail("INV-46", format!("{id} is nudged though that is switched off"));
        }
        let family = engine_family(change.after.model.as_deref(), false);
        let nudges = &mut self.book(id).nudges;
        nudges.context += 1;
        nudges.due = if family == EngineFamily::Claude { Due::Continue } else { Due::Compact };
        let (count, gave_up, ending) = (nudges.context, nudges.gave_up, nudges.ending);
        report.hit("context: nudged");
        if count > NUDGES_MAX || gave_up {
            self.fail("INV-17", format!("nudge {count} in a row of {id}, given up: {gave_up}"));
        }
        self.inv_23(id, ending);
        self.inv_63(change);
    }

    /// INV-63: nothing is recovered that is finished, asks something or waits on purpose.
    fn inv_63(&mut self, change: &Change<'_>) {
        let id = change.after.id;
        let asks = change.after.pending.is_some_and(PendingAction::is_card);
        let waits = self.awaits(id);
        if asks || waits {
            self.fail("INV-63", format!("{id} is nudged, asks: {asks}, waits: {waits}"));
        }
    }

    fn auto_nudge(&mut self, id: SessionId, report: &mut Report) {
        if !self.policy.auto_continue() {
            self.fail("INV-46", format!("{id} is continued though that is switched off"));
        }
        let nudges = &mut self.book(id).nudges;
        nudges.auto += 1;
        nudges.due = Due::Continue;
        let (count, ending) = (nudges.auto, nudges.ending);
        report.hit("auto-continue: nudged");
        if count > NUDGES_MAX {
            self.fail("INV-17", format!("Auto-Continue {count} after one message of {id}"));
        }
        self.inv_23(id, ending);
    }

    /// INV-23: a turn that was finished is never nudged.
    fn inv_23(&mut self, id: SessionId, ending: Ending) {
        if !matches!(ending, Ending::OutOfRoom | Ending::MidTask | Ending::Paused) {
            self.fail("INV-23", format!("{id} is nudged after a turn that ended {ending:?}"));
        }
    }

    /// INV-62: exactly one note, no generic line, and not twice for one message of the person.
    fn gives_up(&mut self, change: &Change<'_>, report: &mut Report) {
        let id = change.after.id;
        let notes = |text: &str| {
            let is = |write: &&Write| match write {
                Write::Block { session, block } => {
                    *session == id
                        && matches!(&block.kind, BlockKind::Note { text: said } if said == text)
                }
                Write::Row { .. }
                | Write::Message(_)
                | Write::MessageState { .. }
                | Write::Settings(_) => false,
            };
            change.writes.iter().filter(is).count()
        };
        let (told, generic) = (notes(prompt::NOTE_FRESH_SESSION), notes(prompt::NOTE_NO_RESPONSE));
        let nudges = &mut self.book(id).nudges;
        let again = std::mem::replace(&mut nudges.gave_up, true);
        nudges.due = Due::Nothing;
        report.hit("context: gave up");
        if again || told != 1 || generic > 0 {
            let text = format!("{id} gives up, again: {again}, {told} notes, {generic} generic");
            self.fail("INV-62", text);
        }
    }

    /// A hidden line is about to be written. INV-61: Claude compacts by itself and is never made to, any
    /// other engine is never asked to go on before it was.
    pub(super) fn nudges(
        &mut self,
        id: SessionId,
        line: &UserLine,
        model: Option<&str>,
        report: &mut Report,
    ) {
        let LineText::Own(text) = &line.text else {
            self.fail("INV-61", format!("a nudge of {id} carries a message"));
            return;
        };
        let claude = engine_family(model, false) == EngineFamily::Claude;
        let nudges = &mut self.book(id).nudges;
        let due = std::mem::take(&mut nudges.due);
        let after_compact = std::mem::take(&mut nudges.compacting);
        let right = if line.origin == Origin::AutoCommand {
            nudges.compacting = true;
            report.hit("context: made to compact");
            text == prompt::COMPACT_COMMAND && !claude && due == Due::Compact
        } else {
            if after_compact {
                report.hit("context: asked to finish after it");
            }
            let owed = due == Due::Continue || after_compact && due == Due::Nothing;
            text == prompt::PLEASE_CONTINUE && owed
        };
        if !right {
            self.fail("INV-61", format!("{text:?} is written to {id}, due was {due:?}"));
        }
    }
}
