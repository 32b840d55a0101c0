//! Runs futures that borrow side by side, a window of them at a time, results in order.

use railwright_transport::BoxFuture;
use std::future::poll_fn;
use std::task::Poll;

/// Connections or pairs at work at the same time; each is mostly waiting for a host.
const WINDOW: usize = 64;

/// The results of all futures, in the order in which they were given.
pub async fn run_concurrently<'a, T>(futures: Vec<BoxFuture<'a, T>>) -> Vec<T> {
    let mut waiting = futures.into_iter().enumerate();
    let mut running: Vec<(usize, BoxFuture<'a, T>)> = Vec::new();
    let mut done: Vec<(usize, T)> = Vec::new();
    poll_fn(|context| {
        loop {
            running.extend(waiting.by_ref().take(WINDOW - running.len()));
            let before = done.len();
            let mut still = Vec::with_capacity(WINDOW);
            for (place, mut future) in running.drain(..) {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => done.push((place, value)),
                    Poll::Pending => still.push((place, future)),
                }
            }
            running = still;
            if running.is_empty() && waiting.len() == 0 {
                return Poll::Ready(());
            }
            // A place that became free is filled at once; else everybody running has been asked and
            // will wake us.
            if done.len() == before || waiting.len() == 0 {
                return Poll::Pending;
            }
        }
    })
    .await;
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_than_a_window_ends_in_order() {
        let futures: Vec<BoxFuture<'_, usize>> = (0..200)
            .map(|n| -> BoxFuture<'_, usize> {
                Box::pin(async move {
                    for _ in 0..(n % 7) {
                        tokio::task::yield_now().await;
                    }
                    n
                })
            })
            .collect();
        assert_eq!(
            run_concurrently(futures).await,
            (0..200).collect::<Vec<_>>()
        );
    }
}
