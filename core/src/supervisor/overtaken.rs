//! A line of ours that meets a turn of the CLI's own: that one comes first, and ours after it. Its result is
//! not the line's result, and what it does is not done for the line.

use super::{Cx, State};
use crate::block::BlockKind;
use crate::id::SessionId;
use crate::stream::{LifecycleState, StreamEvent, TurnResult};
use crate::turn::TurnFacts;
use crate::verdict::Actor;
use alloc::format;

impl State {
    /// Takes in who a turn that begins is for: our line, or something else while our line waits.
    pub(super) fn observe_turns(&mut self, cx: &mut Cx, id: SessionId, event: &StreamEvent) {
        // rule
        let (named, woken) = if let StreamEvent::Lifecycle {
            command,
            state: LifecycleState::Started,
            wakeup_source,
            ..
        } = event
        {
            (*command, Some(wakeup_source.is_some()))
        } else if let StreamEvent::Init(_) = event {
            (None, None)
        } else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let live = &mut session.live;
        live.names_lines |= named.is_some();
        // a task's own turn has no name: only a CLI that names what it takes up tells them apart
        let other = woken.map_or(live.names_lines, |woken| woken || named.is_some());
        let Some(turn) = live.turn.as_mut().filter(|turn| !turn.sent.is_empty()) else {
            return;
        };
        turn.taken_up |= named.is_some_and(|named| turn.sent.contains(&named));
        // a command of the CLI's own is not always named
        if turn.taken_up || turn.overtaken || turn.local_command || !other {
            return;
        }
        turn.overtaken = true;
        // a cut at the last good turn would leave out what the other turn says, and a call of it is none
        // of the message's
        self.change(cx, id, Actor::Stream, "a turn of its own comes first", |row| {
            let memory = &mut row.replay;
            memory.carries_unanswered |= memory.message.is_some() && !memory.answered;
        });
    }

    /// The result of a turn of the CLI's own that came before ours: ours is still to come, and nothing is
    /// decided for the row. Tells whether it was one.
    pub(super) fn ended_before_ours(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        result: &TurnResult,
    ) -> bool {
        // rule
        let now = cx.now;
        let Some(session) = self.session(id) else {
            return false;
        };
        let live = &mut session.live;
        // what waits for the person, or was stopped by them, is for the end of the turn to say
        let plain = live.stop_asked.is_none() && !session.row.pending.is_some_and(|p| p.is_card());
        let before = |turn: &TurnFacts| {
            let ours = result.messages.iter().any(|uuid| turn.sent.contains(uuid));
            turn.overtaken && !turn.taken_up && !ours
        };
        if !plain || !live.child.is_up() || !live.turn.as_ref().is_some_and(before) {
            return false;
        }
        let Some(over) = live.turn.take() else {
            return false;
        };
        let mut ours = TurnFacts::new(over.number, over.origin, now.mono);
        ours.sent.clone_from(&over.sent);
        live.turn = Some(ours);
        live.fresh_resume = false;
        live.context.set_window(result.context_window);
        let (cost, spent) = live.spent(session.row.cost_microdollars, result);
        let changes = live.builder.end_turn(now);
        self.show(cx, id, changes);
        let good = over.last_assistant.filter(|_| !result.is_error);
        self.change(cx, id, Actor::TurnEnd, "a turn of its own ended", |row| {
            row.cost_microdollars = cost;
            if let Some(turn) = &mut row.turn {
                turn.real_output = false;
            }
            if good.is_some() {
                row.last_good_assistant = good;
                row.ever_answered = true;
                (row.cli_session_before, row.fork_of) = (None, None);
            }
        });
        let text = format!("turn {}: one of its own came first", over.number);
        self.decided(cx, id, Actor::TurnEnd, text);
        let kind = BlockKind::Foot { millis: result.duration_ms, cost_microdollars: spent };
        self.add_block(cx, id, kind);
        true
    }
}
