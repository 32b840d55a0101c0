//! The objects that a chart renders: read out of Helm's text, named, and refused where two of them
//! cannot be told apart.

use super::release_object::find_annotation;
use crate::kubernetes_object::manifest;
use crate::kubernetes_object::ownership::set_metadata_mark;
use crate::kubernetes_object::request::ObjectName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An object with this annotation is a hook: it is no part of the release, and made when what it
/// names comes (helm.sh/docs/topics/charts_hooks).
pub(super) const HOOK: &str = "helm.sh/hook";
/// Helm deletes the object of a hook before it makes it the next time, or as soon as it came
/// through where this says so.
pub(super) const HOOK_DELETION: &str = "helm.sh/hook-delete-policy";

/// The objects of a manifest that Helm rendered, in its order; those of a list one by one.
pub fn parse_manifest_objects(text: &str) -> Result<Vec<Value>, String> {
    let mut out = Vec::new();
    for part in split_yaml_documents(text) {
        let object = manifest::of_text(&part)
            .map_err(|reason| format!("an object of the release cannot be read: {reason}"))?;
        push_with_items(object, &mut out)?;
    }
    Ok(out)
}

/// A line that begins with `---` ends a document wherever it stands (yaml.org/spec/1.2.2, section
/// 9.1.2).
fn split_yaml_documents(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for line in text.lines() {
        match (line.strip_prefix("---"), out.last_mut()) {
            (None, Some(last)) => last.extend([line, "\n"]),
            _ => out.push(String::new()),
        }
    }
    let says = |part: &String| {
        part.lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    out.into_iter().filter(says).collect()
}

/// Helm looks at the annotations of a list alone: all its items are hooks, or none is
/// (helm/helm: pkg/release/util/manifest_sorter.go).
fn push_with_items(object: Value, out: &mut Vec<Value>) -> Result<(), String> {
    let is_list = object
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"));
    let Some(items) = object
        .get("items")
        .and_then(Value::as_array)
        .filter(|_| is_list)
    else {
        out.push(object);
        return Ok(());
    };
    for item in items {
        let mut item = item.clone();
        if find_annotation(&object, HOOK).is_some() {
            for name in [HOOK, HOOK_DELETION] {
                copy_annotation(&object, &mut item, name);
            }
        } else if find_annotation(&item, HOOK).is_some() {
            let name = describe_rendered_object(&item).unwrap_or_default();
            return Err(format!(
                "the chart renders {name} as an item of a list, with the annotation {HOOK}: Helm \
                 takes it for no hook, and would install it with the rest"
            ));
        }
        push_with_items(item, out)?;
    }
    Ok(())
}

/// Gives an item of a list the list's own annotation, or none where the list has none.
fn copy_annotation(list: &Value, item: &mut Value, name: &str) {
    if let Some(text) = find_annotation(list, name) {
        set_metadata_mark(item, "annotations", name, text);
    } else if let Some(annotations) = item
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(name);
    }
}

/// The name of an object that a chart renders. Of one that the server is to name it is what its
/// name begins with: `default/migrate-*`.
pub fn parse_rendered_name(object: &Value) -> Option<ObjectName> {
    manifest::parse_object_name(object).or_else(|| {
        let prefix = object.pointer("/metadata/generateName")?.as_str()?;
        manifest::parse_object_named(object, format!("{prefix}*"))
    })
}

/// The objects by what they are called.
pub fn index_objects_by_name(objects: &[Value]) -> BTreeMap<String, &Value> {
    objects
        .iter()
        .filter_map(|object| Some((describe_rendered_object(object)?, object)))
        .collect()
}

fn describe_rendered_object(object: &Value) -> Option<String> {
    Some(called(object, &parse_rendered_name(object)?))
}

/// An object by this name, and of a hook when it is made: `hook Job.batch default/migrate
/// (pre-upgrade)`.
pub fn called(object: &Value, name: &ObjectName) -> String {
    match find_annotation(object, HOOK) {
        Some(events) => format!("hook {name} ({events})"),
        None => name.to_string(),
    }
}

/// Why these objects cannot be shown one by one: two of them are called alike, and Helm takes
/// both, or one has no name at all.
pub fn find_ambiguous_object(objects: &[Value]) -> Option<String> {
    let mut seen = BTreeSet::new();
    for object in objects {
        let Some(name) = describe_rendered_object(object) else {
            return Some("the chart renders an object without a name".to_owned());
        };
        if !seen.insert(name.clone()) {
            return Some(format!(
                "the chart renders {name} twice, and which of the two comes to be is not known: \
                 render it once"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let objects = parse_manifest_objects(text).unwrap();
        objects
            .iter()
            .filter_map(describe_rendered_object)
            .collect()
    }

    #[test]
    fn items_of_a_list_are_hooks_where_the_list_is() {
        let item = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }";
        let list = |annotations: &str, item: &str| {
            format!(
                "apiVersion: v1\n\
                 kind: List\n\
                 metadata: {{ annotations: {{ {annotations} }} }}\n\
                 items: [{item}]\n"
            )
        };
        assert_eq!(names(&list("", item)), ["ConfigMap.core a"]);
        assert_eq!(
            names(&list("helm.sh/hook: test", item)),
            ["hook ConfigMap.core a (test)"]
        );
        let own = item.replace(
            "name: a",
            "name: a, annotations: { helm.sh/hook: pre-install }",
        );
        assert_eq!(
            names(&list("helm.sh/hook: test", &own)),
            ["hook ConfigMap.core a (test)"]
        );
        let refused = parse_manifest_objects(&list("", &own)).unwrap_err();
        assert!(refused.contains("takes it for no hook"), "{refused}");
    }

    #[test]
    fn objects_that_cannot_be_told_apart_are_refused() {
        let one = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
        let hook = "---\n\
                    apiVersion: batch/v1\n\
                    kind: Job\n\
                    metadata: { generateName: m-, annotations: { helm.sh/hook: pre-upgrade } }\n";
        let check = |text: &str| find_ambiguous_object(&parse_manifest_objects(text).unwrap());
        assert_eq!(names(hook), ["hook Job.batch m-* (pre-upgrade)"]);
        assert_eq!(check(&format!("{one}{hook}")), None);
        let twice = check(&format!("{one}{hook}{one}")).unwrap();
        assert!(twice.contains("ConfigMap.core a twice"), "{twice}");
        assert!(check("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n").is_some());
    }
}
