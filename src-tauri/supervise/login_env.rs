//! The environment of the user's login shell, which an app started from a desktop does not have.
//!
//! It takes nothing away and adds nothing for a child: that is `child_env` in the rules (A-11).

use super::children::capture::capture;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;
use std::time::Duration;

/// What start-up files print may come before and after: the variables stand between these.
const BEGIN: &[u8] = b"\0omniscio-environment-begin\0";
const END: &[u8] = b"\0omniscio-environment-end\0";
const PRINT: &str =
    r"printf '\0omniscio-environment-begin\0'; env -0; printf '\0omniscio-environment-end\0'";
/// The kernel's own bound for one environment is lower.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// They tell about that one shell only.
const OF_THE_SHELL: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

/// The variables of `shell` (the value of `SHELL`; `/bin/sh` if there is none) as a login shell,
/// read within `limit`; else the app's own, with the reason.
// rule: A-11
pub fn login_environment(
    shell: Option<&OsStr>,
    limit: Duration,
) -> (Vec<(OsString, OsString)>, Option<Error>) {
    match ask_shell(shell.unwrap_or(OsStr::new("/bin/sh")), limit) {
        Ok(variables) => (variables, None),
        Err(error) => (env::vars_os().collect(), Some(error)),
    }
}

fn ask_shell(shell: &OsStr, limit: Duration) -> Result<Vec<(OsString, OsString)>, Error> {
    let mut command = Command::new(shell);
    command.arg("-lic").arg(PRINT);
    if let Some(home) = env::var_os("HOME") {
        command.current_dir(home);
    }
    let printed = capture(command, limit, MAX_BYTES, |all| find(all, END).is_some())?;
    read_variables(&printed).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// `None` if the marks are not there, or nothing like a variable between them.
fn read_variables(printed: &[u8]) -> Option<Vec<(OsString, OsString)>> {
    let after = &printed[find(printed, BEGIN)? + BEGIN.len()..];
    let between = &after[..find(after, END)?];
    let pairs = between.split(|&byte| byte == 0).filter_map(|pair| {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        let of_the_shell = OF_THE_SHELL.iter().any(|known| known.as_bytes() == name);
        let keep = !name.is_empty() && !of_the_shell;
        keep.then(|| (OsStr::from_bytes(name).into(), OsString::from_vec(value.to_vec())))
    });
    let variables: Vec<_> = pairs.collect();
    (!variables.is_empty()).then_some(variables)
}

fn find(all: &[u8], wanted: &[u8]) -> Option<usize> {
    all.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn banners_and_odd_values_do_not_matter() {
        let printed =
            b"Welcome!\nA=1\0\0omniscio-environment-begin\0PATH=/a:/b\0EQ=a=b\nc\0_=/bin/env\
            \0SHLVL=2\0EMPTY=\0\0omniscio-environment-end\0bye\n";
        let wanted = pairs(&[("PATH", "/a:/b"), ("EQ", "a=b\nc"), ("EMPTY", "")]);
        assert_eq!(read_variables(printed), Some(wanted));
    }

    #[test]
    fn without_both_marks_nothing_is_believed() {
        assert_eq!(read_variables(b"A=1\0"), None);
        assert_eq!(read_variables(b"\0omniscio-environment-begin\0A=1\0"), None);
        let empty = b"\0omniscio-environment-begin\0\0omniscio-environment-end\0";
        assert_eq!(read_variables(empty), None);
    }
}
