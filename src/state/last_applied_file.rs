//! `state.json`: what was last applied, as a checked file. It is a snapshot of the fold of all
//! journals; what the newest run did after it was written is put over it from that run's journal,
//! so that a crash loses nothing.

use super::fenced_folder::FencedFolder;
use super::folder::StateFolder;
use super::host_record::{HIGHEST_SERIAL, HostRecord, TakeOver};
use super::lineage::{Descent, Lineage, RunPart};
use super::power_cycles::AwaitedPowerCycle;
use super::recognition::ClusterIdentity;
use super::run_status::{self, RunStatus};
use railwright_base::{Address, ClusterId, Diagnostic, Digest, MachineId, quote};
use railwright_plan::{AppliedResource, LastApplied, Outage, Outages, Plan, PlanNode, note_outage};
use railwright_system::{clock, files};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The format of state files and host records; another major is refused.
pub const FORMAT_VERSION: &str = "2.0";
const FILE_LIMIT_BYTES: u64 = 2 << 30;

/// How far into which run's journal the state goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalPosition {
    /// The run.
    pub run: String,
    /// Its last record that is in the state.
    pub sequence: u64,
}

/// What railwright remembers of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// Counts the writes of the file.
    pub serial: u64,
    /// The cluster that it is of; nothing before the first apply.
    #[serde(default)]
    pub cluster: Option<ClusterIdentity>,
    /// What was last applied.
    pub last_applied: LastApplied,
    /// Hosts that runs left out of service: until a gate passes them, or somebody decides
    /// otherwise.
    #[serde(default)]
    pub outages: Outages,
    /// Outages by machine, which may get another name, or none for a while: only a gate that the
    /// machine passes ends one.
    #[serde(default)]
    pub machine_outages: BTreeMap<MachineId, Outage>,
    /// Hosts that wait for a power cycle by hand: in another boot they are out of service, whether
    /// that run goes on or not.
    #[serde(default)]
    pub awaited_power_cycles: Vec<AwaitedPowerCycle>,
    /// Ids of machines that several had at one time: they were made part of an image, and tell
    /// nothing.
    #[serde(default)]
    pub cloned: BTreeSet<MachineId>,
    /// Which runs wrote the record of each host's slice, as far as it is known to stand on the
    /// host.
    #[serde(default)]
    pub lineages: BTreeMap<String, Lineage>,
    /// The machine that each host's slice is about, where it is known.
    #[serde(default)]
    pub machines: BTreeMap<String, MachineId>,
    /// Targets that were taken over from another cluster, by name.
    #[serde(default)]
    pub taken_over: BTreeMap<String, TakeOver>,
    /// The newest run that is in it.
    #[serde(default)]
    pub absorbed: Option<JournalPosition>,
}

impl ClusterState {
    /// Reads the state; an empty one when nothing was ever applied. Takes no lock and writes
    /// nothing.
    pub fn load(folder: &StateFolder) -> Result<ClusterState, Diagnostic> {
        let mut state = match folder.read("state.json", FILE_LIMIT_BYTES) {
            Ok(bytes) => parse_state_file(folder, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => ClusterState::default(),
            Err(error) => return Err(folder.unusable(&error)),
        };
        let Some(run) = folder.newest_run()? else {
            return Ok(state);
        };
        let records = folder.read_journal(&run)?.records;
        let status = run_status::fold_journal_records(&records);
        if let Some(known) = state.known_sequence(&status)
            && status.sequence > known
        {
            let known_records = records.partition_point(|record| record.sequence <= known);
            let earlier = run_status::fold_journal_records(&records[..known_records]);
            state.absorb_run(folder, &run, status, &earlier, known);
        }
        Ok(state)
    }

    /// Puts the newest run over the state, which knows it as far as the record `known`. Its plan
    /// lies in the run's folder of this name.
    fn absorb_run(
        &mut self,
        folder: &StateFolder,
        name: &str,
        status: RunStatus,
        earlier: &RunStatus,
        known: u64,
    ) {
        let begun = status.begun();
        // Without its plan nobody can tell any more what it was about. It may be large.
        let mut plan = None;
        if status.power_cycles || !begun.is_empty() || !self.awaited_power_cycles.is_empty() {
            plan = folder.read_plan(name).ok();
        }
        status.absorb_into(self, earlier);
        if let Some(plan) = plan {
            self.await_power_cycles(&status, &plan, known);
            self.remember_begun(&status.run, &begun, &plan);
        }
        self.absorbed = Some(JournalPosition {
            run: status.run,
            sequence: status.sequence,
        });
    }

    /// The last record of a run's journal that the state knows. Nothing where it has gone beyond
    /// that run without it: the newest was moved away, and what stands in the older journal from
    /// now on would never be read.
    pub fn known_sequence(&self, run: &RunStatus) -> Option<u64> {
        match &self.absorbed {
            Some(absorbed) if absorbed.run == run.run => Some(absorbed.sequence),
            _ => (self.serial <= run.state_serial).then_some(0),
        }
    }

    /// Remembers what a run had under way when it ended, so that it is undone should it leave the
    /// spec: whoever goes on with another plan does not see what was there before.
    fn remember_begun(
        &mut self,
        run: &str,
        begun: &BTreeMap<Address, (Value, String)>,
        plan: &Plan,
    ) {
        for member in plan.nodes.iter().flat_map(PlanNode::members) {
            let resource = &member.resource;
            if let Some((before, at)) = begun.get(&resource.address)
                && !member.removal
            {
                let remembered = self.last_applied.resources.entry(resource.address.clone());
                remembered
                    .and_modify(|applied| applied.note_begun(&resource.body, before.clone()))
                    .or_insert_with(|| {
                        AppliedResource::unfinished(resource, before.clone(), run, at.clone())
                    });
            }
        }
    }

    /// Writes the state while the cluster's lock is held, the file before it kept as
    /// `state.previous.json`.
    pub fn store(&mut self, folder: &FencedFolder) -> Result<(), Diagnostic> {
        self.serial += 1;
        folder.write(|folder| {
            self.write_files(folder)
                .map_err(|error| folder.unusable(&error))
        })
    }

    fn write_files(&self, folder: &StateFolder) -> io::Result<()> {
        let text = render_state_file(self)?;
        if let Ok(previous) = folder.read("state.json", FILE_LIMIT_BYTES) {
            files::write_atomic(&folder.path().join("state.previous.json"), &previous, 0o600)?;
        }
        files::write_atomic(&folder.path().join("state.json"), text.as_bytes(), 0o600)
    }

    /// The identity of the cluster: what is remembered, else this id that a plan was made with,
    /// else a new one.
    pub fn identify(
        &mut self,
        planned: Option<&ClusterId>,
        name: &str,
    ) -> io::Result<ClusterIdentity> {
        if let Some(cluster) = &self.cluster {
            return Ok(cluster.clone());
        }
        let id = match planned {
            Some(id) => id.clone(),
            None => clock::generate_nonce()?.parse().map_err(io::Error::other)?,
        };
        let name = name.to_owned();
        let cluster = ClusterIdentity { id, name };
        self.cluster = Some(cluster.clone());
        Ok(cluster)
    }

    /// How a host's own record stands to what is remembered of it.
    pub fn descent(&self, record: &HostRecord) -> Descent {
        self.lineages
            .get(&record.host)
            .map_or(Descent::Later, |known| record.lineage().descent_from(known))
    }

    /// Puts a host's own record over what we remember of it, when the record is newer. Says whether
    /// it was.
    pub fn merge(&mut self, record: &HostRecord) -> bool {
        match self.descent(record) {
            Descent::Later => {}
            Descent::PutBack => {
                // What was undone since is there again.
                self.remember_besides(record);
                self.note_outage_of(record);
                return false;
            }
            Descent::Known | Descent::Forked => return false,
        }
        // A name is that of one target only, a host or the Kubernetes cluster.
        self.last_applied
            .resources
            .retain(|address, _| *address.target.name != record.host);
        let resources = &mut self.last_applied.resources;
        for (address, applied) in &record.resources {
            if *address.target.name == record.host {
                resources.insert(address.clone(), applied.clone());
            }
        }
        let host = &record.host;
        self.lineages.insert(host.clone(), record.lineage());
        if let Some(machine) = &record.machine {
            self.machines.insert(host.clone(), machine.clone());
        }
        if let Some(taken_over) = &record.taken_over {
            self.taken_over.insert(host.clone(), taken_over.clone());
        }
        self.note_outage_of(record);
        true
    }

    /// Remembers what only the record knows. What this side remembers of a resource goes further
    /// back.
    pub(super) fn remember_besides(&mut self, record: &HostRecord) {
        for (address, applied) in &record.resources {
            self.last_applied
                .resources
                .entry(address.clone())
                .or_insert_with(|| applied.clone());
        }
    }

    /// A record without an outage ends none: only what this side journals does.
    pub(super) fn note_outage_of(&mut self, record: &HostRecord) {
        if let Some(outage) = record.outage.clone() {
            note_outage(&mut self.outages, record.host.clone(), outage);
        }
    }

    /// The next record of a host: its slice as it is now, one serial higher. Whether it comes to
    /// stand there is unknown yet.
    pub fn next_record(
        &mut self,
        cluster: &ClusterIdentity,
        host: &str,
        by: &RunPart,
        plan: &str,
        at: String,
    ) -> HostRecord {
        let lineage = self.lineages.entry(host.to_owned()).or_default();
        let serial = lineage
            .highest_serial()
            .saturating_add(1)
            .min(HIGHEST_SERIAL);
        let earlier = lineage.clone();
        lineage.note_tried(by, serial);
        let slice = self
            .last_applied
            .resources
            .iter()
            .filter(|(address, _)| &*address.target.name == host);
        HostRecord {
            format_version: FORMAT_VERSION.to_owned(),
            cluster: cluster.clone(),
            host: host.to_owned(),
            machine: self.machines.get(host).cloned(),
            taken_over: self.taken_over.get(host).cloned(),
            serial,
            run: by.run.clone(),
            part: by.part.clone(),
            earlier,
            plan: plan.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            at,
            outage: self.outages.get(host).cloned(),
            resources: slice
                .map(|(address, applied)| (address.clone(), applied.clone()))
                .collect(),
        }
    }
}

/// The file's text. It is read back first: whatever is in the state, the file before is replaced by
/// one alone that will be read.
fn render_state_file(state: &ClusterState) -> io::Result<String> {
    let content: Value = serde_json::from_str(&serde_json::to_string(state)?)?;
    let checksum = Digest::of(&content);
    let file = json!({ "format_version": FORMAT_VERSION, "checksum": checksum, "state": content });
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    if serde_json::from_str::<Value>(&text)? == file {
        Ok(text)
    } else {
        Err(io::Error::other(
            "the state would be read as another one than was written",
        ))
    }
}

fn parse_state_file(folder: &StateFolder, bytes: &[u8]) -> Result<ClusterState, Diagnostic> {
    let mut value: Value = serde_json::from_slice(bytes)
        .map_err(|error| report_corrupt_state(folder, &error.to_string()))?;
    let Some(format) = value.get("format_version").and_then(Value::as_str) else {
        return Err(report_corrupt_state(folder, "it has no format_version"));
    };
    if format.split('.').next() != FORMAT_VERSION.split('.').next() {
        return Err(report_other_format(folder, format));
    }
    let Some(content) = value.get_mut("state").map(Value::take) else {
        return Err(report_corrupt_state(folder, "it holds no state"));
    };
    if value.get("checksum").and_then(Value::as_str) != Some(Digest::of(&content).as_str()) {
        let what = "its checksum does not fit its content";
        return Err(report_corrupt_state(folder, what));
    }
    serde_json::from_value(content)
        .map_err(|error| report_corrupt_state(folder, &error.to_string()))
}

fn report_corrupt_state(folder: &StateFolder, what: &str) -> Diagnostic {
    let path = folder.path().display();
    Diagnostic::error(
        "RW0701",
        format!("the state file cannot be trusted: {what}"),
    )
    .on(format!("{path}/state.json"))
    .effect("without it a removal would not know what was there before our first change")
    .state("nothing was changed; the targets keep working as they are")
    .next(format!(
        "cp {} {}: the state one write earlier; the newest run's journal is put over it",
        quote::quote_path(&folder.path().join("state.previous.json")),
        quote::quote_path(&folder.path().join("state.json"))
    ))
    .next(
        "or move the file away: each target's own record then tells what was applied to it, and of \
         targets that keep none all is forgotten",
    )
}

fn report_other_format(folder: &StateFolder, format: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0702",
        format!("the state file has format {format}, this railwright reads {FORMAT_VERSION}"),
    )
    .on(format!("{}/state.json", folder.path().display()))
    .effect(
        "another railwright wrote it, and may remember things that this one would lose or misread",
    )
    .state("nothing was changed")
    .next(
        "use the railwright that wrote it (`railwright --version` on the machine that applied \
         last)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Chain, JournalEntry, parse_journal};
    use crate::run_status::tests::started;
    use crate::{ClusterLock, TargetRecord};
    use railwright_base::{Target, bounded_json};

    fn applied(value: f64) -> AppliedResource {
        AppliedResource {
            kind: "file".to_owned(),
            body: json!({ "ratio": value }),
            digest: Digest::of(&0),
            module: "m/f".to_owned(),
            places: Vec::new(),
            after: Vec::new(),
            before: Value::Null,
            adopted: false,
            unfinished: false,
            begun: Vec::new(),
            run: "r".to_owned(),
            at: "t".to_owned(),
        }
    }

    fn cluster() -> ClusterIdentity {
        ClusterIdentity {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            name: "c".to_owned(),
        }
    }

    fn store(state: &mut ClusterState, folder: &StateFolder) -> Result<(), Diagnostic> {
        state.store(ClusterLock::take(folder, "apply")?.folder())
    }

    fn state_with(addresses: &[&str]) -> ClusterState {
        let mut state = ClusterState::default();
        for (address, value) in addresses.iter().zip([0.1, 1e-9, 123456.789]) {
            state
                .last_applied
                .resources
                .insert(address.parse().unwrap(), applied(value));
        }
        state
    }

    #[test]
    fn resources_of_any_target_are_kept_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        let mut state = state_with(&[
            "host/a/file/%2Fx",
            "kube/prod/DaemonSet.apps/kube-system/rdma",
            "switch/leaf1/port/Ethernet1%2F1",
        ]);
        store(&mut state, &folder).unwrap();
        assert_eq!(ClusterState::load(&folder).unwrap(), state);
    }

    #[test]
    fn a_changed_byte_is_noticed_and_the_one_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let state_folder = StateFolder::at(folder.path());
        let mut state = state_with(&["host/a/file/x"]);
        store(&mut state, &state_folder).unwrap();
        store(&mut state, &state_folder).unwrap();
        let path = folder.path().join("state.json");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("m/f", "m/g")).unwrap();
        assert_eq!(
            ClusterState::load(&state_folder).unwrap_err().code,
            "RW0701"
        );
        std::fs::copy(folder.path().join("state.previous.json"), &path).unwrap();
        assert_eq!(
            ClusterState::load(&state_folder).unwrap().last_applied,
            state.last_applied
        );
        std::fs::write(&path, text.replace("\"2.0\"", "\"3.0\"")).unwrap();
        assert_eq!(
            ClusterState::load(&state_folder).unwrap_err().code,
            "RW0702"
        );
    }

    fn nest(levels: usize) -> Value {
        (0..levels).fold(json!(7.929768725199527e-10), |value, _| json!([value]))
    }

    /// Its values lie deeper in what is written of it, and its numbers are printed again.
    #[test]
    fn whatever_a_record_says_is_read_again_from_all_that_is_written_of_it() {
        let before = nest(bounded_json::RECORD_LEVELS - 3);
        let mut theirs = state_with(&["host/a/file/x"]);
        for applied in theirs.last_applied.resources.values_mut() {
            applied.before = before.clone();
        }
        let by = RunPart::of("r");
        let mut record = theirs.next_record(&cluster(), "a", &by, "p", "t".to_owned());
        record.serial = HIGHEST_SERIAL;
        let host = Target::host("a");
        let found = TargetRecord::parse(&host, &record.to_json());
        assert_eq!(found.read(), Some(&record));
        let (mut ours, mut others) = (ClusterState::default(), ClusterState::default());
        assert!(ours.merge(&record) && others.merge(&record));
        let by = RunPart::of("s");
        let next = ours.next_record(&cluster(), "a", &by, "p", "t".to_owned());
        let found = TargetRecord::parse(&host, &next.to_json());
        assert_eq!(found.read(), Some(&next));
        assert_eq!(others.descent(&next), Descent::Later);
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        store(&mut ours, &folder).unwrap();
        assert_eq!(ClusterState::load(&folder).unwrap(), ours);
        let mut entry = started(1, 0);
        if let JournalEntry::NodeStarted { members, .. } = &mut entry {
            members[0].before = before;
        }
        let mut chain = Chain::default();
        let lines = [JournalEntry::first_of("r"), entry.clone()]
            .map(|entry| chain.seal("t".to_owned(), entry));
        let journal = parse_journal("j", lines.concat().as_bytes()).unwrap();
        assert_eq!(journal.records[1].entry, entry);
    }

    #[test]
    fn a_state_that_would_not_be_read_again_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        let mut state = state_with(&["host/a/file/x"]);
        store(&mut state, &folder).unwrap();
        let kept = state.clone();
        for applied in state.last_applied.resources.values_mut() {
            // What the state is in the file is one level more than a reader takes.
            applied.before = nest(124);
        }
        assert_eq!(store(&mut state, &folder).unwrap_err().code, "RW0703");
        assert_eq!(ClusterState::load(&folder).unwrap(), kept);
    }

    #[test]
    fn a_newer_record_on_the_host_wins_and_an_older_one_does_not() {
        let mut elsewhere = state_with(&["host/a/file/new"]);
        let written = |serial| {
            let mut lineage = Lineage::default();
            lineage.note(&RunPart::of("r0"), serial);
            lineage
        };
        elsewhere.lineages.insert("a".to_owned(), written(4));
        let record = elsewhere.next_record(&cluster(), "a", &RunPart::of("r"), "p", "t".to_owned());
        let mut ours = state_with(&["host/a/file/old", "host/b/file/ours"]);
        ours.lineages.insert("a".to_owned(), written(5));
        assert_eq!(
            (ours.descent(&record), ours.merge(&record)),
            (Descent::Forked, false),
            "what is remembered was unknown there"
        );
        ours.lineages.insert("a".to_owned(), written(4));
        assert!(ours.merge(&record));
        assert!(!ours.merge(&record), "equal is not newer");
        let addresses: Vec<_> = ours
            .last_applied
            .resources
            .keys()
            .map(ToString::to_string)
            .collect();
        assert_eq!(addresses, ["host/a/file/new", "host/b/file/ours"]);
        assert_eq!(
            TargetRecord::parse(&Target::host("a"), &record.to_json()).read(),
            Some(&record)
        );
    }
}
