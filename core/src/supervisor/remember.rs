//! What a row remembers of the lines that were written for its last message.

use crate::id::Uuid;
use crate::message::{LineText, Origin, UserLine};
use crate::session::{ReplayMemory, SessionRow};
use alloc::vec;
use alloc::vec::Vec;

/// What a later replay must know of this line.
pub(super) fn remember(row: &mut SessionRow, line: Option<&UserLine>, replay: bool) {
    // a wake-up, whoever sends it, begins a turn that is nobody's message
    let Some(line) = line.filter(|line| line.origin != Origin::Wakeup) else {
        // a turn that began by itself has no operator message; an unanswered one stays remembered, and
        // what the turn says stands behind it: no cut at a last good turn may leave either out
        if row.replay.answered || row.replay.message.is_none() {
            row.replay = ReplayMemory::default();
        } else {
            row.replay.carries_unanswered = true;
        }
        return;
    };
    let memory = &mut row.replay;
    if replay {
        let under = match line.text {
            LineText::Own(_) => &mut memory.continued_as,
            LineText::Of(_) | LineText::HandoverThen { .. } => &mut memory.sent_as,
        };
        push_new(under, line.uuid);
        memory.stopped = false;
        return;
    }
    let message = match &line.text {
        LineText::Of(message) | LineText::HandoverThen { message, .. } => Some(*message),
        LineText::Own(_) => None,
    };
    if line.origin == Origin::AutoNudge && memory.is_open() {
        // what answers the nudge answers the message
        push_new(&mut memory.continued_as, line.uuid);
    }
    if !line.origin.is_replayable() {
        return;
    }
    let carries = memory.message.is_some() && !memory.answered && !memory.sent_as.is_empty();
    let calls = if carries { core::mem::take(&mut memory.calls) } else { vec![] };
    *memory = ReplayMemory {
        message,
        sent_as: vec![line.uuid],
        continued_as: vec![],
        calls,
        carries_unanswered: carries,
        answered: false,
        stopped: false,
    };
}

fn push_new(list: &mut Vec<Uuid>, uuid: Uuid) {
    if !list.contains(&uuid) {
        list.push(uuid);
    }
}
