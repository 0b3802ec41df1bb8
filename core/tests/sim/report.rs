//! What a run reached: how often each rule fired. A rule that never fired proves nothing.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Default)]
pub(crate) struct Report(BTreeMap<String, u64>);

/// A rule that was reached less often than this proves little.
const REACHED_MIN: u64 = 3;

/// What an ordinary run must reach so often.
pub(crate) const MUST_REACH: &[&str] = &[
    "stamp process_exit",
    "stamp stream_end",
    "stamp stall_timeout",
    "stamp startup_ceiling",
    "stamp api_failure",
    "stamp foreign_interrupt",
    "stamp empty_turn",
    "stamp write_failed",
    "stamp while recovery is off",
    "replay a: again under its own uuid",
    "replay b: fresh under a new uuid",
    "replay c: the sentence",
    "replay d: hand-over",
    "restart response-aborted",
    "restart retry-button",
    "restart crash-resume",
    "a new day starts the budget over",
    "promotion attempts used up",
    "terminal known_terminal:billing",
    "pending auth_required",
    "pending api_error",
    "pending rate_limited",
    "status stalled",
    "response-aborted waits: Debounced",
    "response-aborted waits: FolderMissing",
    "response-aborted waits: HeldElsewhere",
    "response-aborted waits: MachineBusy",
    "response-aborted waits: GateOpen",
    "re-arm waits: Debounced",
    "re-arm waits: FolderMissing",
    "re-arm waits: HeldElsewhere",
    "re-arm waits: MachineBusy",
    "re-arm waits: RecoveryOff",
    "valve: forced replay",
    "rung 1",
    "rung 2",
    "rung 3",
    "rung 4",
    "rung 5",
    "rung 6",
    "rung 7",
    "rung 8",
    "rung 9",
    "rung 10",
    "rung 11",
    "rung 12",
    "restart re-arm",
    "ladder stopped hard_cap",
    "ladder stopped known_terminal:billing",
    "ladder stopped known_terminal:invalid_key",
    "ladder stopped nothing_to_replay",
    "ladder reset by user",
    "ladder reset by retry-button",
    "ladder reset by turn-end",
    "retry during a rung",
    "orphan retired",
    "load: saturated",
    "load: eased",
    "held elsewhere",
    "taken over",
    "not taken over",
    "a copy of a held conversation wanted",
    "a copy of a given-up session begins",
    "put away while cut off",
    "put away while it comes back",
    "started with other switches",
    "outage",
    "siege",
    "the person is away",
    "notified",
    "marker cleared: delivered",
    "conversation gone",
    "handshake: one more start",
    "launch failed",
    "card asked",
    "card kept over a dead child",
    "card kept over an app restart",
    "card answered",
    "retry accepted",
    "retry merged",
    "retry refused",
    "stop escalated",
    "stopped by the person",
    "queue held, then sent",
    "a message takes a cut-off session over",
    "answer delivered after a replay",
    "answer after the cap",
    "hidden until recovered",
    "surfaced past the cap",
    "turn by itself",
    "late answer ignored",
    "failed answer",
    "stop report lost",
    "leftovers swept",
    "stale event",
    "app crash before the commit",
    "app crash before the acts",
    "app crash between acts",
    "app crash before a spawn",
    "app crash before a line to a child",
    "app crash before a question",
    "app crash before the window is told",
    "app quit",
    "state rebuilt after a panic",
    "machine restart",
    "clock step forward",
    "clock step back",
    "machine slept",
    "summer time change",
    "local command",
    "commit refused",
    "mass start",
    "launches fail for a while",
    "the machine is crowded",
    "spawn calls take long",
    "a child vanishes",
    "liveness: a child is gone",
    "relaunch: the first hiccup",
    "relaunch: line at a tenth attempt",
    "relaunch: a look that failed",
    "relaunch: back",
    "relaunch: cannot launch",
    "relaunch: launched at last",
    "relaunch: bounded give-up",
    "relaunch: the bounded mode finds all slots taken",
    "relaunch: ends with a real error",
    "relaunch: the folder is gone meanwhile",
    "relaunch cancelled: needs_you",
    "relaunch cancelled: ended",
    "relaunch cancelled: archived",
    "relaunch cancelled: delete",
    "retry hurries a launch",
    "retry during the wait",
    "a message during the wait",
    "a setting is changed during a wait",
    "in the wait: the weather clears",
    "in the wait: the app dies",
    "in the wait: a folder vanishes",
    "in the wait: the clock is set",
    "in the wait: the machine sleeps",
    "a launch fails for good",
    "a look that is too old is taken again",
    "headroom: the line is held",
    "headroom: the patience is over",
    "context: nudged",
    "context: made to compact",
    "context: asked to finish after it",
    "context: answered after a nudge",
    "context: gave up",
    "context: no answer",
    "auto-continue: nudged",
    "line: first or second",
    "line: third or later",
    "waits: a row waits",
    "waits: the child fires",
    "waits: the app fires",
    "waits: a task ends",
    "waits: a task is lost",
    "waits: over without a turn",
    "restart waiting-hold",
];

impl Report {
    pub(crate) fn hit(&mut self, name: &str) {
        match self.0.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(name.to_string(), 1);
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Report) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    /// What should have been reached and was not, or hardly.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let times = |name: &str| self.0.get(name).copied().unwrap_or_default();
        MUST_REACH.iter().copied().filter(|name| times(name) < REACHED_MIN).collect()
    }

    pub(crate) fn print(&self) {
        for (name, count) in &self.0 {
            println!("{count:>9}  {name}");
        }
    }
}
