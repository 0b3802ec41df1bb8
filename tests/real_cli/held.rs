//! The same conversation of the real CLI, open in a process that Omniscio did not start: it is not
//! resumed, the row says where it is open, and the person takes it over or goes on in a copy.

use crate::bench::{Bench, signal};
use crate::looks::Written;
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::{cli_path, wait_for, wait_until};
use omniscio_core::id::{CliSessionId, SessionId};
use omniscio_core::prompt;
use omniscio_core::session::{Holder, PendingAction, Status};
use omniscio_core::supervisor::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::time::Duration;

const TURN: Duration = Duration::from_secs(60);
const SHAPE: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

/// The real CLI in a shell of its own, as somebody else's program: no child of this process. It ends with
/// its input.
struct Foreign {
    pid: u32,
    shell: Child,
    input: Option<ChildStdin>,
}

impl Foreign {
    /// Resumes the conversation, and waits until the CLI tells that it has it open.
    fn resume(bench: &Bench, conversation: CliSessionId) -> Foreign {
        let script = "exec 3<&0; \"$0\" \"$@\" <&3 >/dev/null 2>&1 & wait";
        let mut command = Process::new("/bin/sh");
        command.args(["-c", script]).arg(cli_path());
        command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
        command.args(["--verbose", "--resume", &conversation.to_string()]);
        command.current_dir(bench.home.project()).env_clear().envs(bench.home.env());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut shell = command.stdin(Stdio::piped()).spawn().expect("a shell");
        let input = shell.stdin.take();
        let told = || told(&bench.home.config(), conversation, shell.id());
        let pid = wait_for(TURN, "the foreign CLI's own file", told);
        Foreign { pid, shell, input }
    }

    fn lives(&self) -> bool {
        parent(self.pid) == Some(self.shell.id())
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.input = None;
        // the shell ends with the CLI
        self.shell.wait().ok();
    }
}

/// The process below `shell` whose file names the conversation.
fn told(config: &Path, conversation: CliSessionId, shell: u32) -> Option<u32> {
    let files = fs::read_dir(config.join("sessions")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let values = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
    let mut open = values.filter(|told| told["sessionId"] == conversation.to_string());
    let pids = open.by_ref().filter_map(|told| u32::try_from(told["pid"].as_u64()?).ok());
    pids.into_iter().find(|pid| parent(*pid) == Some(shell))
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    fields.next()?.parse().ok().filter(|_| state != "Z")
}

fn held(bench: &Bench, session: SessionId) -> Option<Holder> {
    bench.view(session).live.held
}

/// An answered session, its conversation open elsewhere too.
fn answered_and_open(bench: &Bench) -> (SessionId, Foreign) {
    bench.api.push(Reply::new().text("first answer"));
    let session = bench.create("the first message");
    bench.wait_answer(session, "first answer");
    bench.wait_on_disk(Written::Said("first answer"));
    let conversation = bench.row(session).cli_session_id.expect("a conversation");
    (session, Foreign::resume(bench, conversation))
}

// proves: A-12
#[test]
fn a_cut_off_reply_is_not_resumed_while_another_process_has_the_session() {
    in_namespace(
        "held::a_cut_off_reply_is_not_resumed_while_another_process_has_the_session",
        || {
            let bench = Bench::new();
            let (session, foreign) = answered_and_open(&bench);
            let gate = Gate::new();
            bench.api.push(Reply::new().text("half an answer").hold_after(2, &gate));
            bench.send(session, "the second message");
            gate.wait_reached(TURN);
            bench.wait_on_disk(Written::Message("the second message"));
            bench.kill_cli(session);
            bench.wait_state(session, "the stamp", SHAPE);
            let holder = wait_for(TURN, "the holder in the row", || held(&bench, session));
            assert_eq!(holder.pid, foreign.pid);
            assert_eq!(Path::new(&holder.folder), bench.home.project());
            wait_until(TURN, "the scan's reason", || {
                let explained = bench.handle().explain(session).expect("an explanation");
                format!("{explained:?}").contains("HeldElsewhere")
            });
            let row = bench.row(session);
            assert_eq!((row.status, row.pending), SHAPE);
            assert_eq!((bench.replays(session), bench.api.main_requests().len()), (0, 2));
            assert!(foreign.lives());

            bench.api.push(Reply::new().text("the whole answer"));
            bench
                .command(Command::TakeOver { session, shown: holder.mark() })
                .expect("the foreign CLI ends");
            assert!(!foreign.lives());
            bench.wait_answer(session, "the whole answer");
            assert_eq!(held(&bench, session), None);
            bench.assert_never_twice("the second message");
        },
    );
}

// proves: A-12
#[test]
fn a_message_goes_into_a_copy_and_the_other_process_keeps_its_session() {
    in_namespace(
        "held::a_message_goes_into_a_copy_and_the_other_process_keeps_its_session",
        || {
            let bench = Bench::new();
            let (session, foreign) = answered_and_open(&bench);
            let row = bench.row(session);
            let conversation = row.cli_session_id.expect("a conversation");
            // an idle child that goes: the next message has to resume
            signal(row.child.expect("a child").pid, "KILL");
            wait_until(TURN, "the end of the child", || bench.row(session).child.is_none());
            bench.send(session, "the second message");
            let refused = bench.wait_state(session, "the refusal", (Status::Error, None));
            assert_eq!(refused.words.as_deref(), Some(prompt::HELD_ELSEWHERE));
            assert_eq!(held(&bench, session).map(|holder| holder.pid), Some(foreign.pid));

            bench.api.push(Reply::new().text("second answer"));
            bench.command(Command::ForkHeld { session }).expect("a copy");
            bench.wait_answer(session, "second answer");
            let last = bench.api.main_requests().pop().expect("a request");
            assert_eq!(last.count_text_in_history("the first message"), 1, "the copy knows it");
            assert_ne!(bench.row(session).cli_session_id, Some(conversation));
            assert!(foreign.lives());
            let lines = bench.home.transcript_lines(&conversation.to_string());
            assert!(
                !lines.is_empty() && !lines.iter().any(|l| l.to_string().contains("the second"))
            );
        },
    );
}
