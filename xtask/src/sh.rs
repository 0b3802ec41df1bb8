//! Running other programs: where they run, what is said before, and one sentence when they fail.
//!
//! Never captures the output of a long-running program: progress goes straight to the terminal.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// Cargo's target folder: the one this very program was built into, whatever the configuration
/// that named it.
pub(crate) fn target() -> Result<PathBuf, String> {
    let exe = env::current_exe().map_err(|e| format!("cannot find my own program file: {e}"))?;
    // <target>/<profile>/xtask
    exe.ancestors()
        .nth(2)
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("{} is not in a target folder", exe.display()))
}

/// `program` with `args`, to be run in the root of the checkout.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// The cargo that runs this program, with `args`, in the root of the checkout.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    command(&cargo, args)
}

/// Runs `command` with its output on the terminal; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let line = describe(command);
    let status = command.status().map_err(|e| format!("cannot start `{line}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed ({status})")) }
}

/// The standard output of `command` if it could be started, whether it succeeded or not.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program of this name is on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The command as a person would type it (the full path of cargo shortened).
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}
