//! Labels and taints of nodes: as the API server takes them, and on a cluster that there is.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::model::{NodeGroup, Spec};
use railwright_resource::kubernetes_object::labels::{
    KEY_HELP, OF_THE_KUBELET, VALUE_HELP, is_key, is_value,
};

const CODE: &str = "RW0147";
const EFFECT: &str =
    "nothing of these nodes could be set: pods that are to run there, or to stay away, would not";

/// Those of every group.
pub fn check_node_fields(checker: &mut SpecChecker<'_>, spec: &Spec) {
    for (index, group) in spec.nodes.iter().enumerate() {
        check_node_labels(checker, index, group);
        check_node_taints(checker, index, group);
        if spec.kubernetes.is_some() || !checker.complete {
            continue;
        }
        for (field, is_empty) in [
            ("kubernetes_labels", group.kubernetes_labels.is_empty()),
            ("kubernetes_taints", group.kubernetes_taints.is_empty()),
        ] {
            if is_empty {
                continue;
            }
            let finding = new_spec_error(
                CODE,
                "the spec names no Kubernetes cluster whose nodes these hosts are",
                EFFECT,
                "name it: `kubernetes: {}`",
            );
            checker.find(
                &format!("nodes[{index}].{field}"),
                "nodes of no cluster",
                finding,
            );
        }
    }
}

fn check_node_labels(checker: &mut SpecChecker<'_>, index: usize, group: &NodeGroup) {
    for (key, value) in &group.kubernetes_labels {
        let path = format!("nodes[{index}].kubernetes_labels[\"{key}\"]");
        if !is_key(key) {
            let finding = new_spec_error(
                CODE,
                format!(
                    "the API server takes no label with the key `{}`",
                    truncate_user_text(key)
                ),
                EFFECT,
                KEY_HELP,
            );
            checker.find(&path, "of this key", finding);
        }
        if OF_THE_KUBELET.contains(&key.as_str()) {
            let why = format!(
                "the label `{}` is the kubelet's own: each sets it anew when it starts",
                truncate_user_text(key)
            );
            checker.find(
                &path,
                "of this key",
                new_spec_error(
                    CODE,
                    why,
                    EFFECT,
                    "choose a key of your own, such as railwright.io/pool",
                ),
            );
        }
        if !is_value(value) {
            let finding = new_spec_error(
                CODE,
                format!(
                    "the API server takes no label with the value `{}`",
                    truncate_user_text(value)
                ),
                EFFECT,
                VALUE_HELP,
            );
            checker.find(&path, "this value", finding);
        }
    }
}

fn check_node_taints(checker: &mut SpecChecker<'_>, index: usize, group: &NodeGroup) {
    for (at, taint) in group.kubernetes_taints.iter().enumerate() {
        let path = format!("nodes[{index}].kubernetes_taints[{at}]");
        if !is_key(&taint.key) {
            let finding = new_spec_error(
                CODE,
                format!(
                    "the API server takes no taint with the key `{}`",
                    truncate_user_text(&taint.key)
                ),
                EFFECT,
                KEY_HELP,
            );
            checker.find(&format!("{path}.key"), "this key", finding);
        }
        if !is_value(&taint.value) {
            let finding = new_spec_error(
                CODE,
                format!(
                    "the API server takes no taint with the value `{}`",
                    truncate_user_text(&taint.value)
                ),
                EFFECT,
                VALUE_HELP,
            );
            checker.find(&format!("{path}.value"), "this value", finding);
        }
        let mut earlier = group.kubernetes_taints[..at].iter();
        if let Some(first) =
            earlier.position(|other| other.key == taint.key && other.effect == taint.effect)
        {
            let shown = truncate_user_text(&taint.key);
            let message = format!("a node has one taint `{shown}` of one effect");
            let finding = new_spec_error(CODE, message, EFFECT, "leave one of the two out");
            let other = format!("nodes[{index}].kubernetes_taints[{first}]");
            checker.find_with(&path, "again here", (&other, "first here"), finding);
        }
    }
}
