//! The stall watchdog: how long a turn may be silent, by what it is doing.

use crate::limits::Limits;
use crate::session::AbortCause;
use crate::time::Mono;
use crate::turn::{MessagePhase, TurnFacts};
use crate::verdict::{Silent, Verdict, Why};

/// What ends a silent turn, and when: the deadline, or why there is none. `heavy`: the machine is
/// saturated right now, which only the wait for the first output takes into account.
pub fn deadline(
    turn: &TurnFacts,
    limits: &Limits,
    heavy: bool,
) -> Result<(Mono, AbortCause), Silent> {
    // rule: A-05
    let message_open = match turn.phase {
        MessagePhase::OpenBlock
        | MessagePhase::Thinking
        | MessagePhase::BetweenBlocks
        | MessagePhase::Abandoned => true,
        MessagePhase::NotStarted | MessagePhase::Ended => false,
    };
    if turn.card_open {
        return Err(Silent::Card);
    }
    if turn.compacting {
        return Err(Silent::Compaction);
    }
    if !turn.agents.is_empty() {
        return Err(Silent::SubAgent);
    }
    // rule: SW-09
    // A complete call whose message still streams is not yet running: the stream's own limit holds.
    if !turn.tools.is_empty() && !message_open {
        return Err(Silent::Tool);
    }
    if let Some(until) = turn.retry_until {
        let end = until.max(turn.last_sign).plus(limits.api_retry_grace_ms);
        return Ok((end, AbortCause::StallTimeout));
    }
    let (limit, cause) = match turn.phase {
        // rule: SW-01, SW-02, SW-03, SW-06, LD-03
        MessagePhase::NotStarted if !turn.real_output => {
            let silent = turn.last_sign.plus(if heavy {
                limits.first_output_load_ceiling_ms
            } else {
                limits.first_output_ms
            });
            let ceiling = turn.began.plus(limits.startup_ceiling_ms);
            return Ok(if ceiling < silent {
                (ceiling, AbortCause::StartupCeiling)
            } else {
                (silent, AbortCause::StallTimeout)
            });
        }
        // rule: SW-08
        MessagePhase::OpenBlock => (limits.silence_open_block_ms, AbortCause::StallTimeout),
        MessagePhase::Thinking
        | MessagePhase::BetweenBlocks
        | MessagePhase::Abandoned
        | MessagePhase::Ended
        | MessagePhase::NotStarted => (limits.silence_between_ms, AbortCause::StallTimeout),
    };
    Ok((turn.last_sign.plus(limit), cause))
}

/// Whether a silent turn is over.
pub fn verdict(turn: &TurnFacts, limits: &Limits, heavy: bool, now: Mono) -> Verdict<AbortCause> {
    match deadline(turn, limits, heavy) {
        Err(silent) => Verdict::Wait(Why::SilenceAllowed(silent)),
        Ok((due, cause)) if now >= due => Verdict::Act(cause),
        Ok((due, _)) => Verdict::Wait(Why::NotDue(due)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Origin;
    use crate::turn::RunningTool;

    fn turn(phase: MessagePhase, real_output: bool) -> TurnFacts {
        let mut facts = TurnFacts::new(1, Some(Origin::Operator), Mono(1_000));
        facts.phase = phase;
        facts.real_output = real_output;
        facts
    }

    fn limit_of(facts: &TurnFacts) -> Option<u64> {
        deadline(facts, &Limits::default(), false).ok().map(|(due, _)| due.since(facts.last_sign))
    }

    // proves: SW-01, SW-06, SW-08, A-05
    #[test]
    fn each_phase_has_its_own_limit() {
        for (phase, real, limit) in [
            (MessagePhase::NotStarted, false, 120_000),
            (MessagePhase::BetweenBlocks, false, 600_000),
            (MessagePhase::OpenBlock, true, 180_000),
            (MessagePhase::Thinking, true, 600_000),
            (MessagePhase::BetweenBlocks, true, 600_000),
            (MessagePhase::Abandoned, true, 600_000),
            (MessagePhase::Ended, true, 600_000),
        ] {
            let facts = turn(phase, real);
            assert_eq!(limit_of(&facts), Some(limit), "{phase:?}");
            let last = facts.last_sign;
            let limits = Limits::default();
            assert!(matches!(
                verdict(&facts, &limits, false, last.plus(limit - 1)),
                Verdict::Wait(Why::NotDue(_))
            ));
            assert_eq!(
                verdict(&facts, &limits, false, last.plus(limit)),
                Verdict::Act(AbortCause::StallTimeout)
            );
        }
    }

    // proves: SW-02, SW-03, SW-06, LD-12
    #[test]
    fn a_saturated_machine_extends_the_wait_for_the_first_output_and_nothing_else() {
        let limits = Limits::default();
        let under_load = |facts: &TurnFacts| {
            deadline(facts, &limits, true).ok().map(|(due, _)| due.since(facts.last_sign))
        };
        let fresh = turn(MessagePhase::NotStarted, false);
        assert_eq!(under_load(&fresh), Some(360_000));
        // the load eased after 200 s: the calm limit is over already
        let at = fresh.last_sign.plus(200_000);
        assert!(matches!(verdict(&fresh, &limits, true, at), Verdict::Wait(Why::NotDue(_))));
        assert_eq!(verdict(&fresh, &limits, false, at), Verdict::Act(AbortCause::StallTimeout));
        for (phase, limit) in [
            (MessagePhase::OpenBlock, 180_000),
            (MessagePhase::Thinking, 600_000),
            (MessagePhase::BetweenBlocks, 600_000),
            (MessagePhase::Ended, 600_000),
        ] {
            assert_eq!(under_load(&turn(phase, true)), Some(limit), "{phase:?}");
        }
    }

    #[test]
    fn a_running_tool_may_be_silent_and_its_result_starts_the_clock() {
        let mut facts = turn(MessagePhase::Ended, true);
        facts.tools.insert("t".into(), RunningTool { name: "Bash".into(), detail: "x".into() });
        assert_eq!(deadline(&facts, &Limits::default(), false), Err(Silent::Tool));
        facts.tools.clear();
        assert_eq!(limit_of(&facts), Some(600_000));
        // a stream that hangs after a complete call, before its message ended, is not a running tool
        facts.tools.insert("t".into(), RunningTool { name: "Bash".into(), detail: "x".into() });
        facts.phase = MessagePhase::OpenBlock;
        assert_eq!(limit_of(&facts), Some(180_000));
        facts.phase = MessagePhase::Abandoned;
        assert_eq!(limit_of(&facts), Some(600_000));
    }

    #[test]
    fn what_may_be_silent_without_limit_is_named() {
        let mut facts = turn(MessagePhase::Ended, true);
        facts.card_open = true;
        assert_eq!(deadline(&facts, &Limits::default(), false), Err(Silent::Card));
        let mut facts = turn(MessagePhase::Ended, true);
        facts.agents.insert("a".into());
        assert_eq!(deadline(&facts, &Limits::default(), false), Err(Silent::SubAgent));
        let mut facts = turn(MessagePhase::NotStarted, false);
        facts.compacting = true;
        assert_eq!(deadline(&facts, &Limits::default(), false), Err(Silent::Compaction));
    }

    #[test]
    fn an_announced_retry_has_its_delay_and_thirty_seconds() {
        let mut facts = turn(MessagePhase::NotStarted, false);
        facts.retry_until = Some(Mono(1_000 + 40_000));
        assert_eq!(limit_of(&facts), Some(70_000));
    }

    // proves: SW-04
    #[test]
    fn chatter_re_arms_the_first_output_limit_until_the_ceiling() {
        let mut facts = turn(MessagePhase::NotStarted, false);
        facts.last_sign = facts.began.plus(1_750_000);
        let (due, cause) = deadline(&facts, &Limits::default(), false).expect("a deadline");
        assert_eq!((due.since(facts.began), cause), (1_800_000, AbortCause::StartupCeiling));
    }
}
