//! What the targets of an observation report of themselves: which machine each is, and what its
//! record holds.

use railwright_base::Target;
use railwright_resource::file::found::{FileContent, FileState, Regular};
use railwright_resource::host::decode_host_facts;
use railwright_resource::{AnswerStatus, Observation, Read, ReadResults};
use railwright_state::host_record::HOST_RECORD_PATH;
use railwright_state::{TargetIdentity, TargetRecord};
use std::collections::BTreeMap;

/// By target, of those that answered.
pub fn collect_target_identities(observation: &Observation) -> BTreeMap<Target, TargetIdentity> {
    let identity = |target: &Target, answers: &ReadResults| {
        let facts = decode_host_facts(answers).unwrap_or_default();
        let (running, boot_id) = (facts.running_machine(), facts.boot());
        TargetIdentity {
            running,
            boot_id,
            machine_id: facts.machine_id,
            record: read_target_record(target, answers),
        }
    };
    let answered = observation
        .targets
        .iter()
        .filter(|(_, found)| found.problem.is_none());
    answered
        .map(|(target, found)| (target.clone(), identity(target, &found.answers)))
        .collect()
}

/// Only where nothing is in its place, or where it was not for us to read, is there no record.
fn read_target_record(target: &Target, answers: &ReadResults) -> TargetRecord {
    let read = Read::File {
        path: HOST_RECORD_PATH.to_owned(),
    };
    match answers.get(&read).map(|answer| &answer.status) {
        None | Some(AnswerStatus::Denied | AnswerStatus::NotOffered) => {
            return TargetRecord::Absent;
        }
        Some(_) => {}
    }
    match FileState::by(&read, answers) {
        FileState::Absent { .. } => TargetRecord::Absent,
        FileState::Regular(Regular {
            content: FileContent::Text(text),
            ..
        }) => TargetRecord::parse(target, &text),
        FileState::Regular(Regular {
            content: FileContent::TooLarge { bytes, .. },
            ..
        }) => TargetRecord::unreadable(format!("it has {} KiB", bytes >> 10)),
        FileState::Regular(_) => TargetRecord::unreadable("it is no text"),
        FileState::Other { what } => TargetRecord::unreadable(format!("a {what} is in its place")),
        FileState::Unknown { reason } => TargetRecord::unreadable(reason),
    }
}
