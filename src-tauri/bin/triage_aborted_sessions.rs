//! `triage-aborted-sessions`: finds sessions whose last reply was lost and that carry no mark of it, and
//! marks them on request, as migration 0256 did.
//!
//! Without `--execute` it writes nothing. It starts no window and no session, and works beside a running
//! app. Exit codes: 0 done, 1 the database said no, 2 the command line did.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;
    run::run(&run::Args::parse())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("triage-aborted-sessions: this system is not supported yet.");
    ExitCode::FAILURE
}

#[cfg(unix)]
mod run {
    use omniscio_core::time::Wall;
    use omniscio_lib::supervise::clock::Clock;
    use omniscio_lib::supervise::store::triage::{self, Found};
    use omniscio_lib::supervise::store::{data_dir, database_path, lock};
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;

    /// Characters of a title that are shown.
    const TITLE_CHARS: usize = 60;
    /// Exit code of a run that the database refused.
    const DATABASE_ERROR: u8 = 1;
    /// Exit code of a command line that names nothing to work on; clap's own.
    const USAGE: u8 = 2;

    /// Finds sessions whose last reply was lost and that carry no mark of it
    ///
    /// Without --execute it lists them and writes nothing. A marked session is brought back by Omniscio.
    #[derive(Debug, clap::Parser)]
    #[command(name = "triage-aborted-sessions", version)]
    pub(crate) struct Args {
        /// Mark them; best done while Omniscio is not running
        #[arg(long)]
        execute: bool,
        /// Work on this database instead of Omniscio's own
        #[arg(long, value_name = "FILE")]
        db_path: Option<PathBuf>,
    }

    /// Does what the command line says.
    pub(crate) fn run(args: &Args) -> ExitCode {
        // rule: MG-06, MG-09, A-31
        let database = match args.db_path.clone().map_or_else(usual, Ok) {
            Ok(database) => database,
            Err(words) => return fail(USAGE, &words),
        };
        let found = if args.execute {
            triage::stamp(&database, Wall(Clock.now().wall_ms))
        } else {
            triage::look(&database)
        };
        match found {
            Ok(found) => {
                let text = report(&database, &found, args.execute);
                // whoever closed the pipe has read enough
                io::stdout().write_all(text.as_bytes()).ok();
                ExitCode::SUCCESS
            }
            Err(error) => fail(DATABASE_ERROR, &format!("{}: {error}", database.display())),
        }
    }

    fn usual() -> Result<PathBuf, String> {
        let folder = data_dir(None).map_err(|error| format!("{error} Or use --db-path."))?;
        Ok(database_path(&folder))
    }

    fn fail(code: u8, words: &str) -> ExitCode {
        eprintln!("triage-aborted-sessions: {words}");
        ExitCode::from(code)
    }

    fn report(database: &Path, found: &Found, executed: bool) -> String {
        let (lost, sessions) = (found.lost.len(), found.sessions);
        let did = if executed { "marked" } else { "found" };
        let mut text = format!(
            "{}\n{did} {lost} of {sessions} sessions: no delivered answer on record, and no mark\n",
            database.display()
        );
        for reply in &found.lost {
            let title = shortened(&reply.title);
            text.push_str(&format!("  {}  {:9}  {title}\n", reply.id, reply.status));
        }
        if let Some(advice) = advice(database, lost, executed) {
            text.push_str(&advice);
        }
        text
    }

    /// What to do next, if there is anything.
    fn advice(database: &Path, lost: usize, executed: bool) -> Option<String> {
        if lost == 0 {
            return None;
        }
        // the lock is beside the file itself, not beside a link to it
        let folder = database.canonicalize().ok()?.parent()?.to_path_buf();
        let running = lock::holder(&folder).map(|pid| {
            pid.map_or_else(
                || "Omniscio is running".to_owned(),
                |pid| format!("Omniscio is running (process {pid})"),
            )
        });
        Some(match (executed, running) {
            (false, None) => "Nothing was written. --execute marks them.\n".to_owned(),
            (false, Some(running)) => {
                format!("Nothing was written. --execute marks them; {running}, so quit it first.\n")
            }
            (true, None) => "Omniscio brings them back after its next start.\n".to_owned(),
            (true, Some(running)) => format!(
                "{running}: it may not see the marks before its next start. Quit it and start it \
                 again.\n"
            ),
        })
    }

    /// A title on one line, without what a terminal would obey.
    fn shortened(title: &str) -> String {
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let mut short: String = title.chars().take(TITLE_CHARS).map(shown).collect();
        if title.chars().count() > TITLE_CHARS {
            short.push('…');
        }
        short
    }
}
