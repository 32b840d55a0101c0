//! Many futures in one task, a bounded number at a time. No spawning, so that what they borrow may
//! live on the caller's stack.

use futures_util::stream::{self, StreamExt as _};
use railwright_transport::BoxFuture;

/// Runs `work` on every item, at most `parallel` at a time, in the order of the items. Only who was
/// woken is looked at: to look at all whenever one has something to do would cost the square of
/// their number.
pub async fn run_each_bounded<'a, T: Send + 'a>(
    items: Vec<T>,
    parallel: usize,
    work: &'a (dyn Fn(T) -> BoxFuture<'a, ()> + Sync),
) {
    stream::iter(items)
        .map(work)
        .buffer_unordered(parallel.max(1))
        .collect::<()>()
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    #[tokio::test]
    async fn never_more_than_allowed_and_all_in_the_end() {
        for parallel in [0, 1, 3, 100] {
            let (now, most, done) = (
                AtomicUsize::new(0),
                AtomicUsize::new(0),
                AtomicUsize::new(0),
            );
            let work = |_: u32| -> BoxFuture<'_, ()> {
                Box::pin(async {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                })
            };
            run_each_bounded((0..20).collect(), parallel, &work).await;
            assert_eq!(
                (done.into_inner(), most.into_inner()),
                (20, parallel.clamp(1, 20))
            );
        }
    }

    /// Threads and timers wake workers out of order, and often while others are looked at: nobody's
    /// bell may be lost.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_is_woken_from_elsewhere_goes_on() {
        let (done, items) = (AtomicUsize::new(0), 200);
        let work = |item: u64| -> BoxFuture<'_, ()> {
            let done = &done;
            Box::pin(async move {
                for turn in 0..20 {
                    let told = tokio::spawn(async move {
                        if (item + turn).is_multiple_of(7) {
                            tokio::time::sleep(std::time::Duration::from_micros(item)).await;
                        }
                        turn
                    });
                    assert_eq!(told.await.unwrap(), turn);
                }
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        run_each_bounded((0..items).collect(), 64, &work).await;
        assert_eq!(done.into_inner(), items as usize);
    }

    /// A future may ring while it is looked at, and be re-checked.
    #[tokio::test]
    async fn whoever_wakes_itself_goes_on() {
        let work = |turns: u32| -> BoxFuture<'_, ()> {
            let mut left = turns;
            Box::pin(poll_fn(move |context| {
                left = left.saturating_sub(1);
                context.waker().wake_by_ref();
                if left == 0 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }))
        };
        run_each_bounded((0..9).collect(), 4, &work).await;
    }

    /// One worker that is woken a thousand times has nobody else looked at.
    #[tokio::test]
    async fn only_who_was_woken_is_looked_at() {
        let looks = AtomicUsize::new(0);
        let work = |item: u32| -> BoxFuture<'_, ()> {
            let looks = &looks;
            Box::pin(async move {
                if item == 0 {
                    for _ in 0..1000 {
                        tokio::task::yield_now().await;
                    }
                    return;
                }
                let mut told = Box::pin(tokio::time::sleep(std::time::Duration::from_millis(20)));
                poll_fn(|context| {
                    looks.fetch_add(1, Ordering::SeqCst);
                    told.as_mut().poll(context)
                })
                .await;
            })
        };
        run_each_bounded((0..64).collect(), 64, &work).await;
        assert!(
            looks.load(Ordering::SeqCst) <= 3 * 63,
            "each of the others is looked at when it begins and when its time has come"
        );
    }
}
