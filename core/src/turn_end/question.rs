//! Gate 3: a question, plan or permission that is still open goes to the person as it is.
//!
//! It is recorded before the other gates and is never overwritten by one of them (AB-07).

use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::settings::Policy;

pub(super) fn gate(frozen: &Frozen, _: &Policy, _: &Limits) -> Option<Disposition> {
    // rule: AB-07
    let asked = frozen.asked?;
    match frozen.outcome {
        Outcome::Stopped | Outcome::LocalCommand { .. } => None,
        Outcome::ForeignInterrupt
        | Outcome::LaunchError { .. }
        | Outcome::ConversationGone
        | Outcome::RateLimited { .. }
        | Outcome::KnownTerminal { .. }
        | Outcome::AuthRequired { .. }
        | Outcome::OutOfRoomGiveUp { .. }
        | Outcome::ForcedCompact { .. }
        | Outcome::OutOfRoom { .. }
        | Outcome::Aborted { .. }
        | Outcome::Unfinished
        | Outcome::ApiError { .. }
        | Outcome::Dropped
        | Outcome::Text => Some(Disposition::Finished {
            delivered: frozen.turn.delivered(),
            asked: Some(asked),
            nothing_said: false,
        }),
    }
}
