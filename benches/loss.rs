//! What is lost of a burst that a child writes just before it exits, through the real spawn.

use crate::child::Role;
use crate::figure::Figure;
use crate::rig;
use omniscio_core::limits::Limits;
use omniscio_core::stream::{Decoder, StreamEvent};
use omniscio_lib::supervise::pty::{ChildEvent, spawn};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

const TRIALS: usize = 1_000;
const BURST_BYTES: usize = 20_000;

/// See the file.
pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("burst");
    let text = "x".repeat(BURST_BYTES);
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    let written = format!(
        "{}\n{}\n",
        json!({"type": "assistant", "message": message}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done."}),
    );
    fs::write(&file, &written).expect("the burst");
    let (mut arrived, mut results) = (0, 0);
    for _ in 0..TRIALS {
        let (bytes, result) = trial(&file, written.as_bytes());
        arrived += bytes;
        results += usize::from(result);
    }
    let sent = written.len() * TRIALS;
    let lost = sent - arrived;
    vec![
        Figure::new(
            format!("bytes lost of {TRIALS} bursts of 20 kB, result, exit"),
            format!("{lost} B lost, {results} results"),
            format!("{sent} B written"),
            arrived as f64 / sent as f64,
        )
        .goal("0 lost", lost == 0 && results == TRIALS),
    ]
}

/// How many bytes arrived as they were written, and whether the last event was the result.
fn trial(file: &Path, written: &[u8]) -> (usize, bool) {
    let (told, heard) = channel();
    let drain = Duration::from_millis(Limits::default().drain_ms);
    let line = rig::line(&Role::Burst { file }, file.parent().expect("a folder"));
    // nobody listens any more once the exit was told
    spawn(&line, drain, move |event| drop(told.send(event))).expect("a child");
    let mut all = Vec::new();
    for event in heard {
        match event {
            ChildEvent::Stdout(piece) => all.extend(piece),
            ChildEvent::Exited { .. } => break,
            ChildEvent::Stderr(_)
            | ChildEvent::OutputEnded
            | ChildEvent::Written { .. }
            | ChildEvent::WriteFailed { .. } => {}
        }
    }
    let as_written = all.iter().zip(written).take_while(|(is, was)| is == was).count();
    let events = Decoder::new(Limits::default().line_max_bytes).push(&all);
    (as_written, matches!(events.last(), Some(StreamEvent::Result(_))))
}
