//! `helm_release`: a release of a Helm chart, owned through Helm: its objects are Helm's, and ours
//! is the release.
//!
//! A plan compares three things: the values that the resource gives with those of the newest
//! revision, what the chart renders to with what that revision was installed with, and what that
//! revision was installed with with the objects on the cluster. Hooks are compared like objects,
//! though Helm counts them as none of the release.
//!
//! A release that was never ours is left alone until `adopt: true` takes it over; then it is never
//! uninstalled.

pub mod ambiguous_yaml;
mod body;
pub mod compare;
pub mod data_loss;
mod diff;
pub mod edits;
mod release_object;
pub mod rendered_objects;
pub mod request;
pub mod rights;
mod secret_values;
mod undo;
pub mod varying;

use self::body::HelmReleaseBody;
use self::request::{HelmReleaseState, NO_HELM, Release};
use super::{
    Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff, ResourceKind,
};
use crate::body::{BodyType, read_body};
use crate::json_fields::read_text_field;
use crate::kubernetes_object::ownership::PriorObject;
use railwright_base::text::one_line;
use railwright_base::{Reason, TargetKind};
use serde::Deserialize;
use serde_json::Value;

/// The kind.
pub struct HelmRelease;

/// The attribute that says whether the release is there.
const RELEASE: &str = "release";

impl ResourceKind for HelmRelease {
    fn name(&self) -> &'static str {
        "helm_release"
    }

    /// It stands in the label of the releases that are ours.
    fn names_cluster(&self) -> bool {
        true
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        Some(vec![
            self.name().to_owned(),
            read_text_field(body, "namespace")?.to_owned(),
            read_text_field(body, "name")?.to_owned(),
        ])
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<HelmReleaseBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![build_release_read(parse_helm_release(resource))]
    }

    /// What is installed, and no chart: a release that was applied says of any what it is.
    fn reads_to_undo(&self, applied: &DesiredResource) -> Vec<Read> {
        vec![build_undo_read(applied)]
    }

    /// A chart may define kinds beside its objects, and make namespaces.
    fn may_bring(&self, _resource: &DesiredResource, _needed: &str) -> bool {
        true
    }

    fn knows_its_own(&self) -> bool {
        true
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        match decode_release_state(&build_release_read(parse_helm_release(resource)), answers) {
            Err(reason) => insert_presence_attribute(
                &mut diff,
                Reading::is("present"),
                Reading::Unknown(reason),
            ),
            Ok(found) => diff::diff_helm_release(&read_body(&resource.body), found, &mut diff),
        }
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        undo::plan_helm_release_undo(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorObject::deserialize(before).is_ok()
    }

    fn may_hold_secret(&self, pointer: &str) -> bool {
        pointer.starts_with("/values/")
    }
}

/// The release that a resource is about.
pub fn parse_helm_release(resource: &DesiredResource) -> Release {
    read_body::<HelmReleaseBody>(&resource.body).to_release()
}

fn build_release_read(release: Release) -> Read {
    Read::HelmRelease(Box::new(release))
}

fn build_undo_read(applied: &DesiredResource) -> Read {
    build_release_read(parse_helm_release(applied).without_values())
}

fn decode_release_state(read: &Read, answers: &ReadResults) -> Result<HelmReleaseState, Reason> {
    match answers.output(read)? {
        (0, out) => serde_json::from_str(out)
            .map_err(|_| "the answer about the release cannot be read".into()),
        (NO_HELM, out) => Err(one_line(out, 300).into()),
        (_, out) => Err(format!("Helm did not say: {}", one_line(out, 300)).into()),
    }
}

fn insert_presence_attribute(diff: &mut ResourceDiff, desired: Reading, actual: Reading) {
    insert_attribute(diff, RELEASE, desired, actual);
}

fn insert_attribute(diff: &mut ResourceDiff, name: &str, desired: Reading, actual: Reading) {
    diff.attributes.insert(
        name.to_owned(),
        Attribute::in_plane(Plane::Persisted, desired, actual),
    );
}

#[cfg(test)]
mod comparison_tests;
#[cfg(test)]
mod tests;
