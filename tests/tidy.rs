//! The house rules that no compiler checks: who may import whom, where clocks, SQL, terminals,
//! Tauri and the browser may occur, how files begin and how long they get.
//!
//! Reads sources and manifests as text; never builds or runs anything of the project. Comments,
//! string literals and inline test modules are not code here. A failure names each place as
//! file:line and says what to do.

#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/marks.rs"]
mod marks;
#[path = "tidy/owners.rs"]
mod owners;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use code::{code_of, holds};

/// Lines a source file may have.
const MAX_LINES: usize = 450;

/// Where this project's own sources are.
const SOURCES: [&str; 6] = ["benches", "core", "src-tauri", "ui", "tests", "xtask"];

// ---------------------------------------------------------------- the checks

#[test]
fn core_depends_on_serde_alone() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let core = packages.iter().find(|package| package["name"] == "omniscio-core").unwrap();
    let needed = core["dependencies"].as_array().unwrap();
    let needed: BTreeSet<_> = needed
        .iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        needed,
        BTreeSet::from(["serde", "serde_json"]),
        "core/Cargo.toml: the rules may depend on these two only; what needs more belongs into \
         src-tauri/supervise"
    );
}

#[test]
fn core_has_no_std() {
    let lib = fs::read_to_string(root().join("core/src/lib.rs")).unwrap();
    assert!(
        code_of(&lib).lines().any(|line| line.trim() == "#![no_std]"),
        "core/src/lib.rs: put `#![no_std]` back; the rules have no clock, file, thread or network"
    );
}

#[test]
fn the_clock_is_read_in_one_file() {
    let clocks = ["Instant::now", "SystemTime::now", "Zoned::now", "Timestamp::now"];
    // the stand-in CLI is a program of its own, so it has its own one place
    let allowed = ["src-tauri/supervise/clock.rs", "src-tauri/bin/fake/clock.rs"];
    expect_none(
        find(&["core/src", "src-tauri", "ui/src"], &clocks, &allowed),
        "take `Now` as an argument: the clock is read in src-tauri/supervise/clock.rs only",
    );
}

#[test]
fn sql_is_in_the_store() {
    let store = ["src-tauri/supervise/store/", "src-tauri/bin/triage_aborted_sessions.rs"];
    expect_none(
        find(&["core", "src-tauri", "ui"], &["rusqlite"], &store),
        "ask a function of src-tauri/supervise/store/: SQL is written there only",
    );
}

#[test]
fn terminals_are_in_one_file() {
    expect_none(
        find(&["core", "src-tauri", "ui"], &["portable_pty"], &["src-tauri/supervise/pty.rs"]),
        "use src-tauri/supervise/pty.rs: it alone opens terminals",
    );
}

#[test]
fn unsafe_code_is_in_one_file() {
    let allowed = ["src-tauri/supervise/pty.rs", "tests/support/"];
    expect_none(
        find(&SOURCES, &["unsafe", "unsafe_code"], &allowed),
        "use src-tauri/supervise/pty.rs: it alone holds unsafe code",
    );
}

#[test]
fn no_test_is_switched_off() {
    expect_none(
        find(&SOURCES, &["#[ignore*"], &[]),
        "repair the test or remove it with its reason: none is ignored",
    );
}

#[test]
fn tauri_is_in_the_window_half() {
    let roots =
        ["src-tauri/window/", "src-tauri/lib.rs", "src-tauri/main.rs", "src-tauri/build.rs"];
    expect_none(
        find(&["core", "src-tauri", "ui"], &["tauri::", "tauri_*"], &roots),
        "move it into src-tauri/window/: the supervisor also runs without a window",
    );
}

#[test]
fn the_browser_is_reached_through_the_bridge() {
    expect_none(
        find(&["core", "src-tauri", "ui"], &["wasm_bindgen*"], &["ui/src/bridge.rs"]),
        "add a function to ui/src/bridge.rs: it alone uses wasm_bindgen",
    );
}

#[test]
fn durations_are_limits() {
    let constructors: Vec<String> = ["nanos", "micros", "millis", "secs", "mins", "hours"]
        .iter()
        .flat_map(|unit| (0..10).map(move |digit| format!("Duration::from_{unit}({digit}*")))
        .chain((0..10).map(|digit| format!("Duration::from_secs_f64({digit}*")))
        .collect();
    let constructors: Vec<&str> = constructors.iter().map(String::as_str).collect();
    expect_none(
        find(&["core/src", "src-tauri/supervise"], &constructors, &["core/src/limits.rs"]),
        "give the duration a name, a unit and a contract id in core/src/limits.rs",
    );
}

#[test]
fn the_supervisor_does_not_know_the_window() {
    expect_none(
        find(&["src-tauri/supervise"], &["crate::window", "super::window"], &[]),
        "turn it round: the window calls the supervisor, never the other way",
    );
}

#[test]
fn the_window_goes_through_the_supervisor() {
    expect_none(
        find(&["src-tauri/window"], &["store::", "pty::"], &[]),
        "ask the driver: commands touch neither the store nor a terminal",
    );
}

#[test]
fn every_file_says_what_it_is() {
    let silent = sources(&SOURCES).into_iter().filter(|(_, text)| !text.starts_with("//!"));
    expect_none(
        silent.map(|(path, _)| format!("{path}:1")).collect(),
        "begin the file with `//!`: what it does, and what it never does",
    );
}

#[test]
fn files_stay_short() {
    let long = sources(&SOURCES).into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines >= MAX_LINES).then(|| format!("{path}:{lines}"))
    });
    expect_none(long.collect(), &format!("split it: a file stays under {MAX_LINES} lines"));
}

#[test]
fn marks_name_rules_that_exist() {
    let list = fs::read_to_string(root().join(marks::IDS)).unwrap();
    let known: BTreeSet<&str> = list.lines().collect();
    let mut wrong = Vec::new();
    for (path, text) in marks::files(root(), &["."], &marks::MARKED) {
        for (number, line) in text.lines().enumerate() {
            for id in marks::mark(line).into_iter().flat_map(|(_, ids)| ids) {
                if !known.contains(id.as_str()) {
                    wrong.push(format!("{path}:{}: `{id}`", number + 1));
                }
            }
        }
    }
    expect_none(
        wrong,
        "name ids of the contract, comma between them (tests/fixtures/contract_ids.txt)",
    );
}

#[test]
fn rules_md_is_what_the_marks_give() {
    let page = fs::read_to_string(root().join("RULES.md")).unwrap_or_default();
    let wanted = marks::page(root());
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let differing: Vec<String> =
        lines(&page).symmetric_difference(&lines(&wanted)).cloned().collect();
    assert!(
        page == wanted,
        "run `cargo xtask rules`: RULES.md is not what the marks give:\n  {}",
        differing.join("\n  ")
    );
}

#[test]
fn migrations_are_numbered_without_a_gap() {
    let mut names: Vec<String> = fs::read_dir(root().join("migrations"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".sql"))
        .collect();
    names.sort();
    let wrong = (255..).zip(&names).filter_map(|(number, name)| {
        let expected = format!("{number:04}_");
        (!name.starts_with(&expected)).then(|| format!("migrations/{name}:1: expected {expected}…"))
    });
    expect_none(wrong.collect(), "number migrations upwards from 0255, one each, no gap");
    assert!(!names.is_empty(), "migrations/ holds no .sql file");
}

// ---------------------------------------------------------------- how they look

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn expect_none(places: Vec<String>, what_to_do: &str) {
    assert!(places.is_empty(), "{what_to_do}:\n  {}", places.join("\n  "));
}

/// The project's Rust files below these folders: path from the root, and text.
fn sources(folders: &[&str]) -> BTreeMap<String, String> {
    marks::files(root(), folders, &["rs"])
}

/// Every place (file:line: the line) whose code holds one of the names as a whole word, outside
/// the allowed files (a trailing `/` allows a folder). A name that ends in `*` may go on.
fn find(folders: &[&str], names: &[&str], allowed: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for (path, text) in sources(folders) {
        if allowed.iter().any(|p| path == *p || (p.ends_with('/') && path.starts_with(p))) {
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
