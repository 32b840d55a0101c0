//! How much of this machine a command may take before it contacts a target: what it reads may come
//! from a stranger, and ask for everything.

use nix::sys::resource::{UsageWho, getrusage};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, panic, thread};

/// Memory is never let grow beyond this without somebody's word, in MiB.
const MEMORY_MAX_MIB: u64 = 16 * 1024;
/// Processor time of a command, in seconds.
const PROCESSOR_MAX_S: u64 = 600;
/// Between two looks: what a process can take in this time is little beside the ceiling.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What the main thread of a process has.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Whoever contacts targets goes on with what a person asked for: no ceiling ends it half way.
static IS_LIFTED: AtomicBool = AtomicBool::new(false);

/// What a command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Processor time, in seconds.
    pub processor_s: u64,
}

/// The ceiling that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedCeiling {
    /// Memory, in MiB.
    Memory(u64),
    /// Processor time, in seconds.
    Processor(u64),
}

impl Ceiling {
    /// The ceiling of this process: four fifths of the memory that is free now, at most 16 GiB, and
    /// ten minutes; or what was asked for.
    pub fn of_this_machine(memory_mib: Option<u64>, processor_s: Option<u64>) -> Self {
        let free = || {
            kib_of("/proc/meminfo", "MemAvailable:")
                .map_or(MEMORY_MAX_MIB, |kib| kib / 1024 / 5 * 4)
        };
        Ceiling {
            memory_mib: memory_mib.unwrap_or_else(|| free().min(MEMORY_MAX_MIB)),
            processor_s: processor_s.unwrap_or(PROCESSOR_MAX_S),
        }
    }

    fn reached(self) -> Option<ReachedCeiling> {
        let resident = kib_of("/proc/self/status", "VmRSS:").unwrap_or_default();
        let used = getrusage(UsageWho::RUSAGE_SELF)
            .map(|usage| usage.user_time().tv_sec() + usage.system_time().tv_sec());
        if resident / 1024 >= self.memory_mib {
            return Some(ReachedCeiling::Memory(self.memory_mib));
        }
        used.is_ok_and(|used| u64::try_from(used).is_ok_and(|used| used >= self.processor_s))
            .then_some(ReachedCeiling::Processor(self.processor_s))
    }
}

/// Nothing is watched any more in this process: from now on it contacts targets.
pub fn lift_ceiling() {
    IS_LIFTED.store(true, Ordering::Relaxed);
}

/// Does the work in a thread of its own, and leaves it behind where a ceiling is reached: the
/// process has to end then.
pub fn work_below<T: Send + 'static>(
    ceiling: Ceiling,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Result<T, ReachedCeiling>> {
    work_below_unless(&IS_LIFTED, ceiling, work)
}

fn work_below_unless<T: Send + 'static>(
    is_lifted: &AtomicBool,
    ceiling: Ceiling,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Result<T, ReachedCeiling>> {
    let (done, ended) = mpsc::channel();
    let worker = thread::Builder::new()
        .name("main".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let result = work();
            // Nobody listens any more where the ceiling was reached meanwhile.
            let _ = done.send(());
            result
        })?;
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_EVERY) {
        if is_lifted.load(Ordering::Relaxed) {
            // A run may go on for hours.
            break;
        }
        if let Some(reached) = ceiling.reached() {
            return Ok(Err(reached));
        }
    }
    Ok(Ok(worker
        .join()
        .unwrap_or_else(|panic| panic::resume_unwind(panic))))
}

/// A number of KiB in a file of the kernel's (proc(5)).
fn kib_of(file: &str, name: &str) -> Option<u64> {
    let bytes = super::files::read_limited(Path::new(file), 1 << 16).ok()?;
    String::from_utf8_lossy(&bytes)
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_takes_too_much_is_left_behind() {
        let is_lifted = AtomicBool::new(false);
        let nothing = Ceiling {
            memory_mib: 0,
            processor_s: 1 << 20,
        };
        // It goes on until nobody holds the other end any more.
        let endless = || {
            let (held, given) = mpsc::channel::<()>();
            (held, move || given.recv().is_ok())
        };
        for (ceiling, reached) in [
            (nothing, ReachedCeiling::Memory(0)),
            (
                Ceiling {
                    memory_mib: 1 << 20,
                    processor_s: 0,
                },
                ReachedCeiling::Processor(0),
            ),
        ] {
            let (_held, work) = endless();
            assert_eq!(
                work_below_unless(&is_lifted, ceiling, work).unwrap(),
                Err(reached)
            );
        }
        assert_eq!(
            work_below_unless(
                &is_lifted,
                Ceiling::of_this_machine(None, Some(1 << 20)),
                || 1
            )
            .unwrap(),
            Ok(1)
        );
        is_lifted.store(true, Ordering::Relaxed);
        let slow = || thread::sleep(LOOK_EVERY * 3);
        assert_eq!(
            work_below_unless(&is_lifted, nothing, slow).unwrap(),
            Ok(()),
            "whoever contacts targets is not ended"
        );
    }

    #[test]
    fn four_fifths_of_what_is_free_are_the_ceiling_unless_somebody_says_otherwise() {
        let own = Ceiling::of_this_machine(None, None);
        assert!(
            own.memory_mib > 0
                && own.memory_mib <= MEMORY_MAX_MIB
                && own.processor_s == PROCESSOR_MAX_S,
            "{own:?}"
        );
        assert_eq!(
            Ceiling::of_this_machine(Some(5), Some(7)),
            Ceiling {
                memory_mib: 5,
                processor_s: 7
            }
        );
    }
}
