//! From a folder to a [`Session`]: the spec is read, the rules evaluate it, the releases are
//! chosen, and modules and workloads say which resources it desires.

use super::desired;
use super::error::SessionError;
use super::inventory::{Inventory, read_inventory};
use super::recording::read_recording;
use super::session::Session;
use super::signing_keys;
use railwright_base::{Diagnostic, WorkTreeState};
use railwright_knowledge::module::Texts;
use railwright_knowledge::module::context::KEY_IS_ABSENT;
use railwright_resource::Observation;
use railwright_state::StateFolder;
use railwright_system::clock;
use railwright_transport::{TargetContact, TransportError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Where observations come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservationSource {
    /// From the targets, now.
    Live(TargetContact),
    /// From a file that `facts` wrote; no target is contacted.
    Recorded(PathBuf),
    /// From nobody: the work is about the spec, or the state, alone.
    Nobody,
}

/// Whether a signing key that is not there is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningKeys {
    /// Always.
    Required,
    /// Only where a step needs it, which [`Session::plan`] and [`Session::check_plan_keys`] report.
    WhereAStepNeedsThem,
}

/// How a session is opened.
#[derive(Debug, Clone)]
pub struct SessionRequest {
    source: ObservationSource,
    keys: SigningKeys,
    only_host: Option<String>,
    changes_targets: bool,
}

impl SessionRequest {
    /// With observations from here, and with every signing key.
    pub fn new(source: ObservationSource) -> Self {
        SessionRequest {
            source,
            keys: SigningKeys::Required,
            only_host: None,
            changes_targets: false,
        }
    }

    /// With observations from the targets.
    pub fn from_targets(contact: TargetContact) -> Self {
        SessionRequest::new(ObservationSource::Live(contact))
    }

    /// For work that applies a plan, which may be of a cluster alone: signing keys have to be there
    /// where a step needs them, and an identity that may only read is refused.
    pub fn to_apply(contact: TargetContact) -> Self {
        SessionRequest::from_targets(contact)
            .with_keys(SigningKeys::WhereAStepNeedsThem)
            .to_change_targets()
    }

    /// With observations from a file that `facts` wrote. Files that are not here (a repository's
    /// key) come from it too.
    pub fn from_recording(file: impl Into<PathBuf>) -> Self {
        SessionRequest::new(ObservationSource::Recorded(file.into()))
    }

    /// Without any observation.
    pub fn of_spec_alone() -> Self {
        SessionRequest::new(ObservationSource::Nobody)
    }

    /// Which signing keys have to be there.
    pub fn with_keys(mut self, keys: SigningKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Resources of other hosts are not computed.
    pub fn of_host(mut self, name: &str) -> Self {
        self.only_host = Some(name.to_owned());
        self
    }

    /// For work that changes hosts, or starts something on them: an identity that may only read is
    /// refused before any target is contacted.
    pub fn to_change_targets(mut self) -> Self {
        self.changes_targets = true;
        self
    }

    /// Where its observations come from.
    pub fn source(&self) -> &ObservationSource {
        &self.source
    }

    /// Reads the inventory in this folder and works out what it desires. An error reports as well
    /// what looks wrong and is none.
    pub fn open(&self, path: &Path) -> Result<Session, SessionError> {
        let inventory = read_inventory(path)?;
        let (warnings, sources) = (inventory.warnings.clone(), inventory.loaded.sources.clone());
        let session = self
            .prepare(inventory)
            .and_then(|session| self.check(session));
        session.map_err(|mut error| {
            error.warnings = drop_repeated_warnings(warnings, &error.diagnostics);
            error.sources.join(&sources);
            error
        })
    }

    fn check(&self, session: Session) -> Result<Session, SessionError> {
        if self.keys == SigningKeys::Required {
            session.check_signing_keys()?;
        }
        if self.changes_targets {
            refuse_reader(&session.inventory)?;
        }
        Ok(session)
    }

    /// Where a signing key is not there, a text stands for it; [`Session::check_signing_keys`]
    /// reports it.
    fn prepare(&self, mut inventory: Inventory) -> Result<Session, SessionError> {
        let (recorded, contact) = self.open_source()?;
        let texts = read_texts(&inventory, recorded.as_ref(), contact)?;
        let filled = signing_keys::fill_absent_keys(&inventory, texts.clone());
        let narrowed = self
            .only_host
            .as_ref()
            .map(|name| inventory.loaded.only(name));
        let asked = narrowed.as_ref().unwrap_or(&inventory.loaded);
        let today = compute_waiver_day(recorded.as_ref());
        let (workloads, unrendered) = inventory.workloads(&today);
        let (evaluation, answers) =
            inventory
                .knowledge
                .evaluate(&inventory.loaded, asked, &workloads, &today);
        let after_rules = |error: SessionError| {
            error.after(
                evaluation.errors(),
                &inventory.knowledge.sources(&inventory.loaded.sources),
            )
        };
        unrendered.map_or(Ok(()), Err).map_err(after_rules)?;
        let chosen = desired::ChosenSpec {
            inventory: &inventory,
            asked,
            workloads: &workloads,
            answers: &answers,
        };
        let desired = chosen
            .compute_desired_resources(&filled)
            .map_err(after_rules)?;
        let keyless = chosen.find_keyless_resources(&texts, &desired.resources)?;
        if inventory.origin.commit.is_some() && desired::has_local_chart(&desired.resources) {
            inventory.origin.dirty = inventory.origin.dirty.max(WorkTreeState::Unknown);
        }
        Ok(Session {
            folder: StateFolder::beside(&inventory.folder),
            targets: inventory.loaded.targets().collect(),
            inventory,
            desired,
            evaluation,
            answers,
            texts,
            recorded,
            contact,
            keyless,
            asks_hardware: false,
            secrets: Mutex::default(),
        })
    }

    /// The recording, where observations come from one, and how targets are contacted, where they
    /// are.
    fn open_source(&self) -> Result<(Option<Observation>, Option<TargetContact>), SessionError> {
        Ok(match &self.source {
            ObservationSource::Live(contact) => (None, Some(*contact)),
            ObservationSource::Recorded(file) => (Some(read_recording(file)?), None),
            ObservationSource::Nobody => (None, None),
        })
    }
}

/// A key that is not there is reported once: as the error, where it is one.
fn drop_repeated_warnings(mut warnings: Vec<Diagnostic>, errors: &[Diagnostic]) -> Vec<Diagnostic> {
    let absent = errors.iter().filter(|error| error.code == KEY_IS_ABSENT);
    let places: Vec<_> = absent.map(first_place).collect();
    warnings.retain(|warning| !places.contains(&first_place(warning)));
    warnings
}

fn first_place(diagnostic: &Diagnostic) -> Option<(&str, std::ops::Range<usize>)> {
    let label = diagnostic.labels.first()?;
    Some((&label.file, label.span.clone()))
}

fn refuse_reader(inventory: &Inventory) -> Result<(), SessionError> {
    let mut accesses = inventory.accesses();
    let reader = accesses.find_map(|access| {
        let user = access.reader()?.to_owned();
        Some(TransportError::ReadOnly {
            host: access.name,
            user,
        })
    });
    match reader {
        Some(error) => Err(SessionError::refused(vec![error.diagnostic()])),
        None => Ok(()),
    }
}

/// The files that the spec refers to: those of the recording, and over them those that are here.
fn read_texts(
    inventory: &Inventory,
    recorded: Option<&Observation>,
    contact: Option<TargetContact>,
) -> Result<Texts, SessionError> {
    let mut texts = recorded.map(|r| r.texts.clone()).unwrap_or_default();
    texts.extend(signing_keys::read_referenced_files(inventory, contact)?);
    Ok(texts)
}

/// The day by which waivers are checked, in UTC: a recording's own day, so that its plan does not
/// change with time.
fn compute_waiver_day(recorded: Option<&Observation>) -> String {
    let now = recorded.map_or_else(clock::read_current_time, |recorded| {
        recorded.recorded_at.clone()
    });
    now.get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
