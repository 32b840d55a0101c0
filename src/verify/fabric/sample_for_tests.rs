//! A fabric in memory that answers as hosts and SONiC switches do: rail k of every host of a pod on
//! leaf k of that pod, every leaf on every spine.

use super::{
    DesiredFabricSettings, Devices, FabricDevice, Report, check_fabric_links, list_fabric_links,
};
use railwright_knowledge::spec::{self, LoadedSpec, SourceFile};
use railwright_resource::counters::CounterSampleOrdinal;
use railwright_resource::switch::{SwitchRead, SwitchSystem};
use railwright_resource::{AnswerStatus, Read, ReadResult, ReadResults};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How large it is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Pods.
    pub pods: usize,
    /// Hosts of each.
    pub hosts: usize,
    /// Rails, and leaves of each pod.
    pub rails: usize,
    /// Spines.
    pub spines: usize,
}

/// A fabric whose read results can be bent before they are checked.
pub struct Fabric {
    /// Its spec.
    pub loaded: LoadedSpec,
    /// What devices answer.
    pub devices: Devices,
}

/// The netdev of a rail.
fn nic(rail: usize) -> String {
    format!("ens{rail}f0np0")
}

impl Fabric {
    /// One in which all is right.
    pub fn of(size: Size) -> Self {
        let (hosts, leaves) = (size.pods * size.hosts, size.pods * size.rails);
        let width = hosts.to_string().len().max(2);
        let name = |host: usize| format!("gpu{host:0width$}");
        let spines = if size.spines > 0 {
            format!(
                "  - {{ name: 'spine[1-{}]', os: sonic, ssh: {{}}, ecn: true }}\n",
                size.spines
            )
        } else {
            String::new()
        };
        let text = format!(
            "cluster: c\n\
             fabric: {{ kind: rocev2, mtu: 9000, lossless: {{ priority: 3, dscp: 26, cnp: {{ \
             priority: 6, dscp: 48 }} }} }}\n\
             ssh: {{ user: root, host_keys: keys }}\n\
             nodes: [{{ name: '{}', nics: {{ model: soft-roce, rails: {}, netdev: \
             'ens{{rail}}f0np0' }} }}]\n\
             switches:\n  - {{ name: '{}', os: sonic, ssh: {{}}, ecn: true }}\n\
             {spines}cabling: cabling.csv\n",
            railwright_base::nodeset::fold_node_set(&(1..=hosts).map(name).collect::<Vec<_>>()),
            size.rails,
            railwright_base::nodeset::fold_node_set(
                &(1..=leaves)
                    .map(|leaf| format!("leaf{leaf}"))
                    .collect::<Vec<_>>()
            ),
        );
        let mut table = "host,nic,switch,port\n".to_owned();
        for host in 0..hosts {
            let (pod, place) = (host / size.hosts, host % size.hosts);
            for rail in 0..size.rails {
                table.push_str(&format!(
                    "{},{},leaf{},Ethernet{}\n",
                    name(host + 1),
                    nic(rail),
                    pod * size.rails + rail + 1,
                    place * 4
                ));
            }
        }
        for (leaf, spine) in
            (1..=leaves).flat_map(|leaf| (1..=size.spines).map(move |spine| (leaf, spine)))
        {
            table.push_str(&format!(
                "leaf{leaf},Ethernet{},spine{spine},Ethernet{}\n",
                400 + spine * 4,
                leaf * 4
            ));
        }
        let loaded = spec::load_spec(vec![SourceFile {
            name: "c.yaml".to_owned(),
            text,
        }])
        .unwrap();
        let loaded = spec::cabling::load_cabling(
            loaded,
            SourceFile {
                name: "cabling.csv".to_owned(),
                text: table,
            },
        )
        .unwrap();
        let mut fabric = Fabric {
            loaded,
            devices: Devices::new(),
        };
        fabric.answer();
        fabric
    }

    /// What all devices answer where all is right.
    fn answer(&mut self) {
        let mut ports: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for link in list_fabric_links(&self.loaded, None) {
            for end in [link.from, link.to] {
                ports.entry(end.device).or_default().push(end.port);
            }
        }
        for (name, ports) in ports {
            let device = match self.loaded.host(&name) {
                Some(_) => FabricDevice::Host(host(&ports)),
                None => FabricDevice::Switch(SwitchSystem::Sonic, switch(&ports)),
            };
            self.devices.insert(name, device);
        }
    }

    /// Changes a text in what a device answers to a read.
    pub fn bend(&mut self, device: &str, key: &str, from: &str, to: &str) {
        let answers = match self.devices.get_mut(device).unwrap() {
            FabricDevice::Host(answers) | FabricDevice::Switch(_, answers) => answers,
            FabricDevice::Silent(why) => panic!("{why}"),
        };
        let mut answer = answers
            .by_key(key)
            .unwrap_or_else(|| panic!("{key}"))
            .clone();
        assert!(answer.out.contains(from), "{}", answer.out);
        answer.out = answer.out.replace(from, to);
        answers.insert(key, answer);
    }

    /// Checks it.
    pub fn evaluated(&self) -> (DesiredFabricSettings, Report) {
        let desired = DesiredFabricSettings::of(&self.loaded, true);
        let report = check_fabric_links(
            &list_fabric_links(&self.loaded, None),
            &self.devices,
            &desired,
        );
        (desired, report)
    }
}

fn add(answers: &mut ReadResults, read: &Read, out: String) {
    answers.insert(
        read.key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out,
        },
    );
}

fn host(netdevs: &[String]) -> ReadResults {
    let mut answers = ReadResults::default();
    for netdev in netdevs {
        let netdev = netdev.clone();
        add(
            &mut answers,
            &Read::Link {
                netdev: netdev.clone(),
            },
            "mtu=9000\nflags=0x1003\noperstate=up\ncarrier=1\n".to_owned(),
        );
        let pfc = "\n\
                   == pfc 0\n\
                   |{\"prio_pfc\":[false,false,false,true,false,false,false,false]}\n\
                   \n\
                   == app 0\n\
                   |{\"dscp_prio\":[[26,3],[48,6]]}\n";
        add(&mut answers, &Read::LinkQos { netdev }, pfc.to_owned());
    }
    for (sample, uptime, pauses) in [
        (CounterSampleOrdinal::First, 1000, 40),
        (CounterSampleOrdinal::Second, 1005, 42),
    ] {
        let one = |netdev: &String| {
            format!(
                "port {netdev}\n\
                 rx_prio3_pause {pauses}\n\
                 tx_prio3_pause 7\n\
                 rx_prio5_pause 0\n\
                 rx_prio3_buf_discard 0\n\
                 rx_discards_phy 0\n\
                 out_of_buffer 5\n\
                 np_ecn_marked_roce_packets 900\n\
                 np_cnp_sent 450\n\
                 rp_cnp_handled 3\n"
            )
        };
        let out = format!(
            "uptime {uptime}.00\n{}",
            netdevs.iter().map(one).collect::<String>()
        );
        add(
            &mut answers,
            &Read::LinkCounters {
                netdevs: Vec::new(),
                sample,
            },
            out,
        );
    }
    answers
}

fn switch(ports: &[String]) -> ReadResults {
    let each = |row: Value| -> Value {
        ports
            .iter()
            .map(|port| (port.clone(), row.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let identity: BTreeMap<String, String> =
        (0..8).map(|n| (n.to_string(), n.to_string())).collect();
    let maps = json!({ "dscp_to_tc_map": "FABRIC", "tc_to_queue_map": "FABRIC", "tc_to_pg_map": "FABRIC", "pfc_to_queue_map": "FABRIC", "pfc_enable": "3" });
    let queues: serde_json::Map<String, Value> = ports
        .iter()
        .map(|port| (format!("{port}|3"), json!({ "wred_profile": "FABRIC" })))
        .collect();
    let wred = json!({ "ecn": "ecn_all", "green_min_threshold": "1000000", "green_max_threshold": "2000000", "green_drop_probability": "10" });
    let db = json!({
        "PORT": each(json!({ "speed": "400000", "mtu": "9216", "admin_status": "up" })),
        "PORT_QOS_MAP": each(maps),
        "DSCP_TO_TC_MAP": { "FABRIC": { "26": "3", "48": "6" } },
        "TC_TO_QUEUE_MAP": { "FABRIC": identity },
        "MAP_PFC_PRIORITY_TO_QUEUE": { "FABRIC": identity },
        "TC_TO_PRIORITY_GROUP_MAP": { "FABRIC": identity },
        "QUEUE": queues,
        "WRED_PROFILE": { "FABRIC": wred },
    });
    let system = SwitchSystem::Sonic;
    let mut answers = ReadResults::default();
    add(
        &mut answers,
        &Read::Switch {
            system,
            of: SwitchRead::Running,
        },
        db.to_string(),
    );
    for (sample, uptime, marked) in [
        (CounterSampleOrdinal::First, 5000, 10),
        (CounterSampleOrdinal::Second, 5005, 13),
    ] {
        let one = |port: &String| {
            format!(
                "port {port}\n\
                 SAI_PORT_STAT_PFC_3_RX_PKTS 2\n\
                 SAI_PORT_STAT_PFC_3_TX_PKTS 1\n\
                 SAI_PORT_STAT_PFC_5_RX_PKTS 0\n\
                 SAI_QUEUE_STAT_DROPPED_PACKETS/0 8\n\
                 SAI_QUEUE_STAT_DROPPED_PACKETS/3 0\n\
                 SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS/3 {marked}\n\
                 PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED/3 1\n\
                 PFC_WD_STATUS/3 operational\n\
                 SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS/3 0\n"
            )
        };
        let out = format!(
            "uptime {uptime}.00\n{}",
            ports.iter().map(one).collect::<String>()
        );
        add(
            &mut answers,
            &Read::SwitchCounters {
                system,
                ports: Vec::new(),
                sample,
            },
            out,
        );
    }
    answers
}
