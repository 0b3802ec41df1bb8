//! Where a row belongs after a start of the app, by how a dead one left it. Written from the contract
//! (CR-01, CR-02, A-15, A-31 and section 5.1), not from the code that it tests.

use super::look::Look;
use super::record::Record;
use omniscio_core::id::SessionId;
use omniscio_core::session::{PendingAction, SessionRow, Status};

/// What the start of the app makes of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays as it is, and nothing is sent.
    AsItWas,
    /// Its question stands and waits for the person.
    Card,
    /// The person had stopped it: nothing is sent before they say so.
    Suspended,
    /// Its answer stands.
    Settled,
    /// It is resumed.
    Back,
    /// It is given up and red; its ladder goes on.
    Red,
    /// It was cut off before: the scan brings it back.
    Stamped,
}

impl Fate {
    pub(super) fn of(row: &SessionRow, queued: bool) -> Fate {
        use PendingAction as P;
        if row.deleted_at.is_some() {
            return Fate::AsItWas;
        }
        match (row.status, row.pending) {
            (Status::Archived | Status::Ended | Status::Paused | Status::Waiting, _) => {
                Fate::AsItWas
            }
            (_, Some(P::Question | P::PlanApproval | P::PermissionRequest)) => Fate::Card,
            (_, Some(P::RecoveryFailed)) if row.stop_reason.is_some() => Fate::AsItWas,
            (_, Some(P::RecoveryFailed)) => Fate::Red,
            (_, Some(P::ResponseAborted)) => Fate::Stamped,
            (Status::NeedsYou | Status::Error | Status::Stalled, _) => Fate::AsItWas,
            (Status::Starting | Status::Running, _) if !row.intent_running => Fate::Suspended,
            (Status::Starting | Status::Running, _) => {
                let answered = row.delivered && row.replay.answered;
                if answered && !queued { Fate::Settled } else { Fate::Back }
            }
        }
    }

    /// Whether the app sends nothing by itself.
    pub(super) fn is_silent(self) -> bool {
        match self {
            Fate::AsItWas | Fate::Card | Fate::Suspended | Fate::Settled => true,
            Fate::Back | Fate::Red | Fate::Stamped => false,
        }
    }

    /// Whether the session is where it belongs; the words say what is not so.
    pub(super) fn holds(
        self,
        session: SessionId,
        was: &Look,
        is: &Look,
        record: &Record,
    ) -> Result<(), String> {
        let (before, after) = (&was.rows[&session], &is.rows[&session]);
        let heard = record.heard(session).count();
        let (state, closed) = ((after.status, after.pending), after.turn.is_none());
        let resumed = is.restarts_of(session, Some("crash-resume"));
        let right = match self {
            Fate::AsItWas => *after == at_rest(before),
            Fate::Card => {
                let asked = |row: &SessionRow| row.card.as_ref().map(|card| card.request.clone());
                closed
                    && state == (Status::NeedsYou, before.pending)
                    && asked(after) == asked(before)
                    && after.card.as_ref().is_some_and(|card| card.orphaned)
            }
            Fate::Suspended => {
                closed && state == (Status::Paused, Some(PendingAction::AppRestartSuspended))
            }
            Fate::Settled => closed && state == (Status::NeedsYou, None),
            Fate::Back => heard > 0 && after.status != Status::Starting && resumed == 1,
            Fate::Red | Fate::Stamped => resumed == 0,
        };
        let queue = |look: &Look| look.queue(session).map(|mail| mail.id).collect::<Vec<_>>();
        let quiet = heard == 0 && resumed == 0 && queue(was) == queue(is);
        let quiet = quiet || !self.is_silent();
        if right && quiet {
            return Ok(());
        }
        Err(format!(
            "{session}, left {:?} {:?}, {self:?}: is {state:?}, {heard} lines, {resumed} resumed",
            before.status, before.pending
        ))
    }
}

/// The row without what lives only as long as the app; nobody touches a deleted one.
fn at_rest(row: &SessionRow) -> SessionRow {
    if row.deleted_at.is_some() {
        return row.clone();
    }
    let mut row = SessionRow { turn: None, child: None, ..row.clone() };
    if let Some(card) = &mut row.card {
        card.orphaned = true;
    }
    row
}

/// The names of the states that a dead app left a row in.
pub(super) fn places(row: &SessionRow, look: &Look) -> Vec<&'static str> {
    if row.deleted_at.is_some() {
        return vec!["deleted"];
    }
    let pending = row.pending.map_or("", PendingAction::as_str);
    let state = match (row.status, row.pending) {
        (Status::Running, None) if !row.intent_running => "stop under way",
        (Status::Running, None) if row.replay.tool_started() => "mid-tool",
        (Status::Running, None) if row.turn.as_ref().is_some_and(|turn| turn.real_output) => {
            "mid-text"
        }
        (Status::Running, None) => "turn without output",
        (Status::Starting, None) if look.relaunching.contains(&row.id) => "relaunch wait",
        (Status::Starting, None) => "starting",
        (Status::NeedsYou, None) => "your turn",
        (Status::Starting | Status::Running, Some(PendingAction::RecoveryFailed)) => {
            "rung in flight"
        }
        (Status::Archived | Status::Ended | Status::Error, None) => row.status.as_str(),
        (Status::Archived, Some(_)) => "archived",
        (
            Status::Starting
            | Status::Running
            | Status::Waiting
            | Status::NeedsYou
            | Status::Error
            | Status::Stalled
            | Status::Paused
            | Status::Ended,
            _,
        ) => pending,
    };
    let mut names = vec![state];
    if look.queue(row.id).next().is_some()
        && matches!(row.status, Status::Running | Status::Starting)
    {
        names.push("queue waits");
    }
    names
}

/// The states that must have been killed in before a run is over.
pub(super) const PLACES: [&str; 19] = [
    "mid-text",
    "mid-tool",
    "turn without output",
    "starting",
    "relaunch wait",
    "question",
    "permission_request",
    "plan_approval",
    "rate_limited",
    "response_aborted",
    "recovery_failed",
    "api_error",
    "auth_required",
    "stopped",
    "stop under way",
    "app_restart_suspended",
    "ended",
    "archived",
    "queue waits",
];
