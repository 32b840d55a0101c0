//! The plan of a case: facts in, plan out, and nothing left to do for the facts of after it.

use crate::is_of;
use railwright_base::{Digest, Target};
use railwright_knowledge::module::DesiredState;
use railwright_knowledge::spec::LoadedSpec;
use railwright_plan::{
    AppliedResource, GateCoverage, Header, InventoryOrigin, LastApplied, Outages, Plan, PlanInputs,
    PlanNode, PlanSelection, RolloutPolicy, make_plan,
};
use railwright_report as report;
use railwright_resource::{DesiredResource, Observation, kind_named};
use std::collections::BTreeMap;

/// The resources of one module.
fn resources(desired: &DesiredState, module: &str) -> Vec<DesiredResource> {
    let of_module = |resource: &&DesiredResource| {
        desired.why[&resource.address]
            .iter()
            .any(|why| is_of(module, &why.module))
    };
    desired
        .resources
        .iter()
        .filter(of_module)
        .cloned()
        .collect()
}

/// The first plan that the facts give.
pub fn plan(
    loaded: &LoadedSpec,
    desired: &DesiredState,
    module: &str,
    facts: &Observation,
) -> Plan {
    planned(
        loaded,
        &resources(desired, module),
        &LastApplied::default(),
        facts,
    )
}

/// The screen without the lines that name files and digests.
pub fn screen(plan: &Plan) -> String {
    let screen = report::plan::render_plan_screen(plan, &report::plan::PlanNextSteps::default());
    let lines = screen.lines().filter(|line| {
        !["cluster ", "spec ", "digest "]
            .iter()
            .any(|word| line.starts_with(word))
    });
    lines
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .trim_start()
        .to_owned()
}

/// What is left to do once the first plan was applied and its hosts report what they then reported;
/// nothing is right.
pub fn second(
    loaded: &LoadedSpec,
    desired: &DesiredState,
    module: &str,
    facts: &Observation,
    applied: &Observation,
) -> Option<String> {
    let resources = resources(desired, module);
    let first = planned(loaded, &resources, &LastApplied::default(), facts);
    let records = first
        .nodes
        .iter()
        .flat_map(PlanNode::members)
        .map(|member| {
            let applied = AppliedResource::of(
                &member.resource,
                member.before.clone(),
                false,
                "r0001",
                "2026-01-01T00:00:00Z".to_owned(),
            );
            (member.resource.address.clone(), applied)
        });
    let second = planned(
        loaded,
        &resources,
        &LastApplied {
            resources: records.collect(),
        },
        applied,
    );
    let left = !second.nodes.is_empty() || !second.unknown.is_empty();
    left.then(|| format!("the second plan is not empty\n{}", screen(&second)))
}

fn planned(
    loaded: &LoadedSpec,
    resources: &[DesiredResource],
    last: &LastApplied,
    facts: &Observation,
) -> Plan {
    let inputs = PlanInputs {
        header: Header {
            made_by: String::new(),
            cluster: loaded.spec.cluster.clone(),
            inventory: InventoryOrigin::default(),
            spec_digest: Digest::of_bytes(b""),
            modules: BTreeMap::new(),
            proof: GateCoverage::Rdma,
            waived: Vec::new(),
            no_ssh: Vec::new(),
        },
        resources,
        last,
        outages: &Outages::new(),
        identity: &Default::default(),
        observation: facts,
        kinds: &kind_named,
        targets: &loaded
            .reached()
            .map(|host| Target::host(&host.name))
            .collect::<Vec<_>>(),
        nodes: None,
        rollout: RolloutPolicy::of(loaded),
        selection: PlanSelection::default(),
    };
    make_plan(&inputs).unwrap()
}
