//! Starts the supervisor beside the window, so that the window is there at once.

use super::desk::Desk;
use super::events::Ears;
use super::quit;
use crate::start::show_first_session;
use crate::supervise::clock::Deadline;
use crate::supervise::handle::Handle;
use crate::supervise::supervisor::{Config, StartError, Supervisor};
use anyhow::{Result, ensure};
use omniscio_core::ipc::{IpcCode, IpcError};
use std::time::Duration;
use std::{io, thread};
use tauri::AppHandle;

/// One that is quitting lets the data folder go within this: longer than the grace of a child that
/// resists, and its kill.
const LOCK_WAIT: Duration = Duration::from_secs(8);
const LOCK_POLL: Duration = Duration::from_millis(100);

/// Says what to do where no window can appear, before the toolkit ends the process with its own words.
pub(super) fn need_display() -> Result<()> {
    let there = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    ensure!(
        !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(there),
        "there is no display. Start it from a desktop, or from its sources by `cargo xtask run`, \
         which brings a virtual display up"
    );
    Ok(())
}

/// Starts it on a thread of its own; the desk gets its handle, or the reason why there is none.
pub(super) fn supervisor(app: &AppHandle, desk: &Desk, config: Config) -> io::Result<()> {
    let (app, desk) = (app.clone(), desk.clone());
    thread::Builder::new().name("start".to_string()).spawn(move || {
        match patiently(|| {
            let ears = Ears::new(app.clone(), desk.clone());
            Supervisor::start(config.clone(), ears)
        }) {
            Ok(handle) => {
                if config.fake {
                    show_first_session(&handle, &config.data_dir);
                }
                desk.ready(handle);
            }
            Err(error @ StartError::AlreadyRuns { .. }) => {
                // rule: A-31
                tracing::warn!(%error, "a second start ends");
                eprintln!("omniscio: {error}");
                app.exit(1);
            }
            Err(error) => {
                tracing::error!(%error, "the app does not start");
                eprintln!("omniscio: {error}");
                desk.failed(why(&error));
            }
        }
    })?;
    Ok(())
}

/// Waits for another one to let the data folder go: the person may have quit it just now.
fn patiently(start: impl Fn() -> Result<Handle, StartError>) -> Result<Handle, StartError> {
    // rule: A-31
    let deadline = Deadline::after(LOCK_WAIT);
    loop {
        match start() {
            Err(StartError::AlreadyRuns { .. }) if !deadline.passed() && !quit::begun() => {
                thread::sleep(LOCK_POLL);
            }
            started => return started,
        }
    }
}

fn why(error: &StartError) -> IpcError {
    let code = match error {
        StartError::Store(_) | StartError::DataFolder(_) => IpcCode::Store,
        StartError::AlreadyRuns { .. } | StartError::Limits(_) | StartError::System(_) => {
            IpcCode::Internal
        }
    };
    IpcError { code, message: error.to_string() }
}
