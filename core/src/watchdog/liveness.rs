//! The liveness watchdog: a session whose child is gone and whose exit nobody told. It decides for one
//! session at one look; two looks in a row must agree, for an exit may be on its way.

use crate::verdict::{Verdict, Why};

/// What one look found of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivenessFacts {
    /// The process of its child is gone, or it says that it is at work and has no child.
    pub gone: bool,
    /// The look before found the same of the same child.
    pub gone_before: bool,
    /// A launch that failed transiently waits to be tried again: `spawnRetryPending`.
    pub spawn_retry_pending: bool,
    /// Something else is under way that will bring a child.
    pub launch_under_way: bool,
    /// The end of its turn is still being decided.
    pub disposition_pending: bool,
    /// The child is being stopped: the stop recipe reports its end.
    pub stopping: bool,
}

/// Whether the child counts as lost.
pub fn verdict(facts: LivenessFacts) -> Verdict<()> {
    // rule: LV-01, LV-02, RS-20
    if !facts.gone {
        Verdict::NotMine(Why::WrongState)
    } else if facts.spawn_retry_pending || facts.launch_under_way {
        Verdict::NotMine(Why::RestartUnderWay)
    } else if facts.stopping {
        Verdict::NotMine(Why::ChildStopping)
    } else if facts.disposition_pending {
        Verdict::Wait(Why::DispositionPending)
    } else if !facts.gone_before {
        Verdict::Wait(Why::AskPending)
    } else {
        Verdict::Act(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: LV-01, LV-02, RS-20
    #[test]
    fn a_child_is_lost_when_two_looks_agree_and_nothing_else_explains_it() {
        let gone = LivenessFacts { gone: true, gone_before: true, ..LivenessFacts::default() };
        assert_eq!(verdict(gone), Verdict::Act(()));
        let there = LivenessFacts { gone: false, ..gone };
        assert_eq!(verdict(there), Verdict::NotMine(Why::WrongState));
        let once = LivenessFacts { gone_before: false, ..gone };
        assert_eq!(verdict(once), Verdict::Wait(Why::AskPending));
        let retrying = LivenessFacts { spawn_retry_pending: true, ..gone };
        assert_eq!(verdict(retrying), Verdict::NotMine(Why::RestartUnderWay));
        let launching = LivenessFacts { launch_under_way: true, ..gone };
        assert_eq!(verdict(launching), Verdict::NotMine(Why::RestartUnderWay));
        let stopping = LivenessFacts { stopping: true, ..gone };
        assert_eq!(verdict(stopping), Verdict::NotMine(Why::ChildStopping));
        let saving = LivenessFacts { disposition_pending: true, ..gone };
        assert_eq!(verdict(saving), Verdict::Wait(Why::DispositionPending));
    }
}
