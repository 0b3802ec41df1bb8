//! Gate 8: the turn is finished. The last gate; it claims every turn.

use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::settings::Policy;

pub(super) fn gate(frozen: &Frozen, _: &Policy, _: &Limits) -> Option<Disposition> {
    Some(finished(frozen))
}

pub(super) fn finished(frozen: &Frozen) -> Disposition {
    match frozen.outcome {
        // rule: A-17
        Outcome::LocalCommand { .. } => Disposition::AsBefore,
        Outcome::Stopped => Disposition::Stopped,
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
        | Outcome::Text => {
            let delivered = frozen.turn.delivered();
            let nothing_said = frozen.outcome == Outcome::Dropped;
            Disposition::Finished { delivered, asked: frozen.asked, nothing_said }
        }
    }
}
