//! What holds of the symptoms, in the order of the layers.

use super::layer::Layer;
use super::load::Symptom;
use super::marks::{Marks, Seen};
use crate::verify::nccl::{Decoder, Expected, Log, Proof, judge};
use std::collections::BTreeMap;

/// Reads a log and says what is wrong.
#[derive(Debug)]
pub struct Doctor {
    symptoms: Vec<Symptom>,
    decoder: Decoder,
    marks: Marks,
}

/// A symptom that holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The symptom.
    pub symptom: Symptom,
    /// The lines that show it, the first of each of its words; none where it follows from a judgement alone.
    pub lines: Vec<Seen>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The log.
    pub log: Log,
    /// What it proves.
    pub proof: Proof,
    /// The symptoms that hold: the first cause, and then what follows from it or comes after it.
    pub found: Vec<Found>,
}

impl Diagnosis {
    /// The layers below the first broken one, which show nothing.
    pub fn sound_layers(&self) -> impl Iterator<Item = Layer> {
        let broken = self.found.first().map(|found| found.symptom.layer);
        Layer::ALL.into_iter().take_while(move |layer| Some(*layer) != broken)
    }
}

impl Doctor {
    /// Who knows these symptoms, the lowest layer first.
    pub fn new(symptoms: Vec<Symptom>) -> Self {
        let marks = Marks::of(&symptoms);
        Doctor { symptoms, decoder: Decoder::default(), marks }
    }

    /// Takes the next bytes of the log.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.decoder.feed(chunk);
        self.marks.feed(chunk);
    }

    /// What is wrong.
    pub fn finish(self, expected: &Expected) -> Diagnosis {
        let log = self.decoder.finish();
        let proof = judge(&log, expected);
        let seen = self.marks.finish();
        let holding = self.symptoms.into_iter().filter_map(|symptom| {
            let lines = holds(&symptom, &seen, &log, &proof)?;
            Some(Found { symptom, lines })
        });
        let found = holding.collect();
        Diagnosis { log, proof, found }
    }
}

/// The lines that show a symptom, if it holds.
fn holds(symptom: &Symptom, seen: &BTreeMap<String, Seen>, log: &Log, proof: &Proof) -> Option<Vec<Seen>> {
    let has = |pattern: &String| seen.contains_key(pattern);
    let group = symptom.seen.iter().find(|group| group.iter().all(has));
    let judged =
        || proof.aspects.iter().any(|(_, judgement)| judgement.code.is_some_and(|code| symptom.judged.iter().any(|known| known == code)));
    let set = |name: &String| log.environment.get(name).is_some_and(|values| values.iter().any(|value| !value.is_empty()));
    let obeyed = |(name, wanted): (&String, &String)| match wanted.as_str() {
        "?*" => set(name),
        wanted => log.environment.get(name).is_some_and(|values| values.contains(wanted)),
    };
    let is_so = (symptom.seen.is_empty() || group.is_some())
        && (symptom.judged.is_empty() || judged())
        && !symptom.unless.iter().any(has)
        && symptom.environment.iter().all(obeyed)
        && !symptom.unless_environment.iter().any(set);
    is_so.then(|| group.into_iter().flatten().filter_map(|pattern| seen.get(pattern).cloned()).collect())
}
