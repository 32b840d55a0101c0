//! Asks the pods of a cluster of Ray, and has two of them send RDMA traffic to each other. Nothing
//! stays behind: what runs in a pod ends by itself, and its container ends it where we are gone.

use super::facts::{
    Crossing, DeviceTrafficResult, InspectedRayPod, LOOK, Pool, RayClusterFacts, RayPodFacts,
    format_pod_name, parse_pod_facts,
};
use crate::perftest::bandwidth_gbps;
use crate::session::{ProbeOutput, run_probe};
use futures_util::{StreamExt as _, stream};
use railwright_base::quote;
use railwright_base::text::one_line;
use railwright_resource::Read;
use railwright_resource::kubernetes_job::{JobPod, Room};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::probe::Probe;
use railwright_transport::{Prober, TransportError};
use railwright_workload::gives_rdma;
use serde::de::DeserializeOwned;

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
    /// Pools of the spec.
    pub pools: Vec<Pool>,
    /// Workers that its operator wants.
    pub wanted: Option<u64>,
    /// What `ib_write_bw` is told at both ends.
    pub words: Vec<String>,
    /// Seconds of traffic for each device.
    pub seconds: u32,
}

impl RayProofRequest<'_> {
    /// All that is to be found.
    pub async fn found(&self) -> Result<RayClusterFacts, TransportError> {
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
            Ok(pods) => self.looked(pods).await,
            Err(why) => return Ok(self.nothing(format!("its pods could not be read: {why}"), room)),
        };
        let crossing = self.crossing(&pods).await;
        Ok(RayClusterFacts {
            pools: select_expected_pools(&self.pools, &pods),
            pods,
            room,
            wanted: self.wanted,
            crossing,
        })
    }

    fn nothing(&self, why: String, room: Result<Room, String>) -> RayClusterFacts {
        RayClusterFacts {
            pools: self.pools.clone(),
            pods: Vec::new(),
            room,
            wanted: self.wanted,
            crossing: Crossing::Not(why),
        }
    }

    async fn looked(&self, pods: Vec<JobPod>) -> Vec<InspectedRayPod> {
        let look = |pod: JobPod| async move {
            let inside = match pod.phase.as_str() {
                "Running" => self.inside(&pod).await,
                phase => Err(format!("it is {}", one_line(&phase.to_lowercase(), 20))),
            };
            InspectedRayPod { pod, inside }
        };
        stream::iter(pods.into_iter().map(look).collect::<Vec<_>>())
            .buffered(AT_ONCE)
            .collect()
            .await
    }

    async fn inside(&self, pod: &JobPod) -> Result<RayPodFacts, String> {
        let said = self.ask(pod, LOOK.to_owned(), LOOK_S).await?;
        match said.code {
            0 => Ok(parse_pod_facts(&said.out)),
            code => Err(format!("exit status {code}: {}", one_line(&said.err, 100))),
        }
    }

    async fn ask(&self, pod: &JobPod, script: String, lease_s: u32) -> Result<ProbeOutput, String> {
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
    async fn crossing(&self, pods: &[InspectedRayPod]) -> Crossing {
        let (from, to) = match select_traffic_pods(pods) {
            Ok(ends) => ends,
            Err(why) => return Crossing::Not(why),
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
                        one_line(&why, 100)
                    ));
                }
            }
        }
        let of = |each: fn(&JobPod) -> String| [each(from.0), each(to.0)];
        Crossing::Tried {
            pods: of(format_pod_name),
            nodes: of(|pod| one_line(pod.node.as_deref().unwrap_or_default(), 63)),
            passed,
        }
    }

    /// From the first pod to the second. The one that listens ends with its one client.
    async fn send(&self, pods: [&JobPod; 2], devices: [&String; 2]) -> Result<ProbeOutput, String> {
        let address = pods[1]
            .address
            .map(|address| address.to_string())
            .unwrap_or_default();
        let program = |device: &str| {
            quote::sh_words(
                ["ib_write_bw", "-d", device]
                    .into_iter()
                    .chain(self.words.iter().map(String::as_str)),
            )
        };
        let listen = format!("exec {}", program(devices[1]));
        let send = format!(
            "n=0\nuntil {} {}; do n=$((n+1)); [ $n -lt {ATTEMPTS} ] || exit 1; sleep 1; done 2>&1",
            program(devices[0]),
            quote::quote_for_shell(&address)
        );
        let lease_s = self.seconds + SLACK_S;
        let (_, sent) = tokio::join!(
            self.ask(pods[1], listen, lease_s),
            self.ask(pods[0], send, lease_s)
        );
        sent
    }
}

/// A pod and what it has.
type End<'a> = (&'a JobPod, &'a RayPodFacts);

/// Two pods on two nodes that have devices and perftest, workers first; or why there are none.
fn select_traffic_pods(pods: &[InspectedRayPod]) -> Result<(End<'_>, End<'_>), String> {
    let mut able: Vec<End<'_>> = pods
        .iter()
        .filter_map(|looked| Some((&looked.pod, looked.inside.as_ref().ok()?)))
        .filter(|(pod, inside)| !inside.devices.is_empty() && pod.address.is_some())
        .collect();
    able.sort_by_key(|(pod, _)| pod.role.as_deref() != Some("worker"));
    let Some(first) = able.first() else {
        return Err("no pod with an RDMA device can be asked".to_owned());
    };
    if able.iter().all(|(pod, _)| pod.node == first.0.node) {
        return Err(
            "the pods that have RDMA devices are on one node: nothing crosses the network"
                .to_owned(),
        );
    }
    able.retain(|(_, inside)| inside.has_perftest);
    let Some(first) = able.first() else {
        return Err("`ib_write_bw` is not in the image".to_owned());
    };
    let second = able.iter().find(|(pod, _)| pod.node != first.0.node);
    second
        .map(|second| (*first, *second))
        .ok_or_else(|| "`ib_write_bw` is in the pods of one node only".to_owned())
}

/// Pools of the spec, or where it has none what the pods ask for.
fn select_expected_pools(of_spec: &[Pool], pods: &[InspectedRayPod]) -> Vec<Pool> {
    if !of_spec.is_empty() {
        return of_spec.to_vec();
    }
    let asked: std::collections::BTreeSet<&String> = pods
        .iter()
        .flat_map(|looked| looked.pod.asks.keys())
        .filter(|resource| gives_rdma(resource))
        .collect();
    asked
        .into_iter()
        .map(|resource| Pool {
            resource: resource.clone(),
            devices: None,
        })
        .collect()
}

fn parse_json_output<T: DeserializeOwned>(
    output: Result<(i32, &str), String>,
) -> Result<T, String> {
    match output {
        Ok((0, out)) => {
            serde_json::from_str(out).map_err(|_| "the answer makes no sense".to_owned())
        }
        Ok((_, why)) => Err(one_line(why, 300)),
        Err(reason) => Err(reason),
    }
}
