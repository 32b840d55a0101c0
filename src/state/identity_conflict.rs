//! Why nothing of a target may be planned or changed although it answers, and what is odd about who
//! it is, for the person on call.

use super::lineage::LatestWrite;
use super::recognition::ClusterIdentity;
use super::{HostRecord, TargetRecord};
use railwright_base::quote::quote_for_shell;
use railwright_base::text::one_line;
use railwright_base::{ClusterId, Diagnostic, MachineId, Target, TargetKind, nodeset};
use railwright_resource::TargetReadFailure;
use railwright_resource::host::RunningMachine;
use railwright_resource::kubernetes_object::ownership::build_cluster_object_name;
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
    /// Something is in the place of its record that is none, or none of this target.
    UnreadableRecord {
        /// The cluster that it names all the same.
        cluster: Option<ClusterIdentity>,
        /// Why it cannot be read.
        reason: String,
        /// The name of the spec's cluster, by which a Kubernetes cluster keeps it.
        name: String,
    },
    /// Its record was written by somebody who did not know what this folder remembers of it.
    ForkedRecord {
        /// The cluster that it names: this one.
        cluster: ClusterIdentity,
        /// Its latest write.
        theirs: LatestWrite,
        /// The latest that this folder remembers.
        ours: LatestWrite,
    },
    /// It is a Kubernetes cluster, on which all that is ours bears a name that the spec's cluster
    /// has no more.
    ClusterRenamed {
        /// That name.
        before: String,
        /// The one of now.
        now: String,
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
    /// Whether taking the target over is a way on.
    pub fn may_be_taken_over(&self) -> bool {
        !matches!(
            self,
            IdentityConflict::SameMachine { .. } | IdentityConflict::ClusterRenamed { .. }
        )
    }

    /// Whether this record is still what the conflict is about.
    pub fn is_about(&self, record: &TargetRecord) -> bool {
        let named = record.cluster().map(|cluster| &cluster.id);
        match self {
            IdentityConflict::OtherCluster { theirs, .. }
            | IdentityConflict::SeveralClusters { theirs, .. } => named == Some(&theirs.id),
            IdentityConflict::UnreadableRecord { cluster, .. } => {
                *record != TargetRecord::Absent
                    && named == cluster.as_ref().map(|cluster| &cluster.id)
            }
            IdentityConflict::ForkedRecord { theirs, .. } => record
                .read()
                .is_some_and(|record| record.lineage().latest() == Some(theirs)),
            IdentityConflict::SameMachine { .. } | IdentityConflict::ClusterRenamed { .. } => false,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            IdentityConflict::OtherCluster { .. } => "RW0720",
            IdentityConflict::SeveralClusters { .. } => "RW0722",
            IdentityConflict::SameMachine { .. } => "RW0721",
            IdentityConflict::ClusterRenamed { .. } => "RW0730",
            IdentityConflict::UnreadableRecord { .. } => "RW0736",
            IdentityConflict::ForkedRecord { .. } => "RW0738",
        }
    }

    /// What is wrong, without the name of the target.
    pub fn words(&self) -> String {
        match self {
            IdentityConflict::OtherCluster { theirs, name, ours } => {
                let ours = match ours {
                    Some(id) => format!("has the id {id}"),
                    None => "has no id yet".to_owned(),
                };
                let name = one_line(name, 60);
                format!(
                    "belongs to the cluster {}, which applied to it last; `{name}` of this \
                     inventory {ours}",
                    format_cluster_identity(theirs)
                )
            }
            IdentityConflict::SeveralClusters { theirs, ids } => {
                let others = ids.iter().filter(|id| **id != theirs.id);
                let others: Vec<String> = others.map(ToString::to_string).collect();
                let others = others.join(", ");
                format!(
                    "belongs to the cluster {}, and other targets of this inventory to the same \
                     name by {others}",
                    format_cluster_identity(theirs)
                )
            }
            IdentityConflict::UnreadableRecord {
                cluster, reason, ..
            } => {
                let of = match cluster {
                    Some(cluster) => {
                        format!(" of the cluster {}", format_cluster_identity(cluster))
                    }
                    None => String::new(),
                };
                format!(
                    "keeps a record{of} that cannot be read: {}",
                    one_line(reason, 200)
                )
            }
            IdentityConflict::ForkedRecord { theirs, ours, .. } => {
                let (theirs, ours) = (&theirs.by, &ours.by);
                format!(
                    "keeps a record of run {theirs}, which did not know of run {ours} that this \
                     folder remembers"
                )
            }
            IdentityConflict::ClusterRenamed { before, now } => format!(
                "knows what is ours by the name `{}`, and the cluster is called `{}` now",
                one_line(before, 60),
                one_line(now, 60)
            ),
            IdentityConflict::SameMachine { machine, names } => {
                format!(
                    "is one machine under the names {}: machine-id {} in one boot",
                    format_target_set(names),
                    machine.machine_id
                )
            }
        }
    }

    /// As a reason why a target has no part in a plan.
    pub fn trouble(&self, target: &Target, inventory: &str) -> TargetReadFailure {
        TargetReadFailure {
            code: self.code().to_owned(),
            message: format!("{} {}", target.name, self.words()),
            shared_message: self.words(),
            next: self.next(&BTreeSet::from([target.clone()]), inventory),
        }
    }

    /// Edits and commands that go on for these targets.
    fn next(&self, targets: &BTreeSet<Target>, inventory: &str) -> Vec<String> {
        let quoted: Vec<String> = fold_targets_by_kind(targets)
            .iter()
            .map(|targets| format!("'{targets}'"))
            .collect();
        let take_over = format!(
            "railwright state take-over {inventory} {} --reason TEXT",
            quoted.join(" ")
        );
        let excluded = format!(
            "or leave it out of a plan: railwright plan {inventory} --exclude {}",
            quoted.join(" --exclude ")
        );
        match self {
            IdentityConflict::OtherCluster { theirs, name, .. } => {
                other_cluster_next(theirs, name, &take_over, excluded)
            }
            IdentityConflict::SeveralClusters { .. } => vec![
                "put the state folder back (.railwright beside the inventory): it knows which id \
                 is meant"
                    .to_owned(),
                format!(
                    "or decide host by host, with what its record says: {take_over} --keep-record"
                ),
                excluded,
            ],
            IdentityConflict::UnreadableRecord { name, .. } => {
                unreadable_next(targets, name, &take_over, excluded)
            }
            IdentityConflict::ForkedRecord { .. } => vec![
                format!(
                    "put both together, what is remembered here first: {take_over} --keep-record"
                ),
                format!("or go by what this folder remembers alone: {take_over}"),
                excluded,
            ],
            IdentityConflict::ClusterRenamed { before, .. } => vec![
                format!("call it so again: `cluster: {}`", one_line(before, 60)),
                "or, called so, take out of the spec what is brought to Kubernetes, but not \
                 `kubernetes` itself, and apply until no host is out of service; then rename it"
                    .to_owned(),
            ],
            IdentityConflict::SameMachine { .. } => {
                vec![format!(
                    "name the machine once in `nodes` of {inventory}, then railwright plan \
                     {inventory}"
                )]
            }
        }
    }

    /// Refusals of a run, one for all targets with the same trouble.
    pub fn refusals(
        conflicts: &BTreeMap<Target, IdentityConflict>,
        inventory: &str,
    ) -> Vec<Diagnostic> {
        let mut identical: BTreeMap<String, (&IdentityConflict, BTreeSet<Target>)> =
            BTreeMap::new();
        for (target, conflict) in conflicts {
            identical
                .entry(conflict.words())
                .or_insert_with(|| (conflict, BTreeSet::new()))
                .1
                .insert(target.clone());
        }
        let mut refusals = Vec::new();
        for (words, (conflict, targets)) in identical {
            let shown = format_target_set(&targets);
            let mut refusal = Diagnostic::error(conflict.code(), format!("{shown} {words}"))
                .on(shown)
                .effect(conflict.effect())
                .state("nothing was changed on any target");
            for next in conflict.next(&targets, inventory) {
                refusal = refusal.next(next);
            }
            refusals.push(refusal);
        }
        refusals
    }

    fn effect(&self) -> &'static str {
        match self {
            IdentityConflict::OtherCluster { .. } | IdentityConflict::SeveralClusters { .. } => {
                "two clusters would remove each other's files and settings in turn"
            }
            IdentityConflict::UnreadableRecord { .. } => {
                "another cluster may have applied to it last; what is to be rolled back there is \
                 known from the record"
            }
            IdentityConflict::ForkedRecord { .. } => {
                "whichever of the two was taken, what the other one applied would be forgotten, \
                 and never rolled back"
            }
            IdentityConflict::ClusterRenamed { .. } => {
                "nothing of it would be ours any more: it would stay for ever, and nodes that a \
                 run cordoned would stay cordoned"
            }
            IdentityConflict::SameMachine { .. } => {
                "it would be changed, and taken out of service, once under each name"
            }
        }
    }
}

/// Keeping the record goes on only where the other cluster has the spec's name: then it may be this
/// one, whose state was lost.
fn other_cluster_next(
    theirs: &ClusterIdentity,
    name: &str,
    take_over: &str,
    excluded: String,
) -> Vec<String> {
    let mut next = vec![format!(
        "take it out of this inventory, or work from the folder of {}",
        format_cluster_identity(theirs)
    )];
    if theirs.name == name {
        next.push(format!(
            "if the state of `{}` was lost here, with what its records say: {take_over} \
             --keep-record",
            one_line(name, 60)
        ));
    }
    next.push(format!(
        "or take it over; what the other cluster brought stays, and is not managed: {take_over}"
    ));
    next.push(excluded);
    next
}

/// A host keeps what could not be read when it is taken over; of a cluster's Secret the user has to
/// keep it.
fn unreadable_next(
    targets: &BTreeSet<Target>,
    name: &str,
    take_over: &str,
    excluded: String,
) -> Vec<String> {
    let mut next = vec!["look whether a newer railwright wrote it: then use that one".to_owned()];
    if targets.iter().any(|target| target.kind == TargetKind::Kube) {
        let secret = quote_for_shell(&build_cluster_object_name(name));
        next.push(format!(
            "keep it, and take it away: kubectl -n kube-system get secret {secret} -o yaml \
             >record.yaml && kubectl -n kube-system delete secret {secret}"
        ));
    }
    if targets.iter().any(|target| target.kind != TargetKind::Kube) {
        next.push(format!(
            "set it aside and go by what this folder remembers: {take_over}"
        ));
    }
    next.push(excluded);
    next
}

fn format_cluster_identity(cluster: &ClusterIdentity) -> String {
    format!("`{}` (id {})", one_line(&cluster.name, 60), cluster.id)
}

/// As a command line takes them, one for each kind of target: `host/h[1-2]`.
fn fold_targets_by_kind(targets: &BTreeSet<Target>) -> Vec<String> {
    let mut of_kind: BTreeMap<TargetKind, Vec<&str>> = BTreeMap::new();
    for target in targets {
        of_kind.entry(target.kind).or_default().push(&target.name);
    }
    of_kind
        .iter()
        .map(|(kind, names)| format!("{}/{}", kind.word(), nodeset::fold_node_set(names)))
        .collect()
}

fn format_target_set(targets: &BTreeSet<Target>) -> String {
    fold_targets_by_kind(targets).join(" and ")
}

/// The cluster was called otherwise when it was last written down.
pub(super) fn warn_cluster_renamed(before: &str, cluster: &ClusterIdentity) -> Diagnostic {
    Diagnostic::warning(
        "RW0725",
        format!(
            "the cluster was called `{}` before, and is called {} now",
            one_line(before, 60),
            format_cluster_identity(cluster)
        ),
    )
    .effect(
        "its id is the same: it is this cluster under another name, and all that is remembered \
         stays",
    )
    .state("nothing was changed; the records take the new name with the next apply")
    .next("if it is another cluster, give its inventory a folder without `.railwright`")
}

/// The target had another name when its record was written, on this machine.
pub(super) fn warn_renamed_target(target: &Target, former_name: &str) -> Diagnostic {
    let (former_name, kind) = (one_line(former_name, 80), target.kind.word());
    let told = Diagnostic::warning(
        "RW0737",
        format!("{target} was called `{former_name}` when it was applied to last"),
    )
    .on(target.to_string())
    .effect("it is the same machine: what was applied under that name is remembered under this one")
    .state("nothing was changed; the record takes the new name with the next apply");
    match target.kind {
        TargetKind::Host => told,
        _ => told.next(format!(
            "what this folder remembers of {kind}/{former_name} stays until railwright state \
             forget drops it; railwright state list shows it"
        )),
    }
}

/// Several machines have one machine-id.
pub(super) fn warn_cloned_machine_id(machine: &MachineId, hosts: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0724",
        format!("several machines have the machine-id {machine}: {hosts}"),
    )
    .on(format!("host/{hosts}"))
    .effect(
        "they were made of one image with its machine-id; that one of them is re-installed from it \
         goes unnoticed, and DHCP may give them one address",
    )
    .state("they are told apart by their boots; nothing was changed")
    .next(
        "on each but one: rm -f /etc/machine-id /var/lib/dbus/machine-id && \
         systemd-machine-id-setup, then a reboot",
    )
}

/// A record that was written on another machine, and came with its image or its disk.
pub(super) fn warn_foreign_record(
    target: &Target,
    of_record: &MachineId,
    now: &MachineId,
) -> Diagnostic {
    Diagnostic::warning(
        "RW0726",
        format!(
            "the record on {} is left out: it is of the machine {of_record}, and this is {now}",
            target.name
        ),
    )
    .on(target.to_string())
    .effect("what stood on the other machine before our first change is not put back on this one")
    .state("nothing was changed; the record is written anew by the next apply")
    .next(
        "an image for hosts should be made without /var/lib/railwright and with an empty \
         /etc/machine-id",
    )
}

/// A target keeps an older record than it is known to have kept.
pub(super) fn warn_put_back(target: &Target, record: &HostRecord) -> Diagnostic {
    let (run, at) = (one_line(&record.run, 40), one_line(&record.at, 40));
    Diagnostic::warning(
        "RW0739",
        format!(
            "{} was put back to how it was after run {run}, {at}: it keeps the record of then",
            target.name
        ),
    )
    .on(target.to_string())
    .effect(
        "what was changed since is gone, and what was undone since is there again: the plan \
         says what differs",
    )
    .state(
        "nothing was changed; what the record knows and this folder does not is undone with \
         the next apply, unless the spec declares it",
    )
    .next(
        "a snapshot or a backup of its disk was put back, or /var/lib/railwright alone: whoever \
         did so knows which",
    )
}

/// Hosts were re-installed, for commands that show no plan.
pub fn warn_reinstalled_hosts(hosts: &BTreeMap<Target, usize>) -> Option<Diagnostic> {
    if hosts.is_empty() {
        return None;
    }
    let (targets, count): (BTreeSet<Target>, usize) =
        (hosts.keys().cloned().collect(), hosts.values().sum());
    let targets = format_target_set(&targets);
    Some(
        Diagnostic::warning(
            "RW0723",
            format!("{targets} was re-installed since the last apply: it has another machine-id"),
        )
        .on(targets.clone())
        .effect(format!(
            "{count} resources that were applied to the machine before are set aside; nothing of \
             it is put back"
        ))
        .state("nothing was changed")
        .next("the next apply brings what the spec says to the new machine, and remembers that"),
    )
}
