//! `cargo xtask test`: every check and every test, cheapest first, headless.
//!
//! The last lines of its output come from the test runner itself. Never skips a test: what a test
//! needs is installed, or setup fails with a sentence.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::{display, setup, sh, ui};

/// What makes tests run for long: the simulation for so many minutes, those of the process ring (kills,
/// cycles) many more times.
const LONG: [(&str, &str); 2] = [("OMNISCIO_SIM_LONG", "120"), ("OMNISCIO_LONG", "1")];

/// The Rust whose lints are enforced: `rust-version` of the workspace.
const KNOWN_RUST: &str = "1.95.";

/// The packages whose tests are the outer and inner rings.
const TESTED: [&str; 6] = [
    "test",
    "--locked",
    "--no-fail-fast",
    "--package=omniscio-core",
    "--package=omniscio-ui",
    "--package=omniscio",
];

/// The command line of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    long: bool,
    filter: Option<String>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        for arg in args {
            match arg.as_str() {
                "--long" => options.long = true,
                flag if flag.starts_with('-') => {
                    return Err(format!("`test` does not know `{flag}`"));
                }
                _ if options.filter.is_some() => return Err("`test` takes one filter".to_owned()),
                filter => options.filter = Some(filter.to_owned()),
            }
        }
        Ok(options)
    }
}

/// How long each step took.
#[derive(Default)]
struct Timings(Vec<(&'static str, Duration)>);

impl Timings {
    fn step(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        println!("test: {name}");
        let start = Instant::now();
        work()?;
        self.0.push((name, start.elapsed()));
        Ok(())
    }

    fn print(&self) {
        println!("test: how long the steps before the tests took");
        for (name, took) in &self.0 {
            println!("{:>8.1} s  {name}", took.as_secs_f64());
        }
    }
}

/// Runs all checks, then all tests; returns the test runner's exit code.
pub(crate) fn test(options: &Options) -> Result<u8, String> {
    let mut timings = Timings::default();
    timings.step("set-up", || setup::ensure(setup::Purpose::Test))?;
    timings.step("the window", || ui::build(false).map(|_| ()))?;
    if options.filter.is_none() {
        checks(&mut timings)?;
    }
    timings.step("compiling the tests", || sh::run(sh::cargo(&TESTED).arg("--no-run")))?;
    timings.print();
    let screen = display::x_server()?;
    let mut tests = sh::cargo(&TESTED);
    on_display(&mut tests, &screen.address);
    if let Some(filter) = &options.filter {
        tests.arg(filter);
    }
    if options.long {
        tests.envs(LONG);
    }
    let status = tests.status().map_err(|e| format!("cannot start the tests: {e}"))?;
    Ok(u8::from(!status.success()))
}

/// Lints are errors on the Rust the project is written for; a newer one has lints of its own, which are
/// shown and stop nobody.
fn strictness() -> Vec<&'static str> {
    let version = Command::new("rustc").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if is_known(&version.unwrap_or_default()) {
        return vec!["--", "--deny", "warnings"];
    }
    println!("test: this Rust is newer than {KNOWN_RUST}: its lints are shown, not enforced");
    Vec::new()
}

fn is_known(version: &str) -> bool {
    version.strip_prefix("rustc ").is_some_and(|rest| rest.starts_with(KNOWN_RUST))
}

/// What can fail without a test being run.
fn checks(timings: &mut Timings) -> Result<(), String> {
    let strict = strictness();
    timings.step("format", || {
        sh::run(&mut sh::cargo(&["fmt", "--all", "--check"]))
            .map_err(|e| format!("{e}; run `cargo fmt --all`"))
    })?;
    timings.step("lints: core, app, xtask", || {
        let packages =
            ["clippy", "--locked", "--workspace", "--exclude=omniscio-ui", "--all-targets"];
        sh::run(sh::cargo(&packages).args(&strict))
    })?;
    timings.step("lints: the window, on wasm32", || {
        let package =
            ["clippy", "--locked", "--package=omniscio-ui", "--target=wasm32-unknown-unknown"];
        sh::run(sh::cargo(&package).args(&strict))
    })?;
    timings.step("core alone, on wasm32", || {
        sh::run(&mut sh::cargo(&[
            "check",
            "--locked",
            "--package=omniscio-core",
            "--target=wasm32-unknown-unknown",
        ]))
    })?;
    // minutes to build on two cores, so it is used only where it is installed
    if sh::on_path("cargo-deny") {
        timings.step("licences and sources", || {
            sh::run(&mut sh::cargo(&["deny", "--offline", "check", "licenses", "bans", "sources"]))
        })?;
    } else {
        println!("test: cargo-deny is not installed, licences are not checked");
    }
    timings.step("tests of xtask", || {
        sh::run(&mut sh::cargo(&["test", "--locked", "--quiet", "--package=xtask"]))
    })
}

/// Puts every window on the private display, whatever the person's own is.
fn on_display(command: &mut Command, number: &str) {
    command
        .env("DISPLAY", format!(":{number}"))
        .env("GDK_BACKEND", "x11")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("XAUTHORITY");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn lints_are_enforced_on_the_known_rust_alone() {
        assert!(is_known("rustc 1.95.0 (59807616e 2026-04-14)"));
        assert!(!is_known("rustc 1.99.1 (58cf8f9c3 2026-10-13)") && !is_known(""));
        assert!(env!("CARGO_PKG_RUST_VERSION").starts_with("1.95"));
    }

    #[test]
    fn one_filter_and_one_flag_are_known() {
        let filter = Some("replay".to_owned());
        assert_eq!(parse("--long replay"), Ok(Options { long: true, filter }));
        assert!(parse("--fast").is_err());
        assert!(parse("a b").is_err());
    }

    #[test]
    fn whoever_can_run_for_long_hears_of_it() {
        let says = |file: &str, name: &str| {
            std::fs::read_to_string(sh::root().join(file)).unwrap().contains(name)
        };
        let [(simulation, minutes), (processes, _)] = LONG;
        assert!(says("core/tests/sim/main.rs", simulation) && minutes.parse::<u64>().is_ok());
        assert!(says("tests/process/kills.rs", processes));
    }
}
