//! The order of the two queues, their bounds, and what wakes the loop.

use super::*;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

const LONG_MS: u64 = 60_000;
const LONG: Duration = Duration::from_millis(LONG_MS);

fn load(n: u16) -> Message {
    Message::Input(Input::Load { cores: vec![n] })
}

fn number(message: Option<Message>) -> Option<u16> {
    match message {
        Some(Message::Input(Input::Load { cores })) => cores.first().copied(),
        Some(_) | None => None,
    }
}

/// Adds these as output of a child is added.
fn output(inbox: &Inbox, numbers: impl IntoIterator<Item = u16>) {
    numbers.into_iter().for_each(|n| inbox.push_output(load(n), 0));
}

#[test]
fn commands_go_first_and_everything_keeps_its_order() {
    let inbox = Inbox::default();
    (0..3).for_each(|n| inbox.push(load(n)));
    assert_eq!(inbox.command(Message::Input(Input::Wake)), Ok(()));
    assert!(matches!(inbox.next(LONG), Some(Message::Input(Input::Wake))));
    for n in 0..3 {
        assert_eq!(number(inbox.next(LONG)), Some(n));
    }
    assert!(inbox.next(Duration::ZERO).is_none());
}

#[test]
fn commands_without_end_hold_no_news_up() {
    let inbox = Inbox::default();
    (0..3).for_each(|n| inbox.push(load(n)));
    for n in 0..3 {
        // there is always one more
        (0..2).for_each(|_| inbox.command(Message::Input(Input::Wake)).unwrap());
        assert!(matches!(inbox.next(LONG), Some(Message::Input(Input::Wake))));
        assert_eq!(number(inbox.next(LONG)), Some(n));
    }
    assert!(inbox.load(vec![7]));
    assert!(matches!(inbox.next(LONG), Some(Message::Input(Input::Wake))));
    assert_eq!(number(inbox.next(LONG)), Some(7));
    // with nothing else there, commands follow one another
    for _ in 0..2 {
        assert!(matches!(inbox.next(LONG), Some(Message::Input(Input::Wake))));
    }
    assert!(inbox.next(Duration::ZERO).is_none());
}

#[test]
fn a_full_queue_holds_news_up_and_refuses_commands() {
    let inbox = Arc::new(Inbox::default());
    let last = u16::try_from(NEWS_MAX).unwrap();
    let (entered, came) = channel();
    let writer = Arc::clone(&inbox);
    let held = thread::spawn(move || {
        for n in 0..=last {
            writer.push(load(n));
            entered.send(n).unwrap();
        }
    });
    (0..last).for_each(|n| assert_eq!(came.recv().unwrap(), n));
    assert!(came.try_recv().is_err(), "the one too many waits");
    for n in 0..=last {
        assert_eq!(number(inbox.next(LONG)), Some(n));
    }
    held.join().unwrap();

    (0..COMMANDS_MAX).for_each(|_| inbox.command(Message::Input(Input::Wake)).unwrap());
    assert_eq!(inbox.command(Message::Input(Input::Wake)), Err(Refused::Full));
}

#[test]
fn output_without_end_wakes_a_loop_that_sleeps_and_waits_for_room() {
    let inbox = Arc::new(Inbox::default());
    let last = u16::try_from(2 * NEWS_MAX).unwrap();
    let writer = Arc::clone(&inbox);
    let added = thread::spawn(move || output(&writer, 0..=last));
    for n in 0..=last {
        assert_eq!(number(inbox.next(LONG)), Some(n));
    }
    added.join().unwrap();
    assert!(inbox.next(Duration::ZERO).is_none());
}

#[test]
fn few_long_news_hold_the_next_one_up_and_none_waits_for_ever() {
    let inbox = Arc::new(Inbox::default());
    // one that is longer than all room goes in alone
    inbox.push_sized(load(0), NEWS_MAX_BYTES + 1);
    // what holds nothing does not wait
    inbox.push(load(1));
    let (entered, came) = channel();
    let writer = Arc::clone(&inbox);
    let held = thread::spawn(move || {
        for n in 2..=4 {
            writer.push_sized(load(n), NEWS_MAX_BYTES / 2);
            entered.send(n).unwrap();
        }
    });
    assert!(came.try_recv().is_err());
    assert_eq!(number(inbox.next(LONG)), Some(0));
    assert_eq!((came.recv().unwrap(), came.recv().unwrap()), (2, 3));
    assert!(!inbox.lock().has_room(1), "two halves are all");
    for n in 1..=4 {
        assert_eq!(number(inbox.next(LONG)), Some(n));
    }
    held.join().unwrap();
    assert_eq!(inbox.lock().news_bytes, 0);
}

#[test]
fn of_the_load_only_the_newest_sample_waits_and_a_full_queue_holds_none_up() {
    let inbox = Inbox::default();
    (0..NEWS_MAX).for_each(|_| inbox.push(Message::Input(Input::Wake)));
    assert!(inbox.load(vec![1]) && inbox.load(vec![2]));
    assert_eq!(number(inbox.next(LONG)), Some(2));
    assert!(matches!(inbox.next(LONG), Some(Message::Input(Input::Wake))));
    assert!(inbox.load(vec![3]));
    inbox.close();
    assert!(!inbox.load(vec![4]));
    assert!(inbox.next(Duration::ZERO).is_none());
}

#[test]
fn nobody_waits_for_a_closed_inbox() {
    let inbox = Inbox::default();
    (0..NEWS_MAX).for_each(|_| inbox.push(Message::Input(Input::Wake)));
    inbox.close();
    inbox.push(Message::Input(Input::Wake));
    assert_eq!(inbox.command(Message::Input(Input::Wake)), Err(Refused::Closed));
    assert!(inbox.next(Duration::ZERO).is_none());
}

#[test]
fn quitting_ends_a_wait_for_the_disk() {
    let inbox = Inbox::default();
    assert!(!inbox.quits_within(Duration::ZERO));
    inbox.quit();
    assert!(inbox.quits_within(LONG));
}

#[test]
fn output_gathers_while_the_loop_rests_and_anything_else_ends_the_rest() {
    let inbox = Arc::new(Inbox::default());
    let (mut taken, half) = (VecDeque::new(), u16::try_from(NEWS_MAX / 2).unwrap());
    // it would be over at once, or never
    output(&inbox, [0]);
    inbox.rest(Duration::ZERO);
    inbox.ready(&mut taken);
    assert_eq!(number(taken.pop_front()), Some(0));

    for end in 0..3 {
        let writer = Arc::clone(&inbox);
        let added = thread::spawn(move || match end {
            0 => writer.push(load(1)),
            1 => writer.command(Message::Input(Input::Wake)).unwrap(),
            _ => output(&writer, 0..=half),
        });
        inbox.rest(LONG);
        added.join().unwrap();
        while inbox.next(Duration::ZERO).is_some() {}
        assert!(!inbox.lock().ends_rest(), "what was taken ends no rest");
    }
}

#[test]
fn what_waits_is_taken_in_runs_and_a_command_ends_one() {
    let inbox = Inbox::default();
    let last = u16::try_from(RUN_MAX).unwrap();
    output(&inbox, 0..=last);
    let mut taken = VecDeque::new();
    inbox.ready(&mut taken);
    assert_eq!(taken.drain(..).filter_map(|m| number(Some(m))).collect::<Vec<_>>(), {
        (0..last).collect::<Vec<_>>()
    });
    (0..2).for_each(|_| inbox.command(Message::Input(Input::Wake)).unwrap());
    inbox.ready(&mut taken);
    assert!(matches!(taken.pop_front(), Some(Message::Input(Input::Wake))));
    assert!(taken.is_empty(), "one more command waits");
    inbox.ready(&mut taken);
    assert_eq!(number(taken.pop_front()), Some(last), "news have their turn");
}
