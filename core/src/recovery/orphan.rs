//! Which worker never came to life: spawned by another session, dead, and nothing to send again
//! (OD-33). What becomes of it is the reducer's business.

use crate::session::{PendingAction, Status};

/// What is known of a session, as far as the predicate asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanFacts {
    /// Another session spawned it.
    pub spawned: bool,
    /// The CLI has named its conversation.
    pub cli_session: bool,
    /// A message of the person or of its parent is stored, sent or queued.
    pub message_saved: bool,
    /// It has shown content of its own.
    pub real_output: bool,
    /// A child lives, or a start is under way.
    pub live_child: bool,
    /// A transient launch failure is still being retried.
    pub launch_retry_pending: bool,
    /// Its status.
    pub status: Status,
    /// Its pending action.
    pub pending: Option<PendingAction>,
}

/// `isPreInitDeadChild`: only the full conjunction is true.
pub fn is_pre_init_dead_child(facts: &OrphanFacts) -> bool {
    // rule: PO-02, PO-05, PO-09
    facts.spawned
        && !facts.cli_session
        && !facts.message_saved
        && !facts.real_output
        && !facts.live_child
        && !facts.launch_retry_pending
        && is_dead(facts.status)
        && is_nobodys(facts.pending)
}

fn is_dead(status: Status) -> bool {
    match status {
        Status::NeedsYou | Status::Error | Status::Stalled => true,
        Status::Starting
        | Status::Running
        | Status::Waiting
        | Status::Paused
        | Status::Ended
        | Status::Archived => false,
    }
}

/// Neither a person nor another engine waits for anything here.
fn is_nobodys(pending: Option<PendingAction>) -> bool {
    match pending {
        None | Some(PendingAction::ResponseAborted | PendingAction::RecoveryFailed) => true,
        Some(
            PendingAction::Question
            | PendingAction::PlanApproval
            | PendingAction::PermissionRequest
            | PendingAction::AuthRequired
            | PendingAction::ApiError
            | PendingAction::Stopped
            | PendingAction::AppRestartSuspended
            | PendingAction::RateLimited,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const ORPHAN: OrphanFacts = OrphanFacts {
        spawned: true,
        cli_session: false,
        message_saved: false,
        real_output: false,
        live_child: false,
        launch_retry_pending: false,
        status: Status::Error,
        pending: None,
    };

    // proves: PO-02, PO-05
    #[test]
    fn only_the_full_conjunction_is_an_orphan() {
        for bits in 0..64_u8 {
            let on = |bit: u8| bits & (1 << bit) != 0;
            let facts = OrphanFacts {
                spawned: on(0),
                cli_session: on(1),
                message_saved: on(2),
                real_output: on(3),
                live_child: on(4),
                launch_retry_pending: on(5),
                ..ORPHAN
            };
            assert_eq!(is_pre_init_dead_child(&facts), bits == 1, "{facts:?}");
        }
    }

    // proves: PO-02, INV-43
    #[test]
    fn only_a_dead_row_that_nobody_owns_is_an_orphan() {
        let statuses: Vec<_> = Status::ALL
            .iter()
            .filter(|status| is_pre_init_dead_child(&OrphanFacts { status: **status, ..ORPHAN }))
            .collect();
        assert_eq!(statuses, [&Status::NeedsYou, &Status::Error, &Status::Stalled]);
        let pending: Vec<_> = PendingAction::ALL
            .iter()
            .filter(|pending| {
                is_pre_init_dead_child(&OrphanFacts { pending: Some(**pending), ..ORPHAN })
            })
            .collect();
        assert_eq!(pending, [&PendingAction::ResponseAborted, &PendingAction::RecoveryFailed]);
    }
}
