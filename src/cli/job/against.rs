//! What the log of a job is held against, by options and by an inventory: `job prove` and `doctor`
//! judge the same in the same way.

use super::nics;
use super::said::JobOutputArguments;
use crate::cli::CommandFailure;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_knowledge::catalog::{self, Catalog};
use railwright_knowledge::spec::model::FabricKind;
use railwright_knowledge::spec::nccl::LEAST_PERCENT;
use railwright_session::Inventory;
use railwright_verify::nccl::{AcsNic, NcclExpectations, NcclLog};
use std::collections::BTreeSet;

/// What is said of it.
#[derive(Debug, Clone, clap::Args)]
pub struct JobExpectationArguments {
    /// What the NICs of one node carry together, in Gb/s; the largest messages are held against it.
    /// What the inventory says unless given
    #[arg(long, value_name = "GBPS", value_parser = parse_gbps)]
    expect_gbps: Option<f64>,
    /// The least share of it that proves the bandwidth, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = LEAST_PERCENT,
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    least_percent: u32,
    /// The log is of pods of Alibaba Container Compute Service, with GPUs of this model: `hpn0`
    /// counts there, and with a NIC of type 2 (P16EN) no line of NET/IB is demanded. Without a
    /// model, by what the log says. What the inventory says unless given
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    acs: Option<String>,
}

/// What a log is held against: the options of the command line, and what the inventory says.
#[derive(Debug, Clone)]
pub struct JobExpectations<'a> {
    against: &'a JobExpectationArguments,
    inventory: Option<&'a Inventory>,
    acs: Option<AcsNic>,
    /// The words by which a command that goes on finds the log, and judges it in the same way.
    pub words: String,
}

impl JobExpectationArguments {
    /// With an inventory, where there is one.
    pub fn of<'a>(
        &'a self,
        said: &JobOutputArguments,
        inventory: Option<&'a Inventory>,
    ) -> Result<JobExpectations<'a>, CommandFailure> {
        let gbps = self
            .expect_gbps
            .map(|gbps| format!(" --expect-gbps {gbps}"));
        let least = Some(self.least_percent)
            .filter(|percent| *percent != LEAST_PERCENT)
            .map(|percent| format!(" --least-percent {percent}"));
        let acs = self.acs.as_ref().map(|model| match model.as_str() {
            "" => " --acs".to_owned(),
            model => format!(
                " --acs={}",
                quote::quote_word_if_needed(&one_line(model, 40))
            ),
        });
        let words = [Some(said.words()), gbps, least, acs]
            .into_iter()
            .flatten()
            .collect();
        Ok(JobExpectations {
            against: self,
            inventory,
            acs: acs_of(self.acs.as_deref(), inventory)?,
            words,
        })
    }
}

impl JobExpectations<'_> {
    /// What a log is held against; `note` hears why the NICs of an inventory could not be added up.
    pub fn expected(
        &self,
        name: &str,
        log: &NcclLog,
        note: impl FnOnce(Diagnostic),
    ) -> NcclExpectations {
        let mut expected = NcclExpectations {
            node_gbps: self.against.expect_gbps,
            source: "--expect-gbps".to_owned(),
            least_percent: self.against.least_percent,
            acs: self.acs,
            ..NcclExpectations::of(name, self.words.as_str())
        };
        // Pods of Container Compute Service have no host whose NICs could be added up.
        if let Some(inventory) = self
            .inventory
            .filter(|_| expected.node_gbps.is_none() && self.acs.is_none())
        {
            nics::set_expected_bandwidth(&mut expected, inventory, &log.hosts())
                .unwrap_or_else(note);
        }
        expected
    }
}

fn parse_gbps(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|gbps: &f64| (0.001..=1e6).contains(gbps));
    number.ok_or_else(|| {
        "a number of Gb/s from 0.001 to 1000000, such as 400 for two NICs of 200".to_owned()
    })
}

/// The type of NIC that a log is judged with: by the model that was said, else by what the
/// inventory says.
fn acs_of(
    said: Option<&str>,
    inventory: Option<&Inventory>,
) -> Result<Option<AcsNic>, CommandFailure> {
    let spec = inventory
        .map(|inventory| &inventory.loaded.spec)
        .filter(|spec| spec.fabric.kind == FabricKind::Acs);
    let of_spec = spec.map(|spec| {
        let of_jobs = spec.jobs.acs.iter().map(|pod| pod.model.as_str());
        let models: BTreeSet<&str> = of_jobs
            .chain(
                spec.workloads
                    .iter()
                    .filter_map(|workload| workload.model.as_deref()),
            )
            .collect();
        // Of several models nobody knows which one the log is of.
        models
            .first()
            .copied()
            .filter(|_| models.len() == 1)
            .unwrap_or_default()
    });
    said.or(of_spec).map(nic_of).transpose()
}

/// The type of NIC of a GPU model of Alibaba Container Compute Service.
fn nic_of(model: &str) -> Result<AcsNic, CommandFailure> {
    if model.is_empty() {
        return Ok(AcsNic::Unsaid);
    }
    let catalog: Catalog = catalog::load_catalog("", []).map_err(|problems| {
        CommandFailure::from(problems.diagnostics).with_sources(&problems.sources)
    })?;
    let rows = || catalog.acs.entries().map(|entry| &entry.row);
    match rows()
        .find(|row| row.name.eq_ignore_ascii_case(model))
        .map(|row| row.nic_type)
    {
        Some(2) => Ok(AcsNic::Type2),
        Some(_) => Ok(AcsNic::Type1),
        None => {
            let near = find_nearest_word(model, rows().map(|row| row.name.as_str()));
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let unknown = Diagnostic::error(
                "RW1215",
                format!(
                    "the catalogue has no GPU model `{}` of ACS{hint}",
                    one_line(model, 40)
                ),
            );
            Err(unknown
                .state("nothing was judged")
                .next("railwright catalog acs lists them; --acs without a model goes by the log")
                .into())
        }
    }
}
