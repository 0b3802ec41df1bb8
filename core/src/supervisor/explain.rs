//! Why a row is as it is: the last decisions about it, and what happens next by itself.

use super::State;
use crate::id::SessionId;
use crate::ipc::Explanation;
use crate::time::Now;
use crate::watchdog::silence;

impl State {
    /// The last decisions about a session and its next own step.
    pub fn explain(&self, id: SessionId, now: Now) -> Option<Explanation> {
        let session = self.sessions.get(&id)?;
        let live = &session.live;
        let heavy = self.load.is_heavy(now.mono, &self.limits);
        let in_millis = |at: crate::time::Mono| at.since(now.mono);
        let relaunch = live.relaunch.as_ref().and_then(|relaunch| relaunch.due);
        let next = if let Some((at, _)) = relaunch {
            Some(("relaunch".into(), in_millis(at)))
        } else if let Some(at) = live.resume_due {
            Some(("crash-resume".into(), in_millis(at)))
        } else if let Some(ticket) = live.ticket {
            Some((self.lane.words(ticket), 0))
        } else if let Some(at) = live.rung_at {
            Some(("re-arm".into(), in_millis(at)))
        } else if let Some(at) = live.background.look_at {
            Some(("waiting-hold".into(), in_millis(at)))
        } else if session.row.in_shape() && self.policy.aborted_response_recovery() {
            Some(("scan".into(), in_millis(self.scan.next_at)))
        } else {
            live.turn
                .as_ref()
                .and_then(|turn| silence::deadline(turn, &self.limits, heavy).ok())
                .map(|(at, cause)| (cause.as_str().into(), in_millis(at)))
        };
        Some(Explanation { decisions: live.decisions.iter().cloned().collect(), next })
    }
}
