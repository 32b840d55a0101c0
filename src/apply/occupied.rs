//! Right before the host of an emptied node is disturbed, its pods are looked at once more. A
//! cordon holds for the scheduler alone: a pod that names its node itself is started there all the
//! same (kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node, "nodeName"). A host that
//! was no node when the plan was made is looked at as well: it may have joined since, and nothing
//! emptied it.

use super::change::Finish;
use super::cluster_node::{Halt, NodeStep};
use super::drain::{Kept, describe_remaining_pods, observe_node_pods};
use super::shared::RunContext;
use super::trouble;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Target};
use railwright_plan::{NodeKind, NotEmptied};
use railwright_resource::Read;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_state::NodeOutcome;

/// Goes on only while the node that the plan emptied for this step is empty, and no host that it
/// did not empty has become a node with pods; how the step is over otherwise. Nothing of it was
/// begun.
pub(super) async fn confirm_empty(shared: &RunContext, n: usize) -> Result<(), Box<Finish>> {
    let Some((cluster, node)) = emptied_node(shared, n) else {
        return confirm_no_pods(shared, n).await;
    };
    let mut step = NodeStep::new(shared, n, cluster, node);
    let looked = match step.connect().await {
        Err(Halt::Over(finish)) if matches!(finish.outcome, NodeOutcome::LockLost { .. }) => {
            return Err(finish);
        }
        Err(_) => Err("the cluster is not reached".into()),
        Ok(()) => observe_node_pods(&step).await,
    };
    let words = match looked {
        Ok(looked) if looked.gone || (looked.open.is_empty() && !looked.takes_pods) => {
            return Ok(());
        }
        Ok(looked) if looked.open.is_empty() => {
            "somebody uncordoned it, so pods are put on it again".to_owned()
        }
        Ok(looked) => describe_remaining_pods(&looked.open, &Kept::new()),
        Err(reason) => format!("whether it is still empty is not known: {reason}"),
    };
    let reason = format!("the node is not empty any more: {}", one_line(&words, 200));
    Err(Box::new(Finish::with_problem(
        NodeOutcome::Failed { reason },
        report_occupied_node(&step, &words),
    )))
}

async fn confirm_no_pods(shared: &RunContext, n: usize) -> Result<(), Box<Finish>> {
    let step = &shared.plan.nodes[n];
    let of_host = shared
        .plan
        .not_emptied
        .iter()
        .find(|one| step.target.as_ref() == Some(&one.host) && needs_empty_node(shared, n));
    let Some(NotEmptied { cluster, node, .. }) = of_host else {
        return Ok(());
    };
    // What the cluster does not say is as it was in the plan.
    let Some(pods) = pods_on(shared, cluster, node).await else {
        return Ok(());
    };
    let reason = format!(
        "it was no node of {cluster}, and is {node} now: {}",
        one_line(&pods, 200)
    );
    let problem = trouble::report_stale_target(&step.id, &reason, &shared.next);
    Err(Box::new(Finish::with_problem(
        NodeOutcome::Stale { reason },
        problem,
    )))
}

/// The pods that would have to go from a node, in words.
async fn pods_on(shared: &RunContext, cluster: &Target, node: &str) -> Option<String> {
    let read = Read::Kubernetes(KubernetesRead::PodsOn(node.to_owned()));
    let answers = shared.read_once(&cluster.name, &read).await?;
    let (_, text) = answers.output(&read).ok().filter(|(code, _)| *code == 0)?;
    let mut pods: Vec<PodNow> = serde_json::from_str(text).ok()?;
    pods.retain(|pod| !pod.is_exempt_from_drain());
    (!pods.is_empty()).then(|| describe_remaining_pods(&pods, &Kept::new()))
}

/// Whether a step disturbs so much that its host's node has to be empty.
fn needs_empty_node(shared: &RunContext, n: usize) -> bool {
    let policy = shared.plan.rollout.drain.as_ref();
    policy.is_some_and(|policy| policy.is_needed_for(&shared.plan.nodes[n]))
}

/// The node that was emptied for this step, with its cluster.
fn emptied_node(shared: &RunContext, n: usize) -> Option<(&Target, &str)> {
    if !needs_empty_node(shared, n) {
        return None;
    }
    let node = &shared.plan.nodes[n];
    shared
        .on_target(node.target.as_ref())
        .iter()
        .find_map(|other| match &shared.plan.nodes[*other].kind {
            NodeKind::Drain { cluster, node } => Some((cluster, node.as_str())),
            _ => None,
        })
}

fn report_occupied_node(step: &NodeStep<'_>, words: &str) -> Diagnostic {
    let node = step.node;
    Diagnostic::error(
        "RW0729",
        format!(
            "the node {node} is not empty any more: {}",
            one_line(words, 900)
        ),
    )
    .on(step.id.clone())
    .effect(
        "its host would be disturbed with these pods on it, so nothing more was begun there; a pod \
         that names its node itself passes a cordon",
    )
    .state(
        "steps before this one are done; the node stays cordoned, and its host counts as out of \
         service",
    )
    .next(format!(
        "kubectl get pods -A --field-selector spec.nodeName={node} -o wide; keep whoever makes \
         them from the node"
    ))
    .next(format!(
        "{} empties it again and goes on",
        step.shared.next.resume()
    ))
}
