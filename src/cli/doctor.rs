//! `railwright doctor`: why a job did not go, from its log alone.

use super::job::ladder::{self, Trials};
use super::job::{Piece, Said, acs_of, words};
use super::{Exit, Failure, inventory};
use crate::doctor::{self, Doctor, Symptom};
use crate::report::job::diagnosis;
use crate::report::out;
use crate::verify::nccl::{Expected, Proven};

/// Say why a job did not go: the first cause in its log, layer by layer from the host to the fabric, and the next command
///
/// Knows lines of NCCL, nccl-tests, PyTorch, MPI, perftest, the kernel, device plugins and operators, and events of Kubernetes: give it
/// what there is, in one file. Ends with 1 where it finds a cause, with 0 where the log proves that RDMA was used and shows nothing wrong,
/// and with 3 where it finds nothing. `docs/symptoms.md` lists what it knows.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    said: Said,
    /// Make trials, each with one thing more than the one before, and name the first that fails: RDMA between the hosts, NCCL's tests in pods with
    /// the network of their host, on the pod network without RDMA, and with it. Jobs are submitted with this image, and taken away again
    #[arg(long, group = "said", requires = "inventory", requires = "image")]
    ladder: bool,
    #[command(flatten)]
    trials: Trials,
    /// The log is of pods of Alibaba Container Compute Service, with GPUs of this model; without a model, by what the log says.
    /// What the inventory says unless given
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    acs: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Diagnoses.
pub async fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let (true, Some(inventory)) = (arguments.ladder, &arguments.said.inventory) {
        return ladder::run(&arguments.trials, inventory, &arguments.said.namespace, arguments.json).await;
    }
    let inventory = arguments.said.inventory.as_deref().map(inventory::read).transpose()?;
    let acs = acs_of(arguments.acs.as_deref(), inventory.as_ref())?;
    let mut doctor = Doctor::new(symptoms()?);
    let feed = |piece: Piece<'_>| match piece {
        Piece::Log(chunk) | Piece::Status(chunk) => doctor.feed(chunk),
    };
    let name = arguments.said.read(feed).await?;
    let words = words(&arguments.said, arguments.acs.as_deref());
    let expected = Expected { acs, ..Expected::of(&name, &words) };
    let diagnosis = doctor.finish(&expected);
    out::print(&if arguments.json { diagnosis::json(&diagnosis, &name) } else { diagnosis::screen(&diagnosis, &name, &words) });
    Ok(match (diagnosis.found.is_empty(), diagnosis.proof.proven) {
        (false, _) => Exit::Failed,
        (true, Proven::Proven) => Exit::Done,
        (true, _) => Exit::Incomplete,
    })
}

/// The symptoms that come with railwright.
pub fn symptoms() -> Result<Vec<Symptom>, Failure> {
    doctor::load().map_err(|(problems, sources)| Failure::from(problems).with_sources(&sources))
}

/// What `explain` says of a symptom.
pub fn page(symptom: &Symptom) -> String {
    let next: String = symptom.next.iter().map(|next| format!("- {next}\n")).collect();
    let case: String = symptom.case.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "# {}\n\nLayer: {}. {}.\n\nWhat it means: {}.\n\nWhat to do:\n\n{next}\nA log that shows it:\n\n{case}\nSource: {}\n",
        symptom.title,
        symptom.layer.word(),
        capital(&symptom.cause),
        symptom.means,
        symptom.source.trim()
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
