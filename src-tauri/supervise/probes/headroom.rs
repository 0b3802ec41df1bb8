//! What the machine has left for one more child, and whether a child is still there. Looks only.
//!
//! It is asked before every launch: it reads some twenty small files, and counts the processes of the
//! user only where their limit may be near.

#[cfg(target_os = "linux")]
mod machine;

use crate::supervise::children::{ProcessId, gone};
use omniscio_core::session::ChildMark;
use omniscio_core::supervisor::Headroom;
use rustix::process::{Resource, getrlimit};
use std::{fs, io};

/// The open descriptors of this process, each an entry.
const OPEN: &str = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };

/// What is left for this app; `None` where nobody can tell.
pub fn headroom() -> Headroom {
    #[cfg(target_os = "linux")]
    {
        let machine = machine::Machine::this();
        Headroom {
            descriptors: least(descriptors(), machine.files()),
            processes: machine.processes(),
            memory_mib: machine.memory_mib(),
        }
    }
    #[cfg(not(target_os = "linux"))]
    Headroom { descriptors: descriptors(), processes: None, memory_mib: None }
}

/// The descriptors that this process may still open.
fn descriptors() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile).current?;
    match fs::read_dir(OPEN) {
        Ok(open) => {
            // the limit is one of numbers: what was opened above it before it was set does not count
            let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u64>().ok();
            let below = open.flatten().filter_map(number).filter(|number| *number < limit);
            // one of them is this look's own
            Some((limit + 1).saturating_sub(u64::try_from(below.count()).ok()?))
        }
        Err(error) if is_short(&error) => Some(0),
        Err(_) => None,
    }
}

/// Not even one descriptor is left to look with.
fn is_short(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The lower one of the two that are known.
#[cfg(target_os = "linux")]
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}

/// Whether this very process is gone. One whose start time is not known counts as there, and one that
/// nobody can look at just now.
pub fn is_gone(child: ChildMark) -> bool {
    // rule: LV-01
    child.start != 0 && gone(ProcessId { pid: child.pid, start_time: child.start })
}
