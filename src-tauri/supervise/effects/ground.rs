//! What launches and probes stand on: the CLI's program, the user's environment, the accounts, the
//! marker, the waits. Facts of this run of the app; nothing is decided here.

use super::words;
use crate::supervise::accounts::{Account, variable};
use crate::supervise::children::{Marker, StopTimings, SweepTimings};
use crate::supervise::ctl;
use crate::supervise::driver::inbox::Failed;
use crate::supervise::pty::LaunchLine;
use crate::supervise::secrets::{Secret, Secrets};
use omniscio_core::endpoint::endpoint_env;
use omniscio_core::id::SessionId;
use omniscio_core::launch::LaunchPlan;
use omniscio_core::launch::child_env::{Var, child_env};
use omniscio_core::launch::line::{launch_args, launch_env};
use omniscio_core::limits::Limits;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A process that does not end within this after SIGKILL sits inside the kernel.
const KILL_WAIT_MS: u64 = 2_000;
/// How often a sweep looks whether its processes are gone.
const SWEEP_POLL_MS: u64 = 20;

/// How the CLI is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::supervise) struct Program {
    /// The program.
    pub(in crate::supervise) path: PathBuf,
    /// Arguments before the app's own.
    pub(in crate::supervise) args: Vec<OsString>,
}

/// See the file.
pub(in crate::supervise) struct Ground {
    /// The program, or where it was looked for.
    pub(in crate::supervise) program: Mutex<Result<Program, Vec<PathBuf>>>,
    /// The environment of the user's login shell.
    pub(in crate::supervise) login_env: Vec<Var>,
    /// The accounts.
    pub(in crate::supervise) accounts: Vec<Account>,
    /// The way to the secrets of endpoints.
    pub(in crate::supervise) secrets: Secrets,
    /// The marker's name of this data folder.
    pub(in crate::supervise) data: String,
    /// The limits.
    pub(in crate::supervise) limits: Limits,
}

impl Ground {
    /// Everything that one start needs, or why it cannot be tried. Reads the endpoint's secret, which may
    /// take some seconds; the secret is given with it.
    pub(super) fn line(&self, plan: &LaunchPlan) -> Result<(LaunchLine, Option<Secret>), Failed> {
        let program = self.program().map_err(|looked| words::no_cli(&looked))?;
        let account =
            self.account(&plan.account).ok_or_else(|| words::no_account(&plan.account))?;
        let marker = self.marker(plan.session);
        let variables = marker.variables();
        let marker = variables.iter().map(|(name, value)| ((*name).to_string(), value.to_string()));
        let marker: Vec<Var> = marker.chain([ctl::variable(Path::new(&self.data))]).collect();
        let read = |endpoint| self.secrets.read(endpoint, &self.login_env);
        let secret = plan.endpoint.as_ref().map(read).transpose();
        let secret = secret.map_err(|words| Failed { errno: None, words })?;
        let endpoint = plan.endpoint.as_ref().zip(secret.as_ref());
        let endpoint = endpoint.map(|(endpoint, secret)| endpoint_env(endpoint, secret.expose()));
        let env = child_env(
            &self.login_env,
            &account.child_variables(),
            endpoint.as_deref(),
            &launch_env(plan),
            &marker,
        );
        let mut args = program.args;
        args.extend(launch_args(plan).into_iter().map(OsString::from));
        let line = LaunchLine {
            program: program.path,
            args,
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: PathBuf::from(&plan.folder),
        };
        Ok((line, secret))
    }

    /// The CLI's program, or where it was looked for.
    pub(in crate::supervise) fn program(&self) -> Result<Program, Vec<PathBuf>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses another program from now on.
    pub(in crate::supervise) fn set_program(&self, program: Result<Program, Vec<PathBuf>>) {
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = program;
    }

    /// An account by its id.
    pub(super) fn account(&self, id: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.id == id)
    }

    /// The config folders of all accounts, each once.
    pub(super) fn config_folders(&self) -> Vec<PathBuf> {
        let folders = self.accounts.iter().filter_map(|account| account.config_folder(self.home()));
        folders.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The user's home folder, as the login shell names it.
    pub(in crate::supervise) fn home(&self) -> Option<&Path> {
        variable(&self.login_env, "HOME").map(Path::new)
    }

    /// What the children of a session carry.
    pub(super) fn marker(&self, session: SessionId) -> Marker {
        Marker { session_id: session.to_string(), data: self.data.clone() }
    }

    /// The waits of the stop recipe.
    pub(in crate::supervise) fn stop_timings(&self) -> StopTimings {
        StopTimings {
            term_grace: Duration::from_millis(self.limits.term_grace_ms),
            kill_wait: Duration::from_millis(KILL_WAIT_MS),
        }
    }

    /// The waits of a sweep.
    pub(in crate::supervise) fn sweep_timings(&self) -> SweepTimings {
        SweepTimings {
            term_grace: Duration::from_millis(self.limits.term_grace_ms),
            kill_wait: Duration::from_millis(KILL_WAIT_MS),
            poll: Duration::from_millis(SWEEP_POLL_MS),
        }
    }
}
