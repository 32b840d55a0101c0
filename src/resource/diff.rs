//! The diff of a resource against the answers: desired and actual state per attribute and plane,
//! and what would fix the difference.

use super::{Action, DesiredResource, Disruption, Plane, Planes, Provenance, Reading};
use railwright_base::{Digest, Reason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One attribute: its desired and actual state, per plane. A plane without a desired state is not
/// compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The `Value` desired; `Reading::Absent` when it must not be there.
    pub desired: Planes<Reading>,
    /// The actual state that the target reports.
    pub actual: Planes<Reading>,
    /// Who made it so, or how it was found out, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Provenance>,
    /// What of the resource's own input changed, where that is why it differs: the target is as it
    /// was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// It converges in time by itself: it is waited for, and is no part of what a plan was made
    /// against.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settles: bool,
}

impl Attribute {
    /// Who else set it, in words, where that is known.
    pub fn rival(&self) -> Option<&str> {
        match &self.by {
            Some(Provenance::SetBy { words, .. }) => Some(words),
            _ => None,
        }
    }

    /// Whether a rival set it since it was read as `was`. Times have whole seconds: one who set it
    /// in the second of our own write did so after it, for that write took it.
    pub fn is_set_since(&self, was: Option<&str>) -> bool {
        match &self.by {
            Some(Provenance::SetBy { words, with_ours }) => *with_ours || was != Some(words),
            _ => false,
        }
    }

    /// Desired and actual state in one plane.
    pub fn in_plane(plane: Plane, desired: Reading, actual: Reading) -> Self {
        let mut attribute = Attribute::default();
        attribute.desired.set(plane, desired);
        attribute.actual.set(plane, actual);
        attribute
    }

    /// Adds another plane.
    pub fn and(mut self, plane: Plane, desired: Reading, actual: Reading) -> Self {
        self.desired.set(plane, desired);
        self.actual.set(plane, actual);
        self
    }

    /// Marks an attribute that converges in time by itself: it is waited for.
    pub fn that_settles(mut self) -> Self {
        self.settles = true;
        self
    }

    /// The planes in which actual differs from desired; not applicable counts as met, unknown does
    /// not.
    pub fn differences(&self) -> Vec<(Plane, &Reading, &Reading)> {
        self.desired
            .iter()
            .filter_map(|(plane, desired)| {
                let actual = self.actual.get(plane)?;
                let met = desired == actual || matches!(actual, Reading::NotApplicable(_));
                (!met).then_some((plane, desired, actual))
            })
            .collect()
    }
}

/// A resource compared with the answers of its target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceDiff {
    /// Every attribute that the kind compares, by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// What cannot be compared before something else is there (a node that joins later), by name:
    /// it is reported as unknown, and keeps nothing else of the resource from being compared or
    /// applied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub out_of_reach: BTreeMap<String, Attribute>,
    /// What would fix the differences, in order. Empty when nothing differs, or when nothing can
    /// be done yet.
    pub actions: Vec<Action>,
    /// How much the actions disturb.
    pub disruption: Disruption,
    /// True when the running plane follows only after a reboot; the plan then adds one for the
    /// host.
    pub needs_reboot: bool,
    /// True when a reboot is not enough: the host has to be switched off and on, which is done by
    /// hand.
    #[serde(default)]
    pub needs_power_cycle: bool,
    /// What is persisted is right and only has to take effect (a restart, a reload, a reboot that
    /// nobody did yet).
    pub pending: bool,
    /// Changes of one target with the same word go out together: one package run, one netplan
    /// apply.
    pub transaction: Option<String>,
    /// The netdevs whose traffic the actions interrupt, so that the one that carries our own
    /// connection is spared.
    pub interrupts_netdevs: Vec<String>,
    /// What will be interrupted, in words for the plan's screen.
    pub interrupts: Vec<String>,
    /// Resources of the same target (`link/ens4`) that the actions reset, to be re-checked after
    /// them.
    pub disturbs: Vec<String>,
    /// What a change of the files that it watches leaves pending.
    pub watch: Option<WatchedFiles>,
    /// The resource cannot be compared before this other one of the target (`rdma_link/rxe0`) is
    /// applied.
    pub known_after: Option<String>,
    /// Action kinds that this resource may come to need once it is known, or after a disturbance;
    /// the plan announces them.
    pub announced: Vec<String>,
    /// What undoing needs to know of the time before our first change; stored in the state when the
    /// change is applied.
    pub before: Value,
    /// Undoing leaves it where it is: nothing of the time before us comes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// What removal would leave behind, in words; empty when it restores everything.
    pub residue: Vec<String>,
    /// The resource cannot be applied here at all, in words (no manager owns the link, no such
    /// package).
    pub refusal: Option<String>,
    /// What has to be there first and is not: an earlier step brings it, or it cannot be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Lacking>,
    /// Nodes of a cluster that lack what is waited for, by name, where it is reported node by node.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lacking: BTreeSet<String>,
    /// What is waited for does not become ready by itself, in words (a container that cannot be
    /// made): waiting ends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopeless: Option<Hopeless>,
    /// What shows it in sync may date from before our last change: a run does not believe it at
    /// once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_stale: bool,
}

/// What a resource is in or of, and is not there yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    /// As a kind is asked whether it brings it: `namespace rdma`, `kind Rail.example.org`.
    pub what: String,
    /// What the target reports of it.
    pub said: String,
}

/// Why what is waited for does not become ready by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hopeless {
    /// In words.
    pub why: String,
    /// Since when the target reports so, where that distinguishes an old report from a new one: one
    /// from before the step does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl Hopeless {
    /// Whenever it was reported.
    pub fn of(why: &str) -> Self {
        Hopeless {
            why: why.to_owned(),
            since: None,
        }
    }
}

/// Files whose change a resource takes in by restarting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedFiles {
    /// Their paths.
    pub paths: Vec<String>,
    /// How much the restart disturbs.
    pub disruption: Disruption,
    /// What it interrupts, in words.
    pub interrupts: String,
}

impl ResourceDiff {
    /// An undo that changes nothing, because what is there now is unknown.
    pub fn unknown_undo(plane: Plane, before: &Value, reason: Reason) -> Self {
        let desired = Reading::is("as before");
        let attribute = Attribute::in_plane(plane, desired, Reading::Unknown(reason));
        ResourceDiff {
            attributes: [("settings".to_owned(), attribute)].into(),
            before: before.clone(),
            ..ResourceDiff::default()
        }
    }

    /// Adds an attribute. Where another one has its name, both stay: no change hides another.
    pub fn insert_beside(&mut self, name: String, attribute: Attribute) {
        let (mut free, mut count) = (name.clone(), 1);
        while self
            .attributes
            .get(&free)
            .is_some_and(|other| *other != attribute)
        {
            count += 1;
            free = format!("{name} ({count})");
        }
        self.attributes.insert(free, attribute);
    }

    /// What the resource needs is not there: it comes with the step that it names under
    /// `known_after`, or with the name that its netdev gets first, and may then come to need these
    /// actions; else something is wrong.
    pub fn wait_or_refuse(
        &mut self,
        resource: &DesiredResource,
        announced: &[&str],
        reason: impl FnOnce() -> String,
    ) {
        let step = resource.text("known_after").map(str::to_owned);
        self.wait_for_or_refuse(step.or_else(|| resource.naming()), announced, reason);
    }

    /// Waits for this step of the target, which brings what is missing, or refuses without one.
    pub fn wait_for_or_refuse(
        &mut self,
        step: Option<String>,
        announced: &[&str],
        reason: impl FnOnce() -> String,
    ) {
        match step {
            Some(step) => {
                self.known_after = Some(step);
                self.announced = announced.iter().map(|word| (*word).to_owned()).collect();
            }
            None => self.refusal = Some(reason()),
        }
    }

    /// True when every compared plane of every attribute is in sync.
    pub fn is_met(&self) -> bool {
        self.known_after.is_none() && self.attributes.values().all(|a| a.differences().is_empty())
    }

    /// True when some attribute differs in this plane.
    pub fn differs_in(&self, plane: Plane) -> bool {
        self.attributes.values().any(|attribute| {
            let differences = attribute.differences();
            differences.iter().any(|(other, ..)| *other == plane)
        })
    }

    /// True when some compared plane could not be found out.
    pub fn has_unknown(&self) -> bool {
        self.attributes.values().any(|a| {
            a.differences()
                .iter()
                .any(|(_, _, found)| found.is_unknown())
        })
    }

    /// True when nothing of it is there: all compared planes are absent.
    pub fn is_absent(&self) -> bool {
        let mut compared = self.compared().peekable();
        compared.peek().is_some()
            && compared.all(|(_, found)| matches!(found, Some(Reading::Absent)))
    }

    /// True when there are differences and all of them are unknown.
    pub fn only_unknown(&self) -> bool {
        let mut differences = self
            .attributes
            .values()
            .flat_map(Attribute::differences)
            .peekable();
        differences.peek().is_some() && differences.all(|(_, _, found)| found.is_unknown())
    }

    /// True when some attribute has a desired state in this plane.
    pub fn compares(&self, plane: Plane) -> bool {
        self.compared().any(|(compared, _)| compared == plane)
    }

    fn compared(&self) -> impl Iterator<Item = (Plane, Option<&Reading>)> {
        self.attributes.values().flat_map(|a| {
            a.desired
                .iter()
                .map(move |(plane, _)| (plane, a.actual.get(plane)))
        })
    }

    /// True when all that differs converges by itself, in time.
    pub fn only_waits(&self) -> bool {
        let mut open = self
            .attributes
            .values()
            .filter(|a| !a.differences().is_empty())
            .peekable();
        self.known_after.is_none() && open.peek().is_some() && open.all(|a| a.settles)
    }

    /// What of the resource's own input changed, where nothing else differs.
    pub fn input(&self) -> Option<&str> {
        let mut open = self
            .attributes
            .values()
            .filter(|a| !a.settles && !a.differences().is_empty())
            .map(|a| a.input.as_deref());
        let first = open.next()??;
        open.all(|input| input.is_some()).then_some(first)
    }

    /// The digest of the actual state: the precondition under which the actions were planned. What
    /// time alone changes is left out.
    pub fn fingerprint(&self) -> Digest {
        let actual: BTreeMap<_, _> = self
            .attributes
            .iter()
            .filter(|(_, a)| !a.settles)
            .map(|(name, a)| (name, &a.actual))
            .collect();
        Digest::of(&actual)
    }
}
