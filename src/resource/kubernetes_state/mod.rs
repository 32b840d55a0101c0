//! `kubernetes_state`: what others write into the status of objects that are not ours to apply (an
//! `ERdmaDevice` for each node, which its controller makes). It is waited for and checked, never
//! written. Objects that are expected are named: one that is not there is a finding, because
//! absence is the only sign of a node that its controller does not support
//! (AliyunContainerService/alibabacloud-erdma-controller internal/controller/node_controller.go).
//! There is one for each kind and namespace, and more where each has a `name`: two modules may wait
//! for definitions of their own.

use super::body::{is_word, read_text_field};
use super::fields::Fields;
use super::kubernetes_object::looks::{format_names_by_problem, read_object_list};
use super::kubernetes_object::readiness::{self, Readiness, ReadinessCriteria};
use super::kubernetes_object::request::KubernetesRead;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Hopeless, Plane, Read, ReadResults,
    Reading, ResourceKind,
};
use railwright_base::TargetKind;
use railwright_base::text::one_line;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kind.
pub struct KubernetesState;

/// The attribute.
const READY: &str = "ready";

impl ResourceKind for KubernetesState {
    fn name(&self) -> &'static str {
        "kubernetes_state"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(parse_awaited_objects(body)?.kind_and_group())
    }

    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        let asked = parse_awaited_objects(body)?;
        let name = read_text_field(body, "name").map(str::to_owned);
        let path = [
            self.name().to_owned(),
            asked.namespace.clone().unwrap_or_else(|| "-".to_owned()),
            asked.kind_and_group(),
        ];
        Some(path.into_iter().chain(name).collect())
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(
            body,
            &["name", "api_version", "kind", "namespace", "names", "ready"],
        );
        for field in ["api_version", "kind"] {
            fields.text(field, true);
        }
        fields.text("namespace", false);
        if fields
            .text("name", false)
            .is_some_and(|name| !is_word(name, "._-"))
        {
            fields.error(
                "/name",
                "`name` is one word",
                Some("for example mpi-operator".to_owned()),
            );
        }
        let names = fields.get("names").and_then(Value::as_array);
        if !names.is_some_and(|names| !names.is_empty() && names.iter().all(Value::is_string)) {
            fields.error(
                "/names",
                "`names` must be a list of the objects that are expected",
                None,
            );
        }
        let wrong = readiness::check_ready_field(body);
        if wrong.is_empty() && !parse_ready_criteria(body).is_some_and(|ready| ready.is_said()) {
            fields.error(
                "/ready",
                "`ready` must say what they have to come to",
                Some("conditions, fields or each".to_owned()),
            );
        }
        fields.finish().into_iter().chain(wrong).collect()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        parse_awaited_objects(&wish.body)
            .map(|asked| asked.read())
            .into_iter()
            .collect()
    }

    /// Whose objects are waited for brings their kinds and namespaces, or waits for their
    /// definitions.
    fn may_bring(&self, _wish: &DesiredResource, _needed: &str) -> bool {
        true
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let (Some(asked), Some(ready)) = (
            parse_awaited_objects(&wish.body),
            parse_ready_criteria(&wish.body),
        ) else {
            return assessment;
        };
        let names: Vec<&str> = wish
            .body
            .get("names")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let goal = format!("{} ready", names.len());
        let found = match read_object_list(&asked.read(), answers) {
            Err(reason) => Reading::Unknown(reason),
            Ok(states) => {
                for name in &names {
                    let readiness = states
                        .get(*name)
                        .map(|object| ready.judge(object, &asked.kind_and_group()));
                    if !matches!(readiness, Some(Readiness::Ready)) {
                        assessment.lacking.insert((*name).to_owned());
                    }
                }
                let (found, hopeless) =
                    compute_objects_readiness(&asked, &ready, &names, &states, &goal);
                assessment.hopeless = hopeless;
                found
            }
        };
        if !found.is_unknown() && found != Reading::is(goal.clone()) {
            let until = format!("{} of {} are ready", names.len(), asked.kind_and_group());
            assessment.actions = vec![Action::Await {
                until,
                within_s: ready.within_s(),
            }];
        }
        assessment.attributes.insert(
            READY.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(goal), found).that_settles(),
        );
        assessment
    }

    /// Nothing was written, and nothing comes back.
    fn undo(
        &self,
        _last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> Assessment {
        Assessment::default()
    }
}

/// Objects of one kind, in one namespace or of the whole cluster.
struct AwaitedObjects {
    api_version: String,
    kind: String,
    namespace: Option<String>,
}

fn parse_awaited_objects(body: &Value) -> Option<AwaitedObjects> {
    Some(AwaitedObjects {
        api_version: read_text_field(body, "api_version")?.to_owned(),
        kind: read_text_field(body, "kind")?.to_owned(),
        namespace: read_text_field(body, "namespace").map(str::to_owned),
    })
}

fn parse_ready_criteria(body: &Value) -> Option<ReadinessCriteria> {
    readiness::parse_readiness_criteria(body, "")
}

impl AwaitedObjects {
    fn read(&self) -> Read {
        let AwaitedObjects {
            api_version,
            kind,
            namespace,
        } = self;
        Read::Kubernetes(KubernetesRead::States {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
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
    asked: &AwaitedObjects,
    ready: &ReadinessCriteria,
    names: &[&str],
    states: &Map<String, Value>,
    goal: &str,
) -> (Reading, Option<Hopeless>) {
    let kind = asked.kind_and_group();
    let (mut open, mut first): (BTreeMap<String, Vec<&str>>, Option<Hopeless>) =
        (BTreeMap::new(), None);
    for name in names {
        let why = match states.get(*name).map(|object| ready.judge(object, &kind)) {
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
    use crate::{AnswerStatus, ReadResult, Want};
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
        let want = Want {
            kind: "kubernetes_state".to_owned(),
            body: body(),
            module: "m/x".to_owned(),
            places: Vec::new(),
        };
        let wish = DesiredResource {
            address,
            after: Vec::new(),
            want: want.into(),
        };
        let mut answers = ReadResults::default();
        answers.insert(
            KubernetesState.reads(&wish)[0].key(),
            ReadResult {
                status: AnswerStatus::Exit(code),
                out: out.to_owned(),
            },
        );
        let assessment = KubernetesState.assess(&wish, &answers);
        (
            assessment.attributes[READY]
                .found
                .get(Plane::Running)
                .cloned(),
            assessment.actions.len(),
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
