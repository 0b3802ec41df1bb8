//! Workers, gates and `omniscio ctl` with the real CLI: the model calls the app's tools over the
//! session's own stream, and its shell reaches the same acts over the socket.

use crate::bench::Bench;
use crate::support::mock_api::{Gate, Reply, Request};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::{wait_for, wait_until};
use omniscio_core::id::SessionId;
use omniscio_core::session::{SessionRow, Status};
use serde_json::{Value, json};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const TASK: &str = "Count the parser's tests.";

fn worker_of(bench: &Bench, parent: SessionId) -> SessionRow {
    wait_for(LONG, "a worker", || {
        let rows = bench.rows();
        rows.into_iter().map(|view| view.row).find(|row| row.parent == Some(parent))
    })
}

fn is_workers(request: &Request) -> bool {
    request.texts_of_user_messages().iter().any(|text| text == TASK)
}

/// The last tool result that the model was told in the request.
fn told(request: &Request) -> (bool, String) {
    let result = request.tool_results().pop().expect("a result");
    (result.is_error, result.text)
}

// proves: A-22, A-27, DB-10
#[test]
fn the_model_spawns_a_worker_lists_it_opens_a_gate_and_gets_the_report() {
    in_namespace(
        "workers::the_model_spawns_a_worker_lists_it_opens_a_gate_and_gets_the_report",
        || {
            let bench = Bench::new();
            let (at_work, in_turn) = (Gate::new(), Gate::new());
            let (held, last) = (at_work.clone(), in_turn.clone());
            let mut step = 0;
            // two CLIs ask at once: who asks is told by the task
            bench.api.script(move |request, _| {
                if is_workers(request) {
                    return Reply::new().text("There are 7 of them.").hold_after(0, &held);
                }
                step += 1;
                match step {
                    1 => Reply::new().tool_use(
                        "mcp__omniscio__spawn_worker",
                        json!({"task": TASK, "title": "Counter"}),
                    ),
                    2 => Reply::new().tool_use("mcp__omniscio__list_workers", json!({})),
                    3 => {
                        Reply::new().tool_use("mcp__omniscio__open_gate", json!({"name": "build"}))
                    }
                    4 => Reply::new().tool_use("mcp__omniscio__open_gate", json!({"title": "x"})),
                    5 => Reply::new().text("My worker counts.").hold_after(0, &last),
                    _ => Reply::new().text("So 7 it is."),
                }
            });
            let parent = bench.create("count all tests, with a worker");
            in_turn.wait_reached(LONG);
            let worker = worker_of(&bench, parent);
            at_work.wait_reached(LONG);
            let row = bench.row(parent);
            assert_eq!(
                (row.card, row.gates.iter().map(|gate| gate.name.as_str()).collect::<Vec<_>>()),
                (None, vec!["build"]),
                "the app consents by itself"
            );
            // its CLI asks the API before the app has read all that it said
            wait_until(LONG, "the CLI's id", || bench.row(worker.id).cli_session_id.is_some());
            let row = bench.row(worker.id);
            assert_eq!((row.title.as_str(), row.launch_request), ("Counter", None));
            assert!(row.replay.message.is_some());
            let parents: Vec<Request> = bench
                .api
                .main_requests()
                .into_iter()
                .filter(|request| !is_workers(request))
                .collect();
            let tools = parents[0].body["tools"].as_array().expect("tools");
            let ours =
                |tool: &&Value| tool["name"].as_str().is_some_and(|n| n.contains("omniscio"));
            assert_eq!(tools.iter().filter(ours).count(), 4, "in the prompt from the start");
            assert!(told(&parents[1]).1.contains(&worker.id.to_string()));
            let list: Value = serde_json::from_str(&told(&parents[2]).1).expect("JSON");
            assert_eq!(list["workers"][0]["title"], "Counter");
            assert_eq!(told(&parents[3]), (false, json!({"opened": "build"}).to_string()));
            assert!(told(&parents[4]).0, "{:?}", told(&parents[4]));

            at_work.open();
            bench.wait_answer(worker.id, "There are 7 of them.");
            wait_until(LONG, "the report in the queue", || {
                let rows = bench.rows();
                rows.iter().any(|view| view.row.id == parent && view.live.queue.len() == 1)
            });
            in_turn.open();
            bench.wait_answer(parent, "So 7 it is.");
            let last = bench.api.main_requests().pop().expect("a request");
            let report = last.last_user_text().expect("a text");
            assert!(
                report.contains("Counter") && report.ends_with("There are 7 of them."),
                "{report}"
            );
            assert_eq!((bench.bubbles(parent), bench.bubbles(worker.id)), (2, 1));
            bench.assert_never_twice("There are 7 of them.");
        },
    );
}

// proves: A-22
#[test]
fn a_bash_tool_of_the_session_reaches_the_app() {
    in_namespace("workers::a_bash_tool_of_the_session_reaches_the_app", || {
        let bench = Bench::new();
        let program = env!("CARGO_BIN_EXE_omniscio");
        let command = format!(
            "'{program}' ctl open-gate tests && '{program}' ctl list-workers && '{program}' ctl poll"
        );
        bench.api.push(Reply::new().tool_use("Bash", json!({"command": command})));
        bench.api.push(Reply::new().text("the gate is open"));
        let session = bench.create("open a gate by hand");
        let asked = wait_for(LONG, "a permission card or the answer", || {
            let row = bench.row(session);
            let answered = row.status == Status::NeedsYou;
            (row.card.is_some() || answered).then_some(row.card)
        });
        if let Some(card) = asked {
            let reply = omniscio_core::card::CardReply::Allow;
            let command = omniscio_core::supervisor::Command::ReplyCard {
                session,
                request: card.request,
                reply,
            };
            bench.command(command).expect("allowed");
        }
        bench.wait_answer(session, "the gate is open");
        let (is_error, text) = told(&bench.api.main_requests().pop().expect("a request"));
        let lines: Vec<&str> = text.lines().collect();
        let expected = [r#"{"opened":"tests"}"#, r#"{"retired":[],"workers":[]}"#, "[]"];
        assert_eq!((is_error, lines), (false, expected.to_vec()), "{text}");
        assert_eq!(bench.row(session).gates[0].name, "tests");
    });
}
