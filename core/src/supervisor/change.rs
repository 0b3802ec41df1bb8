//! How a row is changed: one place that writes the guarded change, keeps the legal combinations,
//! and sees at the end of a step who must be told (NT-02, OD-40).

use super::live::Session;
use super::surface::{Act, Write};
use super::{Cx, State, view};
use crate::attention::attention;
use crate::block::{Block, BlockKind};
use crate::id::SessionId;
use crate::session::{PendingAction, SessionRow, Status, is_legal};
use crate::transcript::Change;
use crate::verdict::{Actor, Decision};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The part of a row that calls for a person, if it does. Entering another one notifies once.
pub(super) type Alert = Option<(Status, Option<PendingAction>)>;

pub(super) fn alert(row: &SessionRow) -> Alert {
    // rule: NT-01, NT-05
    // the shape is silent at every age: entering it plays no chime, nor does its cap
    if row.is_gone() {
        return None;
    }
    let calls = match row.pending {
        Some(
            PendingAction::Question
            | PendingAction::PlanApproval
            | PendingAction::PermissionRequest
            | PendingAction::AuthRequired
            | PendingAction::ApiError,
        ) => true,
        Some(PendingAction::RecoveryFailed) => {
            // rule: A-25
            // a rung that failed enters the same state again: it was told once
            row.ladder.rungs == 0
                && matches!(row.status, Status::NeedsYou | Status::Error | Status::Stalled)
        }
        Some(
            PendingAction::Stopped
            | PendingAction::AppRestartSuspended
            | PendingAction::RateLimited
            | PendingAction::ResponseAborted,
        ) => false,
        None => matches!(row.status, Status::NeedsYou | Status::Error | Status::Stalled),
    };
    calls.then_some((row.status, row.pending))
}

impl State {
    /// Changes a row and writes the change, guarded by what stood there.
    pub(super) fn change(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        actor: Actor,
        reason: &str,
        change: impl FnOnce(&mut SessionRow),
    ) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let before = session.row.clone();
        change(&mut session.row);
        if session.row == before {
            return;
        }
        debug_assert!(
            is_legal(session.row.status, session.row.pending),
            "{:?} {:?} ({reason})",
            session.row.status,
            session.row.pending
        );
        cx.before.entry(id).or_insert_with(|| alert(&before));
        cx.write(Write::Row {
            before: Some(Box::new(before)),
            after: Box::new(session.row.clone()),
            actor,
            reason: reason.into(),
        });
        cx.touched.insert(id);
    }

    /// Enters a state: status, pending action and the time are one write (DB-03).
    pub(super) fn enter(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        actor: Actor,
        reason: &str,
        to: (Status, Option<PendingAction>),
        also: impl FnOnce(&mut SessionRow),
    ) {
        // rule: DB-03, AB-11
        let now = cx.now.wall;
        self.change(cx, id, actor, reason, |row| {
            let failed = Some(PendingAction::RecoveryFailed);
            let same_failure = row.pending == failed && to.1 == failed;
            if (row.status, row.pending) != to && !same_failure {
                row.status_changed_at = now;
            }
            (row.status, row.pending) = to;
            // rule: A-14
            row.cannot_launch &= to.0 == Status::Starting;
            also(row);
        });
        if to.0 != Status::Starting
            && let Some(session) = self.session(id)
        {
            // success or cancel: nothing is relaunched any more
            session.live.relaunch = None;
        }
        self.decided(cx, id, actor, reason);
    }

    /// Keeps a decision for `explain`, and logs it once.
    pub(super) fn decided(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        actor: Actor,
        text: impl Into<String>,
    ) {
        // rule: OP-11
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let text = text.into();
        let known = session.live.decisions.back().is_some_and(|last| last.text == text);
        session.live.remember(Decision { at: cx.now.wall, actor, text: text.clone() });
        if !known {
            cx.log(Some(id), alloc::format!("{}: {text}", actor.as_str()));
        }
    }

    /// Stores and shows what the transcript builder made.
    pub(super) fn show(&mut self, cx: &mut Cx, id: SessionId, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Save(block) => save_block(cx, id, block),
                Change::Show(block) => cx.act(Act::EmitBlock { session: id, block }),
                Change::Delta { seq, text } => cx.act(Act::EmitDelta { session: id, seq, text }),
            }
        }
    }

    /// Adds a visible block of our own.
    pub(super) fn add_block(&mut self, cx: &mut Cx, id: SessionId, kind: BlockKind) {
        let now = cx.now;
        let Some(session) = self.session(id) else {
            return;
        };
        let block = session.live.builder.push(kind, session.row.turn_count, now);
        save_block(cx, id, block);
    }

    /// Adds a small system line.
    pub(super) fn note(&mut self, cx: &mut Cx, id: SessionId, text: &str) {
        self.add_block(cx, id, BlockKind::Note { text: text.into() });
    }

    /// Adds a hidden row of our own, kept for the audit (UI-22).
    pub(super) fn add_hidden(&mut self, cx: &mut Cx, id: SessionId, kind: BlockKind) {
        let now = cx.now;
        let Some(session) = self.session(id) else {
            return;
        };
        let block = session.live.builder.push_hidden(kind, session.row.turn_count, now, true);
        save_block(cx, id, block);
    }

    /// The end of a step: what the window shows, who is told, the badge.
    pub(super) fn finish(&mut self, cx: &mut Cx) {
        let touched = core::mem::take(&mut cx.touched);
        let any = !touched.is_empty();
        for id in touched {
            self.mark_unread(cx, id);
            let Some(session) = self.sessions.get(&id) else {
                continue;
            };
            if session.row.is_gone() {
                cx.act(Act::EmitGone(id));
            } else {
                cx.act(Act::Emit(Box::new(view(session))));
            }
            self.notify(cx, id);
            if self.sessions.get(&id).is_some_and(Session::is_over) {
                self.deleted.push(id);
            }
        }
        if any {
            self.recount(cx);
        }
    }

    fn newly_calls(&self, cx: &Cx, id: SessionId) -> bool {
        let Some(session) = self.sessions.get(&id) else {
            return false;
        };
        let Some(before) = cx.before.get(&id) else {
            return false;
        };
        let after = alert(&session.row);
        after.is_some() && after != *before
    }

    fn is_watched(&self, id: SessionId) -> bool {
        self.window == (true, Some(id))
    }

    fn mark_unread(&mut self, cx: &mut Cx, id: SessionId) {
        if self.newly_calls(cx, id) && !self.is_watched(id) {
            self.change(cx, id, Actor::App, "unseen", |row| row.unread = true);
        }
    }

    fn notify(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: NT-02
        if !self.newly_calls(cx, id) || self.is_watched(id) {
            return;
        }
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let view = view(session);
        let seen = attention(&view, &self.policy, &self.limits, cx.now);
        cx.act(Act::Notify {
            session: id,
            title: session.row.title.clone(),
            body: seen.label.into(),
        });
    }

    /// Counts again who needs a person; the badge changes only with the number.
    pub(super) fn recount(&mut self, cx: &mut Cx) {
        // rule: HD-17, NT-03
        let count = self.count_waiting(cx.now);
        if self.badge != Some(count) {
            self.badge = Some(count);
            cx.act(Act::Badge(count));
        }
    }
}

fn save_block(cx: &mut Cx, id: SessionId, block: Block) {
    cx.write(Write::Block { session: id, block: block.clone() });
    cx.act(Act::EmitBlock { session: id, block });
}

/// A new row: inserted, and shown.
pub(super) fn insert(cx: &mut Cx, session: &Session, actor: Actor, reason: &str) {
    cx.before.insert(session.row.id, None);
    cx.write(Write::Row {
        before: None,
        after: Box::new(session.row.clone()),
        actor,
        reason: reason.into(),
    });
    cx.touched.insert(session.row.id);
}
