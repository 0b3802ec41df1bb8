//! What a card asks, read from the input that the agent sent. The input is hostile: nothing about
//! its shape is trusted, every text and every list is bounded. Values only.

use omniscio_core::card::{Card, CardKind};
use serde_json::Value;

/// Questions of one card.
const QUESTIONS_MAX: usize = 8;
/// Options of one question: each has a digit, the last digit is for the person's own words.
const OPTIONS_MAX: usize = 8;
/// Letters of a question, a label, a description.
const WORDS_MAX: usize = 2_000;
/// Bytes of what a permission shows in full: beyond this it says how much is missing.
const SUBJECT_MAX: usize = 256 * 1024;
/// Suggestions of the CLI that are named; a card with more offers no "in this session".
const SUGGESTIONS_MAX: usize = 8;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Its text, by which the answer is keyed: as sent, never cut.
    pub text: String,
    /// What may be chosen.
    pub options: Vec<Choice>,
    /// Several may be chosen.
    pub several: bool,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// What is answered: as sent, never cut.
    pub label: String,
    /// What it means.
    pub description: String,
}

/// The questions of a card; empty when none can be read.
pub(crate) fn questions(input: &Value) -> Vec<Question> {
    let list = input.get("questions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(question).take(QUESTIONS_MAX).collect()
}

fn question(value: &Value) -> Option<Question> {
    let text = text(value, "question").filter(|text| !text.trim().is_empty())?;
    let list = value.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let options = list.iter().filter_map(choice).take(OPTIONS_MAX).collect();
    let several = value.get("multiSelect").and_then(Value::as_bool).unwrap_or(false);
    Some(Question { text, options, several })
}

fn choice(value: &Value) -> Option<Choice> {
    // a bare text is a label
    let label = value.as_str().map(str::to_owned).or_else(|| text(value, "label"));
    let label = label.filter(|label| !label.trim().is_empty())?;
    Some(Choice { label, description: text(value, "description").unwrap_or_default() })
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A text of the agent as it is shown: bounded, with what turns the reading direction made visible.
pub(crate) fn shown(text: &str) -> String {
    let visible = |c: char| match c {
        '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{200b}'..='\u{200f}'
        | '\u{feff}' => '\u{fffd}',
        c if c.is_control() && c != '\n' && c != '\t' => '\u{fffd}',
        c => c,
    };
    text.chars().take(WORDS_MAX).map(visible).collect()
}

/// What a permission is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The question over it.
    pub title: String,
    /// The whole of it: the command, the path with the text, or the input.
    pub body: String,
    /// Bytes of it that are not shown.
    pub missing: usize,
}

/// What a permission card asks for. The whole command is shown, never a part of it.
pub(crate) fn subject(card: &Card, project: &str) -> Subject {
    let field = |key: &str| card.input.get(key).and_then(Value::as_str);
    let (title, body) = match (card.tool.as_str(), field("command"), field("file_path")) {
        ("Bash", Some(command), _) => {
            (format!("Run this command in {project}?"), command.to_owned())
        }
        ("Write", _, Some(path)) => {
            let content = field("content").unwrap_or_default();
            ("Write this file?".to_owned(), format!("{path}\n\n{content}"))
        }
        ("Edit" | "MultiEdit", _, Some(path)) => {
            ("Change this file?".to_owned(), format!("{path}\n\n{}", pretty(&card.input)))
        }
        ("WebFetch", _, _) if field("url").is_some() => {
            let url = field("url").unwrap_or_default();
            ("Fetch this page?".to_owned(), url.to_owned())
        }
        (tool, _, _) => (format!("Use {} in {project}?", shown(tool)), pretty(&card.input)),
    };
    let end = body.floor_char_boundary(SUBJECT_MAX);
    let missing = body.len() - end;
    let visible: String = body[..end].lines().map(visible_line).collect::<Vec<_>>().join("\n");
    Subject { title, body: visible, missing }
}

fn visible_line(line: &str) -> String {
    line.chars().map(|c| if c == '\r' { ' '.to_string() } else { shown(&c.to_string()) }).collect()
}

fn pretty(input: &Value) -> String {
    // a value that came as JSON can be written as JSON
    serde_json::to_string_pretty(input).unwrap_or_default()
}

/// What "allow in this session" would allow, in words that name all of it; `None` when the CLI
/// suggests nothing, or something that cannot be named: then the option is not offered.
pub(crate) fn session_allows(suggestions: &[Value]) -> Option<String> {
    if suggestions.is_empty() || suggestions.len() > SUGGESTIONS_MAX {
        return None;
    }
    let named: Option<Vec<String>> = suggestions.iter().map(suggestion).collect();
    named.map(|named| named.join(", "))
}

fn suggestion(value: &Value) -> Option<String> {
    // anything that outlives the session is not "in this session"
    if value.get("destination").and_then(Value::as_str) != Some("session") {
        return None;
    }
    match value.get("type").and_then(Value::as_str)? {
        "setMode" => match value.get("mode").and_then(Value::as_str)? {
            "acceptEdits" => Some("all edits of files".into()),
            _ => None,
        },
        "addRules" if value.get("behavior").and_then(Value::as_str) == Some("allow") => {
            let rules = value.get("rules").and_then(Value::as_array)?;
            let named: Option<Vec<String>> = rules.iter().map(rule).collect();
            named.filter(|named| !named.is_empty()).map(|named| named.join(", "))
        }
        "addDirectories" => {
            let folders = value.get("directories").and_then(Value::as_array)?;
            let named: Option<Vec<&str>> = folders.iter().map(Value::as_str).collect();
            let named = named.filter(|named| !named.is_empty())?;
            Some(format!("files in {}", shown(&named.join(", "))))
        }
        _ => None,
    }
}

fn rule(value: &Value) -> Option<String> {
    let tool = text(value, "toolName")?;
    match text(value, "ruleContent") {
        Some(content) => Some(shown(&format!("{tool}({content})"))),
        None => Some(shown(&format!("every {tool}"))),
    }
}

/// The plan's text, if the card brings it.
pub(crate) fn plan(card: &Card) -> Option<String> {
    text(&card.input, "plan").filter(|_| card.kind == CardKind::Plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::time::Wall;
    use serde_json::json;

    fn card(tool: &str, input: Value) -> Card {
        Card {
            request: "r".into(),
            tool_use: "t".into(),
            kind: CardKind::Permission,
            tool: tool.into(),
            input,
            suggestions: vec![],
            reason: None,
            asked_at: Wall(0),
            orphaned: false,
        }
    }

    #[test]
    fn questions_are_read_as_the_cli_sends_them() {
        let input = json!({"questions": [{"question": "Which colour?", "header": "Colour",
            "options": [{"label": "Red", "description": "r"}, {"label": "Blue"}], "multiSelect": true}]});
        let read = questions(&input);
        assert_eq!(read.len(), 1);
        assert!(read[0].several && read[0].text == "Which colour?");
        let labels: Vec<&str> = read[0].options.iter().map(|o| o.label.as_str()).collect();
        assert_eq!(labels, ["Red", "Blue"]);
    }

    #[test]
    fn input_of_any_shape_is_survived() {
        for odd in [
            json!(null),
            json!("x"),
            json!({"questions": "x"}),
            json!({"questions": [1, null, {}, {"question": 7}, {"question": "  "}]}),
        ] {
            assert_eq!(questions(&odd), [], "{odd}");
            assert!(!subject(&card("Bash", odd.clone()), "p").title.is_empty());
        }
        let odd = json!({"questions": [{"question": "q", "options": [1, {}, "bare", {"label": ""}], "multiSelect": "yes"}]});
        let read = questions(&odd);
        assert_eq!((read[0].options.len(), read[0].several), (1, false));
        let many: Vec<Value> = (0..99).map(|n| json!({"question": "q", "options": (0..99).map(|m| format!("{n}{m}")).collect::<Vec<_>>()})).collect();
        let read = questions(&json!({ "questions": many }));
        assert_eq!((read.len(), read[0].options.len()), (QUESTIONS_MAX, OPTIONS_MAX));
    }

    #[test]
    fn the_whole_command_is_shown_with_nothing_hidden_in_it() {
        let long = format!("echo {}\nrm -rf x\u{202e}y\r\u{200b}", "a".repeat(5_000));
        let shown = subject(&card("Bash", json!({"command": long})), "infra");
        assert_eq!(shown.title, "Run this command in infra?");
        assert!(shown.body.len() > 5_000 && shown.missing == 0);
        assert!(shown.body.ends_with("rm -rf x\u{fffd}y \u{fffd}"), "{:?}", &shown.body[5_000..]);
        let huge = subject(&card("Bash", json!({"command": "x".repeat(SUBJECT_MAX + 7)})), "p");
        assert_eq!(huge.missing, 7);
    }

    #[test]
    fn in_this_session_is_offered_only_when_all_of_it_can_be_named() {
        let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        let rules = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "docker buildx:*"}, {"toolName": "Read"}]});
        let named = session_allows(&[mode.clone(), rules.clone()]);
        assert_eq!(named.as_deref(), Some("all edits of files, Bash(docker buildx:*), every Read"));
        assert_eq!(session_allows(&[]), None);
        for (key, value) in
            [("destination", "localSettings"), ("type", "other"), ("mode", "bypassPermissions")]
        {
            let mut odd = mode.clone();
            odd[key] = json!(value);
            assert_eq!(session_allows(&[rules.clone(), odd]), None, "{key} {value}");
        }
        let mut deny = rules;
        deny["behavior"] = json!("deny");
        assert_eq!(session_allows(&[deny]), None);
        assert_eq!(session_allows(&[json!(7), json!({"type": "addRules"})]), None);
    }
}
