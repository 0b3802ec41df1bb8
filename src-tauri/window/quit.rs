//! Quit: the window goes at once, the children are stopped, then the process ends. A signal to end
//! means the same.

use super::MAIN;
use super::desk::Desk;
use super::logged;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tauri::{AppHandle, Manager};
use tokio::signal::unix::{SignalKind, signal};

/// Longer than the whole stop recipe takes; then the app ends without its report.
const QUIT_WAIT: Duration = Duration::from_secs(30);

static BEGUN: AtomicBool = AtomicBool::new(false);

/// Begins to quit; a second call changes nothing.
pub(super) fn begin(app: &AppHandle) {
    // rule: A-31
    if BEGUN.swap(true, Ordering::SeqCst) {
        return;
    }
    if let Some(window) = app.get_webview_window(MAIN) {
        logged("hide the window", window.hide());
    }
    let app = app.clone();
    let failsafe = app.clone();
    let started =
        thread::Builder::new().name("quit".to_string()).spawn(move || stop_children(&app));
    if let Err(error) = started {
        tracing::error!(%error, "the app ends without stopping its children");
        failsafe.exit(1);
    }
}

/// The listener ends the app when it hears that all children are gone.
fn stop_children(app: &AppHandle) {
    let handle = app.state::<Desk>().inner().handle();
    let told = handle.and_then(|handle| handle.quit().map(|()| handle));
    match told {
        Ok(handle) => {
            if !handle.ended_within(QUIT_WAIT) {
                tracing::error!("the children did not end in time");
                app.exit(1);
            }
        }
        Err(error) => {
            tracing::warn!(error.message, "there is nothing to stop");
            app.exit(0);
        }
    }
}

/// SIGTERM, SIGINT and SIGHUP mean Quit.
pub(super) fn on_signals(app: &AppHandle) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let app = app.clone();
        tauri::async_runtime::spawn(async move {
            match signal(kind) {
                Ok(mut signals) => {
                    while signals.recv().await.is_some() {
                        begin(&app);
                    }
                }
                Err(error) => tracing::warn!(%error, "the app does not hear signals"),
            }
        });
    }
}
