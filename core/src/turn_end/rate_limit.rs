//! Gate 1: the usage limit. Nothing resumes the row by itself yet; it says so.

use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::session::{PendingAction, Status};
use crate::settings::Policy;

pub(super) fn gate(frozen: &Frozen, _: &Policy, _: &Limits) -> Option<Disposition> {
    let Outcome::RateLimited { resets_at, words } = &frozen.outcome else {
        return None;
    };
    Some(Disposition::Row {
        status: Status::Waiting,
        pending: Some(PendingAction::RateLimited),
        words: Some(words.clone()),
        until: *resets_at,
    })
}
