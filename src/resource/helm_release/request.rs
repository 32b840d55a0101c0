//! What is asked of Helm about a release, and what came back: values that the transport turns into
//! calls of `helm`.

use super::compare::HelmReleaseChange;
use crate::json_fields::{read_text_at, read_text_field};
use crate::kubernetes_object::request::ObjectName;
use railwright_base::secret::UnknownSecret;
use railwright_base::{Digest, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A release as it is declared.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// The namespace of the release and its objects.
    pub namespace: String,
    /// The chart: a folder or archive relative to the inventory, an `oci://` or `https://`
    /// reference, or a name in `repository`.
    pub chart: String,
    /// The chart repository that the chart is a name in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The chart's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The chart archive's SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The values, as JSON; secrets are marks in it until it is on its way.
    pub values: String,
    /// Where secrets stand in the values, as JSON pointers: nothing there is ever shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Has the namespace made with the first revision.
    #[serde(default)]
    pub create_namespace: bool,
    /// The spec's cluster, whose label our releases have.
    pub cluster: String,
}

impl Release {
    /// The chart is not on this machine.
    pub fn is_fetched(&self) -> bool {
        self.repository.is_some()
            || self.chart.starts_with("oci://")
            || self.chart.starts_with("https://")
    }
}

/// There is no `helm` here that can be used; the answer says why.
pub const NO_HELM: i32 = 1;
/// The cluster or a file did not answer; the answer says why.
pub const NOT_SAID: i32 = 4;

/// The label on the record of a release that is ours.
pub const MEMBERSHIP: &str = crate::kubernetes_object::MEMBERSHIP;
/// The description of every revision that we make.
pub const DESCRIPTION: &str = "by railwright";

/// What is known of a release, as the answer to a read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HelmReleaseState {
    /// What is installed; nothing where there is no such release.
    pub installed: Option<InstalledRelease>,
    /// What the desired release would come to.
    pub preview: HelmReleasePreview,
}

/// Helm's record of a revision, a Secret (helm/helm: pkg/storage/driver/secrets.go): what tells it
/// from every other one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseRecord {
    /// The revision's number, which begins with 1 again where a release is installed anew.
    pub revision: u64,
    /// The server's own name for this very record.
    pub uid: String,
    /// The version of the record, which is another one after each write.
    pub version: String,
    /// The value of the label by which a spec knows what is its own; nothing where it bears none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// The digest of the chart that we installed last; nothing where an earlier railwright did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<String>,
    /// Labels of places where a secret stands or stood in the values, of this revision or of those
    /// before.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
}

/// The label of a place in the values where a secret stands. Helm takes a release's labels along
/// with each revision, whoever makes it (helm/helm: pkg/action/upgrade.go, mergeCustomLabels).
pub fn secret_label(pointer: &str) -> String {
    format!("{SECRET}{}", Digest::of_bytes(pointer.as_bytes()).short())
}

const SECRET: &str = "railwright.io/secret-";
/// The label with the digest of the chart that a revision of ours is made from.
pub const CHART: &str = "railwright.io/chart";

impl ReleaseRecord {
    /// Of the Secret; nothing where it is none of Helm's.
    pub fn of(secret: &Value) -> Option<Self> {
        let uid = read_text_at(secret, "/metadata/uid")?;
        let version = read_text_at(secret, "/metadata/resourceVersion")?;
        if uid.is_empty() || version.is_empty() {
            return None;
        }
        let labels = secret.pointer("/metadata/labels")?;
        let names = labels.as_object()?.keys();
        Some(ReleaseRecord {
            revision: read_text_field(labels, "version")?.parse().ok()?,
            uid: uid.to_owned(),
            version: version.to_owned(),
            part_of: read_text_field(labels, MEMBERSHIP).map(str::to_owned),
            chart: read_text_field(labels, CHART).map(str::to_owned),
            secrets: names
                .filter(|label| label.starts_with(SECRET))
                .cloned()
                .collect(),
        })
    }
}

/// The status of a release of which Helm keeps the history alone: an upgrade installs it anew
/// (helm/helm: cmd/helm/upgrade.go, `isReleaseUninstalled`).
pub const UNINSTALLED: &str = "uninstalled";

/// The newest revision of a release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InstalledRelease {
    /// The chart's name.
    pub chart: String,
    /// The chart's version.
    pub version: String,
    /// Helm's record of it.
    pub record: ReleaseRecord,
    /// `deployed`, `failed`, `pending-upgrade`, ...
    pub status: String,
    /// What whoever made it wrote.
    pub description: String,
    /// When it was made.
    pub updated: String,
    /// True when it has our label.
    pub ours: bool,
    /// Objects that Helm leaves behind when the release is uninstalled (`helm.sh/resource-policy:
    /// keep`).
    pub kept: Vec<String>,
    /// Kinds whose definition is one of its objects, as `ERdmaDevice.network.alibabacloud.com`:
    /// their objects go with it.
    pub defines: Vec<String>,
    /// Objects with pods.
    pub runs: Vec<String>,
    /// Objects that Helm deletes when the release is uninstalled.
    #[serde(default)]
    pub deletes: Vec<ObjectName>,
    /// Objects among them with which data would go, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_losses: Vec<String>,
    /// Hooks that run when the release is uninstalled.
    #[serde(default)]
    pub hooks_run: Vec<String>,
    /// Hooks of which Helm leaves the object on the cluster.
    #[serde(default)]
    pub hooks_stay: Vec<String>,
    /// What others made and that has the name of a hook which an uninstall runs: it is deleted
    /// first, or in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hook_collisions: Vec<HelmReleaseChange>,
    /// What others changed on its objects.
    #[serde(default)]
    pub edits: Vec<HelmReleaseChange>,
    /// Why that is unknown.
    #[serde(default)]
    pub unseen: Option<Reason>,
}

impl InstalledRelease {
    /// True where a revision is due, or was made by somebody else, whatever its objects say. Of a
    /// release that was never ours nobody knows which chart it was made from.
    pub fn is_due(&self, (chart, version): (&str, &str), content: &str) -> bool {
        let is_it = self.description == DESCRIPTION
            && self
                .record
                .chart
                .as_deref()
                .is_none_or(|chart| chart == content);
        self.status != "deployed"
            || self.chart != chart
            || self.version != version
            || (self.ours && !is_it)
    }
}

/// What the desired release would come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelmReleasePreview {
    /// Helm rendered it.
    Is {
        /// The chart's name.
        chart: String,
        /// The chart's version.
        version: String,
        /// The digest of the chart as it was rendered.
        #[serde(default)]
        content: String,
        /// The digest of what it rendered to, without what varies; nothing where a secret is in it.
        #[serde(default)]
        rendering: Option<String>,
        /// What is not as desired: values, rendered objects, and objects that somebody changed on
        /// the cluster.
        changes: Vec<HelmReleaseChange>,
    },
    /// The resource cannot be applied: the chart is another one, or does not render, or the server
    /// does not take its objects.
    Refused(String),
    /// It could not be found out.
    Unknown(Reason),
}

impl Default for HelmReleasePreview {
    fn default() -> Self {
        HelmReleasePreview::Unknown("it was not asked for".into())
    }
}

impl Release {
    /// The key under which the answer is kept.
    pub fn key(&self) -> String {
        format!(
            "helm_release:{}/{}:{}",
            self.namespace,
            self.name,
            Digest::of(self).short()
        )
    }

    /// With the secrets of its values filled in; the name of the first that `find` does not have as
    /// the error.
    pub fn filled(&self, find: impl Fn(&str) -> Option<String>) -> Result<Self, UnknownSecret> {
        let Ok(mut values) = serde_json::from_str::<Value>(&self.values) else {
            return Ok(self.clone());
        };
        fill_secret_references(&mut values, &find)?;
        Ok(Release {
            values: values.to_string(),
            ..self.clone()
        })
    }

    /// Without values, where a secret of theirs is not to be had or the release is only to be
    /// undone: what is installed can still be asked, and no chart is fetched or rendered.
    pub fn without_values(&self) -> Self {
        Release {
            values: String::new(),
            ..self.clone()
        }
    }
}

fn fill_secret_references(
    value: &mut Value,
    find: &impl Fn(&str) -> Option<String>,
) -> Result<(), UnknownSecret> {
    match value {
        Value::String(text) => *text = railwright_base::secret::fill_secrets(text, find)?,
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| fill_secret_references(item, find))?,
        Value::Object(map) => map
            .values_mut()
            .try_for_each(|item| fill_secret_references(item, find))?,
        _ => {}
    }
    Ok(())
}
