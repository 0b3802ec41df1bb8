//! Accounts as data: a config folder of the CLI and the variables that go with it.
//!
//! They come from `accounts.json` in the data folder, and one exists by itself where the environment
//! names an API or a config folder. Values of variables are never logged, shown or sent to the
//! window: `Debug` leaves them out.
//!
//! A config folder is an absolute path. A child would look for any other inside of its project, which
//! could then say what runs. The whole account is left out with a line in the log: without its folder
//! it would be the login of another.

use omniscio_core::ipc::AccountView;
use omniscio_core::launch::child_env::{Var, environment_account};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file in the data folder.
pub const FILE: &str = "accounts.json";
/// Id of the account that is the CLI's own login.
pub const DEFAULT: &str = "default";
/// Id of the account that the environment makes.
pub const ENVIRONMENT: &str = "environment";
/// Where the CLI keeps its config folder, below the home folder.
const CONFIG_IN_HOME: &str = ".claude";
/// The variable that names another one.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Variables that hold a key instead of a login.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"];

/// One account.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// Its id, as rows name it.
    pub id: String,
    /// What the window calls it.
    pub label: String,
    /// The CLI's config folder, absolute; `None` leaves it to the CLI (`~/.claude`).
    pub config_dir: Option<PathBuf>,
    /// Further variables of the child.
    pub variables: Vec<Var>,
    /// Authenticates with a key, not with a login.
    pub api_key: bool,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.variables.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Account")
            .field("id", &self.id)
            .field("label", &self.label)
            .field("config_dir", &self.config_dir)
            .field("variables", &names)
            .field("api_key", &self.api_key)
            .finish()
    }
}

impl Account {
    /// The CLI's own login, in its own config folder.
    pub fn of_the_cli() -> Account {
        Account {
            id: DEFAULT.to_string(),
            label: "Claude login".to_string(),
            config_dir: None,
            variables: Vec::new(),
            api_key: false,
        }
    }

    /// The account that these variables of the user's environment make, if any does; none where they
    /// name a config folder by a path that is not absolute.
    // rule: A-11
    pub fn of_environment(env: &[Var]) -> Option<Account> {
        let (folders, variables): (Vec<Var>, Vec<Var>) =
            environment_account(env)?.into_iter().partition(|(name, _)| name == CONFIG_DIR);
        let config_dir = folders.into_iter().next().map(|(_, folder)| PathBuf::from(folder));
        if !is_full(config_dir.as_deref()) {
            left_out(ENVIRONMENT);
            return None;
        }
        let api_key = variables.iter().any(|(name, _)| KEYS.contains(&name.as_str()));
        Some(Account {
            id: ENVIRONMENT.to_string(),
            label: "Environment".to_string(),
            config_dir,
            variables,
            api_key,
        })
    }

    /// What the window gets to know.
    pub fn view(&self) -> AccountView {
        AccountView { id: self.id.clone(), label: self.label.clone(), api_key: self.api_key }
    }

    /// The folder that holds the CLI's transcripts of this account.
    pub fn config_folder(&self, home: Option<&Path>) -> Option<PathBuf> {
        self.config_dir.clone().or_else(|| Some(home?.join(CONFIG_IN_HOME)))
    }

    /// All variables of the account, the config folder among them.
    pub fn child_variables(&self) -> Vec<Var> {
        let folder = self.config_dir.as_ref();
        let folder = folder.map(|dir| (CONFIG_DIR.to_string(), dir.to_string_lossy().into_owned()));
        folder.into_iter().chain(self.variables.iter().cloned()).collect()
    }
}

/// The accounts of this install, the one for new sessions first: "Environment" where the user's
/// environment makes it (a `claude` in a terminal would use it too), the CLI's login, then those of
/// the file. The error says why the file is left out.
pub fn load(data_dir: &Path, env: &[Var]) -> (Vec<Account>, Option<io::Error>) {
    let mut accounts: Vec<Account> = Account::of_environment(env).into_iter().collect();
    accounts.push(Account::of_the_cli());
    let home = variable(env, "HOME").map(Path::new).filter(|home| home.is_absolute());
    match read_file(&data_dir.join(FILE), home) {
        Ok(listed) => {
            for account in listed {
                // also one that is left out: its sessions must not run under another login
                accounts.retain(|known| known.id != account.id);
                if is_full(account.config_dir.as_deref()) {
                    accounts.push(account);
                } else {
                    left_out(&account.id);
                }
            }
            (accounts, None)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (accounts, None),
        Err(error) => (accounts, Some(error)),
    }
}

/// Value of one variable in a list of them.
pub fn variable<'a>(env: &'a [Var], name: &str) -> Option<&'a str> {
    env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn is_full(config_dir: Option<&Path>) -> bool {
    config_dir.is_none_or(Path::is_absolute)
}

fn left_out(account: &str) {
    tracing::error!(account, "left out: its config folder is not a full path");
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Listed {
    id: String,
    label: String,
    config_dir: Option<PathBuf>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    api_key: bool,
}

fn read_file(path: &Path, home: Option<&Path>) -> io::Result<Vec<Account>> {
    let bytes = fs::read(path)?;
    // its variables are nobody else's business
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let listed: Vec<Listed> = serde_json::from_slice(&bytes).map_err(|error| {
        // the error's own words could quote a value
        let place = format!("line {}, column {}", error.line(), error.column());
        io::Error::new(ErrorKind::InvalidData, format!("{FILE} cannot be read at {place}"))
    })?;
    let account = |mut of: Listed| {
        // one place for it, whichever way it was written
        let variable = of.variables.remove(CONFIG_DIR).map(PathBuf::from);
        let config_dir = variable.or(of.config_dir).map(|folder| below_home(folder, home));
        Account {
            id: of.id,
            label: of.label,
            config_dir,
            variables: of.variables.into_iter().collect(),
            api_key: of.api_key,
        }
    };
    Ok(listed.into_iter().map(account).collect())
}

/// `~/x` is below the home folder, where that is known.
fn below_home(folder: PathBuf, home: Option<&Path>) -> PathBuf {
    match (folder.strip_prefix("~"), home) {
        (Ok(inside), Some(home)) if !inside.as_os_str().is_empty() => home.join(inside),
        (Ok(_) | Err(_), _) => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(list: &[(&str, &str)]) -> Vec<Var> {
        list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn ids(accounts: &[Account]) -> Vec<&str> {
        accounts.iter().map(|account| account.id.as_str()).collect()
    }

    // proves: A-11
    #[test]
    fn the_environment_makes_an_account_only_when_it_says_something() {
        for nothing in
            [&[][..], &[("PATH", "/bin"), ("CLAUDE_CODE_X", "1"), ("ANTHROPIC_MODEL", "")]]
        {
            assert_eq!(Account::of_environment(&env(nothing)), None);
        }
        let made = Account::of_environment(&env(&[
            ("PATH", "/bin"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("ANTHROPIC_API_KEY", "sk-ant-secret"),
            ("CLAUDE_CODE_USE_VERTEX", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
        ]))
        .unwrap();
        assert_eq!(made.config_dir, Some(PathBuf::from("/c")));
        let names: Vec<_> = made.variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_VERTEX"]);
        assert!(made.api_key && made.child_variables().len() == 3);
        assert!(!format!("{made:?}").contains("secret"));
        assert!(!Account::of_environment(&env(&[("ANTHROPIC_MODEL", "x")])).unwrap().api_key);
    }

    #[test]
    fn the_cli_finds_its_own_folder_unless_the_account_names_one() {
        let own = Account::of_the_cli();
        assert_eq!(own.config_folder(Some(Path::new("/h"))), Some(PathBuf::from("/h/.claude")));
        assert_eq!((own.config_folder(None), own.child_variables()), (None, Vec::new()));
    }

    #[test]
    fn the_file_adds_and_replaces_and_a_bad_one_is_left_out_without_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            fs::write(dir.path().join(FILE), text).unwrap();
            load(dir.path(), &env(&[("ANTHROPIC_API_KEY", "k")]))
        };
        let (none, error) = load(dir.path(), &[]);
        assert_eq!((ids(&none), error.is_none()), (vec![DEFAULT], true));

        let text = r#"[{"id":"work","label":"Work","configDir":"/w","variables":{"A":"1"}},
            {"id":"default","label":"Mine"}]"#;
        let (accounts, error) = of(text);
        assert!(error.is_none());
        assert_eq!(ids(&accounts), [ENVIRONMENT, "work", DEFAULT]);
        assert_eq!(accounts[2].label, "Mine");
        let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let (accounts, error) = of(r#"[{"id":"x","label":"X","variables":{"KEY":["sk-secret"]}}]"#);
        assert_eq!(ids(&accounts), [ENVIRONMENT, DEFAULT]);
        assert!(!error.unwrap().to_string().contains("secret"));
    }

    // proves: A-11
    #[test]
    fn an_account_whose_config_folder_is_not_a_full_path_is_left_out() {
        for folder in ["c", "./c", "~/c", "~"] {
            let named = env(&[("CLAUDE_CONFIG_DIR", folder), ("ANTHROPIC_API_KEY", "k")]);
            assert_eq!(Account::of_environment(&named), None, "{folder}");
        }
        let dir = tempfile::tempdir().unwrap();
        let of = |entry: &str, known: &[(&str, &str)]| {
            fs::write(dir.path().join(FILE), format!("[{{{entry}}}]")).unwrap();
            let (accounts, error) = load(dir.path(), &env(known));
            assert!(error.is_none(), "{error:?}");
            accounts
        };
        let home: &[_] = &[("HOME", "/h")];
        for folder in ["", "c", "../c", "~", "~/", "~user/c"] {
            for entry in [
                format!(r#""id":"a","label":"A","configDir":"{folder}""#),
                format!(r#""id":"a","label":"A","variables":{{"CLAUDE_CONFIG_DIR":"{folder}"}}"#),
            ] {
                assert_eq!(ids(&of(&entry, home)), [DEFAULT], "{entry}");
            }
        }
        // one that replaces another does not hand its sessions back to it
        let own = r#""id":"default","label":"Mine","configDir":"c""#;
        assert_eq!(of(own, home), []);

        let below = r#""id":"a","label":"A","configDir":"~/c""#;
        assert_eq!(of(below, home)[1].config_dir, Some(PathBuf::from("/h/c")));
        for unknown in [&[][..], &[("HOME", "h")]] {
            assert_eq!(ids(&of(below, unknown)), [DEFAULT]);
        }
        let variable = r#""id":"a","label":"A","variables":{"CLAUDE_CONFIG_DIR":"/c","B":"1"}"#;
        let account = &of(variable, home)[1];
        assert_eq!(account.config_dir, Some(PathBuf::from("/c")));
        assert_eq!(account.child_variables(), env(&[("CLAUDE_CONFIG_DIR", "/c"), ("B", "1")]));
    }
}
