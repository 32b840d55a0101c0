//! What the targets of an inventory are asked, and what their answers are compared with: our memory
//! of them, theirs of themselves, the desired resources with their seals.

use super::SessionError;
use super::session::Session;
use super::unread_records::warn_unread_records;
use railwright_base::Diagnostic;
use railwright_observe::{self as observe, HostRequest, ObservationEvent, identity, sealed};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{DesiredResource, Observation, Read};
use railwright_state::host_record::HOST_RECORD_PATH;
use railwright_state::{ClusterState, Recognition};
use railwright_system::{clock, descriptors};
use railwright_transport::{TargetAccess, TargetContact};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that are read at the same time, where enough files may be open.
const READ_AT_ONCE: usize = 64;

/// Descriptors that a connection may take for a moment: its socket, the agent's, a key file, a
/// question to `ssh -G`.
const DESCRIPTORS_EACH: usize = 8;

/// The actual state of the targets, and what it is compared with.
pub struct ObservedTargets {
    /// What was read from the targets.
    pub observation: Observation,
    /// What we remember of them: a newer record on a host wins over ours.
    pub state: ClusterState,
    /// What is desired, files that may hold a secret with their seals.
    pub resources: Vec<DesiredResource>,
    /// Whose the targets are, and which machines.
    pub recognition: Recognition,
    /// What looks wrong of it and is allowed.
    pub warnings: Vec<Diagnostic>,
}

impl ObservedTargets {
    /// What was read from the targets, whosever they are.
    pub fn into_recording(mut self) -> Observation {
        self.recognition.unmark(&mut self.observation);
        self.observation
    }
}

/// Who is shown how far the reading is.
pub type ObservationSink<'a> = &'a (dyn Fn(ObservationEvent) + Sync);

impl Session {
    /// Reads the targets, or takes what was recorded of them.
    pub async fn observe(
        &self,
        on_event: ObservationSink<'_>,
    ) -> Result<ObservedTargets, SessionError> {
        let request = self.build_observation_request()?;
        let observation = match (&self.recorded, self.contact) {
            (Some(recorded), _) => recorded.clone(),
            (None, Some(contact)) => self.read_targets(contact, &request, on_event).await?,
            (None, None) => Observation::at(clock::read_current_time()),
        };
        let mut observed = request.answered(self, observation)?;
        if let Some(contact) = self.contact.filter(|_| observed.recognition.merged) {
            self.read_newly_known(contact, &mut observed).await?;
        }
        Ok(observed)
    }

    async fn read_targets(
        &self,
        contact: TargetContact,
        request: &ObservationRequest,
        on_event: ObservationSink<'_>,
    ) -> Result<Observation, SessionError> {
        let connector = self.connector(contact)?;
        let requests = request.requests(self);
        let observed =
            observe::observe_hosts(&*connector, requests, read_at_once(), on_event).await;
        Ok(Observation {
            texts: self.texts.clone(),
            ..observed
        })
    }

    /// Reads what only the targets' own records name, and nobody could have asked for before:
    /// applied from elsewhere, and no longer desired.
    async fn read_newly_known(
        &self,
        contact: TargetContact,
        observed: &mut ObservedTargets,
    ) -> Result<(), SessionError> {
        let mut requests = self.build_host_requests(&observed.resources, &observed.state);
        for request in &mut requests {
            let found = observed.observation.targets.get(&request.access.target());
            request.reads.retain(|read| {
                found.is_some_and(|found| {
                    found.problem.is_none() && found.answers.get(read).is_none()
                })
            });
        }
        requests.retain(|request| !request.reads.is_empty());
        if requests.is_empty() {
            return Ok(());
        }
        let connector = self.connector(contact)?;
        let more = observe::observe_hosts(&*connector, requests, read_at_once(), &|_| {}).await;
        for (target, more) in more.targets {
            if let Some(found) = observed.observation.targets.get_mut(&target) {
                found.answers.merge(more.answers);
            }
        }
        Ok(())
    }

    /// The request to all targets.
    pub fn build_observation_request(&self) -> Result<ObservationRequest, SessionError> {
        let mut state = ClusterState::load(&self.folder)?;
        // What a run has in hand at this moment it has not left.
        if !state.outages.is_empty()
            && let Some(live) = self.folder.live_run()?
        {
            state.outages.retain(|_, outage| outage.run != live);
        }
        let secrets = self.secrets_with(&state.last_applied)?;
        let mut resources = self.desired.resources.clone();
        sealed::seal_resources(&mut resources, &state.last_applied, &secrets);
        Ok(ObservationRequest { state, resources })
    }

    /// One request a target: what its desired resources need, what was applied and is no longer
    /// desired, and the target's own record.
    fn build_host_requests(
        &self,
        resources: &[DesiredResource],
        state: &ClusterState,
    ) -> Vec<HostRequest> {
        let reads = sealed::collect_reads_by_host(resources, &state.last_applied);
        let accesses = self.inventory.accesses();
        accesses
            .map(|access| HostRequest {
                reads: self.list_reads(&access, reads.get(&*access.name)),
                access,
            })
            .collect()
    }

    fn list_reads(
        &self,
        access: &TargetAccess,
        of_resources: Option<&BTreeSet<Read>>,
    ) -> Vec<Read> {
        let mut reads: Vec<Read> = of_resources.into_iter().flatten().cloned().collect();
        reads.push(Read::File {
            path: HOST_RECORD_PATH.to_owned(),
        });
        if self.asks_hardware {
            reads.extend([Read::Hardware, Read::CageModules]);
        }
        // Which hosts are nodes that a rollout has to empty, and which an earlier run left
        // cordoned.
        if access.cluster().is_some() {
            reads.push(Read::Kubernetes(KubernetesRead::Nodes));
        }
        reads
    }
}

/// What the hosts are asked, and what their answers are compared with.
#[derive(Default)]
pub struct ObservationRequest {
    state: ClusterState,
    resources: Vec<DesiredResource>,
}

impl ObservationRequest {
    /// One request a host, by its name.
    pub fn by_host(self) -> BTreeMap<String, ObservationRequest> {
        let mut out: BTreeMap<String, ObservationRequest> = BTreeMap::new();
        for resource in self.resources {
            out.entry(resource.address.target.name.to_string())
                .or_default()
                .resources
                .push(resource);
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
    pub fn requests(&self, session: &Session) -> Vec<HostRequest> {
        session.build_host_requests(&self.resources, &self.state)
    }

    /// What the answers are compared with, with what the hosts' own records report.
    pub fn answered(
        mut self,
        session: &Session,
        mut observation: Observation,
    ) -> Result<ObservedTargets, SessionError> {
        let mut secrets = session.secrets_with(&self.state.last_applied)?;
        let identities = identity::collect_target_identities(&observation);
        let recognition = self
            .state
            .recognize(&session.inventory.loaded.spec.cluster, &identities);
        self.state.redact_outages(secrets.redaction());
        let mut warnings = recognition.warnings.clone();
        warnings.extend(warn_unread_records(&observation));
        if recognition.merged && sealed::remembers_sealed(&self.state.last_applied) {
            secrets = session.secrets_with_key()?;
            sealed::seal_resources(&mut self.resources, &self.state.last_applied, &secrets);
        }
        sealed::seal_observation(
            &mut observation,
            &self.resources,
            &self.state.last_applied,
            &secrets,
        );
        recognition.mark(&mut observation, &session.inventory.word);
        Ok(ObservedTargets {
            observation,
            state: self.state,
            resources: self.resources,
            recognition,
            warnings,
        })
    }
}

fn read_at_once() -> usize {
    READ_AT_ONCE
        .min(descriptors::read_descriptor_limit() / DESCRIPTORS_EACH)
        .max(1)
}
