//! `cargo xtask bench`: what the app costs, each figure measured against a limit of the same run.
//!
//! Each measurement is a process of its own: what one has used weighs on no other. The same program is
//! also the children that some of them need ([`child`]). Nothing here fails for being slow: a goal that
//! is missed is printed as missed. Only a measurement that cannot be made, or that sees something wrong,
//! ends with an error.

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
use std::process::{Command, ExitCode, Stdio};

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

/// Makes one measurement and prints its figures as JSON.
const ALONE: &str = "--alone";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [child::FLAG, role @ ..] => child::run(role),
        [ALONE, name] => {
            let (_, measure) = ALL.iter().find(|(known, _)| known == name).expect("a known name");
            println!("{}", serde_json::to_string(&measure()).expect("figures as JSON"));
            ExitCode::SUCCESS
        }
        names => all(names).unwrap_or_else(|words| {
            eprintln!("bench: {words}");
            ExitCode::FAILURE
        }),
    }
}

/// Makes the measurements of these names, or all of them, one after the other.
fn all(names: &[&str]) -> Result<ExitCode, String> {
    let known = ALL.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(format!("there is no measurement `{unknown}`; there are: {known}"));
    }
    let mut figures: Vec<Figure> = Vec::new();
    for name in known.iter().filter(|name| names.is_empty() || names.contains(name)) {
        eprintln!("bench: {name} …");
        let mut alone = Command::new(rig::own_program());
        let output = alone.args([ALONE, name]).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("{name} cannot be started: {error}"))?;
        let made = serde_json::from_slice::<Vec<Figure>>(&output.stdout);
        figures.extend(made.map_err(|_| format!("{name} could not be measured"))?);
    }
    figure::print(&figures);
    Ok(ExitCode::SUCCESS)
}
