//! What a failed start says to a person: what is so, in the system's words, and what to do.
//!
//! It looks at the program to tell its troubles apart, and touches nothing.

use crate::supervise::driver::inbox::Failed;
use crate::supervise::pty::{LaunchLine, SpawnError, SpawnStep};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Places named in full; a row has one line.
const PLACES_MAX: usize = 4;
/// The kernel reads no more of a script's first line.
const FIRST_LINE_MAX_BYTES: u64 = 256;

/// The words of a start that the system refused.
pub(super) fn refused(line: &LaunchLine, error: &SpawnError) -> Failed {
    let advice = error.errno.and_then(of_shortage).map_or_else(
        || match error.step {
            SpawnStep::Folder => of_folder(error.errno),
            SpawnStep::Exec => of_program(&line.program, error.errno),
            SpawnStep::OpenPty | SpawnStep::RawMode => of_terminal(error.errno).to_string(),
            SpawnStep::Thread => CLOSE_SOMETHING.to_string(),
        },
        str::to_string,
    );
    Failed { errno: error.errno, words: format!("{}. {advice}", capital(&error.message)) }
}

/// The words of a start for which there was no thread.
pub(super) fn no_thread(error: &io::Error) -> Failed {
    let errno = error.raw_os_error();
    let advice = errno.and_then(of_shortage).unwrap_or(CLOSE_SOMETHING);
    Failed { errno, words: format!("Cannot make a thread for the start: {error}. {advice}") }
}

/// The words of a look before a start that the system refused.
pub(super) fn no_look(error: &io::Error) -> Failed {
    let errno = error.raw_os_error();
    let advice = errno.and_then(of_shortage).map(|advice| format!(" {advice}"));
    let advice = advice.unwrap_or_default();
    Failed { errno, words: format!("Cannot look at the conversation: {error}.{advice}") }
}

const CLOSE_SOMETHING: &str = "Close something that you do not need.";

/// What to do where the machine is short of something.
fn of_shortage(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EMFILE => {
            "The app has too many files open. End some sessions, or raise the limit (`ulimit -n`) \
             before you start the app."
        }
        libc::ENFILE => "Too many files are open on this machine. Close something else that runs.",
        libc::EAGAIN => {
            "The machine has no room for another process. Close something, or raise the limit \
             (`ulimit -u`) before you start the app."
        }
        libc::ENOMEM => "The machine has no memory left. Close something that you do not need.",
        _ => return None,
    })
}

fn of_terminal(errno: Option<i32>) -> &'static str {
    match errno {
        Some(libc::ENOSPC) => "All terminals of this machine are in use. Close some.",
        Some(libc::ENOENT | libc::EACCES) => {
            "The system gives no terminals (/dev/ptmx, /dev/pts). Is the app in a container?"
        }
        Some(_) | None => CLOSE_SOMETHING,
    }
}

fn of_folder(errno: Option<i32>) -> String {
    let advice = match errno {
        Some(libc::EACCES | libc::EPERM) => "Make the folder yours to enter",
        Some(libc::ENOTDIR) => "The project folder is no folder any more. Bring it back",
        Some(libc::ENOENT) => "The project folder is not there. Bring it back",
        Some(_) | None => "Is the disk with the project folder there? Bring it back",
    };
    format!("{advice}, or start a session in another one.")
}

fn of_program(program: &Path, errno: Option<i32>) -> String {
    let shown = program.display();
    match errno {
        Some(libc::ENOENT | libc::ENOTDIR) if program.exists() => match interpreter(program) {
            Some(needed) => {
                format!("{shown} is a script for {needed}, which is not there. Install it.")
            }
            None => format!(
                "{shown} was built for another system: what loads it is not there. Install the \
                 Claude CLI for this one."
            ),
        },
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => {
            format!("There is no Claude CLI at {shown}. Install it, or choose it in Settings.")
        }
        Some(libc::EACCES | libc::EPERM) => not_allowed(program),
        Some(libc::ENOEXEC) => {
            format!("{shown} is no program for this machine. Choose another in Settings.")
        }
        Some(libc::ETXTBSY) => {
            format!("{shown} is being written, by an update perhaps. Try again when it is done.")
        }
        Some(libc::E2BIG) => "Too much is set in the environment. Make it shorter.".to_string(),
        Some(_) | None => format!("Does {shown} run in a terminal?"),
    }
}

fn not_allowed(program: &Path) -> String {
    let shown = program.display();
    match fs::metadata(program) {
        Ok(found) if found.is_dir() => {
            format!("{shown} is a folder. Choose the program in it in Settings.")
        }
        Ok(found) if found.permissions().mode() & 0o111 == 0 => format!(
            "{shown} may not be run. Make it executable (`chmod +x`), or choose another in Settings."
        ),
        Ok(_) | Err(_) => format!(
            "The system does not let you run {shown}. Ask who runs this machine, or choose another \
             in Settings."
        ),
    }
}

/// What a script is to be run by.
fn interpreter(program: &Path) -> Option<String> {
    let mut first = Vec::new();
    File::open(program).ok()?.take(FIRST_LINE_MAX_BYTES).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let needed = String::from_utf8_lossy(line);
    needed.split_whitespace().next().map(str::to_string)
}

/// The words where no CLI was found.
pub(super) fn no_cli(looked: &[PathBuf]) -> Failed {
    let (named, more) = looked.split_at(looked.len().min(PLACES_MAX));
    let places: Vec<String> = named.iter().map(|place| place.display().to_string()).collect();
    let more = match more.len() {
        0 => String::new(),
        more => format!(", and in {more} other places"),
    };
    let words = format!(
        "No Claude CLI was found. Install it, or choose it in Settings. It was looked for at: {}{more}",
        places.join(", ")
    );
    Failed { errno: Some(libc::ENOENT), words }
}

/// The words for an account that is gone.
pub(super) fn no_account(id: &str) -> Failed {
    let words = format!(
        "The account \"{id}\" of this session is not set up any more. Bring it back into the app's \
         accounts, or start a new session under another account."
    );
    Failed { errno: None, words }
}

/// A sentence begins with it.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(program: &Path, step: SpawnStep, errno: i32) -> String {
        let line = LaunchLine {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: "/p".into(),
        };
        let error = SpawnError { errno: Some(errno), step, message: "it failed".to_string() };
        let failed = refused(&line, &error);
        assert_eq!(failed.errno, Some(errno));
        assert!(failed.words.starts_with("It failed. "), "{}", failed.words);
        failed.words
    }

    #[test]
    fn each_failure_says_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let gone = home.path().join("gone");
        let file = |name: &str, mode: u32, text: &str| {
            let path = home.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let script = file("script", 0o755, "#!/no/such/node --flag\n");
        let built = file("built", 0o755, "\u{7f}ELF");
        let plain = file("plain", 0o644, "#!/bin/sh\n");
        for (program, step, errno, advice) in [
            (&gone, SpawnStep::Exec, libc::ENOENT, "Install it, or choose"),
            (&gone, SpawnStep::Exec, libc::ELOOP, "Install it, or choose"),
            (&script, SpawnStep::Exec, libc::ENOENT, "a script for /no/such/node, which"),
            (&built, SpawnStep::Exec, libc::ENOENT, "for another system"),
            (&plain, SpawnStep::Exec, libc::EACCES, "chmod +x"),
            (&script, SpawnStep::Exec, libc::EACCES, "does not let you"),
            (&home.path().into(), SpawnStep::Exec, libc::EACCES, "is a folder"),
            (&built, SpawnStep::Exec, libc::ENOEXEC, "for this machine"),
            (&script, SpawnStep::Exec, libc::ETXTBSY, "being written"),
            (&script, SpawnStep::Exec, libc::E2BIG, "shorter"),
            (&gone, SpawnStep::Exec, libc::EIO, "in a terminal"),
            (&gone, SpawnStep::Exec, libc::ENOMEM, "no memory"),
            (&gone, SpawnStep::Exec, libc::EAGAIN, "ulimit -u"),
            (&gone, SpawnStep::Thread, libc::EAGAIN, "ulimit -u"),
            (&gone, SpawnStep::Thread, libc::EMFILE, "ulimit -n"),
            (&gone, SpawnStep::OpenPty, libc::EMFILE, "ulimit -n"),
            (&gone, SpawnStep::OpenPty, libc::ENFILE, "on this machine"),
            (&gone, SpawnStep::OpenPty, libc::ENOSPC, "terminals"),
            (&gone, SpawnStep::OpenPty, libc::ENOENT, "/dev/ptmx"),
            (&gone, SpawnStep::RawMode, libc::EIO, "Close something"),
            (&gone, SpawnStep::Folder, libc::ENOENT, "is not there"),
            (&gone, SpawnStep::Folder, libc::ENOTDIR, "no folder"),
            (&gone, SpawnStep::Folder, libc::EACCES, "yours to enter"),
            (&gone, SpawnStep::Folder, libc::ESTALE, "disk"),
        ] {
            let said = words(program, step, errno);
            assert!(said.contains(advice), "{step:?} {errno}: {said}");
        }
        let error = io::Error::from_raw_os_error(libc::EAGAIN);
        let Failed { errno, words } = no_thread(&error);
        assert_eq!(errno, Some(libc::EAGAIN));
        assert!(words.contains(&error.to_string()) && words.contains("ulimit -u"), "{words}");
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        let Failed { errno, words } = no_look(&error);
        assert_eq!(errno, Some(libc::EMFILE));
        assert!(words.contains(&error.to_string()) && words.contains("ulimit -n"), "{words}");
    }

    #[test]
    fn a_cli_that_was_not_found_says_where_it_was_looked_for() {
        let places = |count: usize| -> Vec<PathBuf> {
            (0..count).map(|n| format!("/{n}/claude").into()).collect()
        };
        let said = |count| no_cli(&places(count)).words;
        assert!(said(2).ends_with("at: /0/claude, /1/claude"), "{}", said(2));
        assert!(said(9).ends_with("/3/claude, and in 5 other places"), "{}", said(9));
        assert_eq!(no_cli(&[]).errno, Some(libc::ENOENT));
    }
}
