//! From the command line and the environment to a plan: data folder, CLI, limits, accounts.
//!
//! It makes the data folder and starts the log in it; it opens no window and starts no supervisor.

use crate::ctl_client::Ask;
use crate::supervise::accounts::{Account, DEFAULT};
use crate::supervise::handle::Handle;
use crate::supervise::load::Sampler;
use crate::supervise::logs;
use crate::supervise::store::paths::{self, IDENTIFIER};
use crate::supervise::supervisor::{Cli, Config};
use anyhow::{Context, Result, bail, ensure};
use omniscio_core::limits::Limits;
use omniscio_core::settings::KillSwitches;
use omniscio_core::supervisor::Command;
use serde_json::Value;
use std::env::{self, consts::EXE_SUFFIX};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// For developers and tests: a JSON object with the limits to be other than they are, by their names
/// in `core/src/limits.rs`, for example `{"scan_interval_ms":1000}`.
pub const LIMITS_VARIABLE: &str = "OMNISCIO_LIMITS";
/// The stand-in's program, beside the app's own.
const STAND_IN: &str = "omniscio-fake-claude";
/// The rehearsal's data folder is named like the app's own with this behind it.
const REHEARSAL: &str = "-rehearsal";
/// The rehearsal's config folder of the CLI, in its data folder.
const REHEARSAL_CONFIG: &str = "claude";
/// The folder of the log, in the data folder.
const LOGS: &str = "logs";
/// The folder of the web view's own files, in the data folder.
const WEB_VIEW: &str = "webview";

/// Runs many Claude CLI sessions and brings them back by itself.
#[derive(Debug, Default, clap::Parser)]
#[command(name = "omniscio", version)]
pub struct Args {
    /// Rehearse on the bundled stand-in: no Claude, no network, a data folder of its own, short waits
    #[arg(long)]
    pub fake: bool,
    /// Keep the data in this folder instead of the usual one
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// Use this CLI instead of the one that is found
    #[arg(long, value_name = "PATH", conflicts_with = "fake")]
    pub claude: Option<PathBuf>,
    /// What to do instead of opening the window
    #[command(subcommand)]
    pub act: Option<Act>,
}

/// What the program does beside opening the window.
#[derive(Debug, clap::Subcommand)]
pub enum Act {
    /// Ask the running app, from inside of a session or from another program
    Ctl {
        /// What to ask.
        #[command(subcommand)]
        ask: Ask,
    },
}

/// What the window half needs to start.
#[derive(Debug)]
pub struct Plan {
    /// How the supervisor is to run.
    pub config: Config,
    /// The web view keeps its own files here; the folder is there, for its user only.
    pub web_view: PathBuf,
    /// The name on the session bus under which a second start on the same data finds the first.
    pub bus_name: String,
}

/// Makes the plan, the data folder and the log.
///
/// # Errors
/// A sentence for the person at the command line.
pub fn plan(args: Args) -> Result<Plan> {
    let usual = paths::data_dir(None)?;
    let data_dir = match &args.data_dir {
        Some(named) => absolute(named)?,
        None if args.fake => rehearsal_folder(&usual),
        None => usual.clone(),
    };
    let cannot = || format!("the data folder {} cannot be used", data_dir.display());
    paths::prepare(&data_dir).with_context(cannot)?;
    let data_dir = data_dir.canonicalize().with_context(cannot)?;
    logs::init(&data_dir.join(LOGS)).with_context(cannot)?;
    // the web view would make it readable by all
    let web_view = data_dir.join(WEB_VIEW);
    paths::prepare(&web_view).with_context(cannot)?;

    let (switches, odd) = KillSwitches::read(|name| env::var(name).ok());
    for name in odd {
        tracing::warn!(name, "this switch is off: on is 1 or true");
    }
    let mut config = Config::new(data_dir);
    config.switches = switches;
    if args.fake {
        rehearse(&mut config)?;
    }
    if let Some(program) = &args.claude {
        let program = absolute(program)?;
        let args = Vec::new();
        config.cli = Cli::Fixed { program, args };
    }
    if let Ok(changes) = env::var(LIMITS_VARIABLE) {
        config.limits = changed(&config.limits, &changes)
            .with_context(|| format!("{LIMITS_VARIABLE} cannot be used"))?;
    }
    let bus_name = bus_name(&config.data_dir, &usual);
    Ok(Plan { config, web_view, bus_name })
}

/// The bundled stand-in with a config folder of its own and short limits.
fn rehearse(config: &mut Config) -> Result<()> {
    let own = env::current_exe().context("the app does not find its own program")?;
    let program = own.with_file_name(format!("{STAND_IN}{EXE_SUFFIX}"));
    ensure!(program.is_file(), "the bundled stand-in is not at {}", program.display());
    config.accounts = Some(vec![Account {
        id: DEFAULT.to_owned(),
        label: "Rehearsal".to_owned(),
        config_dir: Some(config.data_dir.join(REHEARSAL_CONFIG)),
        variables: Vec::new(),
        api_key: false,
    }]);
    config.cli = Cli::Fixed { program, args: Vec::new() };
    config.limits = Limits::rehearsal();
    // a newcomer's machine may be busy with its first build
    config.sampler = Sampler::calm();
    config.fake = true;
    Ok(())
}

/// The first session of a rehearsal begins by itself: a newcomer watches a reply being cut off and
/// coming back. Later starts show what is there.
pub fn show_first_session(handle: &Handle, data_dir: &Path) {
    let fresh = handle
        .snapshot()
        .is_ok_and(|snapshot| snapshot.rows.is_empty() && snapshot.recent_folders.is_empty());
    if !fresh {
        return;
    }
    let folder = data_dir.join("sample-project");
    if let Err(error) = fs::create_dir_all(&folder) {
        tracing::warn!(%error, "the rehearsal has no folder for its first session");
        return;
    }
    let made = handle.command(Command::Create {
        folder: folder.display().to_string(),
        text: "Show me how a reply that was cut off comes back".to_string(),
        model: None,
        permission_mode: None,
        account: None,
        endpoint: None,
        user_settings_only: true,
    });
    if let Err(error) = made {
        tracing::warn!(error = error.message, "the rehearsal's first session did not start");
    }
}

fn rehearsal_folder(usual: &Path) -> PathBuf {
    let mut name = usual.file_name().unwrap_or_default().to_os_string();
    name.push(REHEARSAL);
    usual.with_file_name(name)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("`{}` is no path", path.display()))
}

/// The limits with the named ones changed.
fn changed(limits: &Limits, changes: &str) -> Result<Limits> {
    let changes: Value = serde_json::from_str(changes)?;
    let mut all = serde_json::to_value(limits)?;
    let (Some(all_by_name), Value::Object(changes)) = (all.as_object_mut(), changes) else {
        bail!("it is no JSON object");
    };
    for (name, value) in changes {
        match all_by_name.get_mut(&name) {
            Some(limit) => *limit = value,
            None => bail!("there is no limit `{name}`"),
        }
    }
    let limits: Limits = serde_json::from_value(all)?;
    match limits.broken_relation() {
        None => Ok(limits),
        Some(relation) => bail!("this would not hold any more: {relation}"),
    }
}

/// One name for each data folder; the usual one has the plain name.
fn bus_name(data_dir: &Path, usual: &Path) -> String {
    // rule: A-31
    if usual.canonicalize().is_ok_and(|usual| usual == data_dir) {
        return IDENTIFIER.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    data_dir.hash(&mut hasher);
    format!("{IDENTIFIER}.Data{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        let args = Args::try_parse_from(["omniscio", "--data-dir", "d", "--claude", "c"]).unwrap();
        assert_eq!(args.data_dir, Some(PathBuf::from("d")));
        assert!(Args::try_parse_from(["omniscio", "--fake", "--claude", "c"]).is_err());
    }

    #[test]
    fn the_rehearsal_never_touches_the_usual_folder() {
        let usual = Path::new("/home/x/.local/share/dev.omniscio.Omniscio");
        let beside = "/home/x/.local/share/dev.omniscio.Omniscio-rehearsal";
        assert_eq!(rehearsal_folder(usual), Path::new(beside));
    }

    #[test]
    fn limits_are_changed_by_name_and_stay_sound() {
        let base = Limits::default();
        let ok = changed(&base, r#"{"scan_interval_ms":1000}"#).unwrap();
        let wanted = Limits { scan_interval_ms: 1_000, ..base.clone() };
        assert_eq!(ok, wanted);
        for bad in [
            "",
            "[]",
            r#"{"no_such":1}"#,
            r#"{"scan_interval_ms":"x"}"#,
            r#"{"scan_interval_ms":90000}"#,
        ] {
            assert!(changed(&base, bad).is_err(), "{bad}");
        }
    }

    // proves: A-31
    #[test]
    fn each_data_folder_has_its_own_name_on_the_bus() {
        let home = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = home.path().canonicalize().unwrap().join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let (usual, a, b) = (folder("usual"), folder("a"), folder("b"));
        assert_eq!(bus_name(&usual, &usual), IDENTIFIER);
        assert_eq!(bus_name(&a, &usual), bus_name(&a, &usual));
        assert_ne!(bus_name(&a, &usual), bus_name(&b, &usual));
        assert_ne!(bus_name(&a, &usual), IDENTIFIER);
    }
}
