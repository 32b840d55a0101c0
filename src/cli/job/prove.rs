//! `railwright job prove`: whether the log of a job proves that RDMA was used.

use super::cluster::{self, Cluster};
use super::said::{Piece, Said};
use super::{nics, prove_ray, prove_traffic};
use crate::base::Diagnostic;
use crate::base::suggest::nearest;
use crate::base::text::one_line;
use crate::catalog::{self, Catalog};
use crate::cli::inventory::{self, Inventory};
use crate::cli::{Exit, Failure};
use crate::job::JobKind;
use crate::report::{diagnostic, job, out};
use crate::spec::Sources;
use crate::spec::model::FabricKind;
use crate::verify::nccl::{self, AcsNic, Decoder, Expected, Proven};
use std::collections::BTreeSet;
use std::path::Path;

/// Prove from the log of a job that it used RDMA, and how fast: NCCL's own lines, nccl-tests, progress of a training
///
/// Reads the log only, and with `--traffic` the counters of hosts. Of a RayCluster, which has no such log, it looks into every pod and sends RDMA traffic between two of them for some seconds. Run the job with NCCL_DEBUG=INFO, so that NCCL says what it uses. Ends with 0 where the log proves it, with 1 where
/// it disproves it, and with 3 where it does not say enough.
#[derive(Debug, clap::Args)]
pub struct Prove {
    #[command(flatten)]
    said: Said,
    /// What the NICs of one node carry together, in Gb/s; the largest messages are held against it. What the inventory says unless given
    #[arg(long, value_name = "GBPS", value_parser = gbps)]
    expect_gbps: Option<f64>,
    /// The least share of it that proves the bandwidth, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=100))]
    least_percent: u32,
    /// The log is of pods of Alibaba Container Compute Service, with GPUs of this model: `hpn0` counts there, and with a NIC of type 2
    /// (P16EN) no line of NET/IB is demanded. Without a model, by what the log says. What the inventory says unless given
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    acs: Option<String>,
    /// Without GPUDirect RDMA nothing is proven
    #[arg(long)]
    require_gpudirect: bool,
    /// While the job runs, look for so many seconds at the counters of the rails of the hosts that its pods are on: every one of them has to carry
    /// data in both directions
    #[arg(long, value_name = "SECONDS", conflicts_with = "log", value_parser = clap::value_parser!(u64).range(2..=3600))]
    traffic: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn gbps(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|gbps: &f64| gbps.is_finite() && *gbps > 0.0 && *gbps <= 1e6);
    number.ok_or_else(|| "a number of Gb/s above 0, such as 400 for two NICs of 200".to_owned())
}

/// Proves.
pub async fn run(arguments: &Prove) -> Result<Exit, Failure> {
    let inventory = arguments.said.inventory.as_deref().map(inventory::read).transpose()?;
    let mut traffic = None;
    if let Some(named) = arguments.said.named() {
        let cluster = Cluster::of(&named.place.inventory).await?;
        let found = cluster::one(&cluster.reader(), &named).await?;
        if found.kind == JobKind::Ray {
            return prove_ray::run(&cluster, &found, &named.place, arguments.json).await;
        }
        if let (Some(seconds), Some(inventory)) = (arguments.traffic, &inventory) {
            traffic = Some(prove_traffic::seen(inventory, &cluster, &found, seconds).await?);
        }
    }
    let acs = acs_of(arguments.acs.as_deref(), inventory.as_ref())?;
    let mut decoder = Decoder::default();
    let of_logs = |piece: Piece<'_>| {
        if let Piece::Log(chunk) = piece {
            decoder.feed(chunk);
        }
    };
    let name = arguments.said.read(of_logs).await?;
    let log = decoder.finish();
    let mut expected = Expected {
        node_gbps: arguments.expect_gbps,
        source: "--expect-gbps".to_owned(),
        least_percent: arguments.least_percent,
        acs,
        needs_gpudirect: arguments.require_gpudirect,
        traffic,
        log: name,
        words: words(&arguments.said, arguments.acs.as_deref()),
    };
    // Pods of Container Compute Service have no host whose NICs could be added up.
    if let Some(inventory) = inventory.as_ref().filter(|_| arguments.expect_gbps.is_none() && acs.is_none()) {
        match nics::node_gbps(inventory, &log.hosts()) {
            Ok(gbps) => (expected.node_gbps, expected.source) = (Some(gbps), format!("the NICs of {}", one_line(&inventory.path, 80))),
            Err(unknown) => out::note(&diagnostic::text(&[unknown], &Sources::default(), out::Look::of_stderr())),
        }
    }
    let proof = nccl::judge(&log, &expected);
    out::print(&if arguments.json { job::json(&log, &proof, &expected) } else { job::screen(&log, &proof, &expected) });
    Ok(match proof.proven {
        Proven::Proven => Exit::Done,
        Proven::Disproven => Exit::Failed,
        Proven::NotKnown => Exit::Incomplete,
    })
}

/// The words by which a command that goes on judges the same in the same way.
pub fn words(said: &Said, acs: Option<&str>) -> String {
    let acs = acs.map(|model| if model.is_empty() { " --acs".to_owned() } else { format!(" --acs={}", one_line(model, 40)) });
    said.words() + &acs.unwrap_or_default()
}

/// A log that cannot be read.
pub fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    let name = if path == Path::new("-") { "the standard input".to_owned() } else { one_line(&path.display().to_string(), 80) };
    Diagnostic::error("RW1214", format!("the log {name} cannot be read: {error}"))
        .state("nothing was judged")
        .next("name the file of a log, or pipe one in: kubectl logs POD | railwright job prove --log -")
}

/// The type of NIC that a log is judged with: by the model that was said, else by what the inventory says.
pub fn acs_of(said: Option<&str>, inventory: Option<&Inventory>) -> Result<Option<AcsNic>, Failure> {
    let spec = inventory.map(|inventory| &inventory.loaded.spec).filter(|spec| spec.fabric.kind == FabricKind::Acs);
    let of_spec = spec.map(|spec| {
        let of_jobs = spec.jobs.acs.iter().map(|pod| pod.model.as_str());
        let models: BTreeSet<&str> = of_jobs.chain(spec.workloads.iter().filter_map(|workload| workload.model.as_deref())).collect();
        // Of several models nobody knows which one the log is of.
        models.first().copied().filter(|_| models.len() == 1).unwrap_or_default()
    });
    said.or(of_spec).map(nic_of).transpose()
}

/// The type of NIC of a GPU model of Alibaba Container Compute Service.
fn nic_of(model: &str) -> Result<AcsNic, Failure> {
    if model.is_empty() {
        return Ok(AcsNic::Unsaid);
    }
    let catalog: Catalog = catalog::load("", []).map_err(|problems| Failure::from(problems.diagnostics).with_sources(&problems.sources))?;
    let rows = || catalog.acs.entries().map(|entry| &entry.row);
    match rows().find(|row| row.name.eq_ignore_ascii_case(model)).map(|row| row.nic_type) {
        Some(2) => Ok(AcsNic::Type2),
        Some(_) => Ok(AcsNic::Type1),
        None => {
            let near = nearest(model, rows().map(|row| row.name.as_str()));
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let unknown = Diagnostic::error("RW1215", format!("the catalogue has no GPU model `{}` of ACS{hint}", one_line(model, 40)));
            Err(unknown.state("nothing was judged").next("railwright catalog acs lists them; --acs without a model goes by the log").into())
        }
    }
}
