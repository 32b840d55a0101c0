//! Ctrl-C and SIGTERM, counted: the first asks to stop, the second to leave at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Comes to an end once somebody has asked twice: to leave at once, whatever is still to be tidied up.
pub async fn twice(interrupts: &mut watch::Receiver<u32>) {
    // Without a sender nobody can ask any more.
    if interrupts.wait_for(|count| *count > 1).await.is_err() {
        std::future::pending::<()>().await;
    }
}

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
