//! Cases of public reports about histories that break: a call without its result, and a transcript that is
//! torn, garbled or gone. The real CLI reads them; the original file is never written to.

use crate::bench::{Bench, body};
use crate::looks::Written;
use crate::support::mock_api::{Gate, Reply, Request};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::attention::Pill;
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::settings::SettingChange;
use omniscio_core::supervisor::Command;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const REFUSED: (Status, Option<PendingAction>) = (Status::Error, Some(PendingAction::ApiError));

/// A session whose CLI was killed inside of its tool, with the transcript it has left behind.
struct Torn {
    bench: Bench,
    session: SessionId,
    transcript: PathBuf,
    bytes: Vec<u8>,
}

impl Torn {
    /// `then` answers what the recovery asks of the API.
    fn make(then: impl FnMut(&Request, usize) -> Reply + Send + 'static) -> Torn {
        let bench = Bench::new();
        let allow = json!({"permissions": {"allow": ["Bash"]}});
        fs::write(bench.home.config().join("settings.json"), allow.to_string()).expect("written");
        let mark = bench.home.project().join("started");
        let command = format!("echo ran >> '{}'; sleep 600", mark.display());
        let input = json!({"command": command, "description": "count"});
        bench.api.push(Reply::new().tool_use("Bash", input));
        let session = bench.create("run the tool");
        wait_until(LIMIT, "the tool", || mark.exists());
        bench.wait_on_disk(Written::Call("echo ran"));
        let id = bench.row(session).cli_session_id.expect("an id").to_string();
        die_and_wait(&bench, session);
        let transcript = bench.home.transcript(&id).expect("a transcript");
        let bytes = fs::read(&transcript).expect("read");
        assert!(!String::from_utf8_lossy(&bytes).contains("tool_result"), "killed in between");
        bench.api.script(then);
        recovery(&bench, true);
        Torn { bench, session, transcript, bytes }
    }

    fn assert_untouched(&self) {
        let bytes = fs::read(&self.transcript).expect("still there");
        assert!(bytes == self.bytes, "the original transcript is byte-identical");
    }
}

// proves: A-04, RP-02
#[test]
fn t13_killed_between_call_and_result_the_history_sent_is_whole() {
    in_namespace(
        "broken_transcripts::t13_killed_between_call_and_result_the_history_sent_is_whole",
        || {
            // as the API does: a call without its result, or the other way round, is refused
            let torn = Torn::make(|request, _| match request.pairing_fault() {
                Some(fault) => Reply::new().error(400, "invalid_request_error", &fault),
                None => Reply::new().text("went on from there"),
            });
            let (bench, session) = (&torn.bench, torn.session);
            bench.wait_answer(session, "went on from there");
            assert_eq!(bench.replays(session), 1);
            let last = bench.api.main_requests().pop().expect("a request");
            assert_eq!((last.tool_use_ids().len(), last.tool_results().len()), (1, 1));
            torn.assert_untouched();
            bench.assert_never_twice("run the tool");
        },
    );
}

// proves: A-25, SC-07
#[test]
fn t13_a_history_the_api_refuses_is_said_with_retry_and_not_tried_in_a_loop() {
    in_namespace(
        "broken_transcripts::t13_a_history_the_api_refuses_is_said_with_retry_and_not_tried_in_a_loop",
        || {
            const FAULT: &str = "messages.1: `tool_use` ids were found without `tool_result` blocks \
                                 immediately after: toolu_mock_1_0.";
            let torn = Torn::make(|_, _| Reply::new().error(400, "invalid_request_error", FAULT));
            let (bench, session) = (&torn.bench, torn.session);
            let row = bench.wait_state(session, "the refusal", REFUSED);
            let words = row.words.clone().unwrap_or_default();
            assert!(words.contains("400"), "the API's words: {words}");
            assert!(bench.notes(session).contains(&words), "{:?}", bench.notes(session));
            assert_eq!(bench.attention(session).pill, Some(Pill::Retry));
            let asked = bench.requests_with("run the tool");
            bench.let_the_scan_pass();
            assert_eq!(bench.row(session), row, "nothing was done about it");
            assert_eq!(bench.requests_with("run the tool"), asked);
            assert_eq!((bench.replays(session), bench.restarts(session, "re-arm")), (1, 0));
            torn.assert_untouched();

            bench.api.script(|_, _| Reply::new().text("went on after all"));
            bench.command(Command::Retry { session }).expect("a retry");
            bench.wait_answer(session, "went on after all");
            torn.assert_untouched();
            bench.assert_never_twice("run the tool");
        },
    );
}

/// The CLI is killed, and nobody brings it back until recovery is on again.
fn die_and_wait(bench: &Bench, session: SessionId) {
    recovery(bench, false);
    bench.kill_cli(session);
    wait_until(LIMIT, "the stamp", || {
        let row = bench.row(session);
        row.in_shape() && row.child.is_none()
    });
}

fn recovery(bench: &Bench, on: bool) {
    let change = SettingChange::AbortedResponseRecoveryEnabled(on);
    bench.command(Command::SetSetting { change }).expect("the setting");
}

/// Breaks the transcript of a conversation with one good turn while the second is cut off.
fn break_the_second_turn(break_it: impl Fn(&str) -> String) -> (Bench, SessionId, String) {
    let bench = Bench::new();
    bench.api.push(Reply::new().text("the first answer"));
    let session = bench.create("the first message");
    bench.wait_answer(session, "the first answer");
    let old = bench.row(session).cli_session_id.expect("an id").to_string();
    let gate = Gate::new();
    bench.api.push(Reply::new().text("half of it").hold_after(1, &gate));
    bench.send(session, "the second message");
    gate.wait_reached(LIMIT);
    bench.wait_on_disk(Written::Message("the second message"));
    bench.api.script(|_, _| Reply::new().text("the second answer"));
    die_and_wait(&bench, session);
    let file = bench.home.transcript(&old).expect("a transcript");
    let text = fs::read_to_string(&file).expect("read");
    fs::write(&file, break_it(&text)).expect("broken");
    recovery(&bench, true);
    bench.wait_answer(session, "the second answer");
    (bench, session, old)
}

/// The conversation goes on in a new one, which is said; the old id never comes back.
fn handed_over(bench: &Bench, session: SessionId, old: &str) {
    let said = bench.notes(session);
    let aloud = said.iter().filter(|note| *note == prompt::NOTE_CONVERSATION_GONE).count();
    assert_eq!(aloud, 1, "said aloud once: {said:?}");
    let last = bench.api.main_requests().pop().expect("a request");
    let text = last.last_user_text().expect("a text");
    assert!(text.contains("the first message") && text.contains("the first answer"), "{text}");
    assert!(text.ends_with("the second message"), "{text}");
    assert!(!body(&last).contains("half of"), "{}", body(&last));
    let row = bench.row(session);
    let ids = [row.cli_session_id, row.cli_session_wanted, row.cli_session_before];
    assert!(ids.iter().flatten().all(|id| id.to_string() != old), "{ids:?}");
    let told = bench.told(session).into_iter().filter_map(|(_, view)| view.row.cli_session_id);
    let mut names: Vec<String> = told.map(|id| id.to_string()).collect();
    names.dedup();
    assert_eq!(names.len(), 2, "left once, and for good: {names:?}");
    assert_eq!(names[0], old);
}

/// What the person sees is whole, and one attempt was enough.
fn whole_for_the_person(bench: &Bench, session: SessionId) {
    assert_eq!(bench.answers(session), ["the first answer", "the second answer"]);
    let blocks = bench.blocks(session).into_iter();
    let said: Vec<String> = blocks
        .filter_map(|block| {
            if let BlockKind::Operator { text, .. } = block.kind { Some(text) } else { None }
        })
        .collect();
    assert_eq!(said, ["the first message", "the second message"]);
    assert_eq!((bench.replays(session), bench.row(session).retry_attempts), (1, 1));
    assert_eq!(bench.requests_with("the second message"), 2);
    bench.assert_never_twice("the second message");
}

// proves
#[test]
fn t14_a_transcript_cut_to_half_a_line_is_replaced_by_a_hand_over() {
    in_namespace(
        "broken_transcripts::t14_a_transcript_cut_to_half_a_line_is_replaced_by_a_hand_over",
        || {
            // the first line of all is torn in its middle
            let cut = |text: &str| text[..text.find('\n').expect("a line") / 2].to_owned();
            let (bench, session, old) = break_the_second_turn(cut);
            handed_over(&bench, session, &old);
            whole_for_the_person(&bench, session);
        },
    );
}

// proves
#[test]
fn t14_a_garbled_transcript_is_replaced_by_a_hand_over() {
    in_namespace("broken_transcripts::t14_a_garbled_transcript_is_replaced_by_a_hand_over", || {
        let garble = |text: &str| text.replace(['{', '"'], "\u{fffd}");
        let (bench, session, old) = break_the_second_turn(garble);
        handed_over(&bench, session, &old);
        whole_for_the_person(&bench, session);
    });
}

// proves: A-04
#[test]
fn t14_a_transcript_torn_in_its_last_message_goes_on_from_what_is_whole() {
    in_namespace(
        "broken_transcripts::t14_a_transcript_torn_in_its_last_message_goes_on_from_what_is_whole",
        || {
            // the line of the second message is torn: to the CLI it was never sent
            let tear = |text: &str| {
                let message = text.find("the second message").expect("it is there");
                let line = text[..message].rfind('\n').expect("a line before");
                text[..line + 20].to_owned()
            };
            let (bench, session, _) = break_the_second_turn(tear);
            let last = bench.api.main_requests().pop().expect("a request");
            assert_eq!(last.count_text_in_history("the first message"), 1, "{}", body(&last));
            assert!(body(&last).contains("the first answer"), "{}", body(&last));
            assert_eq!(last.count_text_in_history("the second message"), 1, "{}", body(&last));
            whole_for_the_person(&bench, session);
        },
    );
}
// proves
#[test]
fn t14_a_transcript_without_the_line_to_go_on_from_is_replaced_by_a_hand_over() {
    in_namespace(
        "broken_transcripts::t14_a_transcript_without_the_line_to_go_on_from_is_replaced_by_a_hand_over",
        || {
            // the first answer, where the copy is to be cut, is garbled; the messages are not
            let garble = |text: &str| {
                let lines = text.lines().map(|line| {
                    if line.contains("the first answer") { "\u{fffd}\u{fffd}" } else { line }
                });
                lines.map(|line| format!("{line}\n")).collect()
            };
            let (bench, session, old) = break_the_second_turn(garble);
            handed_over(&bench, session, &old);
            whole_for_the_person(&bench, session);
        },
    );
}
