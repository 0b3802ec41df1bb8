//! `omniscio-fake-claude`: a scripted stand-in that speaks the recorded stream-json protocol.
//!
//! It is the CLI of the rehearsal mode (`--fake`) and the peer of the process and window tests. It answers
//! by itself with a friendly text, or does what a directive `[[fake: step; step]]` in the message says
//! (`fake/script.rs` lists the steps), or what a script file says (`OMNISCIO_FAKE_SCRIPT`, or a file
//! `fake-script` in the config folder; one line per attempt). A file `fake-start` in the config folder says
//! what befalls every start (`fake/start.rs`); a folder `fake-record` there keeps what was said
//! (`fake/record.rs`). `OMNISCIO_FAKE_PACE_MS` sets the pause between two streamed words.
//!
//! It never calls a model, never opens a network connection, never writes outside its config folder, and
//! never touches the config folder of a real CLI: without `CLAUDE_CONFIG_DIR` it keeps its own in the home
//! folder.

#[path = "fake/args.rs"]
mod args;
#[path = "fake/attempts.rs"]
mod attempts;
#[path = "fake/clock.rs"]
mod clock;
#[path = "fake/compact.rs"]
mod compact;
#[path = "fake/control.rs"]
mod control;
#[path = "fake/ids.rs"]
mod ids;
#[path = "fake/limits.rs"]
mod limits;
#[path = "fake/message.rs"]
mod message;
#[path = "fake/persona.rs"]
mod persona;
#[path = "fake/process.rs"]
mod process;
#[path = "fake/protocol.rs"]
mod protocol;
#[path = "fake/record.rs"]
mod record;
#[path = "fake/script.rs"]
mod script;
#[path = "fake/session.rs"]
mod session;
#[path = "fake/start.rs"]
mod start;
#[path = "fake/steps.rs"]
mod steps;
#[path = "fake/tools.rs"]
mod tools;
#[path = "fake/transcript.rs"]
mod transcript;
#[path = "fake/turn.rs"]
mod turn;
#[path = "fake/waits.rs"]
mod waits;

use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1).peekable();
    if given.peek().is_some_and(|first| first == "--version" || first == "-v") {
        println!("{} (fake)", protocol::VERSION);
        return ExitCode::SUCCESS;
    }
    let args = match args::parse(given) {
        Ok(args) => args,
        Err(why) => return refuse(&why),
    };
    if std::io::stdin().is_terminal() {
        return refuse(
            "Error: Input must be provided either through stdin or as a prompt argument when using --print",
        );
    }
    let quiet = match start::befall(&args) {
        Ok(quiet) => quiet,
        Err(why) => return refuse(&why),
    };
    match session::Session::open(args) {
        Ok(session) => session.run(),
        Err(refusal) => {
            if let Some(result) = refusal.result.as_ref().filter(|_| !quiet) {
                protocol::Out::new(&refusal.session_id).emit(result.clone());
            }
            refuse(&refusal.stderr)
        }
    }
}

/// The real CLI explains a refused start with one line on stderr and exit code 1.
fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}
