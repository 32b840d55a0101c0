//! `railwright doctor`: why a job did not go, from its log alone.

use super::job::ladder::{self, Trials};
use super::job::{JobExpectationArguments, JobOutputArguments, JobOutputPiece};
use super::{CommandFailure, Exit};
use railwright_jobs::doctor::{self, Doctor, Symptom};
use railwright_report::job::diagnosis;
use railwright_report::out;
use railwright_session::read_inventory;
use railwright_verify::nccl::JobVerdict;

/// Say why a job did not go: the first cause in its log, layer by layer from the host to the
/// fabric, and the next command
///
/// Knows lines of NCCL, nccl-tests, PyTorch, MPI, perftest, the kernel, device plugins and
/// operators, and events of Kubernetes: give it what there is, in one file. Ends with 1 where it
/// finds a cause, with 0 where the log proves that RDMA was used and shows nothing wrong, and with
/// 3 where it finds nothing. `docs/symptoms.md` lists what it knows.
#[derive(Debug, clap::Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    said: JobOutputArguments,
    /// Make trials, each with one thing more than the one before, and name the first that fails:
    /// RDMA between the hosts, NCCL's tests in pods with the network of their host, on the pod
    /// network without RDMA, and with it. Jobs are submitted with this image, and taken away again
    #[arg(long, group = "said", requires = "inventory", requires = "image")]
    ladder: bool,
    #[command(flatten)]
    trials: Trials,
    #[command(flatten)]
    against: JobExpectationArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Diagnoses.
pub async fn run(arguments: &DoctorArguments) -> Result<Exit, CommandFailure> {
    if let (true, Some(inventory)) = (arguments.ladder, &arguments.said.inventory) {
        return ladder::run_trials(
            &arguments.trials,
            inventory,
            &arguments.said.namespace,
            arguments.json,
        )
        .await;
    }
    let inventory = arguments
        .said
        .inventory
        .as_deref()
        .map(read_inventory)
        .transpose()?;
    let expectations = arguments.against.of(&arguments.said, inventory.as_ref())?;
    let mut doctor = Doctor::new(load_shipped_symptoms()?);
    let name = arguments
        .said
        .read(|piece| match piece {
            JobOutputPiece::Log(chunk) | JobOutputPiece::Status(chunk) => doctor.feed(chunk),
        })
        .await?;
    // Where nobody knows what NICs carry, bandwidth is no symptom.
    let diagnosis = doctor.finish(|log| expectations.expected(&name, log, drop));
    out::print_result(&if arguments.json {
        diagnosis::render_diagnosis_json(&diagnosis, &name)
    } else {
        diagnosis::render_diagnosis_screen(&diagnosis, &name, &expectations.words)
    });
    Ok(
        match (diagnosis.found.is_empty(), diagnosis.proof.verdict) {
            (false, _) => Exit::Failed,
            (true, JobVerdict::Passed) if diagnosis.job_goes() => Exit::Done,
            (true, _) => Exit::Incomplete,
        },
    )
}

/// The symptoms that come with railwright.
pub fn load_shipped_symptoms() -> Result<Vec<Symptom>, CommandFailure> {
    doctor::load_symptoms()
        .map_err(|(problems, sources)| CommandFailure::from(problems).with_sources(&sources))
}

/// What `explain` says of a symptom.
pub fn render_symptom_page(symptom: &Symptom) -> String {
    let next: String = symptom
        .next
        .iter()
        .map(|next| format!("- {next}\n"))
        .collect();
    let on_acs = symptom.on_acs.as_ref().map_or(String::new(), |told| {
        let next: String = told.next.iter().map(|next| format!("- {next}\n")).collect();
        format!(
            "On Alibaba Container Compute Service: {}.\n\n{next}\n",
            told.cause
        )
    });
    let against = match (symptom.against.gbps, symptom.against.acs) {
        (Some(gbps), _) => format!(", compared with {gbps} Gb/s of a node (--expect-gbps)"),
        (None, true) => ", of a pod of Alibaba Container Compute Service (--acs)".to_owned(),
        (None, false) => String::new(),
    };
    let case: String = symptom
        .case
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    format!(
        "# {}\n\
         \n\
         Layer: {}. {}.\n\
         \n\
         What it means: {}.\n\
         \n\
         What to do:\n\
         \n\
         {next}\n\
         {on_acs}A log that shows it{against}:\n\
         \n\
         {case}\n\
         Source: {}\n",
        symptom.title,
        symptom.layer.word(),
        capitalize_first(&symptom.cause),
        symptom.means,
        symptom.source.trim()
    )
}

fn capitalize_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        format!("{}{}", first.to_uppercase(), letters.as_str())
    })
}
