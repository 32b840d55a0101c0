//! `node_probe`: what a program says of a node, run in the pod of an agent that is there already (a
//! device plugin, a driver's installer). It is for nodes that nobody logs in to. It is waited for
//! and checked, never written: what the output has to hold is data of the resource. No pod is
//! started for it; where the agent has none, or nobody may run programs in it, the state is
//! unknown.

mod check;
#[cfg(test)]
mod tests;

use self::check::{NodeProbeBody, NodeProbeVerdict, evaluate_probe_output};
use super::kubernetes_object::access::{ApiVerb, Right};
use super::kubernetes_object::exec::{Exec, PodExecResult};
use super::kubernetes_object::looks::format_names_by_problem;
use super::kubernetes_object::readiness::WITHIN_S;
use super::kubernetes_object::request::{ABSENT, KubernetesRead};
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::TargetKind;
use railwright_base::text::{format_count, one_line};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind.
pub struct NodeProbe;

/// The attribute.
const SAYS: &str = "says";

impl ResourceKind for NodeProbe {
    fn name(&self) -> &'static str {
        "node_probe"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<NodeProbeBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<NodeProbeBody>(&resource.body);
        let nodes = body.nodes.iter();
        nodes.map(|node| build_exec_read(&body, node)).collect()
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let body = read_body::<NodeProbeBody>(&resource.body);
        let goal = format!("{} in sync", format_count(body.nodes.len(), "node"));
        let mut found = NodeProbeFindings::default();
        for node in &body.nodes {
            found.note(node, &body, answers);
        }
        if found.may_come() {
            let words = one_line(&body.argv.join(" "), 80);
            let within_s = body.within_s.unwrap_or(WITHIN_S);
            diff.actions = vec![Action::Await {
                until: format!("{goal}, by `{words}` on each"),
                within_s,
            }];
        }
        let reading = found.reading(&goal, body.nodes.len());
        diff.attributes.insert(
            SAYS.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(goal), reading).that_settles(),
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

    /// A WebSocket begins with a GET, so its verb is `get`; from 1.35 on the server asks for
    /// `create` besides, as it always did of `kubectl exec` (kubernetes/kubernetes#134577,
    /// `AuthorizePodWebsocketUpgradeCreatePermission`). No pod can be named: a DaemonSet's have
    /// names of chance.
    fn rights(&self, resource: &DesiredResource) -> Vec<(Right, String)> {
        let body = read_body::<NodeProbeBody>(&resource.body);
        let reason = format!(
            "`{}` in the pods of DaemonSet {}",
            one_line(&body.argv.join(" "), 80),
            body.pod.daemon_set
        );
        let mut rights = Vec::new();
        for (plural, verb) in [
            ("pods", ApiVerb::List),
            (EXEC, ApiVerb::Get),
            (EXEC, ApiVerb::Create),
        ] {
            let right = Right {
                namespace: Some(body.pod.namespace.clone()),
                group: String::new(),
                resource: plural.to_owned(),
                name: None,
                verb,
            };
            rights.push((right, reason.clone()));
        }
        rights
    }
}

/// What running a program in a pod is called in a rule.
pub const EXEC: &str = "pods/exec";

fn build_exec_read(body: &NodeProbeBody, node: &str) -> Read {
    let pod = body.pod.clone();
    let exec = Exec {
        node: node.to_owned(),
        namespace: pod.namespace,
        daemon_set: pod.daemon_set,
        selector: pod.selector,
        container: pod.container,
        argv: body.argv.clone(),
    };
    Read::Kubernetes(KubernetesRead::Exec(Box::new(exec)))
}

/// What is not as desired, by what it is: the nodes.
#[derive(Default)]
struct NodeProbeFindings<'a> {
    wrong: BTreeMap<String, Vec<&'a str>>,
    /// Time may bring the agent's pod.
    to_come: BTreeMap<String, Vec<&'a str>>,
    unknown: BTreeMap<String, Vec<&'a str>>,
}

impl<'a> NodeProbeFindings<'a> {
    fn note(&mut self, node: &'a str, body: &NodeProbeBody, answers: &ReadResults) {
        let (of, why) = match answers.output(&build_exec_read(body, node)) {
            Ok((0, out)) => match serde_json::from_str::<PodExecResult>(out) {
                Err(_) => (
                    &mut self.unknown,
                    "what came back is no answer of a program".to_owned(),
                ),
                Ok(ran) => match evaluate_probe_output(body, node, &ran) {
                    NodeProbeVerdict::InSync => return,
                    NodeProbeVerdict::Wrong(why) => (&mut self.wrong, why),
                    NodeProbeVerdict::Unknown(why) => (&mut self.unknown, why),
                },
            },
            Ok((ABSENT, why)) => (&mut self.to_come, one_line(why, 300)),
            Ok((_, why)) => (&mut self.unknown, one_line(why, 300)),
            Err(why) => (&mut self.unknown, why.to_string()),
        };
        of.entry(why).or_default().push(node);
    }

    /// Waiting helps against what is wrong, and against an agent that is not there yet; not against
    /// a missing right.
    fn may_come(&self) -> bool {
        !self.wrong.is_empty() || !self.to_come.is_empty()
    }

    fn reading(self, goal: &str, all: usize) -> Reading {
        let mut unknown = self.unknown;
        unknown.extend(self.to_come);
        match (self.wrong.is_empty(), unknown.is_empty()) {
            (true, true) => Reading::is(goal),
            (true, false) => {
                Reading::Unknown(one_line(&format_names_by_problem(&unknown), 900).into())
            }
            (false, _) => {
                let more = if unknown.is_empty() {
                    String::new()
                } else {
                    format!("; unknown: {}", format_names_by_problem(&unknown))
                };
                let problems = self.wrong.values().chain(unknown.values());
                let good = all - problems.map(Vec::len).sum::<usize>();
                Reading::is(one_line(
                    &format!(
                        "{good} of {} in sync; {}{more}",
                        format_count(all, "node"),
                        format_names_by_problem(&self.wrong)
                    ),
                    900,
                ))
            }
        }
    }
}
