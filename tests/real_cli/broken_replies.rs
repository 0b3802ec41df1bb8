//! Cases of public reports about replies that break: the real CLI's stream falls silent, is reset, or ends
//! with an error, while other sessions go on.

use crate::bench::{Bench, limits};
use crate::looks::{lives, marked, pid_in};
use crate::support::mock_api::{Ending, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::attention::RowState;
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Activity;
use omniscio_core::limits::Limits;
use omniscio_core::session::{AbortCause, PendingAction, Status};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const SHAPE: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

fn allow_bash(bench: &Bench) {
    let allow = json!({"permissions": {"allow": ["Bash"]}});
    fs::write(bench.home.config().join("settings.json"), allow.to_string()).expect("written");
}

/// A silent command that writes its number down and ends when something is written into `until`.
fn waits(pid: &Path, until: &Path) -> serde_json::Value {
    let (pid, until) = (pid.display(), until.display());
    let command = format!("mkfifo '{until}'; echo $$ > '{pid}'; read -r _ < '{until}'");
    json!({"command": command, "description": "wait"})
}

/// Whether a part of a reply that was cut off is still in view.
fn torn_text_kept(bench: &Bench, session: SessionId, part: &str) -> bool {
    bench.blocks(session).into_iter().any(|block| {
        let said = matches!(block.kind, BlockKind::Assistant { text } if text.contains(part));
        block.cut_off && said
    })
}

// proves: AB-03, RP-01, RP-12, SW-07, PR-05
#[test]
fn t01_a_held_socket_is_noticed_its_tree_ended_and_the_others_left_alone() {
    in_namespace(
        "broken_replies::t01_a_held_socket_is_noticed_its_tree_ended_and_the_others_left_alone",
        || {
            let limits = Limits { silence_open_block_ms: 12_000, ..limits() };
            // the CLI's own timer is out of reach: nobody but our watchdog ends this turn
            let bench = Bench::with(limits, &[]);
            allow_bash(&bench);
            let (never, project) = (bench.home.tmp().join("never"), bench.home.project());
            // one that is done, one that is in a silent tool
            bench.api.push(Reply::new().text("done long ago"));
            let idle = bench.create("a short question");
            bench.wait_answer(idle, "done long ago");
            let busy_pid = project.join("busy");
            bench.api.push(Reply::new().tool_use("Bash", waits(&busy_pid, &never)));
            let busy = bench.create("a long job");
            let busy_tool = pid_in(&busy_pid);
            // and the one that falls silent, with a process of its own behind it
            let server_pid = project.join("server");
            let server = format!(
                "setsid sh -c 'echo $$ > {}; exec sleep 600' >/dev/null 2>&1 </dev/null &",
                server_pid.display()
            );
            let input = json!({"command": server, "description": "start a server"});
            bench.api.push(Reply::new().tool_use("Bash", input));
            bench.api.push(Reply::new().text("and then it fell silent").hang_after(2));
            bench.api.push(Reply::new().text("an answer after all"));
            let session = bench.create("please answer this");
            let server = pid_in(&server_pid);
            wait_until(LIMIT, "the held socket", || bench.api.hanging() == 1);
            let others = [idle, busy].map(|id| (bench.row(id), marked(id)));
            let tree = marked(session);
            assert!(tree.contains(&server) && tree.len() >= 2, "{tree:?}");

            bench.wait_answer(session, "an answer after all");
            let stamped = bench.told(session).into_iter().find(|(_, view)| view.row.in_shape());
            let stamped = stamped.expect("a stamp").1.row;
            assert_eq!(stamped.abort_cause, Some(AbortCause::StallTimeout));
            let left: Vec<u32> = tree.into_iter().filter(|pid| lives(*pid)).collect();
            assert_eq!(left, [0; 0], "the whole tree is gone");
            assert_eq!((bench.replays(session), bench.bubbles(session)), (1, 1));
            assert!(torn_text_kept(&bench, session, "and then"), "{:?}", bench.blocks(session));
            bench.assert_never_twice("please answer this");
            // the others: the same rows, the same processes
            assert!(lives(busy_tool));
            for (before, pids) in others {
                assert_eq!(bench.row(before.id), before);
                assert_eq!(marked(before.id), pids);
            }
        },
    );
}

/// Every reply in the first conversation breaks, whatever the CLI tries; the copy that a replay makes of it
/// is answered.
fn breaks_in_the_first_conversation(
    bench: &Bench,
    broken: impl Fn(Reply) -> Reply + Send + 'static,
) {
    let mut first = None;
    bench.api.script(move |request, _| {
        let reply = Reply::new().text("an answer that comes through");
        let conversation = request.session_id().map(String::from);
        let first = first.get_or_insert_with(|| conversation.clone());
        if *first == conversation { broken(reply) } else { reply }
    });
    let session = bench.create("please answer this");
    bench.wait_answer(session, "an answer that comes through");
    assert!(bench.states(session).contains(&SHAPE), "{:?}", bench.states(session));
    assert_eq!((bench.replays(session), bench.row(session).retry_attempts), (1, 1));
    assert_eq!(bench.bubbles(session), 1);
    // a person saw it run until it was answered, and nothing else
    wait_until(LIMIT, "the notification", || bench.notified(session) > 0);
    let shown = bench.shown(session);
    assert_eq!(shown, [RowState::ComingBack, RowState::Running, RowState::YourTurn]);
    assert_eq!(bench.notified(session), 1, "told once: that the answer is there");
    bench.assert_never_twice("please answer this");
    bench.assert_never_twice_on_disk("please answer this");
    // a message of the person starts the count over
    bench.send(session, "and one more thing");
    wait_until(LIMIT, "the count", || bench.row(session).retry_attempts == 0);
}

// proves: SC-27, HD-01, CT-05
#[test]
fn t07_a_connection_reset_on_every_try_is_recovered_once_and_unseen() {
    in_namespace(
        "broken_replies::t07_a_connection_reset_on_every_try_is_recovered_once_and_unseen",
        || {
            breaks_in_the_first_conversation(&Bench::new(), |reply| {
                reply.drop_after(3, Ending::Rst)
            })
        },
    );
}

// proves: SC-27, HD-01, CT-05
#[test]
fn t07_an_overloaded_error_on_every_try_is_recovered_once_and_unseen() {
    in_namespace(
        "broken_replies::t07_an_overloaded_error_on_every_try_is_recovered_once_and_unseen",
        || {
            breaks_in_the_first_conversation(&Bench::new(), |reply| {
                reply.sse_error_after(3, "overloaded_error", "Overloaded")
            });
        },
    );
}

// proves: RP-11, RP-05
#[test]
fn after_a_dropped_reply_the_agent_still_knows_what_was_said_before() {
    in_namespace(
        "broken_replies::after_a_dropped_reply_the_agent_still_knows_what_was_said_before",
        || {
            let bench = Bench::new();
            bench.api.push(Reply::new().text("I will remember: the bird is a heron."));
            let session = bench.create("the bird is a heron, remember it");
            bench.wait_answer(session, "I will remember");
            let first = bench.row(session).cli_session_id.expect("an id").to_string();
            bench.api.script(move |request, _| {
                if request.session_id() == Some(&first) {
                    let half = Reply::new().text("the bird you told me of");
                    return half.drop_after(3, Ending::Fin);
                }
                // the model says what it finds in the history it is given
                let history = request.body["messages"].to_string();
                let knows = history.contains("I will remember: the bird is a heron.")
                    && history.contains("the bird is a heron, remember it");
                Reply::new().text(if knows { "it was a heron" } else { "which bird?" })
            });
            bench.send(session, "which bird was it?");
            bench.wait_answer(session, "it was a heron");
            assert_eq!(bench.replays(session), 1);
            let last = bench.api.main_requests().pop().expect("a request");
            assert_eq!(last.count_text_in_history("which bird was it?"), 1);
            assert!(!crate::bench::body(&last).contains("the bird you"), "half a reply sent back");
            assert_eq!(bench.bubbles(session), 2);
        },
    );
}

// proves: A-05
#[test]
fn t22_a_tool_may_be_silent_for_longer_than_any_limit_and_the_row_says_so() {
    in_namespace(
        "broken_replies::t22_a_tool_may_be_silent_for_longer_than_any_limit_and_the_row_says_so",
        || {
            let limits = Limits {
                silence_open_block_ms: 12_000,
                silence_between_ms: 12_000,
                first_output_ms: 12_000,
                ..limits()
            };
            let bench = Bench::with(limits, &[]);
            allow_bash(&bench);
            let (pid, end) = (bench.home.project().join("pid"), bench.home.project().join("end"));
            bench.api.push(Reply::new().tool_use("Bash", waits(&pid, &end)));
            let session = bench.create("run the long job");
            let tool = pid_in(&pid);
            let child = bench.row(session).child;
            // a clock: a reply that fell silent later is given up by the same limits
            bench.api.push(Reply::new().text("one word and then").hang_after(2));
            bench.api.push(Reply::new().text("cuckoo"));
            let clock = bench.create_in(&bench.home.home(), "be my clock", false);
            wait_until(LIMIT, "the row's words", || {
                let activity = bench.view(session).live.activity;
                matches!(activity, Activity::Tool(words) if words.contains("mkfifo"))
            });
            bench.wait_answer(clock, "cuckoo");
            assert_eq!(bench.replays(clock), 1);
            let attention = bench.attention(session);
            let reason = attention.reason.words().unwrap_or_default();
            assert!(reason.contains("mkfifo"), "the row says what it waits for: {reason}");
            assert_eq!((attention.state, attention.needs_person), (RowState::Running, false));
            assert!(lives(tool) && bench.row(session).child == child, "nobody ended it");

            bench.api.push(Reply::new().text("it took its time"));
            fs::write(&end, "go on\n").expect("written");
            bench.wait_answer(session, "it took its time");
            assert_eq!((bench.replays(session), bench.row(session).child), (0, child));
            assert_eq!(bench.notes(session), [""; 0]);
        },
    );
}
