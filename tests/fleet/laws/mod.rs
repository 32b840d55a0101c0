//! The laws of the design as properties over random specs, worlds and schedules of faults: fifty of
//! them each, or as many as `RAILWRIGHT_SCHEDULES` says. A case that fails is shrunk and printed as
//! one line that runs it again.

mod budget;
mod case;
mod crash;
mod fencing;
mod hostile;
mod identity;
mod leaf;
mod order;
mod reached;
mod remembered;
mod settled;
mod third_party;
mod unchanged;

use crate::room::{Room, runtime};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use railwright_apply::ApplyOutcome;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// Fails the case with these words unless it holds.
macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}
use ensure;

/// What a check makes of a case: nothing to say about it (its premise did not hold), or that it
/// holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// The law said something about the case.
    Yes,
    /// The law says nothing about such a case.
    Beside,
}

/// Somebody switches hosts off and on that a run waits for: those that go first, or all of them
/// whatever the budget says; and is seen to be back, or not yet. Who they were.
async fn switch_off_and_on(
    room: &Room,
    outcome: &ApplyOutcome,
    all: bool,
    back: bool,
) -> Vec<String> {
    let waves = if all { outcome.power_cycles.len() } else { 1 };
    let hosts: Vec<String> = outcome
        .power_cycles
        .iter()
        .take(waves)
        .flatten()
        .cloned()
        .collect();
    let now = room.fleet.now();
    hosts
        .iter()
        .for_each(|host| room.host(host, |host| host.power_cycle(now)));
    if back {
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    hosts
}

/// Cases a law is tried with.
fn schedules() -> u32 {
    std::env::var("RAILWRIGHT_SCHEDULES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(50)
}

/// Every run has equal cases, so that a change shows by what it changes; the long runs look for new
/// ones.
pub fn config() -> Config {
    let rng_seed = if std::env::var_os("RAILWRIGHT_SCHEDULES").is_some() {
        RngSeed::Random
    } else {
        RngSeed::Fixed(2026)
    };
    Config {
        cases: schedules(),
        failure_persistence: None,
        max_shrink_iters: 2000,
        rng_seed,
        ..Config::default()
    }
}

/// Tries a law. At least one case in twenty has to be one that the law says something about.
fn law<T: DeserializeOwned + Serialize + Debug>(
    name: &str,
    cases: impl Strategy<Value = T>,
    check: impl AsyncFn(&T) -> Result<Held, String>,
) {
    if let Ok(line) = std::env::var("RAILWRIGHT_CASE") {
        let case: T = serde_json::from_str(&line).unwrap();
        let held = runtime().block_on(check(&case));
        return println!(
            "{name}: {}",
            held.map_or_else(|why| panic!("{why}"), |held| format!("{held:?}"))
        );
    }
    let spoken = std::cell::Cell::new(0);
    let ran = TestRunner::new(config()).run(&cases, |case| {
        let held = runtime()
            .block_on(check(&case))
            .map_err(TestCaseError::fail)?;
        spoken.set(spoken.get() + u32::from(held == Held::Yes));
        Ok(())
    });
    match ran {
        Ok(()) => {
            println!(
                "{name}: {} schedules, {} of them with something to say",
                schedules(),
                spoken.get()
            );
            assert!(
                spoken.get() * 20 >= schedules(),
                "{name} says next to nothing: {} of {}",
                spoken.get(),
                schedules()
            );
        }
        Err(TestError::Fail(why, case)) => {
            let case = serde_json::to_string(&case).unwrap();
            panic!(
                "{why}\n\
                 again: RAILWRIGHT_CASE='{case}' cargo test --test fleet {name} -- --nocapture\n"
            )
        }
        Err(other) => panic!("{other}"),
    }
}
