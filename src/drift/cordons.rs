//! Nodes of a Kubernetes cluster that a run of ours took out of service and has not given back. No
//! resource is about them; a plan gives them back, so they are reported with what a plan would
//! change.

use super::compare::in_order;
use super::finding::{DriftFinding, DriftReason, DriftReport};
use railwright_base::text::one_line;
use railwright_base::{Address, Target};
use railwright_plan::{ClusterNodes, UnknownFinding};
use railwright_resource::Provenance;
use railwright_resource::kubernetes_object::nodes::{Cordon, read_cluster_nodes};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{Plane, Read, ReadResults, Reading};
use std::sync::Arc;

/// What the attribute is called.
const SCHEDULABLE: &str = "schedulable";

/// Adds what the cluster reports of the nodes of the spec's hosts. A recording of earlier, that was
/// not asked for them, adds nothing.
pub fn add_cordon_findings(report: &mut DriftReport, of: &ClusterNodes, answers: &ReadResults) {
    if answers
        .get(&Read::Kubernetes(KubernetesRead::Nodes))
        .is_none()
    {
        return;
    }
    if let Err(place) = report.targets.binary_search(&of.cluster) {
        report.targets.insert(place, of.cluster.clone());
    }
    let known = match read_cluster_nodes(answers) {
        Ok(known) => known,
        Err(reason) => {
            let reason = format!("which nodes a run left cordoned: {reason}");
            return report.not_compared.push(UnknownFinding::new(
                new_node_address(&of.cluster, "*").to_string(),
                reason,
            ));
        }
    };
    for name in of.by_host.values() {
        let Some(cordon) = known
            .get(name)
            .and_then(|node| node.left_cordoned(&of.spec))
        else {
            continue;
        };
        let address = new_node_address(&of.cluster, name);
        if !report.compared.contains(&address) {
            report.compared.push(address.clone());
            report.resources += 1;
        }
        report.findings.push(new_cordon_finding(address, &cordon));
    }
    in_order(&mut report.findings);
}

fn new_node_address(cluster: &Target, node: &str) -> Address {
    Address {
        target: cluster.clone(),
        path: Arc::new(["Node", "-", node].map(str::to_owned)),
        attribute: None,
    }
}

fn new_cordon_finding(address: Address, cordon: &Cordon) -> DriftFinding {
    let run = if cordon.run.is_empty() {
        "an earlier run".to_owned()
    } else {
        format!("run {}", one_line(&cordon.run, 60))
    };
    DriftFinding {
        address: address.with_attribute(SCHEDULABLE),
        attribute: SCHEDULABLE.to_owned(),
        plane: Plane::Running,
        desired: Reading::is(true),
        // As that run left it.
        last_applied: Some(Reading::is(false)),
        actual: Reading::is(false),
        by: Some(Provenance::Note(format!("{run} cordoned it"))),
        reason: DriftReason::NotGivenBack,
        places: Vec::new(),
        seen: None,
        accepted: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::{AnswerStatus, ReadResult};
    use serde_json::json;

    fn noted(status: AnswerStatus, out: &str) -> DriftReport {
        let mut answers = ReadResults::default();
        answers.insert(
            Read::Kubernetes(KubernetesRead::Nodes).key(),
            ReadResult {
                status,
                out: out.to_owned(),
            },
        );
        let mut report = DriftReport {
            targets: vec![Target::host("n1"), Target::host("n2")],
            ..DriftReport::default()
        };
        add_cordon_findings(&mut report, &of(), &answers);
        report
    }

    fn of() -> ClusterNodes {
        let by_host = ["n1", "n2", "n3"]
            .map(|name| (Target::host(name), format!("cn-{name}")))
            .into();
        ClusterNodes {
            cluster: Target::kube("prod"),
            spec: "train".to_owned(),
            by_host,
        }
    }

    #[test]
    fn a_node_that_a_run_of_ours_left_is_told_with_the_run() {
        let node = |schedulable: bool, mark: Option<&str>| json!({ "ready": true, "schedulable": schedulable, "cordoned": mark, "gives": {} });
        let mark = Some("{\"run\":\"r0007\"}");
        let all = json!({ "cn-n1": node(false, mark), "cn-n2": node(false, None), "cn-n3": node(true, mark), "other": node(false, mark) });
        let report = noted(AnswerStatus::Exit(0), &all.to_string());
        let [found] = &report.findings[..] else {
            panic!("{:?}", report.findings)
        };
        assert_eq!(
            found.address.to_string(),
            "kube/prod/Node/-/cn-n1#schedulable"
        );
        assert_eq!(
            (found.reason, found.by.as_ref().map(Provenance::words)),
            (DriftReason::NotGivenBack, Some("run r0007 cordoned it"))
        );
        assert!(report.has_drift() && report.targets.contains(&Target::kube("prod")));
        assert_eq!(
            (report.resources, report.compared[0].to_string().as_str()),
            (1, "kube/prod/Node/-/cn-n1")
        );
        let odd = json!({ "cn-n1": node(false, Some("not ours to read")) });
        assert_eq!(
            noted(AnswerStatus::Exit(0), &odd.to_string()).findings[0]
                .by
                .as_ref()
                .map(Provenance::words),
            Some("an earlier run cordoned it")
        );
    }

    #[test]
    fn what_the_cluster_does_not_say_is_not_compared_and_what_it_was_not_asked_is_no_matter() {
        let report = noted(AnswerStatus::TimedOut, "");
        assert_eq!(
            report.not_compared[0].reason,
            "which nodes a run left cordoned: the read ran past its time limit"
        );
        assert!(report.is_incomplete() && !report.has_drift());
        let mut silent = DriftReport::default();
        add_cordon_findings(&mut silent, &of(), &ReadResults::default());
        assert_eq!(silent, DriftReport::default());
    }
}
