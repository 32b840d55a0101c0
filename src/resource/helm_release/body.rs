//! The body of a desired release, as the module's manifest has it.

use super::request::Release;
use crate::Disruption;
use crate::body::{Body, BodyErrors};
use crate::kubernetes_object::manifest;
use railwright_base::json_pointer::escape_step;
use railwright_base::secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most characters of a release's name (helm/helm: pkg/chartutil/validate_name.go) and of its
/// namespace's.
const NAME_LIMITS: [usize; 2] = [53, 63];
/// What a value may be said to disturb.
const DISRUPTIONS: [Disruption; 4] = [
    Disruption::None,
    Disruption::Restart,
    Disruption::Drain,
    Disruption::Reboot,
];

/// A release: its chart, and what it is installed with.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HelmReleaseBody {
    pub name: String,
    pub namespace: String,
    /// A folder or archive relative to the inventory, an `oci://` or `https://` reference, or a
    /// name in `repository`.
    pub chart: String,
    repository: Option<String>,
    version: Option<String>,
    digest: Option<String>,
    #[serde(default)]
    pub values: Map<String, Value>,
    #[serde(default)]
    create_namespace: bool,
    /// What the chart leaves elsewhere, in words.
    #[serde(default)]
    pub keeps: Vec<String>,
    /// What a change of a value disturbs, by its path: { agent.driver: drain }.
    #[serde(default)]
    pub disruptions: BTreeMap<String, Disruption>,
    #[serde(default)]
    pub adopt: bool,
    cluster: Option<String>,
}

impl Body for HelmReleaseBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        let names = [("name", &self.name), ("namespace", &self.namespace)];
        for ((field, name), most) in names.into_iter().zip(NAME_LIMITS) {
            let message = format!("`{name}` cannot be a {field} of Helm");
            let help = format!(
                "small letters, digits and `-`, a letter or digit at both ends, at most {most}"
            );
            let is_name = name.len() <= most && manifest::is_label(name);
            errors.require(is_name, &format!("/{field}"), &message, &help);
        }
        self.check_chart_source(errors);
        self.check_chart_pins(errors);
        let values = Value::Object(self.values.clone());
        for (pointer, number) in collect_inexact_numbers(&values, "/values") {
            let message =
                format!("Helm reads numbers as floating point, and {number} is none of these");
            let help = format!("in quotes it is passed on as it is: \"{number}\"");
            errors.add(&pointer, message, &help);
        }
        let disruptions = self.disruptions.iter();
        for (path, _) in disruptions.filter(|(_, word)| !DISRUPTIONS.contains(word)) {
            let known = DISRUPTIONS.map(Disruption::word).join(", ");
            let message = format!("`{path}` disturbs in no known way");
            errors.add("/disruptions", message, &format!("one of: {known}"));
        }
    }
}

impl HelmReleaseBody {
    /// The release that the body is about.
    pub fn to_release(&self) -> Release {
        let values = Value::Object(self.values.clone());
        let marked = secret::find_marked_texts(&values).into_iter();
        Release {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            chart: self.chart.clone(),
            repository: self.repository.clone(),
            version: self.version.clone(),
            digest: self.digest.clone(),
            hidden: marked.map(|(pointer, _)| pointer).collect(),
            values: values.to_string(),
            create_namespace: self.create_namespace,
            cluster: self.cluster.clone().unwrap_or_default(),
        }
    }

    fn check_chart_source(&self, errors: &mut BodyErrors) {
        let (chart, repository) = (&self.chart, self.repository.as_ref());
        errors.check_not_empty("chart", chart);
        errors.require(
            repository.is_none_or(|repository| repository.starts_with("https://")),
            "/repository",
            "a chart repository is an `https://` address",
            "",
        );
        if chart.starts_with('-')
            || chart.starts_with("http://")
            || (repository.is_some() && chart.contains('/'))
        {
            let help = "a folder or archive relative to the inventory, an `oci://` or `https://` \
                        reference, or a name in `repository`";
            errors.add("/chart", format!("`{chart}` names no chart"), help);
        }
    }

    /// Checks what holds the release to one chart: its version, and the digest of its archive.
    fn check_chart_pins(&self, errors: &mut BodyErrors) {
        let version = self.version.as_deref().unwrap_or("v");
        errors.check_not_empty("version", version);
        errors.require(
            !version.starts_with('-'),
            "/version",
            "a version begins with a digit or `v`",
            "",
        );
        errors.require(
            self.digest.as_deref().is_none_or(is_sha256),
            "/digest",
            "`digest` is the SHA-256 of the chart archive: 64 digits of 0-9 and a-f",
            "sha256sum FILE",
        );
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whole numbers that a floating point number of 64 bits does not hold, as which Helm reads them
/// (sigs.k8s.io/yaml, `Unmarshal` by way of JSON): another number would come to the chart, and
/// differ from the declared one for ever.
fn collect_inexact_numbers(value: &Value, at: &str) -> Vec<(String, String)> {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_u64()
                .map(i128::from)
                .or_else(|| number.as_i64().map(i128::from));
            let is_held = whole.is_none_or(|whole| whole as f64 as i128 == whole);
            if is_held {
                Vec::new()
            } else {
                vec![(at.to_owned(), number.to_string())]
            }
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(n, item)| collect_inexact_numbers(item, &format!("{at}/{n}")))
            .collect(),
        Value::Object(map) => {
            let mut numbers = Vec::new();
            for (name, item) in map {
                let step = escape_step(name);
                numbers.extend(collect_inexact_numbers(item, &format!("{at}/{step}")));
            }
            numbers
        }
        _ => Vec::new(),
    }
}
