//! Workloads of the spec that stay: each rendered as `job render` would, with carets in the spec.

use super::asked::RequestPlaces;
use super::fields;
use super::render::{JobRenderInputs, RenderedJob, render_job};
use super::request::{Acs, Devices, JobRequest, Pods, Ray};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Digest, nodeset};
use railwright_knowledge::rules::RuleFinding;
use railwright_knowledge::spec::model::{Workload, WorkloadKind};

/// The name of a container of a Deployment of which nothing else is said.
const CONTAINER: &str = "main";

/// The workloads of a spec, rendered, in its order.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    /// Each that could be rendered, with its place in the spec and the digest of the template that
    /// made it.
    pub(super) all: Vec<(usize, RenderedJob, Digest)>,
    /// Some could not be rendered: what rules say of these is not known.
    pub is_partial: bool,
}

impl Workloads {
    /// Where none could be rendered.
    pub fn unrendered() -> Workloads {
        Workloads {
            all: Vec::new(),
            is_partial: true,
        }
    }

    /// Renders all that can be, and says all that is wrong with any of them.
    pub fn of(inputs: JobRenderInputs<'_>) -> (Workloads, Vec<Diagnostic>) {
        // What is checked of one has nothing to do with the others, which may be thousands.
        let mut alone = inputs.loaded.clone();
        let workloads = std::mem::take(&mut alone.spec.workloads);
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        for (index, workload) in workloads.iter().enumerate() {
            problems.extend(fields::check_workload_fields(
                inputs.loaded,
                index,
                workload,
            ));
            let asked = RequestPlaces::of_spec(inputs.loaded, index);
            let inputs = JobRenderInputs {
                loaded: &alone,
                ..inputs
            };
            match request_from_workload(&fields::clear_foreign_fields(workload), &asked)
                .and_then(|request| render_job(inputs, &request, &asked))
            {
                Ok(rendered) => {
                    let digest = inputs.templates.digest(rendered.kind);
                    all.push((index, rendered, digest));
                }
                Err(more) => problems.extend(more),
            }
        }
        (
            Workloads {
                all,
                is_partial: !problems.is_empty(),
            },
            problems,
        )
    }

    /// What rules find of them, before anything is waived.
    pub fn found(&self) -> Vec<RuleFinding> {
        self.all
            .iter()
            .flat_map(|(_, rendered, _)| rendered.found.clone())
            .collect()
    }

    /// What else looks wrong of them.
    pub fn notes(&self) -> Vec<Diagnostic> {
        self.all
            .iter()
            .flat_map(|(_, rendered, _)| rendered.evaluation.notes.clone())
            .collect()
    }
}

fn request_from_workload(
    workload: &Workload,
    asked: &RequestPlaces,
) -> Result<JobRequest, Vec<Diagnostic>> {
    let devices = match (workload.without_rdma, workload.devices.is_empty()) {
        (true, _) => Devices::None,
        (false, true) => Devices::OfCluster,
        (false, false) => Devices::Said(
            workload
                .devices
                .iter()
                .map(|(name, count)| (name.clone(), count.to_string()))
                .collect(),
        ),
    };
    let pods = Pods {
        name: workload.name.clone(),
        namespace: workload.namespace.clone(),
        image: workload.image.clone(),
        image_pull_policy: workload.image_pull_policy.clone(),
        environment: workload
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        hosts: workload
            .hosts
            .as_deref()
            .map_or(Ok(Vec::new()), |text| expand_host_names(text, asked))?,
        host_network: workload.host_network,
        network: workload.network.clone(),
        trial: workload.trial,
        devices,
        over_tcp: false,
        gpu_resource: workload.gpu_resource.clone(),
        gpus: workload.gpus,
        cpu: workload.cpu.clone(),
        memory: workload.memory.clone(),
    };
    Ok(match workload.kind {
        WorkloadKind::Ray => JobRequest::Ray(Ray {
            pods,
            replicas: workload.replicas,
            ray_version: workload.ray_version.clone(),
        }),
        WorkloadKind::Acs => JobRequest::Acs(Acs {
            pods,
            replicas: workload.replicas,
            model: workload.model.clone(),
            compute_class: workload.compute_class.clone(),
            command: workload.command.clone(),
            app: workload.app.clone(),
            container: workload
                .container
                .clone()
                .unwrap_or_else(|| CONTAINER.to_owned()),
        }),
    })
}

fn expand_host_names(text: &str, asked: &RequestPlaces) -> Result<Vec<String>, Vec<Diagnostic>> {
    nodeset::expand_node_set(text).map_err(|error| {
        let error = Diagnostic::error(
            "RW1221",
            format!("`{}` names no hosts: {error}", one_line(text, 60)),
        );
        vec![
            asked
                .at(error, "job.hosts", "not a node-set")
                .next("hosts: gpu[01-02]"),
        ]
    })
}
