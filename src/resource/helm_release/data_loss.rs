//! What data goes with a release that is uninstalled: Helm deletes its claims and volumes as it
//! deletes its ConfigMaps.

use super::compare::HelmReleaseObject;
use super::request::InstalledRelease;
use crate::kubernetes_object::claims::explain_claim_deletion;
use crate::kubernetes_object::request::ObjectName;
use crate::kubernetes_object::{explain_removal_prohibition, manifest};
use railwright_base::text::one_line;
use serde_json::Value;

/// Objects of which the plan names all that goes with them by itself.
const NAMED_ELSEWHERE: &str = "CustomResourceDefinition";

/// Every object of these that keeps its data only as long as it is there, with why: by what is on
/// the cluster (`live`), and by the chart where that could not be read. One that is gone or goes by
/// somebody else's word loses nothing to us.
pub fn list_data_losses(goes: &[Value], live: Option<&[HelmReleaseObject]>) -> Vec<String> {
    let mut losses = Vec::new();
    for manifest in goes {
        let Some(name) = manifest::parse_object_name(manifest) else {
            continue;
        };
        let there = match live {
            None => Some(manifest),
            Some(all) => find_live_object(all, &name),
        };
        let why = there.and_then(|object| explain_data_loss(&name, object));
        losses.extend(why.map(|why| format!("{name}: {why}")));
    }
    losses
}

fn find_live_object<'v>(all: &'v [HelmReleaseObject], name: &ObjectName) -> Option<&'v Value> {
    all.iter()
        .find(|one| manifest::parse_object_name(&one.manifest).as_ref() == Some(name))
        .and_then(|one| one.live.as_ref())
        .filter(|live| live.pointer("/metadata/deletionTimestamp").is_none())
}

fn explain_data_loss(name: &ObjectName, object: &Value) -> Option<String> {
    let prohibition = explain_removal_prohibition(name).filter(|_| name.kind != NAMED_ELSEWHERE);
    match prohibition {
        Some(why) => Some(why.to_owned()),
        None => explain_claim_deletion(name, object),
    }
}

/// Why a release is not uninstalled as long as data goes with it.
pub(super) fn refuse_data_loss(installed: &InstalledRelease) -> Option<String> {
    let losses = installed.data_losses.join("; ");
    (!losses.is_empty()).then(|| {
        format!(
            "Helm would delete data with the release: {}; to keep it, put the release back into \
             the spec with `helm.sh/resource-policy: keep` on these objects and apply that first; \
             to let it go, delete these objects yourself",
            one_line(&losses, 600)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, spec: &Value) -> Value {
        let (version, kind) = kind.split_once(' ').unwrap();
        json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "vol", "namespace": "n" }, "spec": spec })
    }

    fn set(policy: &str) -> Value {
        let templates = json!([{ "metadata": { "name": "data" } }]);
        json!({ "persistentVolumeClaimRetentionPolicy": { "whenDeleted": policy }, "volumeClaimTemplates": templates })
    }

    #[test]
    fn what_takes_data_along_is_told_by_what_is_on_the_cluster() {
        let losses = |manifest: &Value, live: Option<Option<Value>>| {
            let live = live.map(|live| {
                [HelmReleaseObject {
                    manifest: manifest.clone(),
                    live,
                    preview: None,
                }]
            });
            list_data_losses(
                std::slice::from_ref(manifest),
                live.as_ref().map(|one| &one[..]),
            )
        };
        for (kind, spec, why) in [
            (
                "v1 PersistentVolumeClaim",
                json!({}),
                "PersistentVolumeClaim.core n/vol: its data would go along",
            ),
            (
                "v1 PersistentVolume",
                json!({}),
                "PersistentVolume.core n/vol: its data would go along",
            ),
            (
                "v1 Namespace",
                json!({}),
                "Namespace.core n/vol: what lies below it would go along",
            ),
            (
                "apps/v1 StatefulSet",
                set("Delete"),
                "StatefulSet.apps n/vol: the claims of its pods (data-vol-N) would go along",
            ),
        ] {
            let there = object(kind, &spec);
            let mut going = there.clone();
            going["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
            for live in [None, Some(Some(there.clone()))] {
                let told = losses(&there, live);
                assert!(told.len() == 1 && told[0].starts_with(why), "{told:?}");
            }
            for gone in [None, Some(going)] {
                assert_eq!(losses(&there, Some(gone)), Vec::<String>::new(), "{kind}");
            }
        }
        let chart = object("apps/v1 StatefulSet", &set("Retain"));
        let edited = object("apps/v1 StatefulSet", &set("Delete"));
        assert_eq!(losses(&chart, Some(Some(edited.clone()))).len(), 1);
        assert_eq!(losses(&edited, Some(Some(chart))), Vec::<String>::new());
        let definition = object(
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
            &json!({}),
        );
        assert_eq!(
            losses(&definition, None),
            Vec::<String>::new(),
            "named as a kind"
        );
    }
}
