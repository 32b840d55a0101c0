//! `kubernetes_state`: what others write into the status of objects that are not ours to apply (an
//! `ERdmaDevice` for each node, which its controller makes). It is waited for and checked, never
//! written. Objects that are expected are named: one that is not there is a finding, because
//! absence is the only sign of a node that its controller does not support
//! (AliyunContainerService/alibabacloud-erdma-controller internal/controller/node_controller.go).
//! There is one for each kind and namespace, and more where each has a `name`: two modules may wait
//! for definitions of their own.

use super::kubernetes_object::looks::{format_names_by_problem, read_object_list};
use super::kubernetes_object::readiness::{Readiness, ReadinessCriteria};
use super::kubernetes_object::request::KubernetesRead;
use super::names::is_word;
use super::{
    Action, Attribute, DesiredResource, Hopeless, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use railwright_base::TargetKind;
use railwright_base::text::one_line;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kind.
pub struct KubernetesState;

/// The attribute.
const READY: &str = "ready";

/// Objects of one kind, in one namespace or of the whole cluster, and what they have to come to.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KubernetesStateBody {
    /// One word, for example mpi-operator.
    name: Option<String>,
    api_version: String,
    kind: String,
    namespace: Option<String>,
    /// The objects that are expected.
    names: Vec<String>,
    /// What they have to come to: conditions, fields or each.
    ready: ReadinessCriteria,
}

impl Body for KubernetesStateBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_not_empty("api_version", &self.api_version);
        errors.check_not_empty("kind", &self.kind);
        if let Some(namespace) = &self.namespace {
            errors.check_not_empty("namespace", namespace);
        }
        errors.require(
            self.name.as_ref().is_none_or(|name| is_word(name, "._-")),
            "/name",
            "`name` is one word",
            "for example mpi-operator",
        );
        errors.require(
            !self.names.is_empty(),
            "/names",
            "`names` must be a list of the objects that are expected",
            "",
        );
        self.ready.find_errors(errors);
        errors.require(
            self.ready.is_said(),
            "/ready",
            "`ready` must say what they have to come to",
            "conditions, fields or each",
        );
    }
}

impl ResourceKind for KubernetesState {
    fn name(&self) -> &'static str {
        "kubernetes_state"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(read_body::<KubernetesStateBody>(body).kind_and_group())
    }

    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        let asked = read_body::<KubernetesStateBody>(body);
        let path = [
            self.name().to_owned(),
            asked.namespace.clone().unwrap_or_else(|| "-".to_owned()),
            asked.kind_and_group(),
        ];
        Some(path.into_iter().chain(asked.name).collect())
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<KubernetesStateBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![read_body::<KubernetesStateBody>(&resource.body).read()]
    }

    /// Whose objects are waited for brings their kinds and namespaces, or waits for their
    /// definitions.
    fn may_bring(&self, _resource: &DesiredResource, _needed: &str) -> bool {
        true
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let asked = read_body::<KubernetesStateBody>(&resource.body);
        let names = &asked.names;
        let goal = format!("{} ready", names.len());
        let found = match read_object_list(&asked.read(), answers) {
            Err(reason) => Reading::Unknown(reason),
            Ok(states) => {
                for name in names {
                    let readiness = states
                        .get(name)
                        .map(|object| asked.ready.evaluate(object, &asked.kind_and_group()));
                    if !matches!(readiness, Some(Readiness::Ready)) {
                        diff.lacking.insert(name.clone());
                    }
                }
                let (found, hopeless) = compute_objects_readiness(&asked, &states, &goal);
                diff.hopeless = hopeless;
                found
            }
        };
        if !found.is_unknown() && found != Reading::is(goal.clone()) {
            let until = format!("{} of {} are ready", names.len(), asked.kind_and_group());
            diff.actions = vec![Action::Await {
                until,
                within_s: asked.ready.within_s(),
            }];
        }
        diff.attributes.insert(
            READY.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(goal), found).that_settles(),
        );
        diff
    }

    /// Nothing was written, and nothing comes back.
    fn undo(
        &self,
        _last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> ResourceDiff {
        ResourceDiff::default()
    }
}

impl KubernetesStateBody {
    fn read(&self) -> Read {
        Read::Kubernetes(KubernetesRead::States {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
        })
    }

    fn kind_and_group(&self) -> String {
        let group = self
            .api_version
            .split_once('/')
            .map_or("core", |(group, _)| group);
        format!("{}.{group}", self.kind)
    }
}

/// How the named ones stand, and why it is hopeless with the first that it is with.
fn compute_objects_readiness(
    asked: &KubernetesStateBody,
    states: &Map<String, Value>,
    goal: &str,
) -> (Reading, Option<Hopeless>) {
    let (kind, names) = (asked.kind_and_group(), &asked.names);
    let (mut open, mut first): (BTreeMap<String, Vec<&str>>, Option<Hopeless>) =
        (BTreeMap::new(), None);
    for name in names {
        let readiness = states
            .get(name)
            .map(|object| asked.ready.evaluate(object, &kind));
        let why = match readiness {
            Some(Readiness::Ready) => continue,
            Some(Readiness::Not { words, hopeless }) => {
                first = first.or(hopeless);
                words
            }
            None => NOT_THERE.to_owned(),
        };
        open.entry(why).or_default().push(name);
    }
    let count: usize = open.values().map(Vec::len).sum();
    let found = if open.is_empty() {
        Reading::is(goal)
    } else if open
        .get(NOT_THERE)
        .is_some_and(|missing| missing.len() == names.len())
    {
        Reading::is(format!("0 of {} there", names.len()))
    } else {
        Reading::is(one_line(
            &format!(
                "{} of {}; {}",
                names.len() - count,
                names.len(),
                format_names_by_problem(&open)
            ),
            600,
        ))
    };
    (found, first)
}

const NOT_THERE: &str = "not there";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes_object::request::NO_KIND;
    use crate::{AnswerStatus, ReadResult, ResourceDeclaration};
    use railwright_base::{Address, Target};
    use serde_json::json;

    fn body() -> Value {
        let each = json!([{ "list": "status.devices", "field": "status", "equals": "Ready" }]);
        json!({ "api_version": "network.alibabacloud.com/v1", "kind": "ERdmaDevice", "names": ["gpu1", "gpu2", "gpu3"], "ready": { "each": each } })
    }

    fn said(code: i32, out: &str) -> (Option<Reading>, usize) {
        let target = Target {
            kind: TargetKind::Kube,
            name: "prod".into(),
        };
        let address = Address {
            target,
            path: KubernetesState.address_path(&body()).unwrap().into(),
            attribute: None,
        };
        let declaration = ResourceDeclaration {
            kind: "kubernetes_state".to_owned(),
            body: body(),
            module: "m/x".to_owned(),
            places: Vec::new(),
        };
        let resource = DesiredResource {
            address,
            after: Vec::new(),
            declaration: declaration.into(),
        };
        let mut answers = ReadResults::default();
        answers.insert(
            KubernetesState.reads(&resource)[0].key(),
            ReadResult {
                status: AnswerStatus::Exit(code),
                out: out.to_owned(),
            },
        );
        let diff = KubernetesState.diff(&resource, &answers);
        (
            diff.attributes[READY].actual.get(Plane::Running).cloned(),
            diff.actions.len(),
        )
    }

    #[test]
    fn objects_of_others_are_expected_by_name() {
        let device = |status: &str, message: &str| json!({ "status": { "devices": [{ "status": status, "message": message }] } });
        let all = json!({ "gpu1": device("Ready", ""), "gpu2": device("Ready", ""), "gpu3": device("Ready", ""), "gpu9": device("Failed", "") });
        assert_eq!(said(0, &all.to_string()), (Some(Reading::is("3 ready")), 0));
        let some = json!({ "gpu1": device("Ready", ""), "gpu2": device("Pending", "attaching") });
        let words = "1 of 3; gpu2: 0 of 1 in status.devices are Ready, one is Pending attaching; \
                     gpu3: not there";
        assert_eq!(said(0, &some.to_string()), (Some(Reading::is(words)), 1));
        assert_eq!(
            (said(0, "{}"), said(NO_KIND, "")),
            (
                (Some(Reading::is("0 of 3 there")), 1),
                (Some(Reading::is("0 of 3 there")), 1)
            )
        );
        assert!(matches!(said(4, "x"), (Some(Reading::Unknown(_)), 0)));
    }

    #[test]
    fn what_they_have_to_come_to_must_be_said() {
        assert_eq!(KubernetesState.check(&body()), []);
        let errors = |field: &str, value: Value| {
            let mut body = body();
            body[field] = value;
            KubernetesState
                .check(&body)
                .into_iter()
                .map(|error| error.pointer)
                .collect::<Vec<_>>()
        };
        assert_eq!(errors("ready", json!({ "nodes": 3 })), ["/ready"]);
        assert_eq!(errors("ready", json!(false)), ["/ready"]);
        assert_eq!(errors("names", json!([])), ["/names"]);
        assert_eq!(errors("kind", json!("")), ["/kind"]);
    }
}
