//! Bytes that are no protocol: nothing panics, and how they are cut changes nothing.

extern crate std;

use super::captures_test::events;
use super::*;
use alloc::format;
use proptest::prelude::*;

proptest! {
    // proves: PR-02, INV-64
    #[test]
    fn garbage_gives_the_same_events_however_it_is_cut(
        bytes in proptest::collection::vec(
            prop_oneof![
                any::<u8>(),
                proptest::sample::select(&b"{}[]\",:\\\n\r\x1b\0 typesubk\xef\xbb\xbf\xff"[..]),
            ],
            0..400,
        ),
        cuts in proptest::collection::vec(0usize..400, 0..12),
        max in 1usize..200,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let run = |cuts: &[usize]| {
            let mut decoder = Decoder::new(max);
            let mut all = Vec::new();
            let mut from = 0;
            for cut in cuts.iter().copied().chain([bytes.len()]) {
                all.extend(decoder.push(&bytes[from..cut]));
                from = cut;
            }
            all.extend(decoder.finish());
            all
        };
        prop_assert_eq!(run(&cuts), run(&[]));
    }

    #[test]
    fn sound_lines_survive_garbage_lines(noise in "[^\n{]{0,80}") {
        let line = "{\"type\":\"keep_alive\"}";
        let got = events(format!("{noise}\n{line}\n").as_bytes(), &[]);
        prop_assert_eq!(got.last(), Some(&StreamEvent::KeepAlive));
    }
}

/// All sessions share the thread that decodes. Each of these would take hours if a byte were looked at
/// again for each that follows it.
// proves: PR-02
#[test]
fn a_hostile_line_is_read_in_one_go() {
    let torn = "{\"type\":\"user\",\"x\":[";
    let sound = "{\"type\":\"keep_alive\"}";
    let long = |piece: &str| piece.repeat(8 * 1024 * 1024 / piece.len());
    let marks = format!("{}{}", " ".repeat(4 * 1024 * 1024), "\u{feff}".repeat(1024 * 1024));
    for (name, line, wanted) in [
        ("torn ones", long(torn), 1),
        ("torn and sound ones in turns", long(&format!("{torn}{sound}")), 3),
        ("sound ones", long(sound), 1025),
        ("others", long("{\"a\":1}"), 1025),
        ("blanks and byte order marks", marks, 0),
    ] {
        let got = events(format!("{line}\n{sound}\n").as_bytes(), &[]);
        assert_eq!(got.len(), wanted + 1, "{name}");
        assert_eq!(got.last(), Some(&StreamEvent::KeepAlive), "{name}");
    }
}
