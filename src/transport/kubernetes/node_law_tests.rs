//! Laws of nodes, over random orders of what others do to a node and its pods between any look and
//! any write, of answers that get lost after the server did what was asked, and of answers of
//! another shape: what somebody else cordoned is neither marked as ours nor given back, and no pod
//! is ended but the one that was looked at.

use super::tests::{Reply, link, says, told};
use crate::HostLink as _;
use http::Method;
use proptest::prelude::*;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::nodes::CORDONED;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{Action, Read};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const NODE: &str = "gpu-1";

/// What somebody else does before a request.
#[derive(Debug, Clone, Copy)]
enum Meddling {
    Cordons,
    Uncordons,
    TakesTheMark,
    /// The kubelet does, all the time.
    Touches,
    RemakesThePod,
}

/// What happens at one request.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    before: Option<Meddling>,
    /// The answer to a write is this, though it was done.
    is_lost: Option<u16>,
    /// The answer to a look is this.
    shape: Option<&'static str>,
}

/// What we do.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Cordon,
    Uncordon,
    Empty,
}

struct Cluster {
    schedulable: bool,
    mark: Option<Value>,
    revision: u64,
    pod: u64,
    /// The pods that we were told of.
    told: BTreeSet<u64>,
    turns: Vec<Turn>,
    asked: usize,
    violations: Vec<String>,
}

impl Cluster {
    fn meddle(&mut self, how: Meddling) {
        self.revision += 1;
        match how {
            Meddling::Cordons => self.schedulable = false,
            Meddling::Uncordons => self.schedulable = true,
            Meddling::TakesTheMark => self.mark = None,
            Meddling::Touches => {}
            Meddling::RemakesThePod => self.pod += 1,
        }
    }

    fn answer(&mut self, method: &Method, path: &str, sent: &Value) -> Reply {
        let turn = self.turns.get(self.asked).copied().unwrap_or_default();
        self.asked += 1;
        if let Some(how) = turn.before {
            self.meddle(how);
        }
        if let Some(shape) = turn.shape.filter(|_| *method == Method::GET) {
            return (200, Vec::new(), shape.to_owned());
        }
        let reply = match *method {
            Method::GET if path.starts_with("/api/v1/pods") => {
                self.told.insert(self.pod);
                let owners = json!([{ "kind": "Job", "name": "train", "controller": true }]);
                let metadata = json!({ "name": "train-0", "namespace": "ml", "uid": self.pod.to_string(), "ownerReferences": owners });
                (
                    200,
                    Vec::new(),
                    json!({ "kind": "PodList", "items": [{ "metadata": metadata, "spec": { "nodeName": NODE } }] }).to_string(),
                )
            }
            Method::GET => (200, Vec::new(), self.node().to_string()),
            Method::PATCH => self.patch(sent),
            _ => self.evict(sent),
        };
        match turn.is_lost.filter(|_| *method != Method::GET) {
            Some(status) => says(status, "lost"),
            None => reply,
        }
    }

    fn node(&self) -> Value {
        let annotations = self.mark.as_ref().map(|mark| json!({ CORDONED: mark }));
        let metadata = json!({ "name": NODE, "resourceVersion": self.revision.to_string(), "annotations": annotations });
        json!({ "metadata": metadata, "spec": { "unschedulable": !self.schedulable } })
    }

    /// A merge patch, which is taken for the version that it names.
    fn patch(&mut self, sent: &Value) -> Reply {
        let version = sent["metadata"]["resourceVersion"].as_str();
        if version.is_some_and(|version| version.parse() != Ok(self.revision)) {
            return says(409, "the object has been modified");
        }
        let cordons = sent["spec"]["unschedulable"] == true;
        if !self.schedulable && (cordons || self.mark.is_none()) {
            self.violations
                .push(format!("{sent} on what somebody else cordoned"));
        }
        self.schedulable = !cordons;
        self.mark =
            Some(sent["metadata"]["annotations"][CORDONED].clone()).filter(|mark| !mark.is_null());
        self.revision += 1;
        (200, Vec::new(), self.node().to_string())
    }

    fn evict(&mut self, sent: &Value) -> Reply {
        let uid = sent["deleteOptions"]["preconditions"]["uid"].as_str();
        if uid.is_some_and(|uid| uid.parse() != Ok(self.pod)) {
            return says(409, "the UID in the precondition does not match");
        }
        if !self.told.contains(&self.pod) {
            self.violations
                .push(format!("{sent} ended a pod that nobody had looked at"));
        }
        // Its controller recreates it.
        self.pod += 1;
        says(201, "")
    }
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let meddling = prop_oneof![
        2 => Just(Meddling::Cordons),
        2 => Just(Meddling::Uncordons),
        1 => Just(Meddling::TakesTheMark),
        1 => Just(Meddling::Touches),
        2 => Just(Meddling::RemakesThePod),
    ];
    let before = prop::option::weighted(0.4, meddling);
    let is_lost = prop::option::weighted(0.2, prop::sample::select(vec![500u16, 502, 503, 504]));
    let shape = prop::option::weighted(
        0.1,
        prop::sample::select(vec!["{}", "[1,2]", "<html>", "null"]),
    );
    prop::collection::vec(
        (before, is_lost, shape).prop_map(|(before, is_lost, shape)| Turn {
            before,
            is_lost,
            shape,
        }),
        0..20,
    )
}

/// Does all this; whether each deed was said to be done, and how the node was after it.
async fn run(cluster: &Arc<Mutex<Cluster>>, deeds: &[Deed]) -> Vec<(bool, bool)> {
    let serving = cluster.clone();
    let (link, _) = link(move |method, path, body| {
        serving.lock().unwrap().answer(
            method,
            path,
            &serde_json::from_str(body).unwrap_or_default(),
        )
    });
    let node = || NODE.to_owned();
    let mut said = Vec::new();
    for deed in deeds {
        let actions = match deed {
            Deed::Cordon => vec![Action::CordonNode {
                node: node(),
                mark: "{}".to_owned(),
            }],
            Deed::Uncordon => vec![Action::UncordonNode { node: node() }],
            Deed::Empty => {
                let read = Read::Kubernetes(KubernetesRead::PodsOn(node()));
                let Ok(answers) = link.read(std::slice::from_ref(&read)).await else {
                    continue;
                };
                let pods: Vec<PodNow> = match answers.output(&read) {
                    Ok((0, out)) => serde_json::from_str(out).unwrap(),
                    _ => Vec::new(),
                };
                let evict = |pod: PodNow| Action::EvictPod {
                    namespace: pod.namespace,
                    name: pod.name,
                    uid: pod.uid,
                };
                pods.into_iter().map(evict).collect()
            }
        };
        for action in actions {
            let code = link
                .perform(&action, "t", None)
                .await
                .map(|performed| told(performed).0);
            said.push((
                code.is_ok_and(|code| code == 0),
                cluster.lock().unwrap().schedulable,
            ));
        }
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_others_did_to_a_node_is_left_to_them(turns in turns(), schedulable in any::<bool>(), deeds in prop::collection::vec(prop_oneof![Just(Deed::Cordon), Just(Deed::Uncordon), Just(Deed::Empty)], 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let is_alone = turns.iter().all(|turn| turn.before.is_none());
        let cluster = Cluster { schedulable, mark: None, revision: 1, pod: 1, told: BTreeSet::new(), turns, asked: 0, violations: Vec::new() };
        let cluster = Arc::new(Mutex::new(cluster));
        let said = runtime.block_on(run(&cluster, &deeds));
        let cluster = cluster.lock().unwrap();
        prop_assert!(cluster.violations.is_empty(), "{:?}", cluster.violations);
        // With nobody else there, what is said to be done is done.
        let was_done = |(deed, (is_done, takes_pods)): (&Deed, &(bool, bool))| match deed {
            Deed::Cordon => !is_done || !takes_pods,
            Deed::Uncordon => !is_done || !schedulable || *takes_pods,
            Deed::Empty => true,
        };
        let is_honest = deeds.iter().any(|deed| matches!(deed, Deed::Empty)) || deeds.iter().zip(&said).all(was_done);
        prop_assert!(!is_alone || is_honest, "{said:?}");
    }
}
