//! How fast a child's output gets through terminal, decoder, turn and rules in a running supervisor,
//! against a reader that only throws it away, on the same terminal with the same lines.
//!
//! What the rules say to that output is not done: neither store nor window is measured here.

use crate::child::Role;
use crate::figure::Figure;
use crate::meter::{machine_ms, percentile};
use crate::rig::{self, App};
use omniscio_core::limits::Limits;
use omniscio_core::session::Status;
use omniscio_core::stream::{Decoder, StreamEvent};
use omniscio_core::supervisor::{Input, State, Step, step};
use omniscio_core::time::Now;
use omniscio_lib::supervise::pty::{ChildEvent, spawn};
use omniscio_lib::supervise::supervisor::Cli;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A recorded turn of the real CLI with thinking, text, a tool call and its result.
const RECORDED: &str = "tests/fixtures/captures/01-ok-text-then-tool-partial-messages.ndjson";
/// Each run carries at least so much.
const BYTES: usize = 32 * 1024 * 1024;
/// Each way is gone so often, in turns; the middle one counts. Single runs differ by half with the core
/// on which the kernel moves the terminal's bytes.
const ROUNDS: usize = 15;
/// A terminal gives so much at once.
const PIECE: usize = 4096;
const GOAL: f64 = 0.85;

/// See the file.
pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines");
    let turn = recorded();
    fs::write(&file, &turn).expect("the lines");
    let run = Run { file: &file, times: BYTES.div_ceil(turn.len()), turn: &turn };
    let [mut thrown_away, mut taken_in, mut decoded] = [(); 3].map(|()| Vec::new());
    let (mut busy_thrown_away, mut busy_taken_in) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let (rate, busy) = machine_ms(|| run.thrown_away());
        thrown_away.push(rate);
        busy_thrown_away += busy / ROUNDS as f64;
        let (rate, busy) = machine_ms(|| run.taken_in());
        taken_in.push(rate);
        busy_taken_in += busy / ROUNDS as f64;
        decoded.push(run.decoded());
    }
    let [fastest_thrown_away, fastest] =
        [&mut thrown_away, &mut taken_in].map(|rates| percentile(rates, 100));
    let [thrown_away, taken_in, decoded] =
        [thrown_away, taken_in, decoded].map(|mut rates| percentile(&mut rates, 50));
    let ratio = taken_in / thrown_away;
    let rate = |bytes: f64| format!("{:.0} MB/s", bytes / 1e6);
    let against = format!("{} thrown away", rate(thrown_away));
    vec![
        Figure::new(
            "output of a child: terminal, decoder, turn, rules",
            rate(taken_in),
            against.clone(),
            ratio,
        )
        .goal(&format!(">= {GOAL}"), ratio >= GOAL),
        Figure::new(
            "- the fastest round of each",
            rate(fastest),
            format!("{} thrown away", rate(fastest_thrown_away)),
            fastest / fastest_thrown_away,
        ),
        Figure::new("- decoder alone, from memory", rate(decoded), against, decoded / thrown_away),
        Figure::new(
            "- processor time of the whole machine, the start included",
            format!("{busy_taken_in:.0} ms"),
            format!("{busy_thrown_away:.0} ms thrown away"),
            busy_taken_in / busy_thrown_away,
        ),
    ]
}

/// The turn's own lines, without its begin and end: they repeat as one endless turn.
pub(crate) fn recorded() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED);
    let text = fs::read_to_string(path).expect("a recorded turn");
    let of_the_turn = |line: &&str| {
        ["\"stream_event\"", "\"assistant\"", "\"user\"", "\"thinking_tokens\"", "\"status\""]
            .iter()
            .any(|kind| line.split(", ").take(3).any(|field| field.ends_with(kind)))
    };
    let mut lines = String::new();
    for line in text.lines().filter(of_the_turn) {
        // the recording's own time stamp comes first
        let (_, line) = line.split_once(", ").expect("more than a time");
        lines.extend(["{", line, "\n"]);
    }
    lines.into_bytes()
}

struct Run<'a> {
    file: &'a Path,
    times: usize,
    turn: &'a [u8],
}

/// What the rules saw of the output that is measured.
static SEEN: Mutex<Seen> = Mutex::new(Seen { began: None, ended: None, lines: 0 });

struct Seen {
    began: Option<Instant>,
    ended: Option<Instant>,
    lines: usize,
}

impl Run<'_> {
    fn bytes(&self) -> usize {
        self.turn.len() * self.times
    }

    fn rate(&self, taken: Duration) -> f64 {
        self.bytes() as f64 / taken.as_secs_f64()
    }

    /// From the first byte to the end of the output, by the reader of the app and a sink that counts.
    fn thrown_away(&self) -> f64 {
        let role = Role::Lines { file: self.file, times: self.times };
        let line = rig::line(&role, self.file.parent().expect("a folder"));
        let drain = Duration::from_millis(Limits::default().drain_ms);
        let (told, heard) = channel();
        let seen = Arc::new(Mutex::new((None, 0)));
        let sink = move |event| match event {
            ChildEvent::Stdout(piece) => {
                let mut seen = seen.lock().expect("no panic");
                seen.0.get_or_insert_with(Instant::now);
                seen.1 += piece.len();
            }
            ChildEvent::OutputEnded => {
                let (began, bytes) = *seen.lock().expect("no panic");
                told.send((began, Instant::now(), bytes)).expect("it is waited for");
            }
            ChildEvent::Stderr(_)
            | ChildEvent::Exited { .. }
            | ChildEvent::Written { .. }
            | ChildEvent::WriteFailed { .. } => {}
        };
        spawn(&line, drain, sink).expect("a child");
        let (began, ended, bytes) = heard.recv().expect("an end");
        assert_eq!(bytes, self.bytes(), "all bytes came");
        self.rate(ended - began.expect("a begin"))
    }

    /// From the turn's first line to its result, in the rules.
    fn taken_in(&self) -> f64 {
        let role = Role::Talker { file: self.file, times: self.times };
        let args = role.args().into_iter().map(Into::into).collect();
        *SEEN.lock().expect("no panic") = Seen { began: None, ended: None, lines: 0 };
        let app = App::start(Cli::Fixed { program: rig::own_program(), args }, heard_only);
        let session = app.create("Go.");
        app.until(&[session], Status::NeedsYou);
        let seen = SEEN.lock().expect("no panic");
        let written = self.turn.iter().filter(|byte| **byte == b'\n').count() * self.times;
        assert_eq!(seen.lines, written, "each line is one event");
        let (began, ended) = (seen.began.expect("a begin"), seen.ended.expect("an end"));
        self.rate(ended - began)
    }

    /// The decoder in pieces of the terminal's size.
    fn decoded(&self) -> f64 {
        let all = self.turn.repeat(self.times);
        let mut decoder = Decoder::new(Limits::default().line_max_bytes);
        let before = Instant::now();
        for piece in all.chunks(PIECE) {
            black_box(decoder.push(piece));
        }
        self.rate(before.elapsed())
    }
}

/// The rules. What they say to the lines between a turn's begin and its end is left undone.
fn heard_only(state: &mut State, input: Input, now: Now) -> Step {
    let mut seen = SEEN.lock().expect("no panic");
    let begins = matches!(&input, Input::Stream { event: StreamEvent::Init(_), .. });
    let ends = matches!(&input, Input::Stream { event: StreamEvent::Result(_), .. });
    let between = seen.began.is_some() && seen.ended.is_none() && !ends;
    let flows = between && matches!(&input, Input::Stream { .. });
    if begins {
        seen.began = Some(Instant::now());
    } else if ends {
        seen.ended = Some(Instant::now());
    }
    seen.lines += usize::from(flows);
    let step = step(state, input, now);
    if flows { Step::default() } else { step }
}
