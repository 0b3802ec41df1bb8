//! One line to its events: finds the JSON objects in it and says what is no protocol.
//!
//! A terminal may put things around a line (a cursor escape, a banner without newline): they never
//! cost the protocol line that follows them.

use super::StreamEvent;
use super::line::{self, Line};
use super::{meaning, sniff, streamed, wire};
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
    while !rest.is_empty() {
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
                let sound = next_sound(object).unwrap_or(object.len());
                let (torn, after) = object.split_at(sound);
                broken(torn, events);
                rest = after;
            }
        }
    }
}

/// The event of the object that the text begins with, if it is protocol, and the object's length in
/// bytes; `None` if it is torn.
fn parse(text: &str, model: &mut Option<String>) -> Option<(Option<StreamEvent>, usize)> {
    if begins_streamed(text) {
        return partial(text);
    }
    let (line, len) = read::<wire::Line>(text)?;
    if line.kind.0.as_deref() == Some(streamed::KIND) {
        return partial(text);
    }
    Some((meaning::event(line, model), len))
}

/// Whether the type is the first field of the object, as the CLI writes it, and is the one that has
/// fields of its own.
fn begins_streamed(object: &str) -> bool {
    let kind = object.strip_prefix('{').and_then(|rest| {
        let value = rest.trim_start().strip_prefix("\"type\"")?.trim_start();
        value.strip_prefix(':')?.trim_start().strip_prefix('"')
    });
    kind.and_then(|rest| rest.strip_prefix(streamed::KIND))
        .is_some_and(|rest| rest.starts_with('"'))
}

fn partial(text: &str) -> Option<(Option<StreamEvent>, usize)> {
    let (line, len) = read::<streamed::Streamed<'_>>(text)?;
    let malformed = || StreamEvent::Malformed { kind: streamed::KIND.into() };
    Some((Some(line.event().unwrap_or_else(malformed)), len))
}

/// The object that the text begins with, and its length in bytes; `None` if it is torn.
fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Option<(T, usize)> {
    let mut json = serde_json::Deserializer::from_str(text);
    let line = T::deserialize(&mut json).ok()?;
    Some((line, json.into_iter::<IgnoredAny>().byte_offset()))
}

/// Where, behind the torn object that `text` begins with, a sound line of a known type begins.
fn next_sound(text: &str) -> Option<usize> {
    text.match_indices(OBJECT).map(|(at, _)| at).filter(|at| *at > 0).take(RESCUE_TRIES).find(
        |at| {
            let tail = text.get(*at..).unwrap_or_default();
            let head =
                tail.char_indices().nth(RESCUE_HEAD_CHARS).map_or(tail, |(end, _)| &tail[..end]);
            let known = sniff::kinds(head).0.is_some_and(|kind| meaning::is_known(&kind));
            known && parse(tail, &mut None).is_some()
        },
    )
}

/// A piece that begins like JSON and is none: protocol of a known kind gone wrong, or chatter.
fn broken(text: &str, events: &mut Vec<StreamEvent>) {
    match sniff::kinds(text).0 {
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
    let mut rest: &str = &text;
    while let Some(at) = rest.find(noisy) {
        let (sound, noise) = rest.split_at(at);
        out.push_str(sound);
        // a byte order mark inside a text is a character of it
        if noise.starts_with('\u{feff}') && !out.trim().is_empty() {
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
