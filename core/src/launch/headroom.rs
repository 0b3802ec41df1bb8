//! Whether the machine bears one more child. What is not known holds nobody.

use crate::limits::Limits;
use crate::supervisor::Headroom;

/// What a machine is short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// File descriptors of this app.
    Descriptors,
    /// Processes of this user.
    Processes,
    /// Memory.
    Memory,
}

impl Shortage {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Shortage::Descriptors => "file descriptors",
            Shortage::Processes => "processes",
            Shortage::Memory => "memory",
        }
    }
}

/// What a launch would lack, if anything.
pub fn shortage(found: Headroom, limits: &Limits) -> Option<Shortage> {
    let below = |left: Option<u64>, needed: u64| left.is_some_and(|left| left < needed);
    if below(found.descriptors, limits.headroom_descriptors) {
        Some(Shortage::Descriptors)
    } else if below(found.processes, limits.headroom_processes) {
        Some(Shortage::Processes)
    } else if below(found.memory_mib, limits.headroom_memory_mib) {
        Some(Shortage::Memory)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_holds_below_its_own_limit_and_the_unknown_never() {
        let limits = Limits::default();
        let enough = Headroom { descriptors: Some(32), processes: Some(64), memory_mib: Some(300) };
        assert_eq!(shortage(enough, &limits), None);
        assert_eq!(shortage(Headroom::default(), &limits), None);
        let short = |found| shortage(found, &limits);
        assert_eq!(
            short(Headroom { descriptors: Some(31), ..enough }),
            Some(Shortage::Descriptors)
        );
        assert_eq!(short(Headroom { processes: Some(63), ..enough }), Some(Shortage::Processes));
        assert_eq!(short(Headroom { memory_mib: Some(299), ..enough }), Some(Shortage::Memory));
    }
}
