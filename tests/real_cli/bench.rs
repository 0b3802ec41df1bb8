//! A headless supervisor on the pinned real CLI and a mock API, with short limits: what the tests of
//! this target drive. It holds no assertion of its own but the one about repeated texts.

use crate::apart::{Apart, App, Job};
use crate::seen::Seen;
use crate::support::mock_api::{MockApi, Request};
use crate::support::real_cli::{CliHome, cli_path, wait_for, wait_until};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{AuditLine, CliState, IpcError, Reply, RowView};
use omniscio_core::limits::Limits;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Command;
use omniscio_core::time::Now;
use omniscio_lib::supervise::accounts::Account;
use omniscio_lib::supervise::handle::Handle;
use omniscio_lib::supervise::load::Sampler;
use omniscio_lib::supervise::supervisor::{Cli, Config, StartError, Supervisor};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limits that let a recovery happen within seconds.
pub(crate) fn limits() -> Limits {
    Limits {
        scan_interval_ms: 500,
        scan_boot_delay_ms: 300,
        replay_debounce_ms: 1_500,
        // no rung comes by itself, unless the test is about the ladder
        ladder_first_ms: 1_800_000,
        cli_byte_idle_ms: 10_000,
        cli_heals_first_margin_ms: 1_000,
        // a slow machine is no fault: what waits for one of these is about it
        silence_open_block_ms: 60_000,
        silence_between_ms: 60_000,
        first_output_ms: 60_000,
        handshake_ms: 60_000,
        interrupt_grace_ms: 20_000,
        ..Limits::default()
    }
}

/// Timers of the CLI that no reply held at a gate comes near.
const PATIENT: [(&str, &str); 2] =
    [("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", "300000"), ("API_TIMEOUT_MS", "60000")];

/// One supervisor, its CLI's home, and the API it talks to.
pub(crate) struct Bench {
    pub(crate) api: MockApi,
    pub(crate) home: CliHome,
    pub(crate) seen: Seen,
    app: Option<App>,
    data: tempfile::TempDir,
    /// Variables beside those of the home; a later one of the same name wins.
    extra: Vec<(String, String)>,
    limits: Limits,
    /// The account is a login, not an API key.
    login: bool,
    /// The CLI that is started.
    program: PathBuf,
}

/// Starts a supervisor once its data folder is free.
pub(crate) fn started(config: &Config, seen: &Seen) -> Handle {
    // a process that is just being started shares the lock of the one before until it execs
    let started = wait_for(Duration::from_secs(30), "the lock", || {
        match Supervisor::start(config.clone(), seen.clone()) {
            Err(StartError::AlreadyRuns { .. }) => None,
            started => Some(started),
        }
    });
    started.expect("a supervisor")
}

/// How a supervisor is configured on this home; also in a process of its own.
pub(crate) fn config(data: &Path, variables: Vec<(String, String)>, config_dir: PathBuf) -> Config {
    let account = Account {
        id: "test".into(),
        label: "Test".into(),
        config_dir: Some(config_dir),
        variables,
        api_key: true,
    };
    let login = [("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())];
    Config {
        limits: limits(),
        cli: Cli::Fixed { program: cli_path(), args: Vec::new() },
        accounts: Some(vec![account]),
        login_env: Some(login.to_vec()),
        sampler: Sampler::calm(),
        ..Config::new(data.to_path_buf())
    }
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(limits(), &[])
    }

    /// One with other limits and further variables of the account.
    pub(crate) fn with(limits: Limits, extra: &[(&str, &str)]) -> Bench {
        let mut bench = Bench::with_limits(limits);
        bench.extra.extend(extra.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        bench.start();
        bench
    }

    /// One that is not started yet, with the CLI at a place where the test puts it, or does not.
    pub(crate) fn with_slot(limits: Limits) -> (Bench, PathBuf) {
        let mut bench = Bench::with_limits(limits);
        let slot = bench.home.project().with_file_name("claude");
        bench.program = slot.clone();
        (bench, slot)
    }

    /// One with an account that is a login.
    pub(crate) fn with_login() -> Bench {
        let mut bench = Bench::quiet();
        bench.login = true;
        bench.extra.push(("CLAUDE_CODE_OAUTH_TOKEN".into(), "dummy-token-for-tests".into()));
        bench.start();
        bench
    }

    /// A bench whose supervisor is not started yet.
    pub(crate) fn quiet() -> Bench {
        Bench::with_limits(limits())
    }

    /// The same with other limits.
    pub(crate) fn with_limits(limits: Limits) -> Bench {
        let api = MockApi::start();
        let home = CliHome::new(&api);
        let data = tempfile::tempdir().expect("a temporary folder");
        let extra = PATIENT.map(|(name, value)| (name.into(), value.into())).to_vec();
        let seen = Seen::default();
        let (app, login, program) = (None, false, cli_path());
        Bench { api, home, seen, app, data, extra, limits, login, program }
    }

    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = config(self.data(), self.variables(), self.home.config());
        for account in config.accounts.iter_mut().flatten() {
            account.api_key = !self.login;
        }
        let cli = Cli::Fixed { program: self.program.clone(), args: Vec::new() };
        Config { limits: self.limits.clone(), cli, ..config }
    }

    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let home = self.home.env().into_iter().map(|(name, value)| (name.to_string(), value));
        let kept = home.filter(|(name, _)| {
            let replaced = self.extra.iter().any(|(extra, _)| extra == name);
            let foreign = self.login && name == "ANTHROPIC_API_KEY";
            !(replaced || foreign)
        });
        kept.chain(self.extra.iter().cloned()).collect()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn try_start(&self) -> Result<Handle, StartError> {
        Supervisor::start(self.config(), self.seen.clone())
    }

    pub(crate) fn start(&mut self) {
        self.app = Some(App::Here(started(&self.config(), &self.seen)));
    }

    /// Starts the supervisor in a process of its own; see [`Apart::start`].
    pub(crate) fn start_apart(&mut self, test_path: &str) {
        let job = Job {
            data: self.data().to_path_buf(),
            config_dir: self.home.config(),
            variables: self.variables(),
            limits: self.limits.clone(),
            program: self.program.clone(),
        };
        self.app = Some(App::Apart(Apart::start(&job, test_path)));
    }

    /// The supervisor in a process of its own.
    pub(crate) fn apart(&self) -> &Apart {
        match self.app() {
            App::Apart(apart) => apart,
            App::Here(_) => panic!("the supervisor is in this process"),
        }
    }

    /// SIGKILL for the supervisor in a process of its own.
    pub(crate) fn kill_app(&mut self) {
        match self.app.take() {
            Some(App::Apart(apart)) => apart.kill(),
            Some(App::Here(_)) | None => panic!("no supervisor in a process of its own"),
        }
    }

    /// Ends the supervisor in an orderly way.
    pub(crate) fn quit(&mut self) {
        if let Some(App::Here(handle)) = self.app.take() {
            handle.quit().expect("an orderly end");
            assert!(handle.ended_within(Duration::from_secs(60)), "the loop ends");
        }
    }

    fn app(&self) -> &App {
        self.app.as_ref().expect("a running supervisor")
    }

    /// The supervisor in this process.
    pub(crate) fn handle(&self) -> &Handle {
        match self.app() {
            App::Here(handle) => handle,
            App::Apart(_) => panic!("the supervisor is in a process of its own"),
        }
    }

    pub(crate) fn command(&self, command: Command) -> Result<Reply, IpcError> {
        self.app().command(command)
    }

    pub(crate) fn rows(&self) -> Vec<RowView> {
        self.app().rows()
    }

    /// Waits until the supervisor has asked the CLI for its version, which is how every start ends.
    pub(crate) fn wait_version(&self) {
        wait_until(Duration::from_secs(60), "the CLI's version", || match self.app().cli() {
            CliState::Found { version, .. } => !version.is_empty(),
            CliState::Missing { .. } | CliState::Broken { .. } => true,
        });
    }

    /// The session's newest lines of the audit log, newest first.
    pub(crate) fn audit(&self, session: SessionId) -> Vec<AuditLine> {
        self.app().audit(Some(session))
    }

    pub(crate) fn create(&self, text: &str) -> SessionId {
        self.create_in(&self.home.project(), text, false)
    }

    pub(crate) fn create_in(
        &self,
        folder: &Path,
        text: &str,
        user_settings_only: bool,
    ) -> SessionId {
        let made = self.command(Command::Create {
            folder: folder.display().to_string(),
            text: text.into(),
            model: None,
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only,
        });
        let made = made.expect("a session");
        let Reply::Created(id) = made else { panic!("{made:?}") };
        id
    }

    pub(crate) fn send(&self, session: SessionId, text: &str) {
        let sent = self.command(Command::Send { session, text: text.into(), now: false });
        assert!(matches!(sent, Ok(Reply::Accepted(_))), "{sent:?}");
    }

    pub(crate) fn view(&self, session: SessionId) -> RowView {
        self.rows().into_iter().find(|view| view.row.id == session).expect("the row")
    }

    pub(crate) fn row(&self, session: SessionId) -> SessionRow {
        self.view(session).row
    }

    pub(crate) fn blocks(&self, session: SessionId) -> Vec<Block> {
        self.app().blocks(session)
    }

    /// The agent's visible texts, in order.
    pub(crate) fn answers(&self, session: SessionId) -> Vec<String> {
        let whole = self.blocks(session).into_iter().filter(|block| !block.cut_off);
        let texts = whole.filter_map(|block| {
            if let BlockKind::Assistant { text } = block.kind { Some(text) } else { None }
        });
        texts.collect()
    }

    /// Number of the person's bubbles.
    pub(crate) fn bubbles(&self, session: SessionId) -> usize {
        let blocks = self.blocks(session);
        blocks.iter().filter(|block| matches!(block.kind, BlockKind::Operator { .. })).count()
    }

    pub(crate) fn wait_state(
        &self,
        session: SessionId,
        what: &str,
        state: (Status, Option<PendingAction>),
    ) -> SessionRow {
        wait_for(Duration::from_secs(60), what, || {
            let row = self.row(session);
            ((row.status, row.pending) == state).then_some(row)
        })
    }

    /// Waits until the turn is answered and handed to the person.
    pub(crate) fn wait_answer(&self, session: SessionId, text: &str) {
        wait_until(Duration::from_secs(60), &format!("the answer {text:?}"), || {
            let row = self.row(session);
            (row.status, row.pending) == (Status::NeedsYou, None)
                && self.answers(session).iter().any(|answer| answer.contains(text))
        });
    }

    /// SIGKILL for the session's CLI, by its recorded pid.
    pub(crate) fn kill_cli(&self, session: SessionId) {
        let child = self.row(session).child.expect("a child");
        signal(child.pid, "KILL");
    }

    /// Restarts of the session by an automatic actor, from the audit log.
    pub(crate) fn replays(&self, session: SessionId) -> usize {
        self.audit(session).iter().filter(|line| line.reason == "attempt charged").count()
    }

    /// Every row of the session that the window was told, with the time of telling.
    pub(crate) fn told(&self, session: SessionId) -> Vec<(Now, RowView)> {
        self.seen.rows(session)
    }

    /// Notifications about the session.
    pub(crate) fn notified(&self, session: SessionId) -> usize {
        self.seen.notified(session)
    }

    /// What a failed test wants to know: rows, decisions, conversations, audit log, requests.
    fn tell(&self) {
        let Some(app) = &self.app else { return };
        for view in app.rows() {
            let session = view.row.id;
            println!("{:#?}\n{:#?}", view.row, view.live);
            println!("{:#?}", app.command(Command::Explain { session }));
            for block in app.blocks(session) {
                println!("{:?} cut off: {}", block.kind, block.cut_off);
            }
        }
        for line in app.audit(None).iter().rev() {
            println!(
                "{} {} {} {} {}",
                line.at.0, line.title, line.actor, line.reason, line.outcome
            );
        }
        for (n, request) in self.api.main_requests().iter().enumerate() {
            println!("request {n}: {:?}", request.last_user_text());
        }
    }

    /// In no request stands the text more than once.
    pub(crate) fn assert_never_twice(&self, text: &str) {
        for request in self.api.main_requests() {
            assert!(
                request.count_text_in_history(text) <= 1,
                "{text:?} twice in {}",
                body(&request)
            );
        }
    }
}

pub(crate) fn body(request: &Request) -> String {
    format!("{:#}", request.body["messages"])
}

/// Sends a signal to a process of ours, by its id.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status()
        .expect("kill is there");
    assert!(sent.success(), "kill -{name} {pid}");
}

impl Drop for Bench {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
        if let Some(App::Here(handle)) = self.app.take() {
            // a failing test must not hang at its end as well
            drop(handle.quit());
        }
    }
}
