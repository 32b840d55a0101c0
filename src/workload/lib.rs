//! Jobs that use the fabric: what was asked for and what the inventory says become objects of
//! Kubernetes, with the reason of every variable and every argument. Pure: nothing is asked of a
//! cluster, and nothing is submitted (see `job`). Workloads of the spec, which stay, are rendered
//! in the same way, and become desired resources.
//!
//! `request` is what was asked for, `asked` where each word of it stands, `words`, `flags` and
//! `arena` read a line of Arena. `check` holds names and amounts to what Kubernetes takes, `fabric`
//! to the fabric. `offer` is how the cluster gives RDMA devices to pods, `hca` which those are,
//! `meeting` the interface on which ranks meet; `derive` makes the environment of these,
//! `environment` settles it with what the spec and the user say. `mpirun` is the line that starts
//! NCCL's tests. `names` is what a template can name, `pytorch_names` that of Arena's jobs,
//! `templates` renders, `subject` is what rules look at, `render` the whole way, `alibaba_acs` and
//! `perftest` that of their kinds, `pair` a job twice, with RDMA and without, `on_hosts` one on
//! hosts that no Kubernetes is on, `host_faults` what of it cannot be. `of_spec` renders the
//! workloads of the spec, `resources` makes resources of them. `image` writes the file that an
//! image with RDMA is built from.

mod alibaba_acs;
mod amount;
mod arena;
mod asked;
mod check;
mod check_training;
mod derive;
mod environment;
mod fabric;
mod fields;
mod flags;
mod gpus;
mod hca;
mod host_faults;
pub mod image;
mod meeting;
mod mpirun;
mod names;
mod nccl_test;
mod of_spec;
mod offer;
mod on_hosts;
mod pair;
mod perftest;
mod pytorch_names;
mod ray;
mod render;
mod request;
mod resources;
mod subject;
mod templates;
mod toleration;
mod words;

pub use amount::Amount;
pub use arena::{ArenaLine, from_arena};
pub use asked::RequestPlaces;
pub use environment::{Variable, VariableOrigin};
pub use mpirun::Argument;
pub use of_spec::Workloads;
pub use offer::{gives_rdma, list_rdma_pools, rails_of};
pub use on_hosts::{
    HostJob, HostJobParts, HostKind, HostPart, describe_missing_requirement, on_hosts,
};
pub use pair::{Half, Pair, PairDifference, render_job_pair};
pub use perftest::perftest_words;
pub use render::{JobRenderInputs, RenderedJob, render_job};
pub use request::{
    Acs, CleanPods, Devices, JobRequest, JobRequestKind, NcclTest, Perftest, Pods, Pytorch, Ray,
    Tensorboard,
};
pub use templates::{JOBS_FOLDER, Templates};
