//! `console_step`: what is installed in a cloud's console and nowhere else, such as an add-on of a
//! managed cluster. It is checked by an object that it makes, never executed, and work for a person
//! where that is missing: the plan blocks it and says what to do, and a later plan checks it.

use super::kubernetes_object::looks::{LiveObject, looked_at};
use super::kubernetes_object::manifest;
use super::kubernetes_object::request::KubernetesRead;
use super::{
    Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff, ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::TargetKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The kind.
pub struct ConsoleStep;

/// What is to be installed, and the object that shows it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConsoleStepBody {
    name: String,
    /// What a person has to do.
    says: String,
    #[serde(default)]
    settings: Map<String, Value>,
    /// An object that the step makes: { apiVersion, kind, metadata: { name } }.
    proof: Value,
    /// What stays when it is uninstalled, in words.
    #[serde(default)]
    keeps: Vec<String>,
}

impl Body for ConsoleStepBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_not_empty("name", &self.name);
        errors.check_not_empty("says", &self.says);
        errors.require(
            self.build_proof_read().is_some(),
            "",
            "`proof` is missing, or names no object",
            "an object that the step makes: { apiVersion, kind, metadata: { name } }",
        );
    }
}

impl ResourceKind for ConsoleStep {
    fn name(&self) -> &'static str {
        "console_step"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<ConsoleStepBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<ConsoleStepBody>(&resource.body);
        body.build_proof_read().into_iter().collect()
    }

    /// What is done by hand is an add-on as a rule, with kinds and a namespace of its own.
    fn may_bring(&self, _resource: &DesiredResource, _needed: &str) -> bool {
        true
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let body = read_body::<ConsoleStepBody>(&resource.body);
        let found = body.decode_step_presence(answers);
        if found == Reading::Absent {
            diff.refusal = Some(body.by_hand());
        }
        insert_step_attribute(&mut diff, Reading::is("installed"), found);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let mut diff = ResourceDiff {
            before: before.clone(),
            ..ResourceDiff::default()
        };
        let body = read_body::<ConsoleStepBody>(&last_applied.body);
        match body.decode_step_presence(answers) {
            Reading::Absent => insert_step_attribute(&mut diff, Reading::Absent, Reading::Absent),
            unknown @ Reading::Unknown(_) => {
                insert_step_attribute(&mut diff, Reading::Absent, unknown)
            }
            _ => {
                diff.residue.push(format!(
                    "{} stays: what was installed in a console is uninstalled there",
                    body.name
                ));
                diff.residue.extend(body.keeps);
            }
        }
        diff
    }
}

impl ConsoleStepBody {
    fn build_proof_read(&self) -> Option<Read> {
        let object = manifest::parse_object_name(&self.proof)?;
        Some(Read::Kubernetes(KubernetesRead::Object(object)))
    }

    fn decode_step_presence(&self, answers: &ReadResults) -> Reading {
        let Some(read) = self.build_proof_read() else {
            return Reading::Unknown("no object proves it".into());
        };
        match looked_at(&read, answers) {
            LiveObject::Is(_) => Reading::is("installed"),
            LiveObject::Absent => Reading::Absent,
            LiveObject::Unknown(reason) => Reading::Unknown(reason),
        }
    }

    /// What a person has to do, with every setting as the spec has it.
    fn by_hand(&self) -> String {
        let mut settings = Vec::new();
        for (name, value) in &self.settings {
            settings.push(match value {
                Value::String(text) => format!("{name} = {text}"),
                value => format!("{name} = {value}"),
            });
        }
        let with = if settings.is_empty() {
            String::new()
        } else {
            format!(", with {}", settings.join(", "))
        };
        let says = &self.says;
        format!("it is done by hand: {says}{with}; a plan after it proves it and goes on")
    }
}

fn insert_step_attribute(diff: &mut ResourceDiff, desired: Reading, actual: Reading) {
    diff.attributes.insert(
        "step".to_owned(),
        Attribute::in_plane(Plane::Persisted, desired, actual),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes_object::request::ABSENT;
    use crate::{AnswerStatus, ReadResult};
    use serde_json::json;

    fn resource() -> DesiredResource {
        let proof =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "add-on" } });
        let body = json!({ "name": "add-on", "says": "open the page", "settings": { "mode": "compat", "all": true }, "proof": proof, "keeps": ["interfaces stay"] });
        assert_eq!(ConsoleStep.check(&body), []);
        DesiredResource::of(
            "kube/prod/console_step/add-on".parse().unwrap(),
            "console_step",
            body,
        )
    }

    fn answers(status: AnswerStatus) -> ReadResults {
        let mut answers = ReadResults::default();
        answers.insert(
            ConsoleStep.reads(&resource())[0].key(),
            ReadResult {
                status,
                out: "{}".to_owned(),
            },
        );
        answers
    }

    #[test]
    fn it_is_held_with_what_to_do_until_its_object_is_there() {
        let open = ConsoleStep.diff(&resource(), &answers(AnswerStatus::Exit(ABSENT)));
        let said = "it is done by hand: open the page, with all = true, mode = compat; a plan \
                    after it proves it and goes on";
        assert_eq!(
            (
                open.refusal.as_deref(),
                open.actions.is_empty(),
                open.is_met()
            ),
            (Some(said), true, false)
        );
        let done = ConsoleStep.diff(&resource(), &answers(AnswerStatus::Exit(0)));
        assert!(done.is_met() && done.refusal.is_none());
        for status in [
            AnswerStatus::Denied,
            AnswerStatus::TimedOut,
            AnswerStatus::Exit(4),
        ] {
            let unknown = ConsoleStep.diff(&resource(), &answers(status));
            assert!(
                unknown.only_unknown() && unknown.refusal.is_none(),
                "{unknown:?}"
            );
        }
    }

    #[test]
    fn a_removal_leaves_it_and_says_so() {
        let undone = ConsoleStep.undo(&resource(), &Value::Null, &answers(AnswerStatus::Exit(0)));
        assert_eq!(
            undone.residue,
            [
                "add-on stays: what was installed in a console is uninstalled there",
                "interfaces stay"
            ]
        );
        assert!(undone.actions.is_empty());
        let gone = ConsoleStep.undo(
            &resource(),
            &Value::Null,
            &answers(AnswerStatus::Exit(ABSENT)),
        );
        assert!(gone.residue.is_empty() && gone.is_met());
    }

    #[test]
    fn bodies_are_checked() {
        let errors = |body: Value| {
            ConsoleStep
                .check(&body)
                .into_iter()
                .map(|error| error.pointer)
                .collect::<Vec<_>>()
        };
        let proof = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } });
        assert_eq!(
            errors(json!({ "name": "a", "says": "b", "proof": { "kind": "Namespace" } })),
            [""]
        );
        assert_eq!(
            errors(json!({ "name": "a", "says": "b", "proof": proof, "settings": [] })),
            ["/settings"]
        );
        assert_eq!(
            errors(json!({ "name": "a", "says": "b", "proof": proof, "keeps": [1] })),
            ["/keeps/0"]
        );
    }
}
