//! The form of what the page sends: paths, links, sizes. What a request means is the rules' business.

use omniscio_core::ipc::{IpcCode, IpcError};
use omniscio_core::supervisor::Command;
use tauri::Url;

/// The kernel takes no longer path.
const PATH_MAX_BYTES: usize = 4_096;
/// Longer links are nobody's.
const URL_MAX_BYTES: usize = 8_192;
/// Programs outside that may get a link.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// A path that may be looked at: any text a person may have typed so far.
pub(super) fn path(path: &str) -> Result<(), IpcError> {
    if path.len() > PATH_MAX_BYTES || path.contains('\0') {
        return Err(invalid("This is no path."));
    }
    Ok(())
}

/// A path that is acted on: absolute.
pub(super) fn full_path(given: &str) -> Result<(), IpcError> {
    path(given)?;
    if !std::path::Path::new(given).is_absolute() {
        return Err(invalid("Give the folder's full path."));
    }
    Ok(())
}

/// A command's paths; everything else in it is checked by the rules, which know the rows.
pub(super) fn command(command: &Command) -> Result<(), IpcError> {
    match command {
        Command::Create { folder, .. } => full_path(folder),
        Command::Send { .. }
        | Command::Unqueue { .. }
        | Command::Stop { .. }
        | Command::Retry { .. }
        | Command::Continue { .. }
        | Command::ReplyCard { .. }
        | Command::SwitchModel { .. }
        | Command::End { .. }
        | Command::Archive { .. }
        | Command::Unarchive { .. }
        | Command::Delete { .. }
        | Command::Rename { .. }
        | Command::MarkRead { .. }
        | Command::SetSetting { .. }
        | Command::Explain { .. }
        | Command::Quit => Ok(()),
    }
}

/// A link for a program outside: web or mail, nothing that names a file or starts something.
pub(super) fn link(text: &str) -> Result<Url, IpcError> {
    let refused = || invalid("Only web and mail links are opened.");
    if text.len() > URL_MAX_BYTES || text.chars().any(char::is_control) {
        return Err(refused());
    }
    Url::parse(text).ok().filter(|url| SCHEMES.contains(&url.scheme())).ok_or_else(refused)
}

/// Whether the window may go there: the app's own pages only.
pub(super) fn is_own_page(url: &Url) -> bool {
    let own = match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        // the same pages on Windows
        "http" | "https" => url.host_str() == Some("tauri.localhost"),
        _ => false,
    };
    if !own {
        tracing::warn!(scheme = url.scheme(), "the window stays on its own pages");
    }
    own
}

fn invalid(words: &str) -> IpcError {
    IpcError { code: IpcCode::Invalid, message: words.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_and_mail_links_go_out() {
        for good in ["https://example.org/a?b#c", "http://x", "mailto:a@example.org"] {
            assert!(link(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "example.org",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "vscode://x",
            "https://example.org/\nx",
        ] {
            assert_eq!(link(bad).map_err(|error| error.code), Err(IpcCode::Invalid), "{bad}");
        }
        assert!(link(&format!("https://x/{}", "y".repeat(URL_MAX_BYTES))).is_err());
    }

    #[test]
    fn the_window_shows_its_own_pages_only() {
        for (url, own) in [
            ("tauri://localhost/index.html", true),
            ("http://tauri.localhost/", true),
            ("https://example.org/", false),
            ("tauri://elsewhere/", false),
            ("file:///etc/passwd", false),
            ("about:blank", false),
        ] {
            assert_eq!(is_own_page(&Url::parse(url).unwrap()), own, "{url}");
        }
    }

    #[test]
    fn paths_are_whole_before_they_are_acted_on() {
        assert!(path("pro").is_ok() && path("").is_ok() && full_path("/a").is_ok());
        assert!(path("a\0b").is_err() && path(&"x".repeat(5_000)).is_err());
        assert!(full_path("a/b").is_err() && full_path("~/a").is_err() && full_path("").is_err());
    }
}
