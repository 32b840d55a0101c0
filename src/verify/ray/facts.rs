//! What is known of the pods of a cluster of Ray, and how they say what they have.

use crate::perftest::TrafficFault;
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_job::{JobPod, Room};

/// A resource by which pods get RDMA devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its whole name.
    pub resource: String,
    /// How many devices a unit of it brings, where the spec says so.
    pub devices: Option<usize>,
}

/// What a pod has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RayPodFacts {
    /// RDMA devices by name, of those that it was given: sysfs shows those of its host too.
    pub devices: Vec<String>,
    /// It has `ib_write_bw`.
    pub has_perftest: bool,
}

/// A pod, and what it has or why that is not known.
#[derive(Debug, Clone)]
pub struct InspectedRayPod {
    /// It.
    pub pod: JobPod,
    /// What it has.
    pub inside: Result<RayPodFacts, Reason>,
}

/// Traffic of one device to one of another pod.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceTrafficResult {
    /// The device that sends, and the one that receives.
    pub devices: [String; 2],
    /// Gb/s, or why there are none.
    pub gbps: Result<f64, TrafficFault>,
}

/// Traffic between two pods, or why there was none.
#[derive(Debug, Clone, PartialEq)]
pub enum Crossing {
    /// It was tried.
    Tried {
        /// The pod that sends, and the one that receives.
        pods: [String; 2],
        /// The nodes that they are on.
        nodes: [String; 2],
        /// Device by device.
        passed: Vec<DeviceTrafficResult>,
    },
    /// It could not be tried.
    Not(String),
}

/// All that was found.
#[derive(Debug, Clone)]
pub struct RayClusterFacts {
    /// Pools, as the spec has them, or as the pods ask for them.
    pub pools: Vec<Pool>,
    /// The pods.
    pub pods: Vec<InspectedRayPod>,
    /// What nodes give.
    pub room: Result<Room, Reason>,
    /// Workers that its operator wants.
    pub desired: Option<u64>,
    /// Traffic.
    pub crossing: Crossing,
}

/// What a pod is asked, in sh: the devices that it was given, and whether it has perftest.
pub const LOOK: &str = "ls /dev/infiniband 2>/dev/null | while read -r one; do\n\
                        case $one in uverbs*) echo \"device $(cat \
                        \"/sys/class/infiniband_verbs/$one/ibdev\" 2>/dev/null)\" ;; esac\n\
                        done\n\
                        if command -v ib_write_bw >/dev/null 2>&1; then echo perftest; fi\n";

/// Parses what it printed; lines without a device's name are left out.
pub fn parse_pod_facts(said: &str) -> RayPodFacts {
    let mut inside = RayPodFacts::default();
    for line in said.lines() {
        match line.split_once(' ') {
            Some(("device", name)) if is_device(name) => inside.devices.push(name.to_owned()),
            None if line == "perftest" => inside.has_perftest = true,
            _ => {}
        }
    }
    inside.devices.sort();
    inside.devices.dedup();
    inside
}

/// A pod can say anything, and a device's name becomes a word of a command.
fn is_device(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// The pod's name, as it is shown.
pub fn format_pod_name(pod: &JobPod) -> String {
    one_line(&pod.name, 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_says_what_it_has_and_nothing_that_becomes_a_command() {
        let said = parse_pod_facts("device mlx5_1\ndevice mlx5_0\nperftest\n");
        assert_eq!(
            (said.devices, said.has_perftest),
            (vec!["mlx5_0".to_owned(), "mlx5_1".to_owned()], true)
        );
        assert_eq!(
            parse_pod_facts("device \ndevice -d\ndevice a b\ndevice $(x)\nperftest 1\nmore"),
            RayPodFacts::default()
        );
    }
}
