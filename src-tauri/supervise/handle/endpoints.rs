//! The secrets of endpoints, as the window may touch them: it gives one, and asks whether one is
//! there. None goes back to it.

use super::{Handle, error};
use crate::supervise::accounts::variable;
use crate::supervise::secrets::{Secret, Trouble};
use omniscio_core::endpoint::{Endpoint, SecretSource};
use omniscio_core::ipc::{IpcCode, IpcError, SecretState};

impl Handle {
    /// Whether a secret store answers: `Present` or `NoStore`.
    pub fn secret_store(&self) -> SecretState {
        match self.inner.ground.secrets.vault.look() {
            Ok(()) => SecretState::Present,
            Err(_) => SecretState::NoStore,
        }
    }

    /// Whether the secret of this endpoint is where it is to be read.
    ///
    /// # Errors
    /// There is no such endpoint.
    pub fn secret_state(&self, endpoint: &str) -> Result<SecretState, IpcError> {
        let endpoint = self.endpoint(endpoint)?;
        let ground = &self.inner.ground;
        Ok(match &endpoint.secret {
            SecretSource::Store => match ground.secrets.vault.has(&endpoint) {
                Ok(()) => SecretState::Present,
                Err(Trouble::Missing) => SecretState::Missing,
                Err(Trouble::None | Trouble::Failed | Trouble::Locked) => SecretState::NoStore,
            },
            SecretSource::Variable(name) => {
                match variable(&ground.login_env, name).map(Secret::new) {
                    Some(Ok(_)) => SecretState::Present,
                    Some(Err(_)) | None => SecretState::Missing,
                }
            }
            SecretSource::Command(_) => SecretState::AtLaunch,
        })
    }

    /// Keeps a secret in the system's store, in the place of the one before.
    ///
    /// # Errors
    /// There is no such endpoint, the text is no secret, or no store takes it; never with the text.
    pub fn set_secret(&self, endpoint: &str, secret: &Secret) -> Result<(), IpcError> {
        // rule: A-32
        let secret = Secret::new(secret.expose()).map_err(|why| error(IpcCode::Invalid, why))?;
        let endpoint = self.endpoint(endpoint)?;
        if endpoint.secret != SecretSource::Store {
            return Err(error(IpcCode::NotEligible, "Its secret is read elsewhere."));
        }
        self.inner.ground.secrets.vault.put(&endpoint, secret).map_err(|trouble| match trouble {
            Trouble::Locked => error(
                IpcCode::NotEligible,
                "The keyring is locked. Give its password where the system asks for it, then save again.",
            ),
            Trouble::None | Trouble::Failed | Trouble::Missing => error(
                IpcCode::Store,
                "No secret store of this desktop takes the secret. Choose a variable or a command.",
            ),
        })
    }

    fn endpoint(&self, id: &str) -> Result<Endpoint, IpcError> {
        let endpoints = self.inner.board.settings().endpoints;
        let found = endpoints.into_iter().find(|endpoint| endpoint.id == id);
        found.ok_or_else(|| error(IpcCode::NotFound, "There is no such endpoint any more."))
    }
}
