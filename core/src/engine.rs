//! Which family of engines answers a session: what its model is called, and where it is asked.
//!
//! A function of names. It never talks to an endpoint.

use serde::{Deserialize, Serialize};

/// The three families (PR-10). They differ in what frees a full context: see CS-09.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineFamily {
    /// Claude, wherever it is served.
    Claude,
    /// Another model behind an endpoint that speaks Anthropic's protocol: Kimi, DeepSeek, GLM.
    AnthropicCompat,
    /// Another model behind a proxy that translates: GPT, xAI.
    ProxyBacked,
}

/// How a Claude model may be called: its names, and the CLI's aliases.
const CLAUDE: [&str; 6] = ["claude", "sonnet", "opus", "haiku", "opusplan", "default"];
/// How the makers that a proxy stands for call theirs.
const PROXIED: [&str; 7] = ["gpt", "chatgpt", "o1", "o3", "o4", "grok", "xai"];

/// The family of a session's engine. `model`: what the person chose, if anything. `custom_endpoint`:
/// its account sends requests to an endpoint of its own.
pub fn engine_family(model: Option<&str>, custom_endpoint: bool) -> EngineFamily {
    // rule: PR-10
    let model = model.unwrap_or_default().trim().to_ascii_lowercase();
    // gateways put a region, a maker or a path before the name
    let named = |names: &[&str]| {
        model.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| names.contains(&word))
    };
    if named(&CLAUDE) {
        EngineFamily::Claude
    } else if named(&PROXIED) {
        EngineFamily::ProxyBacked
    } else if custom_endpoint {
        EngineFamily::AnthropicCompat
    } else {
        EngineFamily::Claude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: PR-10
    #[test]
    fn a_model_belongs_to_the_family_of_its_maker() {
        use EngineFamily::{AnthropicCompat, Claude, ProxyBacked};
        for (model, endpoint, family) in [
            (None, false, Claude),
            (Some(""), false, Claude),
            (Some("opus"), false, Claude),
            (Some("opusplan"), false, Claude),
            (Some("sonnet[1m]"), false, Claude),
            (Some("claude-opus-4-8"), false, Claude),
            (Some("us.anthropic.claude-sonnet-4-5-v1:0"), false, Claude),
            (Some("claude-haiku-4-5@20251001"), false, Claude),
            // a gateway to the real ones is no other engine
            (Some("anthropic/claude-opus-4-8"), true, Claude),
            // a model without an endpoint of its own is Anthropic's, whatever its name will be
            (Some("fable-5"), false, Claude),
            (Some("kimi-k2-turbo-preview"), true, AnthropicCompat),
            (Some("deepseek-chat"), true, AnthropicCompat),
            (Some("glm-4.6"), true, AnthropicCompat),
            (Some("GLM-4.6"), true, AnthropicCompat),
            (None, true, AnthropicCompat),
            (Some("gpt-5.1-codex"), true, ProxyBacked),
            (Some("openai/o3"), true, ProxyBacked),
            (Some("grok-4"), true, ProxyBacked),
            (Some("xai/grok-code-fast-1"), true, ProxyBacked),
        ] {
            assert_eq!(engine_family(model, endpoint), family, "{model:?} {endpoint}");
        }
    }
}
