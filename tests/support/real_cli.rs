//! The pinned real CLI and a home of its own for one test.
//! It never uses a `claude` of the machine, its credentials or its configuration: the key is a dummy, and the
//! folders are temporary and removed at the end.

use super::mock_api::MockApi;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The idle limit of a stream in tests, in milliseconds: the shortest that the CLI accepts.
pub const BYTE_IDLE_MS: u64 = 10_000;
/// How long the CLI waits for response headers in tests, in milliseconds.
pub const API_TIMEOUT_MS: u64 = 5_000;

/// The pinned CLI.
///
/// # Panics
/// With what to do, when it is missing or another version is installed.
pub fn cli_path() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_cli");
    let cli = folder.join("node_modules/.bin/claude");
    assert!(
        cli.exists(),
        "the real CLI is not installed: run `cargo xtask test`, or `npm ci` in tests/real_cli"
    );
    let package = "@anthropic-ai/claude-code";
    let pinned = read_json(&folder.join("package.json"))["dependencies"][package].clone();
    let installed =
        read_json(&folder.join("node_modules").join(package).join("package.json"))["version"]
            .clone();
    assert_eq!(
        installed, pinned,
        "another version of the real CLI is installed: run `cargo xtask test`, or `npm ci` in tests/real_cli"
    );
    cli
}

fn read_json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// HOME, config folder and project folder of one test, all temporary, readable for the user alone.
pub struct CliHome {
    root: TempDir,
    base_url: String,
}

impl CliHome {
    /// Makes the folders for a CLI that talks to `api`.
    pub fn new(api: &MockApi) -> Self {
        let root =
            tempfile::Builder::new().prefix("omniscio-cli-").tempdir().expect("a temporary folder");
        let home = Self { root, base_url: api.base_url() };
        for folder in [home.home(), home.config(), home.project(), home.tmp()] {
            fs::create_dir(&folder).expect("a new folder in a temporary one");
            fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("an own folder");
        }
        home
    }

    /// `HOME`.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// `CLAUDE_CONFIG_DIR`.
    pub fn config(&self) -> PathBuf {
        self.root.path().join("config")
    }

    /// An empty folder to start sessions in.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// The folder of the CLI's temporary files: sockets, and the output of background tasks.
    pub fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// The variables of the test's account: where the CLI talks to, with which key, and with which timers.
    pub fn env(&self) -> Vec<(String, String)> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let pairs = [
            ("ANTHROPIC_BASE_URL", self.base_url.clone()),
            ("ANTHROPIC_API_KEY", "dummy-key-for-tests".to_owned()),
            ("HOME", path(self.home())),
            ("CLAUDE_CONFIG_DIR", path(self.config())),
            ("TMPDIR", path(self.tmp())),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("API_TIMEOUT_MS", API_TIMEOUT_MS.to_string()),
            ("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", BYTE_IDLE_MS.to_string()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// All transcripts, sorted by path.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.config().join("projects")).into_iter().flatten().flatten();
        let files =
            folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
        paths.sort();
        paths
    }

    /// The transcript of one session, wherever the CLI has put it.
    pub fn transcript(&self, session_id: &str) -> Option<PathBuf> {
        let mut all = self.transcripts();
        all.retain(|path| path.file_stem().is_some_and(|stem| stem == session_id));
        all.pop()
    }

    /// The lines of a session's transcript; a torn last line is left out, as the CLI does.
    pub fn transcript_lines(&self, session_id: &str) -> Vec<Value> {
        let text = self.transcript(session_id).and_then(|path| fs::read_to_string(path).ok());
        let text = text.unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Looks every 20 ms until `condition` holds.
///
/// # Panics
/// Naming `what`, when it does not hold within `timeout`.
#[track_caller]
pub fn wait_until(timeout: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(timeout, what, || condition().then_some(()));
}

/// Looks every 20 ms until `look` finds something, and returns it.
///
/// # Panics
/// Naming `what`, when nothing is found within `timeout`.
#[track_caller]
pub fn wait_for<T>(timeout: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {timeout:?} in vain for: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
