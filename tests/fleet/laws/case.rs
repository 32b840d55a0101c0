//! A random spec, a random world and a random schedule of faults: one value, so that it shrinks as
//! a whole, and one line of JSON, so that it can be run again.

use super::leaf::{Port, port_resources};
use super::third_party::{EDITS, Edited, edit};
use crate::nodes::Nodes;
use crate::room::{Room, resource};
use crate::switches::{LEAF, delivered, port};
use proptest::prelude::*;
use railwright_apply::apply_plan;
use railwright_base::Address;
use railwright_knowledge::spec::model::Rollout;
use railwright_plan::{DrainPolicy, Plan, PlanSelection};
use railwright_resource::action::UnitVerb;
use railwright_resource::interrupt_affinity::script::InterruptBinding;
use railwright_resource::{Action, DesiredResource, Disruption};
use railwright_transport::sim::links::SimulatedNetdev;
use railwright_transport::sim::modules::ModuleFile;
use railwright_transport::sim::packages::SimulatedInstalledPackage;
use railwright_transport::sim::pci::Pci;
use railwright_transport::sim::{
    SimulatedFault, SimulatedHost, SimulatedTrouble, new_simulated_switch_access,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a host stays down, in seconds, if nobody switches it on.
const DOWN_S: u32 = 10_000_000;

/// How many things a spec may declare.
pub const WISHES: usize = 18;

/// A resource of the spec, on every host: which, in which of its forms, after which earlier ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResource {
    /// Which, below `WISHES`.
    pub what: usize,
    /// One of two forms (another content, another value).
    pub form: bool,
    /// Places of earlier resources in the list.
    pub after: Vec<usize>,
}

/// What is on a host before anybody comes: bits, each a thing that is there already or otherwise.
pub type There = u32;

/// A fault on one of the hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Struck {
    /// The host's number.
    pub host: usize,
    /// What and when.
    #[serde(flatten)]
    pub fault: SimulatedFault,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// One entry a host.
    pub hosts: Vec<There>,
    /// The declared resources.
    pub resources: Vec<CaseResource>,
    /// Which of the resources (by place) the second spec no longer has.
    pub dropped: BTreeSet<usize>,
    /// Hosts that may be out of service.
    pub max_unavailable: usize,
    /// Hosts in the first wave.
    pub canary: usize,
    /// What goes wrong.
    pub faults: Vec<Struck>,
    /// The journal record before which the controller dies, and whether it is torn.
    pub crash: (usize, bool),
    /// What somebody else does in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edited>,
    /// Hosts that nobody reaches before the plan is made.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub down: BTreeSet<usize>,
    /// The desired state of the ports of the leaf that the hosts are behind, from its second on;
    /// without any there is no leaf.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaf: Vec<Port>,
    /// The spec was applied once before, and is another one since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lived: bool,
    /// How much it may disturb, and how many may be out of service.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// Hosts that do not pass their gate.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failing: BTreeSet<usize>,
}

/// What a rollout may do, beside the number of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The budget as a share of all hosts, in place of the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<usize>,
    /// The hosts are nodes of a cluster, which are emptied for what disturbs at least so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drains: Option<Disruption>,
    /// What is above a drain is blocked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub boots_nobody: bool,
    /// Plans are narrowed to this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<usize>,
}

impl Policy {
    fn is_default(&self) -> bool {
        *self == Policy::default()
    }
}

/// The name of the host with this number.
pub fn name(number: usize) -> String {
    format!("gpu{number:02}")
}

/// The resource's kind and body.
fn body(what: usize, form: bool) -> (&'static str, Value) {
    let two = |yes: &'static str, no: &'static str| if form { yes } else { no };
    match what {
        0 => (
            "file",
            json!({ "path": "/etc/a.conf", "content": two("a = 1\n", "a = 2\n") }),
        ),
        1 => (
            "file",
            json!({ "path": "/opt/tool/etc/c.conf", "content": two("ä\n", "c\n"), "mode": "0600" }),
        ),
        2 => (
            "sysctl",
            json!({ "key": "net.core.a", "value": two("5", "7") }),
        ),
        3 => (
            "sysctl",
            json!({ "key": "vm.c", "value": two("1 2 3", "4 5 6") }),
        ),
        4 => (
            "kernel_module",
            json!({ "name": "m_two", "loaded": true, "at_boot": true }),
        ),
        5 => (
            "kernel_module",
            json!({ "name": "m_par", "loaded": true, "at_boot": true, "options": { "size": two("64", "128") } }),
        ),
        6 => (
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": two("pt", "off") }),
        ),
        7 => (
            "package",
            json!({ "name": "tool", "version": two("2", "1") }),
        ),
        8 => ("package", json!({ "name": "lib" })),
        9 => (
            "systemd_unit",
            json!({ "name": "svc.service", "enabled": true, "active": true, "restart_on": ["/etc/a.conf"] }),
        ),
        10 => (
            "systemd_unit",
            json!({ "name": "own.service", "enabled": true, "active": true,
                "content": format!("[Service]\nType={}\nRemainAfterExit=yes\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", two("oneshot", "exec")) }),
        ),
        11 => (
            "link",
            json!({ "netdev": "eth1", "mtu": if form { 9000 } else { 4200 } }),
        ),
        12 => ("link", json!({ "netdev": "eth2", "mtu": 9000, "up": true })),
        13 => (
            "pci_setting",
            json!({ "netdev": "eth1", "max_read_request": if form { 4096 } else { 1024 } }),
        ),
        14 => (
            "pci_setting",
            json!({ "netdevs": ["eth1"], "acs": two("off", "redirect-off") }),
        ),
        15 => (
            "interrupt_affinity",
            json!({ "netdev": "eth1", "cpus": two("numa-local", "4-5") }),
        ),
        16 if form => (
            "firmware_setting",
            json!({ "netdev": "eth1", "settings": { "SRIOV_EN": 1 }, "takes_effect": "power_cycle" }),
        ),
        16 => (
            "firmware_setting",
            json!({ "netdev": "eth1", "settings": { "NUM_OF_VFS": 8 } }),
        ),
        _ => (
            "command",
            json!({ "name": "thing", "run": "make thing", "read": { "probe": "show thing", "expect": two("one", "one") } }),
        ),
    }
}

/// A host on which some of it is there already.
pub fn host(there: There) -> SimulatedHost {
    let bit = |n: u32| there >> n & 1 == 1;
    let mut host = SimulatedHost::fresh();
    let settings = [("net.core.a", "0"), ("vm.c", "0 0 0")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    (host.kernel.sysctls, host.kernel.defaults) = (settings.clone().into(), settings.into());
    let module = |needs: &[&str], parameters: &[(&str, &str)]| ModuleFile {
        needs: needs.iter().map(ToString::to_string).collect(),
        parameters: parameters
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    };
    host.kernel.on_disk = [
        ("m_one", module(&[], &[])),
        ("m_two", module(&["m_one"], &[])),
        ("m_par", module(&[], &[("size", "8")])),
    ]
    .map(|(name, file)| (name.to_owned(), file))
    .into();
    host.packages.offered = BTreeMap::from([
        ("tool".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
        ("lib".to_owned(), vec!["1".to_owned()]),
    ]);
    let unit = "[Unit]\n\
                Description=of a package\n\
                [Service]\n\
                ExecStart=/bin/svc\n\
                [Install]\n\
                WantedBy=multi-user.target\n";
    host.disk
        .put("/usr/lib/systemd/system/svc.service", unit.into());
    host.units.reload(&host.disk);
    host.disk.put(
        "/etc/systemd/network/10-eth1.network",
        "[Match]\nName=eth1\n[Network]\nAddress=10.0.0.1/24\n".into(),
    );
    host.links.0.insert(
        "eth1".to_owned(),
        SimulatedNetdev::of(9978, Some("/etc/systemd/network/10-eth1.network")),
    );
    host.links
        .0
        .insert("eth2".to_owned(), SimulatedNetdev::of(9978, None));
    host.links.reload(&host.disk);
    host.pci = Pci::server("eth1");
    host.firmware.put("eth1", "SRIOV_EN", "0", true);
    host.firmware.put("eth1", "NUM_OF_VFS", "0", false);
    host.probes
        .insert("show thing".to_owned(), "/opt/thing".to_owned());
    let make = Action::WriteFile {
        path: "/opt/thing".into(),
        content: "one\n".into(),
        mode: "0644".into(),
        owner: "root".into(),
        group: "root".into(),
    };
    host.commands.insert("make thing".to_owned(), vec![make]);
    settle_in(&mut host, &bit);
    host
}

/// What the bits say is there.
fn settle_in(host: &mut SimulatedHost, bit: &impl Fn(u32) -> bool) {
    if bit(0) {
        host.disk.put(
            "/etc/a.conf",
            if bit(1) { "a = 1\n" } else { "by hand\n" }.into(),
        );
    }
    if bit(2) {
        host.disk
            .put("/etc/sysctl.d/10-site.conf", "net.core.a = 5\n".into());
        host.kernel.set_sysctl("net.core.a", "5").unwrap();
    }
    if bit(3) {
        host.kernel
            .loaded
            .insert("m_one".to_owned(), BTreeMap::new());
    }
    if bit(4) {
        host.kernel.loaded.insert(
            "m_par".to_owned(),
            [("size".to_owned(), "8".to_owned())].into(),
        );
        if bit(5) {
            host.kernel.used.insert("m_par".to_owned());
        }
    }
    if bit(6) {
        let held = bit(7);
        host.packages.installed.insert(
            "tool".to_owned(),
            SimulatedInstalledPackage {
                version: "1".to_owned(),
                held: false,
                half: held,
            },
        );
    }
    if bit(8) {
        host.packages.installed.insert(
            "lib".to_owned(),
            SimulatedInstalledPackage {
                version: "1".to_owned(),
                held: false,
                half: false,
            },
        );
    }
    if bit(9) {
        host.disk.put(
            "/etc/default/grub.d/50-cloud.cfg",
            "GRUB_CMDLINE_LINUX=\"console=ttyS0 iommu=off\"\n".into(),
        );
        host.loader.update(&host.disk).unwrap();
        host.loader.running = host.loader.next.clone();
    }
    if bit(10) {
        let began_s = host.clock_s(std::time::Duration::ZERO);
        host.units
            .tell("svc.service", UnitVerb::Enable, &host.disk, began_s)
            .unwrap();
        host.units
            .tell("svc.service", UnitVerb::Start, &host.disk, began_s)
            .unwrap();
    }
    if bit(11) {
        host.disk.put("/opt/thing", "one\n".into());
    }
    if bit(13) {
        host.pci
            .bind(&[InterruptBinding {
                number: 41,
                cpus: "1".to_owned(),
            }])
            .unwrap();
        host.pci
            .functions
            .values_mut()
            .for_each(|function| function.now.control = 0x3000);
    }
    if bit(12) {
        host.links.set("eth1", Some(9000), None, &[], &[]).unwrap();
    }
}

impl Case {
    /// The hosts' names.
    pub fn names(&self) -> Vec<String> {
        (0..self.hosts.len()).map(name).collect()
    }

    /// The names of the hosts, and of the leaf where there is one.
    pub fn targets(&self) -> Vec<String> {
        self.names()
            .into_iter()
            .chain((!self.leaf.is_empty()).then(|| LEAF.to_owned()))
            .collect()
    }

    /// The world before anybody comes, with everything that is declared and nothing that goes
    /// wrong yet.
    pub fn room(&self) -> Room {
        let mut hosts: BTreeMap<String, SimulatedHost> = self
            .hosts
            .iter()
            .enumerate()
            .map(|(n, there)| (name(n), host(*there)))
            .collect();
        if !self.leaf.is_empty() {
            hosts.insert(
                LEAF.to_owned(),
                SimulatedHost::switch(delivered(), &port(0)),
            );
        }
        let mut room = Room::with(hosts);
        if let Some(access) = room.context.hosts.get_mut(LEAF) {
            *access = new_simulated_switch_access(LEAF);
            room.rollout.behind = BTreeMap::from([(LEAF.to_owned(), self.names().join(","))]);
        }
        room.resources = self.desired(&BTreeSet::new());
        (room.rollout.canary, room.rollout.max_unavailable) = (self.canary, self.max_unavailable);
        room.rollout.max_disruption = if self.policy.boots_nobody {
            Disruption::Drain
        } else {
            Disruption::Reboot
        };
        if let Some(percent) = self.policy.percent {
            let rollout: Rollout =
                serde_json::from_value(json!({ "max_unavailable": format!("{percent}%") }))
                    .unwrap();
            room.rollout.max_unavailable = rollout.max_unavailable(self.hosts.len());
        }
        if let Some(from) = self.policy.drains {
            Nodes::beside(&mut room);
            let drain = DrainPolicy {
                from,
                evict: true,
                timeout_s: 900,
                evict_unmanaged: false,
                delete_local_data: false,
            };
            room.rollout.drain = Some(drain);
        }
        *room.gate.bad.lock().unwrap() = self.failing.iter().map(|number| name(*number)).collect();
        room
    }

    /// The plan of a room, narrowed where the case has it so.
    pub async fn plan(&self, room: &Room) -> Plan {
        let targets = self
            .policy
            .target
            .map(|number| format!("host/{}", name(number)))
            .into_iter()
            .collect();
        room.narrowed_plan(PlanSelection {
            targets,
            excludes: Vec::new(),
        })
        .await
    }

    /// Whether the host with this number is in its plans.
    pub fn covers(&self, number: usize) -> bool {
        self.policy.target.is_none_or(|target| target == number)
    }

    /// What the hosts that its plans are not about were told, by host.
    pub fn told_to_others(&self, room: &Room) -> BTreeMap<String, Vec<String>> {
        let others = (0..self.hosts.len())
            .filter(|number| !self.covers(*number))
            .map(name);
        others
            .map(|other| (other.clone(), room.host(&other, |host| host.told.clone())))
            .collect()
    }

    /// Hosts that may be out of service, by an account of its own.
    pub fn budget(&self) -> usize {
        self.policy.percent.map_or(self.max_unavailable, |percent| {
            self.hosts.len() * percent / 100
        })
    }

    /// From now on things go wrong.
    pub fn strike(&self, room: &Room) {
        for struck in &self.faults {
            room.fleet.with(&name(struck.host), |host| {
                host.faults.push(SimulatedFault {
                    after: host.calls + struck.fault.after,
                    ..struck.fault.clone()
                });
            });
        }
    }

    /// The world as the plan finds it: with the spec applied once, edited by others and changed
    /// since, where the case has it so; and without the hosts that are down.
    pub async fn lived_room(&self) -> Room {
        let mut room = self.room();
        if self.lived {
            let plan = room.plan().await;
            apply_plan(&plan, &room.context, room.sink()).await;
            let now = room.fleet.now();
            for edited in &self.edits {
                room.host(&name(edited.host), |host| {
                    host.suffer(
                        SimulatedTrouble::Stranger(Box::new(edit(edited.edit).0)),
                        now,
                    )
                });
            }
            room.resources = self.desired(&self.dropped);
        }
        self.switch_off(&room);
        room
    }

    /// The hosts that are down before the plan are so from now on.
    pub fn switch_off(&self, room: &Room) {
        for number in &self.down {
            room.host(&name(*number), |host| {
                host.suffer(SimulatedTrouble::Unreachable(DOWN_S), Duration::ZERO)
            });
        }
    }

    /// Everybody is reached again.
    pub fn switch_on(&self, room: &Room) {
        self.down
            .iter()
            .for_each(|number| room.host(&name(*number), |host| host.down_until = Duration::ZERO));
    }

    /// Whether a package was half installed on the host with this number before anybody came.
    pub fn has_half_package(&self, number: usize) -> bool {
        self.hosts.get(number).is_some_and(|there| {
            host(*there)
                .packages
                .installed
                .values()
                .any(|package| package.half)
        })
    }

    /// Which resource of a host (`CaseResource::what`) has this address.
    pub fn what_is(&self, address: &Address) -> Option<usize> {
        let is_it = |place: &usize| self.address(&address.target.name, *place).path == address.path;
        (0..self.resources.len())
            .find(is_it)
            .map(|place| self.resources[place].what)
    }

    /// The resources without those that are left out, on every host.
    pub fn desired(&self, without: &BTreeSet<usize>) -> Vec<DesiredResource> {
        let mut all = Vec::new();
        for host in self.names() {
            for (place, desired) in self
                .resources
                .iter()
                .enumerate()
                .filter(|(place, _)| !without.contains(place))
            {
                let (kind, body) = body(desired.what, desired.form);
                let mut own = resource(&host, kind, body, &[]);
                let earlier = desired
                    .after
                    .iter()
                    .filter(|before| **before < place && !without.contains(before));
                // A file that comes after the unit that watches it would leave a restart pending,
                // as it was asked for.
                let earlier = earlier.filter(|_| desired.what != 0);
                own.after = earlier.map(|before| self.address(&host, *before)).collect();
                all.push(own);
            }
        }
        let kept = |n: &usize| !without.contains(&(self.resources.len() + n));
        all.extend(
            (0..self.leaf.len())
                .filter(kept)
                .flat_map(|n| port_resources(n + 1, &self.leaf[n])),
        );
        all
    }

    /// Whether a fault takes the power of this host.
    pub fn loses_power(&self, host: &str) -> bool {
        let takes = |struck: &Struck| struck.fault.trouble == SimulatedTrouble::PowerLost;
        self.faults
            .iter()
            .any(|struck| takes(struck) && name(struck.host) == host)
    }

    fn address(&self, host: &str, place: usize) -> Address {
        let (kind, body) = body(self.resources[place].what, self.resources[place].form);
        resource(host, kind, body, &[]).address
    }
}

/// What may go wrong without changing what a run comes to in the end: it only has to look again, or
/// wait. A reboot that was asked for and not heard is none of it: nobody can tell it from one that
/// hangs, and it is told as that.
pub fn benign() -> BoxedStrategy<SimulatedTrouble> {
    prop_oneof![
        Just(SimulatedTrouble::LostAfter),
        (1u32..90).prop_map(SimulatedTrouble::GoesOn),
        (2u32..20).prop_map(SimulatedTrouble::Slow),
        (1u32..50).prop_map(SimulatedTrouble::PackagesLocked),
        (1i64..100_000).prop_map(SimulatedTrouble::Clock),
        (300u32..900).prop_map(SimulatedTrouble::BackAfter),
    ]
    .boxed()
}

/// Everything that may go wrong, save that somebody else changes the host.
pub fn troubles() -> BoxedStrategy<SimulatedTrouble> {
    prop_oneof![
        4 => benign(),
        1 => Just(SimulatedTrouble::LostBefore),
        1 => Just(SimulatedTrouble::Killed),
        1 => Just(SimulatedTrouble::Fails),
        1 => Just(SimulatedTrouble::NoEffect),
        1 => Just(SimulatedTrouble::OldKernel),
        1 => Just(SimulatedTrouble::PowerLost),
        1 => (0usize..12).prop_map(SimulatedTrouble::CutOff),
        1 => Just(SimulatedTrouble::ArmedUnsaid),
        1 => (1u32..4000).prop_map(SimulatedTrouble::Unreachable),
        1 => (1u32..30).prop_map(SimulatedTrouble::DiskFull),
        1 => (50u32..4000).prop_map(SimulatedTrouble::PackagesLocked),
        1 => (1000u32..5000).prop_map(SimulatedTrouble::BackAfter),
    ]
    .boxed()
}

fn resources() -> impl Strategy<Value = Vec<CaseResource>> {
    let one = (
        0..WISHES,
        any::<bool>(),
        proptest::collection::vec(0usize..8, 0..3),
    );
    proptest::collection::vec(one, 1..9).prop_map(|all| {
        let mut seen = BTreeSet::new();
        // One thing in two forms is no spec.
        let all = all
            .into_iter()
            .map(|(what, form, after)| CaseResource { what, form, after });
        all.filter(|desired| seen.insert(desired.what)).collect()
    })
}

/// What else varies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Freedom {
    /// Up to so many edits by somebody else.
    pub edits: usize,
    /// Hosts are down before the plan is made.
    pub down: bool,
    /// The hosts may be behind a leaf that has resources.
    pub leaf: bool,
    /// The spec may have been applied once before.
    pub lived: bool,
    /// Budgets in percent, nodes that are emptied, plans that are narrowed or boot nobody.
    pub policy: bool,
    /// Up to so many hosts do not pass their gate.
    pub failing: usize,
}

impl Freedom {
    fn policy(self) -> impl Strategy<Value = Policy> {
        let drains = prop_oneof![
            Just(Disruption::Restart),
            Just(Disruption::LinkBlip),
            Just(Disruption::Reboot)
        ];
        let percent = proptest::option::of(1usize..=100);
        let target = proptest::option::weighted(0.3, 0usize..6);
        let all = (
            percent,
            proptest::option::of(drains),
            proptest::bool::weighted(0.1),
            target,
        );
        all.prop_map(
            move |(percent, drains, boots_nobody, target)| match self.policy {
                true => Policy {
                    percent,
                    drains,
                    boots_nobody,
                    target,
                },
                false => Policy::default(),
            },
        )
    }
}

impl Policy {
    /// For so many hosts: a share that comes to none of them makes no valid spec (RW0116), and none
    /// but them is a target.
    fn for_hosts(self, hosts: usize) -> Self {
        let least = 100usize.div_ceil(hosts);
        Policy {
            percent: self.percent.map(|percent| percent.max(least)),
            target: self.target.map(|host| host % hosts),
            ..self
        }
    }
}

/// Cases with up to so many hosts and faults of this sort.
pub fn cases(
    hosts: usize,
    trouble: BoxedStrategy<SimulatedTrouble>,
    faults: usize,
) -> BoxedStrategy<Case> {
    free_cases(hosts, trouble, faults, Freedom::default())
}

/// Cases in which more varies.
pub fn free_cases(
    hosts: usize,
    trouble: BoxedStrategy<SimulatedTrouble>,
    faults: usize,
    freedom: Freedom,
) -> BoxedStrategy<Case> {
    let hosts = proptest::collection::vec(any::<u32>().prop_map(|bits| bits & 0x3fff), 1..=hosts);
    let struck = (any::<prop::sample::Index>(), 0u32..60, trouble);
    let dropped = proptest::collection::btree_set(0usize..8, 0..4);
    let rest = (
        1usize..4,
        1usize..3,
        proptest::collection::vec(struck, 0..=faults),
        (0usize..120, any::<bool>()),
    );
    let edited = (any::<prop::sample::Index>(), 0u32..30, 0..EDITS);
    let most = |many: usize, is_free: bool| if is_free { many } else { 0 };
    let down = proptest::collection::vec(any::<prop::sample::Index>(), 0..=most(1, freedom.down));
    let port = (
        prop_oneof![Just(None), Just(Some(9100u32)), Just(Some(9216))],
        prop_oneof![Just(None), Just(Some(true))],
        any::<bool>(),
    );
    let ports = proptest::collection::vec(
        port.prop_map(|(mtu, up, lossless)| Port { mtu, up, lossless }),
        0..=most(2, freedom.leaf),
    );
    let failing = proptest::collection::btree_set(0usize..6, 0..=freedom.failing);
    let more = (
        proptest::collection::vec(edited, 0..=freedom.edits),
        down,
        ports,
        any::<bool>(),
        freedom.policy(),
        failing,
    );
    let made = (hosts, resources(), dropped, rest, more).prop_map(
        move |(hosts, resources, dropped, rest, more)| {
            let (edited, down, leaf, lived, policy, failing) = more;
            let (max_unavailable, canary, struck, crash) = rest;
            let strike =
                |(host, after, trouble): (prop::sample::Index, u32, SimulatedTrouble)| Struck {
                    host: host.index(hosts.len()),
                    fault: SimulatedFault {
                        after,
                        word: None,
                        trouble,
                    },
                };
            let faults = struck.into_iter().map(strike).collect();
            let edit = |(host, after, edit): (prop::sample::Index, u32, usize)| Edited {
                host: host.index(hosts.len()),
                after,
                edit,
            };
            let edits = edited.into_iter().map(edit).collect();
            // Of one host there would be nobody left to plan for.
            let down = down
                .into_iter()
                .filter(|_| hosts.len() > 1)
                .map(|host| host.index(hosts.len()))
                .collect();
            let failing = failing
                .into_iter()
                .filter(|host| *host < hosts.len())
                .collect();
            let (policy, lived) = (policy.for_hosts(hosts.len()), lived && freedom.lived);
            Case {
                resources,
                dropped,
                max_unavailable,
                canary,
                faults,
                crash,
                edits,
                down,
                leaf,
                lived,
                policy,
                failing,
                hosts,
            }
        },
    );
    made.boxed()
}
