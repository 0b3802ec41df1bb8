//! The three threads of one child: the reader of its two outputs, the writer of its input, and the
//! waiter for its end. They move bytes and end by themselves when the child is dead.

use super::{ChildEvent, Exit, Shared, WRITE_QUEUE_MAX, lock};
use crate::supervise::clock::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{self, ChildStderr, ChildStdin};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The largest piece of stdout or stderr in one read. A terminal gives at most 4 KiB.
const PIECE_MAX_BYTES: usize = 64 * 1024;
/// So often stdout is read before stderr and the child's end are looked at again.
const READS_MAX: usize = 16;
/// A longer line of stderr is cut here; its rest is not kept.
const STDERR_LINE_MAX_BYTES: usize = 8 * 1024;
/// More than a terminal can hold back: once this much was read after the child's exit, what comes
/// is not the child's own output any more.
const DRAIN_MAX_BYTES: usize = 1024 * 1024;

/// One message on its way to stdin.
pub(super) struct Message {
    pub(super) token: u64,
    pub(super) bytes: Vec<u8>,
}

/// Starts the threads of `process`. If one cannot be made, the process is killed and reaped.
pub(super) fn start<S>(
    mut process: process::Child,
    master: File,
    drain_grace: Duration,
    sink: S,
) -> io::Result<Arc<Shared>>
where
    S: Fn(ChildEvent) + Send + Clone + 'static,
{
    let pid = process.id();
    let (queue, messages) = sync_channel(WRITE_QUEUE_MAX);
    let (stdin, stderr) = (process.stdin.take(), process.stderr.take());
    // shared with the waiter's thread, so that the process is still here if that cannot be made
    let slot = Arc::new(Mutex::new(Some(process)));
    let started = (|| {
        let stdin = stdin.ok_or(ErrorKind::BrokenPipe)?;
        let stderr = stderr.ok_or(ErrorKind::BrokenPipe)?;
        let shared = Arc::new(Shared::new(pid, queue)?);
        rustix::io::ioctl_fionbio(&master, true)?;
        rustix::io::ioctl_fionbio(&stdin, true)?;
        // the waiter drops its end when the child is dead; both others see that in their poll
        let (alive, wake) = UnixStream::pair()?;
        let wake = Arc::new(wake);

        let writer = Writer { stdin, wake: Arc::clone(&wake), sink: sink.clone() };
        let writer = thread("write", pid, move || writer.run(&messages))?;
        let reader = Reader::new(master, stderr, wake, Arc::clone(&shared), drain_grace, sink);
        thread("read", pid, move || reader.run(writer))?;
        let (for_waiter, slot) = (Arc::clone(&shared), Arc::clone(&slot));
        thread("wait", pid, move || {
            let process = lock(&slot).take();
            wait_for_exit(process, &for_waiter, alive);
        })
        // the reader holds the queue, and waits for the writer, which ends with it
        .inspect_err(|_| drop(lock(&shared.queue).take()))?;
        Ok(shared)
    })();
    let unwatched = if started.is_err() { lock(&slot).take() } else { None };
    if let Some(mut process) = unwatched {
        // an error means that it is dead already
        process.kill().ok();
        process.wait().ok();
    }
    started
}

fn thread<F>(role: &str, pid: u32, work: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    // Linux shows 15 characters
    Builder::new().name(format!("cli-{role}-{pid}")).spawn(work)
}

/// Reaps the child under the lock of its exit, so that no signal goes to a pid that is free again.
fn wait_for_exit(process: Option<process::Child>, shared: &Shared, alive: UnixStream) {
    let Some(mut process) = process else { return };
    let seen_not_reaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(shared.pid), seen_not_reaped) {}
    let mut exit = lock(&shared.exit);
    let ended = process.wait().map_or(Exit { code: None, signal: None }, Exit::from);
    *exit = Some(ended);
    drop(exit);
    shared.exited.notify_all();
    drop(lock(&shared.queue).take());
    drop(alive);
}

/// Waits until something is ready; false when `limit` passed first.
fn wait_ready(fds: &mut [PollFd<'_>], limit: Option<Duration>) -> bool {
    let deadline = limit.map(Deadline::after);
    loop {
        let left = deadline.and_then(|deadline| Timespec::try_from(deadline.left()).ok());
        match poll(fds, left.as_ref()) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            // poll itself fails only for lack of memory: the reads that follow never wait long
            Err(_) => return true,
        }
    }
}

struct Writer<S> {
    stdin: ChildStdin,
    wake: Arc<UnixStream>,
    sink: S,
}

impl<S: Fn(ChildEvent)> Writer<S> {
    /// Writes message after message until the queue is closed. After a message that was cut, nothing
    /// more is written: its rest would be read as the start of the next line.
    fn run(mut self, messages: &Receiver<Message>) {
        let mut broken = None;
        for Message { token, bytes } in messages {
            if broken.is_none() {
                broken = self.write_whole(&bytes).err().map(|error| error.to_string());
            }
            (self.sink)(match &broken {
                None => ChildEvent::Written { token },
                Some(error) => ChildEvent::WriteFailed { token, error: error.clone() },
            });
        }
    }

    fn write_whole(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stdin.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut fds =
            [PollFd::new(&self.stdin, PollFlags::OUT), PollFd::new(&self.wake, PollFlags::IN)];
        wait_ready(&mut fds, None);
        // something the child left behind may keep the pipe open and never read it
        if fds[1].revents().is_empty() { Ok(()) } else { Err(ErrorKind::BrokenPipe.into()) }
    }
}

struct Reader<S> {
    /// Kept until the child's exit even when its output has ended: closing it is a hang-up.
    master: File,
    stdout_open: bool,
    stderr: Option<ChildStderr>,
    line: Line,
    wake: Arc<UnixStream>,
    shared: Arc<Shared>,
    drain_grace: Duration,
    piece: Vec<u8>,
    sink: S,
}

impl<S: Fn(ChildEvent)> Reader<S> {
    fn new(
        master: File,
        stderr: ChildStderr,
        wake: Arc<UnixStream>,
        shared: Arc<Shared>,
        drain_grace: Duration,
        sink: S,
    ) -> Reader<S> {
        Reader {
            master,
            stdout_open: true,
            stderr: Some(stderr),
            line: Line::default(),
            wake,
            shared,
            drain_grace,
            piece: vec![0; PIECE_MAX_BYTES],
            sink,
        }
    }

    fn run(mut self, writer: JoinHandle<()>) {
        self.while_alive();
        self.drain();
        self.line.flush(&self.sink);
        // the writer ends with the child; its last words come before `Exited`
        writer.join().ok();
        // without an exit the start was given up: nobody waits for an event
        let exit = *lock(&self.shared.exit);
        if let Some(Exit { code, signal }) = exit {
            (self.sink)(ChildEvent::Exited { code, signal });
        }
    }

    fn while_alive(&mut self) {
        loop {
            let (ready, dead) = self.wait(None);
            self.read(ready);
            if dead {
                return;
            }
        }
    }

    /// The dead child's own output is all there by now; what something it left behind still writes
    /// is taken for `drain_grace`.
    fn drain(&mut self) {
        let deadline = Deadline::after(self.drain_grace);
        let mut drained = 0;
        while self.stdout_open || self.stderr.is_some() {
            let (ready, _) = self.wait(Some(deadline.left()));
            if ready == (false, false) {
                return;
            }
            drained += self.read(ready);
            if deadline.passed() && drained > DRAIN_MAX_BYTES {
                return;
            }
        }
    }

    /// Which of stdout and stderr can be read, and whether the child is dead. With a limit, the
    /// death is known and not waited for.
    fn wait(&self, limit: Option<Duration>) -> ((bool, bool), bool) {
        let wanted = |yes: bool| {
            if yes { PollFlags::IN } else { PollFlags::empty() }
        };
        let mut fds = Vec::with_capacity(3);
        fds.push(PollFd::new(&self.wake, wanted(limit.is_none())));
        if self.stdout_open {
            fds.push(PollFd::new(&self.master, PollFlags::IN));
        }
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        if limit.is_some() {
            // its hang-up would end every wait
            fds.remove(0);
        }
        wait_ready(&mut fds, limit);
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let dead = limit.is_none() && ready.next().unwrap_or(false);
        let stdout = self.stdout_open && ready.next().unwrap_or(false);
        let stderr = self.stderr.is_some() && ready.next().unwrap_or(false);
        ((stdout, stderr), dead)
    }

    /// Reads what is there; gives the number of bytes.
    fn read(&mut self, (stdout, stderr): (bool, bool)) -> usize {
        let mut bytes = 0;
        if stdout {
            bytes += self.read_stdout();
        }
        if stderr {
            bytes += self.read_stderr();
        }
        bytes
    }

    /// Each read is an event of its own: while the sink works on it the kernel fetches what the next
    /// one gives. A read that comes too early sleeps until it is there.
    fn read_stdout(&mut self) -> usize {
        let mut bytes = 0;
        for _ in 0..READS_MAX {
            let (filled, ended) = read_terminal(&mut self.master, &mut self.piece);
            if filled > 0 {
                (self.sink)(ChildEvent::Stdout(self.piece[..filled].to_vec()));
            }
            if ended {
                self.stdout_open = false;
                (self.sink)(ChildEvent::OutputEnded);
            }
            bytes += filled;
            if filled == 0 || ended {
                break;
            }
        }
        bytes
    }

    fn read_stderr(&mut self) -> usize {
        let Some(stderr) = &mut self.stderr else {
            return 0;
        };
        match stderr.read(&mut self.piece) {
            Ok(read) if read > 0 => {
                self.line.push(&self.piece[..read], &self.sink);
                read
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Ok(_) | Err(_) => {
                self.stderr = None;
                self.line.flush(&self.sink);
                0
            }
        }
    }
}

/// Reads what is there now, as much as one read gives; gives how much that is, and whether nothing more
/// can come.
///
/// The kernel says EIO when it saw no bytes and then saw the slave closed: bytes written in between
/// are still to come. So the output has ended only at an EIO right after an EIO.
fn read_terminal(master: &mut impl Read, piece: &mut [u8]) -> (usize, bool) {
    let mut closed = false;
    loop {
        match master.read(piece) {
            Ok(read) => return (read, read == 0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (0, false),
            Err(_) if closed => return (0, true),
            Err(_) => closed = true,
        }
    }
}

/// The open line of stderr.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    open: bool,
}

impl Line {
    fn push(&mut self, bytes: &[u8], sink: &impl Fn(ChildEvent)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = STDERR_LINE_MAX_BYTES - self.bytes.len();
            self.bytes.extend_from_slice(&text[..text.len().min(room)]);
            self.open = true;
            if text.len() < piece.len() {
                self.flush(sink);
            }
        }
    }

    fn flush(&mut self, sink: &impl Fn(ChildEvent)) {
        if std::mem::take(&mut self.open) {
            let mut line = std::mem::take(&mut self.bytes);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            sink(ChildEvent::Stderr(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A terminal whose reads give what a script says; `None` is EIO.
    struct Scripted(VecDeque<Option<&'static [u8]>>);

    impl Read for Scripted {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.pop_front().ok_or(ErrorKind::WouldBlock)? {
                Some(bytes) => {
                    into[..bytes.len()].copy_from_slice(bytes);
                    Ok(bytes.len())
                }
                None => Err(io::Error::from_raw_os_error(libc::EIO)),
            }
        }
    }

    // proves: PR-03
    #[test]
    fn bytes_that_come_after_the_first_eio_are_not_lost() {
        for (reads, wanted) in [
            (vec![Some(&b"ab"[..])], (2, false)),
            (vec![Some(b"ab"), None, None], (2, true)),
            (vec![None, Some(b"ab"), None, None], (2, true)),
            (vec![None, Some(b"ab"), None, Some(b"c"), None, None], (3, true)),
        ] {
            let mut terminal = Scripted(reads.clone().into());
            let mut bytes = 0;
            let ended = loop {
                let (filled, ended) = read_terminal(&mut terminal, &mut [0; 16]);
                bytes += filled;
                if filled == 0 {
                    break ended;
                }
            };
            assert_eq!((bytes, ended), wanted, "{reads:?}");
        }
    }
}
