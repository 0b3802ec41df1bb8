//! What one window test stands on: home, data folder, project, a CLI that keeps its command lines.

use crate::display::Display;
use crate::driver::{LONG, Window};
use crate::keyring::Keyring;
use omniscio_core::limits::Limits;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const APP: &str = env!("CARGO_BIN_EXE_omniscio");
const STAND_IN: &str = env!("CARGO_BIN_EXE_omniscio-fake-claude");

/// Folders of one test, and its display.
pub(crate) struct Ground {
    pub(crate) display: Display,
    /// The limits the app runs with.
    pub(crate) limits: Limits,
    /// The desktop's secret store, and the bus that it is on.
    pub(crate) keyring: Option<Keyring>,
    home: TempDir,
    accounts: Vec<Value>,
}

impl Ground {
    pub(crate) fn new() -> Ground {
        let home = tempfile::Builder::new().prefix("omniscio-window-").tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for folder in ["data", "project", "run"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::set_permissions(at("run"), fs::Permissions::from_mode(0o700)).unwrap();
        // the stand-in itself, with its command lines kept for the tests
        let cli = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || printf '%s\\n' \"$*\" >> '{}'\nexec '{STAND_IN}' \"$@\"\n",
            at("launches").display()
        );
        fs::write(at("cli"), cli).unwrap();
        fs::set_permissions(at("cli"), fs::Permissions::from_mode(0o755)).unwrap();
        let display = Display::start();
        let accounts = Vec::new();
        let mut ground = Ground { display, limits: limits(), keyring: None, home, accounts };
        ground.account("default", &[]);
        ground
    }

    /// Gives the desktop a secret store.
    pub(crate) fn with_keyring(&mut self) {
        self.keyring = Some(Keyring::start(self.home.path()));
    }

    /// A desktop without a secret store: the bus would start one that the machine has.
    pub(crate) fn without_keyring(&self) {
        let services = self.at("share/dbus-1/services");
        fs::create_dir_all(&services).unwrap();
        let none = "[D-BUS Service]\nName=org.freedesktop.secrets\nExec=/bin/false\n";
        fs::write(services.join("org.freedesktop.secrets.service"), none).unwrap();
    }

    /// An account for the app's next start. Its CLI does one line of the script per attempt; without a
    /// line, what the message says.
    pub(crate) fn account(&mut self, id: &str, script: &[&str]) {
        let config = self.at(&format!("claude-{id}"));
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("fake-script"), script.join("\n")).unwrap();
        self.accounts.retain(|known| known["id"] != id);
        let account = json!({ "id": id, "label": id, "configDir": config });
        self.accounts.push(account);
        let all = Value::from(self.accounts.clone());
        fs::write(self.at("data/accounts.json"), all.to_string()).unwrap();
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn project(&self) -> String {
        self.at("project").display().to_string()
    }

    /// The app's whole environment: nothing of the machine's own reaches it.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let home = |name: &str| self.at(name).display().to_string();
        let limits = serde_json::to_string(&self.limits).unwrap();
        let path = std::env::var("PATH").unwrap();
        let bus = self.keyring.iter().map(|keyring| ("DBUS_SESSION_BUS_ADDRESS", &keyring.address));
        let bus = bus.map(|(name, value)| (name.to_owned(), value.clone()));
        [
            ("PATH", path),
            ("HOME", home("")),
            ("SHELL", "/bin/sh".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("DISPLAY", self.display.name.clone()),
            ("GDK_BACKEND", "x11".to_owned()),
            ("XDG_RUNTIME_DIR", home("run")),
            ("XDG_DATA_HOME", home("share")),
            ("XDG_CONFIG_HOME", home("config")),
            ("XDG_CACHE_HOME", home("cache")),
            ("OMNISCIO_DATA_DIR", home("data")),
            ("OMNISCIO_LIMITS", limits),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .chain(bus)
        .collect()
    }

    pub(crate) fn args(&self) -> Vec<String> {
        vec!["--claude".to_owned(), self.at("cli").display().to_string()]
    }

    /// Opens the app's window.
    pub(crate) async fn open(&self) -> Window {
        Window::open(APP, &self.args(), &self.env()).await
    }

    /// The command lines of the CLI so far.
    pub(crate) fn launches(&self) -> String {
        fs::read_to_string(self.at("launches")).unwrap_or_default()
    }

    /// How many messages with this text the app has taken so far.
    pub(crate) fn messages(&self, text: &str) -> i64 {
        let store = Connection::open(self.at("data/omniscio.db")).unwrap();
        let count = "SELECT count(*) FROM messages WHERE text = ?1";
        store.query_row(count, [text], |row| row.get(0)).unwrap()
    }

    /// All that the app's logs say.
    pub(crate) fn log(&self) -> String {
        let files = fs::read_dir(self.at("data/logs")).unwrap().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect()
    }

    /// The app's process, as its lock names it.
    pub(crate) fn app_process(&self) -> Option<u32> {
        let lock = fs::read_to_string(self.at("data/omniscio.lock")).ok()?;
        lock.trim().parse().ok()
    }

    /// Waits until this process has ended.
    pub(crate) fn until_ended(process: u32) {
        let stat = format!("/proc/{process}/stat");
        wait_for("the app's end", || {
            // a zombie has ended: its parent, the driver, does not matter here
            let stat = fs::read_to_string(Path::new(&stat)).unwrap_or_default();
            let state = stat.rsplit(") ").next().unwrap_or_default();
            (state.is_empty() || state.starts_with(['Z', 'X'])).then_some(())
        });
    }
}

/// A recovery within seconds, and a hidden time that outlasts it. No rung of the ladder comes by itself,
/// and a busy machine holds nothing up: it is not looked at.
fn limits() -> Limits {
    Limits {
        scan_interval_ms: 1_000,
        scan_boot_delay_ms: 300,
        replay_debounce_ms: 2_000,
        hide_max_ms: 120_000,
        ladder_first_ms: 600_000,
        ladder_max_ms: 1_800_000,
        load_window_ms: 7_200_000,
        load_sample_ms: 3_600_000,
        load_samples_min: 2,
        pulse_ms: 500,
        drain_ms: 500,
        ..Limits::rehearsal()
    }
}

/// Waits for something outside of the window.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} does not come");
        thread::sleep(Duration::from_millis(20));
    }
}
