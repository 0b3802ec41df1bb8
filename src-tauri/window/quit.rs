//! Quit: the window goes at once, the children are stopped, then the process ends, whatever hangs. A
//! signal to end means the same.

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
/// Whoever is to end the app has this long; then the next one does it.
const END_WAIT: Duration = Duration::from_secs(2);

static BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether the app is quitting.
pub(super) fn begun() -> bool {
    BEGUN.load(Ordering::SeqCst)
}

/// Begins to quit; a second call changes nothing.
pub(super) fn begin(app: &AppHandle) {
    // rule: A-31
    if BEGUN.swap(true, Ordering::SeqCst) {
        return;
    }
    tracing::info!("the app quits");
    // a start from now on is a new app, not a wish to see this one; asking the bus may take time
    let name = app.clone();
    tauri::async_runtime::spawn_blocking(move || tauri_plugin_single_instance::destroy(&name));
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

/// The listener ends the app when it hears that all children are gone; if it does not, this does.
fn stop_children(app: &AppHandle) {
    let handle = app.state::<Desk>().inner().handle();
    let told = handle.and_then(|handle| handle.quit().map(|()| handle));
    let code = match told {
        Ok(handle) if handle.ended_within(QUIT_WAIT) => {
            thread::sleep(END_WAIT);
            tracing::warn!("the listener does not end the app");
            0
        }
        Ok(_) => {
            tracing::error!("the children did not end in time");
            1
        }
        Err(error) => {
            tracing::warn!(error.message, "there is nothing to stop");
            0
        }
    };
    leave(app, code);
}

/// Ends the app, and the process itself where the window's thread hangs: an app that nobody sees must
/// not live on.
fn leave(app: &AppHandle, code: i32) -> ! {
    app.exit(code);
    thread::sleep(END_WAIT);
    tracing::error!("the window's thread does not end");
    std::process::exit(code)
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
