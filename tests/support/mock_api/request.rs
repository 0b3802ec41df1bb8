//! One logged request of a CLI, and the questions that tests ask about it.
//! It never holds the credentials that came with the request, and it decides nothing about the answer.

use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a request is for. Only [`Kind::Main`] consumes scripted replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A step of a conversation: the first try, a retry, or the `stream: false` fallback.
    Main,
    /// The CLI asks for the summary of a conversation (`/compact`, or on its own).
    Compact,
    /// A step of a subagent's own conversation inside a turn.
    Subagent,
    /// Another model call that is no step of a conversation (it offers no tools): a title, a warm-up.
    Side,
    /// `POST /v1/messages/count_tokens`.
    CountTokens,
    /// Anything else; answered 404.
    Unknown,
}

/// The outcome of one tool call as the model was told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call, as in [`Request::tool_use_ids`].
    pub tool_use_id: String,
    /// Whether the CLI called it an error.
    pub is_error: bool,
    /// All text of the result, joined by line ends.
    pub text: String,
}

/// One request, whole: what the CLI sent, without its credentials.
#[derive(Clone, Debug)]
pub struct Request {
    /// Place in the log of all requests, from 0.
    pub number: usize,
    /// Place among the main requests, from 0; `None` for every other kind.
    pub main_index: Option<usize>,
    /// What it is for.
    pub kind: Kind,
    /// `POST`, `GET`, ...
    pub method: String,
    /// Path with its query, for example `/v1/messages?beta=true`.
    pub path: String,
    /// Header names in lower case; `authorization` and `x-api-key` are left out.
    pub headers: Vec<(String, String)>,
    /// Which credentials came, by the names of their headers, each with a fingerprint.
    pub(super) credentials: Vec<(String, u64)>,
    /// The parsed body; `Null` when there was none or it was no JSON.
    pub body: Value,
}

/// Tells a credential from another without keeping it.
pub(super) fn fingerprint(value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Request {
    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it came with these credentials (header, value) and no others.
    pub fn came_with(&self, credentials: &[(&str, &str)]) -> bool {
        let wanted = credentials.iter().map(|(name, value)| ((*name).into(), fingerprint(value)));
        self.credentials == wanted.collect::<Vec<_>>()
    }

    /// The session that asks, where the CLI says it.
    pub fn session_id(&self) -> Option<&str> {
        self.header("x-claude-code-session-id")
    }

    /// The subagent that asks; `None` for the main conversation.
    pub fn agent_id(&self) -> Option<&str> {
        self.header("x-claude-code-agent-id")
    }

    /// Whether the CLI wants a stream; `false` is its fallback after faults of a stream.
    pub fn stream(&self) -> bool {
        self.body["stream"] == Value::Bool(true)
    }

    /// The conversation, oldest first.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The system prompt, its blocks joined by line ends.
    pub fn system_text(&self) -> String {
        texts(&self.body["system"]).join("\n")
    }

    /// Every text block of every `user` message, oldest first: the operator's, and what the CLI adds there itself.
    pub fn texts_of_user_messages(&self) -> Vec<String> {
        let users = self.messages().iter().filter(|m| m["role"] == "user");
        users.flat_map(|m| texts(&m["content"])).collect()
    }

    /// The newest user text that the CLI did not add itself (its reminders stand in tags).
    pub fn last_user_text(&self) -> Option<String> {
        let mut all = self.texts_of_user_messages();
        all.retain(|text| !text.trim_start().starts_with("<system-reminder>"));
        all.pop()
    }

    /// How often `needle` stands in the user texts of this one request, also twice in one block: more than once
    /// for the text of one message means that the history holds the message twice.
    pub fn count_text_in_history(&self, needle: &str) -> usize {
        let all = self.texts_of_user_messages();
        all.iter().map(|text| text.matches(needle).count()).sum()
    }

    /// Ids of all tool calls in the history, oldest first.
    pub fn tool_use_ids(&self) -> Vec<String> {
        let calls = self.blocks("assistant").filter(|b| b["type"] == "tool_use");
        calls.filter_map(|b| b["id"].as_str().map(String::from)).collect()
    }

    /// All tool results in the history, oldest first.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let results = self.blocks("user").filter(|b| b["type"] == "tool_result");
        let read = |block: &Value| ToolResult {
            tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
            is_error: block["is_error"] == Value::Bool(true),
            text: texts(&block["content"]).join("\n"),
        };
        results.map(read).collect()
    }

    /// What the API finds wrong with the pairs of calls and results, in its words: each call's result stands
    /// in the very next message, and each result follows its call. `None` for a whole history.
    pub fn pairing_fault(&self) -> Option<String> {
        let ids = |message: Option<&Value>, kind: &str, key: &str| -> Vec<String> {
            let content = message.and_then(|m| m["content"].as_array());
            let blocks = content.map_or(&[][..], Vec::as_slice).iter();
            let of_kind = blocks.filter(|block| block["type"] == kind);
            of_kind.filter_map(|block| block[key].as_str().map(String::from)).collect()
        };
        let messages = self.messages();
        (0..=messages.len()).find_map(|n| {
            let calls = ids(n.checked_sub(1).and_then(|n| messages.get(n)), "tool_use", "id");
            let results = ids(messages.get(n), "tool_result", "tool_use_id");
            let alone = |of: &[String], without: &[String]| {
                let mut alone = of.to_vec();
                alone.retain(|id| !without.contains(id));
                (!alone.is_empty()).then(|| alone.join(", "))
            };
            if let Some(ids) = alone(&calls, &results) {
                let at = n - 1;
                return Some(format!(
                    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}."
                ));
            }
            let ids = alone(&results, &calls)?;
            Some(format!(
                "messages.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {ids}."
            ))
        })
    }

    fn blocks<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Value> {
        let of_role = self.messages().iter().filter(move |m| m["role"] == role);
        of_role.filter_map(|m| m["content"].as_array()).flatten()
    }

    /// Reads the kind from what the CLI sent; `body` and `path` are set before.
    pub(super) fn classify(&mut self) {
        let path = self.path.split('?').next().unwrap_or_default();
        self.kind = match (self.method.as_str(), path) {
            ("POST", "/v1/messages/count_tokens") => Kind::CountTokens,
            ("POST", "/v1/messages") if self.asks_for_summary() => Kind::Compact,
            ("POST", "/v1/messages") if self.agent_id().is_some() => Kind::Subagent,
            ("POST", "/v1/messages") if self.offers_tools() => Kind::Main,
            ("POST", "/v1/messages") => Kind::Side,
            _ => Kind::Unknown,
        };
    }

    fn offers_tools(&self) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    fn asks_for_summary(&self) -> bool {
        let last = self.texts_of_user_messages().pop().unwrap_or_default();
        last.contains("create a detailed summary of")
    }
}

/// The text of a `content` value: a plain string, or the text blocks of a list.
fn texts(content: &Value) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let text_blocks = blocks.iter().filter(|b| b["type"] == "text");
    text_blocks.filter_map(|b| b["text"].as_str().map(String::from)).collect()
}
