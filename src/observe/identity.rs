//! What the targets of an observation say of themselves: which machine each is, and what its record holds.

use crate::base::{Diagnostic, Target};
use crate::resource::file::found::Found;
use crate::resource::host::facts;
use crate::resource::{Answers, Observation};
use crate::state::host_record::{self, HOST_RECORD_PATH};
use crate::state::{StateFolder, TargetIdentity};
use std::collections::BTreeMap;

/// By target, of those that answered; with a warning for each record that cannot be read.
pub fn identities(observation: &Observation, folder: &StateFolder) -> (BTreeMap<Target, TargetIdentity>, Vec<Diagnostic>) {
    let mut warnings = Vec::new();
    let mut identity = |target: &Target, answers: &Answers| {
        let facts = facts(answers).unwrap_or_default();
        let found = Found::at(HOST_RECORD_PATH, answers);
        let text = matches!(found, Found::Regular(_)).then(|| found.text().unwrap_or_default());
        let record = text.map(|text| host_record::parse(target, text, folder)).transpose();
        let record = record.map_err(|warning| warnings.push(warning)).unwrap_or_default();
        TargetIdentity { running: facts.running_machine(), machine_id: facts.machine_id, record }
    };
    let answered = observation.targets.iter().filter(|(_, found)| found.problem.is_none());
    let identities = answered.map(|(target, found)| (target.clone(), identity(target, &found.answers))).collect();
    (identities, warnings)
}
