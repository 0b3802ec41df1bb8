//! A bounded number of threads for work that may wait, and a queue before them. Nothing is refused for
//! lack of a free thread; nothing is known of what the work is.

use super::launches::worker;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One piece of work.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// See the file.
pub(super) struct Pool {
    threads_max: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    threads: usize,
    waiting: VecDeque<Work>,
}

impl Pool {
    pub(super) fn new(threads_max: usize) -> Pool {
        Pool { threads_max, state: Arc::default() }
    }

    /// Does it on a thread of its own, or on the first one that is free.
    ///
    /// # Errors
    /// The system gives no thread, and none runs that would come to it: it is not done.
    pub(super) fn run(&self, work: Work) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.waiting.push_back(work);
        if state.threads >= self.threads_max {
            return Ok(());
        }
        state.threads += 1;
        let shared = Arc::clone(&self.state);
        // the lock is held: the new thread waits for the end of this
        let started = worker("look", move || {
            while let Some(work) = next(&shared) {
                // a panic was printed; nobody waits for its answer longer than the rules' own limit
                catch_unwind(AssertUnwindSafe(work)).ok();
            }
        });
        let Err(error) = started else {
            return Ok(());
        };
        state.threads -= 1;
        if state.threads > 0 {
            return Ok(());
        }
        state.waiting.pop_back();
        Err(error)
    }
}

/// The next piece, or the end of this thread.
fn next(state: &Mutex<State>) -> Option<Work> {
    let mut state = lock(state);
    let work = state.waiting.pop_front();
    if work.is_none() {
        state.threads -= 1;
    }
    work
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

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
        assert_eq!(lock(&pool.state).waiting.len(), 3);
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
}
