//! The app: reads its command line and opens the window. It decides nothing.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;
    use omniscio_lib::{start, window};
    match start::plan(start::Args::parse()).and_then(window::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omniscio: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("omniscio: this system is not supported yet.");
    ExitCode::FAILURE
}
