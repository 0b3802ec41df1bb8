//! How full the model's context is: one reading for the meter, the warnings and the decision at a
//! turn's end (CW-01).

use crate::stream::{PartialKind, StreamEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// From here on the context is getting full, in per cent (OD-42).
pub const WARN_PERCENT: u64 = 75;
/// From here on a turn may have run out of room, in per cent (CS-02).
pub const CONTEXT_STALL_RECOVER_PERCENT: u64 = 90;

/// Tokens in the model's context, and how many it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    /// Tokens that are in it.
    pub tokens: u64,
    /// Tokens that it holds; never 0.
    pub window: u64,
}

/// How a usage is shown (CW-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextLevel {
    /// Plenty of room.
    Calm,
    /// Getting full.
    Amber,
    /// A stall is near.
    Red,
}

impl ContextUsage {
    /// Whether the context is this full or fuller. Nothing is rounded.
    pub fn at_least(self, percent: u64) -> bool {
        // rule: CS-02
        u128::from(self.tokens) * 100 >= u128::from(percent) * u128::from(self.window)
    }

    /// Whole per cent, rounded down, for display.
    pub fn percent(self) -> u64 {
        let percent = u128::from(self.tokens) * 100 / u128::from(self.window.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }

    /// How it is shown.
    pub fn level(self) -> ContextLevel {
        // rule: CW-03
        if self.at_least(CONTEXT_STALL_RECOVER_PERCENT) {
            ContextLevel::Red
        } else if self.at_least(WARN_PERCENT) {
            ContextLevel::Amber
        } else {
            ContextLevel::Calm
        }
    }
}

/// What each source last said of a session's context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextReading {
    /// The CLI's answer to `get_context_usage`, until the next message.
    told: Option<ContextUsage>,
    /// Input, cache reads and cache writes of the last main-thread message.
    seen: Option<u64>,
    /// The window as the last result or the endpoint named it.
    window: Option<u64>,
    /// The history was replaced, and no message has come since: what was read is of another one.
    cleared: bool,
}

impl ContextReading {
    /// A reading that starts from what the row remembers.
    pub fn remembered(usage: Option<ContextUsage>) -> ContextReading {
        ContextReading {
            told: None,
            seen: usage.map(|usage| usage.tokens),
            window: usage.map(|usage| usage.window),
            cleared: false,
        }
    }

    /// Another conversation begins: what was read is of the one before it.
    pub fn forget(&mut self) {
        *self = ContextReading { window: self.window, ..ContextReading::default() };
    }

    /// The window, where the reading does not know it from the CLI's answer.
    pub fn set_window(&mut self, window: Option<u64>) {
        self.window = window.filter(|window| *window > 0).or(self.window);
    }

    /// Takes one event in.
    pub fn observe(&mut self, event: &StreamEvent) {
        // rule: A-08, CW-02
        if let StreamEvent::Partial(partial) = event
            && let (None, PartialKind::MessageStart { context_tokens }) =
                (&partial.parent, &partial.kind)
        {
            self.message(*context_tokens);
        }
        if let StreamEvent::Assistant(line) = event
            && line.parent.is_none()
            && !line.synthetic
        {
            self.message(line.context_tokens);
        }
        let replaced = matches!(
            event,
            StreamEvent::CompactBoundary { .. } | StreamEvent::ConversationReset { .. }
        );
        if replaced {
            self.told = None;
            self.seen = None;
            self.cleared = true;
        }
    }

    fn message(&mut self, tokens: u64) {
        if tokens == 0 || self.seen == Some(tokens) {
            return;
        }
        self.told = None;
        self.seen = Some(tokens);
        self.cleared = false;
    }

    /// The CLI's answer to `get_context_usage`. An answer of another shape says nothing.
    pub fn answered(&mut self, answer: &Value) {
        // rule: A-08
        let number = |key| answer.get(key).and_then(Value::as_u64);
        let window = number("rawMaxTokens").filter(|window| *window > 0);
        self.told = number("totalTokens")
            .zip(window)
            .map(|(tokens, window)| ContextUsage { tokens, window });
    }
}

/// How full the context is by all that is known: the larger of what the CLI counted and what its last
/// message carried, never its own rounded percentage. `None` is unknown: nothing was read yet, or the
/// history was replaced and no message has come since.
pub fn resolve_context_warning_usage(reading: &ContextReading) -> Option<ContextUsage> {
    // rule: CW-01, CW-02, A-08
    if reading.cleared {
        return None;
    }
    let told = reading.told;
    let tokens = told.map(|told| told.tokens).max(reading.seen)?;
    let window = told.map(|told| told.window).or(reading.window)?;
    Some(ContextUsage { tokens, window })
}

#[cfg(test)]
mod tests;
