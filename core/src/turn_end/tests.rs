//! The outcome table row by row, and the gates over it.

mod nudges;

use super::outcome::{Context, Outcome, classify};
use super::*;
use crate::message::Origin;
use crate::stream::{RateLimit, TurnResult};
use crate::time::Mono;
use crate::turn::ErrorLine;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

fn turn() -> TurnFacts {
    TurnFacts::new(1, Some(Origin::Operator), Mono(0))
}

fn good(text: &str) -> TurnResult {
    TurnResult {
        subtype: "success".into(),
        terminal_reason: Some("completed".into()),
        stop_reason: Some("end_turn".into()),
        num_turns: 1,
        text: text.into(),
        ..TurnResult::default()
    }
}

fn bad(reason: &str, status: Option<u16>) -> TurnResult {
    TurnResult { is_error: true, terminal_reason: Some(reason.into()), status, ..good("words") }
}

fn with_error(error: &str, api_error: Option<&str>) -> TurnFacts {
    let mut facts = turn();
    facts.error = Some(ErrorLine {
        error: Some(error.into()),
        api_error: api_error.map(ToString::to_string),
        ..ErrorLine::default()
    });
    facts
}

fn words() -> String {
    "words".to_string()
}

// proves: A-06, RA-08
#[test]
fn every_row_of_the_outcome_table() {
    let plain = Context::default();
    let key = Context { api_key: true, ..plain };
    let stopping = Context { stop_asked: true, ..plain };
    let gone = Context { fresh_resume: true, transcript_exists: Some(false), ..plain };
    let there = Context { fresh_resume: true, transcript_exists: Some(true), ..plain };
    let refused = TurnResult {
        subtype: "error_during_execution".into(),
        is_error: true,
        errors: vec!["No conversation found".into()],
        ..TurnResult::default()
    };
    let mut cut = with_error("max_output_tokens", None);
    let mut cut_window = cut.clone();
    for (facts, at) in [(&mut cut, "output_limit"), (&mut cut_window, "context_window")] {
        if let Some(error) = facts.error.as_mut() {
            error.cut = Some(at.into());
        }
    }
    let mut limited = turn();
    limited.rate_limit = Some(RateLimit {
        status: "rejected".into(),
        resets_at_s: Some(1_796_049_000),
        limit: Some("five_hour".into()),
    });
    let compact = TurnResult { local_command: Some("compact".into()), ..good("") };
    let held = TurnResult { startup_failure: Some("session_held".into()), ..refused.clone() };
    let ede = TurnResult { subtype: "error_during_execution".into(), ..bad("completed", None) };
    let credit =
        TurnResult { text: "Credit balance is too low".into(), ..bad("api_error", Some(400)) };
    let pause = TurnResult { stop_reason: Some("pause_turn".into()), ..good("x") };
    let refusal = TurnResult { stop_reason: Some("refusal".into()), ..bad("api_error", None) };
    let none = "No conversation found".to_string();
    let elsewhere = Context { custom_endpoint: true, ..plain };
    let forced = |change: fn(&mut TurnFacts)| {
        let mut facts = TurnFacts::new(1, Some(Origin::AutoCommand), Mono(0));
        change(&mut facts);
        (compact.clone(), facts)
    };
    let compacted = forced(|facts| facts.compacted = true);
    let not_compacted = forced(|facts| facts.compact_failed = Some("no room".into()));
    let compact = compact.clone();

    let table = [
        (compact, turn(), plain, Outcome::LocalCommand { words: None }),
        (bad("aborted_streaming", None), turn(), stopping, Outcome::Stopped),
        (bad("aborted_tools", None), turn(), stopping, Outcome::Stopped),
        (bad("aborted_streaming", None), turn(), plain, Outcome::ForeignInterrupt),
        (held, turn(), gone, Outcome::LaunchError { words: none.clone() }),
        (refused.clone(), turn(), gone, Outcome::ConversationGone),
        (refused.clone(), turn(), there, Outcome::LaunchError { words: none.clone() }),
        (refused, turn(), plain, Outcome::LaunchError { words: none }),
        (
            bad("api_error", Some(429)),
            limited,
            plain,
            Outcome::RateLimited { resets_at: Some(Wall(1_796_049_000_000)), words: words() },
        ),
        (
            bad("api_error", Some(429)),
            turn(),
            plain,
            Outcome::RateLimited { resets_at: None, words: words() },
        ),
        (
            bad("api_error", None),
            with_error("rate_limit", Some("usage_limit_reached")),
            plain,
            Outcome::RateLimited { resets_at: None, words: words() },
        ),
        (
            bad("api_error", Some(400)),
            with_error("billing_error", None),
            plain,
            Outcome::KnownTerminal { stop: StopReason::Billing, words: words() },
        ),
        (
            credit.clone(),
            turn(),
            plain,
            Outcome::KnownTerminal { stop: StopReason::Billing, words: credit.text.clone() },
        ),
        (
            bad("api_error", Some(401)),
            turn(),
            key,
            Outcome::KnownTerminal { stop: StopReason::InvalidKey, words: words() },
        ),
        (bad("api_error", Some(401)), turn(), plain, Outcome::AuthRequired { words: words() }),
        (
            bad("api_error", None),
            with_error("authentication_failed", None),
            plain,
            Outcome::AuthRequired { words: words() },
        ),
        (
            bad("rapid_refill_breaker", None),
            turn(),
            plain,
            Outcome::OutOfRoomGiveUp { words: words() },
        ),
        (bad("blocking_limit", None), turn(), plain, Outcome::OutOfRoomGiveUp { words: words() }),
        (bad("blocking_limit", None), turn(), elsewhere, Outcome::OutOfRoom { words: words() }),
        (compacted.0, compacted.1, elsewhere, Outcome::ForcedCompact { failed: None }),
        (
            not_compacted.0,
            not_compacted.1,
            elsewhere,
            Outcome::ForcedCompact { failed: Some("no room".into()) },
        ),
        (bad("prompt_too_long", Some(400)), turn(), plain, Outcome::OutOfRoom { words: words() }),
        (bad("api_error", None), cut_window, plain, Outcome::OutOfRoom { words: words() }),
        (bad("api_error", None), cut, plain, Outcome::Unfinished),
        (pause, turn(), plain, Outcome::Unfinished),
        (bad("api_error", Some(529)), turn(), plain, Outcome::Aborted { words: words() }),
        (bad("api_error", Some(500)), turn(), plain, Outcome::Aborted { words: words() }),
        (
            bad("api_error", None),
            with_error("server_error", Some("connection_failed")),
            plain,
            Outcome::Aborted { words: words() },
        ),
        (
            bad("api_error", None),
            with_error("unknown", Some("stream_idle_timeout")),
            plain,
            Outcome::Aborted { words: words() },
        ),
        (ede, turn(), plain, Outcome::Aborted { words: words() }),
        (bad("api_error", Some(403)), turn(), plain, Outcome::ApiError { words: words() }),
        (bad("api_error", Some(404)), turn(), plain, Outcome::ApiError { words: words() }),
        (bad("api_error", Some(400)), turn(), plain, Outcome::ApiError { words: words() }),
        (bad("image_error", Some(413)), turn(), plain, Outcome::ApiError { words: words() }),
        (bad("max_turns", None), turn(), plain, Outcome::ApiError { words: words() }),
        (bad("budget_exhausted", None), turn(), plain, Outcome::ApiError { words: words() }),
        (refusal, turn(), plain, Outcome::ApiError { words: words() }),
        (bad("a_new_reason", None), turn(), plain, Outcome::ApiError { words: words() }),
        (good(" \n"), turn(), plain, Outcome::Dropped),
        (good("An answer."), turn(), plain, Outcome::Text),
    ];
    for (result, facts, context, expected) in table {
        assert_eq!(classify(&result, &facts, context), expected, "{result:?} {context:?}");
    }
}

fn frozen(outcome: Outcome, asked: Option<PendingAction>) -> Frozen {
    Frozen { turn: turn(), outcome, asked, standing: Standing::default(), wait: None }
}

fn waits(outcome: Outcome, asked: Option<PendingAction>) -> Frozen {
    let wake = crate::waiting::Wake { key: "w".into(), at: None, prompt: "p".into(), cron: None };
    let work = DeferredWork { wakes: vec![wake], tasks: vec![] };
    Frozen { wait: Some(work), ..frozen(outcome, asked) }
}

// proves: WD-02, WD-03, CS-06, TE-04
#[test]
fn a_deliberate_wait_comes_before_every_recovery_and_after_what_died() {
    let (policy, limits) = (Policy::default(), Limits::default());
    let gate = |frozen: &Frozen| dispose(frozen, &policy, &limits).0;
    let words = words();
    for waited in [
        Outcome::Text,
        Outcome::Dropped,
        Outcome::Unfinished,
        Outcome::OutOfRoom { words: words.clone() },
        Outcome::OutOfRoomGiveUp { words: words.clone() },
    ] {
        let frozen = waits(waited.clone(), None);
        let Some(work) = frozen.wait.clone() else { panic!("a wait") };
        let claimed = dispose(&frozen, &policy, &limits);
        assert_eq!(claimed, ("wait", Disposition::Wait { work }), "{waited:?}");
        // an open card is not hidden behind it
        assert_eq!(gate(&waits(waited, Some(PendingAction::Question))), "question");
    }
    for (died, by) in [
        (Outcome::RateLimited { resets_at: None, words: words.clone() }, "rate-limit"),
        (Outcome::Aborted { words: words.clone() }, "api-error"),
        (Outcome::ForeignInterrupt, "api-error"),
        (Outcome::ApiError { words: words.clone() }, "api-error"),
        (Outcome::AuthRequired { words: words.clone() }, "api-error"),
        (Outcome::KnownTerminal { stop: StopReason::Billing, words }, "api-error"),
        (Outcome::ConversationGone, "api-error"),
        (Outcome::Stopped, "finish"),
        (Outcome::LocalCommand { words: None }, "finish"),
    ] {
        assert_eq!(gate(&waits(died.clone(), None)), by, "{died:?}");
    }
}

// proves: RA-05
#[test]
fn the_gates_in_their_order() {
    let policy = Policy::default();
    let limits = Limits::default();
    let names: Vec<_> = GATES.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "rate-limit",
            "wait",
            "context-stall",
            "question",
            "api-error",
            "thinking-only-endturn-recovery",
            "auto-continue",
            "finish"
        ]
    );
    let run = |f: &Frozen| dispose(f, &policy, &limits);
    let question = Some(PendingAction::Question);
    let aborted = Outcome::Aborted { words: words() };
    assert_eq!(
        run(&frozen(aborted.clone(), None)),
        (
            "api-error",
            Disposition::Abort {
                status: Status::Error,
                cause: AbortCause::ApiFailure,
                words: Some(words())
            }
        )
    );
    assert!(matches!(
        run(&frozen(aborted, question)),
        ("question", Disposition::Finished { asked: Some(PendingAction::Question), .. })
    ));
    let limited = Outcome::RateLimited { resets_at: None, words: words() };
    assert_eq!(run(&frozen(limited, question)).0, "rate-limit");
    let billing = Outcome::KnownTerminal { stop: StopReason::Billing, words: words() };
    assert!(matches!(run(&frozen(billing, None)).1, Disposition::Terminal { .. }));
    assert_eq!(run(&frozen(Outcome::Stopped, question)).1, Disposition::Stopped);
    assert_eq!(run(&frozen(Outcome::LocalCommand { words: None }, None)).1, Disposition::AsBefore);
}

// proves: TE-01, TE-02, TE-07
#[test]
fn a_turn_without_visible_content_heals_itself_unless_switched_off() {
    let limits = Limits::default();
    let mut policy = Policy::default();
    let (gate, disposition) = dispose(&frozen(Outcome::Dropped, None), &policy, &limits);
    assert_eq!(gate, "thinking-only-endturn-recovery");
    assert_eq!(
        disposition,
        Disposition::Abort { status: Status::NeedsYou, cause: AbortCause::EmptyTurn, words: None }
    );
    policy.switches.thinking_only_endturn_recovery = true;
    let (gate, disposition) = dispose(&frozen(Outcome::Dropped, None), &policy, &limits);
    assert_eq!(gate, "finish");
    assert_eq!(
        disposition,
        Disposition::Finished { delivered: false, asked: None, nothing_said: true }
    );
}
