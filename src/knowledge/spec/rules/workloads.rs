//! Workloads that stay: each in a cluster that the spec names, no two of one name, and no two whose
//! pods are identical to their Deployments. What their fields and values may be is asked where they
//! become objects.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::model::{Spec, WorkloadKind};
use std::collections::BTreeMap;

/// All of them, against each other.
pub fn check_workloads(checker: &mut SpecChecker<'_>, spec: &Spec) {
    if !spec.workloads.is_empty() && spec.kubernetes.is_none() && checker.complete {
        let finding = new_spec_error(
            "RW0180",
            "there are workloads, and no Kubernetes cluster for them",
            "nothing of them can be planned",
            "name the cluster: `kubernetes: { kubeconfig: FILE, context: NAME }`",
        );
        checker.find("workloads", "for which cluster?", finding);
    }
    let mut seen: BTreeMap<(WorkloadKind, &str, &str), usize> = BTreeMap::new();
    for (index, workload) in spec.workloads.iter().enumerate() {
        let first = *seen
            .entry((workload.kind, &workload.namespace, &workload.name))
            .or_insert(index);
        if first != index {
            let finding = new_spec_error(
                "RW0182",
                format!(
                    "two workloads are the same object: {} {}/{}",
                    workload.kind.word(),
                    truncate_user_text(&workload.namespace),
                    truncate_user_text(&workload.name)
                ),
                "each would take away what the other sets",
                "give one of them another name or namespace",
            );
            checker.find_with(
                &format_name_path(index),
                "again here",
                (&format_name_path(first), "first here"),
                finding,
            );
        }
    }
    check_app_labels(checker, spec);
}

/// A Deployment takes every pod of its namespace with its label `app` for one of its own
/// (Kubernetes documentation, Deployments: selector).
fn check_app_labels(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (index, workload) in spec.workloads.iter().enumerate() {
        if workload.kind != WorkloadKind::Acs {
            continue;
        }
        let app = workload.app.as_deref().unwrap_or(&workload.name);
        let first = *seen.entry((&workload.namespace, app)).or_insert(index);
        // Of one name it is reported already.
        if spec.workloads[first].name == workload.name {
            continue;
        }
        let finding = new_spec_error(
            "RW0182",
            format!(
                "two workloads have pods with the same label: app={} in namespace {}",
                truncate_user_text(app),
                truncate_user_text(&workload.namespace)
            ),
            "each takes the pods of the other for its own, and they make and delete pods against \
             each other",
            "give one of them another `app` or namespace",
        );
        checker.find_with(
            &format_app_path(spec, index),
            "again here",
            (&format_app_path(spec, first), "first here"),
            finding,
        );
    }
}

/// Where the label `app` of a workload comes from: the field, or the name.
fn format_app_path(spec: &Spec, index: usize) -> String {
    match spec.workloads[index].app {
        Some(_) => format!("workloads[{index}].app"),
        None => format_name_path(index),
    }
}

fn format_name_path(index: usize) -> String {
    format!("workloads[{index}].name")
}
