//! Samples how busy the machine's cores are, on a thread of its own, and tells the rules.
//!
//! It only measures: mean, window and limit are the rules'. Nobody waits for a sample; one that cannot
//! be taken is told as an empty one, and one that comes late takes the place of the one before it.

use super::driver::inbox::Inbox;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use sysinfo::{CpuRefreshKind, System};

/// Busy share of each core since the sample before, in thousandths; empty if it cannot be told.
type Cores = dyn FnMut() -> Vec<u16> + Send;

/// Where the load is read. A test or the rehearsal gives its own.
#[derive(Clone)]
pub struct Sampler(Arc<Mutex<Cores>>);

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sampler")
    }
}

impl Sampler {
    /// All cores of this machine (LD-01).
    pub fn machine() -> Sampler {
        // rule: LD-01
        let mut known = None;
        Sampler::of(move || sample(&mut known, cores()))
    }

    /// A machine that is never busy.
    pub fn calm() -> Sampler {
        Sampler::of(|| vec![0])
    }

    /// What `cores` says: per core in thousandths, nothing when it cannot tell.
    pub fn of(cores: impl FnMut() -> Vec<u16> + Send + 'static) -> Sampler {
        Sampler(Arc::new(Mutex::new(cores)))
    }

    /// Samples this often until what this gives is dropped, or the inbox is closed. Without a thread
    /// there are no samples, which the rules take for a calm machine.
    pub(super) fn start(self, every: Duration, inbox: Arc<Inbox>) -> Sampling {
        let (sampling, ended) = channel();
        let work = move || {
            // the first one begins the time that the second one tells of
            self.cores();
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout)
                && inbox.load(self.cores())
            {}
        };
        if let Err(error) = thread::Builder::new().name("load".to_string()).spawn(work) {
            tracing::warn!(%error, "the machine's load is not known");
        }
        Sampling { _until_dropped: sampling }
    }

    fn cores(&self) -> Vec<u16> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)()
    }
}

/// Samples are taken while this lives.
pub(super) struct Sampling {
    _until_dropped: Sender<()>,
}

/// Every core with its times up to now; `None` if the system tells of none.
fn cores() -> Option<System> {
    let mut system = System::new().ok()?;
    system.refresh_cpu_list(CpuRefreshKind::nothing().with_usage());
    (!system.cpus().is_empty()).then_some(system)
}

/// The shares since `known` was brought up to date last. `fresh` says which cores there are now: with
/// others than before (one was switched off or on) the shares would be of no core.
fn sample(known: &mut Option<System>, fresh: Option<System>) -> Vec<u16> {
    let names = |system: &System| -> Vec<String> {
        system.cpus().iter().map(|core| core.name().to_string()).collect()
    };
    match (known.as_mut(), fresh) {
        (Some(known), Some(fresh)) if names(known) == names(&fresh) => {
            known.refresh_cpu_usage();
            known.cpus().iter().map(|core| thousandths(core.usage())).collect()
        }
        (Some(_) | None, fresh) => {
            *known = fresh;
            Vec::new()
        }
    }
}

/// What is no number counts as idle.
fn thousandths(percent: f32) -> u16 {
    (percent.clamp(0.0, 100.0) * 10.0).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::driver::inbox::Message;
    use omniscio_core::supervisor::Input;

    const LONG: Duration = Duration::from_secs(60);
    const OFTEN: Duration = Duration::from_millis(1);

    fn cores_of(message: Option<Message>) -> Option<Vec<u16>> {
        match message {
            Some(Message::Input(Input::Load { cores })) => Some(cores),
            Some(_) | None => None,
        }
    }

    #[test]
    fn percent_become_thousandths_within_their_bounds() {
        for (percent, wanted) in [
            (0.0, 0),
            (84.96, 850),
            (84.94, 849),
            (100.0, 1000),
            (100.4, 1000),
            (-1.0, 0),
            (f32::NAN, 0),
            (f32::INFINITY, 1000),
        ] {
            assert_eq!(thousandths(percent), wanted, "{percent}");
        }
    }

    #[test]
    fn the_machine_has_a_share_for_each_core_from_the_second_look_on() {
        let mut known = None;
        assert_eq!(sample(&mut known, cores()), Vec::<u16>::new());
        let shares = sample(&mut known, cores());
        assert_eq!(Some(shares.len()), cores().map(|system| system.cpus().len()));
        assert!(shares.iter().all(|share| *share <= 1000), "{shares:?}");
    }

    #[test]
    fn other_cores_than_before_and_none_at_all_are_no_sample() {
        let mut known = System::new().ok();
        assert_eq!(sample(&mut known, cores()), Vec::<u16>::new(), "there were none");
        assert!(!sample(&mut known, cores()).is_empty());
        assert_eq!(sample(&mut known, None), Vec::<u16>::new());
        assert_eq!(sample(&mut known, cores()), Vec::<u16>::new(), "it begins anew");
        assert!(!sample(&mut known, cores()).is_empty());
    }

    #[test]
    fn samples_come_until_nobody_wants_them_and_only_the_newest_waits() {
        let inbox = Arc::new(Inbox::default());
        let (taken, count) = channel();
        let mut n = 0;
        let sampler = Sampler::of(move || {
            n += 1;
            // the test may be over
            taken.send(n).ok();
            vec![n]
        });
        let sampling = sampler.start(OFTEN, Arc::clone(&inbox));
        // the loop is busy meanwhile
        while count.recv().unwrap() < 20 {}
        let first = cores_of(inbox.next(LONG)).unwrap();
        assert!(first[0] >= 19, "{first:?}");
        assert!(cores_of(inbox.next(LONG)).unwrap() > first);
        drop(sampling);
        // the thread ends and lets go of its sampler, or this never does
        while count.recv().is_ok() {}
    }

    #[test]
    fn a_closed_inbox_ends_the_samples_too() {
        let inbox = Arc::new(Inbox::default());
        let (alive, ended) = channel::<()>();
        let sampler = Sampler::of(move || {
            let _held = &alive;
            vec![0]
        });
        let sampling = sampler.start(OFTEN, Arc::clone(&inbox));
        inbox.close();
        assert!(ended.recv().is_err());
        drop(sampling);
    }
}
