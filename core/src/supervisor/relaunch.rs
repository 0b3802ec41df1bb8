//! A launch that failed transiently: it waits and is tried again until the session is back. Whether and
//! after how long is decided in `launch::relaunch`.

use super::asks::LaunchFor;
use super::live::{Delivery, Purpose};
use super::replaying::still_failed;
use super::{Cx, State};
use crate::id::SessionId;
use crate::launch::relaunch::{
    Relaunch, SpawnRetryStatus, emit_spawn_retry_status, maybe_retry_transient_spawn,
};
use crate::prompt;
use crate::session::{PendingAction, Status};
use crate::time::{Mono, Wall};
use crate::turn_end::outcome::shorten;
use crate::verdict::{Actor, Source};
use alloc::format;
use alloc::string::String;

/// `spawnRetryPending`: from the first failed launch to success or cancel (RS-20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relaunching {
    /// Failed launches so far.
    pub failures: u32,
    /// When the first one failed.
    pub since: Mono,
    /// The next one is due; `None` while it waits in the line or is under way.
    pub due: Option<(Mono, Wall)>,
    /// What the system said last.
    pub words: String,
    /// What the launch is for.
    pub purpose: LaunchFor,
}

impl State {
    /// A launch failed transiently. Nothing is charged and nothing turns red.
    pub(super) fn relaunch_later(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        purpose: LaunchFor,
        words: &str,
    ) {
        // rule: RS-01, RS-02, RS-15, RP-10, INV-59
        let (now, words) = (cx.now, shorten(words));
        let chance = self.rng.next_u64();
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let live = &mut session.live;
        live.leave_line();
        let before = live.relaunch.take();
        let failures = before.as_ref().map_or(0, |before| before.failures).saturating_add(1);
        let wait = match maybe_retry_transient_spawn(failures, &self.policy, chance, &self.limits) {
            Relaunch::After(wait) => wait,
            Relaunch::GiveUp => {
                let text = format!("give up: {failures} launches failed, relaunch is off");
                self.decided(cx, id, Actor::Relaunch, text);
                self.launch_failed(cx, id, &words);
                return;
            }
        };
        live.relaunch = Some(Relaunching {
            failures,
            since: before.map_or(now.mono, |before| before.since),
            due: Some((now.mono.plus(wait), now.wall.plus(wait))),
            words: words.clone(),
            purpose,
        });
        let pending = match purpose {
            LaunchFor::Replay(source) => still_failed(source),
            LaunchFor::Queue => None,
        };
        if session.row.status != Status::Starting {
            self.enter(cx, id, Actor::Relaunch, "relaunch", (Status::Starting, pending), |row| {
                row.words = None;
                row.turn = None;
                // rule: A-15
                row.intent_running = true;
            });
        }
        self.change(cx, id, Actor::Relaunch, "the system's words", |row| {
            if row.cannot_launch {
                row.words = Some(words.clone());
            }
        });
        let text = format!("wait: launch {failures} failed, next in {wait} ms: {words}");
        self.decided(cx, id, Actor::Relaunch, text);
        if self.policy.relentless_relaunch() {
            self.announce_retry(cx, id, failures);
        }
        cx.touched.insert(id);
    }

    fn announce_retry(&mut self, cx: &mut Cx, id: SessionId, failures: u32) {
        // rule: RS-16, RS-17, INV-58
        match emit_spawn_retry_status(failures, &self.limits) {
            Some(SpawnRetryStatus::Hiccup) => self.note(cx, id, prompt::NOTE_LAUNCH_HICCUP),
            Some(SpawnRetryStatus::Still(attempt)) => {
                self.note(cx, id, &prompt::note_still_relaunching(attempt));
            }
            None => {}
        }
    }

    /// The wait is over: the launch lines up again, with a new look where it had none.
    pub(super) fn relaunch_due(&mut self, cx: &mut Cx, id: SessionId) {
        if self.cancel_idle_launch(cx, id) {
            return;
        }
        let full = self.spawn_slots_full(cx.now.mono);
        let relentless = self.policy.relentless_relaunch();
        let Some(session) = self.session(id) else {
            return;
        };
        let planned = session.live.delivery.is_some();
        let Some(relaunch) = session.live.relaunch.as_mut() else {
            return;
        };
        relaunch.due = None;
        let (purpose, words) = (relaunch.purpose, relaunch.words.clone());
        cx.touched.insert(id);
        if full && !relentless {
            // rule: RS-13
            self.decided(cx, id, Actor::Relaunch, "give up: too many launches at this instant");
            self.launch_failed(cx, id, &words);
        } else if planned {
            self.take_place(cx.now.mono, id);
        } else {
            self.ask_launch(cx, id, purpose);
        }
    }

    /// So long without a launch that a person is told. It goes on being tried.
    pub(super) fn cannot_launch(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: A-14
        let relaunch = self.sessions.get(&id).and_then(|session| session.live.relaunch.as_ref());
        let words = relaunch.map_or(self.lane.why().into(), |relaunch| relaunch.words.clone());
        self.change(cx, id, Actor::Relaunch, "can't launch yet", |row| {
            row.cannot_launch = true;
            row.words = Some(words);
        });
        self.decided(cx, id, Actor::Relaunch, "told: no launch has succeeded for long");
    }

    /// A rung that could not be launched becomes the person's own retry.
    fn take_over_rung(&mut self, cx: &mut Cx, id: SessionId) {
        let retry = Source::RetryButton;
        let failed = Some(PendingAction::RecoveryFailed);
        if self.sessions.get(&id).is_none_or(|session| session.row.pending != failed) {
            return;
        }
        if let Some(session) = self.session(id) {
            if let Some(relaunch) = session.live.relaunch.as_mut() {
                relaunch.purpose = LaunchFor::Replay(retry);
            }
            if let Some(Delivery { purpose: Purpose::Replay { source, .. }, .. }) =
                session.live.delivery.as_mut()
            {
                *source = retry;
            }
        }
        let to = (Status::Starting, None);
        self.enter(cx, id, Actor::RetryButton, retry.as_str(), to, |row| {
            row.intent_running = true;
        });
        self.note_restart(cx, id, Actor::RetryButton);
    }

    /// Retry while a launch waits to be tried again, or in the line: at once. `false` when none waits.
    pub(super) fn hurry_relaunch(&mut self, cx: &mut Cx, id: SessionId) -> bool {
        // rule: A-14
        let (now, wall) = (cx.now.mono, cx.now.wall);
        if self.sessions.get(&id).is_some_and(|session| session.live.ticket.is_some()) {
            self.lane.hurry(id);
            self.take_over_rung(cx, id);
            self.decided(cx, id, Actor::RetryButton, "act: first in the line");
            return true;
        }
        let waiting = self.session(id).and_then(|session| session.live.relaunch.as_mut());
        let Some(relaunch) = waiting.filter(|relaunch| relaunch.due.is_some()) else {
            return false;
        };
        relaunch.due = Some((now, wall));
        self.take_over_rung(cx, id);
        self.decided(cx, id, Actor::RetryButton, "act: relaunch now");
        true
    }
}
