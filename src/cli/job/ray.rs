//! `railwright job render ray`.

use super::pods::PodOptions;
use crate::cli::{Exit, Failure};
use railwright_workload::{Ray, Request};

/// A cluster of Ray (RayCluster of KubeRay) whose pods have GPUs and RDMA devices
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// An image with Ray and the libraries of RDMA
    #[arg(long)]
    image: String,
    /// Its name
    #[arg(long, default_value = "raycluster-kuberay")]
    name: String,
    /// How many workers; one pod more has the head
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: u32,
    /// The release of Ray in the image; what is known of the image, or its tag says, when left out
    #[arg(long, value_name = "RELEASE")]
    ray_version: Option<String>,
    #[command(flatten)]
    pods: PodOptions,
}

impl Arguments {
    /// What its pods have.
    pub fn pods(&self) -> &PodOptions {
        &self.pods
    }
}

/// Renders it.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (pods, mut told) = arguments.pods.pods(&arguments.name, &arguments.image)?;
    told.extend(arguments.ray_version.iter().map(|release| ("job.ray_version".to_owned(), format!("--ray-version={release}"))));
    let job = Ray { pods, replicas: arguments.replicas, ray_version: arguments.ray_version.clone() };
    arguments.pods.deliver(&Request::Ray(job), &told)
}
