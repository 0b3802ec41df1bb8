//! Gate 5, second half: a turn that concluded without anything visible heals itself (TE-01, TE-02).

use super::outcome::Outcome;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::session::{AbortCause, Status};
use crate::settings::Policy;

pub(super) fn gate(frozen: &Frozen, policy: &Policy, _: &Limits) -> Option<Disposition> {
    // rule: TE-01, TE-02, TE-07
    if frozen.outcome != Outcome::Dropped || !policy.thinking_only_recovery() {
        return None;
    }
    Some(Disposition::Abort { status: Status::NeedsYou, cause: AbortCause::EmptyTurn, words: None })
}
