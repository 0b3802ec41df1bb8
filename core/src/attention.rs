//! THE predicate: what a person sees of a session, and whether it needs one.
//!
//! [`attention`] alone decides section, shape, tone, label, reason, tooltip, strip and pill, and
//! with them every count: the window, the badge, notifications and the poll all ask here (the
//! original's `pickStatusRow`). It reads a row, the policy, the limits and a time, and formats no
//! clock time.

mod kinds;
mod words;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use kinds::{Attention, Pill, Reason, RowState, Section, Shape, Strip, Tone};

use crate::ipc::{Activity, RowView};
use crate::limits::Limits;
use crate::session::{PendingAction, SessionRow, Status, is_legal};
use crate::settings::Policy;
use crate::time::{Now, Wall};
use crate::waiting::DeferredWork;

/// What a person sees of this session now.
pub fn attention(view: &RowView, policy: &Policy, limits: &Limits, now: Now) -> Attention {
    let row = &view.row;
    let state = row_state(row, policy, limits, now);
    let (section, tone, shape, label) = look(state);
    // an unseen recovery shows what a running session without an open tool shows, nothing else
    let unseen = state == RowState::Running && hide_clock(row, policy).is_some();
    let reason = if unseen {
        Reason::Activity(Activity::Working)
    } else {
        words::reason(state, view, now.wall)
    };
    let pill = pill_of(state);
    Attention {
        section,
        tone,
        shape,
        state,
        label,
        until: until(state, row),
        since: since(state, &reason, view),
        reason,
        row_tooltip: words::row_tooltip(state, view, now.wall),
        pill: pill.map(|(pill, _)| pill),
        pill_tooltip: pill.map(|(_, tooltip)| tooltip),
        strip: has_strip(state).then(|| Strip { text: words::strip(state, view, now.wall) }),
        needs_person: section.needs_person(),
        turn_open: turn_open(state, row),
    }
}

/// The time that ends what the row waits for, if one is known.
fn until(state: RowState, row: &SessionRow) -> Option<Wall> {
    match state {
        RowState::RateLimited => row.resets_at,
        RowState::Holding => row.deferred_work.as_ref().and_then(DeferredWork::next_at),
        RowState::Running
        | RowState::ComingBack
        | RowState::YourTurn
        | RowState::ContextGivenUp
        | RowState::Question
        | RowState::PlanReady
        | RowState::Permission
        | RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::CutOffRetrying
        | RowState::CutOffRecoveryOff
        | RowState::RecoveryFailed
        | RowState::RecoveryStopped
        | RowState::RecoveryFailedOff
        | RowState::LaunchError
        | RowState::CannotLaunch
        | RowState::ApiError
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended
        | RowState::Gone => None,
    }
}

/// Whether a cut-off reply is being brought back unseen: the row is in the shape, recovery is on,
/// and the cap has not expired (HD-08). A delivered row never is (HD-19).
pub fn is_auto_recovering_aborted_response(
    row: &SessionRow,
    policy: &Policy,
    limits: &Limits,
    now: Now,
) -> bool {
    // rule: HD-08, HD-19, HD-21
    row.in_shape()
        && row.deleted_at.is_none()
        && !row.delivered
        && policy.aborted_response_recovery()
        && !aborted_recovery_hide_expired(row, limits, now)
}

/// Whether the time in which a cut-off reply stays unseen is over, clocked on `status_changed_at`
/// (HD-09, HD-10). A timestamp beyond the tolerance in the future counts as over (HD-22).
pub fn aborted_recovery_hide_expired(row: &SessionRow, limits: &Limits, now: Now) -> bool {
    // rule: HD-10
    hide_expired(row.status_changed_at, limits, now)
}

/// When the answer for this row changes by time alone, if it does. Strictly after `now`.
pub fn next_flip(view: &RowView, policy: &Policy, limits: &Limits, now: Now) -> Option<Wall> {
    let row = &view.row;
    if row.pending == Some(PendingAction::RecoveryFailed) {
        return words::countdown_flip(row.ladder.due?, now.wall);
    }
    let hiding = hide_clock(row, policy).map(|clock| {
        let begins = Wall(clock.0.saturating_sub_unsigned(limits.hide_future_tolerance_ms));
        [begins, clock.plus(limits.hide_max_ms)]
    });
    let counts = row_state(row, policy, limits, now) == RowState::CannotLaunch;
    let next = view.live.relaunch.as_ref().filter(|_| counts).and_then(|relaunch| relaunch.next);
    let countdown = next.and_then(|next| words::seconds_flip(next, now.wall));
    hiding.into_iter().flatten().chain(countdown).filter(|at| *at > now.wall).min()
}

/// The number of sessions that wait for a person: badge, dock, poll and inbox alike (HD-18, NT-04).
pub fn badge_count<'a>(
    rows: impl IntoIterator<Item = &'a SessionRow>,
    policy: &Policy,
    limits: &Limits,
    now: Now,
) -> usize {
    // rule: HD-18, NT-04
    rows.into_iter().filter(|row| needs_person(row, policy, limits, now)).count()
}

/// Whether time alone can change what [`needs_person`] says of this session.
pub fn badge_changes_by_time(row: &SessionRow, policy: &Policy) -> bool {
    hide_clock(row, policy).is_some()
}

/// Whether this session waits for a person: its section says so, and its section follows from the row
/// alone.
pub fn needs_person(row: &SessionRow, policy: &Policy, limits: &Limits, now: Now) -> bool {
    let (section, ..) = look(row_state(row, policy, limits, now));
    section.needs_person()
}

fn hide_expired(clock: Wall, limits: &Limits, now: Now) -> bool {
    // rule: HD-09, HD-22
    let age = now.wall.since(clock);
    let oldest = i64::try_from(limits.hide_max_ms).unwrap_or(i64::MAX);
    let future = i64::try_from(limits.hide_future_tolerance_ms).unwrap_or(i64::MAX);
    age >= oldest || age < -future
}

/// The clock of an unseen recovery: of the shape itself, or of the shape before the replay that is
/// being launched and has shown nothing yet (HD-14). `None` when the row is in neither.
fn hide_clock(row: &SessionRow, policy: &Policy) -> Option<Wall> {
    // rule: HD-14
    if !policy.aborted_response_recovery() || row.is_gone() || row.delivered {
        return None;
    }
    if row.in_shape() {
        return Some(row.status_changed_at);
    }
    let replaying =
        matches!(row.status, Status::Starting | Status::Running) && row.pending.is_none();
    if replaying { row.hide_since } else { None }
}

/// What the row is. A pending action that is illegal beside the status is passed over: the status
/// is what the last writer meant, and the next write clears the marker (contract 5.1).
fn row_state(row: &SessionRow, policy: &Policy, limits: &Limits, now: Now) -> RowState {
    if row.is_gone() {
        return RowState::Gone;
    }
    match row.pending.filter(|pending| is_legal(row.status, Some(*pending))) {
        Some(PendingAction::ResponseAborted) => {
            // rule: HD-01, HD-07, HD-11, HD-21
            if is_auto_recovering_aborted_response(row, policy, limits, now) {
                RowState::Running
            } else if policy.aborted_response_recovery() {
                RowState::CutOffRetrying
            } else {
                RowState::CutOffRecoveryOff
            }
        }
        // rule: RT-11, RT-24, DB-08, INV-33
        Some(PendingAction::RecoveryFailed) => {
            if row.stop_reason.is_some() {
                RowState::RecoveryStopped
            } else if policy.aborted_response_recovery() {
                RowState::RecoveryFailed
            } else {
                RowState::RecoveryFailedOff
            }
        }
        Some(PendingAction::Question) => RowState::Question,
        Some(PendingAction::PlanApproval) => RowState::PlanReady,
        Some(PendingAction::PermissionRequest) => RowState::Permission,
        Some(PendingAction::AuthRequired) => RowState::SignIn,
        Some(PendingAction::ApiError) => RowState::ApiError,
        Some(PendingAction::Stopped) => RowState::Stopped,
        Some(PendingAction::AppRestartSuspended) => RowState::Suspended,
        Some(PendingAction::RateLimited) => RowState::RateLimited,
        None => match row.status {
            // rule: A-14, RS-15
            Status::Starting => match hide_clock(row, policy) {
                Some(clock) if !hide_expired(clock, limits, now) => RowState::Running,
                Some(_) | None if row.cannot_launch => RowState::CannotLaunch,
                Some(_) | None => RowState::ComingBack,
            },
            Status::Running => RowState::Running,
            Status::Waiting => RowState::Holding,
            Status::NeedsYou if row.context_gave_up && !row.delivered => RowState::ContextGivenUp,
            Status::NeedsYou => RowState::YourTurn,
            Status::Error => RowState::LaunchError,
            Status::Stalled => RowState::Stalled,
            Status::Paused => RowState::Paused,
            Status::Ended => RowState::Ended,
            Status::Archived => RowState::Gone,
        },
    }
}

/// Section, tone, shape and label of a state (OD-38, OD-39, A-13).
fn look(state: RowState) -> (Section, Tone, Shape, &'static str) {
    // rule: RF-03, RF-04, RF-05, UI-02, UI-03, UI-04, UI-05, UI-06, UI-07, UI-08, UI-09, UI-10, A-13, AC-01
    match state {
        RowState::Running => (Section::Running, Tone::Green, Shape::Disc, "Running"),
        RowState::ComingBack => (Section::Running, Tone::Green, Shape::RingPulsing, "Coming back…"),
        RowState::YourTurn | RowState::ContextGivenUp => {
            (Section::NeedsYou, Tone::Amber, Shape::Diamond, "Your turn")
        }
        RowState::Question => (Section::NeedsYou, Tone::Amber, Shape::Question, "Question"),
        RowState::PlanReady => (Section::NeedsYou, Tone::Amber, Shape::Lines, "Plan ready"),
        RowState::Permission => (Section::NeedsYou, Tone::Amber, Shape::Padlock, "Permission"),
        RowState::SignIn => (Section::NeedsYou, Tone::Amber, Shape::Door, "Sign in"),
        RowState::Stopped => (Section::NeedsYou, Tone::Amber, Shape::Square, "Stopped"),
        RowState::Stalled => (Section::NeedsYou, Tone::Orange, Shape::OpenDiamond, "Stalled?"),
        RowState::RateLimited | RowState::Holding => {
            (Section::Running, Tone::Orange, Shape::Clock, "Waiting")
        }
        RowState::CutOffRetrying | RowState::CutOffRecoveryOff => {
            (Section::Interrupted, Tone::Red, Shape::Pause, "Paused")
        }
        RowState::RecoveryFailed | RowState::RecoveryStopped | RowState::RecoveryFailedOff => {
            (Section::Interrupted, Tone::Red, Shape::Cross, "Recovery failed")
        }
        RowState::LaunchError | RowState::ApiError => {
            (Section::Interrupted, Tone::Red, Shape::Triangle, "Error")
        }
        RowState::CannotLaunch => {
            (Section::Interrupted, Tone::Red, Shape::Triangle, "Can't launch yet")
        }
        RowState::Suspended => (Section::Interrupted, Tone::Grey, Shape::HalfDisc, "Suspended"),
        RowState::Paused => (Section::Other, Tone::Grey, Shape::TwoBars, "Paused by you"),
        RowState::Ended => (Section::Other, Tone::Grey, Shape::Ring, "Ended"),
        RowState::Gone => (Section::Hidden, Tone::Grey, Shape::Ring, ""),
    }
}

/// The pill of a state with its tooltip. States whose own recovery does not exist yet offer
/// Continue, so that no row is without a lever.
fn pill_of(state: RowState) -> Option<(Pill, &'static str)> {
    // rule: RT-01, RT-02, RT-03, RT-09, RT-10, RT-14, RT-16, RT-24, RT-25, A-25
    match state {
        RowState::RecoveryStopped => Some((Pill::Retry, words::RETRY_STOPPED)),
        RowState::RecoveryFailed | RowState::CutOffRetrying => {
            Some((Pill::Retry, words::RETRY_GOES_ON))
        }
        RowState::RecoveryFailedOff | RowState::CutOffRecoveryOff => {
            Some((Pill::Retry, words::RETRY_RECOVERY_OFF))
        }
        RowState::LaunchError => Some((Pill::Retry, words::RETRY_LAUNCH)),
        RowState::CannotLaunch => Some((Pill::Retry, words::RETRY_CANNOT_LAUNCH)),
        RowState::ApiError => Some((Pill::Retry, words::RETRY_REQUEST)),
        RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::RateLimited
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended => Some((Pill::Continue, words::CONTINUE)),
        RowState::Running
        | RowState::ComingBack
        | RowState::YourTurn
        | RowState::ContextGivenUp
        | RowState::Holding
        | RowState::Question
        | RowState::PlanReady
        | RowState::Permission
        | RowState::Gone => None,
    }
}

/// Whether the state has a strip over the composer: for its pill, or for a way out that is none.
fn has_strip(state: RowState) -> bool {
    state == RowState::ContextGivenUp || pill_of(state).is_some()
}

/// The time a row shows: of an activity that has a name since it began, of plain work since the
/// turn began, of everything else since the state was entered.
fn since(state: RowState, reason: &Reason, view: &RowView) -> Option<Wall> {
    match state {
        RowState::Running => match reason {
            Reason::Activity(Activity::Working) | Reason::None | Reason::Text(_) => {
                let row = &view.row;
                let turn = row.turn.as_ref().map(|turn| turn.since).or(row.turn_since);
                Some(turn.or(row.hide_since).unwrap_or(row.status_changed_at))
            }
            Reason::Activity(
                Activity::Thinking
                | Activity::Tool(_)
                | Activity::SubAgents(_)
                | Activity::Compacting
                | Activity::Retrying { .. },
            ) => Some(view.live.activity_since),
        },
        // what it waits for holds its time (design)
        RowState::Holding | RowState::ComingBack | RowState::Gone => None,
        RowState::YourTurn
        | RowState::ContextGivenUp
        | RowState::Question
        | RowState::PlanReady
        | RowState::Permission
        | RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::RateLimited
        | RowState::CutOffRetrying
        | RowState::CutOffRecoveryOff
        | RowState::RecoveryFailed
        | RowState::RecoveryStopped
        | RowState::RecoveryFailedOff
        | RowState::LaunchError
        | RowState::CannotLaunch
        | RowState::ApiError
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended => Some(view.row.status_changed_at),
    }
}

/// Whether a turn is open for the person. A card may stand within an open turn or after it.
fn turn_open(state: RowState, row: &SessionRow) -> bool {
    match state {
        RowState::Running | RowState::ComingBack | RowState::CannotLaunch => true,
        RowState::Question | RowState::PlanReady | RowState::Permission => {
            row.status == Status::Running
        }
        RowState::YourTurn
        | RowState::ContextGivenUp
        | RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::RateLimited
        | RowState::Holding
        | RowState::CutOffRetrying
        | RowState::CutOffRecoveryOff
        | RowState::RecoveryFailed
        | RowState::RecoveryStopped
        | RowState::RecoveryFailedOff
        | RowState::LaunchError
        | RowState::ApiError
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended
        | RowState::Gone => false,
    }
}
