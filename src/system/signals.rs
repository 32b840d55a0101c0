//! Ctrl-C and SIGTERM, counted: the first asks to stop, the second to leave at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How many times somebody asked to stop, from now on. Must be called within the runtime.
pub fn interrupts() -> watch::Receiver<u32> {
    let (sender, receiver) = watch::channel(0);
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
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
