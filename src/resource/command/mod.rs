//! `command`: the escape hatch. It must have a read probe, so that it too can be planned:
//! the probe says what is there, `expect` what should be; only when they differ does `run` run.
//! What it did cannot be undone by us. With `reboot` in the place of `run`, a reboot fixes what the
//! probe finds: the driver that runs is not the one that is installed; with `by_hand`, somebody
//! does. What it disturbs nobody but its author knows, and says with `disruption`.

pub mod script;

use super::json_fields::read_text_field;
use super::names::{is_clean_path, is_word};
use super::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, Scalar, read_body};
use railwright_base::secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind.
pub struct CommandResource;

/// What a command may disturb. A reboot is a step of its own.
const DISRUPTIONS: [Disruption; 5] = [
    Disruption::None,
    Disruption::Reload,
    Disruption::Restart,
    Disruption::LinkBlip,
    Disruption::Drain,
];

/// The longest time that a command may take, in seconds.
const LONGEST_S: u32 = 7200;

/// The longest that one with a secret may take: a longer one outlives the connection, for which its
/// script has to lie on the host's disk while it runs.
const LONGEST_WITH_SECRET_S: u32 = 600;

/// The desired state of a command.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CommandBody {
    name: String,
    run: Option<String>,
    /// A command that only reads, so that the step can be planned.
    read: ProbeBody,
    reboot: Option<bool>,
    /// Seconds, 1 to 7200.
    limit_s: Option<u32>,
    creates: Option<String>,
    convergent: Option<bool>,
    #[serde(default)]
    environment: BTreeMap<String, Scalar>,
    input: Option<String>,
    disruption: Option<Disruption>,
    by_hand: Option<String>,
}

/// What says whether the command is needed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProbeBody {
    probe: String,
    expect: Option<Scalar>,
}

impl CommandBody {
    fn build_probe_read(&self) -> Read {
        Read::Command {
            script: self.read.probe.clone(),
        }
    }

    fn build_created_path_read(&self) -> Option<Read> {
        let paths = vec![self.creates.clone()?];
        Some(Read::Modified { paths })
    }

    /// True where a reboot or somebody does it.
    fn runs_nothing(&self) -> bool {
        self.reboot == Some(true) || self.by_hand.is_some()
    }

    /// A command runs something, or waits for a reboot, which is a step of its own, or for
    /// somebody: then it runs nothing.
    fn check_means(&self, errors: &mut BodyErrors) {
        errors.require(
            self.run.is_some() || self.runs_nothing(),
            "",
            "`run` is missing",
            "a script, or `reboot: true` where a reboot fixes it, or `by_hand`: what somebody has \
             to do",
        );
        let (how, field) = match self.by_hand {
            Some(_) => ("somebody does it by hand", "by_hand"),
            None => ("a reboot fixes it", "reboot"),
        };
        for (name, is_given) in [
            ("run", self.run.is_some()),
            ("creates", self.creates.is_some()),
            ("environment", !self.environment.is_empty()),
            ("input", self.input.is_some()),
            ("limit_s", self.limit_s.is_some()),
            ("disruption", self.disruption.is_some()),
        ] {
            errors.require(
                !is_given || !self.runs_nothing(),
                &format!("/{name}"),
                &format!("nothing is run where {how}"),
                &format!("leave it out, or leave out `{field}`"),
            );
        }
        errors.require(
            self.reboot != Some(true) || self.by_hand.is_none(),
            "/by_hand",
            "either a reboot fixes it or somebody",
            "leave one of the two out",
        );
    }

    fn check_environment(&self, errors: &mut BodyErrors) {
        for name in self.environment.keys() {
            let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            errors.require(
                first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "/environment",
                "a variable's name is letters, digits and `_`",
                "for example TOKEN",
            );
        }
        let texts = self.environment.values().map(|value| &value.0);
        let holds_secret = texts
            .chain(&self.input)
            .any(|text| !secret::list_secret_names(text).is_empty());
        errors.require(
            !holds_secret || self.limit_s.unwrap_or_default() <= LONGEST_WITH_SECRET_S,
            "/limit_s",
            "a command with a secret may not take so long: its script would lie on the host's \
             disk while it runs",
            "at most 600 seconds",
        );
    }
}

impl Body for CommandBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            is_word(&self.name, "._-"),
            "/name",
            "the name is one word",
            "for example subnet-manager",
        );
        errors.require(
            !self.read.probe.trim().is_empty(),
            "/read/probe",
            "the probe is empty",
            "a command that only reads, so that the step can be planned",
        );
        errors.require(
            self.limit_s
                .is_none_or(|limit| (1..=LONGEST_S).contains(&limit)),
            "/limit_s",
            "the limit is out of range",
            "1 to 7200 seconds",
        );
        errors.require(
            self.creates.as_deref().is_none_or(is_clean_path),
            "/creates",
            "this is no absolute path",
            "for example /opt/tool/done",
        );
        let known = DISRUPTIONS.map(Disruption::word).join(", ");
        errors.require(
            self.disruption.is_none_or(|how| DISRUPTIONS.contains(&how)),
            "/disruption",
            "it disturbs in no known way",
            &format!("one of: {known}"),
        );
        self.check_means(errors);
        self.check_environment(errors);
    }
}

/// The path that the command creates; none where it names none.
fn diff_created_path(body: &CommandBody, answers: &ReadResults) -> Option<Attribute> {
    let path = body.creates.as_deref()?;
    let actual = match answers.output(&body.build_created_path_read()?) {
        Err(reason) => Reading::Unknown(reason),
        Ok((_, out)) => {
            let mut paths = out.lines().filter_map(|line| line.split_once(' '));
            match paths.any(|(_, there)| there == path) {
                true => Reading::is(path),
                false => Reading::Absent,
            }
        }
    };
    let desired = Reading::is(path);
    Some(Attribute::in_plane(Plane::Persisted, desired, actual))
}

/// What the probe says: its output without white space around it; without `expect`, whether it
/// ended with 0.
fn probe_reading(body: &CommandBody, answers: &ReadResults) -> (Reading, Reading) {
    let expect = body.read.expect.as_ref();
    let desired = expect.map_or(Reading::is("exit 0"), |text| Reading::is(text.0.trim()));
    let actual = match answers.output(&body.build_probe_read()) {
        Err(reason) => Reading::Unknown(reason),
        Ok((code, _)) if expect.is_none() => Reading::is(format!("exit {code}")),
        Ok((0, out)) if out.trim().is_empty() && desired != Reading::is("") => Reading::Absent,
        Ok((0, out)) => Reading::is(out.trim()),
        // a probe that fails says that what it looks for is not there, with a status of its own
        // kept visible
        Ok((1, out)) if out.trim().is_empty() => Reading::Absent,
        Ok((code, out)) => Reading::is(format!(
            "exit {code}: {}",
            railwright_base::text::one_line(out, 200)
        )),
    };
    (desired, actual)
}

impl ResourceKind for CommandResource {
    fn has_identical_reads(&self, applied: &DesiredResource, resource: &DesiredResource) -> bool {
        let [applied, resource] =
            [applied, resource].map(|resource| read_body::<CommandBody>(&resource.body));
        applied.read.probe == resource.read.probe
    }

    fn name(&self) -> &'static str {
        "command"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<CommandBody>()
    }

    fn may_hold_secret(&self, pointer: &str) -> bool {
        pointer == "/input" || pointer.starts_with("/environment/")
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body: CommandBody = read_body(&resource.body);
        std::iter::once(body.build_probe_read())
            .chain(body.build_created_path_read())
            .collect()
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let body: CommandBody = read_body(&resource.body);
        let (desired, actual) = probe_reading(&body, answers);
        diff.attributes.insert(
            "probe".to_owned(),
            Attribute::in_plane(Plane::Running, desired, actual),
        );
        if let Some(attribute) = diff_created_path(&body, answers) {
            diff.attributes.insert("creates".to_owned(), attribute);
        }
        if body.reboot == Some(true) {
            diff.needs_reboot = !diff.is_met() && !diff.has_unknown();
            return diff;
        }
        if let Some(what) = body.by_hand {
            let open = !diff.is_met() && !diff.has_unknown();
            diff.refusal = open.then(|| format!("by hand: {what}; a plan after that proves it"));
            return diff;
        }
        if !diff.is_met() {
            diff.disruption = body.disruption.unwrap_or_default();
            diff.actions.push(Action::RunCommand {
                script: body.run.unwrap_or_default(),
                limit_s: body.limit_s.unwrap_or(120),
                environment: body
                    .environment
                    .into_iter()
                    .map(|(name, value)| (name, value.0))
                    .collect(),
                input: body.input,
            });
        }
        diff.residue
            .push("what the command did stays: railwright cannot know how to undo it".to_owned());
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> ResourceDiff {
        let body: CommandBody = read_body(&last_applied.body);
        if body.runs_nothing() {
            return ResourceDiff::default();
        }
        ResourceDiff {
            residue: vec![format!(
                "what the command `{}` did stays; undo it by hand",
                body.name
            )],
            ..ResourceDiff::default()
        }
    }

    fn convergent(&self) -> bool {
        false
    }

    fn is_convergent(&self, resource: &DesiredResource) -> bool {
        let body: CommandBody = read_body(&resource.body);
        body.convergent == Some(true) || body.runs_nothing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, resource};
    use serde_json::json;

    #[test]
    fn only_a_command_with_a_probe_is_taken() {
        assert_eq!(
            CommandResource.check(&json!({ "name": "a", "run": "true" }))[0].message,
            "`read` is missing"
        );
        assert_eq!(
            CommandResource.check(&json!({ "name": "a", "read": { "probe": "x" } }))[0].message,
            "`run` is missing"
        );
        let both = CommandResource.check(&json!({ "name": "a", "run": "x", "read": { "probe": "x" }, "reboot": true, "limit_s": 5 }));
        assert_eq!(
            both.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(),
            ["/run", "/limit_s"]
        );
        let empty =
            CommandResource.check(&json!({ "name": "a", "run": "true", "read": { "probe": " " } }));
        assert_eq!(
            empty.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(),
            ["/read/probe"]
        );
        let loud = CommandResource.check(
            &json!({ "name": "a", "run": "x", "read": { "probe": "x" }, "disruption": "reboot" }),
        );
        assert_eq!(
            loud.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(),
            ["/disruption"],
            "a reboot is a step of its own"
        );
    }

    #[test]
    fn it_runs_only_while_the_probe_says_so() {
        let resource = resource(
            &CommandResource,
            json!({ "name": "a", "run": "do", "read": { "probe": "cat /x", "expect": 9000 }, "limit_s": 5 }),
        );
        let read = &CommandResource.reads(&resource)[0];
        for (code, out, found) in [
            (0, "9000\n", Reading::is("9000")),
            (0, "1500\n", Reading::is("1500")),
            (1, "", Reading::Absent),
            (
                127,
                "sh: cat: not found",
                Reading::is("exit 127: sh: cat: not found"),
            ),
        ] {
            let diff = CommandResource.diff(&resource, &answered(&[(read, code, out)]));
            assert_eq!(diff.attributes["probe"].actual.running, Some(found.clone()));
            assert_eq!(diff.actions.is_empty(), found == Reading::is("9000"));
        }
        assert!(!CommandResource.is_convergent(&resource));
        let mut loud = resource.clone();
        std::sync::Arc::make_mut(&mut loud.declaration).body["disruption"] = "drain".into();
        assert_eq!(
            CommandResource
                .diff(&loud, &answered(&[(read, 1, "")]))
                .disruption,
            Disruption::Drain
        );
        assert_eq!(
            CommandResource
                .diff(&loud, &answered(&[(read, 0, "9000")]))
                .disruption,
            Disruption::None
        );
    }

    #[test]
    fn what_a_reboot_mends_runs_nothing_and_asks_for_one() {
        let resource = resource(
            &CommandResource,
            json!({ "name": "a", "read": { "probe": "x" }, "reboot": true }),
        );
        let read = &CommandResource.reads(&resource)[0];
        for (code, reboot) in [(1, true), (0, false)] {
            let diff = CommandResource.diff(&resource, &answered(&[(read, code, "")]));
            assert_eq!(
                (diff.needs_reboot, diff.is_met(), diff.actions.len()),
                (reboot, !reboot, 0)
            );
        }
        let unread = CommandResource.diff(&resource, &ReadResults::default());
        assert!(!unread.needs_reboot && unread.has_unknown());
        assert!(
            CommandResource
                .undo(&resource, &Value::Null, &ReadResults::default())
                .residue
                .is_empty()
        );
    }

    #[test]
    fn what_somebody_does_by_hand_runs_nothing_and_says_what_it_is() {
        let resource = resource(
            &CommandResource,
            json!({ "name": "a", "read": { "probe": "x", "expect": "static" }, "by_hand": "set the policy" }),
        );
        let read = &CommandResource.reads(&resource)[0];
        let open = CommandResource.diff(&resource, &answered(&[(read, 0, "none")]));
        assert_eq!(
            open.refusal.as_deref(),
            Some("by hand: set the policy; a plan after that proves it")
        );
        assert!(open.actions.is_empty() && !open.is_met());
        assert_eq!(
            CommandResource
                .diff(&resource, &answered(&[(read, 0, "static")]))
                .refusal,
            None
        );
        assert_eq!(
            CommandResource
                .diff(&resource, &ReadResults::default())
                .refusal,
            None,
            "nobody knows yet whether there is anything to do"
        );
        let twice = CommandResource.check(&json!({ "name": "a", "run": "x", "reboot": true, "read": { "probe": "x" }, "by_hand": "y" }));
        assert_eq!(
            twice.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(),
            ["/run", "/by_hand"]
        );
    }
}
