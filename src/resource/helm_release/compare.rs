//! What differs between a release as it is wished for, as Helm has it, and as its objects are on
//! the cluster. Nothing of a Secret, and nothing that the values bring as a secret, is part of what
//! comes out.

use super::request::secret_label;
use crate::kubernetes_object::manifest::{self, without_servers_part};
use crate::kubernetes_object::ownership::find_field_managers;
use crate::kubernetes_object::paths::{self, FieldDifference, FieldPathStep};
use crate::kubernetes_object::request::ObjectName;
use railwright_base::redaction::SHORTEST_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that is not as wished.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HelmReleaseChange {
    /// `values.agent.driver`, `DaemonSet.apps kube-system/agent`, or a field of one behind a colon.
    pub name: String,
    /// What is wanted; nothing where it is to go.
    pub wanted: Option<Value>,
    /// What is there.
    pub found: Option<Value>,
    /// Who made it so, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When somebody set it, RFC 3339, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it does to pods that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<String>,
    /// True where Helm's own patch leaves what somebody set.
    #[serde(default)]
    pub stays: bool,
    /// True where the release itself would be another one than it was installed with, whatever
    /// became of its objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rendered: bool,
}

/// One object of a release, with what the cluster says of it.
pub struct HelmReleaseObject {
    /// As the release has it.
    pub manifest: Value,
    /// As it is; nothing where it is gone.
    pub live: Option<Value>,
    /// As it would be if it were as the release has it; nothing where the server gave no preview.
    pub preview: Option<Value>,
}

/// Kinds with pods.
const WITH_PODS: [&str; 4] = [
    "DaemonSet.apps",
    "Deployment.apps",
    "StatefulSet.apps",
    "ReplicaSet.apps",
];
/// In the place of what is not shown.
const HIDDEN: &str = "(not shown)";
const HIDDEN_OTHER: &str = "(not shown, and another)";
/// Words in the names of values that may well be secrets, whoever set them; `-` and `_` in names
/// are passed over.
const SECRET_WORDS: [&str; 9] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "credential",
    "accesskey",
    "apikey",
    "privatekey",
];
/// What is one too, where it stands by itself: `pw`, `db_pw`, `adminPw`, and no `upward`.
const SECRET_WORD_ALONE: &str = "pw";
/// Helm's name as a field manager.
const HELM: &str = "helm";
/// Objects with this annotation stay when they leave a release
/// (helm.sh/docs/howto/charts_tips_and_tricks).
const POLICY: &str = "helm.sh/resource-policy";
/// An object with this annotation is a hook: it is no part of the release, and made when what it
/// names comes (helm.sh/docs/topics/charts_hooks).
const HOOK: &str = "helm.sh/hook";
/// Helm deletes the object of a hook before it makes it the next time, or as soon as it came
/// through where this says so.
const HOOK_DELETION: &str = "helm.sh/hook-delete-policy";

/// The objects of a manifest that Helm rendered, in its order.
pub fn parse_manifest_objects(text: &str) -> Result<Vec<Value>, String> {
    let mut out = Vec::new();
    for part in split_yaml_documents(text) {
        let object = manifest::of_text(&part)
            .map_err(|reason| format!("an object of the release cannot be read: {reason}"))?;
        match object.get("items").and_then(Value::as_array) {
            Some(items)
                if object
                    .get("kind")
                    .and_then(Value::as_str)
                    .is_some_and(|kind| kind.ends_with("List")) =>
            {
                out.extend(items.iter().cloned());
            }
            _ => out.push(object),
        }
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

/// The objects with their names.
pub fn index_objects_by_name(objects: &[Value]) -> BTreeMap<String, &Value> {
    objects
        .iter()
        .filter_map(|object| {
            Some((
                called(object, &manifest::parse_object_name(object)?),
                object,
            ))
        })
        .collect()
}

/// An object by this name, and of a hook when it is made: `hook Job.batch default/migrate
/// (pre-upgrade)`.
pub fn called(object: &Value, name: &ObjectName) -> String {
    match annotation(object, HOOK) {
        Some(events) => format!("hook {name} ({events})"),
        None => name.to_string(),
    }
}

/// Objects that a release renders to, hooks among them, against those that it was installed with.
pub fn diff_rendered_objects(wanted: &[Value], installed: &[Value]) -> Vec<HelmReleaseChange> {
    let (wanted, installed) = (
        index_objects_by_name(wanted),
        index_objects_by_name(installed),
    );
    let new = || HelmReleaseChange {
        rendered: true,
        ..HelmReleaseChange::default()
    };
    let mut out = Vec::new();
    for (name, object) in &wanted {
        match installed.get(name) {
            None => out.push(HelmReleaseChange {
                name: name.clone(),
                wanted: Some("made".into()),
                ..new()
            }),
            Some(before) => {
                let fields = split_list_differences(paths::diff_fields(object, before, false));
                out.extend(fields.iter().map(|field| HelmReleaseChange {
                    rendered: true,
                    ..build_field_change(name, object, field)
                }));
            }
        }
    }
    for (name, object) in installed
        .iter()
        .filter(|(name, object)| !wanted.contains_key(*name) && !is_kept(object))
    {
        let interrupts = has_pods(object).then(|| format!("pods of {name} end"));
        out.push(HelmReleaseChange {
            name: name.clone(),
            found: Some("present".into()),
            interrupts,
            ..new()
        });
    }
    out
}

/// Objects that are not on the cluster as the release has them, with who changed them.
/// `mends_all`: Helm sets back what somebody set on objects of every kind.
pub fn diff_live_objects(all: &[HelmReleaseObject], mends_all: bool) -> Vec<HelmReleaseChange> {
    let mut out = Vec::new();
    for one in all {
        let Some(name) =
            manifest::parse_object_name(&one.manifest).map(|object| object.to_string())
        else {
            continue;
        };
        let Some(live) = &one.live else {
            let by = Some("somebody deleted it".to_owned());
            out.push(HelmReleaseChange {
                name,
                wanted: Some("present".into()),
                by,
                ..HelmReleaseChange::default()
            });
            continue;
        };
        let found = without_servers_part(live);
        let fields = match &one.preview {
            Some(preview) => paths::diff_fields(&without_servers_part(preview), &found, false),
            None => paths::diff_fields(&strip_unstored_fields(&one.manifest), &found, true),
        };
        for field in split_list_differences(fields) {
            let others = find_field_managers(live, &field.path)
                .into_iter()
                .find(|holder| !holder.manager.eq_ignore_ascii_case(HELM));
            let mut change = HelmReleaseChange {
                by: others.as_ref().map(|holder| holder.told()),
                since: others.map(|holder| holder.time),
                stays: !mends_all && !is_built_in(&one.manifest),
                ..build_field_change(&name, &one.manifest, &field)
            };
            if is_secret(&one.manifest) {
                hide_found(&mut change);
            }
            out.push(change);
        }
    }
    out
}

/// Lists of plain values with as many items on both sides, such as the arguments of a program, item
/// by item.
fn split_list_differences(fields: Vec<FieldDifference>) -> Vec<FieldDifference> {
    let plain = |value: &Option<Value>| -> Option<Vec<Value>> {
        let items = value.as_ref()?.as_array()?;
        (!items.iter().any(|item| item.is_object() || item.is_array())).then(|| items.clone())
    };
    let items = |field: FieldDifference| match (plain(&field.wanted), plain(&field.found)) {
        (Some(wanted), Some(found)) if wanted.len() == found.len() => {
            let pairs = wanted
                .into_iter()
                .zip(found)
                .enumerate()
                .filter(|(_, (wanted, found))| wanted != found);
            let item = |(index, (wanted, found)): (usize, (Value, Value))| FieldDifference {
                path: field.path.clone(),
                shown: format!("{}[{index}]", field.shown),
                wanted: Some(wanted),
                found: Some(found),
            };
            pairs.map(item).collect()
        }
        _ => vec![field],
    };
    fields.into_iter().flat_map(items).collect()
}

/// Values that the wish gives, against those that the release was installed with.
pub fn diff_release_values(
    wanted: &Value,
    installed: &Value,
    hidden: &[String],
) -> Vec<HelmReleaseChange> {
    let empty = Value::Object(serde_json::Map::new());
    let or_empty = |value: &Value| {
        if value.is_null() {
            empty.clone()
        } else {
            normalize_whole_numbers(value)
        }
    };
    let change = |field: FieldDifference| {
        let pointer = format_path_pointer(&field.path);
        let is_near = |secret: &String| {
            is_within_pointer(secret, &pointer) || is_within_pointer(&pointer, secret)
        };
        let is_secret = hidden.iter().any(is_near)
            || [&field.wanted, &field.found]
                .into_iter()
                .flatten()
                .any(names_secret)
            || says_secret(&pointer);
        let (wanted, found) = if is_secret {
            hide_field_values(&field)
        } else {
            (field.wanted, field.found)
        };
        HelmReleaseChange {
            name: format!("values.{}", field.shown),
            wanted,
            found,
            rendered: true,
            ..HelmReleaseChange::default()
        }
    };
    paths::diff_fields(&or_empty(wanted), &or_empty(installed), false)
        .into_iter()
        .map(change)
        .collect()
}

/// Hides what holds a text that the installed values have where a secret is, and every field of a
/// rendered object where there is a secret at all: a chart puts it where it likes, and in what form
/// it likes (base64 in an annotation).
pub fn conceal_secret_changes(
    changes: &mut [HelmReleaseChange],
    installed: &Value,
    hidden: &[String],
) {
    let secrets = secret_texts(installed, hidden);
    let tells = |value: &Option<Value>| {
        let text = value.as_ref().map(Value::to_string).unwrap_or_default();
        secrets.iter().any(|secret| text.contains(secret))
    };
    let any = !secrets.is_empty() || !hidden.is_empty();
    // What becomes of a whole object is no value of it.
    let is_whole = |change: &HelmReleaseChange| {
        let one = |value: &Option<Value>| {
            value
                .as_ref()
                .is_none_or(|value| value == "present" || value == "made")
        };
        one(&change.wanted) && one(&change.found)
    };
    let is_rendered =
        |change: &HelmReleaseChange| !change.name.starts_with("values.") && !is_whole(change);
    // The names of values are the spec's own, and say what a change disturbs; those of fields are
    // the chart's.
    for (n, change) in changes
        .iter_mut()
        .enumerate()
        .filter(|(_, change)| is_rendered(change))
    {
        let Some((object, field)) = change.name.split_once(": ") else {
            continue;
        };
        let hidden = secrets.iter().fold(field.to_owned(), |field, secret| {
            field.replace(secret.as_str(), HIDDEN)
        });
        if hidden != field {
            change.name = format!("{object}: {hidden} {n}");
        }
    }
    for change in changes.iter_mut().filter(|change| {
        tells(&change.wanted) || tells(&change.found) || (any && is_rendered(change))
    }) {
        change.wanted = change.wanted.as_ref().map(|_| HIDDEN.into());
        hide_found(change);
    }
}

/// What is not shown is told from what stood there before by when somebody set it, so that a plan
/// of before is not taken for one of now.
fn hide_found(change: &mut HelmReleaseChange) {
    let hidden = match &change.since {
        Some(time) => format!("(not shown, and another since {time})"),
        None => HIDDEN_OTHER.to_owned(),
    };
    change.found = change.found.as_ref().map(|_| hidden.into());
}

/// Places in these values that the labels of a release name.
pub fn find_labelled_secret_paths(value: &Value, labels: &BTreeSet<String>) -> Vec<String> {
    let mut out = Vec::new();
    if !labels.is_empty() {
        each_place(value, "", &mut |at, _| {
            out.extend(labels.contains(&secret_label(at)).then(|| at.to_owned()))
        });
    }
    out
}

/// Texts of these values that stand where a secret is, or where a name says so; as they are, and as
/// JSON writes them.
fn secret_texts(value: &Value, hidden: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    each_place(value, "", &mut |at, value| {
        let Value::String(text) = value else { return };
        if text.len() >= SHORTEST_BYTES
            && (says_secret(at) || hidden.iter().any(|secret| is_within_pointer(at, secret)))
        {
            let json = Value::from(text.as_str()).to_string();
            out.extend([text.clone(), json.trim_matches('"').to_owned()]);
        }
    });
    out
}

/// Visits every value below this one with its JSON pointer, and this one last.
fn each_place(value: &Value, at: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, item)| each_place(item, &format!("{at}/{n}"), visit)),
        Value::Object(map) => map.iter().for_each(|(name, item)| {
            let below = format!(
                "{at}{}",
                format_path_pointer(&[FieldPathStep::Field(name.clone())])
            );
            each_place(item, &below, visit);
        }),
        _ => {}
    }
    visit(at, value);
}

/// Helm stores a whole number as one, however it was written.
fn normalize_whole_numbers(value: &Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < EXACT => {
                Value::from(whole as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(normalize_whole_numbers).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, item)| (name.clone(), normalize_whole_numbers(item)))
            .collect(),
        other => other.clone(),
    }
}

/// What of a release's objects matters when it is uninstalled: those that stay, the kinds that it
/// defines, those with pods.
pub fn of_uninstall(objects: &[Value]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let all = index_objects_by_name(objects);
    let names = |is: &dyn Fn(&Value) -> bool| {
        all.iter()
            .filter(|(_, object)| is(object))
            .map(|(name, _)| name.clone())
            .collect()
    };
    let text = |object: &Value, pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let definitions = objects
        .iter()
        .filter(|object| is_definition(object) && !is_kept(object));
    let defines = definitions
        .map(|object| {
            format!(
                "{}.{}",
                text(object, "/spec/names/kind"),
                text(object, "/spec/group")
            )
        })
        .collect();
    (names(&is_kept), defines, names(&has_pods))
}

/// Of these hooks those that run when a release is uninstalled, and those that left their object on
/// the cluster: an uninstall deletes none of them (helm/helm: pkg/action/uninstall.go).
pub fn hooks_of_uninstall(hooks: &[Value]) -> (Vec<String>, Vec<String>) {
    let all = index_objects_by_name(hooks);
    let says = |object: &Value, name: &str, word: &str| {
        annotation(object, name).is_some_and(|text| text.contains(word))
    };
    let runs = all
        .iter()
        .filter(|(_, hook)| says(hook, HOOK, "-delete"))
        .map(|(name, _)| name.clone())
        .collect();
    let stays =
        |hook: &Value| !says(hook, HOOK_DELETION, "hook-succeeded") && !says(hook, HOOK, "test");
    (
        runs,
        all.iter()
            .filter(|(_, hook)| stays(hook))
            .map(|(name, _)| name.clone())
            .collect(),
    )
}

/// The objects that are deleted when a release is uninstalled.
pub fn list_deleted_objects(objects: &[Value]) -> Vec<ObjectName> {
    objects
        .iter()
        .filter(|object| !is_kept(object))
        .filter_map(manifest::parse_object_name)
        .collect()
}

fn build_field_change(name: &str, object: &Value, field: &FieldDifference) -> HelmReleaseChange {
    let (wanted, found) = if is_secret(object) {
        hide_field_values(field)
    } else {
        (field.wanted.clone(), field.found.clone())
    };
    let restarts = has_pods(object) && field.shown.starts_with("spec.template.");
    let interrupts = restarts.then(|| {
        match object
            .pointer("/spec/updateStrategy/type")
            .and_then(Value::as_str)
        {
            Some("OnDelete") => format!(
                "pods of {name} keep running as they are until somebody deletes them (OnDelete)"
            ),
            _ => format!("pods of {name} start anew"),
        }
    });
    HelmReleaseChange {
        name: format!("{name}: {}", field.shown),
        wanted,
        found,
        interrupts,
        ..HelmReleaseChange::default()
    }
}

fn hide_field_values(field: &FieldDifference) -> (Option<Value>, Option<Value>) {
    (
        field.wanted.as_ref().map(|_| HIDDEN.into()),
        field.found.as_ref().map(|_| HIDDEN_OTHER.into()),
    )
}

fn format_path_pointer(path: &[FieldPathStep]) -> String {
    let step = |step: &FieldPathStep| match step {
        FieldPathStep::Field(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        FieldPathStep::Item { index, .. } => format!("/{index}"),
    };
    path.iter().map(step).collect()
}

fn is_within_pointer(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn says_secret(name: &str) -> bool {
    let is_alone = |part: &str| {
        part.eq_ignore_ascii_case(SECRET_WORD_ALONE)
            || part
                .strip_suffix("Pw")
                .is_some_and(|before| before.ends_with(char::is_lowercase))
    };
    let plain = name.replace(['-', '_'], "").to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| plain.contains(word))
        || name.split(|c: char| !c.is_alphanumeric()).any(is_alone)
}

fn is_secret(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Secret")
}

fn names_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(name, value)| says_secret(name) || names_secret(value)),
        Value::Array(items) => items.iter().any(names_secret),
        _ => false,
    }
}

fn has_pods(object: &Value) -> bool {
    manifest::parse_object_name(object)
        .is_some_and(|object| WITH_PODS.contains(&object.kind_and_group().as_str()))
}

fn is_definition(object: &Value) -> bool {
    manifest::parse_object_name(object)
        .is_some_and(|object| object.kind == "CustomResourceDefinition")
}

fn is_kept(object: &Value) -> bool {
    annotation(object, POLICY).is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Helm 3 patches its built-in kinds by what is on the cluster; all others by what changed between
/// two revisions alone (helm/helm: pkg/kube/client.go, createPatch), so that what somebody set on
/// those stays.
fn is_built_in(object: &Value) -> bool {
    let group = |object: ObjectName| object.group().to_owned();
    manifest::parse_object_name(object)
        .map(group)
        .is_some_and(|group| {
            (!group.contains('.') || group.ends_with(".k8s.io"))
                && !is_definition(object)
                && group != "apiextensions.k8s.io"
        })
}

/// A manifest without what the server does not store or tell as it was said: nothing, in its kinds,
/// and the write-only `stringData` of Secrets
/// (kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1).
fn strip_unstored_fields(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_str().is_some_and(str::is_empty)
    };
    let is_said = |(name, value): &(String, Value)| !is_empty(value) && name != "stringData";
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), strip_unstored_fields(value)))
            .filter(is_said)
            .collect(),
        Value::Array(items) => items.iter().map(strip_unstored_fields).collect(),
        other => other.clone(),
    }
}
