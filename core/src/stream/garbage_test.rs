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
