//! Whose the targets are, and which machines: decided from what they report of themselves, before
//! anything of them is planned or changed. Pure.

use super::identity_conflict::IdentityConflict;
use super::lineage::Descent;
use super::{ClusterState, HostRecord, TakeOver, TargetRecord};
use railwright_base::{ClusterId, Diagnostic, MachineId, Target, TargetKind, nodeset};
use railwright_plan::IdentityFindings;
use railwright_resource::Observation;
use railwright_resource::host::{MachineIdReading, RunningMachine};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A cluster as the state and the records name it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ClusterIdentity {
    /// Random, made once.
    pub id: ClusterId,
    /// Its name in the spec when this was written.
    pub name: String,
}

/// What a target reports of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetIdentity {
    /// The installation.
    pub machine_id: MachineIdReading,
    /// The boot that it is in.
    pub boot_id: Option<String>,
    /// The machine that runs, where that is known.
    pub running: Option<RunningMachine>,
    /// What was applied to it, as it remembers it itself.
    pub record: TargetRecord,
}

/// What came of recognizing the targets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recognition {
    /// Targets of which nothing may be planned or changed.
    pub conflicts: BTreeMap<Target, IdentityConflict>,
    /// Hosts that are another machine than the one that is remembered, with the number of resources
    /// that were set aside.
    pub reinstalled: BTreeMap<Target, usize>,
    /// Hosts whose machines were remembered under another name, with these.
    pub renamed: BTreeMap<Target, MachineId>,
    /// Some target remembered more than this side.
    pub merged: bool,
    /// What is odd and no obstacle.
    pub warnings: Vec<Diagnostic>,
}

impl Recognition {
    /// No answer is shown of targets that must not be touched: their trouble stands in front of
    /// them.
    pub fn mark(&self, observation: &mut Observation, inventory: &str) {
        for (target, conflict) in &self.conflicts {
            if let Some(found) = observation.targets.get_mut(target) {
                found.problem = Some(conflict.trouble(target, inventory));
            }
        }
    }

    /// Takes the marks away again.
    pub fn unmark(&self, observation: &mut Observation) {
        for target in self.conflicts.keys() {
            observation
                .targets
                .get_mut(target)
                .into_iter()
                .for_each(|found| found.problem = None);
        }
    }

    /// What a plan has to know of it; `inventory` is named in commands.
    pub fn findings(&self, cluster: Option<&ClusterIdentity>, inventory: &str) -> IdentityFindings {
        let refused = self
            .conflicts
            .iter()
            .map(|(target, conflict)| (target.clone(), conflict.trouble(target, inventory)));
        IdentityFindings {
            cluster_id: cluster.map(|cluster| cluster.id.clone()),
            refused: refused.collect(),
            reinstalled: self.reinstalled.clone(),
            renamed: self.renamed.clone(),
        }
    }
}

impl ClusterState {
    /// Compares what the targets report of themselves with what is remembered, and takes over what
    /// only they remember: the cluster's id where this side has none, and newer records. What was
    /// remembered of another machine is set aside.
    pub fn recognize(
        &mut self,
        name: &str,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> Recognition {
        let mut found = Recognition {
            conflicts: same_machines(seen),
            ..Recognition::default()
        };
        for (id, names) in cloned_machines(seen) {
            let names = nodeset::fold_node_set(&names);
            let warning = super::identity_conflict::warn_cloned_machine_id(id, &names);
            found.warnings.push(warning);
            self.cloned.insert(id.clone());
        }
        found.warnings.extend(self.rename_cluster(name, seen));
        if let Some(ours) = self.cluster.as_ref().filter(|ours| ours.name != name) {
            for target in seen.keys().filter(|target| target.kind == TargetKind::Kube) {
                let (before, now) = (ours.name.clone(), name.to_owned());
                let conflict = IdentityConflict::ClusterRenamed { before, now };
                found.conflicts.insert(target.clone(), conflict);
            }
        }
        self.follow_outages(seen);
        self.note_power_cycles(seen);
        let renames = self.follow_renames(seen);
        found.merged = !renames.former.is_empty();
        for (target, former) in &renames.former {
            let warning = super::identity_conflict::warn_renamed_target(target, former);
            found.warnings.push(warning);
            if let Some(identity) = seen.get(target)
                && let Some(machine) = identity.machine_id.known()
            {
                found.renamed.insert(target.clone(), machine.clone());
            }
        }
        found.reinstalled.extend(renames.set_aside);
        let several = self.take_over_id(name, seen);
        for (target, identity) in seen {
            let conflict = self.find_cluster_conflict(identity, name, &several);
            if let Some(conflict) = conflict.or_else(|| self.find_fork(target, identity)) {
                found.conflicts.entry(target.clone()).or_insert(conflict);
            }
            if !found.conflicts.contains_key(target) {
                let is_renamed = renames.former.contains_key(target);
                self.remember(target, identity, is_renamed, &mut found);
            }
        }
        found
    }

    /// The id that the records of this name agree on, where this side has none; all of them where
    /// they do not agree.
    fn take_over_id(
        &mut self,
        name: &str,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> BTreeSet<ClusterId> {
        let records = seen.values().filter_map(|identity| identity.record.read());
        let ids: BTreeSet<ClusterId> = records
            .filter(|record| record.cluster.name == name)
            .map(|record| record.cluster.id.clone())
            .collect();
        match (&self.cluster, ids.len()) {
            (None, 1) => {
                self.cluster = ids.into_iter().next().map(|id| ClusterIdentity {
                    id,
                    name: name.to_owned(),
                })
            }
            (None, _) => return ids,
            (Some(_), _) => {}
        }
        BTreeSet::new()
    }

    fn find_cluster_conflict(
        &self,
        identity: &TargetIdentity,
        name: &str,
        several: &BTreeSet<ClusterId>,
    ) -> Option<IdentityConflict> {
        let theirs = identity.record.cluster().cloned();
        match (&self.cluster, theirs) {
            (_, None) => find_unreadable_record(identity, name),
            (Some(ours), Some(theirs)) if ours.id == theirs.id => {
                find_unreadable_record(identity, name)
            }
            (None, Some(theirs)) if theirs.name == name && several.len() > 1 => {
                Some(IdentityConflict::SeveralClusters {
                    theirs,
                    ids: several.clone(),
                })
            }
            (ours, Some(theirs)) => Some(IdentityConflict::OtherCluster {
                theirs,
                name: name.to_owned(),
                ours: ours.as_ref().map(|ours| ours.id.clone()),
            }),
        }
    }

    /// The record was written by somebody who did not know what is remembered here of this machine.
    fn find_fork(&self, target: &Target, identity: &TargetIdentity) -> Option<IdentityConflict> {
        let record = identity.record.read()?;
        let (now, known) = (
            identity.machine_id.known(),
            self.machines.get(&*target.name),
        );
        if are_two(now, known)
            || record.is_of_another(now)
            || self.descent(record) != Descent::Forked
        {
            return None;
        }
        let ours = self.lineages.get(&*target.name)?.latest()?.clone();
        Some(IdentityConflict::ForkedRecord {
            cluster: record.cluster.clone(),
            theirs: record.lineage().latest()?.clone(),
            ours,
        })
    }

    /// The cluster has another name in the spec than when it was last written down. It keeps its
    /// name while something of ours on Kubernetes bears it, or a node that a run left may.
    fn rename_cluster(
        &mut self,
        name: &str,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> Option<Diagnostic> {
        let is_kube = |target: &Target| target.kind == TargetKind::Kube;
        let mut remembered = self.last_applied.resources.keys();
        let may_be_cordoned = !self.outages.is_empty() && seen.keys().any(is_kube);
        if may_be_cordoned || remembered.any(|address| is_kube(&address.target)) {
            return None;
        }
        let ours = self.cluster.as_mut().filter(|ours| ours.name != name)?;
        let before = std::mem::replace(&mut ours.name, name.to_owned());
        Some(super::identity_conflict::warn_cluster_renamed(
            &before, ours,
        ))
    }

    fn remember(
        &mut self,
        target: &Target,
        identity: &TargetIdentity,
        is_renamed: bool,
        found: &mut Recognition,
    ) {
        let now = identity.machine_id.known();
        if let Some(machine) = now {
            if self.was_given_an_id(target, machine, &identity.record) {
                let name = target.name.to_string();
                self.machines.insert(name, machine.clone());
                return;
            }
            if let Some(count) = self.settle_machine(&target.name, machine)
                && count > 0
            {
                found.reinstalled.insert(target.clone(), count);
            }
        }
        let TargetRecord::Read {
            record,
            former_name,
        } = &identity.record
        else {
            return;
        };
        let warnings = &mut found.warnings;
        if let (Some(now), Some(of_record)) = (now, &record.machine)
            && now != of_record
        {
            warnings.push(super::identity_conflict::warn_foreign_record(
                target, of_record, now,
            ));
            return;
        }
        let is_put_back = self.descent(record) == Descent::PutBack;
        if is_put_back {
            warnings.push(super::identity_conflict::warn_put_back(target, record));
        }
        let is_news = self.merge(record);
        if let Some(name) = former_name
            && is_news
            && !is_renamed
        {
            warnings.push(super::identity_conflict::warn_renamed_target(target, name));
        }
        found.merged |= is_news || is_put_back;
    }

    /// One of several with one machine-id got another one, as RW0724 says: it keeps the record that
    /// this side knows, and was not re-installed.
    fn was_given_an_id(&self, target: &Target, now: &MachineId, record: &TargetRecord) -> bool {
        let before = self
            .machines
            .get(&*target.name)
            .filter(|before| *before != now && self.cloned.contains(*before));
        let (Some(before), Some(record)) = (before, record.read()) else {
            return false;
        };
        record.machine.as_ref() == Some(before) && self.descent(record) == Descent::Known
    }

    /// Why nothing may be done to a target by what it reports of itself, whatever else is known.
    pub fn refusal(
        &self,
        name: &str,
        target: &Target,
        identity: &TargetIdentity,
    ) -> Option<IdentityConflict> {
        self.find_cluster_conflict(identity, name, &BTreeSet::new())
            .or_else(|| self.find_fork(target, identity))
    }

    /// The target is this cluster's from now on. What its record holds, where that could be read,
    /// is remembered as this cluster's where it is to be kept, beside what this side remembers of
    /// it already.
    pub fn take_over(
        &mut self,
        target: &Target,
        record: Option<&HostRecord>,
        now: Option<&MachineId>,
        keep_record: bool,
        entry: TakeOver,
    ) {
        if let Some(machine) = now {
            self.settle_machine(&target.name, machine);
        }
        let name = target.name.to_string();
        match record {
            Some(record) if keep_record => self.remember_besides(record),
            // What the other cluster brought is not managed, also where it was this one's once.
            Some(record)
                if self
                    .cluster
                    .as_ref()
                    .is_none_or(|ours| ours.id != record.cluster.id) =>
            {
                self.last_applied
                    .resources
                    .retain(|address, _| !record.resources.contains_key(address));
            }
            _ => {}
        }
        if let Some(record) = record {
            // Whoever went by that record goes on from here as well, and nobody who remembers more
            // than it says.
            self.lineages
                .entry(name.clone())
                .or_default()
                .note_tried(&record.by(), record.serial);
            self.note_outage_of(record);
        }
        self.taken_over.insert(name, entry);
    }

    /// What is remembered of a host is about this machine from now on. The number of resources that
    /// were remembered of another one, and are set aside; nothing where it is the same or none was
    /// known.
    pub fn settle_machine(&mut self, host: &str, machine: &MachineId) -> Option<usize> {
        let before = self.machines.insert(host.to_owned(), machine.clone())?;
        if before == *machine {
            return None;
        }
        let count = self.last_applied.resources.len();
        self.last_applied
            .resources
            .retain(|address, _| *address.target.name != *host);
        self.lineages.remove(host);
        self.taken_over.remove(host);
        Some(count - self.last_applied.resources.len())
    }
}

/// Whether these are two machines, as far as both are known.
pub(super) fn are_two(one: Option<&MachineId>, other: Option<&MachineId>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// A record that cannot be read, or that was written under another name and not provably on this
/// machine.
fn find_unreadable_record(identity: &TargetIdentity, name: &str) -> Option<IdentityConflict> {
    let reason = match &identity.record {
        TargetRecord::Unreadable { reason, .. } => reason.clone(),
        TargetRecord::Read {
            record,
            former_name: Some(former_name),
        } if record.machine.is_none() || identity.machine_id.known().is_none() => {
            format!(
                "it was written under the name `{former_name}`, and no machine-id tells whether \
                 that was this machine"
            )
        }
        TargetRecord::Read { .. } | TargetRecord::Absent => return None,
    };
    Some(IdentityConflict::UnreadableRecord {
        cluster: identity.record.cluster().cloned(),
        reason,
        name: name.to_owned(),
    })
}

/// Targets that are one running machine under several names.
fn same_machines(seen: &BTreeMap<Target, TargetIdentity>) -> BTreeMap<Target, IdentityConflict> {
    let mut names: BTreeMap<&RunningMachine, BTreeSet<&Target>> = BTreeMap::new();
    for (target, identity) in seen {
        if let Some(machine) = &identity.running {
            names.entry(machine).or_default().insert(target);
        }
    }
    let mut conflicts = BTreeMap::new();
    for (machine, targets) in names {
        if targets.len() < 2 {
            continue;
        }
        let conflict = IdentityConflict::SameMachine {
            machine: machine.clone(),
            names: targets.iter().map(|target| (*target).clone()).collect(),
        };
        for target in targets {
            conflicts.insert(target.clone(), conflict.clone());
        }
    }
    conflicts
}

/// Ids that several running machines have, with the names of the hosts: they were made of one image
/// with its machine-id, and are distinguished by their boots alone.
fn cloned_machines(seen: &BTreeMap<Target, TargetIdentity>) -> BTreeMap<&MachineId, Vec<&str>> {
    let mut hosts: BTreeMap<&MachineId, (BTreeSet<&RunningMachine>, Vec<&str>)> = BTreeMap::new();
    for (target, identity) in seen {
        if let Some(running) = &identity.running
            && target.kind == TargetKind::Host
        {
            let (machines, names) = hosts.entry(&running.machine_id).or_default();
            machines.insert(running);
            names.push(&target.name);
        }
    }
    hosts.retain(|_, (machines, _)| machines.len() > 1);
    let hosts = hosts.into_iter();
    hosts.map(|(id, (_, names))| (id, names)).collect()
}
