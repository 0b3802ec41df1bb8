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
use omniscio_core::stream::Decoder;
use omniscio_core::supervisor::{Answer, AskId, Input, LaunchId};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A child's output comes in pieces of up to 4 KiB: so many keep the loop busy for a while.
const NEWS_MAX: usize = 256;
/// Should pieces be longer one day: so much of them waits at most, and one more that alone is longer.
const NEWS_MAX_BYTES: usize = 64 * 1024 * 1024;
/// So many news are taken at once, before a command is looked for again.
const RUN_MAX: usize = 16;
/// More clicks than a person makes while a slow disk holds the loop up.
const COMMANDS_MAX: usize = 256;

/// One thing for the loop.
pub(in crate::supervise) enum Message {
    /// For the rules as it is.
    Input(Input),
    /// A piece of a child's output. The loop makes events of it itself, which costs it a fraction of what
    /// handing over each event does.
    Output {
        /// The session.
        session: SessionId,
        /// The child's launch.
        launch: LaunchId,
        /// As it came.
        bytes: Vec<u8>,
        /// Nothing comes after it.
        ended: bool,
        /// The child's own.
        decoder: Arc<Mutex<Decoder>>,
    },
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
    /// What wakes the loop. Waking costs a system call, so it is woken only where it has to be.
    sleep: Sleep,
    /// Something came that is not to wait for the end of a rest.
    pressing: bool,
    /// So many wait for room.
    held_up: usize,
    /// The last one taken was a command.
    commanded: bool,
    closed: bool,
    quit: bool,
}

/// What the loop does.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sleep {
    /// It is at work.
    #[default]
    Awake,
    /// It lets output of children gather.
    Rests,
    /// It sleeps until something comes.
    Sleeps,
}

impl Queues {
    /// Whether what is here is to wake the loop.
    fn wakes(&self) -> bool {
        match self.sleep {
            Sleep::Awake => false,
            Sleep::Rests => self.ends_rest(),
            Sleep::Sleeps => !self.is_empty(),
        }
    }

    /// Anything but output of children, or so much that their readers would soon wait.
    fn ends_rest(&self) -> bool {
        self.pressing || !self.is_half_empty()
    }

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
        self.add(message, bytes, true);
    }

    /// The same for a piece of a child's output: it may wait for the end of a rest.
    pub(in crate::supervise) fn push_output(&self, message: Message, bytes: usize) {
        self.add(message, bytes, false);
    }

    fn add(&self, message: Message, bytes: usize, pressing: bool) {
        let mut queues = self.with_room(self.lock(), bytes);
        if queues.closed {
            return;
        }
        queues.news_bytes = queues.news_bytes.saturating_add(bytes);
        queues.news.push_back((message, bytes));
        queues.pressing |= pressing;
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
        let waited = self.taken.wait_while(queues, full);
        let mut queues = waited.unwrap_or_else(PoisonError::into_inner);
        queues.held_up -= 1;
        queues
    }

    /// Lets the queues go and wakes the loop if it waits for this.
    fn wake(&self, mut queues: MutexGuard<'_, Queues>) {
        let wakes = queues.wakes();
        if wakes {
            queues.sleep = Sleep::Awake;
        }
        drop(queues);
        if wakes {
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
        queues.pressing = true;
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

    /// What waits already, in the order of [`Inbox::next`]: some at once where no command waits.
    pub(in crate::supervise) fn ready(&self, into: &mut VecDeque<Message>) {
        let mut queues = self.lock();
        while let Some(message) = queues.take() {
            into.push_back(message);
            if into.len() >= RUN_MAX || !queues.commands.is_empty() {
                break;
            }
        }
        self.taken_from(queues);
    }

    /// The next message, a command first but never two before news that wait; `None` if there is none
    /// within `limit`.
    pub(in crate::supervise) fn next(&self, limit: Duration) -> Option<Message> {
        let mut queues = self.lock();
        if queues.is_empty() {
            queues = self.sleep(queues, Sleep::Sleeps, limit, Queues::is_empty);
        }
        let next = queues.take();
        self.taken_from(queues);
        next
    }

    /// Lets output of children gather for `limit`; anything else, or much of it, ends that.
    pub(in crate::supervise) fn rest(&self, limit: Duration) {
        if !limit.is_zero() {
            drop(self.sleep(self.lock(), Sleep::Rests, limit, |queues| !queues.ends_rest()));
        }
    }

    fn sleep<'a>(
        &'a self,
        mut queues: MutexGuard<'a, Queues>,
        how: Sleep,
        limit: Duration,
        goes_on: impl Fn(&Queues) -> bool,
    ) -> MutexGuard<'a, Queues> {
        queues.sleep = how;
        let waited = self.came.wait_timeout_while(queues, limit, |queues| goes_on(queues));
        let mut queues = waited.unwrap_or_else(PoisonError::into_inner).0;
        queues.sleep = Sleep::Awake;
        queues
    }

    fn taken_from(&self, mut queues: MutexGuard<'_, Queues>) {
        queues.pressing &= !queues.is_empty();
        // room for one would only wake a writer for one message, again and again
        let wake = queues.held_up > 0 && queues.is_half_empty();
        drop(queues);
        if wake {
            self.taken.notify_all();
        }
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
mod tests;
