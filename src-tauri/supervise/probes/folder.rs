//! Whether a project folder is there, asked so that a dead mount cannot hold the caller up.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Folders whose probe ran out of time and has not come back yet. They are missing without another
/// probe: a dead mount keeps a thread or two, not one a try.
static HANGING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What is said of a folder that does not answer in time.
const SILENT: &str = "the folder does not answer";

/// The answer of [`folder_ok`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// An accessible directory.
    Present,
    /// Anything else, with the reason: gone, a file, an error, no answer in time.
    Missing(String),
}

impl FolderState {
    /// Whether the look came back in time.
    pub fn answered(&self) -> bool {
        *self != FolderState::Missing(SILENT.to_string())
    }
}

/// Whether `path` is an accessible directory; no answer within `limit` means missing.
// rule: PF-06
pub fn folder_ok(path: &Path, limit: Duration) -> FolderState {
    ask(path, limit, look)
}

/// Whether a look at `path` comes back within `limit`, whatever it finds. One that does not would keep
/// whoever reads there.
pub fn folder_answers(path: &Path, limit: Duration) -> bool {
    ask(path, limit, look).answered()
}

fn look(path: &Path) -> FolderState {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => enter(path),
        Ok(_) => FolderState::Missing("not a folder".to_string()),
        Err(error) => FolderState::Missing(error.to_string()),
    }
}

/// `path/.` is found only if the folder may be entered.
fn enter(path: &Path) -> FolderState {
    let mut inside = path.as_os_str().to_os_string();
    inside.push("/.");
    match fs::metadata(inside) {
        Ok(_) => FolderState::Present,
        Err(error) => FolderState::Missing(error.to_string()),
    }
}

fn ask<L>(path: &Path, limit: Duration, look: L) -> FolderState
where
    L: FnOnce(&Path) -> FolderState + Send + 'static,
{
    let late = || FolderState::Missing(SILENT.to_string());
    if hanging().contains(path) {
        return late();
    }
    let (sender, answer) = sync_channel(1);
    let wanted = path.to_path_buf();
    let started = thread::Builder::new().name("folder-probe".to_string()).spawn(move || {
        let state = look(&wanted);
        let mut hanging = hanging();
        // nobody waits for a late answer
        sender.send(state).ok();
        hanging.remove(&wanted);
    });
    if started.is_err() {
        // a machine short of threads has its folders all the same
        return self::look(path);
    }
    if let Ok(state) = answer.recv_timeout(limit) {
        return state;
    }
    let mut hanging = hanging();
    answer.try_recv().unwrap_or_else(|_| {
        hanging.insert(path.to_path_buf());
        late()
    })
}

fn hanging() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    HANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A probe of this folder does not come back any more.
#[cfg(test)]
pub(super) fn hangs(path: &Path) {
    hanging().insert(path.to_path_buf());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

    // proves: PF-06
    #[test]
    fn anything_but_a_folder_to_enter_is_missing() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path().join("nowhere"), &link).unwrap();

        assert_eq!(folder_ok(home.path(), LONG), FolderState::Present);
        for bad in [file.clone(), link, home.path().join("gone"), file.join("below")] {
            assert!(matches!(folder_ok(&bad, LONG), FolderState::Missing(_)), "{}", bad.display());
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(folder_ok(&file, LONG), FolderState::Present, "it is back");
    }

    // proves: PF-06
    #[test]
    fn a_folder_that_does_not_answer_is_missing_and_asked_no_second_time_meanwhile() {
        let path = Path::new("/mount/that/hangs");
        let (answer, held) = channel::<()>();
        let (ended, end) = channel();
        let hang = move |_: &Path| {
            held.recv().ok();
            ended.send(()).ok();
            FolderState::Present
        };
        assert!(matches!(ask(path, Duration::ZERO, hang), FolderState::Missing(_)));
        let unasked = |_: &Path| -> FolderState { panic!("a second probe of a hanging folder") };
        assert!(matches!(ask(path, LONG, unasked), FolderState::Missing(_)));
        assert!(!folder_answers(path, LONG));

        answer.send(()).unwrap();
        end.recv().unwrap();
        while hanging().contains(path) {
            thread::yield_now();
        }
        assert_eq!(ask(path, LONG, |_: &Path| FolderState::Present), FolderState::Present);
        assert!(folder_answers(path, LONG), "that it is missing is an answer");
    }

    #[test]
    fn two_probes_of_one_folder_at_once_both_get_the_answer() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_path_buf();
        let inner = path.clone();
        let both = move |_: &Path| folder_ok(&inner, LONG);
        assert_eq!(ask(&path, LONG, both), FolderState::Present);
    }
}
