//! Empties a host's node of a Kubernetes cluster before the host is disturbed: cordons it, and has
//! its pods end as their disruption budgets allow. A node that we cordoned and cannot empty is
//! given back at once: nothing was done to its host yet (kubereboot/kured#1129: a node that stays
//! cordoned after a failed drain is missed for weeks). One that was cordoned before stays so.

use super::change::{Finish, compare_before_drain};
use super::cluster_node::{Halt, NodeStep, halt_with_problem};
use super::trouble::NextCommands;
use railwright_base::text::{format_count, format_duration, one_line};
use railwright_base::{Diagnostic, Reason};
use railwright_plan::DrainPolicy;
use railwright_resource::Action;
use railwright_resource::complaint::find_failure_message;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::request::NOT_NOW;
use railwright_state::journal_writer::JournalError;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_system::clock;
use railwright_transport::ExecutionOutcome;
use std::collections::BTreeMap;
use std::time::Duration;

const STAYS_CORDONED: &str =
    "nothing was done to the host by this run; the node stays cordoned, as it was found";

const TAKEN_BACK: &str = "somebody uncordoned it while it was emptied, so pods are put on it again";

/// Pods that are listed by name; the rest is counted.
const NAMED_PODS: usize = 5;

/// Empties the node of the drain with this number.
pub(super) async fn drain_node(mut step: NodeStep<'_>) -> Result<Finish, JournalError> {
    let finish = match cordon_and_empty_node(&mut step).await {
        Ok(DrainedNode {
            changed,
            gone: true,
            ..
        }) => Finish::with_problem(
            NodeOutcome::Done { changed },
            report_node_gone(step.node, &step.id),
        ),
        Ok(DrainedNode {
            changed,
            disturbed,
            lost,
            ..
        }) => {
            let disturbed = disturbed.map(|pods| keep_devices(step.node, &pods, &step.id));
            let lost = lost.map(|pods| count_as_gone(step.node, &pods, &step.id));
            let problems = disturbed.into_iter().chain(lost).collect();
            Finish {
                problems,
                ..Finish::of(NodeOutcome::Done { changed })
            }
        }
        Err(Halt::Journal(broken)) => return Err(broken),
        Err(Halt::Over(finish)) => *finish,
    };
    step.finish(&finish).await;
    Ok(finish)
}

/// A node that is empty.
struct DrainedNode {
    /// It was cordoned by us, or pods were ended.
    changed: bool,
    /// Because it is no node any more.
    gone: bool,
    /// Pods that belong to the node and have devices of it, in words.
    disturbed: Option<String>,
    /// Pods that count as gone though nobody says so, in words.
    lost: Option<String>,
}

async fn cordon_and_empty_node(step: &mut NodeStep<'_>) -> Result<DrainedNode, Halt> {
    step.connect().await?;
    let Some(now) = step
        .now()
        .await
        .map_err(|reason| step.unreadable(&reason))?
    else {
        return Ok(DrainedNode {
            changed: false,
            gone: true,
            disturbed: None,
            lost: None,
        });
    };
    let policy =
        step.shared.plan.rollout.drain.clone().ok_or_else(|| {
            step.unreadable(&"the plan does not say how nodes are emptied".into())
        })?;
    compare_before_drain(step.shared, step.n).await?;
    step.intend().await?;
    if now.schedulable {
        let mark = now
            .cordon_of(&step.shared.run, &step.shared.plan.cluster)
            .text();
        step.perform(Action::CordonNode {
            node: step.node.to_owned(),
            mark,
        })
        .await
        .map_err(|reason| step.unreadable(&reason))?;
    }
    match until_empty(step, &policy).await {
        Ok(looked) => Ok(DrainedNode {
            changed: true,
            gone: looked.gone,
            disturbed: looked.disturbed,
            lost: looked.lost,
        }),
        Err(stop) => Err(give_up_drain(step, stop, now.schedulable).await),
    }
}

/// A node that was cordoned by this step is given back.
async fn give_up_drain(step: &NodeStep<'_>, stop: DrainStop, is_cordoned_by_us: bool) -> Halt {
    // What an earlier run cordoned it may have changed, and it has passed no gate since.
    let state = match is_cordoned_by_us {
        true => given_back(step).await,
        false => STAYS_CORDONED.to_owned(),
    };
    let (node, next) = (step.node, &step.shared.next);
    match stop {
        DrainStop::Interrupted(words) => {
            let reason = format!("stopped while the node was emptied: {words}");
            let problem = left_emptying(node, &words, &step.id, next).state(state);
            halt_with_problem(NodeOutcome::Unknown { reason }, problem)
        }
        DrainStop::Because(words) => {
            let reason = format!("the node could not be emptied: {}", one_line(&words, 200));
            let problem = not_emptied(node, &words, &step.id, next).state(state);
            halt_with_problem(NodeOutcome::Failed { reason }, problem)
        }
    }
}

/// Why a node is not emptied.
enum DrainStop {
    Because(String),
    Interrupted(String),
}

/// What keeps pods, in words, by pod.
pub(super) type Kept = BTreeMap<String, String>;

/// The look that found it empty.
async fn until_empty(
    step: &mut NodeStep<'_>,
    policy: &DrainPolicy,
) -> Result<NodePodsSnapshot, DrainStop> {
    let end = clock::Deadline::after(Duration::from_secs(policy.timeout_s.into()));
    let mut said = String::new();
    loop {
        let words = match observe_node_pods(step).await {
            Err(reason) => {
                // A server that is away for a moment is asked again.
                let _ = step.connect().await;
                format!("the cluster does not say: {reason}")
            }
            // Pods are put on it as fast as they are ended.
            Ok(NodePodsSnapshot {
                takes_pods: true, ..
            }) => return Err(DrainStop::Because(TAKEN_BACK.to_owned())),
            Ok(looked) if looked.gone || looked.open.is_empty() => return Ok(looked),
            Ok(NodePodsSnapshot { open, .. }) => {
                if let Some(words) = describe_blocking_pods(&open, policy) {
                    return Err(DrainStop::Because(words));
                }
                let kept = if policy.evict {
                    evict_pods(step, &open, &end).await
                } else {
                    Kept::new()
                };
                describe_remaining_pods(&open, &kept)
            }
        };
        if end.left().is_zero() {
            return Err(DrainStop::Because(format!(
                "after {}, {words}",
                format_duration(policy.timeout_s.into())
            )));
        }
        if step.is_interrupted() {
            return Err(DrainStop::Interrupted(words));
        }
        step.tell(&words, &mut said);
        step.pause().await;
    }
}

/// One look at the node.
pub(super) struct NodePodsSnapshot {
    /// The pods that have to go.
    pub open: Vec<PodNow>,
    /// Those of the others that have devices of the node, in words.
    disturbed: Option<String>,
    /// Those that count as gone, in words: a kubelet that is silent says of no pod that it ended.
    lost: Option<String>,
    /// Somebody took the cordon away.
    pub takes_pods: bool,
    /// It is no node any more: the cluster itself forgets its pods (kubernetes/kubernetes
    /// pkg/controller/podgc).
    pub gone: bool,
}

/// The node is read last, so that no pod was put on one that is empty.
pub(super) async fn observe_node_pods(step: &NodeStep<'_>) -> Result<NodePodsSnapshot, Reason> {
    let (mut open, mut lost, mut disturbed) = (Vec::new(), Vec::new(), Vec::new());
    for pod in step.pods().await? {
        if pod.keeps_devices() {
            disturbed.push(format!("{}: {}", pod.shown(), pod.devices.join(", ")));
        }
        if pod.is_exempt_from_drain() {
            continue;
        }
        if pod.lost {
            lost.push(pod.shown());
        } else {
            open.push(pod);
        }
    }
    let now = step.now().await?;
    Ok(NodePodsSnapshot {
        open,
        disturbed: (!disturbed.is_empty()).then(|| join_first_names(disturbed)),
        lost: (!lost.is_empty()).then(|| join_first_names(lost)),
        gone: now.is_none(),
        takes_pods: now.is_some_and(|now| now.schedulable),
    })
}

/// Pods that nobody allowed us to end.
fn describe_blocking_pods(open: &[PodNow], policy: &DrainPolicy) -> Option<String> {
    if !policy.evict {
        return None;
    }
    let (mut alone, mut data) = (Vec::new(), Vec::new());
    for pod in open.iter().filter(|pod| !pod.ends) {
        if pod.owner.is_none() && !policy.evict_unmanaged {
            alone.push(pod.shown());
        }
        if !pod.local_data.is_empty() && !policy.delete_local_data {
            data.push(pod.shown());
        }
    }
    let mut words = Vec::new();
    if !alone.is_empty() {
        words.push(format!(
            "no controller would recreate these pods (rollout.drain.evict_unmanaged): {}",
            join_first_names(alone)
        ));
    }
    if !data.is_empty() {
        words.push(format!(
            "these pods have data on the node's disk (rollout.drain.delete_local_data): {}",
            join_first_names(data)
        ));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// Evicts every pod that is not ending; what keeps the others. The server may take seconds to
/// refuse one.
async fn evict_pods(step: &NodeStep<'_>, open: &[PodNow], end: &clock::Deadline) -> Kept {
    let mut kept = Kept::new();
    for pod in open.iter().filter(|pod| !pod.ends) {
        if !kept.is_empty() && (end.left().is_zero() || step.is_interrupted()) {
            break;
        }
        let action = Action::EvictPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        };
        let why = match step.ask(&action).await {
            ExecutionOutcome::Ended { code: 0, .. } => continue,
            ExecutionOutcome::Ended {
                code: NOT_NOW,
                stderr,
                ..
            } => find_failure_message(&stderr)
                .unwrap_or_else(|| "its disruption budget has no room".to_owned()),
            ExecutionOutcome::Ended { stderr, .. } => {
                find_failure_message(&stderr).unwrap_or_else(|| "the API server refused".to_owned())
            }
            ExecutionOutcome::Unknown { reason } => reason.to_string(),
        };
        kept.insert(pod.uid.clone(), one_line(&why, 200));
    }
    kept
}

/// The pods that are left, in words, with what keeps them.
pub(super) fn describe_remaining_pods(open: &[PodNow], kept: &Kept) -> String {
    // Those that are kept first: the others go by themselves.
    let (mut names, mut others) = (Vec::new(), Vec::new());
    for pod in open {
        match kept.get(&pod.uid) {
            Some(why) => names.push(format!("{}: {why}", pod.shown())),
            None => others.push(pod.shown()),
        }
    }
    names.append(&mut others);
    let go = if open.len() == 1 { "is" } else { "are" };
    format!(
        "{} {go} on it still: {}",
        format_count(open.len(), "pod"),
        join_first_names(names)
    )
}

fn join_first_names(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_PODS);
    names.truncate(NAMED_PODS);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// Pods are put on the node again; the state that it is in now, in words.
async fn given_back(step: &NodeStep<'_>) -> String {
    match step
        .perform(Action::UncordonNode {
            node: step.node.to_owned(),
        })
        .await
    {
        Ok(()) => {
            step.shared.journal.note(JournalEntry::HostLeftAsItWas {
                node: step.id.clone(),
            });
            "this step did nothing to the host; the node takes pods again, unless somebody else \
             had cordoned it before"
                .to_owned()
        }
        Err(reason) => format!(
            "this step did nothing to the host; the node may still be cordoned, and could not be \
             given back: {reason}"
        ),
    }
}

fn not_emptied(node: &str, words: &str, id: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0648",
        format!(
            "the node {node} cannot be emptied: {}",
            one_line(words, 900)
        ),
    )
    .on(id)
    .effect("its host would be disturbed with these pods on it, so nothing was begun there")
    .next(format!(
        "have the pods end or their budgets allow it, then {}; or change rollout.drain in the spec",
        next.resume()
    ))
}

fn report_node_gone(node: &str, id: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0652",
        format!("{node} is no longer a node of the cluster, so there is nothing to empty"),
    )
    .on(id)
    .effect("its host is disturbed as it is; a kubelet that registers again takes pods at once")
    .state("the run goes on with the host")
    .next(format!(
        "kubectl get node {node}; take the host out of the spec if it is to be no node any more"
    ))
}

fn keep_devices(node: &str, pods: &str, id: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0670",
        format!(
            "pods of the node {node} itself keep its devices: {}",
            one_line(pods, 600)
        ),
    )
    .on(id)
    .effect(
        "their controller would put them there again at once, so they are not ended; whatever \
         disturbs the host takes the devices from them",
    )
    .state("the node counts as empty, and the run goes on with its host")
    .next(
        "where they must not be disturbed, stop the run and keep their DaemonSet from the node \
         first",
    )
}

fn count_as_gone(node: &str, pods: &str, id: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0652",
        format!(
            "pods of the node {node} count as gone, and nobody has said so: {}",
            one_line(pods, 600)
        ),
    )
    .on(id)
    .effect(
        "its kubelet is silent: if the host still runs, so may they, and they are disturbed with \
         it",
    )
    .state("they were told to end, their time to do so is over, and the run goes on with the host")
    .next(format!(
        "kubectl get node {node}; where its host runs after all, find out why its kubelet does not \
         reach the API server"
    ))
}

fn left_emptying(node: &str, words: &str, id: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::warning(
        "RW0634",
        format!(
            "the run was stopped while the node {node} was emptied: {}",
            one_line(words, 600)
        ),
    )
    .on(id)
    .effect("pods that were told to end are gone; nothing after this step was begun on the host")
    .next(format!("{} empties it again and goes on", next.resume()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::Disruption;

    fn pod(name: &str, owner: Option<&str>) -> PodNow {
        PodNow {
            namespace: "ml".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            owner: owner.map(str::to_owned),
            ..PodNow::default()
        }
    }

    fn policy() -> DrainPolicy {
        DrainPolicy {
            from: Disruption::LinkBlip,
            evict: true,
            timeout_s: 60,
            evict_unmanaged: false,
            delete_local_data: false,
        }
    }

    #[test]
    fn pods_that_nobody_gave_away_stay_and_are_named() {
        let alone = pod("shell", None);
        let data = PodNow {
            local_data: vec!["cache".to_owned()],
            ..pod("web-1", Some("ReplicaSet/web"))
        };
        let open = [
            pod("train-0", Some("Job/train")),
            alone.clone(),
            data.clone(),
        ];
        insta::assert_snapshot!(describe_blocking_pods(&open, &policy()).unwrap(), @"no controller would \
                                                                        recreate these pods \
                                                                        (rollout.drain.evict_unmanaged): \
                                                                        ml/shell; these pods have \
                                                                        data on the node's disk \
                                                                        (rollout.drain.delete_local_data): \
                                                                        ml/web-1 (ReplicaSet web)");
        assert_eq!(
            describe_blocking_pods(
                &open,
                &DrainPolicy {
                    evict_unmanaged: true,
                    delete_local_data: true,
                    ..policy()
                }
            ),
            None
        );
        assert_eq!(
            describe_blocking_pods(
                &open,
                &DrainPolicy {
                    evict: false,
                    ..policy()
                }
            ),
            None,
            "nobody is evicted, so nothing is lost"
        );
        let ends = [
            PodNow {
                ends: true,
                ..alone
            },
            PodNow { ends: true, ..data },
        ];
        assert_eq!(
            describe_blocking_pods(&ends, &policy()),
            None,
            "somebody else ended them"
        );
    }

    #[test]
    fn what_is_kept_is_told_first() {
        let open: Vec<PodNow> = (0..7)
            .map(|n| pod(&format!("train-{n}"), Some("Job/train")))
            .collect();
        let kept = Kept::from([(
            "train-6".to_owned(),
            "The disruption budget train needs 7 healthy pods".to_owned(),
        )]);
        insta::assert_snapshot!(describe_remaining_pods(&open, &kept), @"7 pods are on it still: \
                                                                         ml/train-6 (Job train): \
                                                                         The disruption budget \
                                                                         train needs 7 healthy \
                                                                         pods, ml/train-0 (Job \
                                                                         train), ml/train-1 (Job \
                                                                         train), ml/train-2 (Job \
                                                                         train), ml/train-3 (Job \
                                                                         train), and 2 more");
        assert_eq!(
            describe_remaining_pods(&open[..1], &Kept::new()),
            "1 pod is on it still: ml/train-0 (Job train)"
        );
    }
}
