//! The words of a row: reason, tooltips, the strip's sentence. Contract texts stand here byte for
//! byte; nothing here decides a state.

use super::{Reason, RowState};
use crate::card::Card;
use crate::ipc::{Activity, RowView};
use crate::prompt;
use crate::session::{Holder, SessionRow, Status, StopReason};
use crate::time::Wall;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::Value;

/// A reason is at most this long.
pub(super) const REASON_MAX_CHARS: usize = 40;

/// RT-09.
pub(super) const RETRY_GOES_ON: &str =
    "Auto-recovery keeps retrying in the background — Retry tries again immediately.";
/// RT-10.
pub(super) const RETRY_STOPPED: &str =
    "Auto-retry stopped after repeated failures — Retry resets the limit and tries again now.";
/// OD-20.
pub(super) const RETRY_RECOVERY_OFF: &str = "Auto-recovery is off — Retry tries again now.";
/// OD-63.
pub(super) const RETRY_LAUNCH: &str = "Launch failed — Retry tries again now.";
///
pub(super) const RETRY_CANNOT_LAUNCH: &str =
    "It keeps being relaunched in the background — Retry tries again immediately.";
///
pub(super) const RETRY_REQUEST: &str = "Request failed — Retry sends it again now.";
/// What Continue does.
pub(super) const CONTINUE: &str = "Sends “Please continue.”";

impl Activity {
    /// The activity in words: the command in its own words, else a verb.
    pub fn words(&self) -> String {
        match self {
            Activity::Working => "working".into(),
            Activity::Thinking => "thinking".into(),
            Activity::Tool(what) => short(what),
            Activity::SubAgents(1) => "1 sub-agent".into(),
            Activity::SubAgents(n) => format!("{n} sub-agents"),
            Activity::Compacting => "compacting".into(),
            Activity::Retrying { attempt, max } => format!("API is busy, try {attempt} of {max}"),
        }
    }
}

impl Reason {
    /// The reason in words; `None` when the label says it all.
    pub fn words(&self) -> Option<String> {
        match self {
            Reason::None => None,
            Reason::Text(text) => Some(text.clone()),
            Reason::Activity(activity) => Some(activity.words()),
        }
    }
}

/// The reason of a state. States that a later engine will bring back say that nothing does yet.
pub(super) fn reason(state: RowState, view: &RowView, now: Wall) -> Reason {
    let row = &view.row;
    let fixed = |text: &str| Reason::Text(text.into());
    match state {
        RowState::Running => Reason::Activity(view.live.activity.clone()),
        RowState::YourTurn => said(your_turn(row)),
        RowState::ContextGivenUp => fixed(prompt::MAY_NEED_FRESH_SESSION),
        RowState::Question => said(row.card.as_ref().and_then(question)),
        RowState::PlanReady => said(row.card.as_ref().and_then(plan)),
        RowState::Permission => said(row.card.as_ref().map(permission)),
        RowState::SignIn => fixed("nothing retries it yet"),
        RowState::Stopped => fixed("by you"),
        RowState::Stalled if lost_task(row) => fixed(prompt::TASK_LOST),
        RowState::Stalled => fixed("stopped mid-task"),
        RowState::RateLimited => fixed("no auto-resume yet"),
        RowState::Holding => awaited(row).map_or(Reason::None, |what| fixed(&what)),
        RowState::CutOffRetrying => match hindrance(view) {
            Some(Hindrance::Held(_)) => fixed("open in another program"),
            Some(Hindrance::Folder) => fixed("waits for its folder"),
            Some(Hindrance::Check) => fixed("waits for a check"),
            None => fixed("reply was cut off; retrying"),
        },
        RowState::CutOffRecoveryOff => fixed("reply was cut off; auto-recovery is off"),
        RowState::RecoveryFailed => Reason::Text(next_try(view, now)),
        RowState::RecoveryStopped => fixed("auto-retry stopped"),
        RowState::RecoveryFailedOff => fixed("auto-recovery is off"),
        RowState::LaunchError => said(Some(shortest(row.words.clone()))),
        RowState::CannotLaunch => said(Some(shortest(launch_words(view)))),
        RowState::ApiError => said(row.words.clone().or(Some("the request was refused".into()))),
        RowState::Suspended => fixed("by an app restart"),
        RowState::ComingBack => view.live.place.map_or(Reason::None, |at| fixed(&in_line(at))),
        RowState::Paused | RowState::Ended | RowState::Gone => Reason::None,
    }
}

/// The tooltip of a row; whole words where the reason is cut.
pub(super) fn row_tooltip(state: RowState, view: &RowView, now: Wall) -> Option<String> {
    let row = &view.row;
    let fixed = match state {
        RowState::Running => "Working",
        RowState::ComingBack => {
            return Some(launching(view));
        }
        RowState::YourTurn if row.delivered => "Finished; your turn",
        RowState::YourTurn => return Some(row.words.clone().unwrap_or("Your turn".into())),
        RowState::ContextGivenUp => {
            let words = row.words.clone();
            return Some(capital(words.unwrap_or(prompt::MAY_NEED_FRESH_SESSION.into())));
        }
        RowState::Question | RowState::PlanReady | RowState::Permission => {
            return reason(state, view, now).words();
        }
        RowState::SignIn => return Some(with_words("Signed out; nothing retries it yet", row)),
        RowState::Stopped => "Stopped by you",
        RowState::Stalled if lost_task(row) => return Some(capital(prompt::TASK_LOST.into())),
        RowState::Stalled => "Stopped mid-task",
        RowState::RateLimited => {
            return Some(with_words("Usage limit reached; nothing resumes it yet", row));
        }
        RowState::Holding => {
            let what = awaited(row).map(|what| format!(" {what}"));
            return Some(format!("Agent is waiting{}", what.unwrap_or_default()));
        }
        RowState::CutOffRetrying => {
            return Some(hindered_or("Reply was cut off", "retrying", view));
        }
        RowState::CutOffRecoveryOff => "Reply was cut off; auto-recovery is off",
        RowState::RecoveryFailed => {
            let otherwise = "retrying in the background";
            return Some(hindered_or("Could not finish a reply", otherwise, view));
        }
        RowState::RecoveryStopped => "Could not finish a reply; auto-retry stopped",
        RowState::RecoveryFailedOff => "Could not finish a reply; auto-recovery is off",
        RowState::LaunchError => {
            return Some(row.words.clone().unwrap_or("It could not be launched".into()));
        }
        RowState::CannotLaunch => {
            let relaunch = view.live.relaunch.as_ref();
            let attempt = relaunch.map(|relaunch| format!("attempt {}", relaunch.attempts));
            let tries = attempt.into_iter().chain(next_launch(view, now, "next"));
            return Some(followed(launch_words(view), tries.collect()));
        }
        RowState::ApiError => {
            return Some(row.words.clone().unwrap_or("The request was refused".into()));
        }
        RowState::Suspended => "Suspended by an app restart",
        RowState::Paused | RowState::Ended | RowState::Gone => return None,
    };
    Some(fixed.into())
}

/// The strip's sentence: the tooltip as a sentence, with the cause where one is known.
pub(super) fn strip(state: RowState, view: &RowView, now: Wall) -> String {
    match state {
        RowState::RecoveryFailed => {
            let tooltip = row_tooltip(state, view, now).unwrap_or_default();
            if hindrance(view).is_some() {
                return sentence_of(&tooltip);
            }
            let next = capital(next_try(view, now));
            format!("{} {}", sentence_of(&tooltip), sentence_of(&next))
        }
        RowState::RecoveryStopped => {
            let sentence = "Could not finish a reply; auto-retry stopped";
            match view.row.stop_reason {
                Some(StopReason::Billing | StopReason::InvalidKey) => {
                    sentence_of(&with_words(sentence, &view.row))
                }
                Some(StopReason::NothingToReplay) => {
                    "There is no message to send again; auto-retry stopped.".into()
                }
                Some(StopReason::HardCap) | None => sentence_of(sentence),
            }
        }
        RowState::CannotLaunch => {
            let next = next_launch(view, now, "next try").into_iter().collect();
            sentence_of(&followed(launch_words(view), next))
        }
        // the label holds the first half
        RowState::Suspended => "By an app restart.".into(),
        RowState::Paused
        | RowState::Ended
        | RowState::Running
        | RowState::ComingBack
        | RowState::YourTurn
        | RowState::ContextGivenUp
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
        | RowState::RecoveryFailedOff
        | RowState::LaunchError
        | RowState::ApiError
        | RowState::Gone => {
            row_tooltip(state, view, now).map(|text| sentence_of(&text)).unwrap_or_default()
        }
    }
}

/// The row is stalled because what it waited for is gone with the CLI.
fn lost_task(row: &SessionRow) -> bool {
    row.words.as_deref() == Some(prompt::TASK_LOST)
}

/// What a waiting row waits for, in words; a time has none here: the window formats it.
fn awaited(row: &SessionRow) -> Option<String> {
    let tasks = row.deferred_work.as_ref().map(|work| work.tasks.as_slice()).unwrap_or_default();
    match tasks {
        [] => None,
        [task] if task.name.is_empty() => Some("until its background task ends".into()),
        [task] => Some(format!("until {} ends", task.name)),
        tasks => Some(format!("until {} tasks end", tasks.len())),
    }
}

/// Why no launch succeeds, in the system's words.
fn launch_words(view: &RowView) -> Option<String> {
    let said = view.live.relaunch.as_ref().map(|relaunch| relaunch.words.clone());
    said.or_else(|| view.row.words.clone())
}

/// When the next launch is due, or what it waits for.
fn next_launch(view: &RowView, now: Wall, ahead: &str) -> Option<String> {
    // rule: A-14
    if let Some(place) = view.live.place {
        return Some(in_line(place));
    }
    Some(match view.live.relaunch.as_ref()?.next.map(|next| next.since(now)) {
        Some(left @ 1..) => format!("{ahead} in {} s", (left + SECOND_MS - 1) / SECOND_MS),
        Some(_) | None => "trying again now".into(),
    })
}

/// What a session that is being launched waits for, as a tooltip.
fn launching(view: &RowView) -> String {
    match (view.live.place, &view.live.relaunch) {
        (Some(place), _) => capital(in_line(place)),
        (None, Some(relaunch)) => {
            format!("Launching; the machine looks busy, attempt {}", relaunch.attempts)
        }
        (None, None) => "Launching".into(),
    }
}

fn in_line(place: u32) -> String {
    format!("starting soon, {} in line", ordinal(place))
}

fn ordinal(n: u32) -> String {
    let ending = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// One second of a countdown.
const SECOND_MS: i64 = 1_000;
/// One minute of a countdown.
const MINUTE_MS: i64 = 60_000;

/// When the ladder tries next, or what it waits for.
fn next_try(view: &RowView, now: Wall) -> String {
    let row = &view.row;
    if matches!(row.status, Status::Starting | Status::Running) || view.live.restart_under_way {
        return "trying again now".into();
    }
    match hindrance(view) {
        Some(Hindrance::Folder) => return "waits for its folder".into(),
        Some(Hindrance::Held(_)) => return "open in another program".into(),
        Some(Hindrance::Check) => return "waits for a check".into(),
        None => {}
    }
    match row.ladder.due.map(|due| due.since(now)) {
        Some(left) if left > MINUTE_MS => {
            format!("next try in {} min", (left + MINUTE_MS - 1) / MINUTE_MS)
        }
        Some(1..) => "next try within a minute".into(),
        Some(_) | None => "next try soon".into(),
    }
}

/// When the words of [`next_try`] change by time alone.
pub(super) fn countdown_flip(due: Wall, now: Wall) -> Option<Wall> {
    flip_by(MINUTE_MS, due, now)
}

/// When the words of [`next_launch`] change by time alone.
pub(super) fn seconds_flip(due: Wall, now: Wall) -> Option<Wall> {
    flip_by(SECOND_MS, due, now)
}

fn flip_by(step: i64, due: Wall, now: Wall) -> Option<Wall> {
    let left = due.since(now);
    (left > 0).then(|| Wall(due.0 - (left - 1) / step * step))
}

/// What keeps a retry from being made, in the order of the guards.
enum Hindrance<'a> {
    Folder,
    Held(&'a Holder),
    Check,
}

fn hindrance(view: &RowView) -> Option<Hindrance<'_>> {
    if view.live.folder_missing {
        return Some(Hindrance::Folder);
    }
    if let Some(holder) = &view.live.held {
        return Some(Hindrance::Held(holder));
    }
    (!view.row.gates.is_empty()).then_some(Hindrance::Check)
}

/// What happens to a reply next: it is retried, unless something keeps it from that.
fn hindered_or(first: &str, otherwise: &str, view: &RowView) -> String {
    // rule: A-12
    match hindrance(view) {
        Some(Hindrance::Folder) => format!("{first}; waits for its folder"),
        Some(Hindrance::Held(holder)) => {
            format!("{first}; open in another program (process {}, {})", holder.pid, holder.folder)
        }
        Some(Hindrance::Check) => format!("{first}; waits for a check"),
        None => format!("{first}; {otherwise}"),
    }
}

/// A delivered answer's first sentence; else what the row says of its state.
fn your_turn(row: &SessionRow) -> Option<String> {
    let (first, second) =
        if row.delivered { (&row.answer_line, &row.words) } else { (&row.words, &row.answer_line) };
    first.clone().or_else(|| second.clone())
}

fn question(card: &Card) -> Option<String> {
    Some(card.input.get("questions")?.get(0)?.get("question")?.as_str()?.to_string())
}

/// How many steps a plan has, or how it begins.
fn plan(card: &Card) -> Option<String> {
    let text = card.input.get("plan").and_then(Value::as_str)?;
    let numbered = |line: &str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with(['.', ')'])
    };
    let steps = text.lines().filter(|l| numbered(l) || l.starts_with("- ") || l.starts_with("* "));
    match steps.count() {
        0 | 1 => {
            let line = text.lines().find(|line| !line.trim().is_empty())?;
            Some(line.trim_start_matches(['#', ' ']).to_string())
        }
        n => Some(format!("{n} steps")),
    }
}

/// The command, file or address a tool asks for, else the tool's name.
fn permission(card: &Card) -> String {
    ["command", "file_path", "path", "url", "pattern"]
        .iter()
        .find_map(|key| card.input.get(key).and_then(Value::as_str))
        .unwrap_or(&card.tool)
        .to_string()
}

fn said(text: Option<String>) -> Reason {
    match text.map(|text| short(&text)) {
        Some(text) if !text.is_empty() => Reason::Text(text),
        Some(_) | None => Reason::None,
    }
}

/// The first line without its full stop, cut to the length of a reason.
fn short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = line.strip_suffix('.').filter(|rest| !rest.ends_with('.')).unwrap_or(line);
    if line.chars().count() <= REASON_MAX_CHARS {
        return line.into();
    }
    let mut cut: String = line.chars().take(REASON_MAX_CHARS - 1).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

fn with_words(text: &str, row: &SessionRow) -> String {
    match row.words.as_deref().map(str::trim) {
        Some(words) if !words.is_empty() => format!("{text}. {words}"),
        Some(_) | None => text.into(),
    }
}

/// The system's words with what happens next behind the first sentence: advice comes after it.
fn followed(said: Option<String>, next: Vec<String>) -> String {
    let said = said.unwrap_or("It could not be launched".into());
    if next.is_empty() {
        return said;
    }
    let next = next.join(", ");
    match said.split_once(". ") {
        Some((first, advice)) => format!("{first}; {next}. {advice}"),
        None => format!("{}; {next}", said.trim_end().trim_end_matches('.')),
    }
}

/// The system's error in its shortest form: without what was tried, the number and the advice.
fn shortest(said: Option<String>) -> String {
    let said = said.unwrap_or("it could not be launched".into());
    let error = said.split_once(" (os error ").map(|(tried, _)| tried);
    error.and_then(|tried| tried.rsplit(": ").next()).map(String::from).unwrap_or(said)
}

fn capital(mut text: String) -> String {
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

fn sentence_of(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) {
        text.into()
    } else {
        format!("{text}.")
    }
}
