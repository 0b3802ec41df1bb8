//! `cargo xtask bench`: what the app costs, each figure measured against a limit of the same run.
//!
//! The same program is the children that some figures need ([`child`]). Nothing here fails for being
//! slow: a goal that is missed is printed as missed. Only a measurement that cannot be made, or that
//! sees something wrong, ends with an error.

mod busy;
mod child;
mod figure;
mod flow;
mod idle;
mod loss;
mod meter;
mod rig;
mod scan;
mod start;

use figure::Figure;
use std::process::ExitCode;

/// One measurement: the name that selects it, and what it does.
type Measurement = (&'static str, fn() -> Vec<Figure>);

const ALL: [Measurement; 6] = [
    ("flow", flow::measure),
    ("loss", loss::measure),
    ("idle", idle::measure),
    ("busy", busy::measure),
    ("scan", scan::measure),
    ("start", start::measure),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let Some((child::FLAG, rest)) =
        args.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        return child::run(rest);
    }
    let chosen = |(name, _): &&Measurement| args.is_empty() || args.iter().any(|arg| arg == name);
    if let Some(unknown) = args.iter().find(|arg| ALL.iter().all(|(name, _)| name != arg)) {
        let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("bench: there is no measurement `{unknown}`; there are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    let mut figures = Vec::new();
    for (name, measure) in ALL.iter().filter(chosen) {
        eprintln!("bench: {name} …");
        figures.extend(measure());
    }
    figure::print(&figures);
    ExitCode::SUCCESS
}
