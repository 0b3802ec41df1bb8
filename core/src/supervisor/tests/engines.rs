//! Endpoints: set up and removed, chosen for a session, inherited by its workers, launched with.

use super::rig::Rig;
use super::*;
use crate::endpoint::{ENDPOINTS_MAX, Endpoint, SecretSource};
use crate::engine::EngineFamily;
use crate::ipc::{IpcCode, IpcError};
use crate::stream::TurnResult;
use alloc::boxed::Box;

/// The five engines of the contract, as a person sets them up.
const ENGINES: [(&str, &str, EngineFamily); 5] = [
    ("Kimi", "kimi-k2", EngineFamily::AnthropicCompat),
    ("DeepSeek", "deepseek-chat", EngineFamily::AnthropicCompat),
    ("GLM", "glm-4.6", EngineFamily::AnthropicCompat),
    ("GPT", "gpt-5.1", EngineFamily::ProxyBacked),
    ("xAI", "grok-4", EngineFamily::ProxyBacked),
];

fn endpoint(name: &str, model: &str, family: EngineFamily) -> Endpoint {
    Endpoint {
        id: String::new(),
        name: name.into(),
        base_url: "https://api.example.com".into(),
        model: model.into(),
        context_window: 131_072,
        family,
        secret: SecretSource::Store,
    }
}

fn kimi() -> Endpoint {
    let (name, model, family) = ENGINES[0];
    endpoint(name, model, family)
}

fn set(rig: &mut Rig, endpoint: Endpoint) -> Result<String, IpcError> {
    let set = rig.command(Command::SetEndpoint { endpoint })?;
    let Reply::Endpoint(id) = set else { panic!("{set:?}") };
    Ok(id)
}

fn create(
    rig: &mut Rig,
    endpoint: Option<&str>,
    model: Option<&str>,
) -> Result<SessionId, IpcError> {
    let made = rig.command(Command::Create {
        folder: "/project".into(),
        text: "hello".into(),
        model: model.map(Into::into),
        permission_mode: None,
        account: None,
        endpoint: endpoint.map(Into::into),
        user_settings_only: false,
    });
    let made = made?;
    let Reply::Created(session) = made else { panic!("{made:?}") };
    Ok(session)
}

fn remove(rig: &mut Rig, id: &str) -> Result<Reply, IpcCode> {
    rig.command(Command::RemoveEndpoint { endpoint: id.into() }).map_err(|wrong| wrong.code)
}

// proves: PR-10, A-08
#[test]
fn a_session_has_the_family_and_the_window_of_its_endpoint() {
    for (name, model, family) in ENGINES {
        let mut rig = Rig::new();
        let id = set(&mut rig, endpoint(name, model, family)).expect("an endpoint");
        assert_eq!(id, name.to_lowercase());
        let session = create(&mut rig, Some(&id), None).expect("a session");
        assert_eq!(rig.row().endpoint.as_deref(), Some(id.as_str()));
        assert_eq!(rig.state().family(session), family, "{name}");
        assert_eq!(rig.state().window_of(session), Some(131_072));
        let plan = rig.plan();
        assert_eq!(plan.endpoint.as_ref().map(|endpoint| endpoint.name.as_str()), Some(name));
        let args = crate::launch::line::launch_args(plan);
        assert!(args.windows(2).any(|pair| pair == ["--model", model]), "{args:?}");
    }
    let mut rig = Rig::new();
    set(&mut rig, kimi()).expect("an endpoint");
    let session = create(&mut rig, None, None).expect("a session");
    assert_eq!(rig.state().family(session), EngineFamily::Claude);
    assert_eq!((rig.state().window_of(session), &rig.plan().endpoint), (None, &None));
}

// proves: CS-09
#[test]
fn a_full_context_is_compacted_on_each_engine_and_a_claude_behind_a_gateway_goes_on() {
    let claude = ("Gateway", "claude-opus-4-8", EngineFamily::Claude);
    for (name, model, family) in ENGINES.into_iter().chain([claude]) {
        let mut rig = Rig::new();
        let id = set(&mut rig, endpoint(name, model, family)).expect("an endpoint");
        create(&mut rig, Some(&id), None).expect("a session");
        rig.spawn_and_shake();
        rig.context = Some((120_000, 131_072));
        rig.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            terminal_reason: Some("completed".into()),
            num_turns: 1,
            messages: rig.lines.last().map(|line| line.uuid).into_iter().collect(),
            ..TurnResult::default()
        })));
        let written = rig.lines.last().map(|line| line.text.clone());
        let wanted = if name == "Gateway" { prompt::PLEASE_CONTINUE } else { "/compact" };
        assert_eq!(written, Some(LineText::Own(wanted.into())), "{name}");
    }
}

// proves: PR-10
#[test]
fn a_worker_asks_the_endpoint_of_its_parent() {
    let mut rig = Rig::new();
    let id = set(&mut rig, kimi()).expect("an endpoint");
    let parent = create(&mut rig, Some(&id), None).expect("a session");
    rig.spawn_and_shake();
    let tool = AgentTool::SpawnWorker { task: "count".into(), title: None };
    rig.command(Command::Agent { session: parent, tool }).expect("a worker");
    let workers: Vec<_> =
        rig.state().views().filter(|view| view.row.parent == Some(parent)).collect();
    assert_eq!(workers.len(), 1);
    assert_eq!(workers[0].row.endpoint.as_deref(), Some("kimi"));
    assert_eq!(rig.state().family(workers[0].row.id), EngineFamily::AnthropicCompat);
}

// proves: RT-26
#[test]
fn a_fresh_start_in_the_same_model_asks_the_same_endpoint_and_another_model_does_not() {
    for (model, kept) in [(None, Some("kimi")), (Some("opus"), None)] {
        let mut rig = Rig::new();
        set(&mut rig, kimi()).expect("an endpoint");
        let session = create(&mut rig, Some("kimi"), None).expect("a session");
        rig.spawn_and_shake();
        rig.answer_turn("Done.");
        let made = rig.command(Command::SwitchModel { session, model: model.map(Into::into) });
        let Ok(Reply::Created(new)) = made else { panic!("{made:?}") };
        let row = rig.stored(new);
        assert_eq!((row.endpoint.as_deref(), row.model.as_deref()), (kept, model));
    }
}

#[test]
fn a_session_is_made_only_with_an_endpoint_that_is_there_and_with_its_model() {
    let mut rig = Rig::new();
    let refused = |rig: &mut Rig, id, model| create(rig, id, model).map_err(|wrong| wrong.code);
    assert_eq!(refused(&mut rig, Some("kimi"), None), Err(IpcCode::Invalid));
    set(&mut rig, kimi()).expect("an endpoint");
    assert_eq!(refused(&mut rig, Some("kimi"), Some("opus")), Err(IpcCode::Invalid));
    assert!(refused(&mut rig, Some("kimi"), Some("  ")).is_ok());
}

// proves: A-32
#[test]
fn what_is_set_up_is_checked_here_and_bounded() {
    let mut rig = Rig::new();
    let bad = Endpoint { base_url: "http://example.com".into(), ..kimi() };
    let wrong = set(&mut rig, bad).expect_err("refused");
    assert_eq!(wrong.code, IpcCode::Invalid);
    assert!(wrong.message.contains("https://"), "{}", wrong.message);
    let unknown = Endpoint { id: "kimi".into(), ..kimi() };
    assert_eq!(set(&mut rig, unknown).map_err(|wrong| wrong.code), Err(IpcCode::NotFound));
    assert_eq!(remove(&mut rig, "kimi"), Err(IpcCode::NotFound));
    for number in 0..ENDPOINTS_MAX {
        let one = Endpoint { name: alloc::format!("E{number}"), ..kimi() };
        set(&mut rig, one).expect("room for it");
    }
    assert_eq!(set(&mut rig, kimi()).map_err(|wrong| wrong.code), Err(IpcCode::Full));
    // one that is there may be changed all the same
    let changed = Endpoint { id: "e7".into(), name: "E7".into(), model: "new".into(), ..kimi() };
    assert_eq!(set(&mut rig, changed.clone()), Ok("e7".into()));
    assert_eq!(rig.state().policy().settings.endpoints[7], changed);
}

// proves: A-32
#[test]
fn a_stored_secret_goes_with_its_endpoint_and_with_its_server() {
    let mut rig = Rig::new();
    let id = set(&mut rig, kimi()).expect("an endpoint");
    let known = Endpoint { id: id.clone(), ..kimi() };
    set(&mut rig, Endpoint { model: "kimi-k3".into(), ..known.clone() }).expect("changed");
    assert_eq!(rig.forgotten, [""; 0], "the same server");
    set(&mut rig, Endpoint { base_url: "https://other.example.com".into(), ..known.clone() })
        .expect("moved");
    assert_eq!(rig.forgotten, ["kimi"]);
    let variable = SecretSource::Variable("KIMI_KEY".into());
    set(&mut rig, Endpoint { secret: variable, ..known.clone() }).expect("changed");
    assert_eq!(rig.forgotten, ["kimi", "kimi"]);
    assert_eq!(remove(&mut rig, &id), Ok(Reply::Done));
    assert_eq!(rig.forgotten, ["kimi", "kimi"], "it had none any more");
    set(&mut rig, kimi()).expect("once more");
    assert_eq!(remove(&mut rig, &id), Ok(Reply::Done));
    assert_eq!(rig.forgotten, ["kimi", "kimi", "kimi"]);
}

#[test]
fn a_session_without_its_endpoint_says_so_and_retry_brings_it_back_with_it() {
    let mut rig = Rig::new();
    let id = set(&mut rig, kimi()).expect("an endpoint");
    let session = create(&mut rig, Some(&id), None).expect("a session");
    rig.spawn_and_shake();
    rig.answer_turn("Done.");
    rig.die();
    remove(&mut rig, &id).expect("removed");
    assert_ne!(rig.state().family(session), EngineFamily::Claude, "no Claude in its place");
    let spawned = rig.spawned;
    rig.send("and now?");
    assert_eq!((state_of(&rig), rig.spawned), ((Status::Error, None), spawned));
    let words = rig.row().words.expect("words");
    assert!(words.contains("\"kimi\"") && words.contains("Settings"), "{words}");
    set(&mut rig, kimi()).expect("an endpoint");
    assert_eq!(rig.command(Command::Retry { session }), Ok(Reply::Done));
    assert_eq!(rig.spawned, spawned + 1);
    assert_eq!(rig.plan().endpoint.as_ref().map(|known| known.id.as_str()), Some("kimi"));
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "and now?");
}
