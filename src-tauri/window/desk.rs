//! Where the commands find the supervisor's handle once it is there, and the listener the window's
//! channel. Nobody waits on it on the window's own thread.

use crate::supervise::handle::Handle;
use omniscio_core::ipc::{IpcCode, IpcError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tauri::ipc::{Channel, InvokeResponseBody};

/// A start takes seconds where a login shell is slow; who waits longer is told so.
const START_WAIT: Duration = Duration::from_secs(30);

/// See the file. Clones are the same desk.
#[derive(Clone, Default)]
pub(crate) struct Desk {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    stage: Mutex<Stage>,
    changed: Condvar,
    channel: Mutex<Option<Channel>>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Starting,
    Ready(Handle),
    Failed(IpcError),
}

impl Desk {
    /// The supervisor runs.
    pub(super) fn ready(&self, handle: Handle) {
        self.set(Stage::Ready(handle));
    }

    /// It does not start: every command answers with this.
    pub(super) fn failed(&self, error: IpcError) {
        self.set(Stage::Failed(error));
    }

    /// The handle, if the supervisor runs by now.
    pub(super) fn now(&self) -> Option<Handle> {
        match &*lock(&self.inner.stage) {
            Stage::Ready(handle) => Some(handle.clone()),
            Stage::Starting | Stage::Failed(_) => None,
        }
    }

    /// The handle; waits for the end of the start.
    pub(super) fn handle(&self) -> Result<Handle, IpcError> {
        let starting = |stage: &mut Stage| matches!(stage, Stage::Starting);
        let waited =
            self.inner.changed.wait_timeout_while(lock(&self.inner.stage), START_WAIT, starting);
        match &*waited.unwrap_or_else(PoisonError::into_inner).0 {
            Stage::Ready(handle) => Ok(handle.clone()),
            Stage::Failed(error) => Err(error.clone()),
            Stage::Starting => Err(internal("Omniscio is still starting. Try again in a moment.")),
        }
    }

    /// Asks the supervisor on a thread that may wait.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(Handle) -> Result<T, IpcError> + Send + 'static,
    ) -> Result<T, IpcError> {
        let desk = self.clone();
        tauri::async_runtime::spawn_blocking(move || what(desk.handle()?))
            .await
            .map_err(internal)?
    }

    /// Events go here from now on; a page that was loaded anew replaces the old one.
    pub(super) fn listen(&self, channel: Channel) {
        *lock(&self.inner.channel) = Some(channel);
    }

    /// Sends one message, a JSON text, to the page, if one listens.
    pub(super) fn tell(&self, message: String) {
        let sent = match &*lock(&self.inner.channel) {
            Some(channel) => channel.send(InvokeResponseBody::Json(message)),
            None => Ok(()),
        };
        if let Err(error) = sent {
            tracing::warn!(%error, "the page did not get its events");
        }
    }

    fn set(&self, stage: Stage) {
        *lock(&self.inner.stage) = stage;
        self.inner.changed.notify_all();
    }
}

/// An error of the app itself.
pub(super) fn internal(words: impl ToString) -> IpcError {
    IpcError { code: IpcCode::Internal, message: words.to_string() }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
