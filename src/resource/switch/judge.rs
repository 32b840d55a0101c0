//! What the four kinds have in common: both configurations, attributes in two planes, the edits and what they disturb.

use super::body::{port, system};
use super::configuration::{Configuration, Port, Wanted};
use super::edit::{SwitchEdit, disturbance};
use super::{SwitchRead, System};
use crate::{Action, Answers, Assessment, Attribute, Disruption, Plane, Read, Reading, Wish};
use railwright_base::nodeset;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The word of the transaction that all changes of a switch make.
const TRANSACTION: &str = "switch";

/// What a step may do after the change has been proven.
const SAVE: &str = "save_switch";

/// What a switch says: both configurations, which all wishes of it share.
pub struct Said {
    running: Result<Arc<Box<dyn Configuration>>, String>,
    saved: Saved,
}

/// The configuration that is saved; nothing where nothing that makes sense is.
type Saved = Result<Arc<Option<Arc<Box<dyn Configuration>>>>, String>;

/// The configuration that runs; the error fits after "unknown:".
pub fn running(system: System, answers: &Answers) -> Result<Arc<Box<dyn Configuration>>, String> {
    answers.decoded(&Read::Switch { system, of: SwitchRead::Running }, |code, out| match code {
        0 => system.configuration(out),
        69 => Err(system.is_not_there().to_owned()),
        code => Err(format!("{} ended with status {code}", system.asked())),
    })
}

/// Where all that runs is saved, both are the same text on some systems, and it is decoded once.
fn saved(system: System, answers: &Answers) -> Saved {
    let is_what_runs = |out: &str| answers.output(&Read::Switch { system, of: SwitchRead::Running }) == Ok((0, out));
    answers.decoded(&Read::Switch { system, of: SwitchRead::Saved }, |code, out| match code {
        0 if is_what_runs(out) => running(system, answers).map(Some),
        0 => system.configuration(out).map(|saved| Some(Arc::new(saved))),
        1 => Ok(None),
        code => Err(format!("reading it ended with status {code}")),
    })
}

/// The ports of which one switch says something else than the other that a wish may be judged by; nothing where it is not of single
/// ports, or one of them says nothing that makes sense.
pub fn unlike(system: System, of: SwitchRead, a: &Answers, b: &Answers) -> Option<BTreeSet<String>> {
    match of {
        SwitchRead::Running => running(system, a).ok()?.unlike(running(system, b).ok()?.as_ref().as_ref()),
        SwitchRead::Saved => {
            let (one, other) = (saved(system, a).ok()?, saved(system, b).ok()?);
            one.as_deref()?.unlike(other.as_deref()?.as_ref())
        }
    }
}

impl Said {
    /// Both configurations.
    pub fn of(wish: &Wish, answers: &Answers) -> Self {
        let system = system(wish);
        let running = running(system, answers);
        // Where nobody knows what runs nothing can be done about what is saved, which is made from it.
        let saved = running.as_ref().map_err(Clone::clone).and_then(|_| saved(system, answers));
        Said { running, saved }
    }

    /// What runs, where it could be read.
    fn running(&self) -> Option<&dyn Configuration> {
        self.running.as_deref().ok().map(Box::as_ref)
    }

    /// An attribute in both planes: what is wanted, and how it is found in a configuration.
    fn attribute(&self, wanted: Reading, found: impl Fn(&dyn Configuration) -> Reading) -> Attribute {
        let unknown = |reason: &String| Reading::Unknown(reason.clone());
        let running = self.running.as_deref().map_or_else(unknown, |running| found(running.as_ref()));
        let in_saved =
            |saved: &Option<Arc<Box<dyn Configuration>>>| saved.as_deref().map_or(Reading::Absent, |saved| found(saved.as_ref()));
        let saved = self.saved.as_deref().map_or_else(unknown, in_saved);
        Attribute::in_plane(Plane::Running, wanted.clone(), running).and(Plane::Persisted, wanted, saved)
    }

    /// Notes whether the switch made the buffer that a paused priority needs, where that is its own doing.
    pub fn note_made_buffer(&self, assessment: &mut Assessment, port: &str, priority: u64, cable_m: u64) {
        let made = |running: &dyn Configuration| running.port(port).map(|port| port.made_buffer(priority, cable_m));
        let (found, never) = match &self.running {
            Err(reason) => (Reading::Unknown(reason.clone()), None),
            Ok(running) => made(running.as_ref().as_ref()).unwrap_or((Reading::Absent, None)),
        };
        let attribute = Attribute::in_plane(Plane::Running, Reading::is("there"), found).that_settles();
        let lacks = !attribute.differences().is_empty();
        assessment.attributes.insert("lossless_buffer".to_owned(), attribute);
        if never.is_some() {
            assessment.refusal = never;
        }
        if lacks {
            assessment.transaction = Some(TRANSACTION.to_owned());
        }
    }
}

/// Judges an attribute after the other, in both planes.
pub struct Judge<'a> {
    wish: &'a Wish,
    said: &'a Said,
    /// What came of it.
    pub assessment: Assessment,
}

impl<'a> Judge<'a> {
    /// Nothing is judged yet.
    pub fn new(wish: &'a Wish, said: &'a Said) -> Self {
        Judge { wish, said, assessment: Assessment::default() }
    }

    /// An attribute: what is wanted, and how it is found in a port.
    pub fn attribute(&mut self, name: &str, wanted: impl Into<Value>, found: impl Fn(&dyn Port) -> Reading) {
        let port = port(self.wish);
        let found = |db: &dyn Configuration| db.port(port).map_or(Reading::Absent, |port| found(port.as_ref()));
        let attribute = self.said.attribute(Reading::Is(wanted.into()), found);
        self.assessment.attributes.insert(name.to_owned(), attribute);
    }

    /// The actions: what runs is changed first, and saved once it is so.
    pub fn finish(mut self, wanted: &Wanted) -> Assessment {
        let Some(running) = self.said.running() else { return self.assessment };
        let port = port(self.wish);
        let Some(view) = running.port(port) else {
            let known = nodeset::fold(&running.ports());
            self.assessment.refusal = Some(format!("the switch has no port {port}; it has {known}"));
            return self.assessment;
        };
        let edits = match running.edits(port, wanted) {
            Ok(edits) => edits,
            Err(why) => {
                self.assessment.refusal = Some(why);
                return self.assessment;
            }
        };
        self.assessment.before = running.before(port, wanted);
        act(&mut self.assessment, self.wish, edits, view.is_up());
        self.assessment
    }
}

/// What runs is changed first; it is saved once it has been seen to be right.
fn act(assessment: &mut Assessment, wish: &Wish, edits: Vec<SwitchEdit>, is_up: bool) {
    let differs = |plane: Plane| assessment.attributes.values().flat_map(Attribute::differences).any(|(at, ..)| at == plane);
    let (of_running, of_saved) = (differs(Plane::Running), differs(Plane::Persisted));
    let system = system(wish);
    if of_running && !edits.is_empty() {
        let disturbance = disturbance(system, &edits, port(wish), is_up);
        assessment.disruption = disturbance.disruption;
        assessment.interrupts.extend(disturbance.interrupts);
        assessment.actions.push(Action::EditSwitch { system, edits });
        assessment.announced.push(SAVE.to_owned());
    } else if of_saved && !of_running {
        assessment.disruption = Disruption::Reload;
        assessment.actions.push(Action::SaveSwitch { system });
    }
    if !assessment.actions.is_empty() {
        assessment.transaction = Some(TRANSACTION.to_owned());
    }
}

/// Puts back what is the port's own as it was before us.
pub fn take_back(wish: &Wish, before: &Value, answers: &Answers) -> Assessment {
    let said = Said::of(wish, answers);
    let mut assessment = Assessment { before: before.clone(), ..Assessment::default() };
    let running = match &said.running {
        Ok(running) => running.as_ref().as_ref(),
        Err(reason) => {
            let unknown = Attribute::in_plane(Plane::Running, Reading::is("as before"), Reading::Unknown(reason.clone()));
            assessment.attributes.insert("settings".to_owned(), unknown);
            return assessment;
        }
    };
    let port = port(wish);
    let Some(view) = running.port(port) else {
        assessment.residue.push(format!("nothing is left of {port}: the switch has no such port any more"));
        return assessment;
    };
    for kept in running.kept(port, before) {
        let reading = |db: &dyn Configuration| {
            let same = db.kept(port, before).into_iter().find(|other| other.called == kept.called);
            same.map_or(Reading::Absent, |same| same.is)
        };
        assessment.attributes.insert(kept.called.clone(), said.attribute(kept.was.clone(), reading));
    }
    assessment.residue = running.stays(before);
    act(&mut assessment, wish, running.put_back(port, before), view.is_up());
    // What is only forgotten goes along, so that what is taken back around it is one step.
    assessment.transaction = Some(TRANSACTION.to_owned());
    assessment
}
