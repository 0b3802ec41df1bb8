//! Finds the CLI's program and asks for its version.

use crate::supervise::children::capture::capture;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NAME: &str = "claude";
const VERSION_MAX_BYTES: usize = 4 * 1024;
/// Where installers of the CLI and of npm packages put programs, below the home folder.
const IN_HOME: [&str; 7] = [
    ".local/bin",
    ".claude/local",
    ".claude/local/node_modules/.bin",
    ".npm-global/bin",
    ".volta/bin",
    ".bun/bin",
    ".asdf/shims",
];
/// The same for the whole machine.
const ON_MACHINE: [&str; 4] =
    ["/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/usr/lib/node_modules/.bin"];
/// Node versions of a version manager, each with a `bin` of its own.
const NODE_VERSIONS: [(&str, &str); 2] =
    [(".nvm/versions/node", "bin"), (".local/share/fnm/node-versions", "installation/bin")];

/// The CLI's program: the files of `extra` first, then `path_var` (the PATH of the login shell),
/// then the usual places. Only absolute paths count: any other would name a program of the project in
/// which it is started. The error is where it was looked for.
pub fn find_claude(
    path_var: Option<&OsStr>,
    home: Option<&Path>,
    extra: &[PathBuf],
) -> Result<PathBuf, Vec<PathBuf>> {
    let on_path = path_var.into_iter().flat_map(std::env::split_paths).filter(|p| p.is_absolute());
    let in_home = home.into_iter().flat_map(folders_in_home);
    let folders = on_path.chain(in_home).chain(ON_MACHINE.map(PathBuf::from));
    let mut looked: Vec<PathBuf> = Vec::new();
    for place in extra.iter().cloned().chain(folders.map(|folder| folder.join(NAME))) {
        if !place.is_absolute() {
            tracing::warn!(place = %place.display(), "passed over: it is not a full path");
            continue;
        }
        if looked.contains(&place) {
            continue;
        }
        if is_program(&place) {
            return Ok(place);
        }
        looked.push(place);
    }
    Err(looked)
}

fn folders_in_home(home: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = IN_HOME.iter().map(|folder| home.join(folder)).collect();
    for (versions, bin) in NODE_VERSIONS {
        let Ok(entries) = fs::read_dir(home.join(versions)) else {
            continue;
        };
        let mut found: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path().join(bin)).collect();
        found.sort();
        folders.extend(found);
    }
    folders
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The version that `program --version` prints (`2.1.332 (Claude Code)` → `2.1.332`), asked with
/// `env` as its whole environment and answered within `limit`.
pub fn claude_version(
    program: &Path,
    env: &[(OsString, OsString)],
    limit: Duration,
) -> io::Result<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(env.iter().cloned());
    let printed = capture(command, limit, VERSION_MAX_BYTES, |all| all.contains(&b'\n'))?;
    let text = String::from_utf8_lossy(&printed);
    let version = text
        .split_whitespace()
        .next()
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    version.map(str::to_string).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("no version in {:?}", text.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by another process: a handle open for writing that a fork of another test inherits
    /// would make the start fail.
    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let write = r#"printf %s "$1" > "$0"; chmod 755 "$0""#;
        let mut shell = Command::new("/bin/sh");
        assert!(shell.args(["-c", write]).arg(path).arg(text).status().unwrap().success());
    }

    #[test]
    fn the_first_program_of_that_name_wins() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let path_var = std::env::join_paths([home.join("a"), home.join("b")]).unwrap();
        let find = |extra: &[PathBuf]| find_claude(Some(&path_var), Some(home), extra);

        // a folder and a file that is no program are passed over
        fs::create_dir_all(home.join("a/claude")).unwrap();
        program(&home.join("b/other"), "");
        fs::write(home.join("b/claude"), "").unwrap();
        let nvm = home.join(".nvm/versions/node/v20.1.0/bin/claude");
        program(&nvm, "");
        assert_eq!(find(&[]), Ok(nvm));
        program(&home.join(".local/bin/claude"), "");
        assert_eq!(find(&[]), Ok(home.join(".local/bin/claude")));
        program(&home.join("b/claude"), "");
        assert_eq!(find(&[]), Ok(home.join("b/claude")));
        let chosen = home.join("my/claude-2");
        assert_eq!(find(std::slice::from_ref(&chosen)), Ok(home.join("b/claude")));
        program(&chosen, "");
        assert_eq!(find(std::slice::from_ref(&chosen)), Ok(chosen));
    }

    #[test]
    fn a_path_that_is_not_absolute_is_passed_over() {
        // a program that is there, by the way from the folder in which this runs
        let home = tempfile::tempdir().unwrap();
        program(&home.path().join("claude"), "");
        program(&home.path().join(".local/bin/claude"), "");
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = up.join(home.path().strip_prefix("/").unwrap());
        let chosen = relative.join("claude");
        assert!(is_program(&chosen));
        match find_claude(Some(relative.as_os_str()), Some(&relative), &[chosen]) {
            Ok(found) => assert!(found.is_absolute(), "{found:?}"),
            Err(looked) => assert!(looked.iter().all(|place| place.is_absolute()), "{looked:?}"),
        }
    }

    #[test]
    fn a_miss_names_every_place_once() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join(".local/bin");
        match find_claude(Some(bin.as_os_str()), Some(home.path()), &[]) {
            Ok(found) => assert!(!found.starts_with(home.path())),
            Err(looked) => {
                assert_eq!(looked[0], bin.join("claude"));
                assert_eq!(looked.iter().filter(|place| **place == looked[0]).count(), 1);
                assert!(looked.contains(&PathBuf::from("/usr/local/bin/claude")));
            }
        }
    }

    #[test]
    fn the_version_is_read_and_bounded() {
        let home = tempfile::tempdir().unwrap();
        let claude = home.path().join("claude");
        let ask = |limit| claude_version(&claude, &[("A".into(), "9.9".into())], limit);
        let long = Duration::from_secs(60);
        program(&claude, "#!/bin/sh\n[ -z \"$HOME\" ] && echo \"2.1.332 (Claude Code) $A\"\n");
        assert_eq!(ask(long).unwrap(), "2.1.332");
        program(&claude, "#!/bin/sh\necho hello\n");
        assert_eq!(ask(long).unwrap_err().kind(), io::ErrorKind::InvalidData);
        program(&claude, "#!/bin/sh\nexec /bin/sleep 600\n");
        let late = ask(Duration::from_millis(50)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        program(&claude, "#!/no/such/interpreter\n");
        assert_eq!(ask(long).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
