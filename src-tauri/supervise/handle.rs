//! What the window, or a test, holds of a running supervisor: it wants things, reads pages, quits.
//!
//! No call here waits for ever. Reads use a connection of their own, so that they never hold the loop
//! up; what a person wants goes through the loop and comes back as its reply.

mod endpoints;

use super::board::Board;
use super::clock::Clock;
use super::driver::inbox::{Inbox, Message, Refused};
use super::effects::ground::{Ground, Program};
use super::probes::{self, FolderState};
use super::store::{Store, StoreError};
use super::surroundings;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{
    AuditLine, CliState, Explanation, FolderCheck, FolderCommand, IpcCode, IpcError, Reply,
    Snapshot, TranscriptPage,
};
use omniscio_core::poll::{PollRow, plugin_poll};
use omniscio_core::settings::{KillSwitches, Policy, SettingChange};
use omniscio_core::supervisor::{Command, Input};
use omniscio_core::time::{Day, Mono, Now, Wall};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A reply that takes longer than this will still be acted on; who waits is told so.
const REPLY_WAIT_MS: u64 = 10_000;
/// Why another CLI is refused.
const FIXED: &str = "This Omniscio was started on one CLI, by --fake or --claude. Start it without \
    that to choose another.";
/// Blocks or lines of one page.
const PAGE_MAX: u32 = 500;

/// A running supervisor. Clones mean the same one; dropping them does not end it.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) inbox: Arc<Inbox>,
    pub(super) board: Arc<Board>,
    pub(super) ground: Arc<Ground>,
    pub(super) reader: Mutex<Store>,
    pub(super) switches: KillSwitches,
    pub(super) fake: bool,
    /// The CLI was named at the start and stays.
    pub(super) fixed: bool,
    pub(super) clock: Clock,
}

impl Handle {
    pub(super) fn new(inner: Inner) -> Handle {
        Handle { inner: Arc::new(inner) }
    }

    /// Does what a person wants; waits for the reply, at most some seconds.
    ///
    /// # Errors
    /// What the rules say, or that the app is busy, has trouble with its disk, or is quitting.
    pub fn command(&self, command: Command) -> Result<Reply, IpcError> {
        if let Some(words) = self.inner.board.trouble() {
            return Err(error(IpcCode::Store, words));
        }
        let (reply, coming) = self.inner.board.expect();
        let sent = self.send(Input::Command { reply, command });
        let outcome = match sent {
            Ok(()) => coming.recv_timeout(Duration::from_millis(REPLY_WAIT_MS)),
            Err(refused) => {
                self.inner.board.forget(reply);
                return Err(refusal(refused));
            }
        };
        outcome.unwrap_or_else(|none| {
            self.inner.board.forget(reply);
            Err(match none {
                RecvTimeoutError::Timeout => {
                    error(IpcCode::Full, "The app is busy. It does this as soon as it can.")
                }
                RecvTimeoutError::Disconnected => error(IpcCode::Quitting, "The app is quitting."),
            })
        })
    }

    /// The window's focus and the session whose panel is open.
    pub fn window(&self, focused: bool, open: Option<SessionId>) {
        if let Err(refused) = self.send(Input::Window { focused, open }) {
            tracing::debug!(?refused, "the loop does not hear of the focus");
        }
    }

    /// Everything that a window shows when it opens.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, IpcError> {
        let recent_folders = self.read(|store| store.recent_folders())?;
        let Inner { board, ground, switches, fake, .. } = &*self.inner;
        Ok(Snapshot {
            rows: board.rows(),
            settings: board.settings(),
            switches: *switches,
            accounts: ground.accounts.iter().map(|account| account.view()).collect(),
            cli: board.cli(),
            hide_max_ms: ground.limits.hide_max_ms,
            hide_future_tolerance_ms: ground.limits.hide_future_tolerance_ms,
            fake: *fake,
            recent_folders,
            home: ground.home().map(|home| home.display().to_string()),
        })
    }

    /// The sessions that need a person, oldest first (OD-41).
    pub fn poll(&self) -> Vec<PollRow> {
        let Inner { board, ground, switches, clock, .. } = &*self.inner;
        let policy = Policy { settings: board.settings(), switches: *switches };
        let now = clock.now();
        let now = Now { wall: Wall(now.wall_ms), mono: Mono(now.mono_ms), day: Day(now.local_day) };
        plugin_poll(&board.rows(), &policy, &ground.limits, now)
    }

    /// One page of a conversation: at most `limit` blocks before block `before`, or its last ones.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn page(
        &self,
        session: SessionId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<TranscriptPage, IpcError> {
        self.read(|store| store.blocks(session, before, limit.min(PAGE_MAX)))
    }

    /// The newest entries of the audit log, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn audit(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<AuditLine>, IpcError> {
        self.read(|store| store.audit(session, limit.min(PAGE_MAX)))
    }

    /// Why a row is as it is.
    ///
    /// # Errors
    /// As [`Handle::command`].
    pub fn explain(&self, session: SessionId) -> Result<Explanation, IpcError> {
        match self.command(Command::Explain { session })? {
            Reply::Explained(explanation) => Ok(explanation),
            Reply::Done
            | Reply::Created(_)
            | Reply::Forked { .. }
            | Reply::Accepted(_)
            | Reply::Told(_)
            | Reply::Endpoint(_) => {
                Err(error(IpcCode::Internal, "The app gave another answer than was asked for."))
            }
        }
    }

    /// What a folder brings that runs by itself, and whether that was decided before.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn folder_check(&self, path: &str) -> Result<FolderCheck, IpcError> {
        let limit = Duration::from_millis(self.inner.ground.limits.folder_probe_ms);
        let folder = Path::new(path);
        if !folder.is_absolute() || probes::folder_ok(folder, limit) != FolderState::Present {
            let real_path = path.to_string();
            return Ok(FolderCheck {
                exists: false,
                real_path,
                decided: None,
                commands: Vec::new(),
            });
        }
        let real_path = real_path(folder);
        let decided = self.read(|store| store.trusted(&real_path))?;
        let command = |item: probes::TrustItem| FolderCommand { file: item.file, text: item.text };
        let commands = probes::folder_commands(folder).into_iter().map(command).collect();
        Ok(FolderCheck { exists: true, real_path, decided, commands })
    }

    /// Remembers whether a folder may run what it brings, by its real path.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn trust(&self, path: &str, yes: bool) -> Result<(), IpcError> {
        // rule: A-23
        let real_path = real_path(Path::new(path));
        let now = Wall(self.inner.clock.now().wall_ms);
        self.read(|store| store.set_trusted(&real_path, yes, now))
    }

    /// Uses the CLI at `path` from now on, if it runs; remembers it as a setting.
    ///
    /// # Errors
    /// As [`Handle::command`], or that the CLI was fixed at the start; that the CLI does not run is a
    /// result, not an error.
    pub fn set_cli(&self, path: &str) -> Result<CliState, IpcError> {
        if self.inner.fixed {
            return Err(error(IpcCode::Invalid, FIXED));
        }
        let program = Program { path: PathBuf::from(path), args: Vec::new() };
        let state = surroundings::look_at(&program, &self.inner.ground.login_env);
        if let CliState::Found { path, .. } = &state {
            let change = SettingChange::ClaudePath(path.clone());
            self.command(Command::SetSetting { change })?;
            self.inner.ground.set_program(Ok(program));
            self.tell_cli(&state)?;
        }
        Ok(state)
    }

    /// Looks for the CLI again, as at the start: one that was fixed there is only asked again.
    ///
    /// # Errors
    /// If the loop has ended, or too much waits.
    pub fn find_cli(&self) -> Result<CliState, IpcError> {
        let found = if self.inner.fixed {
            self.inner.ground.program()
        } else {
            let chosen = self.inner.board.settings().claude_path;
            surroundings::find(&chosen, &self.inner.ground.login_env)
        };
        let state = match &found {
            Ok(program) => surroundings::look_at(program, &self.inner.ground.login_env),
            Err(looked) => surroundings::missing(looked),
        };
        self.inner.ground.set_program(found);
        self.tell_cli(&state)?;
        Ok(state)
    }

    /// Stops all children and ends the loop; `running` rows keep their intent. The listener
    /// hears `exited`.
    ///
    /// # Errors
    /// If the loop has ended already.
    pub fn quit(&self) -> Result<(), IpcError> {
        self.inner.inbox.quit();
        let (reply, _nobody_waits) = self.inner.board.expect();
        self.send(Input::Command { reply, command: Command::Quit }).map_err(refusal)
    }

    /// What the listener is told of as [`omniscio_core::ipc::Event::StoreTrouble`].
    pub fn store_trouble(&self) -> Option<String> {
        self.inner.board.trouble()
    }

    /// Waits for the end of the loop; false if it did not come within `limit`.
    pub fn ended_within(&self, limit: Duration) -> bool {
        self.inner.board.ended_within(limit)
    }

    fn send(&self, input: Input) -> Result<(), Refused> {
        self.inner.inbox.command(Message::Input(input))
    }

    fn tell_cli(&self, state: &CliState) -> Result<(), IpcError> {
        self.inner.inbox.command(Message::Cli(state.clone())).map_err(refusal)
    }

    fn read<T>(
        &self,
        what: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, IpcError> {
        let mut reader: MutexGuard<'_, Store> =
            self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut reader).map_err(|failed| error(IpcCode::Store, failed.to_string()))
    }
}

fn real_path(folder: &Path) -> String {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    real.display().to_string()
}

fn error(code: IpcCode, message: impl Into<String>) -> IpcError {
    IpcError { code, message: message.into() }
}

fn refusal(refused: Refused) -> IpcError {
    match refused {
        Refused::Full => {
            error(IpcCode::Full, "Too much is waiting already. Try again in a moment.")
        }
        Refused::Closed => error(IpcCode::Quitting, "The app is quitting."),
    }
}
