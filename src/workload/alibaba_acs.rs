//! Pods on Alibaba Container Compute Service: there is no host, so the environment is that of the
//! table of the NIC's type and never derived, and RDMA comes by labels of the pods.

use super::environment::{self, Settling, VariableOrigin};
use super::meeting::Meeting;
use super::names::{AcsNames, PodNames};
use super::render::{JobRuleInputs, RenderedJob, Rendering, SettledEnvironment};
use super::request::{Acs, Devices};
use railwright_base::Diagnostic;
use railwright_knowledge::spec::model::{AcsPod, FabricKind};
use std::collections::BTreeMap;

impl Rendering<'_> {
    pub(super) fn acs(&self, job: &Acs) -> Result<RenderedJob, Vec<Diagnostic>> {
        let spec = &self.inputs.loaded.spec;
        if spec.fabric.kind != FabricKind::Acs {
            return Err(self.report_other_fabric());
        }
        let of_spec = spec.jobs.acs.as_ref();
        let model = job.model.as_ref().or(of_spec.map(|pod| &pod.model));
        let Some(model) = model.cloned() else {
            return Err(self.report_no_model());
        };
        let same = of_spec.filter(|pod| pod.model == model);
        let class = job
            .compute_class
            .clone()
            .or_else(|| same.and_then(|pod| pod.compute_class.clone()))
            .unwrap_or_else(|| "gpu".to_owned());
        let entry = self.inputs.catalog.acs_of(&model, &class);
        // The one number of GPUs with which pods of the model have RDMA is no choice.
        let only = entry
            .filter(|entry| entry.rdma_gpus.len() == 1)
            .and_then(|entry| entry.rdma_gpus.first().copied());
        let Some(gpus) = job.pods.gpus.or(same.map(|pod| pod.gpus)).or(only) else {
            return Err(self.report_no_gpu_count(&model));
        };
        let rdma = job.pods.devices != Devices::None;
        let settled = self.of_table(entry.filter(|_| rdma).map(|entry| &entry.environment));
        let names = acs_names(
            job,
            &model,
            &class,
            rdma,
            self.pod_names(self.resources(gpus, &[]), &settled.variables),
        );
        let acs = AcsPod {
            model,
            compute_class: Some(class),
            gpus,
            rdma,
        };
        self.finish(
            &names,
            settled,
            JobRuleInputs {
                gpus,
                acs: Some(acs),
                ..JobRuleInputs::default()
            },
        )
    }

    fn report_other_fabric(&self) -> Vec<Diagnostic> {
        let message = "the fabric of the spec is not that of Container Compute Service".to_owned();
        let next = self.asked.words(
            "give an inventory with `fabric: { kind: acs }`, such as inventories/acs",
            "say `fabric: { kind: acs }`, or take this workload out",
        );
        self.wrong("RW1229", message, next)
    }

    fn report_no_model(&self) -> Vec<Diagnostic> {
        let message = "the model of the GPUs is not said".to_owned();
        let next = self.asked.words(
            "--model GU8TF, or `jobs: { acs: { model: ... } }` in the spec",
            "say `model: GU8TF` here, or of all pods: `jobs: { acs: { model: ... } }`",
        );
        self.wrong("RW1229", message, next)
    }

    fn report_no_gpu_count(&self, model: &str) -> Vec<Diagnostic> {
        let message = format!("how many GPUs a pod of {model} has is not said");
        let next = self.asked.words(
            "--gpus N; railwright catalog acs lists the numbers with RDMA",
            "say `gpus: N`; railwright catalog acs lists the numbers with RDMA",
        );
        self.wrong("RW1229", message, next)
    }

    /// The environment of the table, which takes nothing from hosts.
    fn of_table(&self, table: Option<&BTreeMap<String, String>>) -> SettledEnvironment {
        let mut settling = Settling::default();
        for (name, value) in table.into_iter().flatten() {
            settling.put(
                name,
                value,
                VariableOrigin::Table,
                "the table of the NIC's type says so (railwright catalog acs)".to_owned(),
            );
        }
        settling.spec(self.inputs.loaded);
        settling.asked(&self.pods().environment);
        let variables = settling.settled(
            self.inputs.catalog,
            self.inputs.loaded.spec.jobs.nccl.as_deref(),
        );
        let warnings = environment::check_variables(
            &variables,
            self.inputs.loaded,
            self.inputs.catalog,
            self.asked,
            &[],
        );
        SettledEnvironment {
            variables,
            warnings,
            devices: Vec::new(),
            meeting: Meeting::of(self.inputs.loaded, &[], self.pods()),
        }
    }
}

/// The labels by which pods get GPUs and RDMA; capacity that was reserved (`gpu-hpn`) is found by
/// the label of its node.
fn acs_names(job: &Acs, model: &str, class: &str, rdma: bool, pod: PodNames) -> AcsNames {
    const PREFIX: &str = "alibabacloud.com";
    let app = job.app.clone().unwrap_or_else(|| pod.name.clone());
    let mut labels: BTreeMap<String, String> = [
        ("app".to_owned(), app.clone()),
        (format!("{PREFIX}/compute-class"), class.to_owned()),
        (format!("{PREFIX}/compute-qos"), "default".to_owned()),
    ]
    .into();
    let series = (format!("{PREFIX}/gpu-model-series"), model.to_owned());
    let mut node_selector = BTreeMap::new();
    if class == "gpu-hpn" {
        node_selector.extend([series]);
    } else {
        labels.extend([series]);
    }
    if rdma {
        labels.insert(format!("{PREFIX}/hpn-type"), "rdma".to_owned());
    }
    AcsNames {
        pod,
        replicas: job.replicas,
        app,
        container: job.container.clone(),
        labels,
        node_selector,
        command: job.command.clone(),
    }
}
