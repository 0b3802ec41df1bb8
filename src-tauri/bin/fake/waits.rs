//! What a turn leaves to wait for: a wake-up, or a command in the background. Each begins a turn of its own
//! when its time has come (captures 30 and 31); none survives the process.

use crate::clock::{self, Stopwatch};
use crate::protocol;
use crate::session::{Incoming, Session};
use crate::turn::{self, Turn};
use crate::{ids, limits, process};
use serde_json::json;
use std::process::Child;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// What the session waits for.
pub(crate) struct Wait {
    /// What is said when it is over.
    prompt: String,
    kind: Kind,
}

enum Kind {
    WakeUp { set: Stopwatch, after: Duration, at_ms: u64 },
    Command { task: String, call: String, child: Child },
}

/// What the agent says to itself: whoever sends it gets the answer.
fn prompt(answer: &str) -> String {
    format!("Go on. {}say {answer}]]", crate::script::OPEN)
}

impl Turn<'_> {
    /// ScheduleWakeup in so many milliseconds.
    pub(crate) fn wake_up(&mut self, millis: u64, answer: &str) {
        let (id, prompt) = (ids::tagged("toolu"), prompt(answer));
        let at_ms = clock::epoch_millis() + millis;
        let input =
            json!({"delaySeconds": millis.div_ceil(1000), "reason": "waiting", "prompt": prompt});
        self.call(&id, "ScheduleWakeup", &input);
        let details =
            json!({"scheduledFor": at_ms, "clampedDelaySeconds": 60, "wasClamped": false});
        self.tool_result(&id, "Next wakeup scheduled.", details);
        let after = Duration::from_millis(millis);
        let kind = Kind::WakeUp { set: Stopwatch::start(), after, at_ms };
        self.session.waits.push(Wait { prompt, kind });
    }

    /// Bash in the background: a real `sleep`.
    pub(crate) fn background(&mut self, seconds: u64, answer: &str) {
        let (call, task) = (ids::tagged("toolu"), ids::tagged("b"));
        let input = json!({"command": format!("sleep {seconds}"), "description": "long job",
            "run_in_background": true});
        self.call(&call, "Bash", &input);
        let child = match process::spawn_sleep(seconds, &self.session.id) {
            Ok(child) => child,
            Err(error) => {
                self.failed_result(&call, &format!("Error: cannot start: {error}"), json!({}));
                return;
            }
        };
        let kind = Kind::Command { task: task.clone(), call: call.clone(), child };
        self.session.waits.push(Wait { prompt: prompt(answer), kind });
        self.session.tell_tasks();
        self.session.out.emit(json!({"type": "system", "subtype": "task_started", "task_id": task,
            "tool_use_id": call, "description": "long job", "is_backgrounded": true, "task_type": "local_bash"}));
        let text = format!("Command running in background with ID: {task}.");
        self.tool_result(
            &call,
            &text,
            json!({"stdout": "", "stderr": "", "backgroundTaskId": task}),
        );
    }
}

impl Session {
    /// The whole set of live background tasks.
    fn tell_tasks(&mut self) {
        let task = |wait: &Wait| match &wait.kind {
            Kind::WakeUp { .. } => None,
            Kind::Command { task, .. } => {
                Some(json!({"task_id": task, "task_type": "local_bash", "description": "long job"}))
            }
        };
        let tasks: Vec<_> = self.waits.iter().filter_map(task).collect();
        self.out
            .emit(json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks}));
    }

    /// Waits for the next line of input, or for the end of what the session waits for: that begins a turn.
    /// Tells whether stdin goes on.
    pub(crate) fn idle(&mut self) -> bool {
        if self.waits.is_empty() {
            return match self.inbox.recv() {
                Ok(input) => {
                    drop(self.take(input));
                    true
                }
                Err(_) => false,
            };
        }
        match self.inbox.recv_timeout(limits::TOOL_POLL) {
            Ok(input) => drop(self.take(input)),
            Err(RecvTimeoutError::Timeout) => self.end_waits(),
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        true
    }

    fn end_waits(&mut self) {
        let over = self.waits.iter_mut().position(|wait| match &mut wait.kind {
            Kind::WakeUp { set, after, .. } => set.elapsed() >= *after,
            Kind::Command { child, .. } => matches!(child.try_wait(), Ok(Some(_)) | Err(_)),
        });
        let Some(at) = over else { return };
        let wait = self.waits.remove(at);
        match wait.kind {
            Kind::WakeUp { at_ms, .. } => {
                let started = protocol::lifecycle(&ids::uuid(), "started");
                let more = json!({"wakeup_source": "loop_wakeup", "scheduled_for": at_ms});
                let more = more.as_object().cloned().unwrap_or_default();
                self.out.emit(protocol::with(started, more));
            }
            Kind::Command { task, call, .. } => {
                self.out.emit(
                    json!({"type": "system", "subtype": "task_notification", "task_id": task,
                    "tool_use_id": call, "status": "completed", "summary": "long job completed"}),
                );
                self.tell_tasks();
            }
        }
        turn::run(self, vec![Incoming { uuid: None, content: json!(wait.prompt) }]);
    }

    /// At the end nothing that was started is left behind.
    pub(crate) fn drop_waits(&mut self) {
        for wait in &mut self.waits {
            if let Kind::Command { child, .. } = &mut wait.kind {
                process::end(child);
            }
        }
    }
}
