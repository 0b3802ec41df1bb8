//! Properties that hold for any row, legal or not, at any time.

use super::tests::{now_at, policy, view};
use super::*;
use crate::ipc::RelaunchView;
use crate::session::StopReason;
use alloc::vec::Vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

extern crate std;

fn any_view() -> impl Strategy<Value = RowView> {
    let times = prop_oneof![
        Just(0),
        -61_000_i64..310_000,
        -310_000_i64..61_000,
        -100_000_000_i64..100_000_000
    ];
    (
        proptest::sample::select(Status::ALL),
        proptest::option::of(proptest::sample::select(PendingAction::ALL)),
        times.clone(),
        proptest::option::of(times),
        any::<(bool, bool, bool, bool, bool)>(),
        (proptest::option::of("[ -~]{0,60}"), any_launch()),
    )
        .prop_map(|(status, pending, changed, hide, flags, (words, launch))| {
            let (delivered, deleted, turn, cannot_launch, gave_up) = flags;
            let mut view = view(status, pending);
            view.row.status_changed_at.0 += changed;
            view.row.hide_since = hide.map(|at| Wall(view.row.status_changed_at.0 + at));
            view.row.delivered = delivered;
            view.row.deleted_at = (deleted && delivered).then_some(view.row.status_changed_at);
            view.row.turn = view.row.turn.filter(|_| turn);
            view.row.words = words;
            view.row.cannot_launch = cannot_launch;
            view.row.context_gave_up = gave_up;
            (view.live.place, view.live.relaunch) = launch;
            view
        })
}

/// A place in line and a launch that failed, each or neither.
fn any_launch() -> impl Strategy<Value = (Option<u32>, Option<RelaunchView>)> {
    let next = proptest::option::of(-2_000_i64..31_000);
    let relaunch = (1_u32..1_000, next, "[ -~]{0,60}").prop_map(|(attempts, next, words)| {
        RelaunchView { attempts, next: next.map(|age| now_at(age).wall), words }
    });
    (proptest::option::of(1_u32..1_000), proptest::option::of(relaunch))
}

fn holds(v: &RowView, on: bool, age: i64) -> Result<(), TestCaseError> {
    let (policy, limits, now) = (policy(on), Limits::default(), now_at(age));
    let a = attention(v, &policy, &limits, now);
    let row = &v.row;
    let hidden = is_auto_recovering_aborted_response(row, &policy, &limits, now);

    prop_assert_eq!(a.section == Section::Hidden, row.is_gone());
    prop_assert_eq!(a.needs_person, a.section.needs_person());
    prop_assert_eq!(a.pill.is_some(), a.pill_tooltip.is_some());
    let given_up = a.state == RowState::ContextGivenUp;
    prop_assert_eq!(a.pill.is_some() || given_up, a.strip.is_some());
    prop_assert!(!a.label.is_empty() || row.is_gone());
    if let Some(words) = a.reason.words() {
        prop_assert!(words.chars().count() <= words::REASON_MAX_CHARS, "{}", words);
        prop_assert!(!words.is_empty());
    }
    if hidden {
        prop_assert!(row.in_shape() && on && !row.delivered);
        prop_assert_eq!((a.state, a.pill, a.strip.clone()), (RowState::Running, None, None));
    } else if row.in_shape() && !row.is_gone() {
        prop_assert_eq!((a.section, a.pill), (Section::Interrupted, Some(Pill::Retry)));
    }
    let legal = is_legal(row.status, row.pending);
    let failed = row.pending == Some(PendingAction::RecoveryFailed);
    if failed && legal && !row.is_gone() {
        prop_assert_eq!((a.tone, a.section), (Tone::Red, Section::Interrupted));
        prop_assert_eq!(a.pill, Some(Pill::Retry));
    }
    if row.status == Status::NeedsYou && row.pending.is_none() && !row.is_gone() {
        prop_assert_eq!((a.tone, a.section), (Tone::Amber, Section::NeedsYou));
    }
    // what a launch waits for is nobody's business but that of a row that is shown as launched
    let mut quiet = v.clone();
    (quiet.live.place, quiet.live.relaunch) = (None, None);
    if !matches!(a.state, RowState::ComingBack | RowState::CannotLaunch) {
        prop_assert_eq!(&attention(&quiet, &policy, &limits, now), &a);
    }
    if a.tone == Tone::Red {
        prop_assert!(
            failed
                || (row.status == Status::Starting && row.cannot_launch)
                || row.in_shape()
                || row.status == Status::Error
                || row.pending == Some(PendingAction::ApiError)
        );
        prop_assert_eq!((a.pill, a.section), (Some(Pill::Retry), Section::Interrupted));
    }
    // nothing waits for a person or for nothing without a lever, save a turn or card that is theirs
    prop_assert!(
        a.pill.is_some()
            || a.turn_open
            || row.is_gone()
            || matches!(
                a.state,
                RowState::YourTurn
                    | RowState::ContextGivenUp
                    | RowState::Question
                    | RowState::PlanReady
                    | RowState::Permission
                    // ends by itself
                    | RowState::Holding
            )
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    // proves: RF-05, RT-14, UI-09
    #[test]
    fn any_row_is_shown_soundly(v in any_view(), on: bool, age in -100_000_i64..400_000) {
        holds(&v, on, age)?;
    }

    /// Between now and the flip the answer stays, at the flip it may change, never without one.
    #[test]
    fn the_answer_changes_at_a_flip_or_not_at_all(
        v in any_view(), on: bool, age in -100_000_i64..400_000, later in 0_i64..1_000_000,
    ) {
        let (policy, limits, now) = (policy(on), Limits::default(), now_at(age));
        let then = now_at(age + later);
        let flip = next_flip(&v, &policy, &limits, now);
        prop_assert!(flip.is_none_or(|at| at > now.wall));
        if flip.is_none_or(|at| then.wall < at) {
            prop_assert_eq!(
                attention(&v, &policy, &limits, now),
                attention(&v, &policy, &limits, then)
            );
        }
    }

    /// No step of the clock hides a row for longer than the cap and the tolerance.
    // proves: HD-22
    #[test]
    fn a_stepped_clock_never_lengthens_the_hiding(v in any_view(), age in -8_000_000_i64..8_000_000) {
        let (policy, limits, now) = (policy(true), Limits::default(), now_at(age));
        if is_auto_recovering_aborted_response(&v.row, &policy, &limits, now) {
            let ends = next_flip(&v, &policy, &limits, now).expect("a hidden row has an end");
            prop_assert!(ends.since(now.wall) <= 360_000);
        }
    }

    // proves: NT-04, UI-15
    #[test]
    fn the_badge_is_the_rows_of_the_two_upper_sections(
        views in proptest::collection::vec(any_view(), 0..12), on: bool, age in -100_000_i64..400_000,
    ) {
        let (policy, limits, now) = (policy(on), Limits::default(), now_at(age));
        let section = |v: &RowView| attention(v, &policy, &limits, now).section;
        let count = |s: Section| views.iter().filter(|v| section(v) == s).count();
        let badge = badge_count(views.iter().map(|view| &view.row), &policy, &limits, now);
        prop_assert_eq!(badge, count(Section::Interrupted) + count(Section::NeedsYou));
        let listed: usize = Section::LISTED.into_iter().map(count).sum();
        prop_assert_eq!(listed + count(Section::Hidden), views.len());
    }
}

/// Every status beside every pending action, legal or not, at the times that matter, whatever else the
/// row says.
fn every_view() -> Vec<(RowView, i64, bool)> {
    const AGES: [i64; 7] = [-7_200_000, -60_001, -60_000, 0, 299_999, 300_000, 100_000_000];
    let reasons = [None].into_iter().chain(StopReason::ALL.iter().copied().map(Some));
    let reasons: Vec<_> = reasons.collect();
    let mut views = Vec::new();
    for status in Status::ALL {
        for pending in [None].into_iter().chain(PendingAction::ALL.iter().copied().map(Some)) {
            for (reason, delivered) in reasons.iter().flat_map(|r| [(*r, false), (*r, true)]) {
                let mut view = view(*status, pending);
                (view.row.stop_reason, view.row.delivered) = (reason, delivered);
                view.live.restart_under_way = delivered;
                view.live.folder_missing = reason.is_some();
                let times = AGES.iter().flat_map(|age| [(*age, true), (*age, false)]);
                views.extend(times.map(|(age, on)| (view.clone(), age, on)));
            }
        }
    }
    views
}

// proves: INV-29, INV-30, INV-31, INV-32
#[test]
fn every_row_has_one_section_one_tone_and_at_most_one_pill() {
    let limits = Limits::default();
    for (v, age, on) in every_view() {
        let (policy, now) = (policy(on), now_at(age));
        let a = attention(&v, &policy, &limits, now);
        let row = &v.row;
        let what = (row.status, row.pending, age, on);
        let pending = row.pending.filter(|pending| is_legal(row.status, Some(*pending)));
        let listed = !row.is_gone();
        if listed && pending == Some(PendingAction::RecoveryFailed) {
            assert_eq!((a.tone.as_str(), a.section), ("red-400", Section::Interrupted), "{what:?}");
        }
        if (row.status, pending) == (Status::NeedsYou, None) {
            assert_eq!((a.tone.as_str(), a.section), ("amber-400", Section::NeedsYou), "{what:?}");
        }
        let sections = Section::LISTED.into_iter().filter(|section| *section == a.section);
        assert_eq!(sections.count(), usize::from(listed), "{what:?}");
        let counted = badge_count([row], &policy, &limits, now);
        assert_eq!(counted == 1, a.section.needs_person(), "{what:?}");
        // the pill, its tooltip and its strip are there together or not at all
        assert_eq!(a.pill.is_some(), a.strip.is_some(), "{what:?}");
        let wanted = match a.pill {
            Some(Pill::Retry) => a.pill_tooltip.is_some_and(|tip| tip.contains("Retry")),
            Some(Pill::Continue) => a.pill_tooltip == Some(words::CONTINUE),
            None => a.pill_tooltip.is_none(),
        };
        assert!(wanted, "{what:?}: {:?} {:?}", a.pill, a.pill_tooltip);
        // Retry and red go together (UI-09)
        assert_eq!(a.pill == Some(Pill::Retry), a.tone == Tone::Red, "{what:?}");
    }
}

#[test]
fn every_state_has_a_look_of_its_own() {
    let states = [
        RowState::Running,
        RowState::ComingBack,
        RowState::YourTurn,
        RowState::Question,
        RowState::PlanReady,
        RowState::Permission,
        RowState::SignIn,
        RowState::Stopped,
        RowState::Stalled,
        RowState::RateLimited,
        RowState::CutOffRetrying,
        RowState::RecoveryFailed,
        RowState::LaunchError,
        RowState::Suspended,
        RowState::Paused,
        RowState::Ended,
    ];
    let looks: Vec<_> = states.into_iter().map(look).collect();
    let labels: BTreeSet<_> = looks.iter().map(|(_, _, _, label)| *label).collect();
    let shapes: BTreeSet<_> = looks.iter().map(|(_, _, shape, _)| *shape).collect();
    assert_eq!((labels.len(), shapes.len()), (states.len(), states.len()));
}
