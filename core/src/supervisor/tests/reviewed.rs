//! Scenarios that a review found: each was a defect once.

use super::rig::Rig;
use super::*;

// proves: A-31
#[test]
fn what_was_stopped_stays_stopped_after_a_crash_and_behind_a_later_message() {
    let mut rig = Rig::new();
    rig.create("delete everything");
    rig.spawn_and_shake();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    // the app dies before the result of the interrupt
    rig.crash();
    rig.pass(600_000);
    let suspended = (Status::Paused, Some(PendingAction::AppRestartSuspended));
    assert_eq!((rig.spawned, state_of(&rig)), (1, suspended));
    // a later message is under way when the app dies again: that one comes back, not the stopped one
    rig.send("something else");
    rig.crash();
    rig.pass(0);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "something else");
}

// proves: A-04
#[test]
fn a_message_that_took_over_and_never_arrived_is_sent_itself() {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.tool("call-1", "make");
    rig.die();
    rig.send("two");
    rig.spawn_and_shake();
    rig.forget_last_line();
    rig.die();
    rig.pass(155_000);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "two");
}

#[test]
fn a_message_taken_back_during_its_launch_leaves_a_session_that_waits() {
    let mut rig = Rig::new();
    rig.create("one");
    let session = rig.id();
    let message = rig.view().live.queue[0].id;
    assert!(rig.command(Command::Unqueue { session, message }).is_ok());
    rig.shake();
    assert_eq!(state_of(&rig), (Status::NeedsYou, None));
    rig.send("two");
    assert_eq!(rig.last_text(), "two");
}

// proves: INV-49
#[test]
fn a_turn_that_begins_by_itself_does_not_erase_the_stamp() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.fail_turn(529);
    assert_eq!(state_of(&rig), SHAPE);
    let stamped_at = rig.row().status_changed_at;
    rig.pass(5_000);
    rig.begin_by_itself();
    assert_eq!(state_of(&rig), (Status::Running, None));
    rig.answer_naming("the background task ended", None);
    assert_eq!((state_of(&rig), rig.row().status_changed_at), (SHAPE, stamped_at));
    rig.pass(155_000);
    rig.spawn_and_shake();
    // the message is in the history, and so is what the turn of its own did: a plain copy keeps both
    assert_eq!(rig.last_text(), prompt::CONTINUE_CUT_OFF);
}

// proves: RP-01, INV-02, INV-03
#[test]
fn a_sleep_during_the_stop_recipe_puts_no_second_child_beside_the_first() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.hold_stops = true;
    rig.fail_turn(529);
    rig.pass(35_000);
    assert_eq!((rig.stops, rig.spawned), (1, 1));
    rig.sleep(8 * 3_600_000);
    assert_eq!(rig.spawned, 1, "the old child has not been confirmed dead");
    // the recipe never reports: it is asked for again, and the row says so
    rig.pass(60_000);
    assert_eq!((rig.spawned, state_of(&rig)), (1, (Status::Error, None)));
    rig.release_stops();
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    assert_eq!(rig.spawned, 2);
}

// proves: RP-08
#[test]
fn scan_retry_rung_and_message_together_put_no_second_child_beside_a_living_one() {
    let overloaded: fn(&mut Rig) = |rig| rig.fail_turn(529);
    let refused: fn(&mut Rig) = |rig| rig.fail_turn(400);
    // its sweep is not done
    let died: fn(&mut Rig) = |rig| rig.die();
    let scanned: fn(&mut Rig) = |rig| rig.create("hello");
    let given_up: fn(&mut Rig) = |rig| {
        rig.give_up();
        rig.pass(60_000);
    };
    for (what, begin, end) in [
        ("a scan", scanned, overloaded),
        ("a request that was refused", scanned, refused),
        ("a rung", given_up, overloaded),
        ("a scan after an exit", scanned, died),
        ("a rung after an exit", given_up, died),
    ] {
        let mut rig = Rig::new();
        begin(&mut rig);
        rig.spawn_and_shake();
        rig.hold_stops = true;
        end(&mut rig);
        let spawned = rig.spawned;
        let session = rig.id();
        rig.pass(20_000);
        // whether it is taken or refused: it starts nothing beside the old child
        let pressed = rig.command(Command::Retry { session });
        rig.pass(15_000);
        let again = rig.command(Command::Retry { session });
        rig.send("and another thing");
        let tried = (pressed.is_ok(), again.is_ok());
        assert_eq!(rig.spawned, spawned, "{what}: {tried:?}");
        rig.release_stops();
        assert_eq!(rig.spawned, spawned + 1, "{what}: {tried:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_looked_at_is_looked_at_again() {
    let mut rig = Rig::new();
    rig.create("hello");
    rig.spawn_and_shake();
    rig.crash();
    rig.blind = true;
    rig.pass(3_000);
    assert_eq!(state_of(&rig), (Status::Starting, None));
    rig.blind = false;
    rig.pass(10_000);
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "hello");
}
