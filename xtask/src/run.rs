//! `cargo xtask run`: from a checkout to the window on the screen.
//!
//! Decides only where the window appears and whether the app is told to use its stand-in CLI;
//! everything else is the app's own business.

use std::process::Command;

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
    let mut args = options.app_args.clone();
    let names_a_cli = args.iter().any(|arg| arg.starts_with("--claude"));
    if options.fake || (!names_a_cli && no_claude()) {
        args.insert(0, "--fake".to_owned());
    }
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

fn wait_for(app: &mut Command) -> Result<u8, String> {
    println!("run: starting Omniscio");
    let status = app.status().map_err(|e| format!("cannot start the app: {e}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
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
}
