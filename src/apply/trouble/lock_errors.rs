//! What keeps a run from a host or a cluster that it is to work on: it answers and is not fit for
//! it, or its lock cannot be had.

use super::{NextCommands, describe_untouched_target};
use crate::lock_steal::HeldLock;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Target, TargetKind};
use railwright_resource::kubernetes_object::access::PREVIEWS_ALONE;
use railwright_state::LockHolder;
use railwright_state::journal_writer::JournalError;
use railwright_state::lock::SILENCE_LIMIT_S;
use railwright_system::identity::ProcessLiveness;
use railwright_transport::TargetAccess;

/// What is locked, and where its lock is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedTarget {
    /// A host or a cluster.
    pub target: Target,
    /// The Lease that is a cluster's lock; a host has files.
    lease: Option<String>,
}

impl LockedTarget {
    /// What is reached this way.
    pub fn of(access: &TargetAccess) -> Self {
        let lease = access
            .cluster()
            .map(|cluster| format!("kube-system/{}", cluster.keeps));
        LockedTarget {
            target: access.target(),
            lease,
        }
    }

    /// A host without more to say of it.
    pub fn host(name: &str) -> Self {
        LockedTarget {
            target: Target::host(name),
            lease: None,
        }
    }

    /// Where the highest fencing number stands that was seen there.
    pub fn fence(&self) -> String {
        match &self.lease {
            Some(lease) => format!(
                "the annotation railwright.io/fence of the Lease {lease}, or of the Secret of the \
                 same name"
            ),
            None => "/var/lib/railwright/fence on it".to_owned(),
        }
    }
}

/// A host or a cluster answers, and cannot be worked on.
pub fn not_workable(target: &Target, reason: &str, next: &NextCommands) -> Diagnostic {
    let word = target.kind.noun();
    let effect = match target.kind {
        TargetKind::Kube => "what needs it is not begun; nothing of the plan is done on it",
        TargetKind::Host | TargetKind::Switch => {
            "it counts as out of service; nothing of the plan is done on it"
        }
    };
    Diagnostic::error(
        "RW0615",
        format!("the {word} cannot be worked on: {}", one_line(reason, 300)),
    )
    .on(target.to_string())
    .effect(effect)
    .state(describe_untouched_target(&target.to_string()))
    .next(format!(
        "fix the cause on the {word}, then {}",
        next.resume()
    ))
}

/// It is another machine than the one that the run began on.
pub fn report_reinstalled_target(target: &Target, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0723",
        format!(
            "{} was re-installed since the run began: it has another machine-id",
            target.name
        ),
    )
    .on(target.to_string())
    .effect("its steps were planned for the machine before, and what was done to that is lost")
    .state("nothing more of the plan is done on it; a host counts as out of service")
    .next(format!(
        "{} shows what is to be done on the new machine",
        next.plan()
    ))
}

/// Somebody else works on it.
pub fn report_locked_target(target: &Target, held: &HeldLock, next: &NextCommands) -> Diagnostic {
    let word = target.kind.noun();
    let who = match held.life {
        ProcessLiveness::Alive => format!("{}, which lives on this machine", held.describe()),
        _ => format!("{}, seen alive {} s ago", held.describe(), held.age_s),
    };
    Diagnostic::error(
        "RW0608",
        format!("the {word} is being changed from elsewhere: {who}"),
    )
    .on(target.to_string())
    .effect(format!(
        "two runs on one {word} would undo each other's steps"
    ))
    .state(nothing_changed(target))
    .next(format!(
        "wait until that run ends, then make a new plan: {}",
        next.plan()
    ))
    .next(format!(
        "if that run is dead: `railwright resume` of its inventory where it was started; or, once \
         it was silent for {SILENCE_LIMIT_S} s, railwright lock steal {} --reason TEXT",
        next.inventory
    ))
}

/// The state where a lock was not had: they are taken before the first change.
fn nothing_changed(target: &Target) -> &'static str {
    match target.kind {
        TargetKind::Kube => "nothing was changed on the cluster or on any host",
        TargetKind::Host | TargetKind::Switch => "nothing was changed on any host",
    }
}

/// The lock is no longer ours.
pub fn lock_lost(target: &Target, holder: Option<&str>) -> Diagnostic {
    let word = target.kind.noun();
    let who = match holder {
        Some(line) => match LockHolder::parse(line) {
            Some(holder) => format!("{} has it", holder.describe()),
            None => format!("`{}` has it", one_line(line, 120)),
        },
        None => format!(
            "it was taken away (`railwright lock steal`) or removed, or the {word} was recreated"
        ),
    };
    Diagnostic::error(
        "RW0631",
        format!("the {word}'s lock is no longer this run's: {who}"),
    )
    .on(target.to_string())
    .effect(format!(
        "somebody may have taken this run for dead and be changing the {word} now"
    ))
    .state(format!(
        "nothing more was written on this {word}, its record included; what was done on it before \
         stands"
    ))
    .next(
        "find out who took it: `railwright lock list`, and the journal of the run that has it now",
    )
    .next(format!(
        "then make a new plan: the {word} may no longer be as this run left it"
    ))
}

/// That locks were to be taken away could not be written down.
pub fn steal_not_recorded(error: &JournalError) -> Diagnostic {
    Diagnostic::error(
        "RW0709",
        one_line(&error.to_string(), 300),
    )
    .effect("nobody could tell later who took the locks away, and why")
    .state("no lock of a host or a cluster was taken away")
    .next(
        "make space or fix the disk that holds the state folder, then run the same command again",
    )
}

/// The lock could not be taken for another reason: a host is left alone, and without a cluster no
/// run begins.
pub fn lock_failed(of: &LockedTarget, reason: &str, next: &NextCommands) -> Diagnostic {
    let word = of.target.kind.noun();
    let (state, next) = match &of.lease {
        Some(_) if reason.contains(PREVIEWS_ALONE) => return held_to_previews(of, reason),
        Some(lease) => (
            nothing_changed(&of.target),
            format!(
                "see that the Lease {lease} may be written ({} has the rules); then run the same \
                 command again",
                next.rbac()
            ),
        ),
        None => (
            describe_untouched_target(&of.target.to_string()),
            format!(
                "fix that on the {word} (it keeps its lock in /var/lib/railwright, which root writes \
                 with flock), then {}, or the same command again where no run began",
                next.resume()
            ),
        ),
    };
    Diagnostic::error(
        "RW0609",
        format!(
            "the {word}'s lock cannot be taken: {}",
            one_line(reason, 200)
        ),
    )
    .on(of.target.to_string())
    .effect(format!(
        "without it two runs could work on the {word} at once"
    ))
    .state(state)
    .next(next)
}

/// The identity of a run is the one that `rbac` holds to previews.
fn held_to_previews(of: &LockedTarget, reason: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0609",
        format!(
            "the cluster's lock cannot be taken: {}",
            one_line(reason, 400)
        ),
    )
    .on(of.target.to_string())
    .effect(
        "the policy of `railwright rbac --role preview` refuses this identity whatever is no dry \
         run, whatever its roles allow",
    )
    .state(nothing_changed(&of.target))
    .next(
        "give the role `apply` to an identity of its own: railwright rbac INVENTORY --role apply \
         --user NAME (or --group, --service-account)",
    )
    .next(
        "and let apply use it (kubernetes.kubeconfig or kubernetes.context in the spec, or \
         KUBECONFIG); then run the same command again",
    )
    .next(
        "only where one identity is to do both: kubectl delete the \
         ValidatingAdmissionPolicyBinding of the policy that is named",
    )
}

#[cfg(test)]
mod tests {
    use super::super::not_reached;
    use super::*;
    use railwright_transport::{ClusterAccess, TargetReach, TransportError};

    fn cluster() -> LockedTarget {
        let cluster = ClusterAccess {
            keeps: "railwright-lab".to_owned(),
            ..ClusterAccess::default()
        };
        LockedTarget::of(&TargetAccess {
            name: "prod".to_owned(),
            reach: TargetReach::Cluster(cluster),
        })
    }

    /// All that is said, as one text.
    fn said(problem: &Diagnostic) -> String {
        format!("{problem:?}")
    }

    #[test]
    fn of_a_cluster_nothing_is_said_as_of_a_host() {
        let (of, next) = (
            cluster(),
            NextCommands {
                inventory: "inv".to_owned(),
            },
        );
        let target = &of.target;
        let fence = format!(
            "its fencing number 9 is higher than any number of runs; see {}",
            of.fence()
        );
        let lost = TransportError::Local {
            reason: "no kubeconfig".into(),
        };
        let told = [
            lock_failed(&of, "exit status 1: forbidden", &next),
            report_locked_target(
                target,
                &HeldLock {
                    line: "somebody".to_owned(),
                    holder: None,
                    note: String::new(),
                    age_s: 3,
                    life: ProcessLiveness::Unknown,
                    fence: 1,
                },
                &next,
            ),
            lock_lost(target, None),
            not_workable(target, &fence, &next),
            not_reached(target.to_string(), &lost, &next),
        ];
        for problem in &told {
            let said = said(problem);
            assert!(said.contains("kube/prod"), "{said}");
            for wrong in [
                "host/",
                "the host",
                "one host",
                "this host",
                "/var/lib",
                "out of service",
            ] {
                assert!(!said.contains(wrong), "{wrong}: {said}");
            }
        }
        assert!(
            said(&told[0]).contains("Lease kube-system/railwright-lab"),
            "{}",
            said(&told[0])
        );
        assert!(
            said(&told[3]).contains("railwright.io/fence of the Lease kube-system/railwright-lab"),
            "{}",
            said(&told[3])
        );
    }

    #[test]
    fn a_host_has_its_lock_in_files() {
        let of = LockedTarget::host("n1");
        assert_eq!(of.fence(), "/var/lib/railwright/fence on it");
        let next = NextCommands {
            inventory: "inv".to_owned(),
        };
        let failed = said(&lock_failed(&of, "exit status 1", &next));
        for part in [
            "the host's lock cannot be taken",
            "it counts as out of service",
            "in /var/lib/railwright",
            "then railwright resume inv",
        ] {
            assert!(failed.contains(part), "{part}: {failed}");
        }
    }
}
