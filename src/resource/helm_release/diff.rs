//! What differs between a resource and what Helm says of its release, attribute by attribute, and
//! what a new revision disturbs.

use super::body::HelmReleaseBody;
use super::compare::HelmReleaseChange;
use super::request::{DESCRIPTION, HelmReleasePreview, HelmReleaseState, InstalledRelease};
use super::{insert_attribute, insert_presence_attribute};
use crate::Provenance;
use crate::kubernetes_object::ownership::PriorObject;
use crate::kubernetes_object::paths;
use crate::{Action, Attribute, Disruption, Plane, Reading, ResourceDiff};
use railwright_base::secret;
use railwright_base::text::one_line;

/// Compares a resource with what Helm said of its release, and plans the revision that fixes it.
pub(super) fn diff_helm_release(
    body: &HelmReleaseBody,
    found: HelmReleaseState,
    diff: &mut ResourceDiff,
) {
    let installed = found.installed.as_ref();
    let is_foreign = installed.is_some_and(|installed| !installed.ours);
    let there = installed.map_or(Reading::Absent, |_| Reading::is("present"));
    insert_presence_attribute(diff, Reading::is("present"), there);
    let existed = body.adopt || is_foreign;
    diff.before = serde_json::to_value(PriorObject { existed }).unwrap_or_default();
    if let Some(installed) = installed
        && let Some(refusal) = find_unfinished_operation(body, installed)
    {
        insert_status_attribute(installed, diff);
        diff.refusal = Some(refusal);
        return;
    }
    let Some(content) = diff_release_preview(body, installed, found.preview, diff) else {
        return;
    };
    if diff.is_met() {
        return;
    }
    if is_foreign && !body.adopt && diff.refusal.is_none() {
        diff.refusal = Some(
            "somebody else installed this release; `adopt: true` beside its name takes it over"
                .to_owned(),
        );
    }
    if diff.refusal.is_none() {
        let looked_at = installed.map(|installed| installed.record.clone());
        diff.actions = vec![Action::UpgradeRelease {
            release: Box::new(body.to_release()),
            looked_at,
            content,
        }];
    }
}

fn insert_status_attribute(installed: &InstalledRelease, diff: &mut ResourceDiff) {
    insert_attribute(
        diff,
        "status",
        Reading::is("deployed"),
        Reading::is(installed.status.as_str()),
    );
}

/// Notes what the desired release would come to. Returns the digest of the chart; nothing where
/// Helm did not render it, so that nothing can be done.
fn diff_release_preview(
    body: &HelmReleaseBody,
    installed: Option<&InstalledRelease>,
    preview: HelmReleasePreview,
    diff: &mut ResourceDiff,
) -> Option<String> {
    match preview {
        HelmReleasePreview::Unknown(reason) => {
            // A step of which nobody knows what it would do is none, whether the release is there
            // or not.
            diff.attributes.clear();
            let actual = Reading::Unknown(reason);
            insert_attribute(diff, "chart", Reading::is("known"), actual);
            None
        }
        HelmReleasePreview::Refused(reason) => {
            // What is installed is not wrong because a chart cannot be used here: whether it
            // differs is unknown.
            let seen = installed.map_or(Reading::Absent, |_| {
                Reading::Unknown(one_line(&reason, 200).into())
            });
            let desired = Reading::is(body.chart.as_str());
            insert_attribute(diff, "chart", desired, seen);
            diff.refusal = Some(reason);
            None
        }
        HelmReleasePreview::Is {
            chart,
            version,
            content,
            rendering,
            changes,
        } => {
            let rendered = RenderedRelease {
                body,
                installed,
                chart: (&chart, &version),
                changes: &changes,
            };
            rendered.insert_attributes(diff);
            // No attributes of the release: a plan that was made with another chart, or of other
            // objects of the cluster that the chart looks up, is not taken for one of this.
            let rendering = rendering.map(|digest| format!("rendering {digest}"));
            for name in std::iter::once(format!("content {content}")).chain(rendering) {
                insert_attribute(diff, &name, Reading::Absent, Reading::Absent);
            }
            Some(content)
        }
    }
}

/// What Helm rendered of a resource, beside what is installed.
struct RenderedRelease<'a> {
    body: &'a HelmReleaseBody,
    installed: Option<&'a InstalledRelease>,
    /// Name and version of the chart.
    chart: (&'a str, &'a str),
    changes: &'a [HelmReleaseChange],
}

impl RenderedRelease<'_> {
    /// What differs, attribute by attribute, and what fixing it disturbs.
    fn insert_attributes(&self, diff: &mut ResourceDiff) {
        self.insert_chart_attributes(diff);
        match self.installed {
            Some(installed) => insert_status_attribute(installed, diff),
            None => self.insert_desired_values(diff),
        }
        self.insert_changes(diff);
    }

    fn insert_chart_attributes(&self, diff: &mut ResourceDiff) {
        let (chart, version) = self.chart;
        let found_chart = self.installed.map(|installed| installed.chart.as_str());
        let found_version = self.installed.map(|installed| installed.version.as_str());
        for (name, desired, actual) in [
            ("chart", chart, found_chart),
            ("version", version, found_version),
        ] {
            let actual = actual.map_or(Reading::Absent, Reading::is);
            let attribute = Attribute {
                input: self.is_as_we_left_it().then(|| self.body.describe_chart()),
                ..Attribute::in_plane(Plane::Persisted, Reading::is(desired), actual)
            };
            diff.attributes.insert(name.to_owned(), attribute);
        }
    }

    /// Shows the values of a release that is not there, its secrets as marks.
    fn insert_desired_values(&self, diff: &mut ResourceDiff) {
        let values = self.body.values.clone().into();
        for (path, value) in paths::collect_leaf_fields(&values) {
            if value.as_object().is_some_and(serde_json::Map::is_empty) {
                continue;
            }
            let shown = value.as_str().map_or_else(
                || value.clone(),
                |text| secret::render_secret_marks(text).into(),
            );
            let name = secret::render_secret_marks(&format!("values.{path}"));
            insert_attribute(diff, &name, Reading::Is(shown), Reading::Absent);
        }
    }

    fn insert_changes(&self, diff: &mut ResourceDiff) {
        let maker = self.describe_foreign_revision();
        // Where a value is another one and the chart is not, what it renders to is the value's
        // doing.
        let is_by_value = self.is_of_same_chart() && self.changes.iter().any(is_value);
        for change in self.changes {
            if self.installed.is_none() && is_value(change) {
                continue;
            }
            let is_input = self.is_as_we_left_it() && change.rendered;
            let input = is_input.then(|| match is_by_value || is_value(change) {
                true => "a value of the release".to_owned(),
                false => self.body.describe_chart(),
            });
            let [desired, actual] =
                [&change.desired, &change.actual].map(|value| Reading::from(value.clone()));
            let attribute = Attribute {
                by: change.by.clone().or_else(|| maker.clone()),
                input,
                ..Attribute::in_plane(Plane::Persisted, desired, actual)
            };
            diff.insert_beside(change.name.clone(), attribute);
            record_change_effects(change, diff);
            if self.installed.is_some() {
                add_declared_disruption(self.body, change, diff);
            }
        }
    }

    /// True where the newest revision is ours: what differs then is of the resource's own input.
    fn is_as_we_left_it(&self) -> bool {
        self.installed
            .is_some_and(|installed| installed.ours && installed.description == DESCRIPTION)
    }

    fn is_of_same_chart(&self) -> bool {
        self.installed.is_some_and(|installed| {
            (installed.chart.as_str(), installed.version.as_str()) == self.chart
        })
    }

    /// Who made the newest revision, where it is not one of ours.
    fn describe_foreign_revision(&self) -> Option<Provenance> {
        let foreign = self
            .installed
            .filter(|installed| installed.description != DESCRIPTION)?;
        Some(Provenance::Note(format!(
            "revision {} of {} is not ours ({})",
            foreign.record.revision,
            truncate_to_seconds(&foreign.updated),
            one_line(&foreign.description, 60)
        )))
    }
}

/// Notes what fixing a change does to pods that run, and whether Helm can fix it at all.
fn record_change_effects(change: &HelmReleaseChange, diff: &mut ResourceDiff) {
    if let Some(interrupts) = &change.interrupts {
        diff.disruption = diff.disruption.max(Disruption::Restart);
        push_if_absent(&mut diff.interrupts, interrupts.clone());
    }
    if let Some(hindrance) = &change.hindrance {
        diff.refusal = Some(hindrance.clone());
    }
    if change.stays {
        let said = "Helm does not set back what somebody changed on an object of this kind: \
                    delete the object, or set the field as the chart has it";
        diff.refusal = Some(format!("{}: {said}", change.name));
    }
}

fn add_declared_disruption(
    body: &HelmReleaseBody,
    change: &HelmReleaseChange,
    diff: &mut ResourceDiff,
) {
    let Some((path, word)) = find_declared_disruption(body, change) else {
        return;
    };
    diff.disruption = diff.disruption.max(word);
    let line = format!(
        "a change of {path} is no plain edit ({}): {}",
        word.word(),
        describe_followup_action(word)
    );
    push_if_absent(&mut diff.interrupts, line);
}

/// A value that the resource gives, and no object that comes of it.
fn is_value(change: &HelmReleaseChange) -> bool {
    change.name.starts_with("values.")
}

impl HelmReleaseBody {
    /// The chart, by its name in the resource.
    fn describe_chart(&self) -> String {
        format!("the chart {}", one_line(&self.chart, 200))
    }
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

/// The highest disruption class that the resource gives to a value, or to one around it or within
/// it.
fn find_declared_disruption(
    body: &HelmReleaseBody,
    change: &HelmReleaseChange,
) -> Option<(String, Disruption)> {
    // A path of the spec has no quotes around a key that holds a dot, and where nothing is shown it
    // is unknown which item of a list it names.
    let plain = |path: &str| match change.hidden {
        true => without_items(&path.replace('"', "")),
        false => path.replace('"', ""),
    };
    let changed = plain(change.name.strip_prefix("values.")?);
    let concerned = body.disruptions.iter().filter(|(path, _)| {
        let path = plain(path);
        paths::is_at_or_below(&changed, &path) || paths::is_at_or_below(&path, &changed)
    });
    concerned
        .map(|(path, word)| (path.clone(), *word))
        .max_by_key(|(_, word)| *word)
}

/// `pools[a].mtu` as `pools.mtu`.
fn without_items(path: &str) -> String {
    path.split('[')
        .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
        .collect()
}

/// Helm tells a time to the nanosecond: `2026-01-02T03:04:05.678901234Z`.
fn truncate_to_seconds(time: &str) -> String {
    let Some((second, rest)) = time.split_once('.') else {
        return time.to_owned();
    };
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{second}{zone}")
}

/// Why nothing can be done to a release: somebody's run is under way on it, or died.
pub(super) fn find_unfinished_operation(
    body: &HelmReleaseBody,
    installed: &InstalledRelease,
) -> Option<String> {
    let (name, namespace) = (&body.name, &body.namespace);
    let unlock = match installed.status.as_str() {
        "pending-install" | "uninstalling" => "uninstall",
        "pending-upgrade" | "pending-rollback" => "rollback",
        _ => return None,
    };
    Some(format!(
        "revision {} of {} is {}: another helm is at work on it, or one has died; once none runs \
         any more, `helm -n {namespace} {unlock} {name}` unlocks it",
        installed.record.revision,
        truncate_to_seconds(&installed.updated),
        installed.status
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_the_second() {
        assert_eq!(
            truncate_to_seconds("2026-01-02T03:04:05.678901234Z"),
            "2026-01-02T03:04:05Z"
        );
        assert_eq!(
            truncate_to_seconds("2026-01-02T03:04:05+01:00"),
            "2026-01-02T03:04:05+01:00"
        );
    }
}
