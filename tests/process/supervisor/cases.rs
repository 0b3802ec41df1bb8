//! Cases from public bug reports on the real machinery: the supervisor with short limits, terminals,
//! signals, the stand-in as the CLI. Limits to the millisecond and whole days are in
//! `core/src/supervisor/tests/cases.rs`.
//!
//! | case | what must hold | test |
//! |---|---|---|
//! | T1 | process tree gone, one abort, one recovery, nine others undisturbed, partial text kept, one bubble | `t01_…` |
//! | T2 | of six exactly the two that fell silent after a tool's result come back, four untouched | `t02_…` |
//! | T4 | no success before the handshake, "never started" with its last words, not archived, Retry | `t04_a_start_…` |
//! | T4 | chatter, then the first line: not killed | `t04_chatter_…` |
//! | T7 | dropped reply, "partial response", overload: back once; two a day, then red; a message resets | `t07_…` |
//! | T13 | killed between call and result: resumed, transcript byte for byte as it was | `t13_killed_…` |
//! | T13 | the API refuses the history: its words, Retry, no loop | `t13_a_refused_…` |
//! | T14 | deleted, cut or garbled transcript, refused resume: one hand-over, said aloud, dead id gone, view whole | `t14_…` |
//! | T20 | odd characters byte by byte, both ways; noise, a bad line or a huge one costs no other | `t20_odd_…`, `t20_what_is_…`, `t20_a_huge_…` |
//! | T20 | prompts of up to 5 M characters go by stdin; an app started inside a CLI passes nothing on | `t20_long_…`, `t20_an_app_…` |
//! | T21 | a daemon deaf to TERM, twenty look-alikes: only ours end, at quit, after a crash, at the next start | `t21_…` |

mod bytes;
mod failed;
mod histories;
mod silent;
mod strangers;
mod waits;

use super::rig::{App, Ground, config};
use crate::rig::await_some;
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Event;
use omniscio_core::limits::Limits;
use omniscio_core::session::{SessionRow, Status};
use omniscio_lib::supervise::children::{ProcessId, alive};
use omniscio_lib::supervise::supervisor::Config;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A silence that ends a turn, as short as a busy machine allows.
const SILENCE_MS: u64 = 4_000;

/// The rig's limits, and silence within a message or between two is over after [`SILENCE_MS`].
fn impatient(home: &Path) -> Config {
    let mut config = config(home);
    config.limits = Limits {
        cli_byte_idle_ms: SILENCE_MS / 4,
        cli_heals_first_margin_ms: SILENCE_MS / 4,
        silence_open_block_ms: SILENCE_MS,
        silence_between_ms: SILENCE_MS,
        ..config.limits
    };
    config
}

/// The living processes of one session: its CLI and all that carries its marker.
fn tree(session: SessionId) -> Vec<ProcessId> {
    let wanted = format!("OMNISCIO_SESSION={session}");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = pids.filter(|pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes())
    });
    ours.filter_map(ProcessId::of).filter(|id| alive(*id)).collect()
}

/// Whether this process runs a program of this name.
fn is_program(id: &ProcessId, name: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/comm", id.pid)).is_ok_and(|comm| comm.trim() == name)
}

/// The session's processes, once a tool or daemon (a `sleep`) is among them.
fn tree_with_sleep(session: SessionId) -> Vec<ProcessId> {
    await_some(|| {
        let tree = tree(session);
        tree.iter().any(|id| is_program(id, "sleep")).then_some(tree)
    })
}

/// Kills the session's CLI, the way the kernel does when memory runs out.
fn kill_cli(row: &SessionRow) {
    let child = row.child.expect("a child");
    let id = ProcessId { pid: child.pid, start_time: child.start };
    assert!(alive(id), "the CLI lives");
    let kill = ["-KILL", &child.pid.to_string()];
    assert!(Command::new("kill").args(kill).status().unwrap().success());
}

impl App {
    fn until_said(&self, session: SessionId, answer: &str) -> SessionRow {
        self.until_row(session, answer, |view| {
            let row = &view.row;
            row.answer_line.as_deref() == Some(answer)
                && row.turn.is_none()
                && row.status == Status::NeedsYou
        })
    }

    fn until_tool_runs(&self, session: SessionId) -> SessionRow {
        self.until_row(session, "tool", |view| !view.row.replay.calls.is_empty())
    }

    fn send(&self, session: SessionId, text: &str) {
        let (text, now) = (text.to_string(), false);
        let command = omniscio_core::supervisor::Command::Send { session, text, now };
        self.handle.command(command).unwrap();
    }

    fn retry(&self, session: SessionId) {
        self.handle.command(omniscio_core::supervisor::Command::Retry { session }).unwrap();
    }

    /// How many children were started for it.
    fn launches(&self, session: SessionId) -> usize {
        self.count(session, "launch: child")
    }

    fn charged(&self, session: SessionId) -> usize {
        self.count(session, "response-aborted: attempt charged")
    }

    /// Every state of the row that the listener was told.
    fn rows(&self, session: SessionId) -> Vec<SessionRow> {
        self.until("rows", |told| {
            let row = |event: &Event| {
                let Event::Row(view) = event else { return None };
                (view.row.id == session).then(|| view.row.clone())
            };
            Some(told.events.iter().filter_map(row).collect())
        })
    }

    fn blocks(&self, session: SessionId) -> Vec<Block> {
        self.handle.page(session, None, 1_000).unwrap().blocks
    }

    /// What the person said, in the view of the conversation.
    fn bubbles(&self, session: SessionId) -> Vec<String> {
        let text = |block: &Block| {
            let BlockKind::Operator { text, .. } = &block.kind else { return None };
            Some(text.clone())
        };
        self.blocks(session).iter().filter_map(text).collect()
    }

    /// What the agent said, in the view of the conversation, with whether it was cut off there.
    fn replies(&self, session: SessionId) -> Vec<(String, bool)> {
        let text = |block: &Block| {
            let BlockKind::Assistant { text } = &block.kind else { return None };
            Some((text.trim().to_string(), block.cut_off))
        };
        self.blocks(session).iter().filter_map(text).collect()
    }

    fn notes(&self, session: SessionId, wanted: &str) -> usize {
        let is_it =
            |block: &&Block| matches!(&block.kind, BlockKind::Note { text } if text == wanted);
        self.blocks(session).iter().filter(is_it).count()
    }

    /// Lets the scan serve a cut-off reply of another session: it has come by since.
    fn until_the_scan_came_by(&self, ground: &Ground) {
        let other = self.create(ground, "Go. [[fake: fail-first 1 kill; say Scanned.]]");
        self.until_said(other, "Scanned.");
    }
}
