//! What stands: rows that wait for something outside, for a day, or for a person, whatever time and
//! restarts of the app go by.

use super::rig::Rig;
use super::*;
use crate::attention::Section;
use crate::session::{Gate, StopReason};
use crate::stream::Init;
use alloc::collections::BTreeMap as Map;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const HOUR: u64 = 3_600_000;

fn cut_off() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.die();
    rig
}

/// What holds every automatic restart, and its end.
const HOLDS: [[fn(&mut Rig); 2]; 3] = [
    [|rig| rig.folder = false, |rig| rig.folder = true],
    [|rig| rig.busy = Some(990), |rig| rig.busy = Some(100)],
    [open_gate, |rig| rig.alter(|row| row.gates.clear())],
];

fn open_gate(rig: &mut Rig) {
    let opened_at = rig.now().wall;
    rig.alter(|row| row.gates = vec![Gate { name: "checks".into(), opened_at }]);
}

// proves: INV-41
#[test]
fn nothing_is_replayed_or_promoted_while_something_holds_it() {
    for [hold, ease] in HOLDS {
        let mut rig = cut_off();
        for _ in 0..2 {
            rig.pass(155_000);
            rig.spawn_and_shake();
            rig.die();
            hold(&mut rig);
            let (spawned, attempts) = (rig.spawned, rig.row().retry_attempts);
            rig.pass(8 * 60_000);
            assert_eq!((state_of(&rig), rig.spawned), (SHAPE, spawned));
            assert_eq!(rig.row().retry_attempts, attempts, "a held tick charges nothing");
            ease(&mut rig);
        }
        let given_up = Some(PendingAction::RecoveryFailed);
        let seconds = (1..=120).find(|_| {
            rig.pass(1_000);
            rig.row().pending == given_up
        });
        assert!(seconds.is_some(), "it is given up once nothing holds it");
    }
}

// proves: HD-13
#[test]
fn a_row_that_is_seen_past_its_cap_is_still_brought_back() {
    for [hold, ease] in HOLDS {
        let mut rig = cut_off();
        rig.pass(155_000);
        rig.spawn_and_shake();
        rig.die();
        hold(&mut rig);
        rig.pass(300_000);
        assert_eq!((state_of(&rig), rig.seen().section), (SHAPE, Section::Interrupted));
        assert_eq!(rig.row().retry_attempts, 1, "what holds it charges nothing");
        ease(&mut rig);
        rig.pass(120_000);
        assert_eq!((state_of(&rig), rig.row().retry_attempts), ((Status::Starting, None), 2));
        rig.spawn_and_shake();
        assert_eq!(rig.last_text(), "hello");
    }
}

// proves: HD-14, INV-27
#[test]
fn replays_without_a_word_never_hide_a_session_for_longer_than_its_cap() {
    let mut rig = cut_off();
    let cut = rig.now().wall;
    let mut replays = 0;
    while rig.now().wall.since(cut) < 3 * 3_600_000 {
        // as many attempts as the day may have: the clock of the cap is not about the budget
        rig.alter(|row| row.retry_attempts = 0);
        rig.pass(30_000);
        if state_of(&rig) == (Status::Starting, None) {
            replays += 1;
            rig.spawn_and_shake();
            rig.die();
        }
        let age = rig.now().wall.since(cut);
        assert!(rig.row().in_shape());
        let unseen = rig.seen().section != Section::Interrupted;
        assert_eq!(unseen, age < 300_000, "{age} ms after the cut");
    }
    assert!(replays > 60, "{replays}");
}

// proves: RF-02
#[test]
fn a_stopped_row_stays_given_up_over_restarts_and_a_month() {
    let mut rig = Rig::new();
    rig.give_up();
    rig.alter(|row| {
        row.stop_reason = Some(StopReason::HardCap);
        row.ladder.due = None;
    });
    let (before, spawned, notified) = (rig.row(), rig.spawned, rig.notified);
    for _ in 0..3 {
        rig.crash();
        rig.days_pass(10);
        rig.pass(10 * 24 * HOUR);
        assert_eq!((rig.row(), rig.seen().section), (before.clone(), Section::Interrupted));
    }
    assert_eq!((rig.spawned, rig.notified), (spawned, notified));
}

// proves: PF-07, PF-02
#[test]
fn a_folder_that_is_gone_for_an_afternoon_fails_no_session() {
    let mut rig = cut_off();
    rig.folder = false;
    for hour in 1..=6 {
        rig.pass(HOUR);
        if hour == 3 {
            rig.crash();
        }
        let row = rig.row();
        assert_eq!((state_of(&rig), row.retry_attempts), (SHAPE, 0), "hour {hour}");
    }
    assert_eq!((rig.spawned, rig.notified), (1, 0));
}

/// A session that does nothing, its child gone.
fn at_rest() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    rig
}

fn stopped() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.die();
    rig
}

fn given_up() -> Rig {
    let mut rig = Rig::new();
    rig.give_up();
    rig
}

fn asked() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.ask_permission("call-1", "make");
    rig.die();
    rig
}

fn running() -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig
}

/// What befalls a session.
type Deed = fn(&mut Rig);

/// Its name, the session before it, and what starts a child.
type Starter = (&'static str, fn() -> Rig, Deed);

/// Whoever would start a child, one after the other.
const STARTERS: [Starter; 9] = [
    ("a new session", at_rest, |rig| rig.create("another")),
    ("a message", at_rest, |rig| rig.send("more")),
    ("a message to a cut-off reply", cut_off, |rig| rig.send("more")),
    ("the scan", cut_off, |rig| rig.pass(155_000)),
    ("Retry", given_up, |rig| {
        let session = rig.id();
        assert!(rig.command(Command::Retry { session }).is_ok());
    }),
    ("Continue", stopped, |rig| {
        let session = rig.id();
        assert!(rig.command(Command::Continue { session }).is_ok());
    }),
    ("an answer", asked, |rig| {
        let (session, request) = (rig.id(), "ask-call-1".to_string());
        let reply = CardReply::Allow;
        assert!(rig.command(Command::ReplyCard { session, request, reply }).is_ok());
    }),
    ("a crash of the app", running, |rig| {
        rig.crash();
        rig.pass(0);
    }),
    ("Switch model", given_up, |rig| {
        let session = rig.id();
        let model = Some("another".to_string());
        assert!(rig.command(Command::SwitchModel { session, model }).is_ok());
    }),
];

// proves: INV-07
#[test]
fn nothing_is_started_in_a_folder_that_is_gone() {
    for (name, before, act) in STARTERS {
        let mut rig = before();
        let spawned = rig.spawned;
        act(&mut rig);
        assert_eq!(rig.spawned, spawned + 1, "{name} starts a child where the folder is");

        let mut rig = before();
        rig.folder = false;
        act(&mut rig);
        rig.pass(10 * 60_000);
        assert_eq!(rig.spawned, spawned, "{name}");
    }
}

// proves: SC-26
#[test]
fn no_setting_is_a_cap_or_a_cadence() {
    let settings = serde_json::to_value(crate::settings::Settings::default()).expect("an object");
    let keys: Vec<_> = settings.as_object().expect("an object").keys().cloned().collect();
    let known = [
        "abortedResponseRecoveryEnabled",
        "autoContinueMidTaskEnabled",
        "claudePath",
        "contextStallAutoRecoverEnabled",
        "endpoints",
        "plainSpeakEnabled",
        "relentlessSessionRelaunch",
        "showInterruptions",
    ];
    assert_eq!(keys, known, "a new setting is listed here, and is neither");
}

// proves: PR-07
#[test]
fn the_conversation_has_no_id_until_the_cli_names_it() {
    let named = |id| {
        StreamEvent::from(Init {
            session_id: id,
            model: "m".into(),
            permission_mode: "default".into(),
            api_key_source: "none".into(),
            version: "2".into(),
        })
    };
    let mut rig = Rig::new();
    rig.create("hello");
    assert_eq!(rig.row().cli_session_id, None);
    rig.shake();
    let wanted = rig.plan().conversation.id();
    assert_eq!(rig.row().cli_session_wanted, Some(wanted));
    rig.stream(named(None));
    assert_eq!(rig.row().cli_session_id, None, "it named none");
    rig.stream(named(Some(wanted)));
    assert_eq!(rig.row().cli_session_id, Some(wanted));
    rig.stream(named(None));
    assert_eq!(rig.row().cli_session_id, Some(wanted), "it keeps its name");
}

fn card(name: &str, reply: CardReply) -> (PendingAction, Rig, CardReply) {
    let (tool, pending, input) = match name {
        "question" => {
            let ask = json!({"questions": [{"question": "Which one?", "options": []}]});
            ("AskUserQuestion", PendingAction::Question, ask)
        }
        "plan" => ("ExitPlanMode", PendingAction::PlanApproval, json!({"plan": "1. Do it"})),
        _ => ("Bash", PendingAction::PermissionRequest, json!({"command": "make"})),
    };
    let mut rig = running();
    let body = ControlAsk::CanUseTool {
        tool: tool.into(),
        tool_use: "call-1".into(),
        input,
        suggestions: Vec::new(),
        description: None,
    };
    rig.stream(StreamEvent::ControlRequest { request: "ask".into(), body });
    (pending, rig, reply)
}

// proves: INV-22, SC-07
#[test]
fn nothing_automatic_takes_a_question_from_the_person() {
    let befalls: [(&str, Deed); 8] = [
        ("half a day", |rig| rig.pass(12 * HOUR)),
        ("the child dies", Rig::die),
        ("its output ends", |rig| {
            rig.close_output();
            rig.pass(60_000);
        }),
        ("the app dies", |rig| {
            rig.crash();
            rig.pass(HOUR);
        }),
        ("the app dies after the child", |rig| {
            rig.die();
            rig.crash();
            rig.pass(HOUR);
        }),
        ("the machine sleeps", |rig| rig.sleep(8 * HOUR)),
        ("recovery is switched off", |rig| {
            rig.recovery(false, true);
            rig.die();
            rig.pass(HOUR);
        }),
        ("the folder goes", |rig| {
            rig.folder = false;
            rig.die();
            rig.pass(HOUR);
        }),
    ];
    for kind in ["question", "plan", "permission"] {
        for (what, befall) in befalls {
            let (pending, mut rig, _) = card(kind, CardReply::Allow);
            befall(&mut rig);
            let row = rig.row();
            assert_eq!((row.pending, rig.spawned), (Some(pending), 1), "{what}");
            assert!(row.card.is_some(), "{what}: it can still be answered");
            assert_eq!(rig.entered(Some(PendingAction::ResponseAborted)), 0, "{what}");
        }
    }
}

// proves: DB-11
#[test]
fn every_other_cause_is_shown_by_its_own_look_and_cleared_by_its_own_event() {
    let mut looks = Vec::new();
    let mut shown = |rig: &Rig, pending, section| {
        assert_eq!(rig.row().pending, Some(pending));
        let seen = rig.seen();
        assert_eq!(seen.section, section, "{pending:?}");
        assert!(!seen.label.is_empty() && !looks.contains(&seen.shape), "{pending:?}");
        looks.push(seen.shape);
    };
    let answers: Map<String, String> = [("Which one?".into(), "This".into())].into();
    for (pending, mut rig, reply) in [
        card("question", CardReply::Answers { answers }),
        card("plan", CardReply::ApprovePlan { ask_each_edit: false }),
        card("permission", CardReply::Allow),
    ] {
        shown(&rig, pending, Section::NeedsYou);
        let (session, request) = (rig.id(), "ask".to_string());
        assert!(rig.command(Command::ReplyCard { session, request, reply }).is_ok());
        assert_eq!(state_of(&rig), (Status::Running, None), "{pending:?}");
    }

    let message: fn(&mut Rig) = |rig| rig.send("go on");
    let press_retry: fn(&mut Rig) = |rig| {
        let session = rig.id();
        assert!(rig.command(Command::Retry { session }).is_ok());
    };
    let press_continue: fn(&mut Rig) = |rig| {
        let session = rig.id();
        assert!(rig.command(Command::Continue { session }).is_ok());
    };
    for (status, pending, section, event) in [
        (Status::Waiting, PendingAction::RateLimited, Section::Running, message),
        (Status::NeedsYou, PendingAction::AuthRequired, Section::NeedsYou, message),
        (Status::Error, PendingAction::ApiError, Section::Interrupted, press_retry),
        (Status::NeedsYou, PendingAction::Stopped, Section::NeedsYou, press_continue),
    ] {
        let mut rig = if pending == PendingAction::ApiError { cut_off() } else { at_rest() };
        rig.alter(|row| (row.status, row.pending) = (status, Some(pending)));
        shown(&rig, pending, section);
        event(&mut rig);
        rig.spawn_and_shake();
        assert_eq!(state_of(&rig), (Status::Running, None), "{pending:?}");
    }
}
