//! The body of a wish for a release, as the module's manifest has it.

use crate::fields::Fields;
use crate::kubernetes_object::manifest;
use crate::{BodyError, Disruption};
use railwright_base::json_pointer::escape_step;
use serde_json::Value;

const FIELDS: [&str; 12] = [
    "name",
    "namespace",
    "chart",
    "repository",
    "version",
    "digest",
    "values",
    "create_namespace",
    "keeps",
    "disruptions",
    "adopt",
    "cluster",
];
/// The most characters of a release's name (helm/helm: pkg/chartutil/validate_name.go) and of its
/// namespace's.
const NAME_LIMITS: [(&str, usize); 2] = [("name", 53), ("namespace", 63)];
/// What a value may be said to disturb.
const DISRUPTIONS: [Disruption; 4] = [
    Disruption::None,
    Disruption::Restart,
    Disruption::Drain,
    Disruption::Reboot,
];

/// All that is wrong with the body of a release.
pub(super) fn check_helm_release_body(body: &Value) -> Vec<BodyError> {
    let mut fields = Fields::of(body, &FIELDS);
    check_names(&mut fields);
    check_chart_source(&mut fields);
    check_chart_pins(&mut fields);
    check_values(&mut fields);
    check_disruptions(&mut fields);
    match fields.get("keeps") {
        None => {}
        Some(Value::Array(keeps)) if keeps.iter().all(Value::is_string) => {}
        Some(_) => fields.error("/keeps", "`keeps` is a list of texts", None),
    }
    fields.flag("create_namespace");
    fields.flag("adopt");
    fields.finish()
}

fn check_names(fields: &mut Fields<'_>) {
    for (field, most) in NAME_LIMITS {
        let Some(name) = fields.text(field, true) else {
            continue;
        };
        if name.len() <= most && manifest::is_label(name) {
            continue;
        }
        let help = format!(
            "small letters, digits and `-`, a letter or digit at both ends, at most {most}"
        );
        fields.error(
            &format!("/{field}"),
            format!("`{name}` cannot be a {field} of Helm"),
            Some(help),
        );
    }
}

fn check_chart_source(fields: &mut Fields<'_>) {
    let chart = fields.text("chart", true).unwrap_or_default();
    let repository = fields.text("repository", false);
    if repository.is_some_and(|repository| !repository.starts_with("https://")) {
        fields.error(
            "/repository",
            "a chart repository is an `https://` address",
            None,
        );
    }
    if chart.starts_with('-')
        || chart.starts_with("http://")
        || (repository.is_some() && chart.contains('/'))
    {
        let help = "a folder or archive relative to the inventory, an `oci://` or `https://` \
                    reference, or a name in `repository`";
        fields.error(
            "/chart",
            format!("`{chart}` names no chart"),
            Some(help.to_owned()),
        );
    }
}

/// Checks what holds the release to one chart: its version, and the digest of its archive.
fn check_chart_pins(fields: &mut Fields<'_>) {
    let version = fields.text("version", false);
    if version.is_some_and(|version| version.starts_with('-')) {
        fields.error("/version", "a version begins with a digit or `v`", None);
    }
    let digest = fields.text("digest", false);
    if digest.is_some_and(|digest| !is_sha256(digest)) {
        fields.error(
            "/digest",
            "`digest` is the SHA-256 of the chart archive: 64 digits of 0-9 and a-f",
            Some("sha256sum FILE".to_owned()),
        );
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn check_values(fields: &mut Fields<'_>) {
    for field in ["values", "disruptions"] {
        if fields.get(field).is_some_and(|value| !value.is_object()) {
            fields.error(
                &format!("/{field}"),
                format!("`{field}` must be a map"),
                None,
            );
        }
    }
    let values = fields.get("values").unwrap_or(&Value::Null);
    for (pointer, number) in collect_inexact_numbers(values, "/values") {
        let help = format!("in quotes it is passed on as it is: \"{number}\"");
        fields.error(
            &pointer,
            format!("Helm reads numbers as floating point, and {number} is none of these"),
            Some(help),
        );
    }
}

/// Whole numbers that a floating point number of 64 bits does not hold, as which Helm reads them
/// (sigs.k8s.io/yaml, `Unmarshal` by way of JSON): another number would come to the chart, and
/// differ from the wish for ever.
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

fn check_disruptions(fields: &mut Fields<'_>) {
    let Some(all) = fields.get("disruptions").and_then(Value::as_object) else {
        return;
    };
    for (path, word) in all {
        if parse_disruption_word(word).is_none() {
            let known = DISRUPTIONS.map(Disruption::word).join(", ");
            fields.error(
                "/disruptions",
                format!("`{path}` disturbs in no known way"),
                Some(format!("one of: {known}")),
            );
        }
    }
}

/// What a value is said to disturb; nothing for a word that is none of these.
pub(super) fn parse_disruption_word(word: &Value) -> Option<Disruption> {
    DISRUPTIONS
        .into_iter()
        .find(|disruption| word.as_str() == Some(disruption.word()))
}
