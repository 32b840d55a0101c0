//! `console_step`: what is installed in a cloud's console and nowhere else, such as an add-on of a
//! managed cluster. It is proven by an object that it makes, never done, and work for a person
//! where that is missing: the plan holds it and says what to do, and a plan after that proves it.

use super::fields::Fields;
use super::kubernetes_object::looks::{LiveObject, looked_at};
use super::kubernetes_object::manifest;
use super::kubernetes_object::request::{KubernetesRead, ObjectName};
use super::{
    Assessment, Attribute, BodyError, DesiredResource, Plane, Read, ReadResults, Reading,
    ResourceKind,
};
use crate::body::read_text_field;
use railwright_base::TargetKind;
use serde_json::Value;

/// The kind.
pub struct ConsoleStep;

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

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &["name", "says", "settings", "proof", "keeps"]);
        fields.text("name", true);
        fields.text("says", true);
        if parse_proof_object(body).is_none() {
            let help = "an object that the step makes: { apiVersion, kind, metadata: { name } }";
            fields.error(
                "",
                "`proof` is missing, or names no object",
                Some(help.to_owned()),
            );
        }
        if fields
            .get("settings")
            .is_some_and(|settings| !settings.is_object())
        {
            fields.error("/settings", "`settings` must be a map", None);
        }
        if fields.get("keeps").is_some_and(|keeps| {
            !keeps
                .as_array()
                .is_some_and(|all| all.iter().all(Value::is_string))
        }) {
            fields.error("/keeps", "`keeps` is a list of texts", None);
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        build_proof_read(wish).into_iter().collect()
    }

    /// What is done by hand is an add-on as a rule, with kinds and a namespace of its own.
    fn may_bring(&self, _wish: &DesiredResource, _needed: &str) -> bool {
        true
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let found = decode_step_presence(wish, answers);
        if found == Reading::Absent {
            assessment.refusal = Some(by_hand(wish));
        }
        insert_step_attribute(&mut assessment, Reading::is("installed"), found);
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        let mut assessment = Assessment {
            before: before.clone(),
            ..Assessment::default()
        };
        match decode_step_presence(last_applied, answers) {
            Reading::Absent => {
                insert_step_attribute(&mut assessment, Reading::Absent, Reading::Absent)
            }
            unknown @ Reading::Unknown(_) => {
                insert_step_attribute(&mut assessment, Reading::Absent, unknown)
            }
            _ => {
                let name = last_applied.text("name").unwrap_or_default();
                assessment.residue.push(format!(
                    "{name} stays: what was installed in a console is uninstalled there"
                ));
                assessment
                    .residue
                    .extend(list_declared_residue(&last_applied.body));
            }
        }
        assessment
    }
}

fn parse_proof_object(body: &Value) -> Option<ObjectName> {
    manifest::parse_object_name(body.get("proof")?)
}

fn list_declared_residue(body: &Value) -> impl Iterator<Item = String> {
    body.get("keeps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
}

fn build_proof_read(wish: &DesiredResource) -> Option<Read> {
    Some(Read::Kubernetes(KubernetesRead::Object(
        parse_proof_object(&wish.body)?,
    )))
}

fn decode_step_presence(wish: &DesiredResource, answers: &ReadResults) -> Reading {
    let Some(read) = build_proof_read(wish) else {
        return Reading::Unknown("no object proves it".into());
    };
    match looked_at(&read, answers) {
        LiveObject::Is(_) => Reading::is("installed"),
        LiveObject::Absent => Reading::Absent,
        LiveObject::Unknown(reason) => Reading::Unknown(reason),
    }
}

fn insert_step_attribute(assessment: &mut Assessment, wanted: Reading, found: Reading) {
    assessment.attributes.insert(
        "step".to_owned(),
        Attribute::in_plane(Plane::Persisted, wanted, found),
    );
}

/// What a person has to do, with every setting as the spec has it.
fn by_hand(wish: &DesiredResource) -> String {
    let says = wish.text("says").unwrap_or_default();
    let mut settings = Vec::new();
    if let Some(Value::Object(map)) = wish.body.get("settings") {
        for (name, value) in map {
            settings.push(match value {
                Value::String(text) => format!("{name} = {text}"),
                value => format!("{name} = {value}"),
            });
        }
    }
    let with = if settings.is_empty() {
        String::new()
    } else {
        format!(", with {}", settings.join(", "))
    };
    format!("it is done by hand: {says}{with}; a plan after it proves it and goes on")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes_object::request::ABSENT;
    use crate::{AnswerStatus, ReadResult};
    use serde_json::json;

    fn wish() -> DesiredResource {
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
            build_proof_read(&wish()).unwrap().key(),
            ReadResult {
                status,
                out: "{}".to_owned(),
            },
        );
        answers
    }

    #[test]
    fn it_is_held_with_what_to_do_until_its_object_is_there() {
        let open = ConsoleStep.assess(&wish(), &answers(AnswerStatus::Exit(ABSENT)));
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
        let done = ConsoleStep.assess(&wish(), &answers(AnswerStatus::Exit(0)));
        assert!(done.is_met() && done.refusal.is_none());
        for status in [
            AnswerStatus::Denied,
            AnswerStatus::TimedOut,
            AnswerStatus::Exit(4),
        ] {
            let unknown = ConsoleStep.assess(&wish(), &answers(status));
            assert!(
                unknown.only_unknown() && unknown.refusal.is_none(),
                "{unknown:?}"
            );
        }
    }

    #[test]
    fn a_removal_leaves_it_and_says_so() {
        let undone = ConsoleStep.undo(&wish(), &Value::Null, &answers(AnswerStatus::Exit(0)));
        assert_eq!(
            undone.residue,
            [
                "add-on stays: what was installed in a console is uninstalled there",
                "interfaces stay"
            ]
        );
        assert!(undone.actions.is_empty());
        let gone = ConsoleStep.undo(&wish(), &Value::Null, &answers(AnswerStatus::Exit(ABSENT)));
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
            errors(
                json!({ "name": "a", "says": "b", "proof": proof, "settings": [], "keeps": [1] })
            ),
            ["/settings", "/keeps"]
        );
    }
}
