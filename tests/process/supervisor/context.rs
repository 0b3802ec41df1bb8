//! A context that is full at a turn's end, with a CLI that really compacts or does not.

use super::rig::{App, Ground};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Event, Reply};
use omniscio_core::message::Origin;
use omniscio_core::prompt;
use omniscio_core::session::Status;
use omniscio_core::supervisor::Command;
use std::fs;

const FULL: &str = "usage 185000 of 200000; empty";
const TASK: &str = "Find the race in the token refresh.";
const FIXED: &str = r"say <!-- omniscio:final-message -->\nThe race is fixed.";

/// A ground whose stand-in does one of these lines per attempt.
fn scripted(lines: &[&str]) -> Ground {
    let ground = Ground::new();
    fs::write(ground.home.path().join("config/fake-script"), lines.join("\n")).unwrap();
    ground
}

fn blocks(app: &App, session: SessionId) -> Vec<Block> {
    app.handle.page(session, None, 100).unwrap().blocks
}

/// The lines of the app's own, in order, hidden ones in brackets.
fn told(app: &App, session: SessionId) -> Vec<String> {
    let text = |block: &Block| match &block.kind {
        BlockKind::Note { text } | BlockKind::Boundary { text } => Some(text.clone()),
        BlockKind::Auto { origin, text } => Some(format!("{origin:?} {text}")),
        BlockKind::Operator { .. }
        | BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    };
    let shown = |block: &Block| {
        let text = text(block)?;
        Some(if block.hidden { format!("({text})") } else { text })
    };
    blocks(app, session).iter().filter_map(shown).collect()
}

fn until_fixed(app: &App, session: SessionId) {
    let row = app.until_row(session, "answer", |view| {
        view.row.answer_line.as_deref() == Some("The race is fixed.") && view.row.turn.is_none()
    });
    assert_eq!((row.status, row.pending, row.delivered), (Status::NeedsYou, None, true));
}

// proves: CS-08, CS-11, CS-12, CS-32, UI-26
#[test]
fn a_turn_that_ran_out_of_room_is_finished_and_only_its_answer_is_told() {
    let ground = scripted(&[FULL, &format!("compact 4000; {FIXED}")]);
    let app = ground.start();
    let session = app.create(&ground, TASK);
    until_fixed(&app, session);
    let nudge = format!("({:?} {})", Origin::AutoNudge, prompt::PLEASE_CONTINUE);
    let wanted = [prompt::NOTE_AUTO_RECOVERING, &nudge, prompt::NOTE_COMPACTED];
    assert_eq!(told(&app, session), wanted);
    // it needed nobody before that, and was never launched again
    let (statuses, usage) = app.until("the reading", |told| {
        let views = told.events.iter().filter_map(|event| {
            let Event::Row(view) = event else { return None };
            (view.row.id == session).then_some(view)
        });
        let usage = views.clone().filter_map(|view| view.live.context).next_back()?;
        // whether the first look comes before the launch is nobody's business
        let begun = views.skip_while(|view| view.row.status == Status::Starting);
        let mut statuses: Vec<Status> = begun.map(|view| view.row.status).collect();
        statuses.dedup();
        (usage.tokens == 4000).then_some((statuses, usage))
    });
    assert_eq!(statuses, [Status::Running, Status::NeedsYou]);
    assert_eq!((usage.window, usage.percent()), (200_000, 2));
    assert_eq!(app.count(session, "launch: launch"), 1, "{:#?}", app.reasons(session));
}

// proves: CS-14, CS-15, CS-16, CS-20
#[test]
fn a_context_that_stays_full_is_told_once_and_a_message_begins_anew() {
    let ground = scripted(&[FULL, FULL, FULL, FULL, &format!("usage 20000; {FIXED}")]);
    let app = ground.start();
    let session = app.create(&ground, TASK);
    let row = app.until_row(session, "give-up", |view| view.row.context_gave_up);
    assert_eq!((row.status, row.pending, row.context_recover_count), (Status::NeedsYou, None, 3));
    let nudge = format!("({:?} {})", Origin::AutoNudge, prompt::PLEASE_CONTINUE);
    let mut wanted = [prompt::NOTE_AUTO_RECOVERING, &nudge].repeat(3);
    wanted.push(prompt::NOTE_FRESH_SESSION);
    assert_eq!(told(&app, session), wanted);
    let text = "Then only look at the lock.".to_string();
    app.handle.command(Command::Send { session, text, now: false }).unwrap();
    until_fixed(&app, session);
    let row = app.until_row(session, "row", |view| !view.row.context_gave_up);
    assert_eq!(row.context_recover_count, 0);
}

/// A session of an engine that the CLI does not compact for.
fn of_another_engine(app: &App, ground: &Ground) -> SessionId {
    let made = app.handle.command(Command::Create {
        folder: ground.home.path().join("project").display().to_string(),
        text: TASK.to_string(),
        model: Some("gpt-5.1".to_string()),
        permission_mode: None,
        account: None,
        endpoint: None,
        user_settings_only: false,
    });
    let Ok(Reply::Created(session)) = made else { panic!("{made:?}") };
    session
}

// proves: CS-09, CS-11, CS-35
#[test]
fn another_engine_is_compacted_by_the_app_and_then_finishes() {
    let ground = scripted(&[FULL, FIXED]);
    let app = ground.start();
    let session = of_another_engine(&app, &ground);
    until_fixed(&app, session);
    let compact = format!("({:?} {})", Origin::AutoCommand, prompt::COMPACT_COMMAND);
    let nudge = format!("({:?} {})", Origin::AutoNudge, prompt::PLEASE_CONTINUE);
    let wanted = [prompt::NOTE_AUTO_RECOVERING, &compact, prompt::NOTE_COMPACTED, &nudge];
    assert_eq!(told(&app, session), wanted);
}

// proves: A-08
#[test]
fn a_compaction_that_fails_is_given_up_at_once_in_its_own_words() {
    let ground = scripted(&["usage 185000 of 200000; no-compact no room for it; empty"]);
    let app = ground.start();
    let session = of_another_engine(&app, &ground);
    let row = app.until_row(session, "give-up", |view| view.row.context_gave_up);
    assert_eq!(row.words.as_deref(), Some("may need a fresh session: no room for it"));
    assert_eq!(row.status, Status::NeedsYou);
    let compact = format!("({:?} {})", Origin::AutoCommand, prompt::COMPACT_COMMAND);
    let wanted =
        [prompt::NOTE_AUTO_RECOVERING, &compact, "no room for it", prompt::NOTE_FRESH_SESSION];
    assert_eq!(told(&app, session), wanted);
}
