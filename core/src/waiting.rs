//! Deliberate waits: what a session waits for between two turns, how long that holds it, and who wakes
//! it (A-09, A-16, OD-50).
//!
//! Values and pure rules. What the stream shows of background work, and the timers, are the reducer's.

use crate::limits::Limits;
use crate::session::{SessionRow, Status};
use crate::stream::WakeSet;
use crate::time::{Millis, Wall};
use crate::verdict::{Verdict, Why};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a background task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A Bash command, begun in the background or moved there.
    Command,
    /// A Monitor: each batch of its output begins a turn.
    Monitor,
    /// A sub-agent.
    Agent,
}

/// A background task that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitTask {
    /// Its id in the stream.
    pub id: String,
    /// What it is.
    pub kind: TaskKind,
    /// What it says of itself, in one short line.
    pub name: String,
}

/// A wake-up that was set, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// The call that set it, or the id of the cron.
    pub key: String,
    /// When it is due; `None` for a cron whose next time only the CLI knows.
    pub at: Option<Wall>,
    /// What is said then, bounded.
    pub prompt: String,
    /// It is a cron.
    pub cron: Option<Cron>,
}

/// How a cron goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cron {
    /// It fires again and again.
    pub recurring: bool,
    /// The time between two of its firings, where its rule is plain enough to tell.
    pub every_ms: Option<Millis>,
}

/// What a session waits for: the contract's `session.deferredWork` (WD-02). A durable fact of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeferredWork {
    /// Wake-ups to come: kept from when they were set until they fire, whatever the row is meanwhile.
    pub wakes: Vec<Wake>,
    /// Background tasks that hold the row in `waiting`.
    pub tasks: Vec<WaitTask>,
}

impl DeferredWork {
    /// Nothing is waited for.
    pub fn is_empty(&self) -> bool {
        self.wakes.is_empty() && self.tasks.is_empty()
    }

    /// The earliest time that is known.
    pub fn next_at(&self) -> Option<Wall> {
        self.wakes.iter().filter_map(|wake| wake.at).min()
    }
}

impl Wake {
    /// It fires again and again.
    pub fn recurs(&self) -> bool {
        self.cron.is_some_and(|cron| cron.recurring)
    }

    /// The same cron after a firing; `None` when it was the last.
    #[must_use]
    pub fn after_firing(&self, now: Wall) -> Option<Wake> {
        let cron = self.cron.filter(|cron| cron.recurring)?;
        let every = cron.every_ms.and_then(|every| i64::try_from(every).ok());
        let next = self.at.zip(every.filter(|every| *every > 0)).map(|(at, every)| {
            let passed = now.since(at).max(0) / every;
            Wall(at.0.saturating_add(every.saturating_mul(passed.saturating_add(1))))
        });
        Some(Wake { at: next, ..self.clone() })
    }
}

/// Changes what the row waits for; nothing left is no wait.
pub fn edit(row: &mut SessionRow, change: impl FnOnce(&mut DeferredWork)) {
    let mut work = row.deferred_work.take().unwrap_or_default();
    change(&mut work);
    row.deferred_work = Some(work).filter(|work| !work.is_empty());
}

/// How long something holds a row in `waiting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldFor {
    /// No longer than this.
    AtMost(Millis),
    /// As long as it lasts.
    Open,
}

/// What a wait is decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldFacts<'a> {
    /// The turn delivered its final message behind the marker.
    pub marked: bool,
    /// How long the wake-ups ahead hold it, if there is one.
    pub wakes: Option<HoldFor>,
    /// The background tasks that run.
    pub tasks: &'a [WaitTask],
    /// How long ago the turn ended.
    pub since_end: Millis,
}

/// Whether a session whose turn is over deliberately waits, and how long that may last.
pub fn hold(facts: HoldFacts<'_>, limits: &Limits) -> Verdict<HoldFor> {
    // rule: A-16, WD-01
    if facts.marked {
        return Verdict::NotMine(Why::Delivered);
    }
    let holds = facts.tasks.iter().map(|task| match task.kind {
        TaskKind::Monitor | TaskKind::Agent => HoldFor::Open,
        TaskKind::Command => {
            HoldFor::AtMost(limits.wait_command_ms.saturating_sub(facts.since_end))
        }
    });
    let longest = holds.chain(facts.wakes).max_by_key(|hold| match hold {
        HoldFor::AtMost(left) => *left,
        HoldFor::Open => Millis::MAX,
    });
    match longest {
        None => Verdict::NotMine(Why::NothingAwaited),
        Some(HoldFor::AtMost(0)) => Verdict::NotMine(Why::HoldOver),
        Some(hold) => Verdict::Act(hold),
    }
}

/// What is known of a wake-up that is due, beside its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeFacts {
    /// A child takes messages.
    pub child_up: bool,
    /// That child set the wake-up itself, or has taken the cron over: it fires it.
    pub owned: bool,
    /// So much time has passed since it was due that the child will not fire it any more.
    pub late: bool,
    /// A message of the person waits to be sent: it takes over.
    pub person_queued: bool,
    /// A wake-up waits in the queue already.
    pub wakeup_queued: bool,
    /// A launch is under way, or the old child is not gone yet.
    pub restart_under_way: bool,
    /// Until when an automatic restart is refused.
    pub debounced: Option<Wall>,
}

/// Whether the app sends a wake-up that is due: only when the child that owned it is gone, and never
/// twice. `GiveUp`: this firing is let go.
pub fn wake_due(row: &SessionRow, wake: &Wake, facts: WakeFacts) -> Verdict<()> {
    // rule: A-09, WD-03
    let deliberate = row.is_gone() || matches!(row.status, Status::Paused | Status::Ended);
    if deliberate {
        return Verdict::GiveUp(Why::Deliberate);
    }
    if facts.person_queued {
        return Verdict::GiveUp(Why::UserFacing);
    }
    if facts.child_up && facts.owned {
        return if facts.late {
            Verdict::GiveUp(Why::ChildFires)
        } else {
            Verdict::Wait(Why::ChildFires)
        };
    }
    if facts.child_up && wake.cron.is_some() && !facts.late {
        // whether a resumed CLI takes this cron over is not known: it has the first word
        return Verdict::Wait(Why::ChildFires);
    }
    if facts.wakeup_queued {
        return if wake.recurs() {
            Verdict::GiveUp(Why::WakeupQueued)
        } else {
            Verdict::Wait(Why::WakeupQueued)
        };
    }
    if facts.restart_under_way {
        return Verdict::Wait(Why::RestartUnderWay);
    }
    if let Some(until) = facts.debounced.filter(|_| !facts.child_up) {
        return Verdict::Wait(Why::Debounced(until));
    }
    Verdict::Act(())
}

/// The time between two firings of a cron, for the rules whose firings are evenly spaced.
pub fn cron_period_ms(rule: &str) -> Option<Millis> {
    const MINUTE: Millis = 60_000;
    let mut fields = rule.split_whitespace();
    let (minute, hour) = (fields.next()?, fields.next()?);
    let rest: Vec<&str> = fields.collect();
    if rest != ["*", "*", "*"] {
        return None;
    }
    let number = |text: &str, below: Millis| text.parse().ok().filter(|n: &Millis| *n < below);
    let step = |text: &str, of: Millis| {
        let step = text.strip_prefix("*/")?.parse().ok()?;
        (step > 0 && of.is_multiple_of(step)).then_some(step)
    };
    match (minute, hour) {
        ("*", "*") => Some(MINUTE),
        (minute, "*") if number(minute, 60).is_some() => Some(60 * MINUTE),
        (minute, "*") => step(minute, 60).map(|step| step * MINUTE),
        (minute, hour) if number(minute, 60).is_some() => {
            let days = number(hour, 24).map(|_| 24);
            days.or_else(|| step(hour, 24)).map(|hours| hours * 60 * MINUTE)
        }
        (_, _) => None,
    }
}

/// A tool call that sets or takes back a wake-up, until its result is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlarmCall {
    /// `ScheduleWakeup`.
    Wakeup {
        /// What is said then.
        prompt: String,
    },
    /// `CronCreate`.
    Cron {
        /// What is said then.
        prompt: String,
        /// The time between two firings, if it can be told.
        every_ms: Option<Millis>,
    },
    /// `CronDelete`.
    CronDelete {
        /// Which.
        id: String,
    },
}

impl AlarmCall {
    /// Reads a tool call; `None` for every other tool.
    pub fn read(tool: &str, input: &Value, limits: &Limits) -> Option<AlarmCall> {
        let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let prompt = || bounded(text("prompt"), limits.wake_prompt_max_bytes);
        match tool {
            "ScheduleWakeup" => Some(AlarmCall::Wakeup { prompt: prompt() }),
            "CronCreate" => {
                let every_ms = cron_period_ms(text("cron"));
                Some(AlarmCall::Cron { prompt: prompt(), every_ms })
            }
            "CronDelete" => Some(AlarmCall::CronDelete { id: text("id").into() }),
            _ => None,
        }
    }
}

/// What became of a call about wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// A wake-up is set.
    Set(Wake),
    /// The cron with this id is no more.
    TakenBack(String),
    /// It was done, and no time can be read from its result.
    Unreadable,
}

/// What the result of a call about wake-ups means. `set`: the alarm its result tells of.
pub fn alarm(call_id: &str, call: AlarmCall, set: Option<&WakeSet>) -> Alarm {
    let (prompt, cron, key) = match call {
        AlarmCall::CronDelete { id } => return Alarm::TakenBack(id),
        AlarmCall::Wakeup { prompt } => (prompt, None, call_id.into()),
        AlarmCall::Cron { prompt, every_ms } => {
            let recurring = set.is_some_and(|set| set.recurring);
            let id = set.and_then(|set| set.cron.clone()).filter(|id| !id.is_empty());
            (prompt, Some(Cron { recurring, every_ms }), id.unwrap_or(call_id.into()))
        }
    };
    match set {
        Some(set) => Alarm::Set(Wake { key, at: Some(Wall(set.at_ms)), prompt, cron }),
        None => Alarm::Unreadable,
    }
}

/// The first line of a task's own words, short.
pub fn task_name(words: Option<&str>) -> String {
    const CHARS: usize = 30;
    let line = words.unwrap_or_default().lines().map(str::trim).find(|line| !line.is_empty());
    let line = crate::prompt::cut_markers(line.unwrap_or_default());
    let shown = |c: &char| !c.is_control();
    let line: String = line.trim().chars().filter(shown).take(CHARS + 1).collect();
    if line.chars().count() <= CHARS {
        return line;
    }
    line.chars().take(CHARS - 1).chain(core::iter::once('…')).collect()
}

fn bounded(text: &str, max: usize) -> String {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().trim().into()
}

#[cfg(test)]
mod tests;
