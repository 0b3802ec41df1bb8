//! Endpoints on real children: which variables they see, what is said where a secret cannot be read, and
//! that the secret is nowhere else. The secret store is a real one, on a bus of its own.

use crate::keyring::Keyring;
use crate::supervisor::rig::{App, Ground, LONG, config};
use omniscio_core::endpoint::{Endpoint, SecretSource};
use omniscio_core::engine::EngineFamily;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{IpcCode, Reply, SecretState};
use omniscio_core::session::{SessionRow, Status};
use omniscio_core::supervisor::Command;
use omniscio_lib::supervise::clock::Deadline;
use omniscio_lib::supervise::secrets::Secret;
use omniscio_lib::supervise::supervisor::Config;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::Path;
use std::process::{self, Stdio};

const CANARY: &str = "canary-0123456789-of-the-test";
const VARIABLE: &str = "KIMI_API_KEY";
const WINDOW: u64 = 131_072;

/// The five engines of the contract.
const ENGINES: [(&str, &str, EngineFamily); 5] = [
    ("Kimi", "kimi-k2", EngineFamily::AnthropicCompat),
    ("DeepSeek", "deepseek-chat", EngineFamily::AnthropicCompat),
    ("GLM", "glm-4.6", EngineFamily::AnthropicCompat),
    ("GPT", "gpt-5.1", EngineFamily::ProxyBacked),
    ("xAI", "grok-4", EngineFamily::ProxyBacked),
];

fn endpoint(secret: SecretSource) -> Endpoint {
    let (name, model, family) = ENGINES[0];
    Endpoint {
        id: String::new(),
        name: name.into(),
        base_url: "https://api.example.com/anthropic".into(),
        model: model.into(),
        context_window: WINDOW,
        family,
        secret,
    }
}

/// The account has a key and a provider of its own; the secret is in a variable of the login shell.
fn ground_config(home: &Path) -> Config {
    let mut config = config(home);
    for account in config.accounts.iter_mut().flatten() {
        account.variables = [
            ("ANTHROPIC_API_KEY", "key-of-the-account"),
            ("ANTHROPIC_CUSTOM_HEADERS", "x-key: of-the-account"),
            ("CLAUDE_CODE_USE_VERTEX", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec();
    }
    config.login_env.get_or_insert_default().push((VARIABLE.into(), CANARY.into()));
    config
}

fn set(app: &App, endpoint: Endpoint) -> String {
    match app.handle.command(Command::SetEndpoint { endpoint }) {
        Ok(Reply::Endpoint(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn create(app: &App, home: &Path, endpoint: Option<&str>) -> SessionId {
    create_with(app, home, endpoint, "[[fake: say done]]")
}

fn create_with(app: &App, home: &Path, endpoint: Option<&str>, text: &str) -> SessionId {
    let command = Command::Create {
        folder: home.join("project").display().to_string(),
        text: text.to_string(),
        model: None,
        permission_mode: None,
        account: None,
        endpoint: endpoint.map(str::to_string),
        user_settings_only: false,
    };
    match app.handle.command(command) {
        Ok(Reply::Created(session)) => session,
        other => panic!("{other:?}"),
    }
}

/// What the session's child sees of who is asked and with what.
fn seen(row: &SessionRow) -> BTreeMap<String, String> {
    let pid = row.child.expect("a child").pid;
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8(environ).unwrap();
    let pairs = environ.split('\0').filter_map(|pair| pair.split_once('='));
    let about = |name: &str| {
        name.starts_with("ANTHROPIC_")
            || name.starts_with("CLAUDE_CODE_USE_")
            || ["CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_MAX_RETRIES"].contains(&name)
            || name == "DISABLE_AUTO_COMPACT"
    };
    let pairs = pairs.filter(|(name, _)| about(name));
    pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn sees(model: &str, more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let window = WINDOW.to_string();
    let common = [
        ("ANTHROPIC_BASE_URL", "https://api.example.com/anthropic"),
        ("ANTHROPIC_AUTH_TOKEN", CANARY),
        ("ANTHROPIC_MODEL", model),
        // none of these engines knows a model of Claude's by its name
        ("ANTHROPIC_DEFAULT_OPUS_MODEL", model),
        ("ANTHROPIC_DEFAULT_SONNET_MODEL", model),
        ("ANTHROPIC_DEFAULT_HAIKU_MODEL", model),
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", &window),
        // a timer of the account's is nobody's secret
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ];
    let all = common.iter().chain(more);
    all.map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect()
}

/// Looks for the secret in everything that the app has kept and told.
fn nowhere(app: &App, home: &Path) {
    let told = app.until("events", |told| Some(format!("{:?} {:?}", told.events, told.notices)));
    let snapshot = serde_json::to_string(&app.handle.snapshot().unwrap()).unwrap();
    let audit = serde_json::to_string(&app.handle.audit(None, 500).unwrap()).unwrap();
    for (place, text) in [("events", told), ("snapshot", snapshot), ("audit", audit)] {
        assert!(!text.contains(CANARY), "the secret is in the {place}");
    }
    // the config folder is the CLI's own
    for folder in ["data", "project"] {
        in_no_file(&home.join(folder));
    }
}

fn in_no_file(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            in_no_file(&entry.path());
        } else if entry.file_type().unwrap().is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
            assert!(!found, "the secret is in {}", entry.path().display());
        }
    }
}

/// What the row says once its launch has failed for good.
fn until_refused(app: &App, session: SessionId) -> String {
    let refused = app.until_row(session, "refusal", |view| view.row.status == Status::Error);
    assert!(refused.pending.is_none() && refused.child.is_none());
    let words = refused.words.unwrap();
    assert!(words.contains("\"Kimi\"") && !words.contains(CANARY), "{words}");
    words
}

// proves, PR-10, CS-33
#[test]
fn the_child_of_each_engine_sees_exactly_its_variables_and_the_secret_is_nowhere_else() {
    let ground = Ground::new();
    let home = ground.home.path();
    let app = App::start(ground_config(home));
    for (name, model, family) in ENGINES {
        let (name, model_name) = (name.to_string(), model.to_string());
        let secret = SecretSource::Variable(VARIABLE.into());
        let id = set(&app, Endpoint { name, model: model_name, family, ..endpoint(secret) });
        assert_eq!(app.handle.secret_state(&id), Ok(SecretState::Present));
        let session = create(&app, home, Some(&id));
        let own: &[_] = match family {
            EngineFamily::ProxyBacked => &[("DISABLE_AUTO_COMPACT", "1")],
            EngineFamily::Claude | EngineFamily::AnthropicCompat => &[],
        };
        assert_eq!(seen(&app.until_answered(session)), sees(model, own), "{model}");
    }
    let plain = create(&app, home, None);
    let plain = seen(&app.until_answered(plain));
    assert_eq!(plain.get("ANTHROPIC_API_KEY").map(String::as_str), Some("key-of-the-account"));
    assert!(!plain.contains_key("ANTHROPIC_BASE_URL"), "{plain:?}");
    assert!(!plain.contains_key("DISABLE_AUTO_COMPACT"), "{plain:?}");
    nowhere(&app, home);
    app.quit();
    nowhere(&app, home);
}

// proves: A-32
#[test]
fn a_launch_without_its_secret_says_what_to_do_and_retry_goes_on() {
    let ground = Ground::new();
    let home = ground.home.path();
    let app = App::start(ground_config(home));
    let keep = home.join("secret");
    fs::write(&keep, CANARY).unwrap();
    let keep = keep.display();
    // it prints the secret, also among its errors, and fails
    let failing = format!("cat '{keep}'; cat '{keep}' >&2; exit 1");
    let id = set(&app, endpoint(SecretSource::Command(failing)));
    assert_eq!(app.handle.secret_state(&id), Ok(SecretState::AtLaunch));
    let session = create(&app, home, Some(&id));
    assert!(until_refused(&app, session).contains("press Retry"));
    let known = Endpoint { id: id.clone(), ..endpoint(SecretSource::Variable("NOT_SET".into())) };
    set(&app, known.clone());
    assert_eq!(app.handle.secret_state(&id), Ok(SecretState::Missing));
    // read anew at each launch
    let command = SecretSource::Command(format!("cat '{keep}'"));
    set(&app, Endpoint { secret: command, ..known });
    assert_eq!(app.handle.command(Command::Retry { session }), Ok(Reply::Done));
    let row = app.until_answered(session);
    assert_eq!(seen(&row).get("ANTHROPIC_AUTH_TOKEN").map(String::as_str), Some(CANARY));
    app.quit();
    nowhere(&app, home);
}

// proves: A-32
#[test]
fn what_a_child_says_of_its_secret_is_cut() {
    let ground = Ground::new();
    let home = ground.home.path();
    // an agent that prints its environment; a gateway that quotes what it was sent
    let script = format!(
        "stderr it is {CANARY}; say The key is {CANARY}.\napi-error 401 authentication_error no {CANARY}"
    );
    fs::write(home.join("config/fake-script"), script).unwrap();
    let app = App::start(ground_config(home));
    let id = set(&app, endpoint(SecretSource::Variable(VARIABLE.into())));
    let session = create_with(&app, home, Some(&id), "hello");
    assert_eq!(app.until_answered(session).answer_line.as_deref(), Some("The key is [cut]."));
    let text = "and now?".to_string();
    app.handle.command(Command::Send { session, text, now: false }).unwrap();
    let row = app.until_row(session, "refusal", |view| view.row.pending.is_some());
    let words = row.words.unwrap();
    assert!(words.contains("no [cut]"), "{words}");
    app.quit();
    nowhere(&app, home);
}

/// The variable that names the bus.
const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";
/// What the app asks of the test.
const PLEASE: &str = "please ";
/// A desktop without one.
const NO_BUS: &str = "unix:path=/nowhere/bus";
/// The home of the app that has a store.
const HOME: &str = "ENDPOINTS_TEST_HOME";

/// Not a test by itself: the app on a bus with a secret store, and what becomes of secrets there.
/// Without its variable it does nothing.
#[test]
fn the_app_with_a_store() {
    let Some(home) = env::var_os(HOME) else {
        return;
    };
    let home = Path::new(&home);
    let app = App::start(ground_config(home));
    let handle = &app.handle;
    if env::var(BUS).is_ok_and(|address| address == NO_BUS) {
        return without_a_store(&app, home);
    }
    assert_eq!(handle.secret_store(), SecretState::Present);
    let id = set(&app, endpoint(SecretSource::Store));
    assert_eq!(handle.secret_state(&id), Ok(SecretState::Missing));
    let session = create(&app, home, Some(&id));
    assert!(until_refused(&app, session).contains("not stored"));

    let bad = Secret::new("two words").unwrap_err();
    assert!(bad.contains("spaces"));
    let secret = Secret::new(CANARY).unwrap();
    handle.set_secret(&id, &secret).unwrap();
    assert_eq!(handle.secret_state(&id), Ok(SecretState::Present));
    assert_eq!(handle.command(Command::Retry { session }), Ok(Reply::Done));
    assert_eq!(seen(&app.until_answered(session)), sees("kimi-k2", &[]));

    // it is for one server: another one never gets it
    let known = Endpoint { id: id.clone(), ..endpoint(SecretSource::Store) };
    let moved = Endpoint { base_url: "https://elsewhere.example.com".into(), ..known.clone() };
    set(&app, moved);
    assert_eq!(handle.secret_state(&id), Ok(SecretState::Missing));
    let other = create(&app, home, Some(&id));
    assert!(until_refused(&app, other).contains("not stored"));
    // nor does it wait there for the way back
    set(&app, known.clone());
    assert_eq!(handle.secret_state(&id), Ok(SecretState::Missing));
    handle.set_secret(&id, &secret).unwrap();
    handle.command(Command::RemoveEndpoint { endpoint: id.clone() }).unwrap();
    assert_eq!(set(&app, endpoint(SecretSource::Store)), id, "under its old id");
    assert_eq!(handle.secret_state(&id), Ok(SecretState::Missing));
    nowhere(&app, home);

    // a store that hangs, and one that is locked
    handle.set_secret(&id, &secret).unwrap();
    let say = |what: &str| {
        println!("\n{PLEASE}{what}");
        stdin().read_line(&mut String::new()).unwrap();
    };
    say("hang");
    assert_eq!(handle.secret_store(), SecretState::NoStore);
    assert_eq!(handle.set_secret(&id, &secret).map_err(|e| e.code), Err(IpcCode::Store));
    let third = create(&app, home, Some(&id));
    assert!(until_refused(&app, third).contains("no secret store"));
    say("go on");
    let deadline = Deadline::after(LONG);
    while handle.secret_state(&id) != Ok(SecretState::Present) {
        assert!(!deadline.passed(), "the store does not answer again");
    }
    say("lock");
    let fourth = create(&app, home, Some(&id));
    assert!(until_refused(&app, fourth).contains("locked"));
    assert_eq!(handle.set_secret(&id, &secret).map_err(|e| e.code), Err(IpcCode::NotEligible));
    app.quit();
    nowhere(&app, home);
}

fn without_a_store(app: &App, home: &Path) {
    let handle = &app.handle;
    assert_eq!(handle.secret_store(), SecretState::NoStore);
    let id = set(app, endpoint(SecretSource::Store));
    assert_eq!(handle.secret_state(&id), Ok(SecretState::NoStore));
    let secret = Secret::new(CANARY).unwrap();
    let refused = handle.set_secret(&id, &secret).unwrap_err();
    assert_eq!(refused.code, IpcCode::Store);
    assert!(refused.message.contains("a variable or a command"), "{}", refused.message);
    let session = create(app, home, Some(&id));
    assert!(until_refused(app, session).contains("no secret store"));
    app.quit();
    nowhere(app, home);
}

impl Keyring {
    /// From now on it answers nobody; with `true` it does again.
    fn answers(&self, answers: bool) {
        let signal = if answers { Signal::CONT } else { Signal::STOP };
        let pid = i32::try_from(self.daemon.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Locks the keyring; nobody is there who could give its password.
    fn lock(&self) {
        let call = [
            "--dest=org.freedesktop.secrets",
            "/org/freedesktop/secrets",
            "org.freedesktop.Secret.Service.Lock",
            "array:objpath:/org/freedesktop/secrets/collection/login",
        ];
        assert!(self.send(&call).is_some(), "the keyring is not locked");
    }
}

/// Runs the app on this bus; what it asks for is done meanwhile.
fn run(home: &Path, bus: &str, mut act: impl FnMut(&str)) {
    let mut app = process::Command::new(env::current_exe().unwrap())
        .args(["--exact", "endpoints::the_app_with_a_store", "--nocapture"])
        .env(HOME, home)
        .env(BUS, bus)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = app.stdin.take().unwrap();
    let mut said = String::new();
    for line in BufReader::new(app.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(wanted) = line.strip_prefix(PLEASE) {
            act(wanted);
            told.write_all(b"done\n").unwrap();
        }
        said.extend([line.as_str(), "\n"]);
    }
    assert!(app.wait().unwrap().success() && said.contains("1 passed"), "{said}");
}

// proves: A-32
#[test]
fn a_real_store_keeps_secrets_for_one_server_and_its_troubles_are_told() {
    let ground = Ground::new();
    let keyring = Keyring::start(ground.home.path());
    run(ground.home.path(), &keyring.address, |wanted| match wanted {
        "hang" => keyring.answers(false),
        "go on" => keyring.answers(true),
        "lock" => keyring.lock(),
        other => panic!("{other}"),
    });
}

// proves: A-32
#[test]
fn without_a_store_the_app_says_so_and_keeps_the_secret_nowhere() {
    let ground = Ground::new();
    run(ground.home.path(), NO_BUS, |wanted| panic!("{wanted}"));
}
