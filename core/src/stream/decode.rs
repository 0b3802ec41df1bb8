//! One line to its events: finds the JSON objects in it and says what is no protocol.
//!
//! A terminal may put things around a line (a cursor escape, a banner without newline): they never
//! cost the protocol line that follows them. Whatever a line holds, reading it takes time in proportion
//! to its length: all sessions wait meanwhile.

use super::StreamEvent;
use super::line::{self, Line};
use super::{conversation, meaning, sniff, streamed, wire};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Chatter is kept up to this many characters.
const CHATTER_CHARS: usize = 2_000;
/// The beginning of an oversize line that is kept, in characters.
const PREFIX_CHARS: usize = 200;
/// Behind a torn object, this many places are tried for a sound one on the same line.
const RESCUE_TRIES: usize = 64;
/// But none any more once so many bytes of the line were looked at in vain: it may be long, and hostile.
const RESCUE_MAX_BYTES: usize = 1024 * 1024;
/// A line holds one object; by mistake some. What stands behind so many is chatter.
const OBJECTS_MAX: usize = 1024;
/// The type of a line stands within its first characters.
const RESCUE_HEAD_CHARS: usize = 200;
/// Where a JSON object may begin inside a line that is otherwise noise.
const OBJECT: &str = "{\"type\"";

/// Appends the events of one line to `events`. `model` is the conversation's model as `init` last named it.
pub(super) fn line(line: Line<'_>, model: &mut Option<String>, events: &mut Vec<StreamEvent>) {
    match line {
        Line::Head(bytes) => events.push(oversize(&clean(bytes))),
        Line::Whole(bytes) => objects(clean(bytes).trim(), model, events),
    }
}

fn oversize(head: &str) -> StreamEvent {
    // rule: A-01
    let (kind, subtype) = sniff::kinds(head);
    StreamEvent::Oversize {
        kind,
        subtype,
        prefix: head.trim().chars().take(PREFIX_CHARS).collect(),
    }
}

/// Decodes the objects of a line, one after the other; what stands between them is chatter.
fn objects(mut rest: &str, model: &mut Option<String>, events: &mut Vec<StreamEvent>) {
    let mut budget = RESCUE_MAX_BYTES;
    for _ in 0..OBJECTS_MAX {
        if rest.is_empty() {
            return;
        }
        let start = if rest.starts_with('{') { Some(0) } else { rest.find(OBJECT) };
        let Some((noise, object)) = start.and_then(|at| rest.split_at_checked(at)) else {
            return chatter(rest, events);
        };
        chatter(noise, events);
        match parse(object, model) {
            Some((event, len)) => {
                match event {
                    Some(event) => events.push(event),
                    None => chatter(object.get(..len).unwrap_or_default(), events),
                }
                rest = object.get(len..).unwrap_or_default().trim();
            }
            None => {
                let sound = next_sound(object, &mut budget).unwrap_or(object.len());
                let (torn, after) = object.split_at(sound);
                broken(torn, events);
                rest = after;
            }
        }
    }
    chatter(rest, events);
}

/// The event of the object that the text begins with, if it is protocol, and the object's length in
/// bytes; `None` if it is torn.
fn parse(text: &str, model: &mut Option<String>) -> Option<(Option<StreamEvent>, usize)> {
    // the CLI writes type and subtype first: of almost every line they tell which fields it has
    if let Some(of) = begin(text).and_then(|(kind, subtype)| Narrow::of(kind, subtype)) {
        return of.read(text);
    }
    let (line, len) = read::<wire::Line>(text)?;
    match line.kind.0.as_deref().and_then(|kind| Narrow::of(kind, line.subtype.0.as_deref())) {
        Some(of) => of.read(text),
        None => Some((meaning::event(line, model), len)),
    }
}

/// Kinds of lines that come often and have few fields: they are read without room for those of all
/// others.
enum Narrow {
    Streamed,
    Assistant,
    User,
    ThinkingTokens,
}

impl Narrow {
    fn of(kind: &str, subtype: Option<&str>) -> Option<Narrow> {
        match (kind, subtype) {
            (streamed::KIND, _) => Some(Narrow::Streamed),
            (conversation::ASSISTANT, _) => Some(Narrow::Assistant),
            (conversation::USER, _) => Some(Narrow::User),
            ("system", Some("thinking_tokens")) => Some(Narrow::ThinkingTokens),
            _ => None,
        }
    }

    /// As [`parse`].
    fn read(&self, text: &str) -> Option<(Option<StreamEvent>, usize)> {
        let (event, kind, len) = match self {
            Narrow::Streamed => {
                let (line, len) = read::<streamed::Streamed<'_>>(text)?;
                (line.event(), streamed::KIND, len)
            }
            Narrow::Assistant => {
                let (line, len) = read::<conversation::Spoken>(text)?;
                (conversation::assistant(line), conversation::ASSISTANT, len)
            }
            Narrow::User => {
                let (line, len) = read::<conversation::Spoken>(text)?;
                (conversation::user(line), conversation::USER, len)
            }
            Narrow::ThinkingTokens => {
                let (IgnoredAny, len) = read(text)?;
                return Some((Some(StreamEvent::ThinkingTokens), len));
            }
        };
        let event = event.unwrap_or_else(|| StreamEvent::Malformed { kind: kind.into() });
        Some((Some(event), len))
    }
}

/// The type of the object, and its subtype, if they are its first fields.
fn begin(object: &str) -> Option<(&str, Option<&str>)> {
    let (kind, rest) = field(object.strip_prefix('{')?, "\"type\"")?;
    let subtype = rest.trim_start().strip_prefix(',').and_then(|rest| field(rest, "\"subtype\""));
    Some((kind, subtype.map(|(subtype, _)| subtype)))
}

/// The string behind this key, as it stands there, and what follows it.
fn field<'a>(text: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    let value = text.trim_start().strip_prefix(key)?.trim_start().strip_prefix(':')?;
    value.trim_start().strip_prefix('"')?.split_once('"')
}

/// The object that the text begins with, and its length in bytes; `None` if it is torn.
fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Option<(T, usize)> {
    let mut json = serde_json::Deserializer::from_str(text);
    let line = T::deserialize(&mut json).ok()?;
    Some((line, json.into_iter::<IgnoredAny>().byte_offset()))
}

/// Where, behind the torn object that `text` begins with, a sound line of a known type begins. `budget`
/// is how many bytes may still be looked at.
fn next_sound(text: &str, budget: &mut usize) -> Option<usize> {
    let places = text.match_indices(OBJECT).map(|(at, _)| at).filter(|at| *at > 0);
    for at in places.take(RESCUE_TRIES) {
        if *budget == 0 {
            break;
        }
        let tail = text.get(at..).unwrap_or_default();
        *budget = budget.saturating_sub(tail.len());
        let head = tail.char_indices().nth(RESCUE_HEAD_CHARS).map_or(tail, |(end, _)| &tail[..end]);
        let known = sniff::kinds(head).0.is_some_and(|kind| meaning::is_known(&kind));
        if known && parse(tail, &mut None).is_some() {
            return Some(at);
        }
    }
    None
}

/// A piece that begins like JSON and is none: protocol of a known kind gone wrong, or chatter.
fn broken(text: &str, events: &mut Vec<StreamEvent>) {
    let head = text.floor_char_boundary(line::HEAD_BYTES);
    match sniff::kinds(text.get(..head).unwrap_or_default()).0 {
        Some(kind) if meaning::is_known(&kind) => events.push(StreamEvent::Malformed { kind }),
        Some(_) | None => chatter(text, events),
    }
}

fn chatter(text: &str, events: &mut Vec<StreamEvent>) {
    // rule: PR-04
    let text = text.trim();
    if !text.is_empty() {
        events.push(StreamEvent::Chatter(text.chars().take(CHATTER_CHARS).collect()));
    }
}

/// The line as text: invalid UTF-8 replaced, byte order marks, NULs and terminal escapes removed.
fn clean(bytes: &[u8]) -> Cow<'_, str> {
    // the quick check first: almost every line is sound
    let sound = core::str::from_utf8(bytes).map(Cow::Borrowed);
    let text = sound.unwrap_or_else(|_| String::from_utf8_lossy(bytes));
    // the first byte of each noise
    if line::find(text.as_bytes(), |byte| matches!(byte, 0 | 0x1b | 0xef)).is_none() {
        return text;
    }
    let noisy = |c: char| matches!(c, '\0' | '\u{1b}' | '\u{feff}');
    let mut out = String::with_capacity(text.len());
    let mut blank = true;
    let mut rest: &str = &text;
    while let Some(at) = rest.find(noisy) {
        let (sound, noise) = rest.split_at(at);
        out.push_str(sound);
        blank &= sound.trim().is_empty();
        // a byte order mark inside a text is a character of it
        if noise.starts_with('\u{feff}') && !blank {
            out.push('\u{feff}');
        }
        rest = after_noise(noise);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What follows the NUL, byte order mark or terminal escape that `text` begins with.
fn after_noise(text: &str) -> &str {
    let mut chars = text.chars();
    if chars.next() != Some('\u{1b}') {
        return chars.as_str();
    }
    match chars.next() {
        // CSI: parameters, then one final character from @ to ~
        Some('[') => {
            let rest = chars.as_str();
            match rest.find(|c: char| !matches!(c, ' '..='?')) {
                Some(at)
                    if rest
                        .get(at..)
                        .is_some_and(|r| r.starts_with(|c| matches!(c, '@'..='~'))) =>
                {
                    rest.get(at + 1..).unwrap_or_default()
                }
                Some(at) => rest.get(at..).unwrap_or_default(),
                None => "",
            }
        }
        // OSC: up to BEL or ESC \
        Some(']') => {
            let rest = chars.as_str();
            match rest.find(['\u{7}', '\u{1b}']) {
                Some(at) => {
                    let end = rest.get(at + 1..).unwrap_or_default();
                    end.strip_prefix('\\').unwrap_or(end)
                }
                None => rest,
            }
        }
        Some(_) | None => chars.as_str(),
    }
}
