//! The app's own limit of open files, raised at its start. Its children get back the one that the app
//! was started with: a program that is made for few descriptors may not stand many.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Enough for thousands of sessions; more would only make closing them slow.
const RAISED_MAX: u64 = 65_536;

/// The soft limit that the app was started with, once it was raised.
static ORIGINAL: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the app's own soft limit of open files up to the hard one; never lowers it.
pub fn raise_descriptor_limit() {
    let now = getrlimit(Resource::Nofile);
    let (from, hard) = (now.current, now.maximum);
    let Some(raised) = raised(now) else {
        tracing::info!(from, hard, "the limit of open files stays");
        return;
    };
    // before the raise: no child that starts meanwhile gets the raised one
    ORIGINAL.get_or_init(|| from);
    let to = raised.current;
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!(from, to, "the limit of open files is raised"),
        Err(error) => tracing::warn!(%error, from, to, "the limit of open files is not raised"),
    }
}

/// The limit to have, if it is more.
fn raised(now: Rlimit) -> Option<Rlimit> {
    let wanted = now.maximum.unwrap_or(RAISED_MAX).min(RAISED_MAX);
    let more = now.current.is_some_and(|current| current < wanted);
    more.then_some(Rlimit { current: Some(wanted), ..now })
}

/// Gives a child the limit that the app was started with. For between fork and exec: it makes system
/// calls and nothing else.
pub(super) fn restore() -> io::Result<()> {
    let Some(&current) = ORIGINAL.get() else { return Ok(()) };
    setrlimit(Resource::Nofile, Rlimit { current, ..getrlimit(Resource::Nofile) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_goes_up_to_the_hard_one_within_reason() {
        for (current, maximum, wanted) in [
            (Some(1_024), Some(4_096), Some(4_096)),
            (Some(1_024), Some(1_048_576), Some(RAISED_MAX)),
            (Some(1_024), None, Some(RAISED_MAX)),
            (Some(4_096), Some(4_096), None),
            (Some(100_000), Some(1_048_576), None),
            (None, None, None),
        ] {
            let raised = raised(Rlimit { current, maximum });
            assert_eq!(raised.and_then(|limit| limit.current), wanted);
            assert!(raised.is_none_or(|limit| limit.maximum == maximum), "the hard one stays");
        }
    }
}
