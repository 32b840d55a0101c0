//! `railwright job render ray`.

use super::pods::PodOptions;
use crate::cli::{CommandFailure, Exit};
use railwright_workload::{JobRequest, Ray};

/// A cluster of Ray (RayCluster of KubeRay) whose pods have GPUs and RDMA devices
#[derive(Debug, clap::Args)]
pub struct RayArguments {
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

impl RayArguments {
    /// What its pods have.
    pub fn pods(&self) -> &PodOptions {
        &self.pods
    }
}

/// Renders it.
pub fn run(arguments: &RayArguments) -> Result<Exit, CommandFailure> {
    let (pods, mut typed) = arguments.pods.pods(&arguments.name, &arguments.image)?;
    if let Some(release) = &arguments.ray_version {
        let option = format!("--ray-version={release}");
        typed.push(("job.ray_version".to_owned(), option));
    }
    let job = Ray {
        pods,
        replicas: arguments.replicas,
        ray_version: arguments.ray_version.clone(),
    };
    arguments.pods.deliver(&JobRequest::Ray(job), &typed)
}
