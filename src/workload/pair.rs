//! A job rendered twice, with RDMA and over TCP, so that what RDMA gains is measured and not
//! believed; and whether anything can be gained at all, said before a GPU is taken.
//!
//! Source: Alibaba Cloud, ACK documentation, accelerate PyTorch jobs with eRDMA and Arena (submit
//! the job with and without the device, and compare the time of equal steps; most is gained with
//! several nodes and billions of parameters).

use super::asked::RequestPlaces;
use super::environment::{Settling, VariableOrigin};
use super::render::{JobRenderInputs, RenderedJob, render_job, select_hosts};
use super::request::{Devices, JobRequest, Pytorch};
use super::subject::format_amount;
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::catalog::job::image_of;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A model below it has little to send for each step.
const LARGE: u64 = 1_000_000_000;

/// The rule that warns of pods which ask for no RDMA device: of the half over TCP that is meant.
const ASKS_FOR_NONE: &str = "RW3006";

/// One of the two jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// With RDMA devices.
    Rdma,
    /// Without, and restricted to TCP.
    Tcp,
}

impl Half {
    /// Both.
    pub const BOTH: [Half; 2] = [Half::Rdma, Half::Tcp];

    /// What stands behind the name of the job.
    pub fn word(self) -> &'static str {
        match self {
            Half::Rdma => "rdma",
            Half::Tcp => "tcp",
        }
    }

    /// The half's name.
    pub fn of(self, job: &str) -> String {
        format!("{job}-{}", self.word())
    }
}

/// A resource or a variable in which the two differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PairDifference {
    /// Its name.
    pub name: String,
    /// With RDMA; nothing where it is not there.
    pub rdma: Option<String>,
    /// Over TCP; nothing where it is not there.
    pub tcp: Option<String>,
    /// Why.
    pub reason: String,
}

/// Both jobs.
#[derive(Debug, Clone)]
pub struct Pair {
    /// With RDMA devices.
    pub rdma: RenderedJob,
    /// Without them.
    pub tcp: RenderedJob,
    /// All in which they differ beside their names.
    pub differences: Vec<PairDifference>,
    /// Why no gain is to be expected, as far as that can be told beforehand.
    pub forecast: Vec<Diagnostic>,
}

/// Renders both; `parameters` is the size of the model, where somebody says it.
pub fn render_job_pair(
    inputs: JobRenderInputs<'_>,
    request: &JobRequest,
    asked: &RequestPlaces,
    parameters: Option<u64>,
) -> Result<Pair, Vec<Diagnostic>> {
    let name = &request.pods().name;
    let with = request.with_pods(|pods| pods.name = Half::Rdma.of(name));
    let without = request.with_pods(|pods| {
        pods.name = Half::Tcp.of(name);
        (pods.devices, pods.over_tcp) = (Devices::None, true);
    });
    let rdma = render_job(inputs, &with, asked)?;
    let mut tcp = render_job(inputs, &without, asked)?;
    tcp.evaluation
        .findings
        .retain(|finding| finding.diagnostic.code != ASKS_FOR_NONE);
    let mut differences = diff_devices(&rdma, &tcp);
    if differences.is_empty() {
        return Err(vec![nothing_to_leave_out(asked)]);
    }
    differences.extend(diff_variables(&rdma, &tcp));
    let forecast = forecast_gain(inputs, request, asked, parameters)?;
    Ok(Pair {
        rdma,
        tcp,
        differences,
        forecast,
    })
}

/// NCCL goes over TCP, whatever devices it sees.
pub(super) fn hold_to_tcp(settling: &mut Settling) {
    let reason = "this is the half over TCP: NCCL takes its sockets even where a pod sees RDMA \
                  devices, and says so in its log";
    settling.put(
        "NCCL_NET",
        "Socket",
        VariableOrigin::Pair,
        reason.to_owned(),
    );
    let reason =
        "this is the half over TCP: also a plugin that is asked before NCCL_NET leaves verbs alone";
    settling.put(
        "NCCL_IB_DISABLE",
        "1",
        VariableOrigin::Pair,
        reason.to_owned(),
    );
}

fn nothing_to_leave_out(asked: &RequestPlaces) -> Diagnostic {
    let error = Diagnostic::error(
        "RW1251",
        "neither half of the pair has an RDMA device, so there is nothing to compare",
    )
    .effect("both jobs would go over TCP")
    .state("nothing was rendered")
    .next("say the device: --device RESOURCE=1, or `kubernetes: { rdma: ... }` in the spec");
    asked.at(error, "job.kind", "asked for here")
}

/// Resources that one half has and the other has not.
fn diff_devices(rdma: &RenderedJob, tcp: &RenderedJob) -> Vec<PairDifference> {
    let (with, without) = (collect_limits(&rdma.objects), collect_limits(&tcp.objects));
    let mut differences = Vec::new();
    for (name, amount) in with {
        if !without.contains_key(&name) {
            differences.push(PairDifference {
                name,
                rdma: Some(amount),
                tcp: None,
                reason: "a pod without the resource gets no RDMA device".to_owned(),
            });
        }
    }
    differences
}

fn collect_limits(objects: &[Map<String, Value>]) -> BTreeMap<String, String> {
    let mut limits = BTreeMap::new();
    for value in objects.iter().flat_map(Map::values) {
        add_limits_below(value, &mut limits);
    }
    limits
}

fn add_limits_below(value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                match below.get("limits") {
                    Some(Value::Object(limits)) if key == "resources" => {
                        for (name, amount) in limits {
                            found.insert(name.clone(), format_amount(amount));
                        }
                    }
                    _ => add_limits_below(below, found),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                add_limits_below(item, found);
            }
        }
        _ => {}
    }
}

fn diff_variables(rdma: &RenderedJob, tcp: &RenderedJob) -> Vec<PairDifference> {
    let names: BTreeSet<&str> = rdma
        .variables
        .iter()
        .chain(&tcp.variables)
        .map(|variable| variable.name.as_str())
        .collect();
    let mut differences = Vec::new();
    for name in names {
        let with = rdma.variables.iter().find(|variable| variable.name == name);
        let without = tcp.variables.iter().find(|variable| variable.name == name);
        let reason = match (with, without) {
            (Some(with), Some(without)) if with.value == without.value => continue,
            (_, Some(without)) => without.reason.clone(),
            (Some(with), None) => format!("it is about RDMA alone: {}", with.reason),
            (None, None) => continue,
        };
        differences.push(PairDifference {
            name: name.to_owned(),
            rdma: with.map(|variable| variable.value.clone()),
            tcp: without.map(|variable| variable.value.clone()),
            reason,
        });
    }
    differences
}

/// Why no gain is to be expected.
fn forecast_gain(
    inputs: JobRenderInputs<'_>,
    request: &JobRequest,
    asked: &RequestPlaces,
    parameters: Option<u64>,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let hosts = select_hosts(inputs.loaded, &request.pods().hosts, asked)?.len();
    let workers = match request {
        JobRequest::NcclTest(job) => job.workers.unwrap_or(hosts as u32),
        JobRequest::Pytorch(job) => job.workers,
        _ => 0,
    };
    let obstacle = match (workers, hosts) {
        (1, _) => Some(ONE_POD),
        (_, 1) => Some(ONE_HOST),
        _ => None,
    };
    let mut told = Vec::new();
    if let Some((why, place, next)) = obstacle {
        told.push(report_no_gain(asked, why, place, next));
    }
    if let JobRequest::Pytorch(job) = request
        && let Some((why, path)) = find_small_model(inputs.catalog, job, parameters)
    {
        let next = "compare with the model that you mean to train";
        told.push(report_no_gain(asked, &why, (path, "a small model"), next));
    }
    Ok(told)
}

/// Why nothing is to be gained, where that was asked for with its label, and what to do.
type Obstacle = (&'static str, (&'static str, &'static str), &'static str);

const ONE_POD: Obstacle = (
    "all ranks are in one pod, and reach each other by NVLink, PCIe or memory",
    ("job.workers", "one pod"),
    "say --workers 2 or more",
);
const ONE_HOST: Obstacle = (
    "all pods are on one host, and nothing crosses the network",
    ("job.hosts", "one host"),
    "name two hosts or more with --on",
);

/// `place` is the path of what was asked for, and the label there.
fn report_no_gain(asked: &RequestPlaces, why: &str, place: (&str, &str), next: &str) -> Diagnostic {
    let message = format!("no gain is to be expected of RDMA: {why}");
    let warning = Diagnostic::warning("RW1250", message).next(next);
    asked.at(warning, place.0, place.1)
}

/// Why the model of a training is too small to gain, and the path of what says so.
fn find_small_model(
    catalog: &Catalog,
    job: &Pytorch,
    parameters: Option<u64>,
) -> Option<(String, &'static str)> {
    let image = &job.pods.image;
    if image_of(&catalog.image, image).is_some_and(|entry| entry.demo) {
        let why = format!("{} is an image of a demonstration", one_line(image, 100));
        return Some((why, "job.image"));
    }
    if job.command.to_ascii_lowercase().contains("mnist") {
        let why = "the model of the MNIST example has about a million parameters".to_owned();
        return Some((why, "job.command"));
    }
    let parameters = parameters.filter(|parameters| *parameters < LARGE)?;
    let why = format!(
        "a model of {parameters} parameters sends little for each step; most is gained from \
         billions on"
    );
    Some((why, "job.parameters"))
}
