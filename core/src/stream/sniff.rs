//! Reads the type and subtype of a JSON object from its beginning, which may be torn. Only for lines
//! that cannot be parsed; never a substitute for parsing.

use alloc::borrow::ToOwned;
use alloc::string::String;

/// The strings behind the top-level keys `type` and `subtype`, as far as `head` holds them.
pub(super) fn kinds(head: &str) -> (Option<String>, Option<String>) {
    let (mut kind, mut subtype) = (None, None);
    let mut key: Option<&str> = None;
    let mut depth = 0usize;
    let mut rest = head;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '"' => {
                let Some((text, after)) = string(rest) else {
                    break;
                };
                rest = after;
                let is_key = rest.trim_start().starts_with(':');
                if depth == 1 && is_key {
                    key = Some(text);
                } else if depth == 1 {
                    match key.take() {
                        Some("type") if kind.is_none() => kind = Some(text.to_owned()),
                        Some("subtype") if subtype.is_none() => subtype = Some(text.to_owned()),
                        _ => {}
                    }
                }
            }
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => key = None,
            _ => {}
        }
    }
    (kind, subtype)
}

/// The raw text up to the closing quote, and what follows it; `None` if the string is torn.
fn string(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((text.get(..at)?, text.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_level_counts() {
        for (head, kind, subtype) in [
            (r#"{"type":"user","message":{"type":"x","content":"lon"#, Some("user"), None),
            (
                r#"{"a":{"type":"no"},"b":["type","no"],"type" : "result","subtype":"success""#,
                Some("result"),
                Some("success"),
            ),
            (
                r#"{"a":"\"type\":\"no\"","subtype":"init","type":"system"}"#,
                Some("system"),
                Some("init"),
            ),
            (r#"{"type":7,"subtype":null,"x":"type"}"#, None, None),
            (r#"{"type":"torn"#, None, None),
            ("type user", None, None),
        ] {
            let (k, s) = kinds(head);
            assert_eq!((k.as_deref(), s.as_deref()), (kind, subtype), "{head}");
        }
    }
}
