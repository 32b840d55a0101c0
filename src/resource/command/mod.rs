//! `command`: the guarded escape hatch. It must have a read probe, so that it too can be planned:
//! the probe says what is there, `expect` what should be; only when they differ does `run` run.
//! What it did cannot be undone by us. With `reboot` in the place of `run`, a reboot fixes what the
//! probe finds: the driver that runs is not the one that is installed; with `by_hand`, somebody
//! does. What it disturbs nobody but its author knows, and says with `disruption`.

pub mod script;

use super::body::{
    FieldShape, check_fields, is_clean_path, is_word, new_body_error, new_optional_field,
    new_required_field, read_flag_field, read_scalar_field, read_text_field, require_condition,
    scalar_text,
};
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Disruption, Plane, Read,
    ReadResults, Reading, ResourceKind,
};
use railwright_base::secret;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind.
pub struct CommandResource;

const FIELDS: &[super::body::BodyField] = &[
    new_required_field("name", FieldShape::Text),
    new_optional_field("run", FieldShape::Text),
    new_required_field("read", FieldShape::Fields),
    new_optional_field("reboot", FieldShape::Flag),
    new_optional_field("limit_s", FieldShape::Number),
    new_optional_field("creates", FieldShape::Text),
    new_optional_field("convergent", FieldShape::Flag),
    new_optional_field("environment", FieldShape::Map),
    new_optional_field("input", FieldShape::Text),
    new_optional_field("disruption", FieldShape::Text),
    new_optional_field("by_hand", FieldShape::Text),
];

/// What a command may disturb. A reboot is a step of its own.
const DISRUPTIONS: [Disruption; 5] = [
    Disruption::None,
    Disruption::Reload,
    Disruption::Restart,
    Disruption::LinkBlip,
    Disruption::Drain,
];

const READ_FIELDS: &[super::body::BodyField] = &[
    new_required_field("probe", FieldShape::Text),
    new_optional_field("expect", FieldShape::Scalar),
];

/// The longest time that a command may take, in seconds.
const LONGEST_S: u64 = 7200;

/// The longest that one with a secret may take: a longer one outlives the connection, for which its
/// script has to lie on the host's disk while it runs.
const LONGEST_WITH_SECRET_S: u64 = 600;

fn build_probe_read(wish: &DesiredResource) -> Read {
    Read::Command {
        script: wish.body["read"]["probe"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    }
}

fn build_created_path_read(wish: &DesiredResource) -> Option<Read> {
    wish.text("creates").map(|path| Read::Modified {
        paths: vec![path.to_owned()],
    })
}

/// The path that the command creates; none where it names none.
fn diff_created_path(wish: &DesiredResource, answers: &ReadResults) -> Option<Attribute> {
    let path = wish.text("creates")?;
    let found = match answers.output(&build_created_path_read(wish)?) {
        Err(reason) => Reading::Unknown(reason),
        Ok((_, out)) => {
            let mut paths = out.lines().filter_map(|line| line.split_once(' '));
            match paths.any(|(_, there)| there == path) {
                true => Reading::is(path),
                false => Reading::Absent,
            }
        }
    };
    let wanted = Reading::is(path);
    Some(Attribute::in_plane(Plane::Persisted, wanted, found))
}

/// What the probe says: its output without white space around it; without `expect`, whether it
/// ended with 0.
fn probe_reading(wish: &DesiredResource, answers: &ReadResults) -> (Reading, Reading) {
    let expect = read_scalar_field(&wish.body["read"], "expect");
    let wanted = expect
        .as_ref()
        .map_or(Reading::is("exit 0"), |text| Reading::is(text.trim()));
    let found = match answers.output(&build_probe_read(wish)) {
        Err(reason) => Reading::Unknown(reason),
        Ok((code, _)) if expect.is_none() => Reading::is(format!("exit {code}")),
        Ok((0, out)) if out.trim().is_empty() && wanted != Reading::is("") => Reading::Absent,
        Ok((0, out)) => Reading::is(out.trim()),
        // a probe that fails says that what it looks for is not there, with a status of its own
        // kept visible
        Ok((1, out)) if out.trim().is_empty() => Reading::Absent,
        Ok((code, out)) => Reading::is(format!(
            "exit {code}: {}",
            railwright_base::text::one_line(out, 200)
        )),
    };
    (wanted, found)
}

fn parse_environment(body: &Value) -> BTreeMap<String, String> {
    let fields = body.get("environment").and_then(Value::as_object);
    fields
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), scalar_text(value)?)))
        .collect()
}

fn parse_disruption(body: &Value) -> Option<Disruption> {
    let Some(word) = read_text_field(body, "disruption") else {
        return Some(Disruption::None);
    };
    DISRUPTIONS
        .into_iter()
        .find(|disruption| disruption.word() == word)
}

fn needs_reboot(wish: &DesiredResource) -> bool {
    read_flag_field(&wish.body, "reboot") == Some(true)
}

fn by_hand(wish: &DesiredResource) -> Option<&str> {
    wish.text("by_hand")
}

/// A command runs something, or waits for a reboot, which is a step of its own, or for somebody:
/// then it runs nothing.
fn check_means(body: &Value, errors: &mut Vec<BodyError>) {
    let (runs, reboots) = (
        body.get("run").is_some(),
        read_flag_field(body, "reboot") == Some(true),
    );
    let by_hand = body.get("by_hand").is_some();
    let help = "a script, or `reboot: true` where a reboot fixes it, or `by_hand`: what somebody \
                has to do";
    require_condition(
        errors,
        runs || reboots || by_hand || !body.is_object(),
        "",
        "`run` is missing",
        help,
    );
    let idle = [
        "run",
        "creates",
        "environment",
        "input",
        "limit_s",
        "disruption",
    ]
    .into_iter()
    .filter(|field| body.get(*field).is_some());
    for field in idle.filter(|_| reboots || by_hand) {
        let how = if by_hand {
            ("somebody does it by hand", "by_hand")
        } else {
            ("a reboot fixes it", "reboot")
        };
        let help = format!("leave it out, or leave out `{}`", how.1);
        errors.push(new_body_error(
            &format!("/{field}"),
            &format!("nothing is run where {}", how.0),
            Some(&help),
        ));
    }
    require_condition(
        errors,
        !(reboots && by_hand),
        "/by_hand",
        "either a reboot fixes it or somebody",
        "leave one of the two out",
    );
}

fn check_environment(body: &Value, errors: &mut Vec<BodyError>) {
    let environment = parse_environment(body);
    for name in environment.keys() {
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let fine = first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        require_condition(
            errors,
            fine,
            "/environment",
            "a variable's name is letters, digits and `_`",
            "for example TOKEN",
        );
    }
    let input = read_text_field(body, "input");
    let holds = environment
        .values()
        .map(String::as_str)
        .chain(input)
        .any(|text| !secret::list_secret_names(text).is_empty());
    let limit = body
        .get("limit_s")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    require_condition(
        errors,
        !holds || limit <= LONGEST_WITH_SECRET_S,
        "/limit_s",
        "a command with a secret may not take so long: its script would lie on the host's disk \
         while it runs",
        "at most 600 seconds",
    );
}

impl ResourceKind for CommandResource {
    fn asks_alike(&self, applied: &DesiredResource, wish: &DesiredResource) -> bool {
        build_probe_read(applied) == build_probe_read(wish)
    }

    fn name(&self) -> &'static str {
        "command"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut errors = check_fields(body, "", FIELDS);
        if let Some(name) = read_text_field(body, "name") {
            require_condition(
                &mut errors,
                is_word(name, "._-"),
                "/name",
                "the name is one word",
                "for example subnet-manager",
            );
        }
        match body.get("read") {
            Some(read) if read.is_object() => {
                errors.extend(check_fields(read, "/read", READ_FIELDS));
                let empty =
                    read_text_field(read, "probe").is_some_and(|probe| probe.trim().is_empty());
                require_condition(
                    &mut errors,
                    !empty,
                    "/read/probe",
                    "the probe is empty",
                    "a command that only reads, so that the step can be planned",
                );
            }
            _ => {}
        }
        if let Some(limit) = body.get("limit_s").and_then(Value::as_u64) {
            require_condition(
                &mut errors,
                (1..=LONGEST_S).contains(&limit),
                "/limit_s",
                "the limit is out of range",
                "1 to 7200 seconds",
            );
        }
        if let Some(path) = read_text_field(body, "creates") {
            require_condition(
                &mut errors,
                is_clean_path(path),
                "/creates",
                "this is no absolute path",
                "for example /opt/tool/done",
            );
        }
        let known = DISRUPTIONS.map(Disruption::word).join(", ");
        require_condition(
            &mut errors,
            parse_disruption(body).is_some(),
            "/disruption",
            "it disturbs in no known way",
            &format!("one of: {known}"),
        );
        check_means(body, &mut errors);
        check_environment(body, &mut errors);
        errors
    }

    fn may_hold_secret(&self, pointer: &str) -> bool {
        pointer == "/input" || pointer.starts_with("/environment/")
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        std::iter::once(build_probe_read(wish))
            .chain(build_created_path_read(wish))
            .collect()
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let (wanted, found) = probe_reading(wish, answers);
        assessment.attributes.insert(
            "probe".to_owned(),
            Attribute::in_plane(Plane::Running, wanted, found),
        );
        if let Some(attribute) = diff_created_path(wish, answers) {
            assessment
                .attributes
                .insert("creates".to_owned(), attribute);
        }
        if needs_reboot(wish) {
            assessment.needs_reboot = !assessment.is_met() && !assessment.has_unknown();
            return assessment;
        }
        if let Some(what) = by_hand(wish) {
            let open = !assessment.is_met() && !assessment.has_unknown();
            assessment.refusal =
                open.then(|| format!("by hand: {what}; a plan after that proves it"));
            return assessment;
        }
        if !assessment.is_met() {
            let limit_s = wish.body.get("limit_s").and_then(Value::as_u64);
            let limit_s = limit_s.and_then(|limit| u32::try_from(limit).ok());
            assessment.disruption = parse_disruption(&wish.body).unwrap_or_default();
            assessment.actions.push(Action::RunCommand {
                script: wish.text("run").unwrap_or_default().to_owned(),
                limit_s: limit_s.unwrap_or(120),
                environment: parse_environment(&wish.body),
                input: wish.text("input").map(str::to_owned),
            });
        }
        assessment.residue.push(
            "what the command did stays: railwright cannot know how to take it back".to_owned(),
        );
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> Assessment {
        if needs_reboot(last_applied) || by_hand(last_applied).is_some() {
            return Assessment::default();
        }
        let name = last_applied.text("name").unwrap_or_default();
        Assessment {
            residue: vec![format!(
                "what the command `{name}` did stays; take it back by hand"
            )],
            ..Assessment::default()
        }
    }

    fn convergent(&self) -> bool {
        false
    }

    fn is_convergent(&self, wish: &DesiredResource) -> bool {
        read_flag_field(&wish.body, "convergent") == Some(true)
            || needs_reboot(wish)
            || by_hand(wish).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, wish};
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
        let empty = CommandResource
            .check(&json!({ "name": "a", "run": "true", "read": { "probe": " ", "expct": 1 } }));
        assert_eq!(
            empty.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(),
            ["/read/expct", "/read/probe"]
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
        let wish = wish(
            &CommandResource,
            json!({ "name": "a", "run": "do", "read": { "probe": "cat /x", "expect": 9000 }, "limit_s": 5 }),
        );
        let read = &CommandResource.reads(&wish)[0];
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
            let assessment = CommandResource.assess(&wish, &answered(&[(read, code, out)]));
            assert_eq!(
                assessment.attributes["probe"].found.running,
                Some(found.clone())
            );
            assert_eq!(assessment.actions.is_empty(), found == Reading::is("9000"));
        }
        assert!(!CommandResource.is_convergent(&wish));
        let mut loud = wish.clone();
        std::sync::Arc::make_mut(&mut loud.want).body["disruption"] = "drain".into();
        assert_eq!(
            CommandResource
                .assess(&loud, &answered(&[(read, 1, "")]))
                .disruption,
            Disruption::Drain
        );
        assert_eq!(
            CommandResource
                .assess(&loud, &answered(&[(read, 0, "9000")]))
                .disruption,
            Disruption::None
        );
    }

    #[test]
    fn what_a_reboot_mends_runs_nothing_and_asks_for_one() {
        let wish = wish(
            &CommandResource,
            json!({ "name": "a", "read": { "probe": "x" }, "reboot": true }),
        );
        let read = &CommandResource.reads(&wish)[0];
        for (code, reboot) in [(1, true), (0, false)] {
            let assessment = CommandResource.assess(&wish, &answered(&[(read, code, "")]));
            assert_eq!(
                (
                    assessment.needs_reboot,
                    assessment.is_met(),
                    assessment.actions.len()
                ),
                (reboot, !reboot, 0)
            );
        }
        let unread = CommandResource.assess(&wish, &ReadResults::default());
        assert!(!unread.needs_reboot && unread.has_unknown());
        assert!(
            CommandResource
                .undo(&wish, &Value::Null, &ReadResults::default())
                .residue
                .is_empty()
        );
    }

    #[test]
    fn what_somebody_does_by_hand_runs_nothing_and_says_what_it_is() {
        let wish = wish(
            &CommandResource,
            json!({ "name": "a", "read": { "probe": "x", "expect": "static" }, "by_hand": "set the policy" }),
        );
        let read = &CommandResource.reads(&wish)[0];
        let open = CommandResource.assess(&wish, &answered(&[(read, 0, "none")]));
        assert_eq!(
            open.refusal.as_deref(),
            Some("by hand: set the policy; a plan after that proves it")
        );
        assert!(open.actions.is_empty() && !open.is_met());
        assert_eq!(
            CommandResource
                .assess(&wish, &answered(&[(read, 0, "static")]))
                .refusal,
            None
        );
        assert_eq!(
            CommandResource
                .assess(&wish, &ReadResults::default())
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
