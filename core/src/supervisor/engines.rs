//! Which engine answers a session.

use super::State;
use crate::engine::{EngineFamily, engine_family};
use crate::id::SessionId;

impl State {
    /// The family of the session's engine.
    pub(super) fn family(&self, id: SessionId) -> EngineFamily {
        let model = self.sessions.get(&id).and_then(|session| session.row.model.as_deref());
        engine_family(model, false)
    }

    /// The true window of the session's engine in tokens, where its endpoint names it.
    pub(super) fn window_of(&self, _: SessionId) -> Option<u64> {
        None
    }
}
