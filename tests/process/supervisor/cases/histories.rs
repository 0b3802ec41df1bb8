//! T13, T14: a history with a torn tool call, and one that is gone.

use super::{App, Ground, Status, await_some, kill_cli};
use omniscio_core::id::SessionId;
use omniscio_core::prompt::NOTE_CONVERSATION_GONE;
use omniscio_core::session::{PendingAction, SessionRow};
use std::fs;
use std::path::{Path, PathBuf};

/// The CLI's file of this conversation.
pub(super) fn transcript(ground: &Ground, conversation: impl ToString) -> PathBuf {
    let name = format!("{}.jsonl", conversation.to_string());
    let projects = fs::read_dir(ground.home.path().join("config/projects")).unwrap();
    let mut files = projects.map(|folder| folder.unwrap().path().join(&name));
    files.find(|file| file.exists()).expect("a transcript")
}

pub(super) fn conversation(row: &SessionRow) -> String {
    row.cli_session_id.expect("a conversation").to_string()
}

// proves: A-04, RP-02, RP-03
#[test]
fn t13_killed_between_a_call_and_its_result_it_goes_on_in_a_copy() {
    let ground = Ground::new();
    let app = ground.start();
    let text = "Go. [[fake: fail-first 1 bash 600; say Done.]]";
    let session = app.create(&ground, text);
    let row = app.until_tool_runs(session);
    let first = transcript(&ground, conversation(&row));
    let before = fs::read(&first).unwrap();
    assert!(String::from_utf8_lossy(&before).contains("tool_use"));
    kill_cli(&row);

    let after = app.until_said(session, "Done.");
    assert_eq!(fs::read(&first).unwrap(), before, "the original is as it was, byte for byte");
    assert_ne!(after.cli_session_id, row.cli_session_id);
    let copy = fs::read_to_string(transcript(&ground, conversation(&after))).unwrap();
    assert!(copy.contains("outcome is unknown"), "{copy}");
    assert_eq!((app.charged(session), app.launches(session)), (1, 2));
    assert_eq!(app.bubbles(session), [text]);
}

// proves: A-25
#[test]
fn t13_a_refused_history_is_an_error_with_its_words_and_no_loop() {
    let ground = Ground::new();
    let app = ground.start();
    let refusal =
        "messages.2: tool_use ids were found without tool_result blocks immediately after";
    let text = format!(
        "Go. [[fake: fail-first 1 bash 600; fail-first 2 api-error 400 invalid_request_error \
         {refusal}; say Done.]]"
    );
    let session = app.create(&ground, &text);
    let row = app.until_tool_runs(session);
    let first = transcript(&ground, conversation(&row));
    let before = fs::read(&first).unwrap();
    kill_cli(&row);
    let row = app.until_row(session, "refusal", |view| {
        view.row.pending == Some(PendingAction::ApiError) && view.row.turn.is_none()
    });
    assert_eq!(row.status, Status::Error);
    let words = row.words.unwrap();
    assert!(words.contains(refusal), "{words}");

    app.until_the_scan_came_by(&ground);
    app.until_the_scan_came_by(&ground);
    let row = app.until_row(session, "the same state", |_| true);
    assert_eq!((row.status, row.pending), (Status::Error, Some(PendingAction::ApiError)));
    assert_eq!((app.charged(session), app.launches(session)), (1, 2), "nothing tries again");
    app.retry(session);
    app.until_said(session, "Done.");
    assert_eq!(fs::read(&first).unwrap(), before, "the original is as it was, byte for byte");
    assert_eq!(app.bubbles(session), [text]);
}

/// Answered by the script file: a directive would be obeyed again where the hand-over quotes it.
const FIRST: &str = "The first task.";
const SECOND: &str = "The second task. [[fake: fail-first 1 partial Half an answer; fail-first 1 hang; say Second.]]";

fn answered_once(app: &App, ground: &Ground) -> (SessionId, SessionRow) {
    fs::write(ground.home.path().join("config/fake-script"), "say First.").unwrap();
    let session = app.create(ground, FIRST);
    (session, app.until_said(session, "First."))
}

/// A session with one answer, and a second one cut off in the middle. Gives its row before the end.
fn cut_off_in_the_second(app: &App, ground: &Ground) -> (SessionId, SessionRow) {
    let (session, _) = answered_once(app, ground);
    app.send(session, SECOND);
    let row = app.until_row(session, "output", |view| {
        view.row.turn.as_ref().is_some_and(|turn| turn.number == 2 && turn.real_output)
    });
    let whole = |(text, _): &(String, bool)| text == "Half an answer";
    await_some(|| app.replies(session).iter().any(whole).then_some(()));
    (session, row)
}

/// What the person and the agent say in all.
struct Talk {
    bubbles: [&'static str; 2],
    replies: &'static [&'static str],
}

const CUT_OFF: Talk =
    Talk { bubbles: [FIRST, SECOND], replies: &["First.", "Half an answer", "Second."] };

/// The conversation was lost and went on in a new one, with all that stood in ours.
fn handed_over(app: &App, ground: &Ground, session: SessionId, dead: &str, talk: &Talk) {
    let last = app.until_said(session, "Second.");
    let reasons = app.reasons(session);
    assert_eq!(app.notes(session, NOTE_CONVERSATION_GONE), 1, "said aloud, once: {reasons:#?}");
    let new = conversation(&last);
    let states = app.rows(session);
    let names = |row: &SessionRow, id: &str| {
        let ids = [row.cli_session_id, row.cli_session_wanted, row.cli_session_before];
        ids.iter().flatten().any(|known| known.to_string() == id)
    };
    let last_of_the_dead = states.iter().rposition(|row| names(row, dead));
    let first_of_the_new = states.iter().position(|row| row.cli_session_id == last.cli_session_id);
    assert!(last_of_the_dead < first_of_the_new, "the dead id came back: {states:#?}");
    assert_eq!(app.bubbles(session), talk.bubbles);
    let said: Vec<String> = app.replies(session).into_iter().map(|(text, _)| text).collect();
    assert_eq!(said, talk.replies);
    let told = fs::read_to_string(transcript(ground, new)).unwrap();
    assert!(told.contains("The first task.") && told.contains("First."), "the hand-over: {told}");
}

/// Does something to a transcript.
type Spoil = fn(&Path);

// proves
#[test]
fn t14_a_deleted_cut_or_garbled_transcript_is_replaced_by_a_hand_over() {
    let ground = Ground::new();
    let app = ground.start();
    let damages: [(&str, Spoil); 3] = [
        ("deleted", |file| fs::remove_file(file).unwrap()),
        ("cut within its first line", |file| {
            let whole = fs::read(file).unwrap();
            let line = whole.iter().position(|byte| *byte == b'\n').unwrap();
            fs::write(file, &whole[..line / 2]).unwrap();
        }),
        ("garbled", |file| {
            let length = fs::metadata(file).unwrap().len();
            let noise: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
            fs::write(file, noise).unwrap();
        }),
    ];
    for (damage, spoil) in damages {
        let (session, row) = cut_off_in_the_second(&app, &ground);
        let dead = conversation(&row);
        let file = transcript(&ground, &dead);
        kill_cli(&row);
        // the CLI is dead before the replay is planned, and the replay waits for the debounce and the
        // scan: what it writes last is there
        spoil(&file);
        handed_over(&app, &ground, session, &dead, &CUT_OFF);
        assert_eq!((app.charged(session), app.launches(session)), (1, 2), "{damage}");
    }
}

// proves: A-04
#[test]
fn t14_a_transcript_torn_in_its_last_line_is_still_the_conversation() {
    let ground = Ground::new();
    let app = ground.start();
    let (session, row) = cut_off_in_the_second(&app, &ground);
    let file = transcript(&ground, conversation(&row));
    kill_cli(&row);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 20]).unwrap();
    let after = app.until_said(session, "Second.");
    assert_eq!(app.notes(session, NOTE_CONVERSATION_GONE), 0, "{:#?}", app.reasons(session));
    let copy = fs::read_to_string(transcript(&ground, conversation(&after))).unwrap();
    assert!(copy.contains("The first task."), "{copy}");
    assert_eq!((app.charged(session), app.launches(session)), (1, 2));
}

/// Refused by a result, and by stderr and the exit code alone.
const REFUSALS: [&str; 2] = ["forget", "forget quiet"];

// proves
#[test]
fn t14_a_refused_resume_of_a_cut_off_reply_goes_on_with_a_hand_over_at_once() {
    for refusal in REFUSALS {
        let ground = Ground::new();
        let app = ground.start();
        let (session, row) = cut_off_in_the_second(&app, &ground);
        let dead = conversation(&row);
        fs::write(ground.home.path().join("config/fake-start"), refusal).unwrap();
        kill_cli(&row);
        handed_over(&app, &ground, session, &dead, &CUT_OFF);
        assert_eq!((app.charged(session), app.launches(session)), (1, 3), "{refusal}");
    }
}

// proves
#[test]
fn t14_a_refused_resume_for_a_new_message_goes_on_with_a_hand_over_at_once() {
    for refusal in REFUSALS {
        let ground = Ground::new();
        let app = ground.start();
        let (session, row) = answered_once(&app, &ground);
        let dead = conversation(&row);
        kill_cli(&row);
        app.until_row(session, "the end of its child", |view| view.row.child.is_none());
        fs::write(ground.home.path().join("config/fake-start"), refusal).unwrap();
        const NEXT: &str = "The next task. [[fake: say Second.]]";
        app.send(session, NEXT);
        let talk = Talk { bubbles: [FIRST, NEXT], replies: &["First.", "Second."] };
        handed_over(&app, &ground, session, &dead, &talk);
        assert_eq!((app.charged(session), app.launches(session)), (0, 3), "{refusal}");
    }
}
