//! What befalls a start before the CLI takes its first input: the steps of the file `fake-start` in the
//! config folder, at every start while it is there. It never touches a conversation that is not resumed.
//!
//! `stderr TEXT`, `pause MS`, `freeze` (nothing is read or written any more), `die CODE`, `kill`, and
//! `forget [quiet]`; `script.rs` has the table of the steps.

use crate::args::Args;
use crate::script::{self, Step};
use crate::{process, session, transcript};
use std::fs;
use std::time::Duration;

/// Does the steps. Tells whether a refused resume is said on stderr alone; the error is for stderr, too.
pub(crate) fn befall(args: &Args) -> Result<bool, String> {
    let config = session::config_folder();
    let text = fs::read_to_string(config.join("fake-start")).unwrap_or_default();
    let mut quiet = false;
    for step in script::parse(&text)? {
        match step {
            Step::Stderr(line) => eprintln!("{line}"),
            Step::Pause(ms) => std::thread::sleep(Duration::from_millis(ms)),
            Step::Freeze => {
                process::wait_for_parents_death();
                return Err("omniscio-fake-claude: nobody is left to serve".to_owned());
            }
            Step::Die(code) => std::process::exit(code),
            Step::Kill => process::kill_self(),
            Step::Forget { quiet: silently } => {
                quiet |= silently;
                let file =
                    args.resume.as_ref().and_then(|resumed| transcript::find(&config, resumed));
                if let Some(file) = file {
                    fs::remove_file(file).map_err(|error| format!("cannot forget: {error}"))?;
                }
            }
            other @ (Step::Say(_)
            | Step::Partial(_)
            | Step::Slow(_)
            | Step::Think(_)
            | Step::Tool { .. }
            | Step::HostTool { .. }
            | Step::Question(_)
            | Step::Plan(_)
            | Step::Bash { .. }
            | Step::WakeUp { .. }
            | Step::Background { .. }
            | Step::Daemon(_)
            | Step::Retry { .. }
            | Step::Usage { .. }
            | Step::Compact(_)
            | Step::NoCompact(_)
            | Step::Garbage
            | Step::Long(_)
            | Step::Split
            | Step::Raw(_)
            | Step::Drip
            | Step::IgnoreTerm
            | Step::Lost
            | Step::Hang
            | Step::Eof
            | Step::Drop
            | Step::ApiError { .. }
            | Step::Limit(_)
            | Step::Empty
            | Step::NoResult
            | Step::FailFirst { .. }) => {
                return Err(format!("omniscio-fake-claude: no step of a start: {other:?}"));
            }
        }
    }
    Ok(quiet)
}
