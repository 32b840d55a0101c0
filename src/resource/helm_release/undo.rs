//! Uninstalls a release that was not there before us.

use super::body::HelmReleaseBody;
use super::compare::HelmReleaseChange;
use super::data_loss::refuse_data_loss;
use super::diff::find_unfinished_operation;
use super::request::InstalledRelease;
use super::{
    build_undo_read, decode_release_state, edits, insert_attribute, insert_presence_attribute,
};
use crate::body::read_body;
use crate::kubernetes_object::ownership::PriorObject;
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading, ResourceDiff,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Plans the uninstallation of a release that we brought, with what it interrupts and what it
/// leaves behind. A release that was there before us stays.
pub(super) fn plan_helm_release_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    let installed = match decode_release_state(&build_undo_read(last_applied), answers) {
        Err(reason) => {
            insert_presence_attribute(&mut diff, Reading::Absent, Reading::Unknown(reason));
            return diff;
        }
        Ok(found) => found.installed,
    };
    let Some(installed) = installed else {
        insert_presence_attribute(&mut diff, Reading::Absent, Reading::Absent);
        return diff;
    };
    let body = read_body::<HelmReleaseBody>(&last_applied.body);
    if !is_to_be_uninstalled(&body, before, &installed) {
        diff.residue.push(format!(
            "release {}/{} stays: it was there before us",
            body.namespace, body.name
        ));
        return diff;
    }
    insert_presence_attribute(&mut diff, Reading::Absent, Reading::is("present"));
    diff_release_status(&body, &installed, &mut diff);
    diff.disruption = Disruption::Restart;
    diff.interrupts = list_interruptions(&installed);
    note_edits(&mut diff, &installed);
    for collision in &installed.hook_collisions {
        let actual = Reading::from(collision.actual.clone());
        insert_attribute(&mut diff, &collision.name, Reading::Absent, actual);
        if let Some(hindrance) = &collision.hindrance {
            diff.refusal = Some(hindrance.clone());
        }
    }
    if diff.refusal.is_none() {
        diff.refusal = refuse_data_loss(&installed);
    }
    diff.residue = list_residue(body.keeps, &installed);
    if diff.refusal.is_none() {
        diff.actions = vec![Action::UninstallRelease {
            name: body.name,
            namespace: body.namespace,
            deletes: installed.deletes,
            looked_at: installed.record,
        }];
    }
    diff
}

/// True for a release that we brought and that is still ours alone.
fn is_to_be_uninstalled(
    body: &HelmReleaseBody,
    before: &Value,
    installed: &InstalledRelease,
) -> bool {
    let is_brought = PriorObject::deserialize(before).is_ok_and(|prior| !prior.existed);
    is_brought && installed.ours && !body.adopt
}

fn diff_release_status(
    body: &HelmReleaseBody,
    installed: &InstalledRelease,
    diff: &mut ResourceDiff,
) {
    let status = installed.status.as_str();
    if status == "deployed" {
        return;
    }
    insert_attribute(diff, "status", Reading::Absent, Reading::is(status));
    // Half gone: Helm goes on with it where it is asked again (helm/helm: pkg/action/uninstall.go,
    // `Uninstall.Run`).
    if status != "uninstalling" {
        diff.refusal = find_unfinished_operation(body, installed);
    }
}

fn list_interruptions(installed: &InstalledRelease) -> Vec<String> {
    let mut out = Vec::new();
    for object in &installed.runs {
        out.push(format!("pods of {object} end"));
    }
    out.extend(installed.data_losses.iter().cloned());
    for kind in &installed.defines {
        out.push(format!(
            "every {kind} of the cluster is deleted: its definition is one of the release's own \
             objects"
        ));
    }
    for hook in &installed.hooks_run {
        out.push(format!("{hook} runs, as its chart says"));
    }
    for HelmReleaseChange {
        name,
        interrupts,
        by,
        ..
    } in &installed.hook_collisions
    {
        out.extend(interrupts.clone());
        out.extend(by.as_ref().map(|by| format!("{name}: {}", by.words())));
    }
    out
}

/// What Helm leaves on the cluster, and what the resource itself says that the chart leaves
/// elsewhere.
fn list_residue(keeps: Vec<String>, installed: &InstalledRelease) -> Vec<String> {
    let mut out = Vec::new();
    for object in &installed.kept {
        out.push(format!("{object} stays: its chart says so"));
    }
    for hook in &installed.hooks_stay {
        out.push(format!("what {hook} made stays: Helm leaves it"));
    }
    out.extend(keeps);
    out
}

/// What others changed on objects that go along is lost with them.
fn note_edits(diff: &mut ResourceDiff, installed: &InstalledRelease) {
    let goes: BTreeSet<String> = installed.deletes.iter().map(ToString::to_string).collect();
    for edit in installed
        .edits
        .iter()
        .filter(|edit| goes.contains(edits::object_of(edit)))
    {
        let actual = Reading::from(edit.actual.clone());
        let attribute = Attribute {
            by: edit.by.clone(),
            ..Attribute::in_plane(Plane::Persisted, Reading::Absent, actual)
        };
        diff.attributes.insert(edit.name.clone(), attribute);
    }
    if let Some(reason) = &installed.unseen {
        insert_attribute(
            diff,
            "objects",
            Reading::Absent,
            Reading::Unknown(reason.clone()),
        );
    }
}
