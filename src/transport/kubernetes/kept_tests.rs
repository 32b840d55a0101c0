//! What a cluster keeps of us, the lock and the record, on a server that is a function.

use super::NAMESPACE;
use super::tests::{Reply, link, told};
use crate::target_lock::RECORD_MOVED;
use crate::{Fence, FencedWrite, Grounds, HostLink, NO_RECORD, TransportError, Upkeep};
use http::Method;
use railwright_base::{Digest, bounded};
use railwright_resource::Read;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::{Arc, Mutex};

/// Objects that are kept as an API server keeps them: by resource version.
fn store(
    date: Arc<Mutex<String>>,
) -> impl Fn(&Method, &str, &str) -> Reply + Clone + Send + Sync + 'static {
    let kept: Arc<Mutex<BTreeMap<String, Value>>> = Arc::default();
    move |method, path, body| {
        let mut kept = kept.lock().unwrap();
        let head = vec![("date", date.lock().unwrap().clone())];
        let conflict = || {
            (
                409,
                head.clone(),
                json!({ "message": "conflict" }).to_string(),
            )
        };
        let version = |object: &Value| {
            object["metadata"]["resourceVersion"]
                .as_str()
                .map(|text| text.parse::<u64>().unwrap())
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let sent: Value = serde_json::from_str(body).unwrap_or_default();
        let before = kept.get(path).cloned();
        match (method, &before) {
            (&Method::GET, None) => {
                return (
                    404,
                    head,
                    json!({ "kind": "Status", "reason": "NotFound", "message": "not found" })
                        .to_string(),
                );
            }
            (&Method::GET, Some(object)) => return (200, head, object.to_string()),
            (_, Some(object))
                if version(&sent).is_some_and(|sent| version(object) != Some(sent)) =>
            {
                return conflict();
            }
            (_, None) if version(&sent).is_some_and(|sent| sent > 1) => return conflict(),
            _ => {}
        }
        let is_apply = *method == Method::PUT || query.contains("force=true");
        let mut object = if is_apply {
            sent
        } else {
            merged(before.clone().unwrap_or_default(), &sent)
        };
        object["metadata"]["name"] = json!(path.rsplit('/').next());
        object["metadata"]["uid"] = json!(path);
        object["metadata"]["resourceVersion"] =
            json!((before.as_ref().and_then(version).unwrap_or(1) + 1).to_string());
        kept.insert(path.to_owned(), object);
        (200, head, "{}".to_owned())
    }
}

/// RFC 7396, as far as it is used.
fn merged(mut object: Value, patch: &Value) -> Value {
    for (field, value) in patch.as_object().into_iter().flatten() {
        object[field] = if value.is_object() {
            merged(object[field].clone(), value)
        } else {
            value.clone()
        };
    }
    object
}

/// For a write that was refused because of the lock.
const LOST: i32 = -1;

fn write(write: FencedWrite) -> Upkeep {
    Upkeep::Write {
        fence: Fence::new("a", 5),
        write,
    }
}

fn record(json: String) -> Upkeep {
    write(FencedWrite::Record {
        json,
        members: Vec::new(),
        replaces: Default::default(),
        set_aside: None,
    })
}

fn clock(second: u32) -> String {
    format!("Mon, 23 Nov 2026 01:00:{second:02} GMT")
}

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

#[tokio::test]
async fn the_record_is_packed_and_read_again() {
    let (link, asked) = link(store(Arc::new(Mutex::new(clock(0)))));
    assert_eq!(told(link.upkeep(&Upkeep::ReadRecord).await.unwrap()).0, 1);
    link.upkeep(&Upkeep::Lock {
        holder: "a".to_owned(),
        fence: 5,
    })
    .await
    .unwrap();
    let json = format!("{{\"a\":\"{}ä\"}}", "x".repeat(2 << 20));
    assert_eq!(told(link.upkeep(&record(json.clone())).await.unwrap()).0, 0);
    assert_eq!(
        told(link.upkeep(&Upkeep::ReadRecord).await.unwrap()),
        (0, format!("{json}\n"), String::new())
    );
    let read = Read::File {
        path: "/var/lib/railwright/record.json".to_owned(),
    };
    let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
    assert_eq!(
        answers.get(&read).unwrap().out,
        format!("600 root root {} regular file\n{json}", json.len())
    );
    let path = format!(
        "PATCH \
         /api/v1/namespaces/{NAMESPACE}/secrets/railwright?fieldManager=railwright&force=true&fieldValidation=Strict"
    );
    assert!(asked.lines().contains(&path), "{:?}", asked.lines());
    let mut random = 1u64;
    let noise = std::iter::repeat_with(|| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b' ' + (random >> 58) as u8)
    });
    let large = record(noise.take(1_400_000).collect());
    let (code, _, stderr) = told(link.upkeep(&large).await.unwrap());
    assert!(
        code == 74 && stderr.contains("a Secret takes 900 KiB"),
        "{stderr}"
    );
}

/// Its date says nothing: the server's clock was set back, or another one wrote it.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_dated_ahead_is_judged_by_what_is_seen_of_it() {
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

fn digest(record: &str) -> String {
    Digest::of_bytes(format!("{record}\n").as_bytes())
        .as_str()
        .to_owned()
}

/// A record of this holder with this token, in the place of one with this digest.
fn record_of(holder: &str, number: u64, json: &str, replaces: &str) -> Upkeep {
    let replaces = BTreeSet::from([replaces.to_owned()]);
    let write = FencedWrite::Record {
        json: json.to_owned(),
        members: Vec::new(),
        replaces,
        set_aside: None,
    };
    Upkeep::Write {
        fence: Fence::new(holder, number),
        write,
    }
}

/// Another machine takes the lock over, and writes its record or does not yet; a thread, because a
/// server that is a function waits for it.
fn taken_over(
    kept: impl Fn(&Method, &str, &str) -> Reply + Clone + Send + Sync + 'static,
    writes: bool,
) {
    let taking = async move {
        let (theirs, _) = link(kept);
        let steal = Upkeep::Steal {
            holder: "a".to_owned(),
            fence: 6,
            grounds: Grounds::Forced,
        };
        assert_eq!(told(theirs.upkeep(&steal).await.unwrap()).0, 0);
        let (code, stood, _) = told(
            theirs
                .upkeep(&Upkeep::Lock {
                    holder: "b".to_owned(),
                    fence: 6,
                })
                .await
                .unwrap(),
        );
        assert_eq!(
            (code, stood),
            (
                0,
                format!(
                    "{}
",
                    digest("first")
                )
            )
        );
        if writes {
            assert_eq!(
                told(
                    theirs
                        .upkeep(&record_of("b", 6, "second", &digest("first")))
                        .await
                        .unwrap()
                )
                .0,
                0
            );
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    std::thread::spawn(move || runtime.block_on(taking))
        .join()
        .unwrap();
}

/// Between any two requests with which a run writes its record another one takes the lock over.
#[tokio::test(start_paused = true)]
async fn a_run_that_slept_overwrites_no_record() {
    for (asleep_at, writes) in [
        (0, false),
        (0, true),
        (1, false),
        (1, true),
        (2, false),
        (2, true),
    ] {
        let kept = store(Arc::new(Mutex::new(clock(0))));
        let (first, _) = link(kept.clone());
        let lock = Upkeep::Lock {
            holder: "a".to_owned(),
            fence: 5,
        };
        assert_eq!(
            told(first.upkeep(&lock).await.unwrap()).1,
            format!(
                "{NO_RECORD}
"
            )
        );
        assert_eq!(
            told(
                first
                    .upkeep(&record_of("a", 5, "first", NO_RECORD))
                    .await
                    .unwrap()
            )
            .0,
            0
        );
        let (count, woke) = (Arc::new(Mutex::new(0)), kept.clone());
        let (slept, _) = link(move |method: &Method, path: &str, body: &str| {
            let turn = {
                let mut count = count.lock().unwrap();
                *count += 1;
                *count
            };
            if turn == asleep_at + 1 {
                taken_over(woke.clone(), writes);
            }
            woke(method, path, body)
        });
        let ended = slept
            .upkeep(&record_of("a", 5, "stale", &digest("first")))
            .await;
        assert!(
            matches!(&ended, Err(TransportError::LockLost { holder, .. }) if holder.as_deref() == Some("b")),
            "{asleep_at}: {ended:?}"
        );
        let stands = if writes { "second" } else { "first" };
        assert_eq!(
            told(first.upkeep(&Upkeep::ReadRecord).await.unwrap()).1,
            format!(
                "{stands}
"
            ),
            "asleep at {asleep_at}"
        );
    }
}

/// Somebody restored or edited it; and a token that the Lease forgot is known by the record.
#[tokio::test(start_paused = true)]
async fn another_record_than_was_known_is_left_alone() {
    let kept = store(Arc::new(Mutex::new(clock(0))));
    let (link, _) = link(kept.clone());
    let lock = |fence| Upkeep::Lock {
        holder: "a".to_owned(),
        fence,
    };
    link.upkeep(&lock(5)).await.unwrap();
    assert_eq!(
        told(
            link.upkeep(&record_of("a", 5, "first", NO_RECORD))
                .await
                .unwrap()
        )
        .0,
        0
    );
    assert_eq!(
        told(
            link.upkeep(&record_of("a", 5, "second", NO_RECORD))
                .await
                .unwrap()
        )
        .0,
        RECORD_MOVED
    );
    assert_eq!(
        told(link.upkeep(&Upkeep::ReadRecord).await.unwrap()).1,
        "first
"
    );
    assert_eq!(
        told(
            link.upkeep(&record_of("a", 5, "second", &digest("first")))
                .await
                .unwrap()
        )
        .0,
        0
    );
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/railwright");
    let forgotten = json!({ "kind": "Lease", "metadata": { "annotations": {} } }).to_string();
    assert_eq!(kept(&Method::PUT, &lease, &forgotten).0, 200);
    assert_eq!(
        told(link.upkeep(&lock(4)).await.unwrap()),
        (
            76,
            "5
"
            .to_owned(),
            String::new()
        )
    );
    assert_eq!(
        told(link.upkeep(&lock(6)).await.unwrap()).1,
        format!(
            "{}
",
            digest("second")
        )
    );
}

/// 59 kB of gzip took 7.8 GB of memory.
#[tokio::test(start_paused = true)]
async fn a_record_of_too_many_values_is_not_read() {
    let (link, asked) = link(store(Arc::new(Mutex::new(clock(0)))));
    link.upkeep(&Upkeep::Lock {
        holder: "a".to_owned(),
        fence: 5,
    })
    .await
    .unwrap();
    let many = |count: usize| format!("[{}1]", "{},".repeat(count / 2));
    assert_eq!(
        told(
            link.upkeep(&record(many(bounded::RECORD_VALUES - 2)))
                .await
                .unwrap()
        )
        .0,
        0
    );
    let (code, _, said) = told(
        link.upkeep(&record(many(bounded::RECORD_VALUES)))
            .await
            .unwrap(),
    );
    assert!(
        code == 74 && said.contains("more than 500000 values"),
        "{said}"
    );
    // One that was packed by somebody else.
    let mut secret: Value = serde_json::from_str(&asked.last_body()).unwrap();
    secret["kind"] = json!("Secret");
    secret["metadata"]["name"] = json!("railwright");
    let mut packed = Vec::new();
    let bomb = many(2 * bounded::RECORD_VALUES);
    flate2::read::GzEncoder::new(bomb.as_bytes(), flate2::Compression::best())
        .read_to_end(&mut packed)
        .unwrap();
    secret["data"]["record.json"] = json!(railwright_resource::file::base64::encode_base64_text(
        &packed
    ));
    let secret = secret.to_string();
    let (bombed, _) = super::tests::link(move |_, _, _| (200, Vec::new(), secret.clone()));
    assert_eq!(
        told(bombed.upkeep(&Upkeep::ReadRecord).await.unwrap()).0,
        74
    );
    let read = Read::File {
        path: "/var/lib/railwright/record.json".to_owned(),
    };
    assert!(matches!(
        bombed.read(std::slice::from_ref(&read)).await,
        Err(TransportError::RecordUnread { .. })
    ));
}
