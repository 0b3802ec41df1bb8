//! Starts the supervising half of the app: lock, store, sweep, rules, loop. The same under the
//! window, headless, and in the tests.

use super::accounts::{self, Account};
use super::board::Board;
use super::children::{self, ProcessId, RecordedSession};
use super::clock::Clock;
use super::ctl;
use super::driver::inbox::{Inbox, Message};
use super::driver::{Driver, Fixed, Held};
use super::effects::Effects;
use super::effects::ground::{Ground, Program};
use super::handle::{Handle, Inner};
use super::listener::{Listener, Outbox};
use super::load::{Sampler, Sampling};
use super::logs;
use super::pty;
use super::secrets::Secrets;
use super::store::lock::{LockError, acquire};
use super::store::paths::prepare;
use super::store::{Loaded, Lock, Store, StoreError, database_path};
use super::surroundings;
use omniscio_core::ipc::CliState;
use omniscio_core::launch::child_env::Var;
use omniscio_core::limits::Limits;
use omniscio_core::session::ChildMark;
use omniscio_core::settings::KillSwitches;
use omniscio_core::supervisor::{Input, State, Step, step};
use omniscio_core::time::Now;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The rules as a function: [`omniscio_core::supervisor::step`].
pub type Rules = fn(&mut State, Input, Now) -> Step;

/// Which CLI is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cli {
    /// The user's own: chosen in the settings, or looked for.
    Search,
    /// This one, with these arguments before the app's own.
    Fixed {
        /// The program, absolute.
        program: PathBuf,
        /// Its first arguments.
        args: Vec<OsString>,
    },
}

/// How a supervisor is to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data folder; made if it is not there.
    pub data_dir: PathBuf,
    /// The limits of the rules.
    pub limits: Limits,
    /// Which CLI is started.
    pub cli: Cli,
    /// The accounts; `None` for those of the data folder and of the environment.
    pub accounts: Option<Vec<Account>>,
    /// The environment that children start from; `None` asks the login shell.
    pub login_env: Option<Vec<Var>>,
    /// The switches of the environment.
    pub switches: KillSwitches,
    /// Runs on the bundled stand-in: marked in the window.
    pub fake: bool,
    /// Seed of ids and jitter; `None` for chance. One database must not see the same seed twice.
    pub seed: Option<u64>,
    /// The rules. A test plants a panic here.
    pub rules: Rules,
    /// Where the machine's load is read.
    pub sampler: Sampler,
}

impl Config {
    /// The app as a user runs it, on this data folder.
    pub fn new(data_dir: PathBuf) -> Config {
        Config {
            data_dir,
            limits: Limits::default(),
            cli: Cli::Search,
            accounts: None,
            login_env: None,
            switches: KillSwitches::default(),
            fake: false,
            seed: None,
            rules: step,
            sampler: Sampler::machine(),
        }
    }
}

/// Why a supervisor did not start. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one works on this data folder: its window is to be raised.
    #[error("Omniscio already runs with this data folder.")]
    AlreadyRuns {
        /// Its process id, if it has told it.
        pid: Option<u32>,
    },
    /// The limits contradict each other.
    #[error("The limits do not fit together: {0} does not hold.")]
    Limits(&'static str),
    /// The data folder cannot be used.
    #[error("The data folder cannot be used: {0}")]
    DataFolder(#[source] io::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no thread or no chance.
    #[error("The system refuses: {0}")]
    System(#[source] io::Error),
}

/// The supervising half of the app.
pub struct Supervisor;

impl Supervisor {
    /// Takes the data folder's lock, opens the store, ends what a crashed app left running, and starts
    /// the loop. Returns once the rows are in; may take some seconds where a login shell is slow.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(config: Config, listener: impl Listener) -> Result<Handle, StartError> {
        if let Some(relation) = config.limits.broken_relation() {
            return Err(StartError::Limits(relation));
        }
        pty::raise_descriptor_limit();
        prepare(&config.data_dir).map_err(StartError::DataFolder)?;
        let lock = lock(&config.data_dir)?;
        let given = config.login_env.clone();
        // a slow shell and a large database take their time side by side
        let asking = thread::Builder::new()
            .name("login-shell".to_string())
            .spawn(move || given.unwrap_or_else(surroundings::login_env))
            .map_err(StartError::System)?;
        let database = database_path(&config.data_dir);
        let mut store = Store::open(&database)?;
        store.close_open_blocks()?;
        let loaded = store.load()?;
        let reader = Store::open(&database)?;
        // a panic there has been printed; no rule stands on what the app then does not know
        let login_env = asking.join().unwrap_or_default();

        let (ground, cli) = ground(&config, login_env, &loaded)?;
        boot_sweep(&ground, store.children()?);
        let outbox = Outbox::start(Arc::new(listener)).map_err(StartError::System)?;
        let inbox = Arc::new(Inbox::default());
        let board = Arc::new(Board::new(loaded.settings, cli));
        let sample_every = Duration::from_millis(config.limits.load_sample_ms);
        let fixed = Fixed {
            limits: config.limits,
            switches: config.switches,
            accounts: ground.accounts.iter().map(Account::view).collect(),
            seed: config.seed.map_or_else(chance, Ok)?,
            rules: config.rules,
        };
        let effects = Effects::new(store, &ground, &inbox, outbox.clone(), Arc::clone(&board));
        let driver = Driver::new(effects, fixed, Arc::clone(&inbox), outbox, Arc::clone(&board));
        let sampling = config.sampler.start(sample_every, Arc::clone(&inbox));
        let (served, bound) = control_socket(&ground).map(ctl::Socket::split).unzip();
        start_loop(driver, (bound, lock), sampling)?;
        ask_version(&ground, &inbox);
        let handle = Handle::new(Inner {
            inbox,
            board,
            ground,
            reader: Mutex::new(reader),
            switches: config.switches,
            fake: config.fake,
            fixed: matches!(config.cli, Cli::Fixed { .. }),
            clock: Clock,
        });
        if let Some(Err(error)) = served.map(|served| served.serve(handle.clone())) {
            tracing::error!(%error, "nobody listens to `omniscio ctl`");
        }
        Ok(handle)
    }
}

/// The socket of `omniscio ctl`; the app works without it.
fn control_socket(ground: &Ground) -> Option<ctl::Socket> {
    // rule: A-22
    match ctl::Socket::bind(Path::new(&ground.data)) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::error!(%error, "there is no socket for `omniscio ctl`");
            None
        }
    }
}

fn lock(data_dir: &Path) -> Result<Lock, StartError> {
    // rule: A-31
    acquire(data_dir).map_err(|error| match error {
        LockError::Held { pid } => StartError::AlreadyRuns { pid },
        LockError::Io(error) => StartError::DataFolder(error),
    })
}

fn chance() -> Result<u64, StartError> {
    getrandom::u64().map_err(|error| StartError::System(io::Error::other(error.to_string())))
}

/// What launches stand on, and what is known of the CLI before it was asked.
fn ground(
    config: &Config,
    login_env: Vec<Var>,
    loaded: &Loaded,
) -> Result<(Arc<Ground>, CliState), StartError> {
    let accounts = config.accounts.clone().unwrap_or_else(|| {
        let (accounts, error) = accounts::load(&config.data_dir, &login_env);
        if let Some(error) = error {
            tracing::error!(%error, "the accounts' file is left out");
        }
        accounts
    });
    hide_secrets(&accounts, &login_env);
    let program = match &config.cli {
        Cli::Fixed { program, args } => Ok(Program { path: program.clone(), args: args.clone() }),
        Cli::Search => surroundings::find(&loaded.settings.claude_path, &login_env),
    };
    let cli = match &program {
        Ok(program) => {
            CliState::Found { path: program.path.display().to_string(), version: String::new() }
        }
        Err(looked) => surroundings::missing(looked),
    };
    let data = config.data_dir.canonicalize().map_err(StartError::DataFolder)?;
    let data = data.to_string_lossy().into_owned();
    let ground = Ground {
        program: Mutex::new(program),
        login_env,
        accounts,
        secrets: Secrets::new(&data, &config.limits),
        data,
        limits: config.limits.clone(),
    };
    Ok((Arc::new(ground), cli))
}

/// From now on no value of an account reaches the log, nor one that the environment names as a secret.
fn hide_secrets(accounts: &[Account], login_env: &[Var]) {
    let of_accounts = accounts.iter().flat_map(|account| &account.variables);
    let named = login_env.iter().filter(|(name, _)| logs::names_secret(name));
    logs::hide(of_accounts.chain(named).map(|(_, value)| value.as_str()));
}

/// Ends the children of an app that crashed, and what they left behind: also those of a session that
/// was being deleted, or whose row cannot be read.
fn boot_sweep(ground: &Ground, children: Vec<(String, ChildMark)>) {
    // rule: A-03
    let sessions = children.into_iter().map(|(session_id, child)| {
        let parent = ProcessId { pid: child.pid, start_time: child.start };
        RecordedSession { session_id, parents: vec![parent] }
    });
    let sessions: Vec<RecordedSession> = sessions.collect();
    if sessions.is_empty() {
        return;
    }
    let swept = children::boot_sweep(
        &ground.data,
        &sessions,
        ground.stop_timings(),
        ground.sweep_timings(),
    );
    for process in swept {
        let (session, pid, gone) = (&process.session_id, process.id.pid, process.gone);
        tracing::warn!(session, pid, gone, "a process of a crashed app was ended");
    }
}

/// The loop on its thread, and the samples for it; returns once its first state is in.
fn start_loop(driver: Driver, held: Held, sampling: Sampling) -> Result<(), StartError> {
    let (started, first) = sync_channel(1);
    thread::Builder::new()
        .name("supervisor".to_string())
        .spawn(move || {
            // an error means that nobody waits any more
            driver.run(|| started.send(()).unwrap_or_default(), held);
            drop(sampling);
        })
        .map_err(StartError::System)?;
    // an error means that the loop ended before: the listener has heard of it
    first.recv().ok();
    Ok(())
}

/// Asks the CLI for its version, which may take a second; it is told as an event.
fn ask_version(ground: &Arc<Ground>, inbox: &Arc<Inbox>) {
    let Ok(program) = ground.program() else {
        return;
    };
    let (ground, inbox) = (Arc::clone(ground), Arc::clone(inbox));
    let asked = thread::Builder::new().name("cli-version".to_string()).spawn(move || {
        let state = surroundings::look_at(&program, &ground.login_env);
        inbox.push(Message::Cli(state));
    });
    if let Err(error) = asked {
        tracing::warn!(%error, "the version of the CLI is not known");
    }
}
