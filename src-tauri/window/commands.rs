//! The commands of the page: each checks the form of what it got, asks the supervisor, and gives its
//! answer back. None waits on the window's own thread.

#![expect(clippy::let_underscore_must_use, reason = "Tauri's macro writes it for each command")]

use super::desk::{Desk, internal};
use super::{MAIN, check, quit as way_out};
use crate::supervise::secrets::Secret;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{
    AuditLine, CliState, FolderCheck, IpcError, Reply, SecretState, Snapshot, TranscriptPage,
};
use omniscio_core::supervisor::Command;
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager, State};
use tauri_plugin_dialog::{DialogExt, FileDialogBuilder, FilePath};
use tauri_plugin_opener::OpenerExt;

/// Entries of the audit log that the window shows.
const AUDIT_LINES: u32 = 200;

type Answer<T> = Result<T, IpcError>;

/// All the window needs to begin.
#[tauri::command]
pub(crate) async fn snapshot(desk: State<'_, Desk>) -> Answer<Snapshot> {
    desk.ask(|handle| handle.snapshot()).await
}

/// Batches of events go into this channel from now on.
#[tauri::command]
pub(crate) fn subscribe(desk: State<'_, Desk>, channel: Channel) {
    desk.listen(channel);
}

/// A command for the rules. A new session's folder runs what it brings only as decided.
#[tauri::command]
pub(crate) async fn command(desk: State<'_, Desk>, mut command: Command) -> Answer<Reply> {
    check::command(&command)?;
    desk.ask(move |handle| {
        check::trust(&mut command, |folder| handle.folder_check(folder))?;
        handle.command(command)
    })
    .await
}

/// `SESSION_RETRY_ABORTED_RESPONSE`: forces a restart of this session.
#[tauri::command]
pub(crate) async fn session_retry_aborted_response(
    desk: State<'_, Desk>,
    session: SessionId,
) -> Answer<Reply> {
    // rule: RT-12
    desk.ask(move |handle| handle.command(Command::Retry { session })).await
}

/// The page of a conversation before block `before`, or its last one.
#[tauri::command]
pub(crate) async fn transcript_page(
    desk: State<'_, Desk>,
    session: SessionId,
    before: Option<u64>,
    limit: u32,
) -> Answer<TranscriptPage> {
    desk.ask(move |handle| handle.page(session, before, limit)).await
}

/// The audit log of one session, or of all, newest first.
#[tauri::command]
pub(crate) async fn audit(
    desk: State<'_, Desk>,
    session: Option<SessionId>,
) -> Answer<Vec<AuditLine>> {
    desk.ask(move |handle| handle.audit(session, AUDIT_LINES)).await
}

/// Whether a folder exists, and what it brings that runs by itself.
#[tauri::command]
pub(crate) async fn folder_check(desk: State<'_, Desk>, path: String) -> Answer<FolderCheck> {
    check::path(&path)?;
    desk.ask(move |handle| handle.folder_check(&path)).await
}

/// Keeps the person's decision about what a folder brings.
#[tauri::command]
pub(crate) async fn folder_trust(desk: State<'_, Desk>, path: String, trusted: bool) -> Answer<()> {
    check::full_path(&path)?;
    desk.ask(move |handle| handle.trust(&path, trusted)).await
}

/// Whether the system's secret store answers.
#[tauri::command]
pub(crate) async fn secret_store(desk: State<'_, Desk>) -> Answer<SecretState> {
    desk.ask(|handle| Ok(handle.secret_store())).await
}

/// Whether an endpoint's secret is where it is to be read.
#[tauri::command]
pub(crate) async fn endpoint_secret_state(
    desk: State<'_, Desk>,
    endpoint: String,
) -> Answer<SecretState> {
    desk.ask(move |handle| handle.secret_state(&endpoint)).await
}

/// Keeps an endpoint's secret in the system's store. None ever goes back to the page.
#[tauri::command]
pub(crate) async fn endpoint_secret_set(
    desk: State<'_, Desk>,
    endpoint: String,
    secret: Secret,
) -> Answer<()> {
    desk.ask(move |handle| handle.set_secret(&endpoint, &secret)).await
}

/// Lets the person choose a folder; nothing when they do not.
#[tauri::command]
pub(crate) async fn choose_folder(app: AppHandle) -> Answer<Option<String>> {
    choose(&app, "Choose a project folder", FileDialogBuilder::blocking_pick_folder).await
}

/// Lets the person choose the CLI's program, and uses it if it runs.
#[tauri::command]
pub(crate) async fn choose_cli(app: AppHandle, desk: State<'_, Desk>) -> Answer<CliState> {
    let chosen = choose(&app, "Choose the claude program", FileDialogBuilder::blocking_pick_file);
    match chosen.await? {
        Some(path) => desk.ask(move |handle| handle.set_cli(&path)).await,
        None => Ok(desk.ask(|handle| handle.snapshot()).await?.cli),
    }
}

/// Looks for the CLI again.
#[tauri::command]
pub(crate) async fn look_for_cli(desk: State<'_, Desk>) -> Answer<CliState> {
    desk.ask(|handle| handle.find_cli()).await
}

/// What the person looks at. Told in order, so it goes through no other thread.
#[tauri::command]
pub(crate) fn window_state(desk: State<'_, Desk>, focused: bool, open: Option<SessionId>) {
    if let Some(handle) = desk.now() {
        handle.window(focused, open);
    }
}

/// Opens a web or mail link outside.
#[tauri::command]
pub(crate) async fn open_external(app: AppHandle, url: String) -> Answer<()> {
    let url = check::link(&url)?;
    let opened = tauri::async_runtime::spawn_blocking(move || {
        app.opener().open_url(url.as_str(), None::<&str>)
    });
    opened.await.map_err(internal)?.map_err(internal)
}

/// Stops all children and ends the app.
#[tauri::command]
pub(crate) fn quit(app: AppHandle) {
    way_out::begin(&app);
}

/// The desktop's own dialog, on a thread that may wait for the person.
async fn choose(
    app: &AppHandle,
    title: &str,
    pick: fn(FileDialogBuilder<tauri::Wry>) -> Option<FilePath>,
) -> Answer<Option<String>> {
    let mut dialog = app.dialog().file().set_title(title);
    if let Some(window) = app.get_webview_window(MAIN) {
        dialog = dialog.set_parent(&window);
    }
    let chosen =
        tauri::async_runtime::spawn_blocking(move || pick(dialog)).await.map_err(internal)?;
    let Some(chosen) = chosen else {
        return Ok(None);
    };
    let path = chosen.into_path().map_err(internal)?;
    // the rules and the page know text only
    let path = path.into_os_string().into_string();
    path.map(Some).map_err(|_| internal("This name is not UTF-8: such a folder cannot be used."))
}
