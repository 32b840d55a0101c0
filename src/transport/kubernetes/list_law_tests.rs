//! Laws of lists, over random orders of what others make and delete between any two pages, and of
//! what a server makes of its answers: a list has every object that was there all the time and none
//! that never was, each once, or it is no list.

use super::tests::{Reply, link, says};
use crate::HostLink as _;
use proptest::prelude::*;
use railwright_resource::Read;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::nodes::NodeNow;
use railwright_resource::kubernetes_object::request::{KubernetesRead, NO_KIND};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Bodies that are no list, and that no page may be taken for. `KIND` is that of a list that was
/// asked for.
const SHAPES: [&str; 15] = [
    "{}",
    "[1,2]",
    "null",
    "<html>",
    r#"{"kind":"Status","status":"Success"}"#,
    r#"{"items":[]}"#,
    r#"{"kind":"Status","status":"Failure","items":[]}"#,
    r#"{"kind":"SecretList","items":[]}"#,
    r#"{"kind":"KIND","items":null}"#,
    r#"{"kind":"KIND","items":{}}"#,
    r#"{"kind":"KIND","items":[1]}"#,
    r#"{"kind":"KIND","items":[{}]}"#,
    r#"{"kind":"KIND","items":[{"metadata":{"name":7}}]}"#,
    r#"{"kind":"KIND","items":[{"kind":"Secret","metadata":{"name":"s"}}]}"#,
    r#"{"kind":"KIND","items":[{"metadata":{"name":"#,
];

/// What happens at one request.
#[derive(Debug, Clone)]
enum Turn {
    Well,
    /// Somebody makes an object before it.
    Made(String),
    /// Somebody deletes one that comes and goes.
    Deleted(usize),
    /// The server is too busy for it.
    Busy,
    /// The answer is another one.
    Shape(usize),
    /// The token leads to this page again.
    TokenRepeats,
    /// The token is this.
    Token(Value),
    /// There is no token, though objects are missing.
    TokenMissing,
    /// The token was too old.
    Expired,
}

impl Turn {
    fn is_honest(&self) -> bool {
        matches!(
            self,
            Turn::Well | Turn::Made(_) | Turn::Deleted(_) | Turn::Busy
        )
    }
}

/// Objects of one kind, and who lists them.
struct Shelf {
    /// By name, those that stay and those that come and go.
    stay: BTreeSet<String>,
    go: BTreeSet<String>,
    /// All that were ever there.
    ever: BTreeSet<String>,
    /// What was there when each list began, which its tokens lead back to.
    snapshots: Vec<Vec<String>>,
    page: usize,
    turns: Vec<Turn>,
    asked: usize,
}

impl Shelf {
    fn new(stay: usize, page: usize, turns: Vec<Turn>) -> Self {
        let stay: BTreeSet<String> = (0..stay).map(|n| format!("n{n}")).collect();
        let go: BTreeSet<String> = ["a", "n3a", "z"].map(str::to_owned).into();
        let ever = stay.union(&go).cloned().collect();
        Shelf {
            stay,
            go,
            ever,
            snapshots: Vec::new(),
            page,
            turns,
            asked: 0,
        }
    }

    fn answer(&mut self, path: &str) -> Reply {
        let turn = self.turns.get(self.asked).cloned().unwrap_or(Turn::Well);
        self.asked += 1;
        let kind = match path {
            path if path.starts_with("/api/v1/nodes") => "NodeList",
            path if path.starts_with("/api/v1/pods") => "PodList",
            _ => "DaemonSetList",
        };
        match &turn {
            Turn::Made(name) => {
                self.go.insert(name.clone());
                self.ever.insert(name.clone());
            }
            Turn::Deleted(place) => {
                let gone = self.go.iter().nth(place % self.go.len().max(1)).cloned();
                gone.map(|name| self.go.remove(&name));
            }
            Turn::Busy => return says(429, "too many requests"),
            Turn::Shape(shape) => return (200, Vec::new(), SHAPES[*shape].replace("KIND", kind)),
            Turn::Expired if path.contains("continue") => {
                return says(410, "The provided continue parameter is too old");
            }
            _ => {}
        }
        self.served(
            kind,
            path.split_once("continue=").map(|(_, token)| token),
            &turn,
        )
    }

    /// A page of what was there when the list began, as etcd gives it.
    fn served(&mut self, kind: &str, token: Option<&str>, turn: &Turn) -> Reply {
        let (snapshot, from) = match token.and_then(|token| token.split_once('.')) {
            Some((snapshot, from)) => (snapshot.parse().unwrap(), from.parse().unwrap()),
            None => {
                self.snapshots
                    .push(self.stay.union(&self.go).cloned().collect());
                (self.snapshots.len() - 1, 0)
            }
        };
        let all: &Vec<String> = &self.snapshots[snapshot];
        let to = all.len().min(from + self.page);
        let item = |name: &String| json!({ "metadata": { "name": name, "namespace": "ml", "uid": name }, "spec": { "nodeName": "gpu-1" } });
        let items: Vec<Value> = all[from..to].iter().map(item).collect();
        let mut metadata = json!({ "resourceVersion": snapshot.to_string() });
        if to < all.len() {
            metadata["continue"] = json!(format!("{snapshot}.{to}"));
            metadata["remainingItemCount"] = json!(all.len() - to);
        }
        match turn {
            Turn::TokenRepeats => metadata["continue"] = json!(format!("{snapshot}.{from}")),
            // How many are missing no server says of a list that it narrows.
            Turn::Token(token) => metadata = json!({ "continue": token }),
            Turn::TokenMissing => drop(metadata.as_object_mut().unwrap().remove("continue")),
            _ => {}
        }
        (
            200,
            Vec::new(),
            json!({ "kind": kind, "metadata": metadata, "items": items }).to_string(),
        )
    }
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let others = prop_oneof![
        ("[a-z][0-9]").prop_map(Turn::Made),
        (0usize..9).prop_map(Turn::Deleted)
    ];
    let tokens = prop_oneof![
        Just(json!(5)),
        Just(json!({})),
        Just(json!(["0.1"])),
        Just(json!(true))
    ];
    let bent = prop_oneof![
        (0..SHAPES.len()).prop_map(Turn::Shape),
        Just(Turn::TokenRepeats),
        tokens.prop_map(Turn::Token),
        Just(Turn::TokenMissing),
        Just(Turn::Expired),
    ];
    let turn = prop_oneof![6 => Just(Turn::Well), 6 => others, 1 => Just(Turn::Busy), 2 => bent];
    prop::collection::vec(turn, 0..10)
}

/// The names in an answer; nothing where it is none.
fn names(read: &Read, out: &str) -> Vec<String> {
    match read {
        Read::Kubernetes(KubernetesRead::PodsOn(_)) => serde_json::from_str::<Vec<PodNow>>(out)
            .unwrap()
            .into_iter()
            .map(|pod| pod.name)
            .collect(),
        Read::Kubernetes(KubernetesRead::Nodes) => {
            serde_json::from_str::<BTreeMap<String, NodeNow>>(out)
                .unwrap()
                .into_keys()
                .collect()
        }
        _ => serde_json::from_str::<BTreeMap<String, Value>>(out)
            .unwrap()
            .into_keys()
            .collect(),
    }
}

fn reads() -> impl Strategy<Value = Read> {
    let states = |api_version: &str, kind: &str| KubernetesRead::States {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: Some("ml".to_owned()),
    };
    prop_oneof![
        Just(KubernetesRead::Nodes),
        Just(KubernetesRead::PodsOn("gpu-1".to_owned())),
        Just(states("apps/v1", "DaemonSet")),
    ]
    .prop_map(Read::Kubernetes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_whole_or_none(read in reads(), stay in 0usize..8, page in 1usize..5, turns in turns()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let shelf = Arc::new(Mutex::new(Shelf::new(stay, page, turns)));
        let serving = shelf.clone();
        let (answers, asked) = runtime.block_on(async {
            let (link, asked) = link(move |_, path, _| match path {
                "/apis/apps/v1" => super::tests::kinds(),
                _ => serving.lock().unwrap().answer(path),
            });
            (link.read(std::slice::from_ref(&read)).await.unwrap(), asked.lines().len())
        });
        let shelf = shelf.lock().unwrap();
        let (code, out) = answers.output(&read).unwrap();
        prop_assert!(asked < 60, "it was asked {asked} times");
        let is_honest = shelf.turns.iter().take(shelf.asked).all(Turn::is_honest);
        let is_patient = shelf.turns.windows(4).all(|turns| turns.iter().any(|turn| !matches!(turn, Turn::Busy)));
        prop_assert!(code == 0 || !is_honest || !is_patient, "an honest server was not believed: \
                                                              {out}");
        prop_assert!(code != NO_KIND, "{out}");
        if code == 0 {
            let listed = names(&read, out);
            let once: BTreeSet<String> = listed.iter().cloned().collect();
            prop_assert_eq!(listed.len(), once.len(), "an object is told twice");
            prop_assert!(shelf.stay.is_subset(&once), "{:?} were there all the time, and {:?} are \
                                                       told", shelf.stay, once);
            prop_assert!(once.is_subset(&shelf.ever), "{:?} were ever there, and {:?} are told", shelf.ever, once);
        }
    }
}

/// Nor is a kind unknown because its entry, or the list, is of another shape.
#[tokio::test]
async fn a_kind_is_served_or_nobody_knows() {
    let entries = [
        json!(1),
        json!({}),
        json!({ "name": "daemonsets", "kind": "DaemonSet" }),
        json!({ "name": "daemonsets", "kind": 5, "namespaced": true }),
        json!({ "name": ["daemonsets"], "kind": "DaemonSet", "namespaced": true }),
    ];
    let of_apps = |resources: Value| {
        serde_json::from_str::<Value>(&super::tests::kinds_of("apps/v1", &resources)).unwrap()
    };
    let lists = entries.map(|entry| of_apps(json!([entry])));
    let mut of_others = [of_apps(json!([])), of_apps(json!([]))];
    (of_others[0]["groupVersion"], of_others[1]["kind"]) =
        (json!("batch/v1"), json!("APIGroupList"));
    let others = of_others.into_iter().chain([
        json!({}),
        json!(null),
        json!([1]),
        of_apps(json!(null)),
        of_apps(json!({})),
    ]);
    let read = Read::Kubernetes(KubernetesRead::Object(super::tests::daemon_set()));
    for body in lists.into_iter().chain(others).map(|body| body.to_string()) {
        let (link, _) = link(move |_, _, _| (200, Vec::new(), body.clone()));
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        assert!(
            answers.output(&read).is_ok_and(|(code, _)| code != NO_KIND),
            "{:?}",
            answers.get(&read)
        );
    }
}
