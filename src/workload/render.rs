//! The whole way: from what was asked for and the inventory to objects of Kubernetes, with the
//! reason of everything and what rules say.

use super::asked::RequestPlaces;
use super::check;
use super::derive::{self, DerivationInputs, DerivedEnvironment};
use super::environment::{self, Settling, Variable, VariableOrigin};
use super::fabric;
use super::meeting::Meeting;
use super::mpirun::{self, Argument};
use super::names::{ContainerVariable, PodNames};
use super::offer::{Offer, list_rdma_offers};
use super::pytorch_names;
use super::request::{Devices, JobRequest, JobRequestKind, Pods, Pytorch, amount_from_text};
use super::subject::{self, JobSubjectInputs};
use super::templates::Templates;
use railwright_base::{Diagnostic, Label, Severity};
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::rules::{self, RuleFinding, RuleSet, RulesReport};
use railwright_knowledge::spec::model::{AcsPod, FabricKind};
use railwright_knowledge::spec::{Host, LoadedSpec};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a job is rendered with.
#[derive(Debug, Clone, Copy)]
pub struct JobRenderInputs<'a> {
    /// The spec.
    pub loaded: &'a LoadedSpec,
    /// The catalogue.
    pub catalog: &'a Catalog,
    /// The rules.
    pub rules: &'a RuleSet,
    /// The templates.
    pub templates: &'a Templates,
    /// The day, such as `2026-12-31`, for waivers.
    pub today: &'a str,
    /// Whether an inventory was given: without one nothing is derived.
    pub derives: bool,
}

/// A job as objects.
#[derive(Debug, Clone)]
pub struct RenderedJob {
    /// Its kind.
    pub kind: JobRequestKind,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The objects, in the order in which they are to be applied.
    pub objects: Vec<Map<String, Value>>,
    /// The environment of its processes.
    pub variables: Vec<Variable>,
    /// Arguments of mpirun and of the test behind it.
    pub arguments: Vec<Argument>,
    /// What the rules find of it, before anything of it is waived.
    pub found: Vec<RuleFinding>,
    /// What the rules say of it.
    pub evaluation: RulesReport,
}

/// Renders a job; all that is wrong with what was asked for comes back in one go.
pub fn render_job(
    inputs: JobRenderInputs<'_>,
    request: &JobRequest,
    asked: &RequestPlaces,
) -> Result<RenderedJob, Vec<Diagnostic>> {
    let mut problems = check::check_job_request(request, asked);
    problems.extend(fabric::check_request_fabric(
        request,
        inputs.loaded.spec.fabric.kind,
        asked,
    ));
    if !problems.is_empty() {
        return Err(problems);
    }
    let hosts = select_hosts(inputs.loaded, &request.pods().hosts, asked)?;
    let rendering = Rendering {
        inputs,
        request,
        asked,
        offers: list_rdma_offers(inputs.loaded),
        hosts,
    };
    match request {
        JobRequest::NcclTest(job) => rendering.nccl_test(job),
        JobRequest::Pytorch(job) => rendering.pytorch(job),
        JobRequest::Ray(job) => rendering.ray(job),
        JobRequest::Acs(job) => rendering.acs(job),
        JobRequest::Perftest(job) => rendering.perftest(job),
    }
}

/// Adds warnings as notes, except at places of which a rule speaks: what a rule says of a value is
/// more than that it is out of its range.
fn add_notes(evaluation: &mut RulesReport, warnings: Vec<Diagnostic>) {
    let evaluated: BTreeSet<_> = evaluation
        .findings
        .iter()
        .flat_map(|finding| finding.diagnostic.labels.first().map(locate_label))
        .collect();
    for warning in warnings {
        let place = warning.labels.first().map(locate_label);
        if place.is_none_or(|place| !evaluated.contains(&place)) {
            evaluation.notes.push(warning);
        }
    }
}

fn locate_label(label: &Label) -> (String, usize) {
    (label.file.clone(), label.span.start)
}

/// The hosts that it may run on.
pub(super) fn select_hosts<'a>(
    loaded: &'a LoadedSpec,
    names: &[String],
    asked: &RequestPlaces,
) -> Result<Vec<&'a Host>, Vec<Diagnostic>> {
    if names.is_empty() {
        return Ok(loaded.hosts.iter().collect());
    }
    let mut hosts = Vec::new();
    for name in names {
        let Some(host) = loaded.host(name) else {
            let shown = railwright_base::text::one_line(name, 60);
            let error = asked.refused(Diagnostic::error(
                "RW1221",
                format!("the spec has no host `{shown}`"),
            ));
            return Err(vec![asked.at(error, "job.hosts", "named here")]);
        };
        hosts.push(host);
    }
    Ok(hosts)
}

/// A term of a node selector that the node of this host meets alone.
fn node_term(host: &Host) -> Value {
    let field = json!({ "key": "metadata.name", "operator": "In", "values": [host.node] });
    json!({ "matchFields": [field] })
}

/// A job on its way.
pub(super) struct Rendering<'a> {
    pub(super) inputs: JobRenderInputs<'a>,
    request: &'a JobRequest,
    pub(super) asked: &'a RequestPlaces,
    offers: Vec<Offer>,
    pub(super) hosts: Vec<&'a Host>,
}

/// The environment of a job before it is put into objects.
pub(super) struct SettledEnvironment {
    pub variables: Vec<Variable>,
    pub warnings: Vec<Diagnostic>,
    pub devices: Vec<String>,
    pub meeting: Meeting,
}

/// What an object is made of, for the rules.
#[derive(Default)]
pub(super) struct JobRuleInputs {
    pub gpus: u32,
    pub ray_version: Option<String>,
    pub arguments: Vec<Argument>,
    pub acs: Option<AcsPod>,
}

impl<'a> Rendering<'a> {
    pub(super) fn pods(&self) -> &'a Pods {
        self.request.pods()
    }

    pub(super) fn wrong(&self, code: &'static str, message: String, next: &str) -> Vec<Diagnostic> {
        let error = self
            .asked
            .refused(Diagnostic::error(code, message))
            .next(next);
        vec![self.asked.at(error, "job.kind", "asked for here")]
    }

    /// The RDMA devices of a pod.
    pub(super) fn devices(&self) -> Vec<(String, String)> {
        match &self.pods().devices {
            Devices::Said(devices) => devices.clone(),
            Devices::None => Vec::new(),
            Devices::OfCluster => self
                .offers
                .iter()
                .map(|offer| (offer.resource.clone(), "1".to_owned()))
                .collect(),
        }
    }

    pub(super) fn resources(
        &self,
        gpus: u32,
        devices: &[(String, String)],
    ) -> BTreeMap<String, super::Amount> {
        let pods = self.pods();
        let mut resources: BTreeMap<String, super::Amount> = devices
            .iter()
            .map(|(resource, count)| (resource.clone(), amount_from_text(count)))
            .collect();
        if gpus > 0 {
            resources.insert(
                pods.gpu_resource.clone(),
                super::Amount::Count(u64::from(gpus)),
            );
        }
        for (name, text) in [("cpu", &pods.cpu), ("memory", &pods.memory)] {
            if let Some(text) = text {
                resources.insert(name.to_owned(), amount_from_text(text));
            }
        }
        resources
    }

    pub(super) fn settled(
        &self,
        devices: &[(String, String)],
        arena: &[(&str, String)],
    ) -> SettledEnvironment {
        let loaded = self.inputs.loaded;
        let meeting = Meeting::of(loaded, &self.hosts, self.pods());
        let made = self.derive_environment(devices, &meeting);
        let mut settling = Settling::default();
        for (name, value) in arena {
            settling.put(
                name,
                value,
                VariableOrigin::Arena,
                "Arena gives it to every job".to_owned(),
            );
        }
        settling.derived(made.variables);
        settling.spec(loaded);
        settling.asked(&self.pods().environment);
        if self.pods().over_tcp {
            super::pair::hold_to_tcp(&mut settling);
        }
        let variables = settling.settled(self.inputs.catalog, loaded.spec.jobs.nccl.as_deref());
        let mut warnings = made.warnings;
        warnings.extend(self.without_devices(devices));
        warnings.extend(environment::check_variables(
            &variables,
            loaded,
            self.inputs.catalog,
            self.asked,
            &made.devices,
        ));
        SettledEnvironment {
            variables,
            warnings,
            devices: made.devices,
            meeting,
        }
    }

    /// What follows from the inventory; nothing where none was given.
    fn derive_environment(
        &self,
        devices: &[(String, String)],
        meeting: &Meeting,
    ) -> DerivedEnvironment {
        if !self.inputs.derives {
            return DerivedEnvironment::default();
        }
        let loaded = self.inputs.loaded;
        let asked: Vec<String> = devices
            .iter()
            .map(|(resource, _)| resource.clone())
            .collect();
        let mut said: BTreeSet<String> = loaded.spec.jobs.environment.keys().cloned().collect();
        said.extend(self.pods().environment.iter().map(|(name, _)| name.clone()));
        let ground = DerivationInputs {
            loaded,
            catalog: self.inputs.catalog,
            hosts: &self.hosts,
            offers: &self.offers,
            asked: &asked,
            meeting,
            by: self.asked,
        };
        derive::derive_environment(ground, self.request.kind(), &said)
    }

    /// A fabric with RDMA, and a cluster of which the spec does not say how pods get at it.
    fn without_devices(&self, devices: &[(String, String)]) -> Option<Diagnostic> {
        let has_rdma = !matches!(
            self.inputs.loaded.spec.fabric.kind,
            FabricKind::None | FabricKind::Acs
        );
        let is_left_open =
            devices.is_empty() && self.pods().devices == Devices::OfCluster && self.inputs.derives;
        if !has_rdma || !is_left_open {
            return None;
        }
        let warning = Diagnostic::warning(
            "RW1230",
            "the spec does not say by which resource pods get RDMA devices",
        )
        .effect(
            "the pods ask for none, so they have no `/dev/infiniband`, and NCCL goes over TCP \
             without an error",
        )
        .next(self.asked.words(
            "say it: --device RESOURCE=1, or `kubernetes: { rdma: ... }` in the spec; \
             --without-rdma where that is meant",
            "say it: `devices: { RESOURCE: 1 }`, or `kubernetes: { rdma: ... }`; `without_rdma: \
             true` where that is meant",
        ));
        Some(warning)
    }

    pub(super) fn pod_names(
        &self,
        resources: BTreeMap<String, super::Amount>,
        variables: &[Variable],
    ) -> PodNames {
        let pods = self.pods();
        let mut affinity = BTreeMap::new();
        if !pods.hosts.is_empty() && !self.hosts.is_empty() {
            // one term a node: the terms are joined by `or`, and a field takes one value only
            let terms: Vec<Value> = self.hosts.iter().map(|host| node_term(host)).collect();
            let required = json!({
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms }
            });
            affinity.insert("nodeAffinity".to_owned(), required);
        }
        let mut annotations = BTreeMap::new();
        if let Some(name) = &pods.network {
            annotations.insert("k8s.v1.cni.cncf.io/networks".to_owned(), name.clone());
        }
        PodNames {
            name: pods.name.clone(),
            namespace: pods.namespace.clone(),
            image: pods.image.clone(),
            image_pull_policy: pods.image_pull_policy.clone(),
            resources,
            environment: variables.iter().map(ContainerVariable::from).collect(),
            affinity,
            annotations,
            host_network: pods.host_network,
        }
    }

    /// Objects, and what rules say of them.
    pub(super) fn finish(
        &self,
        names: &impl serde::Serialize,
        settled: SettledEnvironment,
        made: JobRuleInputs,
    ) -> Result<RenderedJob, Vec<Diagnostic>> {
        let kind = self.request.kind();
        let objects = self.inputs.templates.objects(kind, names)?;
        let (catalog, pods) = (self.inputs.catalog, self.pods());
        let seen = JobSubjectInputs {
            request: self.request,
            gpus: made.gpus,
            ray_version: made.ray_version.as_deref(),
            variables: &settled.variables,
            objects: &objects,
            offers: &self.offers,
        };
        let subject = subject::build_rule_subject(&seen, catalog, self.asked);
        let loaded = self.build_rule_spec(&settled.variables, &made);
        // A job without RDMA is not checked as one with it.
        let on_fabric = match &made.acs {
            Some(acs) => acs.rdma,
            None => !subject.facts.rdma.is_empty(),
        };
        let found = rules::asked_of_job(&loaded, catalog, self.inputs.rules, &subject, on_fabric);
        let mut evaluation = rules::evaluate_job(&loaded, self.inputs.today, found.clone());
        add_notes(&mut evaluation, settled.warnings);
        Ok(RenderedJob {
            kind,
            name: pods.name.clone(),
            namespace: pods.namespace.clone(),
            objects,
            variables: settled.variables,
            arguments: made.arguments,
            found,
            evaluation,
        })
    }

    /// The spec as rules look at it: its jobs are this one.
    fn build_rule_spec(&self, variables: &[Variable], made: &JobRuleInputs) -> LoadedSpec {
        let mut loaded = self.inputs.loaded.clone();
        let jobs = &mut loaded.spec.jobs;
        // `eth0` of a pod is no interface of its host: rules about those have nothing to say of it.
        let of_host = made.acs.is_some() || self.pods().host_network;
        jobs.environment = variables
            .iter()
            .filter(|variable| of_host || variable.name != "NCCL_SOCKET_IFNAME")
            .map(|variable| (variable.name.clone(), variable.value.clone()))
            .collect();
        if self.request.kind() == JobRequestKind::NcclTest {
            jobs.mpi_options = Some(mpirun::format_mpi_options(&made.arguments));
        }
        if made.acs.is_some() {
            jobs.acs = made.acs.clone();
        }
        loaded
    }

    fn pytorch(&self, job: &Pytorch) -> Result<RenderedJob, Vec<Diagnostic>> {
        let gpus = self.gpus()?;
        let mut devices = self.devices();
        // Without a device the capability stays, so that a pair differs in the device alone.
        if job.rdma && job.pods.devices != Devices::None {
            devices.push(("rdma/hca".to_owned(), "1".to_owned()));
        }
        let mut arena = vec![
            ("workers", job.workers.to_string()),
            ("gpus", gpus.to_string()),
        ];
        if let Some(count) = &job.nproc_per_node {
            arena.push(("PET_NPROC_PER_NODE", count.clone()));
        }
        if gpus == 0 {
            arena.push(("NVIDIA_VISIBLE_DEVICES", "void".to_owned()));
        }
        if job.rdma {
            arena.push(("MASTER_ADDR", format!("{}-master-0", job.pods.name)));
        }
        let mut settled = self.settled(&devices, &arena);
        settled.warnings.extend(self.no_room(job.workers, gpus)?);
        let pod = self.pod_names(self.resources(gpus, &devices), &settled.variables);
        self.finish(
            &pytorch_names::build_pytorch_names(job, pod, gpus),
            settled,
            JobRuleInputs {
                gpus,
                ..JobRuleInputs::default()
            },
        )
    }
}

impl RenderedJob {
    /// Errors of rules, for which it is not to be used.
    pub fn errors(&self) -> Vec<Diagnostic> {
        self.evaluation.errors()
    }

    /// All that is to be reported.
    pub fn told(&self) -> Vec<Diagnostic> {
        self.evaluation.diagnostics()
    }

    /// Whether it may be used.
    pub fn is_lawful(&self) -> bool {
        self.told()
            .iter()
            .all(|diagnostic| diagnostic.severity != Severity::Error)
    }
}
