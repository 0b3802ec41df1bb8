//! A headless supervisor on the pinned real CLI and a mock API, with short limits: what the tests of
//! this target drive. It holds no assertion of its own but the one about repeated texts.

use crate::support::mock_api::{MockApi, Request};
use crate::support::real_cli::{CliHome, cli_path, wait_for, wait_until};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Event, IpcError, Reply, RowView};
use omniscio_core::limits::Limits;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Command;
use omniscio_core::time::{Day, Mono, Now, Wall};
use omniscio_lib::supervise::accounts::Account;
use omniscio_lib::supervise::handle::Handle;
use omniscio_lib::supervise::listener::Listener;
use omniscio_lib::supervise::load::Sampler;
use omniscio_lib::supervise::supervisor::{Cli, Config, StartError, Supervisor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// What the window would have been told.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// With the time at which it was told.
    rows: Vec<(Now, RowView)>,
    notified: Vec<SessionId>,
}

/// The wall clock of this moment, for what the window works out of a row.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let wall = Wall(i64::try_from(since.as_millis()).expect("before the year 292,278,994"));
    Now { wall, mono: Mono(0), day: Day(0) }
}

impl Listener for Seen {
    fn events(&self, batch: Vec<Event>) {
        let rows = batch.into_iter().filter_map(|event| match event {
            Event::Row(row) => Some((now(), *row)),
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
        self.0.lock().expect("no panic while told").rows.extend(rows);
    }

    fn notify(&self, session: SessionId, _: &str, _: &str) {
        self.0.lock().expect("no panic while told").notified.push(session);
    }

    fn badge(&self, _: usize) {}

    fn exited(&self) {}
}

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
        silence_open_block_ms: 30_000,
        silence_between_ms: 40_000,
        first_output_ms: 40_000,
        ..Limits::default()
    }
}

/// One supervisor, its CLI's home, and the API it talks to.
pub(crate) struct Bench {
    pub(crate) api: MockApi,
    pub(crate) home: CliHome,
    pub(crate) seen: Seen,
    handle: Option<Handle>,
    data: tempfile::TempDir,
    /// Variables beside those of the home; a later one of the same name wins.
    extra: Vec<(String, String)>,
    limits: Limits,
    /// The account is a login, not an API key.
    login: bool,
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
        let api = MockApi::start();
        let home = CliHome::new(&api);
        let data = tempfile::tempdir().expect("a temporary folder");
        let (seen, limits) = (Seen::default(), limits());
        let (extra, login) = (Vec::new(), false);
        let mut bench = Bench { api, home, seen, handle: None, data, extra, limits, login };
        bench.start();
        bench
    }

    /// The same with an account that is a login.
    pub(crate) fn with_login() -> Bench {
        let mut bench = Bench::new();
        bench.quit();
        bench.login = true;
        bench.extra.push(("CLAUDE_CODE_OAUTH_TOKEN".into(), "dummy-token-for-tests".into()));
        bench.start();
        bench
    }

    /// The same with other limits and further variables of the account.
    pub(crate) fn with(limits: Limits, extra: &[(&str, &str)]) -> Bench {
        let mut bench = Bench::new();
        bench.quit();
        bench.limits = limits;
        bench.extra = extra.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        bench.start();
        bench
    }

    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = config(self.data(), self.variables(), self.home.config());
        for account in config.accounts.iter_mut().flatten() {
            account.api_key = !self.login;
        }
        Config { limits: self.limits.clone(), ..config }
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
        // a process that is just being started shares the lock of the one before until it execs
        let started = wait_for(Duration::from_secs(10), "the lock", || match self.try_start() {
            Err(StartError::AlreadyRuns { .. }) => None,
            started => Some(started),
        });
        self.handle = Some(started.expect("a supervisor"));
    }

    /// Ends the supervisor in an orderly way.
    pub(crate) fn quit(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.quit().expect("an orderly end");
            assert!(handle.ended_within(Duration::from_secs(30)), "the loop ends");
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.handle.as_ref().expect("a running supervisor")
    }

    pub(crate) fn command(&self, command: Command) -> Result<Reply, IpcError> {
        self.handle().command(command)
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
        let snapshot = self.handle().snapshot().expect("a snapshot");
        let found = snapshot.rows.into_iter().find(|view| view.row.id == session);
        found.expect("the row")
    }

    pub(crate) fn row(&self, session: SessionId) -> SessionRow {
        self.view(session).row
    }

    pub(crate) fn blocks(&self, session: SessionId) -> Vec<Block> {
        self.handle().page(session, None, 200).expect("a page").blocks
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

    /// Waits until the CLI's transcripts hold this text: it writes them behind its output.
    pub(crate) fn wait_on_disk(&self, text: &str) {
        wait_until(Duration::from_secs(30), &format!("{text:?} on disk"), || {
            let transcripts = self.home.transcripts();
            transcripts
                .iter()
                .any(|file| std::fs::read_to_string(file).is_ok_and(|all| all.contains(text)))
        });
    }

    /// SIGKILL for the session's CLI, by its recorded pid.
    pub(crate) fn kill_cli(&self, session: SessionId) {
        let child = self.row(session).child.expect("a child");
        signal(child.pid, "KILL");
    }

    /// Restarts of the session by an automatic actor, from the audit log.
    pub(crate) fn replays(&self, session: SessionId) -> usize {
        let audit = self.handle().audit(Some(session), 1_000).expect("the audit log");
        audit.iter().filter(|line| line.reason == "attempt charged").count()
    }

    /// Every row of the session that the window was told, with the time of telling.
    pub(crate) fn told(&self, session: SessionId) -> Vec<(Now, RowView)> {
        let told = self.seen.0.lock().expect("no panic while told");
        told.rows.iter().filter(|(_, view)| view.row.id == session).cloned().collect()
    }

    /// States in which the window ever saw the session.
    pub(crate) fn states(&self, session: SessionId) -> Vec<(Status, Option<PendingAction>)> {
        let told = self.told(session).into_iter();
        told.map(|(_, view)| (view.row.status, view.row.pending)).collect()
    }

    /// Notifications about the session.
    pub(crate) fn notified(&self, session: SessionId) -> usize {
        let told = self.seen.0.lock().expect("no panic while told");
        told.notified.iter().filter(|of| **of == session).count()
    }

    /// What a failed test wants to know: rows, decisions, conversations, audit log, requests.
    fn tell(&self) {
        let Some(handle) = &self.handle else { return };
        for view in handle.snapshot().map(|snapshot| snapshot.rows).unwrap_or_default() {
            println!("{:#?}", view.row);
            println!("{:#?}", handle.explain(view.row.id));
            for block in
                handle.page(view.row.id, None, 200).map(|page| page.blocks).unwrap_or_default()
            {
                println!("{:?} cut off: {}", block.kind, block.cut_off);
            }
        }
        for line in handle.audit(None, 200).unwrap_or_default().iter().rev() {
            println!("{} {} {} {}", line.at.0, line.actor, line.reason, line.outcome);
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
        if let Some(handle) = self.handle.take() {
            // a failing test must not hang at its end as well
            drop(handle.quit());
        }
    }
}
