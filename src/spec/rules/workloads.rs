//! Workloads that stay: each in a cluster that the spec names, with the fields of its kind alone, and no two of one name. What their
//! values may be is asked where they become objects.

use super::{Checker, error, shown};
use crate::spec::model::{Spec, Workload, WorkloadKind};
use std::collections::BTreeMap;

const OF_RAY: [&str; 5] = ["devices", "hosts", "host_network", "network", "ray_version"];
const OF_ACS: [&str; 5] = ["model", "compute_class", "command", "app", "container"];

/// Each by itself, and against each other.
pub fn check(checker: &mut Checker<'_>, spec: &Spec) {
    if let (false, None, true) = (spec.workloads.is_empty(), &spec.kubernetes, checker.complete) {
        let finding = error(
            "RW0180",
            "there are workloads, and no Kubernetes cluster for them",
            "nothing of them can be planned",
            "name the cluster: `kubernetes: { kubeconfig: FILE, context: NAME }`",
        );
        checker.find("workloads", "for which cluster?", finding);
    }
    let mut seen: BTreeMap<(WorkloadKind, &str, &str), usize> = BTreeMap::new();
    for (index, workload) in spec.workloads.iter().enumerate() {
        fields(checker, index, workload);
        let first = *seen.entry((workload.kind, &workload.namespace, &workload.name)).or_insert(index);
        if first != index {
            let finding = error(
                "RW0182",
                format!(
                    "two workloads are the same object: {} {}/{}",
                    workload.kind.word(),
                    shown(&workload.namespace),
                    shown(&workload.name)
                ),
                "each would take away what the other sets",
                "give one of them another name or namespace",
            );
            checker.find_with(&name(index), "again here", (&name(first), "first here"), finding);
        }
    }
}

fn name(index: usize) -> String {
    format!("workloads[{index}].name")
}

/// What the kind does not have, and what it needs.
fn fields(checker: &mut Checker<'_>, index: usize, workload: &Workload) {
    let (others, other) = match workload.kind {
        WorkloadKind::Acs => (OF_RAY, WorkloadKind::Ray.word()),
        WorkloadKind::Ray => (OF_ACS, WorkloadKind::Acs.word()),
    };
    let kind = workload.kind.word();
    for field in others {
        let path = format!("workloads[{index}].{field}");
        if let Some(location) = checker.tree.find(&path) {
            let finding = error(
                "RW0181",
                format!("a workload of the kind `{kind}` has no `{field}`"),
                "it would be left out without a word",
                format!("take it out; it is of the kind `{other}`"),
            );
            let label = checker.tree.key_label(location, "not of this kind");
            checker.findings.push(finding.labelled(label));
        }
    }
    if workload.kind == WorkloadKind::Acs && workload.command.is_empty() {
        let finding = error(
            "RW0181",
            "a workload of the kind `acs` needs a `command`",
            "the container would run what its image runs by itself, which nobody here knows",
            "say what the container runs: `command: [sleep, 1000h]`",
        );
        checker.find(&format!("workloads[{index}].command"), "without `command`", finding);
    }
    if workload.without_rdma && !workload.devices.is_empty() {
        let finding = error(
            "RW0181",
            "a workload without RDMA asks for RDMA devices",
            "one of both is not meant",
            "leave out `without_rdma`, or `devices`",
        );
        let path = |field: &str| format!("workloads[{index}].{field}");
        checker.find_with(&path("devices"), "asked for", (&path("without_rdma"), "and not wanted"), finding);
    }
}
