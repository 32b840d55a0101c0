//! What is ours on a cluster, in the form that other tools know: a set of applied objects with a
//! parent, which is the Secret that holds our record (KEP-3659; kubernetes/kubernetes:
//! staging/src/k8s.io/kubectl/pkg/cmd/apply/applyset.go). Members carry the parent's id as a label,
//! so they are found without us; the parent names their kinds and namespaces, and the tool that
//! owns the set, which keeps kubectl from pruning it. We ourselves go by the record: a label alone
//! makes nothing ours.

use super::access::NAMESPACE;
use super::manifest::KubernetesObjectBody;
use crate::body::read_body;
use crate::file::base64;
use crate::json_fields::read_flag_field;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// The label of a member: its parent's id.
pub const PART_OF: &str = "applyset.kubernetes.io/part-of";
const ID: &str = "applyset.kubernetes.io/id";
const TOOLING: &str = "applyset.kubernetes.io/tooling";
const KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// The id of the set whose parent is the Secret of this name.
pub fn compute_applyset_id(parent: &str) -> String {
    let hash = base64::encode_base64_text(&Sha256::digest(format!("{parent}.{NAMESPACE}.Secret.")));
    format!(
        "applyset-{}-v1",
        hash.trim_end_matches('=')
            .replace('+', "-")
            .replace('/', "_")
    )
}

/// True for a resource of this kind that we make ourselves: what is taken over stood there before
/// us, as the resource says or, where it no longer does, what is known of the time before our first
/// change.
pub fn is_member(kind: &str, body: &Value, before: &Value) -> bool {
    kind == "kubernetes_object"
        && !read_body::<KubernetesObjectBody>(body).adopt
        && read_flag_field(before, "existed") != Some(true)
}

/// The kinds of a set's members, and where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplySetMembers {
    kinds: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

impl ApplySetMembers {
    /// Of objects by their addresses within the cluster: `DaemonSet.apps/kube-system/name`,
    /// `Namespace.core/-/name`.
    pub fn of(addresses: &[String]) -> Self {
        let mut members = ApplySetMembers::default();
        addresses.iter().for_each(|address| members.add(address));
        members
    }

    fn add(&mut self, address: &str) {
        let mut parts = address.split('/');
        let (Some(kind), Some(namespace), Some(_)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        self.kinds
            .insert(kind.strip_suffix(".core").unwrap_or(kind).to_owned());
        if namespace != "-" && namespace != NAMESPACE {
            self.namespaces.insert(namespace.to_owned());
        }
    }

    /// The parent's labels and annotations.
    pub fn of_parent(&self, parent: &str) -> (Value, Value) {
        let [kinds, namespaces] = [&self.kinds, &self.namespaces].map(|words| {
            words
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(",")
        });
        let tooling = concat!("railwright/", env!("CARGO_PKG_VERSION"));
        let annotations = json!({
            TOOLING: tooling,
            KINDS: kinds,
            NAMESPACES: namespaces,
        });
        (json!({ ID: compute_applyset_id(parent) }), annotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_names_what_is_in_its_set() {
        let addresses = [
            "DaemonSet.apps/kube-system/a",
            "ConfigMap.core/default/b",
            "ConfigMap.core/rdma/c",
            "Namespace.core/-/rdma",
            "odd",
        ];
        let (labels, annotations) =
            ApplySetMembers::of(&addresses.map(str::to_owned)).of_parent("railwright-train");
        assert_eq!(
            labels,
            json!({ ID: compute_applyset_id("railwright-train") })
        );
        assert_eq!(annotations[KINDS], "ConfigMap,DaemonSet.apps,Namespace");
        assert_eq!(annotations[NAMESPACES], "default,rdma");
        assert!(
            compute_applyset_id("a") != compute_applyset_id("b")
                && compute_applyset_id("a").len() <= 63,
            "it has to be a label's value"
        );
    }
}
