//! Many real sessions at once: after a crash they come back in order, a few at a time, and what dies again
//! right away is not started twice.

use crate::apart::serve_if_asked;
use crate::bench::{Bench, limits};
use crate::looks::{Written, lives, marked};
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::AuditLine;
use omniscio_core::limits::Limits;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::time::Wall;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);
const MANY: usize = 12;

/// From when to when a child was there that had not answered the handshake, after this time.
fn start_of(bench: &Bench, session: SessionId, after: Wall) -> (Wall, Wall) {
    let mut audit = bench.audit(session);
    audit.retain(|line| line.at > after);
    let first = |is: &dyn Fn(&AuditLine) -> bool| {
        let line = audit.iter().rev().find(|line| is(line));
        line.unwrap_or_else(|| panic!("{audit:?}")).at
    };
    let spawned = first(&|line| line.reason == "child");
    // the message is written as soon as the CLI answers
    (spawned, first(&|line| line.outcome == "starting -> running"))
}

// proves: CR-01, CR-05
#[test]
fn a_dozen_sessions_come_back_in_order_a_few_at_a_time() {
    const PATH: &str = "mass::a_dozen_sessions_come_back_in_order_a_few_at_a_time";
    in_namespace(PATH, || {
        serve_if_asked();
        let few = Limits { spawn_slots: 2, starting_max: 3, ..limits() };
        let at_once = few.starting_max;
        let mut bench = Bench::with_limits(few);
        let (gate, free) = (Gate::new(), Arc::new(AtomicBool::new(false)));
        let (held, is_free) = (gate.clone(), Arc::clone(&free));
        bench.api.script(move |_, _| {
            let free = is_free.load(Ordering::SeqCst);
            let half = || Reply::new().text("half of it").hold_after(1, &held);
            if free { Reply::new().text("all of it") } else { half() }
        });
        bench.start_apart(PATH);
        let texts: Vec<String> =
            (1..=MANY).map(|n| format!("this is message {n} of them")).collect();
        let all: Vec<SessionId> = texts.iter().map(|text| bench.create(text)).collect();
        wait_until(LIMIT, "all at work", || gate.arrivals() == MANY);
        for text in &texts {
            bench.wait_on_disk(Written::Message(text));
        }
        let before: Vec<u32> = all.iter().flat_map(|session| marked(*session)).collect();
        assert!(before.len() >= MANY);
        bench.kill_app();
        free.store(true, Ordering::SeqCst);
        let killed = crate::seen::now().wall;
        bench.start();
        for session in &all {
            bench.wait_answer(*session, "all of it");
        }

        let starts: Vec<(Wall, Wall)> =
            all.iter().map(|session| start_of(&bench, *session, killed)).collect();
        assert!(starts.is_sorted_by_key(|(spawned, _)| *spawned), "in order: {starts:?}");
        for (spawned, _) in &starts {
            let open = starts.iter().filter(|(from, to)| from <= spawned && spawned < to).count();
            assert!(open <= at_once, "{open} at once: {starts:?}");
        }
        for (session, text) in all.iter().zip(&texts) {
            let states = bench.states(*session);
            assert!(states.iter().all(|(status, _)| *status != Status::Error), "{states:?}");
            assert_eq!((bench.requests_with(text), bench.bubbles(*session)), (2, 1));
            assert_eq!(bench.answers(*session), ["all of it"]);
            bench.assert_never_twice(text);
        }
        let left: Vec<u32> = before.into_iter().filter(|pid| lives(*pid)).collect();
        assert_eq!(left, [0; 0], "nothing of the killed app is left");
    });
}

// proves: CR-06, RP-07
#[test]
fn what_a_crash_resumed_and_lost_at_once_is_not_restarted_within_the_debounce() {
    const PATH: &str =
        "mass::what_a_crash_resumed_and_lost_at_once_is_not_restarted_within_the_debounce";
    in_namespace(PATH, || {
        serve_if_asked();
        let limits = Limits { replay_debounce_ms: 15_000, ..limits() };
        let debounce = i64::try_from(limits.replay_debounce_ms).expect("a short time");
        let mut bench = Bench::with_limits(limits);
        bench.start_apart(PATH);
        let gates = [Gate::new(), Gate::new()];
        for gate in &gates {
            bench.api.push(Reply::new().text("half of it").hold_after(1, gate));
        }
        bench.api.push(Reply::new().text("all of it"));
        let session = bench.create("please answer this");
        gates[0].wait_reached(LIMIT);
        bench.wait_on_disk(Written::Message("please answer this"));
        bench.kill_app();
        bench.start();
        gates[1].wait_reached(LIMIT);
        bench.kill_cli(session);
        bench.wait_answer(session, "all of it");

        let told = bench.told(session);
        let mut restarts: Vec<Wall> =
            told.iter().filter_map(|(_, view)| view.row.last_restart_at).collect();
        restarts.dedup();
        assert_eq!(restarts.len(), 2, "by the crash, then by the scan");
        let stamped = told.iter().find(|(_, view)| view.row.in_shape()).expect("a stamp");
        let cut = (Status::Error, Some(PendingAction::ResponseAborted));
        assert_eq!((stamped.1.row.status, stamped.1.row.pending), cut);
        let stamped = stamped.1.row.status_changed_at;
        assert!(stamped.since(restarts[0]) < debounce, "the scan had its chance in between");
        assert!(restarts[1].since(restarts[0]) >= debounce, "{restarts:?}");
        assert_eq!((bench.replays(session), bench.bubbles(session)), (1, 1));
        bench.assert_never_twice("please answer this");
    });
}
