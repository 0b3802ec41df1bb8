//! An agent of the real CLI that marks its final messages and stops without one: nudged on where the person
//! wants that, a few times, and stalled (AC).

use crate::bench::Bench;
use crate::context::{CLAUDE, YOURS, said};
use crate::support::namespace::in_namespace;
use omniscio_core::id::SessionId;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::settings::SettingChange;

const STALLED: (Status, Option<PendingAction>) = (Status::Stalled, None);
/// What an agent prints before its final message.
const DONE: &str = "<!-- omniscio:final-message -->\nIt is done.";

/// A session whose agent marked its first final message.
fn marks(bench: &Bench) -> SessionId {
    bench.api.push(said("<!-- omniscio:final-message -->\nReady when you are.", 20_000));
    let session = bench.create_on(CLAUDE, "message number one");
    bench.wait_answer(session, "Ready when you are");
    assert!(bench.row(session).prints_markers);
    session
}

// proves: AC-02
#[test]
fn a_stop_mid_task_is_nudged_three_times_and_then_stalls() {
    in_namespace("mid_task::a_stop_mid_task_is_nudged_three_times_and_then_stalls", || {
        let bench = Bench::new();
        bench.set(SettingChange::AutoContinueMidTaskEnabled(true));
        let session = marks(&bench);
        bench.api.script(|_, _| said("first I look around", 30_000));
        bench.send(session, "message number two");
        let row = bench.wait_state(session, "the stall", STALLED);
        assert_eq!((row.auto_continue_count, row.delivered), (3, false));
        assert_eq!(bench.asked(prompt::PLEASE_CONTINUE), 3);
        assert_eq!(bench.nudges(session), [prompt::PLEASE_CONTINUE; 3]);
        bench.wait_notified(session, 2);
        assert_eq!(bench.bubbles(session), 2);
        bench.stands_still(session, "message number two");
        assert_eq!(bench.notes(session), [""; 0]);

        // a message of the person begins anew, and what is finished is not nudged
        bench.api.push(said("then I look closer", 31_000));
        bench.api.script(|_, _| said(DONE, 32_000));
        bench.send(session, "message number three");
        bench.wait_answer(session, "It is done.");
        let row = bench.row(session);
        assert_eq!((row.auto_continue_count, row.delivered), (1, true));
        bench.stands_still(session, "message number three");
        assert_eq!(bench.nudges(session).len(), 4);
        bench.assert_sound(&["message number one", "message number two", "message number three"]);
    });
}

// proves: AC-02, ST-03
#[test]
fn by_default_a_stop_mid_task_stalls_at_once() {
    in_namespace("mid_task::by_default_a_stop_mid_task_stalls_at_once", || {
        let bench = Bench::new();
        let session = marks(&bench);
        bench.api.script(|_, _| said("first I look around", 30_000));
        bench.send(session, "message number two");
        let row = bench.wait_state(session, "the stall", STALLED);
        assert_eq!((row.auto_continue_count, row.context_recover_count), (0, 0));
        bench.stands_still(session, "message number two");
        assert_eq!(bench.requests_with("message number two"), 1);
        assert_eq!(bench.nudges(session), [""; 0]);
    });
}

// proves: AC-04, AC-05
#[test]
fn the_two_nudges_are_two_switches_and_one_turn_gets_one_of_them() {
    in_namespace("mid_task::the_two_nudges_are_two_switches_and_one_turn_gets_one_of_them", || {
        for (context, auto) in [(true, true), (true, false), (false, true), (false, false)] {
            let bench = Bench::new();
            bench.set(SettingChange::ContextStallAutoRecoverEnabled(context));
            bench.set(SettingChange::AutoContinueMidTaskEnabled(auto));
            let session = marks(&bench);
            // full, and stopped mid-task
            bench.api.push(said("first I look around", 190_000));
            bench.api.script(|_, _| said(DONE, 30_000));
            bench.send(session, "message number two");
            let both_off = !context && !auto;
            if both_off {
                bench.wait_state(session, "the inbox", YOURS);
            } else {
                bench.wait_answer(session, "It is done.");
            }
            let notes = usize::from(context);
            let auto_recovering = prompt::NOTE_AUTO_RECOVERING;
            let told = bench.notes(session).iter().filter(|note| *note == auto_recovering).count();
            assert_eq!(told, notes, "{context} {auto}");
            let nudges = usize::from(!both_off);
            assert_eq!(bench.nudges(session).len(), nudges, "{context} {auto}");
            assert_eq!(bench.requests_with("message number two"), 1 + nudges);
        }
    });
}
