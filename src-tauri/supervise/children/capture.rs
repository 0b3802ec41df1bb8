//! Runs a short helper program and reads what it prints, within a time and a size. The helper is
//! ended with its whole process group when it takes too long.

use crate::supervise::clock::Deadline;
use crate::supervise::pty;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How long a helper that has said everything may take to exit by itself.
const EXIT_GRACE: Duration = Duration::from_millis(500);
const EXIT_POLL: Duration = Duration::from_millis(5);

/// The standard output of `command` up to its end, or up to where `complete` says that all is there
/// (a helper may leave something behind that keeps the pipe open). `TimedOut` after `limit`,
/// `InvalidData` beyond `max_bytes`.
pub(in crate::supervise) fn capture(
    mut command: Command,
    limit: Duration,
    max_bytes: usize,
    complete: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    pty::detach(&mut command);
    let mut helper = command.spawn()?;
    let read = match helper.stdout.take() {
        Some(stdout) => read_within(stdout, &Deadline::after(limit), max_bytes, complete),
        None => Err(ErrorKind::BrokenPipe.into()),
    };
    end(&mut helper, read.is_ok());
    read
}

fn read_within(
    mut stdout: ChildStdout,
    deadline: &Deadline,
    max_bytes: usize,
    complete: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    while !complete(&all) {
        let left = Timespec::try_from(deadline.left()).unwrap_or_default();
        match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match stdout.read(&mut piece)? {
            0 => break,
            read => all.extend_from_slice(&piece[..read]),
        }
        if all.len() > max_bytes {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(all)
}

/// Reaps the helper; one that failed or lingers is killed with its group first. Its pid is free for
/// others only after the reaping, so the group is its own.
fn end(helper: &mut Child, well: bool) {
    let deadline = Deadline::after(if well { EXIT_GRACE } else { Duration::ZERO });
    loop {
        match helper.try_wait() {
            Ok(Some(_)) => return,
            Ok(None) if !deadline.passed() => thread::sleep(EXIT_POLL),
            Ok(None) | Err(_) => break,
        }
    }
    if let Some(group) = i32::try_from(helper.id()).ok().and_then(Pid::from_raw) {
        kill_process_group(group, Signal::KILL).ok();
    }
    helper.wait().ok();
}
