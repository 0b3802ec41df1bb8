//! What the scripted CLI waits for: a wake-up that it sets, or a task that it runs in the background. Each
//! begins a turn of its own when its time has come, and none survives its process.

use crate::cli::Out;
use crate::clock::SECOND;
use crate::lines;
use crate::scripts::Phase;
use crate::world::{Event, World};

/// A wait that a turn begins.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) call: String,
    pub(crate) after: u64,
    /// A task, else a wake-up.
    pub(crate) task: bool,
}

/// What is said when a wake-up is due: no two are the same.
pub(crate) fn prompt(call: &str) -> String {
    format!("wake {call}")
}

impl World {
    /// The call has run: its result tells what was set or begun.
    pub(crate) fn wait_begins(&mut self, key: u64, wait: Wait) {
        let Some(child) = self.children.get(&key) else { return };
        let session = child.session;
        let at = self.clock.now().wall.plus(wait.after).0;
        let (call, wakes) = (wait.call.clone(), !wait.task);
        let mut out = Vec::new();
        if wait.task {
            out.push(lines::tasks(&[call.as_str()]));
        }
        out.push(lines::wait_result(&call, wakes.then_some(at)));
        for line in out {
            self.put_out(key, Out::Bytes(line, Phase::Between));
        }
        self.oracle.wait_set(session, &call, wait.task);
        self.after(wait.after, Event::Woken { child: key, wait });
    }

    /// Its time has come: a turn begins by itself, once the CLI is free.
    pub(crate) fn woken(&mut self, key: u64, wait: Wait) {
        let Some(child) = self.children.get_mut(&key) else { return };
        if !child.alive || child.stopping || child.eof {
            return;
        }
        if !child.is_free() {
            self.after(5 * SECOND, Event::Woken { child: key, wait });
            return;
        }
        let line = if wait.task { lines::tasks(&[]) } else { lines::fired() };
        let session = child.session;
        self.put_out(key, Out::Bytes(line, Phase::Free));
        self.oracle.wait_ends(session, &wait, &mut self.report);
        if let Some(child) = self.children.get_mut(&key)
            && child.wake_up(&mut self.dice, None)
        {
            self.schedule(key);
        }
    }
}
