//! Finds what the machine lacks, says what it is about to install, and installs it.
//!
//! Quick when nothing is missing (two short look-ups). Never removes or upgrades anything, and
//! never installs what is already on the PATH under another package's name.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sh;

/// What the machine is to be made ready for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Building and starting the app.
    Run,
    /// All checks and tests: a virtual display, the window driver, the real Claude CLI.
    Test,
}

/// Needed to build the app and to start it on an ordinary desktop.
const BUILD: [&str; 4] =
    ["build-essential", "pkg-config", "libwebkit2gtk-4.1-dev", "libayatana-appindicator3-dev"];

/// Needed to start the app where there is no display: the display, a bus, and a way to see it.
const HEADLESS: [&str; 3] = ["xvfb", "dbus", "imagemagick"];

/// Needed by the tests on top of both.
const TEST: [&str; 6] =
    ["xauth", "dbus-x11", "webkit2gtk-driver", "iproute2", "procps", "gnome-keyring"];

const WASM: &str = "wasm32-unknown-unknown";

/// The file in `node_modules` that holds the lock file it was installed from.
const STAMP: &str = ".installed-from";

/// Makes the machine ready for `purpose`, or says in one sentence what to do by hand.
pub(crate) fn ensure(purpose: Purpose) -> Result<(), String> {
    debian_packages(purpose)?;
    wasm_target()?;
    npm_packages("ui", "the window's fonts", None)?;
    if purpose == Purpose::Test {
        npm_packages("tests/real_cli", "the real Claude CLI for the tests", Some("claude"))?;
    }
    Ok(())
}

/// Whether the person has a display of their own.
pub(crate) fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|v| !v.is_empty()))
}

fn wanted_packages(purpose: Purpose) -> Vec<&'static str> {
    let mut wanted = BUILD.to_vec();
    if purpose == Purpose::Test || !has_display() {
        wanted.extend(HEADLESS);
    }
    if purpose == Purpose::Test {
        wanted.extend(TEST);
    }
    // Node from another source counts; Debian's own npm would drag its Node in beside it
    if !sh::on_path("node") {
        wanted.push("nodejs");
    }
    if !sh::on_path("npm") {
        wanted.push("npm");
    }
    wanted
}

fn debian_packages(purpose: Purpose) -> Result<(), String> {
    let wanted = wanted_packages(purpose);
    let query = ["-W", "-f=${Package} ${db:Status-Status}\n"];
    let Some(known) = sh::output(sh::command("dpkg-query", &query).args(&wanted)) else {
        println!(
            "setup: this is no Debian; the packages that correspond to these must be there: {}",
            wanted.join(" ")
        );
        return Ok(());
    };
    let missing = missing_packages(&wanted, &known);
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    println!("setup: installing Debian packages by apt-get: {}", missing.join(" "));
    sh::run(apt_get()?.arg("update"))
        .map_err(|e| format!("{e}; check the network, or run `{by_hand}` as root"))?;
    sh::run(apt_get()?.args(["install", "-y", "--no-install-recommends"]).args(&missing))
        .map_err(|e| format!("{e}; run `{by_hand}` as root and read what it says"))
}

/// The wanted packages that `known` (lines "name status") does not list as installed.
fn missing_packages<'a>(wanted: &[&'a str], known: &str) -> Vec<&'a str> {
    let installed =
        |name: &str| known.lines().any(|line| line.split_once(' ') == Some((name, "installed")));
    wanted.iter().copied().filter(|name| !installed(name)).collect()
}

/// `apt-get` without questions, by sudo where this is not root.
fn apt_get() -> Result<Command, String> {
    let quiet = "DEBIAN_FRONTEND=noninteractive";
    let is_root = sh::output(&mut sh::command("id", &["-u"])).is_some_and(|id| id.trim() == "0");
    if is_root {
        Ok(sh::command("env", &[quiet, "apt-get"]))
    } else if sh::on_path("sudo") {
        Ok(sh::command("sudo", &["env", quiet, "apt-get"]))
    } else {
        Err("Debian packages are missing and there is neither root nor sudo here: \
             run `cargo xtask setup --test` once as root"
            .to_owned())
    }
}

fn wasm_target() -> Result<(), String> {
    let sysroot = sh::output(&mut sh::command("rustc", &["--print", "sysroot"]))
        .ok_or("there is no `rustc` on the PATH: install Rust from rustup.rs")?;
    if Path::new(sysroot.trim()).join("lib/rustlib").join(WASM).is_dir() {
        return Ok(());
    }
    println!("setup: adding the Rust target {WASM} by rustup");
    sh::run(&mut sh::command("rustup", &["target", "add", WASM]))
        .map_err(|e| format!("{e}; the window needs the Rust target {WASM}: install it"))
}

/// `npm ci` in `folder`, unless its `node_modules` were installed from this very lock file.
/// `program` is a file that must be in `node_modules/.bin` afterwards.
fn npm_packages(folder: &str, what: &str, program: Option<&str>) -> Result<(), String> {
    let path = sh::root().join(folder);
    let Ok(lock) = fs::read(path.join("package-lock.json")) else {
        return Ok(());
    };
    let modules = path.join("node_modules");
    let program_is_there = || program.is_none_or(|p| modules.join(".bin").join(p).exists());
    if fs::read(modules.join(STAMP)).is_ok_and(|stamp| stamp == lock) && program_is_there() {
        return Ok(());
    }
    println!("setup: installing {what} by npm into {folder}/node_modules");
    // the CLI's own install step puts its program in place, whatever the person's npm settings
    let mut npm = sh::command("npm", &["ci", "--no-audit", "--no-fund", "--ignore-scripts=false"]);
    sh::run(npm.current_dir(&path))
        .map_err(|e| format!("{e}; check the network and run it again in {folder}/"))?;
    if !program_is_there() {
        return Err(format!(
            "npm left no program in {folder}/node_modules/.bin: delete {folder}/node_modules and \
             run `npm ci` there by hand"
        ));
    }
    fs::write(modules.join(STAMP), lock)
        .map_err(|e| format!("cannot write into {folder}/node_modules: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_only_when_it_is_installed() {
        let known = "xvfb installed\nxauth config-files\nlibdbus-1 installed\n";
        assert_eq!(missing_packages(&["xvfb", "xauth", "dbus"], known), ["xauth", "dbus"]);
    }
}
