//! Starts a CLI process with a terminal on stdout, a pipe on stdin and a pipe of its own on stderr,
//! and carries its bytes, writes and exit as events.
//!
//! It never reads meaning into a byte, never restarts, and never ends a child by itself. When the
//! app dies, the kernel hangs the terminal up and the child gets SIGHUP.

mod descriptors;
mod error;
mod workers;

pub use descriptors::raise_descriptor_limit;
pub use error::{SpawnError, SpawnStep, WriteRefused};

use super::children::ProcessId;
use super::children::table;
use error::{exec_error, open_error};
use portable_pty::{PtySize, native_pty_system};
use rustix::process::{Pid, Signal as OsSignal};
use rustix::pty::ptsname;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::ffi::{CString, NulError, OsStr, OsString, c_char};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Messages that may wait for the stdin of one child; one more is refused as [`WriteRefused::Full`].
const WRITE_QUEUE_MAX: usize = 64;

/// So wide that nothing that asks for the width ever wraps a line.
const TERMINAL_COLUMNS: u16 = 10_000;

/// Everything one start needs. `Debug` leaves the values of the variables out: they may be secrets.
#[derive(Clone)]
pub struct LaunchLine {
    /// The program, as an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The complete environment: nothing of the app's own is added.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it runs in.
    pub cwd: PathBuf,
}

impl fmt::Debug for LaunchLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("LaunchLine")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("cwd", &self.cwd)
            .finish()
    }
}

/// What a child did. `Exited` is the last event and comes exactly once; `OutputEnded` comes at most
/// once, after the last byte of stdout, and is left out when something else keeps the terminal open
/// beyond the child's exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// Bytes of stdout, cut anywhere, at most 64 KiB.
    Stdout(Vec<u8>),
    /// One line of stderr without its line end, cut at 8 KiB; not necessarily UTF-8.
    Stderr(Vec<u8>),
    /// The end of stdout; the child may still live.
    OutputEnded,
    /// The child is dead and reaped; nothing follows.
    Exited {
        /// The exit code, if it exited.
        code: Option<i32>,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
    },
    /// The message is in the child's stdin as a whole.
    Written {
        /// The token given to [`Child::write`].
        token: u64,
    },
    /// The message did not reach the child's stdin as a whole.
    WriteFailed {
        /// The token given to [`Child::write`].
        token: u64,
        /// The reason, as the system names it.
        error: String,
    },
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Exit {
        Exit { code: status.code(), signal: status.signal() }
    }
}

/// The signals the app sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

impl From<Signal> for OsSignal {
    fn from(signal: Signal) -> OsSignal {
        match signal {
            Signal::Term => OsSignal::TERM,
            Signal::Kill => OsSignal::KILL,
        }
    }
}

/// A started process. Clones mean the same process; dropping them neither ends it nor stops its
/// events.
#[derive(Clone)]
pub struct Child {
    shared: Arc<Shared>,
}

struct Shared {
    pid: Pid,
    start_time: Option<u64>,
    exit: Mutex<Option<Exit>>,
    exited: Condvar,
    queue: Mutex<Option<SyncSender<workers::Message>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Child {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.shared.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Field 22 of `/proc/PID/stat`: clock ticks from boot to the start of the process.
    pub fn start_time(&self) -> Option<u64> {
        self.shared.start_time
    }

    /// Pid and start time together, where the system tells the start time.
    pub fn id(&self) -> Option<ProcessId> {
        Some(ProcessId { pid: self.pid(), start_time: self.start_time()? })
    }

    /// Queues `bytes` for the child's stdin; `Written` or `WriteFailed` with `token` follows. Never
    /// waits. Messages arrive whole and in order, whatever their length.
    // rule: PR-06
    pub fn write(&self, token: u64, bytes: Vec<u8>) -> Result<(), WriteRefused> {
        let queue = lock(&self.shared.queue);
        let Some(sender) = queue.as_ref() else {
            return Err(WriteRefused::Closed);
        };
        sender.try_send(workers::Message { token, bytes }).map_err(|error| match error {
            TrySendError::Full(_) => WriteRefused::Full,
            TrySendError::Disconnected(_) => WriteRefused::Closed,
        })
    }

    /// Closes the child's stdin once what is queued has been written.
    pub fn close_stdin(&self) {
        drop(lock(&self.shared.queue).take());
    }

    /// Sends a signal to the child. False once it is reaped, so the pid of another process that got
    /// the same number is never hit.
    pub fn signal(&self, signal: Signal) -> bool {
        // the waiter reaps under this lock: while it is held the pid is still this child's
        let exit = lock(&self.shared.exit);
        exit.is_none() && rustix::process::kill_process(self.shared.pid, signal.into()).is_ok()
    }

    /// How the child ended; waits at most `limit` for it.
    pub fn wait(&self, limit: Duration) -> Option<Exit> {
        let exit = lock(&self.shared.exit);
        let waited = self.shared.exited.wait_timeout_while(exit, limit, |exit| exit.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Starts `line`. Events go to `sink` from the child's own threads; a sink that waits (a full
/// channel) holds up the reading of this child, which is the back-pressure. After the child's exit,
/// output that something it left behind keeps open is drained for at most `drain_grace`.
// rule: A-01, PR-01
pub fn spawn<S>(line: &LaunchLine, drain_grace: Duration, sink: S) -> Result<Child, SpawnError>
where
    S: Fn(ChildEvent) + Send + Clone + 'static,
{
    let (master, slave) = open_raw_pty()?;
    let image = Image::new(line).map_err(|error| exec_error(line, &error.into()))?;
    // program, arguments and environment are the image's: the standard library would hand a program
    // in an unknown format to /bin/sh instead of saying ENOEXEC
    let mut command = Command::new(&line.program);
    command.env_clear().current_dir(&line.cwd);
    command.stdin(Stdio::piped()).stdout(slave).stderr(Stdio::piped());
    own_session(&mut command, Some(image));
    let process = command.spawn().map_err(|error| exec_error(line, &error))?;
    // it holds the last handle of the slave in this process: the end of output is seen without it
    drop(command);

    workers::start(process, master, drain_grace, sink)
        .map(|shared| Child { shared })
        .map_err(|error| SpawnError::new(SpawnStep::Thread, "cannot attend to the process", &error))
}

/// Gives the command a session of its own without any terminal, default signals, and no descriptor
/// nor limit of the app but its three. For short helper programs.
pub(super) fn detach(command: &mut Command) {
    own_session(command, None);
}

/// A pseudo-terminal: its master, and its slave already in raw mode, so that no byte is echoed,
/// translated or cut at 4096.
fn open_raw_pty() -> Result<(File, File), SpawnError> {
    let size = PtySize { rows: 100, cols: TERMINAL_COLUMNS, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).map_err(|error| open_error(&error.to_string()))?;
    let failed = |error: io::Error| {
        SpawnError::new(SpawnStep::OpenPty, "cannot open the terminal's two ends", &error)
    };
    let raw_fd = pair.master.as_raw_fd().ok_or_else(|| failed(io::ErrorKind::Other.into()))?;
    let master = duplicate(raw_fd).map_err(failed)?;
    let path = ptsname(&master, Vec::new()).map_err(|error| failed(error.into()))?;
    // without O_NOCTTY an app that has no terminal would make it its own
    let slave = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(OsStr::from_bytes(path.to_bytes()))
        .map_err(failed)?;

    let raw = tcgetattr(&slave).and_then(|mut modes| {
        modes.make_raw();
        tcsetattr(&slave, OptionalActions::Now, &modes)
    });
    raw.map_err(|error| {
        SpawnError::new(SpawnStep::RawMode, "cannot make the terminal raw", &error.into())
    })?;
    Ok((master.into(), slave))
}

#[expect(unsafe_code, reason = "portable-pty gives its descriptor only as a number")]
fn duplicate(raw_fd: std::os::fd::RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller holds the `MasterPty` that owns this descriptor across the call
    unsafe { BorrowedFd::borrow_raw(raw_fd) }.try_clone_to_owned()
}

/// What `execve` takes, made before the fork: between fork and exec nothing may be allocated.
struct Image {
    program: CString,
    args: Strings,
    env: Strings,
}

/// A list of C strings that ends with a null pointer.
struct Strings {
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

#[expect(unsafe_code, reason = "raw pointers are not Send by themselves")]
// SAFETY: the pointers lead into the heap buffers of `_owned`, which nothing changes or frees before
unsafe impl Send for Strings {}

#[expect(unsafe_code, reason = "raw pointers are not Sync by themselves")]
// SAFETY: as for Send; they are only read
unsafe impl Sync for Strings {}

impl Strings {
    fn new(owned: Vec<CString>) -> Strings {
        let pointers = owned.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Strings { pointers, _owned: owned }
    }
}

impl Image {
    fn new(line: &LaunchLine) -> Result<Image, NulError> {
        let text = |text: &OsStr| CString::new(text.as_bytes());
        let program = text(line.program.as_os_str())?;
        let mut args = vec![program.clone()];
        for arg in &line.args {
            args.push(text(arg)?);
        }
        let mut env = Vec::new();
        for (name, value) in &line.env {
            env.push(CString::new([name.as_bytes(), value.as_bytes()].join(&b'='))?);
        }
        Ok(Image { program, args: Strings::new(args), env: Strings::new(env) })
    }

    /// Returns only if it fails.
    #[expect(unsafe_code, reason = "exec without a search and without a shell")]
    fn run(&self) -> io::Error {
        let (args, env) = (self.args.pointers.as_ptr(), self.env.pointers.as_ptr());
        // SAFETY: both lists end with a null pointer and live as long as `self`
        unsafe { libc::execve(self.program.as_ptr(), args, env) };
        io::Error::last_os_error()
    }
}

/// Makes the command lead a session of its own. With an image it gets stdout as its terminal and
/// becomes the image.
#[expect(unsafe_code, reason = "what happens between fork and exec has no safe interface")]
fn own_session(command: &mut Command, image: Option<Image>) {
    let prepare = move || {
        default_signals();
        rustix::process::setsid()?;
        if image.is_some() {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdout())?;
        }
        close_the_rest_at_exec();
        // behind the closing: it looks as far as the app's own limit
        descriptors::restore()?;
        image.as_ref().map_or(Ok(()), |image| Err(image.run()))
    };
    // SAFETY: `prepare` makes system calls only: no allocation, no lock, no panic
    unsafe { command.pre_exec(prepare) };
}

/// An ignored signal stays ignored across exec: an app under `nohup` would make children that no
/// hang-up ends. (The standard library already clears the mask and SIGPIPE.)
#[expect(unsafe_code, reason = "signal dispositions have no safe interface")]
fn default_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGCHLD] {
        // SAFETY: async-signal-safe, and no handler is installed
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Marks every descriptor above stderr close-on-exec. portable-pty opens a pair without the flag and
/// sets it later; a fork of another thread in between would give one child the terminal of another,
/// which then never hangs up.
#[expect(unsafe_code, reason = "descriptors of others have no safe interface")]
fn close_the_rest_at_exec() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: changes flags of descriptors only
        let done = unsafe {
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
        };
        if done == 0 {
            return;
        }
    }
    // SAFETY: reads a number
    let open_max = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    let end = libc::c_int::try_from(open_max.clamp(256, 65_536)).unwrap_or(256);
    for fd in 3..end {
        // SAFETY: changes flags of a descriptor only, and fails for those that are not open
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

impl Shared {
    /// A child that nobody can look at is an error: it could be neither told apart nor swept.
    fn new(pid: u32, queue: SyncSender<workers::Message>) -> io::Result<Shared> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Ok(Shared {
            pid: number.ok_or(io::ErrorKind::InvalidData)?,
            start_time: table::look(pid)?.map(|stat| stat.start_time),
            exit: Mutex::new(None),
            exited: Condvar::new(),
            queue: Mutex::new(Some(queue)),
        })
    }
}
