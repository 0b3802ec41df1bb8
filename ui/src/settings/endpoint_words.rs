//! What Settings says of endpoints, and what a person types into their dialog. Values only; what is
//! typed is checked by the rules' own function.

use omniscio_core::endpoint::{Endpoint, Field, SecretSource, Wrong, checked};
use omniscio_core::engine::EngineFamily;
use omniscio_core::ipc::SecretState;

/// The name of the group.
pub(super) const GROUP: &str = "Endpoints";
/// The sentence under it.
pub(super) const ABOUT: &str = "Other engines behind an address of their own: Kimi, DeepSeek, GLM, GPT, \
    xAI, or Claude behind a gateway. A new session chooses one.";
/// What else a search may be for.
const ALSO: &str = "Base URL, model, context window, secret, token, API key, proxy";

/// The families as they are chosen: value, name, and what it means.
pub(super) const FAMILIES: [(&str, EngineFamily, &str, &str); 3] = [
    (
        "anthropic_compat",
        EngineFamily::AnthropicCompat,
        "Kimi, DeepSeek, GLM: speaks Anthropic’s protocol",
        "A full context is compacted by Omniscio.",
    ),
    (
        "proxy_backed",
        EngineFamily::ProxyBacked,
        "GPT, xAI: behind a proxy that translates",
        "The CLI’s own compaction is off; a full context is compacted by Omniscio.",
    ),
    ("claude", EngineFamily::Claude, "Claude: behind a gateway", "Treated like Claude itself."),
];

/// The places a secret can be in: value and name.
pub(super) const SOURCES: [(&str, &str); 3] = [
    (STORE, "Keep it in the system’s secret store"),
    ("variable", "Read it from this variable"),
    ("command", "Read it from this command"),
];
/// The value of the system's secret store.
pub(super) const STORE: &str = "store";

/// Whether a search is for endpoints.
pub(super) fn searched(query: &str) -> bool {
    let query = query.trim().to_lowercase();
    [GROUP, ABOUT, ALSO].iter().any(|text| text.to_lowercase().contains(&query))
}

/// What the dialog holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// The endpoint's id; empty for a new one.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its address.
    pub base_url: String,
    /// Its model.
    pub model: String,
    /// Its window.
    pub window: String,
    /// A value of [`FAMILIES`].
    pub family: String,
    /// A value of [`SOURCES`].
    pub source: String,
    /// The variable's name.
    pub variable: String,
    /// The command.
    pub command: String,
}

impl Typed {
    /// A new one.
    pub(super) fn new() -> Typed {
        Typed {
            id: String::new(),
            name: String::new(),
            base_url: String::new(),
            model: String::new(),
            window: String::new(),
            family: FAMILIES[0].0.into(),
            source: STORE.into(),
            variable: String::new(),
            command: String::new(),
        }
    }

    /// One that is set up.
    pub(super) fn of(endpoint: &Endpoint) -> Typed {
        let family = FAMILIES.iter().find(|(_, family, ..)| *family == endpoint.family);
        let (source, variable, command) = match &endpoint.secret {
            SecretSource::Store => (STORE, "", ""),
            SecretSource::Variable(name) => ("variable", name.as_str(), ""),
            SecretSource::Command(text) => ("command", "", text.as_str()),
        };
        Typed {
            id: endpoint.id.clone(),
            name: endpoint.name.clone(),
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone(),
            window: endpoint.context_window.to_string(),
            family: family.map_or("", |(value, ..)| *value).into(),
            source: source.into(),
            variable: variable.into(),
            command: command.into(),
        }
    }

    /// What its family means.
    pub(super) fn family_helper(&self) -> &'static str {
        let chosen = FAMILIES.iter().find(|(value, ..)| *value == self.family);
        chosen.map_or("", |(.., helper)| *helper)
    }

    /// The endpoint, as it may be kept beside the `others`.
    pub(super) fn endpoint(&self, others: &[Endpoint]) -> Result<Endpoint, Wrong> {
        let chosen = FAMILIES.iter().find(|(value, ..)| *value == self.family);
        let digits: String = self.window.chars().filter(char::is_ascii_digit).collect();
        let apart = |c: char| c.is_ascii_digit() || matches!(c, ' ' | ',' | '.' | '_' | '\'');
        let window = if self.window.chars().all(apart) { digits.parse().ok() } else { None };
        let endpoint = Endpoint {
            id: self.id.clone(),
            name: self.name.clone(),
            base_url: self.base_url.clone(),
            model: self.model.clone(),
            context_window: window.unwrap_or_default(),
            family: chosen.map_or(EngineFamily::AnthropicCompat, |(_, family, ..)| *family),
            secret: match self.source.as_str() {
                "variable" => SecretSource::Variable(self.variable.clone()),
                "command" => SecretSource::Command(self.command.clone()),
                _ => SecretSource::Store,
            },
        };
        checked(&endpoint, others)
    }
}

/// The words for the field, if it is the wrong one.
pub(super) fn words_for(wrong: Option<&Wrong>, field: Field) -> Option<&'static str> {
    wrong.filter(|wrong| wrong.field == field).map(|wrong| wrong.words)
}

/// An endpoint in one line: model, server, window.
pub(super) fn line(endpoint: &Endpoint) -> String {
    let server = endpoint.server();
    let server = server.split_once("://").map_or(server.as_str(), |(_, host)| host);
    format!("{} · {server} · {} tokens", endpoint.model, grouped(endpoint.context_window))
}

/// Whether its secret is there, in words, and whether something is to be done.
pub(super) fn secret_line(endpoint: &Endpoint, state: SecretState) -> (String, bool) {
    match (&endpoint.secret, state) {
        (SecretSource::Store, SecretState::Missing) => ("Secret: not stored".into(), true),
        (SecretSource::Store, SecretState::NoStore) => {
            ("The system’s secret store does not answer".into(), true)
        }
        (SecretSource::Store, SecretState::Present | SecretState::AtLaunch) => {
            ("Secret: stored".into(), false)
        }
        (SecretSource::Variable(name), SecretState::Missing | SecretState::NoStore) => {
            (format!("Secret: the variable {name} is not set"), true)
        }
        (SecretSource::Variable(name), SecretState::Present | SecretState::AtLaunch) => {
            (format!("Secret: from the variable {name}"), false)
        }
        (SecretSource::Command(_), _) => ("Secret: from a command, at each launch".into(), false),
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed() -> Typed {
        Typed {
            name: "Kimi".into(),
            base_url: "https://api.example.com/anthropic/".into(),
            model: "kimi-k2".into(),
            window: "262,144".into(),
            ..Typed::new()
        }
    }

    // proves: PR-10
    #[test]
    fn the_makers_that_are_named_choose_their_family() {
        let of = |maker: &str| {
            let found = FAMILIES.iter().find(|(_, _, name, _)| name.contains(maker));
            found.map(|(value, ..)| Typed { family: (*value).into(), ..typed() })
        };
        for (maker, family) in [
            ("Kimi", EngineFamily::AnthropicCompat),
            ("DeepSeek", EngineFamily::AnthropicCompat),
            ("GLM", EngineFamily::AnthropicCompat),
            ("GPT", EngineFamily::ProxyBacked),
            ("xAI", EngineFamily::ProxyBacked),
        ] {
            let endpoint = of(maker).unwrap().endpoint(&[]).unwrap();
            assert_eq!(endpoint.family, family, "{maker}");
        }
    }

    #[test]
    fn what_is_typed_becomes_an_endpoint_and_back() {
        let endpoint = typed().endpoint(&[]).unwrap();
        assert_eq!(endpoint.context_window, 262_144);
        assert_eq!(line(&endpoint), "kimi-k2 · api.example.com · 262,144 tokens");
        for (source, secret) in [
            ("variable", SecretSource::Variable("KEY".into())),
            ("command", SecretSource::Command("pass kimi".into())),
        ] {
            let (variable, command) = ("KEY".into(), "pass kimi".into());
            let changed = Typed { source: source.into(), variable, command, ..typed() };
            let endpoint = changed.endpoint(&[]).unwrap();
            assert_eq!(endpoint.secret, secret);
            assert_eq!(Typed::of(&endpoint).endpoint(&[]), Ok(endpoint));
        }
    }

    #[test]
    fn a_window_that_is_no_number_stands_at_its_field() {
        for window in ["", "128k", "-5", "1e6", "99999999999999999999"] {
            let wrong = Typed { window: window.into(), ..typed() }.endpoint(&[]).unwrap_err();
            assert!(words_for(Some(&wrong), Field::ContextWindow).is_some(), "{window}");
            assert_eq!(words_for(Some(&wrong), Field::Name), None);
        }
    }

    #[test]
    fn a_search_finds_endpoints_by_what_people_call_them() {
        for query in ["endpoint", " KIMI", "token", "base url", "deepseek", "api key", "context"] {
            assert!(searched(query), "{query}");
        }
        assert!(!searched("hiccup"));
    }

    #[test]
    fn a_secret_that_is_not_there_is_marked() {
        let stored = typed().endpoint(&[]).unwrap();
        for (state, words, marked) in [
            (SecretState::Present, "Secret: stored", false),
            (SecretState::Missing, "Secret: not stored", true),
            (SecretState::NoStore, "The system’s secret store does not answer", true),
        ] {
            assert_eq!(secret_line(&stored, state), (words.to_owned(), marked));
        }
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!((grouped(999), grouped(10_000_000)), ("999".into(), "10,000,000".into()));
    }
}
