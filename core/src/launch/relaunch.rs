//! The paced way back of a launch that failed transiently: whether it is tried again, after how long,
//! and which attempts are told. Pure; the reducer's side is in `supervisor::relaunch`.

use crate::limits::Limits;
use crate::settings::Policy;
use crate::time::Millis;

/// What becomes of a launch that failed transiently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relaunch {
    /// It is tried again after this long.
    After(Millis),
    /// Relentless relaunch is off and the retries are used up: it is an error.
    GiveUp,
}

/// Decides after the `failures`-th failed attempt (counted from one). `chance` is any number: it
/// spreads the sessions that failed together.
pub fn maybe_retry_transient_spawn(
    failures: u32,
    policy: &Policy,
    chance: u64,
    limits: &Limits,
) -> Relaunch {
    // rule: RS-01, RS-12, RS-13, RS-19
    if policy.relentless_relaunch() {
        let gap = gap_ms(failures, limits);
        Relaunch::After(gap - jitter_ms(gap, chance, limits))
    } else if failures <= limits.bounded_retries {
        Relaunch::After(limits.bounded_retry_ms)
    } else {
        Relaunch::GiveUp
    }
}

/// The gap after this many failures, before jitter: it doubles up to its longest.
fn gap_ms(failures: u32, limits: &Limits) -> Millis {
    // rule: RS-03, RS-04, RS-05, INV-56
    let doublings = failures.saturating_sub(1).min(Millis::BITS - 1);
    limits.relaunch_first_ms.saturating_mul(1 << doublings).min(limits.relaunch_max_ms)
}

fn jitter_ms(gap: Millis, chance: u64, limits: &Limits) -> Millis {
    let most = gap * Millis::from(limits.relaunch_jitter_permille) / 1_000;
    chance % (most + 1)
}

/// What is said in the transcript of one failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnRetryStatus {
    /// The first one.
    Hiccup,
    /// One of the few that are told after it.
    Still(u32),
}

/// What is said after the `failures`-th failed attempt: once at the first, then now and then.
pub fn emit_spawn_retry_status(failures: u32, limits: &Limits) -> Option<SpawnRetryStatus> {
    // rule: RS-16, RS-17, RS-18, RS-24
    if failures == 1 {
        Some(SpawnRetryStatus::Hiccup)
    } else {
        failures
            .is_multiple_of(limits.relaunch_note_every)
            .then_some(SpawnRetryStatus::Still(failures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn policy(toggle: bool, switch: bool) -> Policy {
        let mut policy = Policy::default();
        policy.settings.relentless_session_relaunch = toggle;
        policy.switches.relentless_relaunch = switch;
        policy
    }

    fn after(failures: u32, chance: u64) -> Millis {
        match maybe_retry_transient_spawn(
            failures,
            &policy(true, false),
            chance,
            &Limits::default(),
        ) {
            Relaunch::After(millis) => millis,
            Relaunch::GiveUp => panic!("given up after {failures}"),
        }
    }

    // proves: RS-03, RS-04, RS-05, INV-56
    #[test]
    fn the_gap_doubles_from_a_quarter_second_to_half_a_minute() {
        let gaps: Vec<Millis> = (1..=10).map(|n| after(n, 0)).collect();
        assert_eq!(gaps, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        let limits = Limits::default();
        assert!((1..5_000).all(|n| gap_ms(n, &limits) <= gap_ms(n + 1, &limits)));
        assert_eq!(after(u32::MAX, 0), 30_000);
        let mut attempts = 0;
        let mut passed = 0;
        while passed < 3_600_000 {
            attempts += 1;
            passed += after(attempts, 0);
        }
        assert!(attempts <= 128, "{attempts} in an hour");
    }

    // proves: RS-05
    #[test]
    fn the_jitter_takes_at_most_a_fifth_off() {
        for n in 1..20 {
            let gap = after(n, 0);
            for chance in (0..200).chain([u64::MAX, u64::MAX / 3]) {
                let left = after(n, chance);
                assert!(left <= gap && left >= gap - gap / 5, "{n} {chance}: {left} of {gap}");
            }
        }
        let shortest = (0..20_000).map(|chance| after(9, chance)).min();
        assert_eq!(shortest, Some(24_000), "the whole fifth is used");
        let mut attempts = 0;
        let mut passed = 0;
        while passed < 3_600_000 {
            attempts += 1;
            passed += after(attempts, u64::from(after(attempts, 0) as u32 / 5));
        }
        assert!(attempts <= 160, "{attempts} in an hour");
    }

    // proves: RS-12, RS-13, RS-14, RS-19
    #[test]
    fn only_setting_and_environment_decide_whether_it_ends() {
        for (toggle, switch, relentless) in
            [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
        {
            let policy = policy(toggle, switch);
            assert_eq!(policy.relentless_relaunch(), relentless, "{toggle} {switch}");
            let limits = Limits::default();
            let verdict = |n| maybe_retry_transient_spawn(n, &policy, 0, &limits);
            assert_eq!(verdict(100) != Relaunch::GiveUp, relentless);
            if !relentless {
                for n in 1..=3 {
                    assert_eq!(verdict(n), Relaunch::After(250), "{n}");
                }
                assert_eq!(verdict(4), Relaunch::GiveUp);
            }
        }
    }

    // proves: RS-17, RS-18, RS-24
    #[test]
    fn the_first_attempt_and_every_tenth_are_told() {
        let limits = Limits::default();
        for n in 1..=100 {
            let said = emit_spawn_retry_status(n, &limits);
            let wanted = match n {
                1 => Some(SpawnRetryStatus::Hiccup),
                n if n % 10 == 0 => Some(SpawnRetryStatus::Still(n)),
                _ => None,
            };
            assert_eq!(said, wanted, "{n}");
        }
        let told = (1..=100).filter(|n| emit_spawn_retry_status(*n, &limits).is_some());
        assert_eq!(told.count(), 11);
    }
}
