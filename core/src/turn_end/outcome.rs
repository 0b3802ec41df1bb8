//! The outcome of a turn, read from fields, never from prose (A-06, contract section 5.3).

use crate::message::Origin;
use crate::session::StopReason;
use crate::stream::{RateLimit, TurnResult};
use crate::time::Wall;
use crate::turn::{ErrorLine, TurnFacts};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What the supervisor knows beside the turn's own facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Our own Stop or Send now is open.
    pub stop_asked: bool,
    /// The child was launched on an existing conversation and no turn of it has ended yet.
    pub fresh_resume: bool,
    /// The CLI still has the conversation; `None` when nobody could tell.
    pub transcript_exists: Option<bool>,
    /// The account authenticates with an API key (else with a login).
    pub api_key: bool,
    /// Another engine than Claude answers: a full context is compacted for it.
    pub custom_endpoint: bool,
}

/// What a turn's end is. First match of the table wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// One of the CLI's local commands.
    LocalCommand {
        /// Its output or error, if it said any.
        words: Option<String>,
    },
    /// The `/compact` that the app forced (CS-09).
    ForcedCompact {
        /// Why nothing was compacted, if it was not.
        failed: Option<String>,
    },
    /// Our own Stop or Send now.
    Stopped,
    /// Somebody else interrupted the turn.
    ForeignInterrupt,
    /// The child refused to start.
    LaunchError {
        /// Its words.
        words: String,
    },
    /// The CLI no longer has the conversation we resumed.
    ConversationGone,
    /// The usage limit.
    RateLimited {
        /// When it resets, if the stream said so.
        resets_at: Option<Wall>,
        /// The words.
        words: String,
    },
    /// Out of credit, or an invalid key.
    KnownTerminal {
        /// Which.
        stop: StopReason,
        /// The words.
        words: String,
    },
    /// The login must be renewed.
    AuthRequired {
        /// The words.
        words: String,
    },
    /// No room, and a continue cannot help.
    OutOfRoomGiveUp {
        /// The words.
        words: String,
    },
    /// No room.
    OutOfRoom {
        /// The words.
        words: String,
    },
    /// A transient failure of the API.
    Aborted {
        /// The words.
        words: String,
    },
    /// The reply was too long for one answer.
    Unfinished,
    /// The API refused.
    ApiError {
        /// The words.
        words: String,
    },
    /// Nothing visible was said.
    Dropped,
    /// Text was said.
    Text,
}

/// Every `terminal_reason` that the table knows, or that says nothing beside the other fields.
const TERMINAL_REASONS: &[&str] = &[
    "aborted_streaming",
    "aborted_tools",
    "api_error",
    "blocking_limit",
    "budget_exhausted",
    "completed",
    "image_error",
    "max_turns",
    "prompt_too_long",
    "rapid_refill_breaker",
];
/// The same of the assistant line's `error`.
const ERRORS: &[&str] = &[
    "authentication_failed",
    "billing_error",
    "invalid_request",
    "max_output_tokens",
    "overloaded",
    "rate_limit",
    "server_error",
    "unknown",
];
/// The same of its `api_error`.
const API_ERRORS: &[&str] = &[
    "autocompact_thrashing",
    "connection_failed",
    "max_output_tokens",
    "stream_idle_timeout",
    "usage_limit_reached",
];

/// Classifies the end of a turn. An unknown value with `is_error` is an API error, without it the text
/// decides.
pub fn classify(result: &TurnResult, turn: &TurnFacts, context: Context) -> Outcome {
    // rule: A-06
    let default = ErrorLine::default();
    let error = turn.error.as_ref().unwrap_or(&default);
    let reason = result.terminal_reason.as_deref();
    let status = result.status.or(error.status);
    let words = || words_of(result, error);

    let interrupted = matches!(reason, Some("aborted_streaming" | "aborted_tools"));
    if turn.origin == Some(Origin::AutoCommand) && !interrupted {
        return Outcome::ForcedCompact { failed: compact_failed(result, turn) };
    }
    if result.local_command.is_some() {
        let text = result.text.trim();
        return Outcome::LocalCommand { words: (!text.is_empty()).then(|| text.to_string()) };
    }
    if interrupted {
        return if context.stop_asked { Outcome::Stopped } else { Outcome::ForeignInterrupt };
    }
    if result.startup_failure.is_some() {
        return Outcome::LaunchError { words: words() };
    }
    let refused_start = result.is_error
        && result.num_turns == 0
        && result.subtype == "error_during_execution"
        && reason.is_none();
    if refused_start {
        return if context.fresh_resume && context.transcript_exists == Some(false) {
            Outcome::ConversationGone
        } else {
            Outcome::LaunchError { words: words() }
        };
    }
    if let Some(limited) = rate_limited(turn, error, status, result.is_error) {
        let resets_at = limited.and_then(|limit| limit.resets_at_s).map(|s| Wall(s * 1000));
        return Outcome::RateLimited { resets_at, words: words() };
    }
    if !result.is_error {
        return not_an_error(result, turn);
    }
    failed(result, error, status, reason, context, words())
}

/// What the fields of a turn hold that became an API error because no row of the table knows it: one
/// line for the log.
pub fn unknown_values(result: &TurnResult, turn: &TurnFacts, outcome: &Outcome) -> Option<String> {
    // rule: A-06
    if !result.is_error || !matches!(outcome, Outcome::ApiError { .. }) {
        return None;
    }
    let line = turn.error.as_ref();
    let status = result.status.or(line.and_then(|line| line.status));
    let fields = [
        ("terminal_reason", result.terminal_reason.as_deref(), TERMINAL_REASONS),
        ("error", line.and_then(|line| line.error.as_deref()), ERRORS),
        ("api_error", line.and_then(|line| line.api_error.as_deref()), API_ERRORS),
    ];
    let odd = fields.iter().filter_map(|(name, value, known)| {
        let value = value.filter(|value| !known.contains(value))?;
        Some(format!("{name} {:?}", shorten(value)))
    });
    let odd_status = status.filter(|status| !(400..600).contains(status));
    let odd: Vec<String> = odd.chain(odd_status.map(|status| format!("status {status}"))).collect();
    (!odd.is_empty()).then(|| format!("a failed turn with unknown values: {}", odd.join(", ")))
}

/// Why the app's own `/compact` compacted nothing, if it did not.
fn compact_failed(result: &TurnResult, turn: &TurnFacts) -> Option<String> {
    if turn.compacted && turn.compact_failed.is_none() && !result.is_error {
        return None;
    }
    let words = turn.compact_failed.as_deref().filter(|words| !words.trim().is_empty());
    Some(match words {
        Some(words) => shorten(words),
        None => text_or(result, "The context could not be compacted."),
    })
}

fn rate_limited<'a>(
    turn: &'a TurnFacts,
    error: &ErrorLine,
    status: Option<u16>,
    is_error: bool,
) -> Option<Option<&'a RateLimit>> {
    let limit = turn.rate_limit.as_ref();
    let said = error.api_error.as_deref() == Some("usage_limit_reached") || status == Some(429);
    ((is_error && said) || limit.is_some()).then_some(limit)
}

fn not_an_error(result: &TurnResult, turn: &TurnFacts) -> Outcome {
    match result.stop_reason.as_deref() {
        Some("pause_turn") => return Outcome::Unfinished,
        Some("refusal") => {
            return Outcome::ApiError { words: text_or(result, "The model refused.") };
        }
        Some(_) | None => {}
    }
    let blank = result.text.trim().is_empty();
    if blank && !turn.delivered() { Outcome::Dropped } else { Outcome::Text }
}

fn failed(
    result: &TurnResult,
    error: &ErrorLine,
    status: Option<u16>,
    reason: Option<&str>,
    context: Context,
    words: String,
) -> Outcome {
    let coarse = error.error.as_deref();
    let fine = error.api_error.as_deref();
    // rule: RA-08
    if coarse == Some("billing_error") || is_out_of_credit(status, &words) {
        return Outcome::KnownTerminal { stop: StopReason::Billing, words };
    }
    if status == Some(401) || (coarse == Some("authentication_failed") && status.is_none()) {
        return if context.api_key {
            Outcome::KnownTerminal { stop: StopReason::InvalidKey, words }
        } else {
            Outcome::AuthRequired { words }
        };
    }
    match reason {
        // rule: A-25
        Some("blocking_limit") if !context.custom_endpoint => {
            return Outcome::OutOfRoomGiveUp { words };
        }
        Some("rapid_refill_breaker") => return Outcome::OutOfRoomGiveUp { words },
        Some("prompt_too_long" | "blocking_limit") => return Outcome::OutOfRoom { words },
        Some("image_error" | "max_turns" | "budget_exhausted") => {
            return Outcome::ApiError { words };
        }
        Some("completed") if result.subtype == "error_during_execution" => {
            return Outcome::Aborted { words };
        }
        Some(_) | None => {}
    }
    let too_long = coarse == Some("max_output_tokens") || fine == Some("max_output_tokens");
    if too_long && error.cut.as_deref() == Some("context_window") {
        return Outcome::OutOfRoom { words };
    }
    if too_long {
        return Outcome::Unfinished;
    }
    if result.stop_reason.as_deref() == Some("refusal") {
        return Outcome::ApiError { words };
    }
    let transient = match status {
        Some(status) => status >= 500,
        None => {
            coarse == Some("server_error")
                || matches!(fine, Some("connection_failed" | "stream_idle_timeout"))
        }
    };
    if transient { Outcome::Aborted { words } } else { Outcome::ApiError { words } }
}

/// The API says "out of credit" as an ordinary 400; its fixed text is part of the one table (OD-21).
fn is_out_of_credit(status: Option<u16>, words: &str) -> bool {
    status == Some(400) && words.contains("Credit balance is too low")
}

fn words_of(result: &TurnResult, error: &ErrorLine) -> String {
    let first = [result.text.as_str(), error.text.as_str()]
        .into_iter()
        .chain(result.errors.iter().map(String::as_str))
        .map(str::trim)
        .find(|text| !text.is_empty());
    let fallback = result.startup_failure.as_deref().unwrap_or("The CLI gave no reason.");
    shorten(first.unwrap_or(fallback))
}

fn text_or(result: &TurnResult, fallback: &str) -> String {
    let text = result.text.trim();
    shorten(if text.is_empty() { fallback } else { text })
}

/// Words from outside are kept to one line of at most 300 characters.
pub fn shorten(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= 300 {
        return line.to_string();
    }
    line.chars().take(299).chain(core::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Origin;
    use crate::time::Mono;

    fn failed(reason: &str, status: Option<u16>, error: Option<(&str, &str)>) -> Option<String> {
        let mut turn = TurnFacts::new(1, Some(Origin::Operator), Mono(0));
        turn.error = error.map(|(error, api_error)| ErrorLine {
            error: Some(error.into()),
            api_error: Some(api_error.into()),
            ..ErrorLine::default()
        });
        let result = TurnResult {
            is_error: true,
            terminal_reason: Some(reason.into()),
            status,
            num_turns: 1,
            ..TurnResult::default()
        };
        let outcome = classify(&result, &turn, Context::default());
        let unknown = unknown_values(&result, &turn, &outcome);
        let fine = TurnResult { is_error: false, ..result };
        assert_eq!(unknown_values(&fine, &turn, &outcome), None);
        unknown
    }

    // proves: A-06
    #[test]
    fn values_that_no_row_knows_are_an_api_error_and_named_in_one_line() {
        assert_eq!(failed("api_error", Some(404), None), None);
        assert_eq!(
            failed("api_error", Some(529), Some(("server_error", "connection_failed"))),
            None
        );
        assert_eq!(failed("image_error", None, Some(("unknown", "usage_limit_reached"))), None);
        // a row that knows one of the values has decided
        assert_eq!(failed("dancing", Some(529), Some(("odd", "news"))), None);
        let all = failed("dancing", Some(302), Some(("odd\nsecond line", "news")));
        let line = "a failed turn with unknown values: terminal_reason \"dancing\", error \"odd\", \
                    api_error \"news\", status 302";
        assert_eq!(all.as_deref(), Some(line));
        let long = failed(&"x".repeat(10_000), None, None).map(|line| line.chars().count());
        assert!(long.is_some_and(|length| length < 400), "{long:?}");
    }
}
