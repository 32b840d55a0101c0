//! Ctrl-C, SIGTERM and SIGHUP (a terminal or SSH session that went away), counted: the first asks
//! to stop, the second to leave at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Comes to an end once somebody has asked so often: once to stop, twice to leave at once, whatever
/// is still to be tidied up.
pub async fn wait_for_interrupts(interrupts: &mut watch::Receiver<u32>, times: u32) {
    // Without a sender nobody can ask any more.
    if interrupts.wait_for(|count| *count >= times).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// How many times somebody asked to stop, from now on. Must be called within the runtime.
pub fn watch_interrupts() -> watch::Receiver<u32> {
    let (sender, receiver) = watch::channel(0);
    let hangup = (!is_hangup_ignored()).then(SignalKind::hangup);
    for kind in [SignalKind::interrupt(), SignalKind::terminate()]
        .into_iter()
        .chain(hangup)
    {
        let sender = sender.clone();
        if let Ok(mut stream) = signal(kind) {
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    sender.send_modify(|count| *count += 1);
                }
            });
        }
    }
    receiver
}

/// Whether whoever started us has us go on without a terminal: nohup(1). Ignored signals are a mask
/// in hexadecimal, the first bit of which is signal 1 (proc_pid_status(5), SigIgn).
fn is_hangup_ignored() -> bool {
    let status = super::files::read_limited(std::path::Path::new("/proc/self/status"), 1 << 16)
        .unwrap_or_default();
    is_first_ignored(&String::from_utf8_lossy(&status))
}

fn is_first_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_is_ignored_stays_so() {
        assert!(is_first_ignored(
            "Name:\trailwright\nSigIgn:\t0000000000001001\n"
        ));
        assert!(!is_first_ignored("SigIgn:\t0000000000001000\n") && !is_first_ignored(""));
    }
}
