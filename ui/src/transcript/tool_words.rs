//! What a tool call says in one line: its verb, its target, what came of it; and the lines of an
//! edit. Reads input of any shape and never trusts it. Values only.

use serde_json::Value;

/// One line of a call's target is at most this long, in letters.
const TARGET_MAX: usize = 240;
/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;
/// Not more lines of one tool are drawn at once.
pub(crate) const LINES_MAX: usize = 2_000;

/// What kind of act a tool is: decides verb and symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reads a file.
    Read,
    /// Looks for something.
    Search,
    /// Changes a file.
    Edit,
    /// Writes a file.
    Write,
    /// Runs a command.
    Run,
    /// Fetches a page.
    Fetch,
    /// Hands work to a sub-agent.
    Task,
    /// Anything else: named by the tool.
    Other,
}

/// The kind of a tool, by its name.
pub(crate) fn verb(tool: &str) -> Verb {
    match tool {
        "Read" | "NotebookRead" => Verb::Read,
        "Grep" | "Glob" | "LS" | "WebSearch" | "ToolSearch" => Verb::Search,
        "Edit" | "MultiEdit" | "NotebookEdit" => Verb::Edit,
        "Write" => Verb::Write,
        "Bash" => Verb::Run,
        "WebFetch" => Verb::Fetch,
        "Task" | "Agent" => Verb::Task,
        _ => Verb::Other,
    }
}

impl Verb {
    /// The word in the line; a tool without one goes by its own name.
    pub(crate) fn word(self, tool: &str) -> String {
        match self {
            Verb::Read => "Read".into(),
            Verb::Search => "Search".into(),
            Verb::Edit => "Edit".into(),
            Verb::Write => "Write".into(),
            Verb::Run => "Run".into(),
            Verb::Fetch => "Fetch".into(),
            Verb::Task => "Task".into(),
            Verb::Other => one_line(tool, 48),
        }
    }
}

/// What the call is about, in one line. Paths in the project are told from its folder.
pub(crate) fn target(input: &Value, folder: &str) -> String {
    let keys = [
        "file_path",
        "notebook_path",
        "command",
        "pattern",
        "url",
        "query",
        "description",
        "path",
        "prompt",
    ];
    let found = keys.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    let text = found.unwrap_or_default();
    let inside = text.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    one_line(inside.filter(|rest| !rest.is_empty()).unwrap_or(text), TARGET_MAX)
}

/// The first line with something in it, cut to so many letters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut letters = line.chars();
    let cut: String = letters.by_ref().take(most).collect();
    if letters.next().is_some() { cut + "…" } else { cut }
}

/// Input as a person reads it: pretty JSON, cut to so many bytes.
pub(crate) fn pretty(input: &Value, most: usize) -> String {
    // a value that came as JSON can be written as JSON
    let text = serde_json::to_string_pretty(input).unwrap_or_default();
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}…", &text[..end]) } else { text }
}

/// One line of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditLine {
    /// `+`, `-`, or a space for a line that stays.
    pub sign: char,
    /// The line.
    pub text: String,
}

/// The lines that an edit changes, with a little of what stays around them.
pub(crate) fn edit_lines(tool: &str, input: &Value) -> Vec<EditLine> {
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let pairs: Vec<(String, String)> = match (verb(tool), input.get("edits")) {
        (Verb::Edit, Some(Value::Array(edits))) => {
            edits.iter().map(|edit| (text(edit, "old_string"), text(edit, "new_string"))).collect()
        }
        (Verb::Edit, _) if input.get("new_source").is_some() => {
            vec![(String::new(), text(input, "new_source"))]
        }
        (Verb::Edit, _) => vec![(text(input, "old_string"), text(input, "new_string"))],
        (Verb::Write, _) => vec![(String::new(), text(input, "content"))],
        (Verb::Read | Verb::Search | Verb::Run | Verb::Fetch | Verb::Task | Verb::Other, _) => {
            Vec::new()
        }
    };
    pairs.iter().flat_map(|(old, new)| change(old, new)).collect()
}

/// Lines added and removed.
pub(crate) fn counts(lines: &[EditLine]) -> (usize, usize) {
    let count = |sign: char| lines.iter().filter(|line| line.sign == sign).count();
    (count('+'), count('-'))
}

/// One replaced piece: what both ends share stays, the middle goes and comes.
fn change(old: &str, new: &str) -> Vec<EditLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let shortest = old.len().min(new.len());
    let head = (0..shortest).take_while(|at| old[*at] == new[*at]).count();
    let tail = (0..shortest - head)
        .take_while(|at| old[old.len() - 1 - at] == new[new.len() - 1 - at])
        .count();
    let line = |sign: char| move |text: &&str| EditLine { sign, text: (*text).to_owned() };
    let before = old[head.saturating_sub(CONTEXT)..head].iter().map(line(' '));
    let after_start = old.len() - tail;
    let after = old[after_start..old.len().min(after_start + CONTEXT)].iter().map(line(' '));
    before
        .chain(old[head..old.len() - tail].iter().map(line('-')))
        .chain(new[head..new.len() - tail].iter().map(line('+')))
        .chain(after)
        .collect()
}

/// The newest lines that are drawn, and how many older ones are not.
pub(crate) fn newest_lines(text: &str) -> (String, usize) {
    let count = text.lines().count();
    let over = count.saturating_sub(LINES_MAX);
    let kept: Vec<&str> = text.lines().skip(over).collect();
    (kept.join("\n"), over)
}

/// What came of the call, for the right end of its line; empty when the time says enough.
pub(crate) fn outcome(tool: &str, result: Option<&str>) -> String {
    match (verb(tool), result) {
        (Verb::Read, Some(result)) => match result.lines().count() {
            1 => "1 line".into(),
            lines => format!("{lines} lines"),
        },
        (
            Verb::Read
            | Verb::Search
            | Verb::Edit
            | Verb::Write
            | Verb::Run
            | Verb::Fetch
            | Verb::Task
            | Verb::Other,
            _,
        ) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_says_its_target_in_one_line() {
        for (input, wanted) in [
            (json!({"file_path": "/home/a/p/src/x.rs"}), "src/x.rs"),
            (json!({"file_path": "/home/a/pq/x.rs"}), "/home/a/pq/x.rs"),
            (json!({"command": "\n  cargo test\nsecond"}), "cargo test"),
            (json!({"pattern": "a", "path": "/x"}), "a"),
            (json!({"file_path": 7, "url": ["x"]}), ""),
            (json!("text"), ""),
            (json!(null), ""),
        ] {
            assert_eq!(target(&input, "/home/a/p"), wanted, "{input}");
        }
        let long = target(&json!({"command": "é".repeat(9_999)}), "");
        assert_eq!(long.chars().count(), TARGET_MAX + 1);
    }

    #[test]
    fn an_edit_shows_what_changes_and_counts_it() {
        let input = json!({"old_string": "1\n2\n3\n4\n5\nold\nz", "new_string": "1\n2\n3\n4\n5\nnew\nmore\nz"});
        let lines = edit_lines("Edit", &input);
        let text: Vec<String> = lines.iter().map(|l| format!("{}{}", l.sign, l.text)).collect();
        assert_eq!(text, [" 3", " 4", " 5", "-old", "+new", "+more", " z"]);
        assert_eq!(counts(&lines), (2, 1));
        assert_eq!(counts(&edit_lines("Write", &json!({"content": "a\nb"}))), (2, 0));
        let twice =
            json!({"edits": [{"old_string": "a", "new_string": "b"}, 7, {"new_string": "c"}]});
        assert_eq!(counts(&edit_lines("MultiEdit", &twice)), (2, 1));
        for odd in [json!(null), json!([]), json!({"old_string": {}}), json!({"edits": "x"})] {
            assert_eq!(edit_lines("Edit", &odd), [], "{odd}");
        }
        assert_eq!(edit_lines("Bash", &json!({"content": "x"})), []);
        assert_eq!(counts(&change("a\na", "a")), (0, 1), "shared ends do not overlap");
    }

    #[test]
    fn output_is_cut_to_its_newest_lines() {
        let text: String = (0..LINES_MAX + 5).map(|n| format!("{n}\n")).collect();
        let (kept, over) = newest_lines(&text);
        assert_eq!((kept.lines().count(), over), (LINES_MAX, 5));
        assert!(kept.starts_with("5\n"));
        assert_eq!(newest_lines("a\nb"), ("a\nb".into(), 0));
    }

    #[test]
    fn json_is_pretty_and_bounded() {
        assert_eq!(pretty(&json!({"a": 1}), 100), "{\n  \"a\": 1\n}");
        assert!(pretty(&json!("é".repeat(1_000)), 100).len() <= 104);
    }
}
