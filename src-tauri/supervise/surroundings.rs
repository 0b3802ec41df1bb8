//! What the app finds on this machine at its start: the user's environment and the CLI.
//!
//! Looks only; bounded in time.

use super::accounts::variable;
use super::effects::ground::Program;
use super::login_env::login_environment;
use super::probes::{claude_version, find_claude};
use omniscio_core::ipc::CliState;
use omniscio_core::launch::child_env::Var;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The login shell answers within this, or the app's own environment is taken.
const LOGIN_SHELL_MS: u64 = 5_000;
/// A program that does not say its version within this does not run.
const VERSION_MS: u64 = 10_000;

/// The environment of the user's login shell.
pub(super) fn login_env() -> Vec<Var> {
    let shell = env::var_os("SHELL");
    let limit = Duration::from_millis(LOGIN_SHELL_MS);
    let (variables, error) = login_environment(shell.as_deref(), limit);
    if let Some(error) = error {
        tracing::warn!(%error, "the login shell does not tell its environment: the app's own is used");
    }
    let count = variables.len();
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let readable: Vec<Var> = variables.into_iter().filter_map(text).collect();
    if readable.len() < count {
        let left_out = count - readable.len();
        tracing::warn!(left_out, "variables that are no UTF-8 do not reach the sessions");
    }
    readable
}

/// The CLI: the one that the user chose, else on the PATH of the login shell, else in the usual
/// places. The error is where it was looked for.
pub(super) fn find(chosen: &str, env: &[Var]) -> Result<Program, Vec<PathBuf>> {
    let chosen: Vec<PathBuf> =
        Some(chosen).filter(|path| !path.is_empty()).map(PathBuf::from).into_iter().collect();
    let home = variable(env, "HOME").map(Path::new);
    let path = find_claude(variable(env, "PATH").map(OsStr::new), home, &chosen)?;
    Ok(Program { path, args: Vec::new() })
}

/// Asks a program for its version.
pub(super) fn look_at(program: &Program, env: &[Var]) -> CliState {
    let path = program.path.display().to_string();
    let env: Vec<(OsString, OsString)> =
        env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    match claude_version(&program.path, &env, Duration::from_millis(VERSION_MS)) {
        Ok(version) => CliState::Found { path, version },
        Err(error) => CliState::Broken { path, error: error.to_string() },
    }
}

/// There is none at these places.
pub(super) fn missing(looked: &[PathBuf]) -> CliState {
    CliState::Missing { looked: looked.iter().map(|place| place.display().to_string()).collect() }
}
