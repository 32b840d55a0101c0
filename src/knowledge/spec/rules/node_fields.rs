//! Labels and taints of nodes: as the API server takes them, and on a cluster that there is.

use super::{Checker, error, shown};
use crate::spec::model::{NodeGroup, Spec};
use railwright_resource::kubernetes_object::labels::{KEY_HELP, OF_THE_KUBELET, VALUE_HELP, is_key, is_value};

const CODE: &str = "RW0147";
const EFFECT: &str = "nothing of these nodes could be set: pods that are to run there, or to stay away, would not";

/// Those of every group.
pub fn check(checker: &mut Checker<'_>, spec: &Spec) {
    for (index, group) in spec.nodes.iter().enumerate() {
        labels(checker, index, group);
        taints(checker, index, group);
        let given =
            [("kubernetes_labels", !group.kubernetes_labels.is_empty()), ("kubernetes_taints", !group.kubernetes_taints.is_empty())];
        let of_none = spec.kubernetes.is_none() && checker.complete;
        for (field, _) in given.into_iter().filter(|(_, given)| of_none && *given) {
            let finding =
                error(CODE, "the spec names no Kubernetes cluster whose nodes these hosts are", EFFECT, "name it: `kubernetes: {}`");
            checker.find(&format!("nodes[{index}].{field}"), "nodes of no cluster", finding);
        }
    }
}

fn labels(checker: &mut Checker<'_>, index: usize, group: &NodeGroup) {
    for (key, value) in &group.kubernetes_labels {
        let path = format!("nodes[{index}].kubernetes_labels[\"{key}\"]");
        if !is_key(key) {
            let finding = error(CODE, format!("the API server takes no label with the key `{}`", shown(key)), EFFECT, KEY_HELP);
            checker.find(&path, "of this key", finding);
        }
        if OF_THE_KUBELET.contains(&key.as_str()) {
            let why = format!("the label `{}` is the kubelet's own: each sets it anew when it starts", shown(key));
            checker.find(&path, "of this key", error(CODE, why, EFFECT, "choose a key of your own, such as railwright.io/pool"));
        }
        if !is_value(value) {
            let finding = error(CODE, format!("the API server takes no label with the value `{}`", shown(value)), EFFECT, VALUE_HELP);
            checker.find(&path, "this value", finding);
        }
    }
}

fn taints(checker: &mut Checker<'_>, index: usize, group: &NodeGroup) {
    for (at, taint) in group.kubernetes_taints.iter().enumerate() {
        let path = format!("nodes[{index}].kubernetes_taints[{at}]");
        if !is_key(&taint.key) {
            let finding = error(CODE, format!("the API server takes no taint with the key `{}`", shown(&taint.key)), EFFECT, KEY_HELP);
            checker.find(&format!("{path}.key"), "this key", finding);
        }
        if !is_value(&taint.value) {
            let finding =
                error(CODE, format!("the API server takes no taint with the value `{}`", shown(&taint.value)), EFFECT, VALUE_HELP);
            checker.find(&format!("{path}.value"), "this value", finding);
        }
        let same = |other: &usize| {
            let other = &group.kubernetes_taints[*other];
            (&other.key, other.effect) == (&taint.key, taint.effect)
        };
        if let Some(first) = (0..at).find(same) {
            let finding =
                error(CODE, format!("a node has one taint `{}` of one effect", shown(&taint.key)), EFFECT, "leave one of the two out");
            checker.find_with(&path, "again here", (&format!("nodes[{index}].kubernetes_taints[{first}]"), "first here"), finding);
        }
    }
}
