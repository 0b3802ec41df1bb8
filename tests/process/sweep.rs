//! What a dead CLI left behind is ended, and nothing else is.

use super::rig::{LONG, Rig, orphan, process_in, stubborn};
use omniscio_lib::supervise::children::{
    MARKER_DATA, MARKER_SESSION, Marker, ProcessId, SweepTimings, alive, sweep,
};
use omniscio_lib::supervise::pty::Signal;
use std::time::Duration;

pub(crate) const TIMINGS: SweepTimings = SweepTimings {
    term_grace: Duration::from_millis(100),
    kill_wait: LONG,
    poll: Duration::from_millis(5),
};

/// A marker of one test alone.
pub(crate) fn marker(test: &str) -> Marker {
    Marker {
        session_id: format!("session-of-{test}"),
        data: format!("{test}-{}", std::process::id()),
    }
}

/// A script that starts a tool in a session of its own, as the CLI does, and then waits.
fn with_tool(file: &str) -> String {
    let tool = stubborn(file).replace('\'', r"'\''");
    format!(
        "export CLAUDE_PID=$$; setsid sh -c '{tool}' </dev/null >/dev/null 2>&1 & echo up; wait"
    )
}

fn kill(rig: &Rig) -> ProcessId {
    assert!(rig.child.signal(Signal::Kill));
    rig.child.wait(LONG).expect("it dies");
    rig.id()
}

// proves: A-03, PR-05
#[test]
fn a_tool_of_a_killed_child_that_ignores_sigterm_is_ended() {
    let marker = marker("stubborn-tool");
    let rig = Rig::marked(&with_tool("tool"), &marker);
    let tool = process_in(&rig.home.path().join("tool"));
    let parent = kill(&rig);
    assert!(tool.alive(), "SIGKILL of the parent leaves it behind");

    let swept = sweep(&marker, &[parent], &[], TIMINGS);
    assert_eq!(swept.len(), 1, "{swept:?}");
    assert_eq!((swept[0].id, swept[0].killed, swept[0].gone), (tool.0, true, true));
    assert_eq!(swept[0].program, "sleep", "its arguments are nobody's business");
    assert!(!tool.alive());
    assert_eq!(sweep(&marker, &[parent], &[], TIMINGS), [], "nothing is left");
}

// proves: A-03
#[test]
fn only_what_carries_both_halves_of_the_marker_is_touched() {
    let marker = marker("both-halves");
    let dead = kill(&Rig::marked("exec sleep 600", &marker));
    let home = tempfile::tempdir().unwrap();
    let session = (MARKER_SESSION, marker.session_id.as_str());
    let data = (MARKER_DATA, marker.data.as_str());
    let strangers = [
        orphan(home.path(), &[]),
        orphan(home.path(), &[session]),
        orphan(home.path(), &[data]),
        orphan(home.path(), &[session, (MARKER_DATA, "another install")]),
        orphan(home.path(), &[data, (MARKER_SESSION, "another session")]),
        orphan(home.path(), &[("X", &format!("{MARKER_SESSION}={}", session.1)), data]),
    ];
    let ours = orphan(home.path(), &[session, data]);

    let swept: Vec<_> = sweep(&marker, &[dead], &[], TIMINGS).iter().map(|s| s.id).collect();
    assert_eq!(swept, [ours.0]);
    assert!(strangers.iter().all(|stranger| stranger.alive()));
}

// proves: A-03
#[test]
fn without_a_recorded_and_dead_parent_nothing_is_touched() {
    let marker = marker("dead-parent");
    let living = Rig::marked(&with_tool("tool"), &marker);
    let tool = process_in(&living.home.path().join("tool"));
    let dead = kill(&Rig::marked("exec sleep 600", &marker));

    assert_eq!(sweep(&marker, &[], &[], TIMINGS), [], "no parent was recorded");
    assert_eq!(sweep(&marker, &[living.id()], &[], TIMINGS), [], "it lives");
    assert_eq!(
        sweep(&marker, &[dead, living.id()], &[], TIMINGS),
        [],
        "the tool's own parent lives"
    );
    assert_eq!(sweep(&marker, &[dead], &[], TIMINGS), [], "not recorded, but a child of this app");
    assert!(tool.alive() && alive(living.id()));
}

// proves: A-03
#[test]
fn a_living_cli_keeps_its_tools_while_those_of_a_dead_one_are_ended() {
    let marker = marker("two-launches");
    let old = Rig::marked(&with_tool("tool"), &marker);
    let old_tool = process_in(&old.home.path().join("tool"));
    kill(&old);
    let new = Rig::marked(&with_tool("tool"), &marker);
    let new_tool = process_in(&new.home.path().join("tool"));

    let swept = sweep(&marker, &[old.id(), new.id()], &[], TIMINGS);
    assert_eq!(swept.iter().map(|s| s.id).collect::<Vec<_>>(), [old_tool.0]);
    assert!(new_tool.alive() && alive(new.id()));
}

// proves: A-03
#[test]
fn what_is_protected_is_not_touched() {
    let marker = marker("protected");
    let dead = kill(&Rig::marked("exec sleep 600", &marker));
    let home = tempfile::tempdir().unwrap();
    let env = marker.variables();
    let (kept, ended) = (orphan(home.path(), &env), orphan(home.path(), &env));
    let swept = sweep(&marker, &[dead], &[kept.0.pid], TIMINGS);
    assert_eq!(swept.iter().map(|s| s.id).collect::<Vec<_>>(), [ended.0]);
    assert!(kept.alive());
}

// proves: A-03
#[test]
fn what_the_dying_start_is_ended_too() {
    let marker = marker("late-start");
    let dead = kill(&Rig::marked("exec sleep 600", &marker));
    let home = tempfile::tempdir().unwrap();
    // it answers SIGTERM by starting another process of a session of its own
    let text = "trap 'setsid sh -c \"echo \\$\\$ > late; exec sleep 600\" & exit' TERM; echo $$ > first; \
         while :; do sleep 0.05; done";
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "setsid sh -c \"$0\" </dev/null >/dev/null 2>&1 &", text]);
    assert!(shell.current_dir(home.path()).envs(marker.variables()).status().unwrap().success());
    let first = process_in(&home.path().join("first"));
    let patient = SweepTimings { term_grace: LONG, ..TIMINGS };
    let swept = sweep(&marker, &[dead], &[], patient);
    assert!(swept.iter().any(|s| s.id == first.0) && swept.len() > 1, "{swept:?}");
    assert!(swept.iter().all(|s| s.gone), "{swept:?}");
    assert_eq!(sweep(&marker, &[dead], &[], patient), [], "nothing is left");
}
