//! What a kind makes of a wish and the answers: what is wanted and found per attribute and plane,
//! and what would fix it.

use super::{Action, DesiredResource, Disruption, Plane, Planes, Provenance, Reading};
use railwright_base::{Digest, Reason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One attribute: what is wanted and what was found, per plane. A plane without a wish is not
/// judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// `Value` wanted; `Reading::Absent` when it must not be there.
    pub wanted: Planes<Reading>,
    /// What the target says.
    pub found: Planes<Reading>,
    /// Who made it so, or how it was found out, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Provenance>,
    /// What of the wish's own input is another than it was, where that is why it differs: the
    /// target is as it was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Time alone brings it about: it is waited for, and is no part of what a plan was made
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

    /// Whether a rival set it since it was looked at as `was`. Times have whole seconds: one who
    /// set it in the second of our own write did so after it, for that write took it.
    pub fn is_set_since(&self, was: Option<&str>) -> bool {
        match &self.by {
            Some(Provenance::SetBy { words, with_ours }) => *with_ours || was != Some(words),
            _ => false,
        }
    }

    /// Wanted in one plane, found there.
    pub fn in_plane(plane: Plane, wanted: Reading, found: Reading) -> Self {
        let mut attribute = Attribute::default();
        attribute.wanted.set(plane, wanted);
        attribute.found.set(plane, found);
        attribute
    }

    /// Adds another plane.
    pub fn and(mut self, plane: Plane, wanted: Reading, found: Reading) -> Self {
        self.wanted.set(plane, wanted);
        self.found.set(plane, found);
        self
    }

    /// Marks an attribute that time alone brings about: it is waited for.
    pub fn that_settles(mut self) -> Self {
        self.settles = true;
        self
    }

    /// The planes in which the finding is not the wish; not applicable counts as met, unknown does
    /// not.
    pub fn differences(&self) -> Vec<(Plane, &Reading, &Reading)> {
        self.wanted
            .iter()
            .filter_map(|(plane, wanted)| {
                let found = self.found.get(plane)?;
                let met = wanted == found || matches!(found, Reading::NotApplicable(_));
                (!met).then_some((plane, wanted, found))
            })
            .collect()
    }
}

/// What a kind makes of a wish and the answers of its target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Every attribute that the kind judges, by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// What nobody can judge before something else is there (a node that joins later), by name: it
    /// is told as unknown, and keeps nothing else of the wish from being judged or done.
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
    pub owed: bool,
    /// Changes of one target with the same word go out together: one package run, one netplan
    /// apply.
    pub transaction: Option<String>,
    /// The netdevs whose traffic the actions interrupt, so that the one that carries our own
    /// connection is spared.
    pub interrupts_netdevs: Vec<String>,
    /// What will be interrupted, in words for the plan's screen.
    pub interrupts: Vec<String>,
    /// Resources of the same target (`link/ens4`) that the actions reset, to be diffed anew after
    /// them.
    pub disturbs: Vec<String>,
    /// What a change of the files that it watches would make it owe.
    pub watch: Option<WatchedFiles>,
    /// The wish cannot be judged before this other resource of the target (`rdma_link/rxe0`) is
    /// done.
    pub known_after: Option<String>,
    /// Action kinds that this wish may come to need once it is known, or after a disturbance; the
    /// plan announces them.
    pub announced: Vec<String>,
    /// What undoing needs to know of the time before our first change; stored in the state when the
    /// change is applied.
    pub before: Value,
    /// Taking it back leaves it where it is: nothing of the time before us comes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// What removal would leave behind, in words; empty when it restores everything.
    pub residue: Vec<String>,
    /// The wish cannot be carried out here at all, in words (no manager owns the link, no such
    /// package).
    pub refusal: Option<String>,
    /// What has to be there first and is not: a step before it brings it, or it cannot be carried
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Lacking>,
    /// Nodes of a cluster that lack what is waited for, by name, where it is told node by node.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lacking: BTreeSet<String>,
    /// What is waited for does not come by itself, in words (a container that cannot be made):
    /// waiting ends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopeless: Option<Hopeless>,
    /// What makes it in sync may be of before our last change: a run does not believe it at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_stale: bool,
}

/// What a wish is in or of, and is not there yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    /// As a kind is asked whether it brings it: `namespace rdma`, `kind Rail.example.org`.
    pub what: String,
    /// What the target says of it.
    pub said: String,
}

/// Why what is waited for does not come by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hopeless {
    /// In words.
    pub why: String,
    /// Since when the target says so, where that tells an old saying from a new one: of before the
    /// step it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl Hopeless {
    /// Whenever it was said.
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

impl Assessment {
    /// An undo that takes nothing back, because what is there now is unknown.
    pub fn unknown_undo(plane: Plane, before: &Value, reason: Reason) -> Self {
        let wanted = Reading::is("as before");
        let attribute = Attribute::in_plane(plane, wanted, Reading::Unknown(reason));
        Assessment {
            attributes: [("settings".to_owned(), attribute)].into(),
            before: before.clone(),
            ..Assessment::default()
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

    /// What the wish needs is not there: it comes with the step that the wish names under
    /// `known_after`, or with the name that its netdev gets first, and may then come to need these
    /// actions; else something is wrong.
    pub fn wait_or_refuse(
        &mut self,
        wish: &DesiredResource,
        announced: &[&str],
        reason: impl FnOnce() -> String,
    ) {
        let step = wish.text("known_after").map(str::to_owned);
        self.wait_for_or_refuse(step.or_else(|| wish.naming()), announced, reason);
    }

    /// Waits for this step of the wish's target, which brings what is missing, or refuses without one.
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

    /// True when every judged plane of every attribute is in sync.
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

    /// True when some judged plane could not be found out.
    pub fn has_unknown(&self) -> bool {
        self.attributes.values().any(|a| {
            a.differences()
                .iter()
                .any(|(_, _, found)| found.is_unknown())
        })
    }

    /// True when nothing of it is there: all judged planes are absent.
    pub fn is_absent(&self) -> bool {
        let mut judged = self.judged().peekable();
        judged.peek().is_some() && judged.all(|(_, found)| matches!(found, Some(Reading::Absent)))
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

    /// True when some attribute is wanted in this plane.
    pub fn judges(&self, plane: Plane) -> bool {
        self.judged().any(|(judged, _)| judged == plane)
    }

    fn judged(&self) -> impl Iterator<Item = (Plane, Option<&Reading>)> {
        self.attributes.values().flat_map(|a| {
            a.wanted
                .iter()
                .map(move |(plane, _)| (plane, a.found.get(plane)))
        })
    }

    /// True when all that differs comes about by itself, in time.
    pub fn only_waits(&self) -> bool {
        let mut open = self
            .attributes
            .values()
            .filter(|a| !a.differences().is_empty())
            .peekable();
        self.known_after.is_none() && open.peek().is_some() && open.all(|a| a.settles)
    }

    /// What of the wish's own input is another than it was, where nothing else differs.
    pub fn input(&self) -> Option<&str> {
        let mut open = self
            .attributes
            .values()
            .filter(|a| !a.settles && !a.differences().is_empty())
            .map(|a| a.input.as_deref());
        let first = open.next()??;
        open.all(|input| input.is_some()).then_some(first)
    }

    /// The digest of what was found: the precondition under which the actions were planned. What
    /// time alone changes is left out.
    pub fn fingerprint(&self) -> Digest {
        let found: BTreeMap<_, _> = self
            .attributes
            .iter()
            .filter(|(_, a)| !a.settles)
            .map(|(name, a)| (name, &a.found))
            .collect();
        Digest::of(&found)
    }
}
