//! Tables: every legal status × pending action × age × policy, as whole values, and the boundaries
//! of the hidden time.

mod launches;

use super::*;
use crate::card::{Card, CardKind};
use crate::id::Uuid;
use crate::ipc::LiveView;
use crate::session::{OpenTurn, StopReason};
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use serde_json::json;

const T: i64 = 1_000_000_000;

pub(super) fn now_at(age: i64) -> Now {
    Now { wall: Wall(T + age), ..Now::default() }
}

pub(super) fn policy(on: bool) -> Policy {
    let mut policy = Policy::default();
    policy.settings.aborted_response_recovery_enabled = on;
    policy
}

/// A row that entered its state at `T`, in a turn that began ten seconds earlier.
pub(super) fn view(status: Status, pending: Option<PendingAction>) -> RowView {
    let mut row =
        SessionRow::new(Uuid(1), "/p".into(), "Title".into(), "default".into(), Wall(T - 60_000));
    row.status = status;
    row.pending = pending;
    row.status_changed_at = Wall(T);
    row.turn =
        Some(OpenTurn { number: 1, since: Wall(T - 10_000), replay: None, real_output: true });
    RowView { row, live: LiveView::default() }
}

fn look_at(view: &RowView, age: i64, on: bool) -> Attention {
    attention(view, &policy(on), &Limits::default(), now_at(age))
}

/// The whole value on one line.
fn line(a: &Attention) -> String {
    let parts = [
        format!("{:?}", a.section),
        a.tone.as_str().to_string(),
        format!("{:?}", a.shape),
        a.state.as_str().to_string(),
        a.label.to_string(),
        a.reason.words().unwrap_or("-".into()),
        a.row_tooltip.clone().unwrap_or("-".into()),
        a.since.map_or("-".into(), |at| (at.0 - T).to_string()),
        a.pill.map_or("-", Pill::label).to_string(),
        a.pill_tooltip.unwrap_or("-").to_string(),
        a.strip.as_ref().map_or("-".into(), |strip| strip.text.clone()),
        format!("person {} open {}", a.needs_person, a.turn_open),
    ];
    parts.join(" | ")
}

const RUNNING: &str = "Running | green-400 | Disc | running | Running | working | Working | -10000 | - | - | - | person false open true";
const COMING: &str = "Running | green-400 | RingPulsing | starting | Coming back… | - | Launching | - | - | - | - | person false open true";
const HOLDING: &str = "Running | orange-400 | Clock | waiting | Waiting | - | Agent is waiting | - | - | - | - | person false open false";
const YOUR_TURN: &str = "NeedsYou | amber-400 | Diamond | needs_you | Your turn | - | Your turn | 0 | - | - | - | person true open false";
const LAUNCH_ERROR: &str = "Interrupted | red-400 | Triangle | error | Error | it could not be launched | It could not be launched | 0 | Retry | Launch failed — Retry tries again now. | It could not be launched. | person true open false";
const STALLED: &str = "NeedsYou | orange-400 | OpenDiamond | stalled | Stalled? | stopped mid-task | Stopped mid-task | 0 | Continue | Sends “Please continue.” | Stopped mid-task. | person true open false";
const PAUSED: &str = "Other | grey-400 | TwoBars | paused | Paused by you | - | - | 0 | Continue | Sends “Please continue.” |  | person false open false";
const ENDED: &str = "Other | grey-400 | Ring | ended | Ended | - | - | 0 | Continue | Sends “Please continue.” |  | person false open false";
const GONE: &str =
    "Hidden | grey-400 | Ring | gone |  | - | - | - | - | - | - | person false open false";
const SIGN_IN: &str = "NeedsYou | amber-400 | Door | auth_required | Sign in | nothing retries it yet | Signed out; nothing retries it yet | 0 | Continue | Sends “Please continue.” | Signed out; nothing retries it yet. | person true open false";
const API_ERROR: &str = "Interrupted | red-400 | Triangle | api_error | Error | the request was refused | The request was refused | 0 | Retry | Request failed — Retry sends it again now. | The request was refused. | person true open false";
const STOPPED: &str = "NeedsYou | amber-400 | Square | stopped | Stopped | by you | Stopped by you | 0 | Continue | Sends “Please continue.” | Stopped by you. | person true open false";
const SUSPENDED: &str = "Interrupted | grey-400 | HalfDisc | app_restart_suspended | Suspended | by an app restart | Suspended by an app restart | 0 | Continue | Sends “Please continue.” | By an app restart. | person true open false";
const RATE_LIMITED: &str = "Running | orange-400 | Clock | rate_limited | Waiting | no auto-resume yet | Usage limit reached; nothing resumes it yet | 0 | Continue | Sends “Please continue.” | Usage limit reached; nothing resumes it yet. | person false open false";
const FAILED: &str = "Interrupted | red-400 | Cross | recovery_failed | Recovery failed | next try soon | Could not finish a reply; retrying in the background | 0 | Retry | Auto-recovery keeps retrying in the background — Retry tries again immediately. | Could not finish a reply; retrying in the background. Next try soon. | person true open false";
const FAILED_NOW: &str = "Interrupted | red-400 | Cross | recovery_failed | Recovery failed | trying again now | Could not finish a reply; retrying in the background | 0 | Retry | Auto-recovery keeps retrying in the background — Retry tries again immediately. | Could not finish a reply; retrying in the background. Trying again now. | person true open false";
const FAILED_OFF: &str = "Interrupted | red-400 | Cross | recovery_failed | Recovery failed | auto-recovery is off | Could not finish a reply; auto-recovery is off | 0 | Retry | Auto-recovery is off — Retry tries again now. | Could not finish a reply; auto-recovery is off. | person true open false";
const FAILED_STOPPED: &str = "Interrupted | red-400 | Cross | recovery_failed | Recovery failed | auto-retry stopped | Could not finish a reply; auto-retry stopped | 0 | Retry | Auto-retry stopped after repeated failures — Retry resets the limit and tries again now. | Could not finish a reply; auto-retry stopped. | person true open false";
const CUT_OFF: &str = "Interrupted | red-400 | Pause | response_aborted | Paused | reply was cut off; retrying | Reply was cut off; retrying | 0 | Retry | Auto-recovery keeps retrying in the background — Retry tries again immediately. | Reply was cut off; retrying. | person true open false";
const CUT_OFF_OFF: &str = "Interrupted | red-400 | Pause | response_aborted | Paused | reply was cut off; auto-recovery is off | Reply was cut off; auto-recovery is off | 0 | Retry | Auto-recovery is off — Retry tries again now. | Reply was cut off; auto-recovery is off. | person true open false";

/// What a legal pair shows at an age under a policy.
fn expected(status: Status, pending: Option<PendingAction>, hidden: bool, on: bool) -> String {
    use PendingAction as P;
    use Status as S;
    let card = |shape: &str, state: &str, label: &str| {
        let open = status == S::Running;
        format!(
            "NeedsYou | amber-400 | {shape} | {state} | {label} | - | - | 0 | - | - | - | person true open {open}"
        )
    };
    match (status, pending) {
        (S::Archived, _) => GONE.into(),
        (_, Some(P::RecoveryFailed)) if !on => FAILED_OFF.into(),
        (S::Starting | S::Running, Some(P::RecoveryFailed)) => FAILED_NOW.into(),
        (_, Some(P::RecoveryFailed)) => FAILED.into(),
        (_, Some(P::ResponseAborted)) if hidden && on => RUNNING.into(),
        (_, Some(P::ResponseAborted)) if on => CUT_OFF.into(),
        (_, Some(P::ResponseAborted)) => CUT_OFF_OFF.into(),
        (_, Some(P::Question)) => card("Question", "question", "Question"),
        (_, Some(P::PlanApproval)) => card("Lines", "plan_approval", "Plan ready"),
        (_, Some(P::PermissionRequest)) => card("Padlock", "permission_request", "Permission"),
        (_, Some(P::AuthRequired)) => SIGN_IN.into(),
        (_, Some(P::ApiError)) => API_ERROR.into(),
        (_, Some(P::Stopped)) => STOPPED.into(),
        (_, Some(P::AppRestartSuspended)) => SUSPENDED.into(),
        (_, Some(P::RateLimited)) => RATE_LIMITED.into(),
        (S::Starting, None) => COMING.into(),
        (S::Running, None) => RUNNING.into(),
        (S::Waiting, None) => HOLDING.into(),
        (S::NeedsYou, None) => YOUR_TURN.into(),
        (S::Error, None) => LAUNCH_ERROR.into(),
        (S::Stalled, None) => STALLED.into(),
        (S::Paused, None) => PAUSED.into(),
        (S::Ended, None) => ENDED.into(),
    }
}

// proves: HD-01, HD-02, HD-03, HD-04, HD-07, HD-09, HD-10, HD-11, HD-12, HD-21, HD-22, RF-03, RF-04, RT-01, RT-02, RT-03, RT-09, RT-10, RT-16, RT-24, UI-01, UI-02, UI-03, UI-04, UI-05, UI-06, UI-07, UI-08, UI-10, UI-11, UI-12, UI-14, A-13, AC-01
#[test]
fn every_legal_pair_at_every_age_under_both_policies() {
    let mut seen = 0;
    for status in Status::ALL {
        let pendings = [None].into_iter().chain(PendingAction::ALL.iter().copied().map(Some));
        for pending in pendings.filter(|pending| is_legal(*status, *pending)) {
            for (age, hidden) in [
                (-7_200_000, false),
                (-60_001, false),
                (-60_000, true),
                (0, true),
                (60_000, true),
                (299_999, true),
                (300_000, false),
                (86_400_000, false),
            ] {
                for on in [true, false] {
                    let found = line(&look_at(&view(*status, pending), age, on));
                    let want = expected(*status, pending, hidden, on);
                    assert_eq!(found, want, "{status:?} {pending:?} age {age} recovery {on}");
                    seen += 1;
                }
            }
        }
    }
    assert_eq!(seen, 40 * 16);
}

// proves: HD-01
#[test]
fn an_unseen_replay_looks_exactly_like_a_running_row() {
    let ordinary = look_at(&view(Status::Running, None), 1_000, true);
    for status in [Status::Starting, Status::Running] {
        let mut replay = view(status, None);
        replay.row.status_changed_at = Wall(T + 200_000);
        replay.row.hide_since = Some(Wall(T));
        replay.live.activity = Activity::Retrying { attempt: 1, max: 2 };
        replay.live.activity_since = Wall(T + 250_000);
        assert_eq!(look_at(&replay, 299_999, true), ordinary, "{status:?}");
    }
    // past the cap, or with recovery off, a launch is shown as one: the clock was not restarted
    let mut late = view(Status::Starting, None);
    late.row.status_changed_at = Wall(T + 299_000);
    late.row.hide_since = Some(Wall(T));
    assert_eq!(line(&look_at(&late, 300_000, true)), COMING);
    assert_eq!(line(&look_at(&late, 1_000, false)), COMING);
}

#[test]
fn a_delivered_row_is_never_hidden() {
    let mut delivered = view(Status::NeedsYou, Some(PendingAction::ResponseAborted));
    delivered.row.delivered = true;
    assert_eq!(line(&look_at(&delivered, 0, true)), CUT_OFF);
}

// proves: HD-08
#[test]
fn the_predicate_and_its_cap_answer_at_the_boundaries() {
    let (limits, on) = (Limits::default(), policy(true));
    let shape = view(Status::Error, Some(PendingAction::ResponseAborted)).row;
    let hidden = |age| is_auto_recovering_aborted_response(&shape, &on, &limits, now_at(age));
    let ages = [-60_001, -60_000, -1, 0, 299_999, 300_000];
    assert_eq!(ages.map(hidden), [false, true, true, true, true, false]);
    let expired = |age| aborted_recovery_hide_expired(&shape, &limits, now_at(age));
    assert_eq!(ages.map(expired), [true, false, false, false, false, true]);
    let mut deleted = shape.clone();
    deleted.deleted_at = Some(Wall(T));
    assert!(!is_auto_recovering_aborted_response(&deleted, &on, &limits, now_at(0)));
    let short = Limits { hide_max_ms: 20_000, ..limits };
    assert!(!is_auto_recovering_aborted_response(&shape, &on, &short, now_at(20_000)));
}

#[test]
fn the_next_flip_is_the_instant_the_answer_changes() {
    let limits = Limits::default();
    let shape = view(Status::NeedsYou, Some(PendingAction::ResponseAborted));
    let flip = |v: &RowView, age, on| next_flip(v, &policy(on), &limits, now_at(age));
    assert_eq!(flip(&shape, 0, true), Some(Wall(T + 300_000)));
    assert_eq!(flip(&shape, 299_999, true), Some(Wall(T + 300_000)));
    assert_eq!(flip(&shape, 300_000, true), None);
    assert_eq!(flip(&shape, -7_200_000, true), Some(Wall(T - 60_000)));
    assert_eq!(flip(&shape, 0, false), None);
    let mut replay = view(Status::Starting, None);
    assert_eq!(flip(&replay, 0, true), None);
    replay.row.hide_since = Some(Wall(T - 1));
    assert_eq!(flip(&replay, 0, true), Some(Wall(T + 299_999)));
    assert_eq!(flip(&view(Status::Running, None), 0, true), None);
}

// proves: RT-09, RT-10, RT-11, RT-24, RA-06, DB-08, INV-33
#[test]
fn a_given_up_row_says_what_its_ladder_does_and_flips_with_it() {
    let mut failed = view(Status::Error, Some(PendingAction::RecoveryFailed));
    failed.row.ladder.due = Some(Wall(T + 330_000));
    let reason = |v: &RowView, age| look_at(v, age, true).reason.words().expect("a reason");
    let limits = Limits::default();
    let flip = |age| next_flip(&failed, &policy(true), &limits, now_at(age));
    for (age, words, next) in [
        (0, "next try in 6 min", Some(300_000 - 270_000)),
        (29_999, "next try in 6 min", Some(30_000)),
        (30_000, "next try in 5 min", Some(90_000)),
        (269_999, "next try in 2 min", Some(270_000)),
        (270_000, "next try within a minute", Some(330_000)),
        (330_000, "next try soon", None),
    ] {
        assert_eq!(reason(&failed, age), words, "{age}");
        assert_eq!(flip(age), next.map(|at| Wall(T + at)), "{age}");
    }
    let strip = look_at(&failed, 0, true).strip.expect("a strip").text;
    assert_eq!(strip, "Could not finish a reply; retrying in the background. Next try in 6 min.");
    let tooltip = |v: &RowView, on| look_at(v, 0, on).pill_tooltip.expect("a tooltip");
    assert_eq!(tooltip(&failed, true), words::RETRY_GOES_ON);
    assert_eq!(tooltip(&failed, false), words::RETRY_RECOVERY_OFF);
    failed.row.stop_reason = Some(StopReason::HardCap);
    assert_eq!(line(&look_at(&failed, 0, true)), FAILED_STOPPED);
    assert_eq!(tooltip(&failed, false), words::RETRY_STOPPED);
}

#[test]
fn a_given_up_row_says_what_holds_its_next_try() {
    let mut failed = view(Status::Error, Some(PendingAction::RecoveryFailed));
    failed.row.ladder.due = Some(Wall(T - 1));
    let reason = |v: &RowView| look_at(v, 0, true).reason.words().expect("a reason");
    failed.row.gates.push(crate::session::Gate { name: "ci".into(), opened_at: Wall(T) });
    assert_eq!(reason(&failed), "waits for a check");
    let holder = crate::session::Holder { pid: 77, start: 1, folder: "/p".into() };
    failed.live.held = Some(holder.clone());
    assert_eq!(reason(&failed), "open in another program");
    failed.live.folder_missing = true;
    assert_eq!(reason(&failed), "waits for its folder");
    assert_eq!(
        look_at(&failed, 0, true).strip.expect("a strip").text,
        "Could not finish a reply; waits for its folder."
    );
    let mut cut_off = view(Status::Error, Some(PendingAction::ResponseAborted));
    cut_off.live.folder_missing = true;
    let found = look_at(&cut_off, 300_000, true);
    assert_eq!(found.reason.words().as_deref(), Some("waits for its folder"));
    assert_eq!(found.row_tooltip.as_deref(), Some("Reply was cut off; waits for its folder"));
    cut_off.live.folder_missing = false;
    cut_off.live.held = Some(holder);
    assert_eq!(
        look_at(&cut_off, 300_000, true).row_tooltip.as_deref(),
        Some("Reply was cut off; open in another program (process 77, /p)")
    );
}

#[test]
fn an_unseen_recovery_goes_on_counting_from_the_turns_start() {
    let mut shape = view(Status::Error, Some(PendingAction::ResponseAborted));
    let running = look_at(&view(Status::Running, None), 0, true);
    (shape.row.turn, shape.row.turn_since) = (None, Some(Wall(T - 10_000)));
    assert_eq!(look_at(&shape, 60_000, true), running);
}

#[test]
fn a_usage_limit_tells_when_it_resets_and_nothing_else_does() {
    let mut limited = view(Status::Waiting, Some(PendingAction::RateLimited));
    limited.row.resets_at = Some(Wall(T + 3_600_000));
    assert_eq!(look_at(&limited, 0, true).until, Some(Wall(T + 3_600_000)));
    limited.row.pending = None;
    assert_eq!(look_at(&limited, 0, true).until, None);
}

#[test]
fn the_time_of_a_running_row_is_its_activity_or_its_turn() {
    let mut running = view(Status::Running, None);
    running.live.activity_since = Wall(T + 500);
    assert_eq!(look_at(&running, 1_000, true).since, Some(Wall(T - 10_000)));
    running.live.activity = Activity::Tool("cargo test".into());
    let found = look_at(&running, 1_000, true);
    assert_eq!(
        (found.reason.words(), found.since),
        (Some("cargo test".into()), Some(Wall(T + 500)))
    );
}

fn carded(kind: CardKind, tool: &str, input: serde_json::Value) -> RowView {
    let pending = match kind {
        CardKind::Permission => PendingAction::PermissionRequest,
        CardKind::Question => PendingAction::Question,
        CardKind::Plan => PendingAction::PlanApproval,
    };
    let mut view = view(Status::Running, Some(pending));
    view.row.card = Some(Card {
        request: "r".into(),
        tool_use: "t".into(),
        kind,
        tool: tool.into(),
        input,
        suggestions: Vec::new(),
        reason: None,
        asked_at: Wall(T),
        orphaned: false,
    });
    view
}

#[test]
fn a_card_gives_the_reason_in_the_agents_own_words() {
    let ask = json!({"questions": [{"question": "Keep the old keys as aliases?"}]});
    let steps = "# Bound it\n\n1. First\n2. Second\n- third\n";
    for (view, want) in [
        (carded(CardKind::Question, "AskUserQuestion", ask), Some("Keep the old keys as aliases?")),
        (carded(CardKind::Question, "AskUserQuestion", json!({})), None),
        (carded(CardKind::Plan, "ExitPlanMode", json!({"plan": steps})), Some("3 steps")),
        (carded(CardKind::Plan, "ExitPlanMode", json!({"plan": "\n## Do it\nnow"})), Some("Do it")),
        (carded(CardKind::Permission, "Bash", json!({"command": "ls -la"})), Some("ls -la")),
        (carded(CardKind::Permission, "Edit", json!({"file_path": "/a/b.rs"})), Some("/a/b.rs")),
        (carded(CardKind::Permission, "Skill", json!({"x": 1})), Some("Skill")),
    ] {
        assert_eq!(look_at(&view, 0, true).reason.words().as_deref(), want);
    }
}

#[test]
fn words_of_the_system_are_the_reason_cut_and_the_strip_whole() {
    let words = "spawn claude: Resource temporarily unavailable (os error 11).\nTry again later.";
    let mut failed = view(Status::Error, None);
    failed.row.words = Some(words.into());
    let found = look_at(&failed, 0, true);
    assert_eq!(found.reason.words().as_deref(), Some("Resource temporarily unavailable"));
    assert_eq!(found.row_tooltip.as_deref(), Some(words));
    assert_eq!(found.strip, Some(Strip { text: words.into() }));

    let mut billing = view(Status::Error, Some(PendingAction::RecoveryFailed));
    billing.row.stop_reason = Some(StopReason::Billing);
    billing.row.words = Some("Credit balance is too low".into());
    let text = "Could not finish a reply; auto-retry stopped. Credit balance is too low.";
    assert_eq!(look_at(&billing, 0, true).strip, Some(Strip { text: text.into() }));

    let mut done = view(Status::NeedsYou, None);
    done.row.words = Some("signed in again".into());
    assert_eq!(look_at(&done, 0, true).reason.words().as_deref(), Some("signed in again"));
    done.row.answer_line = Some("The race is fixed.".into());
    done.row.delivered = true;
    let found = look_at(&done, 0, true);
    assert_eq!(found.reason.words().as_deref(), Some("The race is fixed"));
    assert_eq!(found.row_tooltip.as_deref(), Some("Finished; your turn"));
}

// proves: WD-01, UI-03
#[test]
fn a_waiting_row_says_what_it_waits_for_and_calls_nobody() {
    use crate::waiting::{DeferredWork, TaskKind, WaitTask, Wake};
    let task =
        |name: &str| WaitTask { id: name.into(), kind: TaskKind::Command, name: name.into() };
    let wake = |at| Wake { key: "w".into(), at, prompt: String::new(), cron: None };
    type Row = (Vec<Wake>, Vec<WaitTask>, Option<&'static str>, Option<Wall>);
    let table: [Row; 5] = [
        (Vec::new(), [task("CI")].into(), Some("until CI ends"), None),
        (Vec::new(), [task("")].into(), Some("until its background task ends"), None),
        (Vec::new(), [task("CI"), task("lint")].into(), Some("until 2 tasks end"), None),
        ([wake(None), wake(Some(Wall(T + 9)))].into(), Vec::new(), None, Some(Wall(T + 9))),
        ([wake(Some(Wall(T)))].into(), [task("CI")].into(), Some("until CI ends"), Some(Wall(T))),
    ];
    for (wakes, tasks, words, until) in table {
        let mut holding = view(Status::Waiting, None);
        holding.row.deferred_work = Some(DeferredWork { wakes, tasks });
        let seen = look_at(&holding, 0, true);
        assert_eq!((seen.reason.words().as_deref(), seen.until), (words, until));
        assert_eq!((seen.label, seen.section), ("Waiting", Section::Running));
        assert_eq!((seen.needs_person, seen.since, seen.pill), (false, None, None));
        let tooltip = words.map_or("Agent is waiting".into(), |w| format!("Agent is waiting {w}"));
        assert_eq!(seen.row_tooltip, Some(tooltip));
        assert_eq!(badge_count([&holding.row], &policy(true), &Limits::default(), now_at(0)), 0);
        // the same work behind a delivered answer takes nothing from it
        holding.row.status = Status::NeedsYou;
        assert_eq!(look_at(&holding, 0, true).until, None);
    }
    let mut lost = view(Status::Stalled, None);
    lost.row.words = Some("background task was lost".into());
    let seen = look_at(&lost, 0, true);
    assert_eq!(seen.reason.words().as_deref(), Some("background task was lost"));
    assert_eq!((seen.label, seen.pill), ("Stalled?", Some(Pill::Continue)));
}

const GIVEN_UP: &str = "NeedsYou | amber-400 | Diamond | needs_you | Your turn | may need a fresh session | May need a fresh session | 0 | - | - | May need a fresh session. | person true open false";

// proves: UI-06
#[test]
fn a_context_give_up_is_the_persons_turn_with_a_strip_and_without_a_pill() {
    let mut given_up = view(Status::NeedsYou, None);
    given_up.row.context_gave_up = true;
    assert_eq!(line(&look_at(&given_up, 0, true)), GIVEN_UP);
    // the row says it short, whatever else is known
    given_up.row.words = Some("may need a fresh session: there was nothing to compact.".into());
    let found = look_at(&given_up, 0, true);
    assert_eq!(found.reason.words().as_deref(), Some("may need a fresh session"));
    let whole = "May need a fresh session: there was nothing to compact.";
    assert_eq!(found.row_tooltip.as_deref(), Some(whole));
    assert_eq!(found.strip, Some(Strip { text: whole.into() }));
    // an answer after all is an answer, and a turn that is open again is one
    let mut answered = given_up.clone();
    (answered.row.delivered, answered.row.words) = (true, None);
    let found = look_at(&answered, 0, true);
    assert_eq!((found.state, found.strip), (RowState::YourTurn, None));
    given_up.row.status = Status::Running;
    given_up.row.words = None;
    assert_eq!(line(&look_at(&given_up, 0, true)), RUNNING);
}
