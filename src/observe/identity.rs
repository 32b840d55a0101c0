//! What the targets of an observation say of themselves: which machine each is, and what its record holds.

use railwright_base::Target;
use railwright_resource::file::found::{Content, Found, Regular};
use railwright_resource::host::facts;
use railwright_resource::{AnswerStatus, Answers, Observation, Read};
use railwright_state::host_record::HOST_RECORD_PATH;
use railwright_state::{TargetIdentity, TargetRecord};
use std::collections::BTreeMap;

/// By target, of those that answered.
pub fn identities(observation: &Observation) -> BTreeMap<Target, TargetIdentity> {
    let identity = |target: &Target, answers: &Answers| {
        let facts = facts(answers).unwrap_or_default();
        let (running, boot_id) = (facts.running_machine(), facts.boot());
        TargetIdentity { running, boot_id, machine_id: facts.machine_id, record: record(target, answers) }
    };
    let answered = observation.targets.iter().filter(|(_, found)| found.problem.is_none());
    answered.map(|(target, found)| (target.clone(), identity(target, &found.answers))).collect()
}

/// Only where nothing is in its place, or where it was not for us to read, is there no record.
fn record(target: &Target, answers: &Answers) -> TargetRecord {
    let read = Read::File { path: HOST_RECORD_PATH.to_owned() };
    match answers.get(&read).map(|answer| &answer.status) {
        None | Some(AnswerStatus::Denied | AnswerStatus::NotOffered) => return TargetRecord::Absent,
        Some(_) => {}
    }
    match Found::by(&read, answers) {
        Found::Absent { .. } => TargetRecord::Absent,
        Found::Regular(Regular { content: Content::Text(text), .. }) => TargetRecord::parse(target, &text),
        Found::Regular(Regular { content: Content::TooLarge { bytes, .. }, .. }) => {
            TargetRecord::unreadable(format!("it has {} KiB", bytes >> 10))
        }
        Found::Regular(_) => TargetRecord::unreadable("it is no text"),
        Found::Other { what } => TargetRecord::unreadable(format!("a {what} is in its place")),
        Found::Unknown { reason } => TargetRecord::unreadable(reason),
    }
}
