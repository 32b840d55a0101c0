//! Rights folded to rules of RBAC, as they stand in a role.

use super::access::{ApiVerb, Right};
use railwright_base::text::format_yaml_text;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A rule of RBAC: these verbs on these objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct RbacRule {
    /// Where; the whole cluster where there is none.
    pub namespace: Option<String>,
    /// The API group; empty for the core one.
    pub group: String,
    /// What the server calls objects of the kind.
    pub resource: String,
    /// The objects; all of the kind where none is named.
    pub names: BTreeSet<String>,
    /// What is allowed.
    pub verbs: BTreeSet<ApiVerb>,
    /// Why, a line each.
    pub reasons: BTreeSet<String>,
}

impl RbacRule {
    /// In one line, as it is added to the rules of a role.
    pub fn line(&self) -> String {
        let names: Vec<String> = self
            .names
            .iter()
            .map(|name| format_yaml_text(name))
            .collect();
        let names = match names.is_empty() {
            true => String::new(),
            false => format!(", resourceNames: [{}]", names.join(", ")),
        };
        let verbs: Vec<_> = self.verbs.iter().map(|verb| verb.word()).collect();
        format!(
            "- {{ apiGroups: [{}], resources: [{}]{names}, verbs: [{}] }}",
            format_yaml_text(&self.group),
            format_yaml_text(&self.resource),
            verbs.join(", ")
        )
    }
}

/// Folds rights into as few rules as can be that allow nothing more.
pub fn build_rbac_rules(rights: impl IntoIterator<Item = (Right, String)>) -> Vec<RbacRule> {
    type Kind = (Option<String>, String, String);
    type Verbs = BTreeSet<ApiVerb>;
    type Lines = BTreeSet<String>;
    let mut of_name: BTreeMap<(Kind, Option<String>), (Verbs, Lines)> = BTreeMap::new();
    for (right, reason) in rights {
        let found = of_name
            .entry(((right.namespace, right.group, right.resource), right.name))
            .or_default();
        found.0.insert(right.verb);
        found.1.insert(reason);
    }
    let mut folded: BTreeMap<(Kind, bool, Verbs), (Lines, Lines)> = BTreeMap::new();
    for ((kind, name), (verbs, reasons)) in of_name {
        let found = folded.entry((kind, name.is_some(), verbs)).or_default();
        found.0.extend(name);
        found.1.extend(reasons);
    }
    let mut rules = Vec::new();
    for (((namespace, group, resource), _, verbs), (names, reasons)) in folded {
        rules.push(RbacRule {
            namespace,
            group,
            resource,
            names,
            verbs,
            reasons,
        });
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::super::access::{AccessLevel, of_keeper};
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_rule_in_a_line_is_yaml() {
        let lines: Vec<String> = build_rbac_rules(of_keeper("train", AccessLevel::Apply))
            .iter()
            .map(RbacRule::line)
            .collect();
        let read: Value = serde_yaml::from_str(&lines.join("\n")).unwrap();
        let secret = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["railwright-train"], "verbs": ["get", "create", "patch"] });
        let verbs = ["get", "create", "update", "patch"];
        let lease = json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["railwright-train"], "verbs": verbs });
        assert_eq!((&read[1], &read[2]), (&secret, &lease));
    }
}
