//! Uninstalls a release that was not there before us.

use super::request::{HelmReleaseState, InstalledRelease};
use super::{
    decode_release_state, edits, find_unfinished_operation, insert_attribute,
    insert_presence_attribute, parse_helm_release,
};
use crate::{
    Action, Assessment, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// What is done for that, what goes with it, and what stays.
pub(super) fn plan_helm_release_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> Assessment {
    let mut assessment = Assessment {
        before: before.clone(),
        ..Assessment::default()
    };
    let installed = match decode_release_state(last_applied, answers) {
        Err(reason) => {
            insert_presence_attribute(&mut assessment, Reading::Absent, Reading::Unknown(reason));
            return assessment;
        }
        Ok(HelmReleaseState {
            installed: None, ..
        }) => {
            insert_presence_attribute(&mut assessment, Reading::Absent, Reading::Absent);
            return assessment;
        }
        Ok(HelmReleaseState {
            installed: Some(installed),
            ..
        }) => installed,
    };
    let release = parse_helm_release(last_applied);
    let brought = before.get("existed").and_then(Value::as_bool) == Some(false);
    if !brought
        || !installed.ours
        || last_applied.body.get("adopt").and_then(Value::as_bool) == Some(true)
    {
        assessment.residue.push(format!(
            "release {}/{} stays: it was there before us",
            release.namespace, release.name
        ));
        return assessment;
    }
    insert_presence_attribute(&mut assessment, Reading::Absent, Reading::is("present"));
    match installed.status.as_str() {
        "deployed" => {}
        // Half gone: Helm goes on with it where it is asked again (helm/helm:
        // pkg/action/uninstall.go, `Uninstall.Run`).
        "uninstalling" => insert_attribute(
            &mut assessment,
            "status",
            Reading::Absent,
            Reading::is("uninstalling"),
        ),
        status => {
            insert_attribute(
                &mut assessment,
                "status",
                Reading::Absent,
                Reading::is(status),
            );
            assessment.refusal = find_unfinished_operation(last_applied, &installed);
        }
    }
    assessment.disruption = Disruption::Restart;
    assessment.interrupts = installed
        .runs
        .iter()
        .map(|object| format!("pods of {object} end"))
        .collect();
    let gone = |kind: &String| {
        format!(
            "every {kind} of the cluster is deleted: its definition is one of the release's own \
             objects"
        )
    };
    assessment
        .interrupts
        .extend(installed.defines.iter().map(gone));
    assessment.interrupts.extend(
        installed
            .hooks_run
            .iter()
            .map(|hook| format!("{hook} runs, as its chart says")),
    );
    note_edits(&mut assessment, &installed);
    assessment.residue = installed
        .kept
        .iter()
        .map(|object| format!("{object} stays: its chart says so"))
        .collect();
    assessment.residue.extend(
        installed
            .hooks_stay
            .iter()
            .map(|hook| format!("what {hook} made stays: Helm leaves it")),
    );
    let keeps = last_applied
        .body
        .get("keeps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    assessment
        .residue
        .extend(keeps.filter_map(Value::as_str).map(str::to_owned));
    if assessment.refusal.is_none() {
        let (name, namespace) = (release.name, release.namespace);
        let (deletes, looked_at) = (installed.deletes, installed.record);
        assessment.actions = vec![Action::UninstallRelease {
            name,
            namespace,
            deletes,
            looked_at,
        }];
    }
    assessment
}

/// What others changed on objects that go along is lost with them.
fn note_edits(assessment: &mut Assessment, installed: &InstalledRelease) {
    let goes: BTreeSet<String> = installed.deletes.iter().map(ToString::to_string).collect();
    for edit in installed
        .edits
        .iter()
        .filter(|edit| goes.contains(edits::object_of(edit)))
    {
        let found = edit.found.clone().map_or(Reading::Absent, Reading::Is);
        let attribute = Attribute {
            by: edit.by.clone(),
            ..Attribute::in_plane(Plane::Persisted, Reading::Absent, found)
        };
        assessment.attributes.insert(edit.name.clone(), attribute);
    }
    if let Some(reason) = &installed.unseen {
        insert_attribute(
            assessment,
            "objects",
            Reading::Absent,
            Reading::Unknown(reason.clone()),
        );
    }
}
