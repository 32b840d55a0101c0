//! What the `crds/` of a chart bring. Helm makes it with a first install where it is not there,
//! never changes it, and renders the chart after it (helm/helm: pkg/action/install.go,
//! `installCRDs`), while a dry run renders without it. So it is made here first, and the chart is
//! rendered with it before Helm installs the rest.

use super::super::lists::find_json_text;
use super::super::write_target::WriteTarget;
use super::preview::build_dry_run_arguments;
use super::{KubernetesLink, parse_helm_json};
use crate::kubernetes::act::{
    KubernetesActionStop, LOOK, stop_with_failure, stop_with_stale_precondition,
};
use crate::kubernetes::helm::{HelmCallError, HelmOutput, HelmProgram};
use crate::kubernetes::kinds;
use crate::kubernetes::release_change::not_done;
use crate::kubernetes::server::KubernetesRequest;
use http::Method;
use railwright_resource::helm_release::edits::object_of;
use railwright_resource::helm_release::rendered_objects::find_ambiguous_object;
use railwright_resource::helm_release::request::{Release, ReleaseRecord, UNINSTALLED};
use railwright_resource::helm_release::varying;
use railwright_resource::kubernetes_object::MANAGER;
use railwright_resource::kubernetes_object::conditions::find_condition;
use railwright_resource::kubernetes_object::manifest;
use railwright_resource::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_system::clock;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// How often is looked whether a definition is established: as long as Helm waits.
const ESTABLISHED_LOOKS: u32 = 120;

/// Two renderings of a chart, with its definitions there or without.
pub(in crate::kubernetes) struct RenderedTwice {
    one: Vec<Value>,
    other: Vec<Value>,
}

impl RenderedTwice {
    /// The objects that differ from this other rendering in more than what varies. Their fields may
    /// hold a secret, and are not told.
    fn list_differences(&self, other: &[Value]) -> BTreeSet<String> {
        let (steady, _) = varying::told_apart(&self.one, &self.other, other);
        let mut names = varying::list_changed_objects(&self.one, &self.other, other);
        names.extend(steady.iter().map(|change| object_of(change).to_owned()));
        names
    }
}

impl KubernetesLink {
    /// What the `crds/` of a chart bring that is not on the cluster. `dry_run`: the one of the
    /// chart, where it was made already.
    pub(super) async fn new_definitions(
        &self,
        program: &HelmProgram,
        release: &Release,
        chart: &Path,
        dry_run: Option<&HelmOutput>,
    ) -> Result<Vec<Value>, HelmCallError> {
        let objects = self.list_definition_objects(program, release, chart, dry_run);
        let objects = without_repeated(self.with_namespaces(objects.await?, release).await);
        if let Some(reason) = find_ambiguous_object(&objects) {
            return Err(HelmCallError::Local(
                format!("below crds/: {reason}").into(),
            ));
        }
        let groups = self.groups(&objects).await;
        let mut new = Vec::new();
        for object in objects {
            let is_there = match manifest::parse_object_name(&object) {
                Some(name) => {
                    let read = KubernetesRead::Object(name.clone());
                    matches!(self.answered(&name, read, &groups).await, Ok(Some(_)))
                }
                None => false,
            };
            // Where nobody may look, Helm tries to make it.
            if !is_there {
                new.push(object);
            }
        }
        Ok(new)
    }

    /// True where Helm makes what `crds/` brings: nothing is installed, or the history alone is
    /// there.
    async fn is_first_install(
        &self,
        program: &HelmProgram,
        release: &Release,
        looked_at: Option<&ReleaseRecord>,
    ) -> Result<bool, HelmCallError> {
        if looked_at.is_none() {
            return Ok(true);
        }
        let place = format!("--namespace={}", release.namespace);
        let words = ["status", &release.name, &place, "--output=json"];
        let said = self.ask(program, &words).await?;
        // One that is gone is found by its record.
        Ok(said.well && find_json_text(&parse_helm_json(&said)?, "/info/status") == UNINSTALLED)
    }

    /// Makes what `crds/` brings with a first install. Stops where the chart renders something
    /// else once it is there, which no plan has shown. Returns nothing where nothing was made.
    pub(in crate::kubernetes) async fn make_definitions(
        &self,
        program: &HelmProgram,
        release: &Release,
        chart: &Path,
        looked_at: Option<&ReleaseRecord>,
    ) -> Result<Option<RenderedTwice>, KubernetesActionStop> {
        let is_first = self.is_first_install(program, release, looked_at).await;
        if !is_first.map_err(not_done)? {
            return Ok(None);
        }
        let new = self.new_definitions(program, release, chart, None).await;
        let new = new.map_err(not_done)?;
        if new.is_empty() {
            return Ok(None);
        }
        let words = build_dry_run_arguments(program, release, chart);
        let before = self.rendered_twice(program, release, &words).await?;
        for object in &new {
            // Its kind may be one that was made right before.
            for object in self.with_namespaces(vec![object.clone()], release).await {
                self.make_definition(&object).await?;
            }
        }
        let with_definitions = self.rendered_twice(program, release, &words).await?;
        let mut differences = with_definitions.list_differences(&before.one);
        differences.extend(before.list_differences(&with_definitions.one));
        if differences.is_empty() {
            return Ok(Some(with_definitions));
        }
        let made: Vec<String> = new
            .iter()
            .filter_map(manifest::parse_object_name)
            .map(|name| name.to_string())
            .collect();
        Err(stop_with_stale_precondition(&format!(
            "{} from crds/ is made as the plan shows, and nothing else; with it the chart renders \
             what the plan does not show: {}; a new plan shows it",
            made.join(", "),
            join_names(&differences)
        )))
    }

    async fn rendered_twice(
        &self,
        program: &HelmProgram,
        release: &Release,
        words: &[String],
    ) -> Result<RenderedTwice, KubernetesActionStop> {
        let one = self.rendered_by(program, release, words).await;
        let other = self.rendered_by(program, release, words).await;
        Ok(RenderedTwice {
            one: one.map_err(not_done)?,
            other: other.map_err(not_done)?,
        })
    }

    async fn make_definition(&self, object: &Value) -> Result<(), KubernetesActionStop> {
        let Some(name) = manifest::parse_object_name(object) else {
            return Ok(());
        };
        let Some(resource) = self.resource(&name).await? else {
            return Ok(());
        };
        let collection =
            kinds::list_path(&name, &resource).map_err(|why| stop_with_failure(why.as_words()))?;
        let place = WriteTarget::new(&name, resource)?;
        let call = KubernetesRequest::with(
            Method::POST,
            format!("{collection}?fieldManager={MANAGER}"),
            "application/json",
            object.to_string(),
        );
        let reply = self.change(&call).await?;
        if !matches!(reply.status, 200 | 201 | 409) {
            return Err(place.refused(&reply));
        }
        for _ in 0..ESTABLISHED_LOOKS {
            let found = self.find(&place).await?.unwrap_or_default();
            if is_established(&found) && self.is_served(&found).await {
                return Ok(());
            }
            clock::sleep_for(LOOK).await;
        }
        Err(stop_with_failure(&format!(
            "{name} from crds/ is made and not established; nothing else was changed"
        )))
    }

    /// True once the server has the kinds of a definition.
    async fn is_served(&self, definition: &Value) -> bool {
        let versions = definition
            .pointer("/spec/versions")
            .and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            let (group, version_name) = (
                find_json_text(definition, "/spec/group").to_owned(),
                find_json_text(version, "/name").to_owned(),
            );
            let kind = ObjectName {
                api_version: format!("{group}/{version_name}"),
                kind: find_json_text(definition, "/spec/names/kind").to_owned(),
                namespace: None,
                name: String::new(),
            };
            if version["served"] == true
                && !matches!(
                    self.server.kinds.is_served(&self.server, &kind).await,
                    Ok(true)
                )
            {
                return false;
            }
        }
        true
    }

    /// Why a release that was just made (Helm's JSON of it) is not what it was rendered to with its
    /// definitions there; nothing where it is.
    pub(in crate::kubernetes) async fn find_unplanned_objects(
        &self,
        release: &Release,
        made: &Value,
        rendered: &RenderedTwice,
    ) -> Option<String> {
        let differences = match self.rendered(made, release).await {
            Ok((objects, hooks)) => rendered.list_differences(&[objects, hooks].concat()),
            Err(why) => BTreeSet::from([why.reason().into()]),
        };
        (!differences.is_empty()).then(|| {
            format!(
                "the release {}/{} is installed, and Helm rendered it otherwise than right before, \
                 which no plan has shown: {}; look at `helm -n {} get manifest {}`",
                release.namespace,
                release.name,
                join_names(&differences),
                release.namespace,
                release.name
            )
        })
    }
}

/// Helm passes over a definition that is there, so one that several subcharts bring identically is
/// one.
fn without_repeated(objects: Vec<Value>) -> Vec<Value> {
    let mut distinct = Vec::new();
    for object in objects {
        if !distinct.contains(&object) {
            distinct.push(object);
        }
    }
    distinct
}

fn join_names(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.join(", ")
}

/// A definition whose kind the server takes objects of; any object of another kind.
fn is_established(object: &Value) -> bool {
    object["kind"] != "CustomResourceDefinition"
        || find_condition(object, "Established", ("status", "True")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::tests::link;
    use serde_json::json;

    fn binding(name: &str) -> Value {
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name } })
    }

    /// What Helm made beside it is named, and what varies is not.
    #[tokio::test]
    async fn what_a_release_has_beside_what_was_rendered_is_named() {
        let kinds = json!({ "kind": "APIResourceList", "groupVersion": "rbac.authorization.k8s.io/v1", "resources": [] });
        let (link, _) = link(move |_, _, _| (200, Vec::new(), kinds.to_string()));
        let rendered = RenderedTwice {
            one: vec![binding("a"), binding("m-1")],
            other: vec![binding("a"), binding("m-2")],
        };
        let made = |objects: &[Value]| {
            let parts: Vec<String> = objects.iter().map(Value::to_string).collect();
            json!({ "manifest": parts.join("\n---\n") })
        };
        let release = Release {
            name: "rails".to_owned(),
            namespace: "n".to_owned(),
            ..Release::default()
        };
        let as_rendered = made(&[binding("a"), binding("m-3")]);
        let found = link.find_unplanned_objects(&release, &as_rendered, &rendered);
        assert_eq!(found.await, None);
        let beyond = made(&[binding("a"), binding("m-3"), binding("evil")]);
        let found = link.find_unplanned_objects(&release, &beyond, &rendered);
        let found = found.await.unwrap();
        assert!(
            found.contains("ClusterRoleBinding.rbac.authorization.k8s.io evil"),
            "{found}"
        );
    }

    /// A name that varies hides nothing of its object, and a word that begins to vary is told too.
    #[test]
    fn what_comes_of_definitions_is_named_also_where_names_vary() {
        let role = |name: &str, role: &str| {
            let mut object = binding(name);
            object["roleRef"] = json!({ "kind": "ClusterRole", "name": role });
            vec![object]
        };
        let twice = |one: Vec<Value>, other: Vec<Value>| RenderedTwice { one, other };
        let before = twice(role("m-1", "view"), role("m-2", "view"));
        let same = twice(role("m-3", "view"), role("m-4", "view"));
        let more = twice(role("m-3", "cluster-admin"), role("m-4", "cluster-admin"));
        let class = "ClusterRoleBinding.rbac.authorization.k8s.io (another name with every \
                     revision)";
        assert_eq!(same.list_differences(&before.one), BTreeSet::new());
        assert_eq!(
            more.list_differences(&before.one),
            BTreeSet::from([class.to_owned()])
        );
        let by_chance = twice(role("b", "admin"), role("b", "edit"));
        let before = twice(role("b", "view"), role("b", "view"));
        assert!(!before.list_differences(&by_chance.one).is_empty());
    }

    /// Only what differs under one name is refused.
    #[test]
    fn what_subcharts_bring_identically_is_one() {
        let mut other = binding("a");
        other["roleRef"] = json!({ "name": "edit" });
        let repeated = vec![binding("a"), binding("b"), binding("a")];
        assert_eq!(without_repeated(repeated), [binding("a"), binding("b")]);
        let differing = without_repeated(vec![binding("a"), other]);
        assert!(find_ambiguous_object(&differing).is_some());
    }

    #[test]
    fn a_definition_is_waited_for_and_other_objects_are_not() {
        let definition = |status: &str| json!({ "kind": "CustomResourceDefinition", "status": { "conditions": [{ "type": "Established", "status": status }] } });
        assert!(is_established(&definition("True")) && is_established(&binding("a")));
        assert!(!is_established(&definition("False")));
        assert!(!is_established(
            &json!({ "kind": "CustomResourceDefinition" })
        ));
    }
}
