//! Others than the person: programs that have a conversation open, which appear, stay for a while
//! and end when they are asked to, or not; and the agents themselves, who spawn workers and declare gates
//!

use crate::clock::MINUTE;
use crate::world::{Event, World};
use omniscio_core::id::{CliSessionId, SessionId};
use omniscio_core::session::Holder;
use omniscio_core::supervisor::{AgentTool, Command};

/// So many rows are enough.
const ROWS_MAX: usize = 9;

impl World {
    /// Somebody opens a conversation in a terminal.
    pub(crate) fn holder_appears(&mut self) {
        let known = self.store.listed().filter_map(|row| row.cli_session_id);
        let ids: Vec<CliSessionId> = known.filter(|id| self.files.contains_key(id)).collect();
        let Some(id) = self.dice.pick(&ids) else { return };
        self.report.hit("a conversation is opened elsewhere");
        let pid = 50_000 + (self.dice.raw() % 10_000) as u32;
        let holder = Holder { pid, start: self.clock.at, folder: "/home/a/project".into() };
        self.holders.insert(id, holder);
        let stays = self.dice.weighted(&[(3, 3 * MINUTE), (2, 30 * MINUTE), (1, 300 * MINUTE)]);
        self.after(stays, Event::HolderGone(id));
    }

    /// Who else has one of these conversations open.
    pub(crate) fn holder_of(
        &self,
        own: Option<CliSessionId>,
        copied_from: Option<CliSessionId>,
    ) -> Option<Holder> {
        [own, copied_from].into_iter().flatten().find_map(|id| self.holders.get(&id)).cloned()
    }

    /// SIGTERM to the holder: most end.
    pub(crate) fn end_holder(&mut self, holder: &Holder) -> bool {
        let at = self.holders.iter().find(|(_, known)| *known == holder).map(|(id, _)| *id);
        let Some(id) = at else { return true };
        let obeys = self.dice.chance(700);
        self.report.hit(if obeys { "taken over" } else { "not taken over" });
        if obeys {
            self.holders.remove(&id);
        }
        obeys
    }

    /// An agent wants something of the app.
    pub(crate) fn agent_wants(&mut self) {
        let up = self.children.values().filter(|child| child.alive && child.first_byte);
        let sessions: Vec<SessionId> = up.map(|child| child.session).collect();
        let Some(session) = self.dice.pick(&sessions) else { return };
        let number = self.dice.raw() % 1_000;
        let name = format!("check {number}");
        if self.dice.chance(500) {
            let long = self.dice.weighted(&[(3, 2 * MINUTE), (2, 20 * MINUTE), (1, 90 * MINUTE)]);
            let tool = AgentTool::CloseGate { name: name.clone() };
            self.after(long, Event::Agent { session, tool });
            self.agent(session, AgentTool::OpenGate { name });
        } else if self.store.listed().filter(|row| !row.is_gone()).count() < ROWS_MAX {
            let task = format!("task {number}");
            self.agent(session, AgentTool::SpawnWorker { task, title: None });
        } else {
            self.agent(session, AgentTool::ListWorkers);
        }
    }

    pub(crate) fn agent(&mut self, session: SessionId, tool: AgentTool) {
        self.say(Command::Agent { session, tool });
    }
}
