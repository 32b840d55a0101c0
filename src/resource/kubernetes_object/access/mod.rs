//! What an identity has to be allowed for what is read and changed of a cluster, right by right.
//!
//! A right may be restricted to one object where the server knows its name when it decides. That is
//! so for `create` too, where an object is made by a server-side apply: the name is in the
//! request's path (kubernetes/kubernetes:
//! staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, `createAuthorizerAttributes`). A
//! list or a watch is allowed by name where it selects that name
//! (kubernetes.io/docs/reference/access-authn-authz/rbac, "Referring to resources").

use super::known_kinds::ApiResourceName;
use super::request::{KubernetesRead, ObjectName};
use super::{build_cluster_object_name, manifest};
use crate::json_fields::read_text_at;
use crate::node_field::mark::build_mark_key_object_name;
use crate::node_field::{build_node_object_name, list_mark_key_uses};
use crate::readability::is_readable;
use crate::{Action, DesiredResource, Read, kind_named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where lock and record of a cluster are.
pub const NAMESPACE: &str = "kube-system";
/// The group of roles and bindings.
const ROLES: &str = "rbac.authorization.k8s.io";
/// The group of admission policies.
const ADMISSION: &str = "admissionregistration.k8s.io";
/// Policies and their bindings, by kind and resource: no admission policy is asked about them, so
/// none can hold an identity to dry runs of them (kubernetes/kubernetes:
/// staging/src/k8s.io/api/admissionregistration/v1/types.go, `matchConstraints`).
const UNPOLICED: [(&str, &str); 4] = [
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    (
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    ),
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    (
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
    ),
];

/// What the admission policy that holds an identity to previews says of everything else; `rbac`
/// prints it, and a run knows it again.
pub const PREVIEWS_ALONE: &str = "this identity previews: it may ask for dry runs alone";

/// A verb of the API; in the order in which a rule names them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ApiVerb {
    /// Reads one object.
    Get,
    /// Reads all of a kind.
    List,
    /// Is notified of changes.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces one.
    Update,
    /// Changes fields of one; a server-side apply is one.
    Patch,
    /// Deletes one.
    Delete,
    /// Gives a role to somebody.
    Bind,
    /// Gives a role rights that the one who writes it has not.
    Escalate,
}

impl ApiVerb {
    /// As a rule has it.
    pub fn word(self) -> &'static str {
        match self {
            ApiVerb::Get => "get",
            ApiVerb::List => "list",
            ApiVerb::Watch => "watch",
            ApiVerb::Create => "create",
            ApiVerb::Update => "update",
            ApiVerb::Patch => "patch",
            ApiVerb::Delete => "delete",
            ApiVerb::Bind => "bind",
            ApiVerb::Escalate => "escalate",
        }
    }
}

/// One thing that has to be allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Right {
    /// Not there for what is of the whole cluster.
    pub namespace: Option<String>,
    /// The API group; empty for the core one.
    pub group: String,
    /// What the server calls objects of the kind: `daemonsets`.
    pub resource: String,
    /// The object; whichever where there is none.
    pub name: Option<String>,
    /// What is done to it.
    pub verb: ApiVerb,
}

impl Right {
    /// To do this to an object. Nothing where no rule could help: the object names no namespace,
    /// and its kind is in one.
    pub fn on(object: &ObjectName, called: &ApiResourceName, verb: ApiVerb) -> Option<Self> {
        let namespace = object.namespace.clone().filter(|_| called.namespaced);
        (namespace.is_some() || !called.namespaced).then(|| Right {
            namespace,
            group: object.group().to_owned(),
            resource: called.plural.clone(),
            name: Some(object.name.clone()).filter(|name| !name.is_empty()),
            verb,
        })
    }

    /// Widens a right to one object to every object of its kind in the namespace.
    pub fn of_all(self) -> Self {
        Right { name: None, ..self }
    }
}

/// What an identity is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessLevel {
    /// Plan and drift, compared field by field.
    Observe,
    /// Plan and drift, previewed by the server.
    Preview,
    /// Everything that a run does.
    Apply,
}

impl AccessLevel {
    /// All of them, the smallest first.
    pub const ALL: [AccessLevel; 3] = [
        AccessLevel::Observe,
        AccessLevel::Preview,
        AccessLevel::Apply,
    ];

    /// The word on the command line and in names.
    pub fn word(self) -> &'static str {
        match self {
            AccessLevel::Observe => "observe",
            AccessLevel::Preview => "preview",
            AccessLevel::Apply => "apply",
        }
    }
}

/// How an object is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// A part of it is changed, and it is read for that alone.
    Edited,
    /// Only while a run waits: it says what keeps it.
    Told,
    /// It is read.
    Read,
    /// The server is asked besides what applying it would come to.
    Previewed,
}

/// An object that is dealt with, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectUse {
    /// The object; a nameless one stands for all of its kind.
    pub object: ObjectName,
    how: How,
    /// What a run does with it, now or when it leaves the spec.
    changes: BTreeSet<ApiVerb>,
    reason: String,
    /// What a binding binds.
    binds: Option<ObjectName>,
}

/// What a resource deals with: the objects that its kind reads of the API server, and what it does
/// to them. One that was applied earlier and is no longer declared is only undone.
pub fn list_object_uses(resource: &DesiredResource, desired: bool) -> Vec<ObjectUse> {
    let Some(kind) = kind_named(&resource.kind).filter(|kind| is_readable(*kind, resource)) else {
        return Vec::new();
    };
    let (mut reads, mut changes) = (kind.reads(resource), Vec::new());
    if desired {
        reads.extend(kind.troubles(resource));
        changes = kind.changes(resource, false);
    }
    changes.extend(kind.changes(resource, true));
    let mut how: BTreeMap<ObjectName, How> = BTreeMap::new();
    for (object, found) in reads.iter().flat_map(|read| of_read(read, desired)) {
        let known = how.entry(object).or_insert(found);
        *known = found.max(*known);
    }
    for (object, _) in &changes {
        how.entry(object.clone()).or_insert(How::Edited);
    }
    let bound = manifest::parse_manifest(&resource.body)
        .ok()
        .and_then(|manifest| parse_bound_role(&manifest));
    let mut uses = Vec::new();
    for (object, how) in how {
        let done = changes.iter().filter(|(changed, _)| *changed == object);
        uses.push(ObjectUse {
            how,
            changes: done.map(|(_, verb)| *verb).collect(),
            reason: describe_use_reason(resource, desired, &object, how),
            binds: bound.clone().filter(|_| object.group() == ROLES),
            object,
        });
    }
    uses
}

/// Why a resource deals with an object, for the reader of a role.
fn describe_use_reason(
    resource: &DesiredResource,
    desired: bool,
    object: &ObjectName,
    how: How,
) -> String {
    let (whose, words) = (resource.whose(), resource.address.words());
    match desired {
        true if how == How::Edited => format!("nodes of {words} of {whose}"),
        true if object.name.is_empty() => format!("what {words} of {whose} waits for"),
        true => format!("{} of {whose}", format_object_name(object)),
        false if how == How::Edited => {
            format!("nodes of {words}, applied and no longer declared")
        }
        false => format!(
            "{}, applied and no longer declared",
            format_object_name(object)
        ),
    }
}

/// Which objects a read is about.
fn of_read(read: &Read, desired: bool) -> Vec<(ObjectName, How)> {
    let Read::Kubernetes(read) = read else {
        return Vec::new();
    };
    match read {
        KubernetesRead::Preview { object, .. } if desired => vec![(object.clone(), How::Previewed)],
        KubernetesRead::Object(object) | KubernetesRead::Preview { object, .. } => {
            vec![(object.clone(), How::Read)]
        }
        KubernetesRead::Nodes => vec![(name_all_objects("v1", "Node", &None), How::Read)],
        KubernetesRead::NodeField(_) => vec![
            (name_all_objects("v1", "Node", &None), How::Read),
            (build_mark_key_object_name(), How::Read),
        ],
        KubernetesRead::PodsOn(_) => vec![(name_all_objects("v1", "Pod", &None), How::Read)],
        KubernetesRead::States {
            api_version,
            kind,
            namespace,
        } => vec![(name_all_objects(api_version, kind, namespace), How::Read)],
        KubernetesRead::Troubles { object, selector } => {
            let mut told = Vec::new();
            if selector.is_some() {
                let pods = name_all_objects("v1", "Pod", &object.namespace);
                told.push((pods, How::Told));
            }
            let events = name_all_objects("v1", "Event", &object.namespace);
            told.push((events, How::Told));
            told
        }
        // Its rights are no rights to an object: see `ResourceKind::rights`.
        KubernetesRead::Exec(_) | KubernetesRead::Kind(_) | KubernetesRead::Access(_) => Vec::new(),
        // No resource is compared with what a job does.
        KubernetesRead::Jobs { .. }
        | KubernetesRead::JobPods { .. }
        | KubernetesRead::Room
        | KubernetesRead::Log { .. } => Vec::new(),
        // Asked by a command about images alone, with an identity of its own.
        KubernetesRead::PodExec(_) => Vec::new(),
    }
}

/// All objects of a kind: an object without a name.
fn name_all_objects(api_version: &str, kind: &str, namespace: &Option<String>) -> ObjectName {
    ObjectName {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.clone(),
        name: String::new(),
    }
}

/// The role that a binding gives to somebody: `bind` is asked for it where the binding is. A
/// binding can refer to these two kinds alone (kubernetes/kubernetes:
/// pkg/apis/rbac/validation/validation.go).
fn parse_bound_role(manifest: &Value) -> Option<ObjectName> {
    let kind = read_text_at(manifest, "/roleRef/kind")?;
    if !matches!(kind, "Role" | "ClusterRole") {
        return None;
    }
    Some(ObjectName {
        api_version: read_text_at(manifest, "/apiVersion")?.to_owned(),
        kind: kind.to_owned(),
        namespace: read_text_at(manifest, "/metadata/namespace").map(str::to_owned),
        name: read_text_at(manifest, "/roleRef/name")?.to_owned(),
    })
}

/// `DaemonSet kube-system/plugin`.
fn format_object_name(object: &ObjectName) -> String {
    let place = object
        .namespace
        .as_ref()
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    format!("{} {place}{}", object.kind, object.name)
}

impl ObjectUse {
    /// What has to be allowed at this level, with the reason.
    pub fn rights(&self, level: AccessLevel, called: &ApiResourceName) -> Vec<(Right, String)> {
        let mut verbs = match self.how {
            How::Told | How::Edited if level != AccessLevel::Apply => BTreeSet::new(),
            How::Edited => BTreeSet::from([ApiVerb::Get]),
            _ if self.object.name.is_empty() => BTreeSet::from([ApiVerb::List]),
            _ => BTreeSet::from([ApiVerb::Get, ApiVerb::List, ApiVerb::Watch]),
        };
        if self.how == How::Previewed
            && (level == AccessLevel::Apply
                || (level == AccessLevel::Preview && !self.is_unpoliced(called)))
        {
            verbs.extend([ApiVerb::Patch, ApiVerb::Create]);
        }
        if level == AccessLevel::Apply {
            verbs.extend(&self.changes);
        }
        let writes = verbs.contains(&ApiVerb::Patch);
        // What is in a role must be held by the one who writes it, or be given away by this leave
        // (kubernetes/kubernetes: pkg/registry/rbac/escalation_check.go).
        if writes
            && self.object.group() == ROLES
            && matches!(self.object.kind.as_str(), "Role" | "ClusterRole")
        {
            verbs.insert(ApiVerb::Escalate);
        }
        let mut rights = Vec::new();
        for verb in verbs {
            if let Some(right) = Right::on(&self.object, called, verb) {
                rights.push((right, self.reason.clone()));
            }
        }
        if let Some(role) = &self.binds
            && writes
        {
            let bind = Right {
                namespace: self.object.namespace.clone().filter(|_| called.namespaced),
                group: ROLES.to_owned(),
                resource: format!("{}s", role.kind.to_ascii_lowercase()),
                name: Some(role.name.clone()),
                verb: ApiVerb::Bind,
            };
            rights.push((bind, self.reason.clone()));
        }
        rights
    }

    /// What a run cannot do without to look at it.
    pub fn looks(&self) -> Option<ApiVerb> {
        match self.how {
            How::Told | How::Edited => None,
            _ if self.object.name.is_empty() => Some(ApiVerb::List),
            _ => Some(ApiVerb::Get),
        }
    }

    /// Whether a run makes it, or changes it.
    pub fn is_ours(&self) -> bool {
        self.how == How::Previewed || !self.changes.is_empty()
    }

    /// Whether no policy would restrict a preview of it to dry runs, so that the level `preview`
    /// leaves it out. A rule goes by the resource, so its name counts as much as the kind's.
    pub fn is_unpoliced(&self, called: &ApiResourceName) -> bool {
        let is_policy = UNPOLICED
            .iter()
            .any(|(kind, plural)| *kind == self.object.kind || *plural == called.plural);
        self.how == How::Previewed && self.object.group() == ADMISSION && is_policy
    }
}

/// What an action does with which objects; nothing where it is for a host.
pub fn of_action(action: &Action) -> Vec<(ObjectName, ApiVerb)> {
    match action {
        Action::ApplyObject { object, .. } | Action::UnmarkObject { object, .. } => {
            vec![(object.clone(), ApiVerb::Patch)]
        }
        Action::EditConfigMap { object, .. } | Action::MarkPodTemplate { object, .. } => {
            vec![(object.clone(), ApiVerb::Patch)]
        }
        Action::DeleteObject { object, .. } => vec![(object.clone(), ApiVerb::Delete)],
        Action::UninstallRelease { deletes, .. } => deletes
            .iter()
            .flat_map(|object| [ApiVerb::Get, ApiVerb::Delete].map(|verb| (object.clone(), verb)))
            .collect(),
        Action::EditNodes { edits, .. } => {
            let nodes = edits.iter().flat_map(|edit| &edit.nodes);
            let mut verbs: Vec<(ObjectName, ApiVerb)> = nodes
                .flat_map(|name| {
                    [ApiVerb::Get, ApiVerb::Patch].map(|verb| (build_node_object_name(name), verb))
                })
                .collect();
            if edits.iter().any(|edit| edit.change.mark.is_some()) {
                verbs.extend(list_mark_key_uses());
            }
            verbs
        }
        _ => Vec::new(),
    }
}

/// What emptying a node and giving it back takes, besides the list of nodes that a plan goes by.
pub fn of_drain(node: &str) -> Vec<(Right, String)> {
    let empty = "pods of such nodes, in whatever namespace".to_owned();
    let of_pods = [("pods", ApiVerb::List), ("pods/eviction", ApiVerb::Create)];
    let of_pods = of_pods.map(|(resource, verb)| (of_core(resource, None, verb), empty.clone()));
    of_uncordon(node).into_iter().chain(of_pods).collect()
}

/// What giving a node back takes, which a run may have left cordoned.
pub fn of_uncordon(node: &str) -> Vec<(Right, String)> {
    let cordon =
        "nodes that are cordoned before their hosts are disturbed, and given back".to_owned();
    [ApiVerb::Get, ApiVerb::Patch]
        .map(|verb| (of_core("nodes", Some(node), verb), cordon.clone()))
        .into()
}

/// What a plan needs to know which hosts are nodes.
pub fn of_nodes() -> (Right, String) {
    (
        of_core("nodes", None, ApiVerb::List),
        "which hosts are nodes, to be emptied before they are disturbed, and which are to be given \
         back".to_owned(),
    )
}

fn of_core(resource: &str, name: Option<&str>, verb: ApiVerb) -> Right {
    Right {
        namespace: None,
        group: String::new(),
        resource: resource.to_owned(),
        name: name.map(str::to_owned),
        verb,
    }
}

/// The lock and the record of a spec's cluster.
pub fn of_keeper(cluster: &str, level: AccessLevel) -> Vec<(Right, String)> {
    let name = build_cluster_object_name(cluster);
    let (lease, secret) = (build_lease_right(&name), build_secret_right(&name));
    let (lock, record) = (
        format!("Lease {name}, the lock of a run"),
        format!("Secret {name}, the record of what was applied"),
    );
    // A namespace itself is asked for in the namespace (kubernetes/apiserver:
    // pkg/endpoints/request/requestinfo.go).
    let which = (
        build_own_right(NAMESPACE, "", "namespaces")(ApiVerb::Get),
        "whose UID tells which cluster it is".to_owned(),
    );
    let mut out = vec![
        which,
        (lease(ApiVerb::Get), lock.clone()),
        (secret(ApiVerb::Get), record.clone()),
    ];
    if level == AccessLevel::Apply {
        out.extend(
            [ApiVerb::Patch, ApiVerb::Create, ApiVerb::Update]
                .map(|verb| (lease(verb), lock.clone())),
        );
        out.extend([ApiVerb::Patch, ApiVerb::Create].map(|verb| (secret(verb), record.clone())));
    }
    out
}

/// A right to the Lease of this name.
pub fn build_lease_right(name: &str) -> impl Fn(ApiVerb) -> Right {
    build_own_right(name, "coordination.k8s.io", "leases")
}

/// A right to the Secret of this name.
pub fn build_secret_right(name: &str) -> impl Fn(ApiVerb) -> Right {
    build_own_right(name, "", "secrets")
}

fn build_own_right(
    name: &str,
    group: &'static str,
    resource: &'static str,
) -> impl Fn(ApiVerb) -> Right {
    let (namespace, name) = (NAMESPACE.to_owned(), name.to_owned());
    move |verb| Right {
        namespace: Some(namespace.clone()),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: Some(name.clone()),
        verb,
    }
}

#[cfg(test)]
mod tests;
