//! Laws of writes to a cluster, over random orders of what others do between any look and any
//! write, of answers that get lost after the server did what was asked, and of answers of another
//! shape: an object that we did not make is neither overwritten nor deleted, and what we made is
//! never said to be somebody else's.

use super::tests::{Reply, kinds_of, link, says, told};
use crate::HostLink as _;
use http::Method;
use proptest::prelude::*;
use railwright_base::{Address, Target};
use railwright_resource::kubernetes_object::ownership::MEMBERSHIP;
use railwright_resource::kubernetes_object::request::{MOVED, ObjectName, SUBMISSION, TAKEN};
use railwright_resource::kubernetes_object::{KubernetesObject, MANAGER, part_of};
use railwright_resource::{Action, DesiredResource, ResourceKind as _};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const COLLECTION: &str = "/api/v1/namespaces/zone/configmaps";

/// What the spec says of the object at one time.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// It is declared with this text.
    Declared(&'static str),
    /// It left the spec. Whether it was there before us: then our marks alone are taken from it.
    Left { existed: bool },
}

fn turns(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Turn>> {
    let left = any::<bool>().prop_map(|existed| Turn::Left { existed });
    prop::collection::vec(
        prop_oneof![
            Just(Turn::Declared("ours")),
            Just(Turn::Declared("ours by now")),
            left
        ],
        count,
    )
}

/// An API server with one object, and somebody else who writes it too.
#[derive(Default)]
struct Cluster {
    object: Option<Value>,
    /// The object is ours to write: we made it, and nobody took it over.
    is_ours: bool,
    revision: u64,
    random: u64,
    /// What we did to an object that is not ours.
    violations: Vec<String>,
    /// Chances in a hundred.
    meddles: u64,
    loses: u64,
    bends: u64,
}

impl Cluster {
    fn chance(&mut self, percent: u64) -> bool {
        self.pick(100) < percent
    }

    fn pick(&mut self, count: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % count
    }

    fn put(&mut self, mut object: Value) {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!((self.revision + 100).to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("u{}", self.revision));
        }
        object["kind"] = json!("ConfigMap");
        object["metadata"]["name"] = json!("conf");
        self.object = Some(object);
    }

    /// Somebody else makes, changes, deletes, remakes or takes over the object.
    fn meddle(&mut self) {
        let theirs = || json!({ "metadata": { "managedFields": [{ "manager": "kubectl-create" }] }, "data": { "a": "precious" } });
        match (self.pick(5), self.object.clone()) {
            (0, _) => self.object = None,
            (1, None) => {
                self.is_ours = false;
                self.put(theirs());
            }
            (2, Some(_)) => {
                self.is_ours = false;
                self.put(theirs());
            }
            (3, Some(mut object)) => {
                object["data"]["other"] = json!("x");
                self.put(object);
            }
            (4, Some(mut object)) => {
                self.is_ours = false;
                object["metadata"]["labels"][MEMBERSHIP] = json!("another-spec");
                self.put(object);
            }
            _ => {}
        }
    }

    fn answer(&mut self, method: &Method, path: &str, body: &str) -> Reply {
        if path == "/api/v1" {
            let resources =
                json!([{ "name": "configmaps", "kind": "ConfigMap", "namespaced": true }]);
            return (200, Vec::new(), kinds_of("v1", &resources));
        }
        if self.meddles > 0 && self.chance(self.meddles) {
            self.meddle();
        }
        let before = self.revision;
        let reply = self.serve(
            method,
            path,
            &serde_json::from_str(body).unwrap_or_default(),
        );
        let is_change = *method != Method::GET && !path.contains("dryRun");
        if is_change && self.chance(self.loses) {
            return says(
                [500, 502, 503, 504][usize::try_from(self.pick(4)).unwrap()],
                &format!("lost after {before}"),
            );
        }
        if !is_change && self.chance(self.bends) {
            return (
                200,
                Vec::new(),
                ["{}", "[1,2]", "<html>", "null"][usize::try_from(self.pick(4)).unwrap()]
                    .to_owned(),
            );
        }
        reply
    }

    fn serve(&mut self, method: &Method, path: &str, sent: &Value) -> Reply {
        let conflict = || says(409, "the object has been modified");
        let of = |field: &str| {
            sent.pointer(field)
                .filter(|value| !value.is_null())
                .cloned()
        };
        let differs = |object: &Value, of: &Option<Value>, field: &str| {
            of.as_ref()
                .is_some_and(|of| *of != object["metadata"][field])
        };
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        assert!(
            name == COLLECTION || name == format!("{COLLECTION}/conf"),
            "{path}"
        );
        match (method, self.object.clone()) {
            (&Method::GET, None) => says(404, "not found"),
            (&Method::GET, Some(object)) => (200, Vec::new(), object.to_string()),
            (&Method::POST, Some(_)) => says(409, "already exists"),
            (&Method::POST, None) => {
                self.is_ours = true;
                self.put(sent.clone());
                says(201, "")
            }
            (&Method::DELETE, None) => says(404, "not found"),
            (&Method::DELETE, Some(object)) => {
                let preconditions = (
                    of("/preconditions/uid"),
                    of("/preconditions/resourceVersion"),
                );
                if differs(&object, &preconditions.0, "uid")
                    || differs(&object, &preconditions.1, "resourceVersion")
                {
                    return conflict();
                }
                self.check("deleted", &object);
                self.object = None;
                says(200, "")
            }
            (_, object) => {
                let applies = query.contains("force=true");
                let (uid, version) = (of("/metadata/uid"), of("/metadata/resourceVersion"));
                let Some(mut now) = object
                    .clone()
                    .or_else(|| applies.then(|| json!({ "metadata": {} })))
                else {
                    return says(404, "");
                };
                let is_there = object.is_some();
                if (is_there
                    && (differs(&now, &uid, "uid") || differs(&now, &version, "resourceVersion")))
                    || (!is_there && uid.is_some())
                {
                    // A dry run carries neither.
                    return conflict();
                }
                for field in ["labels", "annotations"] {
                    for (name, value) in sent["metadata"][field].as_object().into_iter().flatten() {
                        now["metadata"][field][name] = value.clone();
                    }
                    if let Some(all) = now["metadata"][field].as_object_mut() {
                        all.retain(|_, value| !value.is_null());
                    }
                }
                if applies {
                    now["data"]["a"] = sent["data"]["a"].clone();
                    let label =
                        json!({ "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } });
                    now["metadata"]["managedFields"] = json!([{ "manager": MANAGER, "operation": "Apply", "time": "", "fieldsV1": label }]);
                }
                if query.contains("dryRun") {
                    return (200, Vec::new(), with_name(now).to_string());
                }
                if is_there {
                    self.check("overwritten", &now);
                }
                // Whoever gives up its mark does not own it any more.
                self.is_ours = applies;
                self.put(now);
                says(if is_there { 200 } else { 201 }, "")
            }
        }
    }

    fn check(&mut self, what: &str, object: &Value) {
        if !self.is_ours {
            self.violations.push(format!("{what}: {object}"));
        }
    }
}

fn with_name(mut object: Value) -> Value {
    object["kind"] = json!("ConfigMap");
    object["metadata"]["name"] = json!("conf");
    object
}

fn resource(text: &str) -> DesiredResource {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "conf", "namespace": "zone" }, "data": { "a": text } });
    let path = ["ConfigMap.core", "zone", "conf"]
        .map(str::to_owned)
        .to_vec();
    let address = Address {
        target: Target::kube("prod"),
        path: path.into(),
        attribute: None,
    };
    DesiredResource::of(
        address,
        "kubernetes_object",
        json!({ "cluster": "train", "manifest": manifest }),
    )
}

/// Declares the object or undoes it, so many times; what was said of each action, and what was
/// wrong.
async fn run(cluster: Cluster, turns: &[Turn]) -> (Vec<(i32, String)>, Arc<Mutex<Cluster>>) {
    let cluster = Arc::new(Mutex::new(cluster));
    let serving = cluster.clone();
    let (link, _) =
        link(move |method, path, body| serving.lock().unwrap().answer(method, path, body));
    let (mut resource, mut said) = (resource("ours"), Vec::new());
    for turn in turns {
        if let Turn::Declared(text) = turn {
            resource = self::resource(text);
        }
        let Ok(answers) = link.read(&KubernetesObject.reads(&resource)).await else {
            continue;
        };
        let diff = match turn {
            Turn::Declared(_) => KubernetesObject.diff(&resource, &answers),
            Turn::Left { existed } => {
                KubernetesObject.undo(&resource, &json!({ "existed": existed }), &answers)
            }
        };
        if diff.refusal.is_some() || diff.has_unknown() {
            continue;
        }
        for action in diff.actions.iter().filter(|action| action.waits_s() == 0) {
            let (code, _, stderr) = told(link.perform(action, "t", None).await.unwrap());
            said.push((code, stderr));
            if code != 0 {
                break;
            }
        }
    }
    (said, cluster)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_we_did_not_make_is_left_alone(seed in any::<u64>(), meddles in 0u64..60, loses in 0u64..40, bends in 0u64..30, turns in turns(1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (_, cluster) = runtime.block_on(run(Cluster { random: seed, meddles, loses, bends, ..Cluster::default() }, &turns));
        let cluster = cluster.lock().unwrap();
        prop_assert!(cluster.violations.is_empty(), "{:?}", cluster.violations);
    }

    /// With nobody else there, a lost answer changes nothing of what is said in the end.
    #[test]
    fn what_we_made_is_never_somebody_elses(seed in any::<u64>(), loses in 0u64..70, turns in turns(1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (said, _) = runtime.block_on(run(Cluster { random: seed, loses, ..Cluster::default() }, &turns));
        prop_assert!(said.iter().all(|(code, _)| *code != MOVED), "{said:?}");
    }

    #[test]
    fn a_submission_knows_its_own(seed in any::<u64>(), meddles in 0u64..40, loses in 0u64..60) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let cluster = Arc::new(Mutex::new(Cluster { random: seed, meddles, loses, ..Cluster::default() }));
        let serving = cluster.clone();
        let _entered = runtime.enter();
        let (link, _) = link(move |method, path, body| serving.lock().unwrap().answer(method, path, body));
        let object = ObjectName { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: Some("zone".into()), name: "conf".into() };
        let manifest = json!({ "metadata": { "annotations": { SUBMISSION: "w1" } } });
        let (code, ..) = told(runtime.block_on(link.perform(&Action::CreateObject { object, manifest }, "t", None)).unwrap());
        let cluster = cluster.lock().unwrap();
        let is_own = cluster.object.as_ref().is_some_and(|object| object["metadata"]["annotations"][SUBMISSION] == "w1");
        prop_assert!(code != TAKEN || !is_own, "what was made by it is not taken by others");
        prop_assert!(code != 0 || meddles > 0 || is_own, "what is said to be made is there");
        prop_assert!(cluster.violations.is_empty());
    }
}

/// The words name the owner, where there is one.
#[tokio::test(start_paused = true)]
async fn two_specs_that_make_one_object_know_of_each_other() {
    let other = json!({ "metadata": { "labels": { MEMBERSHIP: part_of("other") } } });
    let cluster = Arc::new(Mutex::new(Cluster::default()));
    let serving = cluster.clone();
    let (link, _) =
        link(move |method, path, body| serving.lock().unwrap().answer(method, path, body));
    let resource = resource("ours");
    let answers = link.read(&KubernetesObject.reads(&resource)).await.unwrap();
    let actions = KubernetesObject.diff(&resource, &answers).actions;
    cluster.lock().unwrap().put(other);
    let (code, _, said) = told(link.perform(&actions[0], "t", None).await.unwrap());
    let desired = "railwright: ConfigMap.core zone/conf was not there when it was looked at; it \
                  belongs to the spec `other` of railwright by now, and it is left alone\n";
    assert_eq!((code, said.as_str()), (MOVED, desired));
    assert!(cluster.lock().unwrap().violations.is_empty());
}
