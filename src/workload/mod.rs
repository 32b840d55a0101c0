//! Jobs that use the fabric: what was asked for and what the inventory says become objects of Kubernetes, with the reason of every
//! variable and every argument. Pure: nothing is asked of a cluster, and nothing is submitted (see `job`).
//!
//! `request` is what was asked for, `asked` where each word of it stands, `words`, `flags` and `arena` read a line of Arena. `check` holds names and
//! amounts to what Kubernetes takes, `fabric` to the fabric. `offer` is how the cluster gives RDMA devices to pods, `hca` which those are, `meeting` the interface
//! on which ranks meet; `derive` makes the environment of these, `environment` settles it with what the spec and the user say. `mpirun` is
//! the line that starts NCCL's tests. `names` is what a template can name, `pytorch_names` the same of Arena's jobs, `templates` renders, `subject` is what rules look at, `render` the whole way, `acs` and
//! `perftest` that of their kinds. `image` writes the file that an image with RDMA is built from.

mod acs;
mod amount;
mod arena;
mod asked;
mod check;
mod derive;
mod environment;
mod fabric;
mod flags;
mod hca;
pub mod image;
mod meeting;
mod mpirun;
mod names;
mod offer;
mod perftest;
mod pytorch_names;
mod render;
mod request;
mod subject;
mod templates;
mod words;

pub use amount::Amount;
pub use arena::{Line, from_arena};
pub use asked::Asked;
pub use environment::{Origin, Variable};
pub use mpirun::Argument;
pub use render::{Inputs, Rendered, render};
pub use request::{Acs, CleanPods, Devices, Kind, NcclTest, Perftest, Pods, Pytorch, Ray, Request, Tensorboard};
pub use templates::{JOBS_FOLDER, Templates};
