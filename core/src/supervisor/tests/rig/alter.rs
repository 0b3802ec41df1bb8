//! What a scenario changes from outside, and what it looks at: rows, switches, the day, the badge.
//! Never decides anything.

use super::Rig;
use crate::attention::{Attention, attention};
use crate::id::SessionId;
use crate::ipc::RowView;
use crate::session::{PendingAction, SessionRow};
use crate::settings::SettingChange;
use crate::supervisor::*;
use crate::time::{Day, Mono, Wall};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// One committed change of a row.
pub(in crate::supervisor::tests) struct Changed {
    pub before: Option<Box<SessionRow>>,
    pub after: Box<SessionRow>,
}

impl Changed {
    /// The change enters this pending action.
    pub(in crate::supervisor::tests) fn enters(&self, pending: Option<PendingAction>) -> bool {
        self.after.pending == pending
            && self.before.as_ref().is_none_or(|before| before.pending != pending)
    }
}

impl Rig {
    /// The row stands like this, for the store and for the reducer.
    pub(in crate::supervisor::tests) fn alter(&mut self, change: impl Fn(&mut SessionRow)) {
        let id = self.id();
        self.rows.values_mut().filter(|row| row.id == id).for_each(&change);
        if let Some(session) = self.state.session(id) {
            change(&mut session.row);
        }
    }

    /// Recovery by its setting, and by its switch of the environment.
    pub(in crate::supervisor::tests) fn recovery(&mut self, setting: bool, killed: bool) {
        let change = SettingChange::AbortedResponseRecoveryEnabled(setting);
        assert!(self.command(Command::SetSetting { change }).is_ok());
        self.state.policy.switches.aborted_response_recovery = killed;
    }

    /// Midnight, once or more.
    pub(in crate::supervisor::tests) fn days_pass(&mut self, days: i32) {
        self.now.day = Day(self.now.day.0 + days);
    }

    /// Somebody restarted it so many milliseconds ago.
    pub(in crate::supervisor::tests) fn restarted_before(&mut self, millis: u64) {
        let now = self.now;
        self.alter(|row| {
            row.last_restart_at = Some(Wall(now.wall.0.saturating_sub_unsigned(millis)))
        });
        if let Some(session) = self.state.session(self.id()) {
            session.live.restarted_at = Some(Mono(now.mono.0 - millis));
        }
    }

    pub(in crate::supervisor::tests) fn heavy(&self) -> bool {
        self.state.load.is_heavy(self.now.mono, &self.state.limits)
    }

    /// What was looked at is told at last.
    pub(in crate::supervisor::tests) fn release_looks(&mut self) {
        self.hold_looks = false;
        for answer in core::mem::take(&mut self.held) {
            self.feed(answer);
        }
    }

    /// The system refuses to start the child.
    pub(in crate::supervisor::tests) fn refuse_spawn(&mut self, errno: i32, words: &str) {
        let (session, launch) = (self.id(), self.launch);
        self.spawning = false;
        let words = words.into();
        self.feed(Input::SpawnFailed { session, launch, errno: Some(errno), words });
    }

    pub(in crate::supervisor::tests) fn close_output(&mut self) {
        let (session, launch) = (self.id(), self.launch);
        self.feed(Input::OutputEnded { session, launch });
    }

    pub(in crate::supervisor::tests) fn exit(&mut self, code: i32) {
        let (session, launch) = (self.id(), self.launch);
        self.feed(Input::Exited { session, launch, code: Some(code), signal: None });
    }

    pub(in crate::supervisor::tests) fn seen(&self) -> Attention {
        attention(&self.view(), self.state.policy(), self.state.limits(), self.now)
    }

    /// The number the badge, the dock and the poll were last told.
    pub(in crate::supervisor::tests) fn badge(&self) -> Option<usize> {
        self.state.badge
    }

    /// Other sessions than the first.
    pub(in crate::supervisor::tests) fn views(&self) -> Vec<RowView> {
        self.state.views().collect()
    }

    pub(in crate::supervisor::tests) fn stored(&self, id: SessionId) -> SessionRow {
        self.rows[&id].clone()
    }

    /// The changes that entered this pending action.
    pub(in crate::supervisor::tests) fn entered(&self, pending: Option<PendingAction>) -> usize {
        self.changes.iter().filter(|changed| changed.enters(pending)).count()
    }
}
