//! Rights that are asked for, and rules that say them.

use super::super::rule::{RbacRule, build_rbac_rules};
use super::*;
use crate::ResourceKind;
use crate::kubernetes_object::KubernetesObject;
use railwright_base::{Address, Target};
use serde_json::json;

fn resource(manifest: Value) -> DesiredResource {
    let body = json!({ "manifest": manifest, "cluster": "train" });
    let address = Address {
        target: Target::kube("prod"),
        path: KubernetesObject.address_path(&body).unwrap().into(),
        attribute: None,
    };
    let mut resource = DesiredResource::of(address, "kubernetes_object", body);
    std::sync::Arc::make_mut(&mut resource.declaration).module = "own/a".to_owned();
    resource
}

fn called(plural: &str, namespaced: bool) -> ApiResourceName {
    ApiResourceName {
        plural: plural.to_owned(),
        namespaced,
    }
}

fn told(rights: Vec<(Right, String)>) -> Vec<String> {
    let verbs = |rule: &RbacRule| {
        rule.verbs
            .iter()
            .map(|verb| verb.word())
            .collect::<Vec<_>>()
            .join(",")
    };
    let names = |rule: &RbacRule| rule.names.iter().cloned().collect::<Vec<_>>().join(",");
    let line = |rule: RbacRule| {
        format!(
            "{} {} [{}] {}",
            rule.namespace.clone().unwrap_or_default(),
            rule.resource,
            names(&rule),
            verbs(&rule)
        )
    };
    build_rbac_rules(rights).into_iter().map(line).collect()
}

#[test]
fn each_level_allows_what_it_does_and_no_more() {
    let object = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "n" } });
    let of = |level: AccessLevel, desired: bool| {
        let all: Vec<ObjectUse> = ["a", "b"]
            .iter()
            .flat_map(|name| list_object_uses(&resource(object(name)), desired))
            .collect();
        told(
            all.iter()
                .flat_map(|one| one.rights(level, &called("configmaps", true)))
                .collect(),
        )
    };
    assert_eq!(
        of(AccessLevel::Observe, true),
        ["n configmaps [a,b] get,list,watch"]
    );
    assert_eq!(
        of(AccessLevel::Preview, true),
        ["n configmaps [a,b] get,list,watch,create,patch"]
    );
    assert_eq!(
        of(AccessLevel::Apply, true),
        ["n configmaps [a,b] get,list,watch,create,patch,delete"]
    );
    assert_eq!(
        of(AccessLevel::Preview, false),
        ["n configmaps [a,b] get,list,watch"]
    );
    assert_eq!(
        of(AccessLevel::Apply, false),
        ["n configmaps [a,b] get,list,watch,delete"]
    );
    let reason = list_object_uses(&resource(object("a")), true)
        .remove(0)
        .reason;
    assert_eq!(reason, "ConfigMap n/a of module own");
}

#[test]
fn what_is_never_deleted_needs_no_leave_for_it() {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    let of = |resource: &DesiredResource| {
        told(
            list_object_uses(resource, true)[0]
                .rights(AccessLevel::Apply, &called("namespaces", false)),
        )
    };
    assert_eq!(
        of(&resource(namespace)),
        [" namespaces [n] get,list,watch,create,patch"]
    );
    let mut adopted = resource(
        json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "p" } }),
    );
    assert!(of(&adopted)[0].ends_with("delete"));
    std::sync::Arc::make_mut(&mut adopted.declaration).body["adopt"] = json!(true);
    assert!(!of(&adopted)[0].ends_with("delete"));
}

#[test]
fn roles_and_bindings_need_leave_to_give_away() {
    let object = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "b", "namespace": "n" },
                         "roleRef": { "kind": "ClusterRole", "name": "view" } });
    let binding = list_object_uses(&resource(object), true).remove(0);
    let of = |level| told(binding.rights(level, &called("rolebindings", true)));
    assert_eq!(
        of(AccessLevel::Observe),
        ["n rolebindings [b] get,list,watch"]
    );
    assert_eq!(
        of(AccessLevel::Preview),
        [
            "n clusterroles [view] bind",
            "n rolebindings [b] get,list,watch,create,patch"
        ]
    );
    let object = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "b", "namespace": "n" },
                         "roleRef": { "kind": "Role/x", "name": "view" } });
    let strange = list_object_uses(&resource(object), true).remove(0);
    assert_eq!(
        told(strange.rights(AccessLevel::Preview, &called("rolebindings", true))),
        ["n rolebindings [b] get,list,watch,create,patch"],
        "no binding refers to such a kind"
    );
    let object = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "r" }, "rules": [] });
    let role = list_object_uses(&resource(object), true).remove(0);
    assert_eq!(
        told(role.rights(AccessLevel::Preview, &called("clusterroles", false))),
        [" clusterroles [r] get,list,watch,create,patch,escalate"]
    );
}

/// No policy could hold a preview of these to dry runs.
#[test]
fn what_no_policy_sees_is_not_previewed() {
    let object = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "p" } });
    let policy = list_object_uses(&resource(object), true).remove(0);
    let of = |level| told(policy.rights(level, &called("policies", false)));
    assert_eq!(
        (
            policy.is_unpoliced(&called("policies", false)),
            of(AccessLevel::Preview)
        ),
        (true, of(AccessLevel::Observe))
    );
    assert_eq!(
        of(AccessLevel::Apply),
        [" policies [p] get,list,watch,create,patch,delete"]
    );
}

#[test]
fn what_no_policy_sees_is_known_by_its_resource_whatever_its_kind_is_called() {
    let object = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "Rail", "metadata": { "name": "p" } });
    let rail = list_object_uses(&resource(object), true).remove(0);
    for plural in [
        "validatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ] {
        let verbs = [format!(" {plural} [p] get,list,watch")];
        assert_eq!(
            told(rail.rights(AccessLevel::Preview, &called(plural, false))),
            verbs
        );
    }
    assert!(!rail.is_unpoliced(&called("validatingwebhookconfigurations", false)));
}

#[test]
fn the_record_is_one_secret_and_no_other() {
    assert_eq!(
        told(of_keeper("train", AccessLevel::Preview)),
        [
            "kube-system namespaces [kube-system] get",
            "kube-system secrets [railwright-train] get",
            "kube-system leases [railwright-train] get"
        ]
    );
    assert_eq!(
        told(of_keeper("train", AccessLevel::Apply)),
        [
            "kube-system namespaces [kube-system] get",
            "kube-system secrets [railwright-train] get,create,patch",
            "kube-system leases [railwright-train] get,create,update,patch"
        ]
    );
}

#[test]
fn an_object_that_names_no_namespace_is_helped_by_no_rule() {
    let object = ObjectName {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: None,
        name: "a".to_owned(),
    };
    assert_eq!(
        Right::on(&object, &called("configmaps", true), ApiVerb::Get),
        None
    );
}
