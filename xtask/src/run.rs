//! `cargo xtask run`: from a checkout to the window on the screen.
//!
//! Decides only where the window appears and whether the app is told to use its stand-in CLI;
//! everything else is the app's own business. It outlives the app: whoever ends it asks the app to
//! quit. Nothing of cargo's own environment reaches the app, whose sessions would inherit it.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::env;
use std::process::Command;
use std::thread;

use crate::{display, setup, sh, ui};

/// The command line of `cargo xtask run`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    fake: bool,
    app_args: Vec<String>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--fake" => options.fake = true,
                "--" => options.app_args.extend(args.by_ref().cloned()),
                other => {
                    return Err(format!(
                        "`run` does not know `{other}`; for the app: `-- {other}`"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// Sets up, builds, and starts the app; returns the app's exit code.
pub(crate) fn run(options: &Options) -> Result<u8, String> {
    setup::ensure(setup::Purpose::Run)?;
    ui::build(false)?;
    sh::run(&mut sh::cargo(&["build", "--locked"]))?;

    let app = sh::target()?.join("debug/omniscio");
    let args = app_args(options, no_claude);
    if setup::has_display() {
        return wait_for(Command::new(app).args(&args).current_dir(sh::root()));
    }
    let screen = display::x_server()?;
    let bus = display::session_bus()?;
    println!(
        "run: there is no display here, so the window is on a private one. A picture of it:\n\
         \n    import -display :{} -window root window.png\n",
        screen.address
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    wait_for(
        display::tied(&app.to_string_lossy(), &args)
            .env("DISPLAY", format!(":{}", screen.address))
            .env("DBUS_SESSION_BUS_ADDRESS", &bus.address),
    )
}

/// The app's arguments; on the stand-in where it is asked for, or no CLI is named and there is none.
fn app_args(options: &Options, no_claude: impl Fn() -> bool) -> Vec<String> {
    let mut args = options.app_args.clone();
    let says =
        |name: &str| args.iter().any(|arg| arg == name || arg.starts_with(&format!("{name}=")));
    if !says("--fake") && (options.fake || (!says("--claude") && no_claude())) {
        args.insert(0, "--fake".to_owned());
    }
    args
}

fn no_claude() -> bool {
    let missing = !sh::on_path("claude");
    if missing {
        println!(
            "run: there is no `claude` on the PATH: starting on the bundled stand-in (--fake), \
             with a data folder of its own"
        );
    }
    missing
}

/// Runs the app to its end. A signal to end becomes the app's wish to quit, and is waited out.
fn wait_for(app: &mut Command) -> Result<u8, String> {
    println!("run: starting Omniscio");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_cargos_own) {
            app.env_remove(name);
        }
    }
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|e| format!("cannot hear signals: {e}"))?;
    let hearing = signals.handle();
    let mut app = app.spawn().map_err(|e| format!("cannot start the app: {e}"))?;
    let pid = app.id().to_string();
    let quitter = thread::spawn(move || {
        for _ in signals.forever() {
            println!("run: waiting for Omniscio to quit");
            // it fails where the app has just ended
            sh::output(&mut sh::command("sh", &["-c", "kill -TERM \"$0\"", &pid]));
        }
    });
    let status = app.wait().map_err(|e| format!("cannot wait for the app: {e}"));
    hearing.close();
    if quitter.join().is_err() {
        eprintln!("xtask: the thread that hears signals has panicked");
    }
    let status = status?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// What cargo and rustup tell the programs they start. An agent that runs cargo with it builds the
/// wrong package with the wrong toolchain.
fn is_cargos_own(name: &str) -> bool {
    let of_cargo = name == "CARGO" || name.starts_with("CARGO_");
    (of_cargo && name != "CARGO_HOME")
        || name.starts_with("RUSTUP_TOOLCHAIN")
        || ["RUST_RECURSION_COUNT", "LD_LIBRARY_PATH"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_the_dashes_is_for_the_app() {
        let options = parse("--fake -- --fake --data x").unwrap();
        assert!(options.fake);
        assert_eq!(options.app_args, ["--fake", "--data", "x"]);
        assert_eq!(parse(""), Ok(Options::default()));
        assert!(parse("--data x").is_err());
    }

    #[test]
    fn the_stand_in_is_asked_for_once() {
        let args = |line: &str, no_claude: bool| app_args(&parse(line).unwrap(), || no_claude);
        assert_eq!(args("", true), ["--fake"]);
        assert_eq!(args("", false), [""; 0]);
        assert_eq!(args("--fake", false), ["--fake"]);
        assert_eq!(args("-- --fake", true), ["--fake"]);
        assert_eq!(args("--fake -- --fake", true), ["--fake"]);
        assert_eq!(args("-- --claude=x", true), ["--claude=x"]);
        assert_eq!(args("-- --data-dir d", true), ["--fake", "--data-dir", "d"]);
    }

    #[test]
    fn nothing_of_cargos_own_environment_reaches_the_app() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some());
        // no output is captured here, so what is left decides the exit code
        let left = "env | grep -qE '^(CARGO|CARGO_(MANIFEST|PKG)_.*|RUSTUP_TOOLCHAIN)='";
        assert_eq!(wait_for(&mut sh::command("sh", &["-c", left])), Ok(1));
        for (name, own) in [
            ("CARGO_HOME", false),
            ("RUSTUP_HOME", false),
            ("RUST_LOG", false),
            ("CARGO_TARGET_DIR", true),
            ("RUSTUP_TOOLCHAIN_SOURCE", true),
            ("RUST_RECURSION_COUNT", true),
            ("LD_LIBRARY_PATH", true),
        ] {
            assert_eq!(is_cargos_own(name), own, "{name}");
        }
    }

    #[test]
    fn a_ctrl_c_is_waited_out_while_the_app_quits() {
        let app = "trap 'exit 7' TERM; kill -INT $PPID; while :; do sleep 0.05; done";
        assert_eq!(wait_for(&mut sh::command("sh", &["-c", app])), Ok(7));
    }
}
