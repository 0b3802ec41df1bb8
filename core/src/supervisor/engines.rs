//! Who answers a session, and the endpoints that were set up (PR-10, A-32). No secret passes here.

use super::commands::{Answered, error};
use super::{Act, Cx, State};
use crate::endpoint::{ENDPOINTS_MAX, Endpoint, SecretSource, Wrong, checked, id_for};
use crate::engine::{EngineFamily, engine_family};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use alloc::format;
use alloc::string::String;

impl State {
    /// The family of the session's engine.
    pub fn family(&self, id: SessionId) -> EngineFamily {
        // rule: PR-10
        let row = self.sessions.get(&id).map(|session| &session.row);
        let model = row.and_then(|row| row.model.as_deref());
        let elsewhere = row.is_some_and(|row| row.endpoint.is_some());
        match self.endpoint_of(id) {
            Some(endpoint) => endpoint.family,
            // one that was removed was no Claude of the account's
            None => engine_family(model, elsewhere),
        }
    }

    /// The true context window of the session's engine, in tokens, where a person has said it.
    pub fn window_of(&self, id: SessionId) -> Option<u64> {
        // rule: A-08
        self.endpoint_of(id).map(|endpoint| endpoint.context_window)
    }

    fn endpoint(&self, endpoint: &str) -> Option<&Endpoint> {
        self.policy.settings.endpoints.iter().find(|known| known.id == endpoint)
    }

    fn endpoint_of(&self, id: SessionId) -> Option<&Endpoint> {
        self.endpoint(self.sessions.get(&id)?.row.endpoint.as_deref()?)
    }

    /// The endpoint that a launch of the session asks, or why it cannot be launched.
    pub(super) fn launch_endpoint(&self, id: SessionId) -> Result<Option<&Endpoint>, String> {
        let chosen = self.sessions.get(&id).and_then(|session| session.row.endpoint.as_deref());
        let Some(chosen) = chosen else {
            return Ok(None);
        };
        self.endpoint(chosen).map(Some).ok_or_else(|| {
            format!(
                "The endpoint \"{chosen}\" of this session was removed. Set it up again in Settings \
                 under that name and press Retry, or switch the model."
            )
        })
    }

    /// Whether a new session may be made with this endpoint.
    pub(super) fn check_choice(&self, endpoint: &str, model: Option<&str>) -> Result<(), IpcError> {
        if self.endpoint(endpoint).is_none() {
            return Err(error(IpcCode::Invalid, "There is no such endpoint."));
        }
        if model.is_some() {
            return Err(error(IpcCode::Invalid, "The endpoint brings its model: choose no other."));
        }
        Ok(())
    }

    pub(super) fn set_endpoint(&mut self, cx: &mut Cx, endpoint: &Endpoint) -> Answered {
        // rule: A-32
        let known = &self.policy.settings.endpoints;
        let at = known.iter().position(|known| known.id == endpoint.id);
        if at.is_none() && !endpoint.id.is_empty() {
            return Err(no_endpoint());
        }
        if at.is_none() && known.len() >= ENDPOINTS_MAX {
            return Err(error(IpcCode::Full, "Too many endpoints are set up. Remove one first."));
        }
        let mut endpoint = checked(endpoint, known)
            .map_err(|Wrong { words, .. }| error(IpcCode::Invalid, words))?;
        let endpoints = &mut self.policy.settings.endpoints;
        match at.and_then(|at| endpoints.get_mut(at)) {
            Some(before) => {
                if before.secret == SecretSource::Store && !before.keeps_secret(&endpoint) {
                    cx.act(Act::ForgetSecret(before.id.clone()));
                }
                before.clone_from(&endpoint);
            }
            None => {
                endpoint.id = id_for(&endpoint.name, endpoints);
                endpoints.push(endpoint.clone());
            }
        }
        self.settings_changed(cx);
        Ok(Reply::Endpoint(endpoint.id))
    }

    pub(super) fn remove_endpoint(&mut self, cx: &mut Cx, endpoint: &str) -> Answered {
        let endpoints = &mut self.policy.settings.endpoints;
        let at = endpoints.iter().position(|known| known.id == endpoint).ok_or_else(no_endpoint)?;
        let removed = endpoints.remove(at);
        if removed.secret == SecretSource::Store {
            cx.act(Act::ForgetSecret(removed.id));
        }
        self.settings_changed(cx);
        Ok(Reply::Done)
    }
}

fn no_endpoint() -> IpcError {
    error(IpcCode::NotFound, "There is no such endpoint any more.")
}
