//! `omniscio ctl`: the app's own tools and the poll for other programs, over a Unix socket that only
//! its user can open.
//!
//! One line of JSON asks, one answers, and the connection is over. Lines, waits and connections are
//! bounded. What an act means is the rules' business; this knows only how it comes in.

use super::clock::Deadline;
use super::handle::Handle;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Reply;
use omniscio_core::launch::child_env::Var;
use omniscio_core::supervisor::{AgentTool, Command};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The variable of a child that names the socket.
pub const SOCKET_VARIABLE: &str = "OMNISCIO_CTL";
/// The sockets' folder in the user's runtime folder.
const FOLDER: &str = "omniscio";
/// The socket's folder in the data folder, where there is no runtime folder.
const OWN_FOLDER: &str = "run";
/// Of a folder's mode: somebody else than its owner may add and remove what is in it.
const OTHERS_WRITE: u32 = 0o022;
/// A task, its escapes, and a little more.
const LINE_MAX_BYTES: u64 = 1024 * 1024;
/// More programs at once than agents run.
const CONNECTIONS_MAX: usize = 16;
/// After a connection that could not be taken, for example for want of file handles: the next one
/// would fail at once, too.
const REST_MS: u64 = 1_000;
/// Who has not asked within this is not waited for.
const ASK_WAIT_MS: u64 = 5_000;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Who needs a person (OD-41).
    Poll,
    /// One of the app's own tools, for the agent of this session.
    Agent {
        /// The session, as the marker names it.
        session: SessionId,
        /// The call.
        call: AgentTool,
    },
}

/// What is answered: JSON text, or why not.
pub type Response = Result<String, String>;

/// Where the app with this data folder listens: in the user's runtime folder, else in a folder of the
/// data folder's own. `data_dir` is a real path.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    choose(data_dir, env::var_os("XDG_RUNTIME_DIR"))
}

/// The same as a variable for the environment of the children.
pub(super) fn variable(data_dir: &Path) -> Var {
    (SOCKET_VARIABLE.to_string(), socket_path(data_dir).to_string_lossy().into_owned())
}

fn choose(data_dir: &Path, runtime: Option<OsString>) -> PathBuf {
    match runtime.map(PathBuf::from).filter(|folder| is_private(folder)) {
        Some(runtime) => {
            let mut hasher = DefaultHasher::new();
            data_dir.hash(&mut hasher);
            runtime.join(FOLDER).join(format!("ctl-{:016x}.sock", hasher.finish()))
        }
        None => data_dir.join(OWN_FOLDER).join("ctl.sock"),
    }
}

/// Whether the folder is the user's own and no other may change it, as a runtime folder has to be:
/// elsewhere somebody else's socket could stand in the place of ours.
fn is_private(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    folder.is_absolute()
        && fs::metadata(folder).is_ok_and(|found| {
            found.is_dir() && found.uid() == own && found.mode() & OTHERS_WRITE == 0
        })
}

/// The socket, bound and not yet served.
pub(super) struct Socket {
    listener: UnixListener,
    bound: Bound,
}

/// The socket's place. Letting go of it ends the serving and removes the socket: before the lock of
/// the data folder is let go, so that it is never another app's.
pub(super) struct Bound {
    path: PathBuf,
    ended: Arc<AtomicBool>,
}

impl Socket {
    /// Binds the socket of a data folder whose lock is held: what stands in its place is stale.
    pub(super) fn bind(data_dir: &Path) -> io::Result<Socket> {
        let path = socket_path(data_dir);
        private_folder(path.parent().unwrap_or(data_dir))?;
        match fs::symlink_metadata(&path) {
            Ok(stale) if stale.file_type().is_socket() => fs::remove_file(&path)?,
            // what is no socket is not ours to remove: the bind says so
            Ok(_) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        let bound = Bound { path, ended: Arc::default() };
        fs::set_permissions(&bound.path, fs::Permissions::from_mode(0o600))?;
        Ok(Socket { listener, bound })
    }

    /// The listener to be served, and what ends that.
    pub(super) fn split(self) -> (Served, Bound) {
        let served = Served { listener: self.listener, ended: Arc::clone(&self.bound.ended) };
        (served, self.bound)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // wakes the thread that accepts; one that has ended needs none
        UnixStream::connect(&self.path).ok();
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "the socket of `omniscio ctl` stays behind");
        }
    }
}

/// Makes the folder, if it is not there, and takes every right of others from it.
fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// A listener that nobody serves yet.
pub(super) struct Served {
    listener: UnixListener,
    ended: Arc<AtomicBool>,
}

impl Served {
    /// Serves on a thread of its own, until the socket's [`Bound`] is let go.
    pub(super) fn serve(self, handle: Handle) -> io::Result<()> {
        thread::Builder::new().name("ctl".to_string()).spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            let running = || !self.ended.load(Ordering::SeqCst);
            let heard = self.listener.incoming().take_while(|_| running());
            each(
                heard,
                |stream| admit(stream, &open, &handle),
                || thread::sleep(Duration::from_millis(REST_MS)),
            );
        })?;
        Ok(())
    }
}

/// Admits every connection, and rests after each that could not be taken.
fn each(
    heard: impl Iterator<Item = io::Result<UnixStream>>,
    mut admit: impl FnMut(UnixStream),
    mut rest: impl FnMut(),
) {
    for stream in heard {
        match stream {
            Ok(stream) => admit(stream),
            Err(error) => {
                tracing::warn!(%error, "`omniscio ctl` was not heard");
                rest();
            }
        }
    }
}

/// One connection, on a thread of its own while there are not too many.
fn admit(stream: UnixStream, open: &Arc<AtomicUsize>, handle: &Handle) {
    let place = Place::take(open);
    let handle = handle.clone();
    let started = thread::Builder::new().name("ctl-call".to_string()).spawn(move || {
        let response = match place {
            Some(_) if !is_users_own(&stream) => Err("This is another user's app.".to_string()),
            Some(_) => read(&stream).and_then(|request| respond(&handle, request)),
            None => Err("Too many ask at once. Try again in a moment.".to_string()),
        };
        if let Err(error) = write(&stream, &response) {
            tracing::debug!(%error, "`omniscio ctl` did not wait for its answer");
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "no thread for `omniscio ctl`");
    }
}

/// One of the places for connections, until it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Place> {
        let place = Place(Arc::clone(open));
        (open.fetch_add(1, Ordering::SeqCst) < CONNECTIONS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether the same user asks. The folder's rights and the socket's keep others out already.
#[cfg(target_os = "linux")]
fn is_users_own(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

#[cfg(not(target_os = "linux"))]
fn is_users_own(_: &UnixStream) -> bool {
    true
}

fn read(stream: &UnixStream) -> Result<Request, String> {
    let said = |error: io::Error| format!("The question did not come through: {error}.");
    let deadline = Deadline::after(Duration::from_millis(ASK_WAIT_MS));
    let mut reader = BufReader::new(stream.take(LINE_MAX_BYTES));
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        if deadline.passed() {
            return Err("The question took too long.".to_string());
        }
        stream.set_read_timeout(Some(deadline.left())).map_err(said)?;
        let came = reader.fill_buf().map_err(said)?;
        if came.is_empty() {
            return Err("The question is not one line, or too long.".to_string());
        }
        let end = came.iter().position(|byte| *byte == b'\n').map_or(came.len(), |at| at + 1);
        line.extend_from_slice(&came[..end]);
        reader.consume(end);
    }
    serde_json::from_slice(&line)
        .map_err(|error| format!("The question is not understood: {error}."))
}

fn respond(handle: &Handle, request: Request) -> Response {
    match request {
        Request::Poll => serde_json::to_string(&handle.poll()).map_err(|error| error.to_string()),
        Request::Agent { session, call } => {
            match handle.command(Command::Agent { session, tool: call }) {
                Ok(Reply::Told(text)) => Ok(text),
                Ok(
                    Reply::Done
                    | Reply::Created(_)
                    | Reply::Forked { .. }
                    | Reply::Accepted(_)
                    | Reply::Explained(_)
                    | Reply::Endpoint(_),
                ) => Err("The app gave another answer than was asked for.".to_string()),
                Err(wrong) => Err(wrong.message),
            }
        }
    }
}

fn write(mut stream: &UnixStream, response: &Response) -> io::Result<()> {
    stream.set_write_timeout(Some(Duration::from_millis(ASK_WAIT_MS)))?;
    let mut line = serde_json::to_vec(response)?;
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: A-22
    #[test]
    fn the_socket_is_in_the_runtime_folder_else_in_the_data_folder() {
        let runtime = tempfile::tempdir().unwrap();
        let at = |data: &str, runtime: &str| choose(Path::new(data), Some(OsString::from(runtime)));
        let there = runtime.path().to_str().unwrap();
        assert!(at("/d/a", there).starts_with(runtime.path().join("omniscio")));
        assert_ne!(at("/d/a", there), at("/d/b", there));
        for none in ["", ".", "/no/such/folder"] {
            assert_eq!(at("/d/a", none), Path::new("/d/a/run/ctl.sock"));
        }
        assert_eq!(choose(Path::new("/d/a"), None), Path::new("/d/a/run/ctl.sock"));
        // nor where others may put something
        for mode in [0o777, 0o1777, 0o720, 0o702] {
            fs::set_permissions(runtime.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(at("/d/a", there), Path::new("/d/a/run/ctl.sock"), "{mode:o}");
        }
    }

    #[test]
    fn connections_that_cannot_be_taken_do_not_keep_a_core_busy() {
        let (mut admitted, mut rests) = (0, 0);
        let heard = || UnixStream::pair().map(|(one, _)| one);
        let none = || Err(io::Error::from_raw_os_error(libc::EMFILE));
        let all = [none(), heard(), none(), none()];
        each(all.into_iter(), |_| admitted += 1, || rests += 1);
        assert_eq!((admitted, rests), (1, 3));
    }

    // proves: A-22
    #[test]
    fn the_socket_is_its_users_alone_and_a_stale_one_is_replaced() {
        let data = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // left behind by an app that was killed
        let (served, bound) = Socket::bind(data.path()).unwrap().split();
        std::mem::forget(bound);
        drop(served);
        let socket = Socket::bind(data.path()).unwrap();
        let path = socket.bound.path.clone();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        drop(socket);
        assert!(!path.exists());
        // what is no socket stays
        fs::write(&path, "mine").unwrap();
        assert!(Socket::bind(data.path()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
    }
}
