//! The objects that a chart renders: read out of Helm's text, named, and refused where two of them
//! cannot be told apart.

use super::ambiguous_yaml::{has_ambiguous_line_break, refuse_ambiguous_yaml};
use super::release_object::{find_annotation, has_policy};
use crate::json_fields::{read_text_at, read_text_field, read_text_list_field};
use crate::kubernetes_object::manifest;
use crate::kubernetes_object::ownership::set_metadata_mark;
use crate::kubernetes_object::request::ObjectName;
use railwright_base::Reason;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An object with this annotation is a hook: it is no part of the release, and made when what it
/// names comes (helm.sh/docs/topics/charts_hooks).
pub(super) const HOOK: &str = "helm.sh/hook";
/// Helm deletes the object of a hook before it makes it the next time, or as soon as it came
/// through where this says so.
pub(super) const HOOK_DELETION: &str = "helm.sh/hook-delete-policy";
/// Of a hook that has no such annotation; an empty one is a policy that deletes nothing (helm/helm:
/// pkg/action/hooks.go, `execHook`).
pub(super) const DELETED_FIRST: &str = "before-hook-creation";

/// The objects of a manifest that Helm rendered, in its order; those of a list one by one. Helm has
/// hooks beside it, by its own reading of the head of a document.
pub fn parse_manifest_objects(text: &str) -> Result<Vec<Value>, Reason> {
    let mut out = Vec::new();
    for document in parse_documents(text)? {
        push_with_items(document, &mut out)?;
    }
    refuse_hidden_hook(&out)?;
    Ok(out)
}

/// An object with the annotation of a hook that Helm takes for none.
fn refuse_hidden_hook(objects: &[Value]) -> Result<(), Reason> {
    match objects.iter().find(|object| is_hook(object)) {
        None => Ok(()),
        Some(object) => Err(format!(
            "the chart renders {} with the annotation {HOOK} as an item of a list or below crds/: \
             Helm takes it for no hook, and would install it with the rest",
            describe_rendered_object(object).unwrap_or_default()
        )
        .into()),
    }
}

/// Of each object of a manifest, whether Helm leaves it when the release is uninstalled: the head
/// of its document says so, which for an item is that of the list. Helm passes over every policy
/// there, whatever its word (helm/helm: pkg/action/resource_policy.go, `filterManifestsToKeep`).
pub fn list_kept_objects(text: &str) -> Result<Vec<bool>, Reason> {
    let mut out = Vec::new();
    for document in parse_documents(text)? {
        let is_kept = has_policy(&document);
        let mut objects = Vec::new();
        push_with_items(document, &mut objects)?;
        out.extend(objects.iter().map(|_| is_kept));
    }
    Ok(out)
}

/// The objects of a hook as Helm's JSON has it. Their annotations are what Helm goes by.
pub fn parse_hook_objects(hook: &Value) -> Result<Vec<Value>, Reason> {
    let events = read_text_list_field(hook, "events").join(",");
    let deletions = match read_text_list_field(hook, "delete_policies") {
        none if none.is_empty() => DELETED_FIRST.to_owned(),
        policies => policies.join(","),
    };
    let text = read_text_field(hook, "manifest");
    let mut out = Vec::new();
    for document in parse_documents(text.unwrap_or_default())? {
        push_hook_objects(document, &events, &deletions, &mut out)?;
    }
    Ok(out)
}

/// Whether Helm's last run of a hook, as Helm's JSON has it, left an object on the cluster
/// (helm/helm: pkg/action/hooks.go, `execHook`).
pub fn is_left_by_last_run(hook: &Value) -> bool {
    let deletion = match read_text_at(hook, "/last_run/phase") {
        None | Some("") => return false,
        Some("Succeeded") => "hook-succeeded",
        Some("Failed") => "hook-failed",
        Some(_) => return true,
    };
    let deletions = read_text_list_field(hook, "delete_policies");
    !deletions.iter().any(|policy| policy == deletion)
}

/// The words of an annotation, in small letters and without spaces.
fn normalize_words(document: &Value, annotation: &str) -> Option<String> {
    let words = find_annotation(document, annotation)?.split(',');
    let words: Vec<String> = words.map(|word| word.trim().to_lowercase()).collect();
    Some(words.join(","))
}

/// The objects of what `helm template` prints: hooks are among them there, by the annotations of
/// each document (helm/helm: pkg/releaseutil/manifest_sorter.go).
pub fn parse_template_objects(text: &str) -> Result<Vec<Value>, Reason> {
    let mut out = Vec::new();
    for document in parse_documents(text)? {
        let events = normalize_words(&document, HOOK);
        let deletions = normalize_words(&document, HOOK_DELETION);
        match (events, deletions) {
            (None, _) => {
                let mut objects = Vec::new();
                push_with_items(document, &mut objects)?;
                refuse_hidden_hook(&objects)?;
                out.append(&mut objects);
            }
            (Some(events), deletions) => {
                let deletions = deletions.as_deref().unwrap_or(DELETED_FIRST);
                push_hook_objects(document, &events, deletions, &mut out)?;
            }
        }
    }
    Ok(out)
}

/// The documents of a manifest that are not empty.
fn parse_documents(text: &str) -> Result<Vec<Value>, Reason> {
    if has_ambiguous_line_break(text) {
        return Err(
            "the chart renders a line break that is none to every reader of YAML (a carriage \
             return alone, U+0085, U+2028 or U+2029), and what Helm makes of it is not known: end \
             lines with a line feed, and write others as escapes in double quotes"
                .into(),
        );
    }
    let mut out = Vec::new();
    for part in split_yaml_documents(text) {
        let document = manifest::parse_yaml(&part)
            .map_err(|reason| format!("an object of the release cannot be read: {reason}"))?;
        refuse_ambiguous_yaml(&part)?;
        match document {
            Value::Null => {}
            Value::Object(_) => out.push(document),
            _ => return Err("the chart renders a document that is no object".into()),
        }
    }
    Ok(out)
}

/// A line that begins with `---` ends a document wherever it stands, and may begin the next one
/// (yaml.org/spec/1.2.2, section 9.1.2).
fn split_yaml_documents(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for line in text.lines() {
        let rest = line.strip_prefix("---");
        if rest.is_some() {
            out.push(String::new());
        }
        if let Some(last) = out.last_mut() {
            last.extend([rest.unwrap_or(line), "\n"]);
        }
    }
    out
}

/// An object with an array `items` is a list to Helm, whatever its kind
/// (k8s.io/apimachinery: pkg/apis/meta/v1/unstructured/helpers.go, `decode`).
fn push_with_items(object: Value, out: &mut Vec<Value>) -> Result<(), Reason> {
    check_keys(&object)?;
    let Some(items) = object.get("items").and_then(Value::as_array) else {
        out.push(object);
        return Ok(());
    };
    for item in items {
        push_with_items(item.clone(), out)?;
    }
    Ok(())
}

/// The objects of one hook: all items of a list are hooks where the list is.
fn push_hook_objects(
    document: Value,
    events: &str,
    deletions: &str,
    out: &mut Vec<Value>,
) -> Result<(), Reason> {
    let first = out.len();
    push_with_items(document, out)?;
    for object in out.iter_mut().skip(first) {
        set_metadata_mark(object, "annotations", HOOK, events);
        set_metadata_mark(object, "annotations", HOOK_DELETION, deletions);
    }
    Ok(())
}

/// What Helm reads the head of a document by.
const HEAD: [(&str, &[&str]); 2] = [
    ("", &["apiVersion", "kind", "metadata", "items"]),
    (
        "/metadata",
        &["name", "namespace", "generateName", "annotations"],
    ),
];

/// Refuses keys that Helm takes for one of its head and the API server does not: Go knows no case
/// there (pkg.go.dev/encoding/json, `Unmarshal`).
fn check_keys(object: &Value) -> Result<(), Reason> {
    for (pointer, known) in HEAD {
        let map = object.pointer(pointer).and_then(Value::as_object);
        for key in map.into_iter().flat_map(|map| map.keys()) {
            let meant = known
                .iter()
                .find(|known| fold_case(known) == fold_case(key));
            if let Some(meant) = meant.filter(|meant| *meant != key) {
                return Err(format!(
                    "the chart renders an object with the key {key:?}, which is {meant} to Helm \
                     and another one to the API server: write {meant}"
                )
                .into());
            }
        }
    }
    Ok(())
}

fn fold_case(key: &str) -> String {
    key.to_uppercase().to_lowercase()
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

pub(super) fn describe_rendered_object(object: &Value) -> Option<String> {
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

/// Whether an object of a rendering is a hook.
pub fn is_hook(object: &Value) -> bool {
    find_annotation(object, HOOK).is_some()
}

/// Why these objects cannot be shown one by one: two of them have one name, and Helm takes both, or
/// one has no name at all.
pub fn find_ambiguous_object(objects: &[Value]) -> Option<String> {
    let mut seen = BTreeSet::new();
    for object in objects {
        let Some(name) = describe_rendered_object(object) else {
            return Some("the chart renders an object without a name".to_owned());
        };
        if !seen.insert(name.clone()) {
            return Some(format!(
                "the chart renders {name} twice, and which of the two Helm installs is not known: \
                 render it once"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(text: &str) -> Vec<String> {
        let objects = parse_manifest_objects(text).unwrap();
        objects
            .iter()
            .filter_map(describe_rendered_object)
            .collect()
    }

    const BINDING: &str = "{ apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, \
                           metadata: { name: b } }";

    fn list(kind: &str, annotations: &str, item: &str) -> String {
        format!(
            "apiVersion: v1\n\
             kind: {kind}\n\
             metadata: {{ name: l, annotations: {{ {annotations} }} }}\n\
             items: [{item}]\n"
        )
    }

    fn names_of_hook(text: &str) -> Vec<String> {
        let hook = json!({ "manifest": text, "events": ["pre-delete", "test"] });
        let objects = parse_hook_objects(&hook).unwrap();
        objects
            .iter()
            .filter_map(describe_rendered_object)
            .collect()
    }

    #[test]
    fn an_object_with_items_is_a_list_whatever_its_kind() {
        let name = "ClusterRoleBinding.rbac.authorization.k8s.io b";
        for kind in ["List", "ConfigMap"] {
            assert_eq!(names(&list(kind, "", BINDING)), [name]);
            assert_eq!(
                names_of_hook(&list(kind, "helm.sh/hook: x", BINDING)),
                [format!("hook {name} (pre-delete,test)")]
            );
        }
        let own = BINDING.replace(
            "name: b",
            "name: b, annotations: { helm.sh/hook: pre-install }",
        );
        let refused = parse_manifest_objects(&list("List", "", &own)).unwrap_err();
        assert!(
            refused.as_words().contains("takes it for no hook"),
            "{refused}"
        );
        let printed = format!(
            "{}---\n{own}\n",
            list("List", "helm.sh/hook: Test", BINDING)
        );
        let printed: Vec<_> = parse_template_objects(&printed)
            .unwrap()
            .iter()
            .filter_map(describe_rendered_object)
            .collect();
        assert_eq!(
            printed,
            [
                format!("hook {name} (test)"),
                format!("hook {name} (pre-install)")
            ]
        );
    }

    /// Whatever the annotations of its object say.
    #[test]
    fn a_hook_is_what_helm_says() {
        let hook = |more: &Value| {
            let mut hook = json!({ "manifest": BINDING, "events": ["pre-delete"] });
            hook.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            parse_hook_objects(&hook).unwrap()
        };
        let default = hook(&json!({}));
        assert_eq!(find_annotation(&default[0], HOOK), Some("pre-delete"));
        assert_eq!(
            default,
            hook(&json!({ "delete_policies": ["before-hook-creation"] })),
            "Helm notes its default once the hook ran"
        );
        for other in ["hook-succeeded", ""] {
            assert_ne!(default, hook(&json!({ "delete_policies": [other] })));
        }
        let printed = |annotations: &str| {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: a, annotations: {{ \
                 helm.sh/hook: pre-install{annotations} }} }}\n"
            );
            let objects = parse_template_objects(&text).unwrap();
            find_annotation(&objects[0], HOOK_DELETION).map(str::to_owned)
        };
        assert_eq!(printed("").as_deref(), Some(DELETED_FIRST));
        assert_eq!(
            printed(", helm.sh/hook-delete-policy: \"\"").as_deref(),
            Some("")
        );
    }

    #[test]
    fn a_hook_leaves_what_its_last_run_did_not_delete() {
        let is_left = |phase: &str, policy: &str| {
            is_left_by_last_run(
                &json!({ "last_run": { "phase": phase }, "delete_policies": [policy] }),
            )
        };
        for (phase, policy, left) in [
            ("", "before-hook-creation", false),
            ("Succeeded", "before-hook-creation", true),
            ("Succeeded", "hook-succeeded", false),
            ("Failed", "hook-succeeded", true),
            ("Failed", "hook-failed", false),
            ("Running", "hook-succeeded", true),
        ] {
            assert_eq!(is_left(phase, policy), left, "{phase} {policy}");
        }
        assert!(!is_left_by_last_run(&json!({})));
    }

    #[test]
    fn a_list_says_what_of_it_is_kept() {
        let policy = "helm.sh/resource-policy: keep";
        let own = BINDING.replace("name: b", &format!("name: b, annotations: {{ {policy} }}"));
        let text = format!(
            "{}---\n{}---\n{own}\n",
            list("List", "", &own),
            list("List", policy, BINDING)
        );
        assert_eq!(list_kept_objects(&text), Ok(vec![false, true, true]));
    }

    #[test]
    fn only_what_the_parser_finds_empty_is_no_object() {
        let name = ["ClusterRoleBinding.rbac.authorization.k8s.io b"];
        assert_eq!(
            names(&format!(
                "# a\r\n--- # b\n\n---\nnull\n--- {BINDING}\n---\n"
            )),
            name
        );
        for end in ["\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            let refused = parse_manifest_objects(&format!("# nothing{end}{BINDING}\n"));
            assert!(
                refused.unwrap_err().as_words().contains("line break"),
                "{end:?}"
            );
        }
        assert!(parse_manifest_objects("---\nword\n").is_err());
        assert!(parse_manifest_objects("kind: a\n<<: { kind: b }\n").is_err());
    }

    #[test]
    fn keys_that_are_others_to_helm_are_refused() {
        for (key, other) in [
            ("kind", "Kind"),
            ("kind", "\u{212a}ind"),
            ("metadata", "metaData"),
            ("name: b", "name: b, Annotations: {}"),
            ("kind", "Items: [], kind"),
            ("kind", "item\u{17f}: [], kind"),
        ] {
            for text in [
                BINDING.replacen(key, other, 1),
                list("List", "", &BINDING.replacen(key, other, 1)),
            ] {
                let refused = parse_manifest_objects(&text);
                assert!(
                    refused.unwrap_err().as_words().contains("to Helm"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn objects_that_cannot_be_told_apart_are_refused() {
        let one = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
        let hook = "---\n\
                    apiVersion: batch/v1\n\
                    kind: Job\n\
                    metadata: { generateName: m- }\n";
        let check = |text: &str| find_ambiguous_object(&parse_manifest_objects(text).unwrap());
        assert_eq!(
            names_of_hook(hook),
            ["hook Job.batch m-* (pre-delete,test)"]
        );
        assert_eq!(check(&format!("{one}{hook}")), None);
        let twice = check(&format!("{one}{hook}{one}")).unwrap();
        assert!(twice.contains("ConfigMap.core a twice"), "{twice}");
        assert!(check("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n").is_some());
    }
}
