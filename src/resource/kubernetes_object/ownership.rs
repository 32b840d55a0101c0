//! Who holds a field of an object: `metadata.managedFields`, in which each manager lists the fields
//! that it set last.
//!
//! The format is structured-merge-diff's `fieldsV1`: `f:NAME` is a field, `k:{...}` the item of a
//! list with these key fields, `v:...` the item of a set with this value, and an empty map the end
//! of the path (kubernetes.io/docs/reference/using-api/server-side-apply,
//! sigs.k8s.io/structured-merge-diff fieldpath/serialize-pe.go).

use super::applyset;
use super::paths::{FieldDifference, FieldPathStep};
use crate::Provenance;
use crate::json_fields::read_text_field;
use railwright_base::Digest;
use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Our name as a field manager.
pub const MANAGER: &str = "railwright";

/// The label of what belongs to us, with the name of the spec's cluster. That we set some field is
/// no mark: once another has set the last of ours, the server no longer names us.
pub const MEMBERSHIP: &str = "railwright.io/part-of";
/// The annotation of what was taken over, or may have been: it is never deleted.
pub const ADOPTED: &str = "railwright.io/adopted";

/// The annotation of what was made, with the token of the attempt that made it, until it is written
/// again: what a lost answer left is known by it.
pub const ATTEMPT: &str = "railwright.io/attempt";

/// Whether an object or a release was there before our first change.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorObject {
    /// It was, or it was taken over.
    pub existed: bool,
}

/// Somebody who set a field, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldManager {
    /// The manager's name: `kubectl-edit`.
    pub manager: String,
    /// When it set some field of the object last, RFC 3339.
    pub time: String,
    /// We set some field of the object in the same second: times have no parts of one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_ours: bool,
}

impl FieldManager {
    fn from_entry(object: &Value, entry: &Value) -> Self {
        let manager = read_text_field(entry, "manager").unwrap_or_default();
        let time = read_text_field(entry, "time").unwrap_or_default();
        FieldManager {
            manager: manager.to_owned(),
            time: time.to_owned(),
            with_ours: list_manager_entries(object).any(|entry| {
                read_text_field(entry, "manager") == Some(MANAGER)
                    && read_text_field(entry, "time") == Some(time)
            }),
        }
    }

    /// `set by kubectl-edit at 2026-01-02T03:04:05Z`.
    pub fn provenance(&self) -> Provenance {
        Provenance::set_by(&self.manager, &self.time, self.with_ours)
    }
}

/// Managers of the object that hold this field, ours too. One that holds only what is around it
/// counts where nobody holds the field itself: of a map whose fields others have set since, its
/// first manager keeps an empty entry.
pub fn find_field_managers(object: &Value, path: &[FieldPathStep]) -> Vec<FieldManager> {
    let (mut around, mut holders) = (Vec::new(), Vec::new());
    for entry in list_manager_entries(object) {
        let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) else {
            continue;
        };
        match find_hold(fields, path) {
            Some(Hold::Itself) => holders.push(FieldManager::from_entry(object, entry)),
            Some(Hold::Around) => around.push(FieldManager::from_entry(object, entry)),
            None => {}
        }
    }
    if holders.is_empty() { around } else { holders }
}

/// How a manager holds a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    /// What is around it, as one.
    Around,
    /// The field itself.
    Itself,
}

/// True when this cluster of a spec made the object, or took it over: one of its marks is there, as
/// we set it. A copy has the labels, but nobody who applied it as us.
pub fn is_ours(object: &Value, cluster: &str) -> bool {
    has_mark(object, MEMBERSHIP, &part_of(cluster))
        || has_mark(
            object,
            applyset::PART_OF,
            &applyset::compute_applyset_id(&build_cluster_object_name(cluster)),
        )
}

fn has_mark(object: &Value, name: &str, value: &str) -> bool {
    let path = ["metadata", "labels", name].map(|name| FieldPathStep::Field(name.to_owned()));
    find_object_label(object, name) == Some(value)
        && find_field_managers(object, &path)
            .iter()
            .any(|holder| holder.manager == MANAGER)
}

fn find_object_label<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(name))
        .and_then(Value::as_str)
}

/// Everybody who set fields of an object by its main resource: what controllers note as its status,
/// or set by another part of it, is left out.
pub fn collect_object_managers(object: &Value) -> BTreeSet<String> {
    list_whole_object_entries(object)
        .filter_map(|entry| entry.get("manager")?.as_str())
        .map(str::to_owned)
        .collect()
}

/// Each manager's entry of an object.
pub(crate) fn list_manager_entries(object: &Value) -> impl Iterator<Item = &Value> {
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What each manager set by the main resource of an object, and not through a part of it such as
/// its status or its scale.
pub(super) fn list_whole_object_entries(object: &Value) -> impl Iterator<Item = &Value> {
    list_manager_entries(object).filter(|entry| {
        read_text_field(entry, "subresource")
            .unwrap_or_default()
            .is_empty()
    })
}

/// Whose an object is, in words.
pub fn describe_object_owner(object: &Value) -> String {
    if let Some(spec) = find_object_label(object, MEMBERSHIP) {
        return format!(
            "it belongs to the spec `{}` of railwright",
            one_line(spec, 63)
        );
    }
    // Applies stand first in the list, however late they came; whoever touched it last long ago is
    // the closest to who made it.
    let first = list_manager_entries(object)
        .min_by_key(|entry| read_text_field(entry, "time").unwrap_or_default());
    match first.and_then(|entry| read_text_field(entry, "manager")) {
        Some(manager) => format!("{} made it", one_line(manager, 63)),
        None => "somebody else made it".to_owned(),
    }
}

/// The manifest of an object that an attempt with this token makes.
pub fn bearing_attempt(mut manifest: Value, token: &str) -> Value {
    set_metadata_mark(&mut manifest, "annotations", ATTEMPT, token);
    manifest
}

/// True when an attempt with this token made the object.
pub fn is_of_attempt(object: &Value, token: &str) -> bool {
    object
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(ATTEMPT))
        .is_some_and(|found| found == token)
}

/// True when the object was there before us, or may have been.
pub fn is_adopted(object: &Value) -> bool {
    object
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(ADOPTED))
        .is_some()
}

/// The value of the label. A name of a cluster may end in `-`, which that of a label may not; no
/// two have the same.
pub fn part_of(cluster: &str) -> Cow<'_, str> {
    match trim_cluster_name(cluster) {
        plain if plain == cluster => plain.into(),
        plain => {
            let digest = Digest::of_bytes(cluster.as_bytes());
            // A label's value has 63 characters at most.
            let head: String = plain.chars().take(62 - digest.short().len()).collect();
            format!("{head}-{}", digest.short()).into()
        }
    }
}

fn trim_cluster_name(cluster: &str) -> &str {
    cluster.trim_end_matches('-')
}

/// The name of the Lease and the Secret of a spec's cluster: two of them on one Kubernetes cluster
/// know nothing of each other.
pub fn build_cluster_object_name(cluster: &str) -> String {
    let plain = trim_cluster_name(cluster).to_ascii_lowercase();
    if plain == cluster {
        format!("railwright-{plain}")
    } else {
        format!(
            "railwright-{plain}-{}",
            Digest::of_bytes(cluster.as_bytes()).short()
        )
    }
}

/// The manifest with our marks.
pub fn add_ownership_marks(mut manifest: Value, cluster: &str, adopts: bool) -> Value {
    set_metadata_mark(&mut manifest, "labels", MEMBERSHIP, &part_of(cluster));
    match adopts {
        true => set_metadata_mark(&mut manifest, "annotations", ADOPTED, "true"),
        // Whoever deletes the set deletes its members: what stood there before us is none.
        false => set_metadata_mark(
            &mut manifest,
            "labels",
            applyset::PART_OF,
            &applyset::compute_applyset_id(&build_cluster_object_name(cluster)),
        ),
    }
    manifest
}

/// The manifest with the mark of what was taken over, whatever its declaration says of that by now:
/// who forgets it deletes what stood there before us.
pub fn taken_over(mut manifest: Value) -> Value {
    if let Some(labels) = manifest
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove(applyset::PART_OF);
    }
    set_metadata_mark(&mut manifest, "annotations", ADOPTED, "true");
    manifest
}

/// The merge patch (RFC 7386) that takes our marks from an object, and nothing else.
pub fn build_unmark_patch() -> Value {
    let labels = json!({ MEMBERSHIP: null, applyset::PART_OF: null });
    json!({ "metadata": { "labels": labels, "annotations": { ADOPTED: null, ATTEMPT: null } } })
}

/// True where an object bears none of our marks.
pub fn is_unmarked(object: &Value) -> bool {
    find_object_label(object, MEMBERSHIP).is_none()
        && find_object_label(object, applyset::PART_OF).is_none()
        && !is_adopted(object)
}

pub(crate) fn set_metadata_mark(manifest: &mut Value, field: &str, name: &str, value: &str) {
    let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let marks = metadata.entry(field).or_insert(Value::Null);
    match marks {
        Value::Object(marks) => drop(marks.insert(name.to_owned(), Value::from(value))),
        other => *other = Value::from(Map::from_iter([(name.to_owned(), Value::from(value))])),
    }
}

/// True where only marks of our own are not there.
pub fn is_mark(field: &FieldDifference) -> bool {
    let mut names = Vec::new();
    for step in &field.path {
        let FieldPathStep::Field(name) = step else {
            return false;
        };
        names.push(name.as_str());
    }
    match (names.as_slice(), &field.desired) {
        (["metadata", "labels", label], _) => is_our_label(label),
        (["metadata", "labels"], Some(Value::Object(labels))) => {
            field.actual.is_none() && labels.keys().all(|label| is_our_label(label))
        }
        _ => false,
    }
}

fn is_our_label(name: &str) -> bool {
    name == MEMBERSHIP || name == applyset::PART_OF
}

/// How a manager with these fields holds the field at a path.
fn find_hold(fields: &Map<String, Value>, path: &[FieldPathStep]) -> Option<Hold> {
    let Some((step, rest)) = path.split_first() else {
        return Some(Hold::Itself);
    };
    // A list that is no map of its own counts as one.
    if fields.is_empty() {
        return Some(Hold::Around);
    }
    fields
        .iter()
        .filter(|(key, _)| is_step(key, step))
        .filter_map(|(_, below)| find_hold(below.as_object()?, rest))
        .max()
}

fn is_step(key: &str, step: &FieldPathStep) -> bool {
    match (key.split_once(':'), step) {
        (Some(("f", name)), FieldPathStep::Field(field)) => name == field,
        (Some(("k", keys)), FieldPathStep::Item { item, .. }) => {
            let Ok(keys) = serde_json::from_str::<Map<String, Value>>(keys) else {
                return false;
            };
            keys.iter()
                .all(|(name, value)| item.get(name) == Some(value))
        }
        (Some(("v", value)), FieldPathStep::Item { item, .. }) => {
            serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item)
        }
        (Some(("i", index)), FieldPathStep::Item { index: at, .. }) => index.parse() == Ok(*at),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> FieldPathStep {
        FieldPathStep::Field(name.to_owned())
    }

    fn item(index: usize, item: Value) -> FieldPathStep {
        FieldPathStep::Item {
            index,
            item,
            label: String::new(),
        }
    }

    #[test]
    fn whoever_came_first_made_it() {
        let entry = |manager: &str, time: &str| json!({ "manager": manager, "time": time });
        let entries = [
            entry("argocd", "2026-01-02T00:00:00Z"),
            entry("kubectl-create", "2026-01-01T00:00:00Z"),
        ];
        assert_eq!(
            describe_object_owner(&json!({ "metadata": { "managedFields": entries } })),
            "kubectl-create made it"
        );
    }

    #[test]
    fn fields_items_and_sets_are_found() {
        let fields = json!({ "f:data": { "f:a": {} }, "f:spec": { "f:containers": { "k:{\"name\":\"x\"}": { ".": {}, "f:image": {} } }, "f:args": {},
            "f:finalizers": { "v:\"keep\"": {} } } });
        let object = json!({ "metadata": { "managedFields": [
            { "manager": "kubectl-edit", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsV1": fields },
            { "manager": "railwright", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": { "f:data": { "f:b": {} } } } ] } });
        let who = |path: &[FieldPathStep]| {
            find_field_managers(&object, path)
                .into_iter()
                .map(|holder| holder.manager)
                .collect::<Vec<_>>()
        };
        assert_eq!(who(&[field("data"), field("a")]), ["kubectl-edit"]);
        assert_eq!(who(&[field("data"), field("b")]), ["railwright"]);
        assert_eq!(who(&[field("data"), field("c")]), Vec::<String>::new());
        let of_item = |name: &str, below: &str| {
            [
                field("spec"),
                field("containers"),
                item(0, json!({ "name": name, "image": "i" })),
                field(below),
            ]
        };
        assert_eq!(who(&of_item("x", "image")), ["kubectl-edit"]);
        assert_eq!(
            (who(&of_item("y", "image")), who(&of_item("x", "command"))),
            (vec![], vec![])
        );
        assert_eq!(
            who(&[field("spec"), field("args"), item(1, json!("-v"))]),
            ["kubectl-edit"],
            "an atomic list counts as one"
        );
        assert_eq!(
            who(&[field("spec"), field("finalizers"), item(0, json!("keep"))]),
            ["kubectl-edit"]
        );
        let marked = |object: Value| {
            let mut object = add_ownership_marks(object, "lab-", false);
            let label = json!({ "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } });
            object["metadata"]["managedFields"] = json!([{ "manager": "railwright", "operation": "Apply", "time": "", "fieldsV1": label }]);
            object
        };
        assert!(!is_ours(&object, "lab-"));
        for made in [
            marked(object.clone()),
            marked(json!({ "metadata": { "labels": { "a": "b" } } })),
            marked(json!({ "metadata": { "labels": null } })),
        ] {
            assert!(is_ours(&made, "lab-") && !is_ours(&made, "other"), "{made}");
        }
        let mut copied = marked(object.clone());
        copied["metadata"]["managedFields"] = json!([]);
        assert!(!is_ours(&copied, "lab-"), "a copy is not ours");
        let adopted = super::add_ownership_marks(marked(object), "lab-", true);
        assert!(is_ours(&adopted, "lab-") && is_adopted(&adopted));
        let names = ["lab", "Lab", "lab-"].map(build_cluster_object_name);
        assert!(
            names[0] == "railwright-lab"
                && names[1] != names[2]
                && names.iter().all(|name| name.starts_with("railwright-lab")),
            "{names:?}"
        );
    }
}
