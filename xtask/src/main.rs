//! The project's own commands: `cargo xtask setup | ui | run | test | bench | rules`.
//!
//! This file reads the command line and nothing else. The commands never change a file outside
//! `target/`, `ui/dist/` and the two `node_modules` folders, but for `rules`, which writes RULES.md;
//! `setup` alone installs packages, and it says which before it does.

mod bench;
mod display;
#[path = "../../tests/tidy/marks.rs"]
mod marks;
mod rules;
mod run;
mod setup;
mod sh;
mod test;
mod ui;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <command>

  run [--fake] [-- ARGS]   set up, build and start Omniscio; ARGS go to the app.
                           --fake: on the bundled stand-in instead of the real Claude CLI
  test [--long] [FILTER]   set up and run every check and test; with FILTER only the tests
                           whose name contains it. --long: two hours of simulation instead of one minute
  bench [NAME…]            measure what the app costs, optimised, each figure against a limit of the
                           same run: flow loss idle busy scan start; minutes, best on an idle machine
  ui [--release]           build the window (WebAssembly) into ui/dist
  setup [--test]           install what is missing for `run` (or `test`) and stop
  rules                    write RULES.md anew from the marks in the sources";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let result = match command.as_str() {
        "run" => run::Options::parse(&rest).and_then(|options| run::run(&options)),
        "test" => test::Options::parse(&rest).and_then(|options| test::test(&options)),
        "bench" => bench::bench(&rest),
        "ui" => flag(&rest, "--release").and_then(ui::build),
        "setup" => flag(&rest, "--test").and_then(setup_only),
        "rules" => nothing(&rest).and_then(|()| rules::write()),
        "" | "help" | "-h" | "--help" => {
            println!("{HELP}");
            Ok(0)
        }
        unknown => Err(format!("there is no command `{unknown}`.\n\n{HELP}")),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// True if `name` is the only argument, false if there is none.
fn flag(args: &[String], name: &str) -> Result<bool, String> {
    match args {
        [] => Ok(false),
        [only] if only == name => Ok(true),
        _ => Err(format!("expected nothing or `{name}`, got `{}`.\n\n{HELP}", args.join(" "))),
    }
}

/// No argument is known.
fn nothing(args: &[String]) -> Result<(), String> {
    match args {
        [] => Ok(()),
        _ => Err(format!("expected nothing, got `{}`.\n\n{HELP}", args.join(" "))),
    }
}

fn setup_only(for_tests: bool) -> Result<u8, String> {
    let purpose = if for_tests { setup::Purpose::Test } else { setup::Purpose::Run };
    setup::ensure(purpose)?;
    println!("setup: everything is there");
    Ok(0)
}
