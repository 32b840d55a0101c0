//! Why nothing of a target may be planned or changed although it answers, and what is odd about who it is, for the person on
//! call.

use super::recognition::ClusterIdentity;
use crate::base::text::one_line;
use crate::base::{ClusterId, Diagnostic, MachineId, Target, TargetKind, nodeset};
use crate::resource::Trouble;
use crate::resource::host::RunningMachine;
use std::collections::{BTreeMap, BTreeSet};

/// Why nothing of a target may be planned or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityConflict {
    /// Another cluster applied to it last.
    OtherCluster {
        /// Which.
        theirs: ClusterIdentity,
        /// The name of the spec's cluster.
        name: String,
        /// The id of the spec's cluster, where it has one yet.
        ours: Option<ClusterId>,
    },
    /// This side has no id yet, and the records of the spec's cluster name several.
    SeveralClusters {
        /// What this target's record names.
        theirs: ClusterIdentity,
        /// All of them.
        ids: BTreeSet<ClusterId>,
    },
    /// It is one machine under several names.
    SameMachine {
        /// The machine.
        machine: RunningMachine,
        /// All its names in the spec.
        names: BTreeSet<Target>,
    },
}

impl IdentityConflict {
    /// The cluster that has to be taken over from, where that is a way on.
    pub fn other_cluster(&self) -> Option<&ClusterIdentity> {
        match self {
            IdentityConflict::OtherCluster { theirs, .. } | IdentityConflict::SeveralClusters { theirs, .. } => Some(theirs),
            IdentityConflict::SameMachine { .. } => None,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            IdentityConflict::OtherCluster { .. } => "RW0720",
            IdentityConflict::SeveralClusters { .. } => "RW0722",
            IdentityConflict::SameMachine { .. } => "RW0721",
        }
    }

    /// What is wrong, without the name of the target.
    fn words(&self) -> String {
        match self {
            IdentityConflict::OtherCluster { theirs, name, ours } => {
                let ours = ours.as_ref().map_or_else(|| "has no id yet".to_owned(), |id| format!("has the id {id}"));
                let name = one_line(name, 60);
                format!("belongs to the cluster {}, which applied to it last; `{name}` of this inventory {ours}", named(theirs))
            }
            IdentityConflict::SeveralClusters { theirs, ids } => {
                let others: Vec<String> = ids.iter().filter(|id| **id != theirs.id).map(ToString::to_string).collect();
                let others = others.join(", ");
                format!("belongs to the cluster {}, and other targets of this inventory to the same name by {others}", named(theirs))
            }
            IdentityConflict::SameMachine { machine, names } => {
                format!("is one machine under the names {}: machine-id {} in one boot", shown(names), machine.machine_id)
            }
        }
    }

    /// As a reason why a target has no part in a plan.
    pub fn trouble(&self, target: &Target, inventory: &str) -> Trouble {
        Trouble {
            code: self.code().to_owned(),
            message: format!("{} {}", target.name, self.words()),
            alike: self.words(),
            next: self.next(&BTreeSet::from([target.clone()]), inventory),
        }
    }

    /// Edits and commands that go on for these targets.
    fn next(&self, targets: &BTreeSet<Target>, inventory: &str) -> Vec<String> {
        let quoted: Vec<String> = folded(targets).iter().map(|targets| format!("'{targets}'")).collect();
        let take_over = format!("railwright state take-over {inventory} {} --reason TEXT", quoted.join(" "));
        let excluded = format!("or leave it out of a plan: railwright plan {inventory} --exclude {}", quoted.join(" --exclude "));
        match self {
            IdentityConflict::OtherCluster { theirs, name, .. } => {
                let lost =
                    format!("if the state of `{}` was lost here, with what its records say: {take_over} --keep-record", one_line(name, 60));
                let is_lost = theirs.name == *name;
                let taken = format!("or take it over; what the other cluster brought stays, and is not managed: {take_over}");
                let named = format!("take it out of this inventory, or work from the folder of {}", named(theirs));
                [named].into_iter().chain(is_lost.then_some(lost)).chain([taken, excluded]).collect()
            }
            IdentityConflict::SeveralClusters { .. } => vec![
                "put the state folder back (.railwright beside the inventory): it knows which id is meant".to_owned(),
                format!("or decide host by host, with what its record says: {take_over} --keep-record"),
                excluded,
            ],
            IdentityConflict::SameMachine { .. } => {
                vec![format!("name the machine once in `nodes` of {inventory}, then railwright plan {inventory}")]
            }
        }
    }

    /// Refusals of a run, one for all targets with the same trouble.
    pub fn refusals(conflicts: &BTreeMap<Target, IdentityConflict>, inventory: &str) -> Vec<Diagnostic> {
        let mut alike: BTreeMap<String, (&IdentityConflict, BTreeSet<Target>)> = BTreeMap::new();
        for (target, conflict) in conflicts {
            alike.entry(conflict.words()).or_insert_with(|| (conflict, BTreeSet::new())).1.insert(target.clone());
        }
        let one = |(words, (conflict, targets)): (String, (&IdentityConflict, BTreeSet<Target>))| {
            let shown = shown(&targets);
            let refusal = Diagnostic::error(conflict.code(), format!("{shown} {words}"))
                .on(shown)
                .effect(conflict.effect())
                .state("nothing was changed on any target");
            conflict.next(&targets, inventory).into_iter().fold(refusal, Diagnostic::next)
        };
        alike.into_iter().map(one).collect()
    }

    fn effect(&self) -> &'static str {
        match self {
            IdentityConflict::OtherCluster { .. } | IdentityConflict::SeveralClusters { .. } => {
                "two clusters would remove each other's files and settings in turn"
            }
            IdentityConflict::SameMachine { .. } => "it would be changed, and taken out of service, once under each name",
        }
    }
}

fn named(cluster: &ClusterIdentity) -> String {
    format!("`{}` (id {})", one_line(&cluster.name, 60), cluster.id)
}

/// As a command line takes them, one for each kind of target: `host/h[1-2]`.
fn folded(targets: &BTreeSet<Target>) -> Vec<String> {
    let mut of_kind: BTreeMap<TargetKind, Vec<&str>> = BTreeMap::new();
    for target in targets {
        of_kind.entry(target.kind).or_default().push(&target.name);
    }
    of_kind.iter().map(|(kind, names)| format!("{}/{}", kind.word(), nodeset::fold(names))).collect()
}

fn shown(targets: &BTreeSet<Target>) -> String {
    folded(targets).join(" and ")
}

/// The cluster was called otherwise when it was last written down.
pub(super) fn renamed(before: &str, cluster: &ClusterIdentity) -> Diagnostic {
    Diagnostic::warning("RW0725", format!("the cluster was called `{}` before, and is called {} now", one_line(before, 60), named(cluster)))
        .effect("its id is the same: it is this cluster under another name, and all that is remembered stays")
        .state("nothing was changed; the records take the new name with the next apply")
        .next("if it is another cluster, give its inventory a folder without `.railwright`")
}

/// Several machines have one machine-id.
pub(super) fn cloned(machine: &MachineId, hosts: &str) -> Diagnostic {
    Diagnostic::warning("RW0724", format!("several machines have the machine-id {machine}: {hosts}"))
        .on(format!("host/{hosts}"))
        .effect("they were made of one image with its machine-id; that one of them is re-installed from it goes unnoticed, and DHCP may give them one address")
        .state("they are told apart by their boots; nothing was changed")
        .next("on each but one: rm -f /etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup, then a reboot")
}

/// A record that was written on another machine, and came with its image or its disk.
pub(super) fn record_of_another_machine(target: &Target, of_record: &MachineId, now: &MachineId) -> Diagnostic {
    Diagnostic::warning("RW0726", format!("the record on {} is left out: it is of the machine {of_record}, and this is {now}", target.name))
        .on(target.to_string())
        .effect("what stood on the other machine before our first change is not put back on this one")
        .state("nothing was changed; the record is written anew by the next apply")
        .next("an image for hosts should be made without /var/lib/railwright and with an empty /etc/machine-id")
}

/// Hosts were re-installed, for commands that show no plan.
pub fn reinstalled(hosts: &BTreeMap<Target, usize>) -> Option<Diagnostic> {
    if hosts.is_empty() {
        return None;
    }
    let (targets, count): (BTreeSet<Target>, usize) = (hosts.keys().cloned().collect(), hosts.values().sum());
    let targets = shown(&targets);
    Some(
        Diagnostic::warning("RW0723", format!("{targets} was re-installed since the last apply: it has another machine-id"))
            .on(targets.clone())
            .effect(format!("{count} resources that were applied to the machine before are set aside; nothing of it is put back"))
            .state("nothing was changed")
            .next("the next apply brings what the spec says to the new machine, and remembers that"),
    )
}
