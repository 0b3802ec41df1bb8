//! What the measurements stand on: this program as a child of the real spawn, a headless supervisor
//! with a listener that does what the window's does, folders of their own.

use crate::child::Role;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Event, Reply};
use omniscio_core::session::Status;
use omniscio_core::supervisor::{Command, step};
use omniscio_lib::supervise::accounts::Account;
use omniscio_lib::supervise::handle::Handle;
use omniscio_lib::supervise::listener::Listener;
use omniscio_lib::supervise::pty::LaunchLine;
use omniscio_lib::supervise::supervisor::{Cli, Config, Rules, Supervisor};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Beyond this a measurement hangs.
const LONG: Duration = Duration::from_secs(120);

/// This program.
pub(crate) fn own_program() -> PathBuf {
    std::env::current_exe().expect("my own program file")
}

/// This program as a child of [`omniscio_lib::supervise::pty::spawn`].
pub(crate) fn line(role: &Role<'_>, folder: &Path) -> LaunchLine {
    LaunchLine {
        program: own_program(),
        args: role.args().into_iter().map(OsString::from).collect(),
        env: Vec::new(),
        cwd: folder.to_path_buf(),
    }
}

/// The bundled stand-in as the CLI.
pub(crate) fn stand_in() -> Cli {
    let program = env!("CARGO_BIN_EXE_omniscio-fake-claude").into();
    Cli::Fixed { program, args: Vec::new() }
}

/// A running supervisor with the limits of a user's app.
pub(crate) struct App {
    pub(crate) handle: Handle,
    home: TempDir,
    told: Arc<Told>,
}

/// The last status of each session.
#[derive(Default)]
struct Told {
    rows: Mutex<BTreeMap<SessionId, Status>>,
    more: Condvar,
}

struct Ears(Arc<Told>);

impl Listener for Ears {
    fn events(&self, batch: Vec<Event>) {
        // the window's listener hands each event to the page as JSON
        for event in &batch {
            std::hint::black_box(serde_json::to_string(event).expect("an event as JSON"));
        }
        let mut rows = self.0.rows.lock().expect("no panic while told");
        let told = batch.iter().filter_map(|event| match event {
            Event::Row(view) => Some((view.row.id, view.row.status)),
            Event::Gone(_)
            | Event::Block { .. }
            | Event::Delta { .. }
            | Event::Settings(_)
            | Event::Cli(_)
            | Event::StoreTrouble(_)
            | Event::Load(_)
            | Event::Open(_)
            | Event::Sent(_) => None,
        });
        let before = rows.len();
        let mut changed = false;
        for (session, status) in told {
            changed |= rows.insert(session, status) != Some(status);
        }
        if changed || rows.len() != before {
            self.0.more.notify_all();
        }
    }

    fn notify(&self, _: SessionId, _: &str, _: &str) {}

    fn badge(&self, _: usize) {}

    fn exited(&self) {}
}

impl App {
    /// A supervisor on this CLI.
    pub(crate) fn start(cli: Cli, rules: Rules) -> App {
        let home = tempfile::tempdir().expect("a folder");
        for folder in ["data", "project", "config"] {
            fs::create_dir(home.path().join(folder)).expect("a folder");
        }
        let account = Account {
            id: "bench".to_owned(),
            label: "Bench".to_owned(),
            config_dir: Some(home.path().join("config")),
            variables: Vec::new(),
            api_key: true,
        };
        let login = [("PATH", "/usr/bin:/bin".to_owned()), ("HOME", path(home.path()))];
        let config = Config {
            cli,
            accounts: Some(vec![account]),
            login_env: Some(login.map(|(name, value)| (name.to_owned(), value)).to_vec()),
            fake: true,
            rules,
            ..Config::new(home.path().join("data"))
        };
        let told = Arc::new(Told::default());
        let handle = Supervisor::start(config, Ears(Arc::clone(&told))).expect("a supervisor");
        App { handle, home, told }
    }

    /// The same with the rules as they are.
    pub(crate) fn plain(cli: Cli) -> App {
        App::start(cli, step)
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A new session with this first message.
    pub(crate) fn create(&self, text: &str) -> SessionId {
        let command = Command::Create {
            folder: path(&self.home.path().join("project")),
            text: text.to_owned(),
            model: None,
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only: false,
        };
        match self.handle.command(command) {
            Ok(Reply::Created(session)) => session,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until each of these has this status.
    pub(crate) fn until(&self, sessions: &[SessionId], status: Status) {
        let there = |rows: &mut BTreeMap<SessionId, Status>| {
            sessions.iter().any(|session| rows.get(session) != Some(&status))
        };
        let rows = self.told.rows.lock().expect("no panic while told");
        let (rows, waited) =
            self.told.more.wait_timeout_while(rows, LONG, there).expect("no panic while told");
        assert!(!waited.timed_out(), "no {status:?} in time: {rows:?}");
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if self.handle.quit().is_ok() {
            self.handle.ended_within(LONG);
        }
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}
