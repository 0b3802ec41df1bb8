//! The form of what the page sends: paths, links, sizes, and that a person has decided about what a
//! folder brings. What a request means is the rules' business.

use omniscio_core::ipc::{FolderCheck, IpcCode, IpcError};
use omniscio_core::settings::SettingChange;
use omniscio_core::supervisor::Command;
use tauri::Url;

/// The kernel takes no longer path.
const PATH_MAX_BYTES: usize = 4_096;
/// No model has a longer name.
const MODEL_MAX_BYTES: usize = 200;
/// Longer links are nobody's.
const URL_MAX_BYTES: usize = 8_192;
/// Programs outside that may get a link.
const SCHEMES: [&str; 3] = ["http", "https", MAIL];
const MAIL: &str = "mailto";
/// What a mail link may fill in. Some mail programs would also attach a file that it names.
const MAIL_FIELDS: [&str; 3] = ["body", "cc", "subject"];

/// A path that may be looked at: any text a person may have typed so far.
pub(super) fn path(path: &str) -> Result<(), IpcError> {
    if path.len() > PATH_MAX_BYTES || path.contains('\0') {
        return Err(invalid("This is no path."));
    }
    Ok(())
}

/// A folder that is acted on: its path is absolute.
pub(super) fn full_path(given: &str) -> Result<(), IpcError> {
    absolute(given, "Give the folder's full path.")
}

fn absolute(given: &str, otherwise: &str) -> Result<(), IpcError> {
    path(given)?;
    if !std::path::Path::new(given).is_absolute() {
        return Err(invalid(otherwise));
    }
    Ok(())
}

/// A model's name is a word of the CLI's command line: it must not look like a flag.
fn model(name: Option<&str>) -> Result<(), IpcError> {
    let name = name.unwrap_or_default().trim();
    if name.len() > MODEL_MAX_BYTES || name.starts_with('-') || name.chars().any(char::is_control) {
        return Err(invalid("This is no name of a model."));
    }
    Ok(())
}

/// A command's paths and names; everything else in it is checked by the rules, which know the rows.
pub(super) fn command(command: &Command) -> Result<(), IpcError> {
    match command {
        Command::Create { folder, model: name, .. } => {
            model(name.as_deref())?;
            full_path(folder)
        }
        Command::SwitchModel { model: name, .. } => model(name.as_deref()),
        // agents have their own ways in, and the page is none
        Command::Agent { .. } => Err(invalid("Only an agent may do this.")),
        // it is started in any project's folder; an empty one is none
        Command::SetSetting { change: SettingChange::ClaudePath(program) }
            if !program.is_empty() =>
        {
            absolute(program, "Give the program's full path.")
        }
        Command::Send { .. }
        | Command::Unqueue { .. }
        | Command::Stop { .. }
        | Command::Retry { .. }
        | Command::Continue { .. }
        | Command::ReplyCard { .. }
        | Command::TakeOver { .. }
        | Command::ForkHeld { .. }
        | Command::Fork { .. }
        | Command::End { .. }
        | Command::Archive { .. }
        | Command::Unarchive { .. }
        | Command::Delete { .. }
        | Command::Rename { .. }
        | Command::MarkRead { .. }
        | Command::SetSetting { .. }
        | Command::SetEndpoint { .. }
        | Command::RemoveEndpoint { .. }
        | Command::Explain { .. }
        | Command::Quit => Ok(()),
    }
}

/// Holds a new session to the person's decision about what its folder brings, whatever the page
/// says: without one it is refused, and "without them" leaves the folder's settings out.
// rule: A-23
pub(super) fn trust(
    command: &mut Command,
    look: impl FnOnce(&str) -> Result<FolderCheck, IpcError>,
) -> Result<(), IpcError> {
    let Command::Create { folder, user_settings_only, .. } = command else {
        return Ok(());
    };
    if *user_settings_only {
        return Ok(());
    }
    let check = look(folder)?;
    if !check.exists {
        // nobody can say what it will bring when it comes back
        let message = "This folder does not exist. Choose another one.".to_string();
        return Err(IpcError { code: IpcCode::FolderMissing, message });
    }
    if check.commands.is_empty() {
        return Ok(());
    }
    let Some(trusted) = check.decided else {
        return Err(invalid(
            "This folder brings commands that run by themselves. Start the session from the \
             New session dialog, and decide there whether they may run.",
        ));
    };
    *user_settings_only = !trusted;
    Ok(())
}

/// A link for a program outside: web or mail, nothing that names a file or starts something. A mail
/// link keeps its addresses, subject, text and copies.
pub(super) fn link(text: &str) -> Result<Url, IpcError> {
    let refused = || invalid("Only web and mail links are opened.");
    if text.len() > URL_MAX_BYTES || text.chars().any(char::is_control) {
        return Err(refused());
    }
    let url = Url::parse(text).ok().filter(|url| SCHEMES.contains(&url.scheme()));
    let mut url = url.ok_or_else(refused)?;
    if url.scheme() == MAIL {
        // as they stand: a `+` in a mail link is a plus
        let kept: Vec<&str> =
            url.query().unwrap_or_default().split('&').filter(|field| may_fill_in(field)).collect();
        let kept = kept.join("&");
        url.set_query(Some(kept.as_str()).filter(|kept| !kept.is_empty()));
        url.set_fragment(None);
    }
    Ok(url)
}

fn may_fill_in(field: &str) -> bool {
    let name = field.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| MAIL_FIELDS.iter().any(|known| known.eq_ignore_ascii_case(name)))
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
    use omniscio_core::id::Uuid;
    use omniscio_core::ipc::FolderCommand;
    use omniscio_core::supervisor::AgentTool;

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
    fn a_mail_link_fills_in_no_more_than_it_may() {
        for (given, opened) in [
            ("mailto:a@example.org", "mailto:a@example.org"),
            (
                "MAILTO:a@x?Subject=a+b%26c&CC=b@x&body=l%0Am",
                "mailto:a@x?Subject=a+b%26c&CC=b@x&body=l%0Am",
            ),
            ("mailto:a@x?attach=/etc/passwd", "mailto:a@x"),
            ("mailto:?subject=s&attachment=file:///f&body=b", "mailto:?subject=s&body=b"),
            ("mailto:a@x?%61ttach=/f&bcc=c@x&subject&amp;attach=/f&=x#body=y", "mailto:a@x"),
            ("https://x/?attach=1#a", "https://x/?attach=1#a"),
        ] {
            assert_eq!(link(given).unwrap().as_str(), opened);
        }
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

    #[test]
    fn a_program_is_named_by_its_full_path() {
        let set = |path: &str| {
            let change = SettingChange::ClaudePath(path.to_string());
            command(&Command::SetSetting { change }).map_err(|error| error.code)
        };
        assert_eq!((set("/opt/claude"), set("")), (Ok(()), Ok(())));
        for bad in ["claude", "./claude", "~/claude", "../claude", "/a\0b"] {
            assert_eq!(set(bad), Err(IpcCode::Invalid), "{bad}");
        }
    }

    #[test]
    fn a_models_name_is_no_flag() {
        let switch = |name: &str| {
            let (session, model) = (Uuid(1), Some(name.to_string()));
            command(&Command::SwitchModel { session, model }).map_err(|error| error.code)
        };
        for good in ["", "opus", "claude-opus-4-5[1m]", "us.anthropic.claude/v1:0"] {
            assert_eq!(switch(good), Ok(()), "{good}");
        }
        let long = "x".repeat(MODEL_MAX_BYTES + 1);
        for bad in ["--help", " -p", "a\nb", &long] {
            assert_eq!(switch(bad), Err(IpcCode::Invalid), "{bad}");
        }
        let mut create = create(false);
        if let Command::Create { model, .. } = &mut create {
            *model = Some("--x".to_string());
        }
        assert_eq!(command(&create).map_err(|error| error.code), Err(IpcCode::Invalid));
    }

    #[test]
    fn the_page_does_not_speak_for_an_agent() {
        let tool = AgentTool::SpawnWorker { task: "x".to_string(), title: None };
        let given = command(&Command::Agent { session: Uuid(1), tool });
        assert_eq!(given.map_err(|error| error.code), Err(IpcCode::Invalid));
    }

    fn create(user_settings_only: bool) -> Command {
        Command::Create {
            folder: "/p".to_string(),
            text: "go".to_string(),
            model: None,
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only,
        }
    }

    fn brings(exists: bool, commands: usize, decided: Option<bool>) -> FolderCheck {
        let command = FolderCommand { file: ".mcp.json".to_string(), text: "x".to_string() };
        FolderCheck {
            exists,
            real_path: "/p".to_string(),
            decided,
            commands: vec![command; commands],
        }
    }

    // proves: A-23
    #[test]
    fn what_a_folder_brings_runs_only_after_a_yes() {
        let (with, without) = (Ok(create(false)), Ok(create(true)));
        for (check, outcome) in [
            (brings(true, 0, None), with.clone()),
            (brings(true, 0, Some(false)), with.clone()),
            (brings(true, 1, Some(true)), with),
            (brings(true, 1, Some(false)), without),
            (brings(true, 1, None), Err(IpcCode::Invalid)),
            (brings(false, 0, Some(true)), Err(IpcCode::FolderMissing)),
        ] {
            let mut command = create(false);
            let said = trust(&mut command, |folder| {
                assert_eq!(folder, "/p");
                Ok(check.clone())
            });
            assert_eq!(said.map(|()| command).map_err(|error| error.code), outcome, "{check:?}");
        }
        // "without them" needs no decision, and nothing else makes a session from a folder
        for mut command in [create(true), Command::Quit] {
            let before = command.clone();
            assert_eq!(trust(&mut command, |_| unreachable!()), Ok(()));
            assert_eq!(command, before);
        }
    }
}
