//! A bounded number of threads for work that may wait, and a queue before them. Nothing is refused for
//! lack of a free thread; nothing is known of what the work is.
//!
//! One thread is always there: a machine that gives no more is looked at all the same.

use super::launches::worker;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// One piece of work.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// See the file. The threads end once it is dropped and nothing waits any more.
pub(super) struct Pool {
    threads_max: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The thread that stays waits for it.
    more: Condvar,
}

#[derive(Default)]
struct State {
    threads: usize,
    waiting: VecDeque<Work>,
    /// The thread that stays has nothing to do, and nothing was given to it.
    idle: bool,
    closed: bool,
}

impl Pool {
    pub(super) fn new(threads_max: usize) -> Pool {
        let pool = Pool { threads_max, shared: Arc::default() };
        if let Err(error) = pool.start(&mut pool.shared.lock(), true) {
            tracing::warn!(%error, "no thread is kept to look with");
        }
        pool
    }

    /// Does it on a thread of its own, or on the first one that is free.
    ///
    /// # Errors
    /// The system gives no thread, and none runs that would come to it: it is not done.
    pub(super) fn run(&self, work: Work) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.waiting.push_back(work);
        if std::mem::take(&mut state.idle) {
            self.shared.more.notify_one();
            return Ok(());
        }
        if state.threads >= self.threads_max {
            return Ok(());
        }
        let started = self.start(&mut state, false);
        if started.is_err() && state.threads == 0 {
            state.waiting.pop_back();
            return started;
        }
        Ok(())
    }

    /// The lock is held: the new thread waits for its end.
    fn start(&self, state: &mut State, stays: bool) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        worker("look", move || {
            while let Some(work) = shared.next(stays) {
                // a panic was printed; nobody waits for its answer longer than the rules' own limit
                catch_unwind(AssertUnwindSafe(work)).ok();
            }
        })?;
        state.threads += 1;
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.more.notify_all();
    }
}

impl Shared {
    /// The next piece, or the end of this thread.
    fn next(&self, stays: bool) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            if !stays || state.closed {
                state.threads -= 1;
                return None;
            }
            state.idle = true;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn what_finds_no_free_thread_waits_and_is_done() {
        let pool = Pool::new(2);
        let (done, came) = channel();
        let mut gates = Vec::new();
        for n in 0..5 {
            let (gate, opened) = channel::<()>();
            gates.push(gate);
            let done = done.clone();
            let work = move || {
                done.send((n, "begun")).unwrap();
                opened.recv().ok();
                done.send((n, "ended")).unwrap();
            };
            pool.run(Box::new(work)).unwrap();
        }
        let mut begun = [came.recv().unwrap(), came.recv().unwrap()];
        begun.sort_unstable();
        assert_eq!(begun, [(0, "begun"), (1, "begun")]);
        assert_eq!(pool.shared.lock().waiting.len(), 3);
        drop(gates);
        drop(done);
        assert_eq!(came.iter().filter(|(_, what)| *what == "ended").count(), 5);
    }

    #[test]
    fn a_piece_that_panics_costs_no_thread() {
        let pool = Pool::new(1);
        let (done, came) = channel();
        pool.run(Box::new(|| panic!("planted"))).unwrap();
        pool.run(Box::new(move || done.send(7).unwrap())).unwrap();
        assert_eq!(came.recv(), Ok(7));
    }

    #[test]
    fn one_thread_is_always_there_and_ends_with_the_pool() {
        let pool = Pool::new(1);
        let shared = Arc::clone(&pool.shared);
        while !shared.lock().idle {
            thread::yield_now();
        }
        let (done, came) = channel();
        for n in 0..3 {
            let done = done.clone();
            // no thread is made for it: there is one
            pool.run(Box::new(move || done.send(n).unwrap())).unwrap();
            assert_eq!(shared.lock().threads, 1);
        }
        assert_eq!(came.iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
        drop(pool);
        while shared.lock().threads > 0 {
            thread::yield_now();
        }
    }
}
