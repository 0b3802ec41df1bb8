//! Who alone may do a thing: count a replay, give a session up, write to an agent. Reads sources as text.

use super::{expect_none, sources};
use crate::code::{code_of, holds};

/// Scenarios may look at everything.
const TESTS: &str = "core/src/supervisor/tests";

/// Every place outside the owners whose code holds the name, and outside the scenarios. An owner that
/// ends in `/` is a folder.
fn strays(rules: &[(&str, &[&str])]) -> Vec<String> {
    let mut places = Vec::new();
    for (path, text) in sources(&["core/src", "src-tauri", "ui/src"]) {
        let strange = |(name, owners): &&(&str, &[&str])| {
            let owned =
                |owner: &&str| path == **owner || owner.ends_with('/') && path.starts_with(*owner);
            text.contains(name.trim_end_matches('*')) && !owners.iter().any(owned)
        };
        let names: Vec<_> = rules.iter().filter(strange).map(|(name, _)| *name).collect();
        if names.is_empty() || path.starts_with(TESTS) {
            continue;
        }
        for (number, line) in code_of(&text).lines().enumerate() {
            if names.iter().any(|name| holds(line, name)) {
                places.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    places
}

// proves: SC-18
#[test]
fn the_daily_count_has_one_owner() {
    // the row and its columns; the counting; its charge, reset and refund
    let count = &[
        "core/src/session.rs",
        "core/src/recovery/attempts.rs",
        "core/src/supervisor/scan.rs",
        "core/src/supervisor/sending.rs",
        "core/src/supervisor/replaying.rs",
        "src-tauri/supervise/store/",
    ];
    expect_none(
        strays(&[
            ("retry_attempts", count),
            ("retry_day", count),
            (
                "next_attempt",
                &["core/src/recovery/attempts.rs", "core/src/recovery/aborted_scan.rs"],
            ),
            (
                "reset_budget",
                &[
                    "core/src/supervisor/sending.rs",
                    "core/src/supervisor/retry.rs",
                    "core/src/supervisor/workers.rs",
                ],
            ),
            ("scan_tick", &["core/src/supervisor/scan.rs", "core/src/supervisor/timers.rs"]),
            (
                "force_restart",
                &[
                    "core/src/supervisor/retry.rs",
                    "core/src/supervisor/commands.rs",
                    "core/src/supervisor/held.rs",
                ],
            ),
        ]),
        "leave it to the scan, to the reset by a message, or to the Retry command: the count is \
         charged in supervisor/scan.rs and starts over in supervisor/sending.rs",
    );
}

// proves: SC-26
#[test]
fn cap_and_cadence_are_constants_that_nobody_else_sets() {
    // where they are, who reads them, and the short ones of a rehearsal
    let cap = &["core/src/limits.rs", "core/src/recovery/aborted_scan.rs", "src-tauri/supervise/"];
    let cadence = &[
        "core/src/limits.rs",
        "core/src/supervisor/scan.rs",
        "core/src/supervisor/ladder.rs",
        "src-tauri/supervise/",
    ];
    expect_none(
        strays(&[("daily_attempt_cap", cap), ("scan_interval_ms", cadence)]),
        "take it from `Limits`: no session, project or setting has a cap or a cadence of its own",
    );
}

// proves: DB-05
#[test]
fn one_function_promotes_a_session_whose_attempts_are_used_up() {
    // the state itself is made in one file, by `give_up` and by a rung that is taken back
    let ladder = "core/src/supervisor/ladder.rs";
    let mut others = Vec::new();
    for (path, text) in sources(&["core/src"]) {
        if path == ladder || path.starts_with(TESTS) || !text.contains("RecoveryFailed") {
            continue;
        }
        for (number, line) in code_of(&text).lines().enumerate() {
            if holds(line, "PendingAction::RecoveryFailed") && gives(line) {
                others.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    expect_none(others, "call State::promote, or State::give_up where a turn ends");
    let scan = "core/src/supervisor/scan.rs";
    let (turn_end, replaying) =
        ("core/src/supervisor/turn_end.rs", "core/src/supervisor/replaying.rs");
    let callers = &[ladder, scan, turn_end, replaying];
    expect_none(
        strays(&[("give_up", callers)]),
        "call State::promote: it looks whether the row is still cut off",
    );
    assert_eq!(code(scan).matches("give_up(").count(), 1, "the scan promotes in `promote` alone");
}

/// The line makes a state of a row, it does not ask for one.
fn gives(line: &str) -> bool {
    let made = ["pending = Some(", ".1 = Some("];
    line.trim().starts_with("let to") || made.iter().any(|made| line.contains(made))
}

// proves: PR-09
#[test]
fn one_function_writes_messages_to_an_agent() {
    // a line has an origin by its type; who makes the act, and who makes its bytes, is one place each
    let shell = &["src-tauri/supervise/effects.rs", "src-tauri/supervise/effects/"];
    expect_none(
        strays(&[
            ("Act::Write", &["core/src/supervisor/sending.rs", shell[0], shell[1]]),
            ("user_line", &["core/src/stream/", shell[0]]),
        ]),
        "call State::write_line: it alone writes to a child, and the turn is opened before it",
    );
    let times = |path: &str, name: &str| code(path).matches(name).count();
    assert_eq!(times("core/src/supervisor/sending.rs", "Act::Write {"), 1);
    assert_eq!(times("src-tauri/supervise/effects.rs", "user_line("), 1);
}

#[test]
fn every_replay_is_planned_in_one_place() {
    let planner = &["core/src/recovery/replay_plan.rs", "core/src/supervisor/replaying.rs"];
    expect_none(
        strays(&[("replay_plan(*", planner)]),
        "call State::replay with a source: it alone plans",
    );
    assert_eq!(code("core/src/supervisor/replaying.rs").matches(" replay_plan(").count(), 1);
}

fn code(path: &str) -> String {
    let sources = sources(&["core", "src-tauri"]);
    code_of(&sources[path])
}
