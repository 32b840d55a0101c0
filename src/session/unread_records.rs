//! Which targets have a record of our changes that this account may not read. The records hold what
//! stood in files before we changed them, so no line of sudoers gives them to a user without
//! rights.

use railwright_base::{Diagnostic, TargetKind, nodeset};
use railwright_resource::{AnswerStatus, Observation, Read, ReadResults};
use railwright_state::host_record::HOST_RECORD_PATH;

/// One warning for each kind of targets whose records were not read.
pub(crate) fn warn_unread_records(observation: &Observation) -> Vec<Diagnostic> {
    let kinds = [TargetKind::Host, TargetKind::Switch, TargetKind::Kube];
    kinds
        .into_iter()
        .filter_map(|kind| {
            let names = list_unread_targets(observation, kind);
            (!names.is_empty()).then(|| report_unread_records(kind, &names))
        })
        .collect()
}

fn list_unread_targets(observation: &Observation, kind: TargetKind) -> Vec<&str> {
    observation
        .targets
        .iter()
        .filter(|(target, found)| target.kind == kind && is_denied(&found.answers))
        .map(|(target, _)| &*target.name)
        .collect()
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

fn report_unread_records(kind: TargetKind, names: &[&str]) -> Diagnostic {
    let (why, next) = match kind {
        TargetKind::Host => (
            "it is root's alone",
            "look from the folder that applies, or as root",
        ),
        TargetKind::Switch => (
            "it is a file on the switch, which not every way there shows",
            "look from the folder that applies, or reach it over SSH as root; over NVUE no record \
             is kept there",
        ),
        TargetKind::Kube => (
            "no role of ours lets us get its Secret in `kube-system`",
            "look from the folder that applies, or as somebody who may",
        ),
    };
    Diagnostic::warning(
        "RW0412",
        format!(
            "the record of our changes on {} was not read: {why}",
            nodeset::fold_node_set(names)
        ),
    )
    .effect(
        "it is compared with the memory of this folder; after an apply from elsewhere that is an \
         older one",
    )
    .state("nothing was changed")
    .next(next)
}
