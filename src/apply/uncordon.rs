//! Gives a node back to its cluster once its host has passed a gate: when it is Ready and gives
//! what it gave when we cordoned it, at two looks in a row. A node that somebody else cordoned, or
//! gave back meanwhile, is left as it is.

use super::change::Finish;
use super::cluster_node::{Halt, NodeStep, halt_with_problem};
use super::signal::GIVEN_UP;
use super::trouble::NextCommands;
use railwright_base::text::{format_duration, one_line};
use railwright_base::{Diagnostic, Target, nodeset};
use railwright_knowledge::spec::rollout::DRAIN_DEFAULT_S;
use railwright_plan::{NodeKind, PlanNode};
use railwright_resource::Action;
use railwright_resource::kubernetes_object::nodes::{Cordon, NodeNow};
use railwright_state::NodeOutcome;
use railwright_state::journal_writer::JournalError;
use railwright_system::clock;
use std::time::Duration;

/// A device plugin that registers again first gives nothing, then too little
/// (kubernetes/kubernetes: pkg/kubelet/cm/devicemanager/manager.go, `GetCapacity`).
const STEADY_LOOKS: u32 = 2;

/// Gives back the node of the step with this number.
pub(super) async fn uncordon_node(mut step: NodeStep<'_>) -> Result<Finish, JournalError> {
    let finish = match given_back(&mut step).await {
        Ok(changed) => Finish::of(NodeOutcome::Done { changed }),
        Err(Halt::Journal(broken)) => return Err(broken),
        Err(Halt::Over(finish)) => *finish,
    };
    step.finish(&finish).await;
    Ok(finish)
}

async fn given_back(step: &mut NodeStep<'_>) -> Result<bool, Halt> {
    step.connect().await?;
    if !wait_until_ready(step).await? {
        return Ok(false);
    }
    step.intend().await?;
    step.perform(Action::UncordonNode {
        node: step.node.to_owned(),
    })
    .await
    .map_err(|reason| step.unreadable(&reason))?;
    match step.now().await {
        Ok(Some(now)) if now.cordoned.is_none() => Ok(true),
        Ok(_) => {
            let why = "it is cordoned still, although the API server took the change";
            Err(step.unreadable(&why.into()))
        }
        Err(reason) => Err(step.unreadable(&reason)),
    }
}

/// Waits until the node gives again what it gave, as long as a drain may take. False where it is
/// given back already.
async fn wait_until_ready(step: &mut NodeStep<'_>) -> Result<bool, Halt> {
    let drain = step.shared.plan.rollout.drain.as_ref();
    let limit_s = drain.map_or(DRAIN_DEFAULT_S, |drain| drain.timeout_s);
    let end = clock::Deadline::after(Duration::from_secs(limit_s.into()));
    let (mut said, mut good, mut gone) = (String::new(), 0, 0);
    loop {
        let now = step.now().await;
        gone = if matches!(now, Ok(None)) { gone + 1 } else { 0 };
        if gone >= STEADY_LOOKS {
            let problem = gone_from(step.node, &step.id);
            return Err(leave_alone(problem));
        }
        let words = match now {
            Err(reason) => {
                let _ = step.connect().await;
                Some(format!("the cluster does not say: {reason}"))
            }
            Ok(None) => Some("no node of this name is in the cluster".to_owned()),
            Ok(Some(now)) => match check_node_readiness(&now, &step.shared.plan.cluster) {
                NodeReadiness::GivenBack => return Ok(false),
                NodeReadiness::CordonedByOthers => {
                    return Err(leave_alone(left_to_others(step.node, &step.id)));
                }
                NodeReadiness::Lacks(words) => Some(words),
                NodeReadiness::Ready => None,
            },
        };
        good = if words.is_none() { good + 1 } else { 0 };
        if good >= STEADY_LOOKS {
            return Ok(true);
        }
        let words =
            words.unwrap_or_else(|| "it gives again what it gave; looked at once more".to_owned());
        if end.left().is_zero() {
            return Err(report_timeout(step, &words, limit_s.into()));
        }
        if step.is_interrupted() {
            return Err(report_interruption(step, &words));
        }
        step.tell(&words, &mut said);
        step.pause().await;
    }
}

/// Whether a node of the cluster can be given back.
enum NodeReadiness {
    /// Pods are put on it already, and it bears no mark of ours.
    GivenBack,
    /// It is cordoned, and not by us.
    CordonedByOthers,
    /// What keeps it from being given back, in words.
    Lacks(String),
    /// It gives what it gave when we cordoned it.
    Ready,
}

fn check_node_readiness(now: &NodeNow, cluster: &str) -> NodeReadiness {
    let cordon = now.cordoned.as_deref().map(Cordon::read);
    let lacks = match cordon {
        None if now.schedulable && now.ready => return NodeReadiness::GivenBack,
        None if now.schedulable => now.lacks(&Cordon::default()),
        None => return NodeReadiness::CordonedByOthers,
        Some(cordon) if !cordon.is_of(cluster) => {
            return match now.schedulable {
                true => NodeReadiness::GivenBack,
                false => NodeReadiness::CordonedByOthers,
            };
        }
        // Somebody gave it back by hand: only our mark is left to take.
        Some(_) if now.schedulable => None,
        Some(cordon) => now.lacks(&cordon),
    };
    lacks.map_or(NodeReadiness::Ready, NodeReadiness::Lacks)
}

/// There is nothing to give back to the cluster, which is no failure of the step.
fn leave_alone(problem: Diagnostic) -> Halt {
    halt_with_problem(NodeOutcome::Done { changed: false }, problem)
}

fn report_timeout(step: &NodeStep<'_>, words: &str, limit_s: u64) -> Halt {
    let reason = format!("the node does not come back: {}", one_line(words, 200));
    let what = format!("after {}, {words}", format_duration(limit_s));
    let problem = not_back(step.node, &what, &step.id, &step.shared.next);
    halt_with_problem(NodeOutcome::Failed { reason }, problem)
}

fn report_interruption(step: &NodeStep<'_>, words: &str) -> Halt {
    let reason = format!(
        "stopped before the node was given back: {}",
        one_line(words, 200)
    );
    let problem = left_cordoned(step.node, words, &step.id, &step.shared.next);
    halt_with_problem(NodeOutcome::Unknown { reason }, problem)
}

/// Nodes that were emptied and not given back, because something before that did not go well.
pub(super) fn stay_cordoned(
    nodes: &[PlanNode],
    outcomes: &[(String, NodeOutcome)],
    next: &NextCommands,
) -> Option<Diagnostic> {
    let mut names = Vec::new();
    for (step, (_, outcome)) in nodes.iter().zip(outcomes) {
        if let NodeKind::Uncordon { node, left, .. } = &step.kind
            && let NodeOutcome::Skipped { .. } | NodeOutcome::Blocked { .. } = outcome
            && (*left || was_emptied(nodes, outcomes, step.target.as_ref()))
        {
            names.push(node.clone());
        }
    }
    if names.is_empty() {
        return None;
    }
    let stay = if names.len() == 1 { "stays" } else { "stay" };
    let problem = Diagnostic::warning(
        "RW0652",
        format!("{} {stay} cordoned", nodeset::fold_node_set(&names)),
    )
    .effect("no pods are put there, because what was changed has passed no gate")
    .state("the mark railwright.io/cordoned says so on the node")
    .next(format!(
        "fix what went wrong, then {}; or as they are: {}",
        next.resume(),
        by_hand(&names)
    ));
    Some(problem)
}

fn was_emptied(
    nodes: &[PlanNode],
    outcomes: &[(String, NodeOutcome)],
    target: Option<&Target>,
) -> bool {
    nodes.iter().zip(outcomes).any(|(node, (_, outcome))| {
        matches!(node.kind, NodeKind::Drain { .. })
            && node.target.as_ref() == target
            && outcome.is_done()
    })
}

/// Nodes whose step was given up in the middle: nobody looked whether they are cordoned.
pub(super) fn may_be_cordoned(
    nodes: &[PlanNode],
    outcomes: &[(String, NodeOutcome)],
    next: &NextCommands,
) -> Option<Diagnostic> {
    let mut names = Vec::new();
    for (step, (_, outcome)) in nodes.iter().zip(outcomes) {
        if let NodeKind::Drain { node, .. } | NodeKind::Uncordon { node, .. } = &step.kind
            && let NodeOutcome::Unknown { reason } = outcome
            && reason == GIVEN_UP
        {
            names.push(node.clone());
        }
    }
    if names.is_empty() {
        return None;
    }
    let problem = Diagnostic::warning(
        "RW0652",
        format!(
            "{} may be left cordoned: the run was given up in the middle",
            nodeset::fold_node_set(&names)
        ),
    )
    .effect("no pods are put on a node that is cordoned, and pods that were told to end are gone")
    .state(
        "nobody looked again; a node that this run cordoned bears the mark \
         railwright.io/cordoned",
    )
    .next(format!(
        "{} looks, goes on, and gives back what its gate proves",
        next.resume()
    ))
    .next(format!("or at once, as they are: {}", by_hand(&names)));
    Some(problem)
}

/// The command that gives nodes back by hand. One of many nodes is none that anybody types: it
/// names the first.
fn by_hand(names: &[String]) -> String {
    const MOST: usize = 16;
    let more = if names.len() > MOST {
        format!(" (and {} more)", names.len() - MOST)
    } else {
        String::new()
    };
    let first = &names[..names.len().min(MOST)];
    format!("kubectl uncordon {}{more}", first.join(" "))
}

/// Somebody took it out of the cluster: nothing of it is cordoned any more.
fn gone_from(node: &str, id: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0652",
        format!("{node} is no longer a node of the cluster, so there is nothing to give back"),
    )
    .on(id)
    .effect("where its kubelet registers again, pods are put on it")
    .state("its host passed its gate; our mark went with the node")
    .next(format!(
        "kubectl get node {node}, once its kubelet runs; and take the host out of the spec if it \
         is to be no node any more"
    ))
}

/// It is cordoned, and does not bear our mark.
fn left_to_others(node: &str, id: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0652",
        format!("{node} stays cordoned: somebody else did that, or took our mark away"),
    )
    .on(id)
    .effect("no pods are put there")
    .state("its host passed its gate; only what bears our mark is given back by us")
    .next(format!(
        "kubectl uncordon {node}, when whoever cordoned it is done with it"
    ))
}

fn not_back(node: &str, words: &str, id: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0649",
        format!(
            "the node {node} does not come back: {}",
            one_line(words, 600)
        ),
    )
    .on(id)
    .effect("jobs that need what is missing would wait or fail on it, so no pods are put on it")
    .state("its host was changed and passed its gate; the node stays cordoned")
    .next(format!(
        "fix what keeps it, then {}; a node that is uncordoned by hand counts as given back",
        next.resume()
    ))
}

fn left_cordoned(node: &str, words: &str, id: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::warning(
        "RW0634",
        format!(
            "the run was stopped before the node {node} was given back: {}",
            one_line(words, 600)
        ),
    )
    .on(id)
    .effect("no pods are put on it")
    .state("its host was changed and passed its gate; the node stays cordoned")
    .next(format!("{} looks again and gives it back", next.resume()))
}
