//! Gate 5, first half: what the API refused or dropped, and what never started.

use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::session::{AbortCause, PendingAction, Status};
use crate::settings::Policy;

pub(super) fn gate(frozen: &Frozen, _: &Policy, _: &Limits) -> Option<Disposition> {
    match &frozen.outcome {
        // rule: AB-12
        Outcome::Aborted { words } => Some(Disposition::Abort {
            status: Status::Error,
            cause: AbortCause::ApiFailure,
            words: Some(words.clone()),
        }),
        Outcome::ForeignInterrupt => Some(Disposition::Abort {
            status: Status::NeedsYou,
            cause: AbortCause::ForeignInterrupt,
            words: None,
        }),
        Outcome::LaunchError { words } => Some(Disposition::LaunchError { words: words.clone() }),
        Outcome::ConversationGone => Some(Disposition::ConversationGone),
        // rule: RA-05
        Outcome::KnownTerminal { stop, words } => {
            Some(Disposition::Terminal { stop: *stop, words: words.clone() })
        }
        Outcome::AuthRequired { words } => Some(Disposition::Row {
            status: Status::NeedsYou,
            pending: Some(PendingAction::AuthRequired),
            words: Some(words.clone()),
            until: None,
        }),
        Outcome::ApiError { words } => Some(Disposition::Row {
            status: Status::Error,
            pending: Some(PendingAction::ApiError),
            words: Some(words.clone()),
            until: None,
        }),
        Outcome::OutOfRoomGiveUp { .. }
        | Outcome::OutOfRoom { .. }
        | Outcome::ForcedCompact { .. }
        | Outcome::Unfinished
        | Outcome::LocalCommand { .. }
        | Outcome::Stopped
        | Outcome::RateLimited { .. }
        | Outcome::Dropped
        | Outcome::Text => None,
    }
}
