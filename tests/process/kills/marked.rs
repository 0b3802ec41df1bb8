//! Processes that carry the marker of the app's data folder: CLIs, and the tools that they started.

use omniscio_core::id::SessionId;
use omniscio_lib::supervise::children::{ProcessId, alive};
use std::fs;

/// A process with the marker of the data folder.
pub(super) enum Marked {
    Cli(SessionId),
    Tool { parent: u32 },
}

/// What a marked process is; `None` if it is gone by now.
pub(super) fn marks(pid: u32) -> Option<Marked> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        let pairs = environ.split(|byte| *byte == 0);
        let mut values =
            pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.strip_prefix(name));
        values.next().map(str::to_string)
    };
    if !alive(ProcessId::of(pid)?) {
        return None;
    }
    match value("CLAUDE_PID=") {
        Some(parent) => Some(Marked::Tool { parent: parent.parse().ok()? }),
        None => Some(Marked::Cli(value("OMNISCIO_SESSION=")?.parse().ok()?)),
    }
}

/// Whether this process is a CLI that lives.
pub(super) fn is_cli(pid: u32) -> bool {
    matches!(marks(pid), Some(Marked::Cli(_)))
}
