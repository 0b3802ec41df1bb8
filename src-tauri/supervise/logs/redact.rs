//! Cuts from a text what looks like a secret, and what is known to be one.
//!
//! It works on the words of a process as well as on a finished line of the log, where quotes and white
//! space stand escaped. It errs towards cutting.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// What stands where a secret stood.
const CUT: &str = "[cut]";
/// A secret is longer than this; a shorter word after its mark is a word.
const SECRET_MIN: usize = 8;
/// Known values shorter than this occur in words.
const VALUE_MIN: usize = 8;
/// How keys of common services begin.
const KEYS: [&str; 15] = [
    "sk-",
    "eyJ",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "AKIA",
    "ASIA",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xox",
];
/// What the name of a secret ends with.
const NAMES: [&str; 5] = ["token", "secret", "password", "passwd", "key"];

/// Secrets that were read while the app ran and are still cut: the last ones. A command may print
/// another one at each launch.
const READ_MAX: usize = 256;

/// Values that never pass, whatever stands around them.
static KNOWN: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());
/// The same for what was read while the app ran, oldest first.
static READ: RwLock<VecDeque<String>> = RwLock::new(VecDeque::new());

/// From now on these values are cut wherever they stand, unless they are too short to tell from words.
pub fn hide<'a>(values: impl IntoIterator<Item = &'a str>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    for value in values.into_iter().filter(|value| value.len() >= VALUE_MIN) {
        known.insert(value.to_string());
        known.extend(quoted(value));
    }
}

/// The same for a secret that was read just now; of these only the last 256 are remembered.
pub fn hide_read(value: &str) {
    let mut read = READ.write().unwrap_or_else(PoisonError::into_inner);
    if value.len() < VALUE_MIN || read.iter().any(|known| known == value) {
        return;
    }
    read.push_back(value.to_string());
    read.extend(quoted(value).filter(|quoted| quoted != value));
    let over = read.len().saturating_sub(READ_MAX);
    read.drain(..over);
}

/// A value as it stands inside of a JSON string: in a line of the log, or of a child's output.
pub(in crate::supervise) fn quoted(value: &str) -> Option<String> {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.get(1..quoted.len() - 1).map(str::to_string)
}

/// Whether a variable of this name holds a secret.
pub fn names_secret(name: &str) -> bool {
    secret_name(name).is_some()
}

/// The text without what is known to be a secret ([`hide`]) and what looks like one: keys of common
/// services, bearer tokens, values after the name of a secret, the user of a URL.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut found: Vec<Range<usize>> = Vec::new();
    known(text, &mut found);
    keys(text, &mut found);
    bearers(text, &mut found);
    named(text, &mut found);
    users(text, &mut found);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_by_key(|range| range.start);
    let (mut out, mut done) = (String::new(), 0);
    for range in found {
        if range.start >= done {
            out.push_str(&text[done..range.start]);
            out.push_str(CUT);
        }
        done = done.max(range.end);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

fn known(text: &str, found: &mut Vec<Range<usize>>) {
    let (fixed, read) = (KNOWN.read(), READ.read());
    let fixed = fixed.unwrap_or_else(PoisonError::into_inner);
    let read = read.unwrap_or_else(PoisonError::into_inner);
    for value in fixed.iter().chain(read.iter()) {
        found.extend(text.match_indices(value).map(|(at, _)| at..at + value.len()));
    }
}

/// A key may stand after `NAME=` or inside a URL.
fn keys(text: &str, found: &mut Vec<Range<usize>>) {
    for mark in KEYS {
        for (at, _) in text.match_indices(mark) {
            let alone = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let end = word_end(text, at);
            // of Slack's kinds of keys each has its own letter
            let whole = mark != "xox" || text[at + mark.len()..].get(1..2) == Some("-");
            if alone && whole && end - at > SECRET_MIN {
                found.push(at..end);
            }
        }
    }
}

fn bearers(text: &str, found: &mut Vec<Range<usize>>) {
    let small = text.to_ascii_lowercase();
    for (at, mark) in small.match_indices("bearer") {
        let start = skip_gap(text, at + mark.len());
        let end = word_end(text, start);
        if start > at + mark.len() && end - start > SECRET_MIN {
            found.push(start..end);
        }
    }
}

/// `NAME_KEY=value`, `"name-token": "value"`, `x-api-key: value`.
fn named(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, sign) in text.match_indices(['=', ':']) {
        let before = text[..at].trim_end_matches([' ', '"', '\'', '\\']);
        let begin = before
            .rfind(|c: char| !is_name(c))
            .map_or(0, |last| last + before[last..].chars().next().map_or(1, char::len_utf8));
        let Some(certain) = secret_name(&before[begin..]) else {
            continue;
        };
        let value = value(text, at + sign.len());
        // "key: " and "token: " begin many a sentence
        let meant = certain || (sign == "=" && value.len() >= SECRET_MIN);
        if meant && !value.is_empty() {
            found.push(value);
        }
    }
}

/// `user:password@` of a URL, or a token that stands there.
fn users(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '\\');
        let host = &text[start..text[start..].find(ends).map_or(text.len(), |end| start + end)];
        let Some(user) = host.rfind('@').map(|length| &host[..length]) else {
            continue;
        };
        if user.contains(':') || user.len() > SECRET_MIN {
            found.push(start..start + user.len());
        }
    }
}

/// Whether a name is that of a secret, and if so, whether it surely is.
fn secret_name(name: &str) -> Option<bool> {
    let small = name.to_ascii_lowercase();
    let end = NAMES.iter().find(|end| small.ends_with(*end))?;
    let rest = &name[..name.len() - end.len()];
    if *end != "key" {
        return Some(!rest.is_empty() || *end != "token");
    }
    // not the end of a longer word: a monkey is no key
    let camel = rest.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name[rest.len()..].starts_with('K');
    let apart = rest.ends_with(['_', '-', '.']) || camel || small.ends_with("apikey");
    if rest.is_empty() { Some(false) } else { apart.then_some(true) }
}

/// The value that begins after `from`: to the closing quote, or to what separates values.
fn value(text: &str, from: usize) -> Range<usize> {
    let spaces = text[from..].len() - text[from..].trim_start_matches([' ', '\t']).len();
    let start = from + spaces;
    for quote in ["\\\"", "\"", "'"] {
        if let Some(rest) = text[start..].strip_prefix(quote) {
            let inside = start + quote.len();
            let closing = |(at, _): &(usize, &str)| quote == "\\\"" || !rest[..*at].ends_with('\\');
            let length = rest.match_indices(quote).find(closing).map_or(rest.len(), |(at, _)| at);
            return inside..inside + length;
        }
    }
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | ',' | ';' | '&' | '{' | '}' | ')')
    };
    start..text[start..].find(ends).map_or(text.len(), |length| start + length)
}

/// White space, escaped white space, quotes and signs between a mark and its value.
fn skip_gap(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let escaped = ["\\t", "\\n", "\\r", "\\\""].iter().any(|gap| rest.starts_with(gap));
        match rest.chars().next() {
            Some('\\') if escaped => at += 2,
            Some(c) if c.is_whitespace() || matches!(c, ':' | '=' | '"' | '\'') => {
                at += c.len_utf8();
            }
            Some(_) | None => return at,
        }
    }
}

fn word_end(text: &str, from: usize) -> usize {
    let word =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '+' | '/' | '=');
    text[from..].find(|c| !word(c)).map_or(text.len(), |length| from + length)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_cut() {
        for (text, clean) in [
            ("key sk-ant-api03-abcdef_gh failed", "key [cut] failed"),
            ("ANTHROPIC_API_KEY=sk-ant-api03-x", "ANTHROPIC_API_KEY=[cut]"),
            ("Authorization: Bearer abc.DEF-123456", "Authorization: Bearer [cut]"),
            ("\"authorization\":\"bearer abcdefghi\"", "\"authorization\":\"bearer [cut]\""),
            ("Bearer\tabcdefghijkl", "Bearer\t[cut]"),
            ("{\"m\":\"Bearer\\tabcdefghijkl\\n\"}", "{\"m\":\"Bearer\\t[cut]\\n\"}"),
            ("token eyJhbGciOi.eyJzdWIi.sig, next", "token [cut], next"),
            ("sk-aaaaaaaaa and sk-bbbbbbbbb", "[cut] and [cut]"),
            ("ghp_abcdefgh1 gho_abcdefgh1 github_pat_11AB_cd", "[cut] [cut] [cut]"),
            ("(AKIAIOSFODNN7EXAMPLE) glpat-abcDEF123", "([cut]) [cut]"),
            ("xoxb-12345-abc xoxe-1234567 xoxo-y", "[cut] [cut] xoxo-y"),
            ("AWS_SECRET=ab,c MY_PASSWORD: hunter2; x", "AWS_SECRET=[cut],c MY_PASSWORD: [cut]; x"),
            ("x-api-key: abc\r\nhost: a", "x-api-key: [cut]\r\nhost: a"),
            ("{\"apiKey\":\"a b\\\"c\",\"n\":1}", "{\"apiKey\":\"[cut]\",\"n\":1}"),
            (
                "{\"m\":\"{\\\"x_token\\\": \\\"ab c\\\"}\"}",
                "{\"m\":\"{\\\"x_token\\\": \\\"[cut]\\\"}\"}",
            ),
            ("DB_PASSWORD='a b' next", "DB_PASSWORD='[cut]' next"),
            ("GET /?key=AIzaSyD-abc&x=1", "GET /?key=[cut]&x=1"),
            (
                "https://me:pw@host/a and https://host/b@c",
                "https://[cut]@host/a and https://host/b@c",
            ),
            ("git clone ssh://git@host/a", "git clone ssh://git@host/a"),
            ("ünï_TOKEN=größe ok", "ünï_TOKEN=[cut] ok"),
        ] {
            assert_eq!(redact(text), clean);
            assert_eq!(redact(clean), clean, "once is enough");
        }
    }

    #[test]
    fn words_stay() {
        for text in [
            "a task-force risk-assessment",
            "the bearer of news; sk-1; größe",
            "monkey: banana, key: value, token: next, \"input_tokens\":12345678",
            "{\"key\":\"abortedResponseRecoveryEnabled\",\"took\":300}",
            "Invalid API key · Please run /login",
            "error: unexpected token: }",
            "",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn known_values_are_cut_wherever_they_stand() {
        hide(["correct horse \"battery\"", "short"]);
        assert_eq!(redact("said correct horse \"battery\"."), "said [cut].");
        assert_eq!(redact("{\"m\":\"correct horse \\\"battery\\\".\"}"), "{\"m\":\"[cut].\"}");
        assert_eq!(redact("short words"), "short words");
    }

    #[test]
    fn a_variable_tells_by_its_name() {
        assert!(
            ["AWS_SECRET", "ANTHROPIC_API_KEY", "NPM_TOKEN", "PGPASSWORD"].map(names_secret)
                == [true; 4]
        );
        assert!(["PATH", "HOME", "MONKEY", "KEYBOARD"].map(names_secret) == [false; 4]);
    }
}
