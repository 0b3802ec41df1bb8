//! A WebKitWebDriver with a session bus of its own, and the app's window in it. Every call has a time
//! limit. It knows nothing of what the window shows.

use fantoccini::actions::{InputSource, KeyAction, KeyActions, MouseActions, PointerAction};
use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// No single call of the driver takes this long.
const CALL: Duration = Duration::from_secs(20);
/// Beyond this, what a test waits for does not come.
pub(crate) const LONG: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// The keys that are no characters, as WebDriver names them.
pub(crate) mod key {
    pub(crate) const CONTROL: char = '\u{E009}';
    pub(crate) const ENTER: char = '\u{E007}';
    pub(crate) const ESCAPE: char = '\u{E00C}';
    pub(crate) const DOWN: char = '\u{E015}';
}

/// Bus, driver, app and its web processes: one process group, ended as a whole.
struct Processes(Child);

impl Processes {
    fn group(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let Some(group) = self.group() else { return };
        kill_process_group(group, Signal::TERM).ok();
        let until = Instant::now() + CALL;
        // the app stops its children first, so it may take a moment
        while test_kill_process_group(group).is_ok() && Instant::now() < until {
            self.0.try_wait().ok();
            thread::sleep(POLL);
        }
        kill_process_group(group, Signal::KILL).ok();
        self.0.wait().ok();
    }
}

/// The app's window.
pub(crate) struct Window {
    client: Client,
    _processes: Processes,
}

impl Window {
    /// Starts the app with these arguments and exactly this environment, and waits for its window.
    pub(crate) async fn open(app: &str, args: &[String], env: &[(String, String)]) -> Window {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        // a bus of its own, unless the test has one
        let has_bus = env.iter().any(|(name, _)| name == "DBUS_SESSION_BUS_ADDRESS");
        let bus = if has_bus { "env" } else { "dbus-run-session" };
        let driver = Command::new(bus)
            .args(["--", "WebKitWebDriver", &format!("--port={port}")])
            .process_group(0)
            .env_clear()
            .envs(env.iter().cloned())
            // the one variable by which the web view lets itself be driven
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`dbus-run-session` is missing: run `cargo xtask setup --test`");
        let mut processes = Processes(driver);
        let until = Instant::now() + CALL;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let gone = processes.0.try_wait().unwrap();
            assert!(
                gone.is_none() && Instant::now() < until,
                "no window driver: `WebKitWebDriver` is missing or does not start; run \
                 `cargo xtask setup --test`"
            );
            thread::sleep(POLL);
        }
        let options = json!({ "webkitgtk:browserOptions": { "binary": app, "args": args } });
        let Value::Object(capabilities) = options else { unreachable!("an object") };
        let address = format!("http://127.0.0.1:{port}");
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let client = limited("the app's start", builder.connect(&address)).await;
        Window { client, _processes: processes }
    }

    /// Runs a script in the page; `return` gives its value.
    pub(crate) async fn run(&self, script: &str) -> Value {
        limited(script, self.client.execute(script, Vec::new())).await
    }

    /// Calls a command of the backend as the page does.
    pub(crate) async fn invoke(&self, command: &str, args: &Value) -> Result<Value, Value> {
        let script = "const [name, args, done] = arguments;
            window.__TAURI__.core.invoke(name, args)
                .then((value) => done({ ok: value ?? null }), (error) => done({ error }));";
        let call = self.client.execute_async(script, vec![json!(command), args.clone()]);
        let answer = limited(command, call).await;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["ok"].clone()),
        }
    }

    /// Waits until the script's value is what `accept` wants.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        script: &str,
        mut accept: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let until = Instant::now() + LONG;
        loop {
            let value = self.run(script).await;
            if let Some(accepted) = accept(&value) {
                return accepted;
            }
            if Instant::now() > until {
                let page = self.run("return document.body.innerText").await;
                panic!("{what} does not come; last: {value:#}\nthe page: {page}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The element, once it is there.
    pub(crate) async fn find(&self, css: &str) -> Element {
        let script = format!("return document.querySelector({}) !== null", json!(css));
        self.until(css, &script, |there| there.as_bool()?.then_some(())).await;
        limited(css, self.client.find(Locator::Css(css))).await
    }

    /// Whether the page has such an element now.
    pub(crate) async fn has(&self, css: &str) -> bool {
        let script = format!("return document.querySelector({}) !== null", json!(css));
        self.run(&script).await == json!(true)
    }

    /// The element's text, once it is there.
    pub(crate) async fn text(&self, css: &str) -> String {
        let element = self.find(css).await;
        limited(css, element.text()).await
    }

    /// Clicks on the element, once it is there.
    pub(crate) async fn click(&self, css: &str) {
        let element = self.find(css).await;
        limited(css, element.click()).await;
    }

    /// Moves the pointer onto the element, once it is there.
    pub(crate) async fn hover(&self, css: &str) {
        let element = self.find(css).await;
        let over = PointerAction::MoveToElement { element, duration: None, x: 0.0, y: 0.0 };
        let pointer = MouseActions::new("mouse".to_string()).then(over);
        limited(css, self.client.perform_actions(pointer)).await;
    }

    /// Empties the field, once it is there.
    pub(crate) async fn clear(&self, css: &str) {
        let element = self.find(css).await;
        limited(css, element.clear()).await;
    }

    /// Types into the element, once it is there.
    pub(crate) async fn type_into(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        limited(css, element.send_keys(text)).await;
    }

    /// Presses keys at once and lets them go, wherever the focus is: `[CONTROL, 'n']`.
    pub(crate) async fn press(&self, keys: &[char]) {
        let mut actions = KeyActions::new("keyboard".to_string());
        for &value in keys {
            actions = actions.then(KeyAction::Down { value });
        }
        for &value in keys.iter().rev() {
            actions = actions.then(KeyAction::Up { value });
        }
        limited("a key", self.client.perform_actions(actions)).await;
    }

    /// Presses keys that end the app: the driver may not live to answer.
    pub(crate) async fn press_and_go(self, keys: &[char]) {
        let mut actions = KeyActions::new("keyboard".to_string());
        for &value in keys {
            actions = actions.then(KeyAction::Down { value });
        }
        let pressed = tokio::time::timeout(CALL, self.client.perform_actions(actions)).await;
        drop(pressed);
    }

    /// The window's title.
    pub(crate) async fn title(&self) -> String {
        limited("the title", self.client.title()).await
    }

    /// Writes a picture of the page as it is after two more frames, in its own fonts.
    pub(crate) async fn picture(&self, file: &Path) {
        let frames = "const done = arguments[arguments.length - 1];
            document.activeElement?.blur?.();
            document.fonts.ready.then(() =>
                requestAnimationFrame(() => requestAnimationFrame(() => done(true))));";
        limited("two frames", self.client.execute_async(frames, Vec::new())).await;
        let picture = limited("a picture", self.client.screenshot()).await;
        std::fs::write(file, picture).unwrap();
    }
}

async fn limited<T, E: std::fmt::Debug>(what: &str, call: impl Future<Output = Result<T, E>>) -> T {
    match tokio::time::timeout(CALL, call).await {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => panic!("{what}: {error:?}"),
        Err(_) => panic!("{what}: no answer from the window"),
    }
}
