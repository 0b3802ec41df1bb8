//! What a folder brings, looked for in folders made for it. Runs nothing of what it writes there.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

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
    let mcp =
        r#"{"mcpServers":{"db":{"command":"npx","args":["-y","db"]},"web":{"url":"http://h"}}}"#;
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
    let quiet = r#"{"$schema":"x","model":"opus","hooks":{},"env":{},"apiKeyHelper":null,
        "spinnerTipsEnabled":false,"permissions":{"deny":["Read(x)"],"allow":[]}}"#;
    assert_eq!(brought(&[]), [""; 0]);
    assert_eq!(brought(&[(".claude/settings.json", quiet), (".claude/other.json", "!")]), [""; 0]);
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
    symlink(root.join("up/repo/mid/folder"), root.join("way")).unwrap();
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

// proves: A-23
#[test]
fn a_setting_is_shown_unless_it_is_known_to_be_harmless() {
    let text = r#"{"theme":"dark","sandbox":{"autoAllowBashIfSandboxed":true},"of2031":1,
        "permissions":{"additionalDirectories":["/"],"deny":["x"]},"respectGitignore":false}"#;
    let odd = r#"{"permissions":true}"#;
    assert_eq!(
        brought(&[(".claude/settings.json", text), (".claude/settings.local.json", odd)]),
        [
            ".claude/settings.json | of2031: 1",
            r#".claude/settings.json | permissions.additionalDirectories: ["/"]"#,
            ".claude/settings.json | respectGitignore: false",
            r#".claude/settings.json | sandbox: {"autoAllowBashIfSandboxed":true}"#,
            ".claude/settings.local.json | permissions: true",
        ]
    );
}

// proves: A-23
#[test]
fn a_folder_that_cannot_be_listed_or_entered_is_never_nothing() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "closed/.claude/settings.local.json", HOOK);
    let closed = root.join("closed/.claude");
    let mode = |bits| fs::set_permissions(&closed, fs::Permissions::from_mode(bits)).unwrap();
    mode(0o311);
    let items = commands_for(&root.join("closed"), None);
    mode(0o755);
    assert!(items.iter().any(|item| item.text == "hook SessionStart: x"), "{items:?}");
    // an error for everybody, whatever they may do
    fs::create_dir(root.join("loop")).unwrap();
    symlink(".claude", root.join("loop/.claude")).unwrap();
    let items = commands_for(&root.join("loop"), None);
    let files: Vec<&str> = items.iter().map(|item| item.file.as_str()).collect();
    assert_eq!(files, [".claude", ".claude/settings.json", ".claude/settings.local.json"]);
    assert!(items.iter().all(|item| item.text.starts_with("cannot be read: ")), "{items:?}");
}
