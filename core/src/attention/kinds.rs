//! The vocabulary of [`super::attention`]: sections, tones, shapes, pills, states. Values only; no
//! rule is here.

use crate::ipc::Activity;
use crate::time::Wall;
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
    pub const LISTED: [Section; 4] =
        [Section::Interrupted, Section::NeedsYou, Section::Running, Section::Other];

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
    /// Its context stays full and nothing continues it: a fresh session may be needed.
    ContextGivenUp,
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
    /// The day's replays are used up; the re-arm ladder retries.
    RecoveryFailed,
    /// Nothing retries it any more.
    RecoveryStopped,
    /// Replays are used up and recovery is switched off.
    RecoveryFailedOff,
    /// It could not be launched.
    LaunchError,
    /// No launch has succeeded for long; it goes on being tried.
    CannotLaunch,
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
            RowState::YourTurn | RowState::ContextGivenUp => "needs_you",
            RowState::Question => "question",
            RowState::PlanReady => "plan_approval",
            RowState::Permission => "permission_request",
            RowState::SignIn => "auth_required",
            RowState::Stopped => "stopped",
            RowState::Stalled => "stalled",
            RowState::RateLimited => "rate_limited",
            RowState::Holding => "waiting",
            RowState::CutOffRetrying | RowState::CutOffRecoveryOff => "response_aborted",
            RowState::RecoveryFailed | RowState::RecoveryStopped | RowState::RecoveryFailedOff => {
                "recovery_failed"
            }
            RowState::LaunchError => "error",
            RowState::CannotLaunch => "cannot_launch",
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
    /// At most 40 characters, no full stop.
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
    /// When the usage limit that it waits for resets, if known. The window formats it.
    pub until: Option<Wall>,
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
