//! The plan engine on made-up kinds: it must not care what a resource is or where it lives.

use super::*;
use crate::base::{Address, Digest, Target};
use crate::resource::Trouble;
use crate::resource::assessment::Attribute;
use crate::resource::{
    Action, Answer, AnswerStatus, Answers, Assessment, BodyError, Disruption, Kind, Observation, Plane, Read, Reading, Wish,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A made-up resource: its value is what the answer to a command says; its body says how it behaves.
struct MadeUp;

fn read(wish: &Wish) -> Read {
    Read::Command { script: wish.address.to_string() }
}

impl Kind for MadeUp {
    fn open_fields(&self) -> &'static [&'static str] {
        &["extra"]
    }
    fn name(&self) -> &'static str {
        "made_up"
    }
    fn address_name(&self, _: &Value) -> Option<String> {
        None
    }
    fn check(&self, _: &Value) -> Vec<BodyError> {
        Vec::new()
    }
    fn reads(&self, wish: &Wish) -> Vec<Read> {
        vec![read(wish)]
    }
    fn assess(&self, wish: &Wish, answers: &Answers) -> Assessment {
        let found = match answers.output(&read(wish)) {
            Ok((0, text)) => Reading::is(text),
            Ok(_) => Reading::Absent,
            Err(reason) => Reading::Unknown(reason),
        };
        let wanted = Reading::is(wish.text("value").unwrap_or_default());
        let attribute = Attribute::in_plane(Plane::Running, wanted.clone(), found.clone());
        let flag = |name: &str| wish.body.get(name).and_then(Value::as_bool).unwrap_or(false);
        Assessment {
            actions: if wanted == found {
                vec![]
            } else {
                vec![Action::RunCommand { script: wish.address.to_string(), limit_s: 1, environment: BTreeMap::new(), input: None }]
            },
            attributes: BTreeMap::from([("value".to_owned(), attribute)]),
            needs_reboot: flag("reboot") && wanted != found,
            disruption: if flag("drain") { Disruption::Drain } else { Disruption::None },
            transaction: wish.text("transaction").map(str::to_owned),
            disturbs: wish.text("disturbs").map(str::to_owned).into_iter().filter(|_| wanted != found).collect(),
            before: serde_json::to_value(&found).unwrap(),
            ..Assessment::default()
        }
    }
    fn undo(&self, wish: &Wish, before: &Value, answers: &Answers) -> Assessment {
        let mut undone = self.assess(wish, answers);
        undone.residue = vec![format!("was {before}")];
        undone
    }
}

fn kinds(name: &str) -> Option<&'static dyn Kind> {
    (name == "made_up").then_some(&MadeUp as &dyn Kind)
}

#[derive(Debug)]
struct World {
    wishes: Vec<Wish>,
    last: LastApplied,
    observation: Observation,
    targets: Vec<Target>,
    rollout: RolloutPolicy,
    selection: Selection,
}

impl World {
    fn new() -> Self {
        World {
            wishes: Vec::new(),
            last: LastApplied::default(),
            observation: Observation {
                format_version: "1.0".into(),
                recorded_at: "2026-01-01T00:00:00Z".into(),
                targets: BTreeMap::new(),
                texts: BTreeMap::new(),
            },
            targets: Vec::new(),
            rollout: RolloutPolicy { canary: 1, max_unavailable: 1, max_disruption: Disruption::Reboot, ..RolloutPolicy::default() },
            selection: Selection::default(),
        }
    }

    fn wish(mut self, address: &str, found: Option<&str>, body: Value, after: &[&str]) -> Self {
        let address: Address = address.parse().unwrap();
        let wish = Wish {
            address: address.clone(),
            kind: "made_up".into(),
            body,
            after: after.iter().map(|a| a.parse().unwrap()).collect(),
            module: "m/r".into(),
            places: vec![],
        };
        let target = self.observation.targets.entry(address.target.clone()).or_default();
        let status = AnswerStatus::Exit(i32::from(found.is_none()));
        target.answers.insert(read(&wish).key(), Answer { status, out: found.unwrap_or_default().into() });
        if !self.targets.contains(&address.target) {
            self.targets.push(address.target.clone());
        }
        self.wishes.push(wish);
        self
    }

    fn applied(mut self, address: &str, body: Value) -> Self {
        let address: Address = address.parse().unwrap();
        let digest = Digest::of(&("made_up", &body));
        let applied = Applied {
            kind: "made_up".into(),
            body,
            digest,
            module: "m/r".into(),
            places: vec![],
            after: vec![],
            before: json!("before"),
            adopted: false,
            run: "r1".into(),
            at: "t".into(),
        };
        self.last.resources.insert(address, applied);
        self
    }

    fn plan(&self) -> Plan {
        self.try_plan().unwrap()
    }

    fn try_plan(&self) -> Result<Plan, Vec<crate::base::Diagnostic>> {
        make(&Inputs {
            header: Header {
                made_by: "test".into(),
                cluster: "c".into(),
                inventory: InventoryOrigin::default(),
                spec_digest: Digest::of_bytes(b"spec"),
                modules: BTreeMap::new(),
                proof: Default::default(),
            },
            wishes: &self.wishes,
            last: &self.last,
            observation: &self.observation,
            kinds: &kinds,
            targets: &self.targets,
            rollout: self.rollout.clone(),
            selection: self.selection.clone(),
        })
    }
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|n| n.id.as_str()).collect()
}

fn node<'a>(plan: &'a Plan, id: &str) -> &'a Node {
    plan.nodes.iter().find(|n| n.id == id).unwrap_or_else(|| panic!("{id} is not among {:?}", ids(plan)))
}

fn reason(plan: &Plan, id: &str) -> Reason {
    node(plan, id).members()[0].reason.clone()
}

#[test]
fn kubernetes_and_switch_resources_pass_like_any_other() {
    let plan = World::new()
        .wish("kube/prod/DaemonSet.apps/kube-system/rdma", None, json!({"value": "1"}), &["switch/leaf1/port/Ethernet1%2F1"])
        .wish("switch/leaf1/port/Ethernet1%2F1", None, json!({"value": "9216"}), &[])
        .wish("host/n1/link/ens1", None, json!({"value": "9000"}), &["switch/leaf1/port/Ethernet1%2F1"])
        .plan();
    assert_eq!(ids(&plan), ["switch/leaf1/port/Ethernet1%2F1", "host/n1/link/ens1", "gate/0", "kube/prod/DaemonSet.apps/kube-system/rdma"]);
    let bytes = file::bytes(&plan);
    assert_eq!(file::parse("p", &bytes).unwrap(), plan);
}

#[test]
fn every_change_says_why() {
    let plan = World::new()
        .wish("host/n1/a/new", None, json!({"value": "1"}), &[])
        .wish("host/n1/a/takeover", Some("0"), json!({"value": "1"}), &[])
        .wish("host/n1/a/spec", Some("0"), json!({"value": "1"}), &[])
        .applied("host/n1/a/spec", json!({"value": "0"}))
        .wish("host/n1/a/drift", Some("0"), json!({"value": "1"}), &[])
        .applied("host/n1/a/drift", json!({"value": "1"}))
        .wish("host/n1/a/met", Some("1"), json!({"value": "1"}), &[])
        .applied("host/n1/a/gone", json!({"value": "1"}))
        .plan();
    assert_eq!(reason(&plan, "host/n1/a/new"), Reason::New);
    assert_eq!(reason(&plan, "host/n1/a/takeover"), Reason::Takeover);
    assert_eq!(reason(&plan, "host/n1/a/spec"), Reason::SpecChanged { places: vec![] });
    assert_eq!(reason(&plan, "host/n1/a/drift"), Reason::Drifted);
    assert_eq!(reason(&plan, "host/n1/a/gone"), Reason::RemovedFromSpec);
    assert_eq!(plan.unchanged[&Target::host("n1")], 1);
}

#[test]
fn a_removal_says_what_somebody_changed_since() {
    let world = |now: Option<&str>| {
        let mut world = World::new().wish("host/n1/a/x", now, json!({"value": "1"}), &[]).applied("host/n1/a/x", json!({"value": "1"}));
        world.wishes.clear();
        let plan = world.plan();
        let member = node(&plan, "host/n1/a/x").members()[0].clone();
        assert!(member.removal);
        member.since.iter().map(|d| (d.attribute.clone(), d.wanted.clone(), d.found.clone())).collect::<Vec<_>>()
    };
    assert_eq!(world(Some("7")), [("value".to_owned(), Reading::is("1"), Reading::is("7"))]);
    assert_eq!(world(Some("1")), []);
    assert_eq!(world(None), [], "what is gone already cannot be lost");
}

#[test]
fn what_is_as_wished_is_recorded_once() {
    let world = |last: LastApplied| {
        let world = World::new().wish("host/n1/a/new", None, json!({"value": "1"}), &[]).wish(
            "host/n1/a/met",
            Some("1"),
            json!({"value": "1"}),
            &["host/n1/a/new"],
        );
        World { last, ..world.wish("host/n2/a/met", Some("1"), json!({"value": "1"}), &[]) }
    };
    let plan = world(LastApplied::default()).plan();
    assert_eq!(ids(&plan), ["host/n1/a/new", "gate/0", "host/n1/found", "host/n2/found"], "a host that changes nothing needs no gate");
    assert_eq!((reason(&plan, "host/n2/found"), node(&plan, "host/n2/found").is_change()), (Reason::AsWished, false));
    assert_eq!(plan.unchanged.values().sum::<usize>(), 2);
    let same = World::new().applied("host/n1/a/met", json!({"value": "1"})).applied("host/n2/a/met", json!({"value": "0"}));
    assert_eq!(ids(&world(same.last).plan()), ["host/n1/a/new", "gate/0", "host/n2/found"], "what is remembered otherwise is written anew");
}

#[test]
fn holds_are_let_go_before_the_one_install_and_taken_after_it() {
    let manager = crate::resource::action::PackageManager::Dnf;
    let install = |name: &str| Action::InstallPackages {
        manager,
        packages: vec![crate::resource::action::PackageVersion { name: name.into(), version: Some("2".into()) }],
    };
    let hold = |name: &str, hold| Action::HoldPackages { manager, names: vec![name.into()], hold };
    let of = |name: &str| [hold(name, false), install(name), hold(name, true)];
    let joined = make::join_actions([vec![hold("held", true)], of("a").to_vec(), of("b").to_vec()].concat().iter());
    let words: Vec<String> = joined.iter().map(Action::word).collect();
    assert_eq!(words, ["hold_packages", "install_packages", "hold_packages"]);
    assert!(joined.iter().all(|action| serde_json::to_string(action).unwrap().contains("\"b\"")), "{joined:?}");
    assert!(matches!(&joined[0], Action::HoldPackages { hold: false, .. }));
}

#[test]
fn one_reboot_serves_all_that_need_one_and_the_rest_comes_after_it() {
    let reboot = json!({"value": "1", "reboot": true});
    let plan = World::new()
        .wish("host/n1/a/package", None, json!({"value": "1"}), &[])
        .wish("host/n1/a/kernel", None, reboot.clone(), &["host/n1/a/package"])
        .wish("host/n1/a/iommu", None, reboot, &[])
        .wish("host/n1/a/qos", None, json!({"value": "1"}), &[])
        .wish("host/n1/a/mtu", Some("1"), json!({"value": "1"}), &[])
        .plan();
    assert_eq!(plan.nodes.iter().filter(|n| n.kind == NodeKind::Reboot).count(), 1);
    assert_eq!(node(&plan, "host/n1/reboot").after, ["host/n1/a/iommu", "host/n1/a/kernel", "host/n1/a/package"]);
    assert_eq!(node(&plan, "host/n1/a/qos").after, ["host/n1/reboot"]);
    assert_eq!(reason(&plan, "host/n1/a/mtu"), Reason::Disturbed { by: "host/n1/reboot".into() });
    assert!(plan.unchanged.is_empty());
}

#[test]
fn a_reboot_above_the_limit_is_held_and_holds_only_what_needs_it() {
    let mut world = World::new()
        .wish("host/n1/a/kernel", None, json!({"value": "1", "reboot": true}), &[])
        .wish("host/n1/a/driver", None, json!({"value": "1"}), &["host/n1/a/kernel"])
        .wish("host/n1/a/file", None, json!({"value": "1"}), &[]);
    world.rollout.max_disruption = Disruption::LinkBlip;
    let plan = world.plan();
    assert!(node(&plan, "host/n1/a/kernel").held.as_ref().unwrap().contains("reboot"));
    assert!(node(&plan, "host/n1/a/driver").held.as_ref().unwrap().contains("host/n1/a/kernel"));
    assert_eq!(node(&plan, "host/n1/a/file").held, None);
    assert_eq!(node(&plan, "gate/0").after, ["host/n1/a/file"]);
}

#[test]
fn a_transaction_is_split_where_something_must_happen_between_its_members() {
    let packages = json!({"value": "1", "transaction": "packages"});
    let plan = World::new()
        .wish("host/n1/package/a", None, packages.clone(), &[])
        .wish("host/n1/file/key", None, json!({"value": "1"}), &["host/n1/package/a"])
        .wish("host/n1/package/b", None, packages.clone(), &["host/n1/file/key"])
        .wish("host/n1/package/c", None, packages, &[])
        .plan();
    let members = |id: &str| node(&plan, id).members().iter().map(|m| m.wish.address.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(members("host/n1/transaction/packages"), ["a", "c"]);
    assert_eq!(members("host/n1/transaction/packages-2"), ["b"]);
}

#[test]
fn transactions_that_interleave_stay_single() {
    let of = |word: &str| json!({"value": "1", "transaction": word});
    let plan = World::new()
        .wish("host/n1/a/a1", None, of("t1"), &[])
        .wish("host/n1/a/a2", None, of("t1"), &["host/n1/a/b2"])
        .wish("host/n1/a/b1", None, of("t2"), &["host/n1/a/a1"])
        .wish("host/n1/a/b2", None, of("t2"), &[])
        .plan();
    assert_eq!(plan.nodes.iter().filter(|n| !n.members().is_empty()).count(), 4);
}

#[test]
fn what_a_change_resets_is_looked_at_again_after_it() {
    let plan = World::new()
        .wish("host/n1/driver/mlx5", None, json!({"value": "1", "disturbs": "link/*"}), &[])
        .wish("host/n1/link/ens1", Some("9000"), json!({"value": "9000"}), &[])
        .plan();
    assert_eq!(node(&plan, "host/n1/link/ens1").after, ["host/n1/driver/mlx5"]);
    assert!(matches!(&node(&plan, "host/n1/link/ens1").kind, NodeKind::Change { announced, .. } if announced == &["*"]));
}

#[test]
fn hosts_follow_in_waves_with_a_gate_between() {
    let mut world = World::new();
    for host in ["n1", "n2", "n3", "n4", "n5"] {
        world = world.wish(&format!("host/{host}/a/x"), None, json!({"value": "1"}), &[]);
    }
    world.rollout.max_unavailable = 3;
    let plan = world.plan();
    let waves: Vec<usize> = ["n1", "n2", "n3", "n4", "n5"].iter().map(|h| node(&plan, &format!("host/{h}/a/x")).wave).collect();
    assert_eq!(waves, [0, 1, 1, 1, 2]);
    assert_eq!(node(&plan, "host/n3/a/x").after, ["gate/0"]);
    assert_eq!(node(&plan, "gate/1").after.len(), 3);
}

#[test]
fn a_target_that_cannot_be_read_is_unknown_and_no_more() {
    let mut world =
        World::new().wish("host/n1/a/x", None, json!({"value": "1"}), &[]).wish("host/n2/a/x", None, json!({"value": "1"}), &[]);
    world.observation.targets.get_mut(&Target::host("n2")).unwrap().problem = Some(no_route());
    let plan = world.plan();
    assert_eq!(ids(&plan), ["host/n1/a/x", "gate/0"]);
    assert_eq!(plan.unknown, [UnknownFinding::target(&Target::host("n2"), &no_route())]);
}

#[test]
fn a_target_that_cannot_be_read_can_be_left_out() {
    let mut world =
        World::new().wish("host/n1/a/x", None, json!({"value": "1"}), &[]).wish("host/n2/a/x", None, json!({"value": "1"}), &[]);
    world.observation.targets.get_mut(&Target::host("n2")).unwrap().problem = Some(no_route());
    for (targets, excludes, unknown) in [
        (vec![], vec!["host/n2"], 0),
        (vec!["host/n1"], vec![], 0),
        (vec!["host/n1/a/x"], vec![], 0),
        (vec!["host/n2", "host/n1"], vec![], 1),
    ] {
        let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        world.selection = Selection { targets: texts(targets), excludes: texts(excludes) };
        assert_eq!((ids(&world.plan()), world.plan().unknown.len()), (vec!["host/n1/a/x", "gate/0"], unknown), "{:?}", world.selection);
    }
    world.selection = Selection { targets: vec!["host/n2/a/x".to_owned()], excludes: vec![] };
    assert!(world.try_plan().unwrap_err()[0].message.contains("could not be read"));
}

fn no_route() -> Trouble {
    Trouble { code: "RW0401".into(), message: "n2 is not reachable: no route".into(), alike: "no route".into(), next: vec![] }
}

#[test]
fn a_field_that_left_the_spec_is_named_until_it_is_forgotten() {
    let wish = json!({"value": "1"});
    let world = World::new().wish("host/n1/a/x", Some("1"), wish.clone(), &[]);
    let world = world.applied("host/n1/a/x", json!({"value": "1", "extra": 9000}));
    let plan = world.plan();
    assert_eq!(plan.dropped, [Dropped { field: "host/n1/a/x#extra".parse().unwrap(), value: "9000".into() }]);
    assert_eq!(ids(&plan), ["host/n1/found"], "and the record is brought up to date");
    let screen = crate::report::plan::screen(&plan, &Default::default());
    assert!(screen.contains("LEFT AS APPLIED") && screen.contains(" . n1             a x: extra   9000\n"), "{screen}");
    assert_eq!(world.applied("host/n1/a/x", wish).plan().dropped, []);
}

#[test]
fn an_edited_plan_file_is_refused() {
    let plan = World::new().wish("host/n1/a/x", None, json!({"value": "1"}), &[]).plan();
    let text = String::from_utf8(file::bytes(&plan)).unwrap();
    let code = |text: &str| file::parse("p", text.as_bytes()).unwrap_err().code;
    assert_eq!(code(&text.replace("\"limit_s\": 1", "\"limit_s\": 2")), "RW0304");
    assert_eq!(code(&text.replace("\"format_version\": \"1.0\"", "\"format_version\": \"2.0\"")), "RW0303");
    assert_eq!(code("{"), "RW0302");
    assert_eq!(code("[]"), "RW0303");
}

#[test]
fn a_selection_that_matches_nothing_is_an_error() {
    let mut world = World::new().wish("host/n1/a/x", None, json!({"value": "1"}), &[]);
    world.selection.targets = vec!["host/n11".into()];
    assert_eq!(world.try_plan().unwrap_err()[0].code, "RW0301");
}

#[test]
fn a_ring_of_wishes_is_named() {
    let world = World::new().wish("host/n1/a/x", None, json!({"value": "1"}), &["host/n1/a/y"]).wish(
        "host/n1/a/y",
        None,
        json!({"value": "1"}),
        &["host/n1/a/x"],
    );
    let problem = &world.try_plan().unwrap_err()[0];
    assert!(problem.message.contains("host/n1/a/x (m/r) before host/n1/a/y"), "{}", problem.message);
}

/// Random wishes on three hosts with random edges that point backwards in the list, so that there is no ring.
fn worlds() -> impl Strategy<Value = World> {
    let one = (
        0usize..3,
        proptest::option::of("[01]"),
        any::<[bool; 2]>(),
        0usize..4,
        proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
    );
    proptest::collection::vec(one, 1..16).prop_map(|many| {
        let mut world = World::new();
        let mut names: Vec<String> = Vec::new();
        for (n, (host, found, [reboot, drain], transaction, after)) in many.into_iter().enumerate() {
            let name = format!("host/n{host}/a/{n:02}");
            let mut body = json!({"value": "1", "reboot": reboot, "drain": drain});
            if transaction > 0 {
                body["transaction"] = json!(format!("t{transaction}"));
            }
            let mine: Vec<String> = names.iter().filter(|x| x.starts_with(&format!("host/n{host}/"))).cloned().collect();
            let after: BTreeSet<String> =
                if mine.is_empty() { BTreeSet::new() } else { after.iter().map(|i| i.get(&mine).clone()).collect() };
            let after: Vec<&str> = after.iter().map(String::as_str).collect();
            world = world.wish(&name, found.as_deref(), body, &after);
            names.push(name);
        }
        world.targets.sort();
        world
    })
}

proptest! {
    #[test]
    fn law_5_the_bytes_do_not_depend_on_the_order_of_the_wishes(world in worlds(), seed in any::<u64>()) {
        let plan = file::bytes(&world.plan());
        let mut shuffled = world;
        let len = shuffled.wishes.len();
        for n in 0..len {
            shuffled.wishes.swap(n, (seed as usize).wrapping_mul(n + 7) % len);
        }
        prop_assert_eq!(file::bytes(&shuffled.plan()), plan);
    }

    #[test]
    fn wishes_keep_their_order_in_the_plan(world in worlds()) {
        let plan = world.plan();
        let mut position = BTreeMap::new();
        for (n, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.is_change()) {
            for member in node.members() {
                position.insert(member.wish.address.clone(), n);
            }
        }
        let direct: BTreeMap<&str, &Vec<String>> = plan.nodes.iter().map(|n| (n.id.as_str(), &n.after)).collect();
        for node in &plan.nodes {
            for before in &node.after {
                prop_assert!(direct.contains_key(before.as_str()), "{} waits for {}, which is not in the plan", node.id, before);
            }
        }
        for wish in &world.wishes {
            for before in &wish.after {
                let looked_again = plan.nodes.iter().flat_map(Node::members).any(|m| &m.wish.address == before && matches!(m.reason, Reason::Disturbed { .. }));
                if let (Some(a), Some(b), false) = (position.get(before), position.get(&wish.address), looked_again) {
                    prop_assert!(a <= b, "{} before {}", before, wish.address);
                }
            }
        }
    }

    /// An honest plan is never taken for one that was edited.
    #[test]
    fn every_plan_holds_together(world in worlds(), most in 1usize..4, limit in any::<bool>()) {
        let mut world = world;
        world.rollout.max_unavailable = most;
        if limit {
            world.rollout.max_disruption = Disruption::Drain;
        }
        for n in (0..world.wishes.len()).step_by(3) {
            let wish = world.wishes[n].clone();
            world = world.applied(&format!("{}-gone", wish.address), wish.body.clone());
            world.last.resources.get_mut(&format!("{}-gone", wish.address).parse::<Address>().unwrap()).unwrap().after = wish.after.clone();
        }
        let plan = world.plan();
        prop_assert_eq!(crate::apply::frame::loosened(&plan, Some(&world.wishes), &world.last), vec![]);
    }

    #[test]
    fn law_6_target_and_exclude_part_the_plan(world in worlds(), pick in any::<prop::sample::Index>()) {
        let members = |plan: &Plan| plan.nodes.iter().flat_map(Node::members).filter(|m| !matches!(m.reason, Reason::Disturbed { .. }))
            .map(|m| m.wish.address.clone()).collect::<BTreeSet<_>>();
        let all = members(&world.plan());
        prop_assume!(!all.is_empty());
        let x = pick.get(&all.iter().cloned().collect::<Vec<_>>()).clone();
        let narrowed = |targets: Vec<String>, excludes: Vec<String>, world: &World| {
            let other = World { wishes: world.wishes.clone(), last: world.last.clone(), observation: world.observation.clone(),
                targets: world.targets.clone(), rollout: world.rollout.clone(), selection: Selection { targets, excludes } };
            members(&other.plan())
        };
        let only = narrowed(vec![x.to_string()], vec![], &world);
        let without = narrowed(vec![], vec![x.to_string()], &world);
        prop_assert!(only.contains(&x) && !without.contains(&x));
        let up = |from: &Address, to: &Address| -> bool {
            let mut queue = vec![from.clone()];
            while let Some(a) = queue.pop() {
                if &a == to { return true; }
                queue.extend(world.wishes.iter().find(|w| w.address == a).into_iter().flat_map(|w| w.after.clone()));
            }
            false
        };
        for a in only.intersection(&without) {
            prop_assert!(up(&x, a), "{} is in both and no prerequisite of {}", a, x);
        }
        for a in all.iter().filter(|a| !only.contains(*a) && !without.contains(*a)) {
            prop_assert!(up(a, &x), "{} is in neither and no dependant of {}", a, x);
        }
    }
}
