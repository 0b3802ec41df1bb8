//! Gate 2: the agent deliberately waits, for a time or for a background task (WD-02).
//!
//! What it waits for was told when the result was read ([`crate::waiting::hold`]). A turn that died is
//! no wait (WD-03), and an open card goes to the person, whatever runs.

use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::settings::Policy;

pub(super) fn gate(frozen: &Frozen, _: &Policy, _: &Limits) -> Option<Disposition> {
    // rule: WD-02, WD-03, CS-06, TE-04
    let work = frozen.wait.as_ref().filter(|_| frozen.asked.is_none())?;
    match frozen.outcome {
        Outcome::OutOfRoomGiveUp { .. }
        | Outcome::OutOfRoom { .. }
        | Outcome::Unfinished
        | Outcome::Dropped
        | Outcome::Text => Some(Disposition::Wait { work: work.clone() }),
        Outcome::Stopped
        | Outcome::LocalCommand { .. }
        | Outcome::ForcedCompact { .. }
        | Outcome::ForeignInterrupt
        | Outcome::LaunchError { .. }
        | Outcome::ConversationGone
        | Outcome::RateLimited { .. }
        | Outcome::KnownTerminal { .. }
        | Outcome::AuthRequired { .. }
        | Outcome::Aborted { .. }
        | Outcome::ApiError { .. } => None,
    }
}
