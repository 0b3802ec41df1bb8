//! The commands that a project folder brings and the CLI would run by itself (A-23), as text to
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

/// Settings that run something, let something run unasked, or change where requests go.
const RUNS_SOMETHING: [&str; 12] = [
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "env",
    "extraKnownMarketplaces",
    "fileSuggestion",
    "gcpAuthRefresh",
    "otelHeadersHelper",
    "statusLine",
];

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

    /// The `settings*.json` of one `.claude`, in the order of their names.
    fn settings(&mut self, folder: &Path) {
        let Ok(entries) = folder.read_dir() else {
            return;
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let settings = |name: &String| name.starts_with("settings") && name.ends_with(".json");
        for name in names.filter(settings).collect::<BTreeSet<String>>() {
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
    let mut texts = hooks(settings.get("hooks"));
    texts.extend(RUNS_SOMETHING.iter().filter_map(|name| {
        let value = settings.get(*name).filter(|value| !is_nothing(value))?;
        Some(format!("{name}: {}", short(value)))
    }));
    texts.extend(servers(settings.get("mcpServers")));
    let permissions = settings.get("permissions");
    for name in ["allow", "defaultMode"] {
        let value = permissions.and_then(|all| all.get(name)).filter(|value| !is_nothing(value));
        texts.extend(value.map(|value| format!("permissions.{name}: {}", short(value))));
    }
    texts
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
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn short(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn brought(files: &[(&str, &str)]) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".claude")).unwrap();
        for (name, text) in files {
            fs::write(home.path().join(name), text).unwrap();
        }
        let items = folder_commands(home.path());
        items.into_iter().map(|item| format!("{} | {}", item.file, item.text)).collect()
    }

    // proves: A-23
    #[test]
    fn every_command_is_shown_with_its_file() {
        let hooks = r#"{"hooks":{"SessionStart":[{"matcher":"*","hooks":[
            {"type":"command","command":"./setup.sh"},{"prompt":"hi","type":"prompt"}]}],"Stop":"odd"},
            "statusLine":{"command":"line.sh","type":"command"},"model":"x"}"#;
        let local = r#"{"apiKeyHelper":"key.sh","env":{"BASH_ENV":"x.sh"},"permissions":{"allow":["Bash(rm:*)"],"deny":["x"]}}"#;
        let mcp = r#"{"mcpServers":{"db":{"command":"npx","args":["-y","db"]},"web":{"url":"http://h"}}}"#;
        let files = [
            (".claude/settings.json", hooks),
            (".claude/settings.local.json", local),
            (".mcp.json", mcp),
        ];
        assert_eq!(
            brought(&files),
            [
                ".claude/settings.json | hook SessionStart: ./setup.sh",
                r#".claude/settings.json | hook SessionStart: {"prompt":"hi","type":"prompt"}"#,
                ".claude/settings.json | hook Stop: odd",
                r#".claude/settings.json | statusLine: {"command":"line.sh","type":"command"}"#,
                ".claude/settings.local.json | apiKeyHelper: key.sh",
                r#".claude/settings.local.json | env: {"BASH_ENV":"x.sh"}"#,
                r#".claude/settings.local.json | permissions.allow: ["Bash(rm:*)"]"#,
                ".mcp.json | MCP server db: npx -y db",
                r#".mcp.json | MCP server web: {"url":"http://h"}"#,
            ]
        );
    }

    // proves: A-23
    #[test]
    fn a_folder_without_commands_asks_nothing() {
        let quiet = r#"{"model":"opus","hooks":{},"env":{},"permissions":{"deny":["Read(x)"]}}"#;
        assert_eq!(brought(&[]), [""; 0]);
        assert_eq!(
            brought(&[(".claude/settings.json", quiet), (".claude/other.json", "!")]),
            [""; 0]
        );
        assert_eq!(folder_commands(Path::new("/no/such/folder")), []);
    }

    /// What is found for `folder` below the user's home `home`, each file with the root cut off.
    fn found(root: &Path, folder: &str, home: &str) -> Vec<String> {
        let real = root.canonicalize().unwrap();
        let items = commands_for(&root.join(folder), Some(&root.join(home)));
        let inside = |item: &TrustItem| item.file.starts_with(&*real.to_string_lossy());
        let file = |item: &TrustItem| item.file.replace(&*real.to_string_lossy(), "");
        items.iter().filter(|item| inside(item)).map(file).collect()
    }

    fn put(root: &Path, name: &str, text: &str) {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }

    const HOOK: &str = r#"{"hooks":{"SessionStart":[{"hooks":[{"command":"x"}]}]}}"#;
    const SERVER: &str = r#"{"mcpServers":{"a":{"command":"x"}}}"#;

    // proves: A-23
    #[test]
    fn what_the_cli_takes_from_above_the_folder_is_shown() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("up/repo/.git")).unwrap();
        fs::create_dir_all(root.join("up/repo/mid/folder")).unwrap();
        put(root, "up/.mcp.json", SERVER);
        put(root, "up/repo/mid/.mcp.json", SERVER);
        put(root, "up/repo/.claude/settings.json", HOOK);
        put(root, "up/repo/.claude/settings.local.json", HOOK);
        // the CLI takes no settings from there
        put(root, "up/.claude/settings.json", HOOK);
        put(root, "up/repo/mid/.claude/settings.json", HOOK);
        let all = [
            "/up/repo/.claude/settings.json",
            "/up/repo/.claude/settings.local.json",
            "/up/repo/mid/.mcp.json",
            "/up/.mcp.json",
        ];
        assert_eq!(found(root, "up/repo/mid/folder", "home"), all);
        // the folder's real place counts, not the way there
        std::os::unix::fs::symlink(root.join("up/repo/mid/folder"), root.join("way")).unwrap();
        assert_eq!(found(root, "way", "home"), all);
        // the settings of the user's own home are the user's; a server there starts all the same
        assert_eq!(found(root, "up/repo/mid/folder", "up/repo"), all[2..]);
        assert_eq!(found(root, "up/repo/mid/folder", "way/../.."), all[2..]);
        put(root, "up/.git/HEAD", "");
        assert_eq!(found(root, "up", "up"), [""; 0]);
        assert_eq!(commands_for(&root.join("up"), Some(&root.join("up"))).len(), 1);
    }

    // proves: A-23
    #[test]
    fn a_linked_worktree_brings_what_its_main_checkout_has() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "main/.claude/settings.local.json", HOOK);
        put(root, "main/.git/worktrees/w/commondir", "../..\n");
        put(root, "bare/.claude/settings.json", HOOK);
        put(root, "bare/worktrees/w/commondir", "../..\n");
        put(root, "main/.git/modules/m/HEAD", "");
        fs::create_dir_all(root.join("linked/sub")).unwrap();
        for (link, shown) in [
            ("gitdir: ../main/.git/worktrees/w\n", "/main/.claude/settings.local.json"),
            (
                &format!("gitdir: {}/main/.git/worktrees/w", root.display()),
                "/main/.claude/settings.local.json",
            ),
            ("gitdir: ../bare/worktrees/w\n", "/bare/.claude/settings.json"),
            // too long to be looked through, and so not nothing
            (&format!("gitdir: ../x{}", " ".repeat(1024 * 1024)), "/linked/.git"),
        ] {
            put(root, "linked/.git", link);
            assert_eq!(found(root, "linked/sub", "home"), [shown], "{link}");
        }
        // a submodule, and what is no link
        for link in ["gitdir: ../main/.git/modules/m\n", "gitdir: /no/such", "", "x"] {
            put(root, "linked/.git", link);
            assert_eq!(found(root, "linked/sub", "home"), [""; 0], "{link}");
        }
    }

    // proves: A-23
    #[test]
    fn a_file_that_cannot_be_understood_is_never_nothing() {
        for text in ["{", "[]", "", &format!("{{}}{}", " ".repeat(1024 * 1024))] {
            let items = brought(&[(".claude/settings.json", text), (".mcp.json", text)]);
            assert_eq!(items.len(), 2, "{items:?}");
        }
    }
}
