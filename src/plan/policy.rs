//! The rollout's rules with every number worked out: what stands in a plan is what was reviewed,
//! whatever becomes of the number of hosts later.

use crate::by_hand::is_by_hand;
use crate::model::PlanNode;
use railwright_base::{TargetKind, nodeset};
use railwright_knowledge::spec::model::{DrainPods, NodeGroup, Spec};
use railwright_knowledge::spec::window::{Opening, Window};
use railwright_knowledge::spec::{Host, LoadedSpec};
use railwright_resource::{Disruption, rollback_scope};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How hosts are taken in turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RolloutPolicy {
    /// Hosts of each hardware class in the first wave.
    pub canary: usize,
    /// Hosts that may be out of service at the same time.
    pub max_unavailable: usize,
    /// Nodes above this are blocked.
    pub max_disruption: Disruption,
    /// How many hosts each wave after the first has, the last repeated; `max_unavailable` where
    /// there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<usize>,
    /// How many hosts may be lost before nothing new is begun; `max_unavailable` where it is not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_budget: Option<usize>,
    /// Hardware classes with their hosts as node-sets, where there is more than one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, String>,
    /// Failure domains with their hosts as node-sets, where waves keep to them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    /// Maintenance windows; none where steps may begin at any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// What disturbs at least so much waits for a window, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_for: Option<Disruption>,
    /// How many seconds a run may go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
    /// After how many seconds what was not confirmed is rolled back, where the spec says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_timer_s: Option<u32>,
    /// After how many seconds a switch rolls back what was not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_rollback_timer_s: Option<u32>,
    /// Switches that railwright reaches, each with the hosts that are plugged into it as a
    /// node-set, as the cabling file has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub behind: BTreeMap<String, String>,
    /// How nodes of the Kubernetes cluster are emptied before their hosts are disturbed; nothing
    /// where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainPolicy>,
}

/// How a node is emptied before its host is disturbed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DrainPolicy {
    /// For what disturbs at least so much.
    pub from: Disruption,
    /// Pods are evicted; else they are left to end by themselves.
    pub evict: bool,
    /// After how many seconds a node that is not empty is given back.
    pub timeout_s: u32,
    /// Pods that no controller would recreate are evicted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evict_unmanaged: bool,
    /// Pods with data on the node's disk are evicted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_local_data: bool,
}

impl DrainPolicy {
    /// Whether a step disturbs so much that its host's node has to be empty. Whoever switches a
    /// host off by hand empties its node by hand.
    pub fn is_needed_for(&self, node: &PlanNode) -> bool {
        node.disruption >= self.from && !is_by_hand(node)
    }

    /// Of a spec with a cluster whose nodes are emptied.
    fn of(spec: &Spec) -> Option<Self> {
        let drain = spec.rollout.drain().filter(|_| spec.kubernetes.is_some())?;
        Some(DrainPolicy {
            from: drain.from(),
            evict: drain.pods == DrainPods::Evict,
            timeout_s: drain.timeout_s()?,
            evict_unmanaged: drain.evict_unmanaged,
            delete_local_data: drain.delete_local_data,
        })
    }
}

impl RolloutPolicy {
    /// Of a spec that was loaded.
    pub fn of(loaded: &LoadedSpec) -> Self {
        // The others are disturbed by nobody here, so they are in no wave, and no share of them may
        // be out of service.
        let (spec, hosts) = (&loaded.spec, &loaded.reached().collect::<Vec<_>>());
        let rollout = &spec.rollout;
        let mut classes =
            fold_hosts_by_key(spec, hosts, |group| Some(describe_hardware_class(group)));
        if classes.len() < 2 {
            classes.clear();
        }
        let domains = match &rollout.failure_domain {
            Some(label) => fold_hosts_by_key(spec, hosts, |group| group.labels.get(label).cloned()),
            None => BTreeMap::new(),
        };
        RolloutPolicy {
            canary: rollout.canary(),
            max_unavailable: rollout.max_unavailable(hosts.len()),
            max_disruption: rollout.max_disruption(),
            batches: rollout.batches(hosts.len()),
            failure_budget: rollout.failure_budget(hosts.len()),
            classes,
            domains,
            windows_for: Some(rollout.windows_for()).filter(|_| !rollout.windows.is_empty()),
            windows: rollout.windows.clone(),
            deadline_s: rollout.deadline_s(),
            rollback_timer_s: rollout.rollback_timer_s(),
            switch_rollback_timer_s: rollout.switch_rollback_timer_s(),
            behind: collect_attached_hosts(loaded),
            drain: DrainPolicy::of(spec),
        }
    }

    /// The hosts that are plugged into a switch; nothing where the cabling file knows of none.
    pub fn hosts_behind(&self, switch: &str) -> Option<Vec<String>> {
        nodeset::expand_node_set(self.behind.get(switch)?).ok()
    }

    /// The hardware class of each host that has one.
    pub fn class_of(&self) -> BTreeMap<String, &str> {
        by_host(&self.classes)
    }

    /// The failure domain of each host that has one.
    pub fn domain_of(&self) -> BTreeMap<String, &str> {
        by_host(&self.domains)
    }

    /// True for what begins only inside a maintenance window.
    pub fn needs_window(&self, disruption: Disruption) -> bool {
        !self.windows.is_empty() && disruption >= self.windows_for.unwrap_or(Disruption::LinkBlip)
    }

    /// The windows, ready to be asked; what cannot be read never opens.
    pub fn openings(&self) -> Vec<Opening> {
        self.windows
            .iter()
            .filter_map(|window| window.read().ok())
            .collect()
    }

    /// After how many seconds a target of this kind rolls back what was not confirmed.
    pub fn rollback_timer_s(&self, target: TargetKind) -> u32 {
        match target {
            TargetKind::Switch => self
                .switch_rollback_timer_s
                .unwrap_or(rollback_scope::SWITCH_S),
            _ => self.rollback_timer_s.unwrap_or(rollback_scope::DEFAULT_S),
        }
    }

    /// How many hosts may be lost before nothing new is begun; at least 1.
    pub fn failure_budget(&self) -> usize {
        self.failure_budget.unwrap_or(self.max_unavailable).max(1)
    }

    /// How many hosts the waves after the first have, one after the other; it never ends.
    pub fn ladder(&self) -> impl Iterator<Item = usize> {
        let last = self
            .batches
            .last()
            .copied()
            .unwrap_or(self.max_unavailable)
            .max(1);
        self.batches
            .iter()
            .map(|batch| (*batch).max(1))
            .chain(std::iter::repeat(last))
    }
}

/// Which of these node-sets each host is in.
fn by_host(sets: &BTreeMap<String, String>) -> BTreeMap<String, &str> {
    let mut key_of = BTreeMap::new();
    for (key, set) in sets {
        for name in nodeset::expand_node_set(set).unwrap_or_default() {
            key_of.insert(name, key.as_str());
        }
    }
    key_of
}

/// The hosts behind each switch that is reached.
fn collect_attached_hosts(loaded: &LoadedSpec) -> BTreeMap<String, String> {
    let Some(cabling) = &loaded.cabling else {
        return BTreeMap::new();
    };
    let mut reached = BTreeSet::new();
    for switch in &loaded.switches {
        if switch.is_managed() {
            reached.insert(switch.name.as_str());
        }
    }
    let hosts: BTreeSet<&str> = loaded.hosts.iter().map(|host| host.name.as_str()).collect();
    let mut attached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cable in &cabling.cables {
        let (from, to) = (cable.from.device.as_str(), cable.to.device.as_str());
        if reached.contains(to) && hosts.contains(from) {
            attached.entry(to).or_default().insert(from);
        }
    }
    let mut folded = BTreeMap::new();
    for (switch, hosts) in attached {
        let hosts: Vec<&str> = hosts.into_iter().collect();
        folded.insert(switch.to_owned(), nodeset::fold_node_set(&hosts));
    }
    folded
}

/// What a change could go wrong with on one host and not on another: GPU, NIC, operating system.
fn describe_hardware_class(group: &NodeGroup) -> String {
    let parts = [
        group.gpu.as_ref().map(|gpu| &gpu.model),
        group.nics.as_ref().map(|nics| &nics.model),
        group.os.as_ref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    if parts.is_empty() {
        "hosts of which the spec says nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

fn fold_hosts_by_key(
    spec: &Spec,
    hosts: &[&Host],
    key: impl Fn(&NodeGroup) -> Option<String>,
) -> BTreeMap<String, String> {
    let keys: Vec<Option<String>> = spec.nodes.iter().map(key).collect();
    let mut sets: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for host in hosts {
        if let Some(Some(key)) = keys.get(host.group) {
            sets.entry(key).or_default().push(&host.name);
        }
    }
    sets.into_iter()
        .map(|(key, names)| (key.clone(), nodeset::fold_node_set(&names)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_knowledge::spec::{SourceFile, load_spec};

    fn policy(text: &str) -> RolloutPolicy {
        let file = SourceFile {
            name: "inv/a.yaml".to_owned(),
            text: format!("cluster: a\n{text}"),
        };
        RolloutPolicy::of(
            &load_spec(vec![file]).unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics)),
        )
    }

    #[test]
    fn numbers_are_worked_out_and_hosts_sorted_by_what_the_spec_says_of_them() {
        let two_racks = "nodes:
  - { name: 'g[1-20]', gpu: { model: H100, count: 8 }, os: debian-12, labels: { rack: r1 } }
  - { name: 'g[21-39]', gpu: { model: H100, count: 8, driver: '535' }, os: debian-12, labels: { rack: r2 } }
";
        let one_class = policy(&format!(
            "{two_racks}rollout: {{ max_unavailable: 10%, batches: [1, 10%, 50%], failure_budget: \
             5% }}"
        ));
        assert_eq!(
            (
                one_class.max_unavailable,
                one_class.batches.clone(),
                one_class.failure_budget()
            ),
            (3, vec![1, 3, 19], 1)
        );
        assert!(
            one_class.classes.is_empty() && one_class.domains.is_empty(),
            "a driver and a rack are no hardware: {one_class:?}"
        );
        assert_eq!(
            one_class.ladder().take(5).collect::<Vec<_>>(),
            [1, 3, 19, 19, 19]
        );
        let login = "  - { name: login1, os: debian-12, labels: { rack: r2 } }\n  - { name: bare, labels: { rack: r2 } }\n";
        let three = policy(&format!(
            "{two_racks}{login}rollout: {{ failure_domain: rack }}"
        ));
        let sets: Vec<(&str, &str)> = three
            .classes
            .iter()
            .map(|(key, set)| (key.as_str(), set.as_str()))
            .collect();
        assert_eq!(
            sets,
            [
                ("H100, debian-12", "g[1-39]"),
                ("debian-12", "login1"),
                ("hosts of which the spec says nothing", "bare")
            ]
        );
        assert_eq!(
            (three.domains["r1"].as_str(), three.domains["r2"].as_str()),
            ("g[1-20]", "bare,g[21-39],login1")
        );
        assert_eq!(
            (three.failure_budget(), three.ladder().next()),
            (1, Some(1))
        );
    }

    #[test]
    fn a_policy_of_an_older_plan_is_read_and_written_as_it_was() {
        let older = r#"{"canary":1,"max_unavailable":2,"max_disruption":"reboot"}"#;
        let policy: RolloutPolicy = serde_json::from_str(older).unwrap();
        assert_eq!(
            serde_json::to_string(&policy).unwrap(),
            older,
            "else its plan's digest would no longer be right"
        );
    }
}
