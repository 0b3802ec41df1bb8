//! What a failed start says to a person: what is so, in the system's words, and what to do.

use crate::supervise::driver::inbox::Failed;
use crate::supervise::pty::{LaunchLine, SpawnError, SpawnStep};
use std::path::PathBuf;

/// The words of a start that the system refused.
pub(super) fn refused(line: &LaunchLine, error: &SpawnError) -> Failed {
    let said = &error.message;
    let advice = match error.errno {
        Some(libc::EMFILE | libc::ENFILE) => Some(
            "Too many files are open on this machine. End some sessions, or raise the limit \
             (`ulimit -n`) before you start the app."
                .to_string(),
        ),
        Some(libc::EAGAIN | libc::ENOMEM) => Some(
            "The machine has no room for another process. Close something that you do not need."
                .to_string(),
        ),
        Some(_) | None => None,
    };
    let advice = advice.unwrap_or_else(|| match error.step {
        SpawnStep::Folder => {
            "Is the project folder still there? Bring it back, or start a session \
             in another one."
                .to_string()
        }
        SpawnStep::Exec => of_program(line, error.errno),
        SpawnStep::OpenPty | SpawnStep::RawMode | SpawnStep::Thread => {
            "Close something that you do not need.".to_string()
        }
    });
    Failed { errno: error.errno, words: format!("{said}. {advice}") }
}

fn of_program(line: &LaunchLine, errno: Option<i32>) -> String {
    let program = line.program.display();
    match errno {
        Some(libc::ENOENT) if line.program.exists() => {
            format!("{program} is a script, and what is to run it is not installed (Node?).")
        }
        Some(libc::ENOENT) => {
            format!("There is no Claude CLI at {program}. Install it, or choose it in Settings.")
        }
        Some(libc::EACCES) => {
            format!("{program} may not be run. Make it executable, or choose another in Settings.")
        }
        Some(libc::ENOEXEC) => {
            format!("{program} is no program for this machine. Choose another in Settings.")
        }
        Some(_) | None => format!("Does {program} run in a terminal?"),
    }
}

/// The words where no CLI was found.
pub(super) fn no_cli(looked: &[PathBuf]) -> Failed {
    let places: Vec<String> = looked.iter().map(|place| place.display().to_string()).collect();
    let words = format!(
        "No Claude CLI was found. Install it, or choose it in Settings. It was looked for at: {}",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(program: &str, step: SpawnStep, errno: i32) -> String {
        let line = LaunchLine {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: "/p".into(),
        };
        let error = SpawnError { errno: Some(errno), step, message: "it failed".to_string() };
        let failed = refused(&line, &error);
        assert_eq!(failed.errno, Some(errno));
        assert!(failed.words.starts_with("it failed. "), "{}", failed.words);
        failed.words
    }

    #[test]
    fn each_failure_says_what_to_do() {
        let script = tempfile::NamedTempFile::new().unwrap();
        let script = script.path().to_str().unwrap();
        for (program, step, errno, advice) in [
            ("/no/claude", SpawnStep::Exec, libc::ENOENT, "Install it"),
            (script, SpawnStep::Exec, libc::ENOENT, "not installed"),
            ("/no/claude", SpawnStep::Exec, libc::EACCES, "executable"),
            ("/no/claude", SpawnStep::Exec, libc::ENOEXEC, "for this machine"),
            ("/no/claude", SpawnStep::Exec, libc::EIO, "in a terminal"),
            ("/no/claude", SpawnStep::Exec, libc::ENOMEM, "no room"),
            ("/no/claude", SpawnStep::OpenPty, libc::EMFILE, "ulimit"),
            ("/no/claude", SpawnStep::Folder, libc::ENOENT, "project folder"),
        ] {
            let said = words(program, step, errno);
            assert!(said.contains(advice), "{said}");
        }
        let missing = no_cli(&["/a/claude".into(), "/b/claude".into()]);
        assert!(missing.words.ends_with("/a/claude, /b/claude"), "{}", missing.words);
    }
}
