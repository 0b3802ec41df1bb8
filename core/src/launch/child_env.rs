//! The environment of a child, from values. Reads no environment itself.
//!
//! All pairs are UTF-8: the shell leaves out names and values that are not, and says so in the log.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// One variable: its name and its value.
pub type Var = (String, String);

/// Name prefixes that never reach a child from the login shell.
const REMOVED_PREFIXES: [&str; 9] = [
    // a nested CLI refuses to start, or takes another's settings
    "CLAUDE_CODE_",
    "AMC_",
    "OMNISCIO_",
    // what the desktop put in for the app itself
    "GTK_",
    "GDK_",
    "GIO_",
    "WEBKIT_",
    "TAURI_",
    // belongs to the account "Environment"
    "ANTHROPIC_",
];

/// Names that never reach a child from the login shell.
const REMOVED_NAMES: [&str; 6] =
    ["CLAUDECODE", "CLAUDE_PID", "APPDIR", "APPIMAGE", "LD_LIBRARY_PATH", "CLAUDE_CONFIG_DIR"];

/// Switches to another provider than the CLI's own.
const PROVIDER_SWITCHES: [&str; 3] =
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// What chooses who is asked, and under whose name: how such variables begin. An account's must not
/// reach the endpoint of somebody else.
const PROVIDER_PREFIXES: [&str; 6] = [
    "ANTHROPIC_",
    "CLAUDE_CODE_USE_",
    "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_OAUTH_",
    "CLAUDE_CODE_API_KEY_",
    "AWS_BEARER_TOKEN_",
];

/// Re-runs an interrupted turn by itself: never set for any child.
const NEVER: &str = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN";

/// The whole environment of a child, sorted by name.
///
/// `login` is the user's login-shell environment, from which the names of A-11 are taken away. On it
/// come, each over the one before: the `launch` variables, the `account`'s (which may set a timer
/// or a provider), the `endpoint`'s, and the app's `marker`, which nothing overrides: by it the sweep
/// knows its own. With an endpoint the account chooses neither provider nor key.
pub fn child_env(
    login: &[Var],
    account: &[Var],
    endpoint: Option<&[Var]>,
    launch: &[Var],
    marker: &[Var],
) -> Vec<Var> {
    // rule
    let inherited = login.iter().filter(|(name, _)| !is_removed(name));
    let account = account.iter().filter(|(name, _)| endpoint.is_none() || !is_provider(name));
    let endpoint = endpoint.unwrap_or_default();
    let mut env = BTreeMap::new();
    for (name, value) in inherited.chain(launch).chain(account).chain(endpoint).chain(marker) {
        env.insert(name.clone(), value.clone());
    }
    env.remove(NEVER);
    env.into_iter().collect()
}

fn is_provider(name: &str) -> bool {
    PROVIDER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_removed(name: &str) -> bool {
    REMOVED_NAMES.contains(&name) || REMOVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables of the account "Environment": those of the app's own environment that choose an
/// account, an endpoint or a provider. `None` if none is set; the account does not exist then.
pub fn environment_account(app_env: &[Var]) -> Option<Vec<Var>> {
    // rule: A-11
    let chooses = |name: &str| {
        name.starts_with("ANTHROPIC_")
            || name == "CLAUDE_CONFIG_DIR"
            || PROVIDER_SWITCHES.contains(&name)
    };
    let vars: Vec<Var> = app_env
        .iter()
        .filter(|(name, value)| chooses(name) && !value.is_empty())
        .cloned()
        .collect();
    (!vars.is_empty()).then_some(vars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> Vec<Var> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    // proves: A-11
    #[test]
    fn the_login_environment_passes_without_what_is_not_the_childs() {
        let kept = [
            ("CLAUDE", "x"),
            ("HOME", "/home/u"),
            ("HTTPS_PROXY", "p"),
            ("JAVA_HOME", "/j"),
            ("MY_ANTHROPIC_NOTE", "n"),
            ("PATH", "/bin"),
            ("SSH_AUTH_SOCK", "/s"),
        ];
        let removed = [
            "CLAUDECODE",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
            "CLAUDE_PID",
            "CLAUDE_CONFIG_DIR",
            "AMC_DISABLE_RELENTLESS_RELAUNCH",
            "OMNISCIO_SESSION",
            "APPDIR",
            "APPIMAGE",
            "LD_LIBRARY_PATH",
            "GTK_THEME",
            "GDK_BACKEND",
            "GIO_MODULE_DIR",
            "WEBKIT_DISABLE_DMABUF_RENDERER",
            "TAURI_ENV",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
        ];
        let mut login = vars(&kept);
        login.extend(removed.map(|name| (name.into(), "1".into())));
        assert_eq!(child_env(&login, &[], None, &[], &[]), vars(&kept));
    }

    // proves: A-11
    #[test]
    fn the_account_goes_over_the_launch_and_the_marker_over_all() {
        let idle = "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS";
        let env = child_env(
            &vars(&[("PATH", "/bin"), (idle, "1"), ("ANTHROPIC_API_KEY", "login")]),
            &vars(&[
                (idle, "10000"),
                ("ANTHROPIC_API_KEY", "account"),
                ("CLAUDE_CODE_USE_VERTEX", "1"),
                ("OMNISCIO_SESSION", "forged"),
                ("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1"),
            ]),
            None,
            &vars(&[(idle, "90000"), ("DISABLE_AUTOUPDATER", "1")]),
            &vars(&[("OMNISCIO_SESSION", "s1")]),
        );
        assert_eq!(
            env,
            vars(&[
                ("ANTHROPIC_API_KEY", "account"),
                (idle, "10000"),
                ("CLAUDE_CODE_USE_VERTEX", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("OMNISCIO_SESSION", "s1"),
                ("PATH", "/bin"),
            ])
        );
    }

    // proves
    #[test]
    fn with_an_endpoint_the_account_chooses_neither_provider_nor_key() {
        let taken = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
            "ANTHROPIC_SMALL_FAST_MODEL",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
            "AWS_BEARER_TOKEN_BEDROCK",
        ];
        let of_account = [
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "1"),
        ];
        let mut account = vars(&of_account);
        account.extend(taken.map(|name| (name.into(), "of the account".into())));
        let login = vars(&[("PATH", "/bin"), ("ANTHROPIC_API_KEY", "login")]);
        let endpoint = [
            ("ANTHROPIC_AUTH_TOKEN", "of the endpoint"),
            ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "131072"),
        ];
        assert_eq!(
            child_env(&login, &account, Some(&vars(&endpoint)), &[], &[]),
            vars(&[
                ("ANTHROPIC_AUTH_TOKEN", "of the endpoint"),
                ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "131072"),
                ("CLAUDE_CODE_MAX_RETRIES", "1"),
                ("CLAUDE_CONFIG_DIR", "/c"),
                ("PATH", "/bin"),
            ])
        );
        // without one the account is what it is
        let plain = child_env(&login, &account, None, &[], &[]);
        assert!(taken.iter().all(|name| plain.iter().any(|(known, _)| known == name)));
    }

    // proves: A-11
    #[test]
    fn the_account_environment_exists_only_when_the_app_was_started_with_one() {
        let plain = [("PATH", "/bin"), ("CLAUDE_CODE_MAX_RETRIES", "1"), ("CLAUDECODE", "1")];
        assert_eq!(environment_account(&vars(&plain)), None);
        assert_eq!(environment_account(&vars(&[("ANTHROPIC_API_KEY", "")])), None);
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ] {
            let mut env = vars(&plain);
            env.push((name.into(), "v".into()));
            assert_eq!(environment_account(&env), Some(vars(&[(name, "v")])), "{name}");
        }
    }
}
