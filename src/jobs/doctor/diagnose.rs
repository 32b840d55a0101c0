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
    /// judgement alone.
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

    /// Whether the job is known to go on: one whose channels are told and nothing after them may
    /// hang.
    pub fn job_goes(&self) -> bool {
        !self.proof.aspects.iter().any(|(aspect, judgement)| {
            *aspect == Aspect::Progress && judgement.verdict == CheckVerdict::Warning
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

    /// What is wrong; what the log is held against may follow from the hosts that it names.
    pub fn finish(self, expected: impl FnOnce(&NcclLog) -> NcclExpectations) -> Diagnosis {
        let log = self.decoder.finish();
        let expected = expected(&log);
        let proof = check_nccl_log(&log, &expected);
        let seen = self.marks.finish();
        let holding = self.symptoms.into_iter().filter_map(|symptom| {
            let lines = find_symptom_lines(&symptom, &seen, &log, &proof)?;
            Some(SymptomFinding {
                symptom: if expected.acs.is_some() {
                    of_acs(symptom)
                } else {
                    symptom
                },
                lines,
            })
        });
        let (last, mut found): (Vec<SymptomFinding>, Vec<SymptomFinding>) =
            holding.partition(|found| found.symptom.last);
        if found.is_empty() {
            found = last;
        }
        Diagnosis { log, proof, found }
    }
}

/// As it is told of a pod of Alibaba Container Compute Service.
fn of_acs(symptom: Symptom) -> Symptom {
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
    let has = |pattern: &String| seen.contains_key(pattern);
    let group = symptom.seen.iter().find(|group| group.iter().all(has));
    let judged = |codes: &[String], is_so: fn(CheckVerdict) -> bool| {
        let is_one = |judgement: &CheckOutcome| {
            judgement
                .code
                .is_some_and(|code| codes.iter().any(|known| known == code))
        };
        codes.is_empty()
            || proof
                .aspects
                .iter()
                .any(|(_, judgement)| is_so(judgement.verdict) && is_one(judgement))
    };
    let set = |name: &String| {
        log.environment
            .get(name)
            .is_some_and(|values| values.iter().any(|value| !value.is_empty()))
    };
    let obeyed = |(name, wanted): (&String, &String)| match wanted.as_str() {
        "?*" => set(name),
        wanted => log
            .environment
            .get(name)
            .is_some_and(|values| values.contains(wanted)),
    };
    let is_so = (symptom.seen.is_empty() || group.is_some())
        && judged(&symptom.judged, |_| true)
        && judged(&symptom.failed, |verdict| verdict == CheckVerdict::Failed)
        && !symptom.unless.iter().any(has)
        && symptom.environment.iter().all(obeyed)
        && !symptom.unless_environment.iter().any(set);
    is_so.then(|| {
        group
            .into_iter()
            .flatten()
            .filter_map(|pattern| seen.get(pattern).cloned())
            .collect()
    })
}
