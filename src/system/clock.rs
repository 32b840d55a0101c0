//! Time and randomness, for the shell only.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Now, RFC 3339 in UTC with whole seconds. `RAILWRIGHT_TEST_CLOCK` fixes it for transcripts.
pub fn read_current_time() -> String {
    if let Ok(fixed) = std::env::var("RAILWRIGHT_TEST_CLOCK") {
        return fixed;
    }
    jiff::Timestamp::now()
        .round(jiff::Unit::Second)
        .unwrap_or_else(|_| jiff::Timestamp::now())
        .to_string()
}

/// Fresh random hexadecimal, 128 bits, from the operating system.
pub fn generate_nonce() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Waits.
pub async fn sleep_for(duration: std::time::Duration) {
    tokio::time::sleep(duration).await;
}

/// The future's result, or nothing when it took longer than the limit.
pub async fn await_with_timeout<T>(
    limit: std::time::Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Stopwatch(std::time::Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }
}

/// A moment to come, by the clock that waits go by.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(tokio::time::Instant);

impl Deadline {
    /// So long from now.
    pub fn after(duration: std::time::Duration) -> Self {
        Deadline(tokio::time::Instant::now() + duration)
    }

    /// How long it is until then; nothing when it is past.
    pub fn left(self) -> std::time::Duration {
        self.0
            .saturating_duration_since(tokio::time::Instant::now())
    }
}

/// Waits, blocking this thread.
pub fn block_for(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

/// Seconds since 1970 in UTC, for setting another machine's clock.
pub fn unix_seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// A moment of a clock that only goes forward, and goes on while this machine is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Time since the boot of this machine.
    SinceBoot(std::time::Duration),
    /// A moment of a runtime's clock, which a test may have stopped.
    OfRuntime(tokio::time::Instant),
    /// The clock could not be read.
    Unknown,
}

impl Moment {
    /// How long after the earlier one it is; endless where nobody knows.
    pub fn since(self, earlier: Moment) -> std::time::Duration {
        match (self, earlier) {
            (Moment::SinceBoot(now), Moment::SinceBoot(then)) => now.saturating_sub(then),
            (Moment::OfRuntime(now), Moment::OfRuntime(then)) => {
                now.saturating_duration_since(then)
            }
            _ => std::time::Duration::MAX,
        }
    }
}

/// Whole seconds since the boot of this machine. `std::time::Instant` stands still while a laptop
/// is suspended; this does not (proc_uptime(5) is CLOCK_BOOTTIME).
pub fn uptime_s() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    text.split('.').next()?.parse().ok()
}

/// A clock as a value.
#[derive(Debug, Clone)]
pub enum Clock {
    /// This machine's own.
    Real,
    /// One that is set from outside: seconds since 1970 in UTC.
    Set(Arc<AtomicI64>),
}

impl Clock {
    /// What it says. `RAILWRIGHT_TEST_CLOCK` fixes the real one as well.
    pub fn now(&self) -> jiff::Timestamp {
        match self {
            Clock::Real => read_current_time()
                .parse()
                .unwrap_or_else(|_| jiff::Timestamp::now()),
            Clock::Set(seconds) => jiff::Timestamp::from_second(seconds.load(Ordering::SeqCst))
                .unwrap_or(jiff::Timestamp::MAX),
        }
    }

    /// The moment that it is, whatever the time of day is set to.
    pub fn moment(&self) -> Moment {
        match self {
            Clock::Real => uptime_s().map_or(Moment::Unknown, |seconds| {
                Moment::SinceBoot(std::time::Duration::from_secs(seconds))
            }),
            Clock::Set(_) => Moment::OfRuntime(tokio::time::Instant::now()),
        }
    }
}

/// Comes round again and again; what is missed is not made up for.
#[derive(Debug)]
pub struct Ticker(tokio::time::Interval);

impl Ticker {
    /// The first time after so long.
    pub fn every(period: std::time::Duration) -> Self {
        let period = period.max(std::time::Duration::from_millis(1));
        let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ticker(interval)
    }

    /// Waits for the next time; given up half way, it is not lost.
    pub async fn tick(&mut self) {
        self.0.tick().await;
    }
}
