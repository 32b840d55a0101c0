//! Why a pod of a job does not run: in numbers where resources of the fabric are short, else in the
//! words of who knows it.

use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line};
use railwright_resource::kubernetes_job::{JobPod, Room};

/// Nodes that are named one by one.
const NAMED: usize = 3;

/// The reason; nothing where none is known yet. The room of the nodes counts what the pods of this
/// job have already.
pub fn find_pod_wait_reason(pod: &JobPod, room: Option<&Room>) -> Option<String> {
    if let Some(waits) = &pod.waits {
        return Some(one_line(&describe_container_wait(waits), 300));
    }
    let said = pod.unscheduled.as_deref()?;
    let mut short = Vec::new();
    if let Some(room) = room {
        for (resource, amount) in &pod.asks {
            short.extend(describe_resource_shortage(room, resource, *amount));
        }
    }
    match short.is_empty() {
        true => Some(one_line(said, 300)),
        false => Some(short.join("; ")),
    }
}

/// What the kubelet says of a container that does not start (kubernetes/kubernetes:
/// pkg/kubelet/images/types.go, pkg/kubelet/container/sync_result.go).
fn describe_container_wait(waits: &str) -> String {
    let reason = waits.split(' ').next().unwrap_or_default();
    match reason {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            format!("its image cannot be had: {waits}")
        }
        "CrashLoopBackOff" => format!("its container ends again and again: {waits}"),
        _ => waits.to_owned(),
    }
}

/// How a resource is short, if it is: no node has as much of it free as one pod asks for.
fn describe_resource_shortage(room: &Room, resource: &str, amount: u64) -> Option<String> {
    let asks = format!("asks {resource} {amount}");
    let (mut giving, mut open) = (Vec::new(), Vec::new());
    for (name, node) in &room.nodes {
        let Some(free) = node.free(resource) else {
            continue;
        };
        giving.push(name.as_str());
        if node.ready && node.schedulable {
            open.push((name, node, free));
        }
    }
    if giving.is_empty() {
        return Some(format!(
            "{asks}, and no node gives any: does its device plugin run there? (railwright verify)"
        ));
    }
    let Some(most) = open.iter().map(|(.., free)| *free).max() else {
        return Some(format!(
            "{asks}, and no node that gives it takes pods now (not ready, or cordoned): {}",
            nodeset::fold_node_set(&giving)
        ));
    };
    if most >= amount {
        return None;
    }
    let mut named = Vec::new();
    for (name, node, _) in open.iter().take(NAMED) {
        let used = node.used.get(resource).copied().unwrap_or_default();
        let gives = node.gives.get(resource).copied().unwrap_or_default();
        named.push(format!("{used}/{gives} used on {name}"));
    }
    if open.len() > NAMED {
        named.push(format!("and {} more", open.len() - NAMED));
    }
    let nodes = format_count(open.len(), "node");
    let verb = if open.len() == 1 { "has" } else { "have" };
    Some(format!(
        "{asks}, {nodes} {verb} {most} free at most: {}",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::kubernetes_job::room::NodeRoom;

    fn room(nodes: &[(&str, u64, u64)]) -> Room {
        let node = |(name, gives, used): &(&str, u64, u64)| {
            let of = |value: u64| [("aliyun/erdma".to_owned(), value)].into();
            (
                (*name).to_owned(),
                NodeRoom {
                    ready: true,
                    schedulable: true,
                    gives: of(*gives),
                    used: of(*used),
                },
            )
        };
        Room {
            nodes: nodes.iter().map(node).collect(),
        }
    }

    fn pod(asks: u64) -> JobPod {
        let unscheduled =
            Some("Unschedulable 0/2 nodes are available: 2 Insufficient aliyun/erdma.".to_owned());
        JobPod {
            asks: [("aliyun/erdma".to_owned(), asks)].into(),
            unscheduled,
            ..JobPod::default()
        }
    }

    #[test]
    fn what_is_short_is_said_in_numbers() {
        let full = room(&[("gpu-001", 200, 200), ("gpu-002", 200, 199)]);
        assert_eq!(
            find_pod_wait_reason(&pod(2), Some(&full)).unwrap(),
            "asks aliyun/erdma 2, 2 nodes have 1 free at most: 200/200 used on gpu-001, 199/200 \
             used on gpu-002"
        );
        assert_eq!(
            find_pod_wait_reason(&pod(1), Some(&room(&[]))).unwrap(),
            "asks aliyun/erdma 1, and no node gives any: does its device plugin run there? \
             (railwright verify)"
        );
        let many: Vec<(String, u64, u64)> =
            (1..=9).map(|n| (format!("gpu-{n:03}"), 1, 1)).collect();
        let many: Vec<(&str, u64, u64)> = many
            .iter()
            .map(|(name, gives, used)| (name.as_str(), *gives, *used))
            .collect();
        assert!(
            find_pod_wait_reason(&pod(1), Some(&room(&many)))
                .unwrap()
                .ends_with("1/1 used on gpu-003, and 6 more")
        );
        let mut cordoned = room(&[("gpu-001", 200, 0)]);
        cordoned
            .nodes
            .values_mut()
            .for_each(|node| node.schedulable = false);
        assert_eq!(
            find_pod_wait_reason(&pod(1), Some(&cordoned)).unwrap(),
            "asks aliyun/erdma 1, and no node that gives it takes pods now (not ready, or \
             cordoned): gpu-001"
        );
        // Something else is short: the scheduler knows what.
        assert!(
            find_pod_wait_reason(&pod(1), Some(&room(&[("gpu-001", 200, 0)])))
                .unwrap()
                .starts_with("Unschedulable 0/2 nodes")
        );
        assert!(
            find_pod_wait_reason(&pod(1), None)
                .unwrap()
                .starts_with("Unschedulable")
        );
        assert_eq!(find_pod_wait_reason(&JobPod::default(), Some(&full)), None);
        let pulls = JobPod {
            waits: Some("ErrImagePull not found".to_owned()),
            ..JobPod::default()
        };
        assert_eq!(
            find_pod_wait_reason(&pulls, Some(&full)).unwrap(),
            "its image cannot be had: ErrImagePull not found"
        );
    }
}
