//! Reads Rust text well enough to tell code from comments, string literals and test modules.
//!
//! Not a parser: it knows where literals and comments end, and what a whole word is.

/// Whether the line holds the name and the name is not the end or the start of a longer one.
pub(crate) fn holds(line: &str, name: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let open_end = name.ends_with('*');
    let name = name.trim_end_matches('*');
    line.match_indices(name).any(|(at, _)| {
        let before = is_word(line[..at].chars().next_back());
        let after = is_word(line[at + name.len()..].chars().next());
        !before && (open_end || name.ends_with(':') || !after)
    })
}

/// The text with comments, string literals and inline test modules blanked, line for line.
pub(crate) fn code_of(text: &str) -> String {
    let bare = blank(text);
    let tests = bare.match_indices("#[cfg(test)]").find(|(at, marker)| {
        let next = bare[at + marker.len()..].trim_start();
        next.starts_with("mod ") && !next.lines().next().unwrap_or_default().ends_with(';')
    });
    tests.map_or(bare.as_str(), |(at, _)| &bare[..at]).to_owned()
}

/// The text with comments and the insides of string literals replaced by spaces.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = comment(rest).or_else(|| string(rest)).or_else(|| character(rest));
        let (length, keep) = taken.map_or((first.len_utf8(), true), |length| (length, false));
        let (piece, tail) = rest.split_at(length);
        if keep {
            out.push_str(piece);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = tail;
    }
    out
}

/// The length of the comment that the text starts with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(text.len())
}

/// The length of the string literal that the text starts with.
fn string(text: &str) -> Option<usize> {
    if text.starts_with('"') {
        let bytes = text.as_bytes();
        let mut at = 1;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        return Some((at + 1).min(text.len()));
    }
    let hashes = text.strip_prefix("r")?;
    let marks = hashes.len() - hashes.trim_start_matches('#').len();
    let inside = hashes[marks..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(marks));
    let end = inside.find(&close).map_or(inside.len(), |at| at + close.len());
    Some(1 + marks + 1 + end)
}

/// The length of the character literal that the text starts with; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    if chars.next()?.1 == '\\' {
        chars.next()?;
        return inside[2..].find('\'').map(|at| at + 4);
    }
    let (at, close) = chars.next()?;
    (close == '\'').then_some(at + 2)
}

#[test]
fn comments_strings_and_tests_are_not_code() {
    let text = "a(); // store::x\nlet s = \"pty::\\\" // \"; b(); /* c /* d */\ne */ f('\"', '\\'', \
                r#\"g\"h\"#);\nlet x: &'a str;\n#[cfg(test)]\nmod tests {\n  store::y();\n}\n";
    let code = code_of(text);
    for name in ["store", "pty", "c", "d", "e", "g", "h"] {
        assert!(!holds(&code, name), "{name} is no code in:\n{code}");
    }
    for name in ["a", "b", "f", "x", "str"] {
        assert!(holds(&code, name), "{name} is code in:\n{code}");
    }
    assert_eq!(code.lines().nth(1).map(str::len), text.lines().nth(1).map(str::len));
}

#[test]
fn a_name_is_found_as_a_whole_word() {
    assert!(holds("use crate::store::Rows;", "store::"));
    assert!(!holds("use crate::restore::Rows;", "store::"));
    assert!(holds("use tauri_plugin_opener as o;", "tauri_*"));
    assert!(!holds("unsafe_code", "unsafe"));
    assert!(holds("Duration::from_secs(90)", "Duration::from_secs(9*"));
    assert!(!holds("Duration::from_secs(limits.x)", "Duration::from_secs(9*"));
}
