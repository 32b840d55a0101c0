//! Right before the host of an emptied node is disturbed, its pods are looked at once more. A cordon holds for the scheduler alone: a pod that
//! names its node itself is started there all the same (kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node, "nodeName").

use super::change::Finish;
use super::cluster_node::{Halt, NodeStep};
use super::drain::{Kept, left, look};
use super::shared::Shared;
use crate::base::text::one_line;
use crate::base::{Diagnostic, Target};
use crate::plan::NodeKind;
use crate::plan::by_hand::is_by_hand;
use crate::state::Outcome;

/// Goes on only while the node that the plan emptied for this step is empty; how the step is over otherwise. Nothing of it was begun.
pub(super) async fn confirm_empty(shared: &Shared, n: usize) -> Result<(), Box<Finish>> {
    let Some((cluster, node)) = emptied_node(shared, n) else { return Ok(()) };
    let mut step = NodeStep::new(shared, n, cluster, node);
    let looked = match step.connect().await {
        Err(Halt::Over(finish)) if matches!(finish.outcome, Outcome::LockLost { .. }) => return Err(finish),
        Err(_) => Err("the cluster is not reached".to_owned()),
        Ok(()) => look(&step).await,
    };
    let words = match looked {
        Ok(looked) if looked.gone || (looked.open.is_empty() && !looked.takes_pods) => return Ok(()),
        Ok(looked) if looked.open.is_empty() => "somebody uncordoned it, so pods are put on it again".to_owned(),
        Ok(looked) => left(&looked.open, &Kept::new()),
        Err(reason) => format!("whether it is still empty is not known: {reason}"),
    };
    let reason = format!("the node is not empty any more: {}", one_line(&words, 200));
    Err(Box::new(Finish::told(Outcome::Failed { reason }, occupied(&step, &words))))
}

/// The node that was emptied for this step, with its cluster.
fn emptied_node(shared: &Shared, n: usize) -> Option<(&Target, &str)> {
    let (node, policy) = (&shared.plan.nodes[n], shared.plan.rollout.drain.as_ref()?);
    if node.disruption < policy.from || is_by_hand(node) {
        return None;
    }
    shared.on_target(node.target.as_ref()).iter().find_map(|other| match &shared.plan.nodes[*other].kind {
        NodeKind::Drain { cluster, node } => Some((cluster, node.as_str())),
        _ => None,
    })
}

fn occupied(step: &NodeStep<'_>, words: &str) -> Diagnostic {
    let node = step.node;
    Diagnostic::error("RW0729", format!("the node {node} is not empty any more: {}", one_line(words, 900)))
        .on(step.id.clone())
        .effect("its host would be disturbed with these pods on it, so nothing more was begun there; a pod that names its node itself passes a cordon")
        .state("steps before this one are done; the node stays cordoned, and its host counts as out of service")
        .next(format!("kubectl get pods -A --field-selector spec.nodeName={node} -o wide; keep whoever makes them from the node"))
        .next(format!("{} empties it again and goes on", step.shared.next.resume()))
}
