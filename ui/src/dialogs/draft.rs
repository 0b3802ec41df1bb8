//! What is typed into the new-session dialog, kept as a draft until it is started; and the command
//! it makes. Values only.

use omniscio_core::session::PermissionMode;
use omniscio_core::supervisor::Command;
use std::cell::RefCell;

/// The models offered: value and name.
pub(super) const MODELS: [(&str, &str); 5] = [
    ("", "Default"),
    ("opus", "Opus"),
    ("sonnet", "Sonnet"),
    ("haiku", "Haiku"),
    (OTHER_MODEL, "Other…"),
];
/// The value of the model that is named in a text field.
pub(super) const OTHER_MODEL: &str = "?";

/// The permissions offered.
pub(super) const PERMISSIONS: [(Option<PermissionMode>, &str); 5] = [
    (None, "Default"),
    (Some(PermissionMode::Default), "Ask for each"),
    (Some(PermissionMode::AcceptEdits), "Accept edits"),
    (Some(PermissionMode::Plan), "Plan first"),
    (Some(PermissionMode::DontAsk), "Deny what would ask"),
];

/// The fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// The folder, as typed.
    pub folder: String,
    /// The first message.
    pub text: String,
    /// A value of [`MODELS`].
    pub model: String,
    /// The model's name, if it is another one.
    pub model_text: String,
    /// A place in [`PERMISSIONS`].
    pub permissions: usize,
    /// An account's id; empty for the default.
    pub account: String,
    /// An endpoint's id; empty for Claude.
    pub endpoint: String,
}

thread_local! {
    static KEPT: RefCell<Option<Draft>> = const { RefCell::new(None) };
}

impl Draft {
    /// The draft that was kept, else an empty one in `folder`.
    pub(super) fn kept(folder: &str) -> Draft {
        let fresh = || Draft { folder: folder.to_owned(), ..Draft::default() };
        KEPT.with_borrow_mut(Option::take).unwrap_or_else(fresh)
    }

    /// Keeps the draft if something was typed.
    pub(super) fn keep(&self) {
        let typed = !self.text.trim().is_empty();
        KEPT.with_borrow_mut(|kept| *kept = typed.then(|| self.clone()));
    }

    /// The command that starts it in `folder`.
    pub(super) fn command(&self, folder: String, user_settings_only: bool) -> Command {
        let model = if self.model == OTHER_MODEL { &self.model_text } else { &self.model };
        let chosen = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Command::Create {
            folder,
            text: self.text.trim_end().to_owned(),
            // an endpoint brings its own
            model: chosen(model).filter(|_| self.endpoint.is_empty()),
            permission_mode: PERMISSIONS.get(self.permissions).and_then(|(mode, _)| *mode),
            account: chosen(&self.account),
            endpoint: chosen(&self.endpoint),
            user_settings_only,
        }
    }
}

/// A folder with `~` for the home folder.
pub(crate) fn tilde(folder: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches('/')).filter(|home| !home.is_empty());
    match home.and_then(|home| folder.strip_prefix(home)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => folder.to_owned(),
    }
}

/// A sentence with `~` in each of its paths; one with a space in it stays as it is.
pub(crate) fn tilde_words(text: &str, home: Option<&str>) -> String {
    let words: Vec<String> = text.split(' ').map(|word| tilde(word, home)).collect();
    words.join(" ")
}

/// The same the other way round: absolute, without spaces around it.
pub(super) fn absolute(typed: &str, home: Option<&str>) -> String {
    let typed = typed.trim();
    match (home, typed.strip_prefix('~')) {
        (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{}{rest}", home.trim_end_matches('/'))
        }
        (Some(_) | None, Some(_) | None) => typed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_a_tilde_and_back() {
        let home = Some("/home/ada");
        for (folder, shown) in [
            ("/home/ada/src/x", "~/src/x"),
            ("/home/ada", "~"),
            ("/home/adam/x", "/home/adam/x"),
            ("/srv/x", "/srv/x"),
        ] {
            assert_eq!(tilde(folder, home), shown);
            assert_eq!(absolute(&format!("  {shown} "), home), folder);
        }
        assert_eq!(absolute("~bob/x", home), "~bob/x");
        assert_eq!(absolute("~/x", None), "~/x");
        assert_eq!(tilde("/srv/x", Some("/")), "/srv/x");
        let said = "Cannot start /home/u/cli: none. There is none at /home/u/cli or /srv/home/u.";
        let shown = "Cannot start ~/cli: none. There is none at ~/cli or /srv/home/u.";
        assert_eq!(tilde_words(said, Some("/home/u")), shown);
    }

    #[test]
    fn only_what_was_chosen_is_asked_for() {
        let mut draft = Draft { text: "do it\n\n".into(), ..Draft::default() };
        let Command::Create { text, model, permission_mode, account, user_settings_only, .. } =
            draft.command("/p".into(), true)
        else {
            panic!("a new session")
        };
        assert_eq!((text.as_str(), model, permission_mode, account), ("do it", None, None, None));
        assert!(user_settings_only);
        draft.model = OTHER_MODEL.into();
        draft.model_text = " claude-x ".into();
        draft.permissions = 3;
        let Command::Create { model, permission_mode, .. } = draft.command("/p".into(), false)
        else {
            panic!("a new session")
        };
        assert_eq!(model.as_deref(), Some("claude-x"));
        assert_eq!(permission_mode, Some(PermissionMode::Plan));
        draft.endpoint = "kimi".into();
        let Command::Create { model, endpoint, .. } = draft.command("/p".into(), false) else {
            panic!("a new session")
        };
        assert_eq!((model, endpoint.as_deref()), (None, Some("kimi")), "it brings its model");
    }

    #[test]
    fn a_draft_with_a_text_is_kept_once() {
        Draft { text: "later".into(), folder: "/a".into(), ..Draft::default() }.keep();
        assert_eq!(Draft::kept("/b").folder, "/a");
        assert_eq!(Draft::kept("/b").folder, "/b");
        Draft { text: "  ".into(), folder: "/a".into(), ..Draft::default() }.keep();
        assert_eq!(Draft::kept("/b").folder, "/b");
    }
}
