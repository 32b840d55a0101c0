//! What the log of a job is checked against, by options and by an inventory: `job prove` and
//! `doctor` evaluate a log in one way.

use super::nics;
use super::said::JobOutputArguments;
use crate::cli::CommandFailure;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Reason, quote};
use railwright_knowledge::catalog::{self, Catalog};
use railwright_knowledge::spec::model::{FabricKind, Spec};
use railwright_knowledge::spec::nccl::LEAST_PERCENT;
use railwright_session::Inventory;
use railwright_verify::nccl::{AcsNic, NcclExpectations, NcclLog};
use std::collections::BTreeSet;

/// What is expected of it.
#[derive(Debug, Clone, clap::Args)]
pub struct JobExpectationArguments {
    /// What the NICs of one node carry together, Gb/s; the largest messages are compared with it.
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

/// What a log is checked against: the options of the command line, and what the inventory says.
#[derive(Debug, Clone)]
pub struct JobExpectations<'a> {
    against: &'a JobExpectationArguments,
    inventory: Option<&'a Inventory>,
    acs: Option<AcsNic>,
    /// The words by which a command that goes on finds the log, and evaluates it in the same way.
    pub words: String,
}

impl JobExpectationArguments {
    /// With an inventory, where there is one.
    pub fn of<'a>(
        &'a self,
        said: &JobOutputArguments,
        inventory: Option<&'a Inventory>,
    ) -> Result<JobExpectations<'a>, CommandFailure> {
        let mut words = said.words();
        if let Some(gbps) = self.expect_gbps {
            words += &format!(" --expect-gbps {gbps}");
        }
        if self.least_percent != LEAST_PERCENT {
            words += &format!(" --least-percent {}", self.least_percent);
        }
        match self.acs.as_deref() {
            Some("") => words += " --acs",
            Some(model) => {
                let model = one_line(model, 40);
                words += &format!(" --acs={}", quote::quote_word_if_needed(&model));
            }
            None => {}
        }
        Ok(JobExpectations {
            against: self,
            inventory,
            acs: find_acs_nic(self.acs.as_deref(), inventory)?,
            words,
        })
    }
}

impl JobExpectations<'_> {
    /// What a log is checked against; `note` hears why the NICs of an inventory could not be added
    /// up.
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
        if expected.node_gbps.is_none()
            && self.acs.is_none()
            && let Some(inventory) = self.inventory
        {
            nics::set_expected_bandwidth(&mut expected, inventory, &log.hosts())
                .unwrap_or_else(note);
        }
        expected
    }
}

fn parse_gbps(text: &str) -> Result<f64, Reason> {
    let number = text
        .parse()
        .ok()
        .filter(|gbps: &f64| (0.001..=1e6).contains(gbps));
    number.ok_or_else(|| {
        "a number of Gb/s from 0.001 to 1000000, such as 400 for two NICs of 200".into()
    })
}

/// The type of NIC that a log is checked with: by the model that was given, else by what the
/// inventory says.
fn find_acs_nic(
    model: Option<&str>,
    inventory: Option<&Inventory>,
) -> Result<Option<AcsNic>, CommandFailure> {
    if let Some(model) = model {
        return Ok(Some(nic_of_model(model)?));
    }
    match inventory.map(|inventory| &inventory.loaded.spec) {
        Some(spec) if spec.fabric.kind == FabricKind::Acs => {
            Ok(Some(nic_of_model(find_single_model(spec))?))
        }
        _ => Ok(None),
    }
}

/// The GPU model of a spec; empty where it has several, of which the log may be of any.
fn find_single_model(spec: &Spec) -> &str {
    let mut models: BTreeSet<&str> = BTreeSet::new();
    models.extend(spec.jobs.acs.iter().map(|pod| pod.model.as_str()));
    let workloads = spec.workloads.iter();
    models.extend(workloads.filter_map(|workload| workload.model.as_deref()));
    match models.first() {
        Some(&model) if models.len() == 1 => model,
        _ => "",
    }
}

/// The type of NIC of a GPU model of Alibaba Container Compute Service.
fn nic_of_model(model: &str) -> Result<AcsNic, CommandFailure> {
    if model.is_empty() {
        return Ok(AcsNic::Unsaid);
    }
    let catalog: Catalog = catalog::load_catalog("", []).map_err(|problems| {
        CommandFailure::from(problems.diagnostics).with_sources(&problems.sources)
    })?;
    let mut names: Vec<&str> = Vec::new();
    for entry in catalog.acs.entries() {
        if entry.content.name.eq_ignore_ascii_case(model) {
            return Ok(match entry.content.nic_type {
                2 => AcsNic::Type2,
                _ => AcsNic::Type1,
            });
        }
        names.push(&entry.content.name);
    }
    let hint = match find_nearest_word(model, names) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    let shown = one_line(model, 40);
    let message = format!("the catalogue has no GPU model `{shown}` of ACS{hint}");
    Err(Diagnostic::error("RW1215", message)
        .state("nothing was checked")
        .next("railwright catalog acs lists them; --acs without a model goes by the log")
        .into())
}
