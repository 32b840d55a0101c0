//! Who holds a field of an object: `metadata.managedFields`, in which each manager lists the fields that it set last.
//!
//! The format is structured-merge-diff's `fieldsV1`: `f:NAME` is a field, `k:{...}` the item of a list with these key fields, `v:...`
//! the item of a set with this value, and an empty map the end of the path
//! (kubernetes.io/docs/reference/using-api/server-side-apply, sigs.k8s.io/structured-merge-diff fieldpath/serialize-pe.go).

use super::paths::Step;
use serde_json::{Map, Value};

/// Our name as a field manager.
pub const MANAGER: &str = "railwright";

/// The label of what belongs to us. Who set which field is no mark of it: once another has set the last of ours, the server no
/// longer names us.
pub const MEMBERSHIP: &str = "applyset.kubernetes.io/part-of";
/// Its value: the name of the apply set whose parent is our record in the cluster, `applyset-BASE64URL(SHA-256(name.namespace.kind.group))-v1`
/// of `railwright.kube-system.Secret.` (KEP-3659).
pub const APPLY_SET: &str = "applyset-o7-oLBUQ8KOx0bdEa5XDPVhX1VVvaY4jggrWHgxmIJE-v1";

/// Somebody who set a field, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The manager's name: `kubectl-edit`.
    pub manager: String,
    /// When it set some field of the object last, RFC 3339.
    pub time: String,
}

/// Managers of the object that hold this field, ours too.
pub fn holders(object: &Value, path: &[Step]) -> Vec<Holder> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let holds = |entry: &&Value| entry.get("fieldsV1").and_then(Value::as_object).is_some_and(|fields| is_held(fields, path));
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    entries.filter(holds).map(|entry| Holder { manager: text(entry, "manager"), time: text(entry, "time") }).collect()
}

/// True when we made the object or took it over.
pub fn is_ours(object: &Value) -> bool {
    object.pointer("/metadata/labels").and_then(|labels| labels.get(MEMBERSHIP)).and_then(Value::as_str) == Some(APPLY_SET)
}

/// The manifest with our mark.
pub fn marked(mut manifest: Value) -> Value {
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(MEMBERSHIP.to_owned(), Value::from(APPLY_SET));
        }
    }
    manifest
}

/// True for our own mark.
pub fn is_mark(path: &[Step]) -> bool {
    matches!(path, [Step::Field(metadata), Step::Field(labels), Step::Field(label)] if metadata == "metadata" && labels == "labels" && label == MEMBERSHIP)
        || matches!(path, [Step::Field(metadata), Step::Field(labels)] if metadata == "metadata" && labels == "labels")
}

fn is_held(fields: &Map<String, Value>, path: &[Step]) -> bool {
    let Some((step, rest)) = path.split_first() else { return true };
    // A list that is no map of its own is held as one.
    if fields.is_empty() {
        return true;
    }
    fields.iter().filter(|(key, _)| is_step(key, step)).any(|(_, below)| below.as_object().is_some_and(|below| is_held(below, rest)))
}

fn is_step(key: &str, step: &Step) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (key.split_once(':'), step) {
        (Some(("f", name)), Step::Field(field)) => name == field,
        (Some(("k", keys)), Step::Item { item, .. }) => json(keys)
            .and_then(|keys| keys.as_object().cloned())
            .is_some_and(|keys| keys.iter().all(|(name, value)| item.get(name) == Some(value))),
        (Some(("v", value)), Step::Item { item, .. }) => json(value).as_ref() == Some(item),
        (Some(("i", index)), Step::Item { index: at, .. }) => index.parse() == Ok(*at),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(name: &str) -> Step {
        Step::Field(name.to_owned())
    }

    fn item(index: usize, item: Value) -> Step {
        Step::Item { index, item }
    }

    #[test]
    fn fields_items_and_sets_are_found() {
        let fields = json!({ "f:data": { "f:a": {} }, "f:spec": { "f:containers": { "k:{\"name\":\"x\"}": { ".": {}, "f:image": {} } }, "f:args": {},
            "f:finalizers": { "v:\"keep\"": {} } } });
        let object = json!({ "metadata": { "managedFields": [
            { "manager": "kubectl-edit", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsV1": fields },
            { "manager": "railwright", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": { "f:data": { "f:b": {} } } } ] } });
        let who = |path: &[Step]| holders(&object, path).into_iter().map(|holder| holder.manager).collect::<Vec<_>>();
        assert_eq!(who(&[field("data"), field("a")]), ["kubectl-edit"]);
        assert_eq!(who(&[field("data"), field("b")]), ["railwright"]);
        assert_eq!(who(&[field("data"), field("c")]), Vec::<String>::new());
        let of_item =
            |name: &str, below: &str| [field("spec"), field("containers"), item(0, json!({ "name": name, "image": "i" })), field(below)];
        assert_eq!(who(&of_item("x", "image")), ["kubectl-edit"]);
        assert_eq!((who(&of_item("y", "image")), who(&of_item("x", "command"))), (vec![], vec![]));
        assert_eq!(who(&[field("spec"), field("args"), item(1, json!("-v"))]), ["kubectl-edit"], "an atomic list is held as one");
        assert_eq!(who(&[field("spec"), field("finalizers"), item(0, json!("keep"))]), ["kubectl-edit"]);
        assert!(!is_ours(&object) && is_ours(&marked(object.clone())));
        assert!(is_ours(&marked(json!({ "metadata": { "labels": { "a": "b" } } }))));
        assert!(is_mark(&[field("metadata"), field("labels"), field(MEMBERSHIP)]) && !is_mark(&[field("data")]));
    }
}
