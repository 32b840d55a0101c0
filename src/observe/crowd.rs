//! Many futures in one task, a bounded number at a time. No spawning, so that what they borrow may live on the caller's stack.

use crate::transport::BoxFuture;
use std::future::{Future as _, poll_fn};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

/// Runs `work` on every item, at most `parallel` at a time, in the order of the items.
pub(super) async fn each<'a, T: Send + 'a>(items: Vec<T>, parallel: usize, work: &'a (dyn Fn(T) -> BoxFuture<'a, ()> + Sync)) {
    let workers = parallel.clamp(1, items.len().max(1));
    let queue = Mutex::new(items.into_iter());
    let worker = async || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(item) => work(item).await,
                None => return,
            }
        }
    };
    let mut running: Vec<_> = (0..workers).map(|_| Box::pin(worker())).collect();
    poll_fn(|context| {
        running.retain_mut(|worker| worker.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn never_more_than_allowed_and_all_in_the_end() {
        for parallel in [0, 1, 3, 100] {
            let (now, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |_: u32| -> BoxFuture<'_, ()> {
                Box::pin(async {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                })
            };
            each((0..20).collect(), parallel, &work).await;
            assert_eq!((done.into_inner(), most.into_inner()), (20, parallel.clamp(1, 20)));
        }
    }
}
