//! Where the app keeps its data: one answer for the app, its tests and its command-line tools.
//!
//! Creates the folder, private to its user; never touches what is in it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The app's identifier; also the name of its data folder.
pub const IDENTIFIER: &str = "dev.omniscio.Omniscio";

/// The variable that names another data folder.
pub const DATA_DIR_VARIABLE: &str = "OMNISCIO_DATA_DIR";

/// The database's file name.
pub const DATABASE_FILE: &str = "omniscio.db";

/// The lock's file name.
pub const LOCK_FILE: &str = "omniscio.lock";

/// There is neither a data folder of the user nor one that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("No data folder was found. Set HOME, or name one in {DATA_DIR_VARIABLE}.")]
pub struct NoDataDir;

/// The data folder: the argument, else [`DATA_DIR_VARIABLE`], else the user's XDG data folder.
///
/// # Errors
/// [`NoDataDir`] when the user has none.
pub fn data_dir(argument: Option<&Path>) -> Result<PathBuf, NoDataDir> {
    choose(argument, env::var_os(DATA_DIR_VARIABLE), dirs::data_dir())
}

/// The choice among the three, with empty names left out.
fn choose(
    argument: Option<&Path>,
    variable: Option<OsString>,
    users: Option<PathBuf>,
) -> Result<PathBuf, NoDataDir> {
    // rule: A-31
    argument
        .map(Path::to_path_buf)
        .or(variable.map(PathBuf::from))
        .filter(|named| !named.as_os_str().is_empty())
        .or(users.map(|users| users.join(IDENTIFIER)))
        .ok_or(NoDataDir)
}

/// The database in a data folder.
pub fn database_path(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE_FILE)
}

/// Creates the folder with mode 0700 where it is missing. An existing folder is made private only
/// if it is the app's own by its name: a folder that somebody chose is left as it is.
///
/// # Errors
/// What the file system says.
pub fn prepare(data_dir: &Path) -> io::Result<()> {
    let existed = data_dir.is_dir();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(data_dir)?;
    if existed && data_dir.file_name().is_some_and(|name| name == IDENTIFIER) {
        private(data_dir, 0o700)?;
    }
    Ok(())
}

/// Takes every right of others from the file or folder.
#[cfg(unix)]
pub(super) fn private(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::metadata(path)?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The user's profile folder is private by itself.
#[cfg(not(unix))]
pub(super) fn private(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_goes_before_the_variable_before_the_users_folder() {
        let choose = |argument: Option<&str>, variable: Option<&str>, users: Option<&str>| {
            choose(argument.map(Path::new), variable.map(OsString::from), users.map(PathBuf::from))
        };
        let (a, v, u) = (Some("/a"), Some("/v"), Some("/u"));
        assert_eq!(choose(a, v, u), Ok(PathBuf::from("/a")));
        assert_eq!(choose(None, v, u), Ok(PathBuf::from("/v")));
        assert_eq!(choose(None, Some(""), u), Ok(PathBuf::from("/u/dev.omniscio.Omniscio")));
        assert_eq!(choose(None, None, u), Ok(PathBuf::from("/u/dev.omniscio.Omniscio")));
        assert_eq!(choose(None, None, None), Err(NoDataDir));
    }
}
