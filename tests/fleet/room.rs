//! A simulated fleet with a state folder, resources and a gate: all that a whole run needs, in
//! virtual time.

use crate::nodes::Nodes;
use railwright_apply::{
    ApplyOutcome, Context, EventSink, ExecutionOptions, GateResult, Gatekeeper, RunEvent,
    apply_plan,
};
use railwright_base::{Address, Diagnostic, Digest, MachineId, Target, TargetKind};
use railwright_observe::sealed::{collect_reads_by_host, named_by_host, seal_resources};
use railwright_observe::{HostRequest, identity, observe_hosts};
use railwright_plan::{
    ClusterNodes, Header, HostsWithoutSsh, IdentityFindings, InventoryOrigin, LastApplied, Outages,
    Plan, PlanInputs, PlanSelection, RolloutPolicy, make_plan,
};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::redacted_diff::collect_json_texts;
use railwright_resource::{
    DesiredResource, Disruption, Observation, Read, ResourceDeclaration, kind_named,
};
use railwright_state::host_record::HOST_RECORD_PATH;
use railwright_state::{ClusterLock, ClusterState, Recognition, StateFolder, listing};
use railwright_system::clock::Clock;
use railwright_transport::sim::{
    Fleet, SimulatedFault, SimulatedHost, SimulatedTrouble, new_simulated_access,
};
use railwright_transport::{BoxFuture, Secrets, TargetAccess};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The codes of what a run says.
pub fn codes(outcome: &ApplyOutcome) -> Vec<&str> {
    outcome
        .problems
        .iter()
        .map(|problem| problem.code.as_ref())
        .collect()
}

/// A time that never comes.
pub const NEVER: Duration = Duration::MAX;

/// A gate that fails for the hosts that are named bad, and takes its time.
pub struct Gate {
    pub bad: Mutex<BTreeSet<String>>,
    pub checked: Mutex<Vec<String>>,
    /// Hosts on which it has nothing to check.
    pub unchecked: Mutex<BTreeSet<String>>,
    /// A check fails on this host as well, which passed before.
    pub partner_failed: Mutex<Option<String>>,
    pub takes: Mutex<Duration>,
}

impl Default for Gate {
    fn default() -> Self {
        let takes = Mutex::new(Duration::from_secs(60));
        Self {
            bad: Mutex::default(),
            checked: Mutex::default(),
            unchecked: Mutex::default(),
            partner_failed: Mutex::default(),
            takes,
        }
    }
}

impl Gatekeeper for Gate {
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult> {
        self.checked.lock().unwrap().push(format!(
            "{} after {}",
            hosts.join(","),
            proven.join(",")
        ));
        let bad = self.bad.lock().unwrap().clone();
        let failed: BTreeSet<String> = self
            .partner_failed
            .lock()
            .unwrap()
            .clone()
            .into_iter()
            .collect();
        let slow = hosts
            .iter()
            .filter(|host| bad.contains(*host))
            .chain(&failed);
        let slow = slow.map(|host| Diagnostic::error("RW0650", format!("{host} is slow")));
        let unchecked = self.unchecked.lock().unwrap().clone();
        let checked = hosts
            .iter()
            .filter(|host| !unchecked.contains(*host))
            .cloned()
            .collect();
        let result = GateResult {
            problems: slow.collect(),
            checked,
            failed,
        };
        let takes = *self.takes.lock().unwrap();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            result
        })
    }
}

/// A host with two kernel settings and nothing else.
fn plain() -> SimulatedHost {
    let mut host = SimulatedHost::fresh();
    let settings = [
        ("net.a".to_owned(), "0".to_owned()),
        ("net.b".to_owned(), "0".to_owned()),
    ];
    (host.kernel.sysctls, host.kernel.defaults) = (settings.clone().into(), settings.into());
    host
}

/// A fleet with a state folder, resources and a gate.
pub struct Room {
    pub fleet: Fleet,
    pub cluster: &'static str,
    pub gate: Arc<Gate>,
    pub resources: Vec<DesiredResource>,
    pub rollout: RolloutPolicy,
    /// Digests of the modules that plans are made with.
    pub modules: BTreeMap<String, Digest>,
    /// The hosts as nodes of a cluster, where there is one.
    pub nodes: Option<ClusterNodes>,
    /// What serves that cluster.
    pub server: Option<Nodes>,
    pub interrupt: watch::Sender<u32>,
    pub context: Context,
    pub events: Arc<Mutex<Vec<RunEvent>>>,
    _temporary: tempfile::TempDir,
}

/// Where state folders are made: in memory, since thousands of runs would else wait for the disk at
/// every record.
pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

impl Room {
    /// Another operator, who has a copy of the folder and declares the same.
    pub fn copied(&self) -> Self {
        let mut copy = Room::beside(self.fleet.clone(), self.cluster);
        (copy.resources, copy.rollout) = (self.resources.clone(), self.rollout.clone());
        copy_folder(self.context.folder.path(), copy.context.folder.path());
        copy
    }

    /// Plain hosts of these names.
    pub fn of(hosts: &[&str]) -> Self {
        Room::with(
            hosts
                .iter()
                .map(|name| ((*name).to_owned(), plain()))
                .collect(),
        )
    }

    /// These hosts.
    pub fn with(mut hosts: BTreeMap<String, SimulatedHost>) -> Self {
        for (name, host) in &mut hosts {
            host.machine_id = Some(machine_id(name));
        }
        Room::beside(Fleet::of(hosts), "c")
    }

    /// Another inventory of the same fleet, with a state folder of its own.
    pub fn beside(fleet: Fleet, cluster: &'static str) -> Self {
        let temporary = temporary();
        let (interrupt, interrupts) = watch::channel(0);
        let secrets = Arc::new(Secrets::new(None, BTreeMap::new(), BTreeMap::new()));
        let names: Vec<String> = fleet.hosts().into_keys().collect();
        let gate = Arc::new(Gate::default());
        let context = Context {
            folder: StateFolder::at(temporary.path().join("state")),
            connector: secrets.carried_by(Arc::new(fleet.clone())),
            secrets,
            hosts: names
                .iter()
                .map(|name| (name.clone(), new_simulated_access(name)))
                .collect(),
            without_ssh: BTreeSet::new(),
            nodes: BTreeMap::new(),
            gatekeeper: gate.clone(),
            spec_digest: Some(Digest::of_bytes(b"spec")),
            desired: None,
            patience: ExecutionOptions::default(),
            clock: Clock::Set(Arc::new(AtomicI64::new(jiff::Timestamp::now().as_second()))),
            interrupts,
        };
        Room {
            fleet,
            cluster,
            gate,
            resources: Vec::new(),
            nodes: None,
            server: None,
            rollout: RolloutPolicy {
                canary: 1,
                max_unavailable: 2,
                max_disruption: Disruption::Reboot,
                ..RolloutPolicy::default()
            },
            modules: BTreeMap::new(),
            interrupt,
            context,
            events: Arc::default(),
            _temporary: temporary,
        }
    }

    /// Every host is to have this.
    pub fn resource(mut self, kind: &str, body: Value, after: &[&str]) -> Self {
        for host in self.context.hosts.keys() {
            self.resources
                .push(resource(host, kind, body.clone(), after));
        }
        self
    }

    /// The secrets are these from now on.
    pub fn secrets(&mut self, values: &[(&str, &str)]) {
        let found = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Ok((*value).to_owned())));
        let key = self.context.folder.make_seal_key().unwrap();
        let clear: Vec<_> = self
            .resources
            .iter()
            .flat_map(|resource| collect_json_texts(&resource.body))
            .collect();
        let secrets = Arc::new(
            Secrets::new(Some(key), found.collect(), named_by_host(&self.resources))
                .beside_clear_text(clear.iter().map(AsRef::as_ref)),
        );
        self.context.connector = secrets.carried_by(Arc::new(self.fleet.clone()));
        self.context.secrets = secrets;
    }

    /// Looks at a host, or changes it as somebody else would.
    pub fn host<T>(&self, host: &str, change: impl FnOnce(&mut SimulatedHost) -> T) -> T {
        self.fleet.with(host, change).unwrap()
    }

    /// Puts a file on a host by hand.
    pub fn put(&self, host: &str, path: &str, text: &str) {
        self.host(host, |host| host.disk.put(path, text.into()));
    }

    /// The next action of this word on a host goes wrong.
    pub fn fault(&self, host: &str, word: &str, trouble: SimulatedTrouble) {
        let fault = SimulatedFault {
            after: 0,
            word: Some(word.to_owned()),
            trouble,
        };
        self.host(host, |host| host.faults.push(fault));
    }

    /// Has the disk of a host fill up at its call of this number from now, and take nothing for so
    /// many calls.
    pub fn fill_disk(&self, host: &str, nth: u32, calls: u32) {
        self.host(host, |host| {
            host.faults.push(SimulatedFault {
                after: host.calls + nth,
                word: None,
                trouble: SimulatedTrouble::DiskFull(calls),
            })
        });
    }

    /// Somebody has railwright forget a resource.
    pub fn forgets(&self, address: &Address) {
        let folder = &self.context.folder;
        let lock = ClusterLock::take(folder, "state forget").unwrap();
        listing::forget_resources(folder, &lock, std::slice::from_ref(address)).unwrap();
    }

    /// What railwright remembers.
    pub fn state(&self) -> ClusterState {
        ClusterState::load(&self.context.folder).unwrap()
    }

    /// What the hosts report of these resources, and of what was applied.
    pub async fn observe(
        &self,
        resources: &[DesiredResource],
        last: &LastApplied,
        parallel: usize,
    ) -> Observation {
        let reads = collect_reads_by_host(resources, last);
        let nodes = Some(Read::Kubernetes(KubernetesRead::Nodes));
        let request = |(name, access): (&String, &TargetAccess)| HostRequest {
            access: access.clone(),
            reads: reads
                .get(name)
                .into_iter()
                .flatten()
                .cloned()
                .chain(nodes.clone().filter(|_| access.cluster().is_some()))
                .chain([Read::File {
                    path: HOST_RECORD_PATH.to_owned(),
                }])
                .collect(),
        };
        let mut observation = observe_hosts(
            &*self.context.connector,
            self.context.hosts.iter().map(request).collect(),
            parallel,
            &|_| {},
        )
        .await;
        observation.recorded_at = "2026-01-01T00:00:00Z".to_owned();
        observation
    }

    /// The plan of an observation.
    pub fn plan_of(
        &self,
        resources: &[DesiredResource],
        last: &LastApplied,
        observation: &Observation,
        selection: PlanSelection,
    ) -> Plan {
        self.plan_by(
            resources,
            (last, &self.state().outages),
            observation,
            &IdentityFindings::default(),
            selection,
        )
    }

    fn list_hosts_without_ssh(&self) -> Vec<HostsWithoutSsh> {
        let names: Vec<&String> = self.context.without_ssh.iter().collect();
        if names.is_empty() {
            return Vec::new();
        }
        vec![HostsWithoutSsh {
            hosts: railwright_base::nodeset::fold_node_set(&names),
            modules: Vec::new(),
        }]
    }

    /// The spec says of a host that it has no SSH.
    pub fn take_ssh_away(&mut self, host: &str) {
        self.context.hosts.remove(host);
        self.context.without_ssh.insert(host.to_owned());
        self.resources
            .retain(|resource| *resource.address.target.name != *host);
    }

    fn plan_by(
        &self,
        resources: &[DesiredResource],
        (last, outages): (&LastApplied, &Outages),
        observation: &Observation,
        identity: &IdentityFindings,
        selection: PlanSelection,
    ) -> Plan {
        let targets: Vec<Target> = self
            .context
            .hosts
            .values()
            .map(TargetAccess::target)
            .collect();
        let header = Header {
            made_by: "test".into(),
            cluster: self.cluster.into(),
            inventory: InventoryOrigin {
                path: "inventories/x".into(),
                ..InventoryOrigin::default()
            },
            spec_digest: Digest::of_bytes(b"spec"),
            modules: self.modules.clone(),
            proof: Default::default(),
            waived: Vec::new(),
            no_ssh: self.list_hosts_without_ssh(),
        };
        let rollout = self.rollout.clone();
        let nodes = self.nodes.clone();
        make_plan(&PlanInputs {
            header,
            resources,
            last,
            outages,
            observation,
            identity,
            kinds: &kind_named,
            targets: &targets,
            nodes,
            rollout,
            selection,
        })
        .unwrap()
    }

    /// The plan of the fleet as it is.
    pub async fn plan(&self) -> Plan {
        self.narrowed_plan(PlanSelection::default()).await
    }

    /// The plan of a part of the fleet.
    pub async fn narrowed_plan(&self, selection: PlanSelection) -> Plan {
        let (state, resources, observation, recognition) = self.recognize().await;
        let identity = recognition.findings(state.cluster.as_ref(), "inventories/x");
        self.plan_by(
            &resources,
            (&state.last_applied, &state.outages),
            &observation,
            &identity,
            selection,
        )
    }

    /// What the hosts say, and whose they are by that.
    pub async fn recognize(
        &self,
    ) -> (ClusterState, Vec<DesiredResource>, Observation, Recognition) {
        let mut state = self.state();
        let mut resources = self.resources.clone();
        seal_resources(&mut resources, &state.last_applied, &self.context.secrets);
        let mut observation = self.observe(&resources, &state.last_applied, 8).await;
        let identities = identity::collect_target_identities(&observation);
        let recognition = state.recognize(self.cluster, &identities);
        if recognition.merged {
            observation = self.observe(&resources, &state.last_applied, 8).await;
        }
        recognition.mark(&mut observation, "inventories/x");
        (state, resources, observation, recognition)
    }

    /// The host is installed anew as this one, under the same name.
    pub fn reinstall(&self, name: &str, host: SimulatedHost) {
        let (calls, boot) = self.host(name, |old| (old.calls, old.boot));
        let machine_id = Some(machine_id(&format!("{name} again")));
        self.host(name, |old| {
            *old = SimulatedHost {
                calls,
                boot: boot + 1,
                machine_id,
                ..host
            }
        });
    }

    /// Applies until this is so, and dies.
    pub async fn dies_when(&self, plan: &Plan, is_so: impl Fn() -> bool) {
        let comes_about = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            biased;
            () = comes_about => {}
            outcome = apply_plan(plan, &self.context, self.sink()) => panic!("it is through: {:?}", outcome.problems),
        }
    }

    /// Keeps what happens.
    pub fn sink(&self) -> EventSink {
        let events = self.events.clone();
        Arc::new(move |event| events.lock().unwrap().push(event))
    }
}

/// A machine-id that only this name gives.
pub fn machine_id(name: &str) -> MachineId {
    Digest::of_bytes(name.as_bytes()).as_str()[..32]
        .parse()
        .unwrap()
}

/// A resource of a host, as a module would make it.
pub fn resource(host: &str, kind: &str, body: Value, after: &[&str]) -> DesiredResource {
    let kind = kind_named(kind).unwrap();
    assert!(kind.check(&body).is_empty(), "{:?}", kind.check(&body));
    let target = match kind.target_kind() {
        TargetKind::Switch => Target::switch(host),
        _ => Target::host(host),
    };
    DesiredResource {
        address: Address {
            target,
            ..Address::host(host, kind.name(), &kind.address_name(&body).unwrap())
        },
        after: after
            .iter()
            .map(|within| format!("host/{host}/{within}").parse().unwrap())
            .collect(),
        declaration: ResourceDeclaration {
            kind: kind.name().to_owned(),
            body,
            module: "m/r".to_owned(),
            places: Vec::new(),
        }
        .into(),
    }
}

/// A runtime whose clock stands still until everybody waits.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}
