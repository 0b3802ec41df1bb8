//! The bridge to the backend: one typed function per command, and the channel of events.
//!
//! Nothing else touches `wasm_bindgen`. Values cross as JSON, the form `core` defines. In an
//! ordinary browser there is no backend: every call then answers with an error that says so.

use js_sys::{Function, JSON, Object, Reflect};
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{
    AuditLine, CliState, Event, FolderCheck, IpcCode, IpcError, Reply, SecretState, Snapshot,
    TranscriptPage,
};
use omniscio_core::supervisor::Command;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = ["window", "__TAURI__", "core"], js_name = invoke)]
    async fn invoke_raw(command: &str, args: JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_namespace = ["window", "__TAURI__", "core"])]
    type Channel;
    #[wasm_bindgen(constructor, js_namespace = ["window", "__TAURI__", "core"])]
    fn new() -> Channel;
    #[wasm_bindgen(method, setter, js_name = onmessage)]
    fn set_onmessage(this: &Channel, callback: &Function);
}

/// What a call gives: the value, or the backend's own error.
pub type Answer<T> = Result<T, IpcError>;

/// All the window needs to begin.
pub async fn snapshot() -> Answer<Snapshot> {
    call("snapshot", &json!({})).await
}

/// Hands every later batch of events to `on_batch`, in order, for as long as the window lives.
pub async fn subscribe(on_batch: impl Fn(Vec<Event>) + 'static) -> Answer<()> {
    if !has_backend() {
        return Err(no_backend());
    }
    let channel = Channel::new();
    let callback = Closure::<dyn Fn(JsValue)>::new(move |message| match from_js(&message) {
        Ok(batch) => on_batch(batch),
        Err(error) => log(&error.message),
    });
    // the channel lives as long as the page
    channel.set_onmessage(callback.into_js_value().unchecked_ref());
    let args = Object::new();
    Reflect::set(&args, &"channel".into(), &channel).map_err(|error| thrown(&error))?;
    invoke_raw("subscribe", args.into()).await.map(drop).map_err(|error| thrown(&error))
}

/// Gives a command to the reducer. Retry is a command of its own ([`retry_aborted_response`]).
pub async fn command(command: Command) -> Answer<Reply> {
    call("command", &json!({ "command": command })).await
}

/// `SESSION_RETRY_ABORTED_RESPONSE` (RT-12): forces a restart of this session.
pub async fn retry_aborted_response(session: SessionId) -> Answer<Reply> {
    // rule: RT-12
    call("session_retry_aborted_response", &json!({ "session": session })).await
}

/// The page of a conversation before block `before`, or its last one.
pub async fn transcript_page(
    session: SessionId,
    before: Option<u64>,
    limit: u32,
) -> Answer<TranscriptPage> {
    let args = json!({ "session": session, "before": before, "limit": limit });
    call("transcript_page", &args).await
}

/// The audit log of one session, or of all, newest first.
pub async fn audit(session: Option<SessionId>) -> Answer<Vec<AuditLine>> {
    call("audit", &json!({ "session": session })).await
}

/// Whether a project folder exists, and what it brings that runs by itself.
pub async fn folder_check(path: &str) -> Answer<FolderCheck> {
    call("folder_check", &json!({ "path": path })).await
}

/// Keeps the person's decision about what a folder brings.
pub async fn folder_trust(path: &str, trusted: bool) -> Answer<()> {
    call("folder_trust", &json!({ "path": path, "trusted": trusted })).await
}

/// Whether the system's secret store answers.
pub async fn secret_store() -> Answer<SecretState> {
    call("secret_store", &json!({})).await
}

/// Whether the secret of an endpoint is where it is to be read.
pub async fn endpoint_secret_state(endpoint: &str) -> Answer<SecretState> {
    call("endpoint_secret_state", &json!({ "endpoint": endpoint })).await
}

/// Gives the secret of an endpoint to the system's store. Nothing brings it back.
pub async fn endpoint_secret_set(endpoint: &str, secret: &str) -> Answer<()> {
    call("endpoint_secret_set", &json!({ "endpoint": endpoint, "secret": secret })).await
}

/// Lets the person choose a folder; `None` when they do not.
pub async fn choose_folder() -> Answer<Option<String>> {
    call("choose_folder", &json!({})).await
}

/// Looks for the CLI again.
pub async fn look_for_cli() -> Answer<CliState> {
    call("look_for_cli", &json!({})).await
}

/// Lets the person choose the CLI's file.
pub async fn choose_cli() -> Answer<CliState> {
    call("choose_cli", &json!({})).await
}

/// Tells the backend what the person looks at.
pub async fn window_state(focused: bool, open: Option<SessionId>) -> Answer<()> {
    call("window_state", &json!({ "focused": focused, "open": open })).await
}

/// Stops all children and ends the app.
pub async fn quit() -> Answer<()> {
    call("quit", &json!({})).await
}

/// Opens a link outside.
pub async fn open_external(url: &str) -> Answer<()> {
    call("open_external", &json!({ "url": url })).await
}

/// Puts a text on the clipboard.
pub async fn copy_text(text: &str) -> Answer<()> {
    let written = window().navigator().clipboard().write_text(text);
    wasm_bindgen_futures::JsFuture::from(written)
        .await
        .map(drop)
        .map_err(|_| internal("The text could not be copied.".into()))
}

/// Calls back whenever one of the elements changes its size, until the calling owner goes.
pub fn watch_size(elements: &[&web_sys::Element], changed: impl Fn() + 'static) {
    let callback = Closure::<dyn Fn()>::new(changed);
    let Ok(observer) = web_sys::ResizeObserver::new(callback.as_ref().unchecked_ref()) else {
        return log("sizes cannot be watched here");
    };
    for element in elements {
        observer.observe(element);
    }
    let kept = StoredValue::new_local((observer, callback));
    on_cleanup(move || {
        kept.try_with_value(|(observer, _)| observer.disconnect());
    });
}

/// Runs a call whose failure only the log needs to know.
pub fn run<T: 'static>(call: impl Future<Output = Answer<T>> + 'static) {
    spawn_local(async move {
        if let Err(error) = call.await {
            log(&error.message);
        }
    });
}

/// Takes a value of the page for what it is, or `None` if it is something else.
pub fn cast<T: JsCast>(value: impl JsCast) -> Option<T> {
    value.dyn_into().ok()
}

/// A line for the web view's console.
pub fn log(text: &str) {
    leptos::logging::warn!("{text}");
}

async fn call<T: DeserializeOwned>(name: &str, args: &Value) -> Answer<T> {
    if !has_backend() {
        return Err(no_backend());
    }
    match invoke_raw(name, to_js(args)?).await {
        Ok(value) => from_js(&value),
        Err(error) => Err(from_js(&error).unwrap_or_else(|_| thrown(&error))),
    }
}

fn has_backend() -> bool {
    Reflect::has(&js_sys::global(), &"__TAURI__".into()).unwrap_or(false)
}

fn to_js(value: &impl Serialize) -> Answer<JsValue> {
    let text = serde_json::to_string(value).map_err(|error| internal(error.to_string()))?;
    JSON::parse(&text).map_err(|error| thrown(&error))
}

fn from_js<T: DeserializeOwned>(value: &JsValue) -> Answer<T> {
    // a unit reply arrives as undefined, which JSON does not know
    let value = if value.is_undefined() { &JsValue::NULL } else { value };
    let text = JSON::stringify(value).map_err(|error| thrown(&error))?;
    serde_json::from_str(&String::from(text))
        .map_err(|error| internal(format!("the backend's words were not understood: {error}")))
}

fn thrown(error: &JsValue) -> IpcError {
    internal(error.as_string().unwrap_or_else(|| format!("{error:?}")))
}

fn no_backend() -> IpcError {
    internal("This page runs without Omniscio behind it.".into())
}

fn internal(message: String) -> IpcError {
    IpcError { code: IpcCode::Internal, message }
}
