//! Both nudges: the whole truth table of the decision, and which of them claims a turn.

use super::*;
use crate::context::ContextUsage;
use crate::turn_end::auto_continue::AUTO_CONTINUE_MAX;
use crate::turn_end::context_stall::{
    CONTEXT_STALL_RECOVER_MAX, NoStall, StallFacts, StallRecovery, decide_context_stall_recovery,
};
use crate::turn_end::finished_reason::{FinishedReason, is_mid_task_stop, turn_finished_reason};

fn usage(tokens: u64) -> Option<ContextUsage> {
    Some(ContextUsage { tokens, window: 200_000 })
}

/// Unknown, and on both sides of the limit.
const READINGS: [Option<u64>; 5] =
    [None, Some(80_000), Some(179_980), Some(180_000), Some(200_001)];

fn every_fact() -> impl Iterator<Item = StallFacts> {
    let bits = 0_u16..1 << 7;
    bits.flat_map(|bits| {
        let bit = move |at: u16| bits & 1 << at != 0;
        READINGS.into_iter().flat_map(move |tokens| {
            (0..=CONTEXT_STALL_RECOVER_MAX + 1).map(move |nudges| StallFacts {
                usage: tokens.and_then(usage),
                known_out_of_room: bit(0),
                hopeless: bit(1),
                cut_off: bit(2),
                asked: bit(3),
                waits: bit(4),
                finished: bit(5),
                gave_up: bit(6),
                nudges,
            })
        })
    })
}

// proves: CS-02, CS-03, CS-04, CS-05, CS-06, CS-07, CS-14, CS-18, CS-28, CS-31, CS-38, INV-63
#[test]
fn the_decision_is_total_and_acts_only_on_a_turn_that_ran_out_of_room() {
    let (mut seen, limits) = (Vec::new(), Limits::default());
    for facts in every_fact() {
        let decided = decide_context_stall_recovery(&facts, &limits);
        assert_eq!(decided, decide_context_stall_recovery(&facts, &limits), "pure");
        if !seen.contains(&decided) {
            seen.push(decided);
        }
        let held = facts.asked || facts.waits || facts.finished || facts.cut_off;
        let full = facts.usage.is_some_and(|usage| usage.tokens >= 180_000);
        let qualifies = full || facts.known_out_of_room || facts.hopeless;
        let spent = facts.hopeless || facts.nudges >= 3;
        let acts = !held && qualifies && !facts.gave_up;
        assert_eq!(decided == StallRecovery::Recover, acts && !spent, "{facts:?}");
        assert_eq!(decided == StallRecovery::GiveUp, acts && spent, "{facts:?}");
        if facts.asked || facts.waits || facts.finished {
            assert!(matches!(decided, StallRecovery::None(_)), "{facts:?}");
        }
    }
    let why = [
        NoStall::CutOff,
        NoStall::Asked,
        NoStall::Waits,
        NoStall::Finished,
        NoStall::Unknown,
        NoStall::Room,
        NoStall::GaveUp,
    ];
    let all = why.map(StallRecovery::None);
    assert!(all.iter().all(|reason| seen.contains(reason)), "each reason is given: {seen:?}");
}

/// A turn that said `text`, in a session whose agent prints markers or not.
fn said(text: &str, marked: bool, prints_markers: bool) -> Frozen {
    let mut frozen = frozen(Outcome::Text, None);
    frozen.turn.final_text = text.into();
    frozen.turn.visible_answer = !text.is_empty();
    (frozen.turn.marked, frozen.turn.final_marker) = (marked, marked);
    frozen.standing.prints_markers = prints_markers;
    frozen
}

// proves: A-20, CS-19, AC-03, CS-29
#[test]
fn a_turn_is_finished_by_its_marker_its_question_or_its_text() {
    let reason = |frozen: &Frozen| (turn_finished_reason(frozen), is_mid_task_stop(frozen));
    let marker = Some(FinishedReason::MarkerThenText);
    let plain = Some(FinishedReason::PlainText);
    assert_eq!(reason(&said("done", true, true)), (marker, false));
    assert_eq!(reason(&said("done", true, false)), (marker, false));
    assert_eq!(reason(&said("done", false, false)), (plain, false));
    assert_eq!(reason(&said("first I", false, true)), (None, true), "it knows the marker");
    assert_eq!(reason(&said("", true, true)), (None, true), "a marker alone ends nothing");
    // a bare tool result is the last content: nothing of the final message is text
    assert_eq!(reason(&said("", false, false)), (None, true));
    for cut in ["pause_turn", "max_tokens"] {
        let mut frozen = said("so far", true, false);
        frozen.turn.stop_reason = Some(cut.into());
        assert_eq!(reason(&frozen), (None, true), "{cut}");
    }
    let mut asks = said("first I", false, true);
    asks.asked = Some(PendingAction::Question);
    assert_eq!(reason(&asks), (Some(FinishedReason::Asked), false));
    assert_eq!(reason(&frozen(Outcome::Unfinished, None)), (None, true));
    assert_eq!(reason(&frozen(Outcome::Dropped, None)), (None, false), "nothing was said");
}

fn claim(frozen: &Frozen, (context, auto): (bool, bool)) -> (&'static str, Disposition) {
    let mut policy = Policy::default();
    policy.settings.context_stall_auto_recover_enabled = context;
    policy.settings.auto_continue_mid_task_enabled = auto;
    dispose(frozen, &policy, &Limits::default())
}

// proves: AC-02, AC-04, AC-05, CS-24
#[test]
fn four_toggles_times_a_full_context_and_a_mid_task_stop() {
    let mut full = said("", false, true);
    full.standing.usage = usage(190_000);
    let mut roomy = said("first I", false, true);
    roomy.standing.usage = usage(20_000);
    let mut full_and_mid = roomy.clone();
    full_and_mid.standing.usage = usage(190_000);
    let mut dropped = frozen(Outcome::Dropped, None);
    dropped.standing.usage = usage(190_000);
    let left = |nothing_said| Disposition::LeftFull { nothing_said, words: None };
    use Disposition as D;
    for (toggles, of_full, of_dropped, of_roomy) in [
        ((true, false), D::RecoverContext, D::RecoverContext, D::Stalled),
        ((true, true), D::RecoverContext, D::RecoverContext, D::AutoContinue),
        ((false, false), left(false), left(true), D::Stalled),
        ((false, true), D::AutoContinue, left(true), D::AutoContinue),
    ] {
        assert_eq!(claim(&full, toggles).1, of_full, "{toggles:?}");
        assert_eq!(claim(&full_and_mid, toggles).1, of_full, "{toggles:?}");
        assert_eq!(claim(&dropped, toggles).1, of_dropped, "{toggles:?}");
        assert_eq!(claim(&roomy, toggles).1, of_roomy, "{toggles:?}");
    }
    let mut spent = roomy;
    spent.standing.auto_continued = AUTO_CONTINUE_MAX;
    assert_eq!(claim(&spent, (true, true)), ("auto-continue", Disposition::Stalled));
}

// proves: CS-05, CS-07, CS-15, INV-62
#[test]
fn a_full_context_with_an_answer_or_a_question_is_left_alone_and_a_give_up_ends_the_chain() {
    let both = (true, true);
    let mut answered = said("done", true, true);
    answered.standing.usage = usage(200_000);
    assert_eq!(claim(&answered, both).0, "finish");
    let mut asks = frozen(Outcome::Dropped, Some(PendingAction::Question));
    asks.standing.usage = usage(190_000);
    assert_eq!(claim(&asks, both).0, "question");
    let mut spent = frozen(Outcome::Dropped, None);
    spent.standing.usage = usage(190_000);
    spent.standing.context_nudges = CONTEXT_STALL_RECOVER_MAX;
    assert_eq!(claim(&spent, both), ("context-stall", Disposition::GiveUpContext { tell: true }));
    spent.standing.gave_up = true;
    let quiet = Disposition::GiveUpContext { tell: false };
    assert_eq!(claim(&spent, both), ("context-stall", quiet), "told once");
}

// proves, CS-35
#[test]
fn what_the_api_says_of_its_room_is_known_without_a_percentage() {
    let on = (true, false);
    let outcome = |outcome| claim(&frozen(outcome, None), on).1;
    let told = Disposition::GiveUpContext { tell: true };
    assert_eq!(outcome(Outcome::OutOfRoom { words: words() }), Disposition::RecoverContext);
    assert_eq!(outcome(Outcome::OutOfRoomGiveUp { words: words() }), told);
    let compacted = |failed| outcome(Outcome::ForcedCompact { failed });
    assert_eq!(compacted(None), Disposition::FinishAfterCompact);
    assert_eq!(compacted(Some(words())), told);
    let off = (false, false);
    let refused = Outcome::OutOfRoom { words: words() };
    let said = Disposition::LeftFull { nothing_said: false, words: Some(words()) };
    assert_eq!(claim(&frozen(refused, None), off).1, said);
    let forced = frozen(Outcome::ForcedCompact { failed: None }, None);
    assert!(matches!(claim(&forced, off).1, Disposition::LeftFull { nothing_said: false, .. }));
    // a compaction whose turn answered nothing is out of room at any percentage
    let mut empty = frozen(Outcome::Dropped, None);
    (empty.turn.compacted, empty.standing.usage) = (true, usage(80_000));
    assert_eq!(claim(&empty, on).1, Disposition::RecoverContext);
    empty.turn.visible_answer = true;
    assert_eq!(claim(&empty, on).0, "thinking-only-endturn-recovery");
}
