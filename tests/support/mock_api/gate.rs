//! A gate that holds an answer at a chosen place until the test opens it: order without sleeping.
//! It never opens by itself; the mock lets a held handler go when its client leaves or the mock is dropped.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    open: bool,
    arrivals: usize,
}

/// Clones share one gate. Once open it stays open.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything pass that stands at the gate, and all that come later.
    pub fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// How many answers have come to the gate, also those that passed.
    pub fn arrivals(&self) -> usize {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).arrivals
    }

    /// Waits until at least one answer has come to the gate.
    ///
    /// # Panics
    /// When none came within `timeout`.
    #[track_caller]
    pub fn wait_reached(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        while self.arrivals() == 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "no answer of the mock API came to the gate within {timeout:?}"
            );
            self.pause(left, |state| state.arrivals == 0);
        }
    }

    pub(super) fn arrive(&self) {
        self.change(|state| state.arrivals += 1);
    }

    /// Waits up to `limit`; says whether the gate is open.
    pub(super) fn wait_open(&self, limit: Duration) -> bool {
        self.pause(limit, |state| !state.open);
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).open
    }

    fn pause(&self, limit: Duration, mut blocked: impl FnMut(&State) -> bool) {
        let (state, changed) = &*self.0;
        let guard = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, limit, |state| blocked(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&self, apply: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.0;
        apply(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_all();
    }
}
