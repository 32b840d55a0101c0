//! The mark by which a pending restart can be seen: an annotation on the ConfigMap, written
//! together with the edit, and the same on the template of the pods that read it. A template
//! without it runs pods that have not read the edit.
//!
//! `kubectl rollout restart` sets an annotation of its own on the template in the same way, with
//! the time in it (kubernetes/kubectl, pkg/polymorphichelpers/objectrestarter.go).

use crate::kubernetes_object::request::ObjectName;
use railwright_base::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An annotation: what it is to be, or that it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestartMark {
    /// Its name.
    pub name: String,
    /// Nothing where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Where an object has its annotations.
pub const OF_OBJECT: &str = "/metadata/annotations";
/// Where the template of its pods has theirs.
pub const OF_TEMPLATE: &str = "/spec/template/metadata/annotations";

/// The name of an annotation has at most so many characters after its prefix.
const NAME_LIMIT: usize = 63;

/// One name for each text. No name of an object has a `_`, so that the key begins at the first.
pub fn build_mark_name(config_map: &ObjectName, key: &str) -> String {
    let whole = format!(
        "{}.{}_{key}",
        config_map.namespace.as_deref().unwrap_or_default(),
        config_map.name
    );
    let ends_well = key.ends_with(|c: char| c.is_ascii_alphanumeric());
    if whole.len() <= NAME_LIMIT && ends_well {
        return format!("railwright.io/{whole}");
    }
    format!(
        "railwright.io/text-{}",
        Digest::of_bytes(whole.as_bytes()).short()
    )
}

/// The mark of an edit: another one each time, so that pods which read what somebody wrote in
/// between start anew too.
pub fn of_edit(desired: &Value, actual: &Value, template: Option<&str>) -> String {
    Digest::of(&(desired, actual, template)).short().to_owned()
}

/// The mark of values that stood there without us.
pub fn of_values(desired: &Value) -> String {
    Digest::of(desired).short().to_owned()
}

/// The mark that an object bears, by the pointer of its annotations.
pub fn find_mark_value<'o>(object: &'o Value, annotations: &str, name: &str) -> Option<&'o str> {
    object.pointer(annotations)?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_its_own_name() {
        let map = |name: &str| ObjectName {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("kube-system".to_owned()),
            name: name.to_owned(),
        };
        assert_eq!(
            build_mark_name(&map("eni-config"), "eni_conf"),
            "railwright.io/kube-system.eni-config_eni_conf"
        );
        let names = [
            ("a.b", "c"),
            ("a", "b.c"),
            ("a", "b_c"),
            ("a", "b-"),
            (&"a".repeat(60), "b"),
        ]
        .map(|(map_name, key)| build_mark_name(&map(map_name), key));
        for (n, name) in names.iter().enumerate() {
            let (_, local) = name.split_once('/').unwrap();
            assert!(
                local.len() <= 63
                    && local.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && !names[..n].contains(name),
                "{name}"
            );
        }
    }
}
