//! What a command costs this machine: wall time and processor time of its processes, and, in a run
//! apart, their memory.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A variable of the environment that all processes of the command have, also those that left for
/// the background.
const MARK: &str = "RAILWRIGHT_BENCH_MARK";

/// One run.
pub struct Run {
    /// Seconds until its end.
    pub wall: f64,
    /// Seconds of processor time of it and of all children that it waited for.
    pub cpu: f64,
    /// Standard output.
    pub output: String,
}

fn spent() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// Runs a command that must end with 0.
pub fn run(command: &mut Command) -> Run {
    let (before, began) = (spent(), Instant::now());
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("it can be started");
    let wall = began.elapsed().as_secs_f64();
    let both = || {
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        both()
    );
    Run {
        wall,
        cpu: spent() - before,
        output: both(),
    }
}

/// Runs a command and gives the most memory that its processes had at a time, in MiB: their
/// proportional share of pages, so that what many of them map is counted once. Looked at every few
/// milliseconds, which is why no time is taken here.
pub fn peak_mib(command: &mut Command) -> f64 {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let mark = format!(
        "{}-{}",
        std::process::id(),
        RUNS.fetch_add(1, Ordering::Relaxed)
    );
    let mut child = command
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut peak = 0;
    while child.try_wait().expect("it is ours").is_none() {
        peak = peak.max(marked(&mark));
        std::thread::sleep(Duration::from_millis(3));
    }
    peak as f64 / 1024.0
}

fn marked(mark: &str) -> u64 {
    let line = format!("{MARK}={mark}");
    let is_marked = |pid: &str| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == line.as_bytes())
    };
    let processes = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let numbered = processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    numbered
        .filter(|pid| is_marked(pid))
        .map(|pid| share_kib(&pid))
        .sum()
}

fn share_kib(pid: &str) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .unwrap_or_default();
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .unwrap_or_default()
}

/// The one in the middle.
pub fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    match of.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => of[n / 2],
        n => f64::midpoint(of[n / 2 - 1], of[n / 2]),
    }
}
