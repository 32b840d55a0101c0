//! The lock that a cluster keeps of us, taken, renewed, released and taken over on a server that is
//! a function.

use super::NAMESPACE;
use super::kept_tests::{clock, digest, record, record_of, store, write};
use super::lock::FENCE;
use super::tests::{link, told};
use crate::{Fence, FencedWrite, Grounds, HostLink, NO_RECORD, TransportError, Upkeep};
use http::Method;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// For a write that was refused because of the lock.
const LOST: i32 = -1;

#[tokio::test(start_paused = true)]
async fn the_lock_is_held_by_one_and_its_number_outlives_it() {
    let date = Arc::new(Mutex::new(clock(0)));
    let (link, _) = link(store(date.clone()));
    let keep = async |upkeep: Upkeep| match link.upkeep(&upkeep).await {
        Err(TransportError::LockLost { holder, .. }) => (LOST, holder.unwrap_or_default()),
        other => {
            let (code, stdout, _) = told(other.unwrap());
            (code, stdout)
        }
    };
    let write = |holder: &String, write| Upkeep::Write {
        fence: Fence::new(holder, 5),
        write,
    };
    let (a, b) = (r#"{"who":"ann","machine":"m"}"#.to_owned(), "b".to_owned());
    let lock = |holder: &String, fence| Upkeep::Lock {
        holder: holder.clone(),
        fence,
    };
    let beat = |holder: &String| {
        write(
            holder,
            FencedWrite::Beat {
                note: "run r1\nx".to_owned(),
            },
        )
    };
    let steal = |holder: &String, fence| Upkeep::Steal {
        holder: holder.clone(),
        fence,
        grounds: Grounds::Forced,
    };
    let (fine, had) = ((0, String::new()), (0, format!("{NO_RECORD}\n")));
    assert_eq!(
        (
            keep(Upkeep::ReadLock).await.0,
            keep(beat(&a)).await.0,
            keep(steal(&a, 9)).await.0
        ),
        (1, LOST, 1),
        "nobody has it"
    );
    assert_eq!(keep(lock(&a, 5)).await, had);
    assert_eq!(
        keep(lock(&a, 5)).await,
        had,
        "the same holder may ask again"
    );
    assert_eq!(keep(lock(&b, 6)).await, (75, format!("{a}\n")));
    *date.lock().unwrap() = clock(40);
    assert_eq!(keep(Upkeep::ReadLock).await, (0, format!("{a}\n\n40\n5\n")));
    assert_eq!(
        (keep(beat(&b)).await, keep(beat(&a)).await),
        ((LOST, a.clone()), fine.clone()),
        "only the holder lives"
    );
    assert_eq!(
        keep(Upkeep::ReadLock).await,
        (0, format!("{a}\nrun r1 x\n0\n5\n"))
    );
    let unlock = |holder: &String| write(holder, FencedWrite::Unlock);
    assert_eq!(keep(unlock(&b)).await.0, LOST);
    assert_eq!(
        (keep(unlock(&a)).await, keep(unlock(&a)).await),
        (fine.clone(), fine.clone())
    );
    assert_eq!(keep(Upkeep::ReadLock).await, (1, String::new()));
    assert_eq!(
        keep(lock(&b, 4)).await,
        (76, "5\n".to_owned()),
        "the number stays"
    );
    assert_eq!(keep(lock(&b, 6)).await, had);
    assert_eq!(
        keep(Upkeep::ReadLock).await.1.lines().nth(1),
        Some(""),
        "an earlier holder's note is gone"
    );
    assert_eq!(
        keep(steal(&a, 8)).await,
        (75, "b\n".to_owned()),
        "another one than was looked at"
    );
    assert_eq!(keep(steal(&b, 8)).await, fine);
    assert_eq!(
        (keep(beat(&b)).await.0, keep(lock(&b, 7)).await),
        (LOST, (76, "8\n".to_owned()))
    );
    assert_eq!(keep(lock(&a, 8)).await, had);
}

#[tokio::test(start_paused = true)]
async fn of_many_at_once_one_gets_the_lock() {
    let (link, _) = link(store(Arc::new(Mutex::new(clock(0)))));
    let upkeeps: Vec<_> = (0..10)
        .map(|n| Upkeep::Lock {
            holder: format!("h{n}"),
            fence: 1,
        })
        .collect();
    let all =
        futures_util::future::join_all(upkeeps.iter().map(|upkeep| link.upkeep(upkeep))).await;
    let codes: Vec<i32> = all
        .into_iter()
        .map(|performed| told(performed.unwrap()).0)
        .collect();
    assert_eq!(
        (
            codes.iter().filter(|code| **code == 0).count(),
            codes.iter().filter(|code| **code == 75).count()
        ),
        (1, 9),
        "{codes:?}"
    );
}

/// Its date says nothing: the server's clock was set back, or another one wrote it.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_dated_ahead_goes_by_what_is_seen_of_it() {
    let date = Arc::new(Mutex::new(clock(0)));
    let (link, _) = link(store(date.clone()));
    let holder = || "a".to_owned();
    assert_eq!(
        told(
            link.upkeep(&Upkeep::Lock {
                holder: holder(),
                fence: 5
            })
            .await
            .unwrap()
        )
        .0,
        0
    );
    *date.lock().unwrap() = "Mon, 23 Nov 2026 00:00:00 GMT".to_owned();
    let age = async || {
        told(link.upkeep(&Upkeep::ReadLock).await.unwrap())
            .1
            .lines()
            .nth(2)
            .unwrap()
            .to_owned()
    };
    let beat = write(FencedWrite::Beat {
        note: String::new(),
    });
    let alive = async {
        tokio::time::sleep(std::time::Duration::from_secs(61)).await;
        link.upkeep(&beat).await.unwrap();
    };
    assert_eq!(tokio::join!(age(), alive).0, "0", "it gives a sign of life");
    *date.lock().unwrap() = "Sun, 22 Nov 2026 00:00:00 GMT".to_owned();
    assert_eq!(age().await, u32::MAX.to_string(), "nobody does");
}

#[tokio::test(start_paused = true)]
async fn a_write_of_the_lock_whose_answer_got_lost_was_done() {
    let (kept, lost) = (
        store(Arc::new(Mutex::new(clock(0)))),
        Arc::new(Mutex::new(false)),
    );
    let loses = lost.clone();
    let (link, _) = link(move |method, path, body| {
        let reply = kept(method, path, body);
        let is_lost = *method != Method::GET && std::mem::take(&mut *loses.lock().unwrap());
        if is_lost {
            super::tests::says(500, "lost")
        } else {
            reply
        }
    });
    let holder = || "a".to_owned();
    for upkeep in [
        Upkeep::Lock {
            holder: holder(),
            fence: 5,
        },
        write(FencedWrite::Beat { note: holder() }),
        record("{}".to_owned()),
        record_of("a", 5, "[]", &digest("{}")),
        Upkeep::Steal {
            holder: holder(),
            fence: 5,
            grounds: Grounds::Forced,
        },
        Upkeep::Lock {
            holder: holder(),
            fence: 5,
        },
        write(FencedWrite::Unlock),
    ] {
        *lost.lock().unwrap() = true;
        assert_eq!(told(link.upkeep(&upkeep).await.unwrap()).0, 0, "{upkeep:?}");
    }
    assert_eq!(told(link.upkeep(&Upkeep::ReadLock).await.unwrap()).0, 1);
}

/// As on a host.
#[tokio::test(start_paused = true)]
async fn a_fencing_number_of_a_cluster_beyond_all_numbers_is_the_highest() {
    let beyond = "99999999999999999999999";
    let of = |kind: &str, path: &str| {
        let metadata = json!({ "name": "railwright", "namespace": NAMESPACE, "annotations": { FENCE: beyond } });
        let path = format!(
            "{path}/namespaces/{NAMESPACE}/{}s/railwright",
            kind.to_lowercase()
        );
        (
            path,
            json!({ "kind": kind, "metadata": metadata }).to_string(),
        )
    };
    for (path, object) in [
        of("Lease", "/apis/coordination.k8s.io/v1"),
        of("Secret", "/api/v1"),
    ] {
        let server = store(Arc::new(Mutex::new(clock(0))));
        server(&Method::PUT, &path, &object);
        let (link, _) = link(server.clone());
        let lock = Upkeep::Lock {
            holder: "a".to_owned(),
            fence: 5,
        };
        let (code, highest, _) = told(link.upkeep(&lock).await.unwrap());
        assert_eq!(
            (code, highest.trim()),
            (76, u64::MAX.to_string().as_str()),
            "{path}"
        );
        let (.., kept) = server(&Method::GET, &path, "");
        assert!(kept.contains(beyond), "{kept}");
    }
}
