//! Runs a short helper program and reads what it prints, within a time and a size. The helper is
//! ended with its whole process group when it takes too long.

use crate::supervise::clock::Deadline;
use crate::supervise::pty;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The standard output of `command` up to its end, or up to where `complete` says that all is there
/// (a helper may leave something behind that keeps the pipe open). `TimedOut` after `limit`,
/// `InvalidData` beyond `max_bytes`.
pub(in crate::supervise) fn capture(
    mut command: Command,
    limit: Duration,
    max_bytes: usize,
    complete: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    pty::detach(&mut command);
    let mut helper = command.spawn()?;
    let deadline = Deadline::after(limit);
    let read = match helper.stdout.take() {
        Some(stdout) => read_within(stdout, &deadline, max_bytes, complete),
        None => Err(ErrorKind::BrokenPipe.into()),
    };
    end(&mut helper, read.is_ok(), &deadline);
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
            Err(Errno::INTR) => continue,
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

/// Reaps the helper; one that failed, or is not done when the time is over, is killed with its group
/// first. Its number is free for others only after the reaping, so the group is its own.
fn end(helper: &mut Child, well: bool, deadline: &Deadline) {
    let Some(pid) = i32::try_from(helper.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    let (sender, exited) = sync_channel(1);
    let waiter = thread::Builder::new().name("helper-wait".to_string()).spawn(move || {
        let seen_not_reaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), seen_not_reaped) {}
        sender.send(()).ok();
    });
    if !well || waiter.is_err() || exited.recv_timeout(deadline.left()).is_err() {
        kill_process_group(pid, Signal::KILL).ok();
    }
    // it must not look at the number once that is free
    waiter.map(JoinHandle::join).ok();
    helper.wait().ok();
}
