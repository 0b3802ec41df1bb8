//! Chance, all of it from one seed. Never reads a clock and never keeps anything but the generator.

use omniscio_core::id::{Rng, Uuid};

/// A seeded die.
pub(crate) struct Dice(Rng);

impl Dice {
    /// A die whose whole future follows from `seed`.
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(Rng::new(seed ^ 0x51_u64.rotate_left(40)))
    }

    /// The next 64 bits.
    pub(crate) fn raw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A fresh id.
    pub(crate) fn uuid(&mut self) -> Uuid {
        self.0.uuid()
    }

    /// A number below `end`; zero for zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.raw() % end }
    }

    /// A number from `low` up to and without `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low))
    }

    /// True in so many of a thousand throws.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of the values, by weight. The list is never empty.
    pub(crate) fn weighted<T: Copy>(&mut self, values: &[(u64, T)]) -> T {
        let total = values.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, value) in values {
            if at < *weight {
                return *value;
            }
            at -= weight;
        }
        values[0].1
    }

    /// One of the values, or `None` of an empty list.
    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> Option<T> {
        let at = self.below(values.len() as u64) as usize;
        values.get(at).copied()
    }
}
