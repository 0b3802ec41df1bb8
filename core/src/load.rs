//! Whole-machine load (LD-01): one meter, read by the stall watchdog and by the scan alike.

use crate::limits::Limits;
use crate::time::Mono;
use alloc::collections::VecDeque;

/// The rolling mean of all cores over the last minute (`rollingBoxBusyPercent`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    samples: VecDeque<Sample>,
}

/// All cores at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    at: Mono,
    /// Sum over the cores, in thousandths.
    busy: u64,
    cores: u64,
}

impl Meter {
    /// Takes in one sample, in thousandths per core. A sampler that fails (no cores) makes the machine
    /// count as calm until enough new samples are in.
    pub fn sample(&mut self, now: Mono, cores: &[u16], limits: &Limits) {
        // rule: LD-01
        if cores.is_empty() {
            self.samples.clear();
            return;
        }
        let busy = cores.iter().map(|core| u64::from((*core).min(1_000))).sum();
        self.samples.push_back(Sample { at: now, busy, cores: cores.len() as u64 });
        while self.samples.front().is_some_and(|oldest| !in_window(oldest, now, limits)) {
            self.samples.pop_front();
        }
    }

    /// Busy thousandths, the mean over all cores and samples of the window; `None` while there are too
    /// few to tell.
    pub fn busy_permille(&self, now: Mono, limits: &Limits) -> Option<u16> {
        let (busy, cores) = self.window(now, limits)?;
        u16::try_from(busy / cores).ok()
    }

    /// Whether the machine is saturated (`isBoxUnderHeavyLoad`). What cannot be told counts as calm.
    pub fn is_heavy(&self, now: Mono, limits: &Limits) -> bool {
        // rule: LD-02
        self.window(now, limits)
            .is_some_and(|(busy, cores)| busy >= u64::from(limits.heavy_load_permille) * cores)
    }

    fn window(&self, now: Mono, limits: &Limits) -> Option<(u64, u64)> {
        let samples = || self.samples.iter().filter(|sample| in_window(sample, now, limits));
        if samples().count() < limits.load_samples_min {
            return None;
        }
        let sum = samples()
            .fold((0, 0), |(busy, cores), sample| (busy + sample.busy, cores + sample.cores));
        Some(sum).filter(|(_, cores)| *cores > 0)
    }
}

fn in_window(sample: &Sample, now: Mono, limits: &Limits) -> bool {
    now.since(sample.at) < limits.load_window_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(samples: &[(u64, &[u16])]) -> Meter {
        let mut meter = Meter::default();
        for (at, cores) in samples {
            meter.sample(Mono(*at), cores, &Limits::default());
        }
        meter
    }

    fn heavy(meter: &Meter, at: u64) -> bool {
        meter.is_heavy(Mono(at), &Limits::default())
    }

    // proves: LD-01, LD-02
    #[test]
    fn the_mean_over_all_cores_and_the_window_is_heavy_from_85_percent() {
        let calm = meter(&[(0, &[849, 849]), (5_000, &[1_000, 698]), (10_000, &[849, 849])]);
        assert_eq!(calm.busy_permille(Mono(10_000), &Limits::default()), Some(849));
        assert!(!heavy(&calm, 10_000));
        // one core alone says nothing: it is the machine that counts
        let one = meter(&[(0, &[1_000, 0]), (5_000, &[1_000, 0]), (10_000, &[1_000, 0])]);
        assert!(!heavy(&one, 10_000));
        let busy = meter(&[(0, &[850, 850]), (5_000, &[1_000, 700]), (10_000, &[850, 850])]);
        assert!(heavy(&busy, 10_000));
    }

    // proves: LD-01
    #[test]
    fn what_cannot_be_told_counts_as_calm() {
        let full: &[u16] = &[1_000, 1_000];
        assert!(!heavy(&meter(&[(0, full), (5_000, full)]), 5_000), "two samples are too few");
        let three = meter(&[(0, full), (5_000, full), (10_000, full)]);
        assert!(heavy(&three, 10_000));
        assert!(!heavy(&three, 60_000), "a sampler that fell silent is forgotten");
        assert!(!heavy(&meter(&[(0, full), (5_000, full), (10_000, full), (15_000, &[])]), 15_000));
        let eased = meter(&[(0, full), (5_000, full), (61_000, &[0, 0]), (62_000, &[0, 0])]);
        assert!(!heavy(&eased, 62_000), "old samples leave the window");
    }
}
