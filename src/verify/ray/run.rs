//! Asks the pods of a cluster of Ray, and has two of them send RDMA traffic to each other. Nothing
//! stays behind: what runs in a pod ends by itself, and its container ends it where we are gone.

use super::facts::{
    Crossing, DeviceTrafficResult, InspectedRayPod, LOOK, Pool, RayClusterFacts, RayPodFacts,
    format_pod_name, parse_pod_facts,
};
use crate::perftest::bandwidth_gbps;
use crate::session::{ProbeOutput, run_probe};
use futures_util::{StreamExt as _, stream};
use railwright_base::Reason;
use railwright_base::quote;
use railwright_base::text::one_line;
use railwright_resource::Read;
use railwright_resource::kubernetes_job::{JobPod, Room};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::probe::Probe;
use railwright_transport::{Prober, TransportError};
use railwright_workload::gives_rdma;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Pods that are looked into at a time.
const AT_ONCE: usize = 8;
/// A look is done by then.
const LOOK_S: u32 = 15;
/// Traffic ends at the latest this many seconds after its own length.
const SLACK_S: u32 = 20;
/// How often the sender asks again when nobody listens yet.
const ATTEMPTS: u32 = 8;
/// Devices between which traffic is tried; no host has more rails.
const DEVICES_MAX: usize = 16;

/// What is asked.
pub struct RayProofRequest<'a> {
    /// The cluster.
    pub prober: &'a Prober,
    /// The namespace.
    pub namespace: &'a str,
    /// Labels of the pods.
    pub selector: String,
    /// The UID of the RayCluster, which owns them.
    pub owner: &'a str,
    /// Pools of the spec.
    pub pools: Vec<Pool>,
    /// Workers that its operator wants.
    pub desired: Option<u64>,
    /// Arguments of `ib_write_bw` at both ends.
    pub words: Vec<String>,
    /// Seconds of traffic for each device.
    pub seconds: u32,
}

impl RayProofRequest<'_> {
    /// All that is to be found.
    pub async fn actual(&self) -> Result<RayClusterFacts, TransportError> {
        let pods = KubernetesRead::JobPods {
            namespace: self.namespace.to_owned(),
            selector: self.selector.clone(),
        };
        let reads = [
            Read::Kubernetes(pods),
            Read::Kubernetes(KubernetesRead::Room),
        ];
        let answers = self.prober.reader().read(&reads).await?;
        let [pods, room] = &reads;
        let (pods, room) = (
            parse_json_output::<Vec<JobPod>>(answers.output(pods)),
            parse_json_output::<Room>(answers.output(room)),
        );
        let pods = match pods {
            Ok(mut pods) => {
                pods.retain(|pod| pod.is_owned_by(self.owner));
                self.inspect_pods(pods).await
            }
            Err(why) => {
                return Ok(
                    self.report_unread_pods(format!("its pods could not be read: {why}"), room)
                );
            }
        };
        let crossing = self.try_traffic(&pods).await;
        Ok(RayClusterFacts {
            pools: select_expected_pools(&self.pools, &pods),
            pods,
            room,
            desired: self.desired,
            crossing,
        })
    }

    fn report_unread_pods(&self, why: String, room: Result<Room, Reason>) -> RayClusterFacts {
        RayClusterFacts {
            pools: self.pools.clone(),
            pods: Vec::new(),
            room,
            desired: self.desired,
            crossing: Crossing::Not(why),
        }
    }

    async fn inspect_pods(&self, pods: Vec<JobPod>) -> Vec<InspectedRayPod> {
        let mut looks = Vec::new();
        for pod in pods {
            looks.push(self.inspect_pod(pod));
        }
        stream::iter(looks).buffered(AT_ONCE).collect().await
    }

    async fn inspect_pod(&self, pod: JobPod) -> InspectedRayPod {
        let inside = match pod.phase.as_str() {
            "Running" => self.read_pod_facts(&pod).await,
            phase => Err(format!("it is {}", one_line(&phase.to_lowercase(), 20)).into()),
        };
        InspectedRayPod { pod, inside }
    }

    async fn read_pod_facts(&self, pod: &JobPod) -> Result<RayPodFacts, Reason> {
        let said = self.ask(pod, LOOK.to_owned(), LOOK_S).await?;
        match said.code {
            0 => Ok(parse_pod_facts(&said.out)),
            code => Err(format!("exit status {code}: {}", one_line(&said.err, 100)).into()),
        }
    }

    async fn ask(&self, pod: &JobPod, script: String, lease_s: u32) -> Result<ProbeOutput, Reason> {
        let (namespace, container) = (self.namespace.to_owned(), pod.container.clone());
        run_probe(
            self.prober,
            &Probe::InPod {
                namespace,
                pod: pod.name.clone(),
                container,
                script,
                lease_s,
            },
        )
        .await
    }

    /// Traffic between two pods on two nodes.
    async fn try_traffic(&self, pods: &[InspectedRayPod]) -> Crossing {
        let (from, to) = match select_traffic_pods(pods) {
            Ok(ends) => ends,
            Err(why) => return Crossing::Not(why.to_string()),
        };
        let mut passed = Vec::new();
        for devices in from.1.devices.iter().zip(&to.1.devices).take(DEVICES_MAX) {
            match self.send([from.0, to.0], [devices.0, devices.1]).await {
                Ok(said) => {
                    let gbps = bandwidth_gbps(said.code, &(said.out + &said.err));
                    passed.push(DeviceTrafficResult {
                        devices: [devices.0.clone(), devices.1.clone()],
                        gbps,
                    });
                }
                Err(why) => {
                    return Crossing::Not(format!(
                        "{} could not be asked: {}",
                        format_pod_name(from.0),
                        one_line(why.as_words(), 100)
                    ));
                }
            }
        }
        Crossing::Tried {
            pods: [from.0, to.0].map(format_pod_name),
            nodes: [from.0, to.0].map(format_node_name),
            passed,
        }
    }

    /// From the first pod to the second. The one that listens ends with its one client.
    async fn send(&self, pods: [&JobPod; 2], devices: [&String; 2]) -> Result<ProbeOutput, Reason> {
        let address = match pods[1].address {
            Some(address) => address.to_string(),
            None => String::new(),
        };
        let listen = format!("exec {}", self.build_traffic_command(devices[1]));
        let send = format!(
            "n=0\nuntil {} {}; do n=$((n+1)); [ $n -lt {ATTEMPTS} ] || exit 1; sleep 1; done 2>&1",
            self.build_traffic_command(devices[0]),
            quote::quote_for_shell(&address)
        );
        let lease_s = self.seconds + SLACK_S;
        let (_, sent) = tokio::join!(
            self.ask(pods[1], listen, lease_s),
            self.ask(pods[0], send, lease_s)
        );
        sent
    }

    fn build_traffic_command(&self, device: &str) -> String {
        let mut words = vec!["ib_write_bw", "-d", device];
        for word in &self.words {
            words.push(word);
        }
        quote::sh_words(words)
    }
}

fn format_node_name(pod: &JobPod) -> String {
    one_line(pod.node.as_deref().unwrap_or_default(), 63)
}

/// A pod and what it has.
type End<'a> = (&'a JobPod, &'a RayPodFacts);

/// Two pods on two nodes that have devices and perftest, workers first; or why there are none.
fn select_traffic_pods(pods: &[InspectedRayPod]) -> Result<(End<'_>, End<'_>), Reason> {
    let mut able: Vec<End<'_>> = Vec::new();
    for InspectedRayPod { pod, inside } in pods {
        if let Ok(inside) = inside
            && !inside.devices.is_empty()
            && pod.address.is_some()
        {
            able.push((pod, inside));
        }
    }
    able.sort_by_key(|(pod, _)| pod.role.as_deref() != Some("worker"));
    let Some(first) = able.first() else {
        return Err("no pod with an RDMA device can be asked".into());
    };
    if able.iter().all(|(pod, _)| pod.node == first.0.node) {
        return Err(
            "the pods that have RDMA devices are on one node: nothing crosses the network".into(),
        );
    }
    able.retain(|(_, inside)| inside.has_perftest);
    let Some(first) = able.first() else {
        return Err("`ib_write_bw` is not in the image".into());
    };
    match able.iter().find(|(pod, _)| pod.node != first.0.node) {
        Some(second) => Ok((*first, *second)),
        None => Err("`ib_write_bw` is in the pods of one node only".into()),
    }
}

/// Pools of the spec, or where it has none what the pods ask for.
fn select_expected_pools(of_spec: &[Pool], pods: &[InspectedRayPod]) -> Vec<Pool> {
    if !of_spec.is_empty() {
        return of_spec.to_vec();
    }
    let mut requested = BTreeMap::new();
    for looked in pods {
        for resource in looked.pod.asks.keys().filter(|name| gives_rdma(name)) {
            requested.insert(
                resource,
                Pool {
                    resource: resource.clone(),
                    devices: None,
                },
            );
        }
    }
    requested.into_values().collect()
}

fn parse_json_output<T: DeserializeOwned>(
    output: Result<(i32, &str), Reason>,
) -> Result<T, Reason> {
    match output {
        Ok((0, out)) => serde_json::from_str(out).map_err(|_| "the answer makes no sense".into()),
        Ok((_, why)) => Err(one_line(why, 300).into()),
        Err(reason) => Err(reason),
    }
}
