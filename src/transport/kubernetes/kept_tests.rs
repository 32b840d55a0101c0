//! The record that a cluster keeps of us, read and written on a server that is a function.

use super::NAMESPACE;
use super::tests::{Reply, link, told};
use crate::target_lock::RECORD_MOVED;
use crate::{Fence, FencedWrite, Grounds, HostLink, NO_RECORD, TransportError, Upkeep};
use http::Method;
use railwright_base::{Digest, bounded_json};
use railwright_resource::Read;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::{Arc, Mutex};

/// Objects that are kept as an API server keeps them: by resource version.
pub(super) fn store(
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
                json!({ "kind": "Status", "message": "conflict" }).to_string(),
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
        let said = merged(object.clone(), &json!({ "kind": "Any" }));
        kept.insert(path.to_owned(), object);
        (200, head, said.to_string())
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

pub(super) fn write(write: FencedWrite) -> Upkeep {
    Upkeep::Write {
        fence: Fence::new("a", 5),
        write,
    }
}

pub(super) fn record(json: String) -> Upkeep {
    write(FencedWrite::Record {
        json,
        members: Vec::new(),
        replaces: Default::default(),
        set_aside: None,
    })
}

pub(super) fn clock(second: u32) -> String {
    format!("Mon, 23 Nov 2026 01:00:{second:02} GMT")
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

pub(super) fn digest(record: &str) -> String {
    Digest::of_bytes(format!("{record}\n").as_bytes())
        .as_str()
        .to_owned()
}

/// A record of this holder with this token, in the place of one with this digest.
pub(super) fn record_of(holder: &str, number: u64, json: &str, replaces: &str) -> Upkeep {
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
            link.upkeep(&record(many(bounded_json::RECORD_VALUES - 2)))
                .await
                .unwrap()
        )
        .0,
        0
    );
    let (code, _, said) = told(
        link.upkeep(&record(many(bounded_json::RECORD_VALUES)))
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
    let bomb = many(2 * bounded_json::RECORD_VALUES);
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
