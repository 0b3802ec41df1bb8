//! Gate 7: an agent that stops mid-task is nudged on, if the person wants that; else the row says so.

use super::finished_reason::is_mid_task_stop;
use super::{Disposition, Frozen};
use crate::limits::Limits;
use crate::settings::Policy;

/// At most this many nudges after a message of the person (OD-44).
pub const AUTO_CONTINUE_MAX: u8 = 3;

pub(super) fn gate(frozen: &Frozen, policy: &Policy, limits: &Limits) -> Option<Disposition> {
    // rule: AC-02
    if !is_mid_task_stop(frozen) {
        return None;
    }
    let more = frozen.standing.auto_continued < limits.auto_continue_max;
    Some(if policy.auto_continue() && more {
        Disposition::AutoContinue
    } else {
        Disposition::Stalled
    })
}
