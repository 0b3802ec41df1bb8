//! The closed vocabulary of a row: status, pending action, and the reasons beside them.

use serde::{Deserialize, Serialize};

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The stored word.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// Reads the stored word; `None` for any other.
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

named_enum! {
    /// Status of a session (DB-01).
    Status {
        /// Being launched or relaunched.
        Starting = "starting",
        /// A turn is open.
        Running = "running",
        /// Waits for a time or a background task.
        Waiting = "waiting",
        /// Waits for the person.
        NeedsYou = "needs_you",
        /// Something failed.
        Error = "error",
        /// Stopped mid-task.
        Stalled = "stalled",
        /// Paused by the person or by an app restart.
        Paused = "paused",
        /// Ended by the person.
        Ended = "ended",
        /// Out of every list.
        Archived = "archived",
    }
}

named_enum! {
    /// What a session waits for, beside its status (DB-02). `None` is the contract's null.
    PendingAction {
        /// The agent asked a question.
        Question = "question",
        /// The agent presents a plan.
        PlanApproval = "plan_approval",
        /// A tool waits for permission.
        PermissionRequest = "permission_request",
        /// The account must sign in.
        AuthRequired = "auth_required",
        /// The API refused in a way that no retry mends by itself.
        ApiError = "api_error",
        /// Stopped by the person.
        Stopped = "stopped",
        /// Suspended by a restart of the app.
        AppRestartSuspended = "app_restart_suspended",
        /// The usage limit was reached.
        RateLimited = "rate_limited",
        /// The reply was cut off; the scan replays it.
        ResponseAborted = "response_aborted",
        /// Replays are used up.
        RecoveryFailed = "recovery_failed",
    }
}

impl PendingAction {
    /// Whether the action asks something of a person that no automatic actor may overwrite (AB-07).
    pub fn is_user_facing(self) -> bool {
        match self {
            PendingAction::Question
            | PendingAction::PlanApproval
            | PendingAction::PermissionRequest
            | PendingAction::AuthRequired
            | PendingAction::ApiError
            | PendingAction::Stopped => true,
            PendingAction::AppRestartSuspended
            | PendingAction::RateLimited
            | PendingAction::ResponseAborted
            | PendingAction::RecoveryFailed => false,
        }
    }

    /// Whether an open card stands behind the action.
    pub fn is_card(self) -> bool {
        match self {
            PendingAction::Question
            | PendingAction::PlanApproval
            | PendingAction::PermissionRequest => true,
            PendingAction::AuthRequired
            | PendingAction::ApiError
            | PendingAction::Stopped
            | PendingAction::AppRestartSuspended
            | PendingAction::RateLimited
            | PendingAction::ResponseAborted
            | PendingAction::RecoveryFailed => false,
        }
    }
}

/// Whether a status and a pending action may stand together (contract 5.1).
pub fn is_legal(status: Status, pending: Option<PendingAction>) -> bool {
    use PendingAction as P;
    use Status as S;
    let Some(pending) = pending else { return true };
    if status == S::Archived {
        return true;
    }
    match pending {
        P::Question | P::PlanApproval | P::PermissionRequest => {
            matches!(status, S::Running | S::NeedsYou)
        }
        P::AuthRequired | P::ApiError | P::ResponseAborted => {
            matches!(status, S::NeedsYou | S::Error)
        }
        P::Stopped => matches!(status, S::NeedsYou | S::Paused),
        P::AppRestartSuspended => status == S::Paused,
        P::RateLimited => status == S::Waiting,
        P::RecoveryFailed => {
            matches!(status, S::Starting | S::Running | S::NeedsYou | S::Error | S::Stalled)
        }
    }
}

named_enum! {
    /// Why no automatic retry will come for a `recovery_failed` row (DB-08).
    StopReason {
        /// The re-arm ladder reached its hard cap.
        HardCap = "hard_cap",
        /// Out of credit.
        Billing = "known_terminal:billing",
        /// The API key is invalid.
        InvalidKey = "known_terminal:invalid_key",
        /// There is no message to replay.
        NothingToReplay = "nothing_to_replay",
    }
}

named_enum! {
    /// Why a session was archived.
    ArchiveReason {
        /// By the person.
        User = "user",
        /// The agent signed off.
        AgentSignoff = "agent_signoff",
        /// A worker that never started.
        OrphanPreinit = "orphan-preinit",
        /// The same, from a stalled row.
        RecoveryTerminal = "recovery_terminal",
    }
}

named_enum! {
    /// Why a turn that died is over (AB-01..AB-03).
    AbortCause {
        /// The child exited without a result.
        ProcessExit = "process_exit",
        /// The output ended while the child lives.
        StreamEnd = "stream_end",
        /// Silence beyond the limit of its phase.
        StallTimeout = "stall_timeout",
        /// Start-up without real output beyond the ceiling.
        StartupCeiling = "startup_ceiling",
        /// The CLI reported a transient API failure.
        ApiFailure = "api_failure",
        /// The turn was interrupted by somebody else.
        ForeignInterrupt = "foreign_interrupt",
        /// The turn ended without any visible content.
        EmptyTurn = "empty_turn",
        /// The CLI no longer has the conversation.
        ConversationGone = "conversation_gone",
        /// A message could not be written to the child.
        WriteFailed = "write_failed",
    }
}
