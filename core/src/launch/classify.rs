//! What a failed spawn means: the machine is short of something for a while, or the launch cannot
//! succeed by itself. Numbers only, by platform; nobody reads the system's words.

use serde::{Deserialize, Serialize};

/// The platform whose error numbers are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Os {
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Os {
    /// The platform this was built for; any other Unix counts as Linux.
    pub const fn current() -> Os {
        if cfg!(windows) {
            Os::Windows
        } else if cfg!(target_os = "macos") {
            Os::MacOs
        } else {
            Os::Linux
        }
    }

    /// What the system says when it is too busy: `EAGAIN`, or libuv's UNKNOWN.
    pub(crate) const fn busy(self) -> i32 {
        match self {
            Os::Linux => 11,
            Os::MacOs => 35,
            Os::Windows => -4094,
        }
    }

    /// The error numbers of a spawn that may succeed a moment later (OD-48).
    const fn transient(self) -> &'static [i32] {
        match self {
            // EAGAIN, EBUSY, ENFILE, EMFILE
            Os::Linux => &[11, 16, 23, 24],
            Os::MacOs => &[35, 16, 23, 24],
            // libuv's UNKNOWN, EMFILE and EBUSY as they are named there, then the system's own:
            // no resources, no quota, the paging file is too small, too many open files, a sharing or a
            // lock violation (an antivirus reads the program), the resource is in use
            Os::Windows => &[-4094, -4066, -4082, 1450, 1816, 1455, 4, 32, 33, 170],
        }
    }
}

/// Whether a spawn that failed with this number is tried again by itself. No number is not transient.
pub fn is_transient_spawn_error(os: Os, errno: Option<i32>) -> bool {
    // rule: RS-06, RS-26
    errno.is_some_and(|errno| os.transient().contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: RS-06, RS-26
    #[test]
    fn only_five_causes_are_transient_on_any_platform() {
        let transient =
            |os| (-5_000..20_000).filter(move |errno| is_transient_spawn_error(os, Some(*errno)));
        let found = |os| transient(os).collect::<alloc::vec::Vec<_>>();
        assert_eq!(found(Os::Linux), [11, 16, 23, 24]);
        assert_eq!(found(Os::MacOs), [16, 23, 24, 35]);
        assert_eq!(found(Os::Windows), [-4094, -4082, -4066, 4, 32, 33, 170, 1450, 1455, 1816]);
    }

    // proves: RS-06
    #[test]
    fn what_does_not_mend_itself_is_not_transient() {
        // ENOENT, EACCES, EPERM, ENOEXEC, ENOMEM, ENOSPC, EFAULT, ETXTBSY
        for errno in [2, 13, 1, 8, 12, 28, 14, 26] {
            assert!(!is_transient_spawn_error(Os::Linux, Some(errno)), "linux {errno}");
            assert!(!is_transient_spawn_error(Os::MacOs, Some(errno)), "macos {errno}");
        }
        // file, path not found, access denied, not a program, no memory, disk full
        for errno in [2, 3, 5, 193, 8, 14, 112] {
            assert!(!is_transient_spawn_error(Os::Windows, Some(errno)), "windows {errno}");
        }
        for os in [Os::Linux, Os::MacOs, Os::Windows] {
            assert!(is_transient_spawn_error(os, Some(os.busy())), "{os:?}");
            assert!(!is_transient_spawn_error(os, None), "{os:?}");
        }
    }
}
