//! The half that knows Tauri: one window, its commands and events, the way in and the way out.
//!
//! It translates. It holds no rule, and touches neither the store nor a terminal.

mod check;
mod commands;
mod desk;
mod events;
mod notify;
mod quit;
mod start;

use crate::start::Plan;
use crate::supervise::supervisor::Config;
use anyhow::{Context, Result};
use desk::Desk;
use std::path::PathBuf;
use tauri::plugin::TauriPlugin;
use tauri::{
    App, AppHandle, Manager, RunEvent, WebviewWindow, WebviewWindowBuilder, WindowEvent, Wry,
};
use tauri_plugin_window_state::StateFlags;

/// The window's label, as in `tauri.conf.json`.
const MAIN: &str = "main";
/// Where the window was, in the data folder.
const PLACE: &str = "window.json";

/// Opens the window and runs until the person quits; ends the process with the app's exit code.
///
/// # Errors
/// If there is no display, or Tauri cannot start.
pub fn run(plan: Plan) -> Result<()> {
    start::need_display()?;
    let desk = Desk::default();
    let first = tauri_plugin_single_instance::Builder::new()
        .callback(|app, _, _| raise(app))
        .dbus_id(plan.bus_name)
        .build();
    let (config, web_view) = (plan.config, plan.web_view);
    // first, so that a second start ends before it does anything
    let mut builder = tauri::Builder::default().plugin(first);
    if let Some(place) = window_place(&config) {
        builder = builder.plugin(place);
    }
    let app = builder
        .plugin(tauri_plugin_notification::init())
        .plugin(tauri_plugin_dialog::init())
        // links go through `open_external`, which looks at them first
        .plugin(tauri_plugin_opener::Builder::new().open_js_links_on_click(false).build())
        .manage(desk.clone())
        .invoke_handler(tauri::generate_handler![
            commands::snapshot,
            commands::subscribe,
            commands::command,
            commands::session_retry_aborted_response,
            commands::transcript_page,
            commands::audit,
            commands::folder_check,
            commands::folder_trust,
            commands::secret_store,
            commands::endpoint_secret_state,
            commands::endpoint_secret_set,
            commands::choose_folder,
            commands::choose_cli,
            commands::look_for_cli,
            commands::window_state,
            commands::open_external,
            commands::quit,
        ])
        .setup(move |app| {
            open(app, web_view)?;
            quit::on_signals(app.handle());
            start::supervisor(app.handle(), &desk, config)?;
            Ok(())
        })
        .build(tauri::generate_context!())
        .context("the window cannot be opened")?;
    app.run(on_event);
    Ok(())
}

/// Finds the window where it was, from a file in the data folder. A rehearsal leaves nothing behind:
/// the plugin also makes the app's config folder, which then stays empty.
fn window_place(config: &Config) -> Option<TauriPlugin<Wry>> {
    let place = config.data_dir.join(PLACE);
    // a full path goes before the config folder
    let file = place.to_str().filter(|_| !config.fake)?;
    let what = StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED;
    let builder = tauri_plugin_window_state::Builder::default();
    Some(builder.with_state_flags(what).with_filename(file).build())
}

/// The main window as `tauri.conf.json` describes it: it shows the app's own pages and nothing else,
/// and its web view keeps its files in that folder.
fn open(app: &App, files: PathBuf) -> tauri::Result<WebviewWindow> {
    let windows = &app.config().app.windows;
    let config = windows.iter().find(|window| window.label == MAIN);
    let config = config.ok_or(tauri::Error::WindowNotFound)?;
    WebviewWindowBuilder::from_config(app, config)?
        .data_directory(files)
        .on_navigation(check::is_own_page)
        // the page names its open session; the desktop shows it
        .on_document_title_changed(|window, title| {
            logged("name the window", window.set_title(&title))
        })
        .initialization_script(include_str!("quit_key.js"))
        .build()
}

fn on_event(app: &AppHandle, event: RunEvent) {
    if let RunEvent::WindowEvent { event: WindowEvent::CloseRequested { api, .. }, .. } = &event {
        // rule: A-31
        api.prevent_close();
        if let Some(window) = app.get_webview_window(MAIN) {
            logged("minimise the window", window.minimize());
        }
    }
    // whoever asks without a code wants to quit; our own exits carry one
    if let RunEvent::ExitRequested { code: None, api, .. } = &event {
        api.prevent_exit();
        quit::begin(app);
    }
}

/// Brings the window to the front (a second start).
fn raise(app: &AppHandle) {
    // rule: A-31
    if quit::begun() {
        return;
    }
    if let Some(window) = app.get_webview_window(MAIN) {
        logged("show the window", window.show());
        logged("restore the window", window.unminimize());
        logged("focus the window", window.set_focus());
    }
}

/// The desktop refuses such things now and then; nothing depends on them.
fn logged<E: std::fmt::Display>(what: &str, result: Result<(), E>) {
    if let Err(error) = result {
        tracing::warn!(%error, "the desktop refuses to {what}");
    }
}
