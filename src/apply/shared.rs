//! What every step of a run sees: the plan, the journal, what is remembered, and what the run has
//! done so far.

use super::change::Finish;
use super::context::{Context, EventSink};
use super::heartbeat::Heart;
use super::precondition::collect_member_reads;
use super::preflight::{HostNow, connect_target};
use super::records::Records;
use super::resume::Decisions;
use super::steps::{ScheduledStep, takes_out_of_service};
use super::trouble::NextCommands;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::{Address, Diagnostic, Target, TargetKind};
use railwright_plan::{AppliedResource, Member, NodeKind, Outage, OutageCause, Plan, PlanNode};
use railwright_resource::{Read, ReadResults};
use railwright_state::journal_writer::JournalWriter;
use railwright_state::lineage::RunPart;
use railwright_state::run_status::{NodeStatus, StepIntent};
use railwright_state::{
    ClusterIdentity, ClusterState, JournalEntry, NodeOutcome, RunOrder, RunStatus,
};
use railwright_transport::{TransportError, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What a run is made of, new or resumed.
pub(super) struct RunParts {
    pub plan: Plan,
    pub context: Context,
    pub sink: EventSink,
    pub run: String,
    pub cluster: ClusterIdentity,
    pub journal: JournalWriter,
    pub state: ClusterState,
}

/// What an earlier part of the run left, and what the user says about it.
pub(super) struct Earlier {
    pub status: RunStatus,
    pub decisions: Decisions,
    /// The order that lay there when the cluster's lock was taken.
    pub last_order: Option<RunOrder>,
}

/// What every step of a run sees.
pub(super) struct RunContext {
    pub plan: Plan,
    pub context: Context,
    pub run: String,
    /// This part of the run.
    pub by: RunPart,
    pub cluster: ClusterIdentity,
    pub next: NextCommands,
    pub journal: JournalWriter,
    pub sink: EventSink,
    pub earlier: RunStatus,
    pub decisions: Decisions,
    pub last_order: Option<RunOrder>,
    pub heart: Arc<Heart>,
    pub(super) state: Mutex<ClusterState>,
    pub(super) records: Mutex<Records>,
    /// The digests of the records that may stand on each target: ours, or the one that was found.
    /// One record is written after the other.
    recorded: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<BTreeSet<String>>>>>,
    hosts: Mutex<BTreeMap<String, HostNow>>,
    /// The numbers of each target's steps.
    of_target: BTreeMap<Target, Vec<usize>>,
    /// Steps that take their hosts out of service.
    disruptive: BTreeSet<usize>,
    /// Direct prerequisites on the same target.
    before_on_target: Vec<Vec<usize>>,
    /// Somebody ordered the run to end: what only waits ends as well.
    ordered_to_end: AtomicBool,
    /// Steps that acted in this run.
    acted: Mutex<BTreeSet<usize>>,
    /// Changes whose resources were looked at for their own sake: by this part of the run, or begun
    /// by an earlier one. What they find moved is theirs to say.
    looked_at: Mutex<BTreeSet<usize>>,
    /// Hosts whose resources were all compared with the plan.
    compared: Mutex<BTreeSet<String>>,
}

impl RunContext {
    /// At the beginning of a run or of its resumed part.
    pub fn new(
        parts: RunParts,
        part: String,
        steps: &[ScheduledStep],
        earlier: Earlier,
        ready: BTreeMap<String, HostNow>,
        heart: Arc<Heart>,
    ) -> Self {
        let acted = find_earlier_steps(steps, &earlier.status, has_acted);
        let begun = find_earlier_steps(steps, &earlier.status, has_begun);
        let mut recorded = BTreeMap::new();
        for (host, now) in &ready {
            let digests = now.record.iter().cloned().collect();
            recorded.insert(host.clone(), Arc::new(tokio::sync::Mutex::new(digests)));
        }
        let before_on_target = steps
            .iter()
            .map(|step| step.after_on_target(steps).collect())
            .collect();
        RunContext {
            next: NextCommands::of(&parts.plan),
            plan: parts.plan,
            context: parts.context,
            by: RunPart {
                run: parts.run.clone(),
                part,
            },
            run: parts.run,
            cluster: parts.cluster,
            journal: parts.journal,
            sink: parts.sink,
            earlier: earlier.status,
            decisions: earlier.decisions,
            last_order: earlier.last_order,
            heart,
            state: Mutex::new(parts.state),
            records: Mutex::default(),
            recorded: Mutex::new(recorded),
            hosts: Mutex::new(ready),
            ordered_to_end: AtomicBool::new(false),
            acted: Mutex::new(acted),
            looked_at: Mutex::new(begun),
            compared: Mutex::default(),
            of_target: index_by_target(steps),
            disruptive: (0..steps.len()).filter(|n| steps[*n].disruptive).collect(),
            before_on_target,
        }
    }

    /// A new connection to a host, with the fence of its lock.
    pub async fn connect(&self, host: &str) -> Result<Writer, TransportError> {
        Ok(connect_target(host, &self.context)
            .await?
            .writer(self.heart.fence(host)))
    }

    /// One read over a new connection; nothing where the target does not answer.
    pub async fn read_once(&self, host: &str, read: &Read) -> Option<ReadResults> {
        let link = self.connect(host).await.ok()?;
        link.reader().read(std::slice::from_ref(read)).await.ok()
    }

    /// What its record may be now, as digests: locked while another one is written.
    pub(super) fn recorded(&self, target: &str) -> Arc<tokio::sync::Mutex<BTreeSet<String>>> {
        lock_ignoring_poison(&self.recorded)
            .entry(target.to_owned())
            .or_default()
            .clone()
    }

    /// What is remembered of a resource.
    pub fn prior(&self, address: &Address) -> Option<AppliedResource> {
        lock_ignoring_poison(&self.state)
            .last_applied
            .resources
            .get(address)
            .cloned()
    }

    /// What must be read to compare a member.
    pub fn reads(&self, member: &Member) -> Vec<Read> {
        let prior = match member.removal {
            true => self.prior(&member.resource.address),
            false => None,
        };
        collect_member_reads(member, prior.as_ref())
    }

    /// What is known of a host.
    pub fn host(&self, host: &str) -> HostNow {
        lock_ignoring_poison(&self.hosts)
            .get(host)
            .cloned()
            .unwrap_or_default()
    }

    /// True where the target was reached and locked.
    pub fn is_ready(&self, name: &str) -> bool {
        lock_ignoring_poison(&self.hosts).contains_key(name)
    }

    /// The host is in another boot.
    pub fn booted(&self, host: &str, boot_id: String) {
        lock_ignoring_poison(&self.hosts)
            .entry(host.to_owned())
            .or_default()
            .boot_id = Some(boot_id);
    }

    /// The outage in the record of a host, as far as that is known to stand there.
    pub(super) fn note_recorded_outage(&self, host: &str, outage: Option<Outage>) {
        if let Some(now) = lock_ignoring_poison(&self.hosts).get_mut(host) {
            now.recorded_outage = outage;
        }
    }

    /// Hosts that were switched off and on, this time or for an earlier run, and have yet to write it
    /// down.
    pub(super) fn power_cycled_hosts(&self) -> Vec<String> {
        let outages = lock_ignoring_poison(&self.state).outages.clone();
        let switched = outages.into_iter().filter_map(|(host, outage)| {
            let is_switched = matches!(outage.cause, OutageCause::SwitchedOffAndOn { .. });
            is_switched.then_some(host)
        });
        switched
            .filter(|host| self.has_to_record_outage(host))
            .collect()
    }

    /// The outage that a host has to write down. Of one that another folder's run seems to have
    /// given back, and that this run did nothing to since, this side is not sure.
    pub(super) fn outage_to_record(&self, host: &str) -> Option<Outage> {
        let mut outage = lock_ignoring_poison(&self.state)
            .outages
            .get(host)
            .cloned()?;
        if self.host(host).is_given_back && !outage.cause.is_in_doubt() {
            let node = outage.cause.node().to_owned();
            outage.cause = OutageCause::GivenBack { node };
        }
        Some(outage)
    }

    /// Whether the host still has to write down its outage.
    pub(super) fn has_to_record_outage(&self, host: &str) -> bool {
        self.host(host).recorded_outage != self.outage_to_record(host)
    }

    /// Whether another folder's run seems to have given a host back since it was left.
    pub(super) fn note_given_back(&self, host: &str, is_given_back: bool) {
        if let Some(now) = lock_ignoring_poison(&self.hosts).get_mut(host) {
            now.is_given_back = is_given_back;
        }
    }

    /// The hosts whose records said for certain that they are out of service when they were locked.
    pub fn recorded_out(&self) -> Vec<String> {
        let hosts = lock_ignoring_poison(&self.hosts);
        let out = hosts.iter().filter(|(_, now)| now.was_left_out);
        out.map(|(host, _)| host.clone()).collect()
    }

    /// Whether what is known of this host's outage is of this run.
    pub fn is_outage_of_run(&self, host: &str) -> bool {
        let state = lock_ignoring_poison(&self.state);
        (state.outages.get(host)).is_some_and(|outage| outage.run == self.run)
    }

    /// Somebody ordered the run to end.
    pub fn order_to_end(&self) {
        self.ordered_to_end.store(true, Ordering::Relaxed);
    }

    /// The host that a step works on, where it works on one.
    pub fn host_of(&self, n: usize) -> Option<String> {
        let target = self.plan.nodes[n].target.as_ref()?;
        (target.kind == TargetKind::Host).then(|| target.name.to_string())
    }

    /// Whether a step takes its host out of service until a gate has passed.
    pub fn is_disruptive(&self, n: usize) -> bool {
        self.disruptive.contains(&n)
    }

    /// The user asked to stop, here or by an order from elsewhere: what only waits ends.
    pub fn is_ending(&self) -> bool {
        self.context.is_interrupted() || self.ordered_to_end.load(Ordering::Relaxed)
    }

    /// The step acts from now on.
    pub fn note_acted(&self, n: usize) {
        lock_ignoring_poison(&self.acted).insert(n);
    }

    /// Whether a step acted, in this part of the run or before.
    pub fn has_acted(&self, n: usize) -> bool {
        lock_ignoring_poison(&self.acted).contains(&n)
    }

    /// What an earlier part of the run began and does not know the end of: it may run on its host
    /// to this day, and must be found under the same token rather than be started twice.
    pub fn may_still_run(&self, node: &PlanNode) -> Option<&StepIntent> {
        let status = self.earlier.nodes.get(&node.id)?;
        let is_over = matches!(
            status.outcome,
            Some(NodeOutcome::Failed { .. } | NodeOutcome::Done { .. })
        );
        status.intent.as_ref().filter(|_| !is_over)
    }

    /// The step looks at its resources from now on.
    pub fn note_look(&self, n: usize) {
        lock_ignoring_poison(&self.looked_at).insert(n);
    }

    /// Whether a step looked at its resources already, or an earlier part of the run began it.
    pub fn is_looked_at(&self, n: usize) -> bool {
        lock_ignoring_poison(&self.looked_at).contains(&n)
    }

    /// True when no step of the host has compared its resources with the plan yet.
    pub fn is_first_on(&self, host: &str) -> bool {
        lock_ignoring_poison(&self.compared).insert(host.to_owned())
    }

    /// The steps of one target, in the plan's order.
    pub fn on_target(&self, target: Option<&Target>) -> &[usize] {
        target
            .and_then(|target| self.of_target.get(target))
            .map_or(&[], Vec::as_slice)
    }

    /// Steps of the same target that come before this one, however far.
    pub fn earlier_on_target(&self, n: usize) -> BTreeSet<usize> {
        let (mut found, mut queue) = (BTreeSet::new(), vec![n]);
        while let Some(next) = queue.pop() {
            for m in &self.before_on_target[next] {
                if found.insert(*m) {
                    queue.push(*m);
                }
            }
        }
        found
    }

    /// An earlier step of this run acted on the same target, so its resources may have moved by our
    /// own doing.
    pub fn may_have_moved(&self, n: usize) -> bool {
        let acted = lock_ignoring_poison(&self.acted);
        self.earlier_on_target(n).iter().any(|m| acted.contains(m))
    }

    /// Journals how a step ended, takes it into the state, and has the target write it down as
    /// well.
    pub async fn finish(
        &self,
        node: &PlanNode,
        finish: &Finish,
        writer: Option<&Writer>,
    ) -> Option<Diagnostic> {
        let (outcome, applied, removed) = (
            finish.outcome.clone(),
            finish.applied.clone(),
            finish.removed.clone(),
        );
        let host = match &node.target {
            Some(target) if target.kind == TargetKind::Host => Some(target.name.to_string()),
            _ => None,
        };
        self.journal.note(JournalEntry::NodeFinished {
            node: node.id.clone(),
            host,
            outcome,
            applied: applied.clone(),
            removed: removed.clone(),
        });
        let target = node.target.clone()?;
        let is_lost = matches!(
            finish.outcome,
            NodeOutcome::Failed { .. } | NodeOutcome::Unknown { .. }
        );
        let left = is_lost
            && target.kind == TargetKind::Host
            && writer.is_some()
            && self.note_outage(&target.name, lost_by(node));
        if applied.is_empty() && removed.is_empty() && !left {
            return None;
        }
        {
            let mut state = lock_ignoring_poison(&self.state);
            state.last_applied.resources.extend(applied);
            for address in &removed {
                state.last_applied.resources.remove(address);
            }
        }
        self.note_record(&target, writer?).await
    }
}

/// The numbers of the steps for which this is so, by what an earlier part of the run left.
fn find_earlier_steps(
    steps: &[ScheduledStep],
    status: &RunStatus,
    is_so: fn(&NodeStatus) -> bool,
) -> BTreeSet<usize> {
    (0..steps.len())
        .filter(|n| status.nodes.get(&steps[*n].id).is_some_and(is_so))
        .collect()
}

/// A power cycle by hand has no intent; where it was made, all that comes after it may have moved.
fn has_acted(node: &NodeStatus) -> bool {
    node.intent.is_some() || node.outcome == Some(NodeOutcome::Done { changed: true })
}

/// What an earlier part of the run only found moved, it has not begun.
fn has_begun(node: &NodeStatus) -> bool {
    node.intent.is_some() || node.outcome.as_ref().is_some_and(NodeOutcome::is_done)
}

fn index_by_target(steps: &[ScheduledStep]) -> BTreeMap<Target, Vec<usize>> {
    let mut of_target: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
    for (n, step) in steps.iter().enumerate() {
        if let Some(target) = &step.target {
            of_target.entry(target.clone()).or_default().push(n);
        }
    }
    of_target
}

/// Why a host is out of service of which this step failed, or nobody knows how it ended.
pub(super) fn lost_by(node: &PlanNode) -> OutageCause {
    let id = node.id.clone();
    match &node.kind {
        NodeKind::Drain { .. } => OutageCause::Emptying { node: id },
        _ if takes_out_of_service(node.disruption) => OutageCause::StepFailed { node: id },
        _ => OutageCause::InDoubt { node: id },
    }
}
