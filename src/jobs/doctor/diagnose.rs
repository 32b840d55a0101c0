//! What holds of the symptoms, in the order of the layers.

use super::layer::Layer;
use super::load::{OnAcs, Symptom};
use super::marks::{PatternOccurrence, PatternScanner};
use railwright_verify::nccl::{
    Aspect, NcclExpectations, NcclLog, NcclLogDecoder, NcclProof, check_nccl_log,
};
use railwright_verify::result::{CheckOutcome, CheckVerdict};
use std::collections::BTreeMap;

/// Reads a log and says what is wrong.
#[derive(Debug)]
pub struct Doctor {
    symptoms: Vec<Symptom>,
    decoder: NcclLogDecoder,
    marks: PatternScanner,
}

/// A symptom that holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SymptomFinding {
    /// The symptom.
    pub symptom: Symptom,
    /// The lines that show it, the first of each of its words; none where it follows from a
    /// verdict alone.
    pub lines: Vec<PatternOccurrence>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The log.
    pub log: NcclLog,
    /// What it proves.
    pub proof: NcclProof,
    /// The symptoms that hold: the first cause, and then what follows from it or comes after it.
    pub found: Vec<SymptomFinding>,
}

impl Diagnosis {
    /// The layers below the first broken one, which show nothing.
    pub fn sound_layers(&self) -> impl Iterator<Item = Layer> {
        let broken = self.found.first().map(|found| found.symptom.layer);
        Layer::ALL
            .into_iter()
            .take_while(move |layer| Some(*layer) != broken)
    }

    /// Whether the job is known to go on: one whose channels are logged and nothing after them may
    /// hang.
    pub fn job_goes(&self) -> bool {
        !self.proof.aspects.iter().any(|(aspect, evaluation)| {
            *aspect == Aspect::Progress && evaluation.verdict == CheckVerdict::Warning
        })
    }
}

impl Doctor {
    /// Who knows these symptoms, the lowest layer first.
    pub fn new(symptoms: Vec<Symptom>) -> Self {
        let marks = PatternScanner::of(&symptoms);
        Doctor {
            symptoms,
            decoder: NcclLogDecoder::default(),
            marks,
        }
    }

    /// Takes the next bytes of the log.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.decoder.feed(chunk);
        self.marks.feed(chunk);
    }

    /// What is wrong; what the log is compared with may follow from the hosts that it names.
    pub fn finish(self, expected: impl FnOnce(&NcclLog) -> NcclExpectations) -> Diagnosis {
        let log = self.decoder.finish();
        let expected = expected(&log);
        let proof = check_nccl_log(&log, &expected);
        let seen = self.marks.finish();
        let (mut found, mut last) = (Vec::new(), Vec::new());
        for symptom in self.symptoms {
            let Some(lines) = find_symptom_lines(&symptom, &seen, &log, &proof) else {
                continue;
            };
            let symptom = match expected.acs {
                Some(_) => adapt_to_acs(symptom),
                None => symptom,
            };
            let group = if symptom.last { &mut last } else { &mut found };
            group.push(SymptomFinding { symptom, lines });
        }
        if found.is_empty() {
            found = last;
        }
        Diagnosis { log, proof, found }
    }
}

/// As it is reported of a pod of Alibaba Container Compute Service.
fn adapt_to_acs(symptom: Symptom) -> Symptom {
    match symptom.on_acs.clone() {
        Some(OnAcs { cause, next }) => Symptom {
            cause,
            next,
            ..symptom
        },
        None => symptom,
    }
}

/// The lines that show a symptom, if it holds.
fn find_symptom_lines(
    symptom: &Symptom,
    seen: &BTreeMap<String, PatternOccurrence>,
    log: &NcclLog,
    proof: &NcclProof,
) -> Option<Vec<PatternOccurrence>> {
    let mut groups = symptom.seen.iter();
    let group = groups.find(|group| group.iter().all(|word| seen.contains_key(word)));
    if group.is_none() && !symptom.seen.is_empty() {
        return None;
    }
    if symptom.unless.iter().any(|word| seen.contains_key(word)) {
        return None;
    }
    if !matches_proof(symptom, proof) || !has_environment(symptom, log) {
        return None;
    }
    let mut lines = Vec::new();
    for pattern in group.into_iter().flatten() {
        lines.extend(seen.get(pattern).cloned());
    }
    Some(lines)
}

/// Whether the outcomes of a log are those that a symptom states.
fn matches_proof(symptom: &Symptom, proof: &NcclProof) -> bool {
    let (mut has_verdict, mut has_failed) = (symptom.verdict.is_empty(), symptom.failed.is_empty());
    for (_, outcome) in &proof.aspects {
        has_verdict |= has_code(outcome, &symptom.verdict);
        has_failed |= outcome.verdict == CheckVerdict::Failed && has_code(outcome, &symptom.failed);
    }
    has_verdict && has_failed
}

fn has_code(outcome: &CheckOutcome, codes: &[String]) -> bool {
    let Some(code) = outcome.code else {
        return false;
    };
    codes.iter().any(|known| known == code)
}

/// Whether NCCL obeyed the variables that a symptom states, and none of those that speak against
/// it.
fn has_environment(symptom: &Symptom, log: &NcclLog) -> bool {
    for (name, desired) in &symptom.environment {
        if !obeyed_variable(log, name, desired) {
            return false;
        }
    }
    let mut unless = symptom.unless_environment.iter();
    !unless.any(|name| obeyed_variable(log, name, "?*"))
}

/// Whether NCCL obeyed a variable with this value; `?*` is any that is not empty.
fn obeyed_variable(log: &NcclLog, name: &str, desired: &str) -> bool {
    let Some(values) = log.environment.get(name) else {
        return false;
    };
    match desired {
        "?*" => values.iter().any(|value| !value.is_empty()),
        desired => values.contains(desired),
    }
}
