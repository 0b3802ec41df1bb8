//! Reads the system's table of processes (`/proc`; elsewhere it is empty). It never signals.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};

/// The kernel's own bound for one environment is lower than this.
const ENVIRON_MAX_BYTES: u64 = 8 * 1024 * 1024;
/// The kernel's own bound for the name of a program is lower than this.
const PROGRAM_MAX_BYTES: u64 = 64;

/// The part of `/proc/PID/stat` that tells processes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervise) struct Stat {
    pub(in crate::supervise) parent: u32,
    /// Field 22: clock ticks from boot to the start.
    pub(in crate::supervise) start_time: u64,
    /// Ended, and not yet reaped by its parent.
    pub(in crate::supervise) dead: bool,
}

/// The facts of a process; `None` if there is no such process, or none that can be looked at.
pub(in crate::supervise) fn stat(pid: u32) -> Option<Stat> {
    look(pid).ok().flatten()
}

/// The facts of a process; `None` if there is no such process.
///
/// # Errors
/// Nobody can look just now: no descriptor is left, for one.
pub(in crate::supervise) fn look(pid: u32) -> io::Result<Option<Stat>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => Ok(parse_stat(&text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // it ended between the opening and the reading
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name in field 2 may hold spaces and brackets, so the fields are counted from its end.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, start_time, dead: matches!(state, "Z" | "X") })
}

/// All process ids of this moment.
pub(super) fn pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The environment a process was started with.
pub(super) struct Environ(Vec<u8>);

impl Environ {
    /// `None` if the process is gone, a zombie, or another user's.
    pub(super) fn of(pid: u32) -> Option<Environ> {
        let bytes = read(pid, "environ", ENVIRON_MAX_BYTES)?;
        (!bytes.is_empty()).then_some(Environ(bytes))
    }

    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0
            .split(|&byte| byte == 0)
            .find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }
}

/// The name of the program, for the log: never its arguments.
pub(super) fn program(pid: u32) -> String {
    let bytes = read(pid, "comm", PROGRAM_MAX_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end().to_string()
}

fn read(pid: u32, file: &str, max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/{file}")).ok()?.take(max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let line = "7 (a) b) R 5 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 10";
        assert_eq!(parse_stat(line), Some(Stat { parent: 5, start_time: 4242, dead: false }));
        assert!(parse_stat(&line.replace(" R ", " Z ")).is_some_and(|stat| stat.dead));
        assert_eq!(parse_stat("7 (sh) R 5"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn variables_are_found_by_their_whole_name() {
        let environ = Environ(b"XNAME=1\0NAME_2=2\0NAME=three\0EMPTY=\0".to_vec());
        assert_eq!(environ.get("NAME"), Some(&b"three"[..]));
        assert_eq!(environ.get("EMPTY"), Some(&b""[..]));
        assert_eq!(environ.get("AME"), None);
    }
}
