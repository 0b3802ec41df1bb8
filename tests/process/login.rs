//! The login shell's environment, from shells that behave well and badly.

use super::rig::LONG;
use omniscio_lib::supervise::login_env::login_environment;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A shell of a user whose start-up file is `profile`.
fn shell(profile: &str) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("shell");
    let write = r#"cd "$0"; printf '%s\n' "$1" > .profile
        printf '#!/bin/sh\nHOME="%s"; export HOME; exec /bin/sh "$@"\n' "$0" > shell; chmod 755 shell"#;
    let mut writer = Command::new("/bin/sh");
    assert!(writer.args(["-c", write]).arg(home.path()).arg(profile).status().unwrap().success());
    (home, path)
}

fn value<'a>(all: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    all.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

// proves: A-11
#[test]
fn the_profile_is_read_whatever_it_prints_and_leaves_running() {
    let (_home, shell) = shell(
        "echo 'Welcome, A=1'; sleep 3 & printf 'B=2\\0'; export TOOLS='/opt/a b' MULTI='x\ny=z'",
    );
    let (all, error) = login_environment(Some(shell.as_os_str()), LONG);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(value(&all, "TOOLS"), Some(OsStr::new("/opt/a b")));
    assert_eq!(value(&all, "MULTI"), Some(OsStr::new("x\ny=z")));
    assert_eq!(value(&all, "A").or(value(&all, "B")), None);
    assert_eq!(value(&all, "SHLVL").or(value(&all, "PWD")), None);
}

// proves: A-11
#[test]
fn a_shell_that_fails_or_hangs_leaves_the_apps_own_environment() {
    let own: Vec<_> = std::env::vars_os().collect();
    let (_hanging, hangs) = shell("exec sleep 600");
    let (_ending, ends) = shell("exit 3");
    for (shell, limit, kind) in [
        (hangs, Duration::from_millis(100), ErrorKind::TimedOut),
        (ends, LONG, ErrorKind::InvalidData),
        (PathBuf::from("/no/such/shell"), LONG, ErrorKind::NotFound),
    ] {
        let (all, error) = login_environment(Some(shell.as_os_str()), limit);
        assert_eq!(error.map(|error| error.kind()), Some(kind), "{}", shell.display());
        assert_eq!(all, own);
    }
}
