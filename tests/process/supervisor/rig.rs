//! A supervisor on a data folder and a project of its own, with the bundled stand-in as its CLI.

use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Event, Reply, RowView};
use omniscio_core::limits::Limits;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Command;
use omniscio_lib::supervise::accounts::Account;
use omniscio_lib::supervise::clock::Deadline;
use omniscio_lib::supervise::handle::Handle;
use omniscio_lib::supervise::listener::Listener;
use omniscio_lib::supervise::load::Sampler;
use omniscio_lib::supervise::supervisor::{Cli, Config, Supervisor};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Beyond this a test hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Folders of one test: the app's data, a project, the CLI's config.
pub(crate) struct Ground {
    pub(crate) home: TempDir,
}

impl Ground {
    pub(crate) fn new() -> Ground {
        let home = tempfile::tempdir().unwrap();
        for folder in ["data", "project", "config"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        Ground { home }
    }

    pub(crate) fn start(&self) -> App {
        App::start(config(self.home.path()))
    }
}

/// The stand-in as the CLI, short limits, one account of its own.
pub(crate) fn config(home: &Path) -> Config {
    let account = Account {
        id: "test".to_string(),
        label: "Test".to_string(),
        config_dir: Some(home.join("config")),
        variables: Vec::new(),
        api_key: true,
    };
    let env = [("PATH", "/usr/bin:/bin"), ("HOME", home.to_str().unwrap())];
    Config {
        limits: limits(),
        cli: Cli::Fixed {
            program: env!("CARGO_BIN_EXE_omniscio-fake-claude").into(),
            args: Vec::new(),
        },
        accounts: Some(vec![account]),
        login_env: Some(env.map(|(name, value)| (name.to_string(), value.to_string())).to_vec()),
        fake: true,
        sampler: Sampler::calm(),
        ..Config::new(home.join("data"))
    }
}

/// A recovery within seconds.
fn limits() -> Limits {
    Limits {
        scan_interval_ms: 200,
        scan_boot_delay_ms: 100,
        replay_debounce_ms: 300,
        pulse_ms: 1_000,
        drain_ms: 500,
        ..Limits::rehearsal()
    }
}

/// What a listener was told.
#[derive(Default)]
pub(crate) struct Heard {
    told: Mutex<Told>,
    more: Condvar,
}

#[derive(Default)]
pub(crate) struct Told {
    pub(crate) events: Vec<Event>,
    pub(crate) notices: Vec<String>,
    pub(crate) badge: usize,
    pub(crate) exited: bool,
}

impl Heard {
    fn add(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.lock().unwrap());
        self.more.notify_all();
    }
}

/// Nobody listens.
pub(crate) struct Deaf;

impl Listener for Deaf {
    fn events(&self, _: Vec<Event>) {}
    fn notify(&self, _: SessionId, _: &str, _: &str) {}
    fn badge(&self, _: usize) {}
    fn exited(&self) {}
}

struct Ears(Arc<Heard>);

impl Listener for Ears {
    fn events(&self, batch: Vec<Event>) {
        self.0.add(|told| told.events.extend(batch));
    }
    fn notify(&self, _: SessionId, title: &str, body: &str) {
        self.0.add(|told| told.notices.push(format!("{title}: {body}")));
    }
    fn badge(&self, count: usize) {
        self.0.add(|told| told.badge = count);
    }
    fn exited(&self) {
        self.0.add(|told| told.exited = true);
    }
}

/// A new session in the project of this home with this first message.
pub(crate) fn create(handle: &Handle, home: &Path, text: &str) -> SessionId {
    let command = Command::Create {
        folder: home.join("project").display().to_string(),
        text: text.to_string(),
        model: None,
        permission_mode: None,
        account: None,
        endpoint: None,
        user_settings_only: false,
    };
    match handle.command(command) {
        Ok(Reply::Created(session)) => session,
        other => panic!("{other:?}"),
    }
}

/// A running supervisor and what it tells. It quits when the test is done with it.
pub(crate) struct App {
    pub(crate) handle: Handle,
    heard: Arc<Heard>,
}

impl App {
    pub(crate) fn start(config: Config) -> App {
        let heard = Arc::new(Heard::default());
        let handle = Supervisor::start(config, Ears(Arc::clone(&heard))).unwrap();
        App { handle, heard }
    }

    /// A new session in the project with this first message.
    pub(crate) fn create(&self, ground: &Ground, text: &str) -> SessionId {
        create(&self.handle, ground.home.path(), text)
    }

    /// Waits until the listener was told this.
    pub(crate) fn until<T>(&self, what: &str, mut found: impl FnMut(&Told) -> Option<T>) -> T {
        let deadline = Deadline::after(LONG);
        let mut told = self.heard.told.lock().unwrap();
        loop {
            if let Some(found) = found(&told) {
                return found;
            }
            if deadline.passed() {
                drop(told);
                panic!("no {what} in time; {}", self.story());
            }
            told = self.heard.more.wait_timeout(told, deadline.left()).unwrap().0;
        }
    }

    /// Waits until the session's row, as last told, is like this.
    pub(crate) fn until_row(
        &self,
        session: SessionId,
        what: &str,
        like: impl Fn(&RowView) -> bool,
    ) -> SessionRow {
        self.until(what, |told| {
            let row = told.events.iter().rev().find_map(|event| {
                let Event::Row(view) = event else { return None };
                (view.row.id == session).then_some(view)
            });
            row.filter(|view| like(view)).map(|view| view.row.clone())
        })
    }

    /// Waits for a delivered answer.
    pub(crate) fn until_answered(&self, session: SessionId) -> SessionRow {
        self.until_row(session, "answer", |view| {
            let RowView { row, .. } = view;
            (row.status, row.pending) == (Status::NeedsYou, None) && row.turn.is_none()
        })
    }

    /// Waits until the row needs the person after all replays.
    pub(crate) fn until_failed(&self, session: SessionId) -> SessionRow {
        self.until_row(session, "failed recovery", |view| {
            view.row.pending == Some(PendingAction::RecoveryFailed)
                && view.row.status != Status::Starting
                && view.row.turn.is_none()
        })
    }

    /// The reasons of the audit log, oldest first.
    pub(crate) fn reasons(&self, session: SessionId) -> Vec<String> {
        let lines = self.handle.audit(Some(session), 500).unwrap();
        lines.iter().rev().map(|line| format!("{}: {}", line.actor, line.reason)).collect()
    }

    /// How often the audit log holds this.
    pub(crate) fn count(&self, session: SessionId, line: &str) -> usize {
        self.reasons(session).iter().filter(|reason| *reason == line).count()
    }

    pub(crate) fn quit(&self) {
        self.handle.quit().unwrap();
        assert!(self.handle.ended_within(LONG), "the app does not end");
        self.until("exit", |told| told.exited.then_some(()));
    }

    /// All that the audit log says, for the words of a failure.
    fn story(&self) -> String {
        let lines = self.handle.audit(None, 500).unwrap_or_default();
        let line = |line: &omniscio_core::ipc::AuditLine| {
            format!("{}: {} ({})\n", line.actor, line.reason, line.outcome)
        };
        lines.iter().rev().map(line).collect()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if self.handle.quit().is_ok() {
            self.handle.ended_within(LONG);
        }
    }
}

/// Processes of this machine that carry the marker of this data folder.
pub(crate) fn marked(home: &Path) -> Vec<u32> {
    let data = home.join("data").canonicalize().unwrap();
    let wanted = format!("OMNISCIO_DATA={}", data.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let carries = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes())
    };
    pids.filter(carries).collect()
}
