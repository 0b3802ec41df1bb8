//! All sessions, and which of them rest: nothing is due for one that rests, and nothing about it changes
//! by time alone. A step costs what its awake sessions cost, however many rest beside them.
//!
//! Whoever gets hold of a session to change it wakes it; the end of the timers lays down what rests again.
//! What is looked at each time (deadlines, slots, badge) looks at the awake ones.

use super::State;
use super::live::{Child, Session};
use crate::attention::{badge_changes_by_time, badge_count, needs_person};
use crate::id::SessionId;
use crate::time::Now;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Deref;

/// The sessions by their ids.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: BTreeMap<SessionId, Session>,
    awake: BTreeSet<SessionId>,
    /// Those that rest and wait for a person.
    waiting: BTreeSet<SessionId>,
}

impl Deref for Sessions {
    type Target = BTreeMap<SessionId, Session>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl FromIterator<(SessionId, Session)> for Sessions {
    fn from_iter<T: IntoIterator<Item = (SessionId, Session)>>(sessions: T) -> Self {
        let mut all = Sessions { all: sessions.into_iter().collect(), ..Sessions::default() };
        all.wake_all();
        all
    }
}

impl Sessions {
    pub(super) fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        let session = self.all.get_mut(id)?;
        if self.awake.insert(*id) {
            self.waiting.remove(id);
        }
        Some(session)
    }

    pub(super) fn insert(&mut self, id: SessionId, session: Session) {
        self.all.insert(id, session);
        self.awake.insert(id);
        self.waiting.remove(&id);
    }

    pub(super) fn remove(&mut self, id: &SessionId) {
        self.all.remove(id);
        self.awake.remove(id);
        self.waiting.remove(id);
    }

    /// Wakes all: what it is about is not one of them.
    pub(super) fn wake_all(&mut self) {
        self.awake = self.all.keys().copied().collect();
        self.waiting.clear();
    }

    /// Those that do not rest, in the order of their ids.
    pub(super) fn awake(&self) -> impl Iterator<Item = (&SessionId, &Session)> {
        self.awake.iter().filter_map(|id| self.all.get_key_value(id))
    }

    /// The same, each to be changed.
    pub(super) fn awake_mut(&mut self, mut change: impl FnMut(SessionId, &mut Session)) {
        for id in &self.awake {
            if let Some(session) = self.all.get_mut(id) {
                change(*id, session);
            }
        }
    }

    fn lay_down(&mut self, id: SessionId, waits: bool) {
        self.awake.remove(&id);
        if waits {
            self.waiting.insert(id);
        }
    }
}

impl State {
    /// Lays down the sessions that rest.
    pub(super) fn lay_down(&mut self, now: Now, heavy: bool) {
        let rests = |(_, session): &(&SessionId, &Session)| self.rests(session, heavy);
        let resting: Vec<(SessionId, bool)> = self
            .sessions
            .awake()
            .filter(rests)
            .map(|(id, session)| (*id, needs_person(&session.row, &self.policy, &self.limits, now)))
            .collect();
        for (id, waits) in resting {
            self.sessions.lay_down(id, waits);
        }
    }

    /// Whether nothing happens to it by itself, and nobody asks for it in passing.
    fn rests(&self, session: &Session, heavy: bool) -> bool {
        let (row, live) = (&session.row, &session.live);
        live.child == Child::None
            && live.spawn_call.is_none()
            && live.placed_at.is_none()
            && live.relaunch.is_none()
            && live.gone_at.is_none()
            && live.load_streak == 0
            && !live.folder_missing
            && !row.is_at_work()
            // a spawned one may turn out to be an orphan (PO-01)
            && row.parent.is_none()
            && !badge_changes_by_time(row, &self.policy)
            && self.session_deadlines(session, heavy).next().is_none()
    }

    /// How many sessions wait for a person (HD-18).
    pub(super) fn count_waiting(&self, now: Now) -> usize {
        let count = |rows: &mut dyn Iterator<Item = &Session>| {
            badge_count(rows.map(|session| &session.row), &self.policy, &self.limits, now)
        };
        let awake = count(&mut self.sessions.awake().map(|(_, session)| session));
        let waiting = self.sessions.waiting.len() + awake;
        debug_assert_eq!(waiting, count(&mut self.sessions.values()), "one that rests changed");
        waiting
    }

    /// For the tests: nothing is due for any session that rests.
    pub(super) fn debug_assert_rest(&self, heavy: bool) {
        debug_assert!(
            self.sessions
                .iter()
                .filter(|(id, _)| !self.sessions.awake.contains(id))
                .all(|(_, session)| self.rests(session, heavy)),
            "something is due for a session that rests"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::launch::classify::Os;
    use crate::limits::Limits;
    use crate::session::{PendingAction, SessionRow, Status};
    use crate::settings::{KillSwitches, Settings};
    use crate::supervisor::{Act, Boot, Command, Input, ReplyTo, Step, step};
    use crate::time::{Day, Mono, Wall};
    use alloc::boxed::Box;
    use alloc::string::String;

    const ROWS: u128 = 1_000;

    fn row(number: u128) -> SessionRow {
        let words = String::new;
        let mut row = SessionRow::new(Uuid(number), "/".into(), words(), words(), Wall(0));
        (row.status, row.intent_running) = (Status::NeedsYou, false);
        (row.delivered, row.ever_answered, row.turn_count) = (true, true, 1);
        row
    }

    fn at(state: &mut State, input: Input, ms: u64) -> Step {
        let wall = Wall(i64::try_from(ms).expect("a time"));
        step(state, input, Now { wall, mono: Mono(ms), day: Day(0) })
    }

    fn booted(rows: Vec<SessionRow>) -> State {
        let mut state = State::new(Limits::default());
        let boot = Boot {
            seed: 1,
            os: Os::Linux,
            first: true,
            rows,
            queues: Vec::new(),
            block_counts: Vec::new(),
            live: Vec::new(),
            settings: Settings::default(),
            switches: KillSwitches::default(),
            accounts: Vec::new(),
        };
        at(&mut state, Input::Boot(Box::new(boot)), 0);
        state
    }

    fn awake(state: &State) -> Vec<SessionId> {
        state.sessions.awake().map(|(id, _)| *id).collect()
    }

    fn badge(step: &Step) -> Option<usize> {
        step.acts
            .iter()
            .find_map(|act| if let Act::Badge(count) = act { Some(*count) } else { None })
    }

    // proves: HD-18
    #[test]
    fn however_many_rest_only_those_with_something_due_are_looked_at() {
        let mut rows: Vec<SessionRow> = (1..=ROWS).map(row).collect();
        rows[7].delivered = false;
        rows[7].pending = Some(PendingAction::ResponseAborted);
        let mut state = booted(rows);
        assert_eq!(awake(&state), [Uuid(8)]);

        // who is touched wakes, is looked at and lies down again; the badge counts all the same
        let archive = |n| Command::Archive { session: Uuid(n) };
        let reply = ReplyTo(1);
        let done = at(&mut state, Input::Command { reply, command: archive(20) }, 1_000);
        assert_eq!(
            badge(&done),
            Some(998),
            "neither the archived one nor the one that heals unseen"
        );
        at(&mut state, Input::Wake, 2_000);
        assert_eq!(awake(&state), [Uuid(8)]);
        let delete = Command::Delete { session: Uuid(30) };
        let done = at(&mut state, Input::Command { reply, command: delete }, 4_000);
        assert_eq!(badge(&done), Some(997));
        at(&mut state, Input::Wake, 5_000);
        assert_eq!((state.sessions.len(), awake(&state)), (999, [Uuid(8)].into()));
    }
}
