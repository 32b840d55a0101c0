//! `railwright job render acs`.

use super::pods::PodOptions;
use crate::cli::{CommandFailure, Exit};
use railwright_workload::{Acs, JobRequest};

/// Pods with RDMA on Alibaba Container Compute Service, as a Deployment
#[derive(Debug, clap::Args)]
pub struct AcsJobArguments {
    /// The image
    #[arg(long)]
    image: String,
    /// The Deployment's name
    #[arg(long)]
    name: String,
    /// The label `app` by which it knows its pods; its name when left out
    #[arg(long)]
    app: Option<String>,
    /// The container's name
    #[arg(long, default_value = "main")]
    container: String,
    /// How many pods
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: u32,
    /// The GPU model series, such as GU8TF; that of the spec when left out
    #[arg(long)]
    model: Option<String>,
    /// The compute class, gpu or gpu-hpn; that of the spec when left out
    #[arg(long, value_name = "CLASS")]
    compute_class: Option<String>,
    #[command(flatten)]
    pods: PodOptions,
    /// What the container runs
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl AcsJobArguments {
    /// What its pods have.
    pub fn pods(&self) -> &PodOptions {
        &self.pods
    }
}

/// Renders it.
pub fn run(arguments: &AcsJobArguments) -> Result<Exit, CommandFailure> {
    let (pods, mut typed) = arguments.pods.pods(&arguments.name, &arguments.image)?;
    // The number of GPUs is checked as that of the spec would be.
    typed.retain(|(path, _)| path != "job.gpus");
    let own = [
        ("job.app", "--app", arguments.app.clone()),
        (
            "job.container",
            "--container",
            Some(arguments.container.clone()),
        ),
        ("jobs.acs.model", "--model", arguments.model.clone()),
        (
            "jobs.acs.compute_class",
            "--compute-class",
            arguments.compute_class.clone(),
        ),
        (
            "jobs.acs.gpus",
            "--gpus",
            pods.gpus.map(|gpus| gpus.to_string()),
        ),
    ];
    for (path, option, value) in own {
        typed.extend(value.map(|value| (path.to_owned(), format!("{option}={value}"))));
    }
    let job = Acs {
        pods,
        replicas: arguments.replicas,
        model: arguments.model.clone(),
        compute_class: arguments.compute_class.clone(),
        command: arguments.command.clone(),
        app: arguments.app.clone(),
        container: arguments.container.clone(),
    };
    arguments.pods.deliver(&JobRequest::Acs(job), &typed)
}
