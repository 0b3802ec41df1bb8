//! Ways in which a turn dies, whatever it was doing and whatever is switched off.

use super::rig::Rig;
use super::{SHAPE, state_of};
use crate::session::{AbortCause, PendingAction, Status};
use crate::stream::{Content, StreamEvent, TurnResult};
use alloc::boxed::Box;

/// How far the turn is when it dies.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Written,
    Begun,
    Text,
    Tool,
    Permission,
    SecondTurn,
}

/// How it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Exit(i32),
    OutputAlone,
    Silence,
    ApiFailure,
    ForeignInterrupt,
    Empty,
}

const PHASES: [Phase; 6] =
    [Phase::Written, Phase::Begun, Phase::Text, Phase::Tool, Phase::Permission, Phase::SecondTurn];

const ENDS: [End; 7] = [
    End::Exit(0),
    End::Exit(1),
    End::OutputAlone,
    End::Silence,
    End::ApiFailure,
    End::ForeignInterrupt,
    End::Empty,
];

/// Setting and switch of the environment, every combination.
const SWITCHES: [(bool, bool); 4] = [(true, false), (true, true), (false, false), (false, true)];

fn reach(phase: Phase) -> Rig {
    let mut rig = Rig::new();
    rig.create("hello");
    match phase {
        Phase::Written => rig.shake(),
        Phase::Begun => rig.spawn_and_shake(),
        Phase::Text => {
            rig.spawn_and_shake();
            rig.say(Content::Text("The first half of".into()));
        }
        Phase::Tool => {
            rig.spawn_and_shake();
            rig.tool("call-1", "make");
        }
        Phase::Permission => {
            rig.spawn_and_shake();
            rig.ask_permission("call-1", "make");
        }
        Phase::SecondTurn => {
            rig.spawn_and_shake();
            rig.answer_turn("Done.");
            rig.send("and now this");
        }
    }
    rig
}

fn kill(rig: &mut Rig, end: End) {
    let result = |reason: &str, is_error| {
        StreamEvent::Result(Box::new(TurnResult {
            subtype: "success".into(),
            is_error,
            terminal_reason: Some(reason.into()),
            num_turns: 1,
            ..TurnResult::default()
        }))
    };
    match end {
        End::Exit(code) => {
            rig.close_output();
            rig.exit(code);
        }
        End::OutputAlone => {
            rig.close_output();
            rig.pass(2_000);
        }
        End::Silence => rig.pass(15 * 60_000),
        End::ApiFailure => rig.fail_turn(529),
        End::ForeignInterrupt => rig.stream(result("aborted_streaming", true)),
        End::Empty => rig.stream(result("completed", false)),
    }
}

// proves: AB-02
#[test]
fn the_end_of_the_output_alone_is_one_abort_and_the_child_is_stopped() {
    let mut rig = reach(Phase::Text);
    rig.close_output();
    rig.pass(1_999);
    assert_eq!((state_of(&rig), rig.stops), ((Status::Running, None), 0), "an exit may follow");
    rig.pass(1);
    assert_eq!((state_of(&rig), rig.stops), (SHAPE, 1));
    assert_eq!(rig.row().abort_cause, Some(AbortCause::StreamEnd));
    // the exit of the stopped child comes late: the turn is over
    rig.exit(1);
    assert_eq!(rig.row().abort_cause, Some(AbortCause::StreamEnd));
    assert_eq!(rig.entered(Some(PendingAction::ResponseAborted)), 1);
}

// proves: AB-01, AB-05, INV-47
#[test]
fn a_turn_is_stamped_whatever_is_switched_off() {
    for (setting, killed) in SWITCHES {
        for end in ENDS {
            let mut rig = reach(Phase::Begun);
            rig.recovery(setting, killed);
            kill(&mut rig, end);
            let stamped = rig.entered(Some(PendingAction::ResponseAborted));
            assert_eq!(stamped, 1, "{end:?} with setting {setting}, switched off {killed}");
            if !setting || killed {
                assert!(rig.row().in_shape(), "{end:?}: nothing takes it up");
            }
        }
    }
}

// proves: AB-06, INV-35
#[test]
fn no_abort_leaves_a_row_that_looks_like_a_question() {
    for (setting, killed) in SWITCHES {
        for phase in PHASES {
            for end in ENDS {
                let mut rig = reach(phase);
                rig.recovery(setting, killed);
                let before = rig.changes.len();
                kill(&mut rig, end);
                let answered = end == End::Empty && matches!(phase, Phase::Text);
                let closes = rig.changes[before..].iter().filter(|changed| {
                    let open = changed.before.as_ref().is_some_and(|row| row.turn.is_some());
                    open && changed.after.turn.is_none()
                });
                for closed in closes.filter(|_| !answered) {
                    let after = &closed.after;
                    let state = (after.status, after.pending);
                    assert!(after.pending.is_some(), "{phase:?} {end:?}: {state:?}");
                }
            }
        }
    }
}

// proves: AB-11
#[test]
fn the_time_of_the_stamp_stays_while_the_row_is_in_the_shape() {
    let mut rig = reach(Phase::Begun);
    rig.pass(10_000);
    rig.die();
    let entered = rig.now().wall;
    rig.folder = false;
    for tick in 0..10 {
        rig.pass(60_000);
        let row = rig.row();
        assert_eq!((row.in_shape(), row.status_changed_at), (true, entered), "tick {tick}");
    }
    assert!(rig.scans >= 10, "{} ticks looked at it", rig.scans);
}

// proves: HD-05
#[test]
fn a_cut_off_reply_plays_no_chime_and_marks_nothing_unread() {
    for end in ENDS {
        let mut rig = reach(Phase::Begun);
        rig.folder = false;
        kill(&mut rig, end);
        assert_eq!(rig.entered(Some(PendingAction::ResponseAborted)), 1, "{end:?}");
        // nor does the cap, which shows it
        rig.pass(600_000);
        assert_eq!((rig.notified, rig.row().unread), (0, false), "{end:?}");
    }
}

#[test]
fn a_permission_stands_open_for_as_long_as_nobody_answers() {
    let mut rig = reach(Phase::Permission);
    kill(&mut rig, End::Silence);
    let asked = (Status::Running, Some(PendingAction::PermissionRequest));
    assert_eq!(state_of(&rig), asked);
}
