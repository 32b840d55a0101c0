//! `railwright job render perftest-pods`.

use super::pods::PodOptions;
use crate::cli::{CommandFailure, Exit};
use railwright_workload::{JobRequest, Perftest};

/// RDMA traffic between two pods on two nodes (ib_write_bw)
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// An image with perftest
    #[arg(long)]
    image: String,
    /// The name of both Jobs, before -server and -client, and of the Service between them
    #[arg(long, default_value = "perftest")]
    name: String,
    /// The RDMA device; the first of the fabric when left out, or the first that the pod sees where
    /// names are not known
    #[arg(long, value_name = "DEVICE")]
    rdma_device: Option<String>,
    /// Seconds of traffic
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    duration: u32,
    #[command(flatten)]
    pods: PodOptions,
}

impl Arguments {
    /// What its pods have.
    pub fn pods(&self) -> &PodOptions {
        &self.pods
    }
}

/// Renders them.
pub fn run(arguments: &Arguments) -> Result<Exit, CommandFailure> {
    let (pods, mut typed) = arguments.pods.pods(&arguments.name, &arguments.image)?;
    if let Some(device) = &arguments.rdma_device {
        let option = format!("--rdma-device={device}");
        typed.push(("job.rdma_device".to_owned(), option));
    }
    let job = Perftest {
        pods,
        device: arguments.rdma_device.clone(),
        seconds: arguments.duration,
    };
    arguments.pods.deliver(&JobRequest::Perftest(job), &typed)
}
