//! What the targets of an inventory are asked, and what their answers are judged by: our memory of
//! them, theirs of themselves, the wishes with their seals.

use super::CommandFailure;
use super::pipeline::PreparedInventory;
use railwright_base::{Diagnostic, Target, TargetKind, nodeset};
use railwright_observe::{self as observe, HostRequest, identity, sealed};
use railwright_report as report;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{AnswerStatus, DesiredResource, Observation, Read, ReadResults};
use railwright_state::host_record::HOST_RECORD_PATH;
use railwright_state::{ClusterState, Recognition};
use railwright_system::descriptors;
use railwright_transport::{HostAccess, TargetContact};
use std::collections::BTreeMap;

/// Hosts that are read at the same time, where enough files may be open.
const READ_AT_ONCE: usize = 64;

/// Descriptors that a connection may take for a moment: its socket, the agent's, a key file, a
/// question to `ssh -G`.
const DESCRIPTORS_EACH: usize = 8;

/// What the hosts were found to be, and what that is to be judged by.
pub struct ObservedTargets {
    /// What the targets say.
    pub observation: Observation,
    /// What we remember of them: a newer record on a host wins over ours.
    pub state: ClusterState,
    /// What is wanted, files that may hold a secret with their seals.
    pub wishes: Vec<DesiredResource>,
    /// Whose the targets are, and which machines.
    pub recognition: Recognition,
}

impl ObservedTargets {
    /// What the targets say, whosever they are.
    pub fn into_recording(mut self) -> Observation {
        self.recognition.unmark(&mut self.observation);
        self.observation
    }
}

/// Reads the targets, or takes what was recorded of them.
pub async fn observe_targets(
    prepared: &PreparedInventory,
) -> Result<ObservedTargets, CommandFailure> {
    let question = build_observation_request(prepared)?;
    let observation = match (&prepared.recorded, prepared.contact) {
        (Some(recorded), _) => recorded.clone(),
        (None, Some(contact)) => read_live_targets(prepared, contact, &question).await?,
        (None, None) => Observation::at(railwright_system::clock::read_current_time()),
    };
    let mut observed = question.answered(prepared, observation)?;
    if let Some(contact) = prepared.contact.filter(|_| observed.recognition.merged) {
        ask_for_the_rest(prepared, contact, &mut observed).await?;
    }
    Ok(observed)
}

/// What only the targets' own records told of, and nobody could have asked for before: applied from
/// elsewhere, and no longer wished.
async fn ask_for_the_rest(
    prepared: &PreparedInventory,
    contact: TargetContact,
    observed: &mut ObservedTargets,
) -> Result<(), CommandFailure> {
    let mut requests = build_host_requests(prepared, &observed.wishes, &observed.state);
    for request in &mut requests {
        let found = observed.observation.targets.get(&request.access.target());
        let asked = |read: &Read| {
            found.is_none_or(|found| found.problem.is_some() || found.answers.get(read).is_some())
        };
        request.reads.retain(|read| !asked(read));
    }
    requests.retain(|request| !request.reads.is_empty());
    if requests.is_empty() {
        return Ok(());
    }
    let connector = prepared.connector(contact)?;
    for (target, more) in observe::observe_hosts(&*connector, requests, read_at_once(), &|_| {})
        .await
        .targets
    {
        if let Some(found) = observed.observation.targets.get_mut(&target) {
            found.answers.merge(more.answers);
        }
    }
    Ok(())
}

/// What the hosts are asked, and what their answers are judged by.
#[derive(Default)]
pub struct ObservationRequest {
    state: ClusterState,
    wishes: Vec<DesiredResource>,
}

/// The question to all hosts.
pub fn build_observation_request(
    prepared: &PreparedInventory,
) -> Result<ObservationRequest, CommandFailure> {
    let mut state = ClusterState::load(&prepared.folder)?;
    // What a run has in hand at this moment it has not left.
    if !state.outages.is_empty()
        && let Some(live) = prepared.folder.live_run()?
    {
        state.outages.retain(|_, outage| outage.run != live);
    }
    let secrets = prepared.secrets_with(&state.last_applied)?;
    let mut wishes = prepared.desired.wishes.clone();
    sealed::seal_wishes(&mut wishes, &state.last_applied, &secrets);
    Ok(ObservationRequest { state, wishes })
}

impl ObservationRequest {
    /// One question a host, by its name.
    pub fn by_host(self) -> BTreeMap<String, ObservationRequest> {
        let mut out: BTreeMap<String, ObservationRequest> = BTreeMap::new();
        for wish in self.wishes {
            out.entry(wish.address.target.name.to_string())
                .or_default()
                .wishes
                .push(wish);
        }
        for (address, applied) in self.state.last_applied.resources {
            out.entry(address.target.name.to_string())
                .or_default()
                .state
                .last_applied
                .resources
                .insert(address, applied);
        }
        for (host, outage) in self.state.outages {
            out.entry(host.clone())
                .or_default()
                .state
                .outages
                .insert(host, outage);
        }
        for (host, lineage) in self.state.lineages {
            out.entry(host.clone())
                .or_default()
                .state
                .lineages
                .insert(host, lineage);
        }
        for (host, machine) in self.state.machines {
            out.entry(host.clone())
                .or_default()
                .state
                .machines
                .insert(host, machine);
        }
        for question in out.values_mut() {
            question.state.cluster = self.state.cluster.clone();
            question.state.machine_outages = self.state.machine_outages.clone();
            question.state.awaited_power_cycles = self.state.awaited_power_cycles.clone();
            question.state.cloned = self.state.cloned.clone();
        }
        out
    }

    /// One request a host.
    pub fn requests(&self, prepared: &PreparedInventory) -> Vec<HostRequest> {
        build_host_requests(prepared, &self.wishes, &self.state)
    }

    /// What the answers are to be judged by, with what the hosts' own records say.
    pub fn answered(
        mut self,
        prepared: &PreparedInventory,
        mut observation: Observation,
    ) -> Result<ObservedTargets, CommandFailure> {
        let mut secrets = prepared.secrets_with(&self.state.last_applied)?;
        let identities = identity::collect_target_identities(&observation);
        let recognition = self
            .state
            .recognize(&prepared.inventory.loaded.spec.cluster, &identities);
        self.state.redact_outages(secrets.redaction());
        print_warnings(&recognition.warnings);
        tell_unread_records(&observation);
        if recognition.merged && sealed::remembers_sealed(&self.state.last_applied) {
            secrets = prepared.secrets_with_key()?;
            sealed::seal_wishes(&mut self.wishes, &self.state.last_applied, &secrets);
        }
        sealed::seal_observation(
            &mut observation,
            &self.wishes,
            &self.state.last_applied,
            &secrets,
        );
        recognition.mark(&mut observation, &prepared.inventory.word);
        Ok(ObservedTargets {
            observation,
            state: self.state,
            wishes: self.wishes,
            recognition,
        })
    }
}

fn print_warnings(warnings: &[Diagnostic]) {
    if !warnings.is_empty() {
        report::out::print_note(&report::diagnostic::render_diagnostics(
            warnings,
            &Default::default(),
            report::out::ScreenStyle::of_stderr(),
        ));
    }
}

/// Says which targets have a record that we may not read.
fn tell_unread_records(observation: &Observation) {
    let unread = observation
        .targets
        .iter()
        .filter(|(_, found)| is_denied(&found.answers))
        .map(|(target, _)| target);
    let unread: Vec<&Target> = unread.collect();
    if !unread.is_empty() {
        print_warnings(&unread_records(&unread));
    }
}

fn is_denied(answers: &ReadResults) -> bool {
    let record = Read::File {
        path: HOST_RECORD_PATH.to_owned(),
    };
    answers.get(&record).is_some_and(|answer| {
        matches!(
            answer.status,
            AnswerStatus::Denied | AnswerStatus::NotOffered
        )
    })
}

/// The records hold what stood in files before we changed them, so no line of sudoers gives them to
/// a user without rights.
fn unread_records(targets: &[&Target]) -> Vec<Diagnostic> {
    let of = |kind: TargetKind| {
        targets
            .iter()
            .filter(|target| target.kind == kind)
            .map(|target| &*target.name)
            .collect::<Vec<_>>()
    };
    let told = |names: Vec<&str>, why: &str, next: &str| {
        Diagnostic::warning(
            "RW0412",
            format!(
                "the record of our changes on {} was not read: {why}",
                nodeset::fold_node_set(&names)
            ),
        )
        .effect(
            "it is judged by the memory of this folder; after an apply from elsewhere that is an \
             older one",
        )
        .state("nothing was changed")
        .next(next)
    };
    let hosts = Some(of(TargetKind::Host)).filter(|hosts| !hosts.is_empty());
    let switches = Some(of(TargetKind::Switch)).filter(|switches| !switches.is_empty());
    let of_switches = switches.map(|switches| {
        told(
            switches,
            "it is a file on the switch, which not every way there shows",
            "look from the folder that applies, or reach it over SSH as root; over NVUE no record \
             is kept there",
        )
    });
    let clusters = Some(of(TargetKind::Kube)).filter(|clusters| !clusters.is_empty());
    let of_hosts = hosts.map(|hosts| {
        told(
            hosts,
            "it is root's alone",
            "look from the folder that applies, or as root",
        )
    });
    let secret = "no role of ours lets us get its Secret in `kube-system`";
    let of_clusters = clusters.map(|clusters| {
        told(
            clusters,
            secret,
            "look from the folder that applies, or as somebody who may",
        )
    });
    of_hosts
        .into_iter()
        .chain(of_switches)
        .chain(of_clusters)
        .collect()
}

fn read_at_once() -> usize {
    READ_AT_ONCE
        .min(descriptors::read_descriptor_limit() / DESCRIPTORS_EACH)
        .max(1)
}

async fn read_live_targets(
    prepared: &PreparedInventory,
    contact: TargetContact,
    question: &ObservationRequest,
) -> Result<Observation, CommandFailure> {
    let connector = prepared.connector(contact)?;
    let progress = report::progress::HostReadProgress::new(prepared.targets.len());
    let observed = observe::observe_hosts(
        &*connector,
        question.requests(prepared),
        read_at_once(),
        &|event| progress.show(&event),
    )
    .await;
    progress.end();
    Ok(Observation {
        texts: prepared.texts.clone(),
        ..observed
    })
}

/// One request a host: what its wishes need, what was applied and is no longer wished, and the
/// host's own record.
fn build_host_requests(
    prepared: &PreparedInventory,
    wishes: &[DesiredResource],
    state: &ClusterState,
) -> Vec<HostRequest> {
    let reads = sealed::collect_reads_by_host(wishes, &state.last_applied);
    let of = |access: &HostAccess| {
        let name = &*access.name;
        let mut of_host: Vec<Read> = reads.get(name).into_iter().flatten().cloned().collect();
        of_host.push(Read::File {
            path: HOST_RECORD_PATH.to_owned(),
        });
        of_host.extend(
            [Read::Hardware, Read::CageModules]
                .into_iter()
                .filter(|_| prepared.asks_hardware),
        );
        // Which hosts are nodes that a rollout has to empty, and which an earlier run left
        // cordoned.
        of_host.extend(
            Some(Read::Kubernetes(KubernetesRead::Nodes)).filter(|_| access.cluster.is_some()),
        );
        of_host
    };
    let all = prepared.inventory.accesses();
    all.map(|access| HostRequest {
        reads: of(&access),
        access,
    })
    .collect()
}
