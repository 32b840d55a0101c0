//! What a change of fields does to pods that run.

use super::claims::describe_scaled_claims;
use super::paths::{FieldDifference, FieldPathStep};
use super::request::ObjectName;
use super::{DesiredObject, WITH_PODS};
use crate::json_fields::read_text_at;
use crate::{Disruption, ResourceDiff};
use railwright_base::text::format_count;
use serde_json::Value;

/// Kinds of operators whose pods end with the object (ray-project/kuberay, kubeflow/mpi-operator,
/// kubeflow/training-operator: owner references).
const OF_OPERATORS: [&str; 3] = [
    "RayCluster.ray.io",
    "MPIJob.kubeflow.org",
    "PyTorchJob.kubeflow.org",
];

/// Whether pods end with the object.
pub fn pods_end_with(object: &ObjectName) -> bool {
    let kind = object.kind_and_group();
    WITH_PODS.contains(&kind.as_str()) || OF_OPERATORS.contains(&kind.as_str())
}

/// How many pods fewer there are to be; none where it is not said.
fn count_removed_pods(fields: &[FieldDifference]) -> u64 {
    let mut removed = 0;
    for field in fields {
        if let Some(FieldPathStep::Field(name)) = field.path.last()
            && name == "replicas"
            && let Some(actual) = field.actual.as_ref().and_then(Value::as_u64)
            && let Some(desired) = field.desired.as_ref().and_then(Value::as_u64)
        {
            removed += actual.saturating_sub(desired);
        }
    }
    removed
}

/// What a change of these fields of an object does to pods that run, and to their data.
pub fn record_pod_disruption(
    asked: &DesiredObject,
    object: &Value,
    fields: &[FieldDifference],
    diff: &mut ResourceDiff,
) {
    record_ended_pods(asked, fields, diff);
    let versions = [&asked.manifest, object];
    let claims = fields
        .iter()
        .find_map(|field| describe_scaled_claims(&asked.object, &versions, field));
    diff.interrupts.extend(claims);
}

fn record_ended_pods(asked: &DesiredObject, fields: &[FieldDifference], diff: &mut ResourceDiff) {
    let kind = asked.object.kind_and_group();
    if WITH_PODS.contains(&kind.as_str())
        && fields
            .iter()
            .any(|field| field.shown.starts_with("spec.template."))
    {
        diff.disruption = Disruption::Restart;
        let on_delete =
            read_text_at(&asked.manifest, "/spec/updateStrategy/type") == Some("OnDelete");
        diff.interrupts = vec![match on_delete {
            true => format!(
                "pods of {} keep running as they are until somebody deletes them (OnDelete)",
                asked.object
            ),
            false => format!("pods of {} start anew", asked.object),
        }];
        return;
    }
    let ending = if pods_end_with(&asked.object) {
        count_removed_pods(fields)
    } else {
        0
    };
    if ending > 0 {
        diff.disruption = Disruption::Restart;
        diff.interrupts = vec![format!(
            "{} of {} end",
            format_count(ending as usize, "pod"),
            asked.object
        )];
    }
}
