//! What a declared release of Helm would change: the rendering of a dry run, compared with what is
//! installed.

use super::super::lists::find_json_text;
use super::{DeployedRelease, KubernetesLink, build_upgrade_arguments, label, parse_helm_json};
use crate::kubernetes::helm::{Chart, HelmCallError, HelmOutput, HelmProgram, QUESTION};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::Provenance;
use railwright_resource::helm_release::compare::{self, HelmReleaseChange};
use railwright_resource::helm_release::rendered_objects::{
    find_ambiguous_object, index_objects_by_name, is_hook, parse_template_objects,
};
use railwright_resource::helm_release::request::{HelmReleasePreview, Release, UNINSTALLED};
use railwright_resource::helm_release::{edits, varying};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Words of Helm where the cluster is away or does not let us look: nothing is known of the release
/// then.
const AWAY: [&str; 5] = [
    "is forbidden",
    "cluster unreachable",
    "Unauthorized",
    "connection refused",
    "timeout",
];

/// A declared release, and what it is rendered with.
#[derive(Clone, Copy)]
struct ChartRendering<'a> {
    program: &'a HelmProgram,
    release: &'a Release,
    chart: &'a Path,
    /// The label of the chart's digest.
    content: &'a str,
}

/// What a chart says that it is.
struct ChartIdentity {
    name: String,
    version: String,
}

impl ChartIdentity {
    fn from_release(told: &Value) -> Self {
        ChartIdentity {
            name: find_json_text(told, "/chart/metadata/name").to_owned(),
            version: find_json_text(told, "/chart/metadata/version").to_owned(),
        }
    }
}

/// A rendering, compared with what is installed.
struct RenderedRelease {
    /// Objects and hooks.
    desired: Vec<Value>,
    /// What differs in each rendering.
    changes: Vec<HelmReleaseChange>,
    /// What differs between two renderings of one chart, and therefore tells nothing.
    varying: Vec<HelmReleaseChange>,
    /// The digest of what does not differ between them; nothing where a secret is in it.
    steady: Option<String>,
}

impl KubernetesLink {
    pub(super) async fn preview(
        &self,
        program: &HelmProgram,
        release: &Release,
        deployed: Option<&DeployedRelease>,
    ) -> Result<HelmReleasePreview, HelmCallError> {
        let Ok(values) = serde_json::from_str::<Value>(&release.values) else {
            return Ok(HelmReleasePreview::Unknown(
                "a secret of its values is not to be had here".into(),
            ));
        };
        let (chart, content) = match self.helm.chart(program, release).await? {
            Chart::Here { path, digest } => (path, label(&digest)),
            Chart::Another(reason) => return Ok(HelmReleasePreview::Refused(reason)),
            Chart::Unknown(reason) => return Ok(HelmReleasePreview::Unknown(reason.into())),
        };
        let rendering = ChartRendering {
            program,
            release,
            chart: &chart,
            content: &content,
        };
        let words = build_dry_run_arguments(program, release, &chart);
        let said = self
            .helm
            .call(program, &words, release.values.as_bytes(), QUESTION)
            .await?;
        if !said.well && deployed.is_none() && is_for_want_of_a_rule(&said.complaint) {
            return self.preview_without_cluster(&rendering, &said).await;
        }
        if !said.well {
            return Ok(preview_from_complaint(said.complaint));
        }
        let told = parse_helm_json(&said)?;
        let identity = ChartIdentity::from_release(&told);
        if let Some(reason) = find_version_conflict(release, &identity.version) {
            return Ok(HelmReleasePreview::Refused(reason));
        }
        let desired = match self.list_rendered(&told, release).await? {
            Ok(desired) => desired,
            Err(reason) => return Ok(HelmReleasePreview::Refused(reason.to_string())),
        };
        let rendered = self
            .compare_renderings(&rendering, &words, desired, deployed)
            .await?;
        let definitions = if is_upgrade(deployed) {
            Vec::new()
        } else {
            let new = self.new_definitions(program, release, &chart, Some(&said));
            compare::diff_rendered_objects(&new.await?, &[])
        };
        let chart = (identity, content);
        Ok(match deployed {
            None => preview_first_install(rendered, definitions, release, &values, chart),
            Some(old) => compare_with_deployed(rendered, definitions, old, &values, chart),
        })
    }

    /// The objects and the hooks of a rendering; why they are refused as the inner error.
    async fn list_rendered(
        &self,
        told: &Value,
        release: &Release,
    ) -> Result<Result<Vec<Value>, Reason>, HelmCallError> {
        let rendered = match self.rendered(told, release).await {
            Ok((objects, hooks)) => [objects, hooks].concat(),
            Err(HelmCallError::Local(reason)) => return Ok(Err(reason)),
            Err(other) => return Err(other),
        };
        Ok(match find_ambiguous_object(&rendered) {
            Some(reason) => Err(reason.into()),
            None => Ok(rendered),
        })
    }

    /// Compares a rendering with what is installed, and with other renderings of the same chart.
    async fn compare_renderings(
        &self,
        rendering: &ChartRendering<'_>,
        words: &[String],
        desired: Vec<Value>,
        deployed: Option<&DeployedRelease>,
    ) -> Result<RenderedRelease, HelmCallError> {
        let before: &[Value] = deployed.map_or(&[], |deployed| &deployed.rendered);
        let hides = !rendering.release.hidden.is_empty()
            || deployed.is_some_and(|deployed| !deployed.hidden.is_empty());
        let mut rendered = RenderedRelease {
            desired,
            changes: Vec::new(),
            varying: Vec::new(),
            steady: None,
        };
        if rendered.desired == before {
            self.add_hook_collisions(&mut rendered, before, deployed)
                .await;
            return Ok(rendered);
        }
        let desired = &rendered.desired;
        let again = self.rendered_as_first(rendering, words).await?;
        rendered.steady = (!hides).then(|| varying::digest_steady_fields(desired, &again));
        let (mut changes, mut varying) = varying::told_apart(desired, &again, before);
        // What goes by the revision is the same in one more rendering of it; a first install was
        // rendered as the first revision already.
        let next = match deployed {
            Some(_) if *desired != again => {
                self.rendered_by(rendering.program, rendering.release, words)
                    .await?
            }
            _ => again,
        };
        varying::show_words_of_this_revision(&mut varying, desired, &next, before);
        if let Some(deployed) = deployed {
            let kept = &deployed.kept_by_upgrade;
            changes.retain(|change| !kept.contains(&change.name));
            varying.retain(|change| !kept.contains(&change.name));
        }
        self.add_present_objects(&mut changes, desired, before)
            .await;
        (rendered.changes, rendered.varying) = (changes, varying);
        self.add_hook_collisions(&mut rendered, &next, deployed)
            .await;
        Ok(rendered)
    }

    /// Notes what has the names of the hooks that this revision runs, new ones or not. `next`: the
    /// revision rendered once more.
    async fn add_hook_collisions(
        &self,
        rendered: &mut RenderedRelease,
        next: &[Value],
        deployed: Option<&DeployedRelease>,
    ) {
        let events = match is_upgrade(deployed) {
            true => compare::UPGRADE_EVENTS,
            false => compare::INSTALL_EVENTS,
        };
        let nothing = BTreeSet::new();
        let left = deployed.map_or(&nothing, |deployed| &deployed.left_by_hooks);
        let hooks = compare::list_run_hooks(&rendered.desired, &events);
        let (unknown, known) = varying::split_unknown_names(&hooks, next);
        let mut collisions = self.find_hook_collisions(&known, left).await;
        collisions.extend(
            unknown
                .iter()
                .filter_map(varying::describe_unknown_deletion),
        );
        let RenderedRelease {
            changes, varying, ..
        } = rendered;
        compare::add_hook_collisions(changes, varying, collisions);
    }

    /// Notes which of the objects that a revision brings are on the cluster already.
    async fn add_present_objects(
        &self,
        changes: &mut Vec<HelmReleaseChange>,
        desired: &[Value],
        before: &[Value],
    ) {
        let before = index_objects_by_name(before);
        let mut new = index_objects_by_name(desired);
        new.retain(|name, object| !before.contains_key(name) && !is_hook(object));
        for (name, object) in new {
            match self.live_objects(std::slice::from_ref(object)).await {
                Ok(live) => compare::add_present_objects(changes, &live),
                Err(reason) => {
                    let change = changes.iter_mut().find(|change| change.name == name);
                    if let Some(change) = change {
                        change.by = Some(Provenance::presence_unknown(&reason));
                    }
                }
            }
        }
    }

    /// Another rendering, as a first revision: what goes by the number of the revision, or by
    /// whether it is the first, is another one then too. Where the chart does not render so, it is
    /// rendered as before.
    async fn rendered_as_first(
        &self,
        rendering: &ChartRendering<'_>,
        words: &[String],
    ) -> Result<Vec<Value>, HelmCallError> {
        let path = rendering.chart.display().to_string();
        let mut first = [
            "install",
            &rendering.release.name,
            &path,
            "--values=-",
            "--dry-run=server",
            "--output=json",
        ]
        .map(str::to_owned)
        .to_vec();
        first.push(format!("--namespace={}", rendering.release.namespace));
        let ChartRendering {
            program, release, ..
        } = *rendering;
        match self.rendered_by(program, release, &first).await {
            Err(HelmCallError::Local(_)) => self.rendered_by(program, release, words).await,
            rendered => rendered,
        }
    }

    /// The objects and hooks that Helm renders when it is called so.
    pub(super) async fn rendered_by(
        &self,
        program: &HelmProgram,
        release: &Release,
        words: &[String],
    ) -> Result<Vec<Value>, HelmCallError> {
        let values = release.values.as_bytes();
        let said = self.helm.call(program, words, values, QUESTION).await?;
        let (objects, hooks) = self.rendered(&parse_helm_json(&said)?, release).await?;
        Ok([objects, hooks].concat())
    }

    /// What a first install would come to where its identity may not look whether the objects of
    /// the chart are there: the chart is rendered without the cluster, so that all rules that are
    /// missing can be named, and not only the first that Helm stumbles over. `dry_run`: the one
    /// that failed for want of a rule.
    async fn preview_without_cluster(
        &self,
        rendering: &ChartRendering<'_>,
        dry_run: &HelmOutput,
    ) -> Result<HelmReleasePreview, HelmCallError> {
        let ChartRendering {
            program, release, ..
        } = *rendering;
        let path = rendering.chart.display().to_string();
        let words = self.build_template_arguments(release, &path).await;
        let values = release.values.as_bytes();
        let said = self.helm.call(program, &words, values, QUESTION).await?;
        let again = self.helm.call(program, &words, values, QUESTION).await?;
        let about = self.ask(program, &["show", "chart", &path]).await?;
        let about: Option<Value> = serde_yaml::from_str(&about.out)
            .ok()
            .filter(|_| said.well && again.well && about.well);
        let Some(about) = about else {
            return Ok(HelmReleasePreview::Unknown(
                dry_run.complaint.clone().into(),
            ));
        };
        let mut desired = self.printed_objects(&said, release).await?;
        let mut again = self.printed_objects(&again, release).await?;
        let definitions = self
            .new_definitions(program, release, rendering.chart, Some(dry_run))
            .await?;
        desired.extend(definitions.iter().cloned());
        again.extend(definitions);
        if let Some(reason) = find_ambiguous_object(&desired) {
            return Ok(HelmReleasePreview::Refused(reason));
        }
        let steady = release
            .hidden
            .is_empty()
            .then(|| varying::digest_steady_fields(&desired, &again));
        let (mut changes, varying) = varying::told_apart(&desired, &again, &[]);
        changes.extend(varying);
        let by = Provenance::not_previewed(format!(
            "its identity may not look: {}",
            one_line(&dry_run.complaint, 200)
        ));
        for change in &mut changes {
            change.by = Some(by.clone());
        }
        Ok(HelmReleasePreview::Is {
            chart: find_json_text(&about, "/name").to_owned(),
            version: find_json_text(&about, "/version").to_owned(),
            content: rendering.content.to_owned(),
            rendering: steady,
            changes,
        })
    }

    /// The objects that `helm template` prints.
    async fn printed_objects(
        &self,
        said: &HelmOutput,
        release: &Release,
    ) -> Result<Vec<Value>, HelmCallError> {
        let objects = parse_template_objects(&said.out).map_err(HelmCallError::Local)?;
        Ok(self.with_namespaces(objects, release).await)
    }

    pub(super) async fn build_template_arguments(
        &self,
        release: &Release,
        chart: &str,
    ) -> Vec<String> {
        let mut words = ["template", &release.name, chart, "--values=-"]
            .map(str::to_owned)
            .to_vec();
        words.push(format!("--namespace={}", release.namespace));
        let version = self.server.version().await;
        words.extend(version.map(|version| format!("--kube-version={version}")));
        words
    }
}

/// False where Helm installs: nothing is installed, or the history alone is there.
fn is_upgrade(deployed: Option<&DeployedRelease>) -> bool {
    deployed.is_some_and(|deployed| deployed.installed.status != UNINSTALLED)
}

/// What a release that is not there comes to.
fn preview_first_install(
    rendered: RenderedRelease,
    definitions: Vec<HelmReleaseChange>,
    release: &Release,
    values: &Value,
    (identity, content): (ChartIdentity, String),
) -> HelmReleasePreview {
    let mut changes = [rendered.changes, rendered.varying, definitions].concat();
    compare::conceal_secret_changes(&mut changes, values, &release.hidden);
    HelmReleasePreview::Is {
        chart: identity.name,
        version: identity.version,
        content,
        rendering: rendered.steady,
        changes,
    }
}

/// The changes to a release that is installed, its values and what somebody edited among them.
fn compare_with_deployed(
    rendered: RenderedRelease,
    definitions: Vec<HelmReleaseChange>,
    deployed: &DeployedRelease,
    values: &Value,
    (identity, content): (ChartIdentity, String),
) -> HelmReleasePreview {
    let DeployedRelease {
        installed,
        values: before,
        hidden,
        ..
    } = deployed;
    if let Some(reason) = &installed.unseen {
        return HelmReleasePreview::Unknown(reason.clone());
    }
    let RenderedRelease {
        desired,
        mut changes,
        varying,
        steady,
    } = rendered;
    changes.extend(definitions);
    changes.extend(compare::diff_release_values(values, before, hidden));
    let ChartIdentity { name, version } = identity;
    let is_due = installed.is_due((&name, &version), &content);
    let mut changes = edits::settled(changes, varying, &installed.edits, &desired, is_due);
    compare::conceal_secret_changes(&mut changes, before, hidden);
    HelmReleasePreview::Is {
        chart: name,
        version,
        content,
        rendering: steady,
        changes,
    }
}

pub(super) fn build_dry_run_arguments(
    program: &HelmProgram,
    release: &Release,
    chart: &Path,
) -> Vec<String> {
    let mut words = build_upgrade_arguments(program, release, chart);
    words.extend(["--dry-run=server", "--output=json"].map(str::to_owned));
    words
}

fn preview_from_complaint(complaint: String) -> HelmReleasePreview {
    if AWAY.iter().any(|word| complaint.contains(word)) {
        HelmReleasePreview::Unknown(complaint.into())
    } else {
        HelmReleasePreview::Refused(format!("Helm refuses it: {complaint}"))
    }
}

/// Why a chart of this version is not the declared one; nothing where it is, or where none is
/// declared.
fn find_version_conflict(release: &Release, version: &str) -> Option<String> {
    let desired = release.version.as_ref()?;
    if desired.trim_start_matches('v') == version.trim_start_matches('v') {
        return None;
    }
    Some(format!(
        "the chart {} is of version {}, and {desired} is desired",
        one_line(&release.chart, 200),
        one_line(version, 40)
    ))
}

/// The words of the API server about a right (kubernetes/kubernetes:
/// staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go,
/// `forbiddenMessage`).
fn is_for_want_of_a_rule(complaint: &str) -> bool {
    complaint.contains("is forbidden: User ")
        && complaint.contains(" cannot ")
        && complaint.contains(" resource ")
}
