//! The main job whole: the built app on the pinned real CLI. Each test has a network namespace of its
//! own, where a mock of the Messages API, the window and its display are all there is. It never uses a
//! `claude`, a key or a configuration of the machine.

#[path = "../support/mod.rs"]
mod support;

use crate::driver::{LONG, Window, key};
use crate::ground::APP;
use crate::page::{COMPOSER, PILL, REPLIES, Row, Seen, TRUST};
use omniscio_core::ipc::AuditLine;
use omniscio_core::limits::Limits;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::mock_api::{Ending, Gate, MockApi, Reply};
use support::namespace::in_namespace;
use support::real_cli::{CliHome, cli_path};
use tempfile::TempDir;

const FIRST: &str = "greet me by name";
const SECOND: &str = "explain the token refresh";
const THIRD: &str = "write the test that fails first";

// proves: SC-13, HD-01, HD-02, RF-01, RF-03, RF-04, RF-06, RT-01, RT-03, RT-12
#[test]
fn a_cut_off_turn_comes_back_unseen_and_one_that_cannot_turns_red() {
    let path = "real_cli::a_cut_off_turn_comes_back_unseen_and_one_that_cannot_turns_red";
    in_namespace(path, || {
        let scene = Scene::new();
        run(async {
            let window = scene.open().await;
            let session = answered_as_it_streams(&scene, &window).await;
            back_and_nobody_sees_it(&scene, &window, &session).await;
            red_until_asked_again(&scene, &window, &session).await;
        });
        scene.assert_never_twice(&[FIRST, SECOND, THIRD]);
    });
}

/// The first message: its answer is read while the rest of it is still to come.
async fn answered_as_it_streams(scene: &Scene, window: &Window) -> String {
    let gate = Gate::new();
    let answer = "Good morning to you, Ada Lovelace";
    scene.api.push(Reply::new().text(answer).hold_after(3, &gate));
    window.start_session(&scene.folder("plain"), FIRST).await;
    window.read("Good morning").await;
    let so_far = window.run(REPLIES).await;
    assert!(!so_far.to_string().contains("Lovelace"), "{so_far}");
    assert_eq!(window.row("the row", |_| true).await.label, "Running");
    gate.open();
    window.read(answer).await;
    window.row("its end", |row| row.label == "Your turn").await.session
}

/// The second message: cut off on every try of the CLI, also in the first replay, then healed.
async fn back_and_nobody_sees_it(scene: &Scene, window: &Window, session: &str) {
    let healed = scene.fails_until_healed("the refresh runs inside the lock");
    window.watch_row().await;
    send(window, SECOND).await;
    until_audit(window, session, "the second cut-off", |audit| cut_offs(audit).len() == 2).await;
    healed.store(true, Ordering::SeqCst);
    window.read("the refresh runs inside the lock").await;
    window.row("its end", |row| row.label == "Your turn").await;

    let audit = window.audit(session).await;
    let (cut_off, replayed) = (cut_offs(&audit), replays(&audit));
    assert_eq!((cut_off.len(), replayed.len()), (2, 2), "{audit:#?}");
    let mut seen = window.watched().await;
    // from the moment at which the message is taken up
    let taken_up = |seen: &Seen| (&*seen.section, &*seen.label) == ("Running", "Running");
    let first = seen.iter().position(taken_up).unwrap();
    seen.drain(..first);
    let in_hidden_time = |at: i64| {
        let mut times = cut_off.iter().zip(&replayed);
        times.any(|(from, to)| (*from..*to).contains(&at))
    };
    let hidden = seen.iter().filter(|seen| in_hidden_time(seen.at)).count();
    assert!(hidden > 0, "never looked in the hidden time: {cut_off:?} to {replayed:?}");
    // a row moves to its section a moment after its label changed, so labels and sections apart
    let mut labels: Vec<&str> = seen.iter().map(|seen| &*seen.label).collect();
    labels.dedup();
    assert_eq!(labels, ["Running", "Your turn"]);
    let mut sections: Vec<&str> = seen.iter().map(|seen| &*seen.section).collect();
    sections.dedup();
    assert_eq!(sections, ["Running", "Needs You"]);
    let loud = seen.iter().find(|seen| !seen.pill.is_empty() || !seen.strip.is_empty());
    assert_eq!(loud, None);
}

/// The third message: no replay of the day helps, so the row says so until it is asked again.
async fn red_until_asked_again(scene: &Scene, window: &Window, session: &str) {
    let healed = scene.fails_until_healed("the test fails first");
    let before = replays(&window.audit(session).await).len();
    send(window, THIRD).await;
    let failed = |row: &Row| row.label == "Recovery failed" && row.section == "Interrupted";
    window.row("a red row", failed).await;
    assert_eq!(window.text(PILL).await, "Retry");
    let audit = window.audit(session).await;
    assert_eq!(replays(&audit).len(), before + 2, "{audit:#?}");

    healed.store(true, Ordering::SeqCst);
    window.press(&[key::ESCAPE]).await;
    window.press(&['c']).await;
    window.read("the test fails first").await;
    window.row("its end", |row| row.label == "Your turn").await;
    let pill = format!("return document.querySelector('{PILL}')?.textContent ?? null");
    window.until("a row without a pill", &pill, |pill| pill.is_null().then_some(())).await;
    let audit = window.audit(session).await;
    let by_person = times(&audit, "retry-button", "recovery_failed -> starting");
    assert_eq!(by_person.len(), 1, "{audit:#?}");
}

// proves: A-23
#[test]
fn a_folders_hook_runs_only_where_the_person_trusts_it() {
    in_namespace("real_cli::a_folders_hook_runs_only_where_the_person_trusts_it", || {
        let scene = Scene::new();
        scene.api.script(|_, n| Reply::new().text(&format!("answer number {n} is here")));
        let (without, trusted) = (scene.folder("without"), scene.folder("trusted"));
        let ran = |folder: &str| Path::new(folder).join("hook-ran");
        for folder in [&without, &trusted] {
            let command = format!("touch '{}'", ran(folder).display());
            let hook = json!({ "hooks": { "UserPromptSubmit":
                [{ "hooks": [{ "type": "command", "command": command }] }] } });
            let settings = Path::new(folder).join(".claude");
            fs::create_dir(&settings).unwrap();
            fs::write(settings.join("settings.json"), hook.to_string()).unwrap();
        }
        run(async {
            let window = scene.open().await;
            ask(&window, &without, "start without them").await;
            assert!(scene.api.requests().is_empty(), "nothing runs before the answer");
            window.click("[data-testid=trust-without]").await;
            window.read("answer number 0 is here").await;
            assert!(!ran(&without).exists(), "the hook has run although nobody trusts it");

            window.press(&[key::ESCAPE]).await;
            ask(&window, &trusted, "trust and start").await;
            assert!(!ran(&trusted).exists(), "the hook has run before the answer");
            window.click("[data-testid=trust-start]").await;
            window.read("answer number 1 is here").await;
            assert!(ran(&trusted).exists(), "trusted, it runs");
        });
        scene.assert_never_twice(&["start without them", "trust and start"]);
    });
}

/// Starts a session by the dialog, up to the question with the hook's text.
async fn ask(window: &Window, folder: &str, text: &str) {
    window.start_session(folder, text).await;
    let question = window.text(TRUST).await;
    assert!(question.contains(&format!("touch '{folder}/hook-ran'")), "{question}");
}

async fn send(window: &Window, text: &str) {
    window.type_into(COMPOSER, text).await;
    window.press(&[key::ENTER]).await;
}

async fn until_audit(
    window: &Window,
    session: &str,
    what: &str,
    wanted: impl Fn(&[AuditLine]) -> bool,
) {
    let until = Instant::now() + LONG;
    loop {
        let audit = window.audit(session).await;
        if wanted(&audit) {
            return;
        }
        assert!(Instant::now() < until, "{what} does not come: {audit:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// When the session came into the recovering shape.
fn cut_offs(audit: &[AuditLine]) -> Vec<i64> {
    times(audit, "api_failure", "-> error + response_aborted")
}

/// When it was restarted by itself.
fn replays(audit: &[AuditLine]) -> Vec<i64> {
    times(audit, "response-aborted", "error + response_aborted -> starting")
}

fn times(audit: &[AuditLine], reason: &str, change: &str) -> Vec<i64> {
    let found = audit.iter().filter(|line| line.reason == reason && line.outcome.ends_with(change));
    found.map(|line| line.at.0).collect()
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(test);
}

/// What stands in the namespace: the API, the CLI's home, a display, and the app's folders.
struct Scene {
    api: MockApi,
    cli: CliHome,
    screen: Screen,
    room: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let api = MockApi::start();
        let cli = CliHome::new(&api);
        let room = tempfile::Builder::new().prefix("omniscio-window-").tempdir().unwrap();
        let scene = Scene { api, cli, screen: Screen::start(), room };
        for folder in ["data", "run"] {
            fs::create_dir(scene.at(folder)).unwrap();
            fs::set_permissions(scene.at(folder), Permissions::from_mode(0o700)).unwrap();
        }
        let variables: serde_json::Map<_, _> =
            scene.cli.env().into_iter().map(|(name, value)| (name, json!(value))).collect();
        let accounts = json!([{ "id": "default", "label": "Mock", "configDir": scene.cli.config(),
            "variables": variables, "apiKey": true }]);
        let file = scene.at("data/accounts.json");
        fs::write(&file, accounts.to_string()).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// A new project folder.
    fn folder(&self, name: &str) -> String {
        let folder = self.cli.project().join(name);
        fs::create_dir(&folder).unwrap();
        folder.display().to_string()
    }

    /// The app's window; nothing of the machine's own environment reaches it.
    async fn open(&self) -> Window {
        let at = |name: &str| self.at(name).display().to_string();
        let env = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", at("")),
            ("SHELL", "/bin/sh".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("DISPLAY", self.screen.name.clone()),
            ("GDK_BACKEND", "x11".to_owned()),
            ("XDG_RUNTIME_DIR", at("run")),
            ("XDG_DATA_HOME", at("share")),
            ("XDG_CONFIG_HOME", at("config")),
            ("XDG_CACHE_HOME", at("cache")),
            ("OMNISCIO_DATA_DIR", at("data")),
            ("OMNISCIO_LIMITS", serde_json::to_string(&limits()).unwrap()),
        ];
        let env: Vec<_> = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let args = ["--claude".to_owned(), cli_path().display().to_string()];
        Window::open(APP, &args, &env).await
    }

    /// From now on every answer is cut off after two words, until the switch is on.
    fn fails_until_healed(&self, answer: &str) -> Arc<AtomicBool> {
        let healed = Arc::new(AtomicBool::new(false));
        let (is_healed, answer) = (Arc::clone(&healed), answer.to_owned());
        self.api.script(move |_, _| {
            let reply = Reply::new().text(&answer);
            let healed = is_healed.load(Ordering::SeqCst);
            if healed { reply } else { reply.drop_after(2, Ending::Fin) }
        });
        healed
    }

    /// In no request stands one of the messages more than once, and each stands in some request.
    fn assert_never_twice(&self, messages: &[&str]) {
        let requests = self.api.main_requests();
        for message in messages {
            let counts = requests.iter().map(|request| request.count_text_in_history(message));
            let counts: Vec<usize> = counts.collect();
            assert_eq!(counts.iter().max(), Some(&1), "{message:?} in each request: {counts:?}");
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (n, request) in self.api.main_requests().iter().enumerate() {
                println!("request {n}: {:?}", request.last_user_text());
            }
        }
    }
}

/// Recoveries within seconds, the debounce long enough to be looked at, the hidden time longer still.
fn limits() -> Limits {
    Limits {
        scan_interval_ms: 2_000,
        scan_boot_delay_ms: 300,
        replay_debounce_ms: 8_000,
        pulse_ms: 500,
        cli_byte_idle_ms: support::real_cli::BYTE_IDLE_MS,
        cli_heals_first_margin_ms: 1_000,
        silence_open_block_ms: 30_000,
        silence_between_ms: 40_000,
        first_output_ms: 40_000,
        // a busy machine holds nothing up: it is not looked at
        load_window_ms: 7_200_000,
        load_sample_ms: 3_600_000,
        load_samples_min: 2,
        ladder_first_ms: 600_000,
        ..Limits::default()
    }
}

/// A display inside the namespace. It listens on an abstract socket alone: those belong to the
/// namespace, while a socket file would take the place of another display's.
struct Screen {
    server: Child,
    name: String,
}

impl Screen {
    fn start() -> Screen {
        let mut server = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "Xvfb", "-displayfd", "1"])
            .args(["-screen", "0", "1280x900x24", "-nolisten", "tcp", "-nolisten", "unix"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`setpriv` (util-linux) is missing: run `cargo xtask setup --test`");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        assert!(!number.is_empty(), "no `Xvfb`: run `cargo xtask setup --test`");
        Screen { server, name: format!(":{}", number.trim()) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).ok();
        }
        self.server.wait().ok();
    }
}
