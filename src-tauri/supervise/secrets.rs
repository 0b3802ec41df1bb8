//! The secrets of endpoints (A-32): read for each launch where a person keeps them, and put into the
//! child's environment, nowhere else. Nothing here writes one into a file, a row, a log or an error.

mod cut;
mod vault;

use super::accounts::variable;
use super::children::capture::capture;
use super::logs;
use omniscio_core::endpoint::{Endpoint, SECRET_MAX_BYTES, SecretSource, check_secret};
use omniscio_core::launch::child_env::Var;
use omniscio_core::limits::Limits;
use serde::Deserialize;
use std::fmt;
use std::io::{self, ErrorKind};
use std::process::Command;
use std::time::Duration;

pub(in crate::supervise) use cut::Cut;
pub(in crate::supervise) use vault::{Trouble, Vault};

/// A secret. Nothing shows it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// The text as a secret, without white space around it: from now on every log leaves it out.
    ///
    /// # Errors
    /// Why it cannot be one, without it.
    pub fn new(text: &str) -> Result<Secret, &'static str> {
        let text = text.trim();
        logs::hide_read(text);
        check_secret(text).map(|()| Secret(text.to_string()))
    }

    /// The secret, for the one who sends it on.
    pub(in crate::supervise) fn expose(&self) -> &str {
        &self.0
    }
}

/// The app's own way to all secrets.
pub(in crate::supervise) struct Secrets {
    pub(in crate::supervise) vault: Vault,
    command_limit: Duration,
}

impl Secrets {
    /// The secrets of the app on this data folder.
    pub(in crate::supervise) fn new(data: &str, limits: &Limits) -> Secrets {
        Secrets {
            vault: Vault::new(data, Duration::from_millis(limits.secret_store_ms)),
            command_limit: Duration::from_millis(limits.secret_command_ms),
        }
    }

    /// The secret of an endpoint, read anew; or what is so and what to do.
    // rule: A-32
    pub(in crate::supervise) fn read(
        &self,
        endpoint: &Endpoint,
        login_env: &[Var],
    ) -> Result<Secret, String> {
        let name = &endpoint.name;
        match &endpoint.secret {
            SecretSource::Store => {
                self.vault.get(endpoint).map_err(|trouble| of_store(trouble, name))
            }
            SecretSource::Variable(named) => of_variable(named, login_env, name),
            SecretSource::Command(text) => {
                let failed = |why: String| {
                    format!(
                        "The command that prints the secret of the endpoint \"{name}\" {why}. Try it \
                         in a terminal, change it in Settings if need be, then press Retry."
                    )
                };
                let printed = run(text, login_env, self.command_limit).map_err(failed)?;
                Secret::new(&printed)
                    .map_err(|why| failed(format!("printed what is none ({})", quoted(why))))
            }
        }
    }
}

fn of_store(trouble: Trouble, name: &str) -> String {
    match trouble {
        Trouble::None | Trouble::Failed => format!(
            "The secret of the endpoint \"{name}\" cannot be read, for no secret store of this \
             desktop answers. Start one (GNOME Keyring, KWallet, KeePassXC) and press Retry, or \
             choose a variable or a command in Settings."
        ),
        Trouble::Locked => format!(
            "The secret of the endpoint \"{name}\" is in a keyring that is locked. Unlock it where \
             the system asks for it, then press Retry."
        ),
        Trouble::Missing => format!(
            "The secret of the endpoint \"{name}\" is not stored. Give it in Settings under \
             Endpoints, then press Retry."
        ),
    }
}

fn of_variable(named: &str, login_env: &[Var], name: &str) -> Result<Secret, String> {
    let value = variable(login_env, named).filter(|value| !value.trim().is_empty());
    let Some(value) = value else {
        return Err(format!(
            "The variable {named}, which is to hold the secret of the endpoint \"{name}\", is not \
             set. Set it in your shell's start-up file and start Omniscio again, or choose another \
             way in Settings."
        ));
    };
    Secret::new(value).map_err(|why| {
        format!(
            "The variable {named} holds no secret for the endpoint \"{name}\" ({}). Correct it and \
             start Omniscio again.",
            quoted(why)
        )
    })
}

/// A sentence inside of another.
fn quoted(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// What the command prints, in the user's own environment. The mark behind it tells how it ended; what
/// it leaves running is not waited for. Its errors are nobody's: they may hold the secret.
fn run(text: &str, login_env: &[Var], limit: Duration) -> Result<String, String> {
    const MARKED: &str = r#"(eval "$1"); printf '\0%s\0' "$?""#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", MARKED, "sh", text]).env_clear();
    command.envs(login_env.iter().map(|(name, value)| (name, value)));
    command.current_dir(variable(login_env, "HOME").unwrap_or("/"));
    let marked = |all: &[u8]| all.iter().filter(|byte| **byte == 0).count() >= 2;
    let why = |error: io::Error| {
        if error.kind() == ErrorKind::TimedOut {
            format!("took longer than {} seconds", limit.as_secs())
        } else if error.kind() == ErrorKind::InvalidData {
            "printed too much".to_string()
        } else {
            format!("did not start: {}", plain(&error))
        }
    };
    let printed = capture(command, limit, SECRET_MAX_BYTES + 64, marked).map_err(why)?;
    let mut parts = printed.split(|byte| *byte == 0);
    let (printed, code) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if code != b"0" {
        return Err("failed".to_string());
    }
    String::from_utf8(printed.to_vec()).map_err(|_| "printed no text".to_string())
}

/// An error's words without its file or its arguments.
fn plain(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(
        || error.kind().to_string(),
        |number| io::Error::from_raw_os_error(number).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::engine::EngineFamily;

    fn endpoint(secret: SecretSource) -> Endpoint {
        Endpoint {
            id: "kimi".into(),
            name: "Kimi".into(),
            base_url: "https://api.example.com".into(),
            model: "kimi-k2".into(),
            context_window: 131_072,
            family: EngineFamily::AnthropicCompat,
            secret,
        }
    }

    fn secrets() -> Secrets {
        Secrets::new("/data", &Limits::default())
    }

    fn env(more: &[(&str, &str)]) -> Vec<Var> {
        let path = ("PATH", "/usr/bin:/bin");
        [path].iter().chain(more).map(|(n, v)| ((*n).into(), (*v).into())).collect()
    }

    fn variable(value: Option<&str>) -> Result<Secret, String> {
        let more: Vec<_> = value.map(|value| ("KIMI_KEY", value)).into_iter().collect();
        let from = SecretSource::Variable("KIMI_KEY".into());
        secrets().read(&endpoint(from), &env(&more))
    }

    fn command(text: &str, more: &[(&str, &str)]) -> Result<Secret, String> {
        secrets().read(&endpoint(SecretSource::Command(text.into())), &env(more))
    }

    fn read(found: Result<Secret, String>) -> String {
        found.unwrap().expose().to_string()
    }

    // proves: A-32
    #[test]
    fn a_variable_of_the_login_shell_is_read_or_named() {
        assert_eq!(read(variable(Some(" the-canary-of-a-variable\n"))), "the-canary-of-a-variable");
        for (value, says) in [(None, "is not set"), (Some(" "), "is not set")] {
            let words = variable(value).unwrap_err();
            assert!(words.contains("KIMI_KEY") && words.contains("\"Kimi\""), "{words}");
            assert!(words.contains(says), "{words}");
        }
        let words = variable(Some("two canary words")).unwrap_err();
        assert!(words.contains("spaces") && !words.contains("canary"), "{words}");
    }

    // proves: A-32
    #[test]
    fn a_command_is_run_in_the_users_environment_or_said_to_fail() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().to_str().unwrap();
        let of = |text: &str| command(text, &[("OF", "the-canary"), ("HOME", home)]);
        assert_eq!(read(of("echo \"$OF-printed\"; echo noise >&2")), "the-canary-printed");
        assert_eq!(read(of("printf %s \"$PWD\"")), home);
        // what it leaves behind holds the pipe open
        assert_eq!(read(of("sleep 60 & printf the-canary-of-a-daemon")), "the-canary-of-a-daemon");
        for (text, says) in [
            ("echo the-canary; exit 3", "failed"),
            ("false", "failed"),
            ("no-such-canary-program", "failed"),
            ("true", "is empty"),
            ("echo the canary", "spaces"),
            ("echo 'unclosed", "failed"),
            ("head -c 100000 /dev/zero | tr '\\0' c", "too much"),
        ] {
            let words = of(text).unwrap_err();
            assert!(words.contains(says) && words.contains("\"Kimi\""), "{text}: {words}");
            assert!(!words.contains("canary"), "{words}");
        }
        let limits = Limits { secret_command_ms: 100, ..Limits::default() };
        let slow = endpoint(SecretSource::Command("sleep 60; echo the-canary".into()));
        let words = Secrets::new("/data", &limits).read(&slow, &env(&[])).unwrap_err();
        assert!(words.contains("took longer"), "{words}");
    }

    #[test]
    fn each_trouble_of_the_store_says_what_to_do_and_passes_the_log_whole() {
        for (trouble, says) in [
            (Trouble::None, "GNOME Keyring"),
            (Trouble::Failed, "a variable or a command"),
            (Trouble::Locked, "Unlock it"),
            (Trouble::Missing, "Give it in Settings"),
        ] {
            let words = of_store(trouble, "Kimi");
            assert!(words.contains(says) && words.contains("\"Kimi\""), "{words}");
            assert_eq!(logs::redact(&words), words);
        }
        let words = variable(None).unwrap_err();
        assert_eq!(logs::redact(&words), words);
    }

    // proves: A-32
    #[test]
    fn nothing_shows_a_secret_once_it_is_read() {
        let secret = Secret::new("canary-in-the-mine").unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret Some(Secret)");
        assert_eq!(logs::redact("it is canary-in-the-mine."), "it is [cut].");
        // also one that is refused
        Secret::new("canary with spaces").unwrap_err();
        assert_eq!(logs::redact("it is canary with spaces."), "it is [cut].");
    }
}
