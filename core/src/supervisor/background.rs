//! What runs behind the turns of one child, as its stream shows it, and the times of its wake-ups.

use crate::limits::Limits;
use crate::session::SessionRow;
use crate::stream::BackgroundTask;
use crate::time::{Mono, Now};
use crate::waiting::{AlarmCall, HoldFor, TaskKind, WaitTask, task_name};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};

/// Background work of one session, as long as the app lives.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// How many tasks the child runs.
    pub count: u32,
    /// The tasks, as many as are remembered by name.
    pub tasks: alloc::vec::Vec<WaitTask>,
    /// Tasks that are Monitors: the set itself does not tell them from commands.
    monitors: BTreeSet<String>,
    /// Calls that set a wake-up and have no result yet.
    pub calls: BTreeMap<String, AlarmCall>,
    /// Wake-ups that the child fires itself.
    pub own: BTreeSet<String>,
    /// When each wake-up of the row is due. A clock that is set meanwhile moves none.
    pub due: BTreeMap<String, Mono>,
    /// When the last turn ended.
    pub ended_at: Option<Mono>,
    /// The last task has ended: the CLI begins a turn of its own before this.
    pub ends_at: Option<Mono>,
    /// When the wait is looked at again.
    pub look_at: Option<Mono>,
    /// What a waiting worker said last, for its parent.
    pub unreported: Option<String>,
}

impl Background {
    /// The whole set of live tasks.
    pub(super) fn replace(&mut self, tasks: &[BackgroundTask], max: usize) {
        self.count = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        self.monitors.retain(|id| tasks.iter().any(|task| task.task == *id));
        let kind = |task: &BackgroundTask| {
            if task.kind == "local_agent" {
                TaskKind::Agent
            } else if self.monitors.contains(&task.task) {
                TaskKind::Monitor
            } else {
                TaskKind::Command
            }
        };
        let named = tasks.iter().take(max).map(|task| WaitTask {
            id: task.task.clone(),
            kind: kind(task),
            name: task_name(task.summary.as_deref()),
        });
        self.tasks = named.collect();
    }

    /// A Monitor began this task. Tells whether it is in the set.
    pub(super) fn is_monitor(&mut self, id: &str) -> bool {
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else {
            return false;
        };
        task.kind = TaskKind::Monitor;
        self.monitors.insert(id.to_string());
        true
    }

    /// A call that sets or takes back a wake-up.
    pub(super) fn called(&mut self, call: &str, alarm: AlarmCall, max: usize) {
        if self.calls.len() >= max {
            self.calls.pop_first();
        }
        self.calls.insert(call.to_string(), alarm);
    }

    /// The child goes: what it ran goes with it, and it fires nothing any more.
    pub(super) fn child_gone(&mut self) {
        self.count = 0;
        self.tasks.clear();
        self.monitors.clear();
        self.calls.clear();
        self.own.clear();
        self.ends_at = None;
    }

    /// How long the wake-ups of the row hold it, if one is ahead.
    pub(super) fn wakes_hold(
        &self,
        row: &SessionRow,
        now: Mono,
        limits: &Limits,
    ) -> Option<HoldFor> {
        let wakes = row.deferred_work.iter().flat_map(|work| work.wakes.iter());
        let left = wakes.map(|wake| match self.due.get(&wake.key) {
            Some(due) => due.plus(limits.wake_late_ms).since(now),
            None => u64::MAX,
        });
        left.filter(|left| *left > 0).max().map(|left| match left {
            u64::MAX => HoldFor::Open,
            left => HoldFor::AtMost(left),
        })
    }

    /// Whether a task holds an automatic restart: a sub-agent as long as it runs, a command for a
    /// bounded time after the turn's end, which is when the row was stamped.
    pub(super) fn holds_restart(&self, now: Mono, limits: &Limits) -> bool {
        // rule: A-16, RG-01
        let since_end = self.ended_at.map_or(0, |ended| now.since(ended));
        self.tasks.iter().any(|task| match task.kind {
            TaskKind::Agent => true,
            TaskKind::Command | TaskKind::Monitor => since_end < limits.wait_command_ms,
        })
    }

    /// Sets the next look: at the next wake-up, at the end of a hold, or `again`.
    pub(super) fn time(
        &mut self,
        row: &SessionRow,
        waits: bool,
        now: Now,
        again: Option<Mono>,
        limits: &Limits,
    ) {
        let wakes = || row.deferred_work.iter().flat_map(|work| work.wakes.iter());
        self.due.retain(|key, _| wakes().any(|wake| wake.key == *key));
        for wake in wakes() {
            if let Some(at) = wake.at {
                let left = u64::try_from(at.since(now.wall)).unwrap_or_default();
                self.due.entry(wake.key.clone()).or_insert_with(|| now.mono.plus(left));
            }
        }
        let ahead = self.due.values().copied().filter(|due| again.is_none() || *due > now.mono);
        let ended = self.ended_at.unwrap_or(now.mono);
        let command = self.tasks.iter().any(|task| task.kind == TaskKind::Command);
        let over = command.then(|| ended.plus(limits.wait_command_ms));
        let late = self.due.values().map(|due| due.plus(limits.wake_late_ms));
        let hold = over.into_iter().chain(self.ends_at).chain(late).filter(|at| *at > now.mono);
        let hold = hold.min().filter(|_| waits);
        self.look_at = ahead.chain(again).chain(hold).min();
    }

    /// The machine slept: a wake-up that came due meanwhile has its full time again.
    pub(super) fn slept(&mut self, now: Mono, millis: u64) {
        let began = Mono(now.0.saturating_sub(millis));
        for due in self.due.values_mut().filter(|due| (began..now).contains(due)) {
            *due = now;
        }
        self.ends_at = self.ends_at.map(|at| at.plus(millis));
    }
}
