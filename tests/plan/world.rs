//! A made-up kind, a world that it compares, and what tests ask of the plan that comes of it.

use railwright_base::{Address, Digest, Target};
use railwright_plan::*;
use railwright_resource::body::BodyType;
use railwright_resource::diff::Attribute;
use railwright_resource::{
    Action, AnswerStatus, DesiredResource, Disruption, Observation, Plane, Read, ReadResult,
    ReadResults, Reading, ResourceDeclaration, ResourceDiff, ResourceKind,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A made-up resource: its value is what the answer to a command says; its body says how it
/// behaves.
pub struct MadeUp;

pub fn read(resource: &DesiredResource) -> Read {
    Read::Command {
        script: resource.address.within_target(),
    }
}

impl ResourceKind for MadeUp {
    fn open_fields(&self) -> &'static [&'static str] {
        &["extra"]
    }
    fn open_maps(&self) -> &'static [&'static str] {
        &["map"]
    }
    fn name(&self) -> &'static str {
        "made_up"
    }
    fn address_name(&self, _: &Value) -> Option<String> {
        None
    }
    fn body_type(&self) -> BodyType {
        BodyType::of::<Value>()
    }
    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![read(resource)]
    }
    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let actual = match answers.output(&read(resource)) {
            Ok((0, text)) => Reading::is(text),
            Ok(_) => Reading::Absent,
            Err(reason) => Reading::Unknown(reason),
        };
        let desired = Reading::is(resource.text("value").unwrap_or_default());
        let input = resource.text("input").map(str::to_owned);
        let attribute = Attribute {
            input,
            ..Attribute::in_plane(Plane::Running, desired.clone(), actual.clone())
        };
        let flag = |name: &str| {
            resource
                .body
                .get(name)
                .and_then(Value::as_bool)
                .unwrap_or(false)
        };
        ResourceDiff {
            actions: if desired == actual {
                vec![]
            } else {
                vec![Action::RunCommand {
                    script: resource.address.within_target(),
                    limit_s: 1,
                    environment: BTreeMap::new(),
                    input: None,
                }]
            },
            attributes: BTreeMap::from([("value".to_owned(), attribute)]),
            needs_reboot: flag("reboot") && desired != actual,
            needs_power_cycle: flag("reboot") && flag("power_cycle") && desired != actual,
            disruption: if flag("drain") {
                Disruption::Drain
            } else {
                Disruption::None
            },
            transaction: resource.text("transaction").map(str::to_owned),
            disturbs: resource
                .text("disturbs")
                .map(str::to_owned)
                .into_iter()
                .filter(|_| desired != actual)
                .collect(),
            before: serde_json::to_value(&actual).unwrap(),
            ..ResourceDiff::default()
        }
    }
    fn undo(
        &self,
        resource: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let mut undone = self.diff(resource, answers);
        undone.residue = vec![format!("was {before}")];
        undone
    }
}

pub fn kinds(name: &str) -> Option<&'static dyn ResourceKind> {
    if name == "made_up" {
        Some(&MadeUp)
    } else {
        railwright_resource::kind_named(name)
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub resources: Vec<DesiredResource>,
    pub last: LastApplied,
    pub observation: Observation,
    pub targets: Vec<Target>,
    pub nodes: Option<ClusterNodes>,
    pub rollout: RolloutPolicy,
    pub selection: PlanSelection,
}

impl World {
    pub fn new() -> Self {
        World {
            resources: Vec::new(),
            last: LastApplied::default(),
            observation: Observation {
                format_version: "1.0".into(),
                recorded_at: "2026-01-01T00:00:00Z".into(),
                targets: BTreeMap::new(),
                texts: BTreeMap::new(),
            },
            targets: Vec::new(),
            nodes: None,
            rollout: RolloutPolicy {
                canary: 1,
                max_unavailable: 1,
                max_disruption: Disruption::Reboot,
                ..RolloutPolicy::default()
            },
            selection: PlanSelection::default(),
        }
    }

    pub fn resource(
        mut self,
        address: &str,
        found: Option<&str>,
        body: Value,
        after: &[&str],
    ) -> Self {
        let address: Address = address.parse().unwrap();
        let resource = DesiredResource {
            address: address.clone(),
            after: after.iter().map(|a| a.parse().unwrap()).collect(),
            declaration: ResourceDeclaration {
                kind: "made_up".to_owned(),
                body,
                module: "m/r".into(),
                places: Vec::new(),
            }
            .into(),
        };
        let target = self
            .observation
            .targets
            .entry(address.target.clone())
            .or_default();
        let status = AnswerStatus::Exit(i32::from(found.is_none()));
        target.answers.insert(
            read(&resource).key(),
            ReadResult {
                status,
                out: found.unwrap_or_default().into(),
            },
        );
        if !self.targets.contains(&address.target) {
            self.targets.push(address.target.clone());
        }
        self.resources.push(resource);
        self
    }

    pub fn applied(mut self, address: &str, body: Value) -> Self {
        let address: Address = address.parse().unwrap();
        let digest = Digest::of(&("made_up", &body));
        let applied = AppliedResource {
            kind: "made_up".into(),
            body,
            digest,
            module: "m/r".into(),
            places: vec![],
            after: vec![],
            before: json!("before"),
            adopted: false,
            unfinished: false,
            begun: vec![],
            run: "r1".into(),
            at: "t".into(),
        };
        let asked = read(&applied.resource(&address));
        if let Some(target) = self.observation.targets.get_mut(&address.target)
            && target.answers.get(&asked).is_none()
        {
            let left = ReadResult {
                status: AnswerStatus::Exit(0),
                out: "left".into(),
            };
            target.answers.insert(asked.key(), left);
        }
        self.last.resources.insert(address, applied);
        self
    }

    /// Each host has a twin that wants, remembers and says the same.
    pub fn doubled(mut self) -> Self {
        let twin = |target: &Target| Target {
            name: format!("{}twin", target.name).into(),
            ..target.clone()
        };
        let of = |address: &Address| Address {
            target: twin(&address.target),
            ..address.clone()
        };
        for resource in self.resources.clone() {
            self.resources.push(DesiredResource {
                address: of(&resource.address),
                after: resource.after.iter().map(of).collect(),
                ..resource
            });
        }
        for (address, applied) in self.last.resources.clone() {
            self.last.resources.insert(
                of(&address),
                AppliedResource {
                    after: applied.after.iter().map(of).collect(),
                    run: "r2".into(),
                    ..applied
                },
            );
        }
        for (target, said) in self.observation.targets.clone() {
            self.observation.targets.insert(twin(&target), said);
        }
        self.targets
            .extend(self.targets.iter().map(twin).collect::<Vec<_>>());
        self
    }

    /// This world with one target.
    pub fn only(&self, target: &Target) -> Self {
        let mut only = World {
            targets: vec![target.clone()],
            ..self.clone()
        };
        only.resources
            .retain(|resource| resource.address.target == *target);
        only.last
            .resources
            .retain(|address, _| address.target == *target);
        only.observation.targets.retain(|other, _| other == target);
        only
    }

    pub fn plan(&self) -> Plan {
        self.try_plan().unwrap()
    }

    pub fn try_plan(&self) -> Result<Plan, Vec<railwright_base::Diagnostic>> {
        make_plan(&PlanInputs {
            header: Header {
                made_by: "test".into(),
                cluster: "c".into(),
                inventory: InventoryOrigin::default(),
                spec_digest: Digest::of_bytes(b"spec"),
                modules: BTreeMap::new(),
                proof: Default::default(),
                waived: Vec::new(),
                no_ssh: Vec::new(),
            },
            resources: &self.resources,
            last: &self.last,
            outages: &Default::default(),
            observation: &self.observation,
            identity: &Default::default(),
            kinds: &kinds,
            targets: &self.targets,
            nodes: self.nodes.clone(),
            rollout: self.rollout.clone(),
            selection: self.selection.clone(),
        })
    }
}

pub fn ids(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|n| n.id.as_str()).collect()
}

pub fn node<'a>(plan: &'a Plan, id: &str) -> &'a PlanNode {
    plan.nodes
        .iter()
        .find(|n| n.id == id)
        .unwrap_or_else(|| panic!("{id} is not among {:?}", ids(plan)))
}

pub fn reason(plan: &Plan, id: &str) -> ChangeReason {
    node(plan, id).members()[0].reason.clone()
}
