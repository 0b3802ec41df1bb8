//! The app's log: one JSON object a line, a file a day, readable by its owner only.
//!
//! No secret reaches a file: what is known to be one, or looks like it, is cut from every line as it is
//! written. It never
//! grows without bound: so many days are kept, and a day has a limit in bytes.

mod redact;

pub(in crate::supervise) use redact::quoted;
pub use redact::{hide, hide_read, names_secret, redact};

use super::clock::Clock;
use omniscio_core::time::Day;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tracing_subscriber::EnvFilter;

/// Days whose files are kept.
const DAYS_KEPT: usize = 14;
/// A day's file may grow to this; the rest of the day is counted, not written.
const DAY_MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Chooses what is logged, in the form of `tracing`'s filters; `info` without it.
pub const FILTER_VARIABLE: &str = "OMNISCIO_LOG";
const PREFIX: &str = "omniscio.";
const SUFFIX: &str = ".log";

/// Starts logging into `folder` (made if it is not there, and private to its owner). Once a process: a second
/// call changes nothing.
pub fn init(folder: &Path) -> io::Result<()> {
    let writer = Mutex::new(DailyFile::open(folder, DAY_MAX_BYTES)?);
    let filter =
        EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber =
        tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(writer).finish();
    // an error means that somebody in this process logs already: a test, or the first call
    tracing::subscriber::set_global_default(subscriber).ok();
    Ok(())
}

/// Writes each line to the file of its day.
struct DailyFile {
    folder: PathBuf,
    day: i32,
    file: File,
    written: u64,
    max_bytes: u64,
}

impl DailyFile {
    fn open(folder: &Path, max_bytes: u64) -> io::Result<DailyFile> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // one that was there may be open to others
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let day = Clock.now().local_day;
        let (file, written) = open_day(folder, day)?;
        Ok(DailyFile { folder: folder.to_path_buf(), day, file, written, max_bytes })
    }

    fn write_line(&mut self, line: &[u8], today: i32) -> io::Result<()> {
        if today != self.day {
            (self.file, self.written) = open_day(&self.folder, today)?;
            self.day = today;
        }
        let text = String::from_utf8_lossy(line);
        let clean = redact(&text);
        let length = u64::try_from(clean.len()).unwrap_or(u64::MAX);
        let before = self.written;
        self.written = self.written.saturating_add(length);
        if self.written <= self.max_bytes {
            self.file.write_all(clean.as_bytes())
        } else if before <= self.max_bytes {
            self.file.write_all(b"{\"message\":\"the log of this day is full\"}\n")
        } else {
            Ok(())
        }
    }
}

impl Write for DailyFile {
    /// `tracing` writes each event with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let today = Clock.now().local_day;
        self.write_line(line, today)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a day's file and removes those of days long past.
fn open_day(folder: &Path, day: i32) -> io::Result<(File, u64)> {
    let path = day_path(folder, day);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let written = file.metadata()?.len();
    let names = fs::read_dir(folder)?.flatten().map(|entry| entry.file_name());
    let ours = |name: &String| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    let mut days: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(ours).collect();
    days.sort();
    let old = days.len().saturating_sub(DAYS_KEPT);
    for name in &days[..old] {
        // one that cannot be removed is looked at again tomorrow
        fs::remove_file(folder.join(name)).ok();
    }
    Ok((file, written))
}

fn day_path(folder: &Path, day: i32) -> PathBuf {
    folder.join(format!("{PREFIX}{}{SUFFIX}", Day(day).to_iso()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn a_day_has_its_file_and_old_days_go() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        let mut log = DailyFile::open(&folder, 1_000).unwrap();
        fs::write(folder.join("own-notes.log"), "").unwrap();
        // the file of today, which opening made: its date is no part of this test
        fs::remove_file(day_path(&folder, log.day)).unwrap();
        for day in 0..20 {
            log.write_line(b"{\"key\":\"sk-ant-0123456789\"}\n", day).unwrap();
        }
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        // the 14 newest of 20, and what is not the log's stays
        let mut kept: Vec<OsString> =
            (7..=20).map(|day| format!("omniscio.1970-01-{day:02}.log").into()).collect();
        kept.push("own-notes.log".into());
        assert_eq!(names, kept);
        let last = folder.join("omniscio.1970-01-20.log");
        assert_eq!(fs::read_to_string(&last).unwrap(), "{\"key\":\"[cut]\"}\n");
        assert_eq!(fs::metadata(&last).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_folder_that_is_there_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        DailyFile::open(dir.path(), 1_000).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_full_day_says_so_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = DailyFile::open(dir.path(), 10).unwrap();
        for _ in 0..5 {
            log.write_line(b"12345678\n", 3).unwrap();
        }
        let text = fs::read_to_string(dir.path().join("omniscio.1970-01-04.log")).unwrap();
        assert_eq!(text, "12345678\n{\"message\":\"the log of this day is full\"}\n");

        // a new start goes on where the file stands, and a new day begins anew
        let mut log = DailyFile::open(dir.path(), 10).unwrap();
        for day in [3, 3, 4] {
            log.write_line(b"12345678\n", day).unwrap();
        }
        let read = |day| fs::read_to_string(day_path(dir.path(), day)).unwrap();
        assert_eq!(read(3), text);
        assert_eq!(read(4), "12345678\n");
    }
}
