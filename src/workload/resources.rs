//! Workloads of the spec as desired objects of its cluster, beside those of modules and after
//! them.

use super::of_spec::Workloads;
use super::render::RenderedJob;
use super::templates::JOBS_FOLDER;
use railwright_base::{Address, Diagnostic, Target};
use railwright_knowledge::module::context::reserved_text;
use railwright_knowledge::module::{DesiredState, ResourceProvenance};
use railwright_knowledge::spec::LoadedSpec;
use railwright_resource::kubernetes_object::KubernetesObject;
use railwright_resource::{DesiredResource, ResourceDeclaration, ResourceKind as _, of_workload};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long pods may take to run: images with CUDA have tens of GB, and are pulled meanwhile.
const WITHIN_S: u32 = 1800;
/// What KubeRay leaves as it runs when it changes: all that its own hash of a RayCluster is made
/// of. Pods are recreated where the object itself is, or where `upgradeStrategy` says so, which not
/// every release knows (ray-project/kuberay ray-operator/controllers/ray/raycluster_controller.go,
/// shouldRecreatePodsForUpgrade, and utils/util.go, GenerateHashWithoutReplicasAndWorkersToDelete).
const KEPT_BY_KUBERAY: [&str; 6] = [
    "spec.rayVersion",
    "spec.headGroupSpec",
    "spec.workerGroupSpecs.groupName",
    "spec.workerGroupSpecs.numOfHosts",
    "spec.workerGroupSpecs.rayStartParams",
    "spec.workerGroupSpecs.template",
];

impl Workloads {
    /// Adds a resource for each object. A workload comes after all that modules declare in its
    /// cluster: device plugins give what its pods ask for, and operators bring its kind.
    pub fn resource(
        &self,
        loaded: &LoadedSpec,
        desired: &mut DesiredState,
    ) -> Result<(), Vec<Diagnostic>> {
        let Some(cluster) = loaded.kubernetes_name().map(Target::kube) else {
            return Ok(());
        };
        let before = find_last_resources(&desired.resources, &cluster);
        let mut problems = Vec::new();
        let mut whose: BTreeMap<Address, String> = desired
            .resources
            .iter()
            .map(|resource| (resource.address.clone(), resource.whose()))
            .collect();
        for (index, rendered, digest) in &self.all {
            let workload = DesiredWorkload {
                loaded,
                index: *index,
                rendered,
                cluster: &cluster,
            };
            let mut after = before.clone();
            for object in &rendered.objects {
                match workload.add_resource(object, after.clone(), desired, &mut whose) {
                    Ok(address) => after = vec![address],
                    Err(more) => problems.extend(more),
                }
            }
            desired.digests.insert(
                format!("{JOBS_FOLDER}/{}", rendered.kind.word()),
                digest.clone(),
            );
        }
        desired.resources.sort_by(|a, b| a.address.cmp(&b.address));
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// The desired resources of a target that no other one comes after.
fn find_last_resources(resources: &[DesiredResource], target: &Target) -> Vec<Address> {
    let mut last = Vec::new();
    let mut waited_for: BTreeSet<&Address> = BTreeSet::new();
    for resource in resources {
        if resource.address.target == *target {
            last.push(resource.address.clone());
            waited_for.extend(&resource.after);
        }
    }
    last.retain(|address| !waited_for.contains(address));
    last
}

struct DesiredWorkload<'a> {
    loaded: &'a LoadedSpec,
    /// Its place in the spec.
    index: usize,
    rendered: &'a RenderedJob,
    cluster: &'a Target,
}

impl DesiredWorkload<'_> {
    /// Adds the resource of an object; `whose` is who declares each address so far.
    fn add_resource(
        &self,
        object: &Map<String, Value>,
        after: Vec<Address>,
        desired: &mut DesiredState,
        whose: &mut BTreeMap<Address, String>,
    ) -> Result<Address, Vec<Diagnostic>> {
        let body = self.body(object);
        let path = KubernetesObject.address_path(&body);
        let problems = self.check_body(&body);
        let Some(path) = path.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let address = Address {
            target: self.cluster.clone(),
            path: path.into(),
            attribute: None,
        };
        if let Some(other) = whose.get(&address) {
            return Err(vec![self.report_duplicate(&address, other)]);
        }
        let module = of_workload(&self.rendered.name);
        desired
            .why
            .insert(address.clone(), vec![self.explain_origin(&module)]);
        let place = self.loaded.place(&format!("workloads[{}]", self.index));
        let resource = DesiredResource {
            address: address.clone(),
            after,
            declaration: Arc::new(ResourceDeclaration {
                kind: KubernetesObject.name().to_owned(),
                body,
                module,
                places: place.into_iter().collect(),
            }),
        };
        whose.insert(address.clone(), resource.whose());
        desired.resources.push(resource);
        Ok(address)
    }

    /// All that is wrong with an object, each at the workload that makes it.
    fn check_body(&self, body: &Value) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for error in KubernetesObject.check(body) {
            let message = format!("workload {}: {}", self.rendered.name, error.message);
            let told = self.at(Diagnostic::error("RW0208", message), "makes this");
            problems.push(error.help.into_iter().fold(told, Diagnostic::next));
        }
        if let Some(text) = reserved_text(body) {
            let shown = railwright_base::text::one_line(text, 60);
            let error = Diagnostic::error(
                "RW0215",
                format!("`{shown}` holds a character that is kept for the marks of secrets"),
            );
            problems.push(self.at(error, "in here").next("remove the character"));
        }
        problems
    }

    fn report_duplicate(&self, address: &Address, other: &str) -> Diagnostic {
        let error = Diagnostic::error(
            "RW0232",
            format!("{address} is declared twice: by this workload, and by {other}"),
        );
        self.at(error, "makes it")
            .effect("each would take away what the other sets")
            .next("give the workload another name or namespace, or take one of both out")
    }

    fn explain_origin(&self, module: &str) -> ResourceProvenance {
        ResourceProvenance {
            module: module.to_owned(),
            summary: format!(
                "`workloads[{}]` of the spec, kind {}",
                self.index,
                self.rendered.kind.word()
            ),
            conditions: Vec::new(),
            facts: BTreeMap::new(),
        }
    }

    fn body(&self, object: &Map<String, Value>) -> Value {
        let mut body = json!({ "manifest": object, "cluster": self.loaded.spec.cluster });
        if self
            .loaded
            .spec
            .workloads
            .get(self.index)
            .is_some_and(|workload| workload.adopt)
        {
            body["adopt"] = json!(true);
        }
        match object.get("kind").and_then(Value::as_str) {
            Some("RayCluster") => {
                body["replace"] = json!(KEPT_BY_KUBERAY);
                body["ready"] = build_readiness(object);
            }
            Some("Deployment") => {
                // The label by which it knows its pods is a field of the spec's own, and never
                // changes.
                body["replace"] = json!(true);
                body["ready"] = json!({ "within_s": WITHIN_S });
            }
            _ => {}
        }
        body
    }

    fn at(&self, error: Diagnostic, label: &str) -> Diagnostic {
        let path = format!("workloads[{}].name", self.index);
        match self.loaded.label(&path, label) {
            Some(label) => error.labelled(label),
            None => error,
        }
    }
}

/// Its operator sets `RayClusterProvisioned` once and for all, so the workers that are ready are
/// counted; where there are none, nothing stands in the field (ray-project/kuberay
/// ray-operator/apis/ray/v1/raycluster_types.go).
fn build_readiness(object: &Map<String, Value>) -> Value {
    let groups = object
        .get("spec")
        .and_then(|spec| spec.get("workerGroupSpecs"))
        .and_then(Value::as_array);
    let mut workers = 0;
    for group in groups.into_iter().flatten() {
        let replicas = group["replicas"].as_u64().unwrap_or(0);
        workers += replicas * group["numOfHosts"].as_u64().unwrap_or(1);
    }
    let fields = if workers > 0 {
        json!({ "status.readyWorkerReplicas": workers })
    } else {
        json!({})
    };
    json!({ "conditions": [{ "type": "HeadPodReady" }], "fields": fields, "within_s": WITHIN_S })
}
