//! THE predicate: what a person sees of a session, and whether it needs one.
//!
//! [`attention`] alone decides section, shape, tone, label, reason, tooltip, strip and pill, and
//! with them every count: the window, the badge, notifications and the poll all ask here (the
//! original's `pickStatusRow`). It reads a row, the policy, the limits and a time, and formats no
//! clock time.

mod words;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use crate::ipc::{Activity, RowView};
use crate::limits::Limits;
use crate::session::{PendingAction, SessionRow, Status, is_legal};
use crate::settings::Policy;
use crate::time::{Now, Wall};
use alloc::string::String;

/// Where a session stands in the list, in the list's order (OD-38).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Something went wrong.
    Interrupted,
    /// A person is asked.
    NeedsYou,
    /// At work, or waits by itself.
    Running,
    /// At rest by the person's own wish.
    Other,
    /// Archived or deleted: not listed.
    Hidden,
}

impl Section {
    /// The sections that are drawn, from top to bottom.
    pub const LISTED: [Section; 4] = [
        Section::Interrupted,
        Section::NeedsYou,
        Section::Running,
        Section::Other,
    ];

    /// The header's text.
    pub fn title(self) -> &'static str {
        match self {
            Section::Interrupted => "Interrupted",
            Section::NeedsYou => "Needs You",
            Section::Running => "Running",
            Section::Other => "Other",
            Section::Hidden => "",
        }
    }

    /// Whether a row here waits for a person: what the badge counts.
    pub fn needs_person(self) -> bool {
        match self {
            Section::Interrupted | Section::NeedsYou => true,
            Section::Running | Section::Other | Section::Hidden => false,
        }
    }
}

/// The five tones. Red is for failures alone (UI-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tone {
    /// At work.
    Green,
    /// Waits for the person.
    Amber,
    /// Waits for something else, or may have stopped.
    Orange,
    /// Failed.
    Red,
    /// At rest.
    Grey,
}

impl Tone {
    /// The token's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Tone::Green => "green-400",
            Tone::Amber => "amber-400",
            Tone::Orange => "orange-400",
            Tone::Red => "red-400",
            Tone::Grey => "grey-400",
        }
    }
}

/// The shape drawn before a row: every state has its own, so colour is never the only signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// A disc.
    Disc,
    /// An open ring that pulses.
    RingPulsing,
    /// A filled diamond.
    Diamond,
    /// A question mark.
    Question,
    /// Three lines.
    Lines,
    /// A padlock.
    Padlock,
    /// A door.
    Door,
    /// A square.
    Square,
    /// An open diamond with a dot.
    OpenDiamond,
    /// A clock.
    Clock,
    /// A disc with two bars cut out.
    Pause,
    /// A disc with a cross cut out.
    Cross,
    /// A triangle with an exclamation mark.
    Triangle,
    /// A half-filled disc.
    HalfDisc,
    /// Two bars.
    TwoBars,
    /// A ring.
    Ring,
}

/// The one button of the status strip. A row has at most one (RT-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pill {
    /// Force a restart.
    Retry,
    /// Send "Please continue." as the person's own message.
    Continue,
}

impl Pill {
    /// The button's text, which is also its name.
    pub fn label(self) -> &'static str {
        match self {
            Pill::Retry => "Retry",
            Pill::Continue => "Continue",
        }
    }
}

/// What a row is, for a person. Each has a shape and a word of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowState {
    /// A turn is open, or a cut-off one is being brought back unseen.
    Running,
    /// Being launched.
    ComingBack,
    /// Finished its turn.
    YourTurn,
    /// Asked a question.
    Question,
    /// Presents a plan.
    PlanReady,
    /// A tool wants to run.
    Permission,
    /// Its account is signed out.
    SignIn,
    /// Stopped by the person.
    Stopped,
    /// Stopped mid-task.
    Stalled,
    /// The usage limit was reached.
    RateLimited,
    /// Waits for a time or a background task.
    Holding,
    /// The reply was cut off; the scan retries it and the hidden time is over.
    CutOffRetrying,
    /// The reply was cut off and recovery is switched off.
    CutOffRecoveryOff,
    /// Replays are used up.
    RecoveryFailed,
    /// It could not be launched.
    LaunchError,
    /// The API refused.
    ApiError,
    /// Suspended by a restart of the app.
    Suspended,
    /// Paused by the person.
    Paused,
    /// Ended.
    Ended,
    /// Archived or deleted.
    Gone,
}

impl RowState {
    /// The word in the shape's `data-state`.
    pub fn as_str(self) -> &'static str {
        match self {
            RowState::Running => "running",
            RowState::ComingBack => "starting",
            RowState::YourTurn => "needs_you",
            RowState::Question => "question",
            RowState::PlanReady => "plan_approval",
            RowState::Permission => "permission_request",
            RowState::SignIn => "auth_required",
            RowState::Stopped => "stopped",
            RowState::Stalled => "stalled",
            RowState::RateLimited => "rate_limited",
            RowState::Holding => "waiting",
            RowState::CutOffRetrying | RowState::CutOffRecoveryOff => "response_aborted",
            RowState::RecoveryFailed => "recovery_failed",
            RowState::LaunchError => "error",
            RowState::ApiError => "api_error",
            RowState::Suspended => "app_restart_suspended",
            RowState::Paused => "paused",
            RowState::Ended => "ended",
            RowState::Gone => "gone",
        }
    }
}

/// The second half of a row: what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The label says it all.
    None,
    /// At most [`words::REASON_MAX_CHARS`] characters, no full stop.
    Text(String),
    /// What the agent does.
    Activity(Activity),
}

/// The sentence of the status strip, beside the label and the pill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The sentence; empty when the label says it all.
    pub text: String,
}

/// All a person sees of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Where it stands.
    pub section: Section,
    /// Its tone.
    pub tone: Tone,
    /// Its shape.
    pub shape: Shape,
    /// What it is.
    pub state: RowState,
    /// Its word.
    pub label: &'static str,
    /// What it waits for.
    pub reason: Reason,
    /// The row's tooltip, if it says more than the label.
    pub row_tooltip: Option<String>,
    /// Since when: the time the row shows.
    pub since: Option<Wall>,
    /// The button of the strip, which `C` follows (RT-15).
    pub pill: Option<Pill>,
    /// The button's tooltip.
    pub pill_tooltip: Option<&'static str>,
    /// The status strip over the composer.
    pub strip: Option<Strip>,
    /// It waits for a person: it counts in the badge.
    pub needs_person: bool,
    /// A turn is open for the person: Stop is offered and a message is queued.
    pub turn_open: bool,
}

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
        words::reason(state, view)
    };
    let pill = pill_of(state);
    Attention {
        section,
        tone,
        shape,
        state,
        label,
        since: since(state, &reason, view),
        reason,
        row_tooltip: words::row_tooltip(state, view),
        pill: pill.map(|(pill, _)| pill),
        pill_tooltip: pill.map(|(_, tooltip)| tooltip),
        strip: pill.map(|_| Strip {
            text: words::strip(state, view),
        }),
        needs_person: section.needs_person(),
        turn_open: turn_open(state, row),
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
    let clock = hide_clock(&view.row, policy)?;
    let begins = Wall(
        clock
            .0
            .saturating_sub_unsigned(limits.hide_future_tolerance_ms),
    );
    let ends = clock.plus(limits.hide_max_ms);
    [begins, ends].into_iter().find(|at| *at > now.wall)
}

/// The number of sessions that wait for a person: badge, dock, poll and inbox alike (HD-18, NT-04).
pub fn badge_count<'a>(
    views: impl IntoIterator<Item = &'a RowView>,
    policy: &Policy,
    limits: &Limits,
    now: Now,
) -> usize {
    // rule: HD-18, NT-04
    views
        .into_iter()
        .filter(|view| attention(view, policy, limits, now).needs_person)
        .count()
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
    match row
        .pending
        .filter(|pending| is_legal(row.status, Some(*pending)))
    {
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
        Some(PendingAction::RecoveryFailed) => RowState::RecoveryFailed,
        Some(PendingAction::Question) => RowState::Question,
        Some(PendingAction::PlanApproval) => RowState::PlanReady,
        Some(PendingAction::PermissionRequest) => RowState::Permission,
        Some(PendingAction::AuthRequired) => RowState::SignIn,
        Some(PendingAction::ApiError) => RowState::ApiError,
        Some(PendingAction::Stopped) => RowState::Stopped,
        Some(PendingAction::AppRestartSuspended) => RowState::Suspended,
        Some(PendingAction::RateLimited) => RowState::RateLimited,
        None => match row.status {
            Status::Starting => match hide_clock(row, policy) {
                Some(clock) if !hide_expired(clock, limits, now) => RowState::Running,
                Some(_) | None => RowState::ComingBack,
            },
            Status::Running => RowState::Running,
            Status::Waiting => RowState::Holding,
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
    // rule: RF-03, RF-04, RF-05, UI-02, UI-03, UI-04, UI-05, UI-06, UI-07, UI-08, UI-09, UI-10, A-13
    match state {
        RowState::Running => (Section::Running, Tone::Green, Shape::Disc, "Running"),
        RowState::ComingBack => (
            Section::Running,
            Tone::Green,
            Shape::RingPulsing,
            "Coming back…",
        ),
        RowState::YourTurn => (Section::NeedsYou, Tone::Amber, Shape::Diamond, "Your turn"),
        RowState::Question => (Section::NeedsYou, Tone::Amber, Shape::Question, "Question"),
        RowState::PlanReady => (Section::NeedsYou, Tone::Amber, Shape::Lines, "Plan ready"),
        RowState::Permission => (Section::NeedsYou, Tone::Amber, Shape::Padlock, "Permission"),
        RowState::SignIn => (Section::NeedsYou, Tone::Amber, Shape::Door, "Sign in"),
        RowState::Stopped => (Section::NeedsYou, Tone::Amber, Shape::Square, "Stopped"),
        RowState::Stalled => (
            Section::NeedsYou,
            Tone::Orange,
            Shape::OpenDiamond,
            "Stalled?",
        ),
        RowState::RateLimited | RowState::Holding => {
            (Section::Running, Tone::Orange, Shape::Clock, "Waiting")
        }
        RowState::CutOffRetrying | RowState::CutOffRecoveryOff => {
            (Section::Interrupted, Tone::Red, Shape::Pause, "Paused")
        }
        RowState::RecoveryFailed => (
            Section::Interrupted,
            Tone::Red,
            Shape::Cross,
            "Recovery failed",
        ),
        RowState::LaunchError | RowState::ApiError => {
            (Section::Interrupted, Tone::Red, Shape::Triangle, "Error")
        }
        RowState::Suspended => (
            Section::Interrupted,
            Tone::Grey,
            Shape::HalfDisc,
            "Suspended",
        ),
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
        RowState::RecoveryFailed => Some((Pill::Retry, words::RETRY_STOPPED)),
        RowState::CutOffRetrying => Some((Pill::Retry, words::RETRY_GOES_ON)),
        RowState::CutOffRecoveryOff => Some((Pill::Retry, words::RETRY_RECOVERY_OFF)),
        RowState::LaunchError => Some((Pill::Retry, words::RETRY_LAUNCH)),
        RowState::ApiError => Some((Pill::Retry, words::RETRY_REQUEST)),
        RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::RateLimited
        | RowState::Holding
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended => Some((Pill::Continue, words::CONTINUE)),
        RowState::Running
        | RowState::ComingBack
        | RowState::YourTurn
        | RowState::Question
        | RowState::PlanReady
        | RowState::Permission
        | RowState::Gone => None,
    }
}

/// The time a row shows: of an activity that has a name since it began, of plain work since the
/// turn began, of everything else since the state was entered.
fn since(state: RowState, reason: &Reason, view: &RowView) -> Option<Wall> {
    match state {
        RowState::Running => match reason {
            Reason::Activity(Activity::Working) | Reason::None | Reason::Text(_) => {
                let row = &view.row;
                let turn = row.turn.as_ref().map(|turn| turn.since);
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
        RowState::ComingBack | RowState::Gone => None,
        RowState::YourTurn
        | RowState::Question
        | RowState::PlanReady
        | RowState::Permission
        | RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::RateLimited
        | RowState::Holding
        | RowState::CutOffRetrying
        | RowState::CutOffRecoveryOff
        | RowState::RecoveryFailed
        | RowState::LaunchError
        | RowState::ApiError
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended => Some(view.row.status_changed_at),
    }
}

/// Whether a turn is open for the person. A card may stand within an open turn or after it.
fn turn_open(state: RowState, row: &SessionRow) -> bool {
    match state {
        RowState::Running | RowState::ComingBack => true,
        RowState::Question | RowState::PlanReady | RowState::Permission => {
            row.status == Status::Running
        }
        RowState::YourTurn
        | RowState::SignIn
        | RowState::Stopped
        | RowState::Stalled
        | RowState::RateLimited
        | RowState::Holding
        | RowState::CutOffRetrying
        | RowState::CutOffRecoveryOff
        | RowState::RecoveryFailed
        | RowState::LaunchError
        | RowState::ApiError
        | RowState::Suspended
        | RowState::Paused
        | RowState::Ended
        | RowState::Gone => false,
    }
}
