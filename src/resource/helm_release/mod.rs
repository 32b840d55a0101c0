//! `helm_release`: a release of a Helm chart, owned through Helm: its objects are Helm's, and ours
//! is the release.
//!
//! A plan compares three things: the values that the wish gives with those of the newest revision,
//! what the chart renders to with what that revision was installed with, and what that revision was
//! installed with with the objects on the cluster. Hooks are compared like objects, though Helm
//! counts them as none of the release.
//!
//! A release that was never ours is left alone until `adopt: true` takes it over; then it is never
//! uninstalled.

pub mod compare;
pub mod edits;
pub mod request;
pub mod rights;
mod undo;
pub mod varying;

use self::compare::HelmReleaseChange;
use self::request::{
    DESCRIPTION, HelmReleasePreview, HelmReleaseState, InstalledRelease, NO_HELM, Release,
};
use super::fields::Fields;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Disruption, Plane, Read,
    ReadResults, Reading, ResourceKind,
};
use crate::kubernetes_object::{manifest, paths};
use railwright_base::text::one_line;
use railwright_base::{TargetKind, secret};
use serde_json::{Value, json};

/// The kind.
pub struct HelmRelease;

/// The attribute that says whether the release is there.
const RELEASE: &str = "release";
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
/// What a value may be said to disturb.
const DISRUPTIONS: [Disruption; 4] = [
    Disruption::None,
    Disruption::Restart,
    Disruption::Drain,
    Disruption::Reboot,
];

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
        body.get("name").and_then(Value::as_str).map(str::to_owned)
    }

    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        let text = |field: &str| body.get(field).and_then(Value::as_str).map(str::to_owned);
        Some(vec![
            self.name().to_owned(),
            text("namespace")?,
            text("name")?,
        ])
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        check_helm_release_body(body)
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        vec![build_release_read(wish)]
    }

    /// A chart may define kinds beside its objects, and make namespaces.
    fn may_bring(&self, _wish: &DesiredResource, _needed: &str) -> bool {
        true
    }

    fn knows_its_own(&self) -> bool {
        true
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        match decode_release_state(wish, answers) {
            Err(reason) => insert_presence_attribute(
                &mut assessment,
                Reading::is("present"),
                Reading::Unknown(reason),
            ),
            Ok(found) => diff_helm_release(wish, found, &mut assessment),
        }
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        undo::plan_helm_release_undo(last_applied, before, answers)
    }

    fn may_hold_secret(&self, pointer: &str) -> bool {
        pointer.starts_with("/values/")
    }
}

fn check_helm_release_body(body: &Value) -> Vec<BodyError> {
    let mut fields = Fields::of(body, &FIELDS);
    for (field, most) in [("name", 53), ("namespace", 63)] {
        // helm/helm: pkg/chartutil/validate_name.go holds the name of a release to 53.
        if let Some(name) = fields
            .text(field, true)
            .filter(|name| name.len() > most || !manifest::is_label(name))
        {
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
    if fields
        .text("version", false)
        .is_some_and(|version| version.starts_with('-'))
    {
        fields.error("/version", "a version begins with a digit or `v`", None);
    }
    if fields.text("digest", false).is_some_and(|digest| {
        digest.len() != 64
            || !digest
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }) {
        fields.error(
            "/digest",
            "`digest` is the SHA-256 of the chart archive: 64 digits of 0-9 and a-f",
            Some("sha256sum FILE".to_owned()),
        );
    }
    for field in ["values", "disruptions"] {
        if fields.get(field).is_some_and(|value| !value.is_object()) {
            fields.error(
                &format!("/{field}"),
                format!("`{field}` must be a map"),
                None,
            );
        }
    }
    for (pointer, number) in beyond_floats(body.get("values").unwrap_or(&Value::Null), "/values") {
        let help = format!("in quotes it is passed on as it is: \"{number}\"");
        fields.error(
            &pointer,
            format!("Helm reads numbers as floating point, and {number} is none of these"),
            Some(help),
        );
    }
    for (path, word) in body
        .get("disruptions")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if parse_disruption_word(word).is_none() {
            let known = DISRUPTIONS.map(Disruption::word).join(", ");
            fields.error(
                "/disruptions",
                format!("`{path}` disturbs in no known way"),
                Some(format!("one of: {known}")),
            );
        }
    }
    if fields.get("keeps").is_some_and(|keeps| {
        !keeps
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string))
    }) {
        fields.error("/keeps", "`keeps` is a list of texts", None);
    }
    fields.flag("create_namespace");
    fields.flag("adopt");
    fields.finish()
}

/// Whole numbers that a floating point number of 64 bits does not hold, as which Helm reads them
/// (sigs.k8s.io/yaml, `Unmarshal` by way of JSON): another number would come to the chart, and
/// differ from the wish for ever.
fn beyond_floats(value: &Value, at: &str) -> Vec<(String, String)> {
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
            .flat_map(|(n, item)| beyond_floats(item, &format!("{at}/{n}")))
            .collect(),
        Value::Object(map) => {
            let step = |name: &String| name.replace('~', "~0").replace('/', "~1");
            map.iter()
                .flat_map(|(name, item)| beyond_floats(item, &format!("{at}/{}", step(name))))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn parse_disruption_word(word: &Value) -> Option<Disruption> {
    DISRUPTIONS
        .into_iter()
        .find(|disruption| word.as_str() == Some(disruption.word()))
}

/// The release that a wish is about.
pub fn parse_helm_release(wish: &DesiredResource) -> Release {
    let text = |field: &str| wish.text(field).map(str::to_owned);
    let values = wish
        .body
        .get("values")
        .cloned()
        .unwrap_or_else(|| json!({}));
    Release {
        name: text("name").unwrap_or_default(),
        namespace: text("namespace").unwrap_or_default(),
        chart: text("chart").unwrap_or_default(),
        repository: text("repository"),
        version: text("version"),
        digest: text("digest"),
        hidden: secret::find_marked_texts(&values)
            .into_iter()
            .map(|(pointer, _)| pointer)
            .collect(),
        values: values.to_string(),
        create_namespace: wish.body.get("create_namespace").and_then(Value::as_bool) == Some(true),
        cluster: text("cluster").unwrap_or_default(),
    }
}

fn build_release_read(wish: &DesiredResource) -> Read {
    Read::HelmRelease(Box::new(parse_helm_release(wish)))
}

fn decode_release_state(
    wish: &DesiredResource,
    answers: &ReadResults,
) -> Result<HelmReleaseState, String> {
    match answers.output(&build_release_read(wish))? {
        (0, out) => serde_json::from_str(out)
            .map_err(|_| "the answer about the release cannot be read".to_owned()),
        (NO_HELM, out) => Err(one_line(out, 300)),
        (_, out) => Err(format!("Helm did not say: {}", one_line(out, 300))),
    }
}

fn insert_presence_attribute(assessment: &mut Assessment, wanted: Reading, found: Reading) {
    insert_attribute(assessment, RELEASE, wanted, found);
}

fn insert_attribute(assessment: &mut Assessment, name: &str, wanted: Reading, found: Reading) {
    assessment.attributes.insert(
        name.to_owned(),
        Attribute::in_plane(Plane::Persisted, wanted, found),
    );
}

fn diff_helm_release(wish: &DesiredResource, found: HelmReleaseState, assessment: &mut Assessment) {
    let adopts = wish.body.get("adopt").and_then(Value::as_bool) == Some(true);
    let installed = found.installed.as_ref();
    let there = installed.map_or(Reading::Absent, |_| Reading::is("present"));
    insert_presence_attribute(assessment, Reading::is("present"), there);
    assessment.before =
        json!({ "existed": adopts || installed.is_some_and(|installed| !installed.ours) });
    if let Some(refusal) =
        installed.and_then(|installed| find_unfinished_operation(wish, installed))
    {
        insert_attribute(
            assessment,
            "status",
            Reading::is("deployed"),
            Reading::is(installed.map_or("", |installed| &installed.status)),
        );
        assessment.refusal = Some(refusal);
        return;
    }
    let content = match found.preview {
        HelmReleasePreview::Unknown(reason) => {
            // A step of which nobody knows what it would do is none, whether the release is there
            // or not.
            assessment.attributes.clear();
            return insert_attribute(
                assessment,
                "chart",
                Reading::is("known"),
                Reading::Unknown(reason),
            );
        }
        HelmReleasePreview::Refused(reason) => {
            // What is installed is not wrong because a chart cannot be used here: whether it
            // differs is not known.
            let seen = installed.map_or(Reading::Absent, |_| {
                Reading::Unknown(one_line(&reason, 200))
            });
            insert_attribute(
                assessment,
                "chart",
                Reading::is(wish.text("chart").unwrap_or_default()),
                seen,
            );
            assessment.refusal = Some(reason);
            return;
        }
        HelmReleasePreview::Is {
            chart,
            version,
            content,
            changes,
        } => {
            diff_rendered_release(wish, installed, (&chart, &version), &changes, assessment);
            // No attribute of the release: a plan that was made with another chart is not taken for
            // one of this.
            insert_attribute(
                assessment,
                &format!("content {content}"),
                Reading::Absent,
                Reading::Absent,
            );
            content
        }
    };
    if assessment.is_met() {
        return;
    }
    if installed.is_some_and(|installed| !installed.ours) && !adopts && assessment.refusal.is_none()
    {
        assessment.refusal = Some(
            "somebody else installed this release; `adopt: true` beside its name takes it over"
                .to_owned(),
        );
    }
    if assessment.refusal.is_none() {
        let looked_at = installed.map(|installed| installed.record.clone());
        assessment.actions = vec![Action::UpgradeRelease {
            release: Box::new(parse_helm_release(wish)),
            looked_at,
            content,
        }];
    }
}

/// What differs, attribute by attribute, and what mending it disturbs.
fn diff_rendered_release(
    wish: &DesiredResource,
    installed: Option<&InstalledRelease>,
    rendered: (&str, &str),
    changes: &[HelmReleaseChange],
    assessment: &mut Assessment,
) {
    let of = |text: Option<&str>| text.map_or(Reading::Absent, Reading::is);
    insert_attribute(
        assessment,
        "chart",
        Reading::is(rendered.0),
        of(installed.map(|installed| installed.chart.as_str())),
    );
    insert_attribute(
        assessment,
        "version",
        Reading::is(rendered.1),
        of(installed.map(|installed| installed.version.as_str())),
    );
    match installed {
        Some(installed) => insert_attribute(
            assessment,
            "status",
            Reading::is("deployed"),
            Reading::is(installed.status.as_str()),
        ),
        None => {
            let values = wish
                .body
                .get("values")
                .map(paths::collect_leaf_fields)
                .unwrap_or_default();
            for (path, value) in values
                .into_iter()
                .filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty()))
            {
                let shown = value.as_str().map_or_else(
                    || value.clone(),
                    |text| secret::render_secret_marks(text).into(),
                );
                insert_attribute(
                    assessment,
                    &format!("values.{path}"),
                    Reading::Is(shown),
                    Reading::Absent,
                );
            }
        }
    }
    let foreign = installed.filter(|installed| installed.description != DESCRIPTION);
    let is_left = installed.is_some_and(|installed| installed.ours && foreign.is_none());
    for name in ["chart", "version"] {
        assessment
            .attributes
            .entry(name.to_owned())
            .and_modify(|attribute| attribute.input = is_left.then(|| describe_chart(wish)));
    }
    // Where a value is another one and the chart is not, what it renders to is the value's doing.
    let same_chart = installed.is_some_and(|installed| {
        (installed.chart.as_str(), installed.version.as_str()) == rendered
    });
    let by_value = same_chart && changes.iter().any(is_value);
    let input = |change: &HelmReleaseChange| match by_value || is_value(change) {
        true => "a value of the release".to_owned(),
        false => describe_chart(wish),
    };
    let maker = foreign.map(|i| {
        format!(
            "revision {} of {} is not ours ({})",
            i.record.revision,
            to_the_second(&i.updated),
            one_line(&i.description, 60)
        )
    });
    for change in changes
        .iter()
        .filter(|change| installed.is_some() || !is_value(change))
    {
        let reading = |value: &Option<Value>| value.clone().map_or(Reading::Absent, Reading::Is);
        let by = change.by.clone().or_else(|| maker.clone());
        let input = (is_left && change.rendered).then(|| input(change));
        let attribute = Attribute {
            by,
            input,
            ..Attribute::in_plane(
                Plane::Persisted,
                reading(&change.wanted),
                reading(&change.found),
            )
        };
        assessment.attributes.insert(change.name.clone(), attribute);
        if let Some(interrupts) = &change.interrupts {
            assessment.disruption = assessment.disruption.max(Disruption::Restart);
            push_if_absent(&mut assessment.interrupts, interrupts.clone());
        }
        if change.stays {
            let said = "Helm does not set back what somebody changed on an object of this kind: \
                        delete the object, or set the field as the chart has it";
            assessment.refusal = Some(format!("{}: {said}", change.name));
        }
        if let (Some((path, word)), true) = (
            find_declared_disruption(wish, &change.name),
            installed.is_some(),
        ) {
            assessment.disruption = assessment.disruption.max(word);
            push_if_absent(
                &mut assessment.interrupts,
                format!(
                    "a change of {path} is no plain edit ({}): {}",
                    word.word(),
                    describe_followup_action(word)
                ),
            );
        }
    }
}

/// A value that the wish gives, and no object that comes of it.
fn is_value(change: &HelmReleaseChange) -> bool {
    change.name.starts_with("values.")
}

/// The chart, by its name in the wish.
fn describe_chart(wish: &DesiredResource) -> String {
    format!(
        "the chart {}",
        one_line(wish.text("chart").unwrap_or_default(), 200)
    )
}

fn push_if_absent(all: &mut Vec<String>, one: String) {
    if !all.contains(&one) {
        all.push(one);
    }
}

/// What has to be done besides, and by whom.
fn describe_followup_action(word: Disruption) -> &'static str {
    match word {
        Disruption::Drain => "empty the nodes first, which is done by hand",
        Disruption::Reboot => "the nodes have to boot anew after it, which is done by hand",
        _ => "what runs there starts anew",
    }
}

/// The class that the wish gives to a value, or to one around it.
fn find_declared_disruption(wish: &DesiredResource, changed: &str) -> Option<(String, Disruption)> {
    let changed = changed.strip_prefix("values.")?;
    let all = wish.body.get("disruptions").and_then(Value::as_object)?;
    let is_it = |path: &str| {
        [(changed, path), (path, changed)].iter().any(|(a, b)| {
            a.strip_prefix(b)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let (path, word) = all.iter().find(|(path, _)| is_it(path))?;
    Some((path.clone(), parse_disruption_word(word)?))
}

/// Helm tells a time to the nanosecond: `2026-01-02T03:04:05.678901234Z`.
fn to_the_second(time: &str) -> String {
    let zone = |rest: &str| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit())
            .to_owned()
    };
    time.split_once('.').map_or_else(
        || time.to_owned(),
        |(second, rest)| format!("{second}{}", zone(rest)),
    )
}

/// Somebody's run is under way on it, or died.
fn find_unfinished_operation(
    wish: &DesiredResource,
    installed: &InstalledRelease,
) -> Option<String> {
    let (name, namespace) = (wish.text("name")?, wish.text("namespace")?);
    let unlock = match installed.status.as_str() {
        "pending-install" | "uninstalling" => "uninstall",
        "pending-upgrade" | "pending-rollback" => "rollback",
        _ => return None,
    };
    Some(format!(
        "revision {} of {} is {}: another helm is at work on it, or one has died; once none runs \
         any more, `helm -n {namespace} {unlock} {name}` unlocks it",
        installed.record.revision,
        to_the_second(&installed.updated),
        installed.status
    ))
}

#[cfg(test)]
mod tests;
