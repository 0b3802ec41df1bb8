//! The commands that a project folder brings and the CLI would run by itself, as text to
//! show. It only reads; whether they may run is the user's word.
//!
//! The CLI looks further than into the folder: it starts the servers of every `.mcp.json` from there
//! up to the root of the disk, and takes the settings of the git root, and of the main checkout when
//! the folder is in a linked worktree. What stands in the user's own home settings is not asked about.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::env;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A larger file is shown as one that cannot be read.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// Settings that neither run nor allow anything, nor delete or send anything. All others are shown.
const HARMLESS: [&str; 8] = [
    "$schema",
    "alwaysThinkingEnabled",
    "includeCoAuthoredBy",
    "language",
    "model",
    "spinnerTipsEnabled",
    "theme",
    "verbose",
];

/// Permissions that only take something away.
const RESTRICTING: [&str; 2] = ["ask", "deny"];

/// One thing the folder brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustItem {
    /// The file: relative to the folder's real path when it is inside, else absolute.
    pub file: String,
    /// What it would do, for example `hook SessionStart: ./setup.sh`.
    pub text: String,
}

/// Everything that runs by itself when a session starts in `folder`: hooks and other settings of
/// `.claude/settings*.json`, and the servers of `.mcp.json`. Empty for a folder that brings none. A
/// file that is there and cannot be read or understood is an item of its own.
// rule: A-23
pub fn folder_commands(folder: &Path) -> Vec<TrustItem> {
    commands_for(folder, env::home_dir().as_deref())
}

fn commands_for(folder: &Path, home: Option<&Path>) -> Vec<TrustItem> {
    let folder = real(folder.to_path_buf());
    // its settings are the user's own, also where it is a git root
    let home = home.map(|home| real(home.to_path_buf()));
    let mut found = Found { folder, items: Vec::new() };
    for place in found.settings_places() {
        if home.as_ref() != Some(&place) {
            found.settings(&place.join(".claude"));
        }
    }
    for place in found.folder.clone().ancestors() {
        found.file(&place.join(".mcp.json"), |mcp| servers(mcp.get("mcpServers")));
    }
    found.items
}

/// What has been found so far, for a folder by its real path.
struct Found {
    folder: PathBuf,
    items: Vec<TrustItem>,
}

impl Found {
    /// The folders whose `.claude` the CLI reads: this one, the git root, the main checkout.
    fn settings_places(&mut self) -> Vec<PathBuf> {
        let mut places = vec![self.folder.clone()];
        let root = self.folder.ancestors().find(|place| place.join(".git").exists());
        let Some(root) = root.map(Path::to_path_buf) else {
            return places;
        };
        match main_checkout(&root) {
            Ok(main) => places.extend(main),
            Err(why) => self.note(&root.join(".git"), why),
        }
        places.insert(1, root);
        let mut seen = BTreeSet::new();
        places.retain(|place| seen.insert(place.clone()));
        places
    }

    /// The `settings*.json` of one `.claude`. Those that the CLI reads are opened by their names: a
    /// folder that cannot be listed may still let them be opened.
    fn settings(&mut self, folder: &Path) {
        let mut names = BTreeSet::from(["settings.json", "settings.local.json"].map(String::from));
        match folder.read_dir() {
            Ok(entries) => {
                let listed =
                    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                names.extend(
                    listed.filter(|name| name.starts_with("settings") && name.ends_with(".json")),
                );
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => self.note(folder, format!("cannot be read: {error}")),
        }
        for name in names {
            self.file(&folder.join(name), settings_commands);
        }
    }

    fn file(&mut self, path: &Path, commands: impl Fn(&Map<String, Value>) -> Vec<String>) {
        let texts = match load(path) {
            Ok(None) => return,
            Ok(Some(Value::Object(object))) => commands(&object),
            Ok(Some(_)) => vec!["cannot be understood: it is not a JSON object".to_string()],
            Err(why) => vec![why],
        };
        for text in texts {
            self.note(path, text);
        }
    }

    fn note(&mut self, path: &Path, text: String) {
        let file = path.strip_prefix(&self.folder).unwrap_or(path).display().to_string();
        self.items.push(TrustItem { file, text });
    }
}

/// The main checkout of the linked git worktree `root`; none for any other git root. A repository
/// without a checkout stands for itself.
fn main_checkout(root: &Path) -> Result<Option<PathBuf>, String> {
    let link = root.join(".git");
    if link.is_dir() {
        return Ok(None);
    }
    let Some(text) = read(&link)? else {
        return Ok(None);
    };
    let Some(git_dir) = text.trim().strip_prefix("gitdir:") else {
        return Ok(None);
    };
    let git_dir = root.join(git_dir.trim());
    let Some(common) = read(&git_dir.join("commondir"))? else {
        return Ok(None);
    };
    let common = real(git_dir.join(common.trim()));
    let checkout = match common.parent() {
        Some(parent) if common.ends_with(".git") => parent.to_path_buf(),
        Some(_) | None => common,
    };
    Ok(Some(checkout))
}

fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn load(path: &Path) -> Result<Option<Value>, String> {
    let Some(text) = read(path)? else {
        return Ok(None);
    };
    let value = serde_json::from_str(&text);
    value.map(Some).map_err(|error| format!("cannot be understood: {error}"))
}

/// The text of a file, decoded as the CLI does; none if there is no such file.
fn read(path: &Path) -> Result<Option<String>, String> {
    // a named pipe of that name would hold the reader up for ever
    match path.metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err("cannot be read: it is not a file".to_string()),
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err("cannot be read: it is too large".to_string());
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn settings_commands(settings: &Map<String, Value>) -> Vec<String> {
    let shown = |(name, value): (&String, &Value)| match name.as_str() {
        "hooks" => hooks(Some(value)),
        "mcpServers" => servers(Some(value)),
        "permissions" => permissions(value),
        name if HARMLESS.contains(&name) || is_nothing(value) => Vec::new(),
        name => vec![format!("{name}: {}", short(value))],
    };
    settings.iter().flat_map(shown).collect()
}

fn permissions(permissions: &Value) -> Vec<String> {
    let Some(named) = permissions.as_object() else {
        return Some(permissions)
            .filter(|value| !is_nothing(value))
            .map(|value| format!("permissions: {}", short(value)))
            .into_iter()
            .collect();
    };
    let loosens = |(name, value): &(&String, &Value)| {
        !RESTRICTING.contains(&name.as_str()) && !is_nothing(value)
    };
    named
        .iter()
        .filter(loosens)
        .map(|(name, value)| format!("permissions.{name}: {}", short(value)))
        .collect()
}

/// A shape that is not the known one is shown as it stands.
fn hooks(hooks: Option<&Value>) -> Vec<String> {
    let Some(hooks) = hooks.filter(|value| !is_nothing(value)) else {
        return Vec::new();
    };
    let Some(events) = hooks.as_object() else {
        return vec![format!("hooks: {}", short(hooks))];
    };
    let mut texts = Vec::new();
    for (event, matchers) in events.iter().filter(|(_, matchers)| !is_nothing(matchers)) {
        let before = texts.len();
        for hook in matchers.as_array().into_iter().flatten().flat_map(hooks_of) {
            let command = hook.get("command").and_then(Value::as_str);
            let what = command.map_or_else(|| short(hook), str::to_string);
            texts.push(format!("hook {event}: {what}"));
        }
        if texts.len() == before {
            texts.push(format!("hook {event}: {}", short(matchers)));
        }
    }
    texts
}

fn hooks_of(matcher: &Value) -> impl Iterator<Item = &Value> {
    matcher.get("hooks").and_then(Value::as_array).into_iter().flatten()
}

fn servers(servers: Option<&Value>) -> Vec<String> {
    let Some(servers) = servers.filter(|value| !is_nothing(value)) else {
        return Vec::new();
    };
    let Some(named) = servers.as_object() else {
        return vec![format!("MCP servers: {}", short(servers))];
    };
    named
        .iter()
        .map(|(name, server)| format!("MCP server {name}: {}", server_text(server)))
        .collect()
}

fn server_text(server: &Value) -> String {
    let Some(command) = server.get("command").and_then(Value::as_str) else {
        return short(server);
    };
    let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = args.map(|arg| arg.as_str().map_or_else(|| arg.to_string(), str::to_string));
    std::iter::once(command.to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        // `false` may turn a protection off
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn short(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests;
