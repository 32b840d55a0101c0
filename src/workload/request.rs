//! What was asked for, by kind of job.

use super::amount::Amount;
use schemars::JsonSchema;
use serde::Serialize;

/// Kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobRequestKind {
    /// NCCL's tests, started by MPI.
    NcclTest,
    /// A training of PyTorch as Arena submits it.
    Pytorch,
    /// A cluster of Ray.
    Ray,
    /// Pods on Alibaba Container Compute Service.
    Acs,
    /// RDMA traffic between two pods.
    PerftestPods,
}

impl JobRequestKind {
    /// All of them.
    pub const ALL: [JobRequestKind; 5] = [
        JobRequestKind::NcclTest,
        JobRequestKind::Pytorch,
        JobRequestKind::Ray,
        JobRequestKind::Acs,
        JobRequestKind::PerftestPods,
    ];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            JobRequestKind::NcclTest => "nccl-test",
            JobRequestKind::Pytorch => "pytorch",
            JobRequestKind::Ray => "ray",
            JobRequestKind::Acs => "acs",
            JobRequestKind::PerftestPods => "perftest-pods",
        }
    }
}

/// The RDMA devices of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Devices {
    /// One of each that the cluster of the spec gives.
    #[default]
    OfCluster,
    /// These, as resource and amount.
    Said(Vec<(String, String)>),
    /// None: the job that another is compared with.
    None,
}

/// What pods of every kind have.
#[derive(Debug, Clone, Default)]
pub struct Pods {
    /// The job's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The image.
    pub image: String,
    /// When it is pulled; left to the cluster where nothing is said.
    pub image_pull_policy: Option<String>,
    /// Variables and values, as they were given.
    pub environment: Vec<(String, String)>,
    /// The hosts that it may run on; all where there are none.
    pub hosts: Vec<String>,
    /// The pods have the network of their host.
    pub host_network: bool,
    /// A further network of theirs, by the name of its NetworkAttachmentDefinition.
    pub network: Option<String>,
    /// It is a trial.
    pub trial: bool,
    /// RDMA devices.
    pub devices: Devices,
    /// NCCL is restricted to TCP, whatever devices a pod sees.
    pub over_tcp: bool,
    /// The resource by which GPUs are asked for.
    pub gpu_resource: String,
    /// GPUs of a pod; what the spec says of the hosts where nothing is said.
    pub gpus: Option<u32>,
    /// Processors of a pod.
    pub cpu: Option<String>,
    /// Memory of a pod.
    pub memory: Option<String>,
}

/// NCCL's tests.
#[derive(Debug, Clone, Default)]
pub struct NcclTest {
    /// The pods.
    pub pods: Pods,
    /// How many workers; one for each host where nothing is said.
    pub workers: Option<u32>,
    /// The test, such as `all_reduce_perf`, with its path where it needs one.
    pub program: String,
    /// The smallest message.
    pub from: String,
    /// The largest message.
    pub to: String,
    /// Turns for each size.
    pub turns: u32,
    /// Memory that ranks of a pod share.
    pub shared_memory: String,
}

/// Which pods of a job that ended are removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum CleanPods {
    /// None: their logs stay.
    None,
    /// Those that still run.
    #[default]
    Running,
    /// All.
    All,
}

/// A dashboard beside a training.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tensorboard {
    /// Its image.
    pub image: String,
    /// Where the training writes its logs.
    pub logdir: String,
}

/// A training of PyTorch, in the words of `arena submit pytorch`.
#[derive(Debug, Clone, Default)]
pub struct Pytorch {
    /// The pods.
    pub pods: Pods,
    /// All pods, the master among them.
    pub workers: u32,
    /// Processes of a pod: a number, `auto`, `cpu` or `gpu`.
    pub nproc_per_node: Option<String>,
    /// Which pods are removed when it has ended.
    pub clean: CleanPods,
    /// The folder that the command runs in.
    pub working_dir: String,
    /// The shell that runs the command.
    pub shell: String,
    /// The command.
    pub command: String,
    /// Memory that processes of a pod share.
    pub shared_memory: Option<String>,
    /// A dashboard, if there is to be one.
    pub tensorboard: Option<Tensorboard>,
    /// Asks for `rdma/hca` and the capability to lock memory.
    pub rdma: bool,
    /// All pods are scheduled together or not at all.
    pub gang: bool,
    /// Labels, as `key=value`.
    pub labels: Vec<(String, String)>,
    /// Annotations.
    pub annotations: Vec<(String, String)>,
    /// Labels of nodes.
    pub selectors: Vec<(String, String)>,
    /// Taints that are tolerated: `all`, `key`, or `key=value:effect,operator`.
    pub tolerations: Vec<String>,
    /// Volumes, as claim and path.
    pub data: Vec<(String, String)>,
    /// Folders of the host, as `path` or `path:path`.
    pub data_dirs: Vec<String>,
    /// Secrets for registries.
    pub image_pull_secrets: Vec<String>,
    /// A priority class.
    pub priority: Option<String>,
    /// A scheduler.
    pub scheduler: Option<String>,
    /// Seconds after which it is ended.
    pub running_timeout_s: Option<u64>,
    /// Seconds after its end until it is removed.
    pub ttl_after_finished_s: Option<u64>,
    /// Pods share the processes of their host.
    pub host_pid: bool,
    /// Pods share the memory segments of their host.
    pub host_ipc: bool,
}

/// A cluster of Ray.
#[derive(Debug, Clone, Default)]
pub struct Ray {
    /// The pods of head and workers.
    pub pods: Pods,
    /// How many workers beside the head.
    pub replicas: u32,
    /// The release of Ray in the image; what the catalogue or the tag says where nothing is said.
    pub ray_version: Option<String>,
}

/// Pods on Alibaba Container Compute Service.
#[derive(Debug, Clone, Default)]
pub struct Acs {
    /// The pods.
    pub pods: Pods,
    /// How many.
    pub replicas: u32,
    /// The GPU model series; that of the spec where nothing is said.
    pub model: Option<String>,
    /// The compute class.
    pub compute_class: Option<String>,
    /// What the container runs.
    pub command: Vec<String>,
    /// The label `app` by which the Deployment knows its pods; the job's name where nothing is
    /// said.
    pub app: Option<String>,
    /// The container's name.
    pub container: String,
}

/// RDMA traffic between two pods.
#[derive(Debug, Clone, Default)]
pub struct Perftest {
    /// The pods.
    pub pods: Pods,
    /// The device; the first of the fabric where nothing is said.
    pub device: Option<String>,
    /// Seconds of traffic.
    pub seconds: u32,
}

/// A job of some kind.
#[derive(Debug, Clone)]
pub enum JobRequest {
    /// NCCL's tests.
    NcclTest(NcclTest),
    /// A training of PyTorch.
    Pytorch(Box<Pytorch>),
    /// A cluster of Ray.
    Ray(Ray),
    /// Pods on Alibaba Container Compute Service.
    Acs(Acs),
    /// RDMA traffic between two pods.
    Perftest(Perftest),
}

impl JobRequest {
    /// Its kind.
    pub fn kind(&self) -> JobRequestKind {
        match self {
            JobRequest::NcclTest(_) => JobRequestKind::NcclTest,
            JobRequest::Pytorch(_) => JobRequestKind::Pytorch,
            JobRequest::Ray(_) => JobRequestKind::Ray,
            JobRequest::Acs(_) => JobRequestKind::Acs,
            JobRequest::Perftest(_) => JobRequestKind::PerftestPods,
        }
    }

    /// Its pods.
    pub fn pods(&self) -> &Pods {
        match self {
            JobRequest::NcclTest(job) => &job.pods,
            JobRequest::Pytorch(job) => &job.pods,
            JobRequest::Ray(job) => &job.pods,
            JobRequest::Acs(job) => &job.pods,
            JobRequest::Perftest(job) => &job.pods,
        }
    }

    /// A copy of the request whose pods are changed.
    pub(super) fn with_pods(&self, change: impl FnOnce(&mut Pods)) -> JobRequest {
        let mut request = self.clone();
        change(match &mut request {
            JobRequest::NcclTest(job) => &mut job.pods,
            JobRequest::Pytorch(job) => &mut job.pods,
            JobRequest::Ray(job) => &mut job.pods,
            JobRequest::Acs(job) => &mut job.pods,
            JobRequest::Perftest(job) => &mut job.pods,
        });
        request
    }
}

/// Amounts that were read.
pub(super) fn amount_from_text(text: &str) -> Amount {
    Amount::parse(text).unwrap_or_else(|| Amount::Text(text.to_owned()))
}
