//! What differs between a release as it is declared, as Helm has it, and as its objects are on the
//! cluster. Nothing of a Secret, and nothing that the values bring as a secret, is part of what
//! comes out.

use super::release_object::{
    find_annotation, has_pods, is_built_in, is_definition, is_kept_by_upgrade, is_secret,
    strip_unstored_fields,
};
use super::rendered_objects::{DELETED_FIRST, HOOK, HOOK_DELETION, called, index_objects_by_name};
use super::request::secret_label;
use super::secret_values::{
    HIDDEN, HiddenPlace, build_secret_redaction, hide_field_values, hide_found, hide_name,
    is_secret_field, merge_hidden_change, visit_values,
};
use crate::Provenance;
use crate::json_fields::{read_text_at, read_text_field};
use crate::kubernetes_object::claims::describe_scaled_claims;
use crate::kubernetes_object::fields_of_others::{ForeignField, list_foreign_fields};
use crate::kubernetes_object::manifest::{self, without_servers_part};
use crate::kubernetes_object::ownership::{find_field_managers, list_manager_entries};
use crate::kubernetes_object::paths::{self, FieldDifference};
use crate::kubernetes_object::request::ObjectName;
use railwright_base::{Reason, Redaction};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// One thing that is not as desired.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HelmReleaseChange {
    /// `values.agent.driver`, `DaemonSet.apps kube-system/agent`, or a field of one behind a colon.
    pub name: String,
    /// What is desired; nothing where it is to go.
    pub desired: Option<Value>,
    /// What is there.
    pub actual: Option<Value>,
    /// Who made it so, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Provenance>,
    /// When somebody set it, RFC 3339, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it does to pods that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<String>,
    /// True where Helm's own patch leaves what somebody set.
    #[serde(default)]
    pub stays: bool,
    /// Why Helm would fail over it, or write into what is not the release's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<String>,
    /// True for a field that the release does not have: it stays with its object, and goes with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
    /// True where the release itself would be another one than it was installed with, whatever
    /// became of its objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rendered: bool,
    /// True where neither value is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// What a field is called in the end where nothing of it is shown. Until then `name` tells it
    /// from others.
    #[serde(skip)]
    pub place: Option<HiddenPlace>,
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

/// Helm's name as a field manager.
const HELM: &str = "helm";
/// The annotation of an object of a release, which those of hooks do not have (helm/helm:
/// pkg/action/validate.go).
const RELEASE_NAME: &str = "meta.helm.sh/release-name";

/// Objects that a release renders to, hooks among them, against those that it was installed with.
pub fn diff_rendered_objects(desired: &[Value], installed: &[Value]) -> Vec<HelmReleaseChange> {
    let (desired, installed) = (
        index_objects_by_name(desired),
        index_objects_by_name(installed),
    );
    let mut out = Vec::new();
    for (name, object) in &desired {
        match installed.get(name) {
            None => out.push(HelmReleaseChange {
                name: name.clone(),
                desired: Some("made".into()),
                rendered: true,
                ..HelmReleaseChange::default()
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
    for (name, object) in &installed {
        if desired.contains_key(name) {
            continue;
        }
        let interrupts = has_pods(object).then(|| format!("pods of {name} end"));
        out.push(HelmReleaseChange {
            name: name.clone(),
            actual: Some("present".into()),
            interrupts,
            rendered: true,
            ..HelmReleaseChange::default()
        });
    }
    out
}

/// Objects that are not on the cluster as the release has them, with who changed them.
pub fn diff_live_objects(all: &[HelmReleaseObject]) -> Vec<HelmReleaseChange> {
    let mut out = Vec::new();
    for one in all {
        let Some(name) =
            manifest::parse_object_name(&one.manifest).map(|object| object.to_string())
        else {
            continue;
        };
        let Some(live) = &one.live else {
            let by = Some(Provenance::Note("somebody deleted it".to_owned()));
            out.push(HelmReleaseChange {
                name,
                desired: Some("present".into()),
                by,
                ..HelmReleaseChange::default()
            });
            continue;
        };
        let actual = without_servers_part(live);
        let fields = match &one.preview {
            Some(preview) => paths::diff_fields(&without_servers_part(preview), &actual, false),
            None => paths::diff_fields(&strip_unstored_fields(&one.manifest), &actual, true),
        };
        for field in split_list_differences(fields) {
            let others = find_field_managers(live, &field.path)
                .into_iter()
                .find(|holder| is_other_than_helm(&holder.manager));
            let mut change = HelmReleaseChange {
                by: others.as_ref().map(|holder| holder.provenance()),
                since: others.map(|holder| holder.time),
                stays: !is_built_in(&one.manifest),
                ..build_field_change(&name, &one.manifest, &field)
            };
            if is_secret(&one.manifest) {
                hide_found(&mut change);
            }
            out.push(change);
        }
        let added = list_foreign_fields(live, &one.manifest, is_other_than_helm);
        out.extend(
            added
                .into_iter()
                .map(|field| build_addition(&name, &one.manifest, field)),
        );
    }
    out
}

/// Notes of objects that a revision brings (`new`) what is on the cluster already: Helm takes over
/// what bears the marks of the release.
pub fn add_present_objects(changes: &mut Vec<HelmReleaseChange>, new: &[HelmReleaseObject]) {
    let present: Vec<&HelmReleaseObject> = new.iter().filter(|one| one.live.is_some()).collect();
    for one in present {
        let Some(object) = manifest::parse_object_name(&one.manifest) else {
            continue;
        };
        let shown = object.to_string();
        if let Some(change) = changes.iter_mut().find(|change| change.name == shown) {
            change.actual = Some("present".into());
        }
        changes.extend(diff_live_objects(std::slice::from_ref(one)));
    }
}

/// The events by which hooks run with a first install.
pub const INSTALL_EVENTS: [&str; 2] = ["pre-install", "post-install"];
/// Those of an upgrade.
pub const UPGRADE_EVENTS: [&str; 2] = ["pre-upgrade", "post-upgrade"];
/// Those of a removal.
pub const UNINSTALL_EVENTS: [&str; 2] = ["pre-delete", "post-delete"];

/// Of these objects the hooks that run at one of these events.
pub fn list_run_hooks(objects: &[Value], events: &[&str]) -> Vec<Value> {
    let mut hooks = Vec::new();
    for object in objects {
        if list_hook_words(object, HOOK).any(|event| events.contains(&event)) {
            hooks.push(object.clone());
        }
    }
    hooks
}

/// Whether what has the name of a hook is deleted before the hook is made. Of definitions Helm does
/// so only where they are items of a list (helm/helm: pkg/action/hooks.go, `deleteHookByPolicy`),
/// which is not distinguished here.
pub(super) fn deletes_first(hook: &Value) -> bool {
    list_hook_words(hook, HOOK_DELETION).any(|policy| policy == DELETED_FIRST)
}

/// What becomes of an object that has the name of a hook, where it is not what a run of the hook
/// left and deletes. `live`: the object of that name; why it could not be read as the error.
/// `is_left`: the last run left one.
pub fn describe_hook_collision(
    hook: &Value,
    object: &ObjectName,
    live: Result<Option<Value>, Reason>,
    is_left: bool,
) -> Option<HelmReleaseChange> {
    let shown = called(hook, object);
    let mut change = HelmReleaseChange {
        name: shown.clone(),
        desired: Some("made".into()),
        ..HelmReleaseChange::default()
    };
    match live {
        Ok(None) => return None,
        Ok(Some(live)) if deletes_first(hook) => {
            if is_left && is_made_by_hook(&live) {
                return None;
            }
            change.interrupts = Some(format!(
                "{object} is there already, and is deleted to make the {shown}"
            ));
        }
        // Helm fails to make it. An uninstallation by Helm 4 writes into what is there, and may
        // delete it after that (helm/helm: pkg/action/uninstall.go, `serverSideApply`).
        Ok(Some(_)) => {
            change.hindrance = Some(format!(
                "{object} is there already, and the {shown} does not delete it first: delete it, \
                 or give the hook another name"
            ));
        }
        Err(reason) => {
            change.by = Some(Provenance::presence_unknown(reason));
            return Some(change);
        }
    }
    change.actual = Some("present".into());
    Some(change)
}

/// Helm set some field of it, and it is no object of a release.
fn is_made_by_hook(live: &Value) -> bool {
    let mut managers =
        list_manager_entries(live).filter_map(|entry| read_text_field(entry, "manager"));
    managers.any(|manager| !is_other_than_helm(manager))
        && find_annotation(live, RELEASE_NAME).is_none()
}

/// Notes what has the names of hooks: with the change of the hook where there is one, and else with
/// what varies, since it is no reason for a revision by itself.
pub fn add_hook_collisions(
    changes: &mut [HelmReleaseChange],
    varying: &mut Vec<HelmReleaseChange>,
    collisions: Vec<HelmReleaseChange>,
) {
    for collision in collisions {
        let known = changes
            .iter_mut()
            .chain(varying.iter_mut())
            .find(|change| change.name == collision.name);
        match known {
            Some(change) => {
                change.desired = collision.desired;
                change.actual = collision.actual;
                change.by = collision.by;
                change.interrupts = collision.interrupts;
                change.hindrance = collision.hindrance;
            }
            None => varying.push(collision),
        }
    }
}

fn is_other_than_helm(manager: &str) -> bool {
    !manager.eq_ignore_ascii_case(HELM)
}

/// A field that others added to an object of the release.
fn build_addition(name: &str, object: &Value, field: ForeignField) -> HelmReleaseChange {
    let mut change = HelmReleaseChange {
        name: format!("{name}: {}", field.shown),
        actual: Some(field.value),
        by: Some(field.manager.provenance()),
        since: Some(field.manager.time),
        added: true,
        ..HelmReleaseChange::default()
    };
    if is_secret(object) {
        hide_found(&mut change);
    }
    change
}

/// Lists of plain values with as many items on both sides, such as the arguments of a program, item
/// by item.
fn split_list_differences(fields: Vec<FieldDifference>) -> Vec<FieldDifference> {
    let mut out = Vec::new();
    for field in fields {
        let lists = (plain_items(&field.desired), plain_items(&field.actual));
        let (Some(desired), Some(actual)) = lists else {
            out.push(field);
            continue;
        };
        if desired.len() != actual.len() {
            out.push(field);
            continue;
        }
        for (index, (desired, actual)) in desired.iter().zip(actual).enumerate() {
            if desired != actual {
                out.push(FieldDifference {
                    path: field.path.clone(),
                    shown: format!("{}[{index}]", field.shown),
                    desired: Some(desired.clone()),
                    actual: Some(actual.clone()),
                });
            }
        }
    }
    out
}

/// The items of a list of plain values.
fn plain_items(value: &Option<Value>) -> Option<&[Value]> {
    let items = value.as_ref()?.as_array()?;
    let is_nested = items.iter().any(|item| item.is_object() || item.is_array());
    (!is_nested).then_some(items.as_slice())
}

/// Values that the resource gives, against those that the release was installed with.
pub fn diff_release_values(
    desired: &Value,
    installed: &Value,
    hidden: &[String],
) -> Vec<HelmReleaseChange> {
    let (desired, installed) = (normalize_values(desired), normalize_values(installed));
    let mut changes = Vec::new();
    for field in paths::diff_fields(&desired, &installed, false) {
        let is_secret = is_secret_field(&field, hidden);
        let place = HiddenPlace::new("values.", &field);
        let (desired, actual) = if is_secret {
            hide_field_values(&field)
        } else {
            (field.desired, field.actual)
        };
        changes.push(HelmReleaseChange {
            name: format!("values.{}", field.shown),
            desired,
            actual,
            rendered: true,
            hidden: is_secret,
            place: Some(place),
            ..HelmReleaseChange::default()
        });
    }
    changes
}

/// Values as Helm stores them; none at all are an empty map.
fn normalize_values(values: &Value) -> Value {
    match values {
        Value::Null => Value::Object(serde_json::Map::new()),
        values => normalize_whole_numbers(values),
    }
}

/// Hides what holds a text that the installed values have where a secret is, and every field of a
/// rendered object where there is a secret at all: a chart puts it where it likes, and in what form
/// it likes (base64 in an annotation). What is hidden goes by its place, for an item of a list is
/// known by what it holds.
pub fn conceal_secret_changes(
    changes: &mut Vec<HelmReleaseChange>,
    installed: &Value,
    hidden: &[String],
) {
    let secrets = build_secret_redaction(installed, hidden);
    let has_secrets = !secrets.is_empty() || !hidden.is_empty();
    let mut shown: Vec<HelmReleaseChange> = Vec::new();
    for (n, mut change) in std::mem::take(changes).into_iter().enumerate() {
        let is_rendered = is_rendered_field(&change);
        if contains_secret(&change.desired, &secrets)
            || contains_secret(&change.actual, &secrets)
            || (has_secrets && is_rendered)
        {
            change.desired = change.desired.as_ref().map(|_| HIDDEN.into());
            hide_found(&mut change);
        }
        hide_name(&mut change);
        if is_rendered {
            conceal_field_name(&mut change, n, &secrets);
        }
        let known = shown
            .iter_mut()
            .find(|other| change.hidden && other.hidden && other.name == change.name);
        match known {
            Some(first) => merge_hidden_change(first, change),
            None => shown.push(change),
        }
    }
    *changes = shown;
}

/// True for a field of a rendered object: what becomes of a whole object is no value of it.
fn is_rendered_field(change: &HelmReleaseChange) -> bool {
    !change.name.starts_with("values.") && change.name.contains(": ")
}

/// Hides secrets in the name of a field of the chart, and numbers it. The names of values are the
/// spec's own, and say what a change disturbs.
fn conceal_field_name(change: &mut HelmReleaseChange, n: usize, secrets: &Redaction) {
    let Some((object, field)) = change.name.split_once(": ") else {
        return;
    };
    let concealed = secrets.replace(field);
    if concealed != field {
        change.name = format!("{object}: {concealed} {n}");
    }
}

fn contains_secret(value: &Option<Value>, secrets: &Redaction) -> bool {
    value
        .as_ref()
        .is_some_and(|value| secrets.finds_in(&value.to_string()))
}

/// Places in these values that the labels of a release name.
pub fn find_labelled_secret_paths(value: &Value, labels: &BTreeSet<String>) -> Vec<String> {
    let mut out = Vec::new();
    if !labels.is_empty() {
        visit_values(value, "", &mut |at, _| {
            out.extend(labels.contains(&secret_label(at)).then(|| at.to_owned()))
        });
    }
    out
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

/// Objects that a new revision leaves on the cluster though it has them no more.
pub fn list_kept_by_upgrade(all: &[HelmReleaseObject]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for object in all {
        if object.live.as_ref().is_some_and(is_kept_by_upgrade)
            && let Some(name) = manifest::parse_object_name(&object.manifest)
        {
            names.insert(name.to_string());
        }
    }
    names
}

/// What of a release's objects matters when it is uninstalled: those that stay, the kinds that it
/// defines, those with pods.
pub fn of_uninstall(kept: &[Value], goes: &[Value]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let definitions = goes.iter().filter(|object| is_definition(object));
    let defines = definitions.map(name_defined_kind).collect();
    let mut runs = index_objects_by_name(goes);
    runs.retain(|_, object| has_pods(object));
    (
        index_objects_by_name(kept).into_keys().collect(),
        defines,
        runs.into_keys().collect(),
    )
}

/// `Kind.group` of the kind that an object defines.
fn name_defined_kind(definition: &Value) -> String {
    let kind = read_text_at(definition, "/spec/names/kind").unwrap_or_default();
    let group = read_text_at(definition, "/spec/group").unwrap_or_default();
    format!("{kind}.{group}")
}

/// Of these hooks those that run when a release is uninstalled, and those that left their object on
/// the cluster: an uninstall deletes none of them (helm/helm: pkg/action/uninstall.go).
pub fn hooks_of_uninstall(hooks: &[Value]) -> (Vec<String>, Vec<String>) {
    let (mut run, mut stay) = (Vec::new(), Vec::new());
    for (name, hook) in index_objects_by_name(hooks) {
        let mut events = list_hook_words(hook, HOOK);
        let mut deletions = list_hook_words(hook, HOOK_DELETION);
        let is_test = events.clone().all(|event| event == "test");
        if events.any(|event| UNINSTALL_EVENTS.contains(&event)) {
            run.push(name.clone());
        }
        if !is_test && !deletions.any(|policy| policy == "hook-succeeded") {
            stay.push(name);
        }
    }
    (run, stay)
}

/// The words of an annotation of a hook, as they come from Helm.
fn list_hook_words<'v>(hook: &'v Value, annotation: &str) -> std::str::Split<'v, char> {
    find_annotation(hook, annotation)
        .unwrap_or_default()
        .split(',')
}

/// The names of objects that are deleted when a release is uninstalled.
pub fn list_deleted_objects(goes: &[Value]) -> Vec<ObjectName> {
    goes.iter()
        .filter_map(manifest::parse_object_name)
        .collect()
}

fn build_field_change(name: &str, object: &Value, field: &FieldDifference) -> HelmReleaseChange {
    let (desired, actual) = if is_secret(object) {
        hide_field_values(field)
    } else {
        (field.desired.clone(), field.actual.clone())
    };
    let restarts = has_pods(object) && field.shown.starts_with("spec.template.");
    let restart = restarts.then(|| match read_text_at(object, "/spec/updateStrategy/type") {
        Some("OnDelete") => format!(
            "pods of {name} keep running as they are until somebody deletes them (OnDelete)"
        ),
        _ => format!("pods of {name} start anew"),
    });
    let interrupts = restart.or_else(|| {
        let object_name = manifest::parse_object_name(object)?;
        describe_scaled_claims(&object_name, &[object], field)
    });
    HelmReleaseChange {
        name: format!("{name}: {}", field.shown),
        desired,
        actual,
        interrupts,
        hidden: is_secret(object),
        place: Some(HiddenPlace::new(&format!("{name}: "), field)),
        ..HelmReleaseChange::default()
    }
}
