//! A release of Helm: what is installed. A read changes nothing: it asks Helm, and the API server
//! for each object.

mod definition_files;
mod definitions;
mod preview;

use super::KubernetesLink;
use super::answer::new_exit_answer;
use super::helm::{HelmCallError, HelmOutput, HelmProgram, QUESTION};
use super::kinds::ApiResource;
use super::lists::find_json_text;
use super::lists::{self, ObjectSelection};
use super::read::Groups;
use railwright_base::{Digest, Reason, bounded_json};
use railwright_resource::helm_release::compare::{self, HelmReleaseChange, HelmReleaseObject};
use railwright_resource::helm_release::data_loss::list_data_losses;
use railwright_resource::helm_release::rendered_objects;
use railwright_resource::helm_release::request::{
    HelmReleasePreview, HelmReleaseState, InstalledRelease, NO_HELM, NOT_SAID, Release,
    ReleaseRecord,
};
use railwright_resource::json_fields::list_items_at;
use railwright_resource::kubernetes_object::manifest;
use railwright_resource::kubernetes_object::part_of;
use railwright_resource::kubernetes_object::request::{
    KubernetesRead, NOT_SAID as NOT_ANSWERED, ObjectName,
};
use railwright_resource::{AnswerStatus, ReadResult, rights};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Revisions that Helm keeps of a release.
const HISTORY: u32 = 10;
/// Hooks of a chart may take as long.
pub const HOOKS: Duration = Duration::from_secs(300);

/// What Helm has of a release.
struct DeployedRelease {
    installed: InstalledRelease,
    values: Value,
    /// Its objects and its hooks.
    rendered: Vec<Value>,
    /// Where nothing of its values is shown.
    hidden: Vec<String>,
    /// The names of objects that a revision leaves where they are, though it has them no more.
    kept_by_upgrade: BTreeSet<String>,
    /// The names of objects that the last runs of its hooks left.
    left_by_hooks: BTreeSet<String>,
}

impl KubernetesLink {
    /// The answer to a read.
    pub(super) async fn release(&self, release: &Release) -> ReadResult {
        match self.found(release).await {
            Ok(found) => new_exit_answer(0, serde_json::to_string(&found).unwrap_or_default()),
            Err(HelmCallError::NoHelm(reason)) => new_exit_answer(NO_HELM, reason),
            Err(HelmCallError::TimedOut(_)) => ReadResult {
                status: AnswerStatus::TimedOut,
                out: String::new(),
            },
            Err(HelmCallError::Local(reason)) => new_exit_answer(NOT_SAID, reason),
        }
    }

    async fn found(&self, release: &Release) -> Result<HelmReleaseState, HelmCallError> {
        let program = self.helm.program().await?;
        let mut has = self.installed(&program, release).await?;
        if let Some(deployed) = &mut has {
            let (rendered, left) = (&deployed.rendered, &deployed.left_by_hooks);
            let hooks = compare::list_run_hooks(rendered, &compare::UNINSTALL_EVENTS);
            deployed.installed.hook_collisions = self.find_hook_collisions(&hooks, left).await;
        }
        let is_busy = has
            .as_ref()
            .is_some_and(|has| has.installed.status.starts_with("pending"));
        let preview = if is_busy {
            HelmReleasePreview::default()
        } else {
            self.preview(&program, release, has.as_ref()).await?
        };
        Ok(HelmReleaseState {
            installed: has.map(|has| has.installed),
            preview,
        })
    }

    async fn ask(
        &self,
        program: &HelmProgram,
        words: &[&str],
    ) -> Result<HelmOutput, HelmCallError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        self.helm.call(program, &words, b"", QUESTION).await
    }

    async fn ask_json(
        &self,
        program: &HelmProgram,
        words: &[&str],
    ) -> Result<Value, HelmCallError> {
        let words = [words, &["--output=json"]].concat();
        parse_helm_json(&self.ask(program, &words).await?)
    }

    async fn installed(
        &self,
        program: &HelmProgram,
        release: &Release,
    ) -> Result<Option<DeployedRelease>, HelmCallError> {
        let name = release.name.as_str();
        // Before all that is compared: whatever somebody makes from here on has another record.
        let Some(record) = self.newest_record(name, &release.namespace).await? else {
            return Ok(None);
        };
        let place = format!("--namespace={}", release.namespace);
        let status = self.ask_json(program, &["status", name, &place]).await?;
        let metadata = &["get", "metadata", name, &place];
        let metadata = self.ask_json(program, metadata).await?;
        let (mut objects, hooks) = self.rendered(&status, release).await?;
        let (kept, goes) = split_kept_objects(&status, &objects)?;
        self.add_objects_before_failure(program, release, &status, &mut objects)
            .await?;
        let values = status.get("config").cloned().unwrap_or_default();
        let hidden = [
            release.hidden.clone(),
            compare::find_labelled_secret_paths(&values, &record.secrets),
        ]
        .concat();
        let seen = self.live_objects(&objects).await;
        let live = seen.as_deref().unwrap_or_default();
        let mut edits = compare::diff_live_objects(live);
        compare::conceal_secret_changes(&mut edits, &values, &hidden);
        let (kept, defines, runs) = compare::of_uninstall(&kept, &goes);
        let (hooks_run, hooks_stay) = compare::hooks_of_uninstall(&hooks);
        let installed = InstalledRelease {
            chart: find_json_text(&metadata, "/chart").to_owned(),
            version: find_json_text(&metadata, "/version").to_owned(),
            status: find_json_text(&status, "/info/status").to_owned(),
            description: find_json_text(&status, "/info/description").to_owned(),
            updated: find_json_text(&status, "/info/last_deployed").to_owned(),
            ours: record.part_of.as_deref() == Some(&*part_of(&release.cluster)),
            record,
            kept,
            defines,
            runs,
            deletes: compare::list_deleted_objects(&goes),
            data_losses: list_data_losses(&goes, seen.as_deref().ok()),
            hooks_run,
            hooks_stay,
            edits,
            unseen: seen.as_ref().err().cloned(),
            ..InstalledRelease::default()
        };
        let left = self.hook_objects(&status, release, rendered_objects::is_left_by_last_run);
        Ok(Some(DeployedRelease {
            left_by_hooks: name_objects(&left.await?),
            installed,
            values,
            rendered: [objects, hooks].concat(),
            hidden,
            kept_by_upgrade: compare::list_kept_by_upgrade(live),
        }))
    }

    /// Adds to the objects of the newest revision those that it does not have and the last one that
    /// was deployed has: where the newest failed, Helm deletes by that one (helm/helm:
    /// pkg/action/upgrade.go, `prepareUpgrade`).
    async fn add_objects_before_failure(
        &self,
        program: &HelmProgram,
        release: &Release,
        newest: &Value,
        objects: &mut Vec<Value>,
    ) -> Result<(), HelmCallError> {
        if find_json_text(newest, "/info/status") == "deployed" {
            return Ok(());
        }
        let (name, place) = (&*release.name, format!("--namespace={}", release.namespace));
        let history = self.ask_json(program, &["history", name, &place]).await?;
        let deployed = history
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["status"] == "deployed")
            .filter_map(|one| one["revision"].as_u64())
            .max();
        let Some(deployed) = deployed else {
            return Ok(());
        };
        let revision = format!("--revision={deployed}");
        let said = self
            .ask(program, &["get", "manifest", name, &place, &revision])
            .await?;
        if !said.well {
            return Err(HelmCallError::Local(said.complaint.into()));
        }
        let older = rendered_objects::parse_manifest_objects(&said.out);
        let mut older = self
            .with_namespaces(older.map_err(HelmCallError::Local)?, release)
            .await;
        let newest = rendered_objects::index_objects_by_name(objects);
        older.retain(|object| {
            let name = rendered_objects::parse_rendered_name(object);
            name.is_some_and(|name| !newest.contains_key(&name.to_string()))
        });
        objects.extend(older);
        Ok(())
    }

    /// Helm's record of the newest revision; nothing where there is none. What Helm itself says of
    /// one that it does not find it also says of answers of another shape, which are no list here.
    pub(super) async fn newest_record(
        &self,
        name: &str,
        namespace: &str,
    ) -> Result<Option<ReleaseRecord>, HelmCallError> {
        let (api_version, kind) = ("v1".to_owned(), "Secret".to_owned());
        let object = ObjectName {
            api_version,
            kind,
            namespace: Some(namespace.to_owned()),
            name: String::new(),
        };
        let resource = ApiResource {
            plural: "secrets".to_owned(),
            namespaced: true,
        };
        let labels = format!("owner=helm,name={name}");
        let asked = lists::list_all_pages(
            &self.server,
            &object,
            &resource,
            ObjectSelection::Labels(&labels),
            |one| Some(ReleaseRecord::of(one)),
        )
        .await;
        let answer = match asked.map_err(|trouble| {
            HelmCallError::Local(trouble.error(&self.server).to_string().into())
        })? {
            Ok(records) => {
                let records: Option<Vec<ReleaseRecord>> = records.into_iter().collect();
                let records = records.ok_or_else(|| {
                    HelmCallError::Local(
                        "a record of Helm without a revision is among its Secrets".into(),
                    )
                })?;
                return Ok(records.into_iter().max_by_key(|record| record.revision));
            }
            Err(answer) => answer,
        };
        Err(HelmCallError::Local(match answer.status {
            AnswerStatus::Denied => rights::of_role(&answer.out).into(),
            AnswerStatus::Exit(_) => answer.out.into(),
            _ => "the records of Helm are too long to be read".into(),
        }))
    }

    /// The objects and the hooks of a release as Helm tells it.
    async fn rendered(
        &self,
        told: &Value,
        release: &Release,
    ) -> Result<(Vec<Value>, Vec<Value>), HelmCallError> {
        let objects = rendered_objects::parse_manifest_objects(find_json_text(told, "/manifest"))
            .map_err(HelmCallError::Local)?;
        let hooks = self.hook_objects(told, release, |_| true).await?;
        Ok((self.with_namespaces(objects, release).await, hooks))
    }

    /// The objects of the hooks of a release as Helm tells it, of those that are `desired`.
    async fn hook_objects(
        &self,
        told: &Value,
        release: &Release,
        desired: fn(&Value) -> bool,
    ) -> Result<Vec<Value>, HelmCallError> {
        let mut hooks = Vec::new();
        let all = list_items_at(told, "/hooks").iter();
        for hook in all.filter(|hook| desired(hook)) {
            let objects = rendered_objects::parse_hook_objects(hook);
            hooks.extend(objects.map_err(HelmCallError::Local)?);
        }
        Ok(self.with_namespaces(hooks, release).await)
    }

    /// What has the names of these hooks, beside what their last runs `left`.
    async fn find_hook_collisions(
        &self,
        hooks: &[Value],
        left: &BTreeSet<String>,
    ) -> Vec<HelmReleaseChange> {
        let groups = self.groups(hooks).await;
        let mut out = Vec::new();
        for hook in hooks {
            let Some(object) = manifest::parse_object_name(hook) else {
                continue;
            };
            let read = KubernetesRead::Object(object.clone());
            let live = self.answered(&object, read, &groups).await;
            let is_left = left.contains(&object.to_string());
            out.extend(compare::describe_hook_collision(
                hook, &object, live, is_left,
            ));
        }
        out
    }

    /// Objects of a chart; those of a kind that is in namespaces are in the release's where they
    /// name none.
    async fn with_namespaces(&self, mut objects: Vec<Value>, release: &Release) -> Vec<Value> {
        let groups = self.groups(&objects).await;
        for object in &mut objects {
            let name = rendered_objects::parse_rendered_name(object);
            let Some(name) = name.filter(|name| name.namespace.is_none()) else {
                continue;
            };
            let Some(Ok(group)) = groups.get(&name.api_version) else {
                continue;
            };
            let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
            if let (Some(metadata), true) = (
                metadata,
                group.get(&name.kind).is_some_and(|kind| kind.namespaced),
            ) {
                metadata.insert("namespace".to_owned(), release.namespace.as_str().into());
            }
        }
        objects
    }

    async fn groups(&self, objects: &[Value]) -> Groups {
        let names: Vec<_> = objects
            .iter()
            .filter_map(rendered_objects::parse_rendered_name)
            .collect();
        self.server.kinds.of(&self.server, names.iter()).await
    }

    /// Objects of the release as they are, and as they would be if they were as the release has
    /// them.
    async fn live_objects(&self, objects: &[Value]) -> Result<Vec<HelmReleaseObject>, Reason> {
        let groups = self.groups(objects).await;
        let mut out = Vec::new();
        for manifest in objects.iter().cloned() {
            let Some(object) = manifest::parse_object_name(&manifest) else {
                continue;
            };
            let preview = KubernetesRead::Preview {
                object: object.clone(),
                manifest: manifest.to_string(),
            };
            let (live, preview) = futures_util::join!(
                self.answered(&object, KubernetesRead::Object(object.clone()), &groups),
                self.answered(&object, preview, &groups)
            );
            out.push(HelmReleaseObject {
                manifest,
                live: live?,
                preview: preview.unwrap_or_default(),
            });
        }
        Ok(out)
    }

    /// The object of an answer; nothing where there is none.
    async fn answered(
        &self,
        object: &ObjectName,
        read: KubernetesRead,
        groups: &Groups,
    ) -> Result<Option<Value>, Reason> {
        let answer = self
            .object(&read, object, groups)
            .await
            .map_err(|trouble| trouble.error(&self.server).to_string())?;
        match answer.status {
            AnswerStatus::Exit(0) => Ok(serde_json::from_str(&answer.out).ok()),
            AnswerStatus::Exit(NOT_ANSWERED) => Err(answer.out.into()),
            AnswerStatus::Exit(_) => Ok(None),
            AnswerStatus::Denied => Err(rights::of_role(&answer.out).into()),
            _ => Err(format!("{object} is too long to be read").into()),
        }
    }
}

fn name_objects(objects: &[Value]) -> BTreeSet<String> {
    let names = objects.iter().filter_map(manifest::parse_object_name);
    names.map(|name| name.to_string()).collect()
}

/// The objects of a release (Helm's JSON of it) that stay when it is uninstalled, and those that
/// go.
fn split_kept_objects(
    told: &Value,
    objects: &[Value],
) -> Result<(Vec<Value>, Vec<Value>), HelmCallError> {
    let kept = rendered_objects::list_kept_objects(find_json_text(told, "/manifest"))
        .map_err(HelmCallError::Local)?;
    let (mut stay, mut go) = (Vec::new(), Vec::new());
    for (object, is_kept) in objects.iter().zip(kept) {
        let list = if is_kept { &mut stay } else { &mut go };
        list.push(object.clone());
    }
    Ok((stay, go))
}

/// A release as a whole. It does not wait for pods, and is not rolled back when it fails: on a
/// first install that would delete what the chart defines, with all objects of these kinds. Helm 4
/// makes objects and definitions as Helm 3 does: by a server-side apply it would write into
/// whatever has the name of a hook or of a definition in `crds/` (helm/helm: pkg/action/hooks.go,
/// install.go), where Helm 3 fails or leaves it.
pub fn build_upgrade_arguments(
    program: &HelmProgram,
    release: &Release,
    chart: &Path,
) -> Vec<String> {
    let mut words: Vec<String> = ["upgrade", "--install", "--reset-values", "--values=-"]
        .map(str::to_owned)
        .to_vec();
    words.extend([
        format!("--namespace={}", release.namespace),
        format!("--history-max={HISTORY}"),
        format!("--timeout={}s", HOOKS.as_secs()),
    ]);
    if release.create_namespace {
        words.push("--create-namespace".to_owned());
    }
    if program.may_apply_on_server() {
        words.push("--server-side=false".to_owned());
    }
    words.extend([release.name.clone(), chart.display().to_string()]);
    words
}

/// A digest as the value of a label, which has 63 characters at most.
pub fn label(digest: &Digest) -> String {
    digest.as_str().chars().take(63).collect()
}

fn parse_helm_json(said: &HelmOutput) -> Result<Value, HelmCallError> {
    if !said.well {
        return Err(HelmCallError::Local(said.complaint.clone().into()));
    }
    bounded_json::parse_bounded_json(said.out.as_bytes()).ok_or_else(|| {
        HelmCallError::Local("helm printed no JSON, or more of it than is read".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::act::KubernetesActionStop;
    use crate::kubernetes::tests::{link, told};
    use railwright_resource::helm_release::request::MEMBERSHIP;
    use railwright_resource::kubernetes_object::request::MOVED;
    use serde_json::json;

    fn record(revision: u64) -> Value {
        let labels = json!({ "owner": "helm", "name": "rails", "version": revision.to_string(), MEMBERSHIP: "train" });
        let name = format!("sh.helm.release.v1.rails.v{revision}");
        json!({ "metadata": { "name": name, "namespace": "n", "uid": "u1", "resourceVersion": "7", "labels": labels } })
    }

    fn list(items: &[Value]) -> Value {
        json!({ "kind": "SecretList", "metadata": {}, "items": items })
    }

    /// A server that answers everything with this.
    fn over(answer: &Value) -> KubernetesLink {
        let answer = answer.to_string();
        link(move |_, _, _| (200, Vec::new(), answer.clone())).0
    }

    /// Helm says "release: not found" of each of them.
    #[tokio::test]
    async fn a_release_is_absent_only_by_a_whole_list_of_secrets() {
        assert_eq!(
            over(&list(&[])).newest_record("rails", "n").await.unwrap(),
            None
        );
        let newest = over(&list(&[record(9), record(10), record(2)]))
            .newest_record("rails", "n")
            .await
            .unwrap();
        assert_eq!(newest.map(|record| record.revision), Some(10));
        let (mut cut, mut nameless, mut of_another) = (list(&[]), record(1), record(1));
        cut["metadata"]["remainingItemCount"] = json!(5);
        nameless["metadata"]["uid"] = Value::Null;
        of_another["metadata"]["labels"]["name"] = json!("pads");
        let others = [
            json!({ "kind": "ConfigMapList", "metadata": {}, "items": [] }),
            cut,
            json!({ "kind": "SecretList", "metadata": {} }),
            json!({ "kind": "Status", "status": "Success" }),
            json!({}),
            list(&[nameless]),
            list(&[of_another]),
        ];
        for other in others {
            assert!(
                matches!(
                    over(&other).newest_record("rails", "n").await,
                    Err(HelmCallError::Local(_))
                ),
                "{other}"
            );
        }
    }

    #[tokio::test]
    async fn a_release_that_was_made_anew_is_left_alone_whatever_its_number() {
        let looked_at = ReleaseRecord::of(&record(1)).unwrap();
        let now = async |list: Value| {
            over(&list)
                .release_now("rails", "n", Some(&looked_at))
                .await
        };
        assert!(matches!(now(list(&[record(1)])).await, Ok(Some(_))));
        assert!(matches!(now(list(&[])).await, Ok(None)));
        for (field, value) in [
            ("/metadata/uid", "u2"),
            ("/metadata/resourceVersion", "8"),
            ("/metadata/labels/version", "2"),
        ] {
            let mut theirs = record(1);
            *theirs.pointer_mut(field).unwrap() = json!(value);
            let Err(KubernetesActionStop::Ended(left)) = now(list(&[theirs])).await else {
                panic!("{field}")
            };
            let (code, _, said) = told(left);
            assert!(code == MOVED && said.contains("left alone"), "{said}");
        }
    }
}
