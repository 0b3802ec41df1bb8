//! What waits for the loop: two bounded queues in front of one reader.
//!
//! What children and probes say waits in one queue; whoever adds to a full one waits, so that a busy
//! loop slows the reading of the children (back-pressure). What a person wants waits in the other;
//! a full one refuses, so that the window never hangs. While both hold something they take turns: a
//! program that asks without end over the socket holds up no child. Nothing is dropped while the loop
//! runs, but for a sample of the machine's load that a newer one replaces; nothing is understood here.

use crate::supervise::clock::Deadline;
use crate::supervise::pty::Child;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::CliState;
use omniscio_core::supervisor::{Answer, AskId, Input, LaunchId};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A line of a child is usually a KiB: so many keep the loop busy for a while.
const NEWS_MAX: usize = 1024;
/// But a line may have some MiB: so much of them waits at most, and one more that alone is longer.
const NEWS_MAX_BYTES: usize = 64 * 1024 * 1024;
/// More clicks than a person makes while a slow disk holds the loop up.
const COMMANDS_MAX: usize = 256;

/// One thing for the loop.
pub(in crate::supervise) enum Message {
    /// For the rules as it is.
    Input(Input),
    /// The answer to a question that was asked in this generation of the state: after a caught
    /// panic the numbers of questions begin anew.
    Answer {
        /// The generation.
        generation: u64,
        /// The question.
        ask: AskId,
        /// Its answer.
        answer: Answer,
    },
    /// A start came to its end.
    Launched {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The child, or why there is none.
        child: Result<Child, Failed>,
    },
    /// The CLI was looked for.
    Cli(CliState),
}

/// A start that failed: the system's words and what to do, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::supervise) struct Failed {
    /// The system's error number.
    pub(in crate::supervise) errno: Option<i32>,
    /// One or two sentences.
    pub(in crate::supervise) words: String,
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervise) enum Refused {
    /// Too many wait.
    Full,
    /// The loop has ended.
    Closed,
}

/// The two queues.
#[derive(Default)]
pub(in crate::supervise) struct Inbox {
    queues: Mutex<Queues>,
    /// Something came, or the app is to quit.
    came: Condvar,
    /// Something was taken.
    taken: Condvar,
}

#[derive(Default)]
struct Queues {
    commands: VecDeque<Message>,
    /// The newest sample of the machine's load: old ones would tell a busy loop of a time long past.
    load: Option<Vec<u16>>,
    /// With the bytes that each holds.
    news: VecDeque<(Message, usize)>,
    news_bytes: usize,
    /// The loop sleeps until something comes. Waking costs a system call, so it is woken only then.
    asleep: bool,
    /// So many wait for room.
    held_up: usize,
    /// The last one taken was a command.
    commanded: bool,
    closed: bool,
    quit: bool,
}

impl Queues {
    fn has_room(&self, bytes: usize) -> bool {
        let fits = self.news_bytes.saturating_add(bytes) <= NEWS_MAX_BYTES;
        self.news.len() < NEWS_MAX && (fits || bytes == 0 || self.news_bytes == 0)
    }

    fn is_half_empty(&self) -> bool {
        self.news.len() <= NEWS_MAX / 2 && self.news_bytes <= NEWS_MAX_BYTES / 2
    }

    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.load.is_none() && self.news.is_empty()
    }

    fn take(&mut self) -> Option<Message> {
        let waits = self.load.is_some() || !self.news.is_empty();
        let command = if self.commanded && waits { None } else { self.commands.pop_front() };
        self.commanded = command.is_some();
        command.or_else(|| self.take_load()).or_else(|| self.take_news())
    }

    fn take_load(&mut self) -> Option<Message> {
        self.load.take().map(|cores| Message::Input(Input::Load { cores }))
    }

    fn take_news(&mut self) -> Option<Message> {
        let (message, bytes) = self.news.pop_front()?;
        self.news_bytes = self.news_bytes.saturating_sub(bytes);
        Some(message)
    }
}

impl Inbox {
    /// Adds what a child or a probe says; waits while the queue is full. After the end of the loop
    /// it is thrown away.
    pub(in crate::supervise) fn push(&self, message: Message) {
        self.push_sized(message, 0);
    }

    /// The same for a message that holds so many bytes of a child's output.
    pub(in crate::supervise) fn push_sized(&self, message: Message, bytes: usize) {
        self.push_all([(message, bytes)]);
    }

    /// The same for some that come at once, in their order.
    pub(in crate::supervise) fn push_all(
        &self,
        messages: impl IntoIterator<Item = (Message, usize)>,
    ) {
        let mut queues = self.lock();
        for (message, bytes) in messages {
            queues = self.with_room(queues, bytes);
            if queues.closed {
                return;
            }
            queues.news_bytes = queues.news_bytes.saturating_add(bytes);
            queues.news.push_back((message, bytes));
        }
        self.wake(queues);
    }

    fn with_room<'a>(
        &'a self,
        mut queues: MutexGuard<'a, Queues>,
        bytes: usize,
    ) -> MutexGuard<'a, Queues> {
        let full = |queues: &mut Queues| !queues.closed && !queues.has_room(bytes);
        if !full(&mut queues) {
            return queues;
        }
        queues.held_up += 1;
        // what was added just now may be all that waits: the loop makes room once it knows of it
        self.came.notify_all();
        let waited = self.taken.wait_while(queues, full);
        let mut queues = waited.unwrap_or_else(PoisonError::into_inner);
        queues.held_up -= 1;
        queues
    }

    /// Lets the queues go and wakes the loop if it sleeps.
    fn wake(&self, queues: MutexGuard<'_, Queues>) {
        let asleep = queues.asleep;
        drop(queues);
        if asleep {
            self.came.notify_all();
        }
    }

    /// Adds what a person wants; never waits.
    pub(in crate::supervise) fn command(&self, message: Message) -> Result<(), Refused> {
        let mut queues = self.lock();
        if queues.closed {
            return Err(Refused::Closed);
        }
        if queues.commands.len() >= COMMANDS_MAX {
            return Err(Refused::Full);
        }
        queues.commands.push_back(message);
        self.wake(queues);
        Ok(())
    }

    /// Leaves a sample of the machine's load, in place of one that still waits; never waits itself.
    /// False after the end of the loop.
    pub(in crate::supervise) fn load(&self, cores: Vec<u16>) -> bool {
        let mut queues = self.lock();
        if queues.closed {
            return false;
        }
        queues.load = Some(cores);
        self.wake(queues);
        true
    }

    /// What waits already, in the order of [`Inbox::next`].
    pub(in crate::supervise) fn ready(&self) -> Option<Message> {
        self.taken_from(self.lock())
    }

    /// The next message, a command first but never two before news that wait; `None` if there is none
    /// within `limit`.
    pub(in crate::supervise) fn next(&self, limit: Duration) -> Option<Message> {
        let mut queues = self.lock();
        if queues.is_empty() {
            queues.asleep = true;
            let nothing = |queues: &mut Queues| queues.is_empty();
            let waited = self.came.wait_timeout_while(queues, limit, nothing);
            queues = waited.unwrap_or_else(PoisonError::into_inner).0;
            queues.asleep = false;
        }
        self.taken_from(queues)
    }

    fn taken_from(&self, mut queues: MutexGuard<'_, Queues>) -> Option<Message> {
        let next = queues.take();
        // room for one would only wake a writer for one message, again and again
        let wake = queues.held_up > 0 && queues.is_half_empty();
        drop(queues);
        if wake {
            self.taken.notify_all();
        }
        next
    }

    /// Says that the app is to quit, also to a loop that waits for the disk.
    pub(in crate::supervise) fn quit(&self) {
        self.lock().quit = true;
        self.came.notify_all();
    }

    /// Waits `limit`, or shorter if the app is to quit; tells whether it is.
    pub(in crate::supervise) fn quits_within(&self, limit: Duration) -> bool {
        let deadline = Deadline::after(limit);
        let mut queues = self.lock();
        while !queues.quit && !deadline.passed() {
            let waited = self.came.wait_timeout(queues, deadline.left());
            queues = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queues.quit
    }

    /// The loop has ended: nobody waits any more.
    pub(in crate::supervise) fn close(&self) {
        let mut queues = self.lock();
        queues.closed = true;
        queues.commands.clear();
        queues.load = None;
        queues.news.clear();
        queues.news_bytes = 0;
        self.taken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    fn load(n: u16) -> Message {
        Message::Input(Input::Load { cores: vec![n] })
    }

    fn number(message: Option<Message>) -> Option<u16> {
        match message {
            Some(Message::Input(Input::Load { cores })) => cores.first().copied(),
            Some(_) | None => None,
        }
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
    fn what_comes_at_once_and_has_no_room_together_wakes_a_loop_that_sleeps() {
        let inbox = Arc::new(Inbox::default());
        let last = u16::try_from(2 * NEWS_MAX).unwrap();
        let writer = Arc::clone(&inbox);
        let added = thread::spawn(move || writer.push_all((0..=last).map(|n| (load(n), 0))));
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
}
