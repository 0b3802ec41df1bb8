//! What the machine has left for one more child, and whether a child is still there. Looks only.

use crate::supervise::children::{ProcessId, alive};
use omniscio_core::session::ChildMark;
use omniscio_core::supervisor::Headroom;

/// What is left for this app; `None` where nobody can tell.
pub fn headroom() -> Headroom {
    Headroom::default()
}

/// Whether this very process is gone. One whose start time is not known counts as there.
pub fn is_gone(child: ChildMark) -> bool {
    // rule: LV-01
    child.start != 0 && !alive(ProcessId { pid: child.pid, start_time: child.start })
}
