//! What the tests look at beside the rows: what a person was shown, the log of restarts, the CLI's own
//! transcripts, and processes. It changes nothing but by the session that serves as a clock.

use crate::bench::Bench;
use crate::seen::now;
use crate::support::mock_api::{Gate, Reply};
use crate::support::real_cli::wait_until;
use omniscio_core::attention::{Attention, RowState, attention};
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::AuditLine;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::settings::Policy;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// A line of a conversation in the CLI's own transcript.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written<'a> {
    /// The person's message of exactly this text.
    Message(&'a str),
    /// A finished block of the model that holds this text.
    Said(&'a str),
    /// A tool call whose input holds this text.
    Call(&'a str),
    /// The result of a tool.
    Result,
}

impl Written<'_> {
    fn is(self, line: &Value) -> bool {
        let empty = Vec::new();
        let blocks = line["message"]["content"].as_array().unwrap_or(&empty);
        let any =
            |of: &str, is: &dyn Fn(&Value) -> bool| line["type"] == of && blocks.iter().any(is);
        match self {
            Written::Message(text) => says(line, text),
            Written::Said(text) => any("assistant", &|block| {
                block["text"].as_str().is_some_and(|said| said.contains(text))
            }),
            Written::Call(text) => any("assistant", &|block| {
                block["type"] == "tool_use" && block["input"].to_string().contains(text)
            }),
            Written::Result => any("user", &|block| block["type"] == "tool_result"),
        }
    }
}

impl Bench {
    /// Waits until a transcript of the CLI holds such a line. It writes them behind its output: it asks
    /// the API before the message is on disk, and runs a tool before its call is.
    pub(crate) fn wait_on_disk(&self, line: Written<'_>) {
        wait_until(LIMIT, &format!("{line:?} on disk"), || {
            self.home.transcripts().iter().any(|file| {
                // a last line that is not whole yet is none
                let all = fs::read_to_string(file).unwrap_or_default();
                all.lines().filter_map(|text| serde_json::from_str(text).ok()).any(|l| line.is(&l))
            })
        });
    }

    /// What a person sees of the session now.
    pub(crate) fn attention(&self, session: SessionId) -> Attention {
        attention(&self.view(session), &Policy::default(), self.limits(), now())
    }

    /// Every state that the session was in, in order, from the audit log: the window, which may be told
    /// later and of less, is not asked.
    pub(crate) fn states(&self, session: SessionId) -> Vec<(Status, Option<PendingAction>)> {
        let audit = self.audit(session);
        let mut states: Vec<_> =
            audit.iter().rev().filter_map(|line| state_in(&line.outcome)).collect();
        states.dedup();
        states
    }

    /// The states a person was shown, in order, each of them at the time it was told.
    pub(crate) fn shown(&self, session: SessionId) -> Vec<RowState> {
        let told = self.told(session).into_iter();
        let mut states: Vec<RowState> = told
            .map(|(at, view)| attention(&view, &Policy::default(), self.limits(), at).state)
            .collect();
        states.dedup();
        states
    }

    /// The notes in the session's conversation, in order.
    pub(crate) fn notes(&self, session: SessionId) -> Vec<String> {
        let blocks = self.blocks(session).into_iter();
        let notes = blocks.filter_map(|block| {
            if let BlockKind::Note { text } = block.kind { Some(text) } else { None }
        });
        notes.collect()
    }

    /// How often one actor took the session into `starting`, from the audit log.
    pub(crate) fn restarts(&self, session: SessionId, actor: &str) -> usize {
        let audit = self.audit(session);
        let begun = |line: &&AuditLine| {
            let (from, to) = line.outcome.split_once(" -> ").unwrap_or_default();
            line.actor == actor && !from.starts_with("starting") && to.starts_with("starting")
        };
        audit.iter().filter(begun).count()
    }

    /// Main requests whose history holds the text.
    pub(crate) fn requests_with(&self, text: &str) -> usize {
        let all = self.api.main_requests();
        all.iter().filter(|request| request.count_text_in_history(text) > 0).count()
    }

    /// Waits until the scan has served another session twice, each time after its debounce: whatever it
    /// was going to do with the rows of before, it has done. Takes the replies queued for it.
    pub(crate) fn let_the_scan_pass(&self) {
        let gates = [Gate::new(), Gate::new()];
        for gate in &gates {
            self.api.push(Reply::new().text("tick tock tick").hold_after(1, gate));
        }
        self.api.push(Reply::new().text("cuckoo"));
        let clock = self.create_in(&self.home.home(), "be my clock", false);
        for gate in &gates {
            gate.wait_reached(LIMIT);
            self.kill_cli(clock);
        }
        self.wait_answer(clock, "cuckoo");
        assert_eq!(self.replays(clock), 2);
    }

    /// In no transcript of the CLI stands the person's message more than once.
    pub(crate) fn assert_never_twice_on_disk(&self, text: &str) {
        for file in self.home.transcripts() {
            let all = fs::read_to_string(&file).expect("a transcript");
            let lines = all.lines().filter_map(|line| serde_json::from_str(line).ok());
            let messages = lines.filter(|line: &Value| says(line, text)).count();
            assert!(messages <= 1, "{text:?} {messages} times in {}:\n{all}", file.display());
        }
    }
}

/// The state that an entry of the audit log led to: `running -> error + response_aborted`.
fn state_in(outcome: &str) -> Option<(Status, Option<PendingAction>)> {
    let to = outcome.rsplit_once("-> ").or(outcome.rsplit_once(": ")).map_or(outcome, |(_, to)| to);
    let (status, pending) = to.split_once(" + ").unwrap_or((to, ""));
    Some((Status::parse(status)?, PendingAction::parse(pending)))
}

/// Whether a transcript line is a user message of exactly this text.
fn says(line: &Value, text: &str) -> bool {
    let content = &line["message"]["content"];
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let whole = content == text || blocks.iter().any(|block| block["text"] == text);
    line["type"] == "user" && whole
}

/// Processes that carry the session's marker.
pub(crate) fn marked(session: SessionId) -> Vec<u32> {
    let wanted = format!("OMNISCIO_SESSION={session}");
    let pids = fs::read_dir("/proc").expect("a process table");
    pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes())
        })
        .collect()
}

/// Whether there is a process of this number that has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The number that a process has written into a file, once it is there whole.
pub(crate) fn pid_in(file: &Path) -> u32 {
    let read = || fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'));
    wait_until(LIMIT, &format!("a pid in {}", file.display()), || read().is_some());
    read().and_then(|text| text.trim().parse().ok()).expect("a pid")
}
