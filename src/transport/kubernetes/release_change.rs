//! The two actions on a release of Helm: it is installed or made another revision, and it is
//! uninstalled. The record is compared with what was looked at in the last moment before Helm
//! begins.

use super::act::{
    KubernetesActionStop, format_error_line, stop_with_failure, stop_with_stale_precondition,
    stop_with_unknown_outcome,
};
use super::helm::{Chart, HelmCallError, HelmOutput, HelmProgram, QUESTION, WITH_REASONS};
use super::release::{HOOKS, build_upgrade_arguments, label};
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use railwright_base::text::one_line;
use railwright_resource::helm_release::request::{
    CHART, DESCRIPTION, MEMBERSHIP, Release, ReleaseRecord, secret_label,
};
use railwright_resource::kubernetes_object::part_of;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The path of a chart whose content is the one that was looked at.
fn check_chart(
    chart: Chart,
    release: &Release,
    content: &str,
) -> Result<PathBuf, KubernetesActionStop> {
    match chart {
        Chart::Here { path, digest } if label(&digest) == content => Ok(path),
        Chart::Here { .. } => {
            let name = one_line(&release.chart, 200);
            Err(stop_with_stale_precondition(&format!(
                "nothing was changed; the chart {name} is another one by now than was looked at"
            )))
        }
        Chart::Another(reason) | Chart::Unknown(reason) => {
            Err(stop_with_failure(&format!("nothing was changed; {reason}")))
        }
    }
}

impl KubernetesLink {
    pub(super) async fn upgrade_release(
        &self,
        release: &Release,
        looked_at: Option<&ReleaseRecord>,
        content: &str,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let program = self.helm.program().await.map_err(not_done)?;
        let chart = self.helm.chart(&program, release).await.map_err(not_done)?;
        let chart = check_chart(chart, release, content)?;
        let rendered = self
            .make_definitions(&program, release, &chart, looked_at)
            .await?;
        let words = build_own_arguments(&program, release, &chart, content);
        if self
            .release_now(&release.name, &release.namespace, looked_at)
            .await?
            .is_none()
            && looked_at.is_some()
        {
            return Err(stop_with_stale_precondition(&format!(
                "the release {}/{} is gone, and is left alone",
                release.namespace, release.name
            )));
        }
        self.confirm_lock().await?;
        let said = self
            .helm
            .call(
                &program,
                &words,
                release.values.as_bytes(),
                HOOKS + QUESTION,
            )
            .await
            .map_err(not_done)?;
        let told = serde_json::from_str::<Value>(&said.out).unwrap_or_default();
        if let Some(rendered) = rendered.filter(|_| said.well)
            && let Some(reason) = self.find_unplanned_objects(release, &told, &rendered).await
        {
            return Ok(performed_from_exit(1, "", &format_error_line(&reason)));
        }
        let made = told.get("version").and_then(Value::as_u64);
        let looked_at = looked_at.map_or(0, |record| record.revision);
        let between = made
            .and_then(|made| made.checked_sub(1))
            .filter(|before| said.well && *before != looked_at);
        match between {
            Some(theirs) => Ok(performed_from_exit(
                1,
                "",
                &format_error_line(&describe_foreign_revision(release, theirs)),
            )),
            None => Ok(performed_from_helm(said)),
        }
    }

    pub(super) async fn uninstall_release(
        &self,
        name: &str,
        namespace: &str,
        looked_at: &ReleaseRecord,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let program = self.helm.program().await.map_err(not_done)?;
        let mut words: Vec<String> = ["uninstall", name, WITH_REASONS]
            .map(str::to_owned)
            .to_vec();
        words.extend([
            format!("--namespace={namespace}"),
            format!("--timeout={}s", HOOKS.as_secs()),
        ]);
        if self
            .release_now(name, namespace, Some(looked_at))
            .await?
            .is_none()
        {
            return Ok(performed_from_exit(0, "", ""));
        }
        self.confirm_lock().await?;
        self.helm
            .call(&program, &words, b"", HOOKS + QUESTION)
            .await
            .map(performed_from_helm)
            .map_err(not_done)
    }

    /// The newest record in the last moment before Helm begins, which has no precondition of its
    /// own; nothing where the release is gone. Helm looks once more by itself and makes the next
    /// revision under a name that nobody else can take meanwhile, so that only a revision that is
    /// made between these two looks is not seen before (helm/helm: pkg/action/upgrade.go,
    /// `prepareUpgrade` and `performUpgrade`).
    pub(super) async fn release_now(
        &self,
        name: &str,
        namespace: &str,
        looked_at: Option<&ReleaseRecord>,
    ) -> Result<Option<ReleaseRecord>, KubernetesActionStop> {
        let now = self
            .newest_record(name, namespace)
            .await
            .map_err(|why| stop_with_failure(why.reason().as_words()))?;
        match (looked_at, &now) {
            (Some(before), Some(now)) if before.revision != now.revision => {
                Err(stop_with_stale_precondition(&format!(
                    "the release {namespace}/{name} is of revision {} by now, and {} was looked \
                     at; it is left alone",
                    now.revision, before.revision
                )))
            }
            (Some(before), Some(now)) if before != now => {
                Err(stop_with_stale_precondition(&format!(
                    "revision {} of the release {namespace}/{name} is another one than was looked \
                     at, or was changed since; it is left alone",
                    now.revision
                )))
            }
            (None, Some(now)) => Err(stop_with_stale_precondition(&format!(
                "the release {namespace}/{name} was not there when it was looked at; somebody \
                 installed revision {} by now, and it is left alone",
                now.revision
            ))),
            _ => Ok(now),
        }
    }
}

/// The arguments of a revision of ours, with the labels and the description that it is known by.
fn build_own_arguments(
    program: &HelmProgram,
    release: &Release,
    chart: &Path,
    content: &str,
) -> Vec<String> {
    let mut words = build_upgrade_arguments(program, release, chart);
    let secrets: String = release
        .hidden
        .iter()
        .map(|pointer| format!(",{}=true", secret_label(pointer)))
        .collect();
    words.push(format!(
        "--labels={MEMBERSHIP}={},{CHART}={content}{secrets}",
        part_of(&release.cluster)
    ));
    words.push(format!("--description={DESCRIPTION}"));
    words.push("--output=json".to_owned());
    words
}

/// Somebody else's revision came between our last look and Helm's own.
fn describe_foreign_revision(release: &Release, theirs: u64) -> String {
    let Release {
        name, namespace, ..
    } = release;
    format!(
        "somebody else made revision {theirs} of the release {namespace}/{name} in the moment \
         before Helm began, and ours is upon it: look at `helm -n {namespace} history {name}`; \
         `helm -n {namespace} rollback {name} {theirs}` brings it back"
    )
}

fn performed_from_helm(said: HelmOutput) -> ExecutionOutcome {
    if said.well {
        performed_from_exit(0, "", "")
    } else {
        performed_from_exit(1, "", &format_error_line(&said.complaint))
    }
}

/// Why a call has no end; one that takes too long may still be at work.
pub(super) fn not_done(why: HelmCallError) -> KubernetesActionStop {
    match why {
        HelmCallError::TimedOut(_) => stop_with_unknown_outcome(why.reason().as_words()),
        HelmCallError::NoHelm(reason) | HelmCallError::Local(reason) => {
            stop_with_failure(reason.as_words())
        }
    }
}
