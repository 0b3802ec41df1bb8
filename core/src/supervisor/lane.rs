//! The line in which launches wait for their spawn: first come, first served, a few at a time, and
//! never more than the machine bears. It decides when, never whether.

use super::asks::AskFor;
use super::live::{Child, Session};
use super::{Act, Answer, AskId, Cx, Question, State};
use crate::id::SessionId;
use crate::launch::headroom::{Shortage, shortage};
use crate::launch::{Conversation, LaunchPlan};
use crate::time::Mono;
use crate::verdict::Actor;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The line and its pace.
#[derive(Debug, Default)]
pub(super) struct Lane {
    last_ticket: u64,
    /// Who waits, by ticket.
    line: BTreeMap<u64, SessionId>,
    /// No spawn starts before this.
    next_at: Mono,
    /// The next session that crash recovery brings back has its turn then.
    resume_at: Mono,
    /// The question about the machine, for this session.
    asking: Option<(AskId, SessionId)>,
    short: Option<Short>,
    /// The person wants this one now: it goes first, whatever the machine is short of.
    urgent: Option<SessionId>,
    /// So many were starting at once that none of them counts as hung as fast as alone.
    crowded_at: Option<Mono>,
    /// The line goes on then, if nothing else happens before.
    wake_at: Option<Mono>,
}

/// The machine is short of something.
#[derive(Clone, Copy, Debug)]
struct Short {
    /// Of what.
    what: Shortage,
    /// Since when, or since the last launch that was tried all the same.
    since: Mono,
    /// It is looked at again then.
    again: Mono,
}

impl Lane {
    /// When the line goes on by time alone.
    pub(super) fn wake_at(&self) -> Option<Mono> {
        self.wake_at
    }

    /// The turns of sessions that come back together are as far apart as their spawns.
    pub(super) fn next_resume(&mut self, now: Mono, gap: u64) -> Mono {
        let turn = self.resume_at.max(now);
        self.resume_at = turn.plus(gap);
        turn
    }

    /// The person wants this one now.
    pub(super) fn hurry(&mut self, id: SessionId) {
        self.urgent = Some(id);
        if let Some(short) = &mut self.short {
            short.again = Mono(0);
        }
    }

    /// Why the line does not come to its end, in words.
    pub(super) fn why(&self) -> &'static str {
        match self.short.map(|short| short.what) {
            Some(Shortage::Descriptors) => "The machine is short of file descriptors.",
            Some(Shortage::Processes) => "The machine is short of processes.",
            Some(Shortage::Memory) => "The machine is short of memory.",
            None => "Too many launches go before it.",
        }
    }

    /// Where a ticket stands, in words.
    pub(super) fn words(&self, ticket: u64) -> String {
        format!("launch, with {} before it in the line", self.line.range(..ticket).count())
    }

    /// Whether a start that began then had many others beside it: they slow each other down.
    pub(super) fn was_crowded(&self, since: Mono) -> bool {
        // rule: A-02
        self.crowded_at.is_some_and(|at| at >= since)
    }

    /// The machine slept: what it was short of says nothing, and a crowd is one still.
    pub(super) fn slept(&mut self, now: Mono) {
        self.short = None;
        self.crowded_at = self.crowded_at.map(|_| now);
    }
}

impl State {
    /// A place in the line. One that is held already is kept.
    pub(super) fn take_place(&mut self, now: Mono, id: SessionId) {
        // rule: RS-10, RS-11
        let ticket = self.lane.last_ticket + 1;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.live.ticket.is_none() {
            session.live.ticket = Some(ticket);
            session.live.placed_at = Some(now);
            self.lane.last_ticket = ticket;
            self.lane.line.insert(ticket, id);
        }
    }

    /// Lets the line go on as far as it can: one spawn at a time, each after a look at the machine.
    pub(super) fn advance_line(&mut self, cx: &mut Cx) {
        // rule: RS-09, CR-05
        self.lane.wake_at = None;
        if self.lane.line.is_empty() {
            self.lane.short = None;
            return;
        }
        self.drop_left();
        let now = cx.now.mono;
        let free = self.may_spawn(now);
        if !free {
            // a start that ends is an input, a call that hangs is not
            self.lane.wake_at = self.slots_held(now).min();
        }
        if !free && let Some(id) = self.lane.line.values().next().copied() {
            self.decided(cx, id, Actor::Launch, "wait: enough launches are under way");
        }
        let not_before =
            self.lane.short.map_or(self.lane.next_at, |short| short.again.max(self.lane.next_at));
        if free && self.lane.asking.is_none() && !self.quitting {
            if now < not_before {
                self.lane.wake_at = Some(not_before);
            } else if let Some(id) = self.next_ready(cx) {
                let wait = self.limits.ask_ms;
                let ask = self.ask(cx, AskFor::Headroom, Question::Headroom, wait);
                self.lane.asking = Some((ask, id));
            }
        }
        self.show_places(cx, !free || self.lane.short.is_some());
    }

    /// Those who left are no longer waited for.
    fn drop_left(&mut self) {
        let waits = |id: &SessionId| {
            self.sessions.get(id).is_some_and(|session| session.live.ticket.is_some())
        };
        self.lane.urgent = self.lane.urgent.filter(waits);
        let sessions = &mut self.sessions;
        self.lane.line.retain(|ticket, id| {
            let Some(session) = sessions.get_mut(id) else {
                return false;
            };
            let live = &mut session.live;
            let waits = live.ticket == Some(*ticket) && live.restart_under_way();
            if !waits && live.ticket == Some(*ticket) {
                live.leave_line();
            }
            waits
        });
    }

    /// Whether one more spawn may start now.
    fn may_spawn(&self, now: Mono) -> bool {
        !self.spawn_slots_full(now) && self.starting() < self.limits.starting_max
    }

    /// Notes that many start at this moment.
    pub(super) fn mark_crowd(&mut self, now: Mono) {
        if self.starting() >= self.limits.spawn_slots {
            self.lane.crowded_at = Some(now);
        }
    }

    /// Children that are spawned and do not answer yet.
    fn starting(&self) -> usize {
        let starting = |(_, session): &(&SessionId, &Session)| match session.live.child {
            Child::Spawning { .. } | Child::Handshaking { .. } => true,
            Child::None | Child::Up { .. } | Child::Stopping { .. } => false,
        };
        self.sessions.awake().filter(starting).count()
    }

    /// All slots are taken: each is held while a spawn call is under way, no longer.
    pub(super) fn spawn_slots_full(&self, now: Mono) -> bool {
        // rule: RS-09, INV-57
        self.slots_held(now).count() >= self.limits.spawn_slots
    }

    /// When each slot that is held is free at the latest: a call that hangs for ever must not hold up
    /// every launch of the app.
    fn slots_held(&self, now: Mono) -> impl Iterator<Item = Mono> {
        let longest = self.limits.handshake_ms * 2;
        let calls = self.sessions.awake().filter_map(|(_, session)| session.live.spawn_call);
        calls.map(move |(_, since)| since.plus(longest)).filter(move |until| *until > now)
    }

    /// The first whose launch is planned. A look that is too old is taken again, and nobody overtakes
    /// meanwhile: it is answered or given up within its limit.
    fn next_ready(&mut self, cx: &mut Cx) -> Option<SessionId> {
        // rule: INV-07, INV-52
        let oldest = cx.now.mono.0.saturating_sub(self.limits.look_fresh_ms);
        let urgent = self.lane.urgent.filter(|id| self.is_ready(*id));
        let line = self.lane.line.values().copied();
        let line: Vec<SessionId> = urgent.into_iter().chain(line).collect();
        for id in line {
            if !self.is_ready(id) {
                continue;
            }
            let Some(live) = self.sessions.get(&id).map(|session| &session.live) else {
                continue;
            };
            if live.asking.is_some() {
                return None;
            }
            if live.looked_at.is_some_and(|at| at.0 >= oldest) {
                return Some(id);
            }
            self.look_before_spawn(cx, id);
            return None;
        }
        None
    }

    fn is_ready(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| {
            let live = &session.live;
            let due = live.relaunch.as_ref().is_none_or(|relaunch| relaunch.due.is_none());
            let planned = live.delivery.is_some() && live.ticket.is_some() && due;
            // a refused start whose reason is still being looked into starts nothing
            planned && live.child == Child::None && live.ending.is_none()
        })
    }

    /// The machine was looked at: the launch it was asked for starts, or the line waits.
    pub(super) fn headroom_answered(&mut self, cx: &mut Cx, ask: AskId, answer: &Answer) {
        let Some((_, id)) = self.lane.asking.take_if(|(asking, _)| *asking == ask) else {
            return;
        };
        let found = match answer {
            Answer::Headroom(found) => shortage(*found, &self.limits),
            // what nobody can tell holds nobody
            Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::TakenOver { .. }
            | Answer::Stamped { .. }
            | Answer::Alive { .. }
            | Answer::Handover(_)
            | Answer::Failed { .. } => None,
        };
        if let Some(found) = found {
            if self.lane.urgent != Some(id) && self.holds_line(cx, id, found) {
                return;
            }
        } else {
            self.lane.short = None;
        }
        let asking = self.sessions.get(&id).is_some_and(|session| session.live.asking.is_some());
        if self.is_ready(id) && !asking && self.may_spawn(cx.now.mono) && !self.quitting {
            self.spawn(cx, id);
        }
    }

    /// The machine is short of something: the line waits, but not for ever. The system itself has the
    /// last word.
    fn holds_line(&mut self, cx: &mut Cx, id: SessionId, found: Shortage) -> bool {
        // rule: RS-10
        let now = cx.now.mono;
        let again = now.plus(self.limits.headroom_again_ms);
        let since = self.lane.short.map_or(now, |short| short.since);
        let what = found.as_str();
        if now.since(since) < self.limits.headroom_patience_ms {
            self.lane.short = Some(Short { what: found, since, again });
            self.decided(cx, id, Actor::Launch, format!("wait: the machine is short of {what}"));
            return true;
        }
        self.lane.short = Some(Short { what: found, since: now, again });
        self.decided(cx, id, Actor::Launch, format!("act: launched although short of {what}"));
        false
    }

    /// Who waits is told its place; the first only while something but its own turn holds it.
    fn show_places(&mut self, cx: &mut Cx, held: bool) {
        let line: Vec<SessionId> = self.lane.line.values().copied().collect();
        for (at, id) in (1..).zip(line) {
            if let Some(session) = self.sessions.get_mut(&id) {
                let place = Some(at).filter(|at| held || *at > 1);
                if session.live.place != place {
                    session.live.place = place;
                    cx.touched.insert(id);
                }
            }
        }
    }

    /// Has the child started.
    fn spawn(&mut self, cx: &mut Cx, id: SessionId) {
        let launch = self.mint_launch();
        let plain_speak = self.policy.settings.plain_speak_enabled;
        let byte_idle_ms = self.limits.cli_byte_idle_ms;
        let since = cx.now.mono;
        let endpoint = match self.launch_endpoint(id) {
            Ok(endpoint) => endpoint.cloned(),
            Err(words) => {
                self.launch_failed(cx, id, &words);
                return;
            }
        };
        self.lane.next_at = since.plus(self.limits.spawn_gap_ms);
        self.lane.urgent.take_if(|urgent| *urgent == id);
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(delivery) = &session.live.delivery else {
            return;
        };
        let conversation = delivery.conversation;
        let row = &session.row;
        let plan = LaunchPlan {
            session: id,
            folder: row.folder.clone(),
            account: row.account.clone(),
            conversation,
            endpoint,
            model: row.model.clone(),
            permission_mode: row.permission_mode,
            user_settings_only: row.user_settings_only,
            plain_speak,
            byte_idle_ms,
        };
        session.live.leave_line();
        session.live.child = Child::Spawning { launch, since };
        session.live.spawn_call = Some((launch, since));
        session.live.gone_at = None;
        session.live.chatter.clear();
        session.live.eof_deadline = None;
        session.live.background.child_gone();
        session.live.cost_child = 0;
        session.live.names_lines = false;
        session.live.cost_base = session.row.cost_microdollars;
        session.live.fresh_resume = match conversation {
            Conversation::New { .. } => false,
            Conversation::Resume { .. } | Conversation::Fork { .. } => true,
        };
        // rule: A-15
        self.change(cx, id, Actor::Launch, "launch", |row| {
            row.cli_session_wanted = Some(conversation.id());
            if let Conversation::Fork { from, .. } = conversation {
                row.cli_session_before = Some(from);
            }
            row.intent_running = true;
        });
        self.mark_crowd(since);
        cx.act(Act::Spawn { session: id, launch, plan: Box::new(plan) });
    }
}
