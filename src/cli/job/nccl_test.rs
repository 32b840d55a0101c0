//! `railwright job render nccl-test`.

use super::pods::{PodOptions, TypedOptions};
use crate::cli::{CommandFailure, Exit};
use railwright_workload::{JobRequest, NcclTest};

/// Options that nobody needs to be pointed at, as nobody gave them.
const DEFAULTS: [&str; 3] = ["--from=8", "--to=8G", "--turns=20"];

/// NCCL's tests as an MPIJob of mpi-operator (v2beta1)
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// An image with NCCL's tests, Open MPI and sshd
    #[arg(long)]
    image: String,
    /// Its name
    #[arg(long, default_value = "nccl-test")]
    name: String,
    /// How many workers; one for each host when left out
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// The test, with its path where it is not on the image's PATH; with --gpus 0 one that needs no
    /// GPU, which gets one process in each worker
    #[arg(long, default_value = "all_reduce_perf")]
    program: String,
    /// The smallest message
    #[arg(long, value_name = "SIZE", default_value = "8")]
    from: String,
    /// The largest message
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    to: String,
    /// Turns for each size
    #[arg(long, value_name = "N", default_value_t = 20)]
    turns: u32,
    /// Memory that ranks of a worker share
    #[arg(long, value_name = "AMOUNT", default_value = "16Gi")]
    share_memory: String,
    #[command(flatten)]
    pods: PodOptions,
}

impl Arguments {
    /// The options that kinds have in common.
    pub fn pods(&self) -> &PodOptions {
        &self.pods
    }

    /// What is asked for.
    pub fn request(&self) -> Result<(JobRequest, TypedOptions), CommandFailure> {
        let (pods, mut typed) = self.pods.pods(&self.name, &self.image)?;
        typed.push((
            "job.shared_memory".to_owned(),
            format!("--share-memory={}", self.share_memory),
        ));
        if let Some(workers) = self.workers {
            typed.push(("job.workers".to_owned(), format!("--workers={workers}")));
        }
        let turns = self.turns.to_string();
        let options = [("from", &self.from), ("to", &self.to), ("turns", &turns)];
        for (name, value) in options {
            let option = format!("--{name}={value}");
            if !DEFAULTS.contains(&option.as_str()) {
                typed.push((format!("job.{name}"), option));
            }
        }
        let job = NcclTest {
            pods,
            workers: self.workers,
            program: self.program.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            turns: self.turns,
            shared_memory: self.share_memory.clone(),
        };
        Ok((JobRequest::NcclTest(job), typed))
    }
}

/// Renders it.
pub fn run(arguments: &Arguments) -> Result<Exit, CommandFailure> {
    let (request, typed) = arguments.request()?;
    arguments.pods.deliver(&request, &typed)
}
