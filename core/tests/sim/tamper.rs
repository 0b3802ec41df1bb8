//! How a planted bug changes what a step writes: the rows of the reducer on their way into the store.
//! Without a bug nothing is touched.

use crate::bugs::Bug;
use crate::store::Store;
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::message::{LineText, Origin};
use omniscio_core::prompt;
use omniscio_core::session::{ArchiveReason, PendingAction, SessionRow, Status};
use omniscio_core::settings::Policy;
use omniscio_core::supervisor::{Act, Step, Write};
use omniscio_core::time::Day;
use omniscio_core::verdict::Actor;
use omniscio_core::waiting::DeferredWork;

/// Changes what a step writes. Names the sessions whose rows the reducer must be told of.
pub(crate) fn tamper(
    bug: Option<Bug>,
    step: &mut Step,
    policy: &Policy,
    store: &Store,
) -> Vec<SessionId> {
    let Some(bug) = bug else { return Vec::new() };
    let changed = match bug {
        Bug::RungUnderHold => held_rung(step, store),
        Bug::PromotionUnderLoad => promoted_under_load(step, store),
        Bug::HiccupRed => hiccup_red(step, store),
        Bug::StampGated
        | Bug::ConcludedTwice
        | Bug::ValveCharges
        | Bug::ReentryHides
        | Bug::HideClockRestarts
        | Bug::WaitCalls
        | Bug::OrphanWithContent => {
            (0..step.writes.len()).find_map(|at| tamper_write(bug, step, at, (policy, store)))
        }
        Bug::ToldTwice => {
            told_twice(step);
            None
        }
        Bug::WakeKept
        | Bug::NoDebounce
        | Bug::ClaudeCompacted
        | Bug::FourthNudge
        | Bug::FourthContinue
        | Bug::NeverCompacted
        | Bug::AnswerUnread
        | Bug::DebounceInMemory
        | Bug::NoCap
        | Bug::ActBeforeSave
        | Bug::NoReset
        | Bug::DeliveredStamped
        | Bug::HeldResumed
        | Bug::SleepCounts
        | Bug::SwitchUnread
        | Bug::CapOffByOne
        | Bug::LastingRetried
        | Bug::VanishedUnseen
        | Bug::FifthSlot
        | Bug::EveryFifthTold
        | Bug::BackoffAnew
        | Bug::LastComeFirst
        | Bug::CancelledLaunched
        | Bug::StopForgotten
        | Bug::RelaunchSwitchUnread
        | Bug::RoomUnread
        | Bug::NoGap
        | Bug::ToldTooSoon
        | Bug::ValveUnpaced => None,
    };
    changed.into_iter().collect()
}

/// One write of a step, if the bug changes it.
fn tamper_write(
    bug: Bug,
    step: &mut Step,
    at: usize,
    (policy, store): (&Policy, &Store),
) -> Option<SessionId> {
    let Write::Row { before, after, actor, reason } = &step.writes[at] else { return None };
    let id = after.id;
    let failed = |row: &SessionRow| row.pending == Some(PendingAction::RecoveryFailed);
    let was_failed = before.as_ref().is_some_and(|before| failed(before));
    let silent = before.as_ref().and_then(|before| before.turn.as_ref()).is_some_and(|turn| {
        turn.replay.is_some_and(|source| source.is_automatic()) && !turn.real_output
    });
    let began = before.as_ref().map(|before| before.status_changed_at);
    let stamped = after.pending == Some(PendingAction::ResponseAborted);
    let by_abort = *actor == Actor::Abort;
    if bug == Bug::StampGated && stamped && !policy.aborted_response_recovery() {
        rewrite(step, at, id, |row| row.pending = None);
    } else if bug == Bug::ConcludedTwice && finished(step, at) {
        concluded_again(step, at, store);
    } else if bug == Bug::ValveCharges && reason == "hide clock kept" && !charged(step) {
        rewrite(step, at, id, |row| row.retry_attempts += 1);
    } else if bug == Bug::ReentryHides && by_abort && was_failed && failed(after) {
        rewrite(step, at, id, |row| row.pending = Some(PendingAction::ResponseAborted));
    } else if bug == Bug::WaitCalls && reason == "finished" && after.status == Status::Waiting {
        rewrite(step, at, id, |row| {
            if row.status == Status::Waiting {
                row.status = Status::NeedsYou;
            }
        });
    } else if bug == Bug::HideClockRestarts && by_abort && stamped && silent {
        let began = began?;
        rewrite(step, at, id, |row| row.status_changed_at = began);
    } else if bug == Bug::OrphanWithContent && failed(after) && !was_failed {
        let before = now_of(step, store, id)?;
        let mut after = before.clone();
        after.status = Status::Archived;
        after.archive_reason = Some(ArchiveReason::OrphanPreinit);
        push(step, before, after, (Actor::App, "orphan-preinit"));
    } else {
        return None;
    }
    Some(id)
}

/// Whether the write ends a turn well and nothing goes on in the same step.
fn finished(step: &Step, at: usize) -> bool {
    let Write::Row { after, reason, .. } = &step.writes[at] else { return false };
    // the queue may go on in the same step: then the turn is not the last one
    let last = step.writes[at..].iter().all(|write| match write {
        Write::Row { after: other, .. } => other.id != after.id || other.status == Status::NeedsYou,
        Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => true,
    });
    reason == "finished" && after.delivered && after.pending.is_none() && last
}

fn concluded_again(step: &mut Step, at: usize, store: &Store) {
    let Write::Row { after, .. } = &step.writes[at] else { return };
    let id = after.id;
    let Some(before) = now_of(step, store, id) else { return };
    let mut again = before.clone();
    again.status = Status::Error;
    again.pending = Some(PendingAction::ResponseAborted);
    push(step, before, again, (Actor::Abort, "process_exit"));
}

/// The note of a give-up stands twice.
fn told_twice(step: &mut Step) {
    let gives_up = |write: &&Write| match write {
        Write::Block { block, .. } => {
            matches!(&block.kind, BlockKind::Note { text } if text == prompt::NOTE_FRESH_SESSION)
        }
        Write::Row { .. } | Write::Message(_) | Write::MessageState { .. } | Write::Settings(_) => {
            false
        }
    };
    let again = step.writes.iter().find(gives_up).cloned();
    step.writes.extend(again);
}

/// Another line than the one that the reducer wants written.
pub(crate) fn miswritten(bug: Option<Bug>, act: &mut Act) {
    let Act::Write { line, .. } = act else { return };
    let (origin, text) = match (bug, line.origin) {
        (Some(Bug::ClaudeCompacted), Origin::AutoNudge) => {
            (Origin::AutoCommand, prompt::COMPACT_COMMAND)
        }
        (Some(Bug::NeverCompacted), Origin::AutoCommand) => {
            (Origin::AutoNudge, prompt::PLEASE_CONTINUE)
        }
        _ => return,
    };
    (line.origin, line.text) = (origin, LineText::Own(text.into()));
}

fn charged(step: &Step) -> bool {
    step.writes.iter().any(|write| match write {
        Write::Row { reason, .. } => reason == "attempt charged",
        Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => false,
    })
}

/// A rung is held, and taken.
fn held_rung(step: &mut Step, store: &Store) -> Option<SessionId> {
    let id = said(step, "re-arm: wait: ")?;
    let before = now_of(step, store, id).filter(|row| row.status != Status::Starting)?;
    let mut after = before.clone();
    after.ladder.rungs += 1;
    push(step, before, after, (Actor::ReArm, "rung taken"));
    Some(id)
}

/// A launch that failed for a moment is an error.
fn hiccup_red(step: &mut Step, store: &Store) -> Option<SessionId> {
    let id = said(step, "relaunch: wait: launch")?;
    // not for a look that failed
    let refused = |act: &Act| {
        if let Act::Log { text, .. } = act { text.contains("could not be started") } else { false }
    };
    if !step.acts.iter().any(refused) {
        return None;
    }
    let before = now_of(step, store, id)?;
    let mut after = before.clone();
    (after.status, after.pending) = (Status::Error, None);
    push(step, before, after, (Actor::Relaunch, "launch failed"));
    Some(id)
}

/// A used-up row that load defers is given up.
fn promoted_under_load(step: &mut Step, store: &Store) -> Option<SessionId> {
    let id = said(step, "response-aborted: wait: MachineBusy")?;
    let before = now_of(step, store, id).filter(|row| row.in_shape() && row.retry_attempts >= 2)?;
    let mut after = before.clone();
    after.pending = Some(PendingAction::RecoveryFailed);
    push(step, before, after, (Actor::AbortedScan, "recovery failed"));
    Some(id)
}

/// Of whom the log says this.
fn said(step: &Step, words: &str) -> Option<SessionId> {
    step.acts.iter().find_map(|act| {
        if let Act::Log { session, text } = act
            && text.starts_with(words)
        {
            return *session;
        }
        None
    })
}

/// The row as it is after the step.
fn now_of(step: &Step, store: &Store, id: SessionId) -> Option<Box<SessionRow>> {
    let written = step.writes.iter().rev().find_map(|write| match write {
        Write::Row { after, .. } => Some(after).filter(|after| after.id == id),
        Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => None,
    });
    written.cloned().or_else(|| store.rows.get(&id).cloned().map(Box::new))
}

fn push(
    step: &mut Step,
    before: Box<SessionRow>,
    after: Box<SessionRow>,
    (actor, reason): (Actor, &str),
) {
    let (before, reason) = (Some(before), reason.to_string());
    step.writes.push(Write::Row { before, after, actor, reason });
}

/// The reset of the budget that a message brings stays in memory: what the store had, by session.
pub(crate) fn unstored_resets(writes: &[Write]) -> Vec<(SessionId, (u8, Option<Day>))> {
    let lost = |write: &Write| match write {
        Write::Row { before: Some(before), after, reason, .. } => {
            let reset = reason == "message written" && before.retry_attempts > 0;
            reset.then_some((after.id, (before.retry_attempts, before.retry_day)))
        }
        Write::Row { before: None, .. }
        | Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => None,
    };
    writes.iter().filter_map(lost).collect()
}

/// The wake-ups that fired: what the rows waited for before that, by session.
pub(crate) fn fired_wakes(writes: &[Write]) -> Vec<(SessionId, Option<DeferredWork>)> {
    let fired = |write: &Write| match write {
        Write::Row { before: Some(before), after, reason, .. } => {
            (reason == "wake-up fired").then(|| (after.id, before.deferred_work.clone()))
        }
        Write::Row { before: None, .. }
        | Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => None,
    };
    writes.iter().filter_map(fired).collect()
}

/// Changes the row of one write, and the same row in every later one.
fn rewrite(step: &mut Step, from: usize, id: SessionId, change: impl Fn(&mut SessionRow)) {
    for (at, write) in step.writes.iter_mut().enumerate().skip(from) {
        if let Write::Row { before, after, .. } = write
            && after.id == id
        {
            if let Some(before) = before.as_mut().filter(|_| at > from) {
                change(before);
            }
            change(after);
        }
    }
}

/// What the person stopped is found as running: the stop was never stored.
pub(crate) fn forget_stops(store: &mut Store) -> Vec<SessionRow> {
    let stopped = |row: &&mut SessionRow| {
        row.status == Status::NeedsYou && row.pending == Some(PendingAction::Stopped)
    };
    let mut forgotten = Vec::new();
    for row in store.rows.values_mut().filter(stopped) {
        (row.status, row.pending, row.intent_running) = (Status::Running, None, true);
        (row.delivered, row.replay.answered, row.replay.stopped) = (false, false, false);
        forgotten.push(row.clone());
    }
    forgotten
}

/// Those whom the person takes back in this step.
pub(crate) fn taken_back(writes: &[Write]) -> Vec<SessionId> {
    let taken = |write: &Write| match write {
        Write::Row { before: Some(before), after, actor: Actor::User, .. } => {
            let stopped = after.pending == Some(PendingAction::Stopped) || after.is_gone();
            (before.status == Status::Starting && stopped).then_some(after.id)
        }
        Write::Row { .. }
        | Write::Message(_)
        | Write::MessageState { .. }
        | Write::Block { .. }
        | Write::Settings(_) => None,
    };
    writes.iter().filter_map(taken).collect()
}
