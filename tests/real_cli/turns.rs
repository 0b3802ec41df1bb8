//! Ordinary turns of the real CLI under the supervisor: cards, long messages, what a folder brings.

use crate::bench::Bench;
use crate::support::mock_api::Reply;
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::card::CardReply;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::supervisor::Command;
use serde_json::json;
use std::fs;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ASKED: (Status, Option<PendingAction>) =
    (Status::Running, Some(PendingAction::PermissionRequest));

// proves: PR-11, A-10
#[test]
fn a_permission_is_allowed_and_another_denied() {
    in_namespace("turns::a_permission_is_allowed_and_another_denied", || {
        let bench = Bench::new();
        let target = |name: &str| bench.home.project().join(name);
        for name in ["allowed.txt", "denied.txt"] {
            let input = json!({"file_path": target(name), "content": "hello"});
            bench.api.push(Reply::new().tool_use("Write", input));
        }
        bench.api.push(Reply::new().text("one of two"));
        let session = bench.create("write two files");
        let replies = [CardReply::Allow, CardReply::Deny { message: Some("not that one".into()) }];
        for reply in replies {
            let row = bench.wait_state(session, "a permission card", ASKED);
            let request = row.card.expect("a card").request;
            bench
                .command(Command::ReplyCard { session, request: request.clone(), reply })
                .expect("answered");
            wait_until(LIMIT, "the card to go", || {
                bench.row(session).card.is_none_or(|card| card.request != request)
            });
        }
        bench.wait_answer(session, "one of two");
        assert_eq!(fs::read_to_string(target("allowed.txt")).expect("written"), "hello");
        assert!(!target("denied.txt").exists());
        let last = bench.api.main_requests().pop().expect("a request");
        let refusal = last.tool_results().pop().expect("a result");
        assert!(refusal.is_error && refusal.text.contains("not that one"), "{}", refusal.text);
    });
}

// proves: PR-06
#[test]
fn a_message_of_200_kb_arrives_whole_and_once() {
    in_namespace("turns::a_message_of_200_kb_arrives_whole_and_once", || {
        let bench = Bench::new();
        bench.api.push(Reply::new().text("read it all"));
        let text: String = (0..20_000).map(|n| format!("line {n:04}\n")).collect();
        let text = format!("{text}the very end");
        assert!(text.len() > 200_000);
        let session = bench.create(&text);
        bench.wait_answer(session, "read it all");
        let requests = bench.api.main_requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].last_user_text(), Some(text));
    });
}

// proves: A-23
#[test]
fn a_folders_hook_runs_only_when_it_is_trusted() {
    in_namespace("turns::a_folders_hook_runs_only_when_it_is_trusted", || {
        let bench = Bench::new();
        let folder = bench.home.project();
        let mark = folder.join("hook-ran");
        let hook = json!({"hooks": {"UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": format!("touch '{}'", mark.display())}]}
        ]}});
        fs::create_dir(folder.join(".claude")).expect("a folder");
        fs::write(folder.join(".claude/settings.json"), hook.to_string()).expect("settings");
        let check = bench.handle().folder_check(&folder.display().to_string()).expect("checked");
        assert_eq!(check.decided, None);
        assert!(check.commands.iter().any(|command| command.text.contains("touch")), "{check:?}");
        bench.api.script(|_, _| Reply::new().text("done"));
        let without = bench.create_in(&folder, "start without them", true);
        bench.wait_answer(without, "done");
        assert!(!mark.exists(), "the hook has not run");
        let trusted = bench.create_in(&folder, "trust and start", false);
        bench.wait_answer(trusted, "done");
        assert!(mark.exists(), "trusted, it runs");
    });
}

// proves: A-10
#[test]
fn what_is_sent_while_a_turn_runs_is_queued_and_sent_one_by_one() {
    in_namespace("turns::what_is_sent_while_a_turn_runs_is_queued_and_sent_one_by_one", || {
        let bench = Bench::new();
        let gate = crate::support::mock_api::Gate::new();
        bench.api.push(Reply::new().text("one").hold_after(0, &gate));
        bench.api.push(Reply::new().text("two"));
        bench.api.push(Reply::new().text("three"));
        let session = bench.create("message one");
        gate.wait_reached(LIMIT);
        bench.send(session, "message two");
        bench.send(session, "message three");
        gate.open();
        bench.wait_answer(session, "three");
        let requests = bench.api.main_requests();
        assert_eq!(requests.len(), 3, "the CLI was given no chance to merge them");
        assert_eq!(requests[1].last_user_text().as_deref(), Some("message two"));
        assert_eq!(requests[2].last_user_text().as_deref(), Some("message three"));
    });
}

#[test]
fn stop_ends_the_turn_and_keeps_the_process() {
    in_namespace("turns::stop_ends_the_turn_and_keeps_the_process", || {
        let bench = Bench::new();
        let gate = crate::support::mock_api::Gate::new();
        bench.api.push(Reply::new().text("a long story").hold_after(1, &gate));
        let session = bench.create("tell me a story");
        gate.wait_reached(LIMIT);
        let child = bench.row(session).child;
        bench.command(Command::Stop { session }).expect("stopped");
        let stopped = (Status::NeedsYou, Some(PendingAction::Stopped));
        let row = bench.wait_state(session, "the stop", stopped);
        assert_eq!(row.child, child, "the process stays");
        assert_eq!(bench.replays(session), 0);
        bench.api.push(Reply::new().text("something else"));
        bench.send(session, "tell me something else");
        bench.wait_answer(session, "something else");
    });
}
