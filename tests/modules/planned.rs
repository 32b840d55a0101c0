//! The plan of a case: facts in, plan out, and nothing left to do for the facts of after it.

use crate::is_of;
use railwright_base::{Digest, Target};
use railwright_knowledge::module::Desired;
use railwright_knowledge::spec::Loaded;
use railwright_plan::{Applied, Header, Inputs, InventoryOrigin, LastApplied, Node, Outages, Plan, Proof, RolloutPolicy, Selection, make};
use railwright_report as report;
use railwright_resource::{Observation, Wish, kind_named};
use std::collections::BTreeMap;

/// The wishes of one module.
fn wishes(desired: &Desired, module: &str) -> Vec<Wish> {
    let of_module = |wish: &&Wish| desired.why[&wish.address].iter().any(|why| is_of(module, &why.module));
    desired.wishes.iter().filter(of_module).cloned().collect()
}

/// The first plan that the facts give.
pub fn plan(loaded: &Loaded, desired: &Desired, module: &str, facts: &Observation) -> Plan {
    planned(loaded, &wishes(desired, module), &LastApplied::default(), facts)
}

/// The screen without the lines that name files and digests.
pub fn screen(plan: &Plan) -> String {
    let screen = report::plan::screen(plan, &report::plan::Next::default());
    let lines = screen.lines().filter(|line| !["cluster ", "spec ", "digest "].iter().any(|word| line.starts_with(word)));
    lines.map(|line| format!("{line}\n")).collect::<String>().trim_start().to_owned()
}

/// What is left to do once the first plan was carried out and its hosts say what they then said; nothing is right.
pub fn second(loaded: &Loaded, desired: &Desired, module: &str, facts: &Observation, applied: &Observation) -> Option<String> {
    let wishes = wishes(desired, module);
    let first = planned(loaded, &wishes, &LastApplied::default(), facts);
    let resources = first.nodes.iter().flat_map(Node::members).map(|member| {
        let applied = Applied::of(&member.wish, member.before.clone(), false, "r0001", "2026-01-01T00:00:00Z".to_owned());
        (member.wish.address.clone(), applied)
    });
    let second = planned(loaded, &wishes, &LastApplied { resources: resources.collect() }, applied);
    let left = !second.nodes.is_empty() || !second.unknown.is_empty();
    left.then(|| format!("the second plan is not empty\n{}", screen(&second)))
}

fn planned(loaded: &Loaded, wishes: &[Wish], last: &LastApplied, facts: &Observation) -> Plan {
    let inputs = Inputs {
        header: Header {
            made_by: String::new(),
            cluster: loaded.spec.cluster.clone(),
            inventory: InventoryOrigin::default(),
            spec_digest: Digest::of_bytes(b""),
            modules: BTreeMap::new(),
            proof: Proof::Rdma,
            waived: Vec::new(),
            no_ssh: Vec::new(),
        },
        wishes,
        last,
        outages: &Outages::new(),
        identity: &Default::default(),
        observation: facts,
        kinds: &kind_named,
        targets: &loaded.reached().map(|host| Target::host(&host.name)).collect::<Vec<_>>(),
        nodes: None,
        rollout: RolloutPolicy::of(loaded),
        selection: Selection::default(),
    };
    make(&inputs).unwrap()
}
