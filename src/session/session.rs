//! An inventory with all that it desires, before any target was looked at.

use super::SessionError;
use super::inventory::Inventory;
use super::inventory_file::NotOpened;
use railwright_base::{Address, Diagnostic, Target, nodeset};
use railwright_knowledge::module::context;
use railwright_knowledge::module::{DesiredState, Texts};
use railwright_knowledge::rules::RulesReport;
use railwright_knowledge::solve;
use railwright_plan::{GateCoverage, HostsWithoutSsh, Plan, PlanNode, RolloutPolicy};
use railwright_resource::Observation;
use railwright_state::StateFolder;
use railwright_transport::{Secrets, TargetContact};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// An inventory with the resources that it desires.
pub struct Session {
    /// The inventory.
    pub inventory: Inventory,
    /// What its modules and its workloads desire.
    pub desired: DesiredState,
    /// Where railwright remembers.
    pub folder: StateFolder,
    /// Every target, in the spec's order.
    pub targets: Vec<Target>,
    /// What the rules say of the spec.
    pub evaluation: RulesReport,
    /// The releases that were chosen, by group of hosts.
    pub answers: solve::SolverAnswers,
    /// Texts of files that the spec refers to, as they were used.
    pub texts: Texts,
    /// What was recorded, if it was.
    pub recorded: Option<Observation>,
    /// Targets are contacted.
    pub contact: Option<TargetContact>,
    /// The resources in which something stands for a signing key that is not there.
    pub(crate) keyless: BTreeSet<Address>,
    /// Hosts are also asked what they are made of, of which nothing is desired.
    pub(crate) asks_hardware: bool,
    /// Asked for when they are needed.
    pub(crate) secrets: Mutex<Option<Arc<Secrets>>>,
}

impl Session {
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
    pub fn check_signing_keys(&self) -> Result<(), SessionError> {
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
            Err(SessionError::of_input(absent, &loaded.sources)
                .after(self.evaluation.errors(), &sources))
        })
    }

    /// Whether every signing key is there that a step of the plan needs.
    pub fn check_plan_keys(&self, plan: &Plan) -> Result<(), SessionError> {
        let needs_key = plan
            .nodes
            .iter()
            .flat_map(PlanNode::members)
            .any(|member| self.keyless.contains(&member.resource.address));
        if needs_key {
            self.check_signing_keys()
        } else {
            Ok(())
        }
    }

    /// The limits of the spec, for as many hosts as it has.
    pub fn rollout(&self) -> RolloutPolicy {
        RolloutPolicy::of(&self.inventory.loaded)
    }

    /// What a gate has to prove in this cluster.
    pub fn proof(&self) -> GateCoverage {
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

    /// Refuses a spec of which the rules find errors.
    pub fn check_rules(&self) -> Result<(), SessionError> {
        match self.evaluation.errors() {
            errors if errors.is_empty() => Ok(()),
            errors => Err(SessionError::of_input(
                errors,
                &self
                    .inventory
                    .knowledge
                    .sources(&self.inventory.loaded.sources),
            )),
        }
    }
}
