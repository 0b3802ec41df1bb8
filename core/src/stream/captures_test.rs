//! The recorded streams of the real CLI, decoded as they are and cut at every place.

extern crate std;

use super::{Decoder, PartialKind, StreamEvent};
use crate::id::Rng;
use crate::limits::Limits;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::{fs, path::Path};

/// Captures shorter than this are read byte by byte, the others in random pieces.
const SMALL: usize = 6_000;
/// Captures shorter than this are also cut in two at every byte, the small ones at some.
const TINY: usize = 2_300;

/// Every recorded stream, by its file name.
pub(crate) fn captures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/captures");
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("the folder of captures")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("a capture"))
        })
        .collect();
    all.sort();
    assert!(all.len() >= 80, "{} captures", all.len());
    all
}

/// All events of the stream, read in pieces that end at `cuts`.
pub(crate) fn events(bytes: &[u8], cuts: &[usize]) -> Vec<StreamEvent> {
    let mut decoder = Decoder::new(Limits::default().line_max_bytes);
    let mut all = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        all.extend(decoder.push(&bytes[from..cut]));
        from = cut;
    }
    all.extend(decoder.finish());
    all
}

#[test]
fn every_recorded_line_is_understood() {
    for (name, bytes) in captures() {
        let lines = String::from_utf8(bytes.clone()).expect("text").lines().count();
        let events = events(&bytes, &[]);
        assert_eq!(events.len(), lines, "{name}: one event a line");
        for event in events {
            let strange = matches!(
                event,
                StreamEvent::Unknown { .. }
                    | StreamEvent::Malformed { .. }
                    | StreamEvent::Oversize { .. }
                    | StreamEvent::Chatter(_)
                    | StreamEvent::Partial(super::Partial { kind: PartialKind::Other, .. })
            );
            assert!(!strange, "{name}: {event:?}");
        }
    }
}

// proves: PR-02, INV-64
#[test]
fn small_captures_give_the_same_events_cut_at_every_byte() {
    let mut cut = 0;
    for (name, bytes) in captures().into_iter().filter(|(_, bytes)| bytes.len() < SMALL) {
        let whole = events(&bytes, &[]);
        let singles: Vec<usize> = (1..bytes.len()).collect();
        assert_eq!(events(&bytes, &singles), whole, "{name}: byte by byte");
        let step = if bytes.len() < TINY { 1 } else { 97 };
        for at in (1..bytes.len()).step_by(step) {
            assert_eq!(events(&bytes, &[at]), whole, "{name}: cut at {at}");
        }
        cut += 1;
    }
    assert!(cut >= 40, "{cut} captures were cut");
}

// proves: PR-02, INV-64
#[test]
fn large_captures_give_the_same_events_in_any_chunks() {
    let mut rng = Rng::new(64);
    for (name, bytes) in captures().into_iter().filter(|(_, bytes)| bytes.len() >= SMALL) {
        let whole = events(&bytes, &[]);
        for size in [3, 40, 700, 5_000] {
            let mut cuts = Vec::new();
            let mut at = 0;
            loop {
                at += 1 + (rng.next_u64() % (2 * size)) as usize;
                if at >= bytes.len() {
                    break;
                }
                cuts.push(at);
            }
            assert_eq!(events(&bytes, &cuts), whole, "{name}: chunks of about {size}");
        }
    }
}

// proves: PR-02
#[test]
fn a_cooked_terminal_changes_no_event() {
    for (name, bytes) in captures() {
        let cooked = String::from_utf8(bytes.clone()).expect("text").replace('\n', "\r\n");
        let framed = format!("\u{feff}{cooked}\r\n\u{1b}[?25h");
        assert_eq!(events(framed.as_bytes(), &[]), events(&bytes, &[]), "{name}");
    }
}

#[test]
fn the_place_of_the_type_changes_no_event() {
    let mut moved = 0;
    for (name, bytes) in captures() {
        let text = String::from_utf8(bytes.clone()).expect("text");
        let mut first = String::new();
        for line in text.lines() {
            // the recording's own time stamp comes before the type
            let (stamp, rest) = line.split_once(", ").expect("more than a time");
            assert!(stamp.starts_with("{\"_t\""), "{name}: {line}");
            moved += usize::from(rest.starts_with("\"type\": \"stream_event\""));
            first.extend(["{", rest, "\n"]);
        }
        let compact = first.replace("{\"type\": \"stream_event\"", "{\"type\":\"stream_event\"");
        assert_eq!(events(first.as_bytes(), &[]), events(&bytes, &[]), "{name}");
        assert_eq!(
            events(compact.as_bytes(), &[]),
            events(&bytes, &[]),
            "{name}: as it is written"
        );
    }
    assert!(moved > 400, "{moved} lines");
}
