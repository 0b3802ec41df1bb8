//! The app: reads its command line, and opens the window or asks the app that runs. It decides nothing.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;
    use omniscio_lib::{ctl_client, start, window};
    let mut args = start::Args::parse();
    let done = match args.act.take() {
        Some(start::Act::Ctl { ask }) => {
            ctl_client::run(ask, args.data_dir.as_deref()).map(|answer| println!("{answer}"))
        }
        None => start::plan(args).and_then(window::run),
    };
    match done {
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
