//! Ring 2: virtual days of trouble from a seed, every invariant of the contract after every step, then
//! the trouble stops and everything must settle. A failure prints its seed and its last inputs.
//!
//! `OMNISCIO_SIM_SEED=N` runs one seed and tells all of it; `OMNISCIO_SIM_LONG=M` runs on for M minutes of
//! real time; `OMNISCIO_SIM_ALL=1` goes on after a failure; `OMNISCIO_SIM_FROM=N` begins with that seed.

mod app;
mod bugs;
mod cli;
mod clock;
mod dice;
mod faults;
mod invariants;
mod launches;
mod lines;
mod load;
mod machine;
mod mass;
mod others;
mod person;
mod report;
mod scripts;
mod shell;
mod store;
mod tamper;
mod troubles;
mod waits;
mod world;

use clock::{DAY, HOUR};
use report::Report;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use world::World;

/// An ordinary run covers at least these seeds, which reach every rule.
const SEEDS_MIN: u64 = 120;
/// After so long an ordinary run starts no further seed.
const BUDGET: Duration = Duration::from_secs(40);
/// The weather of one seed lasts so long.
const TROUBLE_MS: u64 = 60 * HOUR;

#[derive(Default)]
struct Total {
    report: Report,
    steps: u64,
    millis: u64,
    seeds: u64,
    failures: Vec<String>,
}

fn run(seed: u64, total: &Mutex<Total>, trace_max: Option<usize>) {
    let mut world = World::new(seed, None);
    world.trace_max = trace_max.unwrap_or(world.trace_max);
    let lived = world.live(TROUBLE_MS);
    let mut total = total.lock().expect("no panic holds the lock");
    total.report.add(&world.report);
    total.steps += world.steps;
    total.millis += world.clock.at;
    total.seeds += 1;
    if let Err(broken) = lived {
        total.failures.push(world.story(&broken));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

// proves: RP-08, INV-01, INV-02, INV-03, INV-04, INV-05, INV-07, INV-08, INV-09, INV-10, INV-11, INV-12, INV-13, INV-14, INV-15, INV-17, INV-18, INV-19, INV-20, INV-23, INV-26, INV-27, INV-28, INV-29, INV-30, INV-31, INV-32, INV-33, INV-35, INV-36, INV-37, INV-39, INV-41, INV-42, INV-43, INV-44, INV-47, INV-48, INV-49, INV-50, INV-51, INV-52, INV-53, INV-55, INV-56, INV-57, INV-58, INV-59, INV-60, INV-61, INV-62, INV-63, INV-64, INV-65, A-04, A-10, A-12, A-14, A-15, RS-09, RS-11, RS-13, RS-23, LV-01
#[test]
fn every_invariant_holds_in_virtual_days_of_trouble_and_then_all_settles() {
    let total = Mutex::new(Total::default());
    let one = number("OMNISCIO_SIM_SEED");
    let long = number("OMNISCIO_SIM_LONG").map(|minutes| Duration::from_secs(60 * minutes));
    if let Some(seed) = one {
        run(seed, &total, Some(1_000_000));
    } else {
        let first = number("OMNISCIO_SIM_FROM").unwrap_or(1);
        let (began, next) = (Instant::now(), AtomicU64::new(first));
        let budget = long.unwrap_or(BUDGET);
        let all = number("OMNISCIO_SIM_ALL").is_some();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        let failed = !total.lock().expect("the total").failures.is_empty() && !all;
                        let over = seed >= first + SEEDS_MIN && began.elapsed() > budget;
                        if failed || over {
                            return;
                        }
                        run(seed, &total, None);
                    }
                });
            }
        });
    }
    let total = total.into_inner().expect("the total");
    total.report.print();
    let days = total.millis as f64 / DAY as f64;
    println!("{} seeds, {days:.0} virtual days, {} steps", total.seeds, total.steps);
    let missing = total.report.missing();
    println!("never reached: {missing:?}");
    assert!(total.failures.is_empty(), "{}", total.failures.join("\n"));
    assert!(one.is_some() || missing.is_empty(), "never reached: {missing:?}");
}
