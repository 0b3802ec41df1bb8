//! Launches of the real CLI that fail: for good, by hanging, and because the machine is short of something.

use crate::apart::serve_if_asked;
use crate::bench::{Bench, limits};
use crate::looks::{Written, lives};
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::{cli_path, wait_until};
use omniscio_core::attention::{Pill, RowState};
use omniscio_core::id::SessionId;
use omniscio_core::limits::Limits;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::supervisor::Command;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const RED: (Status, Option<PendingAction>) = (Status::Error, None);
const CUT_OFF: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

/// Written by another process: a descriptor open for writing that a fork inherits would make a start of it
/// fail.
fn program(path: &Path, mode: &str, text: &str) {
    let write = r#"printf %s "$2" > "$0"; chmod "$1" "$0""#;
    let mut shell = std::process::Command::new("/bin/sh");
    let status = shell.args(["-c", write]).arg(path).args([mode, text]).status();
    assert!(status.expect("a shell").success());
}

/// The pinned CLI takes the place of whatever is there.
fn put_cli(slot: &Path) {
    fs::remove_file(slot).ok();
    symlink(cli_path(), slot).expect("a link");
}

/// Red, with these words and Retry as the way on.
fn red(bench: &Bench, session: SessionId, words: &[&str]) {
    let row = bench.wait_state(session, "the red row", RED);
    let said = row.words.unwrap_or_default();
    for part in words {
        assert!(said.contains(part), "{part:?} in {said:?}");
    }
    let attention = bench.attention(session);
    assert_eq!((attention.state, attention.pill), (RowState::LaunchError, Some(Pill::Retry)));
}

// proves: RS-07, RT-25
#[test]
fn without_a_cli_that_runs_it_is_red_at_once_and_one_click_brings_it_back() {
    in_namespace(
        "launches::without_a_cli_that_runs_it_is_red_at_once_and_one_click_brings_it_back",
        || {
            let (mut bench, slot) = Bench::with_slot(limits());
            bench.start();
            let place = slot.display().to_string();
            let missing = bench.create("where is it");
            red(&bench, missing, &["os error 2", "Install it", &place]);
            let before = bench.row(missing);
            program(&slot, "644", "#!/bin/sh\n");
            let forbidden = bench.create("may it be run");
            red(&bench, forbidden, &["os error 13", "chmod +x", &place]);
            program(&slot, "755", "\u{1}\u{2}\u{3}");
            let foreign = bench.create("is it a program");
            red(&bench, foreign, &["os error 8", "for this machine", &place]);
            assert_eq!(bench.row(missing), before, "nobody tried it again");

            put_cli(&slot);
            bench.api.script(|_, _| Reply::new().text("here I am"));
            let all = [
                (missing, "where is it"),
                (forbidden, "may it be run"),
                (foreign, "is it a program"),
            ];
            for (session, text) in all {
                bench.command(Command::Retry { session }).expect("a retry");
                bench.wait_answer(session, "here I am");
                assert_eq!((bench.requests_with(text), bench.bubbles(session)), (1, 1));
                bench.assert_never_twice(text);
                assert_eq!(bench.notes(session), [""; 0], "an error is no hiccup");
            }
            // away while a session lives: its next launch says so, and the message is not lost
            fs::remove_file(&slot).expect("there");
            bench.kill_cli(missing);
            wait_until(LIMIT, "the end of the child", || bench.row(missing).child.is_none());
            bench.send(missing, "and now");
            red(&bench, missing, &["os error 2", &place]);
            put_cli(&slot);
            bench.command(Command::Retry { session: missing }).expect("a retry");
            wait_until(LIMIT, "the second answer", || bench.answers(missing).len() == 2);
            assert_eq!((bench.requests_with("and now"), bench.bubbles(missing)), (1, 2));
            bench.assert_never_twice("where is it");
        },
    );
}

// proves: A-02
#[test]
fn a_cli_that_hangs_twice_before_it_answers_is_an_error_in_its_own_words_and_retry_brings_it_back()
{
    in_namespace(
        "launches::a_cli_that_hangs_twice_before_it_answers_is_an_error_in_its_own_words_and_retry_brings_it_back",
        || {
            let limits = Limits { handshake_ms: 8_000, ..limits() };
            let (mut bench, slot) = Bench::with_slot(limits);
            let starts = bench.home.home().join("starts");
            let hangs = format!(
                "#!/bin/sh\n\
                 [ \"$1\" = --version ] && exec '{cli}' \"$@\"\n\
                 echo $$ >> '{starts}'\n\
                 [ $(wc -l < '{starts}') -gt 2 ] && exec '{cli}' \"$@\"\n\
                 echo 'still waiting for the proxy' >&2\n\
                 exec sleep 600\n",
                cli = cli_path().display(),
                starts = starts.display(),
            );
            program(&slot, "755", &hangs);
            bench.start();
            let session = bench.create("are you there");
            red(&bench, session, &["still waiting for the proxy"]);
            let pids = || -> Vec<u32> {
                let all = fs::read_to_string(&starts).expect("started");
                all.lines().map(|pid| pid.parse().expect("a pid")).collect()
            };
            assert_eq!(pids().len(), 2, "once more, and no third time");
            wait_until(LIMIT, "the end of both", || !pids().into_iter().any(lives));
            let states = [(Status::Starting, None), RED];
            assert_eq!(bench.states(session), states, "it was not red in between");
            assert_eq!(bench.api.main_requests().len(), 0);

            bench.api.push(Reply::new().text("here I am"));
            bench.command(Command::Retry { session }).expect("a retry");
            bench.wait_answer(session, "here I am");
            assert_eq!((pids().len(), bench.bubbles(session)), (3, 1));
            assert_eq!(bench.api.main_requests().len(), 1);
        },
    );
}

/// A process that has no descriptors left for a launch, until this is dropped.
struct Short {
    pid: Pid,
    before: Rlimit,
}

impl Short {
    /// Leaves it three: enough to look at files with, too few for a terminal and its pipes.
    fn of_descriptors(bench: &Bench) -> Short {
        // it has raised its own limit by then, and opens nothing any more that it closes again
        bench.wait_version();
        let pid = bench.apart().pid();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process").flatten();
        let open: BTreeSet<u64> =
            open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let free = (0..).filter(|number| !open.contains(number)).nth(2);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
        // it was born with the limits of this process, and raises only the soft one
        let maximum = getrlimit(Resource::Nofile).maximum;
        let few = Rlimit { current: free.map(|last| last + 1), maximum };
        let before = prlimit(Some(pid), Resource::Nofile, few).expect("an own process");
        Short { pid, before }
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        prlimit(Some(self.pid), Resource::Nofile, self.before).expect("an own process");
    }
}

/// Limits under which the system itself says that it is short, and soon.
fn tried_anyway() -> Limits {
    Limits { headroom_descriptors: 0, ..limits() }
}

/// Waits until so many launches of the session have failed.
fn wait_failures(bench: &Bench, session: SessionId, many: u32) {
    wait_until(LIMIT, &format!("{many} failed launches"), || {
        let view = bench.view(session);
        view.live.relaunch.is_some_and(|relaunch| relaunch.attempts >= many)
    });
    let view = bench.view(session);
    assert_eq!((view.row.status, view.row.pending), (Status::Starting, None));
}

fn hiccups(bench: &Bench, session: SessionId) -> Vec<String> {
    let mut notes = bench.notes(session);
    notes.retain(|note| *note == prompt::NOTE_LAUNCH_HICCUP || note.contains("relaunching"));
    notes
}

/// The errors that the session was ever in.
fn errors(bench: &Bench, session: SessionId) -> Vec<(Status, Option<PendingAction>)> {
    let mut states = bench.states(session);
    states.retain(|(status, _)| *status == Status::Error);
    states
}

// proves: RS-01, RS-02, RS-15, RS-16, RT-25
#[test]
fn a_new_session_and_a_retry_fight_their_way_back_once_the_machine_can() {
    const PATH: &str =
        "launches::a_new_session_and_a_retry_fight_their_way_back_once_the_machine_can";
    in_namespace(PATH, || {
        serve_if_asked();
        let (mut bench, slot) = Bench::with_slot(tried_anyway());
        bench.api.script(|_, _| Reply::new().text("here I am"));
        bench.start_apart(PATH);
        let red = bench.create("where is the program");
        bench.wait_state(red, "the red row", RED);
        put_cli(&slot);
        // everything that is opened once is open by now
        let other = bench.create("the first of all");
        bench.wait_answer(other, "here I am");

        let short = Short::of_descriptors(&bench);
        let new = bench.create("the new one");
        wait_failures(&bench, new, 2);
        bench.command(Command::Retry { session: red }).expect("a retry");
        wait_failures(&bench, red, 2);
        assert!(bench.row(other).child.is_some_and(|child| lives(child.pid)), "others go on");
        drop(short);
        for (session, text) in [(new, "the new one"), (red, "where is the program")] {
            bench.wait_answer(session, "here I am");
            assert_eq!(hiccups(&bench, session), [prompt::NOTE_LAUNCH_HICCUP]);
            assert_eq!((bench.requests_with(text), bench.bubbles(session)), (1, 1));
            assert!(bench.view(session).live.relaunch.is_none(), "it is over");
        }
        assert_eq!(errors(&bench, new), []);
        assert_eq!(errors(&bench, red), [RED], "only for the program that was missing");
    });
}

// proves: RS-02, RP-10, CR-05
#[test]
fn a_replay_and_a_resume_after_a_crash_fight_their_way_back_and_one_attempt_is_charged() {
    const PATH: &str = "launches::a_replay_and_a_resume_after_a_crash_fight_their_way_back_and_one_attempt_is_charged";
    in_namespace(PATH, || {
        serve_if_asked();
        // the debounce of the replay leaves time to take the descriptors away before the resume
        let limits = Limits { replay_debounce_ms: 30_000, ..tried_anyway() };
        let mut bench = Bench::with_limits(limits);
        let gate = Gate::new();
        bench.start_apart(PATH);
        let held = gate.clone();
        bench.api.script(move |_, _| Reply::new().text("half of it").hold_after(1, &held));
        let session = bench.create("please answer this");
        gate.wait_reached(LIMIT);
        bench.wait_on_disk(Written::Message("please answer this"));

        let short = Short::of_descriptors(&bench);
        bench.kill_cli(session);
        wait_failures(&bench, session, 2);
        drop(short);
        wait_until(LIMIT, "the replay", || gate.arrivals() == 2);
        assert_eq!((bench.replays(session), bench.row(session).retry_attempts), (1, 1));
        assert_eq!(hiccups(&bench, session).len(), 1);

        bench.kill_app();
        bench.start_apart(PATH);
        let short = Short::of_descriptors(&bench);
        wait_failures(&bench, session, 2);
        bench.api.script(|_, _| Reply::new().text("here it is whole"));
        drop(short);
        bench.wait_answer(session, "here it is whole");
        assert_eq!((bench.replays(session), bench.row(session).retry_attempts), (1, 1));
        // each of the two was told once
        assert_eq!(hiccups(&bench, session), [prompt::NOTE_LAUNCH_HICCUP; 2]);
        assert_eq!(errors(&bench, session), [CUT_OFF], "only by the kill");
        assert_eq!(bench.bubbles(session), 1);
        bench.assert_never_twice("please answer this");
        bench.assert_never_twice_on_disk("please answer this");
    });
}
