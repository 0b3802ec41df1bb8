//! The commands that a project folder brings and the CLI would run by itself (A-23), as text to
//! show. It only reads; whether they may run is the user's word.

use serde_json::{Map, Value};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A larger settings file is shown as one that cannot be read.
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
    /// The file, relative to the folder.
    pub file: String,
    /// What it would do, for example `hook SessionStart: ./setup.sh`.
    pub text: String,
}

/// Everything in `folder` that runs by itself: hooks and other command settings of
/// `.claude/settings*.json`, and the servers of `.mcp.json`. Empty for a folder that brings none. A
/// file that is there and cannot be understood is an item of its own.
// rule: A-23
pub fn folder_commands(folder: &Path) -> Vec<TrustItem> {
    let mut items = Vec::new();
    for file in settings_files(folder) {
        read(folder, &file, &mut items, settings_commands);
    }
    read(folder, ".mcp.json", &mut items, |mcp| servers(mcp.get("mcpServers")));
    items
}

/// `.claude/settings*.json`, in the order of their names.
fn settings_files(folder: &Path) -> Vec<String> {
    let Ok(entries) = folder.join(".claude").read_dir() else {
        return Vec::new();
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let settings = |name: &String| name.starts_with("settings") && name.ends_with(".json");
    let mut files: Vec<String> =
        names.filter(settings).map(|name| format!(".claude/{name}")).collect();
    files.sort();
    files
}

fn read(
    folder: &Path,
    file: &str,
    items: &mut Vec<TrustItem>,
    commands: impl Fn(&Map<String, Value>) -> Vec<String>,
) {
    let texts = match load(&folder.join(file)) {
        Ok(None) => return,
        Ok(Some(Value::Object(object))) => commands(&object),
        Ok(Some(_)) => vec!["cannot be understood: it is not a JSON object".to_string()],
        Err(why) => vec![format!("cannot be understood: {why}")],
    };
    items.extend(texts.into_iter().map(|text| TrustItem { file: file.to_string(), text }));
}

fn load(path: &Path) -> Result<Option<Value>, String> {
    // a named pipe of that name would hold the reader up for ever
    match path.metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err("it is not a file".to_string()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    }
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err("it is too large".to_string());
    }
    serde_json::from_str(&text).map(Some).map_err(|error| error.to_string())
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

    // proves: A-23
    #[test]
    fn a_file_that_cannot_be_understood_is_never_nothing() {
        for text in ["{", "[]", "", &format!("{{}}{}", " ".repeat(1024 * 1024))] {
            let items = brought(&[(".claude/settings.json", text), (".mcp.json", text)]);
            assert_eq!(items.len(), 2, "{items:?}");
        }
    }
}
