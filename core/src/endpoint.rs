//! Endpoints: other engines behind an address of their own, and where the secret for it is.
//!
//! Values only. The secret itself is never one of them: an endpoint says where it is kept, and the
//! shell reads it there for each launch.

use crate::engine::EngineFamily;
use crate::launch::child_env::Var;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};

/// So many endpoints may be set up.
pub const ENDPOINTS_MAX: usize = 50;
/// A name may be this long, in characters.
const NAME_MAX_CHARS: usize = 60;
/// An address may be this long, in bytes.
const URL_MAX_BYTES: usize = 500;
/// A model's name may be this long, in bytes.
const MODEL_MAX_BYTES: usize = 200;
/// The name of a variable may be this long, in bytes.
const VARIABLE_MAX_BYTES: usize = 200;
/// A command may be this long, in bytes.
const COMMAND_MAX_BYTES: usize = 4_000;
/// The windows that an engine may have, in tokens.
const WINDOW: core::ops::RangeInclusive<u64> = 1_000..=10_000_000;
/// A secret may be this long, in bytes.
pub const SECRET_MAX_BYTES: usize = 8 * 1024;

/// An engine behind an address of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its id, as rows name it and as the secret store knows it; empty until it is set up.
    pub id: String,
    /// What the window calls it.
    pub name: String,
    /// Where it is asked.
    pub base_url: String,
    /// The model that it is asked for.
    pub model: String,
    /// What fits into the model's context, in tokens.
    pub context_window: u64,
    /// What frees its context (PR-10).
    pub family: EngineFamily,
    /// Where its secret is.
    pub secret: SecretSource,
}

/// Where the secret of an endpoint is: never in a file or the database of the app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", content = "of", rename_all = "snake_case")]
pub enum SecretSource {
    /// In the system's secret store, under the endpoint's id.
    Store,
    /// In this variable of the user's login shell.
    Variable(String),
    /// This command of the shell prints it.
    Command(String),
}

/// A field of an endpoint that a person fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// [`Endpoint::name`].
    Name,
    /// [`Endpoint::base_url`].
    BaseUrl,
    /// [`Endpoint::model`].
    Model,
    /// [`Endpoint::context_window`].
    ContextWindow,
    /// [`Endpoint::secret`], or what it reads.
    Secret,
}

/// What is wrong with an endpoint, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The field.
    pub field: Field,
    /// The words.
    pub words: &'static str,
}

/// The endpoint as it may be kept beside the `others`: without spaces around its fields, and without a
/// slash at its address's end.
///
/// # Errors
/// The first field that is wrong.
pub fn checked(endpoint: &Endpoint, others: &[Endpoint]) -> Result<Endpoint, Wrong> {
    // rule: A-32, PR-10
    let wrong = |field, words| Err(Wrong { field, words });
    let name = endpoint.name.trim();
    if name.is_empty() {
        return wrong(Field::Name, "Give it a name.");
    }
    if name.chars().count() > NAME_MAX_CHARS || name.chars().any(char::is_control) {
        return wrong(Field::Name, "A name is one line of at most 60 characters.");
    }
    let taken = |other: &Endpoint| {
        other.id != endpoint.id && other.name.to_lowercase() == name.to_lowercase()
    };
    if others.iter().any(taken) {
        return wrong(Field::Name, "Another endpoint has this name.");
    }
    let base_url = endpoint.base_url.trim().trim_end_matches('/');
    if let Err(words) = checked_url(base_url) {
        return wrong(Field::BaseUrl, words);
    }
    let model = endpoint.model.trim();
    if model.is_empty() {
        return wrong(Field::Model, "Say which model it is asked for.");
    }
    let odd = |c: char| c.is_control() || c.is_whitespace();
    if model.len() > MODEL_MAX_BYTES || model.starts_with('-') || model.chars().any(odd) {
        return wrong(Field::Model, "This is no name of a model.");
    }
    if !WINDOW.contains(&endpoint.context_window) {
        return wrong(
            Field::ContextWindow,
            "Give the model's true context window: 1,000 to 10,000,000 tokens.",
        );
    }
    let secret = match checked_source(&endpoint.secret) {
        Ok(secret) => secret,
        Err(words) => return wrong(Field::Secret, words),
    };
    Ok(Endpoint {
        id: endpoint.id.clone(),
        name: name.to_string(),
        base_url: base_url.to_string(),
        model: model.to_string(),
        context_window: endpoint.context_window,
        family: endpoint.family,
        secret,
    })
}

fn checked_url(url: &str) -> Result<(), &'static str> {
    if url.is_empty() {
        return Err("Give the address, for example https://api.example.com/anthropic.");
    }
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '"' | '<' | '>');
    if url.len() > URL_MAX_BYTES || !url.chars().all(plain) {
        return Err("This is no web address.");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("The address begins with https://.");
    };
    let secure = scheme.eq_ignore_ascii_case("https");
    if !secure && !scheme.eq_ignore_ascii_case("http") {
        return Err("The address begins with https://.");
    }
    if rest.contains(['?', '#']) {
        return Err("Leave out what begins with ? or #.");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err(
            "Leave the user and password out of the address: the secret has its own field.",
        );
    }
    let host = host_of(authority).ok_or("This is no web address.")?;
    if !secure && !is_loopback(host) {
        return Err("Use https://: over http:// anyone on the way could read the secret.");
    }
    Ok(())
}

/// The host in `host`, `host:port`, `[v6]` or `[v6]:port`.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, Some(port.strip_prefix(':')).filter(|_| !port.is_empty()))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(Some(port))),
            None => (authority, None),
        },
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port {
        None => {}
        Some(port) => {
            let port = port.filter(|port| digits(port))?;
            port.parse::<u16>().ok().filter(|port| *port > 0)?;
        }
    }
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let fits = authority.starts_with('[') || host.chars().all(named);
    (fits && !host.is_empty()).then_some(host)
}

/// Whether what is sent there never leaves the machine.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

fn checked_source(source: &SecretSource) -> Result<SecretSource, &'static str> {
    match source {
        SecretSource::Store => Ok(SecretSource::Store),
        SecretSource::Variable(name) => {
            let name = name.trim();
            let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
            let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() {
                return Err("Name the variable that holds the secret.");
            }
            let valid = name.starts_with(begins) && name.chars().all(goes_on);
            if !valid || name.len() > VARIABLE_MAX_BYTES {
                return Err("This is no name of a variable: letters, digits and _ only.");
            }
            Ok(SecretSource::Variable(name.to_string()))
        }
        SecretSource::Command(text) => {
            let text = text.trim();
            if text.is_empty() {
                return Err("Give the command that prints the secret.");
            }
            if text.len() > COMMAND_MAX_BYTES || text.contains('\0') {
                return Err("A command has at most 4,000 bytes.");
            }
            Ok(SecretSource::Command(text.to_string()))
        }
    }
}

/// Whether a text can be a secret: it is sent in one header, as it stands.
///
/// # Errors
/// What is wrong with it, without it.
pub fn check_secret(secret: &str) -> Result<(), &'static str> {
    if secret.is_empty() {
        return Err("The secret is empty.");
    }
    if secret.len() > SECRET_MAX_BYTES {
        return Err("The secret is too long for one.");
    }
    if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("The secret holds spaces, line ends or other signs that no header may hold.");
    }
    Ok(())
}

impl Endpoint {
    /// The server that it is on. A stored secret is kept for one: it is never sent to another.
    pub fn server(&self) -> String {
        let (scheme, rest) = self.base_url.split_once("://").unwrap_or_default();
        let authority = rest.split('/').next().unwrap_or_default();
        format!("{scheme}://{authority}").to_ascii_lowercase()
    }

    /// Whether the secret that was stored for it is of use to what it becomes.
    pub fn keeps_secret(&self, next: &Endpoint) -> bool {
        next.secret == SecretSource::Store && self.server() == next.server()
    }
}

/// An id for an endpoint of this name that none of the `others` has: the name in small letters, so that
/// one that is set up again under its old name serves its old sessions.
pub fn id_for(name: &str, others: &[Endpoint]) -> String {
    let mut id = String::new();
    for c in name.trim().to_lowercase().chars() {
        if c.is_alphanumeric() {
            id.push(c);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    let id = id.trim_end_matches('-');
    let id = if id.is_empty() { "endpoint" } else { id };
    let free = |id: &String| others.iter().all(|other| other.id != *id);
    let numbered = (2..).map(|number: usize| format!("{id}-{number}"));
    core::iter::once(id.to_string()).chain(numbered).find(free).unwrap_or_default()
}

/// The variables that say which models the CLI's own names for Claude's mean.
const CLAUDE_NAMES: [&str; 3] = [
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
];

/// The variables of a child that asks this endpoint; they go over those of its account.
pub fn endpoint_env(endpoint: &Endpoint, secret: &str) -> Vec<Var> {
    // rule: A-08, CS-33
    let own_compaction = match endpoint.family {
        // the forced `/compact` is the only thing that trims it
        EngineFamily::ProxyBacked => Some(("DISABLE_AUTO_COMPACT", "1".to_string())),
        EngineFamily::Claude | EngineFamily::AnthropicCompat => None,
    };
    // what the CLI starts by itself asks for Claude's models by these names
    let names: &[&'static str] = match endpoint.family {
        EngineFamily::AnthropicCompat | EngineFamily::ProxyBacked => &CLAUDE_NAMES,
        // a gateway to Claude knows them
        EngineFamily::Claude => &[],
    };
    [
        ("ANTHROPIC_BASE_URL", endpoint.base_url.clone()),
        ("ANTHROPIC_AUTH_TOKEN", secret.to_string()),
        ("ANTHROPIC_MODEL", endpoint.model.clone()),
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", endpoint.context_window.to_string()),
    ]
    .into_iter()
    .chain(names.iter().map(|name| (*name, endpoint.model.clone())))
    .chain(own_compaction)
    .map(|(name, value)| (name.to_string(), value))
    .collect()
}

#[cfg(test)]
mod tests;
