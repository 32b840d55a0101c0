//! How a run stands, from its own copy of the plan and its journal alone: while it goes on, without
//! any lock, and for ever after. Pure.

use super::estimate::{Estimate, Past};
use super::resume::is_resumable;
use super::steps::{ScheduledStep, StepRole};
use railwright_base::{Target, nodeset};
use railwright_plan::{NodeKind, Plan, PlanNode, Unavailable};
use railwright_state::run_status::GateStatus;
use railwright_state::{NodeOutcome, RunStatus};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// It goes on.
    Running,
    /// It goes on and starts nothing new until it is told to.
    Paused,
    /// It was told to end: it starts nothing new and waits for what goes on.
    Ending,
    /// It ended in order.
    Over,
    /// Its process is gone, and it did not end in order.
    Dead,
}

impl RunPhase {
    /// Whether a run goes on, by its journal. `live` says whether some process holds the cluster's
    /// lock for it.
    fn from_run(run: &RunStatus, live: bool) -> Self {
        match (&run.ending, &run.paused) {
            (Some(_), _) => RunPhase::Over,
            (None, _) if !live => RunPhase::Dead,
            (None, _) if run.is_aborted => RunPhase::Ending,
            (None, Some(_)) => RunPhase::Paused,
            (None, None) => RunPhase::Running,
        }
    }

    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            RunPhase::Running => "running",
            RunPhase::Paused => "paused",
            RunPhase::Ending => "ending",
            RunPhase::Over => "over",
            RunPhase::Dead => "dead",
        }
    }
}

/// How it stands with a host in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// A step failed, or is unknown, or the host could not be reached or had moved.
    Failed,
    /// Work goes on, or went on when the process died.
    Running,
    /// A part is done, and the rest was not begun.
    PartlyDone,
    /// Nothing was begun.
    Waiting,
    /// It waits for a power cycle, which is done by hand.
    PowerCycle,
    /// Everything that is left is blocked.
    Blocked,
    /// The run ended before it.
    Skipped,
    /// All is done.
    Done,
}

impl HostState {
    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            HostState::Failed => "failed",
            HostState::Running => "running",
            HostState::PartlyDone => "partly done",
            HostState::Waiting => "waiting",
            HostState::PowerCycle => "waiting for a power cycle by hand",
            HostState::Blocked => "blocked",
            HostState::Skipped => "not begun",
            HostState::Done => "done",
        }
    }
}

/// A gate of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum GateState {
    /// Not checked yet.
    Waiting,
    /// Being checked.
    Checking {
        /// Since when, RFC 3339.
        since: String,
    },
    /// It let the wave through.
    Passed {
        /// When.
        at: String,
    },
    /// It did not.
    Failed {
        /// When.
        at: String,
    },
    /// The run ended before it.
    Skipped,
}

/// One wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct WaveStatus {
    /// From 1; 1 is the canary.
    pub wave: usize,
    /// Hosts by how it stands with them, as node-sets.
    pub hosts: BTreeMap<HostState, String>,
    /// Its gate.
    #[serde(flatten)]
    pub gate: GateState,
}

/// Something that goes on, or went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StepNote {
    /// The node's id.
    pub node: String,
    /// What about it, in one line.
    pub what: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// For how many seconds at most it waits for what becomes ready by itself, once its actions are
    /// done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_s: Option<u64>,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RolloutStatus {
    /// The run's name.
    pub run: String,
    /// The digest of its plan.
    pub plan: String,
    /// Who began it, and where.
    pub who: String,
    /// The machine that it was begun on.
    pub machine: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When its journal was written last.
    pub latest_at: String,
    /// Whether it goes on.
    pub life: RunPhase,
    /// Since when it is paused.
    pub paused_since: Option<String>,
    /// How it ended.
    pub ending: Option<String>,
    /// The waves.
    pub waves: Vec<WaveStatus>,
    /// Steps that were begun and are over, of all that are not blocked.
    pub steps_over: usize,
    /// All steps that are not blocked.
    pub steps: usize,
    /// Hosts out of service, as a node-set: begun and no gate passed since, failed, unknown,
    /// unreachable.
    pub unavailable: String,
    /// How many they are.
    pub unavailable_count: usize,
    /// How many may be.
    pub max_unavailable: usize,
    /// Hosts that were lost, as a node-set.
    pub lost: String,
    /// At how many nothing new is begun.
    pub failure_budget: usize,
    /// Hosts that wait for a power cycle, which is done by hand: a node-set for each wave.
    pub power_cycles: Vec<String>,
    /// Hosts that runs left out of service and no gate has passed since, by the memory of the state
    /// folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_service: Vec<Unavailable>,
    /// Whether `resume` has something to go on with, once no process is at it.
    pub resumable: bool,
    /// What goes on now.
    pub active: Vec<StepNote>,
    /// What went wrong.
    pub failed: Vec<StepNote>,
    /// How long what is left will likely take; nothing where no earlier run says, or nothing is
    /// left.
    pub left: Option<Estimate>,
}

/// The status of a run, by its plan with what a power cycle keeps waiting taken up. `live` says
/// whether some process holds the cluster's lock for it.
pub fn compute_rollout_status(
    plan: &Plan,
    steps: &[ScheduledStep],
    run: &RunStatus,
    live: bool,
    past: &Past,
) -> RolloutStatus {
    let life = RunPhase::from_run(run, live);
    let seen = RunJournalView::new(plan, steps, run, life);
    let lost = seen.hosts(|host| {
        seen.states(host)
            .any(|(_, outcome)| outcome.is_some_and(NodeOutcome::is_loss))
    });
    let outages = run.outages();
    let unavailable = seen.hosts(|host| {
        let left_by_run = !seen.is_live && outages.contains_key(&*host.name);
        lost.contains(host) || seen.is_out(host) || left_by_run
    });
    let work: Vec<&ScheduledStep> = steps
        .iter()
        .filter(|step| step.role == StepRole::Work && step.blocked.is_none())
        .collect();
    RolloutStatus {
        run: run.run.clone(),
        plan: run.plan.clone(),
        who: run.who.clone(),
        machine: run.machine.clone(),
        started_at: run.started_at.clone(),
        latest_at: run.latest_at.clone(),
        life,
        paused_since: run.paused.clone().filter(|_| life == RunPhase::Paused),
        ending: run.ending.clone(),
        waves: list_wave_statuses(plan, &seen),
        steps_over: work
            .iter()
            .filter(|step| seen.was_begun_and_is_over(step))
            .count(),
        steps: work.len(),
        unavailable: fold_host_names(&unavailable),
        unavailable_count: unavailable.len(),
        max_unavailable: plan.rollout.max_unavailable,
        lost: fold_host_names(&lost),
        failure_budget: plan.rollout.failure_budget(),
        power_cycles: seen.power_cycles(),
        out_of_service: Vec::new(),
        resumable: is_resumable(steps, run),
        active: seen.active(),
        failed: seen.failed(),
        left: seen.estimate_left(plan.rollout.max_unavailable, past),
    }
}

impl RolloutStatus {
    /// With the hosts that runs left out of service, which count in the budget whatever this run
    /// has to do on them.
    pub fn with_left_by_runs(self, left: Vec<Unavailable>) -> Self {
        let mut hosts: BTreeSet<String> = BTreeSet::new();
        let sets = left.iter().map(|unavailable| unavailable.hosts.as_str());
        for set in sets.chain([self.unavailable.as_str()]) {
            hosts.extend(nodeset::expand_node_set(set).unwrap_or_default());
        }
        RolloutStatus {
            unavailable: nodeset::fold_node_set(&hosts.iter().collect::<Vec<_>>()),
            unavailable_count: hosts.len(),
            out_of_service: left,
            ..self
        }
    }
}

fn waits_for_power_cycle(step: &ScheduledStep, outcome: Option<&NodeOutcome>) -> bool {
    step.by_hand && matches!(outcome, Some(NodeOutcome::Blocked { .. }))
}

fn waits_s(node: &PlanNode) -> Option<u64> {
    let NodeKind::Change { actions, .. } = &node.kind else {
        return None;
    };
    let waits_s = actions.iter().map(|action| u64::from(action.waits_s()));
    let seconds: u64 = waits_s.sum();
    (seconds > 0).then_some(seconds)
}

fn index_by_host(steps: &[ScheduledStep]) -> BTreeMap<&Target, Vec<&ScheduledStep>> {
    let mut by_host: BTreeMap<&Target, Vec<&ScheduledStep>> = BTreeMap::new();
    for step in steps {
        if let Some(host) = step.host() {
            by_host.entry(host).or_default().push(step);
        }
    }
    by_host
}

fn fold_host_names(hosts: &BTreeSet<&Target>) -> String {
    nodeset::fold_node_set(&hosts.iter().map(|host| &*host.name).collect::<Vec<_>>())
}

fn list_wave_statuses(plan: &Plan, seen: &RunJournalView<'_>) -> Vec<WaveStatus> {
    let mut waves: BTreeMap<usize, WaveStatus> = BTreeMap::new();
    for node in &plan.nodes {
        let NodeKind::Gate { hosts } = &node.kind else {
            continue;
        };
        let mut states: BTreeMap<HostState, Vec<&str>> = BTreeMap::new();
        for host in hosts {
            states
                .entry(seen.state(&Target::host(host), node.wave))
                .or_default()
                .push(host);
        }
        let hosts = states
            .into_iter()
            .map(|(state, names)| (state, nodeset::fold_node_set(&names)))
            .collect();
        waves.insert(
            node.wave,
            WaveStatus {
                wave: node.wave + 1,
                hosts,
                gate: seen.gate(&node.id),
            },
        );
    }
    waves.into_values().collect()
}

/// A journal, asked about steps and hosts.
struct RunJournalView<'a> {
    run: &'a RunStatus,
    /// How long steps wait at most for what becomes ready by itself, by their ids.
    waits_s: BTreeMap<&'a str, u64>,
    steps: &'a [ScheduledStep],
    by_host: BTreeMap<&'a Target, Vec<&'a ScheduledStep>>,
    is_over: bool,
    is_live: bool,
}

impl<'a> RunJournalView<'a> {
    fn new(plan: &'a Plan, steps: &'a [ScheduledStep], run: &'a RunStatus, life: RunPhase) -> Self {
        let waits_s = plan
            .nodes
            .iter()
            .filter_map(|node| Some((node.id.as_str(), waits_s(node)?)))
            .collect();
        RunJournalView {
            run,
            waits_s,
            steps,
            by_host: index_by_host(steps),
            is_over: life == RunPhase::Over,
            is_live: !matches!(life, RunPhase::Over | RunPhase::Dead),
        }
    }

    /// How long what is left will likely take; nothing for a run that has ended.
    fn estimate_left(&self, max_unavailable: usize, past: &Past) -> Option<Estimate> {
        if self.run.ending.is_some() {
            return None;
        }
        past.estimate(
            self.steps,
            &|step| self.is_over_for_good(step),
            max_unavailable,
            usize::MAX,
        )
    }

    /// A gate that let some hosts through early is not over for good.
    fn is_over_for_good(&self, step: &ScheduledStep) -> bool {
        match &step.role {
            StepRole::Gate(_) => matches!(self.gate(&step.id), GateState::Passed { .. }),
            _ => self.outcome(step).is_some(),
        }
    }

    fn was_begun_and_is_over(&self, step: &ScheduledStep) -> bool {
        !matches!(
            self.outcome(step),
            None | Some(NodeOutcome::Skipped { .. } | NodeOutcome::Blocked { .. })
        )
    }

    fn hosts(&self, desired: impl Fn(&Target) -> bool) -> BTreeSet<&'a Target> {
        self.by_host
            .keys()
            .copied()
            .filter(|host| desired(host))
            .collect()
    }

    fn outcome(&self, step: &ScheduledStep) -> Option<&'a NodeOutcome> {
        self.run.nodes.get(&step.id)?.outcome.as_ref()
    }

    /// The steps of a host with their outcomes.
    fn states(
        &self,
        host: &Target,
    ) -> impl Iterator<Item = (&'a ScheduledStep, Option<&'a NodeOutcome>)> {
        self.by_host
            .get(host)
            .into_iter()
            .flatten()
            .map(|step| (*step, self.outcome(step)))
    }

    fn is_open(&self, step: &ScheduledStep) -> bool {
        self.run
            .nodes
            .get(&step.id)
            .is_some_and(|node| node.is_open())
    }

    fn power_cycles(&self) -> Vec<String> {
        let mut hosts: BTreeMap<usize, BTreeSet<&Target>> = BTreeMap::new();
        for step in self.steps {
            if waits_for_power_cycle(step, self.outcome(step)) && self.is_due(step) {
                hosts.entry(step.wave).or_default().extend(step.host());
            }
        }
        hosts.values().map(fold_host_names).collect()
    }

    /// What comes before it on its host is done.
    fn is_due(&self, step: &ScheduledStep) -> bool {
        step.after_on_target(self.steps).all(|n| {
            self.outcome(&self.steps[n])
                .is_some_and(NodeOutcome::is_done)
        })
    }

    /// Begun, and no gate passed since: the rule by which a resumed run counts as well. What goes
    /// on and disturbs nobody is fine as long as somebody watches it.
    fn is_out(&self, host: &Target) -> bool {
        self.states(host).any(|(step, outcome)| {
            let is_done = outcome.is_some_and(NodeOutcome::is_done);
            let counts = step.disruptive || !(self.is_live || is_done);
            let node = self.run.nodes.get(&step.id);
            let since = node.map_or(0, |node| node.out_since(counts));
            self.run.in_service_since(&host.name) < since
                || (step.by_hand && self.run.rebooted_unproven(&host.name, None))
        })
    }

    /// As far as this wave; a host that waits for a power cycle comes again in a later one.
    fn state(&self, host: &Target, wave: usize) -> HostState {
        let (mut has_failed, mut is_open, mut waits_for_power) = (false, false, false);
        let (mut is_left, mut has_done) = (false, false);
        for (step, outcome) in self.states(host) {
            if step.wave > wave {
                continue;
            }
            let is_blocked =
                step.blocked.is_some() || matches!(outcome, Some(NodeOutcome::Blocked { .. }));
            let is_done = outcome.is_some_and(NodeOutcome::is_done);
            has_failed |= outcome.is_some_and(NodeOutcome::isolates);
            is_open |= self.is_open(step);
            waits_for_power |= waits_for_power_cycle(step, outcome);
            is_left |= !is_done && !is_blocked;
            has_done |= is_done;
        }
        match (is_left, has_done, self.is_over) {
            _ if has_failed => HostState::Failed,
            _ if is_open => HostState::Running,
            _ if waits_for_power => HostState::PowerCycle,
            (false, true, _) => HostState::Done,
            (false, false, _) => HostState::Blocked,
            (true, true, true) => HostState::PartlyDone,
            (true, true, false) => HostState::Running,
            (true, false, true) => HostState::Skipped,
            (true, false, false) => HostState::Waiting,
        }
    }

    fn gate(&self, node: &str) -> GateState {
        let settled = self
            .run
            .nodes
            .get(node)
            .and_then(|node| node.outcome.as_ref());
        match (self.run.gates.get(node), settled) {
            (
                Some(GateStatus {
                    checking_since: Some(since),
                    ..
                }),
                _,
            ) if !self.is_over => GateState::Checking {
                since: since.clone(),
            },
            (_, Some(NodeOutcome::Blocked { .. })) => GateState::Waiting,
            (_, Some(NodeOutcome::Skipped { .. })) => GateState::Skipped,
            (
                Some(GateStatus {
                    checked: Some((false, at)),
                    ..
                }),
                _,
            ) => GateState::Failed { at: at.clone() },
            // A gate that let some hosts through early is asked again for the others.
            (
                Some(GateStatus {
                    checked: Some((true, at)),
                    ..
                }),
                Some(_),
            ) => GateState::Passed { at: at.clone() },
            _ => GateState::Waiting,
        }
    }

    fn active(&self) -> Vec<StepNote> {
        let mut notes = Vec::new();
        for step in self.steps {
            if let Some(node) = self.run.nodes.get(&step.id)
                && node.is_open()
                && let Some(since) = node.begun_at.clone()
            {
                notes.push(StepNote {
                    node: step.id.clone(),
                    what: "running".to_owned(),
                    since,
                    waits_s: self.waits_s.get(step.id.as_str()).copied(),
                });
            }
        }
        if self.is_over {
            return notes;
        }
        for (node, gate) in &self.run.gates {
            if let Some(since) = gate.checking_since.clone() {
                notes.push(StepNote {
                    node: node.clone(),
                    what: "checking".to_owned(),
                    since,
                    waits_s: None,
                });
            }
        }
        notes
    }

    fn failed(&self) -> Vec<StepNote> {
        self.steps
            .iter()
            .filter_map(|step| self.describe_failure(step))
            .collect()
    }

    fn describe_failure(&self, step: &ScheduledStep) -> Option<StepNote> {
        let node = self.run.nodes.get(&step.id)?;
        let (outcome, since) = (node.outcome.as_ref()?, node.over_at.clone()?);
        let reason = match outcome {
            NodeOutcome::Failed { reason }
            | NodeOutcome::Unknown { reason }
            | NodeOutcome::Unreachable { reason }
            | NodeOutcome::LockLost { reason }
            | NodeOutcome::Stale { reason } => reason,
            _ => return None,
        };
        Some(StepNote {
            node: step.id.clone(),
            what: format!("{}: {reason}", outcome.word()),
            since,
            waits_s: None,
        })
    }
}
