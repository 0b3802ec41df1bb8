//! An endpoint and the real CLI: what it sends there, and what it takes for its window.

use crate::bench::{Bench, limits};
use crate::support::mock_api::{Kind, Reply, Request};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_for;
use omniscio_core::endpoint::{Endpoint, SecretSource};
use omniscio_core::engine::EngineFamily;
use omniscio_core::ipc;
use omniscio_core::supervisor::Command;
use serde_json::json;
use std::time::Duration;

const SECRET: &str = "secret-of-the-endpoint-0123456789";

// proves
#[test]
fn an_endpoint_gets_its_own_secret_and_model_and_its_window_counts() {
    in_namespace(
        "endpoints::an_endpoint_gets_its_own_secret_and_model_and_its_window_counts",
        || {
            // the account has a key and an address of its own
            let bench = Bench::with(limits(), &[("ANTHROPIC_MODEL", "model-of-the-account")]);
            let endpoint = Endpoint {
                id: String::new(),
                name: "GLM".into(),
                base_url: bench.api.base_url(),
                model: "glm-4.7".into(),
                context_window: 131_072,
                family: EngineFamily::AnthropicCompat,
                secret: SecretSource::Command(format!("echo {SECRET}")),
            };
            let set = bench.command(Command::SetEndpoint { endpoint });
            let Ok(ipc::Reply::Endpoint(id)) = set else { panic!("{set:?}") };
            bench.api.push(Reply::new().text("hello from there"));
            let made = bench.command(Command::Create {
                folder: bench.home.project().display().to_string(),
                text: "hello".into(),
                model: None,
                permission_mode: None,
                account: None,
                endpoint: Some(id),
                user_settings_only: false,
            });
            let Ok(ipc::Reply::Created(session)) = made else { panic!("{made:?}") };
            bench.wait_answer(session, "hello from there");
            // the CLI's own sub-agents ask for models by name: those too are the endpoint's
            for (at, model) in ["haiku", "sonnet", "opus"].into_iter().enumerate() {
                let work = json!({
                    "description": "look", "prompt": "look around", "subagent_type": "Explore",
                    "model": model, "run_in_background": false,
                });
                bench.api.push(Reply::new().tool_use("Agent", work));
                bench.api.push(Reply::new().text(&format!("it looked, as {model}")));
                bench.api.script_side(|_, _| Reply::new().text("I looked"));
                bench.send(session, &format!("send somebody, as {model}"));
                bench.wait_answer(session, &format!("it looked, as {model}"));
                let of = |request: &&Request| request.kind == Kind::Subagent;
                assert_eq!(bench.api.requests().iter().filter(of).count(), at + 1);
            }
            let bearer = format!("Bearer {SECRET}");
            for request in bench.api.requests() {
                if request.path.starts_with("/v1/messages") {
                    assert!(request.came_with(&[("authorization", &bearer)]), "{request:?}");
                    assert_eq!(request.body["model"], "glm-4.7");
                }
            }
            assert_eq!(bench.api.main_requests().len(), 7);
            let window = wait_for(Duration::from_secs(30), "the context's size", || {
                bench.view(session).live.context.map(|usage| usage.window)
            });
            assert_eq!(window, 131_072);

            // without one, the account is asked as ever
            bench.api.push(Reply::new().text("hello from the account"));
            let plain = bench.create("hello");
            bench.wait_answer(plain, "hello from the account");
            let last = bench.api.main_requests().pop().expect("a request");
            assert!(last.came_with(&[("x-api-key", "dummy-key-for-tests")]), "{last:?}");
            assert_eq!(last.body["model"], "model-of-the-account");
        },
    );
}
