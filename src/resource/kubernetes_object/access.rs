//! What an identity has to be allowed for what is read and changed of a cluster, as single rights and folded to rules of RBAC.
//!
//! A right may be held to one object where the server knows its name when it decides. That is so for `create` too, where an
//! object is made by a server-side apply: the name is in the request's path (kubernetes/kubernetes:
//! staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, `createAuthorizerAttributes`). A list or a watch is allowed by
//! name where it selects that name (kubernetes.io/docs/reference/access-authn-authz/rbac, "Referring to resources").

use super::known_kinds::Called;
use super::request::{KubernetesRead, ObjectName};
use super::{NEVER_REMOVED, keeper, manifest};
use crate::base::text::yaml;
use crate::resource::{Action, Read, Wish, kind_named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where lock and record of a cluster are.
pub const NAMESPACE: &str = "kube-system";
/// The group of roles and bindings.
const ROLES: &str = "rbac.authorization.k8s.io";
/// No admission policy is asked about policies and their bindings, so none can hold an identity to dry runs of them
/// (kubernetes/kubernetes: staging/src/k8s.io/api/admissionregistration/v1/types.go, `matchConstraints`).
const UNPOLICED: [&str; 4] = [
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io",
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
    "MutatingAdmissionPolicy.admissionregistration.k8s.io",
    "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io",
];

/// A verb of the API; in the order in which a rule names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all of a kind.
    List,
    /// Is told of changes.
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

impl Verb {
    /// As a rule has it.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::Bind => "bind",
            Verb::Escalate => "escalate",
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
    pub verb: Verb,
}

impl Right {
    /// To do this to an object. Nothing where no rule could help: the object names no namespace, and its kind is in one.
    pub fn on(object: &ObjectName, called: &Called, verb: Verb) -> Option<Self> {
        let namespace = object.namespace.clone().filter(|_| called.namespaced);
        (namespace.is_some() || !called.namespaced).then(|| Right {
            namespace,
            group: object.group().to_owned(),
            resource: called.plural.clone(),
            name: Some(object.name.clone()).filter(|name| !name.is_empty()),
            verb,
        })
    }

    /// The same of every object of the kind there.
    pub fn of_all(self) -> Self {
        Right { name: None, ..self }
    }
}

/// What an identity is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Plan and drift, compared field by field.
    Observe,
    /// Plan and drift, previewed by the server.
    Preview,
    /// Everything that a run does.
    Apply,
}

impl Level {
    /// All of them, the smallest first.
    pub const ALL: [Level; 3] = [Level::Observe, Level::Preview, Level::Apply];

    /// The word on the command line and in names.
    pub fn word(self) -> &'static str {
        match self {
            Level::Observe => "observe",
            Level::Preview => "preview",
            Level::Apply => "apply",
        }
    }
}

/// What is done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// All of its kind are looked at while a run waits: they say what keeps it.
    Told,
    /// All of its kind are looked at.
    Listed,
    /// Only looked at.
    Read,
    /// Others own it, and parts of it are changed.
    Edited,
    /// Applied earlier and no longer wished: looked at, and deleted.
    TakenBack,
    /// Previewed, applied, and deleted when it leaves the spec.
    Wished,
}

/// An object that is dealt with, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The object.
    pub object: ObjectName,
    how: How,
    reason: String,
    /// It is never deleted: it was there before us, or others live in it.
    stays: bool,
    /// What a binding binds.
    binds: Option<ObjectName>,
}

/// What a wish deals with: the objects that its kind reads of the API server.
pub fn uses(wish: &Wish, wished: bool) -> Vec<Use> {
    let kind = kind_named(&wish.kind);
    let reads = kind.map(|kind| kind.reads(wish)).unwrap_or_default();
    let troubles = kind.filter(|_| wished).map(|kind| kind.troubles(wish)).unwrap_or_default();
    let mut how: BTreeMap<ObjectName, How> = BTreeMap::new();
    let edits = wish.kind == "json_in_configmap";
    for (object, found) in reads.iter().chain(&troubles).flat_map(|read| of_read(read, wished)) {
        let found = if edits { How::Edited } else { found };
        let known = how.entry(object).or_insert(found);
        *known = found.max(*known);
    }
    let module = wish.module.split('/').next().unwrap_or_default();
    let because = |object: &ObjectName| match wished {
        true if object.name.is_empty() => format!("what {} of module {module} waits for", wish.address.words()),
        true => format!("{} of module {module}", shown(object)),
        false => format!("{}, applied and no longer wished", shown(object)),
    };
    let adopted = wish.body.get("adopt").and_then(Value::as_bool) == Some(true);
    let bound = manifest::manifest(&wish.body).ok().and_then(|manifest| bound(&manifest));
    let one = |(object, how): (ObjectName, How)| Use {
        how,
        reason: because(&object),
        stays: adopted || NEVER_REMOVED.contains(&object.kind_and_group().as_str()),
        binds: bound.clone().filter(|_| wished && object.group() == ROLES),
        object,
    };
    how.into_iter().map(one).collect()
}

/// Which objects a read is about; a nameless one stands for all of its kind.
fn of_read(read: &Read, wished: bool) -> Vec<(ObjectName, How)> {
    let all = |api_version: &str, kind: &str, namespace: &Option<String>| ObjectName {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.clone(),
        name: String::new(),
    };
    let Read::Kubernetes(read) = read else { return Vec::new() };
    match read {
        KubernetesRead::Object(object) => vec![(object.clone(), if wished { How::Read } else { How::TakenBack })],
        KubernetesRead::Preview { object, .. } => vec![(object.clone(), if wished { How::Wished } else { How::TakenBack })],
        KubernetesRead::Nodes => vec![(all("v1", "Node", &None), How::Listed)],
        KubernetesRead::States { api_version, kind, namespace } => vec![(all(api_version, kind, namespace), How::Listed)],
        KubernetesRead::Troubles { object, .. } => ["Pod", "Event"].map(|kind| (all("v1", kind, &object.namespace), How::Told)).to_vec(),
        KubernetesRead::Kind(_) | KubernetesRead::Access(_) => Vec::new(),
    }
}

/// The role that a binding gives to somebody: `bind` is asked for it where the binding is.
fn bound(manifest: &Value) -> Option<ObjectName> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Some(ObjectName {
        api_version: text("/apiVersion")?,
        kind: text("/roleRef/kind")?,
        namespace: text("/metadata/namespace"),
        name: text("/roleRef/name")?,
    })
}

/// `DaemonSet kube-system/plugin`.
fn shown(object: &ObjectName) -> String {
    let place = object.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{}", object.kind, object.name)
}

impl Use {
    /// What has to be allowed at this level, with the reason.
    pub fn rights(&self, level: Level, called: &Called) -> Vec<(Right, String)> {
        let mut verbs = match self.how {
            How::Told if level != Level::Apply => Vec::new(),
            How::Told | How::Listed => vec![Verb::List],
            How::Read | How::Edited | How::TakenBack | How::Wished => vec![Verb::Get, Verb::List, Verb::Watch],
        };
        // An edit makes nothing, and there is no preview of it.
        if self.how == How::Edited && level == Level::Apply {
            verbs.push(Verb::Patch);
        }
        if self.how == How::Wished && (level == Level::Apply || (level == Level::Preview && !self.is_unpoliced())) {
            verbs.extend([Verb::Patch, Verb::Create]);
            // What is in a role must be held by the one who writes it, or be given away by this leave
            // (kubernetes/kubernetes: pkg/registry/rbac/escalation_check.go).
            if self.object.group() == ROLES && matches!(self.object.kind.as_str(), "Role" | "ClusterRole") {
                verbs.push(Verb::Escalate);
            }
        }
        if matches!(self.how, How::TakenBack | How::Wished) && level == Level::Apply && !self.stays {
            verbs.push(Verb::Delete);
        }
        let writes = verbs.contains(&Verb::Patch);
        let own = verbs.into_iter().filter_map(|verb| Right::on(&self.object, called, verb));
        let bind = self.binds.as_ref().filter(|_| writes).map(|role| Right {
            namespace: self.object.namespace.clone().filter(|_| called.namespaced),
            group: ROLES.to_owned(),
            resource: format!("{}s", role.kind.to_ascii_lowercase()),
            name: Some(role.name.clone()),
            verb: Verb::Bind,
        });
        own.chain(bind).map(|right| (right, self.reason.clone())).collect()
    }

    /// Whether others own it, and only parts of it are changed: it is neither made nor deleted.
    pub fn is_edited(&self) -> bool {
        self.how == How::Edited
    }

    /// What a run cannot do without to look at it.
    pub fn looks(&self) -> Option<Verb> {
        match self.how {
            How::Told => None,
            How::Listed => Some(Verb::List),
            How::Read | How::Edited | How::TakenBack | How::Wished => Some(Verb::Get),
        }
    }

    /// Whether a preview of it would be held to dry runs by no policy, so that the level `preview` leaves it out.
    pub fn is_unpoliced(&self) -> bool {
        self.how == How::Wished && UNPOLICED.contains(&self.object.kind_and_group().as_str())
    }
}

/// What an action does with which object; nothing where it is for a host.
pub fn of_action(action: &Action) -> Option<(&ObjectName, Verb)> {
    match action {
        Action::ApplyObject { object, .. } => Some((object, Verb::Patch)),
        Action::DeleteObject { object, .. } => Some((object, Verb::Delete)),
        Action::EditConfigMap { object, .. } | Action::MarkPodTemplate { object, .. } => Some((object, Verb::Patch)),
        _ => None,
    }
}

/// The lock and the record of a spec's cluster.
pub fn of_keeper(cluster: &str, level: Level) -> Vec<(Right, String)> {
    let name = keeper(cluster);
    let (lease, secret) = (lease(&name), secret(&name));
    let (lock, record) = (format!("Lease {name}, the lock of a run"), format!("Secret {name}, the record of what was applied"));
    let mut out = vec![(lease(Verb::Get), lock.clone()), (secret(Verb::Get), record.clone())];
    if level == Level::Apply {
        // Made by a POST, whose path has no name.
        out.push((lease(Verb::Create).of_all(), format!("{lock}, made by the first run: a create has no name to hold it to")));
        out.push((lease(Verb::Update), lock));
        out.extend([Verb::Patch, Verb::Create].map(|verb| (secret(verb), record.clone())));
    }
    out
}

/// A right to the Lease of this name.
pub fn lease(name: &str) -> impl Fn(Verb) -> Right {
    own(name, "coordination.k8s.io", "leases")
}

/// A right to the Secret of this name.
pub fn secret(name: &str) -> impl Fn(Verb) -> Right {
    own(name, "", "secrets")
}

fn own(name: &str, group: &'static str, resource: &'static str) -> impl Fn(Verb) -> Right {
    let (namespace, name) = (NAMESPACE.to_owned(), name.to_owned());
    move |verb| Right {
        namespace: Some(namespace.clone()),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: Some(name.clone()),
        verb,
    }
}

/// A rule of RBAC: these verbs on these objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Rule {
    /// Where; the whole cluster where there is none.
    pub namespace: Option<String>,
    /// The API group; empty for the core one.
    pub group: String,
    /// What the server calls objects of the kind.
    pub resource: String,
    /// The objects; all of the kind where none is named.
    pub names: BTreeSet<String>,
    /// What is allowed.
    pub verbs: BTreeSet<Verb>,
    /// Why, a line each.
    pub reasons: BTreeSet<String>,
}

impl Rule {
    /// In one line, as it is added to the rules of a role.
    pub fn line(&self) -> String {
        let listed = |words: &mut dyn Iterator<Item = String>| words.collect::<Vec<_>>().join(", ");
        let names = match self.names.is_empty() {
            true => String::new(),
            false => format!(", resourceNames: [{}]", listed(&mut self.names.iter().map(|name| yaml(name)))),
        };
        let verbs = listed(&mut self.verbs.iter().map(|verb| verb.word().to_owned()));
        format!("- {{ apiGroups: [{}], resources: [{}]{names}, verbs: [{verbs}] }}", yaml(&self.group), yaml(&self.resource))
    }
}

/// The same rights in as few rules as say nothing more.
pub fn rules(rights: impl IntoIterator<Item = (Right, String)>) -> Vec<Rule> {
    type Kind = (Option<String>, String, String);
    type Verbs = BTreeSet<Verb>;
    type Lines = BTreeSet<String>;
    let mut of_name: BTreeMap<(Kind, Option<String>), (Verbs, Lines)> = BTreeMap::new();
    for (right, reason) in rights {
        let found = of_name.entry(((right.namespace, right.group, right.resource), right.name)).or_default();
        found.0.insert(right.verb);
        found.1.insert(reason);
    }
    let mut folded: BTreeMap<(Kind, bool, Verbs), (Lines, Lines)> = BTreeMap::new();
    for ((kind, name), (verbs, reasons)) in of_name {
        let found = folded.entry((kind, name.is_some(), verbs)).or_default();
        found.0.extend(name);
        found.1.extend(reasons);
    }
    let rule = |(((namespace, group, resource), _, verbs), (names, reasons))| Rule { namespace, group, resource, names, verbs, reasons };
    folded.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Address;
    use serde_json::json;

    fn wish(manifest: Value) -> Wish {
        let address = "kube/prod/X.core/-/a".parse::<Address>().unwrap();
        let mut wish = Wish::of(address, "kubernetes_object", json!({ "manifest": manifest, "cluster": "train" }));
        std::sync::Arc::make_mut(&mut wish.want).module = "own/a".to_owned();
        wish
    }

    fn called(plural: &str, namespaced: bool) -> Called {
        Called { plural: plural.to_owned(), namespaced }
    }

    fn told(rights: Vec<(Right, String)>) -> Vec<String> {
        let verbs = |rule: &Rule| rule.verbs.iter().map(|verb| verb.word()).collect::<Vec<_>>().join(",");
        let names = |rule: &Rule| rule.names.iter().cloned().collect::<Vec<_>>().join(",");
        let line =
            |rule: Rule| format!("{} {} [{}] {}", rule.namespace.clone().unwrap_or_default(), rule.resource, names(&rule), verbs(&rule));
        rules(rights).into_iter().map(line).collect()
    }

    #[test]
    fn each_level_allows_what_it_does_and_no_more() {
        let object = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "n" } });
        let of = |level: Level, wished: bool| {
            let all: Vec<Use> = ["a", "b"].iter().flat_map(|name| uses(&wish(object(name)), wished)).collect();
            told(all.iter().flat_map(|one| one.rights(level, &called("configmaps", true))).collect())
        };
        assert_eq!(of(Level::Observe, true), ["n configmaps [a,b] get,list,watch"]);
        assert_eq!(of(Level::Preview, true), ["n configmaps [a,b] get,list,watch,create,patch"]);
        assert_eq!(of(Level::Apply, true), ["n configmaps [a,b] get,list,watch,create,patch,delete"]);
        assert_eq!(of(Level::Preview, false), ["n configmaps [a,b] get,list,watch"]);
        assert_eq!(of(Level::Apply, false), ["n configmaps [a,b] get,list,watch,delete"]);
        let reason = uses(&wish(object("a")), true).remove(0).reason;
        assert_eq!(reason, "ConfigMap n/a of module own");
    }

    #[test]
    fn what_is_never_deleted_needs_no_leave_for_it() {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
        let of = |wish: &Wish| told(uses(wish, true)[0].rights(Level::Apply, &called("namespaces", false)));
        assert_eq!(of(&wish(namespace)), [" namespaces [n] get,list,watch,create,patch"]);
        let mut adopted = wish(json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "p" } }));
        assert!(of(&adopted)[0].ends_with("delete"));
        std::sync::Arc::make_mut(&mut adopted.want).body["adopt"] = json!(true);
        assert!(!of(&adopted)[0].ends_with("delete"));
    }

    #[test]
    fn roles_and_bindings_need_leave_to_give_away() {
        let object = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "b", "namespace": "n" },
                             "roleRef": { "kind": "ClusterRole", "name": "view" } });
        let binding = uses(&wish(object), true).remove(0);
        let of = |level| told(binding.rights(level, &called("rolebindings", true)));
        assert_eq!(of(Level::Observe), ["n rolebindings [b] get,list,watch"]);
        assert_eq!(of(Level::Preview), ["n clusterroles [view] bind", "n rolebindings [b] get,list,watch,create,patch"]);
        let object =
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "r" }, "rules": [] });
        let role = uses(&wish(object), true).remove(0);
        assert_eq!(
            told(role.rights(Level::Preview, &called("clusterroles", false))),
            [" clusterroles [r] get,list,watch,create,patch,escalate"]
        );
    }

    /// No policy could hold a preview of these to dry runs.
    #[test]
    fn what_no_policy_sees_is_not_previewed() {
        let object =
            json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "p" } });
        let policy = uses(&wish(object), true).remove(0);
        let of = |level| told(policy.rights(level, &called("policies", false)));
        assert_eq!((policy.is_unpoliced(), of(Level::Preview)), (true, of(Level::Observe)));
        assert_eq!(of(Level::Apply), [" policies [p] get,list,watch,create,patch,delete"]);
    }

    #[test]
    fn the_record_is_one_secret_and_no_other() {
        assert_eq!(
            told(of_keeper("train", Level::Preview)),
            ["kube-system secrets [railwright-train] get", "kube-system leases [railwright-train] get"]
        );
        assert_eq!(
            told(of_keeper("train", Level::Apply)),
            [
                "kube-system secrets [railwright-train] get,create,patch",
                "kube-system leases [] create",
                "kube-system leases [railwright-train] get,update"
            ]
        );
    }

    #[test]
    fn a_rule_in_a_line_is_yaml() {
        let lines: Vec<String> = rules(of_keeper("train", Level::Apply)).iter().map(Rule::line).collect();
        let read: Value = serde_yaml::from_str(&lines.join("\n")).unwrap();
        let secret = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["railwright-train"], "verbs": ["get", "create", "patch"] });
        let lease = json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"] });
        assert_eq!((&read[0], &read[1]), (&secret, &lease));
    }

    #[test]
    fn an_object_that_names_no_namespace_is_helped_by_no_rule() {
        let object = ObjectName { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), namespace: None, name: "a".to_owned() };
        assert_eq!(Right::on(&object, &called("configmaps", true), Verb::Get), None);
    }
}
