//! What may be set up, what a child gets of it, and what is kept.

use super::*;
use alloc::vec;

fn endpoint() -> Endpoint {
    Endpoint {
        id: "kimi".into(),
        name: "Kimi".into(),
        base_url: "https://api.example.com/anthropic".into(),
        model: "kimi-k2".into(),
        context_window: 262_144,
        family: EngineFamily::AnthropicCompat,
        secret: SecretSource::Store,
    }
}

/// The field that is wrong with an endpoint that is changed like this.
fn wrong(change: impl FnOnce(&mut Endpoint)) -> Option<Field> {
    let mut changed = endpoint();
    change(&mut changed);
    let other = Endpoint { id: "other".into(), name: "Other".into(), ..endpoint() };
    checked(&changed, &[endpoint(), other]).err().map(|wrong| wrong.field)
}

// proves: A-32
#[test]
fn an_address_is_a_secure_one_without_anything_secret_in_it() {
    for (url, good) in [
        ("https://api.moonshot.ai/anthropic", true),
        (" https://api.example.com/ ", true),
        ("HTTPS://API.EXAMPLE.COM:8443/v1", true),
        ("https://[2001:db8::1]:8443", true),
        ("http://localhost:4000", true),
        ("http://127.0.0.1", true),
        ("http://127.8.9.1:1/x", true),
        ("http://[::1]:4000", true),
        // over the wire in the clear
        ("http://api.example.com", false),
        ("http://127.0.0.1.example.com", false),
        ("http://localhost.example.com", false),
        ("http://10.0.0.1", false),
        ("http://0x7f.1", false),
        ("http://[2001:db8::1]", false),
        // whose host another reader takes for another
        ("http://localhost\\@example.com", false),
        ("http://localhost@example.com", false),
        ("https://user:word@example.com", false),
        ("https://token@example.com/x", false),
        ("https://example.com/x@y", true),
        ("https://example.com?key=1", false),
        ("https://example.com/x#y", false),
        ("https://exa mple.com", false),
        ("https://exämple.com", false),
        ("https://example.com\n", true),
        ("https://exam\nple.com", false),
        ("https://", false),
        ("https:///x", false),
        ("https://:443", false),
        ("https://example.com:", false),
        ("https://example.com:0", false),
        ("https://example.com:99999", false),
        ("https://example.com:+80", false),
        ("https://[::1", false),
        ("https://[x]", false),
        ("https://[::1]x", false),
        ("https://%6c.example.com", false),
        ("ftp://example.com", false),
        ("file:///etc/passwd", false),
        ("example.com", false),
        ("", false),
    ] {
        let found = wrong(|endpoint| endpoint.base_url = url.into());
        assert_eq!(found, (!good).then_some(Field::BaseUrl), "{url:?}");
    }
    let long = format!("https://example.com/{}", "x".repeat(URL_MAX_BYTES));
    assert_eq!(wrong(|endpoint| endpoint.base_url = long), Some(Field::BaseUrl));
}

#[test]
fn each_field_has_its_bounds() {
    let name = |name: &str| wrong(|endpoint| endpoint.name = name.into());
    for good in ["K", "  Kimi  ", "kimi", &"ä".repeat(60)] {
        assert_eq!(name(good), None, "{good}");
    }
    for bad in ["", "  ", "a\nb", "OTHER", " other ", &"x".repeat(61)] {
        assert_eq!(name(bad), Some(Field::Name), "{bad}");
    }
    let model = |model: &str| wrong(|endpoint| endpoint.model = model.into());
    for good in ["glm-4.6", "openai/gpt-5.1:high", "grok-4[1m]"] {
        assert_eq!(model(good), None, "{good}");
    }
    for bad in ["", " ", "--help", "a b", "a\u{7}", &"x".repeat(201)] {
        assert_eq!(model(bad), Some(Field::Model), "{bad}");
    }
    let window = |tokens| wrong(|endpoint| endpoint.context_window = tokens);
    assert_eq!((window(1_000), window(10_000_000)), (None, None));
    for bad in [0, 999, 10_000_001, u64::MAX] {
        assert_eq!(window(bad), Some(Field::ContextWindow), "{bad}");
    }
    let secret = |secret| wrong(|endpoint| endpoint.secret = secret);
    let variable = |name: &str| secret(SecretSource::Variable(name.into()));
    let command = |text: &str| secret(SecretSource::Command(text.into()));
    for good in ["KIMI_API_KEY", "_x1", " K "] {
        assert_eq!(variable(good), None, "{good}");
    }
    for bad in ["", "1X", "A-B", "A B", "$KEY", "KEY=x", "Ä", &"X".repeat(201)] {
        assert_eq!(variable(bad), Some(Field::Secret), "{bad}");
    }
    assert_eq!(command("pass show kimi"), None);
    for bad in ["", "  ", "a\0b", &"x".repeat(4_001)] {
        assert_eq!(command(bad), Some(Field::Secret), "{bad}");
    }
}

#[test]
fn what_is_kept_has_no_spaces_and_no_slash_around_it() {
    let typed = Endpoint {
        name: " Kimi ".into(),
        base_url: " https://api.example.com/anthropic/ ".into(),
        model: "kimi-k2\n".into(),
        secret: SecretSource::Variable(" KEY ".into()),
        ..endpoint()
    };
    let kept = Endpoint { secret: SecretSource::Variable("KEY".into()), ..endpoint() };
    assert_eq!(checked(&typed, &[endpoint()]), Ok(kept));
}

#[test]
fn an_id_is_the_name_and_nobody_elses() {
    let others = |ids: &[&str]| -> Vec<Endpoint> {
        ids.iter().map(|id| Endpoint { id: (*id).into(), ..endpoint() }).collect()
    };
    for (name, known, id) in [
        ("Kimi", &[][..], "kimi"),
        (" GPT 5.1 (work) ", &[], "gpt-5-1-work"),
        ("Kimi", &["kimi", "kimi-2"], "kimi-3"),
        ("…", &[], "endpoint"),
        ("…", &["endpoint"], "endpoint-2"),
    ] {
        assert_eq!(id_for(name, &others(known)), id, "{name}");
    }
}

// proves: A-32
#[test]
fn a_stored_secret_is_for_one_server() {
    let before = endpoint();
    let moved = |url: &str| before.keeps_secret(&Endpoint { base_url: url.into(), ..endpoint() });
    assert!(moved("https://api.example.com") && moved("HTTPS://API.example.com/v2"));
    for elsewhere in
        ["https://api.example.com.evil.com", "https://evil.com", "https://api.example.com:444"]
    {
        assert!(!moved(elsewhere), "{elsewhere}");
    }
    let variable = SecretSource::Variable("KEY".into());
    assert!(!before.keeps_secret(&Endpoint { secret: variable, ..endpoint() }));
}

// proves: A-32
#[test]
fn a_secret_fits_into_one_header() {
    for (secret, good) in [
        ("sk-abc.DEF_123~+/=", true),
        ("", false),
        ("two words", false),
        ("line\nbreak", false),
        ("schlüssel", false),
    ] {
        assert_eq!(check_secret(secret).is_ok(), good, "{secret:?}");
    }
    let long = "x".repeat(SECRET_MAX_BYTES);
    assert!(check_secret(&long).is_ok());
    let too_long = check_secret(&format!("{long}x"));
    assert!(too_long.is_err_and(|words| !words.contains("xx")));
}

// proves: A-08, CS-33
#[test]
fn a_child_gets_the_variables_of_its_family() {
    let gateway = vec![
        ("ANTHROPIC_BASE_URL", "https://api.example.com/anthropic"),
        ("ANTHROPIC_AUTH_TOKEN", "the-secret"),
        ("ANTHROPIC_MODEL", "kimi-k2"),
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "262144"),
    ];
    let names = [
        ("ANTHROPIC_DEFAULT_OPUS_MODEL", "kimi-k2"),
        ("ANTHROPIC_DEFAULT_SONNET_MODEL", "kimi-k2"),
        ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "kimi-k2"),
    ];
    let other: Vec<_> = gateway.iter().copied().chain(names).collect();
    let with_switch: Vec<_> =
        other.iter().copied().chain([("DISABLE_AUTO_COMPACT", "1")]).collect();
    for (family, wanted) in [
        (EngineFamily::Claude, &gateway),
        (EngineFamily::AnthropicCompat, &other),
        (EngineFamily::ProxyBacked, &with_switch),
    ] {
        let env = endpoint_env(&Endpoint { family, ..endpoint() }, "the-secret");
        let env: Vec<_> = env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(env, *wanted, "{family:?}");
    }
}

#[test]
fn an_endpoint_is_stored_in_plain_words() {
    let stored = serde_json::to_value(endpoint()).expect("json");
    assert_eq!(
        stored,
        serde_json::json!({
            "id": "kimi", "name": "Kimi", "baseUrl": "https://api.example.com/anthropic",
            "model": "kimi-k2", "contextWindow": 262_144, "family": "anthropic_compat",
            "secret": {"from": "store"},
        })
    );
    let proxied = Endpoint {
        family: EngineFamily::ProxyBacked,
        secret: SecretSource::Command("pass x".into()),
        ..endpoint()
    };
    let json = serde_json::to_string(&proxied).expect("json");
    assert_eq!(serde_json::from_str(&json).ok(), Some(proxied));
}
