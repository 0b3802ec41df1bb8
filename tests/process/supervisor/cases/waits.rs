//! Sessions that wait for a wake-up or a command in the background, and a CLI that is killed meanwhile.

use super::{App, Ground, kill_cli};
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::message::Origin;
use omniscio_core::session::{SessionRow, Status};
use omniscio_lib::supervise::children::ProcessId;

const WAKE_UP: &str = "Go. [[fake: wake-up 3000 Woke up.; say Waiting for CI.]]";
const COMMAND: &str = "Go. [[fake: background 3 It is built.; say Waiting for it.]]";
const LONG_COMMAND: &str = "Go. [[fake: background 600 It is built.; say Waiting for it.]]";

impl App {
    fn until_waiting(&self, session: SessionId) -> SessionRow {
        self.until_row(session, "wait", |view| {
            (view.row.status, view.row.pending) == (Status::Waiting, None)
        })
    }

    /// Wake-ups that the app sent itself.
    fn wake_ups(&self, session: SessionId) -> usize {
        let is_one =
            |kind: &BlockKind| matches!(kind, BlockKind::Auto { origin: Origin::Wakeup, .. });
        self.blocks(session).iter().filter(|block| is_one(&block.kind) && block.hidden).count()
    }

    /// Whether the row ever called for the person before its last state.
    fn called_before_the_end(&self, session: SessionId) -> bool {
        let rows = self.rows(session);
        let statuses: Vec<Status> = rows.iter().map(|row| row.status).collect();
        let end = statuses.iter().rposition(|status| *status != Status::NeedsYou).unwrap_or(0);
        statuses[..end].contains(&Status::NeedsYou)
    }
}

fn dies(row: &SessionRow) {
    let child = row.child.expect("a child");
    let id = ProcessId { pid: child.pid, start_time: child.start };
    kill_cli(row);
    crate::rig::await_some(|| (!omniscio_lib::supervise::children::alive(id)).then_some(()));
}

// proves, WD-01
#[test]
fn a_session_waits_until_its_cli_wakes_it() {
    let ground = Ground::new();
    let app = ground.start();
    for text in [WAKE_UP, COMMAND] {
        let session = app.create(&ground, text);
        let row = app.until_waiting(session);
        assert!(row.deferred_work.is_some() && row.delivered, "{row:?}");
        let answer = if text == WAKE_UP { "Woke up." } else { "It is built." };
        let row = app.until_said(session, answer);
        assert_eq!(row.deferred_work, None);
        assert_eq!((app.launches(session), app.wake_ups(session)), (1, 0));
        assert!(!app.called_before_the_end(session), "{:#?}", app.reasons(session));
    }
}

// proves: A-09, WD-03
#[test]
fn a_wake_up_whose_cli_was_killed_is_sent_by_the_app_once() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, WAKE_UP);
    let row = app.until_waiting(session);
    let due = row.deferred_work.as_ref().and_then(|work| work.next_at()).expect("a time");
    dies(&row);
    let row = app.until_said(session, "Woke up.");
    let reasons = app.reasons(session);
    assert_eq!((app.launches(session), app.wake_ups(session)), (2, 1), "{reasons:#?}");
    assert_eq!(app.count(session, "waiting-hold: the wake-up starts it"), 1, "{reasons:#?}");
    assert!(!app.called_before_the_end(session), "{reasons:#?}");
    assert!(!reasons.iter().any(|reason| reason.starts_with("abort:")), "{reasons:#?}");
    assert!(row.turn_since.is_some_and(|since| since >= due), "not before its time");
    assert_eq!((row.retry_attempts, row.deferred_work), (0, None));
    assert_eq!(app.bubbles(session), [WAKE_UP], "nobody's message");
}

// proves
#[test]
fn a_wake_up_survives_the_app() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, WAKE_UP);
    app.until_waiting(session);
    app.quit();
    let app = ground.start();
    app.until_said(session, "Woke up.");
    assert_eq!(
        (app.launches(session), app.wake_ups(session)),
        (2, 1),
        "{:#?}",
        app.reasons(session)
    );
}

// proves: A-16, WD-03
#[test]
fn a_command_whose_cli_was_killed_is_told_as_lost() {
    let ground = Ground::new();
    let app = ground.start();
    let session = app.create(&ground, LONG_COMMAND);
    let row = app.until_waiting(session);
    dies(&row);
    let row = app.until_row(session, "stall", |view| view.row.status == Status::Stalled);
    assert_eq!(row.words.as_deref(), Some("background task was lost"));
    assert_eq!(row.deferred_work, None);
    app.until("notification", |told| (told.notices.len() == 1).then_some(()));
}
