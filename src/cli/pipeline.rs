//! The way that most commands share: inventory and modules to wishes, hosts (or a recording) to an
//! observation, both with the state to a plan.

use super::inventory::{self, Inventory};
use super::outside::NotOpened;
use super::question::{ObservedTargets, observe_targets};
use super::subject::{self, KnownSubjects};
use super::{CommandFailure, recording, wishes};
use railwright_base::text::{format_count, one_line};
use railwright_base::{Address, Diagnostic, Target, WorkTreeState, nodeset};
use railwright_knowledge::module::context::{self, KEY_IS_ABSENT};
use railwright_knowledge::module::{DesiredState, Texts};
use railwright_knowledge::rules::RulesReport;
use railwright_knowledge::solve;
use railwright_plan::{
    self as plan, ClusterNodes, GateCoverage, Header, HostsWithoutSsh, Plan, PlanInputs, PlanNode,
    PlanSelection, RolloutPolicy,
};
use railwright_report as report;
use railwright_resource::{Observation, kind_named};
use railwright_state::{ClusterLock, ClusterState, StateFolder, run_status};
use railwright_system::clock;
use railwright_transport::{HostAccess, Secrets, TargetContact, TransportError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Where observations come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservationSource {
    /// From the targets, now.
    Live(TargetContact),
    /// From a file that `facts` wrote; no target is contacted.
    Recorded(PathBuf),
    /// From nobody: the command is about the spec, or the state, alone.
    Nobody,
}

/// An inventory with all that it wishes for.
pub struct PreparedInventory {
    /// The inventory.
    pub inventory: Inventory,
    /// The wishes of its modules and its workloads.
    pub desired: DesiredState,
    /// Where railwright remembers.
    pub folder: StateFolder,
    /// Every target, in the spec's order.
    pub targets: Vec<Target>,
    /// What the rules say of the spec.
    pub judgement: RulesReport,
    /// The releases that were chosen, by group of hosts.
    pub answers: solve::SolverAnswers,
    /// Texts of files that the spec refers to, as they were used.
    pub texts: Texts,
    /// What was recorded, if it was.
    pub recorded: Option<Observation>,
    /// Targets are contacted.
    pub(super) contact: Option<TargetContact>,
    /// The wishes of which something stands for a signing key that is not there.
    keyless: BTreeSet<Address>,
    /// Hosts are also asked what they are made of, of which nothing is wished.
    pub(super) asks_hardware: bool,
    /// Asked for when they are needed.
    pub(super) secrets: Mutex<Option<Arc<Secrets>>>,
}

/// Reads inventory and modules. With a recording, files that are not here (a repository's key) come
/// from it.
pub fn prepare_inventory(
    path: &Path,
    source: &ObservationSource,
) -> Result<PreparedInventory, CommandFailure> {
    prepare_with_warnings(path, source, |prepared| {
        prepared.has_keys().map(|()| prepared)
    })
}

/// Prepares an inventory for a command that may leave hosts alone. Signing keys that are not there
/// are an error only where a step needs one, which [`plan_inventory`] and
/// [`PreparedInventory::may_carry`] check.
pub fn prepare_partly(
    path: &Path,
    source: &ObservationSource,
) -> Result<PreparedInventory, CommandFailure> {
    prepare_with_warnings(path, source, Ok)
}

/// Says what looks wrong of the inventory. What ends the command says it by itself.
fn prepare_with_warnings(
    path: &Path,
    source: &ObservationSource,
    accept: impl FnOnce(PreparedInventory) -> Result<PreparedInventory, CommandFailure>,
) -> Result<PreparedInventory, CommandFailure> {
    let inventory = inventory::read_inventory(path)?;
    let (warnings, sources) = (inventory.warnings.clone(), inventory.loaded.sources.clone());
    let prepared = of_inventory(inventory, source, None).and_then(accept);
    let at = |diagnostic: &Diagnostic| {
        diagnostic
            .labels
            .first()
            .map(|label| (label.file.clone(), label.span.clone()))
    };
    let ends = |warning: &Diagnostic| {
        let failed = prepared
            .as_ref()
            .err()
            .into_iter()
            .flat_map(|failure| &failure.diagnostics);
        failed
            .filter(|failed| failed.code == KEY_IS_ABSENT)
            .any(|failed| at(failed) == at(warning))
    };
    let warnings: Vec<Diagnostic> = warnings
        .into_iter()
        .filter(|warning| !ends(warning))
        .collect();
    let of_modules = prepared
        .as_ref()
        .map(|prepared| &prepared.desired.warnings[..])
        .unwrap_or_default();
    let look = report::out::ScreenStyle::of_stderr();
    for told in [&warnings[..], of_modules] {
        if !told.is_empty() && !matches!(source, ObservationSource::Recorded(_)) {
            report::out::print_note(&report::diagnostic::render_diagnostics(
                told, &sources, look,
            ));
        }
    }
    prepared
}

/// Somebody names a host that nobody may log in to.
pub fn no_ssh(host: &str, inventory: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1041",
        format!(
            "{} has no SSH: the spec says `ssh: none` of it",
            one_line(host, 60)
        ),
    )
    .on(format!("host/{}", one_line(host, 60)))
    .effect(
        "nothing is planned for it and nothing is asked of it; what is known of it is what its \
         cluster tells of its node",
    )
    .state("nothing was changed")
    .next(format!(
        "railwright plan {inventory} shows the cluster's own steps, and which modules such hosts \
         go without"
    ))
    .next("where the host can be reached after all, say so in its group: `ssh: { user: root }`")
}

/// Prepares an inventory for a command that only records what hosts say, or asks no host. Signing
/// keys that are not there yet are no error: no host is asked by them, and the recording has none
/// of them.
pub fn prepare_to_record(
    path: &Path,
    source: &ObservationSource,
) -> Result<PreparedInventory, CommandFailure> {
    of_inventory(inventory::read_inventory(path)?, source, None)
}

/// Prepares an inventory for a command about one host that contacts no target and changes nothing.
/// Resources of other hosts are not computed, and files that are not there yet are no error.
pub fn prepare_host(path: &Path, name: &str) -> Result<PreparedInventory, CommandFailure> {
    of_inventory(
        inventory::read_inventory(path)?,
        &ObservationSource::Nobody,
        Some(name),
    )
}

/// Prepares an inventory for a command that changes hosts, or starts something on them. An identity
/// that may only read is refused before any target is contacted.
pub fn prepare_to_act(
    path: &Path,
    contact: TargetContact,
) -> Result<PreparedInventory, CommandFailure> {
    no_reader(prepare_inventory(path, &ObservationSource::Live(contact))?)
}

/// Prepares an inventory for a command that applies a plan, which may be of a cluster alone. An
/// identity that may only read is refused before any target is contacted.
pub fn prepare_to_carry_out(
    path: &Path,
    contact: TargetContact,
) -> Result<PreparedInventory, CommandFailure> {
    no_reader(prepare_partly(path, &ObservationSource::Live(contact))?)
}

fn no_reader(prepared: PreparedInventory) -> Result<PreparedInventory, CommandFailure> {
    let of_a_reader = prepared
        .inventory
        .accesses()
        .find(|access| access.read_only && access.cluster.is_none());
    match of_a_reader {
        Some(HostAccess {
            name: host, user, ..
        }) => Err(CommandFailure::refused(vec![
            TransportError::ReadOnly { host, user }.diagnostic(),
        ])),
        None => Ok(prepared),
    }
}

/// Prepares an inventory once more for the hosts themselves, without the warnings that were printed
/// the first time.
pub fn prepare_again(
    path: &Path,
    contact: TargetContact,
    read_as: Option<String>,
) -> Result<PreparedInventory, CommandFailure> {
    let prepared = of_inventory(
        inventory::read_inventory(path)?,
        &ObservationSource::Live(contact),
        None,
    )?;
    prepared.has_keys()?;
    Ok(prepared.read_as(read_as))
}

/// Where a signing key is not there, a text stands for it; [`PreparedInventory::has_keys`] tells.
fn of_inventory(
    mut inventory: Inventory,
    source: &ObservationSource,
    only: Option<&str>,
) -> Result<PreparedInventory, CommandFailure> {
    let (recorded, contact) = open_observation_source(source)?;
    let texts = read_texts(&inventory, recorded.as_ref(), contact)?;
    let filled = wishes::with_stand_ins(&inventory, texts.clone());
    let narrowed = only.map(|name| inventory.loaded.only(name));
    let asked = narrowed.as_ref().unwrap_or(&inventory.loaded);
    let today = compute_waiver_day(recorded.as_ref());
    let (workloads, unrendered) = inventory.workloads(&today);
    let (judgement, answers) =
        inventory
            .knowledge
            .judge(&inventory.loaded, asked, &workloads, &today);
    let after_rules = |failure: CommandFailure| {
        failure.after(
            judgement.errors(),
            &inventory.knowledge.sources(&inventory.loaded.sources),
        )
    };
    unrendered.map_or(Ok(()), Err).map_err(after_rules)?;
    let desired =
        wishes::compute_desired_resources(&inventory, asked, &workloads, &answers, &filled)
            .map_err(after_rules)?;
    let keyless = wishes::of_absent_keys(
        &inventory,
        asked,
        &workloads,
        &answers,
        &texts,
        &desired.wishes,
    )?;
    if inventory.origin.commit.is_some() && wishes::has_local_chart(&desired.wishes) {
        inventory.origin.dirty = inventory.origin.dirty.max(WorkTreeState::Unknown);
    }
    Ok(PreparedInventory {
        folder: StateFolder::beside(&inventory.folder),
        targets: inventory.loaded.targets().collect(),
        inventory,
        desired,
        judgement,
        answers,
        texts,
        recorded,
        contact,
        keyless,
        asks_hardware: false,
        secrets: Mutex::default(),
    })
}

/// The recording, where observations come from one, and how targets are contacted, where they are.
fn open_observation_source(
    source: &ObservationSource,
) -> Result<(Option<Observation>, Option<TargetContact>), CommandFailure> {
    Ok(match source {
        ObservationSource::Live(contact) => (None, Some(*contact)),
        ObservationSource::Recorded(file) => (Some(recording::read_recording(file)?), None),
        ObservationSource::Nobody => (None, None),
    })
}

/// The files that the spec refers to: those of the recording, and over them those that are here.
fn read_texts(
    inventory: &Inventory,
    recorded: Option<&Observation>,
    contact: Option<TargetContact>,
) -> Result<Texts, CommandFailure> {
    let mut texts = recorded.map(|r| r.texts.clone()).unwrap_or_default();
    texts.extend(wishes::read_referenced_files(inventory, contact)?);
    Ok(texts)
}

/// The day by which waivers are judged, in UTC: a recording's own day, so that its plan does not
/// change with time.
fn compute_waiver_day(recorded: Option<&Observation>) -> String {
    let now = recorded.map_or_else(clock::read_current_time, |recorded| {
        recorded.recorded_at.clone()
    });
    now.get(..10).unwrap_or_default().to_owned()
}

impl PreparedInventory {
    /// Hosts are read as this user, if one is named.
    pub fn read_as(mut self, user: Option<String>) -> Self {
        self.inventory.read_as = user;
        self
    }

    /// Hosts are also asked what they are made of, so that those of a class can be compared.
    pub fn with_hardware(mut self) -> Self {
        self.asks_hardware = true;
        self
    }

    /// Whether every signing key is there. What stands for one is neither planned for a host nor
    /// brought to it.
    pub fn has_keys(&self) -> Result<(), CommandFailure> {
        let loaded = &self.inventory.loaded;
        let absent = context::collect_repositories(loaded, &self.texts).err();
        let is_closed = |key: &str| {
            matches!(
                self.inventory.find(key),
                Err(NotOpened::Outside | NotOpened::Hidden)
            )
        };
        let closed = self.contact.is_none()
            && loaded
                .spec
                .repositories
                .iter()
                .any(|repository| is_closed(&repository.key));
        let told = |absent: Diagnostic| match closed {
            true => absent.effect(
                "no target is contacted here, so a key that lies outside the inventory, or hidden \
                 in it, is not opened",
            ),
            false => absent,
        };
        absent.map_or(Ok(()), |absent| {
            let absent: Vec<Diagnostic> = absent.into_iter().map(told).collect();
            let sources = self.inventory.knowledge.sources(&loaded.sources);
            Err(CommandFailure::of_input(absent, &loaded.sources)
                .after(self.judgement.errors(), &sources))
        })
    }

    /// Whether every signing key is there that a step of the plan needs.
    pub fn may_carry(&self, plan: &Plan) -> Result<(), CommandFailure> {
        let needs_key = plan
            .nodes
            .iter()
            .flat_map(PlanNode::members)
            .any(|member| self.keyless.contains(&member.wish.address));
        if needs_key { self.has_keys() } else { Ok(()) }
    }

    /// The limits of the spec, for as many hosts as it has.
    pub fn rollout(&self) -> RolloutPolicy {
        RolloutPolicy::of(&self.inventory.loaded)
    }

    /// What a gate has to prove in this cluster.
    fn proof(&self) -> GateCoverage {
        let has_rails = self
            .inventory
            .loaded
            .reached()
            .any(|host| !host.netdevs.is_empty());
        let runs_nccl = self
            .inventory
            .loaded
            .spec
            .rollout
            .gate
            .as_ref()
            .is_some_and(|gate| gate.nccl.is_some());
        match (has_rails, runs_nccl) {
            (true, true) => GateCoverage::RdmaAndNccl,
            (true, false) => GateCoverage::Rdma,
            (false, true) => GateCoverage::Nccl,
            (false, false) if self.desired.checks.is_empty() => GateCoverage::Nothing,
            (false, false) => GateCoverage::ModuleChecks,
        }
    }

    /// The hosts without SSH, by the modules that would be for them.
    pub fn no_ssh(&self) -> Vec<HostsWithoutSsh> {
        let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for one in self
            .desired
            .left_out
            .iter()
            .filter(|one| one.is_for_want_of_ssh())
        {
            modules.entry(&one.host).or_default().insert(&one.module);
        }
        let mut hosts: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
        for host in self.inventory.loaded.without_ssh() {
            hosts
                .entry(modules.remove(host).unwrap_or_default())
                .or_default()
                .push(host);
        }
        let one = |(modules, hosts): (BTreeSet<&str>, Vec<&str>)| HostsWithoutSsh {
            hosts: nodeset::fold_node_set(&hosts),
            modules: modules.into_iter().map(str::to_owned).collect(),
        };
        hosts.into_iter().map(one).collect()
    }

    /// The addresses of these texts of a command line.
    pub fn named(&self, texts: &[String]) -> Result<Vec<String>, CommandFailure> {
        let addresses = self.addresses(texts)?;
        let of_host = |address: &String| {
            address
                .strip_prefix("host/")
                .and_then(|rest| rest.split('/').next().map(str::to_owned))
        };
        match addresses.iter().filter_map(of_host).find(|name| {
            self.inventory
                .loaded
                .host(name)
                .is_some_and(|host| host.ssh.is_none())
        }) {
            Some(host) => Err(no_ssh(&host, &self.inventory.word).into()),
            None => Ok(addresses),
        }
    }

    /// The addresses of these texts of a command line; hosts without SSH may be named too.
    pub(super) fn addresses(&self, texts: &[String]) -> Result<Vec<String>, CommandFailure> {
        let resources = || -> Result<BTreeSet<String>, Diagnostic> {
            let state = ClusterState::load(&self.folder)?;
            let wished = self.desired.wishes.iter().map(|wish| &wish.address);
            Ok(wished
                .chain(state.last_applied.resources.keys())
                .map(ToString::to_string)
                .collect())
        };
        subject::resolve_subjects(
            texts,
            &KnownSubjects {
                targets: &self.targets,
                resources: &resources,
            },
        )
    }
}

/// The plan, with the observation and the state that it was made of.
pub async fn plan_inventory(
    prepared: &PreparedInventory,
    selection: PlanSelection,
) -> Result<(Plan, ClusterState), CommandFailure> {
    if selection.is_everything() {
        prepared.has_keys()?;
    }
    let ObservedTargets {
        observation,
        state,
        wishes,
        recognition,
    } = observe_targets(prepared).await?;
    let loaded = &prepared.inventory.loaded;
    let plan = plan::make_plan(&PlanInputs {
        header: Header {
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: loaded.spec.cluster.clone(),
            inventory: prepared.inventory.origin.clone(),
            spec_digest: loaded.digest.clone(),
            modules: prepared.desired.digests.clone(),
            proof: prepared.proof(),
            waived: prepared.judgement.waived.clone(),
            no_ssh: prepared.no_ssh(),
        },
        wishes: &wishes,
        last: &state.last_applied,
        outages: &state.outages,
        observation: &observation,
        identity: &recognition.findings(state.cluster.as_ref(), &prepared.inventory.word),
        kinds: &kind_named,
        targets: &prepared.targets,
        nodes: ClusterNodes::of(loaded),
        rollout: prepared.rollout(),
        selection,
    })
    .map_err(|diagnostics| CommandFailure::from(diagnostics).with_sources(&loaded.sources))?;
    prepared.may_carry(&plan)?;
    Ok((plan, state))
}

/// Says on stderr when the newest run is over and left steps of which nobody knows how they ended,
/// with the command that goes on with it; gives back the first half: `run r0034 was interrupted
/// with 1 step open`. Nothing while the run goes on.
pub fn tell_left_open(prepared: &PreparedInventory) -> Result<Option<String>, CommandFailure> {
    let folder = &prepared.folder;
    let Some(run) = folder.newest_run()? else {
        return Ok(None);
    };
    let open = run_status::fold_journal_records(&folder.read_journal(&run)?.records).open();
    if open == 0 || ClusterLock::is_held(folder)? {
        return Ok(None);
    }
    let left = format!(
        "run {run} was interrupted with {} open",
        format_count(open, "step")
    );
    report::out::print_note(&format!(
        "{left}: railwright resume {}",
        prepared.inventory.word
    ));
    Ok(Some(left))
}

/// A file of this machine that cannot be read or written.
pub fn file_problem(file: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("RW1010", format!("{}: {error}", file.display()))
        .state("no target was changed")
        .next("check the path and its permissions")
}
